/* SPDX-License-Identifier: Apache-2.0 */
/* A callback for the end of a graph's life. */
#ifndef KI_RUN_USER_OBJECT_H
#define KI_RUN_USER_OBJECT_H

#include "run/driver.h"

/*
 * Have `gone(user)` called once the graph, its clones and everything instantiated from them
 * are destroyed: on a thread of the driver's, at some later time, and it must not call CUDA.
 * On failure *called says whether it was, or will be, called all the same.
 */
enum kiln_status ki_user_object_tie(const struct ki_driver *driver, CUgraph graph,
                                    CUhostFn gone, void *user, int *called,
                                    struct kiln_error *err);

#endif
