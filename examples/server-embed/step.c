/* SPDX-License-Identifier: Apache-2.0 */
/* See step.h. What each op takes is said in kiln/op/<name>.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kiln/kiln.h"

#include "step.h"

/* ---- sizes and places ---- */

/* Layers with an indexer have picks, and so rows, of their own. The combined rows of all
 * other layers of a kind are the same: one launch serves them. */
static int takes_picks(const struct kiln_layout_launch *launch)
{
    const struct kiln_combine_topk_swa_shape *combine = &launch->shape.combine_topk_swa;

    if (launch->op == KILN_OP_COMBINE_TOPK_SWA) {
        return combine->topk > 0 && combine->compress_ratio != 128;
    }
    return launch->op == KILN_OP_GLOBAL_TOPK || launch->op == KILN_OP_REQ_TO_GLOBAL;
}

void sizes_from_layout(struct sizes *sizes, const struct kiln_layout *layout)
{
    for (size_t i = 0; i < layout->n_launches; i++) {
        const struct kiln_layout_launch *launch = &layout->launches[i];
        const struct kiln_shape *shape = &launch->shape;

        if (takes_picks(launch) && launch->layers > sizes->pick_layers) {
            sizes->pick_layers = launch->layers;
        }
        if (launch->op == KILN_OP_GLOBAL_TOPK) {
            sizes->topk = shape->global_topk.topk;
        } else if (launch->op == KILN_OP_REQ_TO_GLOBAL) {
            sizes->topk = shape->req_to_global.topk;
            sizes->table_width = shape->req_to_global.table_width;
        } else if (launch->op == KILN_OP_COMPRESSED_SLOTS) {
            sizes->table_width = shape->compressed_slots.table_width;
        } else if (launch->op == KILN_OP_C128A_TOPK) {
            sizes->c128a_ratio = shape->c128a_topk.compress_ratio;
            sizes->c128a_capacity = shape->c128a_topk.capacity;
        } else if (launch->op == KILN_OP_SWA_INDICES) {
            sizes->window = shape->swa_indices.window;
            sizes->swa_block_size = shape->swa_indices.block_size;
            sizes->swa_table_width = shape->swa_indices.table_width;
        }
    }
}

/* Take room for an array from a block, and return where it starts. */
static void *take(char *block, size_t *used, int64_t elements, size_t element_bytes)
{
    const size_t at = *used;

    *used += ((size_t)elements * element_bytes + 255) / 256 * 256;
    return block != NULL ? block + at : NULL;
}

size_t inputs_place(const struct sizes *sizes, char *block, struct inputs *out)
{
    const int64_t requests = sizes->max_decode + sizes->max_prefill;
    const int64_t tokens = sizes->max_tokens;
    size_t used = 0;

    out->counts = take(block, &used, N_COUNTS, 4);
    out->query_start_loc = take(block, &used, requests + 1, 4);
    out->seq_lens = take(block, &used, requests, 4);
    out->positions = take(block, &used, tokens, 8);
    out->slot_mapping = take(block, &used, tokens, 8);
    out->req_id = take(block, &used, tokens, 4);
    out->picks = take(block, &used, (tokens + sizes->pick_layers) * sizes->topk, 4);
    out->block_table = take(block, &used, requests * sizes->table_width, 4);
    out->swa_block_table = take(block, &used, requests * sizes->swa_table_width, 4);
    return used;
}

/* ---- the arguments of each op ---- */

/* What a binder looks at. */
struct binding {
    const struct step *step;
    const struct kiln_layout *layout;
    const struct kiln_layout_launch *launch;
    const struct memory *memory;
    int64_t layer;
    int32_t requests, tokens;
};

static struct kiln_count in_memory(const struct binding *b, int i_count)
{
    return (struct kiln_count){.kind = KILN_COUNT_DEVICE,
                               .address = b->memory->in.counts + i_count};
}

static struct kiln_count by_value(int64_t value)
{
    return (struct kiln_count){.kind = KILN_COUNT_VALUE, .value = (int32_t)value};
}

/* An output that another launch of the step has written. */
static const void *made(const struct binding *b, const char *buffer_name)
{
    return b->memory->out_block + kiln_layout_find_buffer(b->layout, buffer_name)->offset;
}

static void bind_token_to_req(const struct binding *b, union step_args *out)
{
    out->token_to_req = (struct kiln_token_to_req_args){
        .query_start_loc = b->memory->in.query_start_loc,
        .num_tokens = b->tokens,
        .num_requests = b->requests,
    };
}

static void bind_is_valid_token(const struct binding *b, union step_args *out)
{
    out->is_valid_token = (struct kiln_is_valid_token_args){
        .slot_mapping = b->memory->in.slot_mapping,
        .live_tokens = in_memory(b, LIVE_TOKENS),
        .num_tokens = b->tokens,
    };
}

static void bind_gather_lens(const struct binding *b, union step_args *out)
{
    out->gather_lens = (struct kiln_gather_lens_args){
        .query_start_loc = b->memory->in.query_start_loc,
        .seq_lens = b->memory->in.seq_lens,
        .first_request = by_value(b->step->n_decode),
        .num_requests = b->requests,
    };
}

static void bind_swa_indices(const struct binding *b, union step_args *out)
{
    out->swa_indices = (struct kiln_swa_indices_args){
        .query_start_loc = b->memory->in.query_start_loc,
        .seq_lens = b->memory->in.seq_lens,
        .token_to_req = made(b, "token_to_req.token_to_req"),
        .block_table = b->memory->in.swa_block_table,
        .is_valid_token = made(b, "is_valid_token.is_valid_token"),
        .live_tokens = in_memory(b, LIVE_TOKENS),
        .num_rows = b->tokens,
        .num_requests = b->requests,
        .table_rows = b->requests,
    };
}

static void bind_compressed_slots(const struct binding *b, union step_args *out)
{
    out->compressed_slots = (struct kiln_compressed_slots_args){
        .query_start_loc = b->memory->in.query_start_loc,
        .seq_lens = b->memory->in.seq_lens,
        .block_table = b->memory->in.block_table,
        .own_slots = b->memory->in.slot_mapping,
        .num_tokens = b->tokens,
        .num_requests = b->requests,
        .table_rows = b->requests,
    };
}

/* Decode tokens come first. Where a batch has nothing else, all its rows are decode rows,
 * so that attention finds those that are not live empty. */
static void bind_c128a_topk(const struct binding *b, union step_args *out)
{
    out->c128a_topk = (struct kiln_c128a_topk_args){
        .positions = b->memory->in.positions,
        .token_to_req = made(b, "token_to_req.token_to_req"),
        .block_table = b->memory->in.block_table,
        .slot_mapping = b->memory->in.slot_mapping,
        .num_decode_tokens =
            b->step->n_prefill > 0 ? in_memory(b, DECODE_TOKENS) : by_value(b->tokens),
        .active_width = in_memory(b, ACTIVE_WIDTH),
        .live_tokens = in_memory(b, LIVE_TOKENS),
        .num_tokens = b->tokens,
        .table_rows = b->requests,
    };
}

/* Decode rows alone: prefill tokens behind them are not live here. */
static void bind_global_topk(const struct binding *b, union step_args *out)
{
    const int64_t topk = b->launch->shape.global_topk.topk;

    out->global_topk = (struct kiln_global_topk_args){
        .topk_indices = b->memory->in.picks + b->layer * topk,
        .token_to_req = made(b, "token_to_req.token_to_req"),
        .block_table = b->memory->in.block_table,
        .is_valid_token = made(b, "is_valid_token.is_valid_token"),
        .live_tokens = in_memory(b, DECODE_TOKENS),
        .num_tokens = (int32_t)b->step->n_decode,
        .table_rows = b->requests,
    };
}

/* Prefill rows alone. Their requests start at n_decode, and picks, as gather_lens and
 * prefill_local, have the first prefill token in row 0. */
static void bind_combine_topk_swa(const struct binding *b, union step_args *out)
{
    const struct kiln_combine_topk_swa_shape *shape = &b->launch->shape.combine_topk_swa;
    const struct inputs *in = &b->memory->in;
    const int32_t *picks = NULL; /* of layers with a window only */

    if (takes_picks(b->launch)) {
        picks = in->picks + b->layer * shape->topk;
    } else if (shape->topk > 0) {
        picks = made(b, "c128a_topk.prefill_local");
    }
    out->combine_topk_swa = (struct kiln_combine_topk_swa_args){
        .topk_indices = picks,
        .query_start_loc = in->query_start_loc + b->step->n_decode,
        .seq_lens = in->seq_lens + b->step->n_decode,
        .gather_lens = made(b, "gather_lens.gather_lens"),
        .workspace_rows = in_memory(b, WORKSPACE_ROWS),
        .swa_base = in_memory(b, SWA_BASE),
        .num_tokens = b->tokens,
        .num_requests = (int32_t)b->step->n_prefill,
    };
}

static void bind_req_to_global(const struct binding *b, union step_args *out)
{
    const int64_t topk = b->launch->shape.req_to_global.topk;

    out->req_to_global = (struct kiln_req_to_global_args){
        .token_indices = b->memory->in.picks + b->layer * topk,
        .req_id = b->memory->in.req_id,
        .block_table = b->memory->in.block_table,
        .live_tokens = in_memory(b, LIVE_TOKENS),
        .num_tokens = b->tokens,
        .table_rows = b->requests,
    };
}

/* ---- the launches of a step ---- */

/* In the order in which they run: what makes a map comes before what reads it. */
static const struct step_op {
    enum kiln_op op;
    int prefill_only;
    void (*bind)(const struct binding *binding, union step_args *out);
} step_ops[] = {
    {KILN_OP_TOKEN_TO_REQ, 0, bind_token_to_req},
    {KILN_OP_IS_VALID_TOKEN, 0, bind_is_valid_token},
    {KILN_OP_GATHER_LENS, 1, bind_gather_lens},
    {KILN_OP_SWA_INDICES, 0, bind_swa_indices},
    {KILN_OP_COMPRESSED_SLOTS, 0, bind_compressed_slots},
    {KILN_OP_C128A_TOPK, 0, bind_c128a_topk},
    {KILN_OP_GLOBAL_TOPK, 0, bind_global_topk},
    {KILN_OP_COMBINE_TOPK_SWA, 1, bind_combine_topk_swa},
    {KILN_OP_REQ_TO_GLOBAL, 0, bind_req_to_global},
};
enum { N_STEP_OPS = sizeof step_ops / sizeof step_ops[0] };

static int64_t launches_of(const struct kiln_layout_launch *launch)
{
    return takes_picks(launch) ? launch->layers : 1;
}

static void list_calls(struct step *step, const struct kiln_layout *layout,
                       size_t i_launch)
{
    const struct kiln_layout_launch *launch = &layout->launches[i_launch];

    for (int64_t layer = 0; layer < launches_of(launch); layer++) {
        step->calls[step->n_calls++] = (struct call){
            .i_launch = i_launch, .layer = layer, .saved_at = step->saved_bytes};
        for (size_t i = 0; i < launch->n_buffers; i++) {
            step->saved_bytes += layout->buffers[launch->first_buffer + i].bytes;
        }
    }
}

int step_init(struct step *out, const struct kiln_layout *layout, int64_t n_decode,
              int64_t n_prefill, int64_t n_tokens)
{
    size_t n_calls = 0;

    for (size_t i = 0; i < layout->n_launches; i++) {
        n_calls += (size_t)launches_of(&layout->launches[i]);
    }
    *out =
        (struct step){.n_decode = n_decode, .n_prefill = n_prefill, .n_tokens = n_tokens};
    out->calls = calloc(n_calls, sizeof *out->calls);
    if (out->calls == NULL) {
        return -1;
    }
    for (size_t i_op = 0; i_op < N_STEP_OPS; i_op++) {
        for (size_t i = 0; i < layout->n_launches; i++) {
            if (layout->launches[i].op == step_ops[i_op].op &&
                (n_prefill > 0 || !step_ops[i_op].prefill_only)) {
                list_calls(out, layout, i);
            }
        }
    }
    if (n_prefill > 0 && out->n_calls != n_calls) {
        (void)fprintf(stderr, "server-embed: the plan has an op that no step launches\n");
        return -1;
    }
    return 0;
}

void step_finish(struct step *step, struct kiln_gpu *gpu)
{
    kiln_gpu_graph_destroy(gpu, &step->graph);
    free(step->calls);
    step->calls = NULL;
}

void step_bind(const struct step *step, const struct call *call,
               const struct kiln_layout *layout, const struct memory *memory,
               union step_args *out)
{
    const struct kiln_layout_launch *launch = &layout->launches[call->i_launch];
    const struct kiln_op_info *info = kiln_op_info_get(launch->op);
    const struct binding binding = {
        .step = step,
        .layout = layout,
        .launch = launch,
        .memory = memory,
        .layer = call->layer,
        .requests = (int32_t)(step->n_decode + step->n_prefill),
        .tokens = (int32_t)step->n_tokens,
    };
    const struct kiln_buffer *buffer = &layout->buffers[launch->first_buffer];

    for (size_t i = 0; i < N_STEP_OPS; i++) {
        if (step_ops[i].op == launch->op) {
            step_ops[i].bind(&binding, out);
        }
    }
    for (size_t i = 0; i < info->n_args; i++) {
        if (info->args[i].kind == KILN_ARG_OUTPUT) {
            void *address = memory->out_block + buffer->offset;

            memcpy((char *)out + info->args[i].offset, &address, sizeof address);
            buffer++;
        }
    }
}

/* One launch, and in place of the attention that reads its rows: a copy that saves them
 * before the next layer writes over them. */
static enum kiln_status launch_and_save(const struct step *step, const struct call *call,
                                        struct kiln_launcher *launcher,
                                        struct kiln_gpu *gpu, const struct memory *memory,
                                        char *saved, struct kiln_error *err)
{
    const struct kiln_layout *layout = kiln_launcher_layout(launcher);
    const struct kiln_layout_launch *launch = &layout->launches[call->i_launch];
    char *to = saved + call->saved_at;
    union step_args args;
    enum kiln_status status;

    step_bind(step, call, layout, memory, &args);
    status =
        kiln_launcher_launch(launcher, call->i_launch, &args, kiln_gpu_stream(gpu), err);
    for (size_t i = 0; i < launch->n_buffers && status == KILN_OK; i++) {
        const struct kiln_buffer *buffer = &layout->buffers[launch->first_buffer + i];

        status = kiln_gpu_copy(gpu, to, buffer->address, (size_t)buffer->bytes, err);
        to += buffer->bytes;
    }
    return status;
}

enum kiln_status step_capture(struct step *step, struct kiln_launcher *launcher,
                              struct kiln_gpu *gpu, const struct memory *memory,
                              char *saved, struct kiln_error *err)
{
    enum kiln_status status = kiln_gpu_capture_begin(gpu, KILN_CAPTURE_THREAD_LOCAL, err);
    enum kiln_status end_status;

    if (status != KILN_OK) {
        return status;
    }
    for (size_t i = 0; i < step->n_calls && status == KILN_OK; i++) {
        status =
            launch_and_save(step, &step->calls[i], launcher, gpu, memory, saved, err);
    }
    end_status = kiln_gpu_capture_end(gpu, &step->graph, status == KILN_OK ? err : NULL);
    return status != KILN_OK ? status : end_status;
}
