/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls whose matrices have 300,000 rows of 8,192 columns, where row offsets pass 2^31
 * elements, without the 10 GB that each takes. Three bands of rows hold data: the first
 * rows, those around row 262,144, where 8,192 columns reach 2^31, and the last. All other
 * rows are inert; what the reference writes there goes to a few pages that they share.
 */
#ifndef TESTS_SUPPORT_WIDE_CALL_H
#define TESTS_SUPPORT_WIDE_CALL_H

#include "support/random_case.h"

enum {
    WIDE_ROWS = 300000,
    WIDE_STRIDE = 8192,
    WIDE_BANDS = 3,
    WIDE_BAND_ROWS = 64, /* whole blocks of every op */
};

/* One call. Arrays that may be left out are, but for is_valid_token and matrices. */
struct wide_case {
    const char *label;
    enum kiln_op op;
    struct kiln_shape shape;
    int64_t n_tokens;
    int64_t n_requests;    /* and rows of tables */
    int64_t first_request; /* where the tokens begin, if they are fewer than requests */
    int32_t n_decode;
    int32_t active_width; /* 0: absent */
};

struct wide_array {
    unsigned char *host; /* NULL: no array, or absent */
    int64_t rows, width, stride;
    size_t elem_bytes, bytes;
    bool is_banded; /* only the bands' rows have memory of their own */
};

struct wide_call {
    const struct wide_case *spec;
    const struct kiln_op_info *info;
    struct wide_array arrays[RANDOM_ARGS];
    union random_args args; /* host addresses */
    int shared;             /* the file of the pages that inert rows share */
};

/* Fills the inputs; outputs are poison where they have memory of their own. */
void wide_call_init(struct wide_call *out, const struct wide_case *spec);
void wide_call_finish(struct wide_call *call);

/* How many launches show all bands, and the first row of one of them. */
int wide_call_n_bands(const struct wide_call *call);
int64_t wide_call_first_row(const struct wide_call *call, int band);

/* The rows of array i that a launch of the band's tokens may touch: how many, from *first. */
int64_t wide_call_rows(const struct wide_call *call, size_t i, int band, int64_t *first);

unsigned char *wide_call_row(const struct wide_call *call, size_t i, int64_t row);

#endif
