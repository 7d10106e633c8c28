/* SPDX-License-Identifier: Apache-2.0 */
/* A random case with its arena on the GPU: run, replay, compare with the reference. */
#ifndef TESTS_GPU_DEVICE_CASE_H
#define TESTS_GPU_DEVICE_CASE_H

#include <stdbool.h>

#include "kiln/gpu.h"
#include "kiln/kiln.h"
#include "support/random_case.h"

/* Where cases run; both are borrowed. */
struct device_place {
    struct kiln_gpu *gpu;
    struct kiln *kiln;
};

struct device_case {
    struct kiln_gpu *gpu;             /* borrowed */
    const struct kiln_kernel *kernel; /* borrowed */
    struct random_case random;
    void *device;       /* the arena there; owned */
    unsigned char *got; /* what came back; owned */
    struct kiln_gpu_graph *graph;
    void *report; /* there: what launches report to; owned; NULL: nowhere */
    struct kiln_report *must_report; /* what the reference reports, sorted; owned */
    uint32_t report_capacity;
    char why[RANDOM_WHY]; /* what went wrong; any failing call here fills it */
};

/* All answer false with `why` when something went wrong; none asserts, so that any thread
 * may call them. All-zero is fine for finish. */
bool device_case_init(struct device_case *out, const struct device_place *place,
                      enum kiln_op op, const struct kiln_shape *shape,
                      const struct random_options *options, uint64_t seed);
void device_case_finish(struct device_case *device);

/* Copies the arena in, launches, and compares all of it with the reference. */
bool device_case_launch(struct device_case *device);

/* An empty report on the device; launches and captures from now on name it. */
bool device_case_begin_report(struct device_case *device);

/* Compares it with what the reference reports: that many times each entry, and no other. */
bool device_case_compare_report(struct device_case *device, int times);

/* Captures one launch; nothing runs. */
bool device_case_capture(struct device_case *device, enum kiln_capture_mode mode);

/* The outputs become what the last launch or replay left, as a server's buffers are. */
void device_case_keep_outputs(struct device_case *device);

/* Copies the arena in, replays the graph, and compares. */
bool device_case_replay(struct device_case *device);

#endif
