/* SPDX-License-Identifier: Apache-2.0 */
/*
 * global_topk: each top-k pick to its cache slot, and how many were mapped. Holes stay
 * where they are; under context parallelism a rank keeps its own entries, compacted.
 */
#include "reference/reference.h"
#include "reference/report.h"
#include "reference/rules.h"

static bool is_live(const struct kiln_global_topk_args *args, int64_t t)
{
    bool valid = args->is_valid_token == NULL || args->is_valid_token[t] != 0;

    return valid && t < ki_count(args->live_tokens, args->num_tokens);
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

static void check_row(const struct kiln_global_topk_args *args,
                      const struct kiln_global_topk_shape *s,
                      const struct ki_cache *cache, int64_t t)
{
    const struct ki_reporter to = {args->report, KILN_OP_GLOBAL_TOPK};
    const int32_t *picks = args->topk_indices + t * s->topk_stride;

    if (t == 0) {
        ki_report_count(&to, KILN_REASON_LIVE_TOKENS, args->live_tokens,
                        args->num_tokens);
    }
    if (!is_live(args, t)) {
        return;
    }
    int64_t request = args->token_to_req[t];
    if (!ki_has_row(cache, request)) {
        ki_report(&to, KILN_REASON_REQUEST, t, -1, request);
        return;
    }
    for (int64_t j = 0; j < s->topk; j++) {
        (void)ki_check_slot(&to, cache, request, t, j, picks[j]);
    }
}

void ki_row_global_topk(const struct kiln_shape *shape, const void *args, int64_t t)
{
    const struct kiln_global_topk_args *a = (const struct kiln_global_topk_args *)args;
    const struct kiln_global_topk_shape *s = &shape->global_topk;
    const struct ki_cache cache = KI_CACHE_OF(a, s);
    int32_t *slots = a->slots + t * s->slots_stride;

    if (a->report != NULL) {
        check_row(a, s, &cache, t);
    }
    if (!is_live(a, t) || !ki_has_row(&cache, a->token_to_req[t])) {
        ki_fill(slots, 0, s->topk);
        a->lens[t] = 0;
        return;
    }
    a->lens[t] = map_row(&cache, a->token_to_req[t], a->topk_indices + t * s->topk_stride,
                         s->topk, slots);
}
