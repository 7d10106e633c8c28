/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a server may count on from its first request to its exit: launches share their
 * kernel, nothing is built or unloaded in passing, the process stays as it was.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "support/fake_kiln.h"

/* Every array begins `skew` bytes past an address that any access may take. */
static void launch_skewed(struct fake_kiln *fake, const struct kiln_kernel *kernel,
                          size_t skew, int32_t rows)
{
    static _Alignas(256) unsigned char memory[16384];
    void *at = memory + skew;
    struct kiln_global_topk_args args = {
        .topk_indices = at,
        .token_to_req = at,
        .block_table = at,
        .is_valid_token = at,
        .slots = at,
        .lens = at,
        .num_tokens = rows,
        .table_rows = 1,
    };

    assert_int_equal(kiln_launch_global_topk(kernel, &args, fake->stream, &fake->err),
                     KILN_OK);
}

/* A variant for each alignment, and for numbers that 16 divides, was built in passing. */
static void launch_of_any_alignment_and_number_is_one_kernel_field_17(void **state)
{
    static const size_t skews[] = {0, 4, 8, 12, 16, 128};
    static const int32_t rows[] = {1, 7, 15, 16, 17};
    struct fake_kiln *fake = *state;
    const struct kiln_kernel *kernel;
    struct kiln_stats stats;

    assert_int_equal(fake_kiln_prepare(fake, 512, &kernel), KILN_OK);
    fake_kiln_forget(fake);
    for (size_t i = 0; i < KI_COUNT_OF(skews); i++) {
        for (size_t j = 0; j < KI_COUNT_OF(rows); j++) {
            launch_skewed(fake, kernel, skews[i], rows[j]);
        }
    }

    assert_int_equal(fake->driver.n_launches, KI_COUNT_OF(skews) * KI_COUNT_OF(rows));
    assert_int_equal(fake->driver.n_calls, fake->driver.n_launches);
    for (int i = 1; i < fake->driver.n_launches; i++) {
        assert_ptr_equal(fake->driver.launches[i].function,
                         fake->driver.launches[0].function);
    }
    kiln_get_stats(fake->kiln, &stats);
    assert_int_equal(stats.n_kernels, 1);
}

static void stats_sum_the_code_of_loaded_kernels_field_33(void **state)
{
    struct fake_kiln *fake = *state;
    const struct kiln_kernel *kernels[2];
    struct kiln_kernel_info infos[2];
    struct kiln_stats stats;

    assert_int_equal(fake_kiln_build(fake, 256), KILN_OK);
    kiln_get_stats(fake->kiln, &stats);
    assert_int_equal(stats.code_bytes, 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(fake_kiln_prepare(fake, 512 << i, &kernels[i]), KILN_OK);
        kiln_kernel_get_info(kernels[i], &infos[i]);
        assert_true(infos[i].cubin_bytes > 0);
    }
    kiln_get_stats(fake->kiln, &stats);

    assert_int_equal(stats.code_bytes, infos[0].cubin_bytes + infos[1].cubin_bytes);
}

/* Nobody could tell whether something was compiled while serving. */
static void stats_tell_what_was_compiled_while_serving_field_63(void **state)
{
    struct fake_kiln *fake = *state;
    const struct kiln_kernel *kernel;
    struct kiln_stats before, served, after;

    assert_int_equal(fake_kiln_prepare(fake, 512, &kernel), KILN_OK);
    kiln_get_stats(fake->kiln, &before);
    launch_skewed(fake, kernel, 0, 3);
    assert_int_equal(fake_kiln_prepare(fake, 512, &kernel), KILN_OK);
    kiln_get_stats(fake->kiln, &served);
    assert_int_equal(fake_kiln_prepare(fake, 1024, &kernel), KILN_OK);
    kiln_get_stats(fake->kiln, &after);

    assert_int_equal(served.n_compiled, before.n_compiled);
    assert_int_equal(served.n_loaded, before.n_loaded);
    assert_int_equal(after.n_compiled, before.n_compiled + 1);
    assert_int_equal(after.n_loaded, before.n_loaded + 1);
}

/* All variables, one after the other, each with its NUL. The caller frees it. */
static char *copy_environment(size_t *out_bytes)
{
    size_t size = 0;

    for (char **variable = environ; *variable != NULL; variable++) {
        size += strlen(*variable) + 1;
    }
    char *copy = malloc(size + 1);
    assert_non_null(copy);
    *out_bytes = 0;
    for (char **variable = environ; *variable != NULL; variable++) {
        memcpy(copy + *out_bytes, *variable, strlen(*variable) + 1);
        *out_bytes += strlen(*variable) + 1;
    }
    return copy;
}

static void no_call_changes_the_environment_field_67(void **state)
{
    struct fake_kiln *fake = *state;
    const struct kiln_kernel *kernel;
    size_t before_bytes, after_bytes;
    char *before = copy_environment(&before_bytes);

    assert_int_equal(fake_kiln_open(fake), KILN_OK);
    assert_int_equal(fake_kiln_build(fake, 256), KILN_OK);
    assert_int_equal(fake_kiln_prepare(fake, 512, &kernel), KILN_OK);
    launch_skewed(fake, kernel, 0, 3);
    fake_kiln_close(fake);
    char *after = copy_environment(&after_bytes);

    assert_int_equal(after_bytes, before_bytes);
    assert_memory_equal(after, before, before_bytes);
    free(before);
    free(after);
}

/* A graph that was captured over a kernel launches it as long as the kiln is there. */
static void nothing_is_unloaded_before_destroy_field_69(void **state)
{
    struct fake_kiln *fake = *state;
    const struct kiln_kernel *first, *other;

    fake->options.max_kernels = 3;
    assert_int_equal(fake_kiln_open(fake), KILN_OK);
    assert_int_equal(fake_kiln_prepare(fake, 256, &first), KILN_OK);
    assert_int_equal(fake_kiln_prepare(fake, 512, &other), KILN_OK);
    fake->nvrtc.fail_call = FAKE_NVRTC_COMPILE;
    fake->nvrtc.fail_nth = -1;
    assert_int_equal(fake_kiln_prepare(fake, 1024, &other), KILN_E_COMPILE);
    assert_int_equal(fake_kiln_prepare(fake, 2048, &other), KILN_E_LIMIT);
    assert_int_equal(fake_kiln_prepare(fake, 256, &other), KILN_OK);

    assert_ptr_equal(other, first);
    assert_int_equal(fake_driver_count(&fake->driver, FAKE_library_unload), 0);
    launch_skewed(fake, first, 0, 3);
    fake_kiln_close(fake);
    assert_int_equal(fake_driver_count(&fake->driver, FAKE_library_unload), 2);
}

/* An attribute that was set after occupancy had been asked was not in the answer. */
static void driver_functions_set_no_attribute_and_ask_no_occupancy_field_74(void **state)
{
#define SYMBOL(member, symbol, version, required) #symbol,
    static const char *const symbols[] = {KI_DRIVER_TABLE(SYMBOL)};

    (void)state;
    for (size_t i = 0; i < KI_COUNT_OF(symbols); i++) {
        assert_null(strstr(symbols[i], "SetAttribute"));
        assert_null(strstr(symbols[i], "Occupancy"));
    }
}

struct last_words {
    struct fake_kiln *fake;
    int n_calls; /* of the driver, before the exit */
};

static void judge_exit(int status, void *user)
{
    const struct last_words *words = user;

    (void)status;
    _exit(words->fake->driver.n_calls == words->n_calls ? 0 : 1);
}

static void exit_without_destroy_calls_no_driver_field_75(void **state)
{
    struct last_words words = {.fake = *state};
    pid_t child = fork();

    if (child == 0) {
        const struct kiln_kernel *kernel;
        /* registered before anything that kiln could register, so it runs after that */
        (void)on_exit(judge_exit, &words);
        if (fake_kiln_open(words.fake) != KILN_OK ||
            fake_kiln_prepare(words.fake, 512, &kernel) != KILN_OK) {
            _exit(2);
        }
        words.n_calls = words.fake->driver.n_calls;
        exit(3);
    }
    int result;
    assert_int_equal(waitpid(child, &result, 0), child);

    assert_true(WIFEXITED(result));
    assert_int_equal(WEXITSTATUS(result), 0);
}

#define CLOSED(test)                                                                     \
    cmocka_unit_test_setup_teardown(test, fake_kiln_setup, fake_kiln_teardown)
#define OPEN(test)                                                                       \
    cmocka_unit_test_setup_teardown(test, fake_kiln_setup_open, fake_kiln_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        OPEN(launch_of_any_alignment_and_number_is_one_kernel_field_17),
        OPEN(stats_sum_the_code_of_loaded_kernels_field_33),
        OPEN(stats_tell_what_was_compiled_while_serving_field_63),
        CLOSED(no_call_changes_the_environment_field_67),
        CLOSED(nothing_is_unloaded_before_destroy_field_69),
        cmocka_unit_test(driver_functions_set_no_attribute_and_ask_no_occupancy_field_74),
        CLOSED(exit_without_destroy_calls_no_driver_field_75),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
