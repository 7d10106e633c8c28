/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting wakes on a broadcast and ends on time, by a clock that nobody can set back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base/sync.h"

enum { N_THREADS = 8, N_ROUNDS = 2000 };

struct fixture {
    struct ki_mutex mutex;
    struct ki_cond cond;
    int64_t counter;
    bool go;
    int n_woken;
};

static int setup(void **state)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);

    if (fixture == NULL || ki_mutex_init(&fixture->mutex) != 0 ||
        ki_cond_init(&fixture->cond) != 0) {
        return -1;
    }
    *state = fixture;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *fixture = *state;

    ki_cond_finish(&fixture->cond);
    ki_mutex_finish(&fixture->mutex);
    free(fixture);
    return 0;
}

static void *add(void *argument)
{
    struct fixture *fixture = argument;

    for (int i = 0; i < N_ROUNDS; i++) {
        ki_mutex_lock(&fixture->mutex);
        fixture->counter++;
        ki_mutex_unlock(&fixture->mutex);
    }
    return NULL;
}

static void mutex_lets_one_thread_in(void **state)
{
    struct fixture *fixture = *state;
    pthread_t threads[N_THREADS];

    for (int i = 0; i < N_THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, add, fixture), 0);
    }
    for (int i = 0; i < N_THREADS; i++) {
        pthread_join(threads[i], NULL);
    }

    assert_int_equal(fixture->counter, N_THREADS * N_ROUNDS);
}

static void *wait_for_go(void *argument)
{
    struct fixture *fixture = argument;
    int64_t until_ms = ki_now_ms() + 60000;

    ki_mutex_lock(&fixture->mutex);
    while (!fixture->go &&
           ki_cond_wait_until(&fixture->cond, &fixture->mutex, until_ms)) {
    }
    fixture->n_woken += fixture->go ? 1 : 0;
    ki_mutex_unlock(&fixture->mutex);
    return NULL;
}

static void cond_broadcast_wakes_all(void **state)
{
    struct fixture *fixture = *state;
    pthread_t threads[N_THREADS];
    int64_t began_ms = ki_now_ms();

    for (int i = 0; i < N_THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, wait_for_go, fixture), 0);
    }
    ki_mutex_lock(&fixture->mutex);
    fixture->go = true;
    ki_cond_broadcast(&fixture->cond);
    ki_mutex_unlock(&fixture->mutex);
    for (int i = 0; i < N_THREADS; i++) {
        pthread_join(threads[i], NULL);
    }

    assert_int_equal(fixture->n_woken, N_THREADS);
    assert_true(ki_now_ms() - began_ms < 50000);
}

static void cond_wait_ends_at_its_time(void **state)
{
    struct fixture *fixture = *state;
    int64_t until_ms = ki_now_ms() + 30;

    ki_mutex_lock(&fixture->mutex);
    while (ki_cond_wait_until(&fixture->cond, &fixture->mutex, until_ms)) {
    }
    ki_mutex_unlock(&fixture->mutex);

    assert_true(ki_now_ms() >= until_ms);
}

static void cond_wait_for_a_time_that_has_passed_ends_at_once(void **state)
{
    struct fixture *fixture = *state;
    bool woken;

    ki_mutex_lock(&fixture->mutex);
    woken = ki_cond_wait_until(&fixture->cond, &fixture->mutex, ki_now_ms() - 1000);
    ki_mutex_unlock(&fixture->mutex);

    assert_false(woken);
}

static void clock_never_goes_back(void **state)
{
    int64_t last_ms = ki_now_ms();

    (void)state;
    for (int i = 0; i < 10000; i++) {
        int64_t now_ms = ki_now_ms();

        assert_true(now_ms >= last_ms);
        last_ms = now_ms;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(mutex_lets_one_thread_in, setup, teardown),
        cmocka_unit_test_setup_teardown(cond_broadcast_wakes_all, setup, teardown),
        cmocka_unit_test_setup_teardown(cond_wait_ends_at_its_time, setup, teardown),
        cmocka_unit_test_setup_teardown(cond_wait_for_a_time_that_has_passed_ends_at_once,
                                        setup, teardown),
        cmocka_unit_test(clock_never_goes_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
