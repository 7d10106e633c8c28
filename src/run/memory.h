/* SPDX-License-Identifier: Apache-2.0 */
/* Device memory of the current context, without harm to another thread's capture. */
#ifndef KI_RUN_MEMORY_H
#define KI_RUN_MEMORY_H

#include "run/driver.h"

/* 256-byte aligned, as the driver gives it. `out` is untouched on failure. */
enum kiln_status ki_memory_alloc(const struct ki_driver *driver, size_t size_bytes,
                                 void **out, struct kiln_error *err);

/* Waits for work in flight. *address becomes NULL once the driver was asked to free it:
 * what it then reports is mostly what a launch did wrong. Not NULL: it is still there. */
enum kiln_status ki_memory_free(const struct ki_driver *driver, void **address,
                                struct kiln_error *err);

#endif
