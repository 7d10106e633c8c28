/* SPDX-License-Identifier: Apache-2.0 */
/* How far a token sees inside its image span: which span, how far, and who sees nothing. */
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

enum { TOKENS = 8, REQUESTS = 2, SPANS = 3, POISON = 0x55555555 };

/* Request 0: tokens 0-4 at positions 10-14, spans [11, 13] and [13, 20]; request 1: tokens 5-6
 * at positions 0-1, span [0, 0]; token 7 is of none. */
struct batch {
    struct kiln_image_visibility_shape shape;
    struct kiln_image_visibility_args args;
    int32_t start[REQUESTS + 1], seq_lens[REQUESTS], span_start[REQUESTS + 1];
    int32_t begin[SPANS], end[SPANS], left[TOKENS], right[TOKENS];
};

static void batch_init(struct batch *b)
{
    *b = (struct batch){
        .shape = {.image_width = 8},
        .start = {0, 5, 7},
        .seq_lens = {15, 2},
        .span_start = {0, 2, 3},
        .begin = {11, 13, 0},
        .end = {13, 20, 0},
    };
    memset(b->left, 0x55, sizeof(b->left));
    memset(b->right, 0x55, sizeof(b->right));
    b->args = (struct kiln_image_visibility_args){
        .query_start_loc = b->start,
        .seq_lens = b->seq_lens,
        .span_start_loc = b->span_start,
        .span_begin = b->begin,
        .span_end = b->end,
        .left_visible = b->left,
        .right_visible = b->right,
        .num_tokens = TOKENS,
        .num_requests = REQUESTS,
        .num_spans = SPANS,
    };
}

static void run(struct batch *b)
{
    struct kiln_error err = {0};

    if (kiln_reference_image_visibility(&b->shape, &b->args, &err) != KILN_OK) {
        fail_msg("%s", err.message);
    }
}

static void assert_visible(const struct batch *b, const int32_t *left,
                           const int32_t *right)
{
    for (int t = 0; t < TOKENS; t++) {
        if (b->left[t] != left[t] || b->right[t] != right[t]) {
            fail_msg("token %d sees %d and %d, expected %d and %d", t, b->left[t],
                     b->right[t], left[t], right[t]);
        }
    }
}

static const int32_t nothing[TOKENS] = {0};

/* Position 13 is in both spans of its request: the last wins. */
static void image_visibility_is_the_distance_to_both_ends_of_the_last_span(void **state)
{
    static const int32_t left[TOKENS] = {0, 0, 1, 0, 1, 0, 0, 0};
    static const int32_t right[TOKENS] = {0, 2, 1, 7, 6, 0, 0, 0};
    struct batch b;

    (void)state;
    batch_init(&b);
    run(&b);

    assert_visible(&b, left, right);
}

static void image_visibility_takes_the_last_span_whatever_their_order(void **state)
{
    static const int32_t left[TOKENS] = {0, 0, 1, 2, 1, 0, 0, 0};
    static const int32_t right[TOKENS] = {0, 2, 1, 0, 6, 0, 0, 0};
    struct batch b;

    (void)state;
    batch_init(&b);
    b.begin[0] = 13;
    b.end[0] = 20;
    b.begin[1] = 11;
    b.end[1] = 13;
    run(&b);

    assert_visible(&b, left, right);
}

static void image_visibility_is_bounded_by_the_width(void **state)
{
    static const int32_t left[TOKENS] = {1, 1, 1, 1, 1, 0, 0, 0};
    static const int32_t right[TOKENS] = {2, 2, 2, 1, 0, 0, 0, 0};
    struct batch b;

    (void)state;
    batch_init(&b);
    b.shape.image_width = 2;
    b.begin[1] = 2;
    b.end[1] = 14;
    run(&b);

    assert_visible(&b, left, right);
}

static void image_visibility_at_width_1_is_one_to_the_right(void **state)
{
    static const int32_t right[TOKENS] = {0, 1, 1, 1, 1, 0, 0, 0};
    struct batch b;

    (void)state;
    batch_init(&b);
    b.shape.image_width = 1;
    run(&b);

    assert_visible(&b, nothing, right);
}

static void image_visibility_before_the_first_token_is_none(void **state)
{
    static const struct {
        int32_t first;
        int32_t left[TOKENS], right[TOKENS];
    } cases[] = {
        {3, {0, 0, 0, 0, 1, 0, 0, 0}, {0, 0, 0, 7, 6, 0, 0, 0}},
        {INT32_MIN, {0, 0, 1, 0, 1, 0, 0, 0}, {0, 2, 1, 7, 6, 0, 0, 0}},
        {TOKENS, {0}, {0}},
        {INT32_MAX, {0}, {0}},
    };

    (void)state;
    for (size_t i = 0; i < KI_COUNT_OF(cases); i++) {
        struct batch b;
        batch_init(&b);
        b.args.first_token = cases[i].first;
        run(&b);
        assert_visible(&b, cases[i].left, cases[i].right);
    }
}

static void image_visibility_of_an_all_zero_batch_is_none_field_10(void **state)
{
    struct batch b;

    (void)state;
    batch_init(&b);
    memset(b.start, 0, sizeof(b.start));
    memset(b.seq_lens, 0, sizeof(b.seq_lens));
    memset(b.span_start, 0, sizeof(b.span_start));
    b.args.num_spans = 0;
    b.args.span_begin = b.args.span_end = NULL;
    run(&b);

    assert_visible(&b, nothing, nothing);
}

/* Positions -3 to 1 and a span around all of them. */
static void image_visibility_before_a_sequence_is_none_field_11(void **state)
{
    static const int32_t left[TOKENS] = {0, 0, 0, 7, 7, 0, 0, 0};
    static const int32_t right[TOKENS] = {0, 0, 0, 8, 8, 0, 0, 0};
    struct batch b;

    (void)state;
    batch_init(&b);
    b.seq_lens[0] = 2;
    b.begin[0] = INT32_MIN;
    b.end[0] = INT32_MAX;
    run(&b);

    assert_visible(&b, left, right);
}

static void image_visibility_clamps_where_spans_start(void **state)
{
    static const struct {
        int32_t span_start[REQUESTS + 1];
        int32_t left4, right4, right5; /* of tokens 4 and 5 */
    } cases[] = {
        {{0, 2, 3}, 1, 6, 0},
        {{INT32_MIN, 2, INT32_MAX}, 1, 6, 0},
        {{-1, INT32_MAX, 0}, 1, 6, 0},
        {{2, 0, 0}, 0, 0, 0}, /* descends: no spans */
        {{INT32_MAX, INT32_MAX, INT32_MAX}, 0, 0, 0},
    };

    (void)state;
    for (size_t i = 0; i < KI_COUNT_OF(cases); i++) {
        struct batch b;
        batch_init(&b);
        memcpy(b.span_start, cases[i].span_start, sizeof(b.span_start));
        run(&b);
        assert_int_equal(b.left[4], cases[i].left4);
        assert_int_equal(b.right[4], cases[i].right4);
        assert_int_equal(b.right[5], cases[i].right5);
    }
}

static void image_visibility_at_the_extremes_is_exact(void **state)
{
    struct batch b;

    (void)state;
    batch_init(&b);
    b.shape.image_width = INT32_MAX;
    b.seq_lens[0] = INT32_MAX; /* token 4 is at position 2^31-2 */
    b.begin[1] = INT32_MIN;
    b.end[1] = INT32_MAX;
    run(&b);

    assert_int_equal(b.left[4], INT32_MAX - 1);
    assert_int_equal(b.right[4], 1);
    assert_int_equal(b.right[0], 5);
}

static void image_visibility_of_no_tokens_touches_nothing(void **state)
{
    struct batch b;

    (void)state;
    batch_init(&b);
    b.args.num_tokens = 0;
    run(&b);

    assert_int_equal(b.left[0], POISON);
    assert_int_equal(b.right[0], POISON);
}

static void check_reports(struct batch *b, const struct kiln_report_entry *want, size_t n)
{
    struct report_room room;

    b->args.report = report_begin(&room);
    run(b);
    report_check(&room, want, n);
}

/* Position 14 is one past the begin of its span and six before its end. */
static void image_visibility_reports_what_the_width_cuts(void **state)
{
    static const struct kiln_report_entry want[] = {
        {KILN_OP_IMAGE_VISIBILITY, 3, 1, KILN_REASON_LENGTH, 7},
        {KILN_OP_IMAGE_VISIBILITY, 4, 1, KILN_REASON_LENGTH, 6},
    };
    static const struct kiln_report_entry narrow[] = {
        {KILN_OP_IMAGE_VISIBILITY, 1, 1, KILN_REASON_LENGTH, 2},
        {KILN_OP_IMAGE_VISIBILITY, 2, 0, KILN_REASON_LENGTH, 1},
        {KILN_OP_IMAGE_VISIBILITY, 3, 1, KILN_REASON_LENGTH, 7},
        {KILN_OP_IMAGE_VISIBILITY, 4, 0, KILN_REASON_LENGTH, 1},
        {KILN_OP_IMAGE_VISIBILITY, 4, 1, KILN_REASON_LENGTH, 6},
    };
    struct batch b;

    (void)state;
    batch_init(&b);
    check_reports(&b, NULL, 0);
    b.shape.image_width = 5;
    check_reports(&b, want, KI_COUNT_OF(want));
    b.shape.image_width = 1;
    check_reports(&b, narrow, KI_COUNT_OF(narrow));
    b.args.first_token = 4;
    check_reports(&b, &narrow[3], 2);
    b.seq_lens[0] = -1;
    check_reports(&b, NULL, 0);
}

/* Of requests without tokens too, once each. */
static void image_visibility_reports_bounds(void **state)
{
    static const struct kiln_report_entry want[] = {
        {KILN_OP_IMAGE_VISIBILITY, 0, -1, KILN_REASON_SPANS, -1},
        {KILN_OP_IMAGE_VISIBILITY, 2, -1, KILN_REASON_SPANS, SPANS + 1},
    };
    struct batch b;

    (void)state;
    batch_init(&b);
    b.span_start[0] = -1;
    b.span_start[2] = SPANS + 1;
    check_reports(&b, want, KI_COUNT_OF(want));
    b.args.first_token = TOKENS;
    check_reports(&b, want, KI_COUNT_OF(want));
    b.args.num_requests = 0;
    check_reports(&b, NULL, 0);
    b.args.num_requests = REQUESTS;
    b.args.num_tokens = 0;
    check_reports(&b, NULL, 0);
}

static void image_visibility_refuses_a_width_of_0(void **state)
{
    struct kiln_error err = {0};
    struct batch b;

    (void)state;
    batch_init(&b);
    b.shape.image_width = 0;

    assert_int_equal(kiln_reference_image_visibility(&b.shape, &b.args, &err),
                     KILN_E_SHAPE);
    assert_non_null(strstr(err.message, "image_width = 0: expected 1"));
}

static void image_visibility_equals_the_given_cases(void **state)
{
    (void)state;
    for (size_t i = 0; i < 12; i++) {
        case_check("image_visibility", i);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(image_visibility_is_the_distance_to_both_ends_of_the_last_span),
        cmocka_unit_test(image_visibility_takes_the_last_span_whatever_their_order),
        cmocka_unit_test(image_visibility_is_bounded_by_the_width),
        cmocka_unit_test(image_visibility_at_width_1_is_one_to_the_right),
        cmocka_unit_test(image_visibility_before_the_first_token_is_none),
        cmocka_unit_test(image_visibility_of_an_all_zero_batch_is_none_field_10),
        cmocka_unit_test(image_visibility_before_a_sequence_is_none_field_11),
        cmocka_unit_test(image_visibility_clamps_where_spans_start),
        cmocka_unit_test(image_visibility_at_the_extremes_is_exact),
        cmocka_unit_test(image_visibility_of_no_tokens_touches_nothing),
        cmocka_unit_test(image_visibility_reports_what_the_width_cuts),
        cmocka_unit_test(image_visibility_reports_bounds),
        cmocka_unit_test(image_visibility_refuses_a_width_of_0),
        cmocka_unit_test(image_visibility_equals_the_given_cases),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
