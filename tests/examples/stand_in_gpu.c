/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The GPU of an example, on a machine that has none: what an example calls of kiln/gpu.h,
 * kiln/launcher.h and kiln/seal.h, over host memory, with the reference as its kernels. A
 * program that is linked with this file gets these in place of the library's.
 *
 * KILN_STAND_IN_FAULT=N: the N-th launch of all replays, from 0, writes one element wrong.
 */
#include <stdlib.h>
#include <string.h>

#include "kiln/gpu.h"
#include "kiln/kiln.h"
#include "kiln/launcher.h"
#include "kiln/seal.h"

enum { MAX_NODES = 4096, MAX_ARGS_BYTES = 512 };

/* A launch, or a copy where `shape` is NULL. */
struct node {
    const struct kiln_shape *shape;
    enum kiln_op op;
    char args[MAX_ARGS_BYTES];
    void *to;
    const void *from;
    size_t n_bytes;
};

struct kiln_gpu_graph {
    size_t n_nodes;
    struct node nodes[MAX_NODES];
};

struct kiln_gpu {
    struct kiln_gpu_graph *capturing;
    long n_until_fault;
};

struct kiln_launcher {
    struct kiln_layout layout;
    char *block;
    int64_t n_launches;
};

/* A stream is its gpu. */
static struct kiln_gpu *gpu_of(struct CUstream_st *stream)
{
    return (struct kiln_gpu *)(void *)stream;
}

static struct node *add_node(struct kiln_gpu *gpu)
{
    if (gpu->capturing == NULL || gpu->capturing->n_nodes == MAX_NODES) {
        abort();
    }
    return &gpu->capturing->nodes[gpu->capturing->n_nodes++];
}

/* ---- gpu.h ---- */

enum kiln_status kiln_gpu_open(int ordinal, struct kiln_gpu **out, struct kiln_error *err)
{
    const char *fault = getenv("KILN_STAND_IN_FAULT");

    (void)ordinal;
    (void)err;
    *out = calloc(1, sizeof **out);
    if (*out == NULL) {
        abort();
    }
    (*out)->n_until_fault = fault != NULL ? strtol(fault, NULL, 10) : -1;
    return KILN_OK;
}

void kiln_gpu_close(struct kiln_gpu **gpu)
{
    free(*gpu);
    *gpu = NULL;
}

struct CUstream_st *kiln_gpu_stream(const struct kiln_gpu *gpu)
{
    void *stream;

    memcpy(&stream, &gpu, sizeof stream);
    return stream;
}

enum kiln_status kiln_gpu_alloc(struct kiln_gpu *gpu, size_t size_bytes, void **out,
                                struct kiln_error *err)
{
    (void)gpu;
    (void)err;
    *out = malloc(size_bytes);
    return *out != NULL ? KILN_OK : KILN_E_MEMORY;
}

void kiln_gpu_free(struct kiln_gpu *gpu, void *address)
{
    (void)gpu;
    free(address);
}

enum kiln_status kiln_gpu_copy_in(struct kiln_gpu *gpu, void *device, const void *host,
                                  size_t size_bytes, struct kiln_error *err)
{
    (void)err;
    if (gpu->capturing != NULL) {
        abort();
    }
    memcpy(device, host, size_bytes);
    return KILN_OK;
}

enum kiln_status kiln_gpu_copy_out(struct kiln_gpu *gpu, void *host, const void *device,
                                   size_t size_bytes, struct kiln_error *err)
{
    return kiln_gpu_copy_in(gpu, host, device, size_bytes, err);
}

enum kiln_status kiln_gpu_copy(struct kiln_gpu *gpu, void *to, const void *from,
                               size_t size_bytes, struct kiln_error *err)
{
    struct node *node = add_node(gpu);

    (void)err;
    *node = (struct node){.to = to, .from = from, .n_bytes = size_bytes};
    return KILN_OK;
}

enum kiln_status kiln_gpu_capture_begin(struct kiln_gpu *gpu, enum kiln_capture_mode mode,
                                        struct kiln_error *err)
{
    (void)mode;
    (void)err;
    gpu->capturing = calloc(1, sizeof *gpu->capturing);
    return gpu->capturing != NULL ? KILN_OK : KILN_E_MEMORY;
}

enum kiln_status kiln_gpu_capture_end(struct kiln_gpu *gpu, struct kiln_gpu_graph **out,
                                      struct kiln_error *err)
{
    (void)err;
    *out = gpu->capturing;
    gpu->capturing = NULL;
    return KILN_OK;
}

static enum kiln_status run_launch(struct kiln_gpu *gpu, const struct node *node,
                                   struct kiln_error *err)
{
    const struct kiln_op_info *info = kiln_op_info_get(node->op);
    enum kiln_status status = kiln_reference(node->op, node->shape, node->args, err);

    for (size_t i = 0; gpu->n_until_fault == 0 && i < info->n_args; i++) {
        if (info->args[i].kind == KILN_ARG_OUTPUT) {
            char *output;

            memcpy(&output, node->args + info->args[i].offset, sizeof output);
            *output ^= 1;
            break;
        }
    }
    gpu->n_until_fault -= gpu->n_until_fault >= 0;
    return status;
}

enum kiln_status kiln_gpu_replay(struct kiln_gpu *gpu, struct kiln_gpu_graph *graph,
                                 double *out_us, struct kiln_error *err)
{
    enum kiln_status status = KILN_OK;

    for (size_t i = 0; i < graph->n_nodes && status == KILN_OK; i++) {
        const struct node *node = &graph->nodes[i];

        if (node->shape != NULL) {
            status = run_launch(gpu, node, err);
        } else {
            memcpy(node->to, node->from, node->n_bytes);
        }
    }
    if (out_us != NULL) {
        *out_us = 1;
    }
    return status;
}

void kiln_gpu_graph_destroy(struct kiln_gpu *gpu, struct kiln_gpu_graph **graph)
{
    (void)gpu;
    free(*graph);
    *graph = NULL;
}

/* ---- launcher.h, seal.h ---- */

enum kiln_status kiln_launcher_create(struct kiln *kiln,
                                      const struct kiln_deployment *deployment,
                                      const struct kiln_launcher_options *options,
                                      struct kiln_launcher **out, struct kiln_error *err)
{
    struct kiln_launcher *launcher = calloc(1, sizeof *launcher);
    enum kiln_status status;

    (void)kiln;
    (void)options;
    if (launcher == NULL) {
        abort();
    }
    status = kiln_layout_make(deployment, &launcher->layout, err);
    if (status != KILN_OK) {
        free(launcher);
        return status;
    }
    launcher->block = malloc((size_t)launcher->layout.total_bytes);
    for (size_t i = 0; i < launcher->layout.n_buffers; i++) {
        launcher->layout.buffers[i].address =
            launcher->block + launcher->layout.buffers[i].offset;
    }
    *out = launcher;
    return KILN_OK;
}

enum kiln_status kiln_launcher_destroy(struct kiln_launcher **launcher,
                                       struct kiln_error *err)
{
    (void)err;
    if (*launcher != NULL) {
        free((*launcher)->block);
        kiln_layout_finish(&(*launcher)->layout);
        free(*launcher);
        *launcher = NULL;
    }
    return KILN_OK;
}

const struct kiln_layout *kiln_launcher_layout(const struct kiln_launcher *launcher)
{
    return &launcher->layout;
}

/* Outputs that the caller left out are the launcher's. */
enum kiln_status kiln_launcher_launch(struct kiln_launcher *launcher, size_t i_launch,
                                      const void *args, struct CUstream_st *stream,
                                      struct kiln_error *err)
{
    const struct kiln_layout_launch *launch = &launcher->layout.launches[i_launch];
    const struct kiln_op_info *info = kiln_op_info_get(launch->op);
    const struct kiln_buffer *buffer = &launcher->layout.buffers[launch->first_buffer];
    struct node *node = add_node(gpu_of(stream));

    (void)err;
    *node = (struct node){.shape = &launch->shape, .op = launch->op};
    memcpy(node->args, args, info->args_bytes);
    for (size_t i = 0; i < info->n_args; i++) {
        if (info->args[i].kind == KILN_ARG_OUTPUT) {
            memcpy(node->args + info->args[i].offset, &buffer->address,
                   sizeof buffer->address);
            buffer++;
        }
    }
    launcher->n_launches++;
    return KILN_OK;
}

void kiln_launcher_get_stats(const struct kiln_launcher *launcher,
                             struct kiln_launcher_stats *out)
{
    *out = (struct kiln_launcher_stats){.n_launches = launcher->n_launches};
}

enum kiln_status kiln_seal(struct kiln *kiln, enum kiln_seal_mode mode,
                           const struct kiln_plan *plan, unsigned char *out_digest,
                           struct kiln_error *err)
{
    (void)kiln;
    (void)mode;
    (void)plan;
    (void)out_digest;
    (void)err;
    return KILN_OK;
}
