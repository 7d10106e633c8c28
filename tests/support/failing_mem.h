/* SPDX-License-Identifier: Apache-2.0 */
/* An allocator that fails its n-th request and counts what is still alive. */
#ifndef TESTS_SUPPORT_FAILING_MEM_H
#define TESTS_SUPPORT_FAILING_MEM_H

#include <stdatomic.h>

#include "base/mem.h"

struct failing_mem {
    struct ki_mem mem;   /* hand this in */
    int fail_nth;        /* fail the n-th request for memory, from 1; 0: none */
    _Atomic int n_calls; /* requests so far */
    _Atomic int n_live;  /* blocks not yet freed */
};

void failing_mem_init(struct failing_mem *failing, int fail_nth);

#endif
