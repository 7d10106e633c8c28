/* SPDX-License-Identifier: Apache-2.0 */
/* gather_lens: raw tokens that a prefill request gathers. The rules of every op: kiln/ops.h. */
#ifndef KILN_OP_GATHER_LENS_H
#define KILN_OP_GATHER_LENS_H

#include <stdint.h>

#include "kiln/op/common.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Once per step.
 *
 *   qlen = query_start_loc[b + 1] - query_start_loc[b],  prefix = seq_lens[b] - qlen
 *   gather_lens[b - first_request] = qlen + min(max(prefix - replay_start[b], 0), window - 1)
 *
 * for each request b from first_request on. A sum past 2^31-1, which no sequence has,
 * becomes 2^31-1.
 */
struct kiln_gather_lens_shape {
    int64_t window; /* raw tokens of the sliding window, at least 1 */
};

/* What every thread looks at first stands first: a launch fetches its arguments in lines. */
struct kiln_gather_lens_args {
    const int32_t *replay_start; /* [num_requests], or NULL: 0 */
    int32_t num_requests;
    struct kiln_count first_request; /* clamped to [0, num_requests]; absent: 0 */
    const int32_t *query_start_loc;  /* [num_requests + 1] */
    const int32_t *seq_lens;         /* [num_requests] */
    int32_t *gather_lens;            /* [num_requests - first_request] */
    struct kiln_report *report;      /* device address, for a checked kernel; or NULL */
};

/** As kiln_launch_global_topk. Threads: any. Capture: allowed. @return as there. */
KILN_API KILN_MUST_USE enum kiln_status
kiln_launch_gather_lens(const struct kiln_kernel *kernel,
                        const struct kiln_gather_lens_args *args,
                        struct CUstream_st *stream, struct kiln_error *err);
/** As kiln_reference_global_topk. Threads: any. Capture: allowed. @return as there. */
KILN_API KILN_MUST_USE enum kiln_status
kiln_reference_gather_lens(const struct kiln_gather_lens_shape *shape,
                           const struct kiln_gather_lens_args *args,
                           struct kiln_error *err);

#ifdef __cplusplus
}
#endif
#endif
