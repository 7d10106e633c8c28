/* SPDX-License-Identifier: Apache-2.0 */
/* Targets by name, and which device runs which. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "plan/target.h"

static const char *const known[] = {"sm_80",  "sm_86",  "sm_87",  "sm_89",  "sm_90",
                                    "sm_100", "sm_103", "sm_110", "sm_120", "sm_121"};
enum { N_KNOWN = sizeof known / sizeof known[0] };

static void target_names_survive_the_way_there_and_back(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_KNOWN; i++) {
        struct ki_target target = {0};
        char name[KI_TARGET_NAME];

        assert_int_equal(ki_target_parse(known[i], &target, NULL), KILN_OK);
        ki_target_name(target, name);
        assert_string_equal(name, known[i]);
    }
}

static void target_parse_splits_major_and_minor(void **state)
{
    struct ki_target target;

    (void)state;
    assert_int_equal(ki_target_parse("sm_103", &target, NULL), KILN_OK);
    assert_int_equal(target.major, 10);
    assert_int_equal(target.minor, 3);
}

/* A virtual target compiles to nothing; an `a` target runs on no newer device. */
static void target_parse_refuses_what_is_no_base_target(void **state)
{
    static const char *const wrong[] = {
        "",       "sm_",    "sm_9", "sm_90a", "sm_100f", "compute_90", "SM_90",
        "sm_90 ", " sm_90", "90",   "sm_75",  "sm_091",  "sm_900",     "sm_-1"};

    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct ki_target target = {1, 2};
        struct kiln_error err = {0};

        assert_int_equal(ki_target_parse(wrong[i], &target, &err), KILN_E_TARGET);
        assert_int_equal(err.status, KILN_E_TARGET);
        assert_non_null(strstr(err.message, wrong[i]));
        assert_int_equal(target.major, 1);
        assert_int_equal(target.minor, 2);
    }
}

static void target_parse_lists_what_is_known(void **state)
{
    struct ki_target target;
    struct kiln_error err = {0};

    (void)state;
    assert_int_equal(ki_target_parse("sm_7", &target, &err), KILN_E_TARGET);
    for (size_t i = 0; i < N_KNOWN; i++) {
        assert_non_null(strstr(err.message, known[i]));
    }
}

static void target_parse_cuts_a_name_that_is_too_long(void **state)
{
    char name[5000];
    struct ki_target target;
    struct kiln_error err = {0};

    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = '\0';

    (void)state;
    assert_int_equal(ki_target_parse(name, &target, &err), KILN_E_TARGET);
    assert_non_null(strstr(err.message, "sm_90"));
}

static void target_parse_shows_no_control_characters(void **state)
{
    struct ki_target target;
    struct kiln_error err = {0};

    (void)state;
    assert_int_equal(ki_target_parse("sm\x1b[31m\n\x7f\xc2\x9b", &target, &err),
                     KILN_E_TARGET);
    assert_non_null(strstr(err.message, "target \"sm?[31m????\" is unknown"));
}

/* A cubin for 12.0 was once loaded on 10.0, found by a test with `>=`. */
static void target_runs_on_the_same_major_and_no_older_minor_field_42(void **state)
{
    static const struct {
        const char *target, *device;
        bool runs;
    } cases[] = {
        {"sm_90", "sm_90", true},    {"sm_80", "sm_86", true},
        {"sm_80", "sm_89", true},    {"sm_100", "sm_103", true},
        {"sm_120", "sm_121", true},  {"sm_86", "sm_80", false},
        {"sm_103", "sm_100", false}, {"sm_80", "sm_90", false},
        {"sm_90", "sm_100", false},  {"sm_100", "sm_120", false},
        {"sm_120", "sm_100", false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct ki_target target;
        struct ki_target device;

        assert_int_equal(ki_target_parse(cases[i].target, &target, NULL), KILN_OK);
        assert_int_equal(ki_target_parse(cases[i].device, &device, NULL), KILN_OK);
        if (ki_target_runs_on(target, device) != cases[i].runs) {
            fail_msg("%s on %s", cases[i].target, cases[i].device);
        }
    }
}

static void target_equal_looks_at_both_numbers(void **state)
{
    struct ki_target one = {9, 0};

    (void)state;
    assert_true(ki_target_equal(one, (struct ki_target){9, 0}));
    assert_false(ki_target_equal(one, (struct ki_target){9, 1}));
    assert_false(ki_target_equal(one, (struct ki_target){8, 0}));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(target_names_survive_the_way_there_and_back),
        cmocka_unit_test(target_parse_splits_major_and_minor),
        cmocka_unit_test(target_parse_refuses_what_is_no_base_target),
        cmocka_unit_test(target_parse_lists_what_is_known),
        cmocka_unit_test(target_parse_cuts_a_name_that_is_too_long),
        cmocka_unit_test(target_parse_shows_no_control_characters),
        cmocka_unit_test(target_runs_on_the_same_major_and_no_older_minor_field_42),
        cmocka_unit_test(target_equal_looks_at_both_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
