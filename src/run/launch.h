/* SPDX-License-Identifier: Apache-2.0 */
/* loaded kernel -> one driver call. No lock, no allocation, no look-up. */
#ifndef KI_RUN_LAUNCH_H
#define KI_RUN_LAUNCH_H

#include <stdatomic.h>

#include "plan/op.h"
#include "run/module.h"

/* How launches went; relaxed. */
struct ki_launch_counts {
    _Atomic int64_t n_launches, n_refused;
};

/* What a launch needs, all of it fixed once the kernel is ready. */
struct kiln_kernel {
    const struct ki_op *op;
    const struct ki_driver *driver;
    struct kiln_shape shape;
    struct ki_module module;
    struct ki_device device;      /* of the load */
    struct ki_target target;      /* of the cubin */
    uint32_t variant;             /* bits of enum kiln_variant */
    bool from_cache;              /* the cubin came from disk */
    bool waits;                   /* for the kernel ahead, before it touches memory */
    int nvrtc_major, nvrtc_minor; /* who compiled the cubin */
    int64_t build_ms, load_ms;
    struct ki_launch_counts *counts; /* NULL: nobody counts */
};

/* Whether the launch may start before the kernel ahead of it has ended: for one that waits,
 * on a device that has it. */
enum ki_launch_order { KI_LAUNCH_AFTER, KI_LAUNCH_PROGRAMMATIC };

void ki_count_launch(struct ki_launch_counts *counts, enum kiln_status status);
enum kiln_status ki_launch(const struct kiln_kernel *kernel, const void *args,
                           CUstream stream, enum ki_launch_order order,
                           struct kiln_error *err);

#endif
