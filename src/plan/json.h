/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading fields of JSON objects with errors that name text, field, value and what was
 * expected. Must know nothing of what the fields mean.
 */
#ifndef KI_PLAN_JSON_H
#define KI_PLAN_JSON_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "kiln/status.h"

/* Owner: *out is the caller's, for json_decref; untouched on failure. */
enum kiln_status ki_json_object_load(const char *text, size_t size_bytes,
                                     const char *name, json_t **out,
                                     struct kiln_error *err);

/* `where` names the field, such as "compress_ratios[3]"; value may be NULL: it is
 * missing. */
enum kiln_status ki_json_integer(const char *name, const char *where, const json_t *value,
                                 int64_t min, int64_t max, int64_t *out,
                                 struct kiln_error *err);

/* A wrong value: says what it is and what was expected. */
enum kiln_status ki_json_wrong(const char *name, const char *where, const json_t *value,
                               const char *expected, struct kiln_error *err);

/* An object may have these keys and no other; the list ends in NULL. */
enum kiln_status ki_json_only_keys(const char *name, const char *where,
                                   const json_t *object, const char *const *keys,
                                   struct kiln_error *err);

/*
 * The first place where `have` is not what it should be: KILN_E_PARSE names its path,
 * which begins with `where`. KILN_OK: they are equal.
 */
enum kiln_status ki_json_same(const char *name, const char *where, const json_t *have,
                              const json_t *want, struct kiln_error *err);

#endif
