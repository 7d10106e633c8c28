/* SPDX-License-Identifier: Apache-2.0 */
/* global_topk: its table, its demands and how its rows map to a grid. */
#include "plan/map_rows.h"
#include "plan/op_table.h"
#include "reference/reference.h"

#define SHAPE kiln_global_topk_shape
#define ARGS kiln_global_topk_args

static int64_t topk(const struct kiln_shape *shape)
{
    return shape->global_topk.topk;
}

static int64_t table_width(const struct kiln_shape *shape)
{
    return shape->global_topk.table_width;
}

static const struct kiln_shape_field fields[] = {
    KI_FIELD("topk", 1),
    KI_FIELD_STRIDE("topk_stride"),
    KI_FIELD_STRIDE("slots_stride"),
    KI_FIELD("block_size", 1),
    KI_FIELD("table_width", 1),
    KI_FIELD_STRIDE("table_stride"),
    KI_FIELD_OR("dcp_world", 1, 1),
    KI_FIELD_OR("dcp_interleave", 1, 1),
};

static const struct kiln_arg args[] = {
    {KI_MATRIX(ARGS, topk_indices, KILN_ARG_INPUT, KILN_I32, KILN_EXTENT_TOKENS, topk,
               KI_INDEX(SHAPE, topk_stride))},
    {KI_VECTOR(ARGS, token_to_req, KILN_ARG_INPUT, KILN_I32, KILN_EXTENT_TOKENS)},
    {KI_MATRIX(ARGS, block_table, KILN_ARG_INPUT, KILN_I32, KILN_EXTENT_TABLE_ROWS,
               table_width, KI_INDEX(SHAPE, table_stride))},
    {KI_VECTOR(ARGS, is_valid_token, KILN_ARG_INPUT, KILN_U8, KILN_EXTENT_TOKENS),
     .optional = true},
    {KI_MATRIX(ARGS, slots, KILN_ARG_OUTPUT, KILN_I32, KILN_EXTENT_TOKENS, topk,
               KI_INDEX(SHAPE, slots_stride))},
    {KI_VECTOR(ARGS, lens, KILN_ARG_OUTPUT, KILN_I32, KILN_EXTENT_TOKENS)},
    {KI_COUNTED(ARGS, live_tokens, KILN_EXTENT_NONE), .optional = true},
    {KI_NUMBER(ARGS, num_tokens, KILN_EXTENT_TOKENS), .optional = true},
    {KI_EXTENT(ARGS, table_rows, KILN_EXTENT_TABLE_ROWS)},
    {KI_NUMBER(ARGS, dcp_rank, KILN_EXTENT_NONE), .optional = true},
};

static enum kiln_status check(const struct kiln_shape *shape, struct kiln_error *err)
{
    const struct SHAPE *s = &shape->global_topk;

    return ki_op_check_dcp("global_topk", s->block_size, s->dcp_interleave, err);
}

static enum kiln_status check_args(const struct kiln_shape *shape,
                                   const void *launch_args, struct kiln_error *err)
{
    const struct SHAPE *s = &shape->global_topk;
    const struct ARGS *a = launch_args;

    return ki_op_check_rank("global_topk", a->dcp_rank, s->dcp_world, err);
}

static struct ki_map_rows rows_of(const struct kiln_shape *shape)
{
    return ki_map_rows_of(topk(shape), 8, shape->global_topk.dcp_world > 1);
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

const struct ki_op ki_op_global_topk = {
    .info = {.op = KILN_OP_GLOBAL_TOPK,
             .name = "global_topk",
             .supported = true,
             .fields = fields,
             .n_fields = KI_COUNT_OF(fields),
             .args = args,
             .n_args = KI_COUNT_OF(args),
             .args_bytes = sizeof(struct ARGS),
             .report_offset = offsetof(struct ARGS, report)},
    .template_name = "global_topk.cu",
    .check = check,
    .constants = constants,
    .threads = threads,
    .check_args = check_args,
    .grid = grid,
    .row = ki_row_global_topk,
};
