/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finding and loading libcuda.so.1, its function table, and result -> status. A table of
 * function pointers, so that tests hand in a fake. Never linked; nothing at exit.
 */
#ifndef KI_RUN_DRIVER_H
#define KI_RUN_DRIVER_H

#include <cuda.h>

#include "kiln/status.h"

#include "base/status.h"

/* X(member, symbol, version, required): prototypes are cuda.h's own; see driver.c. */
#define KI_DRIVER_TABLE(X)                                                               \
    X(get_error_name, cuGetErrorName, 6000, 1)                                           \
    X(init, cuInit, 2000, 1)                                                             \
    X(device_get_count, cuDeviceGetCount, 2000, 1)                                       \
    X(device_get, cuDeviceGet, 2000, 1)                                                  \
    X(device_get_name, cuDeviceGetName, 2000, 1)                                         \
    X(device_get_attribute, cuDeviceGetAttribute, 2000, 1)                               \
    X(primary_ctx_retain, cuDevicePrimaryCtxRetain, 7000, 1)                             \
    X(primary_ctx_release, cuDevicePrimaryCtxRelease, 11000, 1)                          \
    X(ctx_get_current, cuCtxGetCurrent, 4000, 1)                                         \
    X(ctx_set_current, cuCtxSetCurrent, 4000, 1)                                         \
    X(ctx_get_device, cuCtxGetDevice, 2000, 1)                                           \
    X(library_load_data, cuLibraryLoadData, 12000, 1)                                    \
    X(library_unload, cuLibraryUnload, 12000, 1)                                         \
    X(library_get_kernel, cuLibraryGetKernel, 12000, 1)                                  \
    X(kernel_get_function, cuKernelGetFunction, 12000, 1)                                \
    X(kernel_get_attribute, cuKernelGetAttribute, 12000, 1)                              \
    X(func_load, cuFuncLoad, 12040, 0)                                                   \
    X(launch_kernel_ex, cuLaunchKernelEx, 11060, 1)                                      \
    X(stream_create, cuStreamCreate, 2000, 1)                                            \
    X(stream_destroy, cuStreamDestroy, 4000, 1)                                          \
    X(stream_synchronize, cuStreamSynchronize, 2000, 1)                                  \
    X(stream_is_capturing, cuStreamIsCapturing, 10000, 1)                                \
    X(thread_exchange_capture_mode, cuThreadExchangeStreamCaptureMode, 10010, 1)         \
    X(stream_begin_capture, cuStreamBeginCapture, 10010, 1)                              \
    X(stream_end_capture, cuStreamEndCapture, 10000, 1)                                  \
    X(graph_instantiate, cuGraphInstantiateWithFlags, 11040, 1)                          \
    X(graph_launch, cuGraphLaunch, 10000, 1)                                             \
    X(graph_exec_destroy, cuGraphExecDestroy, 10000, 1)                                  \
    X(graph_destroy, cuGraphDestroy, 10000, 1)                                           \
    X(mem_alloc, cuMemAlloc, 3020, 1)                                                    \
    X(mem_free, cuMemFree, 3020, 1)                                                      \
    X(memcpy_htod_async, cuMemcpyHtoDAsync, 3020, 1)                                     \
    X(memcpy_dtoh_async, cuMemcpyDtoHAsync, 3020, 1)                                     \
    X(memcpy_dtod_async, cuMemcpyDtoDAsync, 3020, 1)                                     \
    X(user_object_create, cuUserObjectCreate, 11030, 1)                                  \
    X(user_object_release, cuUserObjectRelease, 11030, 1)                                \
    X(graph_retain_user_object, cuGraphRetainUserObject, 11030, 1)                       \
    X(event_create, cuEventCreate, 2000, 1)                                              \
    X(event_destroy, cuEventDestroy, 4000, 1)                                            \
    X(event_record, cuEventRecord, 2000, 1)                                              \
    X(event_synchronize, cuEventSynchronize, 2000, 1)                                    \
    X(event_elapsed_time, cuEventElapsedTime, 2000, 1)

struct ki_driver {
#define KI_DRIVER_MEMBER(member, symbol, version, required) __typeof__(symbol) *member;
    KI_DRIVER_TABLE(KI_DRIVER_MEMBER)
#undef KI_DRIVER_MEMBER
    int version;   /* as cuDriverGetVersion: 13000 */
    void *library; /* dlopen handle, owned; NULL for a fake */
};

/* KILN_E_DRIVER_MISSING: no libcuda.so.1, or older than 12.0, with what was tried. Calls
 * cuInit. */
enum kiln_status ki_driver_open(struct ki_driver *driver, struct kiln_error *err);
void ki_driver_close(struct ki_driver *driver); /* all-zero is fine */

/* What ki_driver_open does once the library is loaded: refuses what is too old, binds
 * every symbol, calls cuInit. driver->library stays, the rest is untouched on failure. */
typedef __typeof__(cuGetProcAddress) *ki_get_proc_address_fn;
enum kiln_status ki_driver_bind(struct ki_driver *driver, int version,
                                ki_get_proc_address_fn get_proc_address,
                                struct kiln_error *err);

/* The driver's own name for a result, such as "CUDA_ERROR_INVALID_VALUE"; NULL: it has
 * none. */
const char *ki_driver_result_name(const struct ki_driver *driver, CUresult result);

/* KILN_OK, or a failure naming the call, the driver's name for the result and the code.
 */
enum kiln_status ki_driver_check(const struct ki_driver *driver, CUresult result,
                                 const char *call, struct kiln_error *err);

#endif
