/* SPDX-License-Identifier: Apache-2.0 */
/* What compressed_slots means at the edges: who completes a record, and where it lies. */
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

enum { TOKENS = 8, REQUESTS = 2 };

static const int64_t untouched = 0x5555555555555555;

/* Records of four tokens, pages of two records. Request 0 has the tokens 0-5 of 10, request 1
 * the tokens 6-7 of 8; their tables are {5, 0, 7} and {9, 3, 1}. */
struct batch {
    struct kiln_compressed_slots_shape shape;
    struct kiln_compressed_slots_args args;
    int32_t start[REQUESTS + 1], seq_lens[REQUESTS], table[REQUESTS][3];
    int64_t own[TOKENS], slots[TOKENS];
};

static void batch_init(struct batch *b)
{
    *b = (struct batch){
        .shape = {.compress_ratio = 4,
                  .block_size = 2,
                  .table_width = 3,
                  .table_stride = 3,
                  .dcp_world = 1,
                  .dcp_interleave = 1},
        .start = {0, 6, 8},
        .seq_lens = {10, 8},
        .table = {{5, 0, 7}, {9, 3, 1}},
    };
    memset(b->slots, 0x55, sizeof(b->slots));
    b->args = (struct kiln_compressed_slots_args){
        .query_start_loc = b->start,
        .seq_lens = b->seq_lens,
        .block_table = b->table[0],
        .slots = b->slots,
        .num_tokens = TOKENS,
        .num_requests = REQUESTS,
        .table_rows = REQUESTS,
    };
}

static void run(struct batch *b)
{
    struct kiln_error err = {0};

    if (kiln_reference_compressed_slots(&b->shape, &b->args, &err) != KILN_OK) {
        fail_msg("%s", err.message);
    }
}

static void assert_slots(const struct batch *b, const int64_t *want)
{
    for (int t = 0; t < TOKENS; t++) {
        if (b->slots[t] != want[t]) {
            fail_msg("token %d has %lld, expected %lld", t, (long long)b->slots[t],
                     (long long)want[t]);
        }
    }
}

/* Positions 4-9 and 6-7: records 1 of both requests are complete with token 3 and token 7. */
static void compressed_slots_writes_where_a_record_completes(void **state)
{
    static const int64_t want[TOKENS] = {-1, -1, -1, 11, -1, -1, -1, 19};
    struct batch b;

    (void)state;
    batch_init(&b);
    run(&b);

    assert_slots(&b, want);
}

/* Page 0 is an ordinary one. */
static void compressed_slots_at_ratio_1_writes_every_token_field_25(void **state)
{
    static const int64_t want[TOKENS] = {0, 1, 14, 15, -1, -1, -1, -1};
    struct batch b;

    (void)state;
    batch_init(&b);
    b.shape.compress_ratio = 1;
    b.args.num_requests = 1; /* positions 2-7 */
    b.seq_lens[0] = 8;
    run(&b);

    assert_slots(&b, want);
}

static void compressed_slots_ends_with_the_table_field_7(void **state)
{
    struct batch b;

    (void)state;
    batch_init(&b);
    b.shape.compress_ratio = 1;
    b.shape.table_width = 2;
    b.args.num_requests = 1; /* positions 2-7 */
    b.seq_lens[0] = 8;
    run(&b);

    assert_int_equal(b.slots[1], 1);
    assert_int_equal(b.slots[2], -1);
    assert_int_equal(b.slots[5], -1);
}

static void compressed_slots_before_a_sequence_are_none_field_11(void **state)
{
    static const int64_t want[TOKENS] = {-1, -1, -1, -1, -1, -1, -1, 19};
    struct batch b;

    (void)state;
    batch_init(&b);
    b.seq_lens[0] = 3; /* positions -3 to 2: -1 is none, though 0 % 4 == 0 */
    run(&b);

    assert_slots(&b, want);
}

static void compressed_slots_of_wild_sequences_are_none_field_9(void **state)
{
    static const int32_t lens[] = {INT32_MIN, -1, 0, 3};

    (void)state;
    for (size_t i = 0; i < KI_COUNT_OF(lens); i++) {
        struct batch b;
        batch_init(&b);
        b.seq_lens[0] = b.seq_lens[1] = lens[i];
        run(&b);
        for (int t = 0; t < TOKENS; t++) {
            assert_int_equal(b.slots[t], -1);
        }
    }
}

/* What a padded graph launches: tokens past the last request are written all the same. */
static void compressed_slots_past_the_last_request_are_none_field_1(void **state)
{
    struct batch b;

    (void)state;
    batch_init(&b);
    b.args.num_requests = 1;
    run(&b);

    assert_int_equal(b.slots[3], 11);
    assert_int_equal(b.slots[6], -1);
    assert_int_equal(b.slots[7], -1);
}

static void compressed_slots_of_an_all_zero_batch_are_none_field_10(void **state)
{
    struct batch b;

    (void)state;
    batch_init(&b);
    memset(b.start, 0, sizeof(b.start));
    memset(b.seq_lens, 0, sizeof(b.seq_lens));
    run(&b);

    for (int t = 0; t < TOKENS; t++) {
        assert_int_equal(b.slots[t], -1);
    }
}

static void
compressed_slots_of_a_request_without_a_table_row_are_none_field_7(void **state)
{
    struct batch b;

    (void)state;
    batch_init(&b);
    b.args.table_rows = 1;
    run(&b);

    assert_int_equal(b.slots[3], 11);
    assert_int_equal(b.slots[7], -1);
}

/* query_start_loc counts from the step's first token, whatever its first element is. */
static void compressed_slots_before_the_first_request_are_none(void **state)
{
    static const int64_t want[TOKENS] = {-1, -1, -1, 19, -1, -1, -1, -1};
    struct batch b;

    (void)state;
    batch_init(&b);
    b.start[0] = b.start[1] = 2; /* no tokens; those of request 1 are 2 and 3 */
    b.start[2] = 4;
    run(&b);

    assert_slots(&b, want);
}

static void compressed_slots_follow_own_slots_field_29(void **state)
{
    static const int64_t want[TOKENS] = {-1, -1, -1, -1, -1, -1, -1, 19};
    struct batch b;

    (void)state;
    batch_init(&b);
    b.args.own_slots = b.own;
    b.own[3] = INT64_MIN;
    b.own[7] = INT64_MAX;
    run(&b);

    assert_slots(&b, want);
}

static void compressed_slots_of_several_ranks_ignore_own_slots(void **state)
{
    struct batch b;

    (void)state;
    batch_init(&b);
    b.shape.dcp_world = 2;
    b.args.dcp_rank = 1;
    b.args.own_slots = b.own;
    memset(b.own, 0xff, sizeof(b.own));
    run(&b);

    assert_int_equal(b.slots[3], 10); /* record 1 is number 0 of rank 1 */
}

/* Interleave 2, so that a page of both ranks is records 0-3: 0, 1 of rank 0 and 2, 3 of rank 1. */
static void compressed_slots_of_a_rank_keep_their_place(void **state)
{
    static const int64_t want[2][TOKENS] = {{-1, -1, 0, 1, -1, -1, -1, -1},
                                            {10, 11, -1, -1, 0, 1, -1, -1}};

    (void)state;
    for (int32_t rank = 0; rank < 2; rank++) {
        struct batch b;
        batch_init(&b);
        b.shape.compress_ratio = 1;
        b.shape.dcp_world = 2;
        b.shape.dcp_interleave = 2;
        b.args.dcp_rank = rank;
        b.args.num_requests = 1;
        b.seq_lens[0] = 8; /* positions 2-7 */
        run(&b);
        assert_slots(&b, want[rank]);
    }
}

/* An int64 slot has no greatest page. */
static void compressed_slots_take_every_page_that_is_not_negative(void **state)
{
    static const struct {
        int32_t page;
        int64_t slot;
    } cases[] = {
        {INT32_MAX, (int64_t)INT32_MAX * 2 + 1},
        {1 << 30, ((int64_t)1 << 31) + 1},
        {0, 1},
        {-1, -1},
        {INT32_MIN, -1},
    };

    (void)state;
    for (size_t i = 0; i < KI_COUNT_OF(cases); i++) {
        struct batch b;
        batch_init(&b);
        b.table[0][0] = cases[i].page;
        run(&b);
        assert_int_equal(b.slots[3], cases[i].slot);
    }
}

static void compressed_slots_at_the_extremes_are_exact(void **state)
{
    struct batch b;
    int32_t page = INT32_MAX;

    (void)state;
    batch_init(&b);
    b.shape.compress_ratio = 1;
    b.shape.block_size = INT32_MAX;
    b.shape.table_width = b.shape.table_stride = 1;
    b.args.block_table = &page;
    b.args.num_requests = b.args.table_rows = 1;
    b.seq_lens[0] = INT32_MAX; /* token 5 is at position 2^31-2 */
    run(&b);

    assert_int_equal(b.slots[5], (int64_t)INT32_MAX * INT32_MAX + INT32_MAX - 1);
}

static void compressed_slots_of_the_longest_request_are_exact(void **state)
{
    struct batch b;

    (void)state;
    batch_init(&b);
    b.start[0] = INT32_MIN; /* 2^32-1 tokens */
    b.start[1] = b.start[2] = INT32_MAX;
    b.seq_lens[0] = INT32_MAX; /* token t is at position t */
    run(&b);

    assert_int_equal(b.slots[3], 10);
    assert_int_equal(b.slots[7], 11);
    assert_int_equal(b.slots[4], -1);
}

static void compressed_slots_of_no_tokens_touch_nothing(void **state)
{
    struct batch b;

    (void)state;
    batch_init(&b);
    b.args = (struct kiln_compressed_slots_args){.slots = b.slots};
    run(&b);

    assert_int_equal(b.slots[0], untouched);
}

static void compressed_slots_of_given_cases_are_the_expected(void **state)
{
    (void)state;
    for (size_t i = 0; i < 12; i++) {
        case_check("compressed_slots", i);
    }
}

static void check_reports(struct batch *b, const struct kiln_report_entry *want, size_t n)
{
    struct report_room room;

    b->args.report = report_begin(&room);
    run(b);
    report_check(&room, want, n);
}

/* Only record 1 of each request is completed here. */
static void compressed_slots_reports_pages(void **state)
{
    static const struct kiln_report_entry want[] = {
        {KILN_OP_COMPRESSED_SLOTS, 3, -1, KILN_REASON_PAGE, INT32_MIN},
        {KILN_OP_COMPRESSED_SLOTS, 7, -1, KILN_REASON_PAGE, -1},
    };
    struct batch b;

    (void)state;
    batch_init(&b);
    check_reports(&b, NULL, 0);
    b.table[0][0] = INT32_MIN;
    b.table[0][1] = b.table[0][2] = -5;
    b.table[1][0] = -1;
    check_reports(&b, want, KI_COUNT_OF(want));
    b.table[0][0] = b.table[1][0] = INT32_MAX;
    check_reports(&b, NULL, 0);
}

/* At a ratio of 1 tokens 2-5 complete the records 6-9, of which pages hold 6. */
static void compressed_slots_reports_records_past_the_table(void **state)
{
    static const struct kiln_report_entry want[] = {
        {KILN_OP_COMPRESSED_SLOTS, 2, -1, KILN_REASON_ID, 6},
        {KILN_OP_COMPRESSED_SLOTS, 3, -1, KILN_REASON_ID, 7},
        {KILN_OP_COMPRESSED_SLOTS, 4, -1, KILN_REASON_ID, 8},
        {KILN_OP_COMPRESSED_SLOTS, 5, -1, KILN_REASON_ID, 9},
    };
    struct batch b;

    (void)state;
    batch_init(&b);
    b.shape.compress_ratio = 1;
    b.seq_lens[1] = 2;
    check_reports(&b, want, KI_COUNT_OF(want));
}

static void compressed_slots_reports_requests_without_a_row(void **state)
{
    static const struct kiln_report_entry want[] = {
        {KILN_OP_COMPRESSED_SLOTS, 7, -1, KILN_REASON_REQUEST, 1},
    };
    struct batch b;

    (void)state;
    batch_init(&b);
    b.args.table_rows = 1;
    check_reports(&b, want, KI_COUNT_OF(want));
    b.seq_lens[1] = -1;
    check_reports(&b, NULL, 0);
}

static void compressed_slots_reports_nothing_of_tokens_that_write_nothing(void **state)
{
    struct batch b;

    (void)state;
    batch_init(&b);
    b.args.own_slots = b.own;
    b.own[3] = b.own[7] = -1;
    b.table[0][0] = -1;
    b.args.table_rows = 1;
    check_reports(&b, NULL, 0);
    b.args.own_slots = NULL;
    b.args.num_tokens = 3;
    check_reports(&b, NULL, 0);
    b.args.num_tokens = 0;
    check_reports(&b, NULL, 0);
}

/* Record 1 is rank 1's, so is record 7, past one page of two for each of two ranks. */
static void compressed_slots_reports_what_a_rank_owns(void **state)
{
    static const struct kiln_report_entry want[] = {
        {KILN_OP_COMPRESSED_SLOTS, 3, -1, KILN_REASON_PAGE, -4},
        {KILN_OP_COMPRESSED_SLOTS, 7, -1, KILN_REASON_ID, 7},
    };

    (void)state;
    for (int32_t rank = 0; rank < 2; rank++) {
        struct batch b;
        batch_init(&b);
        b.shape.dcp_world = 2;
        b.shape.table_width = 1;
        b.args.dcp_rank = rank;
        b.table[0][0] = -4;
        b.seq_lens[1] = 32;
        check_reports(&b, want, rank == 0 ? 0 : 2);
    }
}

static void compressed_slots_refuses_what_is_wrong_by_name(void **state)
{
    static const struct {
        const char *word;
        int64_t ratio, interleave;
        int32_t rank;
    } cases[] = {
        {"compress_ratio = 0", 0, 1, 0},
        {"dcp_interleave = 3", 4, 3, 0},
        {"dcp_rank = 2", 4, 1, 2},
        {"dcp_rank = -1", 4, 1, -1},
    };

    (void)state;
    for (size_t i = 0; i < KI_COUNT_OF(cases); i++) {
        struct kiln_error err = {0};
        struct batch b;
        batch_init(&b);
        b.shape.compress_ratio = cases[i].ratio;
        b.shape.dcp_world = 2;
        b.shape.dcp_interleave = cases[i].interleave;
        b.args.dcp_rank = cases[i].rank;
        assert_int_not_equal(kiln_reference_compressed_slots(&b.shape, &b.args, &err),
                             KILN_OK);
        assert_non_null(strstr(err.message, cases[i].word));
        assert_int_equal(b.slots[0], untouched);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(compressed_slots_writes_where_a_record_completes),
        cmocka_unit_test(compressed_slots_at_ratio_1_writes_every_token_field_25),
        cmocka_unit_test(compressed_slots_ends_with_the_table_field_7),
        cmocka_unit_test(compressed_slots_before_a_sequence_are_none_field_11),
        cmocka_unit_test(compressed_slots_of_wild_sequences_are_none_field_9),
        cmocka_unit_test(compressed_slots_past_the_last_request_are_none_field_1),
        cmocka_unit_test(compressed_slots_of_an_all_zero_batch_are_none_field_10),
        cmocka_unit_test(
            compressed_slots_of_a_request_without_a_table_row_are_none_field_7),
        cmocka_unit_test(compressed_slots_before_the_first_request_are_none),
        cmocka_unit_test(compressed_slots_follow_own_slots_field_29),
        cmocka_unit_test(compressed_slots_of_several_ranks_ignore_own_slots),
        cmocka_unit_test(compressed_slots_of_a_rank_keep_their_place),
        cmocka_unit_test(compressed_slots_take_every_page_that_is_not_negative),
        cmocka_unit_test(compressed_slots_at_the_extremes_are_exact),
        cmocka_unit_test(compressed_slots_of_the_longest_request_are_exact),
        cmocka_unit_test(compressed_slots_of_no_tokens_touch_nothing),
        cmocka_unit_test(compressed_slots_of_given_cases_are_the_expected),
        cmocka_unit_test(compressed_slots_reports_pages),
        cmocka_unit_test(compressed_slots_reports_records_past_the_table),
        cmocka_unit_test(compressed_slots_reports_requests_without_a_row),
        cmocka_unit_test(compressed_slots_reports_nothing_of_tokens_that_write_nothing),
        cmocka_unit_test(compressed_slots_reports_what_a_rank_owns),
        cmocka_unit_test(compressed_slots_refuses_what_is_wrong_by_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
