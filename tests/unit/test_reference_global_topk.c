/* SPDX-License-Identifier: Apache-2.0 */
/* What global_topk means at the edges: any id, any page, any request, any rank. */
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

enum { TOPK = 4, POISON = 0x55555555 };

/* One row of four picks of request 0, whose table has two pages of four slots. */
struct row {
    struct kiln_global_topk_shape shape;
    struct kiln_global_topk_args args;
    int32_t picks[TOPK], request, table[4];
    uint8_t valid;
    int32_t slots[TOPK + 2], len;
};

static void row_init(struct row *row)
{
    *row = (struct row){
        .shape = {.topk = TOPK,
                  .topk_stride = TOPK,
                  .slots_stride = TOPK + 2,
                  .block_size = 4,
                  .table_width = 2,
                  .table_stride = 2,
                  .dcp_world = 1,
                  .dcp_interleave = 1},
        .picks = {0, 5, -1, 7},
        .table = {7, 3, 100, 101},
        .valid = 1,
        .len = POISON,
    };
    for (int j = 0; j < TOPK + 2; j++) {
        row->slots[j] = POISON;
    }
    row->args = (struct kiln_global_topk_args){
        .topk_indices = row->picks,
        .token_to_req = &row->request,
        .block_table = row->table,
        .slots = row->slots,
        .lens = &row->len,
        .num_tokens = 1,
        .table_rows = 2,
    };
}

static void run(struct row *row)
{
    struct kiln_error err = {0};

    if (kiln_reference_global_topk(&row->shape, &row->args, &err) != KILN_OK) {
        fail_msg("%s", err.message);
    }
}

static void assert_row(const struct row *row, const char *label, const int32_t *slots,
                       int32_t len)
{
    for (int j = 0; j < TOPK; j++) {
        if (row->slots[j] != slots[j]) {
            fail_msg("%s: column %d is %d, expected %d", label, j, row->slots[j],
                     slots[j]);
        }
    }
    if (row->len != len) {
        fail_msg("%s: length %d, expected %d", label, row->len, len);
    }
}

static void assert_inert(const struct row *row, const char *label)
{
    static const int32_t none[] = {-1, -1, -1, -1};

    assert_row(row, label, none, 0);
}

static void global_topk_keeps_order_and_holes_field_31(void **state)
{
    static const int32_t want[] = {28, 13, -1, 15};
    struct row row;

    (void)state;
    row_init(&row);
    run(&row);

    assert_row(&row, "holes", want, 3);
}

static void global_topk_takes_any_id_field_8(void **state)
{
    static const int32_t want[] = {-1, -1, 15, -1};
    struct row row;

    (void)state;
    row_init(&row);
    memcpy(row.picks, (int32_t[]){INT32_MIN, INT32_MAX, 7, 8}, sizeof(row.picks));
    run(&row);

    assert_row(&row, "ids", want, 1);
}

struct page_case {
    const char *label;
    int64_t block_size;
    int32_t page, id, slot;
};

static void global_topk_takes_any_page(void **state)
{
    static const struct page_case cases[] = {
        {"page 0", 4, 0, 3, 3},
        {"page -1", 4, -1, 3, -1},
        {"the least page", 4, INT32_MIN, 0, -1},
        {"the last page", 4, 536870911, 3, INT32_MAX},
        {"one page too far", 4, 536870912, 0, -1},
        {"the greatest page", 4, INT32_MAX, 0, -1},
        {"pages of one slot", 1, INT32_MAX, 0, INT32_MAX},
        {"the last page of 3", 3, 715827881, 2, 2147483645},
        {"a page of 3 that fits in part", 3, 715827882, 0, -1},
        {"the greatest block", INT32_MAX, 0, 2147483646, 2147483646},
        {"the greatest block's second page", INT32_MAX, 1, 0, -1},
    };

    (void)state;
    for (size_t i = 0; i < KI_COUNT_OF(cases); i++) {
        struct row row;
        row_init(&row);
        row.shape.block_size = cases[i].block_size;
        row.table[0] = cases[i].page;
        memcpy(row.picks, (int32_t[]){cases[i].id, -1, -1, -1}, sizeof(row.picks));
        run(&row);
        int32_t want[] = {cases[i].slot, -1, -1, -1};
        assert_row(&row, cases[i].label, want, cases[i].slot >= 0);
    }
}

static void global_topk_takes_a_table_of_more_slots_than_int32(void **state)
{
    static const int32_t want[] = {INT32_MAX, 5, -1, -1};
    struct row row;

    (void)state;
    row_init(&row);
    row.shape.block_size = (int64_t)1 << 30;
    row.shape.table_width = row.shape.table_stride = 4;
    row.args.table_rows = 1;
    memcpy(row.table, (int32_t[]){0, 1, 1, 1}, sizeof(row.table));
    memcpy(row.picks, (int32_t[]){INT32_MAX, 5, -1, INT32_MIN}, sizeof(row.picks));
    run(&row);

    assert_row(&row, "wide", want, 2);
}

static void global_topk_makes_rows_of_no_request_inert_field_7(void **state)
{
    static const int32_t requests[] = {-1, 2, INT32_MIN, INT32_MAX};

    (void)state;
    for (size_t i = 0; i < KI_COUNT_OF(requests); i++) {
        struct row row;
        row_init(&row);
        row.request = requests[i];
        run(&row);
        assert_inert(&row, "no request");
    }
}

static void global_topk_without_a_table_is_inert(void **state)
{
    struct row row;

    (void)state;
    row_init(&row);
    row.args.table_rows = 0;
    row.args.block_table = NULL;
    run(&row);

    assert_inert(&row, "no table");
}

static void global_topk_tests_validity_before_the_request_field_6(void **state)
{
    struct row row;

    (void)state;
    row_init(&row);
    row.valid = 0;
    row.request = 1 << 30;
    row.args.is_valid_token = &row.valid;
    run(&row);

    assert_inert(&row, "not valid");
}

static void global_topk_takes_any_byte_but_0_for_valid(void **state)
{
    struct row row;

    (void)state;
    row_init(&row);
    row.valid = 255;
    row.args.is_valid_token = &row.valid;
    run(&row);

    assert_int_equal(row.len, 3);
}

static void global_topk_stops_at_live_tokens_field_9(void **state)
{
    static const int32_t counts[] = {INT32_MIN, -1, 0, 1, INT32_MAX};

    (void)state;
    for (size_t i = 0; i < KI_COUNT_OF(counts); i++) {
        struct row by_value;
        struct row by_address;
        int32_t want = counts[i] > 0 ? 3 : 0;
        row_init(&by_value);
        row_init(&by_address);
        by_value.args.live_tokens =
            (struct kiln_count){.value = counts[i], .kind = KILN_COUNT_VALUE};
        by_address.args.live_tokens =
            (struct kiln_count){.address = &counts[i], .kind = KILN_COUNT_DEVICE};
        run(&by_value);
        run(&by_address);
        assert_int_equal(by_value.len, want);
        assert_int_equal(by_address.len, want);
    }
}

static void global_topk_leaves_padding_alone(void **state)
{
    struct row row;

    (void)state;
    row_init(&row);
    run(&row);

    assert_int_equal(row.slots[TOPK], POISON);
    assert_int_equal(row.slots[TOPK + 1], POISON);
}

static void global_topk_of_no_rows_does_nothing(void **state)
{
    struct row row;

    (void)state;
    row_init(&row);
    row.args = (struct kiln_global_topk_args){.num_tokens = 0};
    run(&row);

    assert_int_equal(row.len, POISON);
}

/* Slots 0 1 4 5 of a span of eight are rank 0's, 2 3 6 7 rank 1's. */
static void global_topk_compacts_what_a_rank_owns(void **state)
{
    static const int32_t want[2][TOPK] = {{30, 29, -1, -1}, {31, 28, -1, -1}};

    (void)state;
    for (int32_t rank = 0; rank < 2; rank++) {
        struct row row;
        row_init(&row);
        row.shape.dcp_world = 2;
        row.shape.dcp_interleave = 2;
        row.args.dcp_rank = rank;
        memcpy(row.picks, (int32_t[]){7, 4, 1, 2}, sizeof(row.picks));
        run(&row);
        assert_row(&row, "rank", want[rank], 2);
    }
}

static void global_topk_drops_unusable_pages_of_a_rank(void **state)
{
    static const int32_t want[] = {30, -1, -1, -1};
    struct row row;

    (void)state;
    row_init(&row);
    row.shape.dcp_world = 2;
    row.shape.dcp_interleave = 2;
    row.table[1] = -5;
    memcpy(row.picks, (int32_t[]){9, 12, 4, INT32_MAX}, sizeof(row.picks));
    run(&row);

    assert_row(&row, "unusable", want, 1);
}

static void global_topk_takes_a_world_whose_span_passes_int32(void **state)
{
    static const int32_t want[] = {(1 << 30) + 1, 1 << 30, -1, -1};
    struct row row;

    (void)state;
    row_init(&row);
    row.shape.block_size = (int64_t)1 << 30;
    row.shape.dcp_world = INT32_MAX;
    row.table[0] = 1;
    memcpy(row.picks, (int32_t[]){INT32_MAX, INT32_MAX - 1, 0, -1}, sizeof(row.picks));
    run(&row);

    assert_row(&row, "world", want, 2);
}

static void check_reports(struct row *row, const struct kiln_report_entry *want, size_t n)
{
    struct report_room room;

    row->args.report = report_begin(&room);
    run(row);
    report_check(&room, want, n);
}

static void global_topk_reports_ids_and_pages(void **state)
{
    static const struct kiln_report_entry want[] = {
        {KILN_OP_GLOBAL_TOPK, 0, 0, KILN_REASON_ID, INT32_MIN},
        {KILN_OP_GLOBAL_TOPK, 0, 2, KILN_REASON_ID, 8},
        {KILN_OP_GLOBAL_TOPK, 0, 3, KILN_REASON_PAGE, -3},
    };
    struct row row;

    (void)state;
    row_init(&row);
    row.table[1] = -3;
    memcpy(row.picks, (int32_t[]){INT32_MIN, -1, 8, 7}, sizeof(row.picks));
    check_reports(&row, want, KI_COUNT_OF(want));

    assert_inert(&row, "reported");
}

static void global_topk_reports_the_first_page_too_far(void **state)
{
    static const struct kiln_report_entry want[] = {
        {KILN_OP_GLOBAL_TOPK, 0, 1, KILN_REASON_PAGE, 536870912},
        {KILN_OP_GLOBAL_TOPK, 0, 3, KILN_REASON_PAGE, 536870912},
    };
    struct row row;

    (void)state;
    row_init(&row);
    row.table[0] = 536870911;
    row.table[1] = 536870912;
    check_reports(&row, want, KI_COUNT_OF(want));
    memcpy(row.picks, (int32_t[]){-1, -2, -1, -1}, sizeof(row.picks));
    check_reports(
        &row, &(struct kiln_report_entry){KILN_OP_GLOBAL_TOPK, 0, 1, KILN_REASON_ID, -2},
        1);
}

static void global_topk_reports_a_request_and_no_more_of_its_row(void **state)
{
    static const int32_t requests[] = {-1, 2, INT32_MIN, INT32_MAX};

    (void)state;
    for (size_t i = 0; i < KI_COUNT_OF(requests); i++) {
        struct row row;
        row_init(&row);
        row.request = requests[i];
        row.picks[0] = INT32_MAX;
        check_reports(&row,
                      &(struct kiln_report_entry){KILN_OP_GLOBAL_TOPK, 0, -1,
                                                  KILN_REASON_REQUEST, requests[i]},
                      1);
    }
}

static void global_topk_reports_nothing_of_inert_rows(void **state)
{
    struct row row;

    (void)state;
    row_init(&row);
    row.valid = 0;
    row.request = 1 << 30;
    row.args.is_valid_token = &row.valid;
    check_reports(&row, NULL, 0);
    row_init(&row);
    row.picks[0] = INT32_MAX;
    row.args.live_tokens = (struct kiln_count){.value = 0, .kind = KILN_COUNT_VALUE};
    check_reports(&row, NULL, 0);
}

static void global_topk_reports_a_count_once(void **state)
{
    static const int32_t counts[] = {INT32_MIN, -1, 2, INT32_MAX};

    (void)state;
    for (size_t i = 0; i < KI_COUNT_OF(counts); i++) {
        const struct kiln_report_entry want = {KILN_OP_GLOBAL_TOPK, -1, -1,
                                               KILN_REASON_LIVE_TOKENS, counts[i]};
        struct row row;
        row_init(&row);
        row.args.live_tokens =
            (struct kiln_count){.value = counts[i], .kind = KILN_COUNT_VALUE};
        check_reports(&row, &want, 1);
        row.args.live_tokens =
            (struct kiln_count){.address = &counts[i], .kind = KILN_COUNT_DEVICE};
        check_reports(&row, &want, 1);
        row.args.num_tokens = 0;
        check_reports(&row, NULL, 0);
    }
}

/* 16 and 18 are past both pages: rank 0's and rank 1's. So is 10, on a page. */
static void global_topk_reports_what_a_rank_owns(void **state)
{
    static const struct kiln_report_entry want[2][3] = {
        {{KILN_OP_GLOBAL_TOPK, 0, 0, KILN_REASON_ID, -7},
         {KILN_OP_GLOBAL_TOPK, 0, 1, KILN_REASON_ID, 16}},
        {{KILN_OP_GLOBAL_TOPK, 0, 0, KILN_REASON_ID, -7},
         {KILN_OP_GLOBAL_TOPK, 0, 2, KILN_REASON_ID, 18},
         {KILN_OP_GLOBAL_TOPK, 0, 3, KILN_REASON_PAGE, -5}},
    };

    (void)state;
    for (int32_t rank = 0; rank < 2; rank++) {
        struct row row;
        row_init(&row);
        row.shape.dcp_world = 2;
        row.shape.dcp_interleave = 2;
        row.args.dcp_rank = rank;
        row.table[1] = -5;
        memcpy(row.picks, (int32_t[]){-7, 16, 18, 10}, sizeof(row.picks));
        check_reports(&row, want[rank], rank == 0 ? 2 : 3);
    }
}

static void global_topk_refuses_a_wrong_shape(void **state)
{
    struct kiln_error err = {0};
    struct row row;

    (void)state;
    row_init(&row);
    row.shape.block_size = 0;

    assert_int_equal(kiln_reference_global_topk(&row.shape, &row.args, &err),
                     KILN_E_SHAPE);
    assert_non_null(strstr(err.message, "block_size"));
    assert_int_equal(row.len, POISON);
}

static void global_topk_refuses_wrong_arguments(void **state)
{
    struct kiln_error err = {0};
    struct row row;

    (void)state;
    row_init(&row);
    row.args.dcp_rank = 1;
    assert_int_equal(kiln_reference_global_topk(&row.shape, &row.args, &err),
                     KILN_E_ARGUMENT);
    assert_non_null(strstr(err.message, "dcp_rank"));
    row_init(&row);
    row.args.lens = NULL;
    assert_int_equal(kiln_reference_global_topk(&row.shape, &row.args, &err),
                     KILN_E_ARGUMENT);
    assert_non_null(strstr(err.message, "lens"));
}

static void global_topk_equals_the_given_cases(void **state)
{
    (void)state;
    for (size_t i = 0; i < 12; i++) {
        case_check("global_topk", i);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(global_topk_keeps_order_and_holes_field_31),
        cmocka_unit_test(global_topk_takes_any_id_field_8),
        cmocka_unit_test(global_topk_takes_any_page),
        cmocka_unit_test(global_topk_takes_a_table_of_more_slots_than_int32),
        cmocka_unit_test(global_topk_makes_rows_of_no_request_inert_field_7),
        cmocka_unit_test(global_topk_without_a_table_is_inert),
        cmocka_unit_test(global_topk_tests_validity_before_the_request_field_6),
        cmocka_unit_test(global_topk_takes_any_byte_but_0_for_valid),
        cmocka_unit_test(global_topk_stops_at_live_tokens_field_9),
        cmocka_unit_test(global_topk_leaves_padding_alone),
        cmocka_unit_test(global_topk_of_no_rows_does_nothing),
        cmocka_unit_test(global_topk_compacts_what_a_rank_owns),
        cmocka_unit_test(global_topk_drops_unusable_pages_of_a_rank),
        cmocka_unit_test(global_topk_takes_a_world_whose_span_passes_int32),
        cmocka_unit_test(global_topk_reports_ids_and_pages),
        cmocka_unit_test(global_topk_reports_the_first_page_too_far),
        cmocka_unit_test(global_topk_reports_a_request_and_no_more_of_its_row),
        cmocka_unit_test(global_topk_reports_nothing_of_inert_rows),
        cmocka_unit_test(global_topk_reports_a_count_once),
        cmocka_unit_test(global_topk_reports_what_a_rank_owns),
        cmocka_unit_test(global_topk_refuses_a_wrong_shape),
        cmocka_unit_test(global_topk_refuses_wrong_arguments),
        cmocka_unit_test(global_topk_equals_the_given_cases),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
