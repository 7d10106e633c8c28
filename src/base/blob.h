/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes with their size. Who owns `data` is said where a blob is handed over. */
#ifndef KI_BASE_BLOB_H
#define KI_BASE_BLOB_H

#include <stddef.h>

#include "base/mem.h"

struct ki_blob {
    unsigned char *data;
    size_t size;
};

static inline void ki_blob_finish(struct ki_blob *blob, const struct ki_mem *mem)
{
    ki_mem_free(mem, blob->data);
    blob->data = NULL;
    blob->size = 0;
}

#endif
