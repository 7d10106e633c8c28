/* SPDX-License-Identifier: Apache-2.0 */
/*
 * global_topk: each top-k pick to its cache slot, and how many were mapped. Holes stay
 * where they are; under context parallelism a rank keeps its own entries, compacted.
 */
#include "reference/reference.h"
#include "reference/rules.h"

static bool is_inert(const struct kiln_global_topk_args *args,
                     const struct ki_cache *cache, int64_t t)
{
    if (t >= ki_count(args->live_tokens, args->num_tokens)) {
        return true;
    }
    if (args->is_valid_token != NULL && args->is_valid_token[t] == 0) {
        return true;
    }
    return !ki_has_row(cache, args->token_to_req[t]);
}

static int32_t map_row(const struct ki_cache *cache, int64_t request,
                       const int32_t *picks, int64_t topk, int32_t *slots)
{
    int32_t mapped = 0;
    for (int64_t j = 0; j < topk; j++) {
        slots[j] = ki_slot(cache, request, picks[j]);
        mapped += slots[j] >= 0;
    }
    if (cache->world > 1) {
        ki_compact(slots, topk);
    }
    return mapped;
}

enum kiln_status ki_reference_global_topk(const struct kiln_shape *shape,
                                          const void *args)
{
    const struct kiln_global_topk_args *a = args;
    const struct kiln_global_topk_shape *s = &shape->global_topk;
    struct ki_cache cache = {
        .table = a->block_table,
        .rows = a->table_rows,
        .width = s->table_width,
        .stride = s->table_stride,
        .block_size = s->block_size,
        .world = s->dcp_world,
        .interleave = s->dcp_interleave,
        .rank = a->dcp_rank,
    };

    for (int64_t t = 0; t < a->num_tokens; t++) {
        int32_t *slots = a->slots + t * s->slots_stride;
        if (is_inert(a, &cache, t)) {
            ki_fill(slots, 0, s->topk);
            a->lens[t] = 0;
            continue;
        }
        a->lens[t] = map_row(&cache, a->token_to_req[t],
                             a->topk_indices + t * s->topk_stride, s->topk, slots);
    }
    return KILN_OK;
}
