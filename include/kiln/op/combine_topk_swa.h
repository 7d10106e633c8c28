/* SPDX-License-Identifier: Apache-2.0 */
/* combine_topk_swa: top-k and window into one row. The rules of every op: kiln/ops.h. */
#ifndef KILN_OP_COMBINE_TOPK_SWA_H
#define KILN_OP_COMBINE_TOPK_SWA_H

#include <stdint.h>

#include "kiln/op/common.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * combine_topk_swa: top-k and window into one row, for gathered prefill. Per layer kind
 * and chunk.
 *
 *   width C = align(topk + window + image_width, align)
 *   columns [0, k):     id = topk_indices[t, j] -> M*b + id where 0 <= id < N, else -1
 *   columns [k, k + s): the window's positions  -> M*b + N + g, else -1
 *   combined_lens[t] = k + s; the rest of the row is -1
 *
 * The workspace holds M = workspace_rows rows per request: its records from row 0, its
 * last gather_lens[b] raw tokens from row N = swa_base. The caller sees to
 * N + gather_lens[b] <= M and num_requests * M < 2^31; the latter is checked when M is
 * given by value.
 */
struct kiln_combine_topk_swa_shape {
    int64_t topk;            /* 0: window only; topk_indices may then be NULL */
    int64_t topk_stride;     /* row stride of topk_indices, elements */
    int64_t window;          /* raw tokens of the sliding window (W), at least 1 */
    int64_t compress_ratio;  /* raw tokens of a record (R); 0: no records */
    int64_t image_width;     /* further window columns for image spans; 0: none */
    int64_t align;           /* the row width is a multiple of it, elements */
    int64_t combined_stride; /* row stride of combined_indices, elements */
};

struct kiln_combine_topk_swa_args {
    const int32_t *topk_indices; /* [num_tokens, max(topk, 1)] request-local record ids */
    const int32_t *query_start_loc; /* [num_requests + 1], rebased by its first element */
    const int32_t *seq_lens;        /* [num_requests] */
    const int32_t *gather_lens;     /* [num_requests] */
    const int32_t *left_visible;    /* [num_tokens], or NULL; both or neither */
    const int32_t *right_visible;   /* [num_tokens], or NULL */
    int32_t *combined_indices;      /* [num_tokens, C] */
    int32_t *combined_lens;         /* [num_tokens] */
    struct kiln_count workspace_rows;
    struct kiln_count swa_base;
    int32_t num_tokens;
    int32_t num_requests;
    struct kiln_report *report; /* device address, for a checked kernel; or NULL */
};

/** As kiln_launch_global_topk. Threads: any. Capture: allowed. @return as there. */
KILN_API KILN_MUST_USE enum kiln_status
kiln_launch_combine_topk_swa(const struct kiln_kernel *kernel,
                             const struct kiln_combine_topk_swa_args *args,
                             struct CUstream_st *stream, struct kiln_error *err);
/** As kiln_reference_global_topk. Threads: any. Capture: allowed. @return as there. */
KILN_API KILN_MUST_USE enum kiln_status
kiln_reference_combine_topk_swa(const struct kiln_combine_topk_swa_shape *shape,
                                const struct kiln_combine_topk_swa_args *args,
                                struct kiln_error *err);

#ifdef __cplusplus
}
#endif
#endif
