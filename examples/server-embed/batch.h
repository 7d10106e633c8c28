/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The scheduler of the example: requests come, are prefilled in chunks, decode a token a
 * step while their contexts grow page by page, and leave. It writes a step's inputs.
 */
#ifndef BATCH_H
#define BATCH_H

#include <stdint.h>

#include "step.h"

struct request {
    int64_t len;    /* tokens in the cache */
    int64_t prompt; /* tokens to prefill */
    int64_t end;    /* leaves at this length */
};

/* Free pages of a cache: a stack. */
struct pool {
    int32_t *pages;
    int64_t n_free;
};

struct batch {
    struct sizes sizes;
    struct inputs in;         /* on the host; tables hold the pages of each request */
    struct request *requests; /* [max_decode + max_prefill], as in the inputs */
    int64_t n_decode, n_prefill;
    int64_t wanted; /* requests to have in flight */
    int64_t n_tokens;
    int64_t longest; /* tokens of the longest request so far */
    int64_t n_admitted;
    struct pool pool, swa_pool;
    uint64_t random;
};

/* `in` is borrowed. Returns 0, or -1 without memory. */
int batch_init(struct batch *out, const struct sizes *sizes, const struct inputs *in,
               uint64_t seed);
void batch_finish(struct batch *batch);

/* Go on to the next step and write its inputs. */
void batch_next(struct batch *batch);

#endif
