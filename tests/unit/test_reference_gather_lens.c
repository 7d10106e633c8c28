/* SPDX-License-Identifier: Apache-2.0 */
/* How many raw tokens a request gathers, and for which requests. */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "kiln/ops.h"
#include "base/attr.h"
#include "support/case_check.h"
#include "support/report_check.h"

enum { REQUESTS = 4, POISON = 0x55555555 };

struct batch {
    struct kiln_gather_lens_shape shape;
    struct kiln_gather_lens_args args;
    int32_t start[REQUESTS + 1], seq_lens[REQUESTS], replay[REQUESTS], lens[REQUESTS];
};

/* A window of 4 tokens; 1, 3, 0 and 5 tokens of sequences of 1, 4, 9 and 50. */
static void batch_init(struct batch *b)
{
    *b = (struct batch){
        .shape = {.window = 4},
        .start = {10, 11, 14, 14, 19},
        .seq_lens = {1, 4, 9, 50},
    };
    memset(b->lens, 0x55, sizeof(b->lens));
    b->args = (struct kiln_gather_lens_args){
        .query_start_loc = b->start,
        .seq_lens = b->seq_lens,
        .gather_lens = b->lens,
        .num_requests = REQUESTS,
    };
}

static void run(struct batch *b)
{
    struct kiln_error err = {0};

    if (kiln_reference_gather_lens(&b->shape, &b->args, &err) != KILN_OK) {
        fail_msg("%s", err.message);
    }
}

static void assert_lens(const struct batch *b, const int32_t *want)
{
    for (int i = 0; i < REQUESTS; i++) {
        if (b->lens[i] != want[i]) {
            fail_msg("element %d is %d, expected %d", i, b->lens[i], want[i]);
        }
    }
}

static void gather_lens_are_the_tokens_and_a_window_before_them(void **state)
{
    static const int32_t want[REQUESTS] = {1, 4, 3, 8};
    struct batch b;

    (void)state;
    batch_init(&b);
    run(&b);

    assert_lens(&b, want);
}

static void gather_lens_at_window_1_reach_nothing_before(void **state)
{
    static const int32_t want[REQUESTS] = {1, 3, 0, 5};
    struct batch b;

    (void)state;
    batch_init(&b);
    b.shape.window = 1;
    run(&b);

    assert_lens(&b, want);
}

/* Prefixes of 0, 1, 9 and 45. */
static void gather_lens_reach_no_further_than_the_replay_field_29(void **state)
{
    static const int32_t want[REQUESTS] = {1, 3, 1, 8};
    struct batch b;

    (void)state;
    batch_init(&b);
    b.args.replay_start = b.replay;
    b.replay[0] = 700;
    b.replay[1] = 1;
    b.replay[2] = 8;
    b.replay[3] = INT32_MIN;
    run(&b);

    assert_lens(&b, want);
}

/* A padding request's length of -1 once was 4,294,967,295. */
static void gather_lens_of_wild_sequences_are_their_tokens_field_9(void **state)
{
    static const int32_t lens[] = {INT32_MIN, -1, 0};
    static const int32_t want[REQUESTS] = {1, 3, 0, 5};

    (void)state;
    for (size_t i = 0; i < KI_COUNT_OF(lens); i++) {
        struct batch b;
        batch_init(&b);
        for (int r = 0; r < REQUESTS; r++) {
            b.seq_lens[r] = lens[i];
        }
        run(&b);
        assert_lens(&b, want);
    }
}

static void gather_lens_of_an_all_zero_batch_are_zero_field_10(void **state)
{
    static const int32_t want[REQUESTS] = {0, 0, 0, 0};
    struct batch b;

    (void)state;
    batch_init(&b);
    memset(b.start, 0, sizeof(b.start));
    memset(b.seq_lens, 0, sizeof(b.seq_lens));
    run(&b);

    assert_lens(&b, want);
}

static void gather_lens_begin_with_the_first_request_field_28(void **state)
{
    static const struct {
        int32_t first;
        int32_t want[REQUESTS];
    } cases[] = {
        {0, {1, 4, 3, 8}},
        {INT32_MIN, {1, 4, 3, 8}},
        {1, {4, 3, 8, POISON}},
        {3, {8, POISON, POISON, POISON}},
        {4, {POISON, POISON, POISON, POISON}},
        {INT32_MAX, {POISON, POISON, POISON, POISON}},
    };

    (void)state;
    for (size_t i = 0; i < KI_COUNT_OF(cases); i++) {
        struct batch b;
        batch_init(&b);
        b.args.first_request =
            (struct kiln_count){.value = cases[i].first, .kind = KILN_COUNT_VALUE};
        run(&b);
        assert_lens(&b, cases[i].want);
        batch_init(&b);
        b.args.first_request =
            (struct kiln_count){.address = &cases[i].first, .kind = KILN_COUNT_DEVICE};
        run(&b);
        assert_lens(&b, cases[i].want);
    }
}

static void gather_lens_at_the_extremes_never_wrap(void **state)
{
    static const int32_t want[REQUESTS] = {INT32_MAX, INT32_MAX, 0, INT32_MAX - 1};
    struct batch b;

    (void)state;
    batch_init(&b);
    b.shape.window = INT32_MAX;
    b.start[0] = INT32_MIN;
    b.start[1] = 0; /* 2^31 tokens */
    b.start[2] = b.start[3] = INT32_MAX;
    b.start[4] = INT32_MAX;
    b.seq_lens[1] = b.seq_lens[3] = INT32_MAX;
    b.seq_lens[2] = INT32_MIN;
    run(&b);

    assert_lens(&b, want);
}

static void gather_lens_of_no_requests_need_no_arrays(void **state)
{
    struct batch b;

    (void)state;
    batch_init(&b);
    b.args = (struct kiln_gather_lens_args){.num_requests = 0};
    run(&b);

    assert_int_equal(b.lens[0], POISON);
}

static void check_reports(struct batch *b, const struct kiln_report_entry *want, size_t n)
{
    struct report_room room;

    b->args.report = report_begin(&room);
    run(b);
    report_check(&room, want, n);
}

static void gather_lens_reports_a_first_request_out_of_range(void **state)
{
    static const int32_t firsts[] = {INT32_MIN, -1, REQUESTS + 1, INT32_MAX};
    struct batch b;

    (void)state;
    for (size_t i = 0; i < KI_COUNT_OF(firsts); i++) {
        const struct kiln_report_entry want = {KILN_OP_GATHER_LENS, -1, -1,
                                               KILN_REASON_FIRST_REQUEST, firsts[i]};
        batch_init(&b);
        b.args.first_request =
            (struct kiln_count){.value = firsts[i], .kind = KILN_COUNT_VALUE};
        check_reports(&b, &want, 1);
        b.args.first_request =
            (struct kiln_count){.address = &firsts[i], .kind = KILN_COUNT_DEVICE};
        check_reports(&b, &want, 1);
        b.args.num_requests = 0;
        check_reports(&b, NULL, 0);
    }
    for (int32_t first = 0; first <= REQUESTS; first++) {
        batch_init(&b);
        b.args.first_request =
            (struct kiln_count){.value = first, .kind = KILN_COUNT_VALUE};
        check_reports(&b, NULL, 0);
    }
}

/* Requests 1 and 3 are rows 0 and 2; request 0, as long, decodes. */
static void gather_lens_reports_a_sum_past_int32(void **state)
{
    static const struct kiln_report_entry want[] = {
        {KILN_OP_GATHER_LENS, 0, -1, KILN_REASON_LENGTH, INT64_C(2147483648)},
        {KILN_OP_GATHER_LENS, 2, -1, KILN_REASON_LENGTH, INT64_C(2147483648)},
    };
    struct batch b;

    (void)state;
    batch_init(&b);
    memcpy(b.start, (int32_t[]){INT32_MIN, 0, INT32_MAX - 2, INT32_MAX - 2, INT32_MAX},
           sizeof(b.start));
    b.shape.window = INT32_MAX;
    b.seq_lens[1] = INT32_MAX;
    b.seq_lens[2] = INT32_MAX;
    b.seq_lens[3] = INT32_MAX;
    b.args.replay_start = b.replay;
    b.replay[3] = INT32_MIN;
    b.replay[1] = -1;
    b.args.first_request = (struct kiln_count){.value = 1, .kind = KILN_COUNT_VALUE};
    check_reports(&b, want, KI_COUNT_OF(want));
}

static void gather_lens_refuses_no_window(void **state)
{
    struct kiln_error err = {0};
    struct batch b;

    (void)state;
    batch_init(&b);
    b.shape.window = 0;

    assert_int_equal(kiln_reference_gather_lens(&b.shape, &b.args, &err), KILN_E_SHAPE);
    assert_non_null(strstr(err.message, "window = 0"));
}

static void gather_lens_equal_the_given_cases(void **state)
{
    (void)state;
    for (size_t i = 0; i < 12; i++) {
        case_check("gather_lens", i);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gather_lens_are_the_tokens_and_a_window_before_them),
        cmocka_unit_test(gather_lens_at_window_1_reach_nothing_before),
        cmocka_unit_test(gather_lens_reach_no_further_than_the_replay_field_29),
        cmocka_unit_test(gather_lens_of_wild_sequences_are_their_tokens_field_9),
        cmocka_unit_test(gather_lens_of_an_all_zero_batch_are_zero_field_10),
        cmocka_unit_test(gather_lens_begin_with_the_first_request_field_28),
        cmocka_unit_test(gather_lens_at_the_extremes_never_wrap),
        cmocka_unit_test(gather_lens_of_no_requests_need_no_arrays),
        cmocka_unit_test(gather_lens_reports_a_first_request_out_of_range),
        cmocka_unit_test(gather_lens_reports_a_sum_past_int32),
        cmocka_unit_test(gather_lens_refuses_no_window),
        cmocka_unit_test(gather_lens_equal_the_given_cases),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
