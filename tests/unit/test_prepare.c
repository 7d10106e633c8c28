/* SPDX-License-Identifier: Apache-2.0 */
/* The coordinator over fakes: what it calls, in which order, and what it never does twice. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "support/fake_kiln.h"

static void sleep_ms(long ms)
{
    struct timespec wait = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};

    (void)nanosleep(&wait, NULL);
}

/* A kiln of another process with the same cache folder. */
static void restart(struct fake_kiln *fake)
{
    fake_kiln_close(fake);
    fake_kiln_forget(fake);
    assert_int_equal(fake_kiln_open(fake), KILN_OK);
}

/* ---- the order of the arrows -------------------------------------------------------- */

static void prepare_compiles_stores_and_loads_in_this_order(void **state)
{
    static const enum fake_nvrtc_call compile[] = {FAKE_NVRTC_CREATE, FAKE_NVRTC_COMPILE,
                                                   FAKE_NVRTC_CUBIN_SIZE,
                                                   FAKE_NVRTC_CUBIN, FAKE_NVRTC_DESTROY};
    static const enum fake_call load[] = {
        FAKE_ctx_get_current,     FAKE_ctx_get_device,    FAKE_device_get_attribute,
        FAKE_stream_is_capturing, FAKE_library_load_data, FAKE_library_get_kernel,
        FAKE_kernel_get_function, FAKE_func_load,         FAKE_kernel_get_attribute};
    struct fake_kiln *fake = *state;
    struct kiln_shape shape = fake_kiln_shape(512);
    const struct kiln_kernel *kernel = NULL;

    assert_int_equal(kiln_prepare(fake->kiln, KILN_OP_GLOBAL_TOPK, &shape, fake->stream,
                                  &kernel, &fake->err),
                     KILN_OK);

    assert_non_null(kernel);
    assert_int_equal(fake->nvrtc.n_order, KI_COUNT_OF(compile));
    assert_memory_equal(fake->nvrtc.order, compile, sizeof compile);
    for (size_t i = 0; i + 1 < KI_COUNT_OF(load); i++) {
        assert_true(fake_driver_first(&fake->driver, load[i]) >= 0);
        assert_true(fake_driver_first(&fake->driver, load[i]) <
                    fake_driver_first(&fake->driver, load[i + 1]));
    }
    assert_int_equal(fake_kiln_entries(fake), 1);
}

static void prepare_again_gives_the_same_kernel_and_builds_nothing(void **state)
{
    struct fake_kiln *fake = *state;
    const struct kiln_kernel *first = NULL;
    const struct kiln_kernel *second = NULL;

    assert_int_equal(fake_kiln_prepare(fake, 512, &first), KILN_OK);
    fake_kiln_forget(fake);
    assert_int_equal(fake_kiln_prepare(fake, 512, &second), KILN_OK);

    assert_ptr_equal(first, second);
    assert_int_equal(fake->nvrtc.n_order, 0);
    assert_int_equal(fake_kiln_loads(fake), 0);
    assert_int_equal(fake_driver_count(&fake->driver, FAKE_func_load), 0);
    assert_int_equal(fake->kiln->store.n_hits + fake->kiln->store.n_misses, 1);
}

/* Else the first launch there would wait until the GPU is idle. */
static void
prepare_in_a_second_context_finishes_the_load_there_once_field_66(void **state)
{
    struct fake_kiln *fake = *state;
    const struct kiln_kernel *first = NULL;
    const struct kiln_kernel *second = NULL;

    assert_int_equal(fake_kiln_prepare(fake, 512, &first), KILN_OK);
    fake_driver_set_context(fake_driver_other_context());
    fake_kiln_forget(fake);
    fake->driver.fail_call = FAKE_func_load;
    fake->driver.fail_call_nth = 1;
    assert_int_equal(fake_kiln_prepare(fake, 512, &second), KILN_E_DRIVER);
    assert_null(second);
    for (int i = 0; i < 2; i++) { /* a failure there is not remembered, a load is */
        assert_int_equal(fake_kiln_prepare(fake, 512, &second), KILN_OK);
    }
    fake_driver_set_context(fake_driver_context());
    assert_int_equal(fake_kiln_prepare(fake, 512, &second), KILN_OK);

    assert_ptr_equal(first, second);
    assert_int_equal(fake_kiln_loads(fake), 0);
    assert_int_equal(fake_driver_count(&fake->driver, FAKE_func_load), 2);
}

static void prepare_of_another_shape_is_another_kernel(void **state)
{
    struct fake_kiln *fake = *state;
    const struct kiln_kernel *first = NULL;
    const struct kiln_kernel *second = NULL;

    assert_int_equal(fake_kiln_prepare(fake, 512, &first), KILN_OK);
    assert_int_equal(fake_kiln_prepare(fake, 1024, &second), KILN_OK);

    assert_ptr_not_equal(first, second);
    assert_int_equal(fake_kiln_compiles(fake), 2);
    assert_int_equal(fake_kiln_entries(fake), 2);
}

static void build_makes_no_driver_call_when_the_target_is_named(void **state)
{
    struct fake_kiln *fake = *state;

    assert_int_equal(fake_kiln_build(fake, 512), KILN_OK);

    assert_int_equal(fake->driver.n_calls, 0);
    assert_int_equal(fake_kiln_compiles(fake), 1);
}

static void prepare_after_build_does_not_compile_again(void **state)
{
    struct fake_kiln *fake = *state;
    const struct kiln_kernel *kernel;

    assert_int_equal(fake_kiln_build(fake, 512), KILN_OK);
    assert_int_equal(fake_kiln_build(fake, 512), KILN_OK);
    assert_int_equal(fake_kiln_prepare(fake, 512, &kernel), KILN_OK);

    assert_int_equal(fake_kiln_compiles(fake), 1);
    assert_int_equal(fake_kiln_loads(fake), 1);
}

/* ---- the store ---------------------------------------------------------------------- */

/* A warmed entry was once not the one that serving looked up. */
static void prepare_finds_what_warm_stored_field_18(void **state)
{
    struct fake_kiln *fake = *state;
    struct kiln_request request = {KILN_OP_GLOBAL_TOPK, fake_kiln_shape(512), "sm_90"};
    struct kiln_warm_summary summary;
    struct kiln_kernel_info info;
    const struct kiln_kernel *kernel;

    assert_int_equal(kiln_warm(fake->kiln, &request, 1, NULL, &summary, &fake->err),
                     KILN_OK);
    restart(fake);
    assert_int_equal(fake_kiln_prepare(fake, 512, &kernel), KILN_OK);

    assert_int_equal(summary.n_compiled, 1);
    assert_int_equal(fake->nvrtc.n_order, 0);
    kiln_kernel_get_info(kernel, &info);
    assert_true(info.from_cache);
    assert_int_equal(fake->kiln->store.n_hits, 1);
}

static void prepare_from_a_warm_store_needs_no_nvrtc(void **state)
{
    struct fake_kiln *fake = *state;
    const struct kiln_kernel *kernel;

    assert_int_equal(fake_kiln_build(fake, 512), KILN_OK);
    fake->without_nvrtc = true;
    restart(fake);

    assert_int_equal(fake_kiln_prepare(fake, 512, &kernel), KILN_OK);
}

static void prepare_rebuilds_a_damaged_entry_field_51(void **state)
{
    struct fake_kiln *fake = *state;
    const struct kiln_kernel *kernel;
    struct kiln_stats stats;
    char command[TMPDIR_PATH];
    struct ki_key key;
    struct ki_ident ident;
    struct kiln_shape shape = fake_kiln_shape(512);
    FILE *file;

    assert_int_equal(fake_kiln_build(fake, 512), KILN_OK);
    ki_ident_init(&ident, KILN_OP_GLOBAL_TOPK, &shape);
    ident.target = (struct ki_target){9, 0};
    assert_int_equal(ki_key_make(&ident, NULL, &key, NULL), KILN_OK);
    snprintf(command, sizeof command, "%.300s/kiln-v1/%.2s/%s.kiln", fake->cache_dir,
             key.digest_hex, key.digest_hex + 2);
    file = fopen(command, "r+b");
    assert_non_null(file);
    assert_int_equal(fseek(file, 100, SEEK_SET), 0);
    assert_int_equal(fputc('#', file), '#');
    assert_int_equal(fclose(file), 0);
    restart(fake);
    assert_int_equal(fake_kiln_prepare(fake, 512, &kernel), KILN_OK);

    kiln_get_stats(fake->kiln, &stats);
    assert_int_equal(stats.n_store_bad, 1);
    assert_int_equal(fake_kiln_compiles(fake), 1);
    restart(fake);
    assert_int_equal(fake_kiln_prepare(fake, 512, &kernel), KILN_OK);
    assert_int_equal(fake_kiln_compiles(fake), 0);
}

static void prepare_works_without_a_usable_cache_folder_field_58(void **state)
{
    struct fake_kiln *fake = *state;
    const struct kiln_kernel *kernel;
    FILE *file = fopen(fake->cache_dir, "w");

    assert_non_null(file);
    fclose(file);
    assert_int_equal(fake_kiln_open(fake), KILN_OK);
    assert_int_equal(fake_kiln_prepare(fake, 512, &kernel), KILN_OK);
    assert_int_equal(fake_kiln_prepare(fake, 1024, &kernel), KILN_OK);

    assert_int_equal(fake->log.n_warnings, 1);
    assert_int_equal(fake->log.n_errors, 0);
    assert_int_equal(fake_kiln_compiles(fake), 2);
}

static void prepare_ignores_another_compilers_entry_when_exact(void **state)
{
    struct fake_kiln *fake = *state;
    const struct kiln_kernel *kernel;

    fake->options.exact_compiler = true;
    assert_int_equal(fake_kiln_open(fake), KILN_OK);
    assert_int_equal(fake_kiln_build(fake, 512), KILN_OK);
    restart(fake);
    assert_int_equal(fake_kiln_prepare(fake, 512, &kernel), KILN_OK);
    assert_int_equal(fake_kiln_compiles(fake), 0);
    fake->nvrtc_table.minor = 1;
    restart(fake);
    assert_int_equal(fake_kiln_prepare(fake, 512, &kernel), KILN_OK);

    assert_int_equal(fake_kiln_compiles(fake), 1);
}

/* ---- a refused cubin ---------------------------------------------------------------- */

/* A store that NVRTC 13.2 filled, seen from a driver of CUDA 12.8. */
static void fill_with_newer_cubin(struct fake_kiln *fake)
{
    fake->nvrtc_table.minor = 2;
    fake->driver_table.version = 12080;
    assert_int_equal(fake_kiln_open(fake), KILN_OK);
    assert_int_equal(fake_kiln_build(fake, 512), KILN_OK);
}

static void assert_names_both_versions(const struct fake_kiln *fake)
{
    assert_int_equal(fake->err.status, KILN_E_CUBIN_REFUSED);
    assert_non_null(strstr(fake->err.message, "CUDA 12.8"));
    assert_non_null(strstr(fake->err.message, "NVRTC 13.2"));
}

static void prepare_rebuilds_once_what_the_driver_refuses(void **state)
{
    struct fake_kiln *fake = *state;
    struct kiln_kernel_info info;
    const struct kiln_kernel *kernel;

    fill_with_newer_cubin(fake);
    restart(fake);
    fake->driver.refuse_image_nth = 1;
    assert_int_equal(fake_kiln_prepare(fake, 512, &kernel), KILN_OK);

    assert_int_equal(fake_kiln_loads(fake), 2);
    assert_int_equal(fake_kiln_compiles(fake), 1);
    assert_int_equal(fake_kiln_entries(fake), 1);
    kiln_kernel_get_info(kernel, &info);
    assert_false(info.from_cache);
    assert_int_equal(fake->log.n_warnings, 1);
    assert_non_null(strstr(fake->log.last, "NVRTC 13.2"));
}

static void prepare_gives_up_when_the_rebuilt_cubin_is_refused_too(void **state)
{
    struct fake_kiln *fake = *state;
    const struct kiln_kernel *kernel = (const struct kiln_kernel *)fake;

    fill_with_newer_cubin(fake);
    restart(fake);
    fake->driver.refuse_image_nth = 1;
    fake->driver.refuse_images = 2;
    assert_int_equal(fake_kiln_prepare(fake, 512, &kernel), KILN_E_CUBIN_REFUSED);

    assert_names_both_versions(fake);
    assert_null(kernel);
    assert_int_equal(fake_kiln_loads(fake), 2);
    assert_int_equal(fake_kiln_compiles(fake), 1);
}

static void prepare_names_both_versions_when_it_cannot_rebuild(void **state)
{
    struct fake_kiln *fake = *state;
    const struct kiln_kernel *kernel;

    fill_with_newer_cubin(fake);
    fake->without_nvrtc = true;
    restart(fake);
    fake->driver.refuse_image_nth = 1;
    assert_int_equal(fake_kiln_prepare(fake, 512, &kernel), KILN_E_CUBIN_REFUSED);

    assert_names_both_versions(fake);
    assert_non_null(strstr(fake->err.message, "/nowhere/libnvrtc.so"));
    /* A host with a newer driver may share the folder. */
    assert_int_equal(fake_kiln_entries(fake), 1);
}

static void prepare_does_not_rebuild_what_it_just_compiled(void **state)
{
    struct fake_kiln *fake = *state;
    const struct kiln_kernel *kernel;

    fake->driver.refuse_image_nth = 1;
    assert_int_equal(fake_kiln_prepare(fake, 512, &kernel), KILN_E_CUBIN_REFUSED);

    assert_int_equal(fake_kiln_compiles(fake), 1);
    assert_int_equal(fake_kiln_loads(fake), 1);
}

/* ---- capture ------------------------------------------------------------------------ */

static void begin_capture(struct fake_kiln *fake)
{
    assert_int_equal(fake->driver_table.stream_begin_capture(
                         fake->stream, CU_STREAM_CAPTURE_MODE_GLOBAL),
                     CUDA_SUCCESS);
}

static void end_capture(struct fake_kiln *fake)
{
    CUgraph graph;

    assert_int_equal(fake->driver_table.stream_end_capture(fake->stream, &graph),
                     CUDA_SUCCESS);
    assert_int_equal(fake->driver_table.graph_destroy(graph), CUDA_SUCCESS);
}

static void prepare_refuses_a_capturing_stream_and_touches_nothing_field_68(void **state)
{
    struct fake_kiln *fake = *state;
    struct kiln_shape shape = fake_kiln_shape(512);
    const struct kiln_kernel *kernel = (const struct kiln_kernel *)fake;

    begin_capture(fake);
    assert_int_equal(kiln_prepare(fake->kiln, KILN_OP_GLOBAL_TOPK, &shape, fake->stream,
                                  &kernel, &fake->err),
                     KILN_E_CAPTURING);

    assert_null(kernel);
    assert_int_equal(fake_kiln_loads(fake), 0);
    assert_int_equal(fake->nvrtc.n_order, 0);
    assert_int_equal(fake_kiln_entries(fake), 0);
    end_capture(fake);
    assert_int_equal(fake_kiln_prepare(fake, 512, &kernel), KILN_OK);
}

static void prepare_does_not_break_another_capture_field_70(void **state)
{
    struct fake_kiln *fake = *state;
    const struct kiln_kernel *kernel;

    begin_capture(fake);
    assert_int_equal(fake_kiln_prepare(fake, 512, &kernel), KILN_OK);

    assert_int_equal(fake->driver.n_broken, 0);
    end_capture(fake);
}

static void destroy_does_not_break_another_capture(void **state)
{
    struct fake_kiln *fake = *state;
    const struct kiln_kernel *kernel;

    assert_int_equal(fake_kiln_prepare(fake, 512, &kernel), KILN_OK);
    begin_capture(fake);
    fake_kiln_close(fake);

    assert_int_equal(fake->driver.n_broken, 0);
    assert_int_equal(fake->driver.live.libraries, 0);
    end_capture(fake);
}

/* An older driver loads nothing beside a capture; that is no failure of the kernel. */
static void prepare_can_be_repeated_after_a_capture_was_in_its_way(void **state)
{
    struct fake_kiln *fake = *state;
    const struct kiln_kernel *kernel;

    fake->driver.loads_fail_in_capture = true;
    begin_capture(fake);
    assert_int_equal(fake_kiln_prepare(fake, 512, &kernel), KILN_E_CAPTURING);
    assert_int_equal(fake->err.status, KILN_E_CAPTURING);
    end_capture(fake);
    assert_int_equal(fake_kiln_prepare(fake, 512, &kernel), KILN_OK);

    assert_int_equal(fake_kiln_compiles(fake), 1);
    assert_int_equal(fake->log.n_errors, 0);
}

/* ---- failures are remembered -------------------------------------------------------- */

static void fail_first_compile(struct fake_kiln *fake)
{
    fake->nvrtc.fail_call = FAKE_NVRTC_COMPILE;
    fake->nvrtc.fail_nth = 1;
    fake->nvrtc.fail_result = NVRTC_ERROR_COMPILATION;
    fake->nvrtc.log = "global_topk.cu(7): error: no such luck\n";
}

static void prepare_remembers_a_failed_build_field_55(void **state)
{
    struct fake_kiln *fake = *state;
    const struct kiln_kernel *kernel = (const struct kiln_kernel *)fake;
    struct kiln_error first;

    fail_first_compile(fake);
    assert_int_equal(fake_kiln_prepare(fake, 512, &kernel), KILN_E_COMPILE);
    first = fake->err;
    fake->err = (struct kiln_error){0};
    assert_int_equal(fake_kiln_prepare(fake, 512, &kernel), KILN_E_COMPILE);

    assert_null(kernel);
    assert_non_null(strstr(first.message, "no such luck"));
    assert_string_equal(fake->err.message, first.message);
    assert_int_equal(fake->err.origin, KILN_ORIGIN_NVRTC);
    assert_int_equal(fake_kiln_compiles(fake), 1);
    assert_int_equal(fake_kiln_entries(fake), 0);
}

static void prepare_tries_again_after_the_retry_time(void **state)
{
    struct fake_kiln *fake = *state;
    const struct kiln_kernel *kernel;

    fake->options.retry_ms = 10;
    assert_int_equal(fake_kiln_open(fake), KILN_OK);
    fail_first_compile(fake);
    assert_int_equal(fake_kiln_prepare(fake, 512, &kernel), KILN_E_COMPILE);
    sleep_ms(20);
    assert_int_equal(fake_kiln_prepare(fake, 512, &kernel), KILN_OK);

    assert_int_equal(fake_kiln_compiles(fake), 2);
}

static void prepare_of_one_kernel_survives_the_failure_of_another(void **state)
{
    struct fake_kiln *fake = *state;
    const struct kiln_kernel *kernel;

    fail_first_compile(fake);
    assert_int_equal(fake_kiln_prepare(fake, 512, &kernel), KILN_E_COMPILE);

    assert_int_equal(fake_kiln_prepare(fake, 1024, &kernel), KILN_OK);
}

static void prepare_does_not_publish_an_empty_cubin_field_54(void **state)
{
    struct fake_kiln *fake = *state;
    const struct kiln_kernel *kernel;

    fake->nvrtc.empty_cubin = true;
    assert_int_equal(fake_kiln_prepare(fake, 512, &kernel), KILN_E_COMPILE);

    assert_int_equal(fake_kiln_entries(fake), 0);
    assert_int_equal(fake_kiln_loads(fake), 0);
}

/* ---- waiting ------------------------------------------------------------------------ */

static void *build_slowly(void *argument)
{
    struct fake_kiln *fake = argument;
    struct kiln_shape shape = fake_kiln_shape(512);
    enum kiln_status status =
        kiln_build(fake->kiln, KILN_OP_GLOBAL_TOPK, &shape, "sm_90", NULL);

    return status == KILN_OK ? fake : NULL;
}

static void wait_for_compile(struct fake_kiln *fake)
{
    bool began = false;

    while (!began) {
        sleep_ms(1);
        pthread_mutex_lock(&fake->nvrtc.mutex);
        began = fake->nvrtc.calls[FAKE_NVRTC_COMPILE] > 0;
        pthread_mutex_unlock(&fake->nvrtc.mutex);
    }
}

static void prepare_stops_waiting_for_another_threads_build(void **state)
{
    struct fake_kiln *fake = *state;
    const struct kiln_kernel *kernel = NULL;
    pthread_t thread;
    void *result;

    fake->options.build_timeout_ms = 20;
    fake->nvrtc.compile_ms = 400;
    assert_int_equal(fake_kiln_open(fake), KILN_OK);
    assert_int_equal(pthread_create(&thread, NULL, build_slowly, fake), 0);
    wait_for_compile(fake);
    assert_int_equal(fake_kiln_prepare(fake, 512, &kernel), KILN_E_TIMEOUT);
    pthread_join(thread, &result);

    assert_ptr_equal(result, fake);
    assert_null(kernel);
    assert_int_equal(fake_kiln_prepare(fake, 512, &kernel), KILN_OK);
    assert_int_equal(fake_kiln_compiles(fake), 1);
}

/* Destroying a condition waits for its waiters; a child has none of its parent's threads. */
static void
destroy_in_a_child_does_not_wait_for_the_parents_threads_field_50(void **state)
{
    struct fake_kiln *fake = *state;
    pthread_t threads[2];
    int result = -1;
    pid_t child;

    fake->nvrtc.compile_ms = 300;
    assert_int_equal(pthread_create(&threads[0], NULL, build_slowly, fake), 0);
    wait_for_compile(fake);
    assert_int_equal(pthread_create(&threads[1], NULL, build_slowly, fake), 0);
    sleep_ms(100);
    child = fork();
    if (child == 0) {
        (void)alarm(20);
        kiln_destroy(&fake->kiln);
        _exit(0);
    }
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &result, 0), child);
    for (int i = 0; i < 2; i++) {
        void *built;

        pthread_join(threads[i], &built);
        assert_ptr_equal(built, fake);
    }

    assert_true(WIFEXITED(result));
    assert_int_equal(fake_kiln_compiles(fake), 1);
}

#define CLOSED(test)                                                                     \
    cmocka_unit_test_setup_teardown(test, fake_kiln_setup, fake_kiln_teardown)
#define OPEN(test)                                                                       \
    cmocka_unit_test_setup_teardown(test, fake_kiln_setup_open, fake_kiln_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        OPEN(prepare_compiles_stores_and_loads_in_this_order),
        OPEN(prepare_again_gives_the_same_kernel_and_builds_nothing),
        OPEN(prepare_in_a_second_context_finishes_the_load_there_once_field_66),
        OPEN(prepare_of_another_shape_is_another_kernel),
        OPEN(build_makes_no_driver_call_when_the_target_is_named),
        OPEN(prepare_after_build_does_not_compile_again),
        OPEN(prepare_finds_what_warm_stored_field_18),
        OPEN(prepare_from_a_warm_store_needs_no_nvrtc),
        OPEN(prepare_rebuilds_a_damaged_entry_field_51),
        CLOSED(prepare_works_without_a_usable_cache_folder_field_58),
        CLOSED(prepare_ignores_another_compilers_entry_when_exact),
        CLOSED(prepare_rebuilds_once_what_the_driver_refuses),
        CLOSED(prepare_gives_up_when_the_rebuilt_cubin_is_refused_too),
        CLOSED(prepare_names_both_versions_when_it_cannot_rebuild),
        OPEN(prepare_does_not_rebuild_what_it_just_compiled),
        OPEN(prepare_refuses_a_capturing_stream_and_touches_nothing_field_68),
        OPEN(prepare_does_not_break_another_capture_field_70),
        OPEN(destroy_does_not_break_another_capture),
        OPEN(prepare_can_be_repeated_after_a_capture_was_in_its_way),
        OPEN(prepare_remembers_a_failed_build_field_55),
        CLOSED(prepare_tries_again_after_the_retry_time),
        OPEN(prepare_of_one_kernel_survives_the_failure_of_another),
        OPEN(prepare_does_not_publish_an_empty_cubin_field_54),
        CLOSED(prepare_stops_waiting_for_another_threads_build),
        OPEN(destroy_in_a_child_does_not_wait_for_the_parents_threads_field_50),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
