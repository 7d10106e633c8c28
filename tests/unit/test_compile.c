/* SPDX-License-Identifier: Apache-2.0 */
/* Compiling against an NVRTC that can be made to fail anywhere. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/attr.h"
#include "build/compile.h"
#include "support/failing_mem.h"
#include "support/fake_nvrtc.h"

static const char source[] =
    "extern \"C\" __global__ void __launch_bounds__(128) kiln_test(int *out) {}\n";
static const char *const options[] = {"--std=c++17", "--minimal", NULL};

struct fixture {
    struct fake_nvrtc fake;
    struct ki_nvrtc nvrtc;
    struct ki_compile_job job;
    struct ki_log log;
    int n_logged;
    char logged[8192]; /* the last text */
};

static void keep_log(void *user, enum kiln_log_level level, const char *text)
{
    struct fixture *fixture = user;

    (void)level;
    fixture->n_logged++;
    strncpy(fixture->logged, text, sizeof fixture->logged - 1);
}

static int setup(void **state)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);

    fake_nvrtc_init(&fixture->fake, &fixture->nvrtc);
    fixture->job = (struct ki_compile_job){
        .source = source,
        .entry_name = "kiln_test",
        .target = {.major = 9, .minor = 0},
        .options = options,
        .threads = 128,
    };
    fixture->log =
        (struct ki_log){.fn = keep_log, .user = fixture, .level = KILN_LOG_DEBUG};
    *state = fixture;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *fixture = *state;

    fake_nvrtc_finish(&fixture->fake);
    free(fixture);
    return 0;
}

static enum kiln_status compile(struct fixture *fixture, struct ki_cubin *out,
                                struct kiln_error *err)
{
    return ki_compile(&fixture->nvrtc, &fixture->job, NULL, &fixture->log, out, err);
}

static void compile_gives_inspected_cubin(void **state)
{
    struct fixture *fixture = *state;
    struct ki_cubin cubin = {0};

    assert_int_equal(compile(fixture, &cubin, NULL), KILN_OK);

    assert_string_equal(cubin.entry_name, "kiln_test");
    assert_int_equal(cubin.nvrtc_major, 13);
    assert_int_equal(cubin.threads, 128);
    assert_int_equal(cubin.registers, 24);
    assert_true(ki_target_equal(cubin.target, fixture->job.target));
    assert_int_equal(fixture->fake.n_live, 0);
    ki_cubin_finish(&cubin, NULL);
}

static void compile_passes_target_and_options(void **state)
{
    struct fixture *fixture = *state;
    struct ki_cubin cubin = {0};

    assert_int_equal(compile(fixture, &cubin, NULL), KILN_OK);

    assert_string_equal(fixture->fake.options,
                        "--gpu-architecture=sm_90 --no-cache --std=c++17 --minimal");
    ki_cubin_finish(&cubin, NULL);
}

static void compile_leaves_out_no_cache_where_unknown(void **state)
{
    struct fixture *fixture = *state;
    struct ki_cubin cubin = {0};

    fixture->nvrtc.knows_no_cache = false;

    assert_int_equal(compile(fixture, &cubin, NULL), KILN_OK);
    assert_null(strstr(fixture->fake.options, "--no-cache"));
    ki_cubin_finish(&cubin, NULL);
}

static void compile_names_version_path_and_newest_target_field_38(void **state)
{
    struct fixture *fixture = *state;
    struct ki_cubin cubin = {0};
    struct kiln_error err = {0};

    fixture->job.target = (struct ki_target){.major = 13, .minor = 0};

    assert_int_equal(compile(fixture, &cubin, &err), KILN_E_TARGET);
    assert_non_null(strstr(err.message, "sm_130"));
    assert_non_null(strstr(err.message, "13.0"));
    assert_non_null(strstr(err.message, "/fake/libnvrtc.so.13"));
    assert_non_null(strstr(err.message, "sm_120"));
    assert_int_equal(fixture->fake.calls[FAKE_NVRTC_CREATE], 0);
}

static void compile_takes_no_near_target_field_42(void **state)
{
    struct fixture *fixture = *state;
    struct ki_cubin cubin = {0};

    fixture->job.target = (struct ki_target){.major = 12, .minor = 1};

    assert_int_equal(compile(fixture, &cubin, NULL), KILN_E_TARGET);
}

static void compile_destroys_program_wherever_it_fails_field_49(void **state)
{
    static const enum fake_nvrtc_call calls[] = {
        FAKE_NVRTC_CREATE, FAKE_NVRTC_COMPILE,  FAKE_NVRTC_CUBIN_SIZE,
        FAKE_NVRTC_CUBIN,  FAKE_NVRTC_LOG_SIZE, FAKE_NVRTC_LOG,
    };
    struct fixture *fixture = *state;

    for (size_t i = 0; i < KI_COUNT_OF(calls); i++) {
        struct ki_cubin cubin = {.threads = -7};
        bool log_fails = calls[i] == FAKE_NVRTC_LOG_SIZE || calls[i] == FAKE_NVRTC_LOG;
        struct kiln_error err = {0};

        fixture->fake.fail_call = calls[i];
        fixture->fake.fail_nth = -1;
        fixture->fake.refused_option = log_fails ? "--minimal" : NULL;
        if (compile(fixture, &cubin, &err) != KILN_E_COMPILE ||
            fixture->fake.n_live != 0 || cubin.threads != -7 ||
            cubin.image.data != NULL || err.origin != KILN_ORIGIN_NVRTC) {
            fail_msg("call %d: %d programs live, %s", (int)calls[i], fixture->fake.n_live,
                     err.message);
        }
    }
}

static void compile_fetches_log_of_every_failure_field_36(void **state)
{
    static const enum fake_nvrtc_call calls[] = {
        FAKE_NVRTC_COMPILE,
        FAKE_NVRTC_CUBIN_SIZE,
        FAKE_NVRTC_CUBIN,
    };
    struct fixture *fixture = *state;

    fixture->fake.log = "kiln.cu(3): warning: x\nt.cu(7): error: no such thing\nmore\n";
    fixture->fake.fail_nth = -1;
    fixture->fake.fail_result = NVRTC_ERROR_BUILTIN_OPERATION_FAILURE;
    for (size_t i = 0; i < KI_COUNT_OF(calls); i++) {
        struct ki_cubin cubin = {0};
        struct kiln_error err = {0};

        fixture->fake.fail_call = calls[i];
        memset(fixture->logged, 0, sizeof fixture->logged);
        assert_int_equal(compile(fixture, &cubin, &err), KILN_E_COMPILE);
        assert_string_equal(fixture->logged, fixture->fake.log);
        assert_non_null(strstr(err.message, "t.cu(7): error: no such thing"));
        assert_null(strstr(err.message, "more"));
        assert_int_equal(err.native_code, NVRTC_ERROR_BUILTIN_OPERATION_FAILURE);
    }
}

static void compile_hands_on_long_log_whole_field_47(void **state)
{
    struct fixture *fixture = *state;
    struct ki_cubin cubin = {0};
    char log[6000];

    memset(log, 'x', sizeof log);
    log[sizeof log - 1] = '\0';
    fixture->fake.log = log;
    fixture->fake.fail_call = FAKE_NVRTC_COMPILE;
    fixture->fake.fail_nth = 1;

    assert_int_equal(compile(fixture, &cubin, NULL), KILN_E_COMPILE);
    assert_int_equal(strlen(fixture->logged), sizeof log - 1);
}

static void compile_refuses_empty_cubin_field_41(void **state)
{
    struct fixture *fixture = *state;
    struct ki_cubin cubin = {0};
    struct kiln_error err = {0};

    fixture->fake.empty_cubin = true;

    assert_int_equal(compile(fixture, &cubin, &err), KILN_E_COMPILE);
    assert_non_null(strstr(err.message, "a cubin of 0 bytes"));
    assert_int_equal(fixture->fake.n_live, 0);
}

static void compile_refuses_cubin_of_another_kernel(void **state)
{
    struct fixture *fixture = *state;
    struct ki_cubin cubin = {0};

    fixture->fake.wrong_entry = "kiln_other";

    assert_int_equal(compile(fixture, &cubin, NULL), KILN_E_COMPILE);
    assert_null(cubin.image.data);
}

static void compile_survives_no_memory_anywhere(void **state)
{
    struct fixture *fixture = *state;
    enum kiln_status status = KILN_E_MEMORY;

    for (int n = 1; status != KILN_OK; n++) {
        struct ki_cubin cubin = {0};
        struct failing_mem failing;

        failing_mem_init(&failing, n);
        status =
            ki_compile(&fixture->nvrtc, &fixture->job, &failing.mem, NULL, &cubin, NULL);
        assert_true(status == KILN_OK || status == KILN_E_MEMORY);
        ki_cubin_finish(&cubin, &failing.mem);
        assert_int_equal(failing.n_live, 0);
        assert_int_equal(fixture->fake.n_live, 0);
        assert_true(n < 100);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(compile_gives_inspected_cubin),
        TEST(compile_passes_target_and_options),
        TEST(compile_leaves_out_no_cache_where_unknown),
        TEST(compile_names_version_path_and_newest_target_field_38),
        TEST(compile_takes_no_near_target_field_42),
        TEST(compile_destroys_program_wherever_it_fails_field_49),
        TEST(compile_fetches_log_of_every_failure_field_36),
        TEST(compile_hands_on_long_log_whole_field_47),
        TEST(compile_refuses_empty_cubin_field_41),
        TEST(compile_refuses_cubin_of_another_kernel),
        TEST(compile_survives_no_memory_anywhere),
    };

    return cmocka_run_group_tests_name("compile", tests, NULL, NULL);
}
