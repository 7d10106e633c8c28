/* SPDX-License-Identifier: Apache-2.0 */
/* Device memory of one call. Only what lies in it is known here, not what it means. */
#include <stdlib.h>

#include "device_call.h"

static unsigned char *image_at(const struct cli_device_call *d, size_t i)
{
    size_t skew = d->placing.skew_elems * d->call->arrays[i].elem_bytes;

    return (unsigned char *)d->blocks[i] + skew;
}

static enum kiln_status place_array(struct cli_device_call *d, size_t i,
                                    struct kiln_error *err)
{
    const struct cli_array *array = &d->call->arrays[i];
    size_t skew = d->placing.skew_elems * array->elem_bytes;
    enum kiln_status status =
        kiln_gpu_alloc(d->gpu, array->image_bytes + skew, &d->blocks[i], err);

    if (status != KILN_OK) {
        return status;
    }
    cli_call_set_address(d->call, i, image_at(d, i) + CLI_GUARD_BYTES);
    return kiln_gpu_copy_in(d->gpu, image_at(d, i), array->image, array->image_bytes,
                            err);
}

static enum kiln_status place_count(struct cli_device_call *d, size_t i,
                                    struct kiln_error *err)
{
    int32_t value = d->call->arrays[i].count.value;
    enum kiln_status status = kiln_gpu_alloc(d->gpu, sizeof value, &d->blocks[i], err);

    if (status != KILN_OK) {
        return status;
    }
    struct kiln_count count = {.kind = KILN_COUNT_DEVICE, .address = d->blocks[i]};
    cli_call_set_count(d->call, i, &count);
    return kiln_gpu_copy_in(d->gpu, d->blocks[i], &value, sizeof value, err);
}

/* Behind those of the arguments. */
static enum kiln_status place_report(struct cli_device_call *d, struct kiln_error *err)
{
    void **block = &d->blocks[d->call->info->n_args];
    size_t bytes = cli_call_report_bytes(d->call);
    enum kiln_status status = kiln_gpu_alloc(d->gpu, bytes, block, err);

    if (status != KILN_OK) {
        return status;
    }
    cli_call_set_report(d->call, *block);
    return kiln_gpu_copy_in(d->gpu, *block, d->call->report, bytes, err);
}

static enum kiln_status place_all(struct cli_device_call *d, struct kiln_error *err)
{
    enum kiln_status status = KILN_OK;

    for (size_t i = 0; i < d->call->info->n_args && status == KILN_OK; i++) {
        const struct cli_array *array = &d->call->arrays[i];

        if (array->image != NULL) {
            status = place_array(d, i, err);
        } else if (d->placing.counts_on_device && array->count.kind == KILN_COUNT_VALUE) {
            status = place_count(d, i, err);
        }
    }
    return status == KILN_OK && d->call->report != NULL ? place_report(d, err) : status;
}

enum kiln_status cli_device_place(struct kiln_gpu *gpu, struct cli_call *call,
                                  const struct cli_placing *placing,
                                  struct cli_device_call *out, struct kiln_error *err)
{
    struct cli_device_call d = {.gpu = gpu, .call = call, .placing = *placing};
    enum kiln_status status;

    *out = (struct cli_device_call){0};
    d.blocks = calloc(call->info->n_args + 1, sizeof *d.blocks);
    if (d.blocks == NULL) {
        *err = (struct kiln_error){.status = KILN_E_MEMORY, .message = "out of memory"};
        return KILN_E_MEMORY;
    }
    cli_call_bind_host(call); /* extents and counts; the addresses follow */
    status = place_all(&d, err);
    if (status == KILN_OK) {
        *out = d;
    } else {
        cli_device_finish(&d);
    }
    return status;
}

void cli_device_finish(struct cli_device_call *d)
{
    for (size_t i = 0; d->blocks != NULL && i < d->call->info->n_args + 1; i++) {
        kiln_gpu_free(d->gpu, d->blocks[i]);
    }
    free(d->blocks);
    *d = (struct cli_device_call){0};
}

enum kiln_status cli_device_fetch(struct cli_device_call *d, struct kiln_error *err)
{
    enum kiln_status status = KILN_OK;

    for (size_t i = 0; i < d->call->info->n_args && status == KILN_OK; i++) {
        struct cli_array *array = &d->call->arrays[i];

        if (array->image != NULL && array->arg->kind == KILN_ARG_OUTPUT) {
            status = kiln_gpu_copy_out(d->gpu, array->image, image_at(d, i),
                                       array->image_bytes, err);
        }
    }
    if (status == KILN_OK && d->call->report != NULL) {
        status =
            kiln_gpu_copy_out(d->gpu, d->call->report, d->blocks[d->call->info->n_args],
                              cli_call_report_bytes(d->call), err);
    }
    return status;
}

enum kiln_status cli_device_capture(struct cli_device_call *d,
                                    const struct kiln_kernel *kernel, int n,
                                    struct kiln_gpu_graph **out, struct kiln_error *err)
{
    struct kiln_error end_err;
    enum kiln_status status = kiln_gpu_capture_begin(d->gpu, KILN_CAPTURE_GLOBAL, err);

    *out = NULL;
    if (status != KILN_OK) {
        return status;
    }
    for (int i = 0; i < n && status == KILN_OK; i++) {
        status = kiln_launch(kernel, d->call->args, kiln_gpu_stream(d->gpu), err);
    }
    enum kiln_status end_status = kiln_gpu_capture_end(d->gpu, out, &end_err);
    if (status == KILN_OK && end_status != KILN_OK) {
        *err = end_err;
        status = end_status;
    }
    if (status != KILN_OK) {
        kiln_gpu_graph_destroy(d->gpu, out);
    }
    return status;
}
