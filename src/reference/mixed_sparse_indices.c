/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mixed_sparse_indices: one row of ids for each token of a mixed batch: its window in the
 * first Ws columns, its compressed records in the Kp after them. Ids are slots with the
 * pages as far apart as the consumer's pool has them.
 */
#include "reference/reference.h"
#include "reference/report.h"
#include "reference/window.h"

/* A cache, and how its slots are named. */
struct pool {
    struct ki_cache cache;
    int64_t span;
};

/* What the pool calls a slot, slot >= 0. */
static int64_t name_of(const struct pool *pool, int32_t slot)
{
    int64_t block_size = pool->cache.block_size;

    return slot / block_size * pool->span + slot % block_size;
}

static int32_t remap(const struct pool *pool, int32_t slot)
{
    return slot >= 0 && name_of(pool, slot) <= INT32_MAX ? (int32_t)name_of(pool, slot)
                                                         : -1;
}

/* An id local to a request, as the consumer names it, or -1. */
static int32_t lookup(const struct pool *pool, int64_t request, int64_t v)
{
    return remap(pool, ki_slot(&pool->cache, request, v));
}

struct step {
    const struct kiln_mixed_sparse_indices_shape *s;
    const struct kiln_mixed_sparse_indices_args *a;
    struct pool window, records;
    int64_t window_width, records_width; /* Ws, Kp */
    int64_t n_decode, live;
};

static bool is_known(const struct step *step, int64_t request)
{
    return request < step->a->num_requests && ki_has_row(&step->window.cache, request) &&
           ki_has_row(&step->records.cache, request);
}

static bool is_live(const struct step *step, int64_t t)
{
    const uint8_t *valid = step->a->is_valid_token;

    return t < step->live && (valid == NULL || valid[t] != 0);
}

/* What is given to a decode row as slots needs no request. */
static bool lacks_request(const struct step *step, int64_t t)
{
    bool maps = step->s->decode_local && step->s->decode_topk > 0;

    return (t >= step->n_decode || maps) && !is_known(step, step->a->token_to_req[t]);
}

/* Returns the length of the part: mapped entries of local ids, else what the caller says. */
static int64_t decode_records(const struct step *step, int64_t t, int32_t *row)
{
    int64_t n = step->s->decode_topk;
    const int32_t *given = step->a->decode_compressed_indices + (n > 0 ? t * n : 0);
    int64_t mapped = 0;

    for (int64_t j = 0; j < n; j++) {
        row[j] = step->s->decode_local
                     ? lookup(&step->records, step->a->token_to_req[t], given[j])
                     : remap(&step->records, given[j]);
        mapped += row[j] >= 0;
    }
    ki_fill(row, n, step->records_width);
    if (step->s->decode_local) {
        return mapped;
    }
    return step->a->decode_compressed_lens != NULL
               ? ki_clamp(step->a->decode_compressed_lens[t], 0, n)
               : n;
}

static int64_t decode_row(const struct step *step, int64_t t, int32_t *row)
{
    int64_t n = step->s->swa_width;

    for (int64_t j = 0; j < n; j++) {
        row[j] = remap(&step->window, step->a->decode_swa_indices[t * n + j]);
    }
    ki_fill(row, n, step->window_width);
    return decode_records(step, t, row + step->window_width);
}

/* A prefill token of a known request. */
struct prefill {
    int64_t request;
    struct ki_range window; /* before it is cut; none before its sequence */
    int64_t n_picks;        /* 0 there too */
    const int32_t *picks;
};

static struct prefill prefill_of(const struct step *step, int64_t t)
{
    const struct kiln_mixed_sparse_indices_shape *s = step->s;
    const struct kiln_mixed_sparse_indices_args *a = step->a;
    int64_t r = a->token_to_req[t];
    struct ki_request request = ki_request_at(a->query_start_loc, a->seq_lens, r);
    int64_t pos = ki_position(&request, t);
    struct prefill token = {
        .request = r,
        .window = {0, 0},
        .n_picks = ki_records(pos, s->compress_ratio, s->topk),
        .picks = NULL,
    };

    if (pos >= 0) {
        token.window = ki_whole_window(
            pos, request.seq_len, ki_visible(a->left_visible, s->image_width, t),
            ki_visible(a->right_visible, s->image_width, t), s->window);
    }
    if (token.n_picks > 0) {
        token.picks = a->prefill_topk_indices + (t - step->n_decode) * s->topk;
    }
    return token;
}

/* Returns how many picks the token has. */
static int64_t prefill_row(const struct step *step, int64_t t, int32_t *row)
{
    const struct kiln_mixed_sparse_indices_shape *s = step->s;
    struct prefill token = prefill_of(step, t);
    struct ki_range window = ki_cut_window(token.window, s->window + s->image_width);
    int64_t n = ki_max(window.end - window.start, 0);
    int64_t k = token.n_picks;

    for (int64_t j = 0; j < n; j++) {
        row[j] = lookup(&step->window, token.request, window.start + j);
    }
    ki_fill(row, n, step->window_width);
    for (int64_t j = 0; j < k; j++) {
        row[step->window_width + j] =
            lookup(&step->records, token.request, token.picks[j]);
    }
    ki_fill(row, step->window_width + k, step->window_width + step->records_width);
    return k;
}

/* Row and column of an entry, and where it is reported. */
struct place {
    const struct ki_reporter *to;
    int64_t row, column;
};

static void check_slot(const struct place *at, const struct pool *pool, int32_t slot)
{
    if (slot < -1) {
        ki_report(at->to, KILN_REASON_ID, at->row, at->column, slot);
    } else if (slot >= 0) {
        ki_check_range(at->to, at->row, at->column, name_of(pool, slot));
    }
}

static void check_local(const struct place *at, const struct pool *pool, int64_t request,
                        int64_t v)
{
    if (ki_check_slot(at->to, &pool->cache, request, at->row, at->column, v)) {
        check_slot(at, pool, ki_slot(&pool->cache, request, v));
    }
}

static void check_decode_row(const struct step *step, const struct ki_reporter *to,
                             int64_t t)
{
    const struct kiln_mixed_sparse_indices_shape *s = step->s;
    const struct kiln_mixed_sparse_indices_args *a = step->a;

    for (int64_t j = 0; j < s->swa_width; j++) {
        const struct place at = {to, t, j};
        check_slot(&at, &step->window, a->decode_swa_indices[t * s->swa_width + j]);
    }
    for (int64_t j = 0; j < s->decode_topk; j++) {
        const struct place at = {to, t, step->window_width + j};
        int32_t given = a->decode_compressed_indices[t * s->decode_topk + j];
        if (s->decode_local) {
            check_local(&at, &step->records, a->token_to_req[t], given);
        } else {
            check_slot(&at, &step->records, given);
        }
    }
    if (!s->decode_local && a->decode_compressed_lens != NULL) {
        int64_t length = a->decode_compressed_lens[t];
        if (length < 0 || length > s->decode_topk) {
            ki_report(to, KILN_REASON_LENGTH, t, -1, length);
        }
    }
}

static void check_prefill_row(const struct step *step, const struct ki_reporter *to,
                              int64_t t)
{
    struct prefill token = prefill_of(step, t);
    int64_t columns = step->s->window + step->s->image_width;
    struct ki_range window = ki_cut_window(token.window, columns);

    ki_check_length(to, t, token.window, columns);
    for (int64_t p = window.start; p < window.end; p++) {
        const struct place at = {to, t, p - window.start};
        check_local(&at, &step->window, token.request, p);
    }
    for (int64_t j = 0; j < token.n_picks; j++) {
        const struct place at = {to, t, step->window_width + j};
        check_local(&at, &step->records, token.request, token.picks[j]);
    }
}

static void check_row(const struct step *step, int64_t t)
{
    const struct kiln_mixed_sparse_indices_args *a = step->a;
    const struct ki_reporter to = {a->report, KILN_OP_MIXED_SPARSE_INDICES};

    if (t == 0) {
        ki_report_count(&to, KILN_REASON_DECODE_TOKENS, a->num_decode_tokens,
                        a->num_tokens);
        ki_report_count(&to, KILN_REASON_LIVE_TOKENS, a->live_tokens, a->num_tokens);
    }
    if (!is_live(step, t)) {
        return;
    }
    if (lacks_request(step, t)) {
        ki_report(&to, KILN_REASON_REQUEST, t, -1, a->token_to_req[t]);
    } else if (t < step->n_decode) {
        check_decode_row(step, &to, t);
    } else {
        check_prefill_row(step, &to, t);
    }
}

static int64_t align4(int64_t x)
{
    return (x + 3) / 4 * 4;
}

static struct step step_of(const struct kiln_mixed_sparse_indices_shape *s,
                           const struct kiln_mixed_sparse_indices_args *a)
{
    const struct step step = {
        .s = s,
        .a = a,
        .window = {.cache = {.table = a->swa_block_table,
                             .rows = a->swa_table_rows,
                             .width = s->swa_table_width,
                             .stride = s->swa_table_stride,
                             .block_size = s->swa_block_size,
                             .world = 1,
                             .interleave = 1},
                   .span = s->swa_span},
        .records = {.cache = {.table = a->block_table,
                              .rows = a->table_rows,
                              .width = s->table_width,
                              .stride = s->table_stride,
                              .block_size = s->block_size,
                              .world = 1,
                              .interleave = 1},
                    .span = s->span},
        .window_width = s->swa_width + align4(s->image_width),
        .records_width = align4(ki_max(s->topk, s->decode_topk)),
        .n_decode = ki_clamp(ki_count(a->num_decode_tokens, 0), 0, a->num_tokens),
        .live = ki_count(a->live_tokens, a->num_tokens),
    };
    return step;
}

void ki_row_mixed_sparse_indices(const struct kiln_shape *shape, const void *args,
                                 int64_t t)
{
    const struct kiln_mixed_sparse_indices_args *a =
        (const struct kiln_mixed_sparse_indices_args *)args;
    const struct step step = step_of(&shape->mixed_sparse_indices, a);
    int64_t width = step.window_width + step.records_width;
    int32_t *row = a->sparse_indices + t * width;
    int64_t length = 0;

    if (a->report != NULL) {
        check_row(&step, t);
    }
    if (!is_live(&step, t) || lacks_request(&step, t)) {
        ki_fill(row, 0, width);
    } else {
        length =
            t < step.n_decode ? decode_row(&step, t, row) : prefill_row(&step, t, row);
    }
    a->sparse_lens[t] = (int32_t)(step.window_width + length);
}
