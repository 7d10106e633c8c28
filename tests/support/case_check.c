/* SPDX-License-Identifier: Apache-2.0 */
/* The given cases of an op against its reference, by the op's table. */
#include <stdarg.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "plan/op.h"
#include "support/case_check.h"
#include "support/data_file.h"

enum { ARRAYS_MAX = 16, ARGS_MAX = 512, POISON = 0xa5 };

struct array {
    const struct kiln_arg *arg;
    unsigned char *data; /* owned */
    int64_t rows, width, stride;
};

struct run {
    const char *name; /* of the file */
    const struct ki_op *op;
    json_t *root; /* owned */
    struct kiln_shape shape;
    union {
        unsigned char bytes[ARGS_MAX];
        int64_t align;
    } args;
    struct array arrays[ARRAYS_MAX];
    size_t n_arrays;
};

static int64_t field_value(const struct kiln_shape_field *field, const json_t *value)
{
    int64_t choice = 0;

    if (field->kind == KILN_FIELD_BOOLEAN) {
        return json_is_true(value);
    }
    if (field->kind == KILN_FIELD_INTEGER) {
        return json_integer_value(value);
    }
    while (strcmp(field->choices[choice], json_string_value(value)) != 0) {
        choice++;
        assert_non_null(field->choices[choice]);
    }
    return choice;
}

static void read_shape(struct run *run)
{
    const struct kiln_op_info *info = &run->op->info;
    const json_t *shape = json_object_get(run->root, "shape");
    uint32_t given = 0;

    for (size_t i = 0; i < info->n_fields; i++) {
        const json_t *value = json_object_get(shape, info->fields[i].name);
        if (value != NULL) {
            run->shape.fields[i] = field_value(&info->fields[i], value);
            given |= (uint32_t)1 << i;
        }
    }
    assert_int_equal(kiln_shape_defaults(info->op, given, &run->shape, NULL), KILN_OK);
    assert_int_equal(kiln_shape_check(info->op, &run->shape, NULL), KILN_OK);
}

static const json_t *given(const struct run *run, const char *arg)
{
    return json_object_get(json_object_get(run->root, "args"), arg);
}

/* What an extent counts, from the first list that has so many rows. */
static int64_t extent_of(const struct run *run, enum kiln_extent extent)
{
    for (size_t i = 0; i < run->op->info.n_args; i++) {
        const struct kiln_arg *arg = &run->op->info.args[i];
        const json_t *list = given(run, arg->name);
        if (arg->kind == KILN_ARG_INPUT && arg->extent == extent && list != NULL) {
            return (int64_t)json_array_size(list);
        }
        if (extent == KILN_EXTENT_REQUESTS && arg->extent == KILN_EXTENT_REQUEST_BOUNDS) {
            return (int64_t)json_array_size(list) - 1;
        }
    }
    return json_integer_value(given(run, "num_tokens"));
}

static void put(struct run *run, const struct kiln_arg *arg, const void *value,
                size_t size)
{
    assert_true(arg->offset + size <= ARGS_MAX);
    memcpy(run->args.bytes + arg->offset, value, size);
}

static void read_number(struct run *run, const struct kiln_arg *arg)
{
    const json_t *value = given(run, arg->name);
    int32_t number = (int32_t)json_integer_value(value);
    struct kiln_count count = {.value = number, .kind = KILN_COUNT_VALUE};

    if (arg->kind == KILN_ARG_EXTENT || arg->extent == KILN_EXTENT_TOKENS) {
        number = (int32_t)extent_of(run, arg->extent);
    }
    if (arg->kind == KILN_ARG_COUNT && value != NULL) {
        put(run, arg, &count, sizeof(count));
    }
    if (arg->kind != KILN_ARG_COUNT) {
        put(run, arg, &number, sizeof(number));
    }
}

static void set(struct array *array, int64_t row, int64_t column, int64_t value)
{
    size_t size = kiln_dtype_bytes(array->arg->dtype);

    memcpy(array->data + (size_t)(row * array->stride + column) * size, &value, size);
}

static int64_t get(const struct array *array, int64_t row, int64_t column)
{
    const unsigned char *at = array->data + (size_t)(row * array->stride + column) *
                                                kiln_dtype_bytes(array->arg->dtype);
    int32_t small;
    int64_t large;

    if (array->arg->dtype == KILN_U8) {
        return *at;
    }
    memcpy(&small, at, sizeof(small));
    if (array->arg->dtype == KILN_I32) {
        return small;
    }
    memcpy(&large, at, sizeof(large));
    return large;
}

static const json_t *element(const struct array *array, const json_t *list, int64_t row,
                             int64_t column)
{
    const json_t *value = json_array_get(list, (size_t)row);

    return array->arg->width == NULL ? value : json_array_get(value, (size_t)column);
}

static void make_array(struct run *run, const struct kiln_arg *arg)
{
    const json_t *list = given(run, arg->name);
    struct array *array = &run->arrays[run->n_arrays];
    size_t size;

    if (arg->kind == KILN_ARG_INPUT && list == NULL) {
        return;
    }
    assert_true(run->n_arrays++ < ARRAYS_MAX);
    array->arg = arg;
    array->rows = list != NULL ? (int64_t)json_array_size(list)
                               : ki_op_rows(run->op, run->args.bytes, arg->extent);
    array->width = arg->width != NULL ? arg->width(&run->shape) : 1;
    array->stride =
        arg->stride_field < 0 ? array->width : run->shape.fields[arg->stride_field];
    size = (size_t)(array->rows * array->stride) * kiln_dtype_bytes(arg->dtype);
    array->data = malloc(size + (size == 0));
    assert_non_null(array->data);
    memset(array->data, POISON, size);
    for (int64_t r = 0; list != NULL && r < array->rows; r++) {
        for (int64_t c = 0; c < array->width; c++) {
            set(array, r, c, json_integer_value(element(array, list, r, c)));
        }
    }
    put(run, arg, &array->data, sizeof(array->data));
}

/* null and the padding of a row must still be poison. */
static void compare(const struct run *run, const struct array *array)
{
    const json_t *list =
        json_object_get(json_object_get(run->root, "expect"), array->arg->name);
    int64_t poison = 0;

    memset(&poison, POISON, kiln_dtype_bytes(array->arg->dtype));
    poison = array->arg->dtype == KILN_I32 ? (int32_t)poison : poison;
    assert_int_equal(json_array_size(list), array->rows);
    for (int64_t r = 0; r < array->rows; r++) {
        for (int64_t c = 0; c < array->stride; c++) {
            const json_t *value =
                c < array->width ? element(array, list, r, c) : json_null();
            int64_t want = json_is_integer(value) ? json_integer_value(value) : poison;
            if (get(array, r, c) != want) {
                fail_msg("%s: %s[%lld, %lld] is %lld, expected %lld", run->name,
                         array->arg->name, (long long)r, (long long)c,
                         (long long)get(array, r, c), (long long)want);
            }
        }
    }
}

void case_check(const char *op, size_t i)
{
    struct run run = {.n_arrays = 0};
    char name[64];
    struct kiln_error err = {0};

    (void)snprintf(name, sizeof(name), "%s-100-%03zu.json", op, i);
    run.name = name;
    run.op = ki_op_get(kiln_op_info_by_name(op)->op);
    run.root = data_file_json("cases", name);
    read_shape(&run);
    for (size_t a = 0; a < run.op->info.n_args; a++) {
        if (run.op->info.args[a].kind >= KILN_ARG_NUMBER) {
            read_number(&run, &run.op->info.args[a]);
        }
    }
    for (size_t a = 0; a < run.op->info.n_args; a++) {
        if (run.op->info.args[a].kind < KILN_ARG_NUMBER) {
            make_array(&run, &run.op->info.args[a]);
        }
    }

    if (kiln_reference(run.op->info.op, &run.shape, run.args.bytes, &err) != KILN_OK) {
        fail_msg("%s: %s", name, err.message);
    }

    for (size_t a = 0; a < run.n_arrays; a++) {
        if (run.arrays[a].arg->kind == KILN_ARG_OUTPUT) {
            compare(&run, &run.arrays[a]);
        }
        free(run.arrays[a].data);
    }
    json_decref(run.root);
}
