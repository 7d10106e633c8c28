/* SPDX-License-Identifier: Apache-2.0 */
/* swa_indices: its table, its demands and how its rows map to a grid. */
#include "base/status.h"
#include "plan/op_table.h"
#include "reference/reference.h"

#define SHAPE kiln_swa_indices_shape
#define ARGS kiln_swa_indices_args

static int64_t index_width(const struct kiln_shape *shape)
{
    return shape->fields[KI_INDEX(SHAPE, index_width)];
}

static int64_t table_width(const struct kiln_shape *shape)
{
    return shape->fields[KI_INDEX(SHAPE, table_width)];
}

static const char *const storages[] = {"sharded", "replicated", NULL};

static const struct kiln_shape_field fields[] = {
    KI_FIELD("window", 1),
    KI_FIELD("index_width", 1),
    KI_FIELD_STRIDE("index_stride"),
    KI_FIELD("block_size", 1),
    KI_FIELD("table_width", 1),
    KI_FIELD_STRIDE("table_stride"),
    KI_FIELD_OR("image_width", 0, 0),
    KI_FIELD_BOOLEAN("causal", 1),
    KI_FIELD_OR("dcp_world", 1, 1),
    KI_FIELD_OR("dcp_interleave", 1, 1),
    {.name = "dcp_storage",
     .kind = KILN_FIELD_CHOICE,
     .default_kind = KILN_DEFAULT_VALUE,
     .max = KILN_DCP_REPLICATED,
     .choices = storages},
};

static const struct kiln_arg args[] = {
    {KI_NUMBER(ARGS, num_rows, KILN_EXTENT_ROWS)},
    {KI_NUMBER(ARGS, token_offset, KILN_EXTENT_FIRST_TOKENS), .optional = true},
    {KI_COUNTED(ARGS, live_tokens, KILN_EXTENT_NONE), .optional = true},
    {KI_VECTOR(ARGS, token_to_req, KILN_ARG_INPUT, KILN_I32, KILN_EXTENT_CONTEXT_TOKENS)},
    {KI_VECTOR(ARGS, is_valid_token, KILN_ARG_INPUT, KILN_U8, KILN_EXTENT_CONTEXT_TOKENS),
     .optional = true},
    {KI_EXTENT(ARGS, num_requests, KILN_EXTENT_REQUESTS)},
    {KI_EXTENT(ARGS, table_rows, KILN_EXTENT_TABLE_ROWS)},
    {KI_VECTOR(ARGS, query_start_loc, KILN_ARG_INPUT, KILN_I32,
               KILN_EXTENT_REQUEST_BOUNDS)},
    {KI_VECTOR(ARGS, seq_lens, KILN_ARG_INPUT, KILN_I32, KILN_EXTENT_REQUESTS)},
    {KI_MATRIX(ARGS, block_table, KILN_ARG_INPUT, KILN_I32, KILN_EXTENT_TABLE_ROWS,
               table_width, KI_INDEX(SHAPE, table_stride))},
    {KI_VECTOR(ARGS, replay_start, KILN_ARG_INPUT, KILN_I32, KILN_EXTENT_REQUESTS),
     .optional = true},
    {KI_MATRIX(ARGS, swa_indices, KILN_ARG_OUTPUT, KILN_I32, KILN_EXTENT_ROWS,
               index_width, KI_INDEX(SHAPE, index_stride))},
    {KI_VECTOR(ARGS, swa_lens, KILN_ARG_OUTPUT, KILN_I32, KILN_EXTENT_ROWS)},
    {KI_VECTOR(ARGS, left_visible, KILN_ARG_INPUT, KILN_I32, KILN_EXTENT_CONTEXT_TOKENS),
     .optional = true},
    {KI_VECTOR(ARGS, right_visible, KILN_ARG_INPUT, KILN_I32, KILN_EXTENT_CONTEXT_TOKENS),
     .optional = true},
    {KI_NUMBER(ARGS, dcp_rank, KILN_EXTENT_NONE), .optional = true},
};

static enum kiln_status check(const struct kiln_shape *shape, struct kiln_error *err)
{
    const struct SHAPE *s = &shape->swa_indices;

    return ki_op_check_dcp("swa_indices", s->block_size, s->dcp_interleave, err);
}

static enum kiln_status check_args(const struct kiln_shape *shape,
                                   const void *launch_args, struct kiln_error *err)
{
    const struct SHAPE *s = &shape->swa_indices;
    const struct ARGS *a = launch_args;

    KI_TRY(ki_op_check_pair("swa_indices", a->left_visible, a->right_visible, err));
    if (a->token_offset > INT32_MAX - a->num_rows) {
        return ki_fail(
            err, KILN_E_ARGUMENT,
            "swa_indices: token_offset = %d with %d rows: expected a sum below "
            "2^31",
            (int)a->token_offset, (int)a->num_rows);
    }
    return ki_op_check_rank("swa_indices", a->dcp_rank, s->dcp_world, err);
}

enum { WARP = 32, THREADS = 128, FEW_ROWS = 1024 };

static int threads(const struct kiln_shape *shape)
{
    (void)shape;
    return THREADS;
}

/* Of a launch of more than FEW_ROWS: half a warp has enough in flight for a row of up to 128
 * columns. Ranks that share a cache squeeze a row with a whole warp. */
static int rows_of_warp(const struct kiln_shape *shape)
{
    const struct SHAPE *s = &shape->swa_indices;

    return s->dcp_world == 1 && s->index_width <= 128 ? 2 : 1;
}

static int constants(const struct kiln_shape *shape, struct ki_constant *out)
{
    out[0] = (struct ki_constant){"kFewRows", FEW_ROWS};
    out[1] = (struct ki_constant){"kRowsOfWarp", rows_of_warp(shape)};
    return 2;
}

static struct ki_grid grid(const struct kiln_shape *shape, const void *launch_args,
                           int n_sms)
{
    const struct ARGS *a = launch_args;
    const int rows = a->num_rows > FEW_ROWS ? rows_of_warp(shape) : 1;

    (void)n_sms;
    return ki_grid_of(a->num_rows, rows * (int64_t)(THREADS / WARP), THREADS);
}

const struct ki_op ki_op_swa_indices = {
    .info = {.op = KILN_OP_SWA_INDICES,
             .name = "swa_indices",
             .supported = true,
             .fields = fields,
             .n_fields = KI_COUNT_OF(fields),
             .args = args,
             .n_args = KI_COUNT_OF(args),
             .args_bytes = sizeof(struct ARGS),
             .report_offset = offsetof(struct ARGS, report)},
    .template_name = "swa_indices.cu",
    .check = check,
    .constants = constants,
    .threads = threads,
    .check_args = check_args,
    .grid = grid,
    .row = ki_row_swa_indices,
};
