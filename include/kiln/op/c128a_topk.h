/* SPDX-License-Identifier: Apache-2.0 */
/* c128a_topk: rows that attend every complete record. The rules of every op: kiln/ops.h. */
#ifndef KILN_OP_C128A_TOPK_H
#define KILN_OP_C128A_TOPK_H

#include <stdint.h>

#include "kiln/op/common.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * c128a_topk: rows that attend every complete record. Once per step.
 *
 *   width = clamp(active_width, 0, capacity)
 *   n     = pos < 0 ? 0 : min((pos + 1) / R, width)
 *   decode row t < num_decode_tokens:  decode_slots[t, j < n]  = slot of record j, or -1
 *                                      decode_lens[t]          = n
 *   prefill row t - num_decode_tokens: prefill_local[., j < n] = j
 *   The other columns below width are -1; those in [width, capacity) are not written.
 *
 * capacity is the row stride of both matrices. A table that is too narrow for n records
 * cuts n. With dcp_world > 1 decode rows hold what rank dcp_rank owns, compacted, and
 * decode_lens counts it.
 */
struct kiln_c128a_topk_shape {
    int64_t compress_ratio; /* raw tokens of a record (R), at least 1 */
    int64_t capacity;       /* columns and row stride of both matrices */
    int64_t block_size;     /* slots of a page */
    int64_t table_width;
    int64_t table_stride;
    int64_t dcp_world;
    int64_t dcp_interleave;
};

/* What every thread looks at first stands first: a launch fetches its arguments in lines. */
struct kiln_c128a_topk_args {
    int32_t num_tokens;
    int32_t table_rows;
    struct kiln_count num_decode_tokens; /* clamped to [0, num_tokens] */
    struct kiln_count active_width;      /* absent: capacity */
    const int64_t *positions;            /* [num_tokens] */
    struct kiln_count live_tokens;       /* absent: all */
    const int32_t *token_to_req;         /* [num_tokens] */
    const int64_t *slot_mapping; /* [num_tokens] raw mapping, or NULL: all valid */
    const int32_t *block_table;  /* [table_rows, table_width] */
    int32_t *decode_slots;       /* [num_decode_tokens, capacity] */
    int32_t *decode_lens;        /* [num_decode_tokens] */
    int32_t *prefill_local;      /* [num_tokens - num_decode_tokens, capacity] */
    int32_t dcp_rank;
    struct kiln_report *report; /* device address, for a checked kernel; or NULL */
};

/** As kiln_launch_global_topk. Threads: any. Capture: allowed. @return as there. */
KILN_API KILN_MUST_USE enum kiln_status
kiln_launch_c128a_topk(const struct kiln_kernel *kernel,
                       const struct kiln_c128a_topk_args *args,
                       struct CUstream_st *stream, struct kiln_error *err);
/** As kiln_reference_global_topk. Threads: any. Capture: allowed. @return as there. */
KILN_API KILN_MUST_USE enum kiln_status
kiln_reference_c128a_topk(const struct kiln_c128a_topk_shape *shape,
                          const struct kiln_c128a_topk_args *args,
                          struct kiln_error *err);

/**
 * The active width of a step for c128a_topk, in columns: the least power of two, 128 at
 * least, that holds max_seq_len / compress_ratio records, and capacity at most.
 *
 * @param max_seq_len the longest sequence of the step, raw tokens; negative counts as 0
 * Threads: any
 * Capture: allowed
 * @return a width in [0, capacity]; 0 where compress_ratio or capacity is not positive
 * Since: 1
 */
KILN_API int32_t kiln_c128a_active_width(int64_t max_seq_len, int64_t compress_ratio,
                                         int64_t capacity);

#ifdef __cplusplus
}
#endif
#endif
