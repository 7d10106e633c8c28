/* SPDX-License-Identifier: Apache-2.0 */
/* Shapes as people and programs write them: JSON objects and field=value words, read and
 * written by an op's table alone. */
#ifndef CLI_SHAPE_TEXT_H
#define CLI_SHAPE_TEXT_H

#include <jansson.h>
#include <stddef.h>

#include "kiln/op_info.h"

/* All ops' names with commas between, into buf. */
void cli_op_names(char *buf, size_t size_bytes);

/* "a, b, c": the names of an op's shape fields. */
void cli_field_names(const struct kiln_op_info *info, char *buf, size_t size_bytes);

/* A shape from a JSON object, defaults filled in and checked; `where` leads messages. */
int cli_shape_from_json(const struct kiln_op_info *info, json_t *object,
                        const char *where, struct kiln_shape *out);

/* A shape from field=value words. A fault is CLI_WRONG. */
int cli_shape_from_words(const struct kiln_op_info *info, char *const *words, size_t n,
                         struct kiln_shape *out);

/* {"topk": 512, ...} in the table's order, on stdout. */
void cli_print_shape_json(const struct kiln_op_info *info,
                          const struct kiln_shape *shape);

/* "topk=512 ..." into buf. */
void cli_shape_words(const struct kiln_op_info *info, const struct kiln_shape *shape,
                     char *buf, size_t size_bytes);

#endif
