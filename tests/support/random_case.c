/* SPDX-License-Identifier: Apache-2.0 */
/* Shapes, the layout of the arena, binding and comparing; random_fill.c has the values. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/random_case.h"

enum { GUARD_BYTES = 128, ALIGN_BYTES = 256, CELLS_MAX = 1 << 18 };

uint64_t random_next(struct random_source *source)
{
    uint64_t x = source->state += UINT64_C(0x9E3779B97F4A7C15);
    x = (x ^ (x >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94D049BB133111EB);
    return x ^ (x >> 31);
}

int64_t random_range(struct random_source *source, int64_t low, int64_t high)
{
    if (high <= low) {
        return low;
    }
    uint64_t span = (uint64_t)high - (uint64_t)low + 1;
    return (int64_t)((uint64_t)low + random_next(source) % span);
}

bool random_chance(struct random_source *source, int percent)
{
    return random_range(source, 1, 100) <= percent;
}

int random_arg_index(const struct kiln_op_info *info, const char *name)
{
    for (size_t i = 0; i < info->n_args; i++) {
        if (strcmp(info->args[i].name, name) == 0) {
            return (int)i;
        }
    }
    return -1;
}

int64_t random_field(const struct random_case *random, const char *name, int64_t absent)
{
    for (size_t i = 0; i < random->info->n_fields; i++) {
        if (strcmp(random->info->fields[i].name, name) == 0) {
            return random->shape.fields[i];
        }
    }
    return absent;
}

/* Values that a field is likely to have, and some that it is not. */
static int64_t pick_field(struct random_source *source,
                          const struct kiln_shape_field *field)
{
    static const struct {
        const char *name;
        int n;
        int64_t values[12];
    } known[] = {
        {"topk", 12, {0, 1, 2, 3, 17, 64, 100, 256, 512, 1000, 1024, 2048}},
        {"block_size", 10, {1, 2, 3, 16, 64, 64, 128, 256, 1536, 4352}},
        {"table_width", 8, {1, 2, 3, 7, 33, 64, 125, 500}},
        {"dcp_world", 8, {1, 1, 1, 1, 2, 3, 4, 8}},
        {"dcp_interleave", 8, {1, 1, 1, 2, 3, 16, 64, 4352}},
        {"compress_ratio", 8, {0, 1, 2, 3, 4, 4, 128, 128}},
        {"capacity", 9, {1, 3, 100, 128, 129, 256, 1024, 7936, 8192}},
        {"window", 8, {1, 2, 7, 64, 127, 128, 128, 512}},
        {"image_width", 7, {0, 0, 0, 1, 5, 64, 130}},
        {"align", 6, {1, 2, 17, 64, 128, 128}},
        {"index_width", 9, {1, 8, 17, 64, 128, 128, 192, 256, 515}},
        {"swa_width", 8, {2, 8, 12, 64, 128, 132, 133, 512}},
        {"decode_topk", 10, {0, 0, 1, 4, 16, 72, 512, 513, 1024, 3000}},
        {"swa_block_size", 8, {1, 3, 4, 64, 64, 128, 256, 4352}},
        {"swa_table_width", 6, {1, 2, 7, 22, 125, 500}},
        {"pad_req", 5, {0, 0, -1, INT32_MIN, INT32_MAX}},
    };
    if (random_chance(source, 20)) {
        return random_edge_field(source, field);
    }
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (strcmp(field->name, known[i].name) == 0) {
            return known[i].values[random_range(source, 0, known[i].n - 1)];
        }
    }
    if (field->kind != KILN_FIELD_INTEGER) {
        return random_range(source, field->min, field->max);
    }
    return field->default_kind == KILN_DEFAULT_VALUE ? field->default_value : field->min;
}

/* A stride, or a page's distance: what it is measured by, and at times some more. */
static bool follows_another(const struct kiln_shape_field *field)
{
    return field->default_kind == KILN_DEFAULT_STRIDE ||
           field->default_kind == KILN_DEFAULT_FIELD;
}

static bool try_shape(enum kiln_op op, struct random_source *source,
                      struct kiln_shape *shape)
{
    const struct kiln_op_info *info = kiln_op_info_get(op);
    uint32_t given = 0;
    memset(shape, 0, sizeof(*shape));
    for (size_t i = 0; i < info->n_fields; i++) {
        if (!follows_another(&info->fields[i])) {
            shape->fields[i] = pick_field(source, &info->fields[i]);
            given |= UINT32_C(1) << i;
        }
    }
    random_edge_shape(info, source, shape);
    if (kiln_shape_defaults(op, given, shape, NULL) != KILN_OK) {
        return false;
    }
    for (size_t i = 0; i < info->n_fields; i++) {
        static const int64_t paddings[] = {0, 0, 0, 1, 2, 3, 5, 64};
        if (follows_another(&info->fields[i])) {
            shape->fields[i] += paddings[random_range(source, 0, 7)];
        }
    }
    return kiln_shape_check(op, shape, NULL) == KILN_OK;
}

void random_shape(enum kiln_op op, uint64_t seed, struct kiln_shape *out)
{
    struct random_source source = {seed};
    int n_tries = 0;
    while (!try_shape(op, &source, out)) {
        n_tries++;
        assert(n_tries < 100000 && "no legal shape among the candidates");
    }
}

static int64_t widest_row(const struct random_case *random)
{
    int64_t widest = 1;
    for (size_t i = 0; i < random->info->n_args; i++) {
        const struct kiln_arg *arg = &random->info->args[i];
        int64_t width = arg->width != NULL ? arg->width(&random->shape) : 1;
        widest = width > widest ? width : widest;
    }
    return widest;
}

/* Few mostly; a warp has to look more than once where they are many. */
static int64_t some_requests(struct random_source *source)
{
    int64_t percent = random_range(source, 1, 100);
    if (percent <= 85) {
        return random_range(source, 0, 9);
    }
    return percent <= 97 ? random_range(source, 10, 100)
                         : random_range(source, 1000, 1100);
}

static void pick_extents(struct random_case *random, struct random_source *source,
                         const struct random_options *options)
{
    static const int64_t tokens[] = {0, 1, 1, 2, 3, 4, 5, 7, 31, 32, 33, 64, 100, 129};
    int64_t *extents = random->extents;
    int64_t most = CELLS_MAX / widest_row(random);
    extents[KILN_EXTENT_NONE] = 1;
    extents[KILN_EXTENT_TOKENS] = options->n_tokens;
    if (options->n_tokens < 0) {
        int64_t n = tokens[random_range(source, 0, 13)];
        extents[KILN_EXTENT_TOKENS] = n > most ? most : n;
    }
    /* How many rows of these a launch has may be known on the device alone. */
    extents[KILN_EXTENT_DECODE_TOKENS] = extents[KILN_EXTENT_TOKENS];
    extents[KILN_EXTENT_PREFILL_TOKENS] = extents[KILN_EXTENT_TOKENS];
    extents[KILN_EXTENT_REQUESTS] = options->n_requests;
    extents[KILN_EXTENT_TABLE_ROWS] = options->n_requests;
    if (options->n_requests < 0) {
        extents[KILN_EXTENT_REQUESTS] = some_requests(source);
        extents[KILN_EXTENT_TABLE_ROWS] = random_range(source, 0, 9);
    }
    if (random_chance(source, 60)) {
        extents[KILN_EXTENT_TABLE_ROWS] = extents[KILN_EXTENT_REQUESTS];
    }
    extents[KILN_EXTENT_REQUEST_BOUNDS] = extents[KILN_EXTENT_REQUESTS] + 1;
    extents[KILN_EXTENT_DECODE_REQUESTS] = extents[KILN_EXTENT_REQUESTS];
    extents[KILN_EXTENT_PREFILL_REQUESTS] = extents[KILN_EXTENT_REQUESTS];
    extents[KILN_EXTENT_SWA_TABLE_ROWS] = extents[KILN_EXTENT_TABLE_ROWS];
    if (options->n_requests < 0 && random_chance(source, 20)) {
        extents[KILN_EXTENT_SWA_TABLE_ROWS] = random_range(source, 0, 9);
    }
    extents[KILN_EXTENT_SPANS] =
        random_range(source, 0, random_chance(source, 75) ? 12 : 150);
    extents[KILN_EXTENT_ROWS] = extents[KILN_EXTENT_TOKENS];
    extents[KILN_EXTENT_FIRST_TOKENS] =
        random_chance(source, 50) ? 0 : random_range(source, 1, 40);
    extents[KILN_EXTENT_CONTEXT_TOKENS] =
        extents[KILN_EXTENT_FIRST_TOKENS] + extents[KILN_EXTENT_ROWS];
}

static bool is_array(const struct kiln_arg *arg)
{
    return arg->kind == KILN_ARG_INPUT || arg->kind == KILN_ARG_OUTPUT;
}

static bool pick_presence(const struct random_case *random, struct random_source *source,
                          const struct kiln_arg *arg)
{
    /* Both or neither. */
    if (strcmp(arg->name, "right_visible") == 0) {
        return random->arrays[random_arg_index(random->info, "left_visible")].present;
    }
    if (strcmp(arg->name, "is_prefill") == 0) {
        return random->arrays[random_arg_index(random->info, "workspace_start")].present;
    }
    if (strcmp(arg->name, "workspace_start") == 0 &&
        random_field(random, "dcp_world", 1) > 1) {
        return false;
    }
    if (arg->may_be_null) {
        return random_field(random, "topk", 1) > 0 || random_chance(source, 50);
    }
    if (strcmp(arg->name, "decode_compressed_indices") == 0 &&
        random_field(random, "decode_topk", 0) > 0) {
        return true;
    }
    return !arg->optional || random_chance(source, 50);
}

/* Takes room for one array behind what is laid out already. */
static void place(struct random_case *random, struct random_source *source,
                  struct random_array *array, bool misaligned)
{
    size_t start = random->arena_bytes + GUARD_BYTES;
    start = (start + ALIGN_BYTES - 1) / ALIGN_BYTES * ALIGN_BYTES;
    if (misaligned) {
        start += (size_t)random_range(source, 0, 5) * array->elem_bytes;
    }
    array->offset = start;
    random->arena_bytes =
        start + (size_t)(array->rows * array->stride) * array->elem_bytes + GUARD_BYTES;
}

static void lay_out(struct random_case *random, struct random_source *source,
                    bool device_counts)
{
    bool misaligned = random_chance(source, 50);
    for (size_t i = 0; i < random->info->n_args; i++) {
        const struct kiln_arg *arg = &random->info->args[i];
        struct random_array *array = &random->arrays[i];
        struct kiln_count *count = &random->counts[i];
        array->elem_bytes = kiln_dtype_bytes(arg->dtype);
        array->rows = 1;
        array->width = array->stride = 1;
        if (arg->kind == KILN_ARG_COUNT) {
            bool absent = arg->optional && !device_counts && random_chance(source, 30);
            bool address = device_counts || random_chance(source, 30);
            count->kind = absent    ? KILN_COUNT_ABSENT
                          : address ? KILN_COUNT_DEVICE
                                    : KILN_COUNT_VALUE;
            array->present = count->kind == KILN_COUNT_DEVICE;
        }
        if (is_array(arg)) {
            array->present = pick_presence(random, source, arg);
            array->rows = random->extents[arg->extent];
            array->width = arg->width != NULL ? arg->width(&random->shape) : 1;
            array->stride = arg->stride_field >= 0
                                ? random->shape.fields[arg->stride_field]
                                : array->width;
        }
        if (array->present) {
            place(random, source, array, misaligned);
        }
    }
}

static void pick_numbers(struct random_case *random, struct random_source *source)
{
    for (size_t i = 0; i < random->info->n_args; i++) {
        const struct kiln_arg *arg = &random->info->args[i];
        if (is_array(arg) || arg->kind == KILN_ARG_COUNT) {
            continue;
        }
        if (arg->extent != KILN_EXTENT_NONE) {
            random->numbers[i] = (int32_t)random->extents[arg->extent];
        } else if (strcmp(arg->name, "dcp_rank") == 0) {
            random->numbers[i] = (int32_t)random_range(
                source, 0, random_field(random, "dcp_world", 1) - 1);
        } else if (strcmp(arg->name, "first_token") == 0) {
            random->numbers[i] = (int32_t)random_range(
                source, -2, random->extents[KILN_EXTENT_TOKENS] + 2);
        }
    }
}

void random_case_init(struct random_case *out, enum kiln_op op,
                      const struct kiln_shape *shape,
                      const struct random_options *options, uint64_t seed)
{
    struct random_source source = {seed};
    struct random_options chosen = *options;
    memset(out, 0, sizeof(*out));
    out->info = kiln_op_info_get(op);
    out->shape = *shape;
    assert(out->info->n_args <= RANDOM_ARGS);
    assert(out->info->args_bytes <= RANDOM_ARGS_BYTES);
    if (chosen.n_tokens < 0) {
        chosen.n_tokens = random_edge_tokens(&source, CELLS_MAX / widest_row(out));
    }
    if (chosen.n_requests < 0) {
        chosen.n_requests = random_edge_requests(&source, CELLS_MAX / widest_row(out));
    }
    pick_extents(out, &source, &chosen);
    lay_out(out, &source, options->device_counts);
    pick_numbers(out, &source);
    random_fill_counts(out, &source, true);
    out->arena = malloc(out->arena_bytes);
    assert(out->arena != NULL);
    random_case_refill(out, random_next(&source));
}

void random_case_finish(struct random_case *random)
{
    free(random->arena);
    random->arena = NULL;
}

void random_case_refill(struct random_case *random, uint64_t seed)
{
    struct random_source source = {seed};
    random->seed = seed;
    for (size_t i = 0; i < random->arena_bytes; i += sizeof(uint64_t)) {
        uint64_t poison = random_next(&source);
        size_t left = random->arena_bytes - i;
        memcpy(random->arena + i, &poison, left < sizeof(poison) ? left : sizeof(poison));
    }
    random_fill_counts(random, &source, false);
    random_fill_inputs(random, &source);
    random_edge_values(random, &source);
}

void random_case_bind(const struct random_case *random, const void *base,
                      union random_args *out)
{
    memset(out, 0, sizeof(*out));
    for (size_t i = 0; i < random->info->n_args; i++) {
        const struct kiln_arg *arg = &random->info->args[i];
        const struct random_array *array = &random->arrays[i];
        unsigned char *member = out->bytes + arg->offset;
        uintptr_t address = array->present ? (uintptr_t)base + array->offset : 0;
        struct kiln_count count = random->counts[i];
        if (is_array(arg)) {
            memcpy(member, &address, sizeof(address));
        } else if (arg->kind == KILN_ARG_COUNT) {
            count.address = (const int32_t *)address;
            count.value = count.kind == KILN_COUNT_VALUE ? count.value : 0;
            memcpy(member, &count, sizeof(count));
        } else {
            memcpy(member, &random->numbers[i], sizeof(random->numbers[i]));
        }
    }
}

static unsigned char *cell(const struct random_case *random, unsigned char *arena,
                           int arg, int64_t row, int64_t column)
{
    const struct random_array *array = &random->arrays[arg];
    assert(array->present && row >= 0 && row < array->rows);
    assert(column >= 0 && column < array->stride);
    return arena + array->offset +
           (size_t)(row * array->stride + column) * array->elem_bytes;
}

void random_store(struct random_case *random, int arg, int64_t row, int64_t column,
                  int64_t value)
{
    /* The low bytes of a little-endian word are its narrower forms. */
    memcpy(cell(random, random->arena, arg, row, column), &value,
           random->arrays[arg].elem_bytes);
}

int64_t random_load(const struct random_case *random, const unsigned char *arena, int arg,
                    int64_t row, int64_t column)
{
    const struct random_array *array = &random->arrays[arg];
    const unsigned char *at = arena + array->offset +
                              (size_t)(row * array->stride + column) * array->elem_bytes;
    int64_t wide = 0;
    int32_t word = 0;
    if (array->elem_bytes == sizeof(word)) {
        memcpy(&word, at, sizeof(word));
        return word;
    }
    memcpy(&wide, at, array->elem_bytes);
    return wide;
}

void random_case_set(struct random_case *random, const char *name, int64_t row,
                     int64_t column, int64_t value)
{
    int arg = random_arg_index(random->info, name);
    assert(arg >= 0);
    random->counts[arg].value = (int32_t)value;
    if (random->arrays[arg].present) {
        random_store(random, arg, row, column, value);
    }
}

int64_t random_case_get(const struct random_case *random, const char *name, int64_t row,
                        int64_t column)
{
    int arg = random_arg_index(random->info, name);
    assert(arg >= 0);
    return random_load(random, random->arena, arg, row, column);
}

unsigned char *random_case_expect(const struct random_case *random, char why[RANDOM_WHY])
{
    struct kiln_error err = {.status = KILN_OK};
    union random_args args;
    unsigned char *expected = malloc(random->arena_bytes);
    assert(expected != NULL);
    memcpy(expected, random->arena, random->arena_bytes);
    random_case_bind(random, expected, &args);
    if (kiln_reference(random->info->op, &random->shape, &args, &err) != KILN_OK) {
        snprintf(why, RANDOM_WHY, "the reference refused: %.900s", err.message);
        free(expected);
        return NULL;
    }
    return expected;
}

/* Op, shape and what is frozen, in words. */
static int describe(const struct random_case *random, char *text, size_t size)
{
    int used = snprintf(text, size, "%s seed %llu:", random->info->name,
                        (unsigned long long)random->seed);
    for (size_t i = 0; i < random->info->n_fields; i++) {
        used +=
            snprintf(text + used, size - (size_t)used, " %s=%lld",
                     random->info->fields[i].name, (long long)random->shape.fields[i]);
    }
    for (size_t i = 0; i < random->info->n_args; i++) {
        const struct kiln_arg *arg = &random->info->args[i];
        if (is_array(arg)) {
            continue;
        }
        int64_t value = random->arrays[i].present
                            ? random_load(random, random->arena, (int)i, 0, 0)
                        : arg->kind == KILN_ARG_COUNT ? random->counts[i].value
                                                      : random->numbers[i];
        const char *absent =
            arg->kind == KILN_ARG_COUNT && random->counts[i].kind == KILN_COUNT_ABSENT
                ? "(absent)"
                : "";
        used += snprintf(text + used, size - (size_t)used, " %s=%lld%s", arg->name,
                         (long long)value, absent);
    }
    return used;
}

/* The argument whose rows hold the byte, or -1: a guard. */
static int owner_of(const struct random_case *random, size_t at)
{
    for (size_t i = 0; i < random->info->n_args; i++) {
        const struct random_array *array = &random->arrays[i];
        size_t size = (size_t)(array->rows * array->stride) * array->elem_bytes;
        if (array->present && at >= array->offset && at < array->offset + size) {
            return (int)i;
        }
    }
    return -1;
}

bool random_case_equal(const struct random_case *random, const unsigned char *got,
                       const unsigned char *expected, char why[RANDOM_WHY])
{
    size_t at = 0;
    if (memcmp(got, expected, random->arena_bytes) == 0) {
        return true;
    }
    while (got[at] == expected[at]) {
        at++;
    }
    int used = describe(random, why, RANDOM_WHY / 2 + RANDOM_WHY / 4);
    int arg = owner_of(random, at);
    if (arg < 0) {
        snprintf(why + used, RANDOM_WHY - (size_t)used, ": a guard at byte %zu changed",
                 at);
        return false;
    }
    const struct random_array *array = &random->arrays[arg];
    int64_t index = (int64_t)((at - array->offset) / array->elem_bytes);
    int64_t row = index / array->stride, column = index % array->stride;
    snprintf(why + used, RANDOM_WHY - (size_t)used,
             ": %s[%lld, %lld] of width %lld is "
             "%lld, expected %lld",
             random->info->args[arg].name, (long long)row, (long long)column,
             (long long)array->width,
             (long long)random_load(random, got, arg, row, column),
             (long long)random_load(random, expected, arg, row, column));
    return false;
}
