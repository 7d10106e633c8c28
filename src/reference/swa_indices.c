/* SPDX-License-Identifier: Apache-2.0 */
/*
 * swa_indices: the slots of each token's sliding window, or of a draft block's shared one,
 * oldest first. Under context parallelism a rank keeps its own positions, compacted.
 */
#include "reference/reference.h"
#include "reference/window.h"

static bool is_inert(const struct kiln_swa_indices_args *args,
                     const struct ki_cache *cache, int64_t t)
{
    if (args->live_tokens.kind != KILN_COUNT_ABSENT &&
        t >= ki_count(args->live_tokens, 0)) {
        return true;
    }
    if (args->is_valid_token != NULL && args->is_valid_token[t] == 0) {
        return true;
    }
    return args->token_to_req[t] >= args->num_requests ||
           !ki_has_row(cache, args->token_to_req[t]);
}

/* The positions of a token that is not inert; none where it stands before its sequence. */
static struct ki_range range_of(const struct kiln_swa_indices_shape *s,
                                const struct kiln_swa_indices_args *args, int64_t t)
{
    int64_t r = args->token_to_req[t];
    struct ki_request request = ki_request_at(args->query_start_loc, args->seq_lens, r);
    int64_t pos = ki_position(&request, t);
    int64_t prefix = request.seq_len - request.query_len;
    struct ki_range range = {ki_max(prefix - s->window, 0), request.seq_len};

    if (s->causal && pos < 0) {
        return (struct ki_range){0, 0};
    }
    if (s->causal) {
        range = ki_window(pos, request.seq_len,
                          ki_visible(args->left_visible, s->image_width, t),
                          ki_visible(args->right_visible, s->image_width, t), s->window,
                          s->image_width);
    }
    if (args->replay_start != NULL) {
        range.start = ki_max(range.start, args->replay_start[r]);
    }
    range.start = ki_max(range.start, range.end - s->index_width);
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

enum kiln_status ki_reference_swa_indices(const struct kiln_shape *shape,
                                          const void *args)
{
    const struct kiln_swa_indices_args *a = args;
    const struct kiln_swa_indices_shape *s = &shape->swa_indices;
    bool is_sharded = s->dcp_storage == KILN_DCP_SHARDED;
    struct ki_cache cache = {
        .table = a->block_table,
        .rows = a->table_rows,
        .width = s->table_width,
        .stride = s->table_stride,
        .block_size = s->block_size,
        .world = is_sharded ? s->dcp_world : 1,
        .interleave = is_sharded ? s->dcp_interleave : 1,
        .rank = is_sharded ? a->dcp_rank : 0,
    };

    for (int64_t i = 0; i < a->num_rows; i++) {
        int64_t t = a->token_offset + i;
        int32_t *row = a->swa_indices + i * s->index_stride;
        if (is_inert(a, &cache, t)) {
            ki_fill(row, 0, s->index_width);
            a->swa_lens[i] = 0;
            continue;
        }
        a->swa_lens[i] =
            write_row(s, &cache, a->dcp_rank, a->token_to_req[t], range_of(s, a, t), row);
    }
    return KILN_OK;
}
