/* SPDX-License-Identifier: Apache-2.0 */
/* The only file that may call the C library's allocator. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

void *ki_mem_resize(const struct ki_mem *mem, void *block, size_t size)
{
    if (mem != NULL && mem->realloc_fn != NULL) {
        return mem->realloc_fn(mem->user, block, size);
    }
    if (size == 0) {
        free(block);
        return NULL;
    }
    return realloc(block, size);
}

void *ki_mem_alloc(const struct ki_mem *mem, size_t size)
{
    void *block = ki_mem_resize(mem, NULL, size == 0 ? 1 : size);

    if (block != NULL) {
        memset(block, 0, size);
    }
    return block;
}

void *ki_mem_array(const struct ki_mem *mem, size_t n, size_t size)
{
    if (size != 0 && n > SIZE_MAX / size) {
        return NULL;
    }
    return ki_mem_alloc(mem, n * size);
}

void ki_mem_free(const struct ki_mem *mem, void *block)
{
    if (block != NULL) {
        (void)ki_mem_resize(mem, block, 0);
    }
}

char *ki_mem_string(const struct ki_mem *mem, const char *text)
{
    size_t size = strlen(text) + 1;
    char *copy = ki_mem_alloc(mem, size);

    if (copy != NULL) {
        memcpy(copy, text, size);
    }
    return copy;
}
