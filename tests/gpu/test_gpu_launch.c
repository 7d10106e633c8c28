/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every kernel on a GPU against the reference, to the integer: launched, captured, replayed
 * over other contents, from many threads, beside a thread that prepares; and the checked
 * variant, with what it reports.
 *
 * KILN_TEST_SEED and KILN_TEST_CASES, or the first two arguments: where the random cases
 * start, and how many each op gets.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/attr.h"
#include "device_case.h"
#include "plan/ops.h"
#include "support/tmpdir.h"

enum {
    SKIPPED = 77, /* the exit code for "not run" */
    CASES_OF_SHAPE = 24,
    REPLAYS = 6,
    N_THREADS = 8,
    THREAD_ROUNDS = 100,
};

struct fixture {
    struct tmpdir dir;
    struct kiln_gpu *gpu;
    struct kiln *kiln;
    struct kiln *checked; /* whose kernels report */
    struct kiln_error err;
    uint64_t seed;
    int64_t n_cases; /* of each op */
};

/* A seed of its own for each use, all from the one that is printed. */
static uint64_t seed_of(const struct fixture *fixture, int64_t use)
{
    struct random_source source = {fixture->seed + (uint64_t)use * 1000003};
    return random_next(&source);
}

static void init(struct device_case *out, const struct fixture *fixture, enum kiln_op op,
                 const struct kiln_shape *shape, const struct random_options *options,
                 uint64_t seed)
{
    const struct device_place place = {fixture->gpu, fixture->kiln};
    if (!device_case_init(out, &place, op, shape, options, seed)) {
        fail_msg("%s", out->why);
    }
}

static void launch_cases(const struct fixture *fixture, enum kiln_op op)
{
    const struct random_options options = RANDOM_OPTIONS_INIT;
    struct kiln_shape shape;
    for (int64_t i = 0; i < fixture->n_cases; i++) {
        struct device_case device;
        random_shape(op, seed_of(fixture, i / CASES_OF_SHAPE), &shape);
        init(&device, fixture, op, &shape, &options, seed_of(fixture, i));
        if (!device_case_launch(&device)) {
            fail_msg("case %lld: %s", (long long)i, device.why);
        }
        device_case_finish(&device);
    }
}

#define LAUNCHED(name, op)                                                               \
    static void name##_launched_equals_reference(void **state)                           \
    {                                                                                    \
        launch_cases(*state, op);                                                        \
    }
KI_OPS(LAUNCHED)

/* One capture, then other contents, other counts and other live rows at each replay. */
static void replay_cases(const struct fixture *fixture, enum kiln_op op)
{
    struct random_options options = RANDOM_OPTIONS_INIT;
    struct kiln_shape shape;
    options.device_counts = true;
    for (int64_t i = 0; i < fixture->n_cases / REPLAYS; i++) {
        struct device_case device;
        random_shape(op, seed_of(fixture, i / CASES_OF_SHAPE), &shape);
        options.n_tokens = i % 3 == 0 ? 64 : -1;
        init(&device, fixture, op, &shape, &options, seed_of(fixture, i));
        if (!device_case_capture(&device, (enum kiln_capture_mode)(i % 3))) {
            fail_msg("case %lld: %s", (long long)i, device.why);
        }
        for (int64_t j = 0; j < REPLAYS; j++) {
            random_case_refill(&device.random, seed_of(fixture, i * REPLAYS + j));
            if (!device_case_replay(&device)) {
                fail_msg("case %lld, replay %lld: %s", (long long)i, (long long)j,
                         device.why);
            }
        }
        device_case_finish(&device);
    }
}

#define REPLAYED(name, op)                                                               \
    static void name##_replayed_equals_reference_field_1(void **state)                   \
    {                                                                                    \
        replay_cases(*state, op);                                                        \
    }
KI_OPS(REPLAYED)

/* One launch, then a graph twice: each finding is reported by each of them. */
static void check_case(struct device_case *device)
{
    bool ok = device_case_begin_report(device) && device_case_launch(device) &&
              device_case_compare_report(device, 1) && device_case_begin_report(device) &&
              device_case_capture(device, KILN_CAPTURE_GLOBAL) &&
              device_case_replay(device) && device_case_replay(device) &&
              device_case_compare_report(device, 2);
    if (!ok) {
        fail_msg("%s", device->why);
    }
}

static void check_cases(const struct fixture *fixture, enum kiln_op op)
{
    struct fixture checked = *fixture;
    struct random_options options = RANDOM_OPTIONS_INIT;
    struct kiln_shape shape;
    checked.kiln = fixture->checked;
    for (int64_t i = 0; i < fixture->n_cases / REPLAYS; i++) {
        struct device_case device;
        random_shape(op, seed_of(fixture, i / CASES_OF_SHAPE), &shape);
        options.device_counts = i % 2 != 0;
        init(&device, &checked, op, &shape, &options, seed_of(fixture, i));
        check_case(&device);
        device_case_finish(&device);
    }
}

#define CHECKED(name, op)                                                                \
    static void name##_checked_reports_as_the_reference_field_27(void **state)           \
    {                                                                                    \
        check_cases(*state, op);                                                         \
    }
KI_OPS(CHECKED)

static const struct kiln_shape served_global_topk = {
    .global_topk = {.topk = 512,
                    .topk_stride = 512,
                    .slots_stride = 512,
                    .block_size = 64,
                    .table_width = 4096,
                    .table_stride = 4096,
                    .dcp_world = 1,
                    .dcp_interleave = 1}};
static const struct kiln_shape served_c128a_topk = {.c128a_topk = {.compress_ratio = 128,
                                                                   .capacity = 8192,
                                                                   .block_size = 2,
                                                                   .table_width = 4096,
                                                                   .table_stride = 4096,
                                                                   .dcp_world = 1,
                                                                   .dcp_interleave = 1}};
static const struct kiln_shape served_combine_topk_swa = {
    .combine_topk_swa = {.topk = 512,
                         .topk_stride = 512,
                         .window = 128,
                         .compress_ratio = 4,
                         .image_width = 0,
                         .align = 128,
                         .combined_stride = 640}};

static void replay_or_fail(struct device_case *device, const char *what)
{
    if (!device_case_replay(device)) {
        fail_msg("%s: %s", what, device->why);
    }
}

/* Captured over all rows, replayed with ever fewer live ones. */
static void replay_with_fewer_live_rows_equals_reference_field_1(void **state)
{
    static const int32_t live[] = {64, 63, 2, 1, 0, -1};
    const struct fixture *fixture = *state;
    const struct random_options options = {64, 8, true};
    struct device_case device;
    init(&device, fixture, KILN_OP_GLOBAL_TOPK, &served_global_topk, &options,
         seed_of(fixture, 1));
    assert_true(device_case_capture(&device, KILN_CAPTURE_GLOBAL));

    for (size_t i = 0; i < sizeof(live) / sizeof(live[0]); i++) {
        random_case_refill(&device.random, seed_of(fixture, (int64_t)i));
        random_case_set(&device.random, "live_tokens", 0, 0, live[i]);
        replay_or_fail(&device, "live rows");
    }

    device_case_finish(&device);
}

/* Every row at one position, and a width that holds it. */
static void set_context(struct random_case *random, int64_t context)
{
    int64_t n_tokens = random->extents[KILN_EXTENT_TOKENS];
    for (int64_t t = 0; t < n_tokens; t++) {
        random_case_set(random, "positions", t, 0, context - 1 - t);
        random_case_set(random, "token_to_req", t, 0, t % 8);
    }
    random_case_set(random, "active_width", 0, 0,
                    kiln_c128a_active_width(context, 128, 8192));
    random_case_set(random, "live_tokens", 0, 0, n_tokens);
    random_case_set(random, "num_decode_tokens", 0, 0, n_tokens / 2);
}

/* Captured over small contexts, replayed over long ones, and back. */
static void replay_with_longer_contexts_equals_reference_field_1(void **state)
{
    static const int64_t contexts[] = {100, 16511, 16512, 300000, 1048576, 100};
    const struct fixture *fixture = *state;
    const struct random_options options = {24, 8, true};
    struct device_case device;
    init(&device, fixture, KILN_OP_C128A_TOPK, &served_c128a_topk, &options,
         seed_of(fixture, 2));
    set_context(&device.random, 100);
    assert_true(device_case_capture(&device, KILN_CAPTURE_THREAD_LOCAL));

    for (size_t i = 0; i < sizeof(contexts) / sizeof(contexts[0]); i++) {
        random_case_refill(&device.random, seed_of(fixture, (int64_t)i));
        set_context(&device.random, contexts[i]);
        replay_or_fail(&device, "contexts");
    }

    device_case_finish(&device);
}

/* A long step over all rows, then ever smaller ones over the outputs that it left. */
static void replay_leaves_no_stale_slots_in_any_row_field_2(void **state)
{
    static const int32_t live[] = {64, 7, 2, 1, 0};
    const struct fixture *fixture = *state;
    const struct random_options options = {64, 8, true};
    struct device_case device;
    init(&device, fixture, KILN_OP_GLOBAL_TOPK, &served_global_topk, &options,
         seed_of(fixture, 8));
    assert_true(device_case_capture(&device, KILN_CAPTURE_GLOBAL));

    for (size_t i = 0; i < sizeof(live) / sizeof(live[0]); i++) {
        random_case_refill(&device.random, seed_of(fixture, (int64_t)i));
        for (int64_t row = 0; row < 64; row++) {
            random_case_set(&device.random, "token_to_req", row, 0, row % 8);
        }
        random_case_set(&device.random, "live_tokens", 0, 0, live[i]);
        if (i > 0) {
            device_case_keep_outputs(&device);
        }
        replay_or_fail(&device, "stale rows");
    }

    device_case_finish(&device);
}

/* Of the last replay: the rows before the first of no length. */
static int64_t n_live_rows(const struct device_case *device)
{
    const int lens = random_arg_index(device->random.info, "lens");
    int64_t row = 0;
    while (row < device->random.arrays[lens].rows &&
           random_load(&device->random, device->got, lens, row, 0) > 0) {
        row++;
    }
    return row;
}

static int64_t live_rows_of_replay(const struct fixture *fixture, bool device_counts,
                                   int32_t at_capture, int32_t at_replay)
{
    enum { N_TOKENS = 16 };
    const struct random_options options = {N_TOKENS, 1, device_counts};
    struct device_case device;
    init(&device, fixture, KILN_OP_GLOBAL_TOPK, &served_global_topk, &options,
         seed_of(fixture, 9));
    struct kiln_count *count =
        &device.random.counts[random_arg_index(device.random.info, "live_tokens")];
    random_case_set(&device.random, "live_tokens", 0, 0, at_capture);
    if (!device_counts) {
        *count = (struct kiln_count){.kind = KILN_COUNT_VALUE, .value = at_capture};
    }
    for (int64_t row = 0; row < N_TOKENS; row++) {
        random_case_set(&device.random, "token_to_req", row, 0, 0);
        random_case_set(&device.random, "is_valid_token", row, 0, 1);
        random_case_set(&device.random, "topk_indices", row, 0, 0);
    }
    random_case_set(&device.random, "block_table", 0, 0, 1);
    assert_true(device_case_capture(&device, KILN_CAPTURE_GLOBAL));

    /* a count by value is the graph's own: what the caller has now is not asked */
    if (device_counts) {
        random_case_set(&device.random, "live_tokens", 0, 0, at_replay);
    }
    replay_or_fail(&device, device_counts ? "by address" : "by value");

    int64_t n_live = n_live_rows(&device);
    device_case_finish(&device);
    return n_live;
}

/* By address a count is read at each replay, by value it stays what it was at capture. */
static void replay_reads_counts_by_address_and_freezes_values_field_30(void **state)
{
    assert_int_equal(live_rows_of_replay(*state, true, 5, 11), 11);
    assert_int_equal(live_rows_of_replay(*state, true, 11, 5), 5);
    assert_int_equal(live_rows_of_replay(*state, false, 5, 11), 5);
}

/* What a server captures over, before there is any request. */
static void launch_of_all_zero_batches_equals_reference_field_10(void **state)
{
    const struct fixture *fixture = *state;
    const struct random_options options = {16, 4, false};
    struct device_case device;
    init(&device, fixture, KILN_OP_COMBINE_TOPK_SWA, &served_combine_topk_swa, &options,
         seed_of(fixture, 3));
    for (int64_t b = 0; b < 4; b++) {
        random_case_set(&device.random, "seq_lens", b, 0, 0);
        random_case_set(&device.random, "gather_lens", b, 0, 0);
        random_case_set(&device.random, "query_start_loc", b, 0, 0);
    }
    random_case_set(&device.random, "query_start_loc", 4, 0, 0);

    if (!device_case_launch(&device)) {
        fail_msg("%s", device.why);
    }

    device_case_finish(&device);
}

/* Prefill chunks of these lengths, one request after the other. */
static void launch_prefill(const struct fixture *fixture, int64_t n_requests,
                           int64_t tokens_of_request)
{
    const int64_t n_tokens = n_requests * tokens_of_request;
    const struct random_options options = {n_tokens, n_requests, true};
    struct device_case device;
    init(&device, fixture, KILN_OP_COMBINE_TOPK_SWA, &served_combine_topk_swa, &options,
         seed_of(fixture, 4));
    random_case_set(&device.random, "workspace_rows", 0, 0, 6000);
    random_case_set(&device.random, "swa_base", 0, 0, 3000);
    for (int64_t b = 0; b <= n_requests; b++) {
        random_case_set(&device.random, "query_start_loc", b, 0, b * tokens_of_request);
    }
    for (int64_t b = 0; b < n_requests; b++) {
        random_case_set(&device.random, "seq_lens", b, 0, 700 * b + tokens_of_request);
        random_case_set(&device.random, "gather_lens", b, 0,
                        tokens_of_request + (b > 0 ? 127 : 0));
    }

    if (!device_case_launch(&device)) {
        fail_msg("%s", device.why);
    }

    device_case_finish(&device);
}

static void combine_of_two_requests_of_300_rows_equals_reference(void **state)
{
    launch_prefill(*state, 2, 300);
}

static void combine_of_one_request_of_1000_rows_equals_reference(void **state)
{
    launch_prefill(*state, 1, 1000);
}

static void launch_of_zero_rows_succeeds_and_does_nothing(void **state)
{
#define NUMBER(name, op) op,
    static const enum kiln_op ops[] = {KI_OPS(NUMBER)};
    const struct fixture *fixture = *state;
    const struct random_options options = {0, 3, false};

    for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
        struct device_case device;
        struct kiln_shape shape;
        random_shape(ops[i], seed_of(fixture, 5), &shape);
        init(&device, fixture, ops[i], &shape, &options, seed_of(fixture, 5));
        if (!device_case_launch(&device)) {
            fail_msg("%s", device.why);
        }
        device_case_finish(&device);
    }
}

/* Row offsets pass 2^31 elements: the last row lies beyond 8 GiB. */
static void launch_over_wide_strides_reaches_the_last_row(void **state)
{
    enum { STRIDE = 1 << 26, ROWS = 34, TOPK = 4 };
    struct fixture *fixture = *state;
    struct kiln_shape shape = {.global_topk = {.topk = TOPK,
                                               .topk_stride = TOPK,
                                               .slots_stride = STRIDE,
                                               .block_size = 64,
                                               .table_width = 8,
                                               .table_stride = 8,
                                               .dcp_world = 1,
                                               .dcp_interleave = 1}};
    const struct random_options options = {ROWS, 8, true};
    const size_t row_bytes = (size_t)STRIDE * sizeof(int32_t);
    struct kiln_shape narrow = shape;
    const struct kiln_kernel *wide = NULL;
    union random_args args;
    struct device_case device;
    void *slots = NULL;
    int slots_arg;
    narrow.global_topk.slots_stride = TOPK;
    init(&device, fixture, KILN_OP_GLOBAL_TOPK, &narrow, &options, seed_of(fixture, 6));
    random_case_set(&device.random, "live_tokens", 0, 0, ROWS);
    if (!device_case_launch(&device)) {
        fail_msg("%s", device.why);
    }
    slots_arg = random_arg_index(device.random.info, "slots");
    assert_int_equal(kiln_prepare(fixture->kiln, KILN_OP_GLOBAL_TOPK, &shape, NULL, &wide,
                                  &fixture->err),
                     KILN_OK);
    assert_int_equal(
        kiln_gpu_alloc(fixture->gpu, row_bytes * ROWS, &slots, &fixture->err), KILN_OK);
    random_case_bind(&device.random, device.device, &args);
    args.global_topk.slots = slots;

    assert_int_equal(
        kiln_launch(wide, &args, kiln_gpu_stream(fixture->gpu), &fixture->err), KILN_OK);

    for (int64_t row = 0; row < ROWS; row++) {
        const char *at = (const char *)slots + (size_t)row * row_bytes;
        int32_t got[TOPK];
        assert_int_equal(
            kiln_gpu_copy_out(fixture->gpu, got, at, sizeof(got), &fixture->err),
            KILN_OK);
        for (int64_t column = 0; column < TOPK; column++) {
            assert_int_equal(got[column], random_load(&device.random, device.got,
                                                      slots_arg, row, column));
        }
    }
    kiln_gpu_free(fixture->gpu, slots);
    device_case_finish(&device);
}

static void prepare_refuses_a_capturing_stream_and_touches_nothing(void **state)
{
    struct fixture *fixture = *state;
    const struct kiln_kernel *kernel = NULL;
    struct kiln_gpu_graph *graph = NULL;
    struct kiln_stats before, after;
    struct kiln_shape shape = served_global_topk;
    shape.global_topk.topk = 509; /* prepared by no other test */
    kiln_get_stats(fixture->kiln, &before);

    for (int mode = KILN_CAPTURE_GLOBAL; mode <= KILN_CAPTURE_RELAXED; mode++) {
        assert_int_equal(kiln_gpu_capture_begin(
                             fixture->gpu, (enum kiln_capture_mode)mode, &fixture->err),
                         KILN_OK);
        enum kiln_status status =
            kiln_prepare(fixture->kiln, KILN_OP_GLOBAL_TOPK, &shape,
                         kiln_gpu_stream(fixture->gpu), &kernel, &fixture->err);
        enum kiln_status ended = kiln_gpu_capture_end(fixture->gpu, &graph, NULL);
        kiln_gpu_graph_destroy(fixture->gpu, &graph);
        assert_int_equal(status, KILN_E_CAPTURING);
        assert_int_equal(ended, KILN_OK);
        assert_null(kernel);
    }

    kiln_get_stats(fixture->kiln, &after);
    assert_int_equal(after.n_compiled, before.n_compiled);
    assert_int_equal(after.n_loaded, before.n_loaded);
}

/* One of several threads beside the test's. cmocka's asserts are for the test's alone. */
struct worker {
    pthread_t thread;
    const struct fixture *fixture;
    struct kiln_gpu *gpu; /* its own: a stream, and the context current */
    const struct kiln_shape *shape;
    pthread_barrier_t *barrier;
    uint64_t seed;
    bool ok;
    char why[RANDOM_WHY];
};

static bool note(struct worker *worker, enum kiln_status status,
                 const struct kiln_error *err)
{
    if (status != KILN_OK) {
        snprintf(worker->why, sizeof(worker->why), "%s: %.900s",
                 kiln_status_name((int)status), err->message);
    }
    return status == KILN_OK;
}

/* From the second meeting to the fourth the test's thread holds a capture in global mode.
 */
static void *prepare_beside_a_capture(void *user)
{
    struct worker *worker = user;
    struct kiln *kiln = worker->fixture->kiln;
    struct kiln_error err = {.status = KILN_OK};
    const struct kiln_kernel *kernel = NULL;
    worker->ok = note(worker, kiln_gpu_open(0, &worker->gpu, &err), &err);
    pthread_barrier_wait(worker->barrier);
    pthread_barrier_wait(worker->barrier);
    worker->ok =
        worker->ok &&
        note(worker, kiln_build(kiln, KILN_OP_GLOBAL_TOPK, worker->shape, NULL, &err),
             &err) &&
        note(worker,
             kiln_prepare(kiln, KILN_OP_GLOBAL_TOPK, worker->shape,
                          kiln_gpu_stream(worker->gpu), &kernel, &err),
             &err);
    pthread_barrier_wait(worker->barrier);
    pthread_barrier_wait(worker->barrier);
    kiln_gpu_close(&worker->gpu);
    return NULL;
}

static void capture_survives_a_thread_that_builds_and_prepares_field_70(void **state)
{
    const struct fixture *fixture = *state;
    const struct random_options options = {16, 4, true};
    struct kiln_error err = {.status = KILN_OK};
    pthread_barrier_t barrier;
    struct device_case device;
    struct kiln_shape shape = served_global_topk;
    struct worker worker = {.fixture = fixture, .shape = &shape, .barrier = &barrier};
    union random_args args;
    shape.global_topk.topk = 507; /* prepared by no other test */
    init(&device, fixture, KILN_OP_GLOBAL_TOPK, &served_global_topk, &options,
         seed_of(fixture, 7));
    random_case_bind(&device.random, device.device, &args);
    assert_int_equal(pthread_barrier_init(&barrier, NULL, 2), 0);
    assert_int_equal(
        pthread_create(&worker.thread, NULL, prepare_beside_a_capture, &worker), 0);

    pthread_barrier_wait(&barrier);
    enum kiln_status begun =
        kiln_gpu_capture_begin(fixture->gpu, KILN_CAPTURE_GLOBAL, &err);
    pthread_barrier_wait(&barrier);
    enum kiln_status launched =
        kiln_launch(device.kernel, &args, kiln_gpu_stream(fixture->gpu), &err);
    pthread_barrier_wait(&barrier);
    enum kiln_status ended = kiln_gpu_capture_end(fixture->gpu, &device.graph, &err);
    pthread_barrier_wait(&barrier);
    pthread_join(worker.thread, NULL);
    pthread_barrier_destroy(&barrier);

    assert_int_equal(begun, KILN_OK);
    assert_int_equal(launched, KILN_OK);
    if (!worker.ok || ended != KILN_OK) {
        fail_msg("worker: %s; capture: %s", worker.why, err.message);
    }
    replay_or_fail(&device, "after the capture");
    device_case_finish(&device);
}

static bool launch_rounds(struct worker *worker)
{
    const struct random_options options = RANDOM_OPTIONS_INIT;
    struct device_case device;
    struct random_source seeds = {worker->seed};
    const struct device_place place = {worker->gpu, worker->fixture->kiln};
    bool ok = true;
    for (int i = 0; ok && i < THREAD_ROUNDS; i++) {
        ok = device_case_init(&device, &place, KILN_OP_GLOBAL_TOPK, worker->shape,
                              &options, random_next(&seeds)) &&
             device_case_launch(&device);
        memcpy(worker->why, device.why, sizeof(worker->why));
        device_case_finish(&device);
    }
    return ok;
}

static void *launch_on_own_stream(void *user)
{
    struct worker *worker = user;
    struct kiln_error err = {.status = KILN_OK};
    worker->ok =
        note(worker, kiln_gpu_open(0, &worker->gpu, &err), &err) && launch_rounds(worker);
    kiln_gpu_close(&worker->gpu);
    return NULL;
}

static void
launch_from_eight_threads_on_own_streams_equals_reference_field_72(void **state)
{
    const struct fixture *fixture = *state;
    struct worker workers[N_THREADS] = {{.ok = false}};
    for (int i = 0; i < N_THREADS; i++) {
        workers[i].fixture = fixture;
        workers[i].shape = &served_global_topk;
        workers[i].seed = seed_of(fixture, 100 + i);
        assert_int_equal(
            pthread_create(&workers[i].thread, NULL, launch_on_own_stream, &workers[i]),
            0);
    }

    for (int i = 0; i < N_THREADS; i++) {
        pthread_join(workers[i].thread, NULL);
    }

    for (int i = 0; i < N_THREADS; i++) {
        if (!workers[i].ok) {
            fail_msg("thread %d: %s", i, workers[i].why);
        }
    }
}

static int64_t number_from(int argc, char **argv, int arg, const char *variable,
                           int64_t otherwise)
{
    const char *text = argc > arg ? argv[arg] : getenv(variable);
    return text != NULL ? strtoll(text, NULL, 0) : otherwise;
}

static void log_line(void *user, enum kiln_log_level level, const char *text)
{
    (void)user;
    fprintf(stderr, "kiln[%d]: %s\n", (int)level, text);
}

static enum kiln_status open_kiln(struct fixture *fixture)
{
    struct kiln_options options = KILN_OPTIONS_INIT;
    options.cache_dir = fixture->dir.path;
    options.log_fn = log_line;
    KI_TRY(kiln_create(&options, &fixture->kiln, &fixture->err));
    options.checked = true;
    return kiln_create(&options, &fixture->checked, &fixture->err);
}

static void close_all(struct fixture *fixture)
{
    kiln_destroy(&fixture->kiln);
    kiln_destroy(&fixture->checked);
    kiln_gpu_close(&fixture->gpu);
    tmpdir_remove(&fixture->dir);
}

static int run(struct fixture *fixture)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_prestate(name, fixture)
        TEST(prepare_refuses_a_capturing_stream_and_touches_nothing),
#define TEST_LAUNCHED(name, op) TEST(name##_launched_equals_reference),
        KI_OPS(TEST_LAUNCHED)
#define TEST_REPLAYED(name, op) TEST(name##_replayed_equals_reference_field_1),
            KI_OPS(TEST_REPLAYED)
#define TEST_CHECKED(name, op) TEST(name##_checked_reports_as_the_reference_field_27),
                KI_OPS(TEST_CHECKED)
                    TEST(replay_with_fewer_live_rows_equals_reference_field_1),
        TEST(replay_with_longer_contexts_equals_reference_field_1),
        TEST(replay_leaves_no_stale_slots_in_any_row_field_2),
        TEST(replay_reads_counts_by_address_and_freezes_values_field_30),
        TEST(launch_of_all_zero_batches_equals_reference_field_10),
        TEST(combine_of_two_requests_of_300_rows_equals_reference),
        TEST(combine_of_one_request_of_1000_rows_equals_reference),
        TEST(launch_of_zero_rows_succeeds_and_does_nothing),
        TEST(launch_over_wide_strides_reaches_the_last_row),
        TEST(capture_survives_a_thread_that_builds_and_prepares_field_70),
        TEST(launch_from_eight_threads_on_own_streams_equals_reference_field_72),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(int argc, char **argv)
{
    struct fixture fixture = {.gpu = NULL};
    struct kiln_gpu_info info;
    enum kiln_status status = kiln_gpu_open(0, &fixture.gpu, &fixture.err);
    if (status == KILN_E_DRIVER_MISSING) {
        fprintf(stderr, "skipped: %s\n", fixture.err.message);
        return SKIPPED;
    }
    if (status != KILN_OK) {
        fprintf(stderr, "cannot open GPU 0: %s\n", fixture.err.message);
        return EXIT_FAILURE;
    }
    fixture.seed = (uint64_t)number_from(argc, argv, 1, "KILN_TEST_SEED", 1);
    fixture.n_cases = number_from(argc, argv, 2, "KILN_TEST_CASES", 1200);
    kiln_gpu_get_info(fixture.gpu, &info);
    fprintf(stderr, "%s, %s, driver %d; seed %llu, %lld cases per op\n", info.name,
            info.target, (int)info.driver_version, (unsigned long long)fixture.seed,
            (long long)fixture.n_cases);
    tmpdir_create(&fixture.dir);
    if (open_kiln(&fixture) != KILN_OK) {
        fprintf(stderr, "no kiln: %s\n", fixture.err.message);
        close_all(&fixture);
        return EXIT_FAILURE;
    }
    int n_failed = run(&fixture);
    close_all(&fixture);
    return n_failed;
}
