/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The calling thread's context as plain facts, the question whether a stream captures, and
 * the thread's capture mode. All that kiln knows of capture is here; it begins and ends
 * none.
 */
#include "run/device.h"

static enum kiln_status get_attribute(const struct ki_driver *driver, CUdevice device,
                                      CUdevice_attribute attribute, int *out,
                                      struct kiln_error *err)
{
    return ki_driver_check(driver, driver->device_get_attribute(out, attribute, device),
                           "cuDeviceGetAttribute", err);
}

enum kiln_status ki_device_facts(const struct ki_driver *driver, CUdevice ordinal,
                                 struct ki_device *out, struct kiln_error *err)
{
    struct ki_device device = {.ordinal = ordinal};
    KI_TRY(get_attribute(driver, ordinal, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
                         &device.target.major, err));
    KI_TRY(get_attribute(driver, ordinal, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
                         &device.target.minor, err));
    KI_TRY(get_attribute(driver, ordinal, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT,
                         &device.n_sms, err));
    *out = device;
    return KILN_OK;
}

enum kiln_status ki_device_context(const struct ki_driver *driver, CUcontext *out,
                                   struct kiln_error *err)
{
    CUcontext context = NULL;
    KI_TRY(ki_driver_check(driver, driver->ctx_get_current(&context), "cuCtxGetCurrent",
                           err));
    if (context == NULL) {
        return ki_fail(
            err, KILN_E_NO_CONTEXT,
            "the calling thread has no current CUDA context: make the device's "
            "context current first (cudaSetDevice or cuCtxSetCurrent)");
    }
    *out = context;
    return KILN_OK;
}

enum kiln_status ki_device_current(const struct ki_driver *driver, struct ki_device *out,
                                   struct kiln_error *err)
{
    struct ki_device device;
    CUcontext context = NULL;
    CUdevice ordinal = 0;
    KI_TRY(ki_device_context(driver, &context, err));
    KI_TRY(
        ki_driver_check(driver, driver->ctx_get_device(&ordinal), "cuCtxGetDevice", err));
    KI_TRY(ki_device_facts(driver, ordinal, &device, err));
    device.context = context;
    *out = device;
    return KILN_OK;
}

bool ki_device_is_capture_result(CUresult result)
{
    return result >= CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED &&
           result <= CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
}

enum kiln_status ki_device_refuse_capture(const struct ki_driver *driver, CUstream stream,
                                          struct kiln_error *err)
{
    CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_NONE;
    CUresult result;
    if (stream == NULL) {
        return KILN_OK;
    }
    result = driver->stream_is_capturing(stream, &capture);
    if (ki_device_is_capture_result(result) ||
        (result == CUDA_SUCCESS && capture != CU_STREAM_CAPTURE_STATUS_NONE)) {
        return ki_fail(err, KILN_E_CAPTURING,
                       "the stream is being captured: prepare before the capture begins");
    }
    return ki_driver_check(driver, result, "cuStreamIsCapturing", err);
}

enum kiln_status ki_relaxed_enter(const struct ki_driver *driver,
                                  struct ki_relaxed *scope, struct kiln_error *err)
{
    scope->entered = 0;
    scope->saved = CU_STREAM_CAPTURE_MODE_RELAXED;
    KI_TRY(ki_driver_check(driver, driver->thread_exchange_capture_mode(&scope->saved),
                           "cuThreadExchangeStreamCaptureMode", err));
    scope->entered = 1;
    return KILN_OK;
}

void ki_relaxed_leave(const struct ki_driver *driver, struct ki_relaxed *scope)
{
    if (scope->entered) {
        /* It fails only for an invalid mode, and this one came from the driver. */
        (void)driver->thread_exchange_capture_mode(&scope->saved);
        scope->entered = 0;
    }
}
