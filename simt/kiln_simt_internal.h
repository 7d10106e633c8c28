/* SPDX-License-Identifier: Apache-2.0 */
/* What the runtime's files know of each other. */
#ifndef KILN_SIMT_INTERNAL_H
#define KILN_SIMT_INTERNAL_H

#include <stddef.h>
#include <stdint.h>

#include "kiln_simt.h"
#include "kiln_simt_protocol.h"

namespace simt
{
constexpr unsigned kThreadsMax = 1024;
constexpr unsigned kWarpLanes = 32;

struct launch_t {
    unsigned grid_x, grid_y, threads;
    unsigned first_x, n_x; /* the blocks of it that run */
    uint64_t seed;
    const void *args;
};

/* A part of memory that kernels use: an array of the launch, or shared memory. */
struct region_t {
    char name[KILN_SIMT_NAME_BYTES];
    unsigned char *begin; /* of the data */
    size_t bytes;
    size_t elem_bytes, rows, width, stride; /* elements */
    size_t first_row;                       /* of the kernel's array */
    bool is_output, is_shared;
    bool is_defined; /* an output that held something before the launch */
};

struct random_t {
    uint64_t state;
    uint32_t below(uint32_t n);
};

/* kiln_simt_run.cpp: answer the request with a failure, and end. pc 0: no place to add. */
[[noreturn]] void fail(const void *pc, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* As fail, for two accesses; `other` counts from the program's first byte. */
[[noreturn]] void fail_two(const void *pc, uint32_t other, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* kiln_simt_fibre.cpp */
void run_grid(const launch_t &launch);
/* "block (3, 0), thread 17", or "" outside a kernel. */
const char *who();
bool is_running();
/* The serial number that the next block gets. */
uint32_t next_block();
/* Is it on a fibre's stack? */
bool is_on_stack(const void *address);
/* The thread's clocks, for whoever judges the order of two accesses. */
struct clocks_t {
    uint32_t block;            /* serial number of the block, from 1 */
    uint32_t thread;           /* in the block */
    uint32_t epoch;            /* block barriers passed */
    uint32_t clock;            /* warp synchronisations passed */
    const uint32_t *warp_seen; /* per lane of the warp: its clock that is known here */
};
const clocks_t &clocks();

/* kiln_simt_shared.cpp */
void find_shared();
void renew_shared(uint64_t seed);
const region_t &shared();
/* Is it in the guards before and after? */
bool is_beside_shared(const void *address);
} // namespace simt

extern "C" {
extern const char *const kiln_simt_kernel_name;
extern const unsigned long kiln_simt_kernel_args_bytes;
void kiln_simt_kernel(const void *args);
}

#endif
