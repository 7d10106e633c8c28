/* SPDX-License-Identifier: Apache-2.0 */
/* mixed_sparse_indices: one matrix for a mixed batch. The rules of every op: kiln/ops.h. */
#ifndef KILN_OP_MIXED_SPARSE_INDICES_H
#define KILN_OP_MIXED_SPARSE_INDICES_H

#include <stdint.h>

#include "kiln/op/common.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * mixed_sparse_indices: one matrix of window and compressed slots for a mixed batch, for
 * consumers that take a batch's decode and prefill tokens together. Decode tokens come first.
 *
 *   Ws = swa_width + align(image_width, 4),  Kp = align(max(topk, decode_topk), 4)
 *   columns [0, Ws):       decode: the given window row; prefill: the window's slots
 *   columns [Ws, Ws + Kp): decode: the given slots, or local ids mapped to slots;
 *                          prefill: min((pos + 1) / R, topk) picks mapped to slots
 *   each part ends with -1; sparse_lens[t] = Ws + entries of the second part
 *   an inert row is all -1, and its length is Ws
 *
 * A slot x of a pool lands at x / block_size * span + x % block_size: span is what pages
 * are apart in the consumer's ids. What does not fit int32 is -1. All matrices but the
 * tables are packed: their row stride is their width.
 */
struct kiln_mixed_sparse_indices_shape {
    int64_t window;           /* raw tokens of the sliding window (W), at least 1 */
    int64_t swa_width;        /* columns of a given window row, at least window */
    int64_t image_width;      /* further window columns for image spans; 0: none */
    int64_t compress_ratio;   /* raw tokens of a record (R); 0: no records */
    int64_t topk;             /* picks of a prefill token, columns */
    int64_t decode_topk;      /* given slots or local ids of a decode token, columns */
    int64_t decode_local;     /* 1: local ids, to be mapped; 0: slots */
    int64_t swa_block_size;   /* slots of a page of the window's cache */
    int64_t swa_span;         /* ids from one of its pages to the next */
    int64_t swa_table_width;  /* its pages of a request */
    int64_t swa_table_stride; /* row stride of swa_block_table, elements */
    int64_t block_size;       /* the same of the compressed cache */
    int64_t span;
    int64_t table_width;
    int64_t table_stride;
};

struct kiln_mixed_sparse_indices_args {
    const int32_t *query_start_loc;           /* [num_requests + 1], absolute */
    const int32_t *seq_lens;                  /* [num_requests] */
    const int32_t *token_to_req;              /* [num_tokens] */
    const uint8_t *is_valid_token;            /* [num_tokens], or NULL: all valid */
    const int32_t *swa_block_table;           /* [swa_table_rows, swa_table_width] */
    const int32_t *block_table;               /* [table_rows, table_width] */
    const int32_t *decode_swa_indices;        /* [num_decode_tokens, swa_width] slots */
    const int32_t *decode_compressed_indices; /* [num_decode_tokens, decode_topk]; may be
                                               * NULL where decode_topk is 0 */
    const int32_t *decode_compressed_lens;    /* [num_decode_tokens], or NULL: decode_topk
                                               * each; not read with decode_local */
    const int32_t *prefill_topk_indices;      /* [num_tokens - num_decode_tokens,
                                               * max(topk, 1)] request-local record ids */
    const int32_t *left_visible;              /* [num_tokens], or NULL; both or neither */
    const int32_t *right_visible;             /* [num_tokens], or NULL */
    int32_t *sparse_indices;                  /* [num_tokens, Ws + Kp] */
    int32_t *sparse_lens;                     /* [num_tokens] */
    struct kiln_count num_decode_tokens;      /* clamped to [0, num_tokens] */
    struct kiln_count live_tokens;            /* absent: all */
    int32_t num_tokens;
    int32_t num_requests;
    int32_t swa_table_rows;
    int32_t table_rows;
    struct kiln_report *report; /* device address, for a checked kernel; or NULL */
};

/** As kiln_launch_global_topk. Threads: any. Capture: allowed. @return as there. */
KILN_API KILN_MUST_USE enum kiln_status
kiln_launch_mixed_sparse_indices(const struct kiln_kernel *kernel,
                                 const struct kiln_mixed_sparse_indices_args *args,
                                 struct CUstream_st *stream, struct kiln_error *err);
/** As kiln_reference_global_topk. Threads: any. Capture: allowed. @return as there. */
KILN_API KILN_MUST_USE enum kiln_status
kiln_reference_mixed_sparse_indices(const struct kiln_mixed_sparse_indices_shape *shape,
                                    const struct kiln_mixed_sparse_indices_args *args,
                                    struct kiln_error *err);

#ifdef __cplusplus
}
#endif
#endif
