/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading fields of JSON objects with errors that name text, field, value and what was
 * expected. A value is shown as it stands in the text, cut short when it is long.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/attr.h"
#include "base/status.h"
#include "plan/json.h"

enum { SHOWN_BYTES = 80, PATH_BYTES = 128 };

/* A message is one line, whatever bytes the text has. */
static void make_printable(char *text)
{
    for (; *text != '\0'; text++) {
        if ((unsigned char)*text < 0x20 || *text == 0x7f) {
            *text = '?';
        }
    }
}

enum kiln_status ki_json_object_load(const char *text, size_t size_bytes,
                                     const char *name, json_t **out,
                                     struct kiln_error *err)
{
    json_error_t where;
    json_t *root = json_loadb(text, size_bytes, JSON_REJECT_DUPLICATES, &where);

    /* jansson says nothing at all when it has no memory. */
    if (root == NULL && where.text[0] == '\0') {
        return ki_fail_memory(err, name);
    }
    if (root == NULL) {
        make_printable(where.text);
        return ki_fail(err, KILN_E_PARSE, "%s: line %d, column %d: %s, expected JSON",
                       name, where.line, where.column, where.text);
    }
    if (!json_is_object(root)) {
        json_decref(root);
        return ki_fail(err, KILN_E_PARSE, "%s: expected a JSON object at the top", name);
    }
    *out = root;
    return KILN_OK;
}

/* Short JSON of a value; containers by kind only. */
static void show(const json_t *value, char out[SHOWN_BYTES])
{
    size_t size;

    if (json_is_object(value) || json_is_array(value)) {
        (void)snprintf(out, SHOWN_BYTES, "%s",
                       json_is_object(value) ? "an object" : "a list");
        return;
    }
    size = json_dumpb(value, out, SHOWN_BYTES - 1, JSON_ENCODE_ANY);
    if (size >= SHOWN_BYTES) {
        (void)snprintf(out, SHOWN_BYTES, "a string of %zu bytes",
                       json_string_length(value));
        return;
    }
    out[size] = '\0';
}

enum kiln_status ki_json_wrong(const char *name, const char *where, const json_t *value,
                               const char *expected, struct kiln_error *err)
{
    char shown[SHOWN_BYTES];

    if (value == NULL) {
        return ki_fail(err, KILN_E_PARSE, "%s: %s is missing, expected %s", name, where,
                       expected);
    }
    show(value, shown);
    return ki_fail(err, KILN_E_PARSE, "%s: %s is %s, expected %s", name, where, shown,
                   expected);
}

enum kiln_status ki_json_integer(const char *name, const char *where, const json_t *value,
                                 int64_t min, int64_t max, int64_t *out,
                                 struct kiln_error *err)
{
    char expected[96];

    if (json_is_integer(value) && json_integer_value(value) >= min &&
        json_integer_value(value) <= max) {
        *out = json_integer_value(value);
        return KILN_OK;
    }
    (void)snprintf(expected, sizeof(expected), "an integer from %" PRId64 " to %" PRId64,
                   min, max);
    return ki_json_wrong(name, where, value, expected, err);
}

static bool is_listed(const char *key, const char *const *keys)
{
    for (size_t i = 0; keys[i] != NULL; i++) {
        if (strcmp(key, keys[i]) == 0) {
            return true;
        }
    }
    return false;
}

static enum kiln_status fail_unknown(const char *name, const char *where, const char *key,
                                     struct kiln_error *err)
{
    char shown[SHOWN_BYTES];

    (void)snprintf(shown, sizeof(shown), "%s", key);
    make_printable(shown);
    return ki_fail(err, KILN_E_PARSE, "%s: %s has the field \"%s\", which is unknown",
                   name, where, shown);
}

enum kiln_status ki_json_only_keys(const char *name, const char *where,
                                   const json_t *object, const char *const *keys,
                                   struct kiln_error *err)
{
    const char *key;
    json_t *value;

    json_object_foreach((json_t *)(uintptr_t)object, key, value)
    {
        if (!is_listed(key, keys)) {
            return fail_unknown(name, where, key, err);
        }
    }
    return KILN_OK;
}

static enum kiln_status same_list(const char *name, const char *where, const json_t *have,
                                  const json_t *want, struct kiln_error *err)
{
    char path[PATH_BYTES];

    if (json_array_size(have) != json_array_size(want)) {
        return ki_fail(err, KILN_E_PARSE, "%s: %s has %zu entries, expected %zu", name,
                       where, json_array_size(have), json_array_size(want));
    }
    for (size_t i = 0; i < json_array_size(want); i++) {
        (void)snprintf(path, sizeof(path), "%s[%zu]", where, i);
        KI_TRY(ki_json_same(name, path, json_array_get(have, i), json_array_get(want, i),
                            err));
    }
    return KILN_OK;
}

static enum kiln_status same_object(const char *name, const char *where,
                                    const json_t *have, const json_t *want,
                                    struct kiln_error *err)
{
    char path[PATH_BYTES];
    const char *key;
    json_t *value;

    json_object_foreach((json_t *)(uintptr_t)want, key, value)
    {
        (void)snprintf(path, sizeof(path), "%s.%s", where, key);
        KI_TRY(ki_json_same(name, path, json_object_get(have, key), value, err));
    }
    json_object_foreach((json_t *)(uintptr_t)have, key, value)
    {
        if (json_object_get(want, key) == NULL) {
            return fail_unknown(name, where, key, err);
        }
    }
    return KILN_OK;
}

/* NOLINTNEXTLINE(misc-no-recursion): only as deep as `want`, which kiln made */
enum kiln_status ki_json_same(const char *name, const char *where, const json_t *have,
                              const json_t *want, struct kiln_error *err)
{
    char expected[SHOWN_BYTES];

    if (json_is_array(have) && json_is_array(want)) {
        return same_list(name, where, have, want, err);
    }
    if (json_is_object(have) && json_is_object(want)) {
        return same_object(name, where, have, want, err);
    }
    if (json_equal(have, want)) {
        return KILN_OK;
    }
    show(want, expected);
    return ki_json_wrong(name, where, have, expected, err);
}
