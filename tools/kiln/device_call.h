/* SPDX-License-Identifier: Apache-2.0 */
/* A call's arrays on the GPU, and launches of it. */
#ifndef CLI_DEVICE_CALL_H
#define CLI_DEVICE_CALL_H

#include "kiln/gpu.h"

#include "case_layout.h"

/* How a call is laid out on the device. */
struct cli_placing {
    bool counts_on_device; /* counts are read from memory, not passed */
    size_t skew_elems;     /* how far arrays lie from an aligned address */
};

struct cli_device_call {
    struct kiln_gpu *gpu;  /* borrowed */
    struct cli_call *call; /* borrowed; its args hold the device's addresses */
    struct cli_placing placing;
    void **blocks; /* one per argument, and the report's; owned */
};

/* Copy the images to the device and bind the call to them. All zeros on failure. */
enum kiln_status cli_device_place(struct kiln_gpu *gpu, struct cli_call *call,
                                  const struct cli_placing *placing,
                                  struct cli_device_call *out, struct kiln_error *err);
void cli_device_finish(struct cli_device_call *d);

/* Copy the outputs back into the call's images. */
enum kiln_status cli_device_fetch(struct cli_device_call *d, struct kiln_error *err);

/* Capture n launches; *out is the caller's, NULL on failure. */
enum kiln_status cli_device_capture(struct cli_device_call *d,
                                    const struct kiln_kernel *kernel, int n,
                                    struct kiln_gpu_graph **out, struct kiln_error *err);

#endif
