/* SPDX-License-Identifier: Apache-2.0 */
/* compressed_slots: where a step's new records are written. The rules of every op: kiln/ops.h. */
#ifndef KILN_OP_COMPRESSED_SLOTS_H
#define KILN_OP_COMPRESSED_SLOTS_H

#include <stdint.h>

#include "kiln/op/common.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Per compressed cache and step: the slot of the record that a token completes.
 *
 *   b = the request of token t,  pos = seq_lens[b] - (query_start_loc[b + 1] - t)
 *   slots[t] = the slot of record pos / R,  where pos >= 0 and (pos + 1) % R == 0;  or -1
 *
 * query_start_loc counts tokens of the step from 0. A token also writes nothing where the
 * raw token itself is not stored here, own_slots[t] < 0; under context parallelism that
 * says nothing, and the record's own rank decides. Slots keep their place: nothing is
 * compacted. A page is used if it is not negative, for the slot is an int64.
 */
struct kiln_compressed_slots_shape {
    int64_t compress_ratio; /* raw tokens of a record (R), at least 1 */
    int64_t block_size;     /* slots of a page */
    int64_t table_width;    /* pages of a request */
    int64_t table_stride;   /* row stride of block_table, elements */
    int64_t dcp_world;      /* ranks that share the cache, 1 for none */
    int64_t dcp_interleave; /* consecutive records of one rank; divides block_size */
};

struct kiln_compressed_slots_args {
    const int32_t *query_start_loc; /* [num_requests + 1] */
    const int32_t *seq_lens;        /* [num_requests] */
    const int32_t *block_table;     /* [table_rows, table_width] */
    const int64_t *own_slots; /* [num_tokens] raw mapping, or NULL: all are stored */
    int64_t *slots;           /* [num_tokens] */
    int32_t num_tokens;
    int32_t num_requests;
    int32_t table_rows;
    int32_t dcp_rank;           /* [0, dcp_world) */
    struct kiln_report *report; /* device address, for a checked kernel; or NULL */
};

/** As kiln_launch_global_topk. Threads: any. Capture: allowed. @return as there. */
KILN_API KILN_MUST_USE enum kiln_status
kiln_launch_compressed_slots(const struct kiln_kernel *kernel,
                             const struct kiln_compressed_slots_args *args,
                             struct CUstream_st *stream, struct kiln_error *err);
/** As kiln_reference_global_topk. Threads: any. Capture: allowed. @return as there. */
KILN_API KILN_MUST_USE enum kiln_status
kiln_reference_compressed_slots(const struct kiln_compressed_slots_shape *shape,
                                const struct kiln_compressed_slots_args *args,
                                struct kiln_error *err);

#ifdef __cplusplus
}
#endif
#endif
