/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What kiln and a compiled source say to each other through a socket, C and C++ alike. Both are of
 * one build on one machine, so structs travel as they lie in memory.
 *
 *   request, args, then per array its head and data      ->
 *   <-  reply, then the data of each output unless it failed
 */
#ifndef KILN_SIMT_PROTOCOL_H
#define KILN_SIMT_PROTOCOL_H

#include <stdint.h>

#define KILN_SIMT_MAGIC UINT32_C(0x6b736d33)

enum {
    KILN_SIMT_NAME_BYTES = 40,
    KILN_SIMT_MESSAGE_BYTES = 1000,
    KILN_SIMT_ARRAYS_MAX = 30
};

struct kiln_simt_request {
    uint32_t magic;
    uint32_t grid_x, grid_y, threads;
    uint64_t seed; /* of the order in which blocks and threads run */
    uint32_t args_bytes, n_arrays;
    uint32_t limit_ms; /* of processor time */
    uint32_t first_x;  /* of the grid, blocks first_x .. first_x + n_x - 1 in x run, */
    uint32_t n_x;      /* in all of y; n_x 0: the whole grid */
    uint32_t reserved;
};

/* An array of the launch; its data follow: inputs end with the last row's last column. It
 * may be a part of what the kernel sees, which alone may be touched. */
struct kiln_simt_array {
    char name[KILN_SIMT_NAME_BYTES];
    uint64_t args_offset;         /* where its address goes */
    uint64_t rows, width, stride; /* elements */
    uint64_t first_row;           /* of the kernel's array: where these rows begin */
    uint64_t data_bytes;
    uint32_t elem_bytes;
    uint32_t skew_elems; /* how far it begins from an address that any access may take */
    uint32_t is_output;  /* is written, and comes back */
    uint32_t is_defined; /* an output that holds something before; inputs always do */
};

struct kiln_simt_reply {
    uint32_t magic;
    uint32_t failed;
    uint64_t pc;       /* where in the program; 0: the message says it, or nowhere */
    uint64_t other_pc; /* of the other access of two; 0: there is none */
    char message[KILN_SIMT_MESSAGE_BYTES];
};

#endif
