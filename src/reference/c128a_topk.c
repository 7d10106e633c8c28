/* SPDX-License-Identifier: Apache-2.0 */
/*
 * c128a_topk: rows that attend every complete record, as slots for decode tokens and as
 * record numbers for prefill tokens. Columns at or beyond the active width stay as they
 * were.
 */
#include "reference/reference.h"
#include "reference/report.h"
#include "reference/rules.h"

int32_t kiln_c128a_active_width(int64_t max_seq_len, int64_t compress_ratio,
                                int64_t capacity)
{
    if (compress_ratio <= 0 || capacity <= 0) {
        return 0;
    }
    int64_t limit = ki_min(capacity, INT32_MAX);
    int64_t records = ki_max(max_seq_len, 0) / compress_ratio;
    int64_t width = 128;
    while (width < records && width < limit) {
        width *= 2;
    }
    return (int32_t)ki_min(width, limit);
}

/* A group's own mapping says where its raw token lies; -1 there marks a padded row. Other
 * ranks' tokens are -1 too, so under context parallelism it says nothing. */
static bool is_live_decode(const struct kiln_c128a_topk_args *args,
                           const struct ki_cache *cache, int64_t t)
{
    bool masks = cache->world == 1 && args->slot_mapping != NULL;

    return t < ki_count(args->live_tokens, args->num_tokens) &&
           (!masks || args->slot_mapping[t] >= 0);
}

static int64_t active_width(const struct kiln_c128a_topk_args *args,
                            const struct kiln_c128a_topk_shape *s)
{
    return ki_clamp(ki_count(args->active_width, s->capacity), 0, s->capacity);
}

static int32_t decode_row(const struct ki_cache *cache, int64_t request, int64_t records,
                          int64_t width, int32_t *slots)
{
    if (cache->world == 1) {
        records = ki_min(records, cache->width * cache->block_size);
    }
    for (int64_t c = 0; c < records; c++) {
        slots[c] = ki_slot(cache, request, c);
    }
    ki_fill(slots, records, width);
    return (int32_t)(cache->world == 1 ? records : ki_compact(slots, width));
}

static void prefill_row(int64_t records, int64_t width, int32_t *local)
{
    for (int64_t c = 0; c < records; c++) {
        local[c] = (int32_t)c;
    }
    ki_fill(local, records, width);
}

/* Pages of a request's records [0, records). Says whether the table ends before them. */
static bool check_records(const struct ki_reporter *to, const struct ki_cache *cache,
                          int64_t request, int64_t t, int64_t records)
{
    int64_t offset = 0;
    bool is_clipped = false;

    for (int64_t c = 0; c < records; c++) {
        if (!ki_is_mine(cache, c)) {
            continue;
        }
        if (ki_has_page(cache, c)) {
            (void)ki_check_page(to, t, c, ki_page(cache, request, c, &offset),
                                ki_usable_pages(cache));
        } else {
            is_clipped = true;
        }
    }
    return is_clipped;
}

static void check_row(const struct kiln_c128a_topk_args *args,
                      const struct kiln_c128a_topk_shape *s, const struct ki_cache *cache,
                      int64_t t)
{
    const struct ki_reporter to = {args->report, KILN_OP_C128A_TOPK};
    int64_t pos = args->positions[t], request = args->token_to_req[t];
    bool is_decode = t < ki_count(args->num_decode_tokens, 0);

    if (pos < 0 || t >= ki_count(args->live_tokens, args->num_tokens) ||
        (is_decode && !is_live_decode(args, cache, t))) {
        return;
    }
    if (is_decode && !ki_has_row(cache, request)) {
        ki_report(&to, KILN_REASON_REQUEST, t, -1, request);
        return;
    }
    int64_t all = ki_records(pos, s->compress_ratio, INT64_MAX);
    int64_t records = ki_min(all, active_width(args, s));
    bool is_past = is_decode && check_records(&to, cache, request, t, records);
    if (all > records || is_past) {
        ki_report(&to, KILN_REASON_LENGTH, t, -1, all);
    }
}

static void check_counts(const struct kiln_c128a_topk_args *args,
                         const struct kiln_c128a_topk_shape *s)
{
    const struct ki_reporter to = {args->report, KILN_OP_C128A_TOPK};

    ki_report_count(&to, KILN_REASON_DECODE_TOKENS, args->num_decode_tokens,
                    args->num_tokens);
    ki_report_count(&to, KILN_REASON_LIVE_TOKENS, args->live_tokens, args->num_tokens);
    ki_report_count(&to, KILN_REASON_ACTIVE_WIDTH, args->active_width, s->capacity);
}

void ki_row_c128a_topk(const struct kiln_shape *shape, const void *args, int64_t t)
{
    const struct kiln_c128a_topk_args *a = (const struct kiln_c128a_topk_args *)args;
    const struct kiln_c128a_topk_shape *s = &shape->c128a_topk;
    const struct ki_cache cache = KI_CACHE_OF(a, s);
    int64_t width = active_width(a, s);
    int64_t n_decode = ki_clamp(ki_count(a->num_decode_tokens, 0), 0, a->num_tokens);
    bool is_live = t < ki_count(a->live_tokens, a->num_tokens);
    int64_t records = is_live ? ki_records(a->positions[t], s->compress_ratio, width) : 0;

    if (t == 0) {
        check_counts(a, s);
    }
    if (a->report != NULL) {
        check_row(a, s, &cache, t);
    }
    if (t >= n_decode) {
        prefill_row(records, width, a->prefill_local + (t - n_decode) * s->capacity);
        return;
    }
    int32_t *slots = a->decode_slots + t * s->capacity;
    if (is_live_decode(a, &cache, t) && ki_has_row(&cache, a->token_to_req[t])) {
        a->decode_lens[t] = decode_row(&cache, a->token_to_req[t], records, width, slots);
    } else {
        ki_fill(slots, 0, width);
        a->decode_lens[t] = 0;
    }
}
