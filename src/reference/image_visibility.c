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

    if (args->num_tokens == 0 || args->num_requests == 0) {
        return;
    }
    for (int64_t b = 0; b <= args->num_requests; b++) {
        int64_t bound = args->span_start_loc[b];
        if (bound < 0 || bound > args->num_spans) {
            ki_report(&to, KILN_REASON_SPANS, b, -1, bound);
        }
    }
}

static void look(const struct kiln_image_visibility_args *args, int64_t image_width,
                 int64_t t)
{
    args->left_visible[t] = 0;
    args->right_visible[t] = 0;
    int64_t b = ki_request_of(args->query_start_loc, args->num_requests, 0, t);
    if (t < args->first_token || b < 0) {
        return;
    }
    struct ki_request request = ki_request_at(args->query_start_loc, args->seq_lens, b);
    int64_t pos = ki_position(&request, t);
    int64_t span = pos >= 0 ? span_of(args, b, pos) : -1;
    if (span >= 0) {
        int64_t left = pos - args->span_begin[span], right = args->span_end[span] - pos;
        check_sight(args, t, 0, left, image_width - 1);
        check_sight(args, t, 1, right, image_width);
        args->left_visible[t] = (int32_t)ki_min(left, image_width - 1);
        args->right_visible[t] = (int32_t)ki_min(right, image_width);
    }
}

enum kiln_status ki_reference_image_visibility(const struct kiln_shape *shape,
                                               const void *args)
{
    const struct kiln_image_visibility_args *a = args;

    for (int64_t t = 0; t < a->num_tokens; t++) {
        look(a, shape->image_visibility.image_width, t);
    }
    check_bounds(a);
    return KILN_OK;
}
