/* SPDX-License-Identifier: Apache-2.0 */
/* See fake_driver_graph.h. */
#include <stdlib.h>

#include "support/fake_driver_graph.h"

/* With the mutex held, which the callback does not need: it calls no CUDA. */
static void release_object(CUuserObject object, int n)
{
    object->n_references -= n;
    if (object->n_references == 0) {
        fake_installed()->live.user_objects--;
        object->gone(object->user);
        free(object);
    }
}

static void release_objects(struct CUgraph_st *graph)
{
    for (int i = 0; i < graph->n_objects; i++) {
        release_object(graph->objects[i], 1);
    }
}

CUresult fake_user_object_create(CUuserObject *out, void *user, CUhostFn gone,
                                 unsigned int n_references, unsigned int flags)
{
    CUresult result = fake_enter(FAKE_user_object_create);
    if (result == CUDA_SUCCESS && flags != CU_USER_OBJECT_NO_DESTRUCTOR_SYNC) {
        result = CUDA_ERROR_INVALID_VALUE;
    }
    if (result == CUDA_SUCCESS) {
        fake_installed()->live.user_objects++;
        *out = fake_make(sizeof(**out));
        **out = (struct CUuserObject_st){gone, user, (int)n_references};
    }
    return fake_leave(result);
}

CUresult fake_user_object_release(CUuserObject object, unsigned int n)
{
    CUresult result = fake_enter(FAKE_user_object_release);
    release_object(object, (int)n);
    return fake_leave(result);
}

/* The graph takes the caller's reference over: CU_GRAPH_USER_OBJECT_MOVE. */
CUresult fake_graph_retain_user_object(CUgraph graph, CUuserObject object, unsigned int n,
                                       unsigned int flags)
{
    CUresult result = fake_enter(FAKE_graph_retain_user_object);
    if (result == CUDA_SUCCESS && (flags != CU_GRAPH_USER_OBJECT_MOVE || n != 1 ||
                                   graph->n_objects == FAKE_USER_OBJECTS)) {
        result = CUDA_ERROR_INVALID_VALUE;
    }
    if (result == CUDA_SUCCESS) {
        graph->objects[graph->n_objects++] = object;
    }
    return fake_leave(result);
}

CUresult fake_graph_instantiate(CUgraphExec *out, CUgraph graph, unsigned long long flags)
{
    CUresult result = fake_enter(FAKE_graph_instantiate);
    (void)flags;
    if (result == CUDA_SUCCESS) {
        fake_installed()->live.execs++;
        *out = fake_make(sizeof(**out));
        (*out)->holds = *graph;
        for (int i = 0; i < graph->n_objects; i++) {
            graph->objects[i]->n_references++;
        }
    }
    return fake_leave(result);
}

CUresult fake_graph_launch(CUgraphExec exec, CUstream stream)
{
    (void)exec, (void)stream;
    return fake_leave(fake_enter(FAKE_graph_launch));
}

CUresult fake_graph_exec_destroy(CUgraphExec exec)
{
    CUresult result = fake_enter_unsafe(FAKE_graph_exec_destroy);
    fake_installed()->live.execs--;
    release_objects(&exec->holds);
    free(exec);
    return fake_leave(result);
}

CUresult fake_graph_destroy(CUgraph graph)
{
    CUresult result = fake_enter(FAKE_graph_destroy);
    fake_installed()->live.graphs--;
    release_objects(graph);
    free(graph);
    return fake_leave(result);
}
