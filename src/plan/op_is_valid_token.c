/* SPDX-License-Identifier: Apache-2.0 */
/* is_valid_token: its table and how its tokens map to a grid. */
#include "plan/op_table.h"
#include "reference/reference.h"

#define ARGS kiln_is_valid_token_args

static const struct kiln_shape_field fields[] = {
    KI_FIELD_OR("dcp_world", 1, 1),
};

static const struct kiln_arg args[] = {
    {KI_VECTOR(ARGS, slot_mapping, KILN_ARG_INPUT, KILN_I64, KILN_EXTENT_TOKENS),
     .optional = true},
    {KI_VECTOR(ARGS, is_valid_token, KILN_ARG_OUTPUT, KILN_U8, KILN_EXTENT_TOKENS)},
    {KI_COUNTED(ARGS, live_tokens, KILN_EXTENT_NONE), .optional = true},
    {KI_NUMBER(ARGS, num_tokens, KILN_EXTENT_TOKENS)},
};

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

const struct ki_op ki_op_is_valid_token = {
    .info = {.op = KILN_OP_IS_VALID_TOKEN,
             .name = "is_valid_token",
             .supported = true,
             .fields = fields,
             .n_fields = KI_COUNT_OF(fields),
             .args = args,
             .n_args = KI_COUNT_OF(args),
             .args_bytes = sizeof(struct ARGS),
             .report_offset = offsetof(struct ARGS, report)},
    .template_name = "is_valid_token.cu",
    .threads = threads,
    .grid = grid,
    .row = ki_row_is_valid_token,
};
