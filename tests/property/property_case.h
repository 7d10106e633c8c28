/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One call of an op as plain numbers: what a case file says, in a form that can be made
 * smaller. Built from a random case; becomes a laid-out call or the text of a case file. Knows
 * ops by their tables alone.
 */
#ifndef PROPERTY_CASE_H
#define PROPERTY_CASE_H

#include <stdbool.h>
#include <stdint.h>

#include "case_layout.h"
#include "support/random_case.h"

/* An input; all zeros: absent. */
struct property_array {
    bool present;
    int64_t rows, width;
    int64_t *values; /* rows * width; owned */
};

struct property_case {
    const struct kiln_op_info *info;
    struct kiln_shape shape;
    uint32_t variant;                /* of the kernel: bits of enum kiln_variant */
    int64_t extents[KILN_N_EXTENTS]; /* those that an argument states; -1: it follows */
    struct property_array arrays[RANDOM_ARGS];
    bool given[RANDOM_ARGS]; /* counts */
    int32_t numbers[RANDOM_ARGS];
};

void property_case_from(const struct random_case *random, struct property_case *out);
void property_case_copy(const struct property_case *from, struct property_case *out);
void property_case_finish(struct property_case *c);

/*
 * Gives every array the rows and columns that shape, extents and counts ask for now. One that
 * shrinks loses the rows from `first` on, one that grows gets zeros at its end.
 */
void property_case_refit(struct property_case *c, int64_t first);

/* Does a caller's part of the contract hold? What it leaves open, kernels may do as they like
 * with. */
bool property_case_is_legal(const struct property_case *c);

/* Numbers that a case file has to hold, arrays' elements and all. */
int64_t property_case_size(const struct property_case *c);

/* The call, its outputs poisoned. The caller finishes it. */
void property_case_call(const struct property_case *c, struct cli_call *out);

/* The text of a case file that expects what the outputs of `expected` hold. Owner: the
 * caller's, for free. */
char *property_case_text(const struct property_case *c, const struct cli_call *expected);

#endif
