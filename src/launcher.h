/* SPDX-License-Identifier: Apache-2.0 */
/* struct kiln_launcher, fixed from create to destroy but for its counters. */
#ifndef KI_LAUNCHER_H
#define KI_LAUNCHER_H

#include "kiln/launcher.h"

#include "context.h"

enum {
    KI_ARGS_MAX = 512,  /* bytes of any op's args struct */
    KI_OUTPUTS_MAX = 4, /* of any op */
};

struct ki_output {
    const struct kiln_buffer *buffer; /* of the layout */
    size_t offset;                    /* of its address, in the args struct */
    struct ki_row_source rows;
};

struct ki_launch_slot {
    const struct kiln_kernel *kernel; /* the kiln's */
    struct ki_output outputs[KI_OUTPUTS_MAX];
    size_t n_outputs;
    struct ki_launch_counts counts;
};

struct kiln_launcher {
    struct kiln *kiln;
    struct kiln_layout layout;    /* with addresses, owned */
    struct ki_launch_slot *slots; /* one for each launch of the layout, owned */
    CUcontext context;            /* in which it was created */
    enum ki_launch_order order;   /* of every launch */
    void *block;                  /* device memory, owned; NULL: all is the caller's */
    int64_t allocated_bytes;
    int64_t create_ms;
    _Atomic int64_t n_pins;   /* graphs that hold it */
    _Atomic int64_t n_astray; /* calls that name no launch, or have no args */
};

/* The kernels are loaded. Tries it out on the device, once. */
bool ki_launcher_can_be_programmatic(const struct kiln_launcher *launcher);

#endif
