/* SPDX-License-Identifier: Apache-2.0 */
/* Many threads, and many processes over one store, that want the same kernels at once. */
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

#include "kiln/store.h"

#include "support/fake_kiln.h"

enum { N_THREADS = 64, N_PROCESSES = 8, N_KEYS = 10 };

struct crowd {
    struct fake_kiln *fake;
    pthread_barrier_t barrier;
};

struct member {
    struct crowd *crowd;
    int number;
    pthread_t thread;
    const struct kiln_kernel *kernels[N_KEYS];
    enum kiln_status statuses[N_KEYS];
    int n_faults; /* calls that did not answer as they had to */
};

static struct kiln_shape shape_of(int key)
{
    return fake_kiln_shape(64 * (key + 1));
}

/* What a server does meanwhile on other threads. */
static void use(struct member *member, int key)
{
    struct kiln *kiln = member->crowd->fake->kiln;
    struct kiln_shape shape = shape_of(key);
    struct kiln_global_topk_args nothing = {0};
    const struct kiln_kernel *found = NULL;
    struct kiln_stats stats;

    kiln_get_stats(kiln, &stats);
    if (kiln_find(kiln, KILN_OP_GLOBAL_TOPK, &shape, &found, NULL) != KILN_OK ||
        found != member->kernels[key] ||
        kiln_launch_global_topk(found, &nothing, NULL, NULL) != KILN_OK) {
        member->n_faults++;
    }
}

/* Each thread starts at another key, so that all keys are fought for at once; every other one
 * builds first. */
static void *prepare_all(void *argument)
{
    struct member *member = argument;
    struct kiln *kiln = member->crowd->fake->kiln;

    fake_driver_set_context(fake_driver_context());
    pthread_barrier_wait(&member->crowd->barrier);
    for (int i = 0; i < N_KEYS; i++) {
        int key = (i + member->number) % N_KEYS;
        struct kiln_shape shape = shape_of(key);

        if (member->number % 2 == 0) {
            member->statuses[key] =
                kiln_build(kiln, KILN_OP_GLOBAL_TOPK, &shape, NULL, NULL);
        }
        member->statuses[key] = kiln_prepare(kiln, KILN_OP_GLOBAL_TOPK, &shape, NULL,
                                             &member->kernels[key], NULL);
        if (member->statuses[key] == KILN_OK) {
            use(member, key);
        }
    }
    return NULL;
}

static struct member *run_crowd(struct fake_kiln *fake)
{
    struct member *members = calloc(N_THREADS, sizeof *members);
    struct crowd crowd = {.fake = fake};

    assert_non_null(members);
    assert_int_equal(pthread_barrier_init(&crowd.barrier, NULL, N_THREADS), 0);
    for (int i = 0; i < N_THREADS; i++) {
        members[i].crowd = &crowd;
        members[i].number = i;
        assert_int_equal(
            pthread_create(&members[i].thread, NULL, prepare_all, &members[i]), 0);
    }
    for (int i = 0; i < N_THREADS; i++) {
        pthread_join(members[i].thread, NULL);
    }
    pthread_barrier_destroy(&crowd.barrier);
    return members;
}

static void threads_build_and_load_each_key_once_field_65(void **state)
{
    struct fake_kiln *fake = *state;
    struct member *members;

    fake->nvrtc.compile_ms = 3;
    members = run_crowd(fake);

    assert_int_equal(fake_kiln_compiles(fake), N_KEYS);
    assert_int_equal(fake_kiln_loads(fake), N_KEYS);
    assert_int_equal(fake_kiln_entries(fake), N_KEYS);
    for (int i = 0; i < N_THREADS; i++) {
        assert_int_equal(members[i].n_faults, 0);
        for (int key = 0; key < N_KEYS; key++) {
            assert_int_equal(members[i].statuses[key], KILN_OK);
            assert_ptr_equal(members[i].kernels[key], members[0].kernels[key]);
        }
    }
    free(members);
}

static void threads_share_one_failure_field_55(void **state)
{
    struct fake_kiln *fake = *state;
    struct member *members;

    fake->nvrtc.compile_ms = 3;
    fake->nvrtc.fail_call = FAKE_NVRTC_COMPILE;
    fake->nvrtc.fail_nth = -1;
    members = run_crowd(fake);

    assert_int_equal(fake_kiln_compiles(fake), N_KEYS);
    assert_int_equal(fake_kiln_loads(fake), 0);
    for (int i = 0; i < N_THREADS; i++) {
        for (int key = 0; key < N_KEYS; key++) {
            assert_int_equal(members[i].statuses[key], KILN_E_COMPILE);
            assert_null(members[i].kernels[key]);
        }
    }
    free(members);
}

/* The exit status of a process that prepares all keys, and finds nothing wrong in the store. */
static int process(struct fake_kiln *fake, int number)
{
    struct kiln_stats stats;

    if (fake_kiln_open(fake) != KILN_OK) {
        return 1;
    }
    for (int i = 0; i < N_KEYS; i++) {
        const struct kiln_kernel *kernel;
        int key = (i + number) % N_KEYS;

        if (fake_kiln_prepare(fake, 64 * (key + 1), &kernel) != KILN_OK) {
            return 2;
        }
    }
    kiln_get_stats(fake->kiln, &stats);
    fake_kiln_close(fake);
    return stats.n_store_bad == 0 && stats.n_store_faults == 0 ? 0 : 3;
}

static void count_whole(void *user, const struct kiln_store_item *item)
{
    int *n_whole = user;

    *n_whole += item->fault == NULL ? 1 : 0;
}

/* Racing writers of a shared cache once gave NaNs on several nodes. */
static void processes_leave_one_whole_entry_for_each_key_field_19(void **state)
{
    struct fake_kiln *fake = *state;
    pid_t children[N_PROCESSES];
    char tmp[TMPDIR_PATH + 32];
    int n_whole = 0;

    fake->nvrtc.compile_ms = 1;
    for (int i = 0; i < N_PROCESSES; i++) {
        children[i] = fork();
        if (children[i] == 0) {
            _exit(process(fake, i));
        }
        assert_true(children[i] > 0);
    }
    for (int i = 0; i < N_PROCESSES; i++) {
        int result = -1;

        assert_int_equal(waitpid(children[i], &result, 0), children[i]);
        assert_true(WIFEXITED(result));
        assert_int_equal(WEXITSTATUS(result), 0);
    }

    snprintf(tmp, sizeof tmp, "%s/kiln-v1/tmp", fake->cache_dir);
    assert_int_equal(tmpdir_count(tmp, ""), 0);
    assert_int_equal(kiln_store_visit(fake->cache_dir, count_whole, &n_whole, &fake->err),
                     KILN_OK);
    assert_int_equal(n_whole, N_KEYS);
    assert_int_equal(fake_kiln_entries(fake), N_KEYS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(threads_build_and_load_each_key_once_field_65,
                                        fake_kiln_setup_open, fake_kiln_teardown),
        cmocka_unit_test_setup_teardown(threads_share_one_failure_field_55,
                                        fake_kiln_setup_open, fake_kiln_teardown),
        cmocka_unit_test_setup_teardown(
            processes_leave_one_whole_entry_for_each_key_field_19, fake_kiln_setup,
            fake_kiln_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
