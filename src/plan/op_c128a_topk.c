/* SPDX-License-Identifier: Apache-2.0 */
/* c128a_topk: its table, its demands and how its rows map to a grid. */
#include "plan/op_table.h"
#include "reference/reference.h"

#define SHAPE kiln_c128a_topk_shape
#define ARGS kiln_c128a_topk_args

static int64_t capacity(const struct kiln_shape *shape)
{
    return shape->c128a_topk.capacity;
}

static int64_t table_width(const struct kiln_shape *shape)
{
    return shape->c128a_topk.table_width;
}

static const struct kiln_shape_field fields[] = {
    KI_FIELD("compress_ratio", 1),       KI_FIELD("capacity", 1),
    KI_FIELD("block_size", 1),           KI_FIELD("table_width", 1),
    KI_FIELD_STRIDE("table_stride"),     KI_FIELD_OR("dcp_world", 1, 1),
    KI_FIELD_OR("dcp_interleave", 1, 1),
};

static const struct kiln_arg args[] = {
    {KI_NUMBER(ARGS, num_tokens, KILN_EXTENT_TOKENS), .optional = true},
    {KI_EXTENT(ARGS, table_rows, KILN_EXTENT_TABLE_ROWS)},
    {KI_COUNTED(ARGS, num_decode_tokens, KILN_EXTENT_DECODE_TOKENS)},
    {KI_COUNTED(ARGS, active_width, KILN_EXTENT_NONE), .optional = true},
    {KI_VECTOR(ARGS, positions, KILN_ARG_INPUT, KILN_I64, KILN_EXTENT_TOKENS)},
    {KI_COUNTED(ARGS, live_tokens, KILN_EXTENT_NONE), .optional = true},
    {KI_VECTOR(ARGS, token_to_req, KILN_ARG_INPUT, KILN_I32, KILN_EXTENT_TOKENS)},
    {KI_VECTOR(ARGS, slot_mapping, KILN_ARG_INPUT, KILN_I64, KILN_EXTENT_TOKENS),
     .optional = true},
    {KI_MATRIX(ARGS, block_table, KILN_ARG_INPUT, KILN_I32, KILN_EXTENT_TABLE_ROWS,
               table_width, KI_INDEX(SHAPE, table_stride))},
    {KI_MATRIX(ARGS, decode_slots, KILN_ARG_OUTPUT, KILN_I32, KILN_EXTENT_DECODE_TOKENS,
               capacity, -1)},
    {KI_VECTOR(ARGS, decode_lens, KILN_ARG_OUTPUT, KILN_I32, KILN_EXTENT_DECODE_TOKENS)},
    {KI_MATRIX(ARGS, prefill_local, KILN_ARG_OUTPUT, KILN_I32, KILN_EXTENT_PREFILL_TOKENS,
               capacity, -1)},
    {KI_NUMBER(ARGS, dcp_rank, KILN_EXTENT_NONE), .optional = true},
};

static enum kiln_status check(const struct kiln_shape *shape, struct kiln_error *err)
{
    const struct SHAPE *s = &shape->c128a_topk;

    return ki_op_check_dcp("c128a_topk", s->block_size, s->dcp_interleave, err);
}

static enum kiln_status check_args(const struct kiln_shape *shape,
                                   const void *launch_args, struct kiln_error *err)
{
    const struct SHAPE *s = &shape->c128a_topk;
    const struct ARGS *a = launch_args;

    return ki_op_check_rank("c128a_topk", a->dcp_rank, s->dcp_world, err);
}

static int threads(const struct kiln_shape *shape)
{
    (void)shape;
    return 128;
}

/*
 * A warp for each row in x. Few rows would leave most of the GPU idle, so y deals each
 * row's columns out to more warps: one for each piece of 256 columns, until every
 * multiprocessor has its blocks. An active width in device memory is not known here; warps
 * that it leaves without a piece exit.
 */
static struct ki_grid grid(const struct kiln_shape *shape, const void *launch_args,
                           int n_sms)
{
    enum { PIECE = 256, BLOCKS_PER_SM = 4 };
    const struct ARGS *a = launch_args;
    const int64_t rows = threads(shape) / 32;
    const int64_t x = (a->num_tokens + rows - 1) / rows;
    const int64_t room = BLOCKS_PER_SM * (int64_t)n_sms;
    int64_t width = capacity(shape);
    int64_t y;

    if (a->active_width.kind == KILN_COUNT_VALUE && a->active_width.value < width) {
        width = a->active_width.value;
    }
    y = (width + PIECE - 1) / PIECE;
    if (y * x > room) {
        y = room / x;
    }
    return (struct ki_grid){(uint32_t)x, (uint32_t)(y < 1 ? 1 : y),
                            (uint32_t)threads(shape)};
}

const struct ki_op ki_op_c128a_topk = {
    .info = {.op = KILN_OP_C128A_TOPK,
             .name = "c128a_topk",
             .supported = true,
             .fields = fields,
             .n_fields = KI_COUNT_OF(fields),
             .args = args,
             .n_args = KI_COUNT_OF(args),
             .args_bytes = sizeof(struct ARGS),
             .report_offset = offsetof(struct ARGS, report)},
    .template_name = "c128a_topk.cu",
    .check = check,
    .threads = threads,
    .check_args = check_args,
    .grid = grid,
    .row = ki_row_c128a_topk,
};
