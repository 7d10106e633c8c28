/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/map_rows.h"

/* With no more threads than these, a launch whose threads have one quad of ids each is over
 * sooner than one whose threads have two. */
enum { FEW_THREADS_PER_SM = 1536 };

/* The least power of two from 32 on with which a thread has no more than so many columns;
 * `most` at most. */
static int threads_of(int64_t columns, int64_t columns_of_thread, int most)
{
    int threads = 32;

    while (threads < most && threads * columns_of_thread < columns) {
        threads *= 2;
    }
    return threads;
}

struct ki_map_rows ki_map_rows_of(int64_t columns, int64_t columns_of_thread,
                                  bool compacts)
{
    const int compacting = threads_of(columns, 8, 256);

    if (compacts) {
        return (struct ki_map_rows){compacting, compacting};
    }
    return (struct ki_map_rows){threads_of(columns, 4, 512),
                                threads_of(columns, columns_of_thread, 256)};
}

struct ki_grid ki_map_rows_grid(struct ki_map_rows rows, int64_t n, int n_sms)
{
    const bool few = n * rows.threads <= FEW_THREADS_PER_SM * (int64_t)n_sms;

    return ki_grid_of(n, 1, few ? rows.threads : rows.many_threads);
}
