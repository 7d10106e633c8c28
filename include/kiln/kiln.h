/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kiln: the metadata kernels of sparse attention, generated for the shape you serve.
 *
 *   shape -> key -> source -> cubin -> loaded kernel -> launch
 *
 * Create one struct kiln per process and device, prepare every kernel at start-up, then
 * launch.
 *
 * Rules for every call
 * - A struct kiln may be used by many threads at once, but for create and destroy.
 * - `err` may be NULL. It is written on failure only. Output parameters are untouched on
 *   failure, handles become NULL.
 * - kiln never prints, exits, changes a signal or the current context, or writes to the
 *   environment; it reads the environment in kiln_create and kiln_default_cache_dir alone.
 *
 * Caveats
 * - While a kernel loads (kiln_prepare) every launch of the context waits until the GPU
 *   has been idle: prepare all before collectives and persistent kernels start. kiln_build
 *   never does that.
 * - A child after fork must not use a struct kiln made before it: slow calls answer
 *   KILN_E_FORKED.
 * - Kernels live until kiln_destroy. Destroying a kiln while a captured graph that
 *   launches its kernels can still be replayed is the caller's mistake; a graph that holds
 *   a launcher (launcher.h) guards against it.
 * - Never return from main while another thread is in a call of kiln.
 * - The legacy NULL stream cannot be used beside a capture in global mode; use a stream
 *   of your own.
 */
#ifndef KILN_KILN_H
#define KILN_KILN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kiln/op_info.h"
#include "kiln/ops.h"
#include "kiln/report.h"
#include "kiln/status.h"
#include "kiln/version.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- lifecycle --------------------------------------------------------------------------- */

struct kiln;

/* realloc's contract: size 0 frees and gives NULL. Called from any thread. */
typedef void *(*kiln_realloc_fn)(void *user, void *block, size_t size);

/* What happened to a kernel; see seal.h. Called like log_fn, with no lock held; it must not
 * call kiln, but for kiln_get_stats. */
struct kiln_event;
typedef void (*kiln_event_fn)(void *user, const struct kiln_event *event);

/*
 * All zeros are the defaults; set `size` with KILN_OPTIONS_INIT. Strings and arrays are
 * borrowed for the call. An option wins over its environment variable.
 */
struct kiln_options {
    size_t size; /* sizeof(struct kiln_options) */
    /* "sm_90"; NULL: that of the device of the current context, at need */
    const char *target;
    /* absolute; NULL: KILN_CACHE_DIR, $XDG_CACHE_HOME/kiln, ~/.cache/kiln */
    const char *cache_dir;
    /* cache folders behind it, absolute, tried in order */
    const char *const *read_only_dirs;
    size_t n_read_only_dirs;
    /* absolute path of libnvrtc; NULL: KILN_NVRTC, then searched for */
    const char *nvrtc_path;
    const char *const *nvrtc_dirs; /* absolute, searched before the usual folders */
    size_t n_nvrtc_dirs;
    bool no_disk;              /* no disk layer at all */
    bool no_write;             /* cache_dir is only read: nothing is made or put there */
    bool allow_group_writable; /* trust cache folders that a group may write to */
    bool exact_compiler;       /* an entry that another NVRTC version made is a miss */
    bool checked; /* every kernel in its checked variant, another key; see report.h */
    uint32_t max_kernels;     /* cap on kernels; 0: 4096 */
    int32_t build_timeout_ms; /* wait for another thread's build of the key; 0: 60,000 */
    int32_t retry_ms;         /* a failure is not tried again before; 0: 30,000 */
    enum kiln_log_level log_level; /* 0: warn */
    kiln_log_fn log_fn;            /* NULL: silent */
    void *log_user;
    kiln_realloc_fn realloc_fn; /* NULL: the C library's */
    void *realloc_user;
    kiln_event_fn event_fn; /* NULL: none */
    void *event_user;
};

#ifdef __cplusplus
/* C++ has no designated initialisers before 20. */
static inline struct kiln_options kiln_options_init()
{
    struct kiln_options options = kiln_options();

    options.size = sizeof options;
    return options;
}
#define KILN_OPTIONS_INIT kiln_options_init()
#else
#define KILN_OPTIONS_INIT                                                                \
    {                                                                                    \
        .size = sizeof(struct kiln_options)                                              \
    }
#endif

/**
 * Create a kiln. Needs neither a GPU nor NVRTC: both are looked for when first needed.
 *
 * @param options NULL: all defaults
 * Owner: *out is the caller's, for kiln_destroy; NULL on failure
 * Threads: create-destroy only
 * Capture: allowed; touches no driver
 * Cost: opens the cache folders
 * @return KILN_OK; KILN_E_VERSION: options are larger than known and not zero there;
 *         KILN_E_ARGUMENT: an option or a variable is wrong and is named;
 *         KILN_E_TARGET: an unknown target; KILN_E_MEMORY; KILN_E_SYSTEM
 * Since: 1
 */
KILN_API KILN_MUST_USE enum kiln_status kiln_create(const struct kiln_options *options,
                                                    struct kiln **out,
                                                    struct kiln_error *err);

/**
 * Unload every kernel, free everything and set *kiln to NULL. No call may be under way.
 * Unloading waits for kernels in flight. While a launcher is alive nothing happens but a
 * line in the log, and *kiln stays: better a leak than a kernel gone under a launch.
 *
 * @param kiln its address; NULL and &(NULL) are fine
 * Threads: create-destroy only
 * Capture: allowed; the unloading is scoped so that it harms no other thread's capture
 * @return nothing
 * Since: 1
 */
KILN_API void kiln_destroy(struct kiln **kiln);

/**
 * The folder that kiln_create would use for its cache, from the environment.
 *
 * Threads: any, while nothing changes the environment
 * Capture: allowed
 * @return KILN_OK; KILN_E_STORE: no usable folder, and why; KILN_E_ARGUMENT: buf is NULL
 *         or size_bytes too small
 * Since: 1
 */
KILN_API KILN_MUST_USE enum kiln_status
kiln_default_cache_dir(char *buf, size_t size_bytes, struct kiln_error *err);

/* ---- prepare (slow) ---------------------------------------------------------------------- */

/**
 * Make sure that the kernel's cubin exists: from the cache, or compiled and stored. Needs
 * no driver and delays no launch: safe while serving.
 *
 * @param target "sm_90"; NULL: the kiln's
 * Threads: any; one build per key however many threads ask
 * Capture: allowed; never touches the driver when the target is known
 * Cost: may read disk, may compile (tens of ms)
 * @return KILN_OK; KILN_E_SHAPE, KILN_E_TARGET, KILN_E_UNSUPPORTED, KILN_E_ARGUMENT:
 *         named; KILN_E_NVRTC_MISSING: the list of what was tried; KILN_E_COMPILE;
 *         KILN_E_LIMIT; KILN_E_TIMEOUT; KILN_E_FORKED; KILN_E_MEMORY; KILN_E_NO_CONTEXT,
 *         KILN_E_DRIVER_MISSING, KILN_E_DRIVER: no target was named and none could be
 *         found out
 * Since: 1
 */
KILN_API KILN_MUST_USE enum kiln_status kiln_build(struct kiln *kiln, enum kiln_op op,
                                                   const struct kiln_shape *shape,
                                                   const char *target,
                                                   struct kiln_error *err);

/**
 * Build if missing, then load: afterwards a launch in the current context has nothing left
 * to do; another context of the device wants a prepare of its own. Start-up only (Caveats).
 *
 * @param stream asked whether it captures, nothing else; may be NULL
 * @param out interned: the same key gives the same pointer, borrowed until kiln_destroy
 * Threads: any, with a current context
 * Capture: not on a capturing thread
 * Cost: may compile and load; waits for an idle GPU
 * @return as kiln_build; KILN_E_NO_CONTEXT; KILN_E_CAPTURING: nothing was touched;
 *         KILN_E_CUBIN_REFUSED: the driver takes neither the cached nor the rebuilt
 *         cubin; KILN_E_DRIVER; KILN_E_DRIVER_MISSING
 * Since: 1
 */
KILN_API KILN_MUST_USE enum kiln_status kiln_prepare(struct kiln *kiln, enum kiln_op op,
                                                     const struct kiln_shape *shape,
                                                     struct CUstream_st *stream,
                                                     const struct kiln_kernel **out,
                                                     struct kiln_error *err);

/* ---- find (fast) ------------------------------------------------------------------------- */

/**
 * A kernel that was prepared. Never builds, never loads, takes no lock.
 *
 * Threads: any
 * Capture: allowed
 * Cost: a hash and a comparison of the shape
 * @return KILN_OK; KILN_E_NOT_READY: with the shape in words; KILN_E_ARGUMENT
 * Since: 1
 */
KILN_API KILN_MUST_USE enum kiln_status kiln_find(struct kiln *kiln, enum kiln_op op,
                                                  const struct kiln_shape *shape,
                                                  const struct kiln_kernel **out,
                                                  struct kiln_error *err);

/* Launches are in ops.h: kiln_launch_<op>. */

/* ---- warm -------------------------------------------------------------------------------- */

struct kiln_request {
    enum kiln_op op;
    struct kiln_shape shape;
    const char *target; /* "sm_90"; NULL: the kiln's; borrowed */
};

enum kiln_warm_result {
    KILN_WARM_COMPILED = 0,
    KILN_WARM_CACHED = 1,
    KILN_WARM_FAILED = 2
};

/* One request is done; called by one thread at a time, under a lock: it must not call
 * kiln_warm. `build_ms` is 0 unless it was built; `message` is NULL unless it failed. */
typedef void (*kiln_warm_fn)(void *user, size_t i_request, enum kiln_warm_result result,
                             int64_t build_ms, const char *message);

struct kiln_warm_options {
    int32_t n_jobs; /* compiling threads; 0: as many as cores, 4 at most */
    bool rebuild; /* do not ask the cache: compile all that this kiln has not built yet */
    kiln_warm_fn progress;
    void *user;
};

struct kiln_warm_summary {
    int64_t n_compiled, n_cached, n_failed;
};

/**
 * Build every request, several at a time, and store the cubins. One that fails does not
 * stop the others; one that the cache folder does not take has failed.
 *
 * Threads: any
 * Capture: allowed
 * Cost: tens of ms of compilation per missing kernel
 * @return KILN_OK also when requests failed: see the summary; KILN_E_ARGUMENT;
 *         KILN_E_FORKED; KILN_E_STORE: the kiln has no writable cache folder;
 *         KILN_E_MEMORY; KILN_E_SYSTEM
 * Since: 1
 */
KILN_API KILN_MUST_USE enum kiln_status
kiln_warm(struct kiln *kiln, const struct kiln_request *requests, size_t n,
          const struct kiln_warm_options *options, struct kiln_warm_summary *out,
          struct kiln_error *err);

/* ---- look -------------------------------------------------------------------------------- */

struct kiln_stats {
    int64_t n_kernels;    /* built or loaded; failed ones count for max_kernels only */
    int64_t n_compiled;   /* by NVRTC */
    int64_t n_store_hits; /* verified entries read */
    int64_t n_store_misses;
    int64_t n_store_bad;    /* entries that did not verify */
    int64_t n_store_faults; /* disk trouble; worked around */
    int64_t n_loaded;
    int64_t n_failed; /* builds and loads */
    int64_t compile_ms, load_ms;
    int64_t code_bytes;   /* cubins of the loaded kernels */
    int64_t n_found;      /* kiln_find that gave a kernel */
    int64_t n_not_found;  /* ... that did not */
    int64_t n_launches;   /* that returned KILN_OK, of launchers too */
    int64_t n_violations; /* of the seal */
    int64_t n_refused;    /* launches of a kernel that did not return KILN_OK */
    int64_t n_launchers;  /* alive now */
};

/** Counters since create; zeros for a NULL kiln. Threads: any. Capture: allowed.
 * @return nothing. */
KILN_API void kiln_get_stats(const struct kiln *kiln, struct kiln_stats *out);

struct kiln_kernel_info {
    enum kiln_op op;
    char target[16];     /* "sm_90" */
    int32_t threads;     /* of the largest block */
    int32_t registers;   /* per thread */
    int32_t smem_bytes;  /* static shared memory of a block */
    int32_t local_bytes; /* local memory per thread */
    int32_t cubin_bytes;
    bool from_cache; /* the cubin came from disk */
    bool checked;    /* the checked variant */
    int64_t build_ms, load_ms;
};

/** Facts of a loaded kernel. Threads: any. Capture: allowed. @return nothing. */
KILN_API void kiln_kernel_get_info(const struct kiln_kernel *kernel,
                                   struct kiln_kernel_info *out);

/**
 * The exact CUDA source of a shape, what the compiler gets: self-contained, the same
 * bytes every time.
 *
 * @param variant bits of enum kiln_variant; 0: none
 * @param buf may be NULL when size_bytes is 0
 * @param out_bytes the whole length without the NUL, also when the buffer was too small
 * Owner: buf is the caller's; it ends in a NUL when size_bytes > 0
 * Threads: any
 * Capture: allowed
 * @return KILN_OK; KILN_E_SHAPE, KILN_E_UNSUPPORTED, KILN_E_ARGUMENT: named;
 *         KILN_E_MEMORY
 * Since: 1
 */
KILN_API KILN_MUST_USE enum kiln_status
kiln_emit_source(enum kiln_op op, const struct kiln_shape *shape, uint32_t variant,
                 char *buf, size_t size_bytes, size_t *out_bytes, struct kiln_error *err);

/**
 * Say whether kiln knows a target's name. Whether NVRTC can compile for it is not asked.
 *
 * @param target "sm_90", say
 * Threads: any
 * Capture: allowed
 * @return KILN_OK; KILN_E_TARGET: the list of those that are known; KILN_E_ARGUMENT: it is NULL
 * Since: 1
 */
KILN_API KILN_MUST_USE enum kiln_status kiln_target_check(const char *target,
                                                          struct kiln_error *err);

enum kiln_finding_state {
    KILN_FINDING_OK = 0,
    KILN_FINDING_NOTE = 1,
    KILN_FINDING_FAULT = 2
};

/* One thing that was looked at. Strings live for the call; `advice` is what to do, or
 * NULL. */
struct kiln_finding {
    const char *topic; /* "nvrtc", "driver", "gpu", "cache" */
    enum kiln_finding_state state;
    const char *text;
    const char *advice;
};
typedef void (*kiln_finding_fn)(void *user, const struct kiln_finding *finding);

/**
 * Look at NVRTC, the driver, the GPUs and the cache folders, and hand out what was found. Makes
 * nothing; a missing folder is seen as missing where the kiln was created with `no_write`.
 *
 * Threads: any
 * Capture: not on a capturing thread
 * Cost: loads libraries, initialises the driver
 * @return KILN_OK also with faults; KILN_E_ARGUMENT; KILN_E_FORKED; KILN_E_MEMORY
 * Since: 1
 */
KILN_API KILN_MUST_USE enum kiln_status kiln_doctor(struct kiln *kiln, kiln_finding_fn fn,
                                                    void *user, struct kiln_error *err);

#ifdef __cplusplus
}
#endif
#endif
