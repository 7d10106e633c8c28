/* SPDX-License-Identifier: Apache-2.0 */
/* Warming: every request gets its turn and is counted, whatever becomes of the others. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "build/store_layer.h"
#include "support/fake_kiln.h"

enum { N = 40 };

struct progress {
    int n_calls;
    int calls_of[N];
    enum kiln_warm_result results[N];
    char message[KILN_MESSAGE_BYTES];
    bool is_busy;
    bool overlapped;
};

static void note(void *user, size_t i_request, enum kiln_warm_result result,
                 int64_t build_ms, const char *message)
{
    struct progress *progress = user;

    progress->overlapped |= progress->is_busy;
    progress->is_busy = true;
    progress->n_calls++;
    progress->calls_of[i_request]++;
    progress->results[i_request] = result;
    assert_true(build_ms >= 0);
    assert_true((message != NULL) == (result == KILN_WARM_FAILED));
    if (message != NULL) {
        snprintf(progress->message, sizeof progress->message, "%s", message);
    }
    progress->is_busy = false;
}

static void fill(struct kiln_request requests[N])
{
    for (int i = 0; i < N; i++) {
        requests[i] = (struct kiln_request){
            .op = KILN_OP_GLOBAL_TOPK,
            .shape = fake_kiln_shape(i + 1),
            .target = i % 2 == 0 ? "sm_90" : "sm_100",
        };
    }
}

static struct kiln_warm_summary warm(struct fake_kiln *fake,
                                     const struct kiln_request *requests,
                                     const struct kiln_warm_options *options)
{
    struct kiln_warm_summary summary = {-1, -1, -1};

    assert_int_equal(kiln_warm(fake->kiln, requests, N, options, &summary, &fake->err),
                     KILN_OK);
    return summary;
}

static void warm_compiles_what_is_missing_and_then_nothing(void **state)
{
    struct fake_kiln *fake = *state;
    struct kiln_request requests[N];
    struct kiln_warm_summary first;
    struct kiln_warm_summary second;
    struct kiln_warm_summary third;

    fill(requests);
    first = warm(fake, requests, NULL);
    second = warm(fake, requests, NULL);
    fake_kiln_close(fake);
    assert_int_equal(fake_kiln_open(fake), KILN_OK);
    third = warm(fake, requests, NULL);

    assert_int_equal(first.n_compiled, N);
    assert_int_equal(first.n_cached + first.n_failed, 0);
    assert_int_equal(second.n_cached, N);
    assert_int_equal(third.n_cached, N);
    assert_int_equal(fake_kiln_compiles(fake), N);
    assert_int_equal(fake_kiln_entries(fake), N);
    assert_int_equal(fake->driver.n_calls, 0);
}

static void warm_reports_each_request_once_and_one_at_a_time(void **state)
{
    struct fake_kiln *fake = *state;
    struct kiln_request requests[N];
    struct progress progress = {0};
    struct kiln_warm_options options = {.n_jobs = 8, .progress = note, .user = &progress};

    fill(requests);
    (void)warm(fake, requests, &options);

    assert_int_equal(progress.n_calls, N);
    assert_false(progress.overlapped);
    for (int i = 0; i < N; i++) {
        assert_int_equal(progress.calls_of[i], 1);
        assert_int_equal(progress.results[i], KILN_WARM_COMPILED);
    }
}

static void warm_goes_on_when_requests_fail(void **state)
{
    struct fake_kiln *fake = *state;
    struct kiln_request requests[N];
    struct progress progress = {0};
    struct kiln_warm_options options = {.progress = note, .user = &progress};
    struct kiln_warm_summary summary;

    fill(requests);
    requests[0].shape.global_topk.topk = -7;
    requests[10].target = "sm_1";
    requests[20].op = (enum kiln_op)99;
    requests[30].op = KILN_OP_STEP;
    requests[39].target = "sm_89"; /* this NVRTC does not know it */
    summary = warm(fake, requests, &options);

    assert_int_equal(summary.n_failed, 5);
    assert_int_equal(summary.n_compiled, N - 5);
    assert_int_equal(progress.results[0], KILN_WARM_FAILED);
    assert_int_equal(progress.results[10], KILN_WARM_FAILED);
    assert_int_equal(progress.results[20], KILN_WARM_FAILED);
    assert_int_equal(progress.results[30], KILN_WARM_FAILED);
    assert_int_equal(progress.results[39], KILN_WARM_FAILED);
    assert_int_equal(fake_kiln_entries(fake), N - 5);
}

static void warm_says_what_was_wrong_with_a_request(void **state)
{
    struct fake_kiln *fake = *state;
    struct kiln_request requests[N];
    struct progress progress = {0};
    struct kiln_warm_options options = {.progress = note, .user = &progress};

    fill(requests);
    requests[17].shape.global_topk.topk = -7;
    (void)warm(fake, requests, &options);

    assert_non_null(strstr(progress.message, "topk = -7"));
    fill(requests);
    requests[18].target = "sm_1";
    (void)warm(fake, requests, &options);

    assert_non_null(strstr(progress.message, "target \"sm_1\" is unknown"));
}

static void warm_compiles_a_request_that_is_listed_twice_once(void **state)
{
    struct fake_kiln *fake = *state;
    struct kiln_request requests[N];
    struct kiln_warm_options options = {.n_jobs = 8};
    struct kiln_warm_summary summary;

    fake->nvrtc.compile_ms = 2;
    for (int i = 0; i < N; i++) {
        requests[i] = (struct kiln_request){
            .op = KILN_OP_GLOBAL_TOPK, .shape = fake_kiln_shape(512), .target = "sm_90"};
    }
    summary = warm(fake, requests, &options);

    assert_int_equal(summary.n_compiled, 1);
    assert_int_equal(summary.n_cached, N - 1);
    assert_int_equal(fake_kiln_compiles(fake), 1);
}

static void warm_rebuilds_what_is_stored_when_asked(void **state)
{
    struct fake_kiln *fake = *state;
    struct kiln_request requests[N];
    struct kiln_warm_options options = {.rebuild = true};
    struct kiln_warm_summary summary;

    fill(requests);
    (void)warm(fake, requests, NULL);
    fake_kiln_close(fake);
    fake_kiln_forget(fake);
    assert_int_equal(fake_kiln_open(fake), KILN_OK);
    summary = warm(fake, requests, &options);

    assert_int_equal(summary.n_compiled, N);
    assert_int_equal(fake_kiln_compiles(fake), N);
    assert_int_equal(fake_kiln_entries(fake), N);
}

static void warm_takes_the_kilns_target_when_none_is_named(void **state)
{
    struct fake_kiln *fake = *state;
    struct kiln_request requests[N];

    fake->options.target = "sm_120";
    assert_int_equal(fake_kiln_open(fake), KILN_OK);
    fill(requests);
    for (int i = 0; i < N; i++) {
        requests[i].target = NULL;
    }
    (void)warm(fake, requests, NULL);

    assert_non_null(strstr(fake->nvrtc.options, "--gpu-architecture=sm_120"));
    assert_int_equal(fake->driver.n_calls, 0);
}

static void warm_of_nothing_is_fine(void **state)
{
    struct fake_kiln *fake = *state;
    struct kiln_warm_summary summary = {-1, -1, -1};

    assert_int_equal(kiln_warm(fake->kiln, NULL, 0, NULL, &summary, NULL), KILN_OK);

    assert_int_equal(summary.n_compiled, 0);
    assert_int_equal(summary.n_cached, 0);
    assert_int_equal(summary.n_failed, 0);
}

static void warm_needs_a_place_that_keeps_it(void **state)
{
    struct fake_kiln *fake = *state;
    struct kiln_request requests[N];
    struct kiln_warm_summary summary = {-1, -1, -1};

    fake->options.no_disk = true;
    assert_int_equal(fake_kiln_open(fake), KILN_OK);
    fill(requests);
    assert_int_equal(kiln_warm(fake->kiln, requests, N, NULL, &summary, &fake->err),
                     KILN_E_STORE);

    assert_int_equal(fake_kiln_compiles(fake), 0);
    assert_int_equal(summary.n_compiled, -1);
}

static void warm_is_refused_where_nothing_is_written(void **state)
{
    struct fake_kiln *fake = *state;
    struct kiln_request requests[N];
    struct kiln_warm_summary summary;

    fake->options.no_write = true;
    assert_int_equal(fake_kiln_open(fake), KILN_OK);
    fill(requests);
    assert_int_equal(kiln_warm(fake->kiln, requests, N, NULL, &summary, &fake->err),
                     KILN_E_STORE);

    assert_non_null(strstr(fake->err.message, "no_write was set"));
    assert_int_equal(fake_kiln_compiles(fake), 0);
}

/* An image build on a full disk must not pass for a warm cache. */
static void warm_fails_what_the_folder_does_not_take(void **state)
{
    struct fake_kiln *fake = *state;
    struct kiln_request requests[N];
    struct progress progress = {0};
    struct kiln_warm_options options = {.progress = note, .user = &progress};
    struct kiln_warm_summary first;
    struct kiln_warm_summary again;

    fill(requests);
    (void)close(fake->kiln->store.layers[0].tmp);
    fake->kiln->store.layers[0].tmp = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    first = warm(fake, requests, &options);
    again = warm(fake, requests, &options);

    assert_int_equal(first.n_failed, N);
    assert_int_equal(again.n_failed, N);
    assert_int_equal(fake_kiln_compiles(fake), N);
    assert_int_equal(fake_kiln_entries(fake), 0);
    assert_non_null(strstr(progress.message, "no cache folder took it"));
}

static void warm_without_nvrtc_fails_each_request(void **state)
{
    struct fake_kiln *fake = *state;
    struct kiln_request requests[N];
    struct kiln_warm_summary summary;

    fake->without_nvrtc = true;
    assert_int_equal(fake_kiln_open(fake), KILN_OK);
    fill(requests);
    summary = warm(fake, requests, NULL);

    assert_int_equal(summary.n_failed, N);
}

#define CLOSED(test)                                                                     \
    cmocka_unit_test_setup_teardown(test, fake_kiln_setup, fake_kiln_teardown)
#define OPEN(test)                                                                       \
    cmocka_unit_test_setup_teardown(test, fake_kiln_setup_open, fake_kiln_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        OPEN(warm_compiles_what_is_missing_and_then_nothing),
        OPEN(warm_reports_each_request_once_and_one_at_a_time),
        OPEN(warm_goes_on_when_requests_fail),
        OPEN(warm_says_what_was_wrong_with_a_request),
        OPEN(warm_compiles_a_request_that_is_listed_twice_once),
        OPEN(warm_rebuilds_what_is_stored_when_asked),
        CLOSED(warm_takes_the_kilns_target_when_none_is_named),
        OPEN(warm_of_nothing_is_fine),
        CLOSED(warm_needs_a_place_that_keeps_it),
        CLOSED(warm_is_refused_where_nothing_is_written),
        OPEN(warm_fails_what_the_folder_does_not_take),
        CLOSED(warm_without_nvrtc_fails_each_request),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
