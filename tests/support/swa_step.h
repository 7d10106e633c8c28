/* SPDX-License-Identifier: Apache-2.0 */
/* A small call of swa_indices, for tests of what it means and of what it reports. */
#ifndef TESTS_SUPPORT_SWA_STEP_H
#define TESTS_SUPPORT_SWA_STEP_H

#include <stdint.h>

#include "kiln/ops.h"
#include "support/report_check.h"

enum { WIDTH = 6, TOKENS = 5, PAGES = 6, POISON = 0x55555555 };

/*
 * Two requests. Request 0 has tokens 0 and 1, at positions 7 and 8; request 1 has tokens 2 to
 * 4, its whole sequence. Windows of 4, pages of 2: position p of request 0 lies at slot
 * 20 + p, of request 1 at 40 + p.
 */
struct swa_step {
    struct kiln_swa_indices_shape shape;
    struct kiln_swa_indices_args args;
    int32_t starts[3], seq_lens[2], requests[TOKENS], table[2][PAGES], replay[2];
    int32_t left[TOKENS], right[TOKENS];
    uint8_t valid[TOKENS];
    int32_t rows[TOKENS][WIDTH + 1], lens[TOKENS];
    struct report_room room; /* for tests of what is reported */
};

/* No report; outputs are poison. */
void swa_step_init(struct swa_step *s);

/* The reference; fails the test if it refuses. */
void swa_step_run(struct swa_step *s);

#endif
