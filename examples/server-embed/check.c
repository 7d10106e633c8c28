/* SPDX-License-Identifier: Apache-2.0 */
/* See check.h. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "check.h"

enum { MAX_SHOWN = 10 };

static int64_t element(const char *array, enum kiln_dtype dtype, int64_t i)
{
    int32_t narrow;
    int64_t wide;

    if (dtype == KILN_U8) {
        return ((const unsigned char *)array)[i];
    }
    if (dtype == KILN_I32) {
        memcpy(&narrow, array + i * 4, sizeof narrow);
        return narrow;
    }
    memcpy(&wide, array + i * 8, sizeof wide);
    return wide;
}

static void count_differences(struct checker *checker, const struct kiln_buffer *buffer,
                              const char *got, int64_t i_step, int64_t layer)
{
    const char *expected = checker->host.out_block + buffer->offset;

    for (int64_t i = 0; i < buffer->rows * buffer->stride; i++) {
        const int64_t have = element(got, buffer->dtype, i);
        const int64_t want = element(expected, buffer->dtype, i);

        if (have == want) {
            continue;
        }
        if (checker->n_differences++ < MAX_SHOWN) {
            fprintf(stderr,
                    "step %" PRId64 ", %s, layer %" PRId64 ", row %" PRId64
                    ", column %" PRId64 ": %" PRId64 ", expected %" PRId64 "\n",
                    i_step, buffer->name, layer, i / buffer->stride, i % buffer->stride,
                    have, want);
        }
    }
}

static void compare(struct checker *checker, const struct call *call, int64_t i_step)
{
    const struct kiln_layout *layout = checker->layout;
    const struct kiln_layout_launch *launch = &layout->launches[call->i_launch];
    const char *got = checker->saved + call->saved_at;

    for (size_t i = 0; i < launch->n_buffers; i++) {
        const struct kiln_buffer *buffer = &layout->buffers[launch->first_buffer + i];

        if (memcmp(got, checker->host.out_block + buffer->offset,
                   (size_t)buffer->bytes) != 0) {
            count_differences(checker, buffer, got, i_step, call->layer);
        }
        checker->n_elements += buffer->rows * buffer->stride;
        got += buffer->bytes;
    }
    checker->n_outputs += (int64_t)launch->n_buffers;
    checker->n_launches++;
}

enum kiln_status check_step(struct checker *checker, const struct step *step,
                            int64_t i_step, struct kiln_error *err)
{
    enum kiln_status status = KILN_OK;

    for (size_t i = 0; i < step->n_calls && status == KILN_OK; i++) {
        const struct call *call = &step->calls[i];
        const struct kiln_layout_launch *launch =
            &checker->layout->launches[call->i_launch];
        union step_args args;

        step_bind(step, call, checker->layout, &checker->host, &args);
        status = kiln_reference(launch->op, &launch->shape, &args, err);
        if (status == KILN_OK) {
            compare(checker, call, i_step);
        }
    }
    return status;
}
