/* SPDX-License-Identifier: Apache-2.0 */
/* See sizes.h. */
#include <inttypes.h>

#include "kiln/layout.h"

#include "base/status.h"
#include "plan/sizes.h"

int64_t ki_decode_rows(const struct kiln_deployment *d)
{
    return d->max_num_seqs * (1 + d->num_speculative_tokens);
}

/* Decode tokens and prefill tokens have matrices of their own in some ops; all rows that
 * are not a decode matrix's are as many as the batch may have tokens. */
int64_t ki_rows_at_capacity(const struct kiln_deployment *d,
                            const struct kiln_plan_item *item, enum kiln_extent extent)
{
    bool is_draft = item->op == KILN_OP_SWA_INDICES && !item->shape.swa_indices.causal;

    if (item->op == KILN_OP_GLOBAL_TOPK || is_draft ||
        extent == KILN_EXTENT_DECODE_TOKENS) {
        return ki_decode_rows(d);
    }
    return d->max_num_batched_tokens;
}

int64_t ki_row_width(const struct kiln_arg *arg, const struct kiln_shape *shape)
{
    return arg->width != NULL ? arg->width(shape) : 1;
}

int64_t ki_row_stride(const struct kiln_arg *arg, const struct kiln_shape *shape)
{
    return arg->width == NULL || arg->stride_field < 0 ? ki_row_width(arg, shape)
                                                       : shape->fields[arg->stride_field];
}

int64_t ki_row_bytes(const struct kiln_arg *arg, const struct kiln_shape *shape)
{
    return ki_row_stride(arg, shape) * (int64_t)kiln_dtype_bytes(arg->dtype);
}

int64_t ki_buffer_room(int64_t bytes)
{
    return (bytes + KILN_BUFFER_ALIGN - 1) / KILN_BUFFER_ALIGN * KILN_BUFFER_ALIGN;
}

bool ki_add_product(int64_t *sum, int64_t a, int64_t b)
{
    if (b != 0 && a > (INT64_MAX - *sum) / b) {
        return false;
    }
    *sum += a * b;
    return true;
}

enum kiln_status ki_fail_bytes(const struct kiln_deployment *d, const char *what,
                               struct kiln_error *err)
{
    return ki_fail(err, KILN_E_ARGUMENT,
                   "--max-num-batched-tokens is %" PRId64 ", --max-num-seqs %" PRId64
                   ", --num-speculative-tokens %" PRId64 ", --image-width %" PRId64
                   ", --max-model-len %" PRId64 ": the outputs of %s would pass 2^63 "
                   "bytes",
                   d->max_num_batched_tokens, d->max_num_seqs, d->num_speculative_tokens,
                   d->image_width, d->max_model_len, what);
}
