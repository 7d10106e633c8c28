/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image_visibility: how far a token sees to either side inside its image span. A token in
 * no span, of no request or before first_token sees nothing more.
 */
#include "reference/reference.h"
#include "reference/report.h"
#include "reference/rules.h"
#include "reference/window.h"

/* The last span of request b that holds the position; -1: none does. */
static int64_t span_of(const struct kiln_image_visibility_args *args, int64_t b,
                       int64_t pos)
{
    int64_t from = ki_clamp(args->span_start_loc[b], 0, args->num_spans);
    int64_t to = ki_clamp(args->span_start_loc[b + 1], 0, args->num_spans);
    for (int64_t i = to - 1; i >= from; i--) {
        if (args->span_begin[i] <= pos && pos <= args->span_end[i]) {
            return i;
        }
    }
    return -1;
}

static void check_sight(const struct kiln_image_visibility_args *args, int64_t t,
                        int64_t column, int64_t length, int64_t most)
{
    const struct ki_reporter to = {args->report, KILN_OP_IMAGE_VISIBILITY};

    if (length > most) {
        ki_report(&to, KILN_REASON_LENGTH, t, column, length);
    }
}

static void check_bounds(const struct kiln_image_visibility_args *args)
{
    const struct ki_reporter to = {args->report, KILN_OP_IMAGE_VISIBILITY};

    for (int64_t b = 0; args->num_requests > 0 && b <= args->num_requests; b++) {
        int64_t bound = args->span_start_loc[b];
        if (bound < 0 || bound > args->num_spans) {
            ki_report(&to, KILN_REASON_SPANS, b, -1, bound);
        }
    }
}

void ki_row_image_visibility(const struct kiln_shape *shape, const void *args, int64_t t)
{
    const struct kiln_image_visibility_args *a =
        (const struct kiln_image_visibility_args *)args;
    int64_t image_width = shape->image_visibility.image_width;
    int64_t b = ki_request_of(a->query_start_loc, a->num_requests, 0, t);

    if (t == 0) {
        check_bounds(a);
    }
    a->left_visible[t] = 0;
    a->right_visible[t] = 0;
    if (t < a->first_token || b < 0) {
        return;
    }
    struct ki_request request = ki_request_at(a->query_start_loc, a->seq_lens, b);
    int64_t pos = ki_position(&request, t);
    int64_t span = pos >= 0 ? span_of(a, b, pos) : -1;
    if (span >= 0) {
        int64_t left = pos - a->span_begin[span], right = a->span_end[span] - pos;
        check_sight(a, t, 0, left, image_width - 1);
        check_sight(a, t, 1, right, image_width);
        a->left_visible[t] = (int32_t)ki_min(left, image_width - 1);
        a->right_visible[t] = (int32_t)ki_min(right, image_width);
    }
}
