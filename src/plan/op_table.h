/* SPDX-License-Identifier: Apache-2.0 */
/* Short forms for the rows of an op's table; included by the op_<name>.c files alone. */
#ifndef KI_PLAN_OP_TABLE_H
#define KI_PLAN_OP_TABLE_H

#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"
#include "plan/op.h"
#include "plan/ops.h"

/* Shape fields. `low` is the least legal value; the greatest is 2^31-1 unless said. */
#define KI_FIELD(field, low)                                                             \
    {                                                                                    \
        .name = (field), .default_kind = KILN_DEFAULT_NONE, .min = (low),                \
        .max = INT32_MAX                                                                 \
    }
#define KI_FIELD_OR(field, low, value)                                                   \
    {                                                                                    \
        .name = (field), .default_kind = KILN_DEFAULT_VALUE, .default_value = (value),   \
        .min = (low), .max = INT32_MAX                                                   \
    }
#define KI_FIELD_AS(field, low, other_index)                                             \
    {                                                                                    \
        .name = (field), .default_kind = KILN_DEFAULT_FIELD,                             \
        .default_value = (other_index), .min = (low), .max = INT32_MAX                   \
    }
#define KI_FIELD_STRIDE(field)                                                           \
    {                                                                                    \
        .name = (field), .default_kind = KILN_DEFAULT_STRIDE, .min = 1, .max = INT32_MAX \
    }
#define KI_FIELD_BOOLEAN(field, value)                                                   \
    {                                                                                    \
        .name = (field), .kind = KILN_FIELD_BOOLEAN, .default_kind = KILN_DEFAULT_VALUE, \
        .default_value = (value), .min = 0, .max = 1                                     \
    }

/* A field's index in the table, from the op's shape struct. */
#define KI_INDEX(type, member) ((int)(offsetof(struct type, member) / sizeof(int64_t)))

/* Arguments. `type` is the op's args struct without `struct`. */
#define KI_VECTOR(type, member, way, element, rows)                                      \
    .name = #member, .kind = (way), .dtype = (element), .extent = (rows),                \
    .offset = offsetof(struct type, member), .stride_field = -1
#define KI_MATRIX(type, member, way, element, rows, columns, stride)                     \
    .name = #member, .kind = (way), .dtype = (element), .extent = (rows),                \
    .offset = offsetof(struct type, member), .width = (columns),                         \
    .stride_field = (stride)
#define KI_NUMBER(type, member, counts)                                                  \
    .name = #member, .kind = KILN_ARG_NUMBER, .dtype = KILN_I32, .extent = (counts),     \
    .offset = offsetof(struct type, member), .stride_field = -1
#define KI_COUNTED(type, member, counts)                                                 \
    .name = #member, .kind = KILN_ARG_COUNT, .dtype = KILN_I32, .extent = (counts),      \
    .offset = offsetof(struct type, member), .stride_field = -1
#define KI_EXTENT(type, member, counts)                                                  \
    .name = #member, .kind = KILN_ARG_EXTENT, .dtype = KILN_I32, .extent = (counts),     \
    .offset = offsetof(struct type, member), .stride_field = -1

/* An output of an op that is planned: plans need its size, nothing has its address yet.
 */
#define KI_PLANNED_OUTPUT(output, element, columns, stride)                              \
    {                                                                                    \
        .name = (output), .kind = KILN_ARG_OUTPUT, .dtype = (element),                   \
        .extent = KILN_EXTENT_TOKENS, .width = (columns), .stride_field = (stride)       \
    }

#endif
