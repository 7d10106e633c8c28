/* SPDX-License-Identifier: Apache-2.0 */
/* An allocator that fails its n-th request and counts what is still alive. */
#include <stdlib.h>

#include "support/failing_mem.h"

static void *resize(void *user, void *block, size_t size)
{
    struct failing_mem *failing = user;
    void *grown;

    if (size == 0) {
        atomic_fetch_sub(&failing->n_live, block != NULL ? 1 : 0);
        free(block);
        return NULL;
    }
    if (atomic_fetch_add(&failing->n_calls, 1) + 1 == failing->fail_nth) {
        return NULL;
    }
    grown = realloc(block, size);
    if (grown != NULL && block == NULL) {
        atomic_fetch_add(&failing->n_live, 1);
    }
    return grown;
}

void failing_mem_init(struct failing_mem *failing, int fail_nth)
{
    *failing = (struct failing_mem){
        .mem = {.realloc_fn = resize, .user = failing},
        .fail_nth = fail_nth,
    };
}
