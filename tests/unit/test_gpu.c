/* SPDX-License-Identifier: Apache-2.0 */
/* The gpu of tools and tests over the fake driver: what it makes, it releases. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "gpu.h"
#include "support/fake_driver.h"

struct fixture {
    struct fake_driver fake;
    struct ki_driver driver;
    struct kiln_gpu *gpu;
    struct kiln_error err;
};

static int setup(void **state)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));
    fake_driver_init(&fixture->fake, &fixture->driver);
    *state = fixture;
    if (ki_gpu_open_with(&fixture->driver, 0, &fixture->gpu, NULL) != KILN_OK) {
        return -1;
    }
    fake_driver_forget(&fixture->fake);
    return 0;
}

static int teardown(void **state)
{
    struct fixture *fixture = *state;
    kiln_gpu_close(&fixture->gpu);
    bool clean = fake_driver_is_clean(&fixture->fake);
    fake_driver_finish(&fixture->fake);
    free(fixture);
    return clean ? 0 : -1;
}

static void gpu_open_makes_the_context_current(void **state)
{
    struct fixture *fixture = *state;
    CUcontext current = NULL;

    assert_int_equal(fixture->driver.ctx_get_current(&current), CUDA_SUCCESS);

    assert_ptr_equal(current, fake_driver_context());
}

/* Two gpus of one device share its context, and the first is still in use. */
static void gpu_close_leaves_current_what_was_current_before(void **state)
{
    struct fixture *fixture = *state;
    struct kiln_gpu *second = NULL;
    CUcontext current = NULL;
    assert_int_equal(ki_gpu_open_with(&fixture->driver, 0, &second, NULL), KILN_OK);

    kiln_gpu_close(&second);
    assert_int_equal(fixture->driver.ctx_get_current(&current), CUDA_SUCCESS);
    assert_ptr_equal(current, fake_driver_context());

    kiln_gpu_close(&fixture->gpu);
    assert_int_equal(fixture->driver.ctx_get_current(&current), CUDA_SUCCESS);
    assert_null(current);
}

static void gpu_info_tells_name_target_sms_and_driver(void **state)
{
    struct fixture *fixture = *state;
    struct kiln_gpu_info info;

    kiln_gpu_get_info(fixture->gpu, &info);

    assert_string_equal(info.name, "Fake GPU 0");
    assert_string_equal(info.target, "sm_90");
    assert_int_equal(info.n_sms, FAKE_SMS);
    assert_int_equal(info.driver_version, FAKE_VERSION);
}

static void gpu_open_refuses_ordinals_that_no_device_has(void **state)
{
    static const int ordinals[] = {-1, 1, 1000};
    struct fixture *fixture = *state;
    struct kiln_gpu *gpu = fixture->gpu;

    for (size_t i = 0; i < KI_COUNT_OF(ordinals); i++) {
        assert_int_equal(
            ki_gpu_open_with(&fixture->driver, ordinals[i], &gpu, &fixture->err),
            KILN_E_DRIVER_MISSING);
        assert_null(gpu);
    }
    assert_non_null(strstr(fixture->err.message, "GPU 1000"));
}

static void gpu_open_passes_on_each_failing_call_and_keeps_nothing(void **state)
{
    struct fixture *fixture = *state;
    struct fake_live before = fixture->fake.live;
    struct kiln_gpu *gpu = NULL;
    int nth = 1;

    for (;; nth++) {
        fake_driver_forget(&fixture->fake);
        fixture->fake.fail_nth = nth;
        if (ki_gpu_open_with(&fixture->driver, 0, &gpu, &fixture->err) == KILN_OK) {
            break;
        }
        assert_null(gpu);
        assert_int_equal(fixture->err.status, KILN_E_DRIVER);
        assert_memory_equal(&fixture->fake.live, &before, sizeof(before));
    }

    assert_true(nth > 8);
    kiln_gpu_close(&gpu);
}

static void gpu_close_accepts_nothing(void **state)
{
    struct kiln_gpu *gpu = NULL;
    (void)state;

    kiln_gpu_close(NULL);
    kiln_gpu_close(&gpu);

    assert_null(gpu);
}

static void gpu_copies_go_in_across_and_out(void **state)
{
    struct fixture *fixture = *state;
    const char text[] = "metadata";
    char back[sizeof(text)] = "";
    void *first = NULL, *second = NULL;
    assert_int_equal(kiln_gpu_alloc(fixture->gpu, sizeof(text), &first, NULL), KILN_OK);
    assert_int_equal(kiln_gpu_alloc(fixture->gpu, sizeof(text), &second, NULL), KILN_OK);

    assert_int_equal(kiln_gpu_copy_in(fixture->gpu, first, text, sizeof(text), NULL),
                     KILN_OK);
    assert_int_equal(kiln_gpu_copy(fixture->gpu, second, first, sizeof(text), NULL),
                     KILN_OK);
    assert_int_equal(kiln_gpu_copy_out(fixture->gpu, back, second, sizeof(text), NULL),
                     KILN_OK);

    assert_string_equal(back, text);
    kiln_gpu_free(fixture->gpu, first);
    kiln_gpu_free(fixture->gpu, second);
}

static void gpu_treats_zero_bytes_as_nothing(void **state)
{
    struct fixture *fixture = *state;
    void *address = fixture;

    assert_int_equal(kiln_gpu_alloc(fixture->gpu, 0, &address, NULL), KILN_OK);
    assert_null(address);
    assert_int_equal(kiln_gpu_copy_in(fixture->gpu, NULL, NULL, 0, NULL), KILN_OK);
    assert_int_equal(kiln_gpu_copy(fixture->gpu, NULL, NULL, 0, NULL), KILN_OK);
    assert_int_equal(kiln_gpu_copy_out(fixture->gpu, NULL, NULL, 0, NULL), KILN_OK);
    kiln_gpu_free(fixture->gpu, NULL);

    assert_int_equal(fixture->fake.n_calls, 0);
}

static void gpu_alloc_names_the_failing_call(void **state)
{
    struct fixture *fixture = *state;
    void *address = fixture;
    fixture->fake.fail_call = FAKE_mem_alloc;
    fixture->fake.fail_call_nth = 1;
    fixture->fake.fail_result = CUDA_ERROR_OUT_OF_MEMORY;

    assert_int_equal(kiln_gpu_alloc(fixture->gpu, 64, &address, &fixture->err),
                     KILN_E_DRIVER);

    assert_null(address);
    assert_string_equal(fixture->err.message,
                        "cuMemAlloc of 64 bytes: CUDA_ERROR_OUT_OF_MEMORY (2)");
}

/* An earlier kernel's fault comes out where the host waits. */
static void gpu_copy_out_reports_what_an_earlier_launch_did(void **state)
{
    struct fixture *fixture = *state;
    char byte = 0;
    void *address = NULL;
    assert_int_equal(kiln_gpu_alloc(fixture->gpu, 1, &address, NULL), KILN_OK);
    fixture->fake.fail_call = FAKE_stream_synchronize;
    fixture->fake.fail_call_nth = 1;
    fixture->fake.fail_result = CUDA_ERROR_LAUNCH_FAILED;

    assert_int_equal(kiln_gpu_copy_out(fixture->gpu, &byte, address, 1, &fixture->err),
                     KILN_E_DRIVER);

    assert_int_equal(fixture->err.native_code, CUDA_ERROR_LAUNCH_FAILED);
    kiln_gpu_free(fixture->gpu, address);
}

static void gpu_captures_and_replays_in_all_three_modes(void **state)
{
    struct fixture *fixture = *state;

    for (int mode = KILN_CAPTURE_GLOBAL; mode <= KILN_CAPTURE_RELAXED; mode++) {
        struct kiln_gpu_graph *graph = NULL;
        double us = 0;
        assert_int_equal(
            kiln_gpu_capture_begin(fixture->gpu, (enum kiln_capture_mode)mode, NULL),
            KILN_OK);
        assert_int_equal(kiln_gpu_capture_end(fixture->gpu, &graph, NULL), KILN_OK);
        assert_int_equal(kiln_gpu_replay(fixture->gpu, graph, &us, NULL), KILN_OK);
        assert_true(us > 249 && us < 251);
        kiln_gpu_graph_destroy(fixture->gpu, &graph);
        assert_null(graph);
    }
}

static void gpu_capture_begin_refuses_modes_that_are_none(void **state)
{
    struct fixture *fixture = *state;

    assert_int_equal(
        kiln_gpu_capture_begin(fixture->gpu, (enum kiln_capture_mode)9, &fixture->err),
        KILN_E_ARGUMENT);

    assert_int_equal(fixture->fake.n_calls, 0);
}

static void gpu_capture_end_keeps_nothing_when_it_fails(void **state)
{
    static const enum fake_call calls[] = {FAKE_stream_end_capture,
                                           FAKE_graph_instantiate};
    struct fixture *fixture = *state;
    struct kiln_gpu_graph *graph = NULL;

    for (size_t i = 0; i < KI_COUNT_OF(calls); i++) {
        fake_driver_forget(&fixture->fake);
        fixture->fake.fail_call = calls[i];
        fixture->fake.fail_call_nth = 1;
        assert_int_equal(kiln_gpu_capture_begin(fixture->gpu, KILN_CAPTURE_GLOBAL, NULL),
                         KILN_OK);
        assert_int_equal(kiln_gpu_capture_end(fixture->gpu, &graph, &fixture->err),
                         KILN_E_DRIVER);
        assert_null(graph);
        assert_int_equal(fixture->fake.live.graphs, 0);
        assert_int_equal(fixture->fake.live.execs, 0);
    }
}

static void gpu_replay_passes_on_each_failing_call(void **state)
{
    struct fixture *fixture = *state;
    struct kiln_gpu_graph *graph = NULL;
    int n_calls;
    assert_int_equal(kiln_gpu_capture_begin(fixture->gpu, KILN_CAPTURE_GLOBAL, NULL),
                     KILN_OK);
    assert_int_equal(kiln_gpu_capture_end(fixture->gpu, &graph, NULL), KILN_OK);
    fake_driver_forget(&fixture->fake);
    assert_int_equal(kiln_gpu_replay(fixture->gpu, graph, NULL, NULL), KILN_OK);
    n_calls = fixture->fake.n_calls;

    /* The last call leaves the relaxed scope and has nobody to tell. */
    for (int nth = 1; nth < n_calls; nth++) {
        fake_driver_forget(&fixture->fake);
        fixture->fake.fail_nth = nth;
        assert_int_equal(kiln_gpu_replay(fixture->gpu, graph, NULL, &fixture->err),
                         KILN_E_DRIVER);
        assert_int_equal(fake_driver_thread_mode(), CU_STREAM_CAPTURE_MODE_GLOBAL);
    }

    kiln_gpu_graph_destroy(fixture->gpu, &graph);
}

/* A cuMemAlloc elsewhere kills a capture in global mode unless it is relaxed, and so does
 * the end of a graph. */
static void gpu_leaves_another_capture_whole_field_70(void **state)
{
    struct fixture *fixture = *state;
    struct kiln_gpu *other = NULL;
    struct kiln_gpu_graph *graph = NULL;
    char byte = 1;
    void *address = NULL;
    assert_int_equal(kiln_gpu_capture_begin(fixture->gpu, KILN_CAPTURE_GLOBAL, NULL),
                     KILN_OK);
    assert_int_equal(kiln_gpu_capture_end(fixture->gpu, &graph, NULL), KILN_OK);
    assert_int_equal(ki_gpu_open_with(&fixture->driver, 0, &other, NULL), KILN_OK);
    assert_int_equal(kiln_gpu_capture_begin(other, KILN_CAPTURE_GLOBAL, NULL), KILN_OK);

    assert_int_equal(kiln_gpu_alloc(fixture->gpu, 1, &address, NULL), KILN_OK);
    assert_int_equal(kiln_gpu_copy_in(fixture->gpu, address, &byte, 1, NULL), KILN_OK);
    assert_int_equal(kiln_gpu_copy_out(fixture->gpu, &byte, address, 1, NULL), KILN_OK);
    kiln_gpu_free(fixture->gpu, address);
    kiln_gpu_graph_destroy(fixture->gpu, &graph);

    assert_int_equal(kiln_gpu_capture_end(other, &graph, &fixture->err), KILN_OK);
    kiln_gpu_graph_destroy(other, &graph);
    kiln_gpu_close(&other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
        TEST(gpu_open_makes_the_context_current),
        TEST(gpu_close_leaves_current_what_was_current_before),
        TEST(gpu_info_tells_name_target_sms_and_driver),
        TEST(gpu_open_refuses_ordinals_that_no_device_has),
        TEST(gpu_open_passes_on_each_failing_call_and_keeps_nothing),
        TEST(gpu_close_accepts_nothing),
        TEST(gpu_copies_go_in_across_and_out),
        TEST(gpu_treats_zero_bytes_as_nothing),
        TEST(gpu_alloc_names_the_failing_call),
        TEST(gpu_copy_out_reports_what_an_earlier_launch_did),
        TEST(gpu_captures_and_replays_in_all_three_modes),
        TEST(gpu_capture_begin_refuses_modes_that_are_none),
        TEST(gpu_capture_end_keeps_nothing_when_it_fails),
        TEST(gpu_replay_passes_on_each_failing_call),
        TEST(gpu_leaves_another_capture_whole_field_70),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
