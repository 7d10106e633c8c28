/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/map_rows.h"

/* With fewer threads than these, a launch whose rows have a block each is over sooner than
 * one whose rows share blocks and have half the threads. */
enum { FEW_THREADS_PER_SM = 256 };

struct ki_map_rows ki_map_rows_of(int64_t columns, bool compacts)
{
    int row_threads = 32;

    /* A warp for each 256 columns, a power of two and 8 warps at most. */
    while (row_threads < 256 && row_threads * 8 < columns) {
        row_threads *= 2;
    }
    return (struct ki_map_rows){row_threads * (compacts ? 1 : 2), row_threads};
}

struct ki_grid ki_map_rows_grid(struct ki_map_rows rows, int64_t n, int n_sms)
{
    const bool few = n * rows.threads <= FEW_THREADS_PER_SM * (int64_t)n_sms;

    return ki_grid_of(n, few ? 1 : rows.threads / rows.row_threads, rows.threads);
}
