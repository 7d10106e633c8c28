/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One graph, a hundred thousand batches: each replay draws another one on the device, runs
 * every kernel of a deployment over it, and counts every element of every output that is
 * not what the reference writes. See replay_rig.h.
 *
 * KILN_TEST_REPLAYS, or the first argument: how many instead of 100,000; the other tests'
 * numbers shrink with it. KILN_TEST_SEED, or the second: where the batches start.
 * KILN_TEST_ONLY, or the third: tests by name, with * for any words.
 */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "base/attr.h"
#include "plan/op.h"
#include "replay_rig.h"

enum { SKIPPED = 77, REPLAYS = 100000, N_WORKERS = 2 };

/* One of the threads beside the test's. cmocka's asserts are for the test's alone. */
struct worker {
    pthread_t thread;
    bool is_started;
    enum kiln_status (*round)(struct worker *worker);
    struct kiln_gpu *gpu; /* a stream of its own; opened before the first capture */
    const struct kiln_kernel *kernel;
    struct kiln_deployment deployment;
    _Atomic int64_t n_rounds;
    atomic_bool is_stopping, is_over;
    struct kiln_error err;
};

struct fixture {
    struct kiln_gpu *gpu;
    struct kiln *kiln;
    int64_t n_replays; /* of the longest test */
    uint64_t seed;
    struct worker workers[N_WORKERS];
};

static struct rig_options options_of(const struct fixture *fixture, int32_t n_tokens,
                                     int32_t n_requests)
{
    const struct rig_options options = {
        .max_model_len = 131072,
        .n_tokens = n_tokens,
        .n_requests = n_requests,
        .seed = fixture->seed,
    };

    return options;
}

/* `n` of the 100,000 of a full run. */
static int64_t share(const struct fixture *fixture, int64_t n)
{
    const int64_t share = fixture->n_replays * n / REPLAYS;

    return share > 10 ? share : 10;
}

static void assert_no_difference(const struct rig *rig)
{
    char why[RANDOM_WHY];
    const uint64_t n = rig_differences(rig, why);

    if (n > 0) {
        fail_msg("%llu elements differ, first: %s", (unsigned long long)n, why);
    }
}

static double seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void replay_and_compare(struct rig *rig, int64_t n)
{
    const double begun = seconds();

    rig_replay(rig, n);
    print_message("%lld steps of %d tokens, %.0f a second\n", (long long)n,
                  (int)rig->limits.n_tokens, (double)n / (seconds() - begun));
    assert_no_difference(rig);
}

/* Nothing in the outputs is left out of the comparison. */
static void every_element_that_differs_is_counted(void **state)
{
    const struct fixture *fixture = *state;
    const struct rig_options options = options_of(fixture, 8, 4);
    uint64_t n_elements = 0;
    char why[RANDOM_WHY];
    struct rig rig;

    rig_init(&rig, fixture->gpu, fixture->kiln, &options);
    rig_compare(&rig);
    assert_no_difference(&rig);
    rig_fill_outputs(&rig, 0x5A);
    rig_compare(&rig);
    for (size_t i = 0; i < rig.layout->n_buffers; i++) {
        n_elements +=
            (uint64_t)(rig.layout->buffers[i].rows * rig.layout->buffers[i].stride);
    }
    assert_int_equal(rig_differences(&rig, why), n_elements);
    assert_non_null(strstr(why, "step 0: "));
    assert_non_null(strstr(why, "row 0, column 0"));
    rig_finish(&rig);
}

static void replays_of_full_batches_equal_the_reference_field_1(void **state)
{
    const struct fixture *fixture = *state;
    const struct rig_options options =
        options_of(fixture, REPLAY_TOKENS, REPLAY_REQUESTS);
    struct rig rig;

    rig_init(&rig, fixture->gpu, fixture->kiln, &options);
    assert_int_equal(rig.limits.capacity, 1024);
    rig_capture(&rig, KILN_CAPTURE_GLOBAL);
    replay_and_compare(&rig, fixture->n_replays);
    rig_finish(&rig);
}

/* Captured over few rows, replayed over contexts of any length. */
static void replays_of_small_captures_equal_the_reference_field_1(void **state)
{
    static const int32_t sizes[][2] = {{1, 1}, {2, 1}, {5, 3}, {33, 8}};
    const struct fixture *fixture = *state;

    for (size_t i = 0; i < KI_COUNT_OF(sizes); i++) {
        const struct rig_options options = options_of(fixture, sizes[i][0], sizes[i][1]);
        struct rig rig;

        rig_init(&rig, fixture->gpu, fixture->kiln, &options);
        for (int mode = KILN_CAPTURE_GLOBAL; mode <= KILN_CAPTURE_RELAXED; mode++) {
            rig_capture(&rig, (enum kiln_capture_mode)mode);
            replay_and_compare(&rig, share(fixture, 2000));
        }
        rig_finish(&rig);
    }
}

/* Each kernel starts at its predecessor's tail. */
static void programmatic_replays_equal_the_reference_field_73(void **state)
{
    const struct fixture *fixture = *state;
    struct rig_options options = options_of(fixture, REPLAY_TOKENS, REPLAY_REQUESTS);
    struct rig rig;

    options.programmatic = true;
    rig_init(&rig, fixture->gpu, fixture->kiln, &options);
    print_message("programmatic: %s\n",
                  kiln_launcher_is_programmatic(rig.launcher) ? "yes" : "no");
    rig_capture(&rig, KILN_CAPTURE_GLOBAL);
    replay_and_compare(&rig, share(fixture, 10000));
    rig_finish(&rig);
}

/* ---- the host's reference --------------------------------------------------------------- */

struct on_host {
    struct replay_inputs *inputs;
    char *got, *expected; /* all outputs, at the layout's offsets */
};

static void copy_out(const struct rig *rig, void *host, const void *device, size_t size)
{
    struct kiln_error err = {0};

    if (kiln_gpu_copy_out(rig->gpu, host, device, size, &err) != KILN_OK) {
        fail_msg("%s", err.message);
    }
}

static void expect_launch(const struct rig *rig, size_t i_launch, void *user)
{
    const struct kiln_layout_launch *launch = &rig->layout->launches[i_launch];
    const struct on_host *host = user;
    struct kiln_error err = {0};
    union random_args args;

    rig_bind(rig, i_launch, host->inputs, host->expected, &args);
    if (kiln_reference(launch->op, &launch->shape, &args, &err) != KILN_OK) {
        fail_msg("%s: %s", launch->name, err.message);
    }
}

static void compare_on_host(const struct rig *rig, struct on_host *host)
{
    copy_out(rig, host->inputs, rig->inputs, sizeof *host->inputs);
    copy_out(rig, host->got, rig_outputs(rig), (size_t)rig->layout->total_bytes);
    rig_for_each_launch(rig, expect_launch, host);
    for (size_t i = 0; i < rig->layout->n_buffers; i++) {
        const struct kiln_buffer *buffer = &rig->layout->buffers[i];

        if (memcmp(host->got + buffer->offset, host->expected + buffer->offset,
                   (size_t)buffer->bytes) != 0) {
            fail_msg("step %llu: %s differs", (unsigned long long)host->inputs->step,
                     buffer->name);
        }
    }
}

/* Contexts of a million tokens: 8192 columns. */
static void replays_at_capacity_8192_equal_the_host_field_1(void **state)
{
    const struct fixture *fixture = *state;
    struct rig_options options = options_of(fixture, 16, 4);
    const int64_t n = share(fixture, 2000);
    struct on_host host;
    struct rig rig;

    options.max_model_len = 1048576;
    options.kiln_alone = true;
    rig_init(&rig, fixture->gpu, fixture->kiln, &options);
    assert_int_equal(rig.limits.capacity, 8192);
    host.inputs = malloc(sizeof *host.inputs);
    host.got = malloc((size_t)rig.layout->total_bytes);
    host.expected = malloc((size_t)rig.layout->total_bytes);
    assert_true(host.inputs != NULL && host.got != NULL && host.expected != NULL);
    copy_out(&rig, host.expected, rig_outputs(&rig), (size_t)rig.layout->total_bytes);
    rig_capture(&rig, KILN_CAPTURE_GLOBAL);

    const double begun = seconds();
    for (int64_t i = 0; i < n; i++) {
        rig_replay(&rig, 1);
        compare_on_host(&rig, &host);
    }
    print_message("%lld steps against the host, %.0f a second\n", (long long)n,
                  (double)n / (seconds() - begun));
    free(host.inputs);
    free(host.got);
    free(host.expected);
    rig_finish(&rig);
}

/* ---- beside other threads --------------------------------------------------------------- */

static const struct kiln_shape valid_shape = {.is_valid_token = {.dcp_world = 1}};

/* A kiln from nothing to all kernels of a deployment, and back. */
static enum kiln_status build_and_destroy(struct worker *worker)
{
    struct kiln_options options = KILN_OPTIONS_INIT;
    struct kiln_launcher *launcher = NULL;
    struct kiln *kiln = NULL;
    enum kiln_status status;

    options.no_disk = true;
    KI_TRY(kiln_create(&options, &kiln, &worker->err));
    status =
        kiln_launcher_create(kiln, &worker->deployment, NULL, &launcher, &worker->err);
    if (status == KILN_OK) {
        status = kiln_launcher_destroy(&launcher, &worker->err);
    }
    kiln_destroy(&kiln);
    return status;
}

/* A capture of one launch, in the next mode, replayed once. */
static enum kiln_status capture_and_replay(struct worker *worker)
{
    struct kiln_is_valid_token_args args = {.num_tokens = 0};
    struct kiln_gpu_graph *graph = NULL;
    struct kiln_gpu *gpu = worker->gpu;
    struct kiln_error *err = &worker->err;
    enum kiln_status launched, status;
    void *flags;

    KI_TRY(kiln_gpu_alloc(gpu, 16, &flags, err));
    args.is_valid_token = flags;
    args.num_tokens = 16;
    KI_TRY(
        kiln_gpu_capture_begin(gpu, (enum kiln_capture_mode)(worker->n_rounds % 3), err));
    launched = kiln_launch(worker->kernel, &args, kiln_gpu_stream(gpu), err);
    status = kiln_gpu_capture_end(gpu, &graph, err);
    if (status == KILN_OK && launched == KILN_OK) {
        status = kiln_gpu_replay(gpu, graph, NULL, err);
    }
    kiln_gpu_graph_destroy(gpu, &graph);
    kiln_gpu_free(gpu, flags);
    return launched != KILN_OK ? launched : status;
}

static void *work(void *user)
{
    struct worker *worker = user;
    struct kiln_gpu *own = NULL;
    enum kiln_status status = kiln_gpu_open(0, &own, &worker->err);

    worker->gpu = own;
    while (status == KILN_OK && !worker->is_stopping) {
        status = worker->round(worker);
        worker->n_rounds += status == KILN_OK ? 1 : 0;
    }
    kiln_gpu_close(&own);
    worker->is_over = true;
    return NULL;
}

static void start(struct worker *worker)
{
    assert_int_equal(pthread_create(&worker->thread, NULL, work, worker), 0);
    worker->is_started = true;
    while (worker->n_rounds == 0 && !worker->is_over) {
        sched_yield();
    }
}

/* Also where the test failed: they live in the fixture, which outlives it. */
static int stop_workers(void **state)
{
    struct fixture *fixture = *state;

    for (size_t i = 0; i < N_WORKERS; i++) {
        struct worker *worker = &fixture->workers[i];

        worker->is_stopping = true;
        if (worker->is_started && pthread_join(worker->thread, NULL) != 0) {
            return -1;
        }
        worker->is_started = false;
    }
    return 0;
}

static void replays_beside_builds_and_captures_equal_the_reference_field_70(void **state)
{
    enum { ROUNDS = 2 };
    struct fixture *fixture = *state;
    const struct rig_options options = options_of(fixture, 64, 16);
    const struct rig_options small = options_of(fixture, 8, 4);
    struct worker *builder = &fixture->workers[0], *capturer = &fixture->workers[1];
    struct kiln_error err = {0};
    int64_t n_captures = 0;
    struct rig rig;

    rig_init(&rig, fixture->gpu, fixture->kiln, &options);
    rig_deployment(&small, &builder->deployment);
    builder->round = build_and_destroy;
    capturer->round = capture_and_replay;
    assert_int_equal(kiln_prepare(fixture->kiln, KILN_OP_IS_VALID_TOKEN, &valid_shape,
                                  NULL, &capturer->kernel, &err),
                     KILN_OK);
    start(builder);
    start(capturer);
    for (int mode = KILN_CAPTURE_GLOBAL; mode <= KILN_CAPTURE_RELAXED; mode++) {
        const int64_t until = builder->n_rounds + ROUNDS;

        while (builder->n_rounds < until && !builder->is_over && !capturer->is_over) {
            rig_capture(&rig, (enum kiln_capture_mode)mode);
            rig_replay(&rig, 5);
            n_captures++;
        }
    }
    assert_int_equal(stop_workers(state), 0);
    print_message("%lld captures beside %lld builds and %lld captures\n",
                  (long long)n_captures, (long long)builder->n_rounds,
                  (long long)capturer->n_rounds);
    for (size_t i = 0; i < N_WORKERS; i++) {
        if (fixture->workers[i].err.status != KILN_OK) {
            fail_msg("beside the replays: %s", fixture->workers[i].err.message);
        }
    }
    assert_no_difference(&rig);
    rig_finish(&rig);
}

/* ---- main ------------------------------------------------------------------------------- */

static int64_t number_from(int argc, char **argv, int arg, const char *variable,
                           int64_t otherwise)
{
    const char *text = argc > arg ? argv[arg] : getenv(variable);

    return text != NULL ? strtoll(text, NULL, 0) : otherwise;
}

static int run(struct fixture *fixture)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_prestate(name, fixture)
        TEST(every_element_that_differs_is_counted),
        TEST(replays_of_small_captures_equal_the_reference_field_1),
        TEST(replays_at_capacity_8192_equal_the_host_field_1),
        TEST(replays_of_full_batches_equal_the_reference_field_1),
        TEST(programmatic_replays_equal_the_reference_field_73),
        cmocka_unit_test_prestate_setup_teardown(
            replays_beside_builds_and_captures_equal_the_reference_field_70, NULL,
            stop_workers, fixture),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(int argc, char **argv)
{
    struct fixture fixture = {
        .n_replays = number_from(argc, argv, 1, "KILN_TEST_REPLAYS", REPLAYS),
        .seed = (uint64_t)number_from(argc, argv, 2, "KILN_TEST_SEED", 1),
    };
    struct kiln_options options = KILN_OPTIONS_INIT;
    struct kiln_error err = {0};
    enum kiln_status status = kiln_gpu_open(0, &fixture.gpu, &err);
    const char *only = argc > 3 ? argv[3] : getenv("KILN_TEST_ONLY");
    int n_failed;

    if (status == KILN_E_DRIVER_MISSING) {
        fprintf(stderr, "skipped: %s\n", err.message);
        return SKIPPED;
    }
    options.no_disk = true;
    if (status != KILN_OK || kiln_create(&options, &fixture.kiln, &err) != KILN_OK) {
        fprintf(stderr, "cannot begin: %s\n", err.message);
        kiln_gpu_close(&fixture.gpu);
        return EXIT_FAILURE;
    }
    if (only != NULL) {
        cmocka_set_test_filter(only);
    }
    n_failed = run(&fixture);
    kiln_destroy(&fixture.kiln);
    kiln_gpu_close(&fixture.gpu);
    return n_failed;
}
