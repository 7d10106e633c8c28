/* SPDX-License-Identifier: Apache-2.0 */
/* loaded kernel -> one driver call. No lock, no allocation, no look-up. */
#ifndef KI_RUN_LAUNCH_H
#define KI_RUN_LAUNCH_H

#include "plan/op.h"
#include "run/module.h"

/* What a launch needs, all of it fixed once the kernel is ready. */
struct kiln_kernel {
    const struct ki_op *op;
    const struct ki_driver *driver;
    struct kiln_shape shape;
    struct ki_module module;
    struct ki_device device;      /* of the load */
    struct ki_target target;      /* of the cubin */
    uint32_t variant;             /* bits of enum kiln_variant */
    int threads;                  /* of a block */
    bool from_cache;              /* the cubin came from disk */
    int nvrtc_major, nvrtc_minor; /* who compiled the cubin */
    int64_t build_ms, load_ms;
};

enum kiln_status ki_launch(const struct kiln_kernel *kernel, const void *args,
                           CUstream stream, struct kiln_error *err);

#endif
