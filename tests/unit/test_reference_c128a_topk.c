/* SPDX-License-Identifier: Apache-2.0 */
/* What c128a_topk means at the edges: any position, any width, padded and foreign rows. */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "kiln/ops.h"
#include "base/attr.h"
#include "support/case_check.h"
#include "support/count.h"
#include "support/report_check.h"

enum { CAPACITY = 6, TOKENS = 3, POISON = 0x55555555 };

/* Records of four tokens, pages of two records; table {9, -1, 0} of request 0. */
struct batch {
    struct kiln_c128a_topk_shape shape;
    struct kiln_c128a_topk_args args;
    int64_t positions[TOKENS], mapping[TOKENS];
    int32_t requests[TOKENS], table[3];
    int32_t slots[TOKENS][CAPACITY], lens[TOKENS], local[TOKENS][CAPACITY];
};

static void batch_init(struct batch *b, int32_t num_decode_tokens)
{
    *b = (struct batch){
        .shape = {.compress_ratio = 4,
                  .capacity = CAPACITY,
                  .block_size = 2,
                  .table_width = 3,
                  .table_stride = 3,
                  .dcp_world = 1,
                  .dcp_interleave = 1},
        .positions = {18, 18, 18},
        .table = {9, -1, 0},
    };
    memset(b->slots, 0x55, sizeof(b->slots));
    memset(b->lens, 0x55, sizeof(b->lens));
    memset(b->local, 0x55, sizeof(b->local));
    b->args = (struct kiln_c128a_topk_args){
        .positions = b->positions,
        .token_to_req = b->requests,
        .block_table = b->table,
        .decode_slots = b->slots[0],
        .decode_lens = b->lens,
        .prefill_local = b->local[0],
        .num_decode_tokens = value(num_decode_tokens),
        .num_tokens = TOKENS,
        .table_rows = 1,
    };
}

static void run(struct batch *b)
{
    struct kiln_error err = {0};

    if (kiln_reference_c128a_topk(&b->shape, &b->args, &err) != KILN_OK) {
        fail_msg("%s", err.message);
    }
}

static void assert_columns(const int32_t *row, const int32_t *want)
{
    for (int j = 0; j < CAPACITY; j++) {
        if (row[j] != want[j]) {
            fail_msg("column %d is %d, expected %d", j, row[j], want[j]);
        }
    }
}

static const int32_t nothing[CAPACITY] = {-1, -1, -1, -1, -1, -1};
static const int32_t untouched[CAPACITY] = {POISON, POISON, POISON,
                                            POISON, POISON, POISON};

struct width_case {
    int64_t max_seq_len, ratio, capacity, width;
};

static void active_width_holds_the_records_and_no_more_than_capacity(void **state)
{
    static const struct width_case cases[] = {
        {16511, 128, 8192, 128},
        {16512, 128, 8192, 256},
        {300000, 128, 8192, 4096},
        {1048576, 128, 8192, 8192},
        {0, 128, 8192, 128},
        {-1, 128, 8192, 128},
        {INT64_MIN, 128, 8192, 128},
        {INT64_MAX, 128, 8192, 8192},
        {INT64_MAX, 1, 8192, 8192},
        {1000000, 128, 7936, 7936},
        {300000, 128, 2432, 2432},
        {1, 128, 64, 64},
        {INT64_MAX, 1, INT32_MAX, INT32_MAX},
        {INT64_MAX, 1, INT64_MAX, INT32_MAX},
        {INT64_MAX, INT64_MAX, INT64_MAX, 128},
        {4096, 0, 8192, 0},
        {4096, -1, 8192, 0},
        {4096, 128, 0, 0},
        {4096, 128, INT64_MIN, 0},
    };

    (void)state;
    for (size_t i = 0; i < KI_COUNT_OF(cases); i++) {
        int32_t width = kiln_c128a_active_width(cases[i].max_seq_len, cases[i].ratio,
                                                cases[i].capacity);
        if (width != cases[i].width) {
            fail_msg("%lld tokens at %lld: width %d, expected %lld",
                     (long long)cases[i].max_seq_len, (long long)cases[i].ratio, width,
                     (long long)cases[i].width);
        }
    }
}

/* The second page is unusable: its records are holes, and the length counts them. */
static void c128a_decode_row_counts_unusable_pages_field_31(void **state)
{
    static const int32_t want[CAPACITY] = {18, 19, -1, -1, -1, -1};
    struct batch b;

    (void)state;
    batch_init(&b, 1);
    run(&b);

    assert_columns(b.slots[0], want);
    assert_int_equal(b.lens[0], 4);
}

static void c128a_prefill_row_holds_record_numbers(void **state)
{
    static const int32_t want[CAPACITY] = {0, 1, 2, 3, -1, -1};
    struct batch b;

    (void)state;
    batch_init(&b, 1);
    run(&b);

    assert_columns(b.local[0], want);
    assert_columns(b.local[1], want);
    assert_columns(b.local[2], untouched);
    assert_columns(b.slots[1], untouched);
}

struct position_case {
    int64_t pos;
    int32_t records;
};

static void c128a_takes_any_position_field_11(void **state)
{
    static const struct position_case cases[] = {
        {INT64_MIN, 0}, {-4, 0}, {-1, 0}, {0, 0},  {2, 0},
        {3, 1},         {6, 1},  {7, 2},  {23, 6}, {INT64_MAX - 1, 6},
        {INT64_MAX, 6},
    };

    (void)state;
    for (size_t i = 0; i < KI_COUNT_OF(cases); i++) {
        struct batch b;
        batch_init(&b, 1);
        b.positions[0] = b.positions[1] = cases[i].pos;
        run(&b);
        int32_t last = cases[i].records - 1;
        assert_int_equal(b.lens[0], cases[i].records);
        assert_true(last < 0 || b.local[0][last] == last);
        assert_true(last + 1 == CAPACITY || b.local[0][last + 1] == -1);
    }
}

static void c128a_takes_the_greatest_position_at_ratio_1(void **state)
{
    struct batch b;

    (void)state;
    batch_init(&b, 1);
    b.shape.compress_ratio = 1;
    b.positions[0] = INT64_MAX;
    run(&b);

    assert_int_equal(b.lens[0], CAPACITY);
}

static void c128a_decode_row_ends_with_the_table(void **state)
{
    struct batch b;

    (void)state;
    batch_init(&b, 1);
    b.shape.table_width = 1;
    b.positions[0] = INT64_MAX;
    run(&b);

    assert_int_equal(b.lens[0], 2);
    assert_int_equal(b.slots[0][2], -1);
}

static void c128a_leaves_columns_past_the_active_width_field_1(void **state)
{
    static const int32_t slots[CAPACITY] = {18, 19, POISON, POISON, POISON, POISON};
    static const int32_t local[CAPACITY] = {0, 1, POISON, POISON, POISON, POISON};
    struct batch b;

    (void)state;
    batch_init(&b, 1);
    b.args.active_width = value(2);
    run(&b);

    assert_columns(b.slots[0], slots);
    assert_columns(b.local[0], local);
    assert_int_equal(b.lens[0], 2);
}

static void c128a_takes_a_negative_active_width_for_0(void **state)
{
    struct batch b;

    (void)state;
    batch_init(&b, 1);
    b.args.active_width = value(INT32_MIN);
    run(&b);

    assert_columns(b.slots[0], untouched);
    assert_columns(b.local[0], untouched);
    assert_int_equal(b.lens[0], 0);
}

static void c128a_cuts_active_width_at_capacity_field_3(void **state)
{
    struct batch b;

    (void)state;
    batch_init(&b, 1);
    b.positions[0] = 1 << 20;
    b.args.active_width = value(INT32_MAX);
    run(&b);

    assert_int_equal(b.lens[0], CAPACITY);
    assert_columns(b.slots[1], untouched);
}

static void c128a_clamps_the_number_of_decode_tokens(void **state)
{
    struct batch none;
    struct batch all;

    (void)state;
    batch_init(&none, -5);
    batch_init(&all, INT32_MAX);
    run(&none);
    run(&all);

    assert_int_equal(none.lens[0], POISON);
    assert_int_equal(none.local[TOKENS - 1][3], 3);
    assert_int_equal(all.lens[TOKENS - 1], 4);
    assert_columns(all.local[0], untouched);
}

static void c128a_reads_counts_from_memory(void **state)
{
    static const int32_t n_decode = 2;
    static const int32_t width = 4;
    static const int32_t live = 1;
    struct batch b;

    (void)state;
    batch_init(&b, 0);
    b.args.num_decode_tokens =
        (struct kiln_count){.address = &n_decode, .kind = KILN_COUNT_DEVICE};
    b.args.active_width =
        (struct kiln_count){.address = &width, .kind = KILN_COUNT_DEVICE};
    b.args.live_tokens = (struct kiln_count){.address = &live, .kind = KILN_COUNT_DEVICE};
    run(&b);

    assert_int_equal(b.lens[0], 4);
    assert_int_equal(b.lens[1], 0);
    assert_int_equal(b.slots[1][3], -1);
    assert_int_equal(b.slots[1][4], POISON);
    assert_int_equal(b.local[0][0], -1);
}

static void c128a_rows_that_are_not_live_are_inert(void **state)
{
    struct batch b;

    (void)state;
    batch_init(&b, 1);
    b.args.live_tokens = value(-3);
    run(&b);

    assert_columns(b.slots[0], nothing);
    assert_columns(b.local[0], nothing);
    assert_int_equal(b.lens[0], 0);
}

static void c128a_decode_rows_of_no_request_are_inert_field_7(void **state)
{
    static const int32_t requests[] = {-1, 1, INT32_MIN, INT32_MAX};

    (void)state;
    for (size_t i = 0; i < KI_COUNT_OF(requests); i++) {
        struct batch b;
        batch_init(&b, 1);
        b.requests[0] = requests[i];
        run(&b);
        assert_columns(b.slots[0], nothing);
        assert_int_equal(b.lens[0], 0);
    }
}

static void c128a_decode_rows_without_a_raw_slot_are_inert(void **state)
{
    struct batch b;

    (void)state;
    batch_init(&b, 2);
    b.args.slot_mapping = b.mapping;
    b.mapping[0] = INT64_MIN;
    b.mapping[1] = INT64_MAX;
    run(&b);

    assert_columns(b.slots[0], nothing);
    assert_int_equal(b.lens[0], 0);
    assert_int_equal(b.lens[1], 4);
}

static void c128a_prefill_rows_look_at_neither_request_nor_mapping(void **state)
{
    struct batch b;

    (void)state;
    batch_init(&b, 0);
    b.args.slot_mapping = b.mapping;
    b.mapping[0] = -1;
    b.requests[0] = INT32_MIN;
    run(&b);

    assert_int_equal(b.local[0][3], 3);
}

/* A world of two: rank 0 stores records 0 2 4 .., page 9 holds records 0 to 3. */
static void c128a_rank_keeps_its_records_compacted(void **state)
{
    static const int32_t want[2][CAPACITY] = {{18, 19, -1, -1, -1, -1},
                                              {18, 19, -1, -1, -1, -1}};

    (void)state;
    for (int32_t rank = 0; rank < 2; rank++) {
        struct batch b;
        batch_init(&b, 1);
        b.shape.dcp_world = 2;
        b.args.dcp_rank = rank;
        b.args.slot_mapping = b.mapping;
        b.mapping[0] = -1;
        b.positions[0] = 1000;
        run(&b);
        assert_columns(b.slots[0], want[rank]);
        assert_int_equal(b.lens[0], 2);
    }
}

static void c128a_takes_the_greatest_table(void **state)
{
    struct batch b;

    (void)state;
    batch_init(&b, 1);
    b.shape.block_size = INT32_MAX;
    b.shape.table_width = b.shape.table_stride = INT32_MAX;
    b.table[0] = 0;
    run(&b);

    assert_int_equal(b.lens[0], 4);
    assert_int_equal(b.slots[0][3], 3);
}

static void c128a_of_an_all_zero_batch_has_no_records_field_10(void **state)
{
    struct batch b;

    (void)state;
    batch_init(&b, 2);
    memset(b.positions, 0, sizeof(b.positions));
    memset(b.table, 0, sizeof(b.table));
    run(&b);

    assert_columns(b.slots[0], nothing);
    assert_columns(b.local[0], nothing);
    assert_int_equal(b.lens[1], 0);
}

static void check_reports(struct batch *b, const struct kiln_report_entry *want, size_t n)
{
    struct report_room room;

    b->args.report = report_begin(&room);
    run(b);
    report_check(&room, want, n);
}

/* Records 2 and 3 of token 0 lie on a page of -1; prefill rows have no pages. */
static void c128a_reports_pages_of_records(void **state)
{
    static const struct kiln_report_entry want[] = {
        {KILN_OP_C128A_TOPK, 0, 2, KILN_REASON_PAGE, -1},
        {KILN_OP_C128A_TOPK, 0, 3, KILN_REASON_PAGE, -1},
    };
    struct batch b;

    (void)state;
    batch_init(&b, 1);
    check_reports(&b, want, KI_COUNT_OF(want));
    b.table[0] = 1073741823;
    b.table[1] = 1073741824;
    b.positions[0] = 11;
    check_reports(&b,
                  &(struct kiln_report_entry){KILN_OP_C128A_TOPK, 0, 2, KILN_REASON_PAGE,
                                              1073741824},
                  1);
}

/* Seven records are one too many for a row, five for a table of two pages. */
static void c128a_reports_records_that_are_clipped(void **state)
{
    static const struct kiln_report_entry want[] = {
        {KILN_OP_C128A_TOPK, 0, -1, KILN_REASON_LENGTH, 7},
        {KILN_OP_C128A_TOPK, 1, -1, KILN_REASON_LENGTH, 5},
        {KILN_OP_C128A_TOPK, 2, -1, KILN_REASON_LENGTH, 7},
    };
    struct batch b;

    (void)state;
    batch_init(&b, 2);
    b.shape.table_width = 2;
    b.table[1] = 1;
    b.positions[0] = 27;
    b.positions[1] = 22;
    b.positions[2] = 30;
    check_reports(&b, want, KI_COUNT_OF(want));
    b.positions[0] = 15;
    b.positions[1] = -1;
    b.positions[2] = 26;
    check_reports(&b, NULL, 0);
}

static void c128a_reports_rows_past_the_active_width(void **state)
{
    static const struct kiln_report_entry want[] = {
        {KILN_OP_C128A_TOPK, 0, -1, KILN_REASON_LENGTH, 4},
        {KILN_OP_C128A_TOPK, 0, 2, KILN_REASON_PAGE, -1},
    };
    struct batch b;

    (void)state;
    batch_init(&b, 1);
    b.args.active_width = value(3);
    b.positions[1] = 14;
    b.positions[2] = INT64_MIN;
    check_reports(&b, want, KI_COUNT_OF(want));
}

/* There it is one more than an int64 holds. */
static void c128a_reports_the_records_of_the_greatest_position(void **state)
{
    static const struct kiln_report_entry want[] = {
        {KILN_OP_C128A_TOPK, 0, -1, KILN_REASON_LENGTH, INT64_MAX},
        {KILN_OP_C128A_TOPK, 1, -1, KILN_REASON_LENGTH, INT64_MAX},
        {KILN_OP_C128A_TOPK, 2, -1, KILN_REASON_LENGTH, INT64_MAX},
    };
    struct batch b;

    (void)state;
    batch_init(&b, 0);
    b.shape.compress_ratio = 1;
    b.positions[0] = b.positions[1] = INT64_MAX;
    b.positions[2] = INT64_MAX - 1;
    check_reports(&b, want, KI_COUNT_OF(want));
}

static void c128a_reports_requests_of_live_decode_rows(void **state)
{
    static const int32_t requests[] = {-1, 1, INT32_MIN, INT32_MAX};
    struct batch b;

    (void)state;
    for (size_t i = 0; i < KI_COUNT_OF(requests); i++) {
        batch_init(&b, 1);
        b.requests[0] = b.requests[1] = requests[i];
        b.positions[0] = 1000;
        check_reports(&b,
                      &(struct kiln_report_entry){KILN_OP_C128A_TOPK, 0, -1,
                                                  KILN_REASON_REQUEST, requests[i]},
                      1);
        b.positions[0] = -1;
        check_reports(&b, NULL, 0);
    }
}

static void c128a_reports_nothing_of_inert_rows(void **state)
{
    struct batch b;

    (void)state;
    batch_init(&b, 2);
    b.args.slot_mapping = b.mapping;
    b.args.live_tokens = value(1);
    b.mapping[0] = -1;
    b.requests[0] = 1 << 30;
    b.positions[1] = b.positions[2] = 1000;
    check_reports(&b, NULL, 0);
}

static void c128a_reports_each_count_once(void **state)
{
    static const struct kiln_report_entry over[] = {
        {KILN_OP_C128A_TOPK, -1, -1, KILN_REASON_LIVE_TOKENS, TOKENS + 1},
        {KILN_OP_C128A_TOPK, -1, -1, KILN_REASON_DECODE_TOKENS, INT32_MAX},
        {KILN_OP_C128A_TOPK, -1, -1, KILN_REASON_ACTIVE_WIDTH, CAPACITY + 1},
    };
    static const struct kiln_report_entry below[] = {
        {KILN_OP_C128A_TOPK, -1, -1, KILN_REASON_LIVE_TOKENS, -1},
        {KILN_OP_C128A_TOPK, -1, -1, KILN_REASON_DECODE_TOKENS, -2},
        {KILN_OP_C128A_TOPK, -1, -1, KILN_REASON_ACTIVE_WIDTH, INT32_MIN},
    };
    struct batch b;

    (void)state;
    batch_init(&b, INT32_MAX);
    b.table[1] = 1;
    b.args.live_tokens = value(TOKENS + 1);
    b.args.active_width = value(CAPACITY + 1);
    check_reports(&b, over, KI_COUNT_OF(over));
    b.args.num_tokens = 0;
    check_reports(&b, NULL, 0);
    batch_init(&b, -2);
    b.args.live_tokens = value(-1);
    b.args.active_width = value(INT32_MIN);
    check_reports(&b, below, KI_COUNT_OF(below));
    batch_init(&b, 0);
    b.args.live_tokens = value(TOKENS);
    b.args.active_width = value(CAPACITY);
    check_reports(&b, NULL, 0);
}

/* One page of two records for each of two ranks: records 0 and 2, 1 and 3. Record 4 is
 * past it and rank 0's, 5 rank 1's. */
static void c128a_reports_what_a_rank_owns(void **state)
{
    (void)state;
    for (int32_t rank = 0; rank < 2; rank++) {
        const struct kiln_report_entry want[] = {
            {KILN_OP_C128A_TOPK, 0, rank, KILN_REASON_PAGE, -9},
            {KILN_OP_C128A_TOPK, 0, rank + 2, KILN_REASON_PAGE, -9},
            {KILN_OP_C128A_TOPK, 0, -1, KILN_REASON_LENGTH, 5},
        };
        struct batch b;
        batch_init(&b, 1);
        b.shape.dcp_world = 2;
        b.shape.table_width = 1;
        b.args.dcp_rank = rank;
        b.args.slot_mapping = b.mapping;
        b.mapping[0] = -1;
        b.table[0] = -9;
        b.positions[0] = 20;
        check_reports(&b, want, rank == 0 ? 3 : 2);
    }
}

static void c128a_refuses_wrong_shapes_and_arguments(void **state)
{
    struct kiln_error err = {0};
    struct batch b;

    (void)state;
    batch_init(&b, 1);
    b.shape.compress_ratio = 0;
    assert_int_equal(kiln_reference_c128a_topk(&b.shape, &b.args, &err), KILN_E_SHAPE);
    assert_non_null(strstr(err.message, "compress_ratio"));
    batch_init(&b, 1);
    b.args.num_decode_tokens.kind = KILN_COUNT_ABSENT;
    assert_int_equal(kiln_reference_c128a_topk(&b.shape, &b.args, &err), KILN_E_ARGUMENT);
    assert_non_null(strstr(err.message, "num_decode_tokens"));
}

static void c128a_equals_the_given_cases(void **state)
{
    (void)state;
    for (size_t i = 0; i < 12; i++) {
        case_check("c128a_topk", i);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(active_width_holds_the_records_and_no_more_than_capacity),
        cmocka_unit_test(c128a_decode_row_counts_unusable_pages_field_31),
        cmocka_unit_test(c128a_prefill_row_holds_record_numbers),
        cmocka_unit_test(c128a_takes_any_position_field_11),
        cmocka_unit_test(c128a_takes_the_greatest_position_at_ratio_1),
        cmocka_unit_test(c128a_decode_row_ends_with_the_table),
        cmocka_unit_test(c128a_leaves_columns_past_the_active_width_field_1),
        cmocka_unit_test(c128a_takes_a_negative_active_width_for_0),
        cmocka_unit_test(c128a_cuts_active_width_at_capacity_field_3),
        cmocka_unit_test(c128a_clamps_the_number_of_decode_tokens),
        cmocka_unit_test(c128a_reads_counts_from_memory),
        cmocka_unit_test(c128a_rows_that_are_not_live_are_inert),
        cmocka_unit_test(c128a_decode_rows_of_no_request_are_inert_field_7),
        cmocka_unit_test(c128a_decode_rows_without_a_raw_slot_are_inert),
        cmocka_unit_test(c128a_prefill_rows_look_at_neither_request_nor_mapping),
        cmocka_unit_test(c128a_rank_keeps_its_records_compacted),
        cmocka_unit_test(c128a_takes_the_greatest_table),
        cmocka_unit_test(c128a_of_an_all_zero_batch_has_no_records_field_10),
        cmocka_unit_test(c128a_reports_pages_of_records),
        cmocka_unit_test(c128a_reports_records_that_are_clipped),
        cmocka_unit_test(c128a_reports_rows_past_the_active_width),
        cmocka_unit_test(c128a_reports_the_records_of_the_greatest_position),
        cmocka_unit_test(c128a_reports_requests_of_live_decode_rows),
        cmocka_unit_test(c128a_reports_nothing_of_inert_rows),
        cmocka_unit_test(c128a_reports_each_count_once),
        cmocka_unit_test(c128a_reports_what_a_rank_owns),
        cmocka_unit_test(c128a_refuses_wrong_shapes_and_arguments),
        cmocka_unit_test(c128a_equals_the_given_cases),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
