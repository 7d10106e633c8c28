/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kiln/gpu.h over run/driver: a context, a stream, memory, graphs and timing for tools and
 * tests. The only part of kiln that captures, and it captures its own stream alone. Knows
 * nothing of kernels.
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "kiln/gpu.h"

#include "base/mem.h"
#include "gpu.h"
#include "run/device.h"
#include "run/memory.h"

struct kiln_gpu {
    struct ki_driver driver;
    struct ki_device device;
    CUcontext context;  /* the primary one, retained */
    CUcontext previous; /* what was current when it was opened; borrowed, may be NULL */
    CUstream stream;
    CUevent begin, end; /* around a replay */
    struct kiln_gpu_info info;
};

struct kiln_gpu_graph {
    CUgraph graph;
    CUgraphExec exec;
};

/* Tools bring no allocator of their own. */
static const struct ki_mem c_library = {NULL, NULL};

static enum kiln_status check(const struct kiln_gpu *gpu, CUresult result,
                              const char *call, struct kiln_error *err)
{
    return ki_driver_check(&gpu->driver, result, call, err);
}

static enum kiln_status check_ordinal(const struct kiln_gpu *gpu, int ordinal,
                                      struct kiln_error *err)
{
    int n_devices = 0;
    KI_TRY(check(gpu, gpu->driver.device_get_count(&n_devices), "cuDeviceGetCount", err));
    if (ordinal < 0 || ordinal >= n_devices) {
        return ki_fail(err, KILN_E_DRIVER_MISSING,
                       "there is no GPU %d: the driver shows %d, numbered from 0",
                       ordinal, n_devices);
    }
    return KILN_OK;
}

static enum kiln_status read_info(struct kiln_gpu *gpu, int ordinal,
                                  struct kiln_error *err)
{
    const struct ki_driver *driver = &gpu->driver;
    struct kiln_gpu_info *info = &gpu->info;
    CUdevice device = 0;
    KI_TRY(check(gpu, driver->device_get(&device, ordinal), "cuDeviceGet", err));
    KI_TRY(ki_device_facts(driver, device, &gpu->device, err));
    KI_TRY(check(gpu,
                 driver->device_get_name(info->name, (int)sizeof(info->name), device),
                 "cuDeviceGetName", err));
    ki_target_name(gpu->device.target, info->target);
    info->n_sms = gpu->device.n_sms;
    info->driver_version = driver->version;
    return KILN_OK;
}

static enum kiln_status make_parts(struct kiln_gpu *gpu, struct kiln_error *err)
{
    const struct ki_driver *driver = &gpu->driver;
    KI_TRY(check(gpu, driver->primary_ctx_retain(&gpu->context, gpu->device.ordinal),
                 "cuDevicePrimaryCtxRetain", err));
    KI_TRY(check(gpu, driver->ctx_get_current(&gpu->previous), "cuCtxGetCurrent", err));
    KI_TRY(check(gpu, driver->ctx_set_current(gpu->context), "cuCtxSetCurrent", err));
    KI_TRY(check(gpu, driver->stream_create(&gpu->stream, CU_STREAM_NON_BLOCKING),
                 "cuStreamCreate", err));
    KI_TRY(check(gpu, driver->event_create(&gpu->begin, CU_EVENT_DEFAULT),
                 "cuEventCreate", err));
    return check(gpu, driver->event_create(&gpu->end, CU_EVENT_DEFAULT), "cuEventCreate",
                 err);
}

/* Whatever of them there is; a release that fails has nobody left to tell. */
static void release_parts(struct kiln_gpu *gpu)
{
    const struct ki_driver *driver = &gpu->driver;
    CUcontext current = NULL;
    if (gpu->end != NULL) {
        (void)driver->event_destroy(gpu->end);
    }
    if (gpu->begin != NULL) {
        (void)driver->event_destroy(gpu->begin);
    }
    if (gpu->stream != NULL) {
        (void)driver->stream_destroy(gpu->stream);
    }
    if (gpu->context == NULL) {
        return;
    }
    if (driver->ctx_get_current(&current) == CUDA_SUCCESS && current == gpu->context) {
        (void)driver->ctx_set_current(gpu->previous);
    }
    (void)driver->primary_ctx_release(gpu->device.ordinal);
}

enum kiln_status ki_gpu_open_with(const struct ki_driver *driver, int ordinal,
                                  struct kiln_gpu **out, struct kiln_error *err)
{
    enum kiln_status status;
    struct kiln_gpu *gpu = ki_mem_alloc(&c_library, sizeof(*gpu));
    *out = NULL;
    if (gpu == NULL) {
        return ki_fail_memory(err, "a gpu");
    }
    gpu->driver = *driver;
    status = check_ordinal(gpu, ordinal, err);
    if (status != KILN_OK) {
        goto out;
    }
    status = read_info(gpu, ordinal, err);
    if (status != KILN_OK) {
        goto out;
    }
    status = make_parts(gpu, err);
    if (status != KILN_OK) {
        goto out;
    }
    *out = gpu;
    return KILN_OK;
out:
    release_parts(gpu);
    ki_mem_free(&c_library, gpu);
    return status;
}

enum kiln_status kiln_gpu_open(int ordinal, struct kiln_gpu **out, struct kiln_error *err)
{
    struct ki_driver driver = {.version = 0};
    *out = NULL;
    KI_TRY(ki_driver_open(&driver, err));
    enum kiln_status status = ki_gpu_open_with(&driver, ordinal, out, err);
    if (status != KILN_OK) {
        ki_driver_close(&driver);
    }
    return status;
}

void kiln_gpu_close(struct kiln_gpu **gpu)
{
    if (gpu == NULL || *gpu == NULL) {
        return;
    }
    release_parts(*gpu);
    ki_driver_close(&(*gpu)->driver);
    ki_mem_free(&c_library, *gpu);
    *gpu = NULL;
}

void kiln_gpu_get_info(const struct kiln_gpu *gpu, struct kiln_gpu_info *out)
{
    *out = gpu->info;
}

struct CUstream_st *kiln_gpu_stream(const struct kiln_gpu *gpu)
{
    return gpu->stream;
}

enum kiln_status kiln_gpu_alloc(struct kiln_gpu *gpu, size_t size_bytes, void **out,
                                struct kiln_error *err)
{
    *out = NULL;
    return size_bytes == 0 ? KILN_OK
                           : ki_memory_alloc(&gpu->driver, size_bytes, out, err);
}

void kiln_gpu_free(struct kiln_gpu *gpu, void *address)
{
    (void)ki_memory_free(&gpu->driver, &address, NULL);
}

/* Waits in any case, so that the host's buffer is the caller's again. */
static enum kiln_status wait_after(struct kiln_gpu *gpu, CUresult result,
                                   const char *call, struct kiln_error *err)
{
    CUresult waited = gpu->driver.stream_synchronize(gpu->stream);
    KI_TRY(check(gpu, result, call, err));
    return check(gpu, waited, "cuStreamSynchronize", err);
}

enum kiln_status kiln_gpu_copy_in(struct kiln_gpu *gpu, void *device, const void *host,
                                  size_t size_bytes, struct kiln_error *err)
{
    struct ki_relaxed scope;
    if (size_bytes == 0) {
        return KILN_OK;
    }
    KI_TRY(ki_relaxed_enter(&gpu->driver, &scope, err));
    CUresult result = gpu->driver.memcpy_htod_async((CUdeviceptr)(uintptr_t)device, host,
                                                    size_bytes, gpu->stream);
    enum kiln_status status = wait_after(gpu, result, "cuMemcpyHtoDAsync", err);
    ki_relaxed_leave(&gpu->driver, &scope);
    return status;
}

enum kiln_status kiln_gpu_copy_out(struct kiln_gpu *gpu, void *host, const void *device,
                                   size_t size_bytes, struct kiln_error *err)
{
    struct ki_relaxed scope;
    if (size_bytes == 0) {
        return KILN_OK;
    }
    KI_TRY(ki_relaxed_enter(&gpu->driver, &scope, err));
    CUresult result = gpu->driver.memcpy_dtoh_async(host, (CUdeviceptr)(uintptr_t)device,
                                                    size_bytes, gpu->stream);
    enum kiln_status status = wait_after(gpu, result, "cuMemcpyDtoHAsync", err);
    ki_relaxed_leave(&gpu->driver, &scope);
    return status;
}

enum kiln_status kiln_gpu_copy(struct kiln_gpu *gpu, void *to, const void *from,
                               size_t size_bytes, struct kiln_error *err)
{
    if (size_bytes == 0) {
        return KILN_OK;
    }
    return check(gpu,
                 gpu->driver.memcpy_dtod_async((CUdeviceptr)(uintptr_t)to,
                                               (CUdeviceptr)(uintptr_t)from, size_bytes,
                                               gpu->stream),
                 "cuMemcpyDtoDAsync", err);
}

static enum kiln_status native_mode(enum kiln_capture_mode mode, CUstreamCaptureMode *out,
                                    struct kiln_error *err)
{
    switch (mode) {
    case KILN_CAPTURE_GLOBAL:
        *out = CU_STREAM_CAPTURE_MODE_GLOBAL;
        return KILN_OK;
    case KILN_CAPTURE_THREAD_LOCAL:
        *out = CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
        return KILN_OK;
    case KILN_CAPTURE_RELAXED:
        *out = CU_STREAM_CAPTURE_MODE_RELAXED;
        return KILN_OK;
    }
    return ki_fail(err, KILN_E_ARGUMENT,
                   "mode is %d: expected a value of enum kiln_capture_mode", (int)mode);
}

enum kiln_status kiln_gpu_capture_begin(struct kiln_gpu *gpu, enum kiln_capture_mode mode,
                                        struct kiln_error *err)
{
    CUstreamCaptureMode native = CU_STREAM_CAPTURE_MODE_GLOBAL;
    KI_TRY(native_mode(mode, &native, err));
    return check(gpu, gpu->driver.stream_begin_capture(gpu->stream, native),
                 "cuStreamBeginCapture", err);
}

/* A broken capture ends with a result, or with success and no graph. */
static enum kiln_status end_capture(struct kiln_gpu *gpu, CUgraph *out,
                                    struct kiln_error *err)
{
    KI_TRY(check(gpu, gpu->driver.stream_end_capture(gpu->stream, out),
                 "cuStreamEndCapture", err));
    return check(gpu, *out == NULL ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : CUDA_SUCCESS,
                 "cuStreamEndCapture", err);
}

/* It frees memory, which would break another thread's capture outside of a relaxed scope;
 * where there is none, what leaks harms nobody. */
static void release_graph(struct kiln_gpu *gpu, struct kiln_gpu_graph *graph)
{
    struct ki_relaxed scope;

    if (ki_relaxed_enter(&gpu->driver, &scope, NULL) == KILN_OK) {
        if (graph->exec != NULL) {
            (void)gpu->driver.graph_exec_destroy(graph->exec);
        }
        if (graph->graph != NULL) {
            (void)gpu->driver.graph_destroy(graph->graph);
        }
        ki_relaxed_leave(&gpu->driver, &scope);
    }
    ki_mem_free(&c_library, graph);
}

/* It allocates, which would break another thread's capture outside of a relaxed scope. */
static enum kiln_status instantiate(const struct kiln_gpu *gpu,
                                    struct kiln_gpu_graph *graph, struct kiln_error *err)
{
    struct ki_relaxed scope;
    enum kiln_status status;

    KI_TRY(ki_relaxed_enter(&gpu->driver, &scope, err));
    status = check(gpu, gpu->driver.graph_instantiate(&graph->exec, graph->graph, 0),
                   "cuGraphInstantiateWithFlags", err);
    ki_relaxed_leave(&gpu->driver, &scope);
    return status;
}

enum kiln_status kiln_gpu_capture_end(struct kiln_gpu *gpu, struct kiln_gpu_graph **out,
                                      struct kiln_error *err)
{
    struct kiln_gpu_graph *graph = ki_mem_alloc(&c_library, sizeof(*graph));
    CUgraph captured = NULL;
    *out = NULL;
    /* The capture ends in any case. */
    enum kiln_status status = end_capture(gpu, &captured, err);
    if (graph == NULL) {
        if (captured != NULL) {
            (void)gpu->driver.graph_destroy(captured);
        }
        return ki_fail_memory(err, "a captured graph");
    }
    graph->graph = captured;
    if (status != KILN_OK) {
        goto out;
    }
    status = instantiate(gpu, graph, err);
    if (status != KILN_OK) {
        goto out;
    }
    *out = graph;
    return KILN_OK;
out:
    release_graph(gpu, graph);
    return status;
}

static enum kiln_status replay(struct kiln_gpu *gpu, struct kiln_gpu_graph *graph,
                               float *out_ms, struct kiln_error *err)
{
    const struct ki_driver *driver = &gpu->driver;
    KI_TRY(
        check(gpu, driver->event_record(gpu->begin, gpu->stream), "cuEventRecord", err));
    KI_TRY(
        check(gpu, driver->graph_launch(graph->exec, gpu->stream), "cuGraphLaunch", err));
    KI_TRY(check(gpu, driver->event_record(gpu->end, gpu->stream), "cuEventRecord", err));
    KI_TRY(check(gpu, driver->event_synchronize(gpu->end), "cuEventSynchronize", err));
    return check(gpu, driver->event_elapsed_time(out_ms, gpu->begin, gpu->end),
                 "cuEventElapsedTime", err);
}

enum kiln_status kiln_gpu_replay(struct kiln_gpu *gpu, struct kiln_gpu_graph *graph,
                                 double *out_us, struct kiln_error *err)
{
    struct ki_relaxed scope;
    float ms = 0;
    KI_TRY(ki_relaxed_enter(&gpu->driver, &scope, err));
    enum kiln_status status = replay(gpu, graph, &ms, err);
    ki_relaxed_leave(&gpu->driver, &scope);
    if (status == KILN_OK && out_us != NULL) {
        *out_us = (double)ms * 1000;
    }
    return status;
}

void kiln_gpu_graph_destroy(struct kiln_gpu *gpu, struct kiln_gpu_graph **graph)
{
    if (graph == NULL || *graph == NULL) {
        return;
    }
    release_graph(gpu, *graph);
    *graph = NULL;
}
