/* SPDX-License-Identifier: Apache-2.0 */
/* See batch.h. Nothing here knows of kiln. */
#include <stdlib.h>
#include <string.h>

#include "batch.h"

static uint64_t next_random(struct batch *batch)
{
    uint64_t x = batch->random += 0x9e3779b97f4a7c15U;

    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
    return x ^ (x >> 31);
}

/* In [0, n). */
static int64_t below(struct batch *batch, int64_t n)
{
    return (int64_t)(next_random(batch) % (uint64_t)n);
}

static int64_t at_most(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* ---- pages ---- */

static int pool_init(struct pool *out, int64_t n_pages)
{
    out->pages = malloc(((size_t)n_pages + 1) * sizeof *out->pages);
    if (out->pages == NULL) {
        return -1;
    }
    for (int64_t i = 0; i < n_pages; i++) {
        out->pages[i] = (int32_t)i;
    }
    out->n_free = n_pages;
    return 0;
}

/* One of the free pages at random: in a server that has run for a while, neighbours in a
 * context are none in the cache. */
static int32_t take_page(struct batch *batch, struct pool *pool)
{
    const int64_t i = below(batch, pool->n_free);
    const int32_t page = pool->pages[i];

    pool->pages[i] = pool->pages[--pool->n_free];
    return page;
}

static int64_t pages_of(int64_t len, int64_t block_size)
{
    return (len + block_size - 1) / block_size;
}

static int32_t *row_of(struct batch *batch, int64_t i_request)
{
    return batch->in.block_table + i_request * batch->sizes.table_width;
}

static int32_t *swa_row_of(struct batch *batch, int64_t i_request)
{
    return batch->in.swa_block_table + i_request * batch->sizes.swa_table_width;
}

/* Let a context grow, with the pages that it needs. */
static void grow(struct batch *batch, int64_t i_request, int64_t n_tokens)
{
    const struct sizes *sizes = &batch->sizes;
    struct request *request = &batch->requests[i_request];
    const int64_t len = request->len + n_tokens;

    for (int64_t i = pages_of(request->len, sizes->block_size);
         i < pages_of(len, sizes->block_size); i++) {
        row_of(batch, i_request)[i] = take_page(batch, &batch->pool);
    }
    for (int64_t i = pages_of(request->len, sizes->swa_block_size);
         sizes->window > 0 && i < pages_of(len, sizes->swa_block_size); i++) {
        swa_row_of(batch, i_request)[i] = take_page(batch, &batch->swa_pool);
    }
    request->len = len;
    batch->longest = len > batch->longest ? len : batch->longest;
}

/* Give a request's pages back. Its rows stay as they are: nobody clears a table. */
static void release(struct batch *batch, int64_t i_request)
{
    const struct sizes *sizes = &batch->sizes;
    const int64_t len = batch->requests[i_request].len;

    for (int64_t i = 0; i < pages_of(len, sizes->block_size); i++) {
        batch->pool.pages[batch->pool.n_free++] = row_of(batch, i_request)[i];
    }
    for (int64_t i = 0; sizes->window > 0 && i < pages_of(len, sizes->swa_block_size);
         i++) {
        batch->swa_pool.pages[batch->swa_pool.n_free++] = swa_row_of(batch, i_request)[i];
    }
}

/* ---- requests ---- */

static void move(struct batch *batch, int64_t to, int64_t from)
{
    const struct sizes *sizes = &batch->sizes;

    if (to != from) {
        batch->requests[to] = batch->requests[from];
        memcpy(row_of(batch, to), row_of(batch, from), (size_t)sizes->table_width * 4);
        memcpy(swa_row_of(batch, to), swa_row_of(batch, from),
               (size_t)sizes->swa_table_width * 4);
    }
}

/* Prompts that are done go on to decode. Requests that are done leave, and the last ones
 * when more are in flight than are wanted: their users went away. */
static void promote_and_retire(struct batch *batch)
{
    const int64_t first = batch->sizes.max_decode;

    for (int64_t i = batch->n_prefill - 1; i >= 0; i--) {
        if (batch->requests[first + i].len == batch->requests[first + i].prompt) {
            move(batch, batch->n_decode++, first + i);
            move(batch, first + i, first + --batch->n_prefill);
        }
    }
    for (int64_t i = batch->n_decode - 1; i >= 0; i--) {
        if (batch->requests[i].len == batch->requests[i].end || i >= batch->wanted) {
            release(batch, i);
            move(batch, i, --batch->n_decode);
        }
    }
}

/* A new request. Every other one finds a part of its prompt in the cache. */
static void admit_one(struct batch *batch)
{
    const struct sizes *sizes = &batch->sizes;
    const int64_t i_request = sizes->max_decode + batch->n_prefill++;
    struct request *request = &batch->requests[i_request];
    int64_t cached = 0;

    if (next_random(batch) % 2 == 0) {
        cached = below(batch, sizes->max_len) / sizes->block_size * sizes->block_size;
        cached = cached < sizes->max_len ? cached : 0;
    }
    *request = (struct request){.len = 0};
    grow(batch, i_request, cached);
    request->prompt =
        at_most(cached + 1 + below(batch, sizes->max_tokens), sizes->max_len);
    request->end = at_most(request->prompt + below(batch, 100), sizes->max_len);
    batch->n_admitted++;
}

/* Load comes and goes: every size of graph is wanted as often. */
static void want_other_size(struct batch *batch)
{
    int64_t most = batch->sizes.max_decode;

    for (int64_t halvings = below(batch, 7); halvings > 0 && most > 1; halvings--) {
        most /= 2;
    }
    batch->wanted = most - below(batch, (most + 1) / 2);
}

static void admit(struct batch *batch)
{
    while (batch->n_prefill < batch->sizes.max_prefill &&
           batch->n_decode + batch->n_prefill < batch->wanted) {
        admit_one(batch);
    }
}

/* ---- inputs ---- */

/* The next tokens of a request, behind those of the requests before it. */
static void write_request(struct batch *batch, int64_t i_request, int64_t n_tokens)
{
    const struct sizes *sizes = &batch->sizes;
    const struct inputs *in = &batch->in;
    const int64_t prefix = batch->requests[i_request].len;

    grow(batch, i_request, n_tokens);
    in->seq_lens[i_request] = (int32_t)(prefix + n_tokens);
    for (int64_t pos = prefix; pos < prefix + n_tokens; pos++) {
        const int64_t page = row_of(batch, i_request)[pos / sizes->block_size];

        in->positions[batch->n_tokens] = pos;
        in->slot_mapping[batch->n_tokens] =
            page * sizes->block_size + pos % sizes->block_size;
        in->req_id[batch->n_tokens] = (int32_t)i_request;
        batch->n_tokens++;
    }
}

/* What is behind the live tokens and requests stays as the last steps left it. */
static void write_requests(struct batch *batch)
{
    const struct sizes *sizes = &batch->sizes;

    batch->n_tokens = 0;
    for (int64_t i = 0; i < sizes->max_decode + sizes->max_prefill; i++) {
        const struct request *request = &batch->requests[i];

        batch->in.query_start_loc[i] = (int32_t)batch->n_tokens;
        if (i < batch->n_decode) {
            write_request(batch, i, 1);
        } else if (i >= sizes->max_decode && i < sizes->max_decode + batch->n_prefill) {
            write_request(batch, i,
                          at_most(request->prompt - request->len,
                                  sizes->max_tokens - batch->n_tokens));
        }
    }
    batch->in.query_start_loc[sizes->max_decode + sizes->max_prefill] =
        (int32_t)batch->n_tokens;
}

/* What an indexer picks: mostly records of the context; here and there a hole, or what
 * was never written. */
static void write_picks(struct batch *batch)
{
    const struct sizes *sizes = &batch->sizes;
    const int64_t n = (batch->n_tokens + sizes->pick_layers) * sizes->topk;

    for (int64_t i = 0; i < n; i++) {
        const uint64_t bits = next_random(batch);
        const uint64_t kind = bits >> 58;

        if (kind == 0) {
            batch->in.picks[i] = -1;
        } else if (kind == 1) {
            batch->in.picks[i] = (int32_t)(uint32_t)bits;
        } else {
            batch->in.picks[i] =
                (int32_t)((bits & 0xffffffffU) % (uint64_t)batch->longest);
        }
    }
}

static void write_counts(struct batch *batch)
{
    const struct sizes *sizes = &batch->sizes;
    int32_t *counts = batch->in.counts;
    int64_t longest = 0;

    for (int64_t i = 0; i < sizes->max_decode + sizes->max_prefill; i++) {
        const int is_live =
            i < batch->n_decode ||
            (i >= sizes->max_decode && i < sizes->max_decode + batch->n_prefill);

        if (is_live && batch->requests[i].len > longest) {
            longest = batch->requests[i].len;
        }
    }
    counts[LIVE_TOKENS] = (int32_t)batch->n_tokens;
    counts[DECODE_TOKENS] = (int32_t)batch->n_decode;
    counts[ACTIVE_WIDTH] =
        kiln_c128a_active_width(longest, sizes->c128a_ratio, sizes->c128a_capacity);
    /* Each prefill request has the records of its context first, as many as a ratio of 1
     * has, then the raw tokens of its chunk and of the window before it. */
    counts[SWA_BASE] = (int32_t)longest;
    counts[WORKSPACE_ROWS] = (int32_t)(longest + sizes->max_tokens + sizes->window);
}

void batch_next(struct batch *batch)
{
    if (batch->wanted == 0 || next_random(batch) % 16 == 0) {
        want_other_size(batch);
    }
    promote_and_retire(batch);
    admit(batch);
    write_requests(batch);
    write_picks(batch);
    write_counts(batch);
}

/* ---- lifecycle ---- */

int batch_init(struct batch *out, const struct sizes *sizes, const struct inputs *in,
               uint64_t seed)
{
    const int64_t requests = sizes->max_decode + sizes->max_prefill;

    *out = (struct batch){.sizes = *sizes, .in = *in, .random = seed, .longest = 1};
    out->requests = calloc((size_t)requests, sizeof *out->requests);
    if (out->requests == NULL ||
        pool_init(&out->pool, requests * sizes->table_width) != 0 ||
        pool_init(&out->swa_pool, requests * sizes->swa_table_width) != 0) {
        batch_finish(out);
        return -1;
    }
    return 0;
}

void batch_finish(struct batch *batch)
{
    free(batch->requests);
    free(batch->pool.pages);
    free(batch->swa_pool.pages);
    *batch = (struct batch){.n_tokens = 0};
}
