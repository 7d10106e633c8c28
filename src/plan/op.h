/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an op is inside kiln: its public table, the checks only it knows, the constants
 * that it adds to its shape's, and how its rows map to a grid. One op_<name>.c fills one
 * of these in; each function of one that is planned is NULL.
 */
#ifndef KI_PLAN_OP_H
#define KI_PLAN_OP_H

#include <stdint.h>

#include "kiln/op_info.h"
#include "kiln/status.h"

/* A constant of the emitted source beyond the shape's own fields and kThreads. */
struct ki_constant {
    const char *name; /* as in the template: kRowThreads */
    int64_t value;
};

enum { KI_CONSTANTS_MAX = 8 };

struct ki_grid {
    uint32_t x, y;    /* blocks; x * y == 0: nothing to launch */
    uint32_t threads; /* of a block */
};

struct ki_op {
    struct kiln_op_info info;
    const char *template_name; /* "global_topk.cu"; NULL: not built yet */

    /* Demands between fields; ranges and strides are checked from the table before. May
     * be NULL. */
    enum kiln_status (*check)(const struct kiln_shape *shape, struct kiln_error *err);

    /* Writes at most KI_CONSTANTS_MAX constants, returns how many. May be NULL. */
    int (*constants)(const struct kiln_shape *shape, struct ki_constant *out);

    /* Threads of the largest block, which the template knows as kThreads. */
    int (*threads)(const struct kiln_shape *shape);

    /* Demands on a launch's arguments that the table cannot say. May be NULL. */
    enum kiln_status (*check_args)(const struct kiln_shape *shape, const void *args,
                                   struct kiln_error *err);

    /* The grid of one launch; n_sms is the device's multiprocessor count. Blocks may be
     * smaller where rows are few or many: the kernel looks at blockDim.x. */
    struct ki_grid (*grid)(const struct kiln_shape *shape, const void *args, int n_sms);

    /* The reference of one row of a launch; see reference/reference.h. */
    void (*row)(const struct kiln_shape *shape, const void *args, int64_t row);
};

/* "global_topk topk=512 topk_stride=512 ..." */
enum { KI_SHAPE_WORDS = 512 };
void ki_shape_words(enum kiln_op op, const struct kiln_shape *shape, char *out,
                    size_t size);

/* NULL where there is none. */
const struct ki_op *ki_op_get(enum kiln_op op);

/* Is the shape legal, and the op one of this kiln? */
enum kiln_status ki_op_check(enum kiln_op op, const struct kiln_shape *shape,
                             struct kiln_error *err);

/*
 * The rows of an array in a launch with these args, or in an args struct's extents;
 * counts that live in device memory cannot be read here and give -1.
 */
int64_t ki_op_rows(const struct ki_op *op, const void *args, enum kiln_extent extent);

/* The rows of a launch with these args: none reads and writes nothing. */
int64_t ki_op_launch_rows(const struct ki_op *op, const void *args);

/*
 * The rows of an array as data, so that a launch need not look for them: they are an int32 of the
 * args struct, or the first or the last part of it, as a count divides it.
 */
enum ki_row_part { KI_ROWS_ALL, KI_ROWS_FIRST, KI_ROWS_REST };
struct ki_row_source {
    size_t whole; /* offset of the int32 */
    size_t count; /* offset of the struct kiln_count; not for KI_ROWS_ALL */
    enum ki_row_part part;
};
struct ki_row_source ki_op_row_source(const struct ki_op *op, enum kiln_extent extent);

/* The rows, or the most that they can be where the count lies in device memory; what such a
 * count gives to the first part is not known, and counted as none. */
int64_t ki_op_most_rows(struct ki_row_source source, const void *args);

/* A grid in x for n rows, rows_of_block in each block. */
struct ki_grid ki_grid_of(int64_t n, int64_t rows_of_block, int threads);

/* Are the arguments of a launch or a reference complete, aligned and in range? */
enum kiln_status ki_op_check_args(const struct ki_op *op, const struct kiln_shape *shape,
                                  const void *args, struct kiln_error *err);

/* Shared demands: block_size is a multiple of dcp_interleave; dcp_rank is one of
 * dcp_world; left_visible and right_visible come together. */
enum kiln_status ki_op_check_dcp(const char *op_name, int64_t block_size,
                                 int64_t dcp_interleave, struct kiln_error *err);
enum kiln_status ki_op_check_pair(const char *op_name, const void *left_visible,
                                  const void *right_visible, struct kiln_error *err);
enum kiln_status ki_op_check_rank(const char *op_name, int64_t dcp_rank,
                                  int64_t dcp_world, struct kiln_error *err);

#endif
