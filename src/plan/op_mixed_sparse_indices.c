/* SPDX-License-Identifier: Apache-2.0 */
/* mixed_sparse_indices: its table, its demands and how its rows map to a grid. */
#include "base/status.h"
#include "plan/op_table.h"
#include "reference/reference.h"

#define SHAPE kiln_mixed_sparse_indices_shape
#define ARGS kiln_mixed_sparse_indices_args

static int64_t at_least_one(int64_t columns)
{
    return columns > 1 ? columns : 1;
}

static int64_t align4(int64_t x)
{
    return (x + 3) / 4 * 4;
}

static int64_t compressed_width(const struct kiln_shape *shape)
{
    const struct SHAPE *s = &shape->mixed_sparse_indices;

    return align4(s->topk > s->decode_topk ? s->topk : s->decode_topk);
}

static int64_t sparse_width(const struct kiln_shape *shape)
{
    const struct SHAPE *s = &shape->mixed_sparse_indices;

    return s->swa_width + align4(s->image_width) + compressed_width(shape);
}

static int64_t swa_width(const struct kiln_shape *shape)
{
    return shape->fields[KI_INDEX(SHAPE, swa_width)];
}

static int64_t topk_width(const struct kiln_shape *shape)
{
    return at_least_one(shape->fields[KI_INDEX(SHAPE, topk)]);
}

static int64_t decode_topk(const struct kiln_shape *shape)
{
    return shape->fields[KI_INDEX(SHAPE, decode_topk)];
}

static int64_t swa_table_width(const struct kiln_shape *shape)
{
    return shape->fields[KI_INDEX(SHAPE, swa_table_width)];
}

static int64_t table_width(const struct kiln_shape *shape)
{
    return shape->fields[KI_INDEX(SHAPE, table_width)];
}

static const struct kiln_shape_field fields[] = {
    KI_FIELD("window", 1),
    KI_FIELD("swa_width", 1),
    KI_FIELD_OR("image_width", 0, 0),
    KI_FIELD("compress_ratio", 0),
    KI_FIELD("topk", 0),
    KI_FIELD_OR("decode_topk", 0, 0),
    KI_FIELD_BOOLEAN("decode_local", 0),
    KI_FIELD("swa_block_size", 1),
    KI_FIELD_AS("swa_span", 1, KI_INDEX(SHAPE, swa_block_size)),
    KI_FIELD("swa_table_width", 1),
    KI_FIELD_STRIDE("swa_table_stride"),
    KI_FIELD("block_size", 1),
    KI_FIELD_AS("span", 1, KI_INDEX(SHAPE, block_size)),
    KI_FIELD("table_width", 1),
    KI_FIELD_STRIDE("table_stride"),
};

static const struct kiln_arg args[] = {
    {KI_VECTOR(ARGS, query_start_loc, KILN_ARG_INPUT, KILN_I32,
               KILN_EXTENT_REQUEST_BOUNDS)},
    {KI_VECTOR(ARGS, seq_lens, KILN_ARG_INPUT, KILN_I32, KILN_EXTENT_REQUESTS)},
    {KI_VECTOR(ARGS, token_to_req, KILN_ARG_INPUT, KILN_I32, KILN_EXTENT_TOKENS)},
    {KI_VECTOR(ARGS, is_valid_token, KILN_ARG_INPUT, KILN_U8, KILN_EXTENT_TOKENS),
     .optional = true},
    {KI_MATRIX(ARGS, swa_block_table, KILN_ARG_INPUT, KILN_I32,
               KILN_EXTENT_SWA_TABLE_ROWS, swa_table_width,
               KI_INDEX(SHAPE, swa_table_stride))},
    {KI_MATRIX(ARGS, block_table, KILN_ARG_INPUT, KILN_I32, KILN_EXTENT_TABLE_ROWS,
               table_width, KI_INDEX(SHAPE, table_stride))},
    {KI_MATRIX(ARGS, decode_swa_indices, KILN_ARG_INPUT, KILN_I32,
               KILN_EXTENT_DECODE_TOKENS, swa_width, -1)},
    {KI_MATRIX(ARGS, decode_compressed_indices, KILN_ARG_INPUT, KILN_I32,
               KILN_EXTENT_DECODE_TOKENS, decode_topk, -1),
     .optional = true},
    {KI_VECTOR(ARGS, decode_compressed_lens, KILN_ARG_INPUT, KILN_I32,
               KILN_EXTENT_DECODE_TOKENS),
     .optional = true},
    {KI_MATRIX(ARGS, prefill_topk_indices, KILN_ARG_INPUT, KILN_I32,
               KILN_EXTENT_PREFILL_TOKENS, topk_width, -1),
     .may_be_null = true},
    {KI_VECTOR(ARGS, left_visible, KILN_ARG_INPUT, KILN_I32, KILN_EXTENT_TOKENS),
     .optional = true},
    {KI_VECTOR(ARGS, right_visible, KILN_ARG_INPUT, KILN_I32, KILN_EXTENT_TOKENS),
     .optional = true},
    {KI_MATRIX(ARGS, sparse_indices, KILN_ARG_OUTPUT, KILN_I32, KILN_EXTENT_TOKENS,
               sparse_width, -1)},
    {KI_VECTOR(ARGS, sparse_lens, KILN_ARG_OUTPUT, KILN_I32, KILN_EXTENT_TOKENS)},
    {KI_COUNTED(ARGS, num_decode_tokens, KILN_EXTENT_DECODE_TOKENS)},
    {KI_COUNTED(ARGS, live_tokens, KILN_EXTENT_NONE), .optional = true},
    {KI_NUMBER(ARGS, num_tokens, KILN_EXTENT_TOKENS)},
    {KI_EXTENT(ARGS, num_requests, KILN_EXTENT_REQUESTS)},
    {KI_EXTENT(ARGS, swa_table_rows, KILN_EXTENT_SWA_TABLE_ROWS)},
    {KI_EXTENT(ARGS, table_rows, KILN_EXTENT_TABLE_ROWS)},
};

static enum kiln_status check(const struct kiln_shape *shape, struct kiln_error *err)
{
    const struct SHAPE *s = &shape->mixed_sparse_indices;

    if (s->swa_width < s->window) {
        return ki_fail(err, KILN_E_SHAPE,
                       "mixed_sparse_indices: swa_width = %lld: expected at least "
                       "window = %lld",
                       (long long)s->swa_width, (long long)s->window);
    }
    return KILN_OK;
}

/* An array that only shapes with `columns` of it need, and only launches with rows of it. */
static enum kiln_status check_needed(const struct ARGS *a, const void *array,
                                     const char *name, enum kiln_extent extent,
                                     int64_t columns, struct kiln_error *err)
{
    if (array != NULL || columns == 0 ||
        ki_op_rows(&ki_op_mixed_sparse_indices, a, extent) == 0) {
        return KILN_OK;
    }
    return ki_fail(err, KILN_E_ARGUMENT,
                   "mixed_sparse_indices: %s is NULL: expected an array of %lld columns",
                   name, (long long)columns);
}

static enum kiln_status check_args(const struct kiln_shape *shape,
                                   const void *launch_args, struct kiln_error *err)
{
    const struct SHAPE *s = &shape->mixed_sparse_indices;
    const struct ARGS *a = launch_args;

    KI_TRY(check_needed(a, a->decode_compressed_indices, "decode_compressed_indices",
                        KILN_EXTENT_DECODE_TOKENS, s->decode_topk, err));
    KI_TRY(check_needed(a, a->prefill_topk_indices, "prefill_topk_indices",
                        KILN_EXTENT_PREFILL_TOKENS, s->topk, err));
    return ki_op_check_pair("mixed_sparse_indices", a->left_visible, a->right_visible,
                            err);
}

/* Warps that share a row: one for each 512 columns of the compressed part, 8 at most. */
static int row_threads(const struct kiln_shape *shape)
{
    const int64_t warps = (compressed_width(shape) + 511) / 512;

    return 32 * (int)(warps < 1 ? 1 : warps < 8 ? warps : 8);
}

/* Four rows of one warp, or one of several. */
static int threads(const struct kiln_shape *shape)
{
    const int row = row_threads(shape);

    return row > 32 ? row : 128;
}

static int constants(const struct kiln_shape *shape, struct ki_constant *out)
{
    out[0] = (struct ki_constant){"kRowThreads", row_threads(shape)};
    return 1;
}

static struct ki_grid grid(const struct kiln_shape *shape, const void *launch_args,
                           int n_sms)
{
    const struct ARGS *a = launch_args;

    (void)n_sms;
    return ki_grid_of(a->num_tokens, threads(shape) / row_threads(shape), threads(shape));
}

const struct ki_op ki_op_mixed_sparse_indices = {
    .info = {.op = KILN_OP_MIXED_SPARSE_INDICES,
             .name = "mixed_sparse_indices",
             .supported = true,
             .fields = fields,
             .n_fields = KI_COUNT_OF(fields),
             .args = args,
             .n_args = KI_COUNT_OF(args),
             .args_bytes = sizeof(struct ARGS),
             .report_offset = offsetof(struct ARGS, report)},
    .template_name = "mixed_sparse_indices.cu",
    .check = check,
    .constants = constants,
    .threads = threads,
    .check_args = check_args,
    .grid = grid,
    .row = ki_row_mixed_sparse_indices,
};
