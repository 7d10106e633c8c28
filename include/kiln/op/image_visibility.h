/* SPDX-License-Identifier: Apache-2.0 */
/* image_visibility: how far a token sees in its image. The rules of every op: kiln/ops.h. */
#ifndef KILN_OP_IMAGE_VISIBILITY_H
#define KILN_OP_IMAGE_VISIBILITY_H

#include <stdint.h>

#include "kiln/op/common.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Once per step.
 *
 *   left_visible[t]  = min(pos - begin, image_width - 1)
 *   right_visible[t] = min(end - pos, image_width)
 *
 * for a token t >= first_token whose position lies in a span [begin, end] of its request,
 * the last such span; else 0 and 0. Request b has the spans from span_start_loc[b] to
 * span_start_loc[b + 1] - 1, both clamped to [0, num_spans].
 */
struct kiln_image_visibility_shape {
    int64_t image_width; /* most visible tokens to the right, at least 1 */
};

struct kiln_image_visibility_args {
    const int32_t *query_start_loc; /* [num_requests + 1] */
    const int32_t *seq_lens;        /* [num_requests] */
    const int32_t *span_start_loc;  /* [num_requests + 1] */
    const int32_t *span_begin;      /* [num_spans] position in its sequence */
    const int32_t *span_end;        /* [num_spans] position, inclusive */
    int32_t *left_visible;          /* [num_tokens] */
    int32_t *right_visible;         /* [num_tokens] */
    int32_t num_tokens;
    int32_t num_requests;
    int32_t num_spans;
    int32_t first_token;        /* tokens before it see nothing more; may be any */
    struct kiln_report *report; /* device address, for a checked kernel; or NULL */
};

/** As kiln_launch_global_topk. Threads: any. Capture: allowed. @return as there. */
KILN_API KILN_MUST_USE enum kiln_status
kiln_launch_image_visibility(const struct kiln_kernel *kernel,
                             const struct kiln_image_visibility_args *args,
                             struct CUstream_st *stream, struct kiln_error *err);
/** As kiln_reference_global_topk. Threads: any. Capture: allowed. @return as there. */
KILN_API KILN_MUST_USE enum kiln_status
kiln_reference_image_visibility(const struct kiln_image_visibility_shape *shape,
                                const struct kiln_image_visibility_args *args,
                                struct kiln_error *err);

#ifdef __cplusplus
}
#endif
#endif
