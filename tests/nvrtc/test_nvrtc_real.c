/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The NVRTC of this machine: found, tried, and made to compile. Fails where there is none.
 * HOME is an empty folder from the start, to see that nothing is written there.
 */
#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <locale.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/attr.h"
#include "build/compile.h"
#include "build/store_entry.h"
#include "plan/key.h"
#include "plan/op.h"
#include "plan/source.h"
#include "support/golden.h"
#include "support/tmpdir.h"

enum { N_THREADS = 4, MOST_CPU_MS = 200 };

static const char source[] = "#line 1 \"sample.cu\"\n"
                             "extern \"C\" __global__ void __launch_bounds__(128)\n"
                             "kiln_sample(int *out, const int *in, int n)\n"
                             "{\n"
                             "    __shared__ int rows[128];\n"
                             "    int i = blockIdx.x * 128 + threadIdx.x;\n"
                             "    WAIT\n"
                             "    rows[threadIdx.x] = i < n ? in[i] : -1;\n"
                             "    __syncthreads();\n"
                             "    if (i < n) out[i] = rows[127 - threadIdx.x] ERROR;\n"
                             "}\n";

static const char *const plain[] = {"--std=c++17", "--minimal",
                                    "-DWAIT=", "-DERROR=", NULL};
static const char *const waiting[] = {
    "--std=c++17", "--minimal",
    "-DWAIT=asm volatile(\"griddepcontrol.wait;\":::\"memory\");", "-DERROR=", NULL};
static const char *const broken[] = {"--std=c++17", "--minimal",
                                     "-DWAIT=", "-DERROR=+ nonsense", NULL};

struct fixture {
    struct ki_nvrtc nvrtc;
    struct ki_text report;
    struct tmpdir home;
    char logged[4096]; /* the last text */
};

static void keep_log(void *user, enum kiln_log_level level, const char *text)
{
    struct fixture *fixture = user;

    (void)level;
    strncpy(fixture->logged, text, sizeof fixture->logged - 1);
}

static enum kiln_status compile(struct fixture *fixture, struct ki_target target,
                                const char *const *options, struct ki_cubin *out,
                                struct kiln_error *err)
{
    struct ki_log log = {.fn = keep_log, .user = fixture, .level = KILN_LOG_DEBUG};
    struct ki_compile_job job = {
        .source = source,
        .entry_name = "kiln_sample",
        .target = target,
        .options = options,
        .threads = 128,
    };

    return ki_compile(&fixture->nvrtc, &job, NULL, &log, out, err);
}

static void compile_plain(struct fixture *fixture, struct ki_cubin *out)
{
    struct kiln_error err = {0};

    if (compile(fixture, (struct ki_target){9, 0}, plain, out, &err) != KILN_OK) {
        fail_msg("%s", err.message);
    }
}

static void open_reports_path_version_and_targets(void **state)
{
    struct fixture *fixture = *state;
    const struct ki_nvrtc *nvrtc = &fixture->nvrtc;

    assert_int_equal(nvrtc->path[0], '/');
    assert_non_null(strstr(nvrtc->path, "libnvrtc"));
    assert_true(nvrtc->major > 12 || (nvrtc->major == 12 && nvrtc->minor >= 4));
    assert_true(ki_nvrtc_supports(nvrtc, (struct ki_target){9, 0}));
    assert_false(ki_nvrtc_supports(nvrtc, (struct ki_target){1, 0}));
    assert_non_null(strstr(fixture->report.data, nvrtc->path));
}

/* The system's own search may find those of another version. */
static void builtins_come_from_the_folder_of_the_library_field_35(void **state)
{
    const struct ki_nvrtc *nvrtc = &((struct fixture *)*state)->nvrtc;
    const struct link_map *map = NULL;
    char name[64], found[PATH_MAX];

    assert_non_null(nvrtc->builtins);
    assert_int_equal(dlinfo(nvrtc->builtins, RTLD_DI_LINKMAP, &map), 0);
    assert_non_null(realpath(map->l_name, found));

    snprintf(name, sizeof name, "/libnvrtc-builtins.so.%d.%d", nvrtc->major,
             nvrtc->minor);
    const size_t folder = (size_t)(strrchr(nvrtc->path, '/') - nvrtc->path);
    assert_memory_equal(found, nvrtc->path, folder);
    assert_int_equal(strncmp(found + folder, name, strlen(name)), 0);
}

static void open_by_path_takes_that_one(void **state)
{
    struct fixture *fixture = *state;
    struct ki_nvrtc_search search = {.path = fixture->nvrtc.path};
    struct ki_nvrtc nvrtc;

    assert_int_equal(ki_nvrtc_open(&nvrtc, &search, NULL, NULL), KILN_OK);
    assert_string_equal(nvrtc.path, fixture->nvrtc.path);
    ki_nvrtc_close(&nvrtc);
}

static void open_prefers_the_one_already_loaded(void **state)
{
    struct fixture *fixture = *state;
    struct ki_nvrtc_search search = {0};
    struct ki_text report;
    struct ki_nvrtc nvrtc;

    ki_text_init(&report, NULL);
    assert_int_equal(ki_nvrtc_open(&nvrtc, &search, &report, NULL), KILN_OK);
    assert_string_equal(nvrtc.path, fixture->nvrtc.path);
    assert_null(strstr(report.data, "not there"));
    ki_text_finish(&report);
    ki_nvrtc_close(&nvrtc);
}

static void symbols_stay_local_field_39(void **state)
{
    (void)state;
    assert_null(dlsym(RTLD_DEFAULT, "nvrtcVersion"));
}

static void compile_reads_facts_of_every_target(void **state)
{
    struct fixture *fixture = *state;

    for (int i = 0; i < fixture->nvrtc.n_archs; i++) {
        struct ki_target target = fixture->nvrtc.archs[i];
        struct ki_cubin cubin = {0};
        struct kiln_error err = {0};

        if (target.major < 8) {
            continue;
        }
        if (compile(fixture, target, plain, &cubin, &err) != KILN_OK ||
            cubin.registers < 1 || cubin.smem_bytes != 512 || cubin.waits != 0) {
            fail_msg("sm_%d%d: %d registers, %d bytes, waits %d: %s", target.major,
                     target.minor, cubin.registers, cubin.smem_bytes, cubin.waits,
                     err.message);
        }
        ki_cubin_finish(&cubin, NULL);
    }
}

static void compile_sees_the_wait_on_every_target_field_73(void **state)
{
    struct fixture *fixture = *state;
    int n_seen = 0;

    for (int i = 0; i < fixture->nvrtc.n_archs; i++) {
        struct ki_target target = fixture->nvrtc.archs[i];
        struct ki_cubin cubin = {0};
        struct kiln_error err = {0};

        if (target.major < 9) {
            continue;
        }
        if (compile(fixture, target, waiting, &cubin, &err) != KILN_OK ||
            cubin.waits != 1) {
            fail_msg("sm_%d%d: waits %d: %s", target.major, target.minor, cubin.waits,
                     err.message);
        }
        ki_cubin_finish(&cubin, NULL);
        n_seen++;
    }
    assert_true(n_seen > 0);
}

static void compile_refuses_unsupported_target_field_38(void **state)
{
    struct fixture *fixture = *state;
    struct ki_cubin cubin = {0};
    struct kiln_error err = {0};

    assert_int_equal(compile(fixture, (struct ki_target){14, 7}, plain, &cubin, &err),
                     KILN_E_TARGET);
    assert_non_null(strstr(err.message, "sm_147"));
    assert_non_null(strstr(err.message, fixture->nvrtc.path));
}

static void compile_error_points_at_the_template(void **state)
{
    struct fixture *fixture = *state;
    struct ki_cubin cubin = {0};
    struct kiln_error err = {0};

    assert_int_equal(compile(fixture, (struct ki_target){9, 0}, broken, &cubin, &err),
                     KILN_E_COMPILE);
    assert_non_null(strstr(err.message, "sample.cu(9): error"));
    assert_non_null(strstr(fixture->logged, "nonsense"));
    assert_int_equal(err.origin, KILN_ORIGIN_NVRTC);
}

struct worker {
    struct fixture *fixture;
    struct ki_cubin cubin;
    pthread_t thread;
};

static void *work(void *user)
{
    struct worker *worker = user;

    (void)compile(worker->fixture, (struct ki_target){9, 0}, plain, &worker->cubin, NULL);
    return NULL;
}

static void assert_same_image(const struct ki_cubin *a, const struct ki_cubin *b)
{
    assert_int_equal(a->image.size, b->image.size);
    assert_memory_equal(a->image.data, b->image.data, a->image.size);
}

static void compile_gives_the_same_bytes_in_every_thread(void **state)
{
    struct fixture *fixture = *state;
    struct worker workers[N_THREADS] = {0};
    struct ki_cubin cubin = {0};

    compile_plain(fixture, &cubin);
    for (size_t i = 0; i < N_THREADS; i++) {
        workers[i].fixture = fixture;
        assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
    }
    for (size_t i = 0; i < N_THREADS; i++) {
        assert_int_equal(pthread_join(workers[i].thread, NULL), 0);
        assert_same_image(&workers[i].cubin, &cubin);
        ki_cubin_finish(&workers[i].cubin, NULL);
    }
    ki_cubin_finish(&cubin, NULL);
}

static void compile_gives_the_same_bytes_elsewhere_field_45_46(void **state)
{
    struct fixture *fixture = *state;
    struct ki_cubin here = {0};
    struct ki_cubin there = {0};
    char cwd[4096];

    compile_plain(fixture, &here);
    assert_non_null(getcwd(cwd, sizeof cwd));
    assert_int_equal(chdir(fixture->home.path), 0);
    assert_int_equal(setenv("HOME", "/nowhere", 1), 0);
    /* Only where the machine has one of them; the compile is compared either way. */
    if (setlocale(LC_ALL, "de_DE.UTF-8") == NULL) {
        (void)setlocale(LC_ALL, "C.UTF-8");
    }
    compile_plain(fixture, &there);
    (void)setlocale(LC_ALL, "C");
    assert_int_equal(setenv("HOME", fixture->home.path, 1), 0);
    assert_int_equal(chdir(cwd), 0);

    assert_same_image(&here, &there);
    ki_cubin_finish(&here, NULL);
    ki_cubin_finish(&there, NULL);
}

static void image_cut_anywhere_is_refused_field_51(void **state)
{
    struct fixture *fixture = *state;
    struct ki_cubin cubin = {0};
    size_t whole;

    compile_plain(fixture, &cubin);
    whole = cubin.image.size;
    for (cubin.image.size = 0; cubin.image.size < whole; cubin.image.size++) {
        assert_int_equal(
            ki_cubin_inspect(&cubin, (struct ki_target){9, 0}, KILN_E_STORE, NULL),
            KILN_E_STORE);
    }
    ki_cubin_finish(&cubin, NULL);
}

static void entry_with_any_byte_changed_is_refused_field_51(void **state)
{
    struct fixture *fixture = *state;
    struct ki_store_entry entry;
    struct ki_cubin cubin = {0};
    struct ki_blob bytes = {0};

    compile_plain(fixture, &cubin);
    assert_int_equal(ki_store_entry_encode("n=1\n", 4, &cubin, NULL, &bytes, NULL),
                     KILN_OK);
    assert_int_equal(ki_store_entry_decode(bytes, &entry, NULL), KILN_OK);
    for (size_t i = 0; i < bytes.size; i++) {
        bytes.data[i] ^= 0x10;
        assert_int_equal(ki_store_entry_decode(bytes, &entry, NULL), KILN_E_STORE);
        bytes.data[i] ^= 0x10;
    }
    ki_blob_finish(&bytes, NULL);
    ki_cubin_finish(&cubin, NULL);
}

static double cpu_ms(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static void compile_costs_little_processor_time(void **state)
{
    struct fixture *fixture = *state;
    double least = 1e9;

    for (int i = 0; i < 5; i++) {
        struct ki_cubin cubin = {0};
        double start = cpu_ms();

        compile_plain(fixture, &cubin);
        least = cpu_ms() - start < least ? cpu_ms() - start : least;
        ki_cubin_finish(&cubin, NULL);
    }
    print_message("%.1f ms of processor time a compile\n", least);
    assert_true(least < MOST_CPU_MS);
}

/* The cubin of an emitted source; `other` is put over the one place where a report is counted. */
static void compile_emitted(struct fixture *fixture, const struct golden_shape *golden,
                            uint32_t variant, const char *other, struct ki_cubin *out)
{
    static const char counted[] = "atomicAdd(&to->n_found, 1ull)";
    struct kiln_error err = {0};
    struct ki_text text;
    char entry[64], *place;

    ki_text_init(&text, NULL);
    ki_source_entry_name(golden->op, entry);
    assert_int_equal(ki_source_write(golden->op, &golden->shape, variant, &text, &err),
                     KILN_OK);
    place = strstr(text.data, counted);
    assert_non_null(place);
    if (other != NULL) {
        assert_int_equal(strlen(other), strlen(counted));
        memcpy(place, other, strlen(other));
    }
    struct ki_compile_job job = {
        .source = text.data,
        .entry_name = entry,
        .target = {9, 0},
        .options = ki_key_compiler_options,
        .threads = ki_op_get(golden->op)->threads(&golden->shape),
    };
    struct ki_log log = {.fn = keep_log, .user = fixture, .level = KILN_LOG_DEBUG};
    if (ki_compile(&fixture->nvrtc, &job, NULL, &log, out, &err) != KILN_OK) {
        fail_msg("%s: %s", golden->name, err.message);
    }
    ki_text_finish(&text);
}

/* Counting otherwise changes no byte of it. */
static bool has_report(struct fixture *fixture, const struct golden_shape *golden,
                       uint32_t variant)
{
    struct ki_cubin as_is = {0};
    struct ki_cubin changed = {0};
    bool is_same;

    compile_emitted(fixture, golden, variant, NULL, &as_is);
    compile_emitted(fixture, golden, variant, "atomicAdd(&to->n_found, 7ull)", &changed);
    is_same = as_is.image.size == changed.image.size &&
              memcmp(as_is.image.data, changed.image.data, as_is.image.size) == 0;
    ki_cubin_finish(&as_is, NULL);
    ki_cubin_finish(&changed, NULL);
    return !is_same;
}

/* What a check costs is paid by the checked build alone. */
static void plain_kernels_have_no_code_of_the_checks(void **state)
{
    for (size_t i = 0; i < N_GOLDEN_SHAPES; i++) {
        const struct golden_shape *golden = &golden_shapes[i];

        if (has_report(*state, golden, 0)) {
            fail_msg("%s: the plain kernel counts a report", golden->name);
        }
        /* it turns nothing away; all others show that the look finds what is there */
        if (golden->op != KILN_OP_TOKEN_TO_REQ &&
            !has_report(*state, golden, KILN_VARIANT_CHECKED)) {
            fail_msg("%s: the checked kernel counts no report", golden->name);
        }
    }
}

/* After all the compiles of the other tests. */
static void compile_touches_neither_driver_nor_home(void **state)
{
    struct fixture *fixture = *state;
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[4096];

    assert_non_null(maps);
    while (fgets(line, sizeof line, maps) != NULL) {
        assert_null(strstr(line, "libcuda.so"));
    }
    (void)fclose(maps);
    assert_int_equal(tmpdir_count(fixture->home.path, ""), 0);
}

static int open_nvrtc(struct fixture *fixture)
{
    struct ki_nvrtc_search search = {
        .path = getenv("KILN_NVRTC"),
        .cuda_home = getenv("CUDA_HOME"),
        .conda_prefix = getenv("CONDA_PREFIX"),
    };
    struct kiln_error err = {0};

    tmpdir_create(&fixture->home);
    if (setenv("HOME", fixture->home.path, 1) != 0) {
        return 1;
    }
    ki_text_init(&fixture->report, NULL);
    if (ki_nvrtc_open(&fixture->nvrtc, &search, &fixture->report, &err) != KILN_OK) {
        fprintf(stderr, "%s\n", err.message);
        return 1;
    }
    print_message("%s", fixture->report.data);
    return 0;
}

int main(void)
{
    static struct fixture fixture;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(open_reports_path_version_and_targets, &fixture),
        cmocka_unit_test_prestate(builtins_come_from_the_folder_of_the_library_field_35,
                                  &fixture),
        cmocka_unit_test_prestate(open_by_path_takes_that_one, &fixture),
        cmocka_unit_test_prestate(open_prefers_the_one_already_loaded, &fixture),
        cmocka_unit_test_prestate(symbols_stay_local_field_39, &fixture),
        cmocka_unit_test_prestate(compile_reads_facts_of_every_target, &fixture),
        cmocka_unit_test_prestate(compile_sees_the_wait_on_every_target_field_73,
                                  &fixture),
        cmocka_unit_test_prestate(compile_refuses_unsupported_target_field_38, &fixture),
        cmocka_unit_test_prestate(compile_error_points_at_the_template, &fixture),
        cmocka_unit_test_prestate(compile_gives_the_same_bytes_in_every_thread, &fixture),
        cmocka_unit_test_prestate(compile_gives_the_same_bytes_elsewhere_field_45_46,
                                  &fixture),
        cmocka_unit_test_prestate(image_cut_anywhere_is_refused_field_51, &fixture),
        cmocka_unit_test_prestate(entry_with_any_byte_changed_is_refused_field_51,
                                  &fixture),
        cmocka_unit_test_prestate(compile_costs_little_processor_time, &fixture),
        cmocka_unit_test_prestate(plain_kernels_have_no_code_of_the_checks, &fixture),
        cmocka_unit_test_prestate(compile_touches_neither_driver_nor_home, &fixture),
    };
    int result = open_nvrtc(&fixture);

    if (result == 0) {
        result = cmocka_run_group_tests_name("nvrtc_real", tests, NULL, NULL);
    }
    ki_nvrtc_close(&fixture.nvrtc);
    ki_text_finish(&fixture.report);
    tmpdir_remove(&fixture.home);
    return result;
}
