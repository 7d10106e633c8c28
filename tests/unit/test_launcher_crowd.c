/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a server does for days, in a moment: threads that launch on streams of their own while
 * others build, create and destroy launchers, seal, retain graphs and read statistics.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "kiln/seal.h"

#include "support/fake_kiln.h"

enum { N_THREADS = 16, N_LAUNCHERS = 2, N_ROUNDS = 40 };

static _Alignas(16) const unsigned char memory[64]; /* every input: nothing reads it */

struct crowd {
    struct fake_kiln *fake;
    struct kiln_launcher *launchers[N_LAUNCHERS];
    pthread_barrier_t barrier;
    _Atomic int64_t n_launched;
};

struct member {
    struct crowd *crowd;
    int number;
    pthread_t thread;
    int n_faults; /* calls that did not answer as they had to */
};

static void expect(struct member *member, bool is_right)
{
    member->n_faults += is_right ? 0 : 1;
}

static void launch_all(struct member *member, CUstream stream)
{
    struct crowd *crowd = member->crowd;
    struct kiln_launcher *launcher = crowd->launchers[member->number % N_LAUNCHERS];
    const struct kiln_layout *layout = kiln_launcher_layout(launcher);
    unsigned char args[FAKE_ARGS];

    for (size_t i = 0; i < layout->n_launches; i++) {
        fake_kiln_args(layout->launches[i].op, 5, memory, args);
        expect(member, kiln_launcher_launch(launcher, i, args, stream, NULL) == KILN_OK);
        atomic_fetch_add(&crowd->n_launched, 1);
    }
}

static void capture_and_retain(struct member *member, CUstream stream)
{
    const struct ki_driver *driver = &member->crowd->fake->driver_table;
    struct kiln_launcher *launcher =
        member->crowd->launchers[member->number % N_LAUNCHERS];
    CUgraph graph = NULL;

    (void)driver->stream_begin_capture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
    launch_all(member, stream);
    expect(member, driver->stream_end_capture(stream, &graph) == CUDA_SUCCESS);
    if (graph != NULL) {
        expect(member, kiln_launcher_retain(launcher, graph, NULL) == KILN_OK);
        (void)driver->graph_destroy(graph);
    }
}

/* Shapes that no launcher has. */
static void build_others(struct member *member, int round)
{
    struct kiln_shape shape = fake_kiln_shape(64 * (member->number + round % 4) + 128);
    enum kiln_status status =
        kiln_build(member->crowd->fake->kiln, KILN_OP_GLOBAL_TOPK, &shape, NULL, NULL);

    expect(member, status == KILN_OK || status == KILN_E_NOT_READY);
}

/* In another context, too, where the first loads may meet the seal. */
static void create_another(struct member *member, int round)
{
    struct kiln_deployment d = fake_kiln_deployment();
    struct kiln_launcher *launcher = NULL;
    bool is_elsewhere = round % 2 != 0;
    enum kiln_status status;

    if (is_elsewhere) {
        fake_driver_set_context(fake_driver_other_context());
    }
    status = kiln_launcher_create(member->crowd->fake->kiln, &d, NULL, &launcher, NULL);
    expect(member, status == KILN_OK || (is_elsewhere && status == KILN_E_NOT_READY));
    expect(member, kiln_launcher_destroy(&launcher, NULL) == KILN_OK);
    fake_driver_set_context(fake_driver_context());
}

static void seal(struct member *member, int round)
{
    static const enum kiln_seal_mode modes[] = {KILN_SEAL_ERROR, KILN_SEAL_WARN,
                                                KILN_SEAL_OFF};
    struct kiln *kiln = member->crowd->fake->kiln;

    expect(member, kiln_seal(kiln, modes[round % 3], NULL, NULL, NULL) == KILN_OK);
}

static void read_statistics(struct member *member)
{
    struct kiln_launcher_stats one;
    struct kiln_stats all;

    kiln_launcher_get_stats(member->crowd->launchers[0], &one);
    kiln_get_stats(member->crowd->fake->kiln, &all);
    expect(member, all.n_launches >= one.n_launches && one.n_refused == 0);
}

static void *serve(void *argument)
{
    struct member *member = argument;
    const struct ki_driver *driver = &member->crowd->fake->driver_table;
    CUstream stream = NULL;

    fake_driver_set_context(fake_driver_context());
    expect(member, driver->stream_create(&stream, 0) == CUDA_SUCCESS);
    pthread_barrier_wait(&member->crowd->barrier);
    for (int round = 0; round < N_ROUNDS; round++) {
        switch (member->number % 8) {
        case 0:
            build_others(member, round);
            break;
        case 1:
            seal(member, round);
            break;
        case 2:
            create_another(member, round);
            break;
        case 3:
            capture_and_retain(member, stream);
            break;
        case 4:
            read_statistics(member);
            break;
        default:
            launch_all(member, stream);
            break;
        }
    }
    (void)driver->stream_destroy(stream);
    return NULL;
}

static void threads_serve_build_seal_and_watch_at_once_field_70(void **state)
{
    struct fake_kiln *fake = *state;
    struct kiln_deployment d = fake_kiln_deployment();
    struct crowd crowd = {.fake = fake};
    struct member *members = calloc(N_THREADS, sizeof *members);
    struct kiln_stats stats;

    assert_non_null(members);
    for (int i = 0; i < N_LAUNCHERS; i++) {
        assert_int_equal(
            kiln_launcher_create(fake->kiln, &d, NULL, &crowd.launchers[i], &fake->err),
            KILN_OK);
    }
    assert_int_equal(pthread_barrier_init(&crowd.barrier, NULL, N_THREADS), 0);
    for (int i = 0; i < N_THREADS; i++) {
        members[i].crowd = &crowd;
        members[i].number = i;
        assert_int_equal(pthread_create(&members[i].thread, NULL, serve, &members[i]), 0);
    }
    for (int i = 0; i < N_THREADS; i++) {
        pthread_join(members[i].thread, NULL);
        assert_int_equal(members[i].n_faults, 0);
    }
    pthread_barrier_destroy(&crowd.barrier);
    kiln_get_stats(fake->kiln, &stats);

    assert_int_equal(stats.n_launches, crowd.n_launched);
    assert_int_equal(stats.n_refused, 0);
    assert_int_equal(stats.n_launchers, N_LAUNCHERS);
    assert_int_equal(fake->driver.n_broken, 0);
    for (int i = 0; i < N_LAUNCHERS; i++) {
        assert_int_equal(kiln_launcher_destroy(&crowd.launchers[i], NULL), KILN_OK);
    }
    free(members);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            threads_serve_build_seal_and_watch_at_once_field_70, fake_kiln_setup_open,
            fake_kiln_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
