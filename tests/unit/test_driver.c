/* SPDX-License-Identifier: Apache-2.0 */
/* Binding the driver's table, and results as statuses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <cudaTypedefs.h>

#include "run/driver.h"
#include "support/fake_driver.h"

/* A symbol asked for at a version with another prototype than cuda.h's would be called
 * with the wrong arguments. cudaTypedefs.h has the prototype of each version. */
#define SAME_PROTOTYPE(member, symbol, version, required)                                \
    _Static_assert(                                                                      \
        _Generic((__typeof__(symbol) *)0, PFN_##symbol##_v##version : 1, default : 0),   \
        #symbol " is not what version " #version " of it is");
KI_DRIVER_TABLE(SAME_PROTOTYPE)

static int setup(void **state)
{
    struct fake_driver *fake = calloc(1, sizeof(*fake));
    struct ki_driver unused;
    fake_driver_init(fake, &unused);
    *state = fake;
    return 0;
}

static int teardown(void **state)
{
    fake_driver_finish(*state);
    free(*state);
    return 0;
}

static enum kiln_status bind(int version, struct ki_driver *out, struct kiln_error *err)
{
    return ki_driver_bind(out, version, fake_driver_get_proc_address, err);
}

static void driver_bind_fills_every_member(void **state)
{
    struct fake_driver *fake = *state;
    struct ki_driver driver = {.version = 0};
    struct kiln_error err;

    assert_int_equal(bind(FAKE_VERSION, &driver, &err), KILN_OK);

#define IS_BOUND(member, symbol, version, required) assert_true(driver.member != NULL);
    KI_DRIVER_TABLE(IS_BOUND)
#undef IS_BOUND
    assert_int_equal(driver.version, FAKE_VERSION);
    assert_int_equal(fake_driver_count(fake, FAKE_init), 1);
}

static void driver_bind_accepts_absent_optional_symbol(void **state)
{
    struct fake_driver *fake = *state;
    struct ki_driver driver = {.version = 0};
    struct kiln_error err;
    fake->hidden_symbol = "cuFuncLoad";

    assert_int_equal(bind(12000, &driver, &err), KILN_OK);

    assert_true(driver.func_load == NULL);
}

/* The driver answers success with NULL for what it lacks. */
static void driver_bind_names_absent_required_symbol(void **state)
{
    struct fake_driver *fake = *state;
    struct ki_driver driver = {.version = 0};
    struct kiln_error err;
    fake->hidden_symbol = "cuLibraryLoadData";

    assert_int_equal(bind(12010, &driver, &err), KILN_E_DRIVER_MISSING);

    assert_int_equal(err.status, KILN_E_DRIVER_MISSING);
    assert_non_null(strstr(err.message, "cuLibraryLoadData"));
    assert_non_null(strstr(err.message, "12.1"));
    assert_true(driver.init == NULL);
}

static void driver_bind_refuses_old_driver_naming_both_versions(void **state)
{
    struct fake_driver *fake = *state;
    struct ki_driver driver = {.version = 0};
    struct kiln_error err;

    assert_int_equal(bind(11080, &driver, &err), KILN_E_DRIVER_MISSING);

    assert_non_null(strstr(err.message, "11.8"));
    assert_non_null(strstr(err.message, "12.0"));
    assert_int_equal(fake->n_calls, 0);
}

static void driver_bind_reports_init_failure_as_missing(void **state)
{
    struct fake_driver *fake = *state;
    struct ki_driver driver = {.version = 0};
    struct kiln_error err;
    fake->fail_call = FAKE_init;
    fake->fail_call_nth = 1;
    fake->fail_result = CUDA_ERROR_NO_DEVICE;

    assert_int_equal(bind(FAKE_VERSION, &driver, &err), KILN_E_DRIVER_MISSING);

    assert_int_equal(err.status, KILN_E_DRIVER_MISSING);
    assert_int_equal(err.origin, KILN_ORIGIN_DRIVER);
    assert_int_equal(err.native_code, 100);
    assert_non_null(strstr(err.message, "cuInit"));
    assert_non_null(strstr(err.message, "CUDA_ERROR_NO_DEVICE"));
}

static void driver_check_accepts_success(void **state)
{
    struct ki_driver driver = {.version = 0};
    (void)state;
    assert_int_equal(bind(FAKE_VERSION, &driver, NULL), KILN_OK);

    assert_int_equal(ki_driver_check(&driver, CUDA_SUCCESS, "cuCall", NULL), KILN_OK);
}

static void driver_check_names_call_result_and_code(void **state)
{
    struct ki_driver driver = {.version = 0};
    struct kiln_error err;
    (void)state;
    assert_int_equal(bind(FAKE_VERSION, &driver, &err), KILN_OK);

    assert_int_equal(
        ki_driver_check(&driver, CUDA_ERROR_OUT_OF_MEMORY, "cuMemAlloc", &err),
        KILN_E_DRIVER);

    assert_string_equal(err.message, "cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY (2)");
    assert_int_equal(err.native_code, 2);
    assert_int_equal(err.origin, KILN_ORIGIN_DRIVER);
}

static void driver_check_survives_a_result_without_name(void **state)
{
    struct ki_driver driver = {.version = 0};
    struct kiln_error err;
    (void)state;
    assert_int_equal(bind(FAKE_VERSION, &driver, &err), KILN_OK);

    assert_int_equal(ki_driver_check(&driver, (CUresult)54321, "cuInit", &err),
                     KILN_E_DRIVER);

    assert_non_null(strstr(err.message, "54321"));
}

static void driver_close_accepts_all_zeros(void **state)
{
    struct ki_driver driver = {.version = 0};
    (void)state;

    ki_driver_close(&driver);

    assert_true(driver.library == NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
        TEST(driver_bind_fills_every_member),
        TEST(driver_bind_accepts_absent_optional_symbol),
        TEST(driver_bind_names_absent_required_symbol),
        TEST(driver_bind_refuses_old_driver_naming_both_versions),
        TEST(driver_bind_reports_init_failure_as_missing),
        TEST(driver_check_accepts_success),
        TEST(driver_check_names_call_result_and_code),
        TEST(driver_check_survives_a_result_without_name),
        TEST(driver_close_accepts_all_zeros),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
