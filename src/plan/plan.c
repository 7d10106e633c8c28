/* SPDX-License-Identifier: Apache-2.0 */
/*
 * deployment -> everything it launches, each (op, shape) once. The only place that knows
 * which layers want which ops. Pure, and the list does not depend on the batch: only rows
 * and bytes do.
 */
#include <inttypes.h>
#include <string.h>

#include "base/attr.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/status.h"
#include "base/text.h"
#include "plan/deployment.h"
#include "plan/plan.h"
#include "plan/profile.h"
#include "plan/sizes.h"

enum {
    CAPACITY_ALIGN = 128,
    DRAFT_ALIGN = 64, /* columns of a draft block's window row */
};

struct planner {
    struct kiln_deployment d; /* complete, its ratios sorted */
    const struct kiln_profile_info *profile;
    int64_t table_width; /* pages of a request in the scheduler's table */
    int64_t window_table_width;
    int64_t capacity; /* columns of a row that holds every record */
    struct kiln_plan plan;
};

static int64_t ceil_div(int64_t a, int64_t b)
{
    return a / b + (a % b != 0);
}

static int64_t align_up(int64_t value, int64_t align)
{
    return ceil_div(value, align) * align;
}

/* ---- what follows from several numbers ---- */

static enum kiln_status check_length(const struct kiln_deployment *d, const char *what,
                                     int64_t value, struct kiln_error *err)
{
    if (value <= INT32_MAX) {
        return KILN_OK;
    }
    return ki_fail(err, KILN_E_ARGUMENT,
                   "--max-model-len is %" PRId64 ": %s would be %" PRId64
                   ", expected %" PRId32 " at most",
                   d->max_model_len, what, value, INT32_MAX);
}

static bool has_all(const struct kiln_deployment *d)
{
    struct ki_layer_kind kind = {.ratio = KI_RATIO_ALL - 1};

    return ki_deployment_next_kind(d, &kind) && kind.ratio == KI_RATIO_ALL;
}

static enum kiln_status derive(struct planner *p, struct kiln_error *err)
{
    const struct kiln_deployment *d = &p->d;
    bool is_split = d->dcp_storage == KILN_DCP_SHARDED;

    KI_TRY(ki_deployment_check_blocks(d, err));
    p->table_width = ceil_div(d->max_model_len, d->block_size * d->dcp_world);
    KI_TRY(check_length(d, "table_width, the pages of a request", p->table_width, err));
    if (d->n_compress_ratios > 0) {
        p->window_table_width =
            ceil_div(d->max_model_len, KI_WINDOW_BLOCK * (is_split ? d->dcp_world : 1));
        KI_TRY(check_length(d, "table_width, the window pages of a request",
                            p->window_table_width, err));
    }
    if (has_all(d)) {
        p->capacity = align_up(ceil_div(d->max_model_len, KI_RATIO_ALL), CAPACITY_ALIGN);
        KI_TRY(check_length(d, "capacity, the records of a request", p->capacity, err));
    }
    if (ki_decode_rows(d) > INT32_MAX) {
        return ki_fail(
            err, KILN_E_ARGUMENT,
            "--max-num-seqs is %" PRId64 " and --num-speculative-tokens %" PRId64
            ": expected %" PRId32 " decode rows at most, not %" PRId64,
            d->max_num_seqs, d->num_speculative_tokens, INT32_MAX, ki_decode_rows(d));
    }
    return KILN_OK;
}

/* ---- sizes ---- */

/* rows counts each group of outputs with the same rows once: a matrix and its lengths. */
static enum kiln_status measure(const struct planner *p, struct kiln_plan_item *item,
                                struct kiln_error *err)
{
    const struct kiln_op_info *info = kiln_op_info_get(item->op);
    uint32_t counted = 0;

    for (size_t i = 0; i < info->n_args; i++) {
        const struct kiln_arg *arg = &info->args[i];
        if (arg->kind != KILN_ARG_OUTPUT) {
            continue;
        }
        int64_t rows = ki_rows_at_capacity(&p->d, item, arg->extent);
        item->rows += (counted >> arg->extent & 1) == 0 ? rows : 0;
        counted |= (uint32_t)1 << arg->extent;
        if (!ki_add_product(&item->bytes, rows, ki_row_bytes(arg, &item->shape))) {
            return ki_fail_bytes(&p->d, info->name, err);
        }
    }
    return KILN_OK;
}

/* ---- the list ---- */

/* Of what a plan's rows are as wide as, only the model's top-k is not aligned. */
static enum kiln_status check_consumer(const struct planner *p,
                                       const struct kiln_plan_item *item,
                                       struct kiln_error *err)
{
    struct kiln_error why;

    if (ki_profile_check(p->profile, item->op, &item->shape, &why) == KILN_OK) {
        return KILN_OK;
    }
    return ki_fail(err, KILN_E_ARGUMENT,
                   "--profile is %s and index_topk %" PRId64 ": %.600s", p->profile->name,
                   p->d.index_topk, why.message);
}

/* `shape` points to the op's own shape struct, of `size` bytes. */
static enum kiln_status add(struct planner *p, enum kiln_op op, const void *shape,
                            size_t size, int64_t layers, struct kiln_error *err)
{
    struct kiln_plan_item item = {.op = op, .layers = layers};

    memset(&item.shape, 0, sizeof(item.shape));
    memcpy(&item.shape, shape, size);
    KI_TRY(kiln_shape_check(op, &item.shape, err));
    KI_TRY(check_consumer(p, &item, err));
    KI_TRY(measure(p, &item, err));
    p->plan.items[p->plan.n_items++] = item;
    return KILN_OK;
}

/* The model's numbers alone make no row too long: without images, only the records of a
 * long context do. */
static enum kiln_status fail_columns(const struct planner *p, int64_t topk,
                                     int64_t columns, struct kiln_error *err)
{
    const struct kiln_deployment *d = &p->d;
    bool is_context = topk + d->sliding_window > INT32_MAX - p->profile->align;

    return ki_fail(err, KILN_E_ARGUMENT,
                   "%s is %" PRId64 ": a combined row of %" PRId64 " top-k, %" PRId64
                   " window and %" PRId64 " image columns would have %" PRId64
                   ", expected %" PRId32 " at most",
                   is_context ? "--max-model-len" : "--image-width",
                   is_context ? d->max_model_len : d->image_width, topk,
                   d->sliding_window, d->image_width, columns, INT32_MAX);
}

static enum kiln_status add_combine(struct planner *p, int64_t topk,
                                    const struct ki_layer_kind *kind,
                                    struct kiln_error *err)
{
    const struct kiln_deployment *d = &p->d;
    int64_t align = p->profile->align;
    int64_t columns = align_up(topk + d->sliding_window + d->image_width, align);
    struct kiln_combine_topk_swa_shape shape = {
        .topk = topk,
        .topk_stride = topk > 0 ? topk : 1,
        .window = d->sliding_window,
        .compress_ratio = kind->ratio,
        .image_width = d->image_width,
        .align = align,
        .combined_stride = columns,
    };

    if (columns > INT32_MAX) {
        return fail_columns(p, topk, columns, err);
    }
    return add(p, KILN_OP_COMBINE_TOPK_SWA, &shape, sizeof(shape), kind->layers, err);
}

static enum kiln_status add_window_only(struct planner *p, struct kiln_error *err)
{
    struct ki_layer_kind all = {.ratio = 0};
    struct ki_layer_kind kind = {.ratio = -1};

    while (ki_deployment_next_kind(&p->d, &kind)) {
        all.layers += kind.is_window_only ? kind.layers : 0;
    }
    return all.layers == 0 ? KILN_OK : add_combine(p, 0, &all, err);
}

static enum kiln_status add_indexed(struct planner *p, const struct ki_layer_kind *kind,
                                    struct kiln_error *err)
{
    const struct kiln_deployment *d = &p->d;
    struct kiln_global_topk_shape shape = {
        .topk = d->index_topk,
        .topk_stride = d->index_topk,
        .slots_stride = d->index_topk,
        .block_size = d->block_size / kind->ratio,
        .table_width = p->table_width,
        .table_stride = p->table_width,
        .dcp_world = d->dcp_world,
        .dcp_interleave = d->dcp_interleave,
    };

    KI_TRY(add(p, KILN_OP_GLOBAL_TOPK, &shape, sizeof(shape), kind->layers, err));
    return add_combine(p, d->index_topk, kind, err);
}

static enum kiln_status add_per_layer(struct planner *p, struct kiln_error *err)
{
    struct ki_layer_kind kind = {.ratio = -1};

    KI_TRY(add_window_only(p, err));
    while (ki_deployment_next_kind(&p->d, &kind)) {
        if (kind.has_indexer) {
            KI_TRY(add_indexed(p, &kind, err));
        }
        if (kind.ratio == KI_RATIO_ALL) {
            KI_TRY(add_combine(p, p->capacity, &kind, err));
        }
    }
    return KILN_OK;
}

/* Image columns widen the causal rows; a draft block's rows do not depend on them. */
static enum kiln_status add_swa(struct planner *p, bool causal, int64_t width,
                                struct kiln_error *err)
{
    const struct kiln_deployment *d = &p->d;
    struct kiln_swa_indices_shape shape = {
        .window = d->sliding_window,
        .index_width = width,
        .index_stride = width,
        .block_size = KI_WINDOW_BLOCK,
        .table_width = p->window_table_width,
        .table_stride = p->window_table_width,
        .image_width = causal ? d->image_width : 0,
        .causal = causal,
        .dcp_world = d->dcp_world,
        .dcp_interleave = d->dcp_interleave,
        .dcp_storage = d->dcp_storage,
    };

    return add(p, KILN_OP_SWA_INDICES, &shape, sizeof(shape), 1, err);
}

static enum kiln_status add_draft(struct planner *p, struct kiln_error *err)
{
    const struct kiln_deployment *d = &p->d;
    int64_t width = align_up(d->sliding_window + d->num_speculative_tokens, DRAFT_ALIGN);

    if (d->num_speculative_tokens == 0) {
        return KILN_OK;
    }
    if (width > INT32_MAX) {
        return ki_fail(err, KILN_E_ARGUMENT,
                       "--num-speculative-tokens is %" PRId64
                       ": a draft row would have %" PRId64 " columns, expected %" PRId32
                       " at most",
                       d->num_speculative_tokens, width, INT32_MAX);
    }
    return add_swa(p, false, width, err);
}

static enum kiln_status add_compressed(struct planner *p, struct kiln_error *err)
{
    const struct kiln_deployment *d = &p->d;
    struct ki_layer_kind kind = {.ratio = -1};

    while (ki_deployment_next_kind(d, &kind)) {
        if (kind.is_window_only) {
            continue;
        }
        struct kiln_compressed_slots_shape shape = {
            .compress_ratio = kind.ratio,
            .block_size = d->block_size / kind.ratio,
            .table_width = p->table_width,
            .table_stride = p->table_width,
            .dcp_world = d->dcp_world,
            .dcp_interleave = d->dcp_interleave,
        };
        /* The indexer's cache has the main cache's shape. */
        int64_t launches = kind.has_indexer ? 2 : 1;
        KI_TRY(add(p, KILN_OP_COMPRESSED_SLOTS, &shape, sizeof(shape), launches, err));
    }
    return KILN_OK;
}

static enum kiln_status add_c128a(struct planner *p, struct kiln_error *err)
{
    const struct kiln_deployment *d = &p->d;
    struct kiln_c128a_topk_shape shape = {
        .compress_ratio = KI_RATIO_ALL,
        .capacity = p->capacity,
        .block_size = d->block_size / KI_RATIO_ALL,
        .table_width = p->table_width,
        .table_stride = p->table_width,
        .dcp_world = d->dcp_world,
        .dcp_interleave = d->dcp_interleave,
    };

    if (p->capacity == 0) {
        return KILN_OK;
    }
    return add(p, KILN_OP_C128A_TOPK, &shape, sizeof(shape), 1, err);
}

static enum kiln_status add_once(struct planner *p, struct kiln_error *err)
{
    const struct kiln_deployment *d = &p->d;
    struct kiln_token_to_req_shape token_to_req = {.pad_req = 0};
    struct kiln_is_valid_token_shape is_valid = {.dcp_world = d->dcp_world};
    struct kiln_gather_lens_shape gather = {.window = d->sliding_window};
    struct kiln_image_visibility_shape image = {.image_width = d->image_width};

    KI_TRY(add(p, KILN_OP_TOKEN_TO_REQ, &token_to_req, sizeof(token_to_req), 1, err));
    KI_TRY(add(p, KILN_OP_IS_VALID_TOKEN, &is_valid, sizeof(is_valid), 1, err));
    KI_TRY(add(p, KILN_OP_GATHER_LENS, &gather, sizeof(gather), 1, err));
    KI_TRY(add_swa(p, true, d->sliding_window + d->image_width, err));
    KI_TRY(add_draft(p, err));
    if (d->image_width > 0) {
        KI_TRY(add(p, KILN_OP_IMAGE_VISIBILITY, &image, sizeof(image), 1, err));
    }
    KI_TRY(add_compressed(p, err));
    return add_c128a(p, err);
}

static bool is_segment(const struct kiln_plan_item *item)
{
    switch (item->op) {
    case KILN_OP_TOKEN_TO_REQ:
    case KILN_OP_IS_VALID_TOKEN:
    case KILN_OP_GATHER_LENS:
    case KILN_OP_COMPRESSED_SLOTS:
    case KILN_OP_C128A_TOPK:
        return true;
    case KILN_OP_SWA_INDICES:
        return item->shape.swa_indices.causal != 0;
    case KILN_OP_GLOBAL_TOPK:
    case KILN_OP_COMBINE_TOPK_SWA:
    case KILN_OP_MIXED_SPARSE_INDICES:
    case KILN_OP_REQ_TO_GLOBAL:
    case KILN_OP_IMAGE_VISIBILITY:
    case KILN_OP_STEP:
        break;
    }
    return false;
}

/* The items so far stand in the order that step wants its segments in; one that is
 * launched twice a step is two segments in a row. */
static enum kiln_status add_step(struct planner *p, struct kiln_error *err)
{
    struct kiln_plan *plan = &p->plan;
    struct kiln_plan_item step = {.op = KILN_OP_STEP, .layers = 1};

    for (size_t i = 0; i < plan->n_items; i++) {
        struct kiln_plan_item segment = plan->items[i];
        int64_t copies = is_segment(&segment) ? segment.layers : 0;
        segment.layers = 1;
        for (int64_t copy = 0; copy < copies; copy++) {
            step.rows += segment.rows;
            if (!ki_add_product(&step.bytes, segment.bytes, 1)) {
                return ki_fail_bytes(&p->d, "step", err);
            }
            plan->segments[plan->n_segments++] = segment;
        }
    }
    step.n_segments = plan->n_segments;
    plan->items[plan->n_items++] = step;
    return KILN_OK;
}

static enum kiln_status add_req_to_global(struct planner *p, struct kiln_error *err)
{
    const struct kiln_deployment *d = &p->d;
    struct kiln_req_to_global_shape shape = {
        .topk = d->index_topk,
        .topk_stride = d->index_topk,
        .out_stride = d->index_topk,
        .block_size = d->block_size,
        .page_stride = d->block_size,
        .table_width = p->table_width,
        .table_stride = p->table_width,
        .dcp_world = d->dcp_world,
        .dcp_interleave = d->dcp_interleave,
    };

    return add(p, KILN_OP_REQ_TO_GLOBAL, &shape, sizeof(shape), d->num_hidden_layers,
               err);
}

static enum kiln_status add_all(struct planner *p, struct kiln_error *err)
{
    if (p->d.n_compress_ratios == 0) {
        return add_req_to_global(p, err);
    }
    KI_TRY(add_per_layer(p, err));
    KI_TRY(add_once(p, err));
    return add_step(p, err);
}

/* ---- digest ---- */

static void write_line(struct ki_text *text, const struct kiln_plan_item *item)
{
    const struct kiln_op_info *info = kiln_op_info_get(item->op);

    ki_text_string(text, info->name);
    for (size_t i = 0; i < info->n_fields; i++) {
        ki_text_format(text, " %s=%" PRId64, info->fields[i].name, item->shape.fields[i]);
    }
    ki_text_string(text, "\n");
}

static enum kiln_status digest(struct kiln_plan *plan, struct kiln_error *err)
{
    struct ki_text text;
    enum kiln_status status = KILN_OK;

    ki_text_init(&text, NULL);
    for (size_t i = 0; i < plan->n_items; i++) {
        const struct kiln_plan_item *item = &plan->items[i];
        write_line(&text, item);
        for (size_t s = 0; s < item->n_segments; s++) {
            ki_text_string(&text, "- ");
            write_line(&text, &plan->segments[item->first_segment + s]);
        }
    }
    if (ki_text_ok(&text)) {
        ki_hash(text.data, text.size, plan->digest);
    } else {
        status = ki_fail_memory(err, "a plan's text");
    }
    ki_text_finish(&text);
    return status;
}

enum kiln_status ki_plan_check_ops(const struct kiln_plan *plan, struct kiln_error *err)
{
    for (size_t i = 0; i < plan->n_items; i++) {
        if (kiln_op_info_get(plan->items[i].op) == NULL) {
            return ki_fail(err, KILN_E_ARGUMENT,
                           "plan item %zu: op = %d: expected a value of enum kiln_op", i,
                           (int)plan->items[i].op);
        }
    }
    return KILN_OK;
}

/* ---- public ---- */

/* Room for the longest list: three items a ratio and two segments, and what is once. */
static enum kiln_status make_room(struct planner *p, struct kiln_error *err)
{
    size_t n = (size_t)p->d.n_compress_ratios;

    p->plan.items = ki_mem_array(NULL, 3 * n + 9, sizeof(*p->plan.items));
    p->plan.segments = ki_mem_array(NULL, 2 * n + 5, sizeof(*p->plan.segments));
    if (p->plan.items == NULL || p->plan.segments == NULL) {
        return ki_fail_memory(err, "a plan");
    }
    return KILN_OK;
}

enum kiln_status kiln_plan_make(const struct kiln_deployment *deployment,
                                struct kiln_plan *out, struct kiln_error *err)
{
    struct planner p = {.table_width = 0};
    enum kiln_status status;

    if (deployment == NULL || out == NULL) {
        return ki_fail(err, KILN_E_ARGUMENT, "%s is NULL: expected one",
                       deployment == NULL ? "deployment" : "out");
    }
    KI_TRY(ki_deployment_resolve(deployment, &p.d, err));
    p.profile = kiln_profile_info_get((enum kiln_profile)p.d.profile);
    KI_TRY(derive(&p, err));

    status = make_room(&p, err);
    if (status == KILN_OK) {
        status = add_all(&p, err);
    }
    if (status == KILN_OK) {
        status = digest(&p.plan, err);
    }
    if (status != KILN_OK) {
        kiln_plan_finish(&p.plan);
        return status;
    }
    *out = p.plan;
    return KILN_OK;
}

void kiln_plan_finish(struct kiln_plan *plan)
{
    if (plan == NULL) {
        return;
    }
    ki_mem_free(NULL, plan->items);
    ki_mem_free(NULL, plan->segments);
    memset(plan, 0, sizeof(*plan));
}
