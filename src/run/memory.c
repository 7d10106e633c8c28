/* SPDX-License-Identifier: Apache-2.0 */
/* See memory.h. Outside of a relaxed scope both calls would kill another thread's capture
 * in global mode. */
#include <stdint.h>
#include <stdio.h>

#include "run/device.h"
#include "run/memory.h"

enum kiln_status ki_memory_alloc(const struct ki_driver *driver, size_t size_bytes,
                                 void **out, struct kiln_error *err)
{
    struct ki_relaxed scope;
    CUdeviceptr address = 0;
    char call[48];
    enum kiln_status status;

    (void)snprintf(call, sizeof call, "cuMemAlloc of %zu bytes", size_bytes);
    KI_TRY(ki_relaxed_enter(driver, &scope, err));
    status = ki_driver_check(driver, driver->mem_alloc(&address, size_bytes), call, err);
    ki_relaxed_leave(driver, &scope);
    if (status == KILN_OK) {
        *out = (void *)(uintptr_t)address;
    }
    return status;
}

enum kiln_status ki_memory_free(const struct ki_driver *driver, void **address,
                                struct kiln_error *err)
{
    struct ki_relaxed scope;
    enum kiln_status status;

    if (*address == NULL) {
        return KILN_OK;
    }
    KI_TRY(ki_relaxed_enter(driver, &scope, err));
    status = ki_driver_check(driver, driver->mem_free((CUdeviceptr)(uintptr_t)*address),
                             "cuMemFree", err);
    ki_relaxed_leave(driver, &scope);
    *address = NULL;
    return status;
}
