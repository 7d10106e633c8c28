/* SPDX-License-Identifier: Apache-2.0 */
/*
 * key <-> cubin on disk: one writable folder and any number of read-only ones behind it.
 * Trusts no byte that it reads. No lock: temporary file, fsync, rename.
 *
 *   <root>/kiln-v1/<2 hex>/<62 hex>.kiln    tmp/    CACHEDIR.TAG
 */
#ifndef KI_BUILD_STORE_H
#define KI_BUILD_STORE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/file.h"
#include "base/log.h"
#include "build/cubin.h"
#include "plan/key.h"

struct ki_store_options {
    const char *writable;         /* absolute path, or NULL: none */
    const char *const *read_only; /* absolute paths */
    size_t n_read_only;
    bool allow_group_writable;
    bool no_write;                  /* `writable` is only read all the same */
    const char *no_writable_reason; /* where nothing is written: why */
    bool exact_compiler; /* an entry of another NVRTC than the one below is a miss */
    int nvrtc_major,
        nvrtc_minor; /* with exact_compiler; 0: unknown, nothing is exact then */
    const struct ki_files *files; /* borrowed for the store's life; NULL: the system's */
};

struct ki_store_layer; /* one folder, opened once */

struct ki_store {
    const struct ki_mem *mem;
    const struct ki_log *log;
    struct ki_store_layer *layers; /* the writable one first; owned */
    size_t n_layers;
    bool has_writable;
    char no_writable_reason[KILN_MESSAGE_BYTES]; /* "" where there is one */
    bool exact_compiler;
    _Atomic int32_t nvrtc_major, nvrtc_minor;
    _Atomic uint32_t warned; /* bit per kind of fault that has been logged */
    _Atomic uint64_t n_hits, n_misses, n_bad, n_writes, n_faults;
};

/* Never fails because of a folder: one that is missing or not to be trusted is left out
 * with one warning. KILN_E_MEMORY only. */
enum kiln_status ki_store_open(struct ki_store *store,
                               const struct ki_store_options *options,
                               const struct ki_mem *mem, const struct ki_log *log,
                               struct kiln_error *err);
void ki_store_close(struct ki_store *store);

/* True: `out` holds the verified cubin of exactly this key and is owned by the caller. */
bool ki_store_get(struct ki_store *store, const struct ki_key *key,
                  struct ki_target target, struct ki_cubin *out);

/* Publishes whole or not at all; a fault is counted and warned of once, never an error.
 * True: it lies there; else `why` (may be NULL) says why not. */
bool ki_store_put(struct ki_store *store, const struct ki_key *key,
                  const struct ki_cubin *cubin, struct kiln_error *why);

/* One entry as the operator sees it. Strings live for the call. */
struct ki_store_item {
    const char *name;             /* "<2 hex>/<62 hex>.kiln" */
    const char *key_text;         /* NULL when bad */
    const struct ki_cubin *cubin; /* NULL when bad */
    const char *fault;            /* NULL: the entry verifies */
    int64_t size_bytes;
    int64_t used_ms; /* last use, ms since 1970 */
};
typedef void (*ki_store_item_fn)(void *user, const struct ki_store_item *item);

/* Visits every entry of one folder in name order. KILN_E_STORE: the folder cannot be
 * read, does not exist, or is not to be trusted. An empty or new folder has no entries
 * and is fine. */
enum kiln_status ki_store_visit(const char *root, bool allow_group_writable,
                                const struct ki_mem *mem, ki_store_item_fn fn, void *user,
                                struct kiln_error *err);

/* KILN_OK: this process could write entries there, making what is missing. KILN_E_STORE: it
 * could not, and which folder is why. Makes nothing. */
enum kiln_status ki_store_writable(const char *root, bool allow_group_writable,
                                   const struct ki_mem *mem, struct kiln_error *err);

/* Removes oldest use first until at most max_bytes are left, temporary files of dead
 * writers too. */
enum kiln_status ki_store_trim(const char *root, bool allow_group_writable,
                               int64_t max_bytes, const struct ki_mem *mem,
                               int64_t *out_removed, int64_t *out_bytes_left,
                               struct kiln_error *err);

#endif
