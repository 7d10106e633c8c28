/* SPDX-License-Identifier: Apache-2.0 */
/* combine_topk_swa: its table, its demands and how its rows map to a grid. */
#include "base/status.h"
#include "plan/op_table.h"
#include "reference/reference.h"

#define SHAPE kiln_combine_topk_swa_shape
#define ARGS kiln_combine_topk_swa_args

static int64_t topk_width(const struct kiln_shape *shape)
{
    int64_t topk = shape->combine_topk_swa.topk;

    return topk > 1 ? topk : 1;
}

static int64_t combined_width(const struct kiln_shape *shape)
{
    const struct SHAPE *s = &shape->combine_topk_swa;
    int64_t used = s->topk + s->window + s->image_width;

    return (used + s->align - 1) / s->align * s->align;
}

static const struct kiln_shape_field fields[] = {
    KI_FIELD("topk", 0),
    KI_FIELD_STRIDE("topk_stride"),
    KI_FIELD("window", 1),
    KI_FIELD("compress_ratio", 0),
    KI_FIELD_OR("image_width", 0, 0),
    KI_FIELD_OR("align", 1, 128),
    KI_FIELD_STRIDE("combined_stride"),
};

static const struct kiln_arg args[] = {
    {KI_MATRIX(ARGS, topk_indices, KILN_ARG_INPUT, KILN_I32, KILN_EXTENT_TOKENS,
               topk_width, KI_INDEX(SHAPE, topk_stride)),
     .may_be_null = true},
    {KI_VECTOR(ARGS, query_start_loc, KILN_ARG_INPUT, KILN_I32,
               KILN_EXTENT_REQUEST_BOUNDS)},
    {KI_VECTOR(ARGS, seq_lens, KILN_ARG_INPUT, KILN_I32, KILN_EXTENT_REQUESTS)},
    {KI_VECTOR(ARGS, gather_lens, KILN_ARG_INPUT, KILN_I32, KILN_EXTENT_REQUESTS)},
    {KI_VECTOR(ARGS, left_visible, KILN_ARG_INPUT, KILN_I32, KILN_EXTENT_TOKENS),
     .optional = true},
    {KI_VECTOR(ARGS, right_visible, KILN_ARG_INPUT, KILN_I32, KILN_EXTENT_TOKENS),
     .optional = true},
    {KI_MATRIX(ARGS, combined_indices, KILN_ARG_OUTPUT, KILN_I32, KILN_EXTENT_TOKENS,
               combined_width, KI_INDEX(SHAPE, combined_stride))},
    {KI_VECTOR(ARGS, combined_lens, KILN_ARG_OUTPUT, KILN_I32, KILN_EXTENT_TOKENS)},
    {KI_COUNTED(ARGS, workspace_rows, KILN_EXTENT_NONE)},
    {KI_COUNTED(ARGS, swa_base, KILN_EXTENT_NONE)},
    {KI_NUMBER(ARGS, num_tokens, KILN_EXTENT_TOKENS)},
    {KI_EXTENT(ARGS, num_requests, KILN_EXTENT_REQUESTS)},
};

static enum kiln_status check_args(const struct kiln_shape *shape,
                                   const void *launch_args, struct kiln_error *err)
{
    const struct SHAPE *s = &shape->combine_topk_swa;
    const struct ARGS *a = launch_args;

    if (s->topk > 0 && a->topk_indices == NULL && a->num_tokens > 0) {
        return ki_fail(
            err, KILN_E_ARGUMENT,
            "combine_topk_swa: topk_indices is NULL: expected an array, as topk is "
            "%lld",
            (long long)s->topk);
    }
    KI_TRY(ki_op_check_pair("combine_topk_swa", a->left_visible, a->right_visible, err));
    if (a->workspace_rows.kind == KILN_COUNT_VALUE &&
        (int64_t)a->num_requests * a->workspace_rows.value > INT32_MAX) {
        return ki_fail(err, KILN_E_ARGUMENT,
                       "combine_topk_swa: workspace_rows = %d with %d requests: expected "
                       "num_requests * workspace_rows below 2^31",
                       (int)a->workspace_rows.value, (int)a->num_requests);
    }
    return KILN_OK;
}

static int threads(const struct kiln_shape *shape)
{
    (void)shape;
    return 128;
}

/* A warp for each 384 columns: three quads a lane. Three at most, which is less than a block of
 * few rows has. */
static int many_threads(const struct kiln_shape *shape)
{
    const struct SHAPE *s = &shape->combine_topk_swa;
    const int64_t warps = (s->topk + s->window + s->image_width + 383) / 384;

    return warps < 3 ? 32 * (int)warps : 96;
}

static int constants(const struct kiln_shape *shape, struct ki_constant *out)
{
    out[0] = (struct ki_constant){"kManyThreads", many_threads(shape)};
    return 1;
}

/* A warp for each row; where wide rows are many, a block: memory then sees whole rows. */
static struct ki_grid grid(const struct kiln_shape *shape, const void *launch_args,
                           int n_sms)
{
    enum { FEW_ROWS_PER_SM = 32, WARP = 32 };
    const struct ARGS *a = launch_args;

    if (a->num_tokens > FEW_ROWS_PER_SM * (int64_t)n_sms && many_threads(shape) > WARP) {
        return ki_grid_of(a->num_tokens, 1, many_threads(shape));
    }
    return ki_grid_of(a->num_tokens, threads(shape) / WARP, threads(shape));
}

const struct ki_op ki_op_combine_topk_swa = {
    .info = {.op = KILN_OP_COMBINE_TOPK_SWA,
             .name = "combine_topk_swa",
             .supported = true,
             .fields = fields,
             .n_fields = KI_COUNT_OF(fields),
             .args = args,
             .n_args = KI_COUNT_OF(args),
             .args_bytes = sizeof(struct ARGS),
             .report_offset = offsetof(struct ARGS, report)},
    .template_name = "combine_topk_swa.cu",
    .constants = constants,
    .threads = threads,
    .check_args = check_args,
    .grid = grid,
    .row = ki_row_combine_topk_swa,
};
