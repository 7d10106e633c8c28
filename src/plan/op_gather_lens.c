/* SPDX-License-Identifier: Apache-2.0 */
/* gather_lens: its table and how its requests map to a grid. */
#include "plan/op_table.h"
#include "reference/reference.h"

#define ARGS kiln_gather_lens_args

static const struct kiln_shape_field fields[] = {
    KI_FIELD("window", 1),
};

static const struct kiln_arg args[] = {
    {KI_VECTOR(ARGS, replay_start, KILN_ARG_INPUT, KILN_I32, KILN_EXTENT_REQUESTS),
     .optional = true},
    {KI_EXTENT(ARGS, num_requests, KILN_EXTENT_REQUESTS)},
    {KI_COUNTED(ARGS, first_request, KILN_EXTENT_DECODE_REQUESTS), .optional = true},
    {KI_VECTOR(ARGS, query_start_loc, KILN_ARG_INPUT, KILN_I32,
               KILN_EXTENT_REQUEST_BOUNDS)},
    {KI_VECTOR(ARGS, seq_lens, KILN_ARG_INPUT, KILN_I32, KILN_EXTENT_REQUESTS)},
    {KI_VECTOR(ARGS, gather_lens, KILN_ARG_OUTPUT, KILN_I32,
               KILN_EXTENT_PREFILL_REQUESTS)},
};

static int threads(const struct kiln_shape *shape)
{
    (void)shape;
    return 128;
}

/* A thread for each request: how many of them are prefill may be known on the device alone. */
static struct ki_grid grid(const struct kiln_shape *shape, const void *launch_args,
                           int n_sms)
{
    const struct ARGS *a = launch_args;

    (void)n_sms;
    return ki_grid_of(a->num_requests, threads(shape), threads(shape));
}

const struct ki_op ki_op_gather_lens = {
    .info = {.op = KILN_OP_GATHER_LENS,
             .name = "gather_lens",
             .supported = true,
             .fields = fields,
             .n_fields = KI_COUNT_OF(fields),
             .args = args,
             .n_args = KI_COUNT_OF(args),
             .args_bytes = sizeof(struct ARGS),
             .report_offset = offsetof(struct ARGS, report)},
    .template_name = "gather_lens.cu",
    .threads = threads,
    .grid = grid,
    .row = ki_row_gather_lens,
};
