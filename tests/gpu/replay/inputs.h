/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a step reads, as one block of memory that host and device see alike. A graph of
 * kiln's launches, of the references and of a comparison is captured over it once; then
 * only what lies here changes, from replay to replay, and the device itself changes it.
 */
#ifndef TESTS_GPU_REPLAY_INPUTS_H
#define TESTS_GPU_REPLAY_INPUTS_H

#include <stdint.h>

/* Of any test: the arrays are as long as the largest needs. */
enum {
    REPLAY_TOKENS = 256,
    REPLAY_REQUESTS = 64,
    REPLAY_PICKS = 256 * 1024,
    REPLAY_PAGES = 64 * 2048,
};

struct replay_inputs {
    uint64_t step; /* the graph's only input: it counts the replays, all else follows */
    int32_t live_tokens;
    int32_t num_decode_tokens;
    int32_t first_request;
    int32_t active_width;
    int32_t workspace_rows;
    int32_t swa_base;
    int32_t query_start_loc[REPLAY_REQUESTS + 1];
    int32_t seq_lens[REPLAY_REQUESTS];
    int32_t gather_lens[REPLAY_REQUESTS];
    int32_t replay_start[REPLAY_REQUESTS];
    int64_t positions[REPLAY_TOKENS];
    int64_t slot_mapping[REPLAY_TOKENS];
    int32_t picks[REPLAY_PICKS]; /* top-k ids, rows as wide as the launch has them */
    int32_t pages[REPLAY_PAGES]; /* the block table of every cache, likewise */
};

/* What is fixed for a graph. */
struct replay_limits {
    uint64_t seed;
    int64_t max_model_len;
    int32_t n_tokens, n_requests;     /* of a launch */
    int32_t tokens_of_decode;         /* of a request that decodes, at most */
    int32_t compress_ratio, capacity; /* of c128a_topk */
};

/* What a comparison found in one output, over all steps. */
struct replay_difference {
    uint64_t n;     /* elements that differed */
    uint64_t first; /* the least of step << 32 | element; all ones: none */
};

#endif
