/* SPDX-License-Identifier: Apache-2.0 */
/* req_to_global: its table, its demands and how its rows map to a grid. */
#include "base/status.h"
#include "plan/map_rows.h"
#include "plan/op_table.h"
#include "reference/reference.h"

#define SHAPE kiln_req_to_global_shape
#define ARGS kiln_req_to_global_args

static int64_t topk(const struct kiln_shape *shape)
{
    return shape->fields[KI_INDEX(SHAPE, topk)];
}

static int64_t table_width(const struct kiln_shape *shape)
{
    return shape->fields[KI_INDEX(SHAPE, table_width)];
}

static const struct kiln_shape_field fields[] = {
    KI_FIELD("topk", 1),
    KI_FIELD_STRIDE("topk_stride"),
    KI_FIELD_STRIDE("out_stride"),
    KI_FIELD("block_size", 1),
    KI_FIELD_AS("page_stride", 1, KI_INDEX(SHAPE, block_size)),
    KI_FIELD("table_width", 1),
    KI_FIELD_STRIDE("table_stride"),
    KI_FIELD_OR("dcp_world", 1, 1),
    KI_FIELD_OR("dcp_interleave", 1, 1),
};

static const struct kiln_arg args[] = {
    {KI_MATRIX(ARGS, token_indices, KILN_ARG_INPUT, KILN_I32, KILN_EXTENT_TOKENS, topk,
               KI_INDEX(SHAPE, topk_stride))},
    {KI_VECTOR(ARGS, req_id, KILN_ARG_INPUT, KILN_I32, KILN_EXTENT_TOKENS)},
    {KI_MATRIX(ARGS, block_table, KILN_ARG_INPUT, KILN_I32, KILN_EXTENT_TABLE_ROWS,
               table_width, KI_INDEX(SHAPE, table_stride))},
    {KI_VECTOR(ARGS, is_valid_token, KILN_ARG_INPUT, KILN_U8, KILN_EXTENT_TOKENS),
     .optional = true},
    {KI_VECTOR(ARGS, workspace_start, KILN_ARG_INPUT, KILN_I32, KILN_EXTENT_REQUESTS),
     .optional = true},
    {KI_VECTOR(ARGS, is_prefill, KILN_ARG_INPUT, KILN_U8, KILN_EXTENT_TOKENS),
     .optional = true},
    {KI_MATRIX(ARGS, global_indices, KILN_ARG_OUTPUT, KILN_I32, KILN_EXTENT_TOKENS, topk,
               KI_INDEX(SHAPE, out_stride))},
    {KI_VECTOR(ARGS, counts, KILN_ARG_OUTPUT, KILN_I32, KILN_EXTENT_TOKENS)},
    {KI_COUNTED(ARGS, live_tokens, KILN_EXTENT_NONE), .optional = true},
    {KI_NUMBER(ARGS, num_tokens, KILN_EXTENT_TOKENS), .optional = true},
    {KI_EXTENT(ARGS, num_requests, KILN_EXTENT_REQUESTS)},
    {KI_EXTENT(ARGS, table_rows, KILN_EXTENT_TABLE_ROWS)},
    {KI_NUMBER(ARGS, dcp_rank, KILN_EXTENT_NONE), .optional = true},
};

static enum kiln_status check(const struct kiln_shape *shape, struct kiln_error *err)
{
    const struct SHAPE *s = &shape->req_to_global;

    if (s->page_stride < s->block_size) {
        return ki_fail(err, KILN_E_SHAPE,
                       "req_to_global: page_stride = %lld: expected at least "
                       "block_size = %lld",
                       (long long)s->page_stride, (long long)s->block_size);
    }
    return ki_op_check_dcp("req_to_global", s->block_size, s->dcp_interleave, err);
}

static enum kiln_status check_args(const struct kiln_shape *shape,
                                   const void *launch_args, struct kiln_error *err)
{
    const struct SHAPE *s = &shape->req_to_global;
    const struct ARGS *a = launch_args;

    if ((a->workspace_start == NULL) != (a->is_prefill == NULL) && a->num_tokens > 0) {
        return ki_fail(err, KILN_E_ARGUMENT,
                       "req_to_global: %s is missing: expected workspace_start and "
                       "is_prefill, both or neither",
                       a->is_prefill == NULL ? "is_prefill" : "workspace_start");
    }
    if (a->workspace_start != NULL && s->dcp_world > 1) {
        return ki_fail(err, KILN_E_ARGUMENT,
                       "req_to_global: workspace_start is given: expected none, as "
                       "dcp_world is %lld",
                       (long long)s->dcp_world);
    }
    return ki_op_check_rank("req_to_global", a->dcp_rank, s->dcp_world, err);
}

static struct ki_map_rows rows_of(const struct kiln_shape *shape)
{
    return ki_map_rows_of(topk(shape), 16, shape->req_to_global.dcp_world > 1);
}

static int threads(const struct kiln_shape *shape)
{
    return rows_of(shape).threads;
}

static int constants(const struct kiln_shape *shape, struct ki_constant *out)
{
    out[0] = (struct ki_constant){"kManyThreads", rows_of(shape).many_threads};
    return 1;
}

static struct ki_grid grid(const struct kiln_shape *shape, const void *launch_args,
                           int n_sms)
{
    const struct ARGS *a = launch_args;

    return ki_map_rows_grid(rows_of(shape), a->num_tokens, n_sms);
}

const struct ki_op ki_op_req_to_global = {
    .info = {.op = KILN_OP_REQ_TO_GLOBAL,
             .name = "req_to_global",
             .supported = true,
             .fields = fields,
             .n_fields = KI_COUNT_OF(fields),
             .args = args,
             .n_args = KI_COUNT_OF(args),
             .args_bytes = sizeof(struct ARGS),
             .report_offset = offsetof(struct ARGS, report)},
    .template_name = "req_to_global.cu",
    .check = check,
    .constants = constants,
    .threads = threads,
    .check_args = check_args,
    .grid = grid,
    .row = ki_row_req_to_global,
};
