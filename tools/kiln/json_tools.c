/* SPDX-License-Identifier: Apache-2.0 */
/* Small questions to JSON values; nothing here knows what a case is. */
#include "json_tools.h"

const char *cli_json_kind(const json_t *value)
{
    if (value == NULL) {
        return "nothing";
    }
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        return "an object";
    case JSON_ARRAY:
        return "a list";
    case JSON_STRING:
        return "a string";
    case JSON_INTEGER:
        return "an integer";
    case JSON_REAL:
        return "a number that is no integer";
    case JSON_TRUE:
        return "true";
    case JSON_FALSE:
        return "false";
    case JSON_NULL:
        return "null";
    }
    return "an unknown value";
}

const char *cli_json_stranger(json_t *object,
                              bool (*knows)(const void *context, const char *key),
                              const void *context)
{
    void *i = json_object_iter(object);

    while (i != NULL && knows(context, json_object_iter_key(i))) {
        i = json_object_iter_next(object, i);
    }
    return i != NULL ? json_object_iter_key(i) : NULL;
}
