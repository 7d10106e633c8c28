/* SPDX-License-Identifier: Apache-2.0 */
/* is_valid_token: which tokens of a padded batch are real. The rules of every op: kiln/ops.h. */
#ifndef KILN_OP_IS_VALID_TOKEN_H
#define KILN_OP_IS_VALID_TOKEN_H

#include <stdint.h>

#include "kiln/op/common.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Once per step.
 *
 *   is_valid_token[t] = 1 where t < live_tokens and slot_mapping[t] >= 0, else 0
 *
 * Under context parallelism the mapping is -1 for tokens that another rank stores, whose
 * queries are live all the same: with dcp_world > 1 it is not looked at.
 */
struct kiln_is_valid_token_shape {
    int64_t dcp_world; /* ranks that share the cache, 1 for none */
};

struct kiln_is_valid_token_args {
    const int64_t *slot_mapping;   /* [num_tokens] raw mapping, or NULL: all are mapped */
    uint8_t *is_valid_token;       /* [num_tokens], 0 or 1 */
    struct kiln_count live_tokens; /* absent: all */
    int32_t num_tokens;
    struct kiln_report *report; /* device address, for a checked kernel; or NULL */
};

/** As kiln_launch_global_topk. Threads: any. Capture: allowed. @return as there. */
KILN_API KILN_MUST_USE enum kiln_status
kiln_launch_is_valid_token(const struct kiln_kernel *kernel,
                           const struct kiln_is_valid_token_args *args,
                           struct CUstream_st *stream, struct kiln_error *err);
/** As kiln_reference_global_topk. Threads: any. Capture: allowed. @return as there. */
KILN_API KILN_MUST_USE enum kiln_status
kiln_reference_is_valid_token(const struct kiln_is_valid_token_shape *shape,
                              const struct kiln_is_valid_token_args *args,
                              struct kiln_error *err);

#ifdef __cplusplus
}
#endif
#endif
