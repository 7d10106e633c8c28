/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loaded kernel -> one driver call, and nothing beside it: no lock, no allocation, no
 * look-up, no attribute. What it passes lives on its stack.
 */
#include <string.h>

#include "run/launch.h"

KI_COLD
static enum kiln_status refused(const struct kiln_kernel *kernel, struct ki_grid grid,
                                CUresult result, struct kiln_error *err)
{
    const char *hint = result == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT
                           ? " (the legacy NULL stream cannot be used beside a capture)"
                           : "";
    return ki_fail_native(
        err, KILN_E_DRIVER, KILN_ORIGIN_DRIVER, (int)result,
        ki_driver_result_name(kernel->driver, result),
        "launch of %s, %u x %u blocks of %u threads%s: cuLaunchKernelEx",
        kernel->op->info.name, grid.x, grid.y, grid.threads, hint);
}

static enum kiln_status launch(const struct kiln_kernel *kernel, const void *args,
                               CUstream stream, enum ki_launch_order order,
                               struct kiln_error *err)
{
    KI_TRY(ki_op_check_args(kernel->op, &kernel->shape, args, err));
    const struct ki_grid grid =
        kernel->op->grid(&kernel->shape, args, kernel->device.n_sms);
    if (grid.x == 0 || grid.y == 0) {
        return KILN_OK;
    }
    CUlaunchAttribute programmatic = {
        .id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
        .value.programmaticStreamSerializationAllowed = 1,
    };
    const CUlaunchConfig config = {
        .gridDimX = grid.x,
        .gridDimY = grid.y,
        .gridDimZ = 1,
        .blockDimX = grid.threads,
        .blockDimY = 1,
        .blockDimZ = 1,
        .hStream = stream,
        .attrs = &programmatic,
        .numAttrs = order == KI_LAUNCH_PROGRAMMATIC ? 1 : 0,
    };
    /* The kernel takes the args struct by value. The driver copies it and writes nothing;
     * its prototype has no const. */
    void *params[1];
    memcpy(params, &args, sizeof(args));
    /* A CUkernel may stand for its function of the current context. */
    CUresult result = kernel->driver->launch_kernel_ex(
        &config, (CUfunction)kernel->module.kernel, params, NULL);
    if (result == CUDA_SUCCESS) {
        return KILN_OK;
    }
    return refused(kernel, grid, result, err);
}

void ki_count_launch(struct ki_launch_counts *counts, enum kiln_status status)
{
    atomic_fetch_add_explicit(status == KILN_OK ? &counts->n_launches
                                                : &counts->n_refused,
                              1, memory_order_relaxed);
}

enum kiln_status ki_launch(const struct kiln_kernel *kernel, const void *args,
                           CUstream stream, enum ki_launch_order order,
                           struct kiln_error *err)
{
    const enum kiln_status status = launch(kernel, args, stream, order, err);
    if (kernel->counts != NULL) {
        ki_count_launch(kernel->counts, status);
    }
    return status;
}
