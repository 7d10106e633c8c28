/* SPDX-License-Identifier: Apache-2.0 */
/* What kiln_create is told: sizes of the struct, paths, and the environment's order. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <cmocka.h>

#include "base/attr.h"
#include "options.h"
#include "support/failing_mem.h"
#include "support/tmpdir.h"

static const char *const variables[] = {
    "KILN_CACHE_DIR", "XDG_CACHE_HOME", "HOME",         "KILN_NVRTC",
    "CUDA_PATH",      "CUDA_HOME",      "CONDA_PREFIX", "VIRTUAL_ENV",
};

struct fixture {
    struct failing_mem mem;
    struct ki_paths paths;
    struct kiln_error err;
    char reason[KILN_MESSAGE_BYTES];
    struct tmpdir dir;
};

static int setup(void **state)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);

    if (fixture == NULL) {
        return -1;
    }
    for (size_t i = 0; i < KI_COUNT_OF(variables); i++) {
        unsetenv(variables[i]);
    }
    failing_mem_init(&fixture->mem, 0);
    tmpdir_create(&fixture->dir);
    *state = fixture;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *fixture = *state;
    int n_live;

    ki_paths_finish(&fixture->paths, &fixture->mem.mem);
    n_live = fixture->mem.n_live;
    tmpdir_remove(&fixture->dir);
    free(fixture);
    return n_live == 0 ? 0 : -1;
}

static enum kiln_status init(struct fixture *fixture, const struct kiln_options *options)
{
    static const struct kiln_options defaults = KILN_OPTIONS_INIT;

    ki_paths_finish(&fixture->paths, &fixture->mem.mem);
    return ki_paths_init(&fixture->paths, options != NULL ? options : &defaults,
                         &fixture->mem.mem, fixture->reason, &fixture->err);
}

/* ---- the struct's size -------------------------------------------------------------- */

static void options_of_null_are_the_defaults(void **state)
{
    static const struct kiln_options expected = KILN_OPTIONS_INIT;
    struct kiln_options out;

    memset(&out, 0x5a, sizeof out);

    (void)state;
    assert_int_equal(ki_options_read(NULL, &out, NULL), KILN_OK);
    assert_memory_equal(&out, &expected, sizeof out);
}

static void options_of_an_older_caller_are_zero_beyond_its_size(void **state)
{
    struct kiln_options given;
    struct kiln_options out;

    memset(&given, 0x5a, sizeof given);
    given.size = offsetof(struct kiln_options, cache_dir);
    given.target = "sm_90";

    (void)state;
    assert_int_equal(ki_options_read(&given, &out, NULL), KILN_OK);
    assert_string_equal(out.target, "sm_90");
    assert_null(out.cache_dir);
    assert_false(out.no_disk);
    assert_null(out.realloc_fn);
    assert_null(out.realloc_user);
}

struct newer_options {
    struct kiln_options known;
    unsigned char more[64];
};

static void options_of_a_newer_caller_are_fine_when_zero_beyond(void **state)
{
    struct newer_options given = {.known = {.size = sizeof given, .retry_ms = 7}};
    struct kiln_options out;

    (void)state;
    assert_int_equal(ki_options_read(&given.known, &out, NULL), KILN_OK);
    assert_int_equal(out.retry_ms, 7);
}

static void options_of_a_newer_caller_are_refused_when_set_beyond(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof((struct newer_options *)0)->more; i++) {
        struct newer_options given = {.known = {.size = sizeof given}};
        struct kiln_options out;
        struct kiln_error err = {0};
        char named[64];

        given.more[i] = 1;
        snprintf(named, sizeof named, "byte %zu", sizeof given.known + i);
        assert_int_equal(ki_options_read(&given.known, &out, &err), KILN_E_VERSION);
        assert_non_null(strstr(err.message, named));
    }
}

static void options_with_a_garbage_size_are_refused(void **state)
{
    static const size_t sizes[] = {0, 1, 7, 9, 12, 20, 100, 65537, 65544, SIZE_MAX};

    (void)state;
    for (size_t i = 0; i < KI_COUNT_OF(sizes); i++) {
        struct kiln_options given = {.size = sizes[i]};
        struct kiln_options out;
        struct kiln_error err = {0};

        if (ki_options_read(&given, &out, &err) != KILN_E_ARGUMENT ||
            strstr(err.message, "KILN_OPTIONS_INIT") == NULL) {
            fail_msg("size %zu: \"%s\"", sizes[i], err.message);
        }
    }
}

static void options_out_of_range_are_named(void **state)
{
    static const struct {
        struct kiln_options options;
        const char *named;
    } cases[] = {
        {{.size = sizeof(struct kiln_options), .max_kernels = UINT32_MAX},
         "max_kernels = 4294967295"},
        {{.size = sizeof(struct kiln_options), .build_timeout_ms = -1},
         "build_timeout_ms = -1"},
        {{.size = sizeof(struct kiln_options), .retry_ms = INT32_MIN},
         "retry_ms = -2147483648"},
    };

    (void)state;
    for (size_t i = 0; i < KI_COUNT_OF(cases); i++) {
        struct kiln_options out;
        struct kiln_error err = {0};

        assert_int_equal(ki_options_read(&cases[i].options, &out, &err), KILN_E_ARGUMENT);
        assert_non_null(strstr(err.message, cases[i].named));
    }
}

/* ---- paths -------------------------------------------------------------------------- */

static void options_paths_are_copied(void **state)
{
    struct fixture *fixture = *state;
    char first[] = "/seed/a";
    const char *dirs[] = {first, "/seed/b"};
    struct kiln_options options = {
        .cache_dir = "/cache",
        .read_only_dirs = dirs,
        .n_read_only_dirs = 2,
        .nvrtc_path = "/cuda/libnvrtc.so",
        .nvrtc_dirs = dirs,
        .n_nvrtc_dirs = 2,
    };

    assert_int_equal(init(fixture, &options), KILN_OK);
    memset(first, 'x', sizeof first - 1);

    assert_string_equal(fixture->paths.cache_dir, "/cache");
    assert_int_equal(fixture->paths.n_read_only_dirs, 2);
    assert_string_equal(fixture->paths.read_only_dirs[0], "/seed/a");
    assert_string_equal(fixture->paths.read_only_dirs[1], "/seed/b");
    assert_string_equal(fixture->paths.nvrtc_path, "/cuda/libnvrtc.so");
    assert_string_equal(fixture->paths.nvrtc_dirs[1], "/seed/b");
    assert_string_equal(fixture->reason, "");
}

static void options_refuse_relative_and_missing_paths(void **state)
{
    static const char *const relative[] = {"/fine", "not/fine"};
    static const char *const null[] = {"/fine", NULL};
    static const struct {
        struct kiln_options options;
        const char *named;
    } cases[] = {
        {{.cache_dir = "cache"}, "cache_dir = \"cache\""},
        {{.cache_dir = ""}, "cache_dir = \"\""},
        {{.cache_dir = "/c", .read_only_dirs = relative, .n_read_only_dirs = 2},
         "read_only_dirs = \"not/fine\""},
        {{.cache_dir = "/c", .read_only_dirs = null, .n_read_only_dirs = 2},
         "read_only_dirs[1] is NULL"},
        {{.cache_dir = "/c", .n_read_only_dirs = 1}, "read_only_dirs is NULL"},
        {{.cache_dir = "/c", .nvrtc_path = "libnvrtc.so"},
         "nvrtc_path = \"libnvrtc.so\""},
        {{.cache_dir = "/c", .nvrtc_dirs = relative, .n_nvrtc_dirs = 2},
         "nvrtc_dirs = \"not/fine\""},
    };
    struct fixture *fixture = *state;

    for (size_t i = 0; i < KI_COUNT_OF(cases); i++) {
        if (init(fixture, &cases[i].options) != KILN_E_ARGUMENT ||
            strstr(fixture->err.message, cases[i].named) == NULL) {
            fail_msg("%s: \"%s\"", cases[i].named, fixture->err.message);
        }
        assert_int_equal(fixture->mem.n_live, 0);
    }
}

static void options_without_a_disk_have_no_folder_and_no_reason(void **state)
{
    struct fixture *fixture = *state;
    static const char *const dirs[] = {"/seed"};
    struct kiln_options options = {
        .no_disk = true,
        .cache_dir = "/cache",
        .read_only_dirs = dirs,
        .n_read_only_dirs = 1,
    };

    assert_int_equal(init(fixture, &options), KILN_OK);

    assert_null(fixture->paths.cache_dir);
    assert_int_equal(fixture->paths.n_read_only_dirs, 0);
    assert_string_equal(fixture->reason, "");
}

/* ---- the environment ---------------------------------------------------------------- */

struct environment_case {
    const char *own, *xdg, *home;
    const char *expected; /* NULL: no folder */
};

static const struct environment_case environment_cases[] = {
    {"/own", "/xdg", "/home/me", "/own"},
    {"/own", NULL, NULL, "/own"},
    {NULL, "/xdg", "/home/me", "/xdg/kiln"},
    {"", "/xdg", "/home/me", "/xdg/kiln"},
    {NULL, "xdg", "/home/me", "/home/me/.cache/kiln"},
    {NULL, "", "/home/me", "/home/me/.cache/kiln"},
    {NULL, NULL, "/home/me", "/home/me/.cache/kiln"},
    {NULL, NULL, "/", NULL},
    {NULL, NULL, "", NULL},
    {NULL, NULL, NULL, NULL},
    {NULL, NULL, "home/me", NULL},
    /* Somebody wanted a certain folder: another one would hide the mistake. */
    {"own", "/xdg", "/home/me", NULL},
};

static void set(const char *name, const char *value)
{
    if (value != NULL) {
        assert_int_equal(setenv(name, value, 1), 0);
    } else {
        assert_int_equal(unsetenv(name), 0);
    }
}

static void set_case(const struct environment_case *given)
{
    set("KILN_CACHE_DIR", given->own);
    set("XDG_CACHE_HOME", given->xdg);
    set("HOME", given->home);
}

static void options_take_the_first_usable_folder_of_the_environment_field_58(void **state)
{
    struct fixture *fixture = *state;

    for (size_t i = 0; i < KI_COUNT_OF(environment_cases); i++) {
        const struct environment_case *given = &environment_cases[i];

        set_case(given);
        assert_int_equal(init(fixture, NULL), KILN_OK);
        if (given->expected != NULL) {
            assert_non_null(fixture->paths.cache_dir);
            assert_string_equal(fixture->paths.cache_dir, given->expected);
            assert_string_equal(fixture->reason, "");
        } else {
            assert_null(fixture->paths.cache_dir);
            assert_non_null(strstr(fixture->reason, "KILN_CACHE_DIR"));
        }
    }
}

static void default_cache_dir_is_the_one_that_create_uses(void **state)
{
    (void)state;
    for (size_t i = 0; i < KI_COUNT_OF(environment_cases); i++) {
        const struct environment_case *given = &environment_cases[i];
        struct kiln_error err = {0};
        char path[256] = "untouched";

        set_case(given);
        if (given->expected != NULL) {
            assert_int_equal(kiln_default_cache_dir(path, sizeof path, &err), KILN_OK);
            assert_string_equal(path, given->expected);
        } else {
            assert_int_equal(kiln_default_cache_dir(path, sizeof path, &err),
                             KILN_E_STORE);
            assert_string_equal(path, "untouched");
        }
    }
}

static void default_cache_dir_refuses_a_buffer_that_is_too_small(void **state)
{
    char path[8] = "before";
    struct kiln_error err = {0};

    set("KILN_CACHE_DIR", "/1234567");

    (void)state;
    assert_int_equal(kiln_default_cache_dir(path, sizeof path, &err), KILN_E_ARGUMENT);
    assert_non_null(strstr(err.message, "size_bytes = 8"));
    assert_string_equal(path, "before");
    assert_int_equal(kiln_default_cache_dir(NULL, 0, &err), KILN_E_ARGUMENT);
}

static void options_refuse_a_folder_whose_path_is_too_long(void **state)
{
    struct fixture *fixture = *state;
    char path[KI_PATH_BYTES + 1];

    memset(path, 'x', sizeof path - 1);
    path[0] = '/';
    path[sizeof path - 1] = '\0';
    set("KILN_CACHE_DIR", path);

    assert_int_equal(init(fixture, NULL), KILN_OK);
    assert_null(fixture->paths.cache_dir);
    assert_non_null(strstr(fixture->reason, "4096 bytes"));
}

static void options_win_over_the_environment(void **state)
{
    struct fixture *fixture = *state;
    struct kiln_options options = {.cache_dir = "/mine", .nvrtc_path = "/mine.so"};

    set("KILN_CACHE_DIR", "/own");
    set("KILN_NVRTC", "/own.so");
    assert_int_equal(init(fixture, &options), KILN_OK);

    assert_string_equal(fixture->paths.cache_dir, "/mine");
    assert_string_equal(fixture->paths.nvrtc_path, "/mine.so");
}

static void options_read_where_nvrtc_may_be(void **state)
{
    struct fixture *fixture = *state;
    struct ki_nvrtc_search search;
    glob_t wheels;

    set("KILN_NVRTC", "/own.so");
    set("CUDA_PATH", "/cuda-path");
    set("CUDA_HOME", "/cuda-home");
    set("CONDA_PREFIX", "/conda");
    assert_int_equal(init(fixture, NULL), KILN_OK);
    ki_paths_nvrtc_search(&fixture->paths, &search, &wheels);

    assert_string_equal(search.path, "/own.so");
    assert_string_equal(search.cuda_home, "/cuda-path");
    assert_string_equal(search.conda_prefix, "/conda");
    globfree(&wheels);
    set("CUDA_PATH", NULL);
    assert_int_equal(init(fixture, NULL), KILN_OK);
    assert_string_equal(fixture->paths.cuda_home, "/cuda-home");
}

static void options_leave_a_relative_nvrtc_of_the_environment_to_the_search(void **state)
{
    struct fixture *fixture = *state;

    set("KILN_NVRTC", "libnvrtc.so");

    /* A call that needs no NVRTC must not fail because of it; test_nvrtc has the refusal. */
    assert_int_equal(init(fixture, NULL), KILN_OK);
    assert_string_equal(fixture->paths.nvrtc_path, "libnvrtc.so");
}

static void options_find_the_wheels_of_a_virtual_environment(void **state)
{
    struct fixture *fixture = *state;
    struct ki_nvrtc_search search;
    glob_t wheels;
    static const char *const folders[] = {"lib", "lib/python3.11",
                                          "lib/python3.11/site-packages",
                                          "lib/python3.11/site-packages/nvidia"};
    char path[TMPDIR_PATH];

    for (size_t i = 0; i < KI_COUNT_OF(folders); i++) {
        assert_int_equal(mkdir(tmpdir_join(&fixture->dir, folders[i], path), 0700), 0);
    }
    set("VIRTUAL_ENV", fixture->dir.path);
    assert_int_equal(init(fixture, NULL), KILN_OK);
    ki_paths_nvrtc_search(&fixture->paths, &search, &wheels);

    assert_non_null(search.python_prefixes[0]);
    assert_non_null(strstr(search.python_prefixes[0], fixture->dir.path));
    globfree(&wheels);
}

/* ---- memory ------------------------------------------------------------------------- */

static void options_leak_nothing_whichever_allocation_fails(void **state)
{
    static const char *const dirs[] = {"/a", "/b"};
    struct fixture *fixture = *state;
    struct kiln_options options = {
        .cache_dir = "/c",
        .read_only_dirs = dirs,
        .n_read_only_dirs = 2,
        .nvrtc_path = "/n",
        .nvrtc_dirs = dirs,
        .n_nvrtc_dirs = 2,
    };
    int n = 0;
    enum kiln_status status;

    set("CUDA_HOME", "/cuda");
    set("CONDA_PREFIX", "/conda");
    set("VIRTUAL_ENV", "/venv");
    do {
        n++;
        failing_mem_init(&fixture->mem, n);
        status = init(fixture, &options);
        if (status != KILN_OK) {
            assert_int_equal(status, KILN_E_MEMORY);
            assert_int_equal(fixture->mem.n_live, 0);
        }
    } while (status != KILN_OK);

    assert_int_equal(n, 12);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(options_of_null_are_the_defaults),
        TEST(options_of_an_older_caller_are_zero_beyond_its_size),
        TEST(options_of_a_newer_caller_are_fine_when_zero_beyond),
        TEST(options_of_a_newer_caller_are_refused_when_set_beyond),
        TEST(options_with_a_garbage_size_are_refused),
        TEST(options_out_of_range_are_named),
        TEST(options_paths_are_copied),
        TEST(options_refuse_relative_and_missing_paths),
        TEST(options_without_a_disk_have_no_folder_and_no_reason),
        TEST(options_take_the_first_usable_folder_of_the_environment_field_58),
        TEST(default_cache_dir_is_the_one_that_create_uses),
        TEST(default_cache_dir_refuses_a_buffer_that_is_too_small),
        TEST(options_refuse_a_folder_whose_path_is_too_long),
        TEST(options_win_over_the_environment),
        TEST(options_read_where_nvrtc_may_be),
        TEST(options_leave_a_relative_nvrtc_of_the_environment_to_the_search),
        TEST(options_find_the_wheels_of_a_virtual_environment),
        TEST(options_leak_nothing_whichever_allocation_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
