/* SPDX-License-Identifier: Apache-2.0 */
/* What the pages of all ops share: names of ops, counts, storage. It knows no op. */
#ifndef KILN_OP_COMMON_H
#define KILN_OP_COMMON_H

#include <stdint.h>

#include "kiln/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* CUstream and cudaStream_t are both pointers to this incomplete struct. */
struct CUstream_st;

/* A loaded kernel; see kiln.h. */
struct kiln_kernel;

/* What a checked kernel writes to; see report.h. */
struct kiln_report;

/* Numbers are pinned. */
enum kiln_op {
    KILN_OP_GLOBAL_TOPK = 1,
    KILN_OP_C128A_TOPK = 2,
    KILN_OP_COMBINE_TOPK_SWA = 3,
    KILN_OP_SWA_INDICES = 4,
    KILN_OP_MIXED_SPARSE_INDICES = 5,
    KILN_OP_COMPRESSED_SLOTS = 6,
    KILN_OP_REQ_TO_GLOBAL = 7,
    KILN_OP_TOKEN_TO_REQ = 8,
    KILN_OP_IS_VALID_TOKEN = 9,
    KILN_OP_GATHER_LENS = 10,
    KILN_OP_IMAGE_VISIBILITY = 11,
    KILN_OP_STEP = 12,
};

enum kiln_count_kind {
    KILN_COUNT_ABSENT = 0, /* the op's default, where the argument is optional */
    KILN_COUNT_VALUE = 1,  /* `value`, frozen at the launch and in a captured graph */
    KILN_COUNT_DEVICE = 2, /* an int32 at `address`, read anew whenever the kernel runs */
};

/* A count that is given by value or read from device memory. All zeros: absent. */
struct kiln_count {
    const int32_t *address; /* device address, borrowed; only with KILN_COUNT_DEVICE */
    int32_t value;          /* only with KILN_COUNT_VALUE */
    int32_t kind;           /* enum kiln_count_kind */
};

/* Who stores a window cache under context parallelism. */
enum kiln_dcp_storage {
    KILN_DCP_SHARDED = 0,    /* each rank its own positions, at slots of its own */
    KILN_DCP_REPLICATED = 1, /* every rank all of them; each attends to its own */
};

#ifdef __cplusplus
}
#endif
#endif
