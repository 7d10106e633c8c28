/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A GPU for tools and tests: a context, a stream, memory, graphs and timing, for programs
 * that have no CUDA code of their own. A server has its own and needs none of this.
 */
#ifndef KILN_GPU_H
#define KILN_GPU_H

#include <stddef.h>
#include <stdint.h>

#include "kiln/status.h"

#ifdef __cplusplus
extern "C" {
#endif

struct CUstream_st;

/* The primary context of one device, current on the opening thread, with a stream of its
 * own. */
struct kiln_gpu;

struct kiln_gpu_info {
    char name[128];
    char target[16]; /* "sm_90" */
    int32_t n_sms;
    int32_t driver_version; /* 13000 */
};

/**
 * Open a device: its primary context becomes current on this thread.
 *
 * Owner: *out is the caller's, for kiln_gpu_close; NULL on failure
 * Threads: one at a time per gpu, as all calls here
 * Capture: not on a capturing thread
 * @return KILN_OK; KILN_E_DRIVER_MISSING: no driver, or no such device; KILN_E_DRIVER;
 *         KILN_E_MEMORY
 * Since: 1
 */
KILN_API KILN_MUST_USE enum kiln_status kiln_gpu_open(int ordinal, struct kiln_gpu **out,
                                                      struct kiln_error *err);
/** Close it; *gpu becomes NULL. Threads: as kiln_gpu_open. Capture: not while capturing.
 * @return nothing */
KILN_API void kiln_gpu_close(struct kiln_gpu **gpu);
/** What it is. Threads: any. Capture: allowed. @return nothing */
KILN_API void kiln_gpu_get_info(const struct kiln_gpu *gpu, struct kiln_gpu_info *out);
/** Its stream, for kiln_launch_<op>. Threads: any. Capture: allowed. @return the stream
 */
KILN_API struct CUstream_st *kiln_gpu_stream(const struct kiln_gpu *gpu);

/**
 * Memory of the device, 256-byte aligned; size 0 gives NULL.
 *
 * Owner: *out is the caller's, for kiln_gpu_free
 * Threads: as kiln_gpu_open
 * Capture: not while capturing
 * @return KILN_OK; KILN_E_DRIVER
 * Since: 1
 */
KILN_API KILN_MUST_USE enum kiln_status kiln_gpu_alloc(struct kiln_gpu *gpu,
                                                       size_t size_bytes, void **out,
                                                       struct kiln_error *err);
/** Free it; NULL is fine. Threads: as kiln_gpu_open. Capture: not while capturing.
 * @return nothing */
KILN_API void kiln_gpu_free(struct kiln_gpu *gpu, void *address);
/** Host to device on the stream, then wait. Threads: as kiln_gpu_open. Capture: not while
 * capturing.
 * @return KILN_OK; KILN_E_DRIVER */
KILN_API KILN_MUST_USE enum kiln_status kiln_gpu_copy_in(struct kiln_gpu *gpu,
                                                         void *device, const void *host,
                                                         size_t size_bytes,
                                                         struct kiln_error *err);
/** Device to host on the stream, then wait. Threads: as kiln_gpu_open. Capture: not while
 * capturing.
 * @return KILN_OK; KILN_E_DRIVER: also what an earlier launch did wrong */
KILN_API KILN_MUST_USE enum kiln_status kiln_gpu_copy_out(struct kiln_gpu *gpu,
                                                          void *host, const void *device,
                                                          size_t size_bytes,
                                                          struct kiln_error *err);
/** Device to device on the stream, without waiting. Threads: as kiln_gpu_open. Capture:
 * allowed.
 * @return KILN_OK; KILN_E_DRIVER */
KILN_API KILN_MUST_USE enum kiln_status kiln_gpu_copy(struct kiln_gpu *gpu, void *to,
                                                      const void *from, size_t size_bytes,
                                                      struct kiln_error *err);

enum kiln_capture_mode {
    KILN_CAPTURE_GLOBAL = 0,
    KILN_CAPTURE_THREAD_LOCAL = 1,
    KILN_CAPTURE_RELAXED = 2,
};

/* A captured and instantiated graph. */
struct kiln_gpu_graph;

/**
 * Begin to capture the gpu's stream; launches on it are recorded until
 * kiln_gpu_capture_end.
 *
 * Threads: as kiln_gpu_open
 * Capture: not while capturing
 * @return KILN_OK; KILN_E_ARGUMENT: mode is none; KILN_E_DRIVER
 * Since: 1
 */
KILN_API KILN_MUST_USE enum kiln_status
kiln_gpu_capture_begin(struct kiln_gpu *gpu, enum kiln_capture_mode mode,
                       struct kiln_error *err);
/** End it; *out is the caller's, for kiln_gpu_graph_destroy. Threads: as kiln_gpu_open.
 * Capture: ends it, on failure too.
 * @return KILN_OK; KILN_E_DRIVER: also a capture that was broken; KILN_E_MEMORY */
KILN_API KILN_MUST_USE enum kiln_status kiln_gpu_capture_end(struct kiln_gpu *gpu,
                                                             struct kiln_gpu_graph **out,
                                                             struct kiln_error *err);
/** Replay once on the gpu's stream and wait; out_us, when not NULL, is the time between
 * events around it, microseconds. Threads: as kiln_gpu_open. Capture: not while
 * capturing.
 * @return KILN_OK; KILN_E_DRIVER */
KILN_API KILN_MUST_USE enum kiln_status kiln_gpu_replay(struct kiln_gpu *gpu,
                                                        struct kiln_gpu_graph *graph,
                                                        double *out_us,
                                                        struct kiln_error *err);
/** Destroy it; NULL and &(NULL) are fine. Threads: as kiln_gpu_open. Capture: not while
 * capturing.
 * @return nothing */
KILN_API void kiln_gpu_graph_destroy(struct kiln_gpu *gpu, struct kiln_gpu_graph **graph);

#ifdef __cplusplus
}
#endif
#endif
