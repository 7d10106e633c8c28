/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Greedy: each pass tries simpler cases and keeps the first that fails, until no pass gains
 * anything. Rows go first, since every later trial is cheaper without them.
 */
#include <stdlib.h>

#include "property_shrink.h"

enum { ROUNDS = 6 };

struct shrink {
    struct property_judge judge; /* its numbers are what is left */
    struct property_case *best;
    int n_gained;
};

/* False: no trial is left. A copy may be large, so that comes first. */
static bool begin_trial(const struct shrink *shrink, struct property_case *candidate)
{
    if (shrink->judge.n_trials == 0) {
        return false;
    }
    property_case_copy(shrink->best, candidate);
    return true;
}

/* Takes the candidate; true: it is the best now. */
static bool try_case(struct shrink *shrink, struct property_case *candidate)
{
    bool is_better = property_case_is_legal(candidate);
    if (is_better) {
        shrink->judge.n_trials--;
        is_better = shrink->judge.fails(shrink->judge.context, candidate);
    }
    if (!is_better) {
        property_case_finish(candidate);
        return false;
    }
    property_case_finish(shrink->best);
    *shrink->best = *candidate;
    shrink->n_gained++;
    return true;
}

/* ---- rows */

static bool try_without_rows(struct shrink *shrink, int extent, int64_t first, int64_t n)
{
    struct property_case candidate;
    if (!begin_trial(shrink, &candidate)) {
        return false;
    }
    candidate.extents[extent] -= n;
    property_case_refit(&candidate, first);
    return try_case(shrink, &candidate);
}

static void drop_rows(struct shrink *shrink, int extent)
{
    const int64_t *n = &shrink->best->extents[extent];
    for (int64_t chunk = *n; chunk > 0; chunk /= 2) {
        int64_t first = 0;
        while (first + chunk <= *n) {
            if (!try_without_rows(shrink, extent, first, chunk)) {
                first += chunk;
            }
        }
    }
}

/* ---- arguments */

/* Is there a number between one that holds and one that fails? */
static bool far_apart(int64_t holds, int64_t fails)
{
    return holds < fails ? holds < fails - 1 : fails + 1 < holds;
}

static void drop_array(struct shrink *shrink, size_t i)
{
    struct property_case candidate;
    if (!shrink->best->arrays[i].present || !shrink->best->info->args[i].optional ||
        !begin_trial(shrink, &candidate)) {
        return;
    }
    free(candidate.arrays[i].values);
    candidate.arrays[i] = (struct property_array){.present = false};
    (void)try_case(shrink, &candidate);
}

static bool try_number(struct shrink *shrink, size_t i, bool given, int64_t value)
{
    struct property_case candidate;
    if (!begin_trial(shrink, &candidate)) {
        return false;
    }
    candidate.given[i] = given;
    candidate.numbers[i] = (int32_t)value;
    property_case_refit(&candidate, 0);
    return try_case(shrink, &candidate);
}

static void shrink_number(struct shrink *shrink, size_t i)
{
    const struct kiln_arg *arg = &shrink->best->info->args[i];
    const int32_t *value = &shrink->best->numbers[i];
    bool is_count = arg->kind == KILN_ARG_COUNT;
    if (is_count &&
        (!shrink->best->given[i] || (arg->optional && try_number(shrink, i, false, 0)))) {
        return;
    }
    int64_t holds = 0;
    if (*value == 0 || try_number(shrink, i, is_count, 0)) {
        return;
    }
    while (far_apart(holds, *value)) {
        int64_t middle = holds + (*value - holds) / 2;
        if (!try_number(shrink, i, is_count, middle)) {
            holds = middle;
        }
    }
}

static void shrink_arguments(struct shrink *shrink)
{
    for (size_t i = 0; i < shrink->best->info->n_args; i++) {
        const struct kiln_arg *arg = &shrink->best->info->args[i];
        drop_array(shrink, i);
        if (arg->kind == KILN_ARG_COUNT ||
            (arg->kind == KILN_ARG_NUMBER && arg->extent == KILN_EXTENT_NONE)) {
            shrink_number(shrink, i);
        }
    }
}

/* ---- the shape */

static bool try_field(struct shrink *shrink, size_t field, int64_t value)
{
    struct property_case candidate;
    if (value >= shrink->best->shape.fields[field] || shrink->judge.n_shapes == 0 ||
        !begin_trial(shrink, &candidate)) {
        return false;
    }
    candidate.shape.fields[field] = value;
    if (!property_case_is_legal(&candidate)) {
        property_case_finish(&candidate);
        return false;
    }
    shrink->judge.n_shapes--;
    property_case_refit(&candidate, 0);
    return try_case(shrink, &candidate);
}

/* The least that the others allow, else what a search between it and this finds. */
static void shrink_field(struct shrink *shrink, size_t field)
{
    const struct kiln_shape_field *table = &shrink->best->info->fields[field];
    const int64_t *value = &shrink->best->shape.fields[field];
    struct property_case *best = shrink->best;
    int64_t least = table->min;
    if (table->default_kind == KILN_DEFAULT_STRIDE) {
        for (size_t i = 0; i < best->info->n_args; i++) {
            const struct kiln_arg *arg = &best->info->args[i];
            int64_t width = arg->width != NULL ? arg->width(&best->shape) : 1;
            least = arg->stride_field == (int)field && width > least ? width : least;
        }
    }
    if (try_field(shrink, field, least)) {
        return;
    }
    while (far_apart(least, *value) && shrink->judge.n_shapes > 0) {
        int64_t middle = least + (*value - least) / 2;
        if (!try_field(shrink, field, middle)) {
            least = middle;
        }
    }
}

static void shrink_shape(struct shrink *shrink)
{
    for (size_t i = 0; i < shrink->best->info->n_fields; i++) {
        shrink_field(shrink, i);
    }
}

/* ---- values */

static bool is_zero(const int64_t *values, int64_t n)
{
    while (n > 0 && values[n - 1] == 0) {
        n--;
    }
    return n == 0;
}

static bool try_zeros(struct shrink *shrink, size_t array, int64_t at, int64_t n)
{
    struct property_case candidate;
    if (is_zero(shrink->best->arrays[array].values + at, n)) {
        return true;
    }
    if (!begin_trial(shrink, &candidate)) {
        return false;
    }
    for (int64_t i = 0; i < n; i++) {
        candidate.arrays[array].values[at + i] = 0;
    }
    return try_case(shrink, &candidate);
}

static bool try_value(struct shrink *shrink, size_t array, int64_t at, int64_t value)
{
    struct property_case candidate;
    if (shrink->best->arrays[array].values[at] == value ||
        !begin_trial(shrink, &candidate)) {
        return false;
    }
    candidate.arrays[array].values[at] = value;
    return try_case(shrink, &candidate);
}

static void shrink_value(struct shrink *shrink, size_t array, int64_t at)
{
    int64_t value = shrink->best->arrays[array].values[at], holds = 0;
    if (value == 0 || try_value(shrink, array, at, 0)) {
        return;
    }
    while (far_apart(holds, value)) {
        int64_t middle = holds + (value - holds) / 2;
        if (try_value(shrink, array, at, middle)) {
            value = middle;
        } else {
            holds = middle;
        }
    }
}

static void shrink_values(struct shrink *shrink, size_t array)
{
    int64_t n = shrink->best->arrays[array].rows * shrink->best->arrays[array].width;
    for (int64_t chunk = n; chunk > 0; chunk /= 2) {
        for (int64_t at = 0; at < n; at += chunk) {
            (void)try_zeros(shrink, array, at, chunk < n - at ? chunk : n - at);
        }
    }
    for (int64_t at = 0; at < n; at++) {
        shrink_value(shrink, array, at);
    }
}

void property_shrink(struct property_case *c, const struct property_judge *judge)
{
    struct shrink shrink = {.judge = *judge, .best = c, .n_gained = 1};
    for (int round = 0; round < ROUNDS && shrink.n_gained > 0; round++) {
        shrink.n_gained = 0;
        for (int extent = 0; extent < KILN_N_EXTENTS; extent++) {
            drop_rows(&shrink, extent);
        }
        shrink_arguments(&shrink);
        shrink_shape(&shrink);
        for (size_t i = 0; i < c->info->n_args; i++) {
            if (c->arrays[i].present) {
                shrink_values(&shrink, i);
            }
        }
    }
}
