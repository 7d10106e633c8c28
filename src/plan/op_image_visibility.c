/* SPDX-License-Identifier: Apache-2.0 */
/* image_visibility: its table and how its tokens map to a grid. */
#include "plan/op_table.h"
#include "reference/reference.h"

#define ARGS kiln_image_visibility_args

static const struct kiln_shape_field fields[] = {
    KI_FIELD("image_width", 1),
};

static const struct kiln_arg args[] = {
    {KI_VECTOR(ARGS, query_start_loc, KILN_ARG_INPUT, KILN_I32,
               KILN_EXTENT_REQUEST_BOUNDS)},
    {KI_VECTOR(ARGS, seq_lens, KILN_ARG_INPUT, KILN_I32, KILN_EXTENT_REQUESTS)},
    {KI_VECTOR(ARGS, span_start_loc, KILN_ARG_INPUT, KILN_I32,
               KILN_EXTENT_REQUEST_BOUNDS)},
    {KI_VECTOR(ARGS, span_begin, KILN_ARG_INPUT, KILN_I32, KILN_EXTENT_SPANS)},
    {KI_VECTOR(ARGS, span_end, KILN_ARG_INPUT, KILN_I32, KILN_EXTENT_SPANS)},
    {KI_VECTOR(ARGS, left_visible, KILN_ARG_OUTPUT, KILN_I32, KILN_EXTENT_TOKENS)},
    {KI_VECTOR(ARGS, right_visible, KILN_ARG_OUTPUT, KILN_I32, KILN_EXTENT_TOKENS)},
    {KI_NUMBER(ARGS, num_tokens, KILN_EXTENT_TOKENS)},
    {KI_EXTENT(ARGS, num_requests, KILN_EXTENT_REQUESTS)},
    {KI_EXTENT(ARGS, num_spans, KILN_EXTENT_SPANS)},
    {KI_NUMBER(ARGS, first_token, KILN_EXTENT_NONE), .optional = true},
};

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

const struct ki_op ki_op_image_visibility = {
    .info = {.op = KILN_OP_IMAGE_VISIBILITY,
             .name = "image_visibility",
             .supported = true,
             .fields = fields,
             .n_fields = KI_COUNT_OF(fields),
             .args = args,
             .n_args = KI_COUNT_OF(args),
             .args_bytes = sizeof(struct ARGS),
             .report_offset = offsetof(struct ARGS, report)},
    .template_name = "image_visibility.cu",
    .threads = threads,
    .grid = grid,
    .row = ki_row_image_visibility,
};
