/* SPDX-License-Identifier: Apache-2.0 */
/* global_topk: top-k picks to cache slots. The rules of every op: kiln/ops.h. */
#ifndef KILN_OP_GLOBAL_TOPK_H
#define KILN_OP_GLOBAL_TOPK_H

#include <stdint.h>

#include "kiln/op/common.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * global_topk: top-k picks to cache slots, and how many. Per C4A layer and decode step.
 *
 *   slots[t, j] = page * block_size + v % block_size,  v = topk_indices[t, j],
 *                 page = block_table[token_to_req[t], v / block_size];  or -1
 *   lens[t]     = mapped entries of row t
 *
 * Order is kept and holes stay where they are, so a consumer scans the row, not its first
 * lens[t] columns. With dcp_world > 1 the entries that rank dcp_rank owns are compacted
 * to the front.
 */
struct kiln_global_topk_shape {
    int64_t topk;           /* columns of a row, at least 1 */
    int64_t topk_stride;    /* row stride of topk_indices, elements */
    int64_t slots_stride;   /* row stride of slots, elements */
    int64_t block_size;     /* slots of a page */
    int64_t table_width;    /* pages of a request */
    int64_t table_stride;   /* row stride of block_table, elements */
    int64_t dcp_world;      /* ranks that share the cache, 1 for none */
    int64_t dcp_interleave; /* consecutive tokens of one rank; divides block_size */
};

struct kiln_global_topk_args {
    const int32_t *topk_indices;   /* [num_tokens, topk] */
    const int32_t *token_to_req;   /* [num_tokens] */
    const int32_t *block_table;    /* [table_rows, table_width] */
    const uint8_t *is_valid_token; /* [num_tokens], or NULL: all valid */
    int32_t *slots;                /* [num_tokens, topk] */
    int32_t *lens;                 /* [num_tokens] */
    struct kiln_count live_tokens; /* from it on rows are inert; absent: all live */
    int32_t num_tokens;
    int32_t table_rows;
    int32_t dcp_rank;           /* [0, dcp_world) */
    struct kiln_report *report; /* device address, for a checked kernel; or NULL */
};

/**
 * Launch the op on a stream: one driver call. Zero rows: none, and KILN_OK.
 *
 * What is frozen at capture: addresses, num_tokens, table_rows, num_requests, dcp_rank
 * and counts given by value. What is read at each replay: the arrays and counts given by
 * address.
 *
 * @param kernel from kiln_prepare or kiln_find, of this op
 * @param stream any stream of the current context; not the legacy NULL stream while
 *        something captures
 * Threads: any
 * Capture: allowed, in all three capture modes
 * Cost: hot; no lock, no allocation, no system call
 * @return KILN_OK; KILN_E_ARGUMENT: an argument is missing, misaligned or out of range,
 *         and is named; KILN_E_DRIVER: the driver refused the launch
 * Since: 1
 */
KILN_API KILN_MUST_USE enum kiln_status
kiln_launch_global_topk(const struct kiln_kernel *kernel,
                        const struct kiln_global_topk_args *args,
                        struct CUstream_st *stream, struct kiln_error *err);

/**
 * Compute the op in plain C on host arrays: what every kernel must equal, to the integer.
 *
 * The pointers of args, those of counts included, are host addresses.
 *
 * Threads: any
 * Capture: allowed
 * @return KILN_OK; KILN_E_SHAPE: the shape is illegal; KILN_E_ARGUMENT: an argument is
 * Since: 1
 */
KILN_API KILN_MUST_USE enum kiln_status
kiln_reference_global_topk(const struct kiln_global_topk_shape *shape,
                           const struct kiln_global_topk_args *args,
                           struct kiln_error *err);

#ifdef __cplusplus
}
#endif
#endif
