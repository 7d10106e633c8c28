/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compressed_slots: the slot of the record that a token completes, -1 for every other
 * token. Slots are int64, so that every page that is not negative can be used.
 */
#include "reference/reference.h"
#include "reference/report.h"
#include "reference/rules.h"
#include "reference/window.h"

/* The record that token t of request b completes, -1: none. */
static int64_t completed_record(const struct kiln_compressed_slots_args *args,
                                int64_t ratio, int64_t b, int64_t t)
{
    struct ki_request request = ki_request_at(args->query_start_loc, args->seq_lens, b);
    int64_t pos = ki_position(&request, t);
    return pos >= 0 && (pos + 1) % ratio == 0 ? pos / ratio : -1;
}

static int64_t slot_of(const struct kiln_compressed_slots_args *args,
                       const struct ki_cache *cache, int64_t ratio, int64_t t)
{
    const struct ki_reporter to = {args->report, KILN_OP_COMPRESSED_SLOTS};
    int64_t offset = 0;
    int64_t b = ki_request_of(args->query_start_loc, args->num_requests, 0, t);
    bool masks = cache->world == 1 && args->own_slots != NULL;
    if (b < 0 || (masks && args->own_slots[t] < 0)) {
        return -1;
    }
    int64_t record = completed_record(args, ratio, b, t);
    if (record >= 0 && !ki_has_row(cache, b)) {
        ki_report(&to, KILN_REASON_REQUEST, t, -1, b);
        return -1;
    }
    if (!ki_check_id(&to, cache, t, -1, record)) {
        return -1;
    }
    int64_t page = ki_page(cache, b, record, &offset);
    bool usable = ki_check_page(&to, t, -1, page, INT64_MAX);
    return usable ? page * cache->block_size + offset : -1;
}

void ki_row_compressed_slots(const struct kiln_shape *shape, const void *args, int64_t t)
{
    const struct kiln_compressed_slots_args *a =
        (const struct kiln_compressed_slots_args *)args;
    const struct kiln_compressed_slots_shape *s = &shape->compressed_slots;
    const struct ki_cache cache = KI_CACHE_OF(a, s);

    a->slots[t] = slot_of(a, &cache, s->compress_ratio, t);
}
