/* SPDX-License-Identifier: Apache-2.0 */
/* Looking for NVRTC: the places and their order, what is refused, and how it is told. The
 * library itself is tested in the suite nvrtc. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "base/attr.h"
#include "build/nvrtc_search.h"
#include "support/fake_nvrtc.h"
#include "support/tmpdir.h"

struct fixture {
    struct tmpdir dir;
    struct fake_nvrtc fake;
    struct ki_nvrtc nvrtc;
    struct ki_text report;
    struct kiln_error err;
};

static int setup(void **state)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);

    tmpdir_create(&fixture->dir);
    fake_nvrtc_init(&fixture->fake, &fixture->nvrtc);
    ki_text_init(&fixture->report, NULL);
    *state = fixture;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *fixture = *state;

    fake_nvrtc_finish(&fixture->fake);
    ki_text_finish(&fixture->report);
    tmpdir_remove(&fixture->dir);
    free(fixture);
    return 0;
}

/* ---- where ------------------------------------------------------------------------ */

static bool list_place(void *user, const struct ki_nvrtc_place *place)
{
    ki_text_format(user, "%s%s\n", place->loaded ? "loaded " : "", place->path);
    return false;
}

static void places_come_in_the_documented_order(void **state)
{
    static const char *const dirs[] = {"/caller/a", "/caller/b"};
    static const struct ki_nvrtc_search search = {
        .dirs = dirs,
        .n_dirs = 2,
        .cuda_home = "/cuda",
        .conda_prefix = "/conda",
        .python_prefixes = {"/site"},
    };
    static const char *const expected[] = {
        "loaded libnvrtc.so.13",
        "loaded libnvrtc.so.12",
        "/caller/a/libnvrtc.so.13",
        "/caller/a/libnvrtc.so.12",
        "/caller/b/libnvrtc.so.13",
        "/caller/b/libnvrtc.so.12",
        "\nlibnvrtc.so.13",
        "\nlibnvrtc.so.12",
        "/cuda/lib64/libnvrtc.so.13",
        "/cuda/lib64/libnvrtc.so.12",
        "/cuda/lib/libnvrtc.so.13",
        "/usr/local/cuda/lib64/libnvrtc.so.13",
        "/usr/local/cuda/lib/libnvrtc.so.12",
        "/conda/lib/libnvrtc.so.13",
        "/conda/lib/libnvrtc.so.12",
        "/site/nvidia/cu13/lib/libnvrtc.so.13",
        "/site/nvidia/cuda_nvrtc/lib/libnvrtc.so.12",
    };
    struct fixture *fixture = *state;
    const char *at;

    assert_false(ki_nvrtc_search_places(&search, list_place, &fixture->report));
    at = fixture->report.data;
    for (size_t i = 0; i < KI_COUNT_OF(expected); i++) {
        at = strstr(at, expected[i]);
        if (at == NULL) {
            fail_msg("%s is not in its place in\n%s", expected[i], fixture->report.data);
        }
    }
}

static void places_list_the_targets_of_a_toolkit(void **state)
{
    struct fixture *fixture = *state;
    struct ki_nvrtc_search search = {.cuda_home = fixture->dir.path};
    char path[TMPDIR_PATH];

    assert_int_equal(mkdir(tmpdir_join(&fixture->dir, "targets", path), 0700), 0);
    assert_int_equal(mkdir(tmpdir_join(&fixture->dir, "targets/sbsa-linux", path), 0700),
                     0);

    assert_false(ki_nvrtc_search_places(&search, list_place, &fixture->report));
    assert_non_null(strstr(
        fixture->report.data,
        tmpdir_join(&fixture->dir, "targets/sbsa-linux/lib/libnvrtc.so.12", path)));
}

static void places_leave_out_relative_folders(void **state)
{
    static const char *const dirs[] = {"here"};
    static const struct ki_nvrtc_search search = {
        .dirs = dirs, .n_dirs = 1, .cuda_home = "cuda", .conda_prefix = ""};
    struct fixture *fixture = *state;

    assert_false(ki_nvrtc_search_places(&search, list_place, &fixture->report));
    assert_null(strstr(fixture->report.data, "here"));
    assert_null(strstr(fixture->report.data, "\ncuda"));
}

static bool stop_at_second(void *user, const struct ki_nvrtc_place *place)
{
    int *n = user;

    (void)place;
    return ++*n == 2;
}

static void places_end_with_the_one_that_is_taken(void **state)
{
    static const struct ki_nvrtc_search search = {0};
    int n = 0;

    (void)state;
    assert_true(ki_nvrtc_search_places(&search, stop_at_second, &n));
    assert_int_equal(n, 2);
}

/* ---- a path that was named -------------------------------------------------------- */

static void open_by_path_does_not_fall_back_field_37(void **state)
{
    struct fixture *fixture = *state;
    char path[TMPDIR_PATH];
    struct ki_nvrtc_search search = {
        .path = tmpdir_join(&fixture->dir, "libnvrtc.so.13", path),
        .cuda_home = "/usr/local/cuda",
    };
    struct ki_nvrtc nvrtc;

    assert_int_equal(ki_nvrtc_open(&nvrtc, &search, &fixture->report, &fixture->err),
                     KILN_E_NVRTC_MISSING);
    assert_non_null(strstr(fixture->err.message, path));
    assert_non_null(strstr(fixture->report.data, path));
    assert_null(strstr(fixture->report.data, "/usr/local/cuda/"));
    assert_null(nvrtc.library);
}

static void open_tells_why_a_file_cannot_be_loaded_field_37(void **state)
{
    struct fixture *fixture = *state;
    char path[TMPDIR_PATH];
    struct ki_nvrtc_search search = {
        .path = tmpdir_join(&fixture->dir, "libnvrtc.so.13", path)};
    struct ki_nvrtc nvrtc;
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    assert_true(fputs("not a library", file) >= 0);
    assert_int_equal(fclose(file), 0);

    assert_int_equal(ki_nvrtc_open(&nvrtc, &search, NULL, &fixture->err),
                     KILN_E_NVRTC_MISSING);
    assert_non_null(strstr(fixture->err.message, "libnvrtc.so.13"));
    assert_null(strstr(fixture->err.message, "not there"));
}

static void copy_file(const char *from, const char *to)
{
    char bytes[4096];
    size_t n;
    FILE *in = fopen(from, "rb");
    FILE *out = fopen(to, "wb");

    assert_non_null(in);
    assert_non_null(out);
    while ((n = fread(bytes, 1, sizeof bytes, in)) > 0) {
        assert_int_equal(fwrite(bytes, 1, n, out), n);
    }
    assert_int_equal(fclose(in), 0);
    assert_int_equal(fclose(out), 0);
}

/* The message names the version that was wanted, where, and what lies there. */
static void open_names_builtins_wanted_and_found_field_35(void **state)
{
    struct fixture *fixture = *state;
    char path[TMPDIR_PATH], builtins[TMPDIR_PATH], wanted[TMPDIR_PATH + 128];
    struct ki_nvrtc_search search = {
        .path = tmpdir_join(&fixture->dir, "libnvrtc.so.13", path)};
    struct ki_nvrtc nvrtc;
    FILE *file =
        fopen(tmpdir_join(&fixture->dir, "libnvrtc-builtins.so.12.8", builtins), "w");

    assert_non_null(file);
    assert_int_equal(fclose(file), 0);
    copy_file(getenv("KILN_TEST_BROKEN_NVRTC"), path);

    assert_int_equal(ki_nvrtc_open(&nvrtc, &search, NULL, &fixture->err),
                     KILN_E_NVRTC_MISSING);
    snprintf(wanted, sizeof wanted,
             "wanted libnvrtc-builtins.so.13.7 in %s, found libnvrtc-builtins.so.12.8",
             fixture->dir.path);
    assert_non_null(strstr(fixture->err.message, wanted));
    assert_non_null(strstr(fixture->err.message, "failed to open"));
}

static void open_refuses_library_that_is_no_nvrtc(void **state)
{
    struct fixture *fixture = *state;
    struct ki_nvrtc_search search = {.path = "/proc/self/exe"};
    struct ki_nvrtc nvrtc;

    assert_int_equal(ki_nvrtc_open(&nvrtc, &search, NULL, &fixture->err),
                     KILN_E_NVRTC_MISSING);
    assert_non_null(strstr(fixture->err.message, "/proc/self/exe"));
    assert_null(nvrtc.library);
}

static void open_refuses_relative_path(void **state)
{
    struct fixture *fixture = *state;
    struct ki_nvrtc_search search = {.path = "libnvrtc.so.13"};
    struct ki_nvrtc nvrtc;

    assert_int_equal(ki_nvrtc_open(&nvrtc, &search, NULL, &fixture->err),
                     KILN_E_NVRTC_MISSING);
    assert_non_null(strstr(fixture->err.message, "absolute"));
}

/* ---- asking and trying ------------------------------------------------------------ */

static void ask_refuses_versions_before_12_4(void **state)
{
    static const struct {
        int major, minor;
        bool ok;
    } cases[] = {
        {11, 8, false}, {12, 3, false}, {12, 4, true}, {12, 8, true}, {13, 0, true}};
    struct fixture *fixture = *state;

    for (size_t i = 0; i < KI_COUNT_OF(cases); i++) {
        fixture->fake.major = cases[i].major;
        fixture->fake.minor = cases[i].minor;
        if ((ki_nvrtc_ask(&fixture->nvrtc, &fixture->err) == KILN_OK) != cases[i].ok) {
            fail_msg("%d.%d: %s", cases[i].major, cases[i].minor, fixture->err.message);
        }
    }
}

static void ask_learns_targets(void **state)
{
    struct fixture *fixture = *state;

    fixture->nvrtc.n_archs = 0;

    assert_int_equal(ki_nvrtc_ask(&fixture->nvrtc, NULL), KILN_OK);
    assert_true(ki_nvrtc_supports(&fixture->nvrtc, (struct ki_target){12, 0}));
    assert_false(ki_nvrtc_supports(&fixture->nvrtc, (struct ki_target){12, 1}));
    assert_false(ki_nvrtc_supports(&fixture->nvrtc, (struct ki_target){9, 1}));
}

static void ask_fails_where_any_call_fails(void **state)
{
    static const enum fake_nvrtc_call calls[] = {FAKE_NVRTC_VERSION, FAKE_NVRTC_NUM_ARCHS,
                                                 FAKE_NVRTC_ARCHS};
    struct fixture *fixture = *state;

    fixture->fake.fail_nth = -1;
    for (size_t i = 0; i < KI_COUNT_OF(calls); i++) {
        fixture->fake.fail_call = calls[i];
        assert_int_equal(ki_nvrtc_ask(&fixture->nvrtc, &fixture->err),
                         KILN_E_NVRTC_MISSING);
        assert_int_equal(fixture->err.origin, KILN_ORIGIN_NVRTC);
    }
}

static void self_test_finds_out_about_no_cache(void **state)
{
    struct fixture *fixture = *state;

    fixture->nvrtc.knows_no_cache = false;
    assert_int_equal(ki_nvrtc_self_test(&fixture->nvrtc, NULL), KILN_OK);
    assert_true(fixture->nvrtc.knows_no_cache);

    fixture->fake.refused_option = "--no-cache";
    assert_int_equal(ki_nvrtc_self_test(&fixture->nvrtc, NULL), KILN_OK);
    assert_false(fixture->nvrtc.knows_no_cache);
    assert_int_equal(fixture->fake.n_live, 0);
}

static void self_test_shows_the_log_field_34_35_36(void **state)
{
    struct fixture *fixture = *state;

    fixture->fake.log = "nvrtc: error: failed to open libnvrtc-builtins.so.12.8.\n";
    fixture->fake.fail_call = FAKE_NVRTC_COMPILE;
    fixture->fake.fail_nth = -1;
    fixture->fake.fail_result = NVRTC_ERROR_BUILTIN_OPERATION_FAILURE;

    assert_int_equal(ki_nvrtc_self_test(&fixture->nvrtc, &fixture->err),
                     KILN_E_NVRTC_MISSING);
    assert_non_null(strstr(fixture->err.message, "libnvrtc-builtins.so.12.8"));
    assert_int_equal(fixture->fake.n_live, 0);
}

static void self_test_refuses_empty_cubin(void **state)
{
    struct fixture *fixture = *state;

    fixture->fake.empty_cubin = true;

    assert_int_equal(ki_nvrtc_self_test(&fixture->nvrtc, &fixture->err),
                     KILN_E_NVRTC_MISSING);
    assert_non_null(strstr(fixture->err.message, "empty"));
}

static void error_line_picks_the_line_that_says_most(void **state)
{
    static const struct {
        const char *log, *line;
    } cases[] = {
        {NULL, ""},
        {"", ""},
        {"\n\nfirst\nsecond\n", "first"},
        {"a: warning: w\nb(3): error: e\nc\n", "b(3): error: e"},
        {"only error", "only error"},
        {"one\r\nan error\r\n", "an error"},
    };

    (void)state;
    for (size_t i = 0; i < KI_COUNT_OF(cases); i++) {
        char line[KI_NVRTC_LINE];

        ki_nvrtc_error_line(cases[i].log, line);
        assert_string_equal(line, cases[i].line);
    }
}

static void close_accepts_all_zero(void **state)
{
    struct ki_nvrtc nvrtc = {0};

    (void)state;
    ki_nvrtc_close(&nvrtc);
    assert_null(nvrtc.library);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(places_come_in_the_documented_order),
        TEST(places_list_the_targets_of_a_toolkit),
        TEST(places_leave_out_relative_folders),
        TEST(places_end_with_the_one_that_is_taken),
        TEST(open_by_path_does_not_fall_back_field_37),
        TEST(open_tells_why_a_file_cannot_be_loaded_field_37),
        TEST(open_names_builtins_wanted_and_found_field_35),
        TEST(open_refuses_library_that_is_no_nvrtc),
        TEST(open_refuses_relative_path),
        TEST(ask_refuses_versions_before_12_4),
        TEST(ask_learns_targets),
        TEST(ask_fails_where_any_call_fails),
        TEST(self_test_finds_out_about_no_cache),
        TEST(self_test_shows_the_log_field_34_35_36),
        TEST(self_test_refuses_empty_cubin),
        TEST(error_line_picks_the_line_that_says_most),
        TEST(close_accepts_all_zero),
    };

    return cmocka_run_group_tests_name("nvrtc", tests, NULL, NULL);
}
