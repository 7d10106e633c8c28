/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules that several ops share: which rows are live, where a record lies, which
 * request a token belongs to. Everything is computed in int64, where nothing here can
 * wrap. Must know no op.
 */
#ifndef KI_REFERENCE_RULES_H
#define KI_REFERENCE_RULES_H

#include <stdbool.h>
#include <stdint.h>

#include "kiln/ops.h"

static inline int64_t ki_min(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t ki_max(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static inline int64_t ki_clamp(int64_t value, int64_t low, int64_t high)
{
    return ki_min(ki_max(value, low), high);
}

/* A count as the kernel finds it, not yet clamped. */
static inline int64_t ki_count(struct kiln_count count, int64_t absent)
{
    if (count.kind == KILN_COUNT_VALUE) {
        return count.value;
    }
    return count.kind == KILN_COUNT_DEVICE ? *count.address : absent;
}

static inline void ki_fill(int32_t *row, int64_t from, int64_t to)
{
    for (int64_t j = from; j < to; j++) {
        row[j] = -1;
    }
}

/* Complete records at a position, `limit` at most. Unsigned: pos + 1 may be 2^63. */
static inline int64_t ki_records(int64_t pos, int64_t ratio, int64_t limit)
{
    if (pos < 0 || ratio == 0) {
        return 0;
    }
    uint64_t complete = ((uint64_t)pos + 1) / (uint64_t)ratio;
    return complete < (uint64_t)limit ? (int64_t)complete : limit;
}

/* One paged cache as one rank of `world` sees it. */
struct ki_cache {
    const int32_t *table; /* [rows, width] */
    int64_t rows, width, stride;
    int64_t block_size;
    int64_t world, interleave, rank;
};

/* The one cache of an op, from its arguments and its shape. */
#define KI_CACHE_OF(args, shape)                                                         \
    {                                                                                    \
        .table = (args)->block_table, .rows = (args)->table_rows,                        \
        .width = (shape)->table_width, .stride = (shape)->table_stride,                  \
        .block_size = (shape)->block_size, .world = (shape)->dcp_world,                  \
        .interleave = (shape)->dcp_interleave, .rank = (args)->dcp_rank,                 \
    }

/* Does the rank hold record v, v >= 0? A world of one owns everything. */
static inline bool ki_is_mine(const struct ki_cache *cache, int64_t v)
{
    return v / cache->interleave % cache->world == cache->rank;
}

/* Has record v, any int64, a logical page? */
static inline bool ki_has_page(const struct ki_cache *cache, int64_t v)
{
    return v >= 0 && v / (cache->block_size * cache->world) < cache->width;
}

/*
 * The page of record v of a request that has a row in the table, as the table has it, and
 * the record's offset there: -1 where it has none, or where another rank holds it.
 */
static inline int64_t ki_page(const struct ki_cache *cache, int64_t request, int64_t v,
                              int64_t *offset)
{
    if (!ki_has_page(cache, v) || !ki_is_mine(cache, v)) {
        return -1;
    }
    int64_t span = cache->block_size * cache->world;
    int64_t in_span = v % span;
    int64_t turn = cache->world * cache->interleave;
    *offset = in_span / turn * cache->interleave + in_span % cache->interleave;
    return cache->table[request * cache->stride + v / span];
}

/* Pages [0, that many) have slots that an int32 can hold. */
static inline int64_t ki_usable_pages(const struct ki_cache *cache)
{
    return ((int64_t)1 << 31) / cache->block_size;
}

/* The slot of that record, where an int32 can hold it. */
static inline int32_t ki_slot(const struct ki_cache *cache, int64_t request, int64_t v)
{
    int64_t offset = 0;
    int64_t page = ki_page(cache, request, v, &offset);
    if (page < 0 || page >= ki_usable_pages(cache)) {
        return -1;
    }
    return (int32_t)(page * cache->block_size + offset);
}

static inline bool ki_has_row(const struct ki_cache *cache, int64_t request)
{
    return request >= 0 && request < cache->rows;
}

/* Move the mapped entries of a row to its front, in order; says how many there are. */
static inline int64_t ki_compact(int32_t *row, int64_t width)
{
    int64_t kept = 0;
    for (int64_t j = 0; j < width; j++) {
        if (row[j] >= 0) {
            row[kept++] = row[j];
        }
    }
    ki_fill(row, kept, width);
    return kept;
}

/*
 * The request of token t, where tokens and query_start_loc count from the same origin
 * after `rebase` is taken off the latter; -1 where there is none. A request of zero
 * length has no tokens.
 */
static inline int64_t ki_request_of(const int32_t *query_start_loc, int64_t num_requests,
                                    int64_t rebase, int64_t t)
{
    for (int64_t r = 0; r < num_requests; r++) {
        if (t >= query_start_loc[r] - rebase && t < query_start_loc[r + 1] - rebase) {
            return r;
        }
    }
    return -1;
}

#endif
