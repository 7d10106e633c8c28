/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The batch of the next step, drawn from the step's number: what a server's batches look
 * like, their edges, and what they should not look like. begin_step, one thread, draws the
 * requests and the counts; fill_arrays what has an element per token, pick or page.
 */
#include "gpu/replay/inputs.h"
#include "reference/c128a_topk.c" /* kiln_c128a_active_width */
#include "reference/window.h"

/* Numbers that depend on nothing but where they are drawn. */
struct draws {
    uint64_t state;
};

static uint64_t next(struct draws *from)
{
    uint64_t z = from->state += 0x9e3779b97f4a7c15ull;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
}

static struct draws draws_of(const struct replay_limits *limits, uint64_t step,
                             uint64_t element)
{
    struct draws of_step = {limits->seed + step};
    struct draws of_element = {next(&of_step) + element};
    struct draws draws = {next(&of_element)};

    return draws;
}

/* [0, n), n >= 1. */
static int64_t below(struct draws *from, int64_t n)
{
    return (int64_t)(next(from) % (uint64_t)n);
}

static bool one_in(struct draws *from, int64_t n)
{
    return below(from, n) == 0;
}

/* [0, n], of any magnitude. */
static int64_t of_any_size(struct draws *from, int64_t n)
{
    return next(from) % (uint64_t)(n + 1) >> below(from, 12);
}

/* ---- begin_step ------------------------------------------------------------------------- */

/* Those that decode, which come first. */
static int64_t draw_requests(struct draws *from, const struct replay_limits *limits)
{
    if (one_in(from, 4)) {
        return one_in(from, 2) ? 0 : limits->n_requests;
    }
    return below(from, limits->n_requests + 1);
}

static void draw_queries(struct draws *from, const struct replay_limits *limits,
                         int64_t n_decode, struct replay_inputs *in)
{
    int64_t n_tokens = limits->n_tokens, t = 0;

    if (one_in(from, 2)) {
        n_tokens = below(from, n_tokens + 1); /* the rows after it are padding */
    }
    for (int64_t r = 0; r < limits->n_requests; r++) {
        int64_t room = n_tokens - t;
        in->query_start_loc[r] = (int32_t)t;
        if (r < n_decode) {
            t += below(from, ki_min(room, limits->tokens_of_decode) + 1);
        } else {
            t += below(from, below(from, room + 1) + 1);
        }
    }
    in->query_start_loc[limits->n_requests] = (int32_t)t;
    in->num_decode_tokens = in->query_start_loc[n_decode];
    in->first_request = (int32_t)n_decode;
}

/* Says how long the longest is. */
static int64_t draw_contexts(struct draws *from, const struct replay_limits *limits,
                             struct replay_inputs *in)
{
    int64_t most = limits->max_model_len, longest = 0;

    if (one_in(from, 2)) {
        most = of_any_size(from, most);
    }
    for (int64_t r = 0; r < limits->n_requests; r++) {
        int64_t query_len = in->query_start_loc[r + 1] - in->query_start_loc[r];
        int64_t seq_len = ki_max(below(from, most + 1), query_len);
        if (one_in(from, 16)) {
            seq_len = ki_max(most, query_len);
        }
        if (one_in(from, 64)) {
            seq_len = below(from, query_len + 1); /* tokens before their sequence */
        }
        in->seq_lens[r] = (int32_t)seq_len;
        in->replay_start[r] = one_in(from, 2) ? 0 : (int32_t)below(from, seq_len + 1);
        longest = ki_max(longest, seq_len);
    }
    return longest;
}

static void draw_counts(struct draws *from, const struct replay_limits *limits,
                        int64_t longest, struct replay_inputs *in)
{
    in->live_tokens = in->query_start_loc[limits->n_requests];
    if (one_in(from, 4)) {
        in->live_tokens = (int32_t)below(from, limits->n_tokens + 9) - 4;
    }
    in->active_width =
        kiln_c128a_active_width(longest, limits->compress_ratio, limits->capacity);
    if (one_in(from, 8)) {
        in->active_width = (int32_t)below(from, limits->capacity + 9) - 4;
    }
    if (one_in(from, 64)) {
        in->num_decode_tokens = -1;
        in->first_request = (int32_t)below(from, 2 * limits->n_requests) - 2;
    }
}

/* N + gather_lens <= M is what the caller of combine_topk_swa sees to. */
static void draw_workspace(struct draws *from, const struct replay_limits *limits,
                           struct replay_inputs *in)
{
    enum { GATHERED = 4096 };

    in->swa_base = (int32_t)of_any_size(from, limits->max_model_len / 4);
    in->workspace_rows = in->swa_base + GATHERED + (int32_t)below(from, 1000);
    for (int64_t r = 0; r < limits->n_requests; r++) {
        in->gather_lens[r] = (int32_t)below(from, GATHERED + 1);
    }
}

extern "C" __global__ void begin_step(struct replay_inputs *in,
                                      const struct replay_limits limits)
{
    struct draws from = draws_of(&limits, ++in->step, 0);
    int64_t n_decode = draw_requests(&from, &limits);

    draw_queries(&from, &limits, n_decode, in);
    draw_counts(&from, &limits, draw_contexts(&from, &limits, in), in);
    draw_workspace(&from, &limits, in);
}

/* ---- fill_arrays ------------------------------------------------------------------------ */

static void fill_token(struct draws *from, const struct replay_limits *limits, int64_t t,
                       struct replay_inputs *in)
{
    int64_t r = ki_request_of(in->query_start_loc, limits->n_requests, 0, t);

    in->slot_mapping[t] = one_in(from, 8) ? -1 : below(from, (int64_t)1 << 40);
    if (r >= 0) {
        struct ki_request request = ki_request_at(in->query_start_loc, in->seq_lens, r);
        in->positions[t] = ki_position(&request, t);
    } else {
        in->positions[t] = (int64_t)next(from);
    }
}

/* An id or a page: a hole, a stale one, or an ordinary one. */
static int32_t draw_index(struct draws *from, int64_t most)
{
    int64_t kind = below(from, 16);

    if (kind == 0) {
        return -1;
    }
    return kind == 1 ? (int32_t)next(from) : (int32_t)of_any_size(from, most);
}

extern "C" __global__ void fill_arrays(struct replay_inputs *in,
                                       const struct replay_limits limits)
{
    const int64_t most_pages = 1 << 20, most_records = limits.max_model_len / 4;
    const int64_t n_threads = (int64_t)gridDim.x * blockDim.x;
    const int64_t thread = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;

    for (int64_t i = thread; i < REPLAY_PICKS; i += n_threads) {
        struct draws from = draws_of(&limits, in->step, 1 + (uint64_t)i);
        in->picks[i] = draw_index(&from, most_records);
        if (i < REPLAY_PAGES) {
            in->pages[i] = draw_index(&from, most_pages);
        }
        if (i < limits.n_tokens) {
            fill_token(&from, &limits, i, in);
        }
    }
}
