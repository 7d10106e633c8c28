/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A random call of an op, from a seed: a shape, every array with wild and edge values, and
 * counts. All memory lies in one arena with guards between, poisoned first, so that a
 * backend copies one block in and out and compares it whole: outputs, padding, inputs and
 * guards at once. Driven by the op's table; an input that it has no rule for gets small
 * numbers. Knows no backend.
 */
#ifndef TESTS_SUPPORT_RANDOM_CASE_H
#define TESTS_SUPPORT_RANDOM_CASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kiln/op_info.h"

struct random_source {
    uint64_t state;
};
uint64_t random_next(struct random_source *source);
/* In [low, high]. */
int64_t random_range(struct random_source *source, int64_t low, int64_t high);
/* True in `percent` of all calls. */
bool random_chance(struct random_source *source, int percent);

enum { RANDOM_ARGS = 24, RANDOM_ARGS_BYTES = 256, RANDOM_WHY = 1024 };

/* An op's args struct, whichever. */
union random_args {
    unsigned char bytes[RANDOM_ARGS_BYTES];
    struct kiln_global_topk_args global_topk;
    struct kiln_c128a_topk_args c128a_topk;
    struct kiln_combine_topk_swa_args combine_topk_swa;
};

/* Where an argument lies in the arena: an array, or the word of a count by address. */
struct random_array {
    bool present;
    size_t offset;
    size_t elem_bytes;
    int64_t rows, width, stride; /* stride in elements */
};

struct random_options {
    int64_t n_tokens;   /* -1: random */
    int64_t n_requests; /* and rows of a table; -1: random */
    bool device_counts; /* every count by address: a captured launch reads it anew */
};

#define RANDOM_OPTIONS_INIT                                                              \
    {                                                                                    \
        .n_tokens = -1, .n_requests = -1, .device_counts = false                         \
    }

struct random_case {
    const struct kiln_op_info *info;
    struct kiln_shape shape;
    uint64_t seed; /* of the contents */
    /* What a launch freezes; indices are the table's. */
    int64_t extents[KILN_N_EXTENTS]; /* rows of the arrays: decode and prefill at most */
    struct random_array arrays[RANDOM_ARGS];
    struct kiln_count counts[RANDOM_ARGS]; /* kind and value; by address: value to come */
    int32_t numbers[RANDOM_ARGS];
    /* What each replay reads. */
    unsigned char *arena; /* owned */
    size_t arena_bytes;
};

/* A legal shape; the same seed gives the same one. */
void random_shape(enum kiln_op op, uint64_t seed, struct kiln_shape *out);

/* Makes a case of the shape. The caller finishes it. */
void random_case_init(struct random_case *out, enum kiln_op op,
                      const struct kiln_shape *shape,
                      const struct random_options *options, uint64_t seed);
void random_case_finish(struct random_case *random);

/* Other contents and other counts by address; all that a launch freezes stays. */
void random_case_refill(struct random_case *random, uint64_t seed);

/* The args of a call whose arena lies at `base`, a host or a device address. */
void random_case_bind(const struct random_case *random, const void *base,
                      union random_args *out);

/* One element of an argument, by name; for a count its value, row 0. */
void random_case_set(struct random_case *random, const char *name, int64_t row,
                     int64_t column, int64_t value);
int64_t random_case_get(const struct random_case *random, const char *name, int64_t row,
                        int64_t column);

/* The reference on a copy of the arena, which is the caller's to free. NULL: it refused,
 * see `why`. */
unsigned char *random_case_expect(const struct random_case *random, char why[RANDOM_WHY]);

/* True when both arenas are equal, else the first difference in words. */
bool random_case_equal(const struct random_case *random, const unsigned char *got,
                       const unsigned char *expected, char why[RANDOM_WHY]);

/* Contents of the inputs; random_fill.c. */
void random_fill_inputs(struct random_case *random, struct random_source *source);
/* Values of the counts; those by value only when `frozen`, those by address only when
 * not. random_fill.c. */
void random_fill_counts(struct random_case *random, struct random_source *source,
                        bool frozen);
/* What lies at the ends of all that: random_edges.c. */
int64_t random_edge_field(struct random_source *source,
                          const struct kiln_shape_field *field);
/* Mends what fields drawn one by one seldom agree on. */
void random_edge_shape(const struct kiln_op_info *info, struct random_source *source,
                       struct kiln_shape *shape);
/* At times many tokens or requests, at most `most`; else -1. */
int64_t random_edge_tokens(struct random_source *source, int64_t most);
int64_t random_edge_requests(struct random_source *source, int64_t most);
void random_edge_values(struct random_case *random, struct random_source *source);
/* A shape's field or an argument's index by name; -1: the op has none. */
int random_arg_index(const struct kiln_op_info *info, const char *name);
int64_t random_field(const struct random_case *random, const char *name, int64_t absent);
/* Stores one element. */
void random_store(struct random_case *random, int arg, int64_t row, int64_t column,
                  int64_t value);
int64_t random_load(const struct random_case *random, const unsigned char *arena, int arg,
                    int64_t row, int64_t column);

#endif
