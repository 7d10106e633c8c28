/* SPDX-License-Identifier: Apache-2.0 */
/* A small call of mixed_sparse_indices, for tests of what it means and of what it reports. */
#ifndef TESTS_SUPPORT_MIXED_BATCH_H
#define TESTS_SUPPORT_MIXED_BATCH_H

#include <stdint.h>

#include "kiln/ops.h"
#include "support/report_check.h"

enum { TOKENS = 4, DECODE = 2, WINDOW = 4, TOPK = 2, GIVEN = 3, PAGES = 6, WS = 4 };
enum { ROOM = TOKENS * 16, POISON = 0x55555555 };

/*
 * Tokens 0 and 1 decode for requests 0 and 1; tokens 2 and 3 are at positions 9 and 10 of
 * request 2's sequence of 11. Pages of 2 everywhere, 10 ids apart in the window's pool and 6
 * in the compressed one: position p of request 2 is 100 + p / 2 * 10 + p % 2, its record v
 * 180 + v / 2 * 6 + v % 2. A row is 4 columns of window and 4 of records. Ratio 4.
 */
struct mixed_batch {
    struct kiln_mixed_sparse_indices_shape shape;
    struct kiln_mixed_sparse_indices_args args;
    int32_t starts[4], seq_lens[3], requests[TOKENS];
    int32_t window_table[3][PAGES], table[3][PAGES];
    int32_t given_window[TOKENS][WINDOW], given[TOKENS][GIVEN], given_lens[TOKENS];
    int32_t picks[TOKENS][TOPK], left[TOKENS], right[TOKENS];
    uint8_t valid[TOKENS];
    int32_t rows[ROOM], lens[TOKENS];
    struct report_room room; /* for tests of what is reported */
};

/* No report; outputs are poison. */
void mixed_batch_init(struct mixed_batch *b);

/* The reference; fails the test if it refuses. */
void mixed_batch_run(struct mixed_batch *b);

#endif
