/* SPDX-License-Identifier: Apache-2.0 */
/*
 * c128a_topk: rows that attend every complete record, as slots for decode tokens and as
 * record numbers for prefill tokens. Columns at or beyond the active width stay as they
 * were.
 */
#include "reference/reference.h"
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
static bool is_inert_decode(const struct kiln_c128a_topk_args *args,
                            const struct ki_cache *cache, int64_t t)
{
    if (t >= ki_count(args->live_tokens, args->num_tokens)) {
        return true;
    }
    if (cache->world == 1 && args->slot_mapping != NULL && args->slot_mapping[t] < 0) {
        return true;
    }
    return !ki_has_row(cache, args->token_to_req[t]);
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

enum kiln_status ki_reference_c128a_topk(const struct kiln_shape *shape, const void *args)
{
    const struct kiln_c128a_topk_args *a = args;
    const struct kiln_c128a_topk_shape *s = &shape->c128a_topk;
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
    int64_t width = ki_clamp(ki_count(a->active_width, s->capacity), 0, s->capacity);
    int64_t n_decode = ki_clamp(ki_count(a->num_decode_tokens, 0), 0, a->num_tokens);
    int64_t live = ki_count(a->live_tokens, a->num_tokens);

    for (int64_t t = 0; t < n_decode; t++) {
        int32_t *slots = a->decode_slots + t * s->capacity;
        if (is_inert_decode(a, &cache, t)) {
            ki_fill(slots, 0, width);
            a->decode_lens[t] = 0;
            continue;
        }
        int64_t records = ki_records(a->positions[t], s->compress_ratio, width);
        a->decode_lens[t] = decode_row(&cache, a->token_to_req[t], records, width, slots);
    }
    for (int64_t t = n_decode; t < a->num_tokens; t++) {
        int64_t records =
            t < live ? ki_records(a->positions[t], s->compress_ratio, width) : 0;
        prefill_row(records, width, a->prefill_local + (t - n_decode) * s->capacity);
    }
    return KILN_OK;
}
