/* SPDX-License-Identifier: Apache-2.0 */
/* The user's allocator, and arrays whose size cannot overflow. */
#ifndef KI_BASE_MEM_H
#define KI_BASE_MEM_H

#include <stddef.h>

/* realloc's contract: size 0 frees and gives NULL; failure gives NULL and keeps the old
 * block. */
struct ki_mem {
    void *(*realloc_fn)(void *user, void *block, size_t size); /* NULL: the C library's */
    void *user;
};

void *ki_mem_alloc(const struct ki_mem *mem, size_t size);           /* zeroed; NULL */
void *ki_mem_array(const struct ki_mem *mem, size_t n, size_t size); /* zeroed; NULL */
void *ki_mem_resize(const struct ki_mem *mem, void *block, size_t size); /* NULL: kept */
void ki_mem_free(const struct ki_mem *mem, void *block);         /* NULL is fine */
char *ki_mem_string(const struct ki_mem *mem, const char *text); /* a copy; NULL */

#endif
