/* SPDX-License-Identifier: Apache-2.0 */
/* The status table: every number has a name and a text, and no other number has. */
#include <stdarg.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/attr.h"
#include "base/status.h"

struct row {
    int value;
    const char *name, *text;
};

static const struct row rows[] = {
#define ROW(value, name, text) {value, #name, text},
    KILN_STATUS_TABLE(ROW)
#undef ROW
};

static bool is_listed(int value)
{
    for (size_t i = 0; i < KI_COUNT_OF(rows); i++) {
        if (rows[i].value == value) {
            return true;
        }
    }
    return false;
}

static void status_name_and_text_are_those_of_the_table(void **state)
{
    (void)state;
    for (size_t i = 0; i < KI_COUNT_OF(rows); i++) {
        assert_string_equal(kiln_status_name(rows[i].value), rows[i].name);
        assert_string_equal(kiln_status_text(rows[i].value), rows[i].text);
    }
}

static void status_numbers_and_names_are_used_once(void **state)
{
    (void)state;
    for (size_t i = 0; i < KI_COUNT_OF(rows); i++) {
        for (size_t j = i + 1; j < KI_COUNT_OF(rows); j++) {
            assert_int_not_equal(rows[i].value, rows[j].value);
            assert_string_not_equal(rows[i].name, rows[j].name);
            assert_string_not_equal(rows[i].text, rows[j].text);
        }
    }
}

static void status_numbers_are_pinned(void **state)
{
    (void)state;
    assert_int_equal(KILN_OK, 0);
    assert_int_equal(KILN_E_ARGUMENT, -1);
    assert_int_equal(KILN_E_SHAPE, -10);
    assert_int_equal(KILN_E_NVRTC_MISSING, -20);
    assert_int_equal(KILN_E_STORE, -30);
    assert_int_equal(KILN_E_DRIVER_MISSING, -40);
    assert_int_equal(KILN_E_MEMORY, -50);
    assert_int_equal(KILN_E_INTERNAL, -90);
}

static void status_of_any_other_number_is_unknown(void **state)
{
    static const int far[] = {INT32_MIN, INT32_MAX, 7700};

    (void)state;
    for (int value = -200; value <= 200; value++) {
        if (!is_listed(value)) {
            assert_string_equal(kiln_status_name(value), "KILN_E_?");
            assert_true(strlen(kiln_status_text(value)) > 0);
        }
    }
    for (size_t i = 0; i < KI_COUNT_OF(far); i++) {
        assert_string_equal(kiln_status_name(far[i]), "KILN_E_?");
    }
}

static void fail_fills_the_error_and_returns_the_status(void **state)
{
    struct kiln_error err = {.native_code = 5, .origin = KILN_ORIGIN_OS};

    (void)state;
    assert_int_equal(ki_fail(&err, KILN_E_SHAPE, "topk is %d", -3), KILN_E_SHAPE);

    assert_int_equal(err.status, KILN_E_SHAPE);
    assert_int_equal(err.origin, KILN_ORIGIN_KILN);
    assert_int_equal(err.native_code, 0);
    assert_string_equal(err.message, "topk is -3");
}

static void fail_without_an_error_returns_the_status(void **state)
{
    (void)state;
    assert_int_equal(ki_fail(NULL, KILN_E_STORE, "x"), KILN_E_STORE);
    assert_int_equal(ki_fail_os(NULL, KILN_E_SYSTEM, 2, "x"), KILN_E_SYSTEM);
    assert_int_equal(
        ki_fail_native(NULL, KILN_E_DRIVER, KILN_ORIGIN_DRIVER, 1, NULL, "x"),
        KILN_E_DRIVER);
    assert_int_equal(ki_fail_memory(NULL, "x"), KILN_E_MEMORY);
}

static void fail_cuts_a_long_message(void **state)
{
    char text[2 * KILN_MESSAGE_BYTES];
    struct kiln_error err = {0};

    (void)state;
    memset(text, 'a', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    assert_int_equal(ki_fail_os(&err, KILN_E_SYSTEM, 2, "%s", text), KILN_E_SYSTEM);

    assert_int_equal(strlen(err.message), KILN_MESSAGE_BYTES - 1);
}

static void fail_keeps_native_code_and_name(void **state)
{
    struct kiln_error err = {0};

    (void)state;
    assert_int_equal(ki_fail_native(&err, KILN_E_DRIVER, KILN_ORIGIN_DRIVER, 201,
                                    "CUDA_ERROR_INVALID_CONTEXT", "cuLaunchKernelEx"),
                     KILN_E_DRIVER);

    assert_int_equal(err.native_code, 201);
    assert_int_equal(err.origin, KILN_ORIGIN_DRIVER);
    assert_non_null(strstr(err.message, "cuLaunchKernelEx"));
    assert_non_null(strstr(err.message, "CUDA_ERROR_INVALID_CONTEXT"));
}

static void fail_os_adds_the_systems_words(void **state)
{
    struct kiln_error err = {0};

    (void)state;
    assert_int_equal(ki_fail_os(&err, KILN_E_SYSTEM, 2, "open /x"), KILN_E_SYSTEM);

    assert_int_equal(err.native_code, 2);
    assert_int_equal(err.origin, KILN_ORIGIN_OS);
    assert_true(strlen(err.message) > strlen("open /x"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(status_name_and_text_are_those_of_the_table),
        cmocka_unit_test(status_numbers_and_names_are_used_once),
        cmocka_unit_test(status_numbers_are_pinned),
        cmocka_unit_test(status_of_any_other_number_is_unknown),
        cmocka_unit_test(fail_fills_the_error_and_returns_the_status),
        cmocka_unit_test(fail_without_an_error_returns_the_status),
        cmocka_unit_test(fail_cuts_a_long_message),
        cmocka_unit_test(fail_keeps_native_code_and_name),
        cmocka_unit_test(fail_os_adds_the_systems_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
