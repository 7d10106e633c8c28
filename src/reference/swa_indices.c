/* SPDX-License-Identifier: Apache-2.0 */
/*
 * swa_indices: the slots of each token's sliding window, or of a draft block's shared one,
 * oldest first. Under context parallelism a rank keeps its own positions, compacted.
 */
#include "reference/reference.h"
#include "reference/report.h"
#include "reference/window.h"

static bool is_live(const struct kiln_swa_indices_args *args, int64_t t)
{
    bool valid = args->is_valid_token == NULL || args->is_valid_token[t] != 0;

    return valid && t < ki_count(args->live_tokens, t + 1);
}

static bool is_known(const struct kiln_swa_indices_args *args,
                     const struct ki_cache *cache, int64_t request)
{
    return request < args->num_requests && ki_has_row(cache, request);
}

/* What a token of a known request sees; nothing where it stands before its sequence. */
static struct ki_range whole_range(const struct kiln_swa_indices_shape *s,
                                   const struct kiln_swa_indices_args *args, int64_t t)
{
    struct ki_request request =
        ki_request_at(args->query_start_loc, args->seq_lens, args->token_to_req[t]);
    const struct ki_range none = {0, 0};
    const struct ki_range block = {
        .start = ki_max(request.seq_len - request.query_len - s->window, 0),
        .end = request.seq_len,
    };
    int64_t pos = ki_position(&request, t);

    if (!s->causal) {
        return block;
    }
    if (pos < 0) {
        return none;
    }
    return ki_whole_window(pos, request.seq_len,
                           ki_visible(args->left_visible, s->image_width, t),
                           ki_visible(args->right_visible, s->image_width, t), s->window);
}

/* What is left of it: a window's first columns, nothing before the replay. */
static struct ki_range cut_range(const struct kiln_swa_indices_shape *s,
                                 const struct kiln_swa_indices_args *args, int64_t t,
                                 struct ki_range range)
{
    if (s->causal) {
        range = ki_cut_window(range, s->window + s->image_width);
    }
    if (args->replay_start != NULL) {
        range.start = ki_max(range.start, args->replay_start[args->token_to_req[t]]);
    }
    return range;
}

static struct ki_range newest(struct ki_range range, int64_t columns)
{
    range.start = ki_max(range.start, range.end - columns);
    return range;
}

/* A replicated cache has every position at its ordinary slot; a rank leaves out others'. */
static bool is_left_out(const struct kiln_swa_indices_shape *s, int64_t rank, int64_t p)
{
    return s->dcp_storage == KILN_DCP_REPLICATED &&
           p / s->dcp_interleave % s->dcp_world != rank;
}

static int32_t write_row(const struct kiln_swa_indices_shape *s,
                         const struct ki_cache *cache, int64_t rank, int64_t request,
                         struct ki_range range, int32_t *row)
{
    int64_t n = ki_max(range.end - range.start, 0);

    for (int64_t j = 0; j < n; j++) {
        int64_t p = range.start + j;
        row[j] = is_left_out(s, rank, p) ? -1 : ki_slot(cache, request, p);
    }
    ki_fill(row, n, s->index_width);
    return (int32_t)(s->dcp_world == 1 ? n : ki_compact(row, s->index_width));
}

static void check_row(const struct kiln_swa_indices_shape *s,
                      const struct kiln_swa_indices_args *args,
                      const struct ki_cache *cache, int64_t i)
{
    const struct ki_reporter to = {args->report, KILN_OP_SWA_INDICES};
    int64_t t = args->token_offset + i;

    if (i == 0) {
        ki_report_count(&to, KILN_REASON_LIVE_TOKENS, args->live_tokens, INT32_MAX);
    }
    if (!is_live(args, t)) {
        return;
    }
    int64_t r = args->token_to_req[t];
    if (!is_known(args, cache, r)) {
        ki_report(&to, KILN_REASON_REQUEST, i, -1, r);
        return;
    }
    struct ki_range range = whole_range(s, args, t);
    if (s->causal) {
        ki_check_length(&to, i, range, s->window + s->image_width);
    }
    range = cut_range(s, args, t, range);
    ki_check_length(&to, i, range, s->index_width);
    range = newest(range, s->index_width);
    for (int64_t p = range.start; p < range.end; p++) {
        if (!is_left_out(s, args->dcp_rank, p)) {
            (void)ki_check_slot(&to, cache, r, i, p - range.start, p);
        }
    }
}

static struct ki_cache cache_of(const struct kiln_swa_indices_shape *s,
                                const struct kiln_swa_indices_args *args)
{
    struct ki_cache cache = KI_CACHE_OF(args, s);

    if (s->dcp_storage != KILN_DCP_SHARDED) {
        cache.world = cache.interleave = 1;
        cache.rank = 0;
    }
    return cache;
}

void ki_row_swa_indices(const struct kiln_shape *shape, const void *args, int64_t i)
{
    const struct kiln_swa_indices_args *a = (const struct kiln_swa_indices_args *)args;
    const struct kiln_swa_indices_shape *s = &shape->swa_indices;
    const struct ki_cache cache = cache_of(s, a);
    int64_t t = a->token_offset + i;
    int32_t *row = a->swa_indices + i * s->index_stride;
    struct ki_range range = {0, 0};

    if (a->report != NULL) {
        check_row(s, a, &cache, i);
    }
    if (is_live(a, t) && is_known(a, &cache, a->token_to_req[t])) {
        range = newest(cut_range(s, a, t, whole_range(s, a, t)), s->index_width);
    }
    a->swa_lens[i] = write_row(s, &cache, a->dcp_rank, a->token_to_req[t], range, row);
}
