/* SPDX-License-Identifier: Apache-2.0 */
/* Small questions to JSON values. */
#ifndef CLI_JSON_TOOLS_H
#define CLI_JSON_TOOLS_H

#include <jansson.h>
#include <stdbool.h>

/* What a value is, in words: "a string". Static. */
const char *cli_json_kind(const json_t *value);

/* The first key of an object that `knows` does not know; NULL: it knows all. Borrowed. */
const char *cli_json_stranger(json_t *object,
                              bool (*knows)(const void *context, const char *key),
                              const void *context);

#endif
