/* SPDX-License-Identifier: Apache-2.0 */
/* Loading an image whole, relaxed, and without a trace when it fails. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "run/module.h"
#include "support/fake_driver.h"

struct fixture {
    struct fake_driver fake;
    struct ki_driver driver;
    struct ki_device device;
    struct kiln_error err;
    CUstream stream; /* for captures */
    unsigned char bytes[64];
};

static int setup(void **state)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));
    fake_driver_init(&fixture->fake, &fixture->driver);
    fake_driver_set_context(fake_driver_context());
    if (ki_device_current(&fixture->driver, &fixture->device, NULL) != KILN_OK ||
        fixture->driver.stream_create(&fixture->stream, 0) != CUDA_SUCCESS) {
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

static enum kiln_status load(struct fixture *fixture, struct ki_module *out)
{
    struct ki_blob image = {fixture->bytes, sizeof(fixture->bytes)};
    return ki_module_load(&fixture->driver, &fixture->device, image, "kiln_global_topk",
                          out, &fixture->err);
}

static void module_load_tells_the_kernels_facts(void **state)
{
    struct fixture *fixture = *state;
    struct ki_module module;

    assert_int_equal(load(fixture, &module), KILN_OK);

    assert_non_null(module.kernel);
    assert_int_equal(module.registers, FAKE_REGISTERS);
    assert_int_equal(module.smem_bytes, FAKE_SMEM_BYTES);
    assert_int_equal(module.local_bytes, FAKE_LOCAL_BYTES);
    assert_int_equal(module.code_bytes, sizeof(fixture->bytes));
    ki_module_unload(&fixture->driver, &module);
}

/* A lazy load in the first launch hung eight schedulers. */
static void module_load_leaves_nothing_to_load_lazily_field_33_66(void **state)
{
    struct fixture *fixture = *state;
    struct ki_module module;

    assert_int_equal(load(fixture, &module), KILN_OK);

    assert_int_equal(fake_driver_count(&fixture->fake, FAKE_kernel_get_function), 1);
    assert_int_equal(fake_driver_count(&fixture->fake, FAKE_func_load), 1);
    ki_module_unload(&fixture->driver, &module);
}

static void module_load_works_without_func_load(void **state)
{
    struct fixture *fixture = *state;
    struct ki_module module;
    fixture->driver.func_load = NULL;

    assert_int_equal(load(fixture, &module), KILN_OK);

    assert_int_equal(fake_driver_count(&fixture->fake, FAKE_kernel_get_function), 1);
    ki_module_unload(&fixture->driver, &module);
}

static void module_load_passes_on_each_failing_call_and_keeps_nothing(void **state)
{
    struct fixture *fixture = *state;
    struct ki_module module;
    int n_calls;
    assert_int_equal(load(fixture, &module), KILN_OK);
    n_calls = fixture->fake.n_calls;
    ki_module_unload(&fixture->driver, &module);
    assert_true(n_calls >= 9);

    /* The last call leaves the relaxed scope and has nobody to tell. */
    for (int nth = 1; nth < n_calls; nth++) {
        memset(&module, 0x5a, sizeof(module));
        fake_driver_forget(&fixture->fake);
        fixture->fake.fail_nth = nth;
        assert_int_equal(load(fixture, &module), KILN_E_DRIVER);
        assert_int_equal(fixture->fake.live.libraries, 0);
        assert_int_equal(fake_driver_thread_mode(), CU_STREAM_CAPTURE_MODE_GLOBAL);
        assert_int_equal(module.registers, 0x5a5a5a5a);
    }
}

static void module_load_calls_a_refused_image_refused(void **state)
{
    static const CUresult results[] = {
        CUDA_ERROR_INVALID_IMAGE,
        CUDA_ERROR_NO_BINARY_FOR_GPU,
        CUDA_ERROR_UNSUPPORTED_PTX_VERSION,
        CUDA_ERROR_INVALID_SOURCE,
    };
    struct fixture *fixture = *state;
    struct ki_module module;

    for (size_t i = 0; i < KI_COUNT_OF(results); i++) {
        fake_driver_forget(&fixture->fake);
        fixture->fake.refuse_image_nth = 1;
        fixture->fake.refuse_result = results[i];
        assert_int_equal(load(fixture, &module), KILN_E_CUBIN_REFUSED);
        assert_int_equal(fixture->err.native_code, results[i]);
    }
}

/* With lazy loading an image is looked at as late as here. */
static void module_load_calls_an_image_refused_late_refused(void **state)
{
    struct fixture *fixture = *state;
    struct ki_module module;
    fixture->fake.fail_call = FAKE_func_load;
    fixture->fake.fail_call_nth = 1;
    fixture->fake.fail_result = CUDA_ERROR_NO_BINARY_FOR_GPU;

    assert_int_equal(load(fixture, &module), KILN_E_CUBIN_REFUSED);

    assert_int_equal(fixture->fake.live.libraries, 0);
}

static void module_load_calls_an_image_without_the_entry_refused(void **state)
{
    struct fixture *fixture = *state;
    struct ki_module module;
    fixture->fake.fail_call = FAKE_library_get_kernel;
    fixture->fake.fail_call_nth = 1;
    fixture->fake.fail_result = CUDA_ERROR_NOT_FOUND;

    assert_int_equal(load(fixture, &module), KILN_E_CUBIN_REFUSED);

    assert_int_equal(fixture->fake.live.libraries, 0);
}

static void module_load_refusal_names_driver_kernel_and_device(void **state)
{
    struct fixture *fixture = *state;
    struct ki_module module;
    fixture->driver.version = 12040;
    fixture->fake.refuse_image_nth = 1;

    assert_int_equal(load(fixture, &module), KILN_E_CUBIN_REFUSED);

    assert_non_null(strstr(fixture->err.message, "12.4"));
    assert_non_null(strstr(fixture->err.message, "kiln_global_topk"));
    assert_non_null(strstr(fixture->err.message, "sm_90"));
    assert_non_null(strstr(fixture->err.message, "CUDA_ERROR_INVALID_IMAGE (200)"));
}

static void module_load_succeeds_once_the_refusal_is_over(void **state)
{
    struct fixture *fixture = *state;
    struct ki_module module;
    fixture->fake.refuse_image_nth = 1;
    assert_int_equal(load(fixture, &module), KILN_E_CUBIN_REFUSED);

    assert_int_equal(load(fixture, &module), KILN_OK);

    ki_module_unload(&fixture->driver, &module);
}

static void begin_capture(struct fixture *fixture)
{
    assert_int_equal(fixture->driver.stream_begin_capture(fixture->stream,
                                                          CU_STREAM_CAPTURE_MODE_GLOBAL),
                     CUDA_SUCCESS);
}

static CUresult end_capture(struct fixture *fixture)
{
    CUgraph graph = NULL;
    CUresult result = fixture->driver.stream_end_capture(fixture->stream, &graph);
    if (graph != NULL) {
        (void)fixture->driver.graph_destroy(graph);
    }
    return result;
}

/* What it does beside the capture of a stream that it was not told of. */
static void module_load_and_unload_leave_another_capture_whole_field_70(void **state)
{
    struct fixture *fixture = *state;
    struct ki_module module;
    begin_capture(fixture);

    assert_int_equal(load(fixture, &module), KILN_OK);
    ki_module_unload(&fixture->driver, &module);

    assert_int_equal(end_capture(fixture), CUDA_SUCCESS);
}

static void module_load_failure_leaves_another_capture_whole_field_70(void **state)
{
    struct fixture *fixture = *state;
    struct ki_module module;
    fixture->fake.fail_call = FAKE_kernel_get_attribute;
    fixture->fake.fail_call_nth = 2;
    begin_capture(fixture);

    assert_int_equal(load(fixture, &module), KILN_E_DRIVER);

    assert_int_equal(end_capture(fixture), CUDA_SUCCESS);
}

static void module_load_types_an_old_drivers_refusal_field_68(void **state)
{
    struct fixture *fixture = *state;
    struct ki_module module;
    fixture->fake.loads_fail_in_capture = true;
    begin_capture(fixture);

    assert_int_equal(load(fixture, &module), KILN_E_CAPTURING);

    assert_int_equal(fixture->err.native_code, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    assert_non_null(strstr(fixture->err.message, "kiln_global_topk"));
    assert_int_equal(end_capture(fixture), CUDA_SUCCESS);
}

static void module_unload_accepts_all_zeros(void **state)
{
    struct fixture *fixture = *state;
    struct ki_module module = {.library = NULL};

    ki_module_unload(&fixture->driver, &module);

    assert_int_equal(fixture->fake.n_calls, 0);
}

static void module_unload_twice_unloads_once(void **state)
{
    struct fixture *fixture = *state;
    struct ki_module module;
    assert_int_equal(load(fixture, &module), KILN_OK);

    ki_module_unload(&fixture->driver, &module);
    ki_module_unload(&fixture->driver, &module);

    assert_int_equal(fake_driver_count(&fixture->fake, FAKE_library_unload), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
        TEST(module_load_tells_the_kernels_facts),
        TEST(module_load_leaves_nothing_to_load_lazily_field_33_66),
        TEST(module_load_works_without_func_load),
        TEST(module_load_passes_on_each_failing_call_and_keeps_nothing),
        TEST(module_load_calls_a_refused_image_refused),
        TEST(module_load_calls_an_image_refused_late_refused),
        TEST(module_load_calls_an_image_without_the_entry_refused),
        TEST(module_load_refusal_names_driver_kernel_and_device),
        TEST(module_load_succeeds_once_the_refusal_is_over),
        TEST(module_load_and_unload_leave_another_capture_whole_field_70),
        TEST(module_load_failure_leaves_another_capture_whole_field_70),
        TEST(module_load_types_an_old_drivers_refusal_field_68),
        TEST(module_unload_accepts_all_zeros),
        TEST(module_unload_twice_unloads_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
