/* SPDX-License-Identifier: Apache-2.0 */
/*
 * 300,000 rows of 8,192 columns in real memory, 9.8 GB a matrix, where row offsets pass
 * 2^31 elements: the first rows, those around row 262,144 and the last, to the integer.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "kiln/gpu.h"
#include "kiln/kiln.h"
#include "support/wide_call.h"

enum { SKIPPED = 77, OUT_OF_MEMORY = 2 /* CUDA_ERROR_OUT_OF_MEMORY */ };

struct fixture {
    struct kiln_gpu *gpu;
    struct kiln *kiln;
    struct kiln_error err;
};

/* The arrays of a call on the device, whole. */
struct device_arrays {
    void *at[RANDOM_ARGS];
};

static void check(const struct fixture *fixture, enum kiln_status status)
{
    if (status != KILN_OK) {
        fail_msg("%s: %s", kiln_status_name((int)status), fixture->err.message);
    }
}

static void free_arrays(struct fixture *fixture, struct device_arrays *arrays)
{
    for (size_t i = 0; i < RANDOM_ARGS; i++) {
        if (arrays->at[i] != NULL) {
            kiln_gpu_free(fixture->gpu, arrays->at[i]);
        }
    }
}

/* False: this GPU has less memory than the call takes. */
static bool alloc_arrays(struct fixture *fixture, const struct wide_call *call,
                         struct device_arrays *out)
{
    memset(out, 0, sizeof(*out));
    for (size_t i = 0; i < call->info->n_args; i++) {
        enum kiln_status status = KILN_OK;
        if (call->arrays[i].host != NULL) {
            status = kiln_gpu_alloc(fixture->gpu, call->arrays[i].bytes, &out->at[i],
                                    &fixture->err);
        }
        if (status != KILN_OK && fixture->err.native_code == OUT_OF_MEMORY) {
            free_arrays(fixture, out);
            return false;
        }
        check(fixture, status);
    }
    return true;
}

static char *device_row(const struct device_arrays *arrays, const struct wide_call *call,
                        size_t i, int64_t row)
{
    return (char *)arrays->at[i] + (wide_call_row(call, i, row) - call->arrays[i].host);
}

static size_t bytes_of_rows(const struct wide_call *call, size_t i, int64_t n)
{
    return (size_t)n * (size_t)call->arrays[i].stride * call->arrays[i].elem_bytes;
}

/* Inputs and the outputs' poison, each band's rows; what lies between nobody reads. */
static void copy_in(struct fixture *fixture, const struct wide_call *call,
                    const struct device_arrays *arrays)
{
    for (size_t i = 0; i < call->info->n_args; i++) {
        for (int band = 0; arrays->at[i] != NULL && band < WIDE_BANDS; band++) {
            int64_t first = 0, n = wide_call_rows(call, i, band, &first);
            check(fixture,
                  kiln_gpu_copy_in(fixture->gpu, device_row(arrays, call, i, first),
                                   wide_call_row(call, i, first),
                                   bytes_of_rows(call, i, n), &fixture->err));
        }
    }
}

static void compare_rows(struct fixture *fixture, const struct wide_call *call,
                         const struct device_arrays *arrays, size_t i)
{
    const size_t row_bytes = bytes_of_rows(call, i, 1);
    unsigned char *got = malloc(row_bytes);
    assert_non_null(got);
    for (int band = 0; band < WIDE_BANDS; band++) {
        const int64_t first = wide_call_first_row(call, band);
        for (int64_t row = first; row < first + WIDE_BAND_ROWS; row++) {
            check(fixture,
                  kiln_gpu_copy_out(fixture->gpu, got, device_row(arrays, call, i, row),
                                    row_bytes, &fixture->err));
            if (memcmp(got, wide_call_row(call, i, row), row_bytes) != 0) {
                fail_msg("row %lld of %s differs from the reference", (long long)row,
                         call->info->args[i].name);
            }
        }
    }
    free(got);
}

static void launch(struct fixture *fixture, const struct wide_call *call,
                   const struct device_arrays *arrays)
{
    const struct kiln_kernel *kernel = NULL;
    union random_args args = call->args;
    for (size_t i = 0; i < call->info->n_args; i++) {
        if (arrays->at[i] != NULL) {
            memcpy(args.bytes + call->info->args[i].offset, &arrays->at[i],
                   sizeof(arrays->at[i]));
        }
    }
    check(fixture, kiln_prepare(fixture->kiln, call->spec->op, &call->spec->shape,
                                kiln_gpu_stream(fixture->gpu), &kernel, &fixture->err));
    check(fixture,
          kiln_launch(kernel, &args, kiln_gpu_stream(fixture->gpu), &fixture->err));
}

static void launch_and_compare(struct fixture *fixture, const struct wide_case *spec)
{
    struct wide_call call;
    struct device_arrays arrays;
    wide_call_init(&call, spec);
    if (!alloc_arrays(fixture, &call, &arrays)) {
        wide_call_finish(&call);
        print_message("%s: the GPU has too little memory: %s\n", spec->label,
                      fixture->err.message);
        skip();
    }
    copy_in(fixture, &call, &arrays);

    launch(fixture, &call, &arrays);

    check(fixture, kiln_reference(spec->op, &spec->shape, &call.args, &fixture->err));
    for (size_t i = 0; i < call.info->n_args; i++) {
        if (call.info->args[i].kind == KILN_ARG_OUTPUT && call.arrays[i].rows > 0) {
            compare_rows(fixture, &call, &arrays, i);
        }
    }
    free_arrays(fixture, &arrays);
    wide_call_finish(&call);
}

/* Both matrices. */
static void global_topk_of_300000_rows_equals_reference(void **state)
{
    static const struct wide_case spec = {
        .label = "global_topk",
        .op = KILN_OP_GLOBAL_TOPK,
        .shape = {.global_topk = {.topk = WIDE_STRIDE,
                                  .topk_stride = WIDE_STRIDE,
                                  .slots_stride = WIDE_STRIDE,
                                  .block_size = 64,
                                  .table_width = 4,
                                  .table_stride = 4,
                                  .dcp_world = 1,
                                  .dcp_interleave = 1}},
        .n_tokens = WIDE_ROWS,
        .n_requests = WIDE_ROWS,
    };
    launch_and_compare(*state, &spec);
}

static const struct kiln_shape c128a_topk = {
    .c128a_topk = {.compress_ratio = 1,
                   .capacity = WIDE_STRIDE,
                   .block_size = 2,
                   .table_width = WIDE_STRIDE / 2,
                   .table_stride = WIDE_STRIDE,
                   .dcp_world = 1,
                   .dcp_interleave = 1}};

/* The slots, and the table that they come from. */
static void c128a_of_300000_decode_rows_equals_reference(void **state)
{
    struct wide_case spec = {
        .label = "c128a_topk, decode",
        .op = KILN_OP_C128A_TOPK,
        .shape = c128a_topk,
        .n_tokens = WIDE_ROWS,
        .n_requests = WIDE_ROWS,
        .n_decode = WIDE_ROWS,
    };
    launch_and_compare(*state, &spec);
}

static void c128a_of_300000_prefill_rows_equals_reference(void **state)
{
    struct wide_case spec = {
        .label = "c128a_topk, prefill",
        .op = KILN_OP_C128A_TOPK,
        .shape = c128a_topk,
        .n_tokens = WIDE_ROWS,
        .n_requests = WIDE_ROWS,
    };
    launch_and_compare(*state, &spec);
}

static int run(struct fixture *fixture)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(global_topk_of_300000_rows_equals_reference, fixture),
        cmocka_unit_test_prestate(c128a_of_300000_decode_rows_equals_reference, fixture),
        cmocka_unit_test_prestate(c128a_of_300000_prefill_rows_equals_reference, fixture),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    struct fixture fixture = {.gpu = NULL};
    struct kiln_options options = KILN_OPTIONS_INIT;
    enum kiln_status status = kiln_gpu_open(0, &fixture.gpu, &fixture.err);
    if (status == KILN_E_DRIVER_MISSING) {
        fprintf(stderr, "skipped: %s\n", fixture.err.message);
        return SKIPPED;
    }
    options.no_disk = true;
    if (status != KILN_OK ||
        kiln_create(&options, &fixture.kiln, &fixture.err) != KILN_OK) {
        fprintf(stderr, "cannot open GPU 0: %s\n", fixture.err.message);
        kiln_gpu_close(&fixture.gpu);
        return EXIT_FAILURE;
    }
    int n_failed = run(&fixture);
    kiln_destroy(&fixture.kiln);
    kiln_gpu_close(&fixture.gpu);
    return n_failed;
}
