/* SPDX-License-Identifier: Apache-2.0 */
/* See user_object.h. */
#include "run/device.h"
#include "run/user_object.h"

/* The graph takes over the one reference. */
static enum kiln_status tie(const struct ki_driver *driver, CUgraph graph, CUhostFn gone,
                            void *user, int *called, struct kiln_error *err)
{
    CUuserObject object = NULL;
    enum kiln_status status;

    KI_TRY(ki_driver_check(driver,
                           driver->user_object_create(&object, user, gone, 1,
                                                      CU_USER_OBJECT_NO_DESTRUCTOR_SYNC),
                           "cuUserObjectCreate", err));
    status = ki_driver_check(
        driver,
        driver->graph_retain_user_object(graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE),
        "cuGraphRetainUserObject", err);
    if (status != KILN_OK) {
        (void)driver->user_object_release(object, 1);
        *called = 1;
    }
    return status;
}

enum kiln_status ki_user_object_tie(const struct ki_driver *driver, CUgraph graph,
                                    CUhostFn gone, void *user, int *called,
                                    struct kiln_error *err)
{
    struct ki_relaxed scope;
    enum kiln_status status;

    *called = 0;
    KI_TRY(ki_relaxed_enter(driver, &scope, err));
    status = tie(driver, graph, gone, user, called, err);
    ki_relaxed_leave(driver, &scope);
    return status;
}
