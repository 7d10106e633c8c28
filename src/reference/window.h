/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a token stands in its sequence, and which of its neighbours its window holds; for
 * the ops that know a token's request. Everything is computed in int64. Must know no op.
 */
#ifndef KI_REFERENCE_WINDOW_H
#define KI_REFERENCE_WINDOW_H

#include "reference/report.h"
#include "reference/rules.h"

/* A request as its launch sees it; `start` is absolute. */
struct ki_request {
    int64_t start, query_len, seq_len;
};

static inline struct ki_request ki_request_at(const int32_t *query_start_loc,
                                              const int32_t *seq_lens, int64_t r)
{
    const struct ki_request request = {
        .start = query_start_loc[r],
        .query_len = (int64_t)query_start_loc[r + 1] - query_start_loc[r],
        .seq_len = seq_lens[r],
    };
    return request;
}

static inline int64_t ki_position(const struct ki_request *request, int64_t t)
{
    return request->seq_len - request->query_len + (t - request->start);
}

/* Visible tokens of an image before or after a token: none without an array, none below 0. */
static inline int64_t ki_visible(const int32_t *visible, int64_t image_width, int64_t t)
{
    return image_width > 0 && visible != NULL ? ki_max(visible[t], 0) : 0;
}

/* Positions [start, end) of a sequence; none where end <= start. */
struct ki_range {
    int64_t start, end;
};

/* Before its end is cut to the columns that a row has for it. */
static inline struct ki_range ki_whole_window(int64_t pos, int64_t seq_len, int64_t left,
                                              int64_t right, int64_t window)
{
    int64_t left_add = ki_max(left - (window - 1), 0);
    const struct ki_range range = {
        .start = ki_max(pos - (window - 1) - left_add, 0),
        .end = ki_min(pos + right + 1, seq_len),
    };
    return range;
}

static inline struct ki_range ki_cut_window(struct ki_range range, int64_t columns)
{
    range.end = ki_min(range.end, range.start + columns);
    return range;
}

/* A range of which `most` positions are kept. */
static inline void ki_check_length(const struct ki_reporter *to, int64_t row,
                                   struct ki_range range, int64_t most)
{
    if (range.end - range.start > most) {
        ki_report(to, KILN_REASON_LENGTH, row, -1, range.end - range.start);
    }
}

#endif
