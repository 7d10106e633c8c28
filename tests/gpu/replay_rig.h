/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One step of a deployment as one graph: the batch is drawn, kiln's launches run, then
 * the references, then each output of one is compared with that of the other; all of it on
 * the device (replay/). The only thing that changes from replay to replay is the step's
 * number.
 */
#ifndef TESTS_GPU_REPLAY_RIG_H
#define TESTS_GPU_REPLAY_RIG_H

#include "kiln/gpu.h"
#include "kiln/kiln.h"
#include "kiln/launcher.h"

#include "build/nvrtc.h"
#include "replay/inputs.h"
#include "run/module.h"
#include "support/random_case.h"

enum { RIG_LAUNCHES = 16, RIG_BUFFERS = 32 };

/* What changes what is launched. */
struct rig_options {
    int64_t max_model_len;
    int32_t n_tokens, n_requests;
    bool programmatic;
    bool kiln_alone; /* without references and comparison on the device */
    uint64_t seed;
};

struct rig {
    struct kiln_gpu *gpu;           /* borrowed */
    struct kiln_launcher *launcher; /* owned, as all below */
    const struct kiln_layout *layout;
    struct replay_limits limits;
    bool kiln_alone;
    struct ki_driver driver;
    struct ki_device device;
    struct ki_nvrtc nvrtc;
    struct ki_module begin_step, fill_arrays, compare, references[RIG_LAUNCHES];
    /* on the device */
    struct replay_inputs *inputs;
    char *expected; /* the references' outputs, at the layout's offsets */
    struct replay_difference *differences; /* by buffer */
    struct kiln_gpu_graph *graph;
};

/* The deployment that is replayed: V4-Flash with one draft token. */
void rig_deployment(const struct rig_options *options, struct kiln_deployment *out);

/* These fail the test where something goes wrong. All-zero is fine for finish. */
void rig_init(struct rig *out, struct kiln_gpu *gpu, struct kiln *kiln,
              const struct rig_options *options);
void rig_finish(struct rig *rig);
void rig_capture(struct rig *rig, enum kiln_capture_mode mode);
void rig_replay(struct rig *rig, int64_t n);

/* The differences of all steps so far, over all outputs. The first is said in words. */
uint64_t rig_differences(const struct rig *rig, char why[RANDOM_WHY]);

/* The args of a launch that reads `inputs` and writes the layout's outputs at `outputs`: on
 * the device or on the host. */
void rig_bind(const struct rig *rig, size_t i_launch, const void *inputs, char *outputs,
              union random_args *out);

/* kiln's outputs, at the layout's offsets. */
char *rig_outputs(const struct rig *rig);
void rig_fill_outputs(const struct rig *rig, int byte);

/* The comparison by itself, now. */
void rig_compare(const struct rig *rig);

/* Code of the tests (support/device_code.h), and its launch on the gpu's stream. */
void rig_load(const struct rig *rig, const char *file, const char *entry_name,
              struct ki_module *out);
void rig_launch(const struct rig *rig, const struct ki_module *module,
                unsigned int n_blocks, unsigned int n_threads, void **params);

/* In the order of a step. */
void rig_for_each_launch(const struct rig *rig,
                         void (*fn)(const struct rig *rig, size_t i_launch, void *user),
                         void *user);

#endif
