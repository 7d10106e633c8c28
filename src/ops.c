/* SPDX-License-Identifier: Apache-2.0 */
/* The public functions of ops.h and op_info.h that run an op: check arguments, call one thing. */
#include <string.h>

#include "base/attr.h"
#include "base/status.h"
#include "plan/ops.h"
#include "run/launch.h"

static enum kiln_status launch_op(enum kiln_op op, const struct kiln_kernel *kernel,
                                  const void *args, struct CUstream_st *stream,
                                  struct kiln_error *err)
{
    if (kernel != NULL && kernel->op->info.op != op) {
        return ki_fail(err, KILN_E_ARGUMENT, "the kernel is of op %s: expected %s",
                       kernel->op->info.name, kiln_op_info_get(op)->name);
    }
    return kiln_launch(kernel, args, stream, err);
}

enum kiln_status kiln_launch(const struct kiln_kernel *kernel, const void *args,
                             struct CUstream_st *stream, struct kiln_error *err)
{
    if (kernel == NULL || args == NULL) {
        return ki_fail(err, KILN_E_ARGUMENT, "%s is NULL: expected one",
                       kernel == NULL ? "kernel" : "args");
    }
    return ki_launch(kernel, args, stream, KI_LAUNCH_AFTER, err);
}

enum kiln_status kiln_reference(enum kiln_op op, const struct kiln_shape *shape,
                                const void *args, struct kiln_error *err)
{
    const struct ki_op *found = ki_op_get(op);

    if (shape == NULL || args == NULL) {
        return ki_fail(err, KILN_E_ARGUMENT, "%s is NULL: expected one",
                       shape == NULL ? "shape" : "args");
    }
    KI_TRY(ki_op_check(op, shape, err));
    KI_TRY(ki_op_check_args(found, shape, args, err));
    for (int64_t row = 0; row < ki_op_launch_rows(found, args); row++) {
        found->row(shape, args, row);
    }
    return KILN_OK;
}

enum kiln_status kiln_geometry_make(enum kiln_op op, const struct kiln_shape *shape,
                                    const void *args, int32_t n_sms,
                                    struct kiln_geometry *out, struct kiln_error *err)
{
    const struct ki_op *found = ki_op_get(op);
    struct ki_grid grid;

    if (shape == NULL || args == NULL || out == NULL) {
        return ki_fail(err, KILN_E_ARGUMENT, "%s is NULL: expected one",
                       shape == NULL  ? "shape"
                       : args == NULL ? "args"
                                      : "out");
    }
    if (n_sms < 1) {
        return ki_fail(err, KILN_E_ARGUMENT, "n_sms = %d: expected 1 or more",
                       (int)n_sms);
    }
    KI_TRY(ki_op_check(op, shape, err));
    KI_TRY(ki_op_check_args(found, shape, args, err));
    grid = found->grid(shape, args, n_sms);
    *out = (struct kiln_geometry){grid.x, grid.y, grid.threads};
    return KILN_OK;
}

static enum kiln_status reference_op(enum kiln_op op, const void *shape, size_t bytes,
                                     const void *args, struct kiln_error *err)
{
    struct kiln_shape any = {0};

    if (shape == NULL) {
        return kiln_reference(op, NULL, args, err);
    }
    memcpy(&any, shape, bytes);
    return kiln_reference(op, &any, args, err);
}

/* The typed pair of each op that this kiln has: ops.h declares them, and says what they do. */
#define DEFINE_TYPED(name, op)                                                           \
    enum kiln_status kiln_launch_##name(                                                 \
        const struct kiln_kernel *kernel, const struct kiln_##name##_args *args,         \
        struct CUstream_st *stream, struct kiln_error *err)                              \
    {                                                                                    \
        return launch_op(op, kernel, args, stream, err);                                 \
    }                                                                                    \
    enum kiln_status kiln_reference_##name(const struct kiln_##name##_shape *shape,      \
                                           const struct kiln_##name##_args *args,        \
                                           struct kiln_error *err)                       \
    {                                                                                    \
        return reference_op(op, shape, sizeof *shape, args, err);                        \
    }

KI_OPS(DEFINE_TYPED)
