/* SPDX-License-Identifier: Apache-2.0 */
/* swa_indices: sliding-window rows. The rules of every op: kiln/ops.h. */
#ifndef KILN_OP_SWA_INDICES_H
#define KILN_OP_SWA_INDICES_H

#include <stdint.h>

#include "kiln/op/common.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * swa_indices: sliding-window rows. Once per window cache and step, and once for drafts.
 *
 *   causal:  start = max(pos - (W - 1) - max(left - (W - 1), 0), 0)
 *            end   = start + min(min(pos + right + 1, seq_len) - start, W + image_width)
 *   a draft: start = max(prefix - W, 0), end = seq_len, for all tokens of the block
 *   then     start = max(start, replay_start, end - index_width), n = max(end - start, 0)
 *
 *   swa_indices[i, j < n] = the slot of position start + j of the request of token
 *                           token_offset + i, or -1;  -1 in the columns from n on
 *   swa_lens[i] = n
 *
 * With dcp_world > 1 the range is cut first; then the rank's own positions that have a
 * usable page are compacted to the front, and the length is what was kept.
 */
struct kiln_swa_indices_shape {
    int64_t window;         /* raw tokens of the sliding window (W), at least 1 */
    int64_t index_width;    /* columns of a row; the newest that fit are kept */
    int64_t index_stride;   /* row stride of swa_indices, elements */
    int64_t block_size;     /* slots of a page */
    int64_t table_width;    /* pages of a request */
    int64_t table_stride;   /* row stride of block_table, elements */
    int64_t image_width;    /* further window columns for image spans; 0: none */
    int64_t causal;         /* 1; 0: a draft block, whose tokens see one another */
    int64_t dcp_world;      /* ranks that share the cache, 1 for none */
    int64_t dcp_interleave; /* consecutive tokens of one rank; divides block_size */
    int64_t dcp_storage;    /* enum kiln_dcp_storage */
};

/* What every thread looks at first stands first: a launch fetches its arguments in lines. */
struct kiln_swa_indices_args {
    int32_t num_rows;
    int32_t token_offset;          /* the token of row 0 */
    struct kiln_count live_tokens; /* tokens at or past it are inert; absent: all live */
    const int32_t *token_to_req;   /* [token_offset + num_rows] */
    const uint8_t *is_valid_token; /* [token_offset + num_rows], or NULL: all valid */
    int32_t num_requests;
    int32_t table_rows;
    const int32_t *query_start_loc; /* [num_requests + 1], absolute */
    const int32_t *seq_lens;        /* [num_requests] */
    const int32_t *block_table;     /* [table_rows, table_width] */
    const int32_t *replay_start;    /* [num_requests] no position below it, or NULL */
    int32_t *swa_indices;           /* [num_rows, index_width] */
    int32_t *swa_lens;              /* [num_rows] */
    const int32_t *left_visible; /* [token_offset + num_rows], or NULL; both or neither */
    const int32_t *right_visible; /* [token_offset + num_rows], or NULL */
    int32_t dcp_rank;             /* [0, dcp_world) */
    struct kiln_report *report;   /* device address, for a checked kernel; or NULL */
};

/** As kiln_launch_global_topk. Threads: any. Capture: allowed. @return as there. */
KILN_API KILN_MUST_USE enum kiln_status
kiln_launch_swa_indices(const struct kiln_kernel *kernel,
                        const struct kiln_swa_indices_args *args,
                        struct CUstream_st *stream, struct kiln_error *err);
/** As kiln_reference_global_topk. Threads: any. Capture: allowed. @return as there. */
KILN_API KILN_MUST_USE enum kiln_status
kiln_reference_swa_indices(const struct kiln_swa_indices_shape *shape,
                           const struct kiln_swa_indices_args *args,
                           struct kiln_error *err);

#ifdef __cplusplus
}
#endif
#endif
