/* SPDX-License-Identifier: Apache-2.0 */
/*
 * combine_topk_swa: a token's top-k records and its window of raw tokens as one row of
 * rows of the gathered workspace, M rows per request: records from row 0, the last
 * gather_lens raw tokens from row N.
 */
#include "reference/reference.h"
#include "reference/report.h"
#include "reference/window.h"

/* The caller keeps workspace rows below 2^31. Where it does not, the low 32 bits are what
 * is stored, as on the device. */
static int32_t low_bits(int64_t value)
{
    return (int32_t)(uint32_t)(uint64_t)value;
}

struct token {
    int64_t request;
    int64_t pos;            /* in its sequence */
    struct ki_range window; /* before it is cut */
};

/* False: the token belongs to no request, or stands before its sequence. */
static bool find_token(const struct kiln_combine_topk_swa_shape *s,
                       const struct kiln_combine_topk_swa_args *args, int64_t t,
                       struct token *out)
{
    const int32_t *start = args->query_start_loc;
    int64_t b = -1;
    if (args->num_requests > 0) {
        b = ki_request_of(start, args->num_requests, start[0], t);
    }
    if (b < 0) {
        return false;
    }
    int64_t qlen = (int64_t)start[b + 1] - start[b];
    int64_t first_token = (int64_t)start[b] - start[0];
    out->request = b;
    out->pos = args->seq_lens[b] - qlen + (t - first_token);
    out->window = ki_whole_window(
        out->pos, args->seq_lens[b], ki_visible(args->left_visible, s->image_width, t),
        ki_visible(args->right_visible, s->image_width, t), s->window);
    return out->pos >= 0;
}

/* Writes the records' columns from row[0]; says how many. */
static int64_t write_records(const struct kiln_combine_topk_swa_shape *s,
                             const struct token *token, const int32_t *ids, int64_t m,
                             int64_t n, int32_t *row)
{
    int64_t k = ki_records(token->pos, s->compress_ratio, s->topk);
    for (int64_t j = 0; j < k; j++) {
        bool usable = ids[j] >= 0 && ids[j] < n;
        row[j] = usable ? low_bits(m * token->request + ids[j]) : -1;
    }
    return k;
}

/* Writes the window's columns from row[0]; says how many. gathered is the position of the
 * request's first gathered token. */
static int64_t write_window(const struct kiln_combine_topk_swa_shape *s,
                            const struct token *token, int64_t seq_len,
                            int64_t gather_len, int64_t base, int32_t *row)
{
    struct ki_range window = ki_cut_window(token->window, s->window + s->image_width);
    int64_t n_columns = ki_max(window.end - window.start, 0);
    for (int64_t j = 0; j < n_columns; j++) {
        int64_t g = window.start + j - (seq_len - gather_len);
        row[j] = g >= 0 && g < gather_len ? low_bits(base + g) : -1;
    }
    return n_columns;
}

static void check_row(const struct kiln_combine_topk_swa_shape *s,
                      const struct kiln_combine_topk_swa_args *args, int64_t t)
{
    const struct ki_reporter to = {args->report, KILN_OP_COMBINE_TOPK_SWA};
    int64_t n = ki_count(args->swa_base, 0);
    struct token token;

    if (!find_token(s, args, t, &token)) {
        return;
    }
    ki_check_length(&to, t, token.window, s->window + s->image_width);
    for (int64_t j = 0; j < ki_records(token.pos, s->compress_ratio, s->topk); j++) {
        int64_t id = args->topk_indices[t * s->topk_stride + j];
        if (id != -1 && (id < 0 || id >= n)) {
            ki_report(&to, KILN_REASON_ID, t, j, id);
        }
    }
}

void ki_row_combine_topk_swa(const struct kiln_shape *shape, const void *args, int64_t t)
{
    const struct kiln_combine_topk_swa_args *a =
        (const struct kiln_combine_topk_swa_args *)args;
    const struct kiln_combine_topk_swa_shape *s = &shape->combine_topk_swa;
    int64_t used = s->topk + s->window + s->image_width;
    int64_t width = (used + s->align - 1) / s->align * s->align;
    int64_t m = ki_count(a->workspace_rows, 0);
    int64_t n = ki_count(a->swa_base, 0);
    int32_t *row = a->combined_indices + t * s->combined_stride;
    int64_t length = 0;
    struct token token;

    if (a->report != NULL) {
        check_row(s, a, t);
    }
    if (find_token(s, a, t, &token)) {
        int64_t b = token.request;
        if (s->topk > 0) {
            length =
                write_records(s, &token, a->topk_indices + t * s->topk_stride, m, n, row);
        }
        length += write_window(s, &token, a->seq_lens[b], a->gather_lens[b], m * b + n,
                               row + length);
    }
    ki_fill(row, length, width);
    a->combined_lens[t] = (int32_t)length;
}
