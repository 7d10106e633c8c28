/* SPDX-License-Identifier: Apache-2.0 */
/* One launch is one driver call, with what the op says and nothing beside it. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "run/launch.h"
#include "support/fake_driver.h"

enum { N_TOKENS = 5, N_THREADS = 8, N_ROUNDS = 200 };

struct fixture {
    struct fake_driver fake;
    struct ki_driver driver;
    struct kiln_kernel kernel;
    struct kiln_global_topk_args args;
    struct kiln_error err;
    CUstream stream;
    int32_t memory[64]; /* stands for every array: nothing reads it */
};

static int setup(void **state)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));
    int32_t *memory = fixture->memory;
    fake_driver_init(&fixture->fake, &fixture->driver);
    fixture->fake.params_bytes = sizeof(fixture->args);
    if (fixture->driver.stream_create(&fixture->stream, 0) != CUDA_SUCCESS) {
        return -1;
    }
    fake_driver_forget(&fixture->fake);
    fixture->kernel = (struct kiln_kernel){
        .op = ki_op_get(KILN_OP_GLOBAL_TOPK),
        .driver = &fixture->driver,
        .device.n_sms = FAKE_SMS,
        .module.kernel = (CUkernel)(void *)memory,
    };
    fixture->kernel.shape.global_topk = (struct kiln_global_topk_shape){
        .topk = 8,
        .topk_stride = 8,
        .slots_stride = 8,
        .block_size = 64,
        .table_width = 4,
        .table_stride = 4,
        .dcp_world = 1,
        .dcp_interleave = 1,
    };
    fixture->args = (struct kiln_global_topk_args){
        .topk_indices = memory,
        .token_to_req = memory,
        .block_table = memory,
        .slots = memory,
        .lens = memory,
        .num_tokens = N_TOKENS,
        .table_rows = 1,
    };
    *state = fixture;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *fixture = *state;
    (void)fixture->driver.stream_destroy(fixture->stream);
    bool clean = fake_driver_is_clean(&fixture->fake);
    fake_driver_finish(&fixture->fake);
    free(fixture);
    return clean ? 0 : -1;
}

static enum kiln_status launch(struct fixture *fixture)
{
    return ki_launch(&fixture->kernel, &fixture->args, fixture->stream, KI_LAUNCH_AFTER,
                     &fixture->err);
}

static void launch_is_one_driver_call_field_70(void **state)
{
    struct fixture *fixture = *state;

    assert_int_equal(launch(fixture), KILN_OK);

    assert_int_equal(fixture->fake.n_calls, 1);
    assert_int_equal(fake_driver_count(&fixture->fake, FAKE_launch_kernel_ex), 1);
}

static void launch_passes_the_ops_grid_and_threads(void **state)
{
    struct fixture *fixture = *state;
    const struct kiln_kernel *kernel = &fixture->kernel;
    const struct ki_grid grid =
        kernel->op->grid(&kernel->shape, &fixture->args, FAKE_SMS);
    const CUlaunchConfig *config = &fixture->fake.launches[0].config;

    assert_int_equal(launch(fixture), KILN_OK);

    assert_true(grid.x > 0);
    assert_int_equal(config->gridDimX, grid.x);
    assert_int_equal(config->gridDimY, grid.y);
    assert_int_equal(config->gridDimZ, 1);
    assert_int_equal(config->blockDimX, grid.threads);
    assert_int_equal(config->blockDimY, 1);
    assert_int_equal(config->blockDimZ, 1);
    assert_int_equal(config->sharedMemBytes, 0);
    assert_ptr_equal(config->hStream, fixture->stream);
}

/* A CUfunction belongs to one context; a CUkernel is resolved in the current one. */
static void launch_passes_the_kernel_of_every_context_field_71(void **state)
{
    struct fixture *fixture = *state;

    assert_int_equal(launch(fixture), KILN_OK);

    assert_ptr_equal(fixture->fake.launches[0].function, fixture->kernel.module.kernel);
    assert_int_equal(fake_driver_count(&fixture->fake, FAKE_kernel_get_function), 0);
}

/* Kernels that do not wait for their predecessor must not overlap it. */
static void launch_has_no_attributes_field_73(void **state)
{
    struct fixture *fixture = *state;

    assert_int_equal(launch(fixture), KILN_OK);

    assert_int_equal(fixture->fake.launches[0].config.numAttrs, 0);
}

static void programmatic_launch_says_so_and_is_one_call(void **state)
{
    struct fixture *fixture = *state;

    assert_int_equal(ki_launch(&fixture->kernel, &fixture->args, fixture->stream,
                               KI_LAUNCH_PROGRAMMATIC, &fixture->err),
                     KILN_OK);

    assert_int_equal(fixture->fake.n_calls, 1);
    assert_int_equal(fixture->fake.launches[0].config.numAttrs, 1);
    assert_true(fixture->fake.launches[0].is_programmatic);
}

static void launch_passes_the_args_by_value(void **state)
{
    struct fixture *fixture = *state;
    struct kiln_global_topk_args before = fixture->args;

    assert_int_equal(launch(fixture), KILN_OK);
    fixture->args.num_tokens = 1;

    assert_memory_equal(fixture->fake.launches[0].params, &before, sizeof(before));
}

/* The driver rejects an empty grid. */
static void launch_of_zero_rows_makes_no_driver_call(void **state)
{
    struct fixture *fixture = *state;
    fixture->args.num_tokens = 0;

    assert_int_equal(launch(fixture), KILN_OK);

    assert_int_equal(fixture->fake.n_calls, 0);
}

static void launch_of_all_zero_args_makes_no_driver_call(void **state)
{
    struct fixture *fixture = *state;
    memset(&fixture->args, 0, sizeof(fixture->args));

    assert_int_equal(launch(fixture), KILN_OK);

    assert_int_equal(fixture->fake.n_calls, 0);
}

static void launch_refuses_bad_args_before_the_driver(void **state)
{
    struct fixture *fixture = *state;
    fixture->args.slots = NULL;

    assert_int_equal(launch(fixture), KILN_E_ARGUMENT);

    assert_non_null(strstr(fixture->err.message, "slots"));
    assert_int_equal(fixture->fake.n_calls, 0);
}

static void launch_names_op_grid_and_result_when_the_driver_refuses(void **state)
{
    struct fixture *fixture = *state;
    const struct kiln_kernel *kernel = &fixture->kernel;
    const struct ki_grid grid =
        kernel->op->grid(&kernel->shape, &fixture->args, kernel->device.n_sms);
    char threads[32];

    snprintf(threads, sizeof threads, "blocks of %d threads", grid.threads);
    fixture->fake.fail_nth = 1;
    fixture->fake.fail_result = CUDA_ERROR_LAUNCH_FAILED;

    assert_int_equal(launch(fixture), KILN_E_DRIVER);

    assert_int_equal(fixture->err.native_code, CUDA_ERROR_LAUNCH_FAILED);
    assert_non_null(strstr(fixture->err.message, "global_topk"));
    assert_non_null(strstr(fixture->err.message, threads));
    assert_non_null(strstr(fixture->err.message, "CUDA_ERROR_LAUNCH_FAILED (719)"));
}

static void launch_explains_the_null_stream_beside_a_capture(void **state)
{
    struct fixture *fixture = *state;
    CUstream other = NULL;
    assert_int_equal(fixture->driver.stream_create(&other, 0), CUDA_SUCCESS);
    assert_int_equal(
        fixture->driver.stream_begin_capture(other, CU_STREAM_CAPTURE_MODE_GLOBAL),
        CUDA_SUCCESS);

    assert_int_equal(
        ki_launch(&fixture->kernel, &fixture->args, NULL, KI_LAUNCH_AFTER, &fixture->err),
        KILN_E_DRIVER);

    assert_non_null(strstr(fixture->err.message, "NULL stream"));
    (void)fixture->driver.stream_destroy(other);
}

static void launch_is_recorded_in_all_three_capture_modes(void **state)
{
    static const CUstreamCaptureMode modes[] = {
        CU_STREAM_CAPTURE_MODE_GLOBAL,
        CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
        CU_STREAM_CAPTURE_MODE_RELAXED,
    };
    struct fixture *fixture = *state;

    for (size_t i = 0; i < KI_COUNT_OF(modes); i++) {
        CUgraph graph = NULL;
        assert_int_equal(fixture->driver.stream_begin_capture(fixture->stream, modes[i]),
                         CUDA_SUCCESS);
        assert_int_equal(launch(fixture), KILN_OK);
        assert_int_equal(fixture->driver.stream_end_capture(fixture->stream, &graph),
                         CUDA_SUCCESS);
        assert_true(fixture->fake.launches[i].captured);
        (void)fixture->driver.graph_destroy(graph);
    }
}

static void *launch_often(void *user)
{
    struct fixture *fixture = user;
    intptr_t n_failed = 0;
    for (int i = 0; i < N_ROUNDS; i++) {
        enum kiln_status status = ki_launch(&fixture->kernel, &fixture->args,
                                            fixture->stream, KI_LAUNCH_AFTER, NULL);
        n_failed += status != KILN_OK;
    }
    return (void *)n_failed;
}

/* Function-static launch attributes raced elsewhere; here all is on the stack. */
static void launch_from_many_threads_shares_nothing_field_72(void **state)
{
    struct fixture *fixture = *state;
    pthread_t threads[N_THREADS];

    for (int i = 0; i < N_THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, launch_often, fixture), 0);
    }
    for (int i = 0; i < N_THREADS; i++) {
        void *n_failed;
        assert_int_equal(pthread_join(threads[i], &n_failed), 0);
        assert_null(n_failed);
    }

    assert_int_equal(fixture->fake.n_launches, N_THREADS * N_ROUNDS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
        TEST(launch_is_one_driver_call_field_70),
        TEST(launch_passes_the_ops_grid_and_threads),
        TEST(launch_passes_the_kernel_of_every_context_field_71),
        TEST(launch_has_no_attributes_field_73),
        TEST(programmatic_launch_says_so_and_is_one_call),
        TEST(launch_passes_the_args_by_value),
        TEST(launch_of_zero_rows_makes_no_driver_call),
        TEST(launch_of_all_zero_args_makes_no_driver_call),
        TEST(launch_refuses_bad_args_before_the_driver),
        TEST(launch_names_op_grid_and_result_when_the_driver_refuses),
        TEST(launch_explains_the_null_stream_beside_a_capture),
        TEST(launch_is_recorded_in_all_three_capture_modes),
        TEST(launch_from_many_threads_shares_nothing_field_72),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
