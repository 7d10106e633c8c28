/* SPDX-License-Identifier: Apache-2.0 */
/* How the ops of common/map_row.cuh deal their rows to blocks. */
#ifndef KI_PLAN_MAP_ROWS_H
#define KI_PLAN_MAP_ROWS_H

#include <stdbool.h>
#include <stdint.h>

#include "plan/op.h"

struct ki_map_rows {
    int threads;     /* of a block */
    int row_threads; /* of a row; the whole block's where it has one */
};

/* A block that compacts has one row. */
struct ki_map_rows ki_map_rows_of(int64_t columns, bool compacts);

/* Of a launch of n rows. */
struct ki_grid ki_map_rows_grid(struct ki_map_rows rows, int64_t n, int n_sms);

#endif
