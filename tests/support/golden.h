/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Texts that are kept under tests/golden/ so that a change to them shows up in review. With
 * KILN_UPDATE_GOLDEN=1 in the environment they are written anew, and the test fails all the
 * same, so that no run can pass without having compared.
 */
#ifndef TESTS_SUPPORT_GOLDEN_H
#define TESTS_SUPPORT_GOLDEN_H

#include <stddef.h>

#include "kiln/op_info.h"

struct golden_shape {
    const char *name; /* <op>-<n> */
    enum kiln_op op;
    struct kiln_shape shape;
};

enum { N_GOLDEN_SHAPES = 18 };

/* Of each op one that a deployment launches; of those with more than a field another one, with
 * odd strides, some of them with context parallelism. */
extern const struct golden_shape golden_shapes[N_GOLDEN_SHAPES];

/* Each compares byte for byte, and fails the test with the first line that differs. */

/* With tests/golden/<name><suffix>. */
void golden_check(const char *name, const char *suffix, const char *text);

/* An emitted source: the prelude with tests/golden/<name>.cu; what is behind it, the same at every
 * shape, with tests/golden/<op>.cu. */
void golden_check_source(const struct golden_shape *golden, const char *source);

#endif
