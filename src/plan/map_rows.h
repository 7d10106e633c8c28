/* SPDX-License-Identifier: Apache-2.0 */
/* How the ops of common/map_row.cuh deal their rows to blocks. */
#ifndef KI_PLAN_MAP_ROWS_H
#define KI_PLAN_MAP_ROWS_H

#include <stdbool.h>
#include <stdint.h>

#include "plan/op.h"

struct ki_map_rows {
    int threads;      /* of a row's block */
    int many_threads; /* the same in a launch of many rows; as many where blocks compact,
                         and where a row has one warp */
};

/* In a launch of many rows that blocks do not compact, a thread has so many columns at most, of
 * rows up to 256 threads' worth. */
struct ki_map_rows ki_map_rows_of(int64_t columns, int64_t columns_of_thread,
                                  bool compacts);

/* Of a launch of n rows. */
struct ki_grid ki_map_rows_grid(struct ki_map_rows rows, int64_t n, int n_sms);

#endif
