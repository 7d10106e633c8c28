/* SPDX-License-Identifier: Apache-2.0 */
/* See device_case.h. One copy in, one launch or replay, one copy out, one comparison. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device_case.h"

static bool explain(struct device_case *device, const char *doing,
                    enum kiln_status status, const struct kiln_error *err)
{
    if (status == KILN_OK) {
        return true;
    }
    snprintf(device->why, sizeof(device->why), "%s, %s seed %llu: %s: %.700s", doing,
             device->random.info->name, (unsigned long long)device->random.seed,
             kiln_status_name((int)status), err->message);
    return false;
}

bool device_case_init(struct device_case *out, const struct device_place *place,
                      enum kiln_op op, const struct kiln_shape *shape,
                      const struct random_options *options, uint64_t seed)
{
    struct kiln_error err = {.status = KILN_OK};
    memset(out, 0, sizeof(*out));
    out->gpu = place->gpu;
    random_case_init(&out->random, op, shape, options, seed);
    out->got = malloc(out->random.arena_bytes);
    enum kiln_status status = kiln_prepare(
        place->kiln, op, shape, kiln_gpu_stream(place->gpu), &out->kernel, &err);
    if (!explain(out, "prepare", status, &err)) {
        return false;
    }
    status = kiln_gpu_alloc(place->gpu, out->random.arena_bytes, &out->device, &err);
    return explain(out, "alloc", status, &err) && out->got != NULL;
}

void device_case_finish(struct device_case *device)
{
    kiln_gpu_graph_destroy(device->gpu, &device->graph);
    if (device->gpu != NULL) {
        kiln_gpu_free(device->gpu, device->device);
    }
    free(device->got);
    random_case_finish(&device->random);
    memset(device, 0, sizeof(*device));
}

static bool copy_in(struct device_case *device)
{
    struct kiln_error err = {.status = KILN_OK};
    return explain(device, "copy in",
                   kiln_gpu_copy_in(device->gpu, device->device, device->random.arena,
                                    device->random.arena_bytes, &err),
                   &err);
}

static bool launch(struct device_case *device)
{
    struct kiln_error err = {.status = KILN_OK};
    union random_args args;
    random_case_bind(&device->random, device->device, &args);
    return explain(device, "launch",
                   kiln_launch(device->kernel, &args, kiln_gpu_stream(device->gpu), &err),
                   &err);
}

static bool compare(struct device_case *device)
{
    struct kiln_error err = {.status = KILN_OK};
    if (!explain(device, "copy out",
                 kiln_gpu_copy_out(device->gpu, device->got, device->device,
                                   device->random.arena_bytes, &err),
                 &err)) {
        return false;
    }
    unsigned char *expected = random_case_expect(&device->random, device->why);
    bool equal = expected != NULL &&
                 random_case_equal(&device->random, device->got, expected, device->why);
    free(expected);
    return equal;
}

bool device_case_launch(struct device_case *device)
{
    return copy_in(device) && launch(device) && compare(device);
}

bool device_case_capture(struct device_case *device, enum kiln_capture_mode mode)
{
    struct kiln_error err = {.status = KILN_OK};
    kiln_gpu_graph_destroy(device->gpu, &device->graph);
    if (!explain(device, "begin capture", kiln_gpu_capture_begin(device->gpu, mode, &err),
                 &err)) {
        return false;
    }
    bool launched = launch(device);
    enum kiln_status status = kiln_gpu_capture_end(device->gpu, &device->graph, &err);
    return launched && explain(device, "end capture", status, &err);
}

bool device_case_replay(struct device_case *device)
{
    struct kiln_error err = {.status = KILN_OK};
    return copy_in(device) &&
           explain(device, "replay",
                   kiln_gpu_replay(device->gpu, device->graph, NULL, &err), &err) &&
           compare(device);
}
