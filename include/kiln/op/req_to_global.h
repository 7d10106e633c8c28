/* SPDX-License-Identifier: Apache-2.0 */
/* req_to_global: request-local token ids to cache slots. The rules of every op: kiln/ops.h. */
#ifndef KILN_OP_REQ_TO_GLOBAL_H
#define KILN_OP_REQ_TO_GLOBAL_H

#include <stdint.h>

#include "kiln/op/common.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Per layer of a model that selects raw tokens (DeepSeek V3.2, GLM-5).
 *
 *   id = token_indices[t, j],  0 <= id < table_width * block_size
 *   a prefill token with a workspace: workspace_start[req_id[t]] + id
 *   else: page * page_stride + id % block_size, page = block_table[req_id[t], id / block_size]
 *   -1 where the id has no page, or the result is negative or does not fit int32
 *   counts[t] = mapped entries of row t
 *
 * Order is kept and holes stay where they are. With dcp_world > 1 the ids that rank
 * dcp_rank owns are mapped by their number among its own, and compacted to the front.
 */
struct kiln_req_to_global_shape {
    int64_t topk;           /* columns of a row, at least 1 */
    int64_t topk_stride;    /* row stride of token_indices, elements */
    int64_t out_stride;     /* row stride of global_indices, elements */
    int64_t block_size;     /* slots of a page */
    int64_t page_stride;    /* slots from page to page; other layers' may lie between */
    int64_t table_width;    /* pages of a request */
    int64_t table_stride;   /* row stride of block_table, elements */
    int64_t dcp_world;      /* ranks that share the cache, 1 for none */
    int64_t dcp_interleave; /* consecutive tokens of one rank; divides block_size */
};

struct kiln_req_to_global_args {
    const int32_t *token_indices;   /* [num_tokens, topk] */
    const int32_t *req_id;          /* [num_tokens] */
    const int32_t *block_table;     /* [table_rows, table_width] */
    const uint8_t *is_valid_token;  /* [num_tokens], or NULL: all valid */
    const int32_t *workspace_start; /* [num_requests], or NULL: none; dcp_world 1 only */
    const uint8_t *is_prefill;      /* [num_tokens], with workspace_start only */
    int32_t *global_indices;        /* [num_tokens, topk] */
    int32_t *counts;                /* [num_tokens] */
    struct kiln_count live_tokens;  /* absent: all */
    int32_t num_tokens;
    int32_t num_requests; /* with workspace_start only */
    int32_t table_rows;
    int32_t dcp_rank;           /* [0, dcp_world) */
    struct kiln_report *report; /* device address, for a checked kernel; or NULL */
};

/** As kiln_launch_global_topk. Threads: any. Capture: allowed. @return as there. */
KILN_API KILN_MUST_USE enum kiln_status
kiln_launch_req_to_global(const struct kiln_kernel *kernel,
                          const struct kiln_req_to_global_args *args,
                          struct CUstream_st *stream, struct kiln_error *err);
/** As kiln_reference_global_topk. Threads: any. Capture: allowed. @return as there. */
KILN_API KILN_MUST_USE enum kiln_status
kiln_reference_req_to_global(const struct kiln_req_to_global_shape *shape,
                             const struct kiln_req_to_global_args *args,
                             struct kiln_error *err);

#ifdef __cplusplus
}
#endif
#endif
