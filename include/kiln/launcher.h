/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A launcher: every kernel that a deployment launches, loaded, with every output allocated
 * once at capacity. Addresses and strides never move, so attention kernels take them once
 * and a captured graph replays right with any batch up to capacity.
 *
 *   deployment -> layout (pure: names, sizes, total) -> launcher -> launches
 *
 * Launches and buffers have stable names: layout.h.
 *
 * What a captured launch freezes, and what each replay reads
 * - Frozen: every address (the launcher's never change), the rows launched (num_tokens,
 *   num_rows, num_requests), table_rows, token_offset, dcp_rank and counts by value.
 * - Read at each replay: the arrays, and each count given by device address
 *   (KILN_COUNT_DEVICE): live_tokens, num_decode_tokens, first_request, active_width,
 *   workspace_rows, swa_base. By value or by address is chosen per field and launch.
 * - So for every output the rows written are those frozen at capture, and which of them
 *   hold live data is read at the replay: from live_tokens, is_valid_token and
 *   query_start_loc (other rows are -1 with length 0); in c128a_topk num_decode_tokens
 *   splits the rows between decode_slots with decode_lens and prefill_local, and columns
 *   at or past active_width keep what an earlier step left, beyond every length.
 *
 * Order
 * - Outputs of global_topk, combine_topk_swa and req_to_global are one buffer for all
 *   layers (`layers` of the launch): a layer's launch must come after the attention of the
 *   layer before, on the same stream or behind an event. The other outputs are written
 *   once per step: likewise after the last reader of the step before.
 * - Two streams that fill or read one buffer at once are the caller's mistake.
 */
#ifndef KILN_LAUNCHER_H
#define KILN_LAUNCHER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kiln/layout.h"
#include "kiln/plan.h"
#include "kiln/status.h"

#ifdef __cplusplus
extern "C" {
#endif

struct kiln;
struct CUgraph_st; /* CUgraph and cudaGraph_t are pointers to it */

/* ---- lifecycle --------------------------------------------------------------------------- */

struct kiln_launcher;

/* Memory of the caller's for one buffer, of the current context, aligned to
 * KILN_BUFFER_ALIGN; it must live until the launcher and every graph of it are gone. */
struct kiln_buffer_memory {
    const char *name; /* of kiln_buffer */
    void *address;
    int64_t bytes; /* at least the buffer's */
};

/* All zeros are the defaults; set `size` with KILN_LAUNCHER_OPTIONS_INIT. All of it
 * is borrowed for the call. */
struct kiln_launcher_options {
    size_t size;
    const struct kiln_buffer_memory *memory; /* buffers that are not named: allocated */
    size_t n_memory;
    struct CUstream_st *stream; /* asked whether it captures, nothing else; may be NULL */
    bool programmatic; /* a launch may start before the kernel ahead of it has ended, and
                          waits for it before it touches memory. That kernel must itself
                          be launched plainly or wait for the one ahead of it, as kiln's
                          do. kiln_launcher_is_programmatic says whether it is in use */
};

#ifdef __cplusplus
static inline struct kiln_launcher_options kiln_launcher_options_init()
{
    struct kiln_launcher_options options = kiln_launcher_options();

    options.size = sizeof options;
    return options;
}
#define KILN_LAUNCHER_OPTIONS_INIT kiln_launcher_options_init()
#else
#define KILN_LAUNCHER_OPTIONS_INIT                                                       \
    {                                                                                    \
        .size = sizeof(struct kiln_launcher_options)                                     \
    }
#endif

/**
 * Prepare and load every supported kernel of the deployment and allocate its outputs, in
 * one block, in the current context. Start-up only: see kiln_prepare. A failure leaves
 * nothing allocated; kernels that were loaded stay with the kiln.
 *
 * @param options NULL: all defaults
 * Owner: *out is the caller's, for kiln_launcher_destroy; NULL on failure
 * Threads: any, with a current context
 * Capture: not on a capturing thread; harms no other thread's capture
 * Cost: as kiln_prepare for each kernel, and one device allocation
 * @return as kiln_plan_make and kiln_prepare; KILN_E_ARGUMENT: also memory that is unknown,
 *         missing, misaligned, overlapping or too small, named with both sizes;
 *         KILN_E_VERSION: options are larger than known and not zero there;
 *         KILN_E_NOT_READY: sealed, and a kernel is not ready
 * Since: 1
 */
KILN_API KILN_MUST_USE enum kiln_status
kiln_launcher_create(struct kiln *kiln, const struct kiln_deployment *deployment,
                     const struct kiln_launcher_options *options,
                     struct kiln_launcher **out, struct kiln_error *err);

/**
 * Free the outputs that the launcher allocated; *launcher becomes NULL. Freeing device
 * memory waits for work in flight; memory of the caller's is not touched and not waited
 * for. Kernels stay loaded. Before kiln_destroy.
 *
 * @param launcher its address; NULL and &(NULL) are fine
 * Threads: no other call on this launcher may be under way, any on others
 * Capture: allowed; harms no other thread's capture. A graph being captured that uses the
 *         launcher must be retained first, or finished
 * @return KILN_OK, also in a child after fork, where only host memory is freed;
 *         KILN_E_BUSY: that many graphs hold it, try again once they are gone;
 *         KILN_E_NO_CONTEXT; KILN_E_ARGUMENT: the current context is another one;
 *         KILN_E_DRIVER: what the free reported, and the launcher is gone. In all other
 *         cases it stays as it was
 * Since: 1
 */
KILN_API KILN_MUST_USE enum kiln_status
kiln_launcher_destroy(struct kiln_launcher **launcher, struct kiln_error *err);

/** What it holds, with addresses. Borrowed until destroy. Threads: any. Capture: allowed.
 * @return its layout; NULL for NULL */
KILN_API const struct kiln_layout *
kiln_launcher_layout(const struct kiln_launcher *launcher);

/** Whether its launches are programmatic: asked for, the device has it (9.0 or newer),
 * every kernel waits for its predecessor, and a capture and replay of one on a stream of
 * kiln's own went well. Threads: any. Capture: allowed.
 * @return false for NULL */
KILN_API bool kiln_launcher_is_programmatic(const struct kiln_launcher *launcher);

/**
 * Tie the launcher's life to a graph: until the graph, its copies and everything
 * instantiated from them are destroyed, kiln_launcher_destroy answers KILN_E_BUSY. Retain
 * before instantiating: what is instantiated earlier holds nothing. The driver tells of their
 * end late, on a thread of its own: right after it a destroy may be refused once more.
 *
 * @param graph of this process, a CUgraph; may be one that is being captured
 * Threads: any, as far as the graph itself allows
 * Capture: allowed
 * @return KILN_OK; KILN_E_ARGUMENT; KILN_E_FORKED; KILN_E_DRIVER: nothing is held
 * Since: 1
 */
KILN_API KILN_MUST_USE enum kiln_status
kiln_launcher_retain(struct kiln_launcher *launcher, struct CUgraph_st *graph,
                     struct kiln_error *err);

/* ---- launch (hot) ------------------------------------------------------------------------ */

/**
 * Launch number i_launch of the layout: one driver call. Zero rows: none, and KILN_OK.
 *
 * @param args the op's args struct with inputs and counts; its outputs are NULL, or the
 *        launcher's own addresses. It is not changed
 * @param stream any stream of the launcher's context; not the legacy NULL stream while
 *        something captures
 * Threads: any; outputs need stream order (Order, above)
 * Capture: allowed, in all three capture modes
 * Cost: hot; no lock, no allocation, no system call
 * @return as kiln_launch_global_topk; KILN_E_ARGUMENT: also another output address, or
 *         more rows than capacity, with both numbers. A num_decode_tokens in device memory
 *         cannot be checked here: it must not pass the decode rows of the layout
 * Since: 1
 */
KILN_API KILN_MUST_USE enum kiln_status
kiln_launcher_launch(struct kiln_launcher *launcher, size_t i_launch, const void *args,
                     struct CUstream_st *stream, struct kiln_error *err);

/* ---- look -------------------------------------------------------------------------------- */

struct kiln_launcher_stats {
    int64_t n_launches;      /* handed to the driver, those of zero rows too */
    int64_t n_refused;       /* launches that did not return KILN_OK */
    int64_t n_pins;          /* graphs that hold it now */
    int64_t allocated_bytes; /* device memory of its own */
    int64_t create_ms;
};

/** Counters since create, each read by itself; zeros for NULL. Threads: any. Capture:
 * allowed.
 * @return nothing */
KILN_API void kiln_launcher_get_stats(const struct kiln_launcher *launcher,
                                      struct kiln_launcher_stats *out);

#ifdef __cplusplus
}
#endif
#endif
