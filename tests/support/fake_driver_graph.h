/* SPDX-License-Identifier: Apache-2.0 */
/* The fake driver's graphs and the objects that they hold, and what its two files share. */
#ifndef TESTS_SUPPORT_FAKE_DRIVER_GRAPH_H
#define TESTS_SUPPORT_FAKE_DRIVER_GRAPH_H

#include "support/fake_driver.h"

struct CUuserObject_st {
    CUhostFn gone;
    void *user;
    int n_references;
};
struct CUgraph_st {
    CUuserObject objects[FAKE_USER_OBJECTS];
    int n_objects;
};
struct CUgraphExec_st {
    struct CUgraph_st holds;
};

struct fake_driver *fake_installed(void);
void *fake_make(size_t size); /* zeroed, of the heap */
/* Opens every function: counts the call, keeps its order, says whether it shall fail, and
 * leaves the mutex held. */
CUresult fake_enter(enum fake_call call);
CUresult fake_enter_unsafe(enum fake_call call); /* that breaks captures of others */
CUresult fake_leave(CUresult result);

CUresult fake_user_object_create(CUuserObject *out, void *user, CUhostFn gone,
                                 unsigned int n_references, unsigned int flags);
CUresult fake_user_object_release(CUuserObject object, unsigned int n);
CUresult fake_graph_retain_user_object(CUgraph graph, CUuserObject object, unsigned int n,
                                       unsigned int flags);
CUresult fake_graph_instantiate(CUgraphExec *out, CUgraph graph,
                                unsigned long long flags);
CUresult fake_graph_launch(CUgraphExec exec, CUstream stream);
CUresult fake_graph_exec_destroy(CUgraphExec exec);
CUresult fake_graph_destroy(CUgraph graph);

#endif
