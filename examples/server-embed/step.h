/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A step of the model, as kiln sees it: what the server hands in, and the launches that
 * make of it what attention reads.
 *
 *   inputs --> once per step: maps, lengths, window rows --> each layer: its own rows
 *
 * Inputs and outputs lie in the same places on the device and on the host, so that one
 * function fills in the arguments of a launch and of its reference.
 */
#ifndef STEP_H
#define STEP_H

#include <stddef.h>
#include <stdint.h>

#include "kiln/gpu.h"
#include "kiln/launcher.h"

/* What the arrays are sized by. All of it is known at start-up. */
struct sizes {
    int64_t max_decode;  /* decode requests of a step; each has one token */
    int64_t max_prefill; /* prefill requests of a step */
    int64_t max_tokens;  /* tokens of a step */
    int64_t max_len;     /* tokens of a request */
    int64_t block_size;  /* tokens of a page of the scheduler's table */
    int64_t table_width; /* its pages of a request */
    int64_t swa_block_size;
    int64_t swa_table_width; /* 0: the model has no sliding window */
    int64_t window;
    int64_t topk;        /* picks of a token */
    int64_t pick_layers; /* layers with picks of their own */
    int64_t c128a_ratio; /* 0: the model has no such layers */
    int64_t c128a_capacity;
};

/* Counts that each replay reads from device memory. */
enum { LIVE_TOKENS, DECODE_TOKENS, ACTIVE_WIDTH, WORKSPACE_ROWS, SWA_BASE, N_COUNTS };

/* What the server hands in. Requests [0, max_decode) are for decode, those behind for
 * prefill; one that is absent has no tokens. */
struct inputs {
    int32_t *counts;          /* [N_COUNTS] */
    int32_t *query_start_loc; /* [requests + 1] */
    int32_t *seq_lens;        /* [requests] */
    int64_t *positions;       /* [tokens] */
    int64_t *slot_mapping;    /* [tokens] */
    int32_t *req_id;          /* [tokens] */
    int32_t *picks;       /* [tokens + pick_layers, topk]: layer l has rows l, l + 1, ..
                               * In a real model the indexer writes them, layer by layer */
    int32_t *block_table; /* [requests, table_width] */
    int32_t *swa_block_table; /* [requests, swa_table_width] */
};

/* The inputs and the launcher's outputs, on the device or on the host. */
struct memory {
    struct inputs in;
    char *in_block;
    char *out_block; /* a buffer lies at its offset */
};

/* One launch in a step, and where in `seen` the step saves what it wrote. */
struct call {
    size_t i_launch;
    int64_t layer;
    int64_t saved_at;
};

/* A batch size: its rows are frozen, what is live in them is read at each replay. */
struct step {
    int64_t n_decode, n_prefill; /* requests */
    int64_t n_tokens;
    struct call *calls;
    size_t n_calls;
    int64_t saved_bytes; /* of all calls */
    struct kiln_gpu_graph *graph;
    int64_t n_replays;
    double total_us;
};

union step_args {
    struct kiln_token_to_req_args token_to_req;
    struct kiln_is_valid_token_args is_valid_token;
    struct kiln_gather_lens_args gather_lens;
    struct kiln_swa_indices_args swa_indices;
    struct kiln_compressed_slots_args compressed_slots;
    struct kiln_c128a_topk_args c128a_topk;
    struct kiln_global_topk_args global_topk;
    struct kiln_combine_topk_swa_args combine_topk_swa;
    struct kiln_req_to_global_args req_to_global;
};

/* The sizes that follow from the shapes of a layout; the others stay. */
void sizes_from_layout(struct sizes *sizes, const struct kiln_layout *layout);

/* Place the inputs in a block; NULL: only count. Returns its bytes. */
size_t inputs_place(const struct sizes *sizes, char *block, struct inputs *out);

/* List the launches of a batch size. Returns 0, or -1 without memory. */
int step_init(struct step *out, const struct kiln_layout *layout, int64_t n_decode,
              int64_t n_prefill, int64_t n_tokens);
void step_finish(struct step *step, struct kiln_gpu *gpu);

/* Fill in the arguments of a launch, outputs too. */
void step_bind(const struct step *step, const struct call *call,
               const struct kiln_layout *layout, const struct memory *memory,
               union step_args *out);

/* Capture the step into its graph; `saved` is device memory of saved_bytes. */
enum kiln_status step_capture(struct step *step, struct kiln_launcher *launcher,
                              struct kiln_gpu *gpu, const struct memory *memory,
                              char *saved, struct kiln_error *err);

#endif
