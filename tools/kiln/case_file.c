/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON case -> typed arrays. Everything that a case may hold follows from the op's
 * table; no op is named here. Each function reports what it finds wrong and returns the
 * exit status.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "case_file.h"
#include "json_tools.h"
#include "report.h"
#include "shape_text.h"
#include "text_file.h"

/* What a case gives under "args". */
static bool is_given(const struct kiln_arg *arg)
{
    return arg->kind == KILN_ARG_INPUT || arg->kind == KILN_ARG_NUMBER ||
           arg->kind == KILN_ARG_COUNT;
}

static bool is_output(const struct kiln_arg *arg)
{
    return arg->kind == KILN_ARG_OUTPUT;
}

static bool has_arg(const struct kiln_op_info *info, const char *name,
                    bool (*wanted)(const struct kiln_arg *arg))
{
    for (size_t i = 0; i < info->n_args; i++) {
        if (wanted(&info->args[i]) && strcmp(info->args[i].name, name) == 0) {
            return true;
        }
    }
    return false;
}

static bool is_input_key(const void *info, const char *key)
{
    return has_arg(info, key, is_given);
}

static bool is_output_key(const void *info, const char *key)
{
    return has_arg(info, key, is_output);
}

static bool is_root_key(const void *unused, const char *key)
{
    (void)unused;
    return strcmp(key, "op") == 0 || strcmp(key, "shape") == 0 ||
           strcmp(key, "args") == 0 || strcmp(key, "expect") == 0;
}

static int report_stranger(const struct cli_case *c, const char *where, const char *name,
                           bool (*wanted)(const struct kiln_arg *arg))
{
    const struct kiln_op_info *info = c->call.info;
    char names[1024] = "";

    for (size_t i = 0; i < info->n_args; i++) {
        if (wanted(&info->args[i])) {
            cli_append(names, sizeof names, "%s%s", names[0] == '\0' ? "" : ", ",
                       info->args[i].name);
        }
    }
    return cli_failed("%s: %s.%s: unknown field; %s has %s", c->path, where, name,
                      info->name, names);
}

/* ---- numbers and counts */

static int read_int32(const struct cli_case *c, const char *name, const json_t *value,
                      int32_t *out)
{
    if (!json_is_integer(value)) {
        return cli_failed("%s: args.%s: expected an integer, got %s", c->path, name,
                          cli_json_kind(value));
    }
    json_int_t number = json_integer_value(value);
    if (!cli_dtype_holds(KILN_I32, number)) {
        return cli_failed("%s: args.%s: %" JSON_INTEGER_FORMAT " does not fit int32",
                          c->path, name, number);
    }
    *out = (int32_t)number;
    return CLI_DONE;
}

static int read_number(struct cli_case *c, size_t i, const json_t *value)
{
    const struct kiln_arg *arg = &c->call.info->args[i];
    int32_t number = 0;
    int status = read_int32(c, arg->name, value, &number);

    if (status != CLI_DONE) {
        return status;
    }
    if (arg->kind == KILN_ARG_COUNT) {
        c->call.arrays[i].count =
            (struct kiln_count){.kind = KILN_COUNT_VALUE, .value = number};
        return CLI_DONE;
    }
    if (arg->extent != KILN_EXTENT_NONE) {
        if (number < 0) {
            return cli_failed("%s: args.%s: %d, expected 0 or more", c->path, arg->name,
                              (int)number);
        }
        c->call.extents[arg->extent] = number;
    }
    cli_call_set_number(&c->call, i, number);
    return CLI_DONE;
}

static int read_numbers(struct cli_case *c, const json_t *args)
{
    const struct kiln_op_info *info = c->call.info;

    for (size_t i = 0; i < info->n_args; i++) {
        const json_t *value = json_object_get(args, info->args[i].name);
        int status = CLI_DONE;

        if (is_given(&info->args[i]) && !cli_arg_is_array(&info->args[i]) &&
            value != NULL) {
            status = read_number(c, i, value);
        }
        if (status != CLI_DONE) {
            return status;
        }
    }
    return CLI_DONE;
}

/* ---- extents */

/* The first list of an extent decides it, unless a number has. */
static int learn_extent(struct cli_case *c, const struct kiln_arg *arg,
                        const json_t *list)
{
    int64_t *extents = c->call.extents;
    int64_t len = (int64_t)json_array_size(list);

    if (!json_is_array(list)) {
        return cli_failed("%s: args.%s: expected a list, got %s", c->path, arg->name,
                          cli_json_kind(list));
    }
    if (len > INT32_MAX) {
        return cli_failed("%s: args.%s: longer than 2^31-1", c->path, arg->name);
    }
    if (arg->extent == KILN_EXTENT_REQUEST_BOUNDS && len == 0) {
        return cli_failed("%s: args.%s: empty, expected one element more than there are "
                          "requests",
                          c->path, arg->name);
    }
    if (arg->extent == KILN_EXTENT_REQUEST_BOUNDS && extents[KILN_EXTENT_REQUESTS] < 0) {
        extents[KILN_EXTENT_REQUESTS] = len - 1;
    }
    if (extents[arg->extent] < 0) {
        extents[arg->extent] = len;
    }
    return CLI_DONE;
}

static int learn_extents(struct cli_case *c, const json_t *args)
{
    const struct kiln_op_info *info = c->call.info;

    for (size_t i = 0; i < info->n_args; i++) {
        const struct kiln_arg *arg = &info->args[i];
        const json_t *value = json_object_get(args, arg->name);

        if (!is_given(arg)) {
            continue;
        }
        if (value == NULL && !arg->optional) {
            return cli_failed("%s: args.%s: missing, %s needs it", c->path, arg->name,
                              info->name);
        }
        if (value == NULL || !cli_arg_is_array(arg)) {
            continue;
        }
        int status = learn_extent(c, arg, value);
        if (status != CLI_DONE) {
            return status;
        }
    }
    cli_call_settle(&c->call);
    return CLI_DONE;
}

/* ---- arrays */

/* What a list belongs to, for messages. */
struct list_place {
    const struct cli_case *c;
    const char *section; /* "args" or "expect" */
    const struct cli_array *array;
    bool may_be_null; /* elements */
};

static int check_element(const struct list_place *place, int64_t row, int64_t column,
                         const json_t *value)
{
    const struct kiln_arg *arg = place->array->arg;
    char where[96];

    if (json_is_integer(value) &&
        cli_dtype_holds(arg->dtype, json_integer_value(value))) {
        return CLI_DONE;
    }
    if (place->may_be_null && json_is_null(value)) {
        return CLI_DONE;
    }
    if (arg->width != NULL) {
        (void)snprintf(where, sizeof where, "%s[%" PRId64 "][%" PRId64 "]", arg->name,
                       row, column);
    } else {
        (void)snprintf(where, sizeof where, "%s[%" PRId64 "]", arg->name, row);
    }
    if (!json_is_integer(value)) {
        return cli_failed("%s: %s.%s: expected an integer%s, got %s", place->c->path,
                          place->section, where, place->may_be_null ? " or null" : "",
                          cli_json_kind(value));
    }
    return cli_failed("%s: %s.%s: %" JSON_INTEGER_FORMAT " does not fit %s",
                      place->c->path, place->section, where, json_integer_value(value),
                      cli_dtype_name(arg->dtype));
}

static const char *extent_in_words(enum kiln_extent extent)
{
    static const char *const words[KILN_N_EXTENTS] = {
        [KILN_EXTENT_NONE] = "a fixed number",
        [KILN_EXTENT_TOKENS] = "one per token",
        [KILN_EXTENT_DECODE_TOKENS] = "one per decode token",
        [KILN_EXTENT_PREFILL_TOKENS] = "one per prefill token",
        [KILN_EXTENT_REQUESTS] = "one per request",
        [KILN_EXTENT_REQUEST_BOUNDS] = "one more than requests",
        [KILN_EXTENT_TABLE_ROWS] = "one per table row",
        [KILN_EXTENT_SWA_TABLE_ROWS] = "one per row of swa_block_table",
        [KILN_EXTENT_ROWS] = "one per row",
        [KILN_EXTENT_FIRST_TOKENS] = "one per token before the rows'",
        [KILN_EXTENT_CONTEXT_TOKENS] = "one per token up to the last row's",
        [KILN_EXTENT_DECODE_REQUESTS] = "one per decode request",
        [KILN_EXTENT_PREFILL_REQUESTS] = "one per prefill request",
        [KILN_EXTENT_SPANS] = "one per span",
    };

    return words[extent];
}

static int check_row(const struct list_place *place, int64_t row, const json_t *list)
{
    const struct cli_array *array = place->array;

    if (!json_is_array(list)) {
        return cli_failed("%s: %s.%s[%" PRId64 "]: expected a list, got %s",
                          place->c->path, place->section, array->arg->name, row,
                          cli_json_kind(list));
    }
    if ((int64_t)json_array_size(list) != array->width) {
        return cli_failed("%s: %s.%s[%" PRId64 "]: %zu elements, expected %" PRId64,
                          place->c->path, place->section, array->arg->name, row,
                          json_array_size(list), array->width);
    }
    for (int64_t column = 0; column < array->width; column++) {
        int status =
            check_element(place, row, column, json_array_get(list, (size_t)column));
        if (status != CLI_DONE) {
            return status;
        }
    }
    return CLI_DONE;
}

/* Has a list the array's rows and columns, and does every element fit? */
static int check_list(const struct list_place *place, const json_t *list)
{
    const struct cli_array *array = place->array;

    if (!json_is_array(list)) {
        return cli_failed("%s: %s.%s: expected a list, got %s", place->c->path,
                          place->section, array->arg->name, cli_json_kind(list));
    }
    if ((int64_t)json_array_size(list) != array->rows) {
        return cli_failed("%s: %s.%s: %zu long, expected %" PRId64 " (%s)",
                          place->c->path, place->section, array->arg->name,
                          json_array_size(list), array->rows,
                          extent_in_words(array->arg->extent));
    }
    for (int64_t row = 0; row < array->rows; row++) {
        const json_t *value = json_array_get(list, (size_t)row);
        int status = array->arg->width != NULL ? check_row(place, row, value)
                                               : check_element(place, row, 0, value);
        if (status != CLI_DONE) {
            return status;
        }
    }
    return CLI_DONE;
}

/* One element of a list that check_list has passed. */
static const json_t *list_element(const struct cli_array *array, const json_t *list,
                                  int64_t row, int64_t column)
{
    const json_t *value = json_array_get(list, (size_t)row);

    return array->arg->width != NULL ? json_array_get(value, (size_t)column) : value;
}

static void fill_array(struct cli_array *array, const json_t *list)
{
    for (int64_t row = 0; row < array->rows; row++) {
        for (int64_t column = 0; column < array->width; column++) {
            const json_t *value = list_element(array, list, row, column);

            cli_array_set(array, row, column, json_integer_value(value));
        }
    }
}

/* The lists of args or of expect, which may name some arrays only. */
static int check_lists(const struct cli_case *c, const char *section,
                       const json_t *object)
{
    const struct kiln_op_info *info = c->call.info;

    for (size_t i = 0; i < info->n_args; i++) {
        const json_t *list = json_object_get(object, info->args[i].name);
        struct list_place place = {
            .c = c,
            .section = section,
            .array = &c->call.arrays[i],
            .may_be_null = info->args[i].kind == KILN_ARG_OUTPUT,
        };
        int status = CLI_DONE;

        if (list != NULL && cli_arg_is_array(&info->args[i])) {
            status = check_list(&place, list);
        }
        if (status != CLI_DONE) {
            return status;
        }
    }
    return CLI_DONE;
}

/* Of lists that check_lists has passed: memory is taken only for what is right. */
static int make_arrays(struct cli_case *c, const json_t *args)
{
    const struct kiln_op_info *info = c->call.info;

    for (size_t i = 0; i < info->n_args; i++) {
        const struct kiln_arg *arg = &info->args[i];
        const json_t *list = json_object_get(args, arg->name);

        if (!cli_arg_is_array(arg) || (arg->kind == KILN_ARG_INPUT && list == NULL)) {
            continue;
        }
        const char *fault = cli_call_add_array(&c->call, i);
        if (fault != NULL) {
            return cli_failed("%s: %s: %s", c->path, arg->name, fault);
        }
        if (arg->kind == KILN_ARG_INPUT) {
            fill_array(&c->call.arrays[i], list);
        }
    }
    return CLI_DONE;
}

/* ---- the whole */

static int read_args(struct cli_case *c, json_t *args)
{
    const char *stranger = cli_json_stranger(args, is_input_key, c->call.info);
    int status;

    if (stranger != NULL) {
        return report_stranger(c, "args", stranger, is_given);
    }
    status = read_numbers(c, args);
    if (status == CLI_DONE) {
        status = learn_extents(c, args);
    }
    if (status == CLI_DONE) {
        status = check_lists(c, "args", args);
    }
    return status;
}

static int check_expect(const struct cli_case *c)
{
    const struct kiln_op_info *info = c->call.info;

    if (c->expect == NULL) {
        return CLI_DONE;
    }
    const char *stranger = cli_json_stranger(c->expect, is_output_key, info);
    if (stranger != NULL) {
        return report_stranger(c, "expect", stranger, is_output);
    }
    return check_lists(c, "expect", c->expect);
}

/* A member of the case that must be an object; *out is borrowed. */
static int get_object(const struct cli_case *c, const char *name, json_t **out)
{
    json_t *value = json_object_get(c->root, name);

    if (value == NULL) {
        return cli_failed("%s: %s: missing, expected an object", c->path, name);
    }
    if (!json_is_object(value)) {
        return cli_failed("%s: %s: expected an object, got %s", c->path, name,
                          cli_json_kind(value));
    }
    *out = value;
    return CLI_DONE;
}

static int find_op(const struct cli_case *c, const struct kiln_op_info **out)
{
    const json_t *name = json_object_get(c->root, "op");
    char names[1024];

    if (!json_is_string(name)) {
        return cli_failed("%s: op: expected the name of an op, got %s", c->path,
                          cli_json_kind(name));
    }
    const struct kiln_op_info *info = kiln_op_info_by_name(json_string_value(name));
    if (info == NULL) {
        cli_op_names(names, sizeof names);
        return cli_failed("%s: op: \"%s\" is no op; expected one of %s", c->path,
                          json_string_value(name), names);
    }
    if (!info->supported) {
        return cli_failed("%s: op: %s is not in this kiln yet", c->path, info->name);
    }
    *out = info;
    return CLI_DONE;
}

static int read_root(struct cli_case *c)
{
    const struct kiln_op_info *info = NULL;
    struct kiln_shape shape;
    json_t *shape_object = NULL, *args = NULL;
    char where[4096];
    int status;

    if (!json_is_object(c->root)) {
        return cli_failed("%s: expected an object, got %s", c->path,
                          cli_json_kind(c->root));
    }
    const char *stranger = cli_json_stranger(c->root, is_root_key, NULL);
    if (stranger != NULL) {
        return cli_failed("%s: %s: unknown field; a case has op, shape, args and expect",
                          c->path, stranger);
    }
    if ((status = find_op(c, &info)) != CLI_DONE ||
        (status = get_object(c, "shape", &shape_object)) != CLI_DONE ||
        (status = get_object(c, "args", &args)) != CLI_DONE) {
        return status;
    }
    if (json_object_get(c->root, "expect") != NULL &&
        (status = get_object(c, "expect", &c->expect)) != CLI_DONE) {
        return status;
    }
    (void)snprintf(where, sizeof where, "%s: shape", c->path);
    if ((status = cli_shape_from_json(info, shape_object, where, &shape)) != CLI_DONE) {
        return status;
    }
    if (!cli_call_init(&c->call, info, &shape)) {
        return cli_failed("%s: out of memory", c->path);
    }
    if ((status = read_args(c, args)) != CLI_DONE ||
        (status = check_expect(c)) != CLI_DONE) {
        return status;
    }
    return make_arrays(c, args);
}

int cli_case_read(const char *path, struct cli_case *out)
{
    struct cli_case c = {.path = path};
    int status = cli_read_json(path, &c.root);

    if (status == CLI_DONE) {
        status = read_root(&c);
    }
    if (status != CLI_DONE) {
        cli_case_finish(&c);
        return status;
    }
    *out = c;
    return CLI_DONE;
}

void cli_case_finish(struct cli_case *c)
{
    cli_call_finish(&c->call);
    free(c->must_report);
    json_decref(c->root);
    *c = (struct cli_case){0};
}

const json_t *cli_case_expected(const struct cli_case *c, size_t i, int64_t row,
                                int64_t column)
{
    const struct cli_array *array = &c->call.arrays[i];
    const json_t *list = json_object_get(c->expect, array->arg->name);

    return list != NULL ? list_element(array, list, row, column) : NULL;
}
