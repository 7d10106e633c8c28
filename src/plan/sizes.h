/* SPDX-License-Identifier: Apache-2.0 */
/* The sizes of outputs at capacity: plans count them, layouts place them. */
#ifndef KI_PLAN_SIZES_H
#define KI_PLAN_SIZES_H

#include <stdbool.h>
#include <stdint.h>

#include "kiln/plan.h"

/* Rows of a decode matrix of a complete deployment. */
int64_t ki_decode_rows(const struct kiln_deployment *d);

/* Rows of an output of the item with this extent, of a complete deployment. */
int64_t ki_rows_at_capacity(const struct kiln_deployment *d,
                            const struct kiln_plan_item *item, enum kiln_extent extent);

/* Columns of a row, elements from row to row, and bytes of that. */
int64_t ki_row_width(const struct kiln_arg *arg, const struct kiln_shape *shape);
int64_t ki_row_stride(const struct kiln_arg *arg, const struct kiln_shape *shape);
int64_t ki_row_bytes(const struct kiln_arg *arg, const struct kiln_shape *shape);

/* Rounded up to KILN_BUFFER_ALIGN; the sum must fit. */
int64_t ki_buffer_room(int64_t bytes);

/* Adds a * b to *sum; false: it would not fit. None is negative. */
bool ki_add_product(int64_t *sum, int64_t a, int64_t b);

/* `what` would be too large: KILN_E_ARGUMENT, with every number that makes it so. */
enum kiln_status ki_fail_bytes(const struct kiln_deployment *d, const char *what,
                               struct kiln_error *err);

#endif
