/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel cache on disk, for operators: list, verify, trim. Needs neither NVRTC nor a
 * GPU. */
#ifndef KILN_STORE_H
#define KILN_STORE_H

#include "kiln/kiln.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One entry. Strings live for the call. */
struct kiln_store_item {
    const char *name;  /* file, relative to the folder's kiln-v1 */
    const char *fault; /* NULL: the entry verifies; else what is wrong, and the next are
                          not set */
    const char *key_text; /* name=value lines */
    const char *op;
    const char *target;
    const char *nvrtc; /* "13.0" */
    int64_t size_bytes;
    int64_t cubin_bytes;
    int32_t registers, smem_bytes, threads;
    int64_t used_ms; /* last use, ms since 1970 */
};
typedef void (*kiln_store_item_fn)(void *user, const struct kiln_store_item *item);

/**
 * Visit every entry of a cache folder in the order of names, each verified whole.
 *
 * @param dir absolute
 * Threads: any
 * Capture: allowed
 * Cost: reads the whole folder
 * @return KILN_OK also with faulty entries; KILN_E_STORE: no such folder, unreadable or
 *         not to be trusted; KILN_E_ARGUMENT; KILN_E_MEMORY
 * Since: 1
 */
KILN_API KILN_MUST_USE enum kiln_status kiln_store_visit(const char *dir,
                                                         kiln_store_item_fn fn,
                                                         void *user,
                                                         struct kiln_error *err);

/* What kiln_store_check looks for, and where. All is borrowed for the call. */
struct kiln_store_query {
    const char *const *dirs; /* folders, absolute, tried in order */
    size_t n_dirs;
    const struct kiln_request *requests; /* each with its target */
    size_t n_requests;
    /* for each one not there; may be NULL */
    void (*missing)(void *user, size_t i_request);
    void *user;
};

/**
 * Say whether cache folders hold a verified cubin for each request.
 *
 * @param out_missing how many are not there
 * Threads: any
 * Capture: allowed
 * Cost: reads one file per request
 * @return KILN_OK also when some are missing; KILN_E_STORE: a folder is missing or not to
 *         be trusted; KILN_E_SHAPE, KILN_E_TARGET, KILN_E_UNSUPPORTED: a request is
 *         wrong; KILN_E_ARGUMENT; KILN_E_MEMORY
 * Since: 1
 */
KILN_API KILN_MUST_USE enum kiln_status
kiln_store_check(const struct kiln_store_query *query, size_t *out_missing,
                 struct kiln_error *err);

/**
 * Delete entries, oldest use first, until at most max_bytes are left.
 *
 * @param out_removed, out_bytes_left entries deleted, bytes of those left; may be NULL
 * Threads: any; several processes may trim and write at once
 * Capture: allowed
 * @return KILN_OK; KILN_E_STORE; KILN_E_ARGUMENT; KILN_E_MEMORY
 * Since: 1
 */
KILN_API KILN_MUST_USE enum kiln_status
kiln_store_trim(const char *dir, int64_t max_bytes, int64_t *out_removed,
                int64_t *out_bytes_left, struct kiln_error *err);

#ifdef __cplusplus
}
#endif
#endif
