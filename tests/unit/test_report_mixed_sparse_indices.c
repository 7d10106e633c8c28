/* SPDX-License-Identifier: Apache-2.0 */
/* What mixed_sparse_indices reports: given slots, ids, windows, lengths, counts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "kiln/ops.h"
#include "base/attr.h"
#include "support/count.h"
#include "support/mixed_batch.h"
#include "support/report_check.h"

static void run(struct mixed_batch *b)
{
    b->args.report = report_begin(&b->room);
    mixed_batch_run(b);
}

#define FOUND(reason, row, column, value)                                                \
    {                                                                                    \
        KILN_OP_MIXED_SPARSE_INDICES, (row), (column), KILN_REASON_##reason, (value)     \
    }

/* What run() reports; the entries that are FOUND. */
#define ASSERT_REPORT(b, ...)                                                            \
    do {                                                                                 \
        const struct kiln_report_entry want[] = {__VA_ARGS__};                           \
        run(b);                                                                          \
        report_check(&(b)->room, want, KI_COUNT_OF(want));                               \
    } while (0)

static void assert_no_report(struct mixed_batch *b)
{
    run(b);
    assert_int_equal(b->room.report.n_found, 0);
}

static void add_images(struct mixed_batch *b, int64_t width)
{
    b->shape.image_width = width;
    b->args.left_visible = b->left;
    b->args.right_visible = b->right;
}

/* Ids of -1 are none; what is past the complete records is not looked at. */
static void mixed_report_of_a_good_batch_is_empty(void **state)
{
    struct mixed_batch b;

    (void)state;
    mixed_batch_init(&b);
    b.args.live_tokens = value(TOKENS);
    b.args.is_valid_token = b.valid;
    b.args.decode_compressed_lens = b.given_lens;
    b.given_lens[1] = GIVEN;
    b.picks[0][0] = -1;
    b.seq_lens[2] = 8; /* positions 6 and 7: of one record, and of two */
    b.picks[0][1] = -77;
    b.requests[0] = INT32_MIN; /* does not matter */
    b.shape.swa_table_width = 4;
    b.shape.table_width = 2;
    assert_no_report(&b);

    b.shape.decode_local = 1;
    b.requests[0] = 0;
    b.given[0][0] = b.given[0][2] = 3;
    b.given_lens[0] = -5; /* not read */
    assert_no_report(&b);
}

static void mixed_reports_given_slots(void **state)
{
    struct mixed_batch b;

    (void)state;
    mixed_batch_init(&b);
    b.given_window[0][1] = -2;
    b.given_window[1][3] = INT32_MIN;
    b.given[0][2] = INT32_MIN;
    b.given[1][0] = -2;
    ASSERT_REPORT(&b, FOUND(ID, 0, 1, -2), FOUND(ID, 1, 3, INT32_MIN),
                  FOUND(ID, 0, WS + 2, INT32_MIN), FOUND(ID, 1, WS, -2));
}

/* Pages of 2 are 10 apart in one pool and 6 in the other. */
static void mixed_reports_names_that_int32_cannot_hold(void **state)
{
    struct mixed_batch b;

    (void)state;
    mixed_batch_init(&b);
    b.given_window[0][0] = 429496729; /* page 214748364: 2147483641 */
    b.given_window[0][1] = 429496730;
    b.given_window[1][0] = INT32_MAX;
    b.given[1][2] = INT32_MAX;
    ASSERT_REPORT(&b, FOUND(RANGE, 0, 1, 2147483650), FOUND(RANGE, 1, 0, 10737418231),
                  FOUND(RANGE, 1, WS + 2, 6442450939));

    b.shape.swa_span = b.shape.span = 2;
    assert_no_report(&b);
}

static void mixed_reports_given_lengths(void **state)
{
    static const int32_t bad[] = {-1, INT32_MIN, GIVEN + 1, INT32_MAX};
    struct mixed_batch b;

    (void)state;
    for (size_t c = 0; c < KI_COUNT_OF(bad); c++) {
        mixed_batch_init(&b);
        b.args.decode_compressed_lens = b.given_lens;
        b.given_lens[1] = bad[c];
        ASSERT_REPORT(&b, FOUND(LENGTH, 1, -1, bad[c]));
    }
}

static void mixed_reports_local_ids(void **state)
{
    struct mixed_batch b;

    (void)state;
    mixed_batch_init(&b);
    b.shape.decode_local = 1;
    b.given[0][0] = -2;
    b.given[0][2] = 2 * PAGES;
    b.table[1][0] = -1;        /* of ids 0 and 1 */
    b.table[1][1] = 400000000; /* of id 2: 2400000000 */
    ASSERT_REPORT(&b, FOUND(ID, 0, WS, -2), FOUND(ID, 0, WS + 2, 2 * PAGES),
                  FOUND(PAGE, 1, WS, -1), FOUND(PAGE, 1, WS + 1, -1),
                  FOUND(RANGE, 1, WS + 2, 2400000000));

    b.shape.span = 2;
    b.table[1][1] = 1 << 30;
    ASSERT_REPORT(&b, FOUND(ID, 0, WS, -2), FOUND(ID, 0, WS + 2, 2 * PAGES),
                  FOUND(PAGE, 1, WS, -1), FOUND(PAGE, 1, WS + 1, -1),
                  FOUND(PAGE, 1, WS + 2, 1 << 30));
}

/* Of a row without one nothing else is looked at. */
static void mixed_reports_requests_where_they_matter(void **state)
{
    struct mixed_batch b;
    int32_t *bounds[] = {&b.args.num_requests, &b.args.swa_table_rows,
                         &b.args.table_rows};

    (void)state;
    for (size_t c = 0; c < KI_COUNT_OF(bounds); c++) {
        mixed_batch_init(&b);
        *bounds[c] = 2;
        ASSERT_REPORT(&b, FOUND(REQUEST, 2, -1, 2), FOUND(REQUEST, 3, -1, 2));
    }
    mixed_batch_init(&b);
    b.requests[0] = INT32_MAX;
    b.requests[3] = -1;
    b.given_window[0][0] = -9;
    b.picks[1][0] = -9;
    ASSERT_REPORT(&b, FOUND(ID, 0, 0, -9), FOUND(REQUEST, 3, -1, -1));

    b.shape.decode_local = 1;
    b.given[1][1] = -1;
    ASSERT_REPORT(&b, FOUND(REQUEST, 0, -1, INT32_MAX), FOUND(REQUEST, 3, -1, -1));

    b.shape.decode_topk = 0;
    b.args.decode_compressed_indices = NULL;
    ASSERT_REPORT(&b, FOUND(ID, 0, 0, -9), FOUND(REQUEST, 3, -1, -1));
}

static void mixed_reports_nothing_of_inert_rows(void **state)
{
    struct mixed_batch b;

    (void)state;
    mixed_batch_init(&b);
    add_images(&b, 0);
    memset(b.window_table, 0xff, sizeof b.window_table);
    memset(b.table, 0xff, sizeof b.table);
    b.given_window[0][0] = b.given[0][0] = -9;
    b.requests[3] = -9;
    b.args.is_valid_token = b.valid;
    b.valid[0] = 0;
    b.args.live_tokens = value(3);
    b.right[2] = 99;
    b.seq_lens[2] = 1; /* token 2 is at -1 */
    assert_no_report(&b);
}

static void mixed_reports_prefill_windows(void **state)
{
    struct mixed_batch b;

    (void)state;
    mixed_batch_init(&b);
    b.window_table[2][4] = -4;        /* positions 8 and 9 */
    b.window_table[2][3] = 300000000; /* positions 6 and 7: 3000000000 and 1 */
    b.shape.swa_table_width = 5;      /* position 10 is past it */
    ASSERT_REPORT(&b, FOUND(RANGE, 2, 0, 3000000000), FOUND(RANGE, 2, 1, 3000000001),
                  FOUND(PAGE, 2, 2, -4), FOUND(PAGE, 2, 3, -4),
                  FOUND(RANGE, 3, 0, 3000000001), FOUND(PAGE, 3, 1, -4),
                  FOUND(PAGE, 3, 2, -4), FOUND(ID, 3, 3, 10));
}

/* One image column; those that align the part are nobody's. */
static void mixed_reports_windows_that_are_cut(void **state)
{
    struct mixed_batch b;

    (void)state;
    mixed_batch_init(&b);
    add_images(&b, 1);
    b.window_table[2][4] = -4; /* positions 8 and 9, of which row 2 keeps the first */
    b.left[2] = 5;             /* positions 4 to 9 */
    b.left[0] = 99;            /* a decode token's window is given */
    ASSERT_REPORT(&b, FOUND(LENGTH, 2, -1, 6), FOUND(PAGE, 2, 4, -4),
                  FOUND(PAGE, 3, 1, -4), FOUND(PAGE, 3, 2, -4));
}

static void mixed_reports_picks(void **state)
{
    struct mixed_batch b;

    (void)state;
    mixed_batch_init(&b);
    b.picks[0][0] = -2;
    b.picks[0][1] = 2 * PAGES;
    b.table[2][0] = 1 << 30;   /* of a record that nobody picks */
    b.table[2][1] = 400000000; /* of records 2 and 3 */
    ASSERT_REPORT(&b, FOUND(ID, 2, WS, -2), FOUND(ID, 2, WS + 1, 2 * PAGES),
                  FOUND(RANGE, 3, WS, 2400000001), FOUND(RANGE, 3, WS + 1, 2400000000));
    b.table[2][1] = INT32_MAX;
    ASSERT_REPORT(&b, FOUND(ID, 2, WS, -2), FOUND(ID, 2, WS + 1, 2 * PAGES),
                  FOUND(PAGE, 3, WS, INT32_MAX), FOUND(PAGE, 3, WS + 1, INT32_MAX));
}

static void mixed_reports_counts_once(void **state)
{
    struct mixed_batch b;

    (void)state;
    mixed_batch_init(&b);
    b.args.live_tokens = value(TOKENS + 1);
    b.args.num_decode_tokens = value(-1);
    ASSERT_REPORT(&b, FOUND(LIVE_TOKENS, -1, -1, TOKENS + 1),
                  FOUND(DECODE_TOKENS, -1, -1, -1));
    b.args.live_tokens = value(INT32_MIN);
    b.args.num_decode_tokens = value(TOKENS + 1);
    ASSERT_REPORT(&b, FOUND(LIVE_TOKENS, -1, -1, INT32_MIN),
                  FOUND(DECODE_TOKENS, -1, -1, TOKENS + 1));

    b.args.num_tokens = 0;
    assert_no_report(&b);
}

static void mixed_results_are_the_same_without_a_report(void **state)
{
    struct mixed_batch b, other;
    struct kiln_error err = {0};

    (void)state;
    mixed_batch_init(&b);
    b.given[0][0] = -9;
    b.window_table[2][4] = -4;
    other = b;
    other.args.sparse_indices = other.rows;
    other.args.sparse_lens = other.lens;
    run(&b);

    assert_null(other.args.report);
    assert_int_equal(kiln_reference_mixed_sparse_indices(&other.shape, &other.args, &err),
                     KILN_OK);
    assert_true(b.room.report.n_found > 0);
    assert_memory_equal(b.rows, other.rows, sizeof b.rows);
    assert_memory_equal(b.lens, other.lens, sizeof b.lens);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mixed_report_of_a_good_batch_is_empty),
        cmocka_unit_test(mixed_reports_given_slots),
        cmocka_unit_test(mixed_reports_names_that_int32_cannot_hold),
        cmocka_unit_test(mixed_reports_given_lengths),
        cmocka_unit_test(mixed_reports_local_ids),
        cmocka_unit_test(mixed_reports_requests_where_they_matter),
        cmocka_unit_test(mixed_reports_nothing_of_inert_rows),
        cmocka_unit_test(mixed_reports_prefill_windows),
        cmocka_unit_test(mixed_reports_windows_that_are_cut),
        cmocka_unit_test(mixed_reports_picks),
        cmocka_unit_test(mixed_reports_counts_once),
        cmocka_unit_test(mixed_results_are_the_same_without_a_report),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
