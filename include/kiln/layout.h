/* SPDX-License-Identifier: Apache-2.0 */
/*
 * deployment -> every output at capacity: names, sizes, and the memory of all. Pure: known
 * before anything is allocated, and the same in the command line and a server.
 *
 * Names are stable. A launch is called after its op, then what tells it from others of the
 * op: the compress ratio of per-ratio ops (0: window only), the cache where a ratio has
 * two, "draft" for the window rows of a draft block. A buffer is called after its launch
 * and the output of the op's args struct:
 *
 *   launch                        its buffers
 *   token_to_req                  token_to_req.token_to_req
 *   swa_indices, .draft           swa_indices.draft.swa_indices, .swa_lens
 *   compressed_slots.4.main       compressed_slots.4.main.slots
 *   compressed_slots.4.indexer    compressed_slots.4.indexer.slots
 *   compressed_slots.128          compressed_slots.128.slots
 *   c128a_topk                    c128a_topk.decode_slots, .decode_lens, .prefill_local
 *   global_topk.4                 global_topk.4.slots, .lens
 *   combine_topk_swa.128          combine_topk_swa.128.combined_indices, .combined_lens
 */
#ifndef KILN_LAYOUT_H
#define KILN_LAYOUT_H

#include <stddef.h>
#include <stdint.h>

#include "kiln/op_info.h"
#include "kiln/plan.h"
#include "kiln/status.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { KILN_LAUNCH_NAME = 64, KILN_BUFFER_NAME = 96, KILN_BUFFER_ALIGN = 256 };

/* One output at capacity. */
struct kiln_buffer {
    char name[KILN_BUFFER_NAME];
    size_t i_launch; /* that writes it */
    enum kiln_dtype dtype;
    int64_t rows;   /* at capacity */
    int64_t width;  /* columns; 1 for a vector */
    int64_t stride; /* from row to row, elements */
    int64_t bytes;  /* rows * stride elements */
    int64_t offset; /* in one block of total_bytes, a multiple of KILN_BUFFER_ALIGN */
    void *address;  /* device address; NULL in a layout without launcher */
};

/* One launch: a planned item that this kiln supports, once for each set of its outputs. */
struct kiln_layout_launch {
    char name[KILN_LAUNCH_NAME];
    enum kiln_op op;
    struct kiln_shape shape;
    int64_t layers; /* that share the buffers, a launch each; 1: one launch a step */
    size_t first_buffer, n_buffers; /* into kiln_layout.buffers */
};

struct kiln_layout {
    /* In the plan's order; in what order a step launches them is the server's. */
    struct kiln_layout_launch *launches;
    size_t n_launches;
    struct kiln_buffer *buffers; /* by launch, in the order of the op's args struct */
    size_t n_buffers;
    int64_t total_bytes;      /* of all buffers, each rounded up to KILN_BUFFER_ALIGN */
    unsigned char digest[32]; /* the plan's */
};

/**
 * Say what a launcher of the deployment will hold, before anything is allocated.
 *
 * Rows: max_num_seqs * (1 + num_speculative_tokens) for decode matrices,
 * max_num_batched_tokens for all others.
 * Owner: out's arrays are the caller's, for kiln_layout_finish; untouched on failure
 * Threads: any
 * Capture: allowed
 * @return as kiln_plan_make
 * Since: 1
 */
KILN_API KILN_MUST_USE enum kiln_status
kiln_layout_make(const struct kiln_deployment *deployment, struct kiln_layout *out,
                 struct kiln_error *err);

/** Free a layout of kiln_layout_make; all zeros and NULL are fine. Threads: any. Capture:
 * allowed.
 * @return nothing */
KILN_API void kiln_layout_finish(struct kiln_layout *layout);

/** The number of a launch, by name. Threads: any. Capture: allowed.
 * @return an index into launches; n_launches: there is none of that name */
KILN_API size_t kiln_layout_find_launch(const struct kiln_layout *layout,
                                        const char *name);

/** A buffer, by name. Threads: any. Capture: allowed.
 * @return borrowed from the layout; NULL: there is none of that name */
KILN_API const struct kiln_buffer *
kiln_layout_find_buffer(const struct kiln_layout *layout, const char *name);

#ifdef __cplusplus
}
#endif
#endif
