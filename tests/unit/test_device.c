/* SPDX-License-Identifier: Apache-2.0 */
/* The current context as facts, the refusal of captures, the relaxed scope. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "run/device.h"
#include "support/fake_driver.h"

struct fixture {
    struct fake_driver fake;
    struct ki_driver driver;
    struct kiln_error err;
    CUstream stream;
};

static int setup(void **state)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));
    fake_driver_init(&fixture->fake, &fixture->driver);
    fake_driver_set_context(fake_driver_context());
    if (fixture->driver.stream_create(&fixture->stream, 0) != CUDA_SUCCESS) {
        return -1;
    }
    fake_driver_forget(&fixture->fake);
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

static void device_current_tells_target_and_sms(void **state)
{
    struct fixture *fixture = *state;
    struct ki_device device;
    fixture->fake.cc_major = 12;
    fixture->fake.cc_minor = 1;

    assert_int_equal(ki_device_current(&fixture->driver, &device, &fixture->err),
                     KILN_OK);

    assert_int_equal(device.target.major, 12);
    assert_int_equal(device.target.minor, 1);
    assert_int_equal(device.n_sms, FAKE_SMS);
}

static void device_current_refuses_thread_without_context(void **state)
{
    struct fixture *fixture = *state;
    struct ki_device device;
    fake_driver_set_context(NULL);

    assert_int_equal(ki_device_current(&fixture->driver, &device, &fixture->err),
                     KILN_E_NO_CONTEXT);

    assert_non_null(strstr(fixture->err.message, "context"));
}

static void device_current_passes_on_each_failing_call(void **state)
{
    struct fixture *fixture = *state;
    struct ki_device device = {.n_sms = -7};
    int n_calls;
    assert_int_equal(ki_device_current(&fixture->driver, &device, NULL), KILN_OK);
    n_calls = fixture->fake.n_calls;
    device.n_sms = -7;

    for (int nth = 1; nth <= n_calls; nth++) {
        fake_driver_forget(&fixture->fake);
        fixture->fake.fail_nth = nth;
        assert_int_equal(ki_device_current(&fixture->driver, &device, &fixture->err),
                         KILN_E_DRIVER);
        assert_int_equal(fixture->err.native_code, CUDA_ERROR_UNKNOWN);
    }

    assert_int_equal(device.n_sms, -7);
}

static void device_refuse_capture_accepts_idle_stream(void **state)
{
    struct fixture *fixture = *state;

    assert_int_equal(
        ki_device_refuse_capture(&fixture->driver, fixture->stream, &fixture->err),
        KILN_OK);
}

static void device_refuse_capture_does_not_ask_null_stream(void **state)
{
    struct fixture *fixture = *state;

    assert_int_equal(ki_device_refuse_capture(&fixture->driver, NULL, &fixture->err),
                     KILN_OK);

    assert_int_equal(fixture->fake.n_calls, 0);
}

static void device_refuse_capture_refuses_capturing_stream_field_68(void **state)
{
    struct fixture *fixture = *state;
    assert_int_equal(fixture->driver.stream_begin_capture(fixture->stream,
                                                          CU_STREAM_CAPTURE_MODE_GLOBAL),
                     CUDA_SUCCESS);
    fake_driver_forget(&fixture->fake);

    assert_int_equal(
        ki_device_refuse_capture(&fixture->driver, fixture->stream, &fixture->err),
        KILN_E_CAPTURING);

    assert_int_equal(fixture->fake.n_calls, 1);
    assert_int_equal(fixture->fake.n_broken, 0);
}

static void device_refuse_capture_understands_a_drivers_capture_results(void **state)
{
    static const CUresult results[] = {
        CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
        CUDA_ERROR_STREAM_CAPTURE_INVALIDATED,
        CUDA_ERROR_STREAM_CAPTURE_IMPLICIT,
    };
    struct fixture *fixture = *state;
    fixture->fake.fail_call = FAKE_stream_is_capturing;
    fixture->fake.fail_call_nth = 1;

    for (size_t i = 0; i < KI_COUNT_OF(results); i++) {
        fake_driver_forget(&fixture->fake);
        fixture->fake.fail_result = results[i];
        assert_int_equal(
            ki_device_refuse_capture(&fixture->driver, fixture->stream, &fixture->err),
            KILN_E_CAPTURING);
    }
}

static void device_refuse_capture_passes_on_other_failures(void **state)
{
    struct fixture *fixture = *state;
    fixture->fake.fail_nth = 1;

    assert_int_equal(
        ki_device_refuse_capture(&fixture->driver, fixture->stream, &fixture->err),
        KILN_E_DRIVER);
}

static void relaxed_scope_restores_the_threads_mode(void **state)
{
    struct fixture *fixture = *state;
    struct ki_relaxed scope;
    CUstreamCaptureMode before = fake_driver_thread_mode();

    assert_int_equal(ki_relaxed_enter(&fixture->driver, &scope, &fixture->err), KILN_OK);
    assert_int_equal(fake_driver_thread_mode(), CU_STREAM_CAPTURE_MODE_RELAXED);
    ki_relaxed_leave(&fixture->driver, &scope);

    assert_int_equal(fake_driver_thread_mode(), before);
}

static void relaxed_scope_nests(void **state)
{
    struct fixture *fixture = *state;
    struct ki_relaxed outer, inner;

    assert_int_equal(ki_relaxed_enter(&fixture->driver, &outer, &fixture->err), KILN_OK);
    assert_int_equal(ki_relaxed_enter(&fixture->driver, &inner, &fixture->err), KILN_OK);
    ki_relaxed_leave(&fixture->driver, &inner);

    assert_int_equal(fake_driver_thread_mode(), CU_STREAM_CAPTURE_MODE_RELAXED);
    ki_relaxed_leave(&fixture->driver, &outer);
}

static void relaxed_leave_does_nothing_after_failed_enter(void **state)
{
    struct fixture *fixture = *state;
    struct ki_relaxed scope;
    fixture->fake.fail_nth = 1;

    assert_int_equal(ki_relaxed_enter(&fixture->driver, &scope, &fixture->err),
                     KILN_E_DRIVER);
    ki_relaxed_leave(&fixture->driver, &scope);

    assert_int_equal(fixture->fake.n_calls, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
        TEST(device_current_tells_target_and_sms),
        TEST(device_current_refuses_thread_without_context),
        TEST(device_current_passes_on_each_failing_call),
        TEST(device_refuse_capture_accepts_idle_stream),
        TEST(device_refuse_capture_does_not_ask_null_stream),
        TEST(device_refuse_capture_refuses_capturing_stream_field_68),
        TEST(device_refuse_capture_understands_a_drivers_capture_results),
        TEST(device_refuse_capture_passes_on_other_failures),
        TEST(relaxed_scope_restores_the_threads_mode),
        TEST(relaxed_scope_nests),
        TEST(relaxed_leave_does_nothing_after_failed_enter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
