/* SPDX-License-Identifier: Apache-2.0 */
/* One reader and one writer for every op: only the tables know what the fields are. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "shape_text.h"
#include "args.h"
#include "json_tools.h"
#include "report.h"

void cli_op_names(char *buf, size_t size_bytes)
{
    const struct kiln_op_info *info;

    buf[0] = '\0';
    for (size_t i = 0; (info = kiln_op_info_at(i)) != NULL; i++) {
        cli_append(buf, size_bytes, "%s%s", i == 0 ? "" : ", ", info->name);
    }
}

void cli_field_names(const struct kiln_op_info *info, char *buf, size_t size_bytes)
{
    buf[0] = '\0';
    for (size_t i = 0; i < info->n_fields; i++) {
        cli_append(buf, size_bytes, "%s%s", i == 0 ? "" : ", ", info->fields[i].name);
    }
}

/* The index of a field whose name is the first `len` bytes of `name`; n_fields: none. */
static size_t find_field(const struct kiln_op_info *info, const char *name, size_t len)
{
    size_t i = 0;

    for (; i < info->n_fields; i++) {
        const char *known = info->fields[i].name;

        if (strlen(known) == len && strncmp(known, name, len) == 0) {
            break;
        }
    }
    return i;
}

static bool is_field(const void *info, const char *key)
{
    const struct kiln_op_info *op = info;

    return find_field(op, key, strlen(key)) < op->n_fields;
}

static bool find_choice(const struct kiln_shape_field *field, const char *text,
                        int64_t *out)
{
    for (int64_t i = 0; field->choices[i] != NULL; i++) {
        if (strcmp(field->choices[i], text) == 0) {
            *out = i;
            return true;
        }
    }
    return false;
}

/* What a field takes, in words. */
static void expected(const struct kiln_shape_field *field, char *buf, size_t size_bytes)
{
    buf[0] = '\0';
    if (field->kind == KILN_FIELD_INTEGER) {
        cli_append(buf, size_bytes, "an integer");
        return;
    }
    if (field->kind == KILN_FIELD_BOOLEAN) {
        cli_append(buf, size_bytes, "true or false");
        return;
    }
    for (size_t i = 0; field->choices[i] != NULL; i++) {
        cli_append(buf, size_bytes, "%s\"%s\"", i == 0 ? "" : " or ", field->choices[i]);
    }
}

static bool field_from_json(const struct kiln_shape_field *field, const json_t *value,
                            int64_t *out)
{
    if (field->kind == KILN_FIELD_CHOICE) {
        return json_is_string(value) && find_choice(field, json_string_value(value), out);
    }
    if (field->kind == KILN_FIELD_BOOLEAN) {
        *out = json_is_true(value) ? 1 : 0;
        return json_is_boolean(value);
    }
    *out = json_integer_value(value);
    return json_is_integer(value);
}

static bool field_from_text(const struct kiln_shape_field *field, const char *text,
                            int64_t *out)
{
    if (field->kind == KILN_FIELD_CHOICE) {
        return find_choice(field, text, out);
    }
    if (field->kind == KILN_FIELD_BOOLEAN) {
        *out = strcmp(text, "true") == 0 ? 1 : 0;
        return *out == 1 || strcmp(text, "false") == 0;
    }
    return cli_parse_integer(text, out);
}

static int finish_shape(const struct kiln_op_info *info, uint32_t given,
                        const char *where, struct kiln_shape *shape)
{
    struct kiln_error err;
    bool blame_call = *where == '\0';

    if (kiln_shape_defaults(info->op, given, shape, &err) != KILN_OK ||
        kiln_shape_check(info->op, shape, &err) != KILN_OK) {
        return cli_report(where, &err, blame_call);
    }
    return CLI_DONE;
}

int cli_shape_from_json(const struct kiln_op_info *info, json_t *object,
                        const char *where, struct kiln_shape *out)
{
    struct kiln_shape shape = {0};
    uint32_t given = 0;
    char names[1024];

    for (size_t i = 0; i < info->n_fields; i++) {
        const struct kiln_shape_field *field = &info->fields[i];
        const json_t *value = json_object_get(object, field->name);

        if (value == NULL) {
            continue;
        }
        if (!field_from_json(field, value, &shape.fields[i])) {
            expected(field, names, sizeof names);
            return cli_failed("%s.%s: expected %s, got %s", where, field->name, names,
                              cli_json_kind(value));
        }
        given |= UINT32_C(1) << i;
    }
    const char *stranger = cli_json_stranger(object, is_field, info);
    if (stranger != NULL) {
        cli_field_names(info, names, sizeof names);
        return cli_failed("%s.%s: unknown field; %s has %s", where, stranger, info->name,
                          names);
    }
    int status = finish_shape(info, given, where, &shape);
    if (status == CLI_DONE) {
        *out = shape;
    }
    return status;
}

static int take_word(const struct kiln_op_info *info, const char *word, uint32_t *given,
                     struct kiln_shape *shape)
{
    size_t len = strcspn(word, "=");
    size_t i = find_field(info, word, len);
    char names[1024];

    if (word[len] != '=') {
        return cli_wrong("%s: expected field=value", word);
    }
    if (i == info->n_fields) {
        cli_field_names(info, names, sizeof names);
        return cli_wrong("%.*s: unknown field; %s has %s", (int)len, word, info->name,
                         names);
    }
    if ((*given >> i & 1) != 0) {
        return cli_wrong("%s: given twice", info->fields[i].name);
    }
    if (!field_from_text(&info->fields[i], word + len + 1, &shape->fields[i])) {
        expected(&info->fields[i], names, sizeof names);
        return cli_wrong("%s: expected %s, got \"%s\"", info->fields[i].name, names,
                         word + len + 1);
    }
    *given |= UINT32_C(1) << i;
    return CLI_DONE;
}

int cli_shape_from_words(const struct kiln_op_info *info, char *const *words, size_t n,
                         struct kiln_shape *out)
{
    struct kiln_shape shape = {0};
    uint32_t given = 0;

    for (size_t i = 0; i < n; i++) {
        int status = take_word(info, words[i], &given, &shape);

        if (status != CLI_DONE) {
            return status;
        }
    }
    int status = finish_shape(info, given, "", &shape);
    if (status == CLI_DONE) {
        *out = shape;
    }
    return status;
}

/* One field's value; `quote` surrounds a choice. */
static void field_text(const struct kiln_shape_field *field, int64_t value,
                       const char *quote, char buf[64])
{
    if (field->kind == KILN_FIELD_BOOLEAN) {
        (void)snprintf(buf, 64, "%s", value != 0 ? "true" : "false");
    } else if (field->kind == KILN_FIELD_CHOICE) {
        (void)snprintf(buf, 64, "%s%s%s", quote, field->choices[value], quote);
    } else {
        (void)snprintf(buf, 64, "%" PRId64, value);
    }
}

void cli_print_shape_json(const struct kiln_op_info *info, const struct kiln_shape *shape)
{
    char value[64];

    (void)putchar('{');
    for (size_t i = 0; i < info->n_fields; i++) {
        field_text(&info->fields[i], shape->fields[i], "\"", value);
        (void)printf("%s\"%s\": %s", i == 0 ? "" : ", ", info->fields[i].name, value);
    }
    (void)putchar('}');
}

void cli_shape_words(const struct kiln_op_info *info, const struct kiln_shape *shape,
                     char *buf, size_t size_bytes)
{
    char value[64];

    buf[0] = '\0';
    for (size_t i = 0; i < info->n_fields; i++) {
        field_text(&info->fields[i], shape->fields[i], "", value);
        cli_append(buf, size_bytes, "%s%s=%s", i == 0 ? "" : " ", info->fields[i].name,
                   value);
    }
}
