/* SPDX-License-Identifier: Apache-2.0 */
/* Every public function of kiln.h and op_info.h with each status that it documents. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "support/fake_kiln.h"

static const enum kiln_op global_topk = KILN_OP_GLOBAL_TOPK;

/* ---- lifecycle ---------------------------------------------------------------------- */

static void create_looks_for_neither_gpu_nor_nvrtc(void **state)
{
    struct fake_kiln *fake = *state;

    fake->without_nvrtc = true;
    fake_driver_set_context(NULL);
    assert_int_equal(fake_kiln_open(fake), KILN_OK);

    assert_int_equal(fake->driver.n_calls, 0);
    assert_int_equal(fake->kiln->nvrtc_is_open, 0);
}

static void create_without_options_works(void **state)
{
    struct fake_kiln *fake = *state;
    struct kiln *kiln = NULL;

    assert_int_equal(setenv("KILN_CACHE_DIR", fake->cache_dir, 1), 0);
    assert_int_equal(kiln_create(NULL, &kiln, NULL), KILN_OK);

    assert_non_null(kiln);
    kiln_destroy(&kiln);
    assert_null(kiln);
    unsetenv("KILN_CACHE_DIR");
}

static void create_without_a_folder_warns_once_field_58(void **state)
{
    struct fake_kiln *fake = *state;

    unsetenv("KILN_CACHE_DIR");
    unsetenv("XDG_CACHE_HOME");
    assert_int_equal(setenv("HOME", "/", 1), 0);
    fake->options.cache_dir = NULL;
    assert_int_equal(fake_kiln_open(fake), KILN_OK);
    assert_int_equal(fake_kiln_build(fake, 512), KILN_OK);

    assert_int_equal(fake->log.n_warnings, 1);
    assert_non_null(strstr(fake->log.last, "KILN_CACHE_DIR"));
    assert_int_equal(fake->log.n_errors, 0);
}

static void create_without_a_disk_says_nothing(void **state)
{
    struct fake_kiln *fake = *state;

    fake->options.no_disk = true;
    assert_int_equal(fake_kiln_open(fake), KILN_OK);
    assert_int_equal(fake_kiln_build(fake, 512), KILN_OK);

    assert_int_equal(fake->log.n_warnings, 0);
    assert_int_equal(fake_kiln_entries(fake), 0);
}

struct bad_create {
    struct kiln_options options;
    enum kiln_status expected;
    const char *named;
};

static void create_names_the_option_that_is_wrong(void **state)
{
    static const struct bad_create cases[] = {
        {{.size = 3}, KILN_E_ARGUMENT, "options.size = 3"},
        {{.size = sizeof(struct kiln_options), .cache_dir = "x"},
         KILN_E_ARGUMENT,
         "cache_dir"},
        {{.size = sizeof(struct kiln_options), .retry_ms = -1},
         KILN_E_ARGUMENT,
         "retry_ms"},
        {{.size = sizeof(struct kiln_options), .no_disk = true, .target = "sm_90a"},
         KILN_E_TARGET,
         "\"sm_90a\""},
        {{.size = sizeof(struct kiln_options), .no_disk = true, .target = "compute_90"},
         KILN_E_TARGET,
         "\"compute_90\""},
    };

    (void)state;
    for (size_t i = 0; i < KI_COUNT_OF(cases); i++) {
        struct kiln *kiln = (struct kiln *)&i;
        struct kiln_error err = {0};

        assert_int_equal(kiln_create(&cases[i].options, &kiln, &err), cases[i].expected);
        assert_int_equal(err.status, cases[i].expected);
        assert_non_null(strstr(err.message, cases[i].named));
        assert_null(kiln);
    }
}

static void create_refuses_a_newer_struct_that_is_set_beyond(void **state)
{
    struct {
        struct kiln_options known;
        uint64_t more;
    } options = {.known = {.size = sizeof options}, .more = 1};
    struct kiln *kiln = NULL;

    (void)state;
    assert_int_equal(kiln_create(&options.known, &kiln, NULL), KILN_E_VERSION);
}

static void create_needs_an_address_for_its_result(void **state)
{
    (void)state;
    assert_int_equal(kiln_create(NULL, NULL, NULL), KILN_E_ARGUMENT);
}

static void destroy_of_nothing_is_fine(void **state)
{
    struct kiln *kiln = NULL;

    (void)state;
    kiln_destroy(NULL);
    kiln_destroy(&kiln);
    assert_null(kiln);
}

static void destroy_unloads_every_kernel(void **state)
{
    struct fake_kiln *fake = *state;
    const struct kiln_kernel *kernel;

    assert_int_equal(fake_kiln_prepare(fake, 512, &kernel), KILN_OK);
    assert_int_equal(fake_kiln_prepare(fake, 1024, &kernel), KILN_OK);
    assert_int_equal(fake->driver.live.libraries, 2);
    fake_kiln_close(fake);

    assert_int_equal(fake->driver.live.libraries, 0);
    assert_null(fake->kiln);
}

/* ---- build and prepare -------------------------------------------------------------- */

struct bad_call {
    enum kiln_op op;
    int64_t topk;
    const char *target;
    enum kiln_status expected;
    const char *named;
};

static const struct bad_call bad_calls[] = {
    {KILN_OP_GLOBAL_TOPK, 0, "sm_90", KILN_E_SHAPE, "topk = 0"},
    {KILN_OP_GLOBAL_TOPK, 512, "sm_9", KILN_E_TARGET, "\"sm_9\""},
    {KILN_OP_GLOBAL_TOPK, 512, "sm_89", KILN_E_TARGET, "sm_89"},
    {KILN_OP_STEP, 512, "sm_90", KILN_E_UNSUPPORTED, "op step"},
    {(enum kiln_op)99, 512, "sm_90", KILN_E_ARGUMENT, "op 99"},
};

static void build_names_what_it_refuses(void **state)
{
    struct fake_kiln *fake = *state;

    for (size_t i = 0; i < KI_COUNT_OF(bad_calls); i++) {
        const struct bad_call *bad = &bad_calls[i];
        struct kiln_shape shape = fake_kiln_shape(bad->topk);
        struct kiln_error err = {0};

        if (kiln_build(fake->kiln, bad->op, &shape, bad->target, &err) != bad->expected ||
            strstr(err.message, bad->named) == NULL) {
            fail_msg("%s: \"%s\"", bad->named, err.message);
        }
    }
    assert_int_equal(fake_kiln_entries(fake), 0);
}

static void prepare_names_what_it_refuses(void **state)
{
    struct fake_kiln *fake = *state;

    for (size_t i = 0; i < KI_COUNT_OF(bad_calls); i++) {
        const struct bad_call *bad = &bad_calls[i];
        struct kiln_shape shape = fake_kiln_shape(bad->topk);
        const struct kiln_kernel *kernel = (const struct kiln_kernel *)fake;
        struct kiln_error err = {0};

        if (bad->expected == KILN_E_TARGET) {
            continue;
        }
        assert_int_equal(kiln_prepare(fake->kiln, bad->op, &shape, NULL, &kernel, &err),
                         bad->expected);
        assert_non_null(strstr(err.message, bad->named));
        assert_null(kernel);
    }
    assert_int_equal(fake->driver.n_calls, 0);
}

static void calls_refuse_null(void **state)
{
    struct fake_kiln *fake = *state;
    struct kiln_shape shape = fake_kiln_shape(512);
    const struct kiln_kernel *kernel;
    struct kiln_warm_summary summary;
    struct kiln *none = NULL;

    assert_int_equal(kiln_build(none, global_topk, &shape, NULL, NULL), KILN_E_ARGUMENT);
    assert_int_equal(kiln_build(fake->kiln, global_topk, NULL, "sm_90", NULL),
                     KILN_E_ARGUMENT);
    assert_int_equal(kiln_prepare(none, global_topk, &shape, NULL, &kernel, NULL),
                     KILN_E_ARGUMENT);
    assert_int_equal(kiln_prepare(fake->kiln, global_topk, NULL, NULL, &kernel, NULL),
                     KILN_E_ARGUMENT);
    assert_int_equal(kiln_prepare(fake->kiln, global_topk, &shape, NULL, NULL, NULL),
                     KILN_E_ARGUMENT);
    assert_int_equal(kiln_find(none, global_topk, &shape, &kernel, NULL),
                     KILN_E_ARGUMENT);
    assert_int_equal(kiln_find(fake->kiln, global_topk, NULL, &kernel, NULL),
                     KILN_E_ARGUMENT);
    assert_int_equal(kiln_find(fake->kiln, global_topk, &shape, NULL, NULL),
                     KILN_E_ARGUMENT);
    assert_int_equal(kiln_warm(none, NULL, 0, NULL, &summary, NULL), KILN_E_ARGUMENT);
    assert_int_equal(kiln_warm(fake->kiln, NULL, 1, NULL, &summary, NULL),
                     KILN_E_ARGUMENT);
    assert_int_equal(kiln_warm(fake->kiln, NULL, 0, NULL, NULL, NULL), KILN_E_ARGUMENT);
}

static void build_without_a_target_takes_the_devices(void **state)
{
    struct fake_kiln *fake = *state;
    struct kiln_shape shape = fake_kiln_shape(512);

    fake->driver.cc_major = 12;
    assert_int_equal(kiln_build(fake->kiln, global_topk, &shape, NULL, &fake->err),
                     KILN_OK);

    assert_non_null(strstr(fake->nvrtc.options, "--gpu-architecture=sm_120"));
}

static void build_and_prepare_need_a_context_when_no_target_is_known(void **state)
{
    struct fake_kiln *fake = *state;
    struct kiln_shape shape = fake_kiln_shape(512);
    const struct kiln_kernel *kernel;

    fake_driver_set_context(NULL);
    assert_int_equal(kiln_build(fake->kiln, global_topk, &shape, NULL, NULL),
                     KILN_E_NO_CONTEXT);
    assert_int_equal(fake_kiln_prepare(fake, 512, &kernel), KILN_E_NO_CONTEXT);

    assert_null(kernel);
    assert_int_equal(fake_kiln_compiles(fake), 0);
}

/* With the driver of this machine, if it has one: then there is no context. */
static void prepare_without_a_driver_says_so(void **state)
{
    struct fake_kiln *fake = *state;
    const struct kiln_kernel *kernel;
    enum kiln_status status;

    fake->kiln->driver = (struct ki_driver){0};
    fake->kiln->driver_is_open = 0;
    status = fake_kiln_prepare(fake, 512, &kernel);

    assert_true(status == KILN_E_DRIVER_MISSING || status == KILN_E_NO_CONTEXT);
    assert_null(kernel);
}

static void build_without_nvrtc_lists_what_was_tried_field_37(void **state)
{
    struct fake_kiln *fake = *state;

    fake->without_nvrtc = true;
    assert_int_equal(fake_kiln_open(fake), KILN_OK);
    assert_int_equal(fake_kiln_build(fake, 512), KILN_E_NVRTC_MISSING);

    assert_non_null(strstr(fake->err.message, "/nowhere/libnvrtc.so"));
}

static void build_hands_the_compilers_log_to_the_caller(void **state)
{
    struct fake_kiln *fake = *state;

    fake->nvrtc.fail_call = FAKE_NVRTC_COMPILE;
    fake->nvrtc.fail_nth = 1;
    fake->nvrtc.fail_result = NVRTC_ERROR_COMPILATION;
    fake->nvrtc.log = "global_topk.cu(3): error: this line\nglobal_topk.cu(4): more\n";
    assert_int_equal(fake_kiln_build(fake, 512), KILN_E_COMPILE);

    assert_non_null(strstr(fake->err.message, "global_topk.cu(3): error: this line"));
    assert_true(fake->log.n_errors >= 1);
}

static CUresult device_one(CUdevice *out)
{
    *out = 1;
    return CUDA_SUCCESS;
}

static void prepare_refuses_a_second_device_field_71(void **state)
{
    struct fake_kiln *fake = *state;
    const struct kiln_kernel *kernel;

    assert_int_equal(fake_kiln_prepare(fake, 512, &kernel), KILN_OK);
    fake->kiln->driver.ctx_get_device = device_one;
    assert_int_equal(fake_kiln_prepare(fake, 512, &kernel), KILN_E_ARGUMENT);

    assert_null(kernel);
    assert_non_null(strstr(fake->err.message, "device 1"));
    assert_non_null(strstr(fake->err.message, "device 0"));
}

static void prepare_refuses_a_target_that_the_device_cannot_run_field_43(void **state)
{
    struct fake_kiln *fake = *state;
    const struct kiln_kernel *kernel;

    fake->options.target = "sm_100";
    assert_int_equal(fake_kiln_open(fake), KILN_OK);
    assert_int_equal(fake_kiln_prepare(fake, 512, &kernel), KILN_E_TARGET);

    assert_null(kernel);
    assert_non_null(strstr(fake->err.message, "sm_100"));
    assert_non_null(strstr(fake->err.message, "sm_90"));
    assert_int_equal(fake_kiln_compiles(fake), 0);
}

static void prepare_runs_an_older_minor_on_a_newer_one(void **state)
{
    struct fake_kiln *fake = *state;
    const struct kiln_kernel *kernel;
    struct kiln_kernel_info info;

    fake->options.target = "sm_80";
    fake->driver.cc_major = 8;
    fake->driver.cc_minor = 6;
    assert_int_equal(fake_kiln_open(fake), KILN_OK);
    assert_int_equal(fake_kiln_prepare(fake, 512, &kernel), KILN_OK);

    kiln_kernel_get_info(kernel, &info);
    assert_string_equal(info.target, "sm_80");
}

static void prepare_refuses_more_kernels_than_the_cap_field_16(void **state)
{
    struct fake_kiln *fake = *state;
    const struct kiln_kernel *kernel;

    fake->options.max_kernels = 2;
    assert_int_equal(fake_kiln_open(fake), KILN_OK);
    assert_int_equal(fake_kiln_prepare(fake, 512, &kernel), KILN_OK);
    assert_int_equal(fake_kiln_build(fake, 1024), KILN_OK);
    assert_int_equal(fake_kiln_prepare(fake, 2048, &kernel), KILN_E_LIMIT);
    assert_int_equal(fake_kiln_build(fake, 2048), KILN_E_LIMIT);

    assert_null(kernel);
    assert_non_null(strstr(fake->err.message, "max_kernels"));
    assert_int_equal(fake_kiln_prepare(fake, 1024, &kernel), KILN_OK);
}

/* ---- fork --------------------------------------------------------------------------- */

static void no_finding(void *user, const struct kiln_finding *finding)
{
    (void)user;
    (void)finding;
    abort();
}

/* A bit for each call that did not answer as it has to. */
static int faults_of_child(struct fake_kiln *fake)
{
    struct kiln_shape shape = fake_kiln_shape(512);
    const struct kiln_kernel *kernel;
    struct kiln_warm_summary summary;
    enum kiln_status statuses[4];
    int n_calls = fake->driver.n_calls;
    int faults = 0;

    statuses[0] = kiln_build(fake->kiln, global_topk, &shape, "sm_90", NULL);
    statuses[1] = kiln_prepare(fake->kiln, global_topk, &shape, NULL, &kernel, NULL);
    statuses[2] = kiln_warm(fake->kiln, NULL, 0, NULL, &summary, NULL);
    statuses[3] = kiln_doctor(fake->kiln, no_finding, NULL, NULL);
    for (int i = 0; i < 4; i++) {
        faults |= statuses[i] == KILN_E_FORKED ? 0 : 1 << i;
    }
    kiln_destroy(&fake->kiln);
    faults |= fake->driver.n_calls == n_calls ? 0 : 1 << 4;
    faults |= fake->mem.n_live == 0 ? 0 : 1 << 5;
    return faults;
}

static void child_after_fork_is_refused_and_leaves_the_driver_alone_field_50(void **state)
{
    struct fake_kiln *fake = *state;
    const struct kiln_kernel *kernel;
    int result = -1;
    pid_t child;

    assert_int_equal(fake_kiln_prepare(fake, 512, &kernel), KILN_OK);
    child = fork();
    if (child == 0) {
        _exit(faults_of_child(fake));
    }
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &result, 0), child);

    assert_true(WIFEXITED(result));
    assert_int_equal(WEXITSTATUS(result), 0);
    assert_int_equal(fake_kiln_prepare(fake, 512, &kernel), KILN_OK);
}

/* ---- find --------------------------------------------------------------------------- */

static void find_gives_what_was_prepared_without_any_call(void **state)
{
    struct fake_kiln *fake = *state;
    struct kiln_shape shape = fake_kiln_shape(512);
    const struct kiln_kernel *kernel;
    const struct kiln_kernel *found = NULL;
    int n_allocations;

    assert_int_equal(fake_kiln_prepare(fake, 512, &kernel), KILN_OK);
    fake_kiln_forget(fake);
    n_allocations = fake->mem.n_calls;
    /* What lies beyond the op's fields is ignored. */
    shape.fields[KILN_SHAPE_FIELDS - 1] = 77;
    assert_int_equal(kiln_find(fake->kiln, global_topk, &shape, &found, &fake->err),
                     KILN_OK);

    assert_ptr_equal(found, kernel);
    assert_int_equal(fake->driver.n_calls, 0);
    assert_int_equal(fake->mem.n_calls, n_allocations);
}

static void find_says_in_words_what_is_not_ready_field_13(void **state)
{
    struct fake_kiln *fake = *state;
    struct kiln_shape shape = fake_kiln_shape(512);
    const struct kiln_kernel *found = (const struct kiln_kernel *)fake;

    assert_int_equal(fake_kiln_build(fake, 512), KILN_OK);
    assert_int_equal(kiln_find(fake->kiln, global_topk, &shape, &found, &fake->err),
                     KILN_E_NOT_READY);

    assert_null(found);
    assert_non_null(strstr(fake->err.message, "global_topk topk=512 topk_stride=512"));
    assert_non_null(strstr(fake->err.message, "dcp_interleave=1"));
    assert_int_equal(kiln_find(fake->kiln, (enum kiln_op)99, &shape, &found, NULL),
                     KILN_E_NOT_READY);
    assert_int_equal(fake_kiln_loads(fake), 0);
}

/* ---- the checked variant ------------------------------------------------------------ */

static void checked_kiln_prepares_and_finds_checked_kernels(void **state)
{
    struct fake_kiln *fake = *state;
    struct kiln_shape shape = fake_kiln_shape(512);
    const struct kiln_kernel *kernel;
    const struct kiln_kernel *found = NULL;
    struct kiln_kernel_info info;

    fake->options.checked = true;
    assert_int_equal(fake_kiln_open(fake), KILN_OK);
    assert_int_equal(fake_kiln_prepare(fake, 512, &kernel), KILN_OK);
    assert_int_equal(kiln_find(fake->kiln, global_topk, &shape, &found, &fake->err),
                     KILN_OK);

    assert_ptr_equal(found, kernel);
    kiln_kernel_get_info(kernel, &info);
    assert_true(info.checked);
    assert_false(info.from_cache);
}

/* On disk as in memory: neither kind is taken for the other. */
static void checked_and_plain_kilns_share_a_folder(void **state)
{
    struct fake_kiln *fake = *state;
    const struct kiln_kernel *kernel;

    for (int turn = 0; turn < 4; turn++) {
        struct kiln_kernel_info info;

        fake->options.checked = turn % 2 != 0;
        assert_int_equal(fake_kiln_open(fake), KILN_OK);
        assert_int_equal(fake_kiln_prepare(fake, 512, &kernel), KILN_OK);
        kiln_kernel_get_info(kernel, &info);
        assert_int_equal(info.checked, fake->options.checked);
        assert_int_equal(info.from_cache, turn >= 2);
        fake_kiln_close(fake);
    }
    assert_int_equal(fake_kiln_entries(fake), 2);
}

/* ---- launch ------------------------------------------------------------------------- */

static enum kiln_status launch_rows(struct fake_kiln *fake,
                                    const struct kiln_kernel *kernel, int32_t rows)
{
    static int32_t memory[4096];
    struct kiln_global_topk_args args = {
        .topk_indices = memory,
        .token_to_req = memory,
        .block_table = memory,
        .slots = memory,
        .lens = memory,
        .num_tokens = rows,
        .table_rows = 1,
    };

    fake->driver.params_bytes = sizeof args;
    return kiln_launch_global_topk(kernel, &args, fake->stream, &fake->err);
}

static void launch_is_one_driver_call_with_the_args_by_value(void **state)
{
    struct fake_kiln *fake = *state;
    const struct kiln_kernel *kernel;
    struct kiln_global_topk_args passed;

    assert_int_equal(fake_kiln_prepare(fake, 512, &kernel), KILN_OK);
    fake_kiln_forget(fake);
    assert_int_equal(launch_rows(fake, kernel, 3), KILN_OK);

    assert_int_equal(fake->driver.n_calls, 1);
    assert_int_equal(fake->driver.n_launches, 1);
    assert_ptr_equal(fake->driver.launches[0].config.hStream, fake->stream);
    memcpy(&passed, fake->driver.launches[0].params, sizeof passed);
    assert_int_equal(passed.num_tokens, 3);
    assert_int_equal(passed.table_rows, 1);
}

static void launch_of_no_rows_makes_no_call(void **state)
{
    struct fake_kiln *fake = *state;
    const struct kiln_kernel *kernel;
    struct kiln_global_topk_args nothing = {0};

    assert_int_equal(fake_kiln_prepare(fake, 512, &kernel), KILN_OK);
    fake_kiln_forget(fake);
    assert_int_equal(launch_rows(fake, kernel, 0), KILN_OK);
    assert_int_equal(kiln_launch_global_topk(kernel, &nothing, fake->stream, NULL),
                     KILN_OK);

    assert_int_equal(fake->driver.n_calls, 0);
}

static void launch_refuses_another_ops_kernel_and_null(void **state)
{
    struct fake_kiln *fake = *state;
    const struct kiln_kernel *kernel;
    struct kiln_c128a_topk_args args = {0};

    assert_int_equal(fake_kiln_prepare(fake, 512, &kernel), KILN_OK);

    assert_int_equal(kiln_launch_c128a_topk(kernel, &args, fake->stream, &fake->err),
                     KILN_E_ARGUMENT);
    assert_non_null(strstr(fake->err.message, "of op global_topk: expected c128a_topk"));
    assert_int_equal(kiln_launch_combine_topk_swa(kernel, NULL, fake->stream, NULL),
                     KILN_E_ARGUMENT);
    assert_int_equal(kiln_launch_global_topk(kernel, NULL, fake->stream, NULL),
                     KILN_E_ARGUMENT);
    assert_int_equal(kiln_launch_global_topk(NULL, NULL, fake->stream, NULL),
                     KILN_E_ARGUMENT);
    assert_int_equal(kiln_launch(NULL, &args, fake->stream, NULL), KILN_E_ARGUMENT);
    assert_int_equal(fake->driver.n_launches, 0);
}

static void launch_passes_on_what_the_driver_says(void **state)
{
    struct fake_kiln *fake = *state;
    const struct kiln_kernel *kernel;

    assert_int_equal(fake_kiln_prepare(fake, 512, &kernel), KILN_OK);
    fake_kiln_forget(fake);
    fake->driver.fail_nth = 1;
    assert_int_equal(launch_rows(fake, kernel, 1), KILN_E_DRIVER);

    assert_int_equal(fake->err.origin, KILN_ORIGIN_DRIVER);
    assert_int_equal(fake->err.native_code, CUDA_ERROR_UNKNOWN);
    assert_non_null(strstr(fake->err.message, "global_topk"));
}

/* ---- look --------------------------------------------------------------------------- */

static void stats_count_what_happened(void **state)
{
    struct fake_kiln *fake = *state;
    const struct kiln_kernel *kernel;
    struct kiln_stats stats;

    assert_int_equal(fake_kiln_build(fake, 256), KILN_OK);
    assert_int_equal(fake_kiln_prepare(fake, 512, &kernel), KILN_OK);
    assert_int_equal(fake_kiln_prepare(fake, 512, &kernel), KILN_OK);
    fake->nvrtc.fail_call = FAKE_NVRTC_COMPILE;
    fake->nvrtc.fail_nth = -1;
    assert_int_equal(fake_kiln_prepare(fake, 1024, &kernel), KILN_E_COMPILE);
    kiln_get_stats(fake->kiln, &stats);

    assert_int_equal(stats.n_kernels, 2);
    assert_int_equal(stats.n_compiled, 2);
    assert_int_equal(stats.n_store_misses, 3);
    assert_int_equal(stats.n_store_hits, 0);
    assert_int_equal(stats.n_store_bad, 0);
    assert_int_equal(stats.n_store_faults, 0);
    assert_int_equal(stats.n_loaded, 1);
    assert_int_equal(stats.n_failed, 1);
}

static void kernel_info_holds_the_facts_of_compiler_and_driver(void **state)
{
    struct fake_kiln *fake = *state;
    struct kiln_shape shape = fake_kiln_shape(512);
    const struct kiln_kernel *kernel;
    struct kiln_kernel_info info;

    fake->nvrtc.compile_ms = 5;
    assert_int_equal(fake_kiln_prepare(fake, 512, &kernel), KILN_OK);
    kiln_kernel_get_info(kernel, &info);

    assert_int_equal(info.op, KILN_OP_GLOBAL_TOPK);
    assert_string_equal(info.target, "sm_90");
    assert_int_equal(info.threads, ki_op_get(global_topk)->threads(&shape));
    assert_int_equal(info.registers, FAKE_REGISTERS);
    assert_int_equal(info.smem_bytes, FAKE_SMEM_BYTES);
    assert_int_equal(info.local_bytes, FAKE_LOCAL_BYTES);
    assert_true(info.cubin_bytes > 0);
    assert_false(info.from_cache);
    assert_false(info.checked);
    assert_true(info.build_ms >= 5);
}

#define CLOSED(test)                                                                     \
    cmocka_unit_test_setup_teardown(test, fake_kiln_setup, fake_kiln_teardown)
#define OPEN(test)                                                                       \
    cmocka_unit_test_setup_teardown(test, fake_kiln_setup_open, fake_kiln_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CLOSED(create_looks_for_neither_gpu_nor_nvrtc),
        CLOSED(create_without_options_works),
        CLOSED(create_without_a_folder_warns_once_field_58),
        CLOSED(create_without_a_disk_says_nothing),
        cmocka_unit_test(create_names_the_option_that_is_wrong),
        cmocka_unit_test(create_refuses_a_newer_struct_that_is_set_beyond),
        cmocka_unit_test(create_needs_an_address_for_its_result),
        cmocka_unit_test(destroy_of_nothing_is_fine),
        OPEN(destroy_unloads_every_kernel),
        OPEN(build_names_what_it_refuses),
        OPEN(prepare_names_what_it_refuses),
        OPEN(calls_refuse_null),
        OPEN(build_without_a_target_takes_the_devices),
        OPEN(build_and_prepare_need_a_context_when_no_target_is_known),
        OPEN(prepare_without_a_driver_says_so),
        CLOSED(build_without_nvrtc_lists_what_was_tried_field_37),
        OPEN(build_hands_the_compilers_log_to_the_caller),
        OPEN(prepare_refuses_a_second_device_field_71),
        CLOSED(prepare_refuses_a_target_that_the_device_cannot_run_field_43),
        CLOSED(prepare_runs_an_older_minor_on_a_newer_one),
        CLOSED(prepare_refuses_more_kernels_than_the_cap_field_16),
        OPEN(child_after_fork_is_refused_and_leaves_the_driver_alone_field_50),
        OPEN(find_gives_what_was_prepared_without_any_call),
        CLOSED(checked_kiln_prepares_and_finds_checked_kernels),
        CLOSED(checked_and_plain_kilns_share_a_folder),
        OPEN(find_says_in_words_what_is_not_ready_field_13),
        OPEN(launch_is_one_driver_call_with_the_args_by_value),
        OPEN(launch_of_no_rows_makes_no_call),
        OPEN(launch_refuses_another_ops_kernel_and_null),
        OPEN(launch_passes_on_what_the_driver_says),
        OPEN(stats_count_what_happened),
        OPEN(kernel_info_holds_the_facts_of_compiler_and_driver),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
