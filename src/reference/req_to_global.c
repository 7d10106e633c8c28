/* SPDX-License-Identifier: Apache-2.0 */
/*
 * req_to_global: request-local token ids to slots of pages that lie page_stride apart, or
 * to rows of the prefill workspace. Under context parallelism ids are dealt token by token,
 * and a rank maps the number that an id has among its own.
 */
#include "reference/reference.h"
#include "reference/rules.h"

static int32_t fitting(int64_t index)
{
    return index >= 0 && index <= INT32_MAX ? (int32_t)index : -1;
}

/* A request is one of the table's rows, and of the workspace's where there is one. */
static bool is_inert(const struct kiln_req_to_global_args *args, int64_t t)
{
    if (t >= ki_count(args->live_tokens, args->num_tokens)) {
        return true;
    }
    if (args->is_valid_token != NULL && args->is_valid_token[t] == 0) {
        return true;
    }
    int64_t n_requests = args->table_rows;
    if (args->workspace_start != NULL) {
        n_requests = ki_min(n_requests, args->num_requests);
    }
    return args->req_id[t] < 0 || args->req_id[t] >= n_requests;
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
    if (args->workspace_start != NULL && args->is_prefill[t] != 0) {
        return fitting((int64_t)args->workspace_start[request] + id);
    }
    int64_t page = args->block_table[request * s->table_stride + own / s->block_size];
    return page < 0 ? -1 : fitting(page * s->page_stride + own % s->block_size);
}

enum kiln_status ki_reference_req_to_global(const struct kiln_shape *shape,
                                            const void *args)
{
    const struct kiln_req_to_global_args *a = args;
    const struct kiln_req_to_global_shape *s = &shape->req_to_global;

    for (int64_t t = 0; t < a->num_tokens; t++) {
        const int32_t *ids = a->token_indices + t * s->topk_stride;
        int32_t *row = a->global_indices + t * s->out_stride;
        bool inert = is_inert(a, t);
        a->counts[t] = 0;
        for (int64_t j = 0; j < s->topk; j++) {
            row[j] = inert ? -1 : index_of(s, a, t, ids[j]);
            a->counts[t] += row[j] >= 0;
        }
        if (s->dcp_world > 1) {
            ki_compact(row, s->topk);
        }
    }
    return KILN_OK;
}
