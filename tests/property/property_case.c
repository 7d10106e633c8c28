/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes are settled by the command line's own rules, so that its case files say the same. */
#include <assert.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "property_case.h"

static void *get_memory(size_t n, size_t bytes)
{
    void *memory = calloc(n + 1, bytes);
    if (memory == NULL) {
        (void)fputs("property: out of memory\n", stderr);
        abort();
    }
    return memory;
}

static bool is_input(const struct kiln_arg *arg)
{
    return arg->kind == KILN_ARG_INPUT;
}

/* A number that says how many there are of something. */
static bool states_extent(const struct kiln_arg *arg)
{
    return arg->kind == KILN_ARG_EXTENT ||
           (arg->kind == KILN_ARG_NUMBER && arg->extent != KILN_EXTENT_NONE);
}

/* A call without arrays that knows how many rows and columns they have. */
static void settle(const struct property_case *c, struct cli_call *out)
{
    bool is_made = cli_call_init(out, c->info, &c->shape);
    assert(is_made);
    (void)is_made;
    out->variant = c->variant;
    memcpy(out->extents, c->extents, sizeof(out->extents));
    for (size_t i = 0; i < c->info->n_args; i++) {
        const struct kiln_arg *arg = &c->info->args[i];
        if (arg->kind == KILN_ARG_COUNT && c->given[i]) {
            out->arrays[i].count =
                (struct kiln_count){.kind = KILN_COUNT_VALUE, .value = c->numbers[i]};
        } else if (arg->kind == KILN_ARG_NUMBER && arg->extent == KILN_EXTENT_NONE) {
            cli_call_set_number(out, i, c->numbers[i]);
        }
    }
    cli_call_settle(out);
}

/* ---- from a random case */

static void take_array(const struct random_case *random, int arg,
                       struct property_array *array)
{
    array->values = get_memory((size_t)(array->rows * array->width), sizeof(int64_t));
    array->present = true;
    /* what may be null has to be in a case file all the same */
    for (int64_t row = 0; random->arrays[arg].present && row < array->rows; row++) {
        for (int64_t column = 0; column < array->width; column++) {
            array->values[row * array->width + column] =
                random_load(random, random->arena, arg, row, column);
        }
    }
}

void property_case_from(const struct random_case *random, struct property_case *out)
{
    struct cli_call call;
    *out = (struct property_case){.info = random->info, .shape = random->shape};
    for (int i = 0; i < KILN_N_EXTENTS; i++) {
        out->extents[i] = -1;
    }
    for (size_t i = 0; i < out->info->n_args; i++) {
        const struct kiln_arg *arg = &out->info->args[i];
        if (states_extent(arg)) {
            out->extents[arg->extent] = random->extents[arg->extent];
        }
        out->given[i] =
            arg->kind == KILN_ARG_COUNT && random->counts[i].kind != KILN_COUNT_ABSENT;
        out->numbers[i] =
            arg->kind == KILN_ARG_COUNT ? random->counts[i].value : random->numbers[i];
    }
    settle(out, &call);
    for (size_t i = 0; i < out->info->n_args; i++) {
        const struct kiln_arg *arg = &out->info->args[i];
        if (is_input(arg) && (random->arrays[i].present || arg->may_be_null)) {
            out->arrays[i].rows = call.extents[arg->extent];
            out->arrays[i].width = call.arrays[i].width;
            take_array(random, (int)i, &out->arrays[i]);
        }
    }
    cli_call_finish(&call);
}

void property_case_copy(const struct property_case *from, struct property_case *out)
{
    *out = *from;
    for (size_t i = 0; i < from->info->n_args; i++) {
        size_t n = (size_t)(from->arrays[i].rows * from->arrays[i].width);
        if (from->arrays[i].present) {
            out->arrays[i].values = get_memory(n, sizeof(int64_t));
            memcpy(out->arrays[i].values, from->arrays[i].values, n * sizeof(int64_t));
        }
    }
}

void property_case_finish(struct property_case *c)
{
    for (size_t i = 0; i < RANDOM_ARGS; i++) {
        free(c->arrays[i].values);
        c->arrays[i] = (struct property_array){.present = false};
    }
}

/* ---- sizes */

static void resize(struct property_array *array, int64_t rows, int64_t width,
                   int64_t first)
{
    struct property_array old = *array;
    int64_t lost = old.rows > rows ? old.rows - rows : 0;
    int64_t columns = width < old.width ? width : old.width;
    array->rows = rows;
    array->width = width;
    array->values = get_memory((size_t)(rows * width), sizeof(int64_t));
    for (int64_t row = 0; row < rows; row++) {
        int64_t from = row < first ? row : row + lost;
        if (from < old.rows) {
            memcpy(array->values + row * width, old.values + from * old.width,
                   (size_t)columns * sizeof(int64_t));
        }
    }
    free(old.values);
}

void property_case_refit(struct property_case *c, int64_t first)
{
    struct cli_call call;
    settle(c, &call);
    for (size_t i = 0; i < c->info->n_args; i++) {
        int64_t rows = call.extents[c->info->args[i].extent];
        int64_t width = call.arrays[i].width;
        struct property_array *array = &c->arrays[i];
        if (array->present && (array->rows != rows || array->width != width)) {
            resize(array, rows, width, first);
        }
    }
    cli_call_finish(&call);
}

int64_t property_case_size(const struct property_case *c)
{
    int64_t size = 0;
    for (size_t i = 0; i < c->info->n_args; i++) {
        size += c->given[i] ? 1 : 0;
        size += c->arrays[i].present ? c->arrays[i].rows * c->arrays[i].width : 0;
    }
    return size;
}

/* ---- contracts */

static const struct property_array *array_of(const struct property_case *c,
                                             const char *name)
{
    int arg = random_arg_index(c->info, name);
    return arg >= 0 && c->arrays[arg].present ? &c->arrays[arg] : NULL;
}

static int64_t number_of(const struct property_case *c, const char *name)
{
    int arg = random_arg_index(c->info, name);
    return arg >= 0 ? c->numbers[arg] : 0;
}

static bool ascends(const struct property_array *array)
{
    for (int64_t i = 0; array != NULL && i < array->rows; i++) {
        if (array->values[i] < (i > 0 ? array->values[i - 1] : 0)) {
            return false;
        }
    }
    return true;
}

static bool gathers_within(const struct property_case *c)
{
    const struct property_array *lens = array_of(c, "gather_lens");
    int64_t room = number_of(c, "workspace_rows") - number_of(c, "swa_base");
    if (lens == NULL || random_arg_index(c->info, "workspace_rows") < 0) {
        return true;
    }
    for (int64_t i = 0; i < lens->rows; i++) {
        if (lens->values[i] > room) {
            return false;
        }
    }
    return room >= 0 && number_of(c, "swa_base") >= 0;
}

bool property_case_is_legal(const struct property_case *c)
{
    return kiln_shape_check(c->info->op, &c->shape, NULL) == KILN_OK &&
           ascends(array_of(c, "query_start_loc")) && gathers_within(c);
}

/* ---- a call */

void property_case_call(const struct property_case *c, struct cli_call *out)
{
    settle(c, out);
    for (size_t i = 0; i < c->info->n_args; i++) {
        const struct kiln_arg *arg = &c->info->args[i];
        const struct property_array *array = &c->arrays[i];
        if (arg->kind != KILN_ARG_OUTPUT && !array->present) {
            continue;
        }
        const char *fault = cli_call_add_array(out, i);
        assert(fault == NULL);
        (void)fault;
        for (int64_t row = 0; is_input(arg) && row < array->rows; row++) {
            for (int64_t column = 0; column < array->width; column++) {
                cli_array_set(&out->arrays[i], row, column,
                              array->values[row * array->width + column]);
            }
        }
    }
    cli_call_bind_host(out);
}

/* ---- a case file */

static json_t *number_or_null(const struct cli_array *array, int64_t row, int64_t column)
{
    return array->arg->kind == KILN_ARG_OUTPUT && cli_array_is_poison(array, row, column)
               ? json_null()
               : json_integer(cli_array_get(array, row, column));
}

static json_t *list_of(const struct cli_array *array)
{
    json_t *list = json_array();
    for (int64_t row = 0; row < array->rows; row++) {
        json_t *columns = array->arg->width != NULL ? json_array() : list;
        for (int64_t column = 0; column < array->width; column++) {
            json_array_append_new(columns, number_or_null(array, row, column));
        }
        if (columns != list) {
            json_array_append_new(list, columns);
        }
    }
    return list;
}

static json_t *shape_of(const struct property_case *c)
{
    json_t *shape = json_object();
    for (size_t i = 0; i < c->info->n_fields; i++) {
        const struct kiln_shape_field *field = &c->info->fields[i];
        int64_t value = c->shape.fields[i];
        json_t *item = field->kind == KILN_FIELD_BOOLEAN ? json_boolean(value != 0)
                       : field->kind == KILN_FIELD_CHOICE
                           ? json_string(field->choices[value])
                           : json_integer(value);
        json_object_set_new(shape, field->name, item);
    }
    return shape;
}

/* An argument as a case file gives it; NULL: it does not. */
static json_t *given_of(const struct property_case *c, const struct cli_call *call,
                        size_t i)
{
    const struct kiln_arg *arg = &c->info->args[i];
    if (c->arrays[i].present) {
        return list_of(&call->arrays[i]);
    }
    if (arg->kind == KILN_ARG_NUMBER && states_extent(arg)) {
        return json_integer(c->extents[arg->extent]);
    }
    return arg->kind == KILN_ARG_NUMBER || c->given[i] ? json_integer(c->numbers[i])
                                                       : NULL;
}

char *property_case_text(const struct property_case *c, const struct cli_call *expected)
{
    json_t *root = json_object(), *args = json_object(), *expect = json_object();
    for (size_t i = 0; i < c->info->n_args; i++) {
        const struct kiln_arg *arg = &c->info->args[i];
        json_t *given = given_of(c, expected, i);
        if (given != NULL) {
            json_object_set_new(args, arg->name, given);
        } else if (arg->kind == KILN_ARG_OUTPUT) {
            json_object_set_new(expect, arg->name, list_of(&expected->arrays[i]));
        }
    }
    json_object_set_new(root, "op", json_string(c->info->name));
    json_object_set_new(root, "shape", shape_of(c));
    json_object_set_new(root, "args", args);
    json_object_set_new(root, "expect", expect);
    char *text = json_dumps(root, JSON_COMPACT | JSON_PRESERVE_ORDER);
    json_decref(root);
    assert(text != NULL);
    return text;
}
