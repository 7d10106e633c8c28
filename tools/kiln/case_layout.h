/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The arguments of one call in host memory: each array is rows at the shape's stride,
 * between two guards, and every byte that nobody set holds a poison that no output can
 * be.
 */
#ifndef CLI_CASE_LAYOUT_H
#define CLI_CASE_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kiln/op_info.h"
#include "kiln/report.h"

/* Of every image, before and after the rows; keeps their alignment. */
enum { CLI_GUARD_BYTES = 256 };

/* One argument, which may be an array. */
struct cli_array {
    const struct kiln_arg *arg;
    struct kiln_count count;     /* KILN_ARG_COUNT: what was given */
    int64_t rows, width, stride; /* elements; a vector is one column at stride 1 */
    size_t elem_bytes;
    unsigned char *image; /* guard, rows, guard; owned; NULL: the array is absent */
    size_t image_bytes;
};

struct cli_call {
    const struct kiln_op_info *info;
    struct kiln_shape shape;
    uint32_t variant; /* bits of enum kiln_variant: of the kernel that runs it */
    int64_t extents[KILN_N_EXTENTS]; /* -1: not known yet */
    struct cli_array *arrays;        /* one per argument of the op; owned */
    unsigned char *args;             /* the op's args struct; owned */
    uint64_t total_bytes;            /* of all images */
    struct kiln_report *report; /* where a checked call reports; owned; NULL: nowhere */
    uint32_t report_capacity;   /* as it was made, whatever a kernel did to it */
};

/* All absent. False: out of memory. cli_call_finish also takes all zeros. */
bool cli_call_init(struct cli_call *call, const struct kiln_op_info *info,
                   const struct kiln_shape *shape);
void cli_call_finish(struct cli_call *call);

/* Derive the extents that follow from others, once those are known, and every array's
 * rows. */
void cli_call_settle(struct cli_call *call);

/* Make the image of array i, once settled. NULL, or why it cannot be. */
const char *cli_call_add_array(struct cli_call *call, size_t i);

/* Writes into the args struct. */
void cli_call_set_number(struct cli_call *call, size_t i, int32_t value);
void cli_call_set_count(struct cli_call *call, size_t i, const struct kiln_count *count);
void cli_call_set_address(struct cli_call *call, size_t i, const void *address);
void cli_call_set_report(struct cli_call *call, const void *address);

/* Give the call an empty report of that many entries, in place of the one it has. NULL, or
 * why it cannot be. */
const char *cli_call_add_report(struct cli_call *call, uint32_t capacity);
size_t cli_call_report_bytes(const struct cli_call *call);

/* Write the extents, the counts as given and the host address of every present array and of
 * the report into the args struct. */
void cli_call_bind_host(struct cli_call *call);

/* An input or an output, not a number or a count. */
bool cli_arg_is_array(const struct kiln_arg *arg);

bool cli_dtype_holds(enum kiln_dtype dtype, int64_t value);
const char *cli_dtype_name(enum kiln_dtype dtype);
int64_t cli_array_get(const struct cli_array *array, int64_t row, int64_t column);
void cli_array_set(struct cli_array *array, int64_t row, int64_t column, int64_t value);
bool cli_array_is_poison(const struct cli_array *array, int64_t row, int64_t column);

/* As before a launch: every output is poison, the report is empty. */
void cli_call_clear(struct cli_call *call);

/* Find a byte outside the outputs' rows that is no longer poison; `buf` then says
 * where. */
bool cli_call_find_touched(const struct cli_call *call, char *buf, size_t size_bytes);

#endif
