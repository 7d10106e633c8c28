/* SPDX-License-Identifier: Apache-2.0 */
/* Whether programmatic launches do on this driver and device what they should. */
#ifndef KI_RUN_PROGRAMMATIC_H
#define KI_RUN_PROGRAMMATIC_H

#include "run/launch.h"

/*
 * Captures two programmatic launches of the kernel on a stream of its own, one behind the
 * other, and replays them once, in a relaxed scope: no other thread's capture suffers. Waits
 * for the end.
 */
enum kiln_status ki_programmatic_try(const struct kiln_kernel *kernel, const void *args,
                                     struct kiln_error *err);

#endif
