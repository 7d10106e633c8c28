/* SPDX-License-Identifier: Apache-2.0 */
/* compressed_slots: its table, its demands and how its tokens map to a grid. */
#include "plan/op_table.h"
#include "reference/reference.h"

#define SHAPE kiln_compressed_slots_shape
#define ARGS kiln_compressed_slots_args

static int64_t table_width(const struct kiln_shape *shape)
{
    return shape->fields[KI_INDEX(SHAPE, table_width)];
}

static const struct kiln_shape_field fields[] = {
    KI_FIELD("compress_ratio", 1),  KI_FIELD("block_size", 1),
    KI_FIELD("table_width", 1),     KI_FIELD_STRIDE("table_stride"),
    KI_FIELD_OR("dcp_world", 1, 1), KI_FIELD_OR("dcp_interleave", 1, 1),
};

static const struct kiln_arg args[] = {
    {KI_VECTOR(ARGS, query_start_loc, KILN_ARG_INPUT, KILN_I32,
               KILN_EXTENT_REQUEST_BOUNDS)},
    {KI_VECTOR(ARGS, seq_lens, KILN_ARG_INPUT, KILN_I32, KILN_EXTENT_REQUESTS)},
    {KI_MATRIX(ARGS, block_table, KILN_ARG_INPUT, KILN_I32, KILN_EXTENT_TABLE_ROWS,
               table_width, KI_INDEX(SHAPE, table_stride))},
    {KI_VECTOR(ARGS, own_slots, KILN_ARG_INPUT, KILN_I64, KILN_EXTENT_TOKENS),
     .optional = true},
    {KI_VECTOR(ARGS, slots, KILN_ARG_OUTPUT, KILN_I64, KILN_EXTENT_TOKENS)},
    {KI_NUMBER(ARGS, num_tokens, KILN_EXTENT_TOKENS)},
    {KI_EXTENT(ARGS, num_requests, KILN_EXTENT_REQUESTS)},
    {KI_EXTENT(ARGS, table_rows, KILN_EXTENT_TABLE_ROWS)},
    {KI_NUMBER(ARGS, dcp_rank, KILN_EXTENT_NONE), .optional = true},
};

static enum kiln_status check(const struct kiln_shape *shape, struct kiln_error *err)
{
    const struct SHAPE *s = &shape->compressed_slots;

    return ki_op_check_dcp("compressed_slots", s->block_size, s->dcp_interleave, err);
}

static enum kiln_status check_args(const struct kiln_shape *shape,
                                   const void *launch_args, struct kiln_error *err)
{
    const struct SHAPE *s = &shape->compressed_slots;
    const struct ARGS *a = launch_args;

    return ki_op_check_rank("compressed_slots", a->dcp_rank, s->dcp_world, err);
}

/* A block more costs more than a warp more, down to the few tokens of a decode step. */
static int threads(const struct kiln_shape *shape)
{
    (void)shape;
    return 256;
}

/* A thread for each token. */
static struct ki_grid grid(const struct kiln_shape *shape, const void *launch_args,
                           int n_sms)
{
    const struct ARGS *a = launch_args;

    (void)n_sms;
    return ki_grid_of(a->num_tokens, threads(shape), threads(shape));
}

const struct ki_op ki_op_compressed_slots = {
    .info = {.op = KILN_OP_COMPRESSED_SLOTS,
             .name = "compressed_slots",
             .supported = true,
             .fields = fields,
             .n_fields = KI_COUNT_OF(fields),
             .args = args,
             .n_args = KI_COUNT_OF(args),
             .args_bytes = sizeof(struct ARGS),
             .report_offset = offsetof(struct ARGS, report)},
    .template_name = "compressed_slots.cu",
    .check = check,
    .threads = threads,
    .check_args = check_args,
    .grid = grid,
    .row = ki_row_compressed_slots,
};
