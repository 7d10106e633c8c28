/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One cache entry as bytes, format 1 (docs/cache-format.md). Pure: no file, no clock. The
 * decoder trusts no length and no digest alone.
 */
#ifndef KI_BUILD_STORE_ENTRY_H
#define KI_BUILD_STORE_ENTRY_H

#include "base/blob.h"
#include "build/cubin.h"
#include "plan/key.h"

enum { KI_STORE_ENTRY_FORMAT = 1, KI_STORE_ENTRY_MAX = 16 << 20 /* bytes of an entry */ };

/* What an entry holds; all of it lies in the bytes that were decoded. */
struct ki_store_entry {
    const char *key_text; /* NUL-terminated */
    size_t key_size;      /* without the NUL */
    struct ki_cubin cubin;
};

/* `out` is the caller's. KILN_E_STORE: too large for the format; KILN_E_MEMORY. */
enum kiln_status ki_store_entry_encode(const char *key_text, size_t key_size,
                                       const struct ki_cubin *cubin,
                                       const struct ki_mem *mem, struct ki_blob *out,
                                       struct kiln_error *err);

/* KILN_E_STORE: the bytes are no whole entry of this format with a cubin that bears out its
 * facts; the message says what is wrong. `out` is untouched then. */
enum kiln_status ki_store_entry_decode(struct ki_blob bytes, struct ki_store_entry *out,
                                       struct kiln_error *err);

#endif
