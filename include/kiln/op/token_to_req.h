/* SPDX-License-Identifier: Apache-2.0 */
/* token_to_req: the request of each token. The rules of every op: kiln/ops.h. */
#ifndef KILN_OP_TOKEN_TO_REQ_H
#define KILN_OP_TOKEN_TO_REQ_H

#include <stdint.h>

#include "kiln/op/common.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Once per step.
 *
 *   token_to_req[t] = b where query_start_loc[b] <= t < query_start_loc[b + 1], else pad_req
 *
 * A request of zero length has no tokens.
 */
struct kiln_token_to_req_shape {
    int64_t pad_req; /* stands for no request; any int32 */
};

struct kiln_token_to_req_args {
    const int32_t *query_start_loc; /* [num_requests + 1] */
    int32_t *token_to_req;          /* [num_tokens] */
    int32_t num_tokens;
    int32_t num_requests;
    struct kiln_report *report; /* device address, for a checked kernel; or NULL */
};

/** As kiln_launch_global_topk. Threads: any. Capture: allowed. @return as there. */
KILN_API KILN_MUST_USE enum kiln_status
kiln_launch_token_to_req(const struct kiln_kernel *kernel,
                         const struct kiln_token_to_req_args *args,
                         struct CUstream_st *stream, struct kiln_error *err);
/** As kiln_reference_global_topk. Threads: any. Capture: allowed. @return as there. */
KILN_API KILN_MUST_USE enum kiln_status
kiln_reference_token_to_req(const struct kiln_token_to_req_shape *shape,
                            const struct kiln_token_to_req_args *args,
                            struct kiln_error *err);

#ifdef __cplusplus
}
#endif
#endif
