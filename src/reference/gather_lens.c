/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gather_lens: the raw tokens that a prefill request gathers, its own of this step and what
 * its window reaches of those before, as far back as its replay starts.
 */
#include "reference/reference.h"
#include "reference/report.h"
#include "reference/rules.h"
#include "reference/window.h"

static int64_t gather_len(const struct kiln_gather_lens_args *args, int64_t window,
                          int64_t b)
{
    struct ki_request request = ki_request_at(args->query_start_loc, args->seq_lens, b);
    int64_t prefix = request.seq_len - request.query_len;
    int64_t floor = args->replay_start != NULL ? args->replay_start[b] : 0;
    return request.query_len + ki_min(ki_max(prefix - floor, 0), window - 1);
}

/* Row i is request first_request + i, so the last rows of a launch may have none. */
void ki_row_gather_lens(const struct kiln_shape *shape, const void *args, int64_t i)
{
    const struct kiln_gather_lens_args *a = (const struct kiln_gather_lens_args *)args;
    const struct ki_reporter to = {a->report, KILN_OP_GATHER_LENS};
    int64_t b = i + ki_clamp(ki_count(a->first_request, 0), 0, a->num_requests);

    if (i == 0) {
        ki_report_count(&to, KILN_REASON_FIRST_REQUEST, a->first_request,
                        a->num_requests);
    }
    if (b >= a->num_requests) {
        return;
    }
    int64_t len = gather_len(a, shape->gather_lens.window, b);
    a->gather_lens[i] = (int32_t)ki_min(len, INT32_MAX);
    if (len > INT32_MAX) {
        ki_report(&to, KILN_REASON_LENGTH, i, -1, len);
    }
}
