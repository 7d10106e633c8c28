/* SPDX-License-Identifier: Apache-2.0 */
/*
 * req_to_global: request-local token ids to slots of pages that lie page_stride apart, or
 * to rows of the prefill workspace. Under context parallelism ids are dealt token by token,
 * and a rank maps the number that an id has among its own.
 */
#include "reference/reference.h"
#include "reference/report.h"
#include "reference/rules.h"

static int32_t fitting(int64_t index)
{
    return index >= 0 && index <= INT32_MAX ? (int32_t)index : -1;
}

static bool is_live(const struct kiln_req_to_global_args *args, int64_t t)
{
    bool valid = args->is_valid_token == NULL || args->is_valid_token[t] != 0;

    return valid && t < ki_count(args->live_tokens, args->num_tokens);
}

/* A request is one of the table's rows, and of the workspace's where there is one. */
static bool is_known(const struct kiln_req_to_global_args *args, int64_t request)
{
    int64_t n_requests = args->table_rows;

    if (args->workspace_start != NULL) {
        n_requests = ki_min(n_requests, args->num_requests);
    }
    return request >= 0 && request < n_requests;
}

static bool gathers(const struct kiln_req_to_global_args *args, int64_t t)
{
    return args->workspace_start != NULL && args->is_prefill[t] != 0;
}

/* Where an id of token t lies, which is not inert; -1: nowhere, or with another rank. */
static int32_t index_of(const struct kiln_req_to_global_shape *s,
                        const struct kiln_req_to_global_args *args, int64_t t, int64_t id)
{
    int64_t request = args->req_id[t];
    int64_t turn = s->dcp_world * s->dcp_interleave;
    if (id < 0 || id / s->dcp_interleave % s->dcp_world != args->dcp_rank) {
        return -1;
    }
    int64_t own = id / turn * s->dcp_interleave + id % s->dcp_interleave;
    if (own >= s->table_width * s->block_size) {
        return -1;
    }
    if (gathers(args, t)) {
        return fitting((int64_t)args->workspace_start[request] + id);
    }
    int64_t page = args->block_table[request * s->table_stride + own / s->block_size];
    return page < 0 ? -1 : fitting(page * s->page_stride + own % s->block_size);
}

/* What was turned away of an id of token t, which is not inert. */
static void check_entry(const struct kiln_req_to_global_args *args,
                        const struct kiln_req_to_global_shape *s, int64_t t, int64_t j)
{
    const struct ki_reporter to = {args->report, KILN_OP_REQ_TO_GLOBAL};
    const struct ki_cache cache = KI_CACHE_OF(args, s);
    int64_t request = args->req_id[t], offset = 0;
    int64_t id = args->token_indices[t * s->topk_stride + j];

    if (!ki_check_id(&to, &cache, t, j, id)) {
        return;
    }
    if (gathers(args, t)) {
        ki_check_range(&to, t, j, args->workspace_start[request] + id);
        return;
    }
    int64_t page = ki_page(&cache, request, id, &offset);
    if (ki_check_page(&to, t, j, page, INT64_MAX)) {
        ki_check_range(&to, t, j, page * s->page_stride + offset);
    }
}

static void check_row(const struct kiln_req_to_global_args *args,
                      const struct kiln_req_to_global_shape *s, int64_t t)
{
    const struct ki_reporter to = {args->report, KILN_OP_REQ_TO_GLOBAL};

    if (t == 0) {
        ki_report_count(&to, KILN_REASON_LIVE_TOKENS, args->live_tokens,
                        args->num_tokens);
    }
    if (!is_live(args, t)) {
        return;
    }
    if (!is_known(args, args->req_id[t])) {
        ki_report(&to, KILN_REASON_REQUEST, t, -1, args->req_id[t]);
        return;
    }
    for (int64_t j = 0; j < s->topk; j++) {
        check_entry(args, s, t, j);
    }
}

void ki_row_req_to_global(const struct kiln_shape *shape, const void *args, int64_t t)
{
    const struct kiln_req_to_global_args *a =
        (const struct kiln_req_to_global_args *)args;
    const struct kiln_req_to_global_shape *s = &shape->req_to_global;
    const int32_t *ids = a->token_indices + t * s->topk_stride;
    int32_t *row = a->global_indices + t * s->out_stride;
    bool inert = !is_live(a, t) || !is_known(a, a->req_id[t]);
    int32_t mapped = 0;

    if (a->report != NULL) {
        check_row(a, s, t);
    }
    for (int64_t j = 0; j < s->topk; j++) {
        row[j] = inert ? -1 : index_of(s, a, t, ids[j]);
        mapped += row[j] >= 0;
    }
    if (s->dcp_world > 1) {
        ki_compact(row, s->topk);
    }
    a->counts[t] = mapped;
}
