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
        kiln_gpu_free(device->gpu, device->report);
    }
    free(device->got);
    free(device->must_report);
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
    memcpy(args.bytes + device->random.info->report_offset, &device->report,
           sizeof(device->report));
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

/* ---- what a checked kernel reports */

/* The reference's, on a copy of the arena. NULL with `why`: it refused. */
static struct kiln_report *refer(struct device_case *device, uint32_t capacity)
{
    const struct random_case *random = &device->random;
    struct kiln_error err = {.status = KILN_OK};
    union random_args args;
    unsigned char *arena = malloc(random->arena_bytes);
    struct kiln_report *report =
        kiln_report_init(malloc(kiln_report_bytes(capacity)), capacity);
    if (arena == NULL || report == NULL) {
        abort();
    }
    memcpy(arena, random->arena, random->arena_bytes);
    random_case_bind(random, arena, &args);
    memcpy(args.bytes + random->info->report_offset, &report, sizeof(report));
    enum kiln_status status =
        kiln_reference(random->info->op, &random->shape, &args, &err);
    free(arena);
    if (!explain(device, "reference", status, &err)) {
        free(report);
        return NULL;
    }
    (void)kiln_report_sort(report, NULL);
    return report;
}

/* False with `why`. */
static bool learn_report(struct device_case *device)
{
    struct kiln_report *counted = refer(device, 0);
    if (counted == NULL) {
        return false;
    }
    free(device->must_report);
    device->must_report = refer(device, (uint32_t)counted->n_found);
    device->report_capacity = (uint32_t)counted->n_found * 2 + 16;
    free(counted);
    return device->must_report != NULL;
}

bool device_case_begin_report(struct device_case *device)
{
    struct kiln_error err = {.status = KILN_OK};
    if (!learn_report(device)) {
        return false;
    }
    size_t bytes = kiln_report_bytes(device->report_capacity);
    struct kiln_report *empty =
        kiln_report_init(calloc(1, bytes), device->report_capacity);
    if (empty == NULL) {
        abort();
    }
    kiln_gpu_free(device->gpu, device->report);
    device->report = NULL;
    enum kiln_status status = kiln_gpu_alloc(device->gpu, bytes, &device->report, &err);
    if (status == KILN_OK) {
        status = kiln_gpu_copy_in(device->gpu, device->report, empty, bytes, &err);
    }
    free(empty);
    return explain(device, "begin report", status, &err);
}

/* Both are sorted. */
static bool is_report(struct device_case *device, const struct kiln_report *got,
                      const struct kiln_report_entry *entries, uint64_t times)
{
    const struct kiln_report_entry *must =
        (const struct kiln_report_entry *)(device->must_report + 1);
    uint64_t n = device->must_report->n_found * times;
    for (uint64_t i = 0; i < n && i < got->n_found; i++) {
        if (memcmp(&entries[i], &must[i / times], sizeof(*must)) != 0) {
            char want[160] = "", have[160] = "";
            (void)!kiln_report_text(&must[i / times], want, sizeof(want), NULL);
            (void)!kiln_report_text(&entries[i], have, sizeof(have), NULL);
            snprintf(device->why, sizeof(device->why),
                     "seed %llu: report[%llu]: expected %s, got %s",
                     (unsigned long long)device->random.seed, (unsigned long long)i, want,
                     have);
            return false;
        }
    }
    if (got->n_found != n) {
        snprintf(device->why, sizeof(device->why),
                 "%s seed %llu: %llu reported, not %llu", device->random.info->name,
                 (unsigned long long)device->random.seed,
                 (unsigned long long)got->n_found, (unsigned long long)n);
    }
    return got->n_found == n;
}

bool device_case_compare_report(struct device_case *device, int times)
{
    struct kiln_error err = {.status = KILN_OK};
    size_t bytes = kiln_report_bytes(device->report_capacity);
    struct kiln_report *got = malloc(bytes);
    if (got == NULL) {
        abort();
    }
    enum kiln_status status =
        kiln_gpu_copy_out(device->gpu, got, device->report, bytes, &err);
    bool ok = explain(device, "copy report out", status, &err);
    if (ok && got->capacity != device->report_capacity) {
        snprintf(device->why, sizeof(device->why), "%s: the report's header was written",
                 device->random.info->name);
        ok = false;
    }
    ok = ok && is_report(device, got, kiln_report_sort(got, NULL), (uint64_t)times);
    free(got);
    return ok;
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

void device_case_keep_outputs(struct device_case *device)
{
    struct random_case *random = &device->random;
    for (size_t i = 0; i < random->info->n_args; i++) {
        const struct random_array *array = &random->arrays[i];
        if (array->present && random->info->args[i].kind == KILN_ARG_OUTPUT) {
            memcpy(random->arena + array->offset, device->got + array->offset,
                   (size_t)(array->rows * array->stride) * array->elem_bytes);
        }
    }
}

bool device_case_replay(struct device_case *device)
{
    struct kiln_error err = {.status = KILN_OK};
    return copy_in(device) &&
           explain(device, "replay",
                   kiln_gpu_replay(device->gpu, device->graph, NULL, &err), &err) &&
           compare(device);
}
