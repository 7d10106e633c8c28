/* SPDX-License-Identifier: Apache-2.0 */
/* token_to_req: its table and how its tokens map to a grid. */
#include "plan/op_table.h"
#include "reference/reference.h"

#define ARGS kiln_token_to_req_args

static const struct kiln_shape_field fields[] = {
    {.name = "pad_req",
     .default_kind = KILN_DEFAULT_VALUE,
     .min = INT32_MIN,
     .max = INT32_MAX},
};

static const struct kiln_arg args[] = {
    {KI_VECTOR(ARGS, query_start_loc, KILN_ARG_INPUT, KILN_I32,
               KILN_EXTENT_REQUEST_BOUNDS)},
    {KI_VECTOR(ARGS, token_to_req, KILN_ARG_OUTPUT, KILN_I32, KILN_EXTENT_TOKENS)},
    {KI_NUMBER(ARGS, num_tokens, KILN_EXTENT_TOKENS)},
    {KI_EXTENT(ARGS, num_requests, KILN_EXTENT_REQUESTS)},
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

const struct ki_op ki_op_token_to_req = {
    .info = {.op = KILN_OP_TOKEN_TO_REQ,
             .name = "token_to_req",
             .supported = true,
             .fields = fields,
             .n_fields = KI_COUNT_OF(fields),
             .args = args,
             .n_args = KI_COUNT_OF(args),
             .args_bytes = sizeof(struct ARGS),
             .report_offset = offsetof(struct ARGS, report)},
    .template_name = "token_to_req.cu",
    .threads = threads,
    .grid = grid,
    .row = ki_row_token_to_req,
};
