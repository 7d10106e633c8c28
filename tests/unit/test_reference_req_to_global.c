/* SPDX-License-Identifier: Apache-2.0 */
/* What req_to_global means at the edges: any id, any page, the workspace, a rank's share. */
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

enum { TOPK = 5, TOKENS = 2, REQUESTS = 2, POISON = 0x55555555 };

/* Pages of two slots, five slots apart; tables {7, -1, 0} and {3, 8, 2}. */
struct batch {
    struct kiln_req_to_global_shape shape;
    struct kiln_req_to_global_args args;
    int32_t ids[TOKENS][TOPK], requests[TOKENS], table[REQUESTS][3];
    int32_t workspace[REQUESTS];
    uint8_t valid[TOKENS], prefill[TOKENS];
    int32_t row[TOKENS][TOPK], counts[TOKENS];
};

static void batch_init(struct batch *b)
{
    *b = (struct batch){
        .shape = {.topk = TOPK,
                  .topk_stride = TOPK,
                  .out_stride = TOPK,
                  .block_size = 2,
                  .page_stride = 5,
                  .table_width = 3,
                  .table_stride = 3,
                  .dcp_world = 1,
                  .dcp_interleave = 1},
        .ids = {{0, 1, 2, 4, 5}, {5, 4, 3, 2, 1}},
        .requests = {0, 1},
        .table = {{7, -1, 0}, {3, 8, 2}},
        .workspace = {100, 200},
        .valid = {1, 1},
        .prefill = {1, 0},
    };
    memset(b->row, 0x55, sizeof(b->row));
    memset(b->counts, 0x55, sizeof(b->counts));
    b->args = (struct kiln_req_to_global_args){
        .token_indices = b->ids[0],
        .req_id = b->requests,
        .block_table = b->table[0],
        .global_indices = b->row[0],
        .counts = b->counts,
        .num_tokens = TOKENS,
        .table_rows = REQUESTS,
    };
}

static void use_workspace(struct batch *b)
{
    b->args.workspace_start = b->workspace;
    b->args.is_prefill = b->prefill;
    b->args.num_requests = REQUESTS;
}

static void run(struct batch *b)
{
    struct kiln_error err = {0};

    if (kiln_reference_req_to_global(&b->shape, &b->args, &err) != KILN_OK) {
        fail_msg("%s", err.message);
    }
}

static void assert_row(const struct batch *b, int t, const int32_t *want, int32_t count)
{
    for (int j = 0; j < TOPK; j++) {
        if (b->row[t][j] != want[j]) {
            fail_msg("token %d, column %d is %d, expected %d", t, j, b->row[t][j],
                     want[j]);
        }
    }
    assert_int_equal(b->counts[t], count);
}

static const int32_t nothing[TOPK] = {-1, -1, -1, -1, -1};

/* Page 0 is an ordinary one, a negative page leaves a hole. */
static void req_to_global_steps_by_page_stride_field_12(void **state)
{
    static const int32_t first[TOPK] = {35, 36, -1, 0, 1};
    static const int32_t second[TOPK] = {11, 10, 41, 40, 16};
    struct batch b;

    (void)state;
    batch_init(&b);
    run(&b);

    assert_row(&b, 0, first, 4);
    assert_row(&b, 1, second, 5);
}

/* Ids that a selection did not write. */
static void req_to_global_takes_any_id_field_8(void **state)
{
    static const int32_t ids[TOPK] = {-1, INT32_MIN, INT32_MAX, 6, 5};
    static const int32_t want[TOPK] = {-1, -1, -1, -1, 11};
    struct batch b;

    (void)state;
    batch_init(&b);
    memcpy(b.ids[1], ids, sizeof(ids));
    run(&b);

    assert_row(&b, 1, want, 1);
}

static void req_to_global_takes_any_page_whose_slot_fits(void **state)
{
    static const struct {
        int32_t page;
        int64_t page_stride;
        int32_t even, odd; /* slots of ids 0 and 1 */
    } cases[] = {
        {INT32_MAX, 5, -1, -1},
        {INT32_MAX, INT32_MAX, -1, -1},
        {INT32_MIN, INT32_MAX, -1, -1},
        {-1, INT32_MAX, -1, -1},
        {1, INT32_MAX, INT32_MAX, -1},
        {1, INT32_MAX - 1, INT32_MAX - 1, INT32_MAX},
        {0, INT32_MAX, 0, 1},
        {429496729, 5, 2147483645, 2147483646},
        {1073741823, 2, 2147483646, INT32_MAX},
        {1073741824, 2, -1, -1},
    };

    (void)state;
    for (size_t i = 0; i < KI_COUNT_OF(cases); i++) {
        struct batch b;
        batch_init(&b);
        b.table[0][0] = cases[i].page;
        b.shape.page_stride = cases[i].page_stride;
        run(&b);
        assert_int_equal(b.row[0][0], cases[i].even);
        assert_int_equal(b.row[0][1], cases[i].odd);
    }
}

/* Token 0 is of a prefill, token 1 is not. The ids are bounded by the table all the same. */
static void req_to_global_gathers_prefill_tokens(void **state)
{
    static const int32_t ids[TOPK] = {0, 5, 6, -1, 2};
    static const int32_t first[TOPK] = {100, 105, -1, -1, 102};
    static const int32_t second[TOPK] = {11, 10, 41, 40, 16};
    struct batch b;

    (void)state;
    batch_init(&b);
    use_workspace(&b);
    memcpy(b.ids[0], ids, sizeof(ids));
    run(&b);

    assert_row(&b, 0, first, 3);
    assert_row(&b, 1, second, 5);
}

static void req_to_global_takes_any_byte_above_0_for_prefill(void **state)
{
    struct batch b;

    (void)state;
    batch_init(&b);
    use_workspace(&b);
    b.prefill[0] = 255;
    run(&b);

    assert_int_equal(b.row[0][0], 100);
}

static void req_to_global_takes_any_workspace_start_whose_row_fits(void **state)
{
    static const struct {
        int32_t start;
        int32_t want[TOPK]; /* of ids 0 1 2 4 5 */
        int32_t count;
    } cases[] = {
        {0, {0, 1, 2, 4, 5}, 5},
        {-1, {-1, 0, 1, 3, 4}, 4},
        {-4, {-1, -1, -1, 0, 1}, 2},
        {INT32_MIN, {-1, -1, -1, -1, -1}, 0},
        {INT32_MAX, {INT32_MAX, -1, -1, -1, -1}, 1},
        {INT32_MAX - 4, {INT32_MAX - 4, INT32_MAX - 3, INT32_MAX - 2, INT32_MAX, -1}, 4},
    };

    (void)state;
    for (size_t i = 0; i < KI_COUNT_OF(cases); i++) {
        struct batch b;
        batch_init(&b);
        use_workspace(&b);
        b.workspace[0] = cases[i].start;
        run(&b);
        assert_row(&b, 0, cases[i].want, cases[i].count);
    }
}

/* workspace_start has as many elements as there are requests, and bounds all tokens. */
static void req_to_global_rows_past_the_workspace_are_inert_field_7(void **state)
{
    struct batch b;

    (void)state;
    batch_init(&b);
    use_workspace(&b);
    b.args.num_requests = 1;
    run(&b);

    assert_int_equal(b.counts[0], 5);
    assert_row(&b, 1, nothing, 0);
}

static void req_to_global_prefill_rows_past_the_table_are_inert_field_7(void **state)
{
    struct batch b;

    (void)state;
    batch_init(&b);
    use_workspace(&b);
    b.prefill[1] = 1;
    b.args.table_rows = 1;
    run(&b);

    assert_row(&b, 1, nothing, 0);
}

static void req_to_global_rows_of_no_request_are_inert_field_7(void **state)
{
    static const int32_t requests[] = {-1, REQUESTS, INT32_MIN, INT32_MAX};

    (void)state;
    for (size_t i = 0; i < KI_COUNT_OF(requests); i++) {
        struct batch b;
        batch_init(&b);
        b.requests[0] = requests[i];
        run(&b);
        assert_row(&b, 0, nothing, 0);
        assert_int_equal(b.counts[1], 5);
    }
}

/* A padded row's request may be any integer, and is not looked at. */
static void req_to_global_rows_that_are_not_valid_are_inert_field_6(void **state)
{
    struct batch b;

    (void)state;
    batch_init(&b);
    b.args.is_valid_token = b.valid;
    b.valid[0] = 0;
    b.valid[1] = 2;
    b.requests[0] = INT32_MAX;
    run(&b);

    assert_row(&b, 0, nothing, 0);
    assert_int_equal(b.counts[1], 5);
}

static void req_to_global_reads_live_tokens_from_memory_field_28(void **state)
{
    static const struct {
        int32_t live, first, second; /* counts */
    } cases[] = {{2, 4, 5}, {1, 4, 0}, {0, 0, 0}, {-7, 0, 0}, {INT32_MAX, 4, 5}};

    (void)state;
    for (size_t i = 0; i < KI_COUNT_OF(cases); i++) {
        struct batch b;
        batch_init(&b);
        b.args.live_tokens =
            (struct kiln_count){.address = &cases[i].live, .kind = KILN_COUNT_DEVICE};
        run(&b);
        assert_int_equal(b.counts[0], cases[i].first);
        assert_int_equal(b.counts[1], cases[i].second);
    }
}

static void req_to_global_leaves_the_padding_of_rows(void **state)
{
    struct batch b;

    (void)state;
    batch_init(&b);
    b.shape.topk = 3;
    run(&b);

    assert_int_equal(b.row[0][2], -1);
    assert_int_equal(b.row[0][3], POISON);
    assert_int_equal(b.row[1][4], POISON);
}

/* Interleave 2: ids 0 1 4 5 8 9 are of rank 0, its numbers 0-5; 2 3 6 7 10 11 are of rank 1. */
static void req_to_global_of_a_rank_is_compacted(void **state)
{
    static const int32_t ids[TOPK] = {10, 1, 3, 12, 9};
    static const int32_t first[2][TOPK] = {{16, 11, -1, -1, -1}, {10, 16, -1, -1, -1}};

    (void)state;
    for (int32_t rank = 0; rank < 2; rank++) {
        struct batch b;
        batch_init(&b);
        b.shape.dcp_world = 2;
        b.shape.dcp_interleave = 2;
        b.args.dcp_rank = rank;
        memcpy(b.ids[1], ids, sizeof(ids));
        run(&b);
        assert_row(&b, 1, first[rank], 2);
    }
}

static void req_to_global_of_a_rank_drops_unusable_pages(void **state)
{
    static const int32_t want[TOPK] = {0, -1, -1, -1, -1};
    struct batch b;

    (void)state;
    batch_init(&b);
    b.shape.dcp_world =
        2; /* rank 0: ids 0 2 4 6 8 are its numbers 0-4, page -1 has 2 and 3 */
    memcpy(b.ids[0], (int32_t[TOPK]){4, -1, 6, 8, 1}, sizeof(b.ids[0]));
    run(&b);

    assert_row(&b, 0, want, 1);
}

static void req_to_global_of_no_tokens_touches_nothing(void **state)
{
    struct batch b;

    (void)state;
    batch_init(&b);
    b.args.num_tokens = 0;
    run(&b);

    assert_int_equal(b.row[0][0], POISON);
    assert_int_equal(b.counts[0], POISON);
}

static void assert_refused(const struct batch *b, const char *word)
{
    struct kiln_error err = {0};

    assert_int_not_equal(kiln_reference_req_to_global(&b->shape, &b->args, &err),
                         KILN_OK);
    if (strstr(err.message, word) == NULL) {
        fail_msg("\"%s\" lacks \"%s\"", err.message, word);
    }
}

static void check_reports(struct batch *b, const struct kiln_report_entry *want, size_t n)
{
    struct report_room room;

    b->args.report = report_begin(&room);
    run(b);
    report_check(&room, want, n);
}

/* 6 is past the three pages of two; id 2 lies on a page of -1. */
static void req_to_global_reports_ids_and_pages(void **state)
{
    static const int32_t ids[TOPK] = {-1, INT32_MIN, INT32_MAX, 6, 2};
    static const struct kiln_report_entry want[] = {
        {KILN_OP_REQ_TO_GLOBAL, 0, 1, KILN_REASON_ID, INT32_MIN},
        {KILN_OP_REQ_TO_GLOBAL, 0, 2, KILN_REASON_ID, INT32_MAX},
        {KILN_OP_REQ_TO_GLOBAL, 0, 3, KILN_REASON_ID, 6},
        {KILN_OP_REQ_TO_GLOBAL, 0, 4, KILN_REASON_PAGE, -1},
    };
    struct batch b;

    (void)state;
    batch_init(&b);
    memcpy(b.ids[0], ids, sizeof(ids));
    check_reports(&b, want, KI_COUNT_OF(want));

    assert_row(&b, 0, nothing, 0);
}

static void req_to_global_reports_indices_past_int32(void **state)
{
    static const struct kiln_report_entry want[] = {
        {KILN_OP_REQ_TO_GLOBAL, 1, 0, KILN_REASON_RANGE, INT64_C(2147483651)},
        {KILN_OP_REQ_TO_GLOBAL, 1, 1, KILN_REASON_RANGE, INT64_C(2147483650)},
        {KILN_OP_REQ_TO_GLOBAL, 1, 3, KILN_REASON_RANGE, INT64_C(10737418235)},
    };
    struct batch b;

    (void)state;
    batch_init(&b);
    b.args.live_tokens = (struct kiln_count){.value = TOKENS, .kind = KILN_COUNT_VALUE};
    memset(b.ids[0], -1, sizeof(b.ids[0]));
    memcpy(b.ids[1], (int32_t[]){5, 4, -1, 2, 1}, sizeof(b.ids[1]));
    memcpy(b.table[1], (int32_t[]){429496729, INT32_MAX, 429496730}, sizeof(b.table[1]));
    check_reports(&b, want, KI_COUNT_OF(want));
}

/* Token 0 is a prefill token: its pages do not matter. Token 1 decodes. */
static void req_to_global_reports_indices_of_a_workspace(void **state)
{
    static const struct kiln_report_entry want[] = {
        {KILN_OP_REQ_TO_GLOBAL, 0, 1, KILN_REASON_RANGE, -3},
        {KILN_OP_REQ_TO_GLOBAL, 0, 2, KILN_REASON_RANGE, -2},
        {KILN_OP_REQ_TO_GLOBAL, 0, 3, KILN_REASON_ID, 6},
        {KILN_OP_REQ_TO_GLOBAL, 1, 0, KILN_REASON_PAGE, INT32_MIN},
    };
    struct batch b;

    (void)state;
    batch_init(&b);
    use_workspace(&b);
    b.workspace[0] = -4;
    b.table[1][2] = INT32_MIN;
    memcpy(b.ids[0], (int32_t[]){4, 1, 2, 6, 5}, sizeof(b.ids[0]));
    memcpy(b.ids[1], (int32_t[]){5, -1, 3, 2, 1}, sizeof(b.ids[1]));
    check_reports(&b, want, KI_COUNT_OF(want));
    b.workspace[0] = INT32_MAX - 4;
    check_reports(
        &b,
        (struct kiln_report_entry[]){
            {KILN_OP_REQ_TO_GLOBAL, 0, 3, KILN_REASON_ID, 6},
            {KILN_OP_REQ_TO_GLOBAL, 0, 4, KILN_REASON_RANGE, INT64_C(2147483648)},
            {KILN_OP_REQ_TO_GLOBAL, 1, 0, KILN_REASON_PAGE, INT32_MIN}},
        3);
}

static void req_to_global_reports_requests_of_live_rows(void **state)
{
    static const int32_t requests[] = {-1, REQUESTS, INT32_MIN, INT32_MAX};
    struct batch b;

    (void)state;
    for (size_t i = 0; i < KI_COUNT_OF(requests); i++) {
        batch_init(&b);
        b.requests[1] = requests[i];
        b.ids[0][2] = b.ids[1][0] = -1;
        b.args.is_valid_token = b.valid;
        check_reports(&b,
                      &(struct kiln_report_entry){KILN_OP_REQ_TO_GLOBAL, 1, -1,
                                                  KILN_REASON_REQUEST, requests[i]},
                      1);
        b.valid[1] = 0;
        check_reports(&b, NULL, 0);
    }
    batch_init(&b);
    use_workspace(&b);
    b.args.num_requests = 1;
    check_reports(
        &b,
        &(struct kiln_report_entry){KILN_OP_REQ_TO_GLOBAL, 1, -1, KILN_REASON_REQUEST, 1},
        1);
}

static void req_to_global_reports_a_count_once(void **state)
{
    struct batch b;

    (void)state;
    batch_init(&b);
    b.ids[0][2] = -1;
    b.args.live_tokens =
        (struct kiln_count){.value = TOKENS + 1, .kind = KILN_COUNT_VALUE};
    check_reports(&b,
                  &(struct kiln_report_entry){KILN_OP_REQ_TO_GLOBAL, -1, -1,
                                              KILN_REASON_LIVE_TOKENS, TOKENS + 1},
                  1);
    b.args.num_tokens = 0;
    check_reports(&b, NULL, 0);
    batch_init(&b);
    b.ids[0][0] = -5;
    b.args.live_tokens = (struct kiln_count){.value = -1, .kind = KILN_COUNT_VALUE};
    check_reports(&b,
                  &(struct kiln_report_entry){KILN_OP_REQ_TO_GLOBAL, -1, -1,
                                              KILN_REASON_LIVE_TOKENS, -1},
                  1);
}

/* Ids 12 and 13 are past three pages of two of two ranks; 4 and 5 lie on a page of -1. */
static void req_to_global_reports_what_a_rank_owns(void **state)
{
    (void)state;
    for (int32_t rank = 0; rank < 2; rank++) {
        const struct kiln_report_entry want[] = {
            {KILN_OP_REQ_TO_GLOBAL, 0, 0, KILN_REASON_ID, -2},
            {KILN_OP_REQ_TO_GLOBAL, 0, 1 + rank, KILN_REASON_ID, 12 + rank},
            {KILN_OP_REQ_TO_GLOBAL, 0, 3 + rank, KILN_REASON_PAGE, -1},
        };
        struct batch b;
        batch_init(&b);
        b.shape.dcp_world = 2;
        b.args.dcp_rank = rank;
        memcpy(b.ids[0], (int32_t[]){-2, 12, 13, 4, 5}, sizeof(b.ids[0]));
        check_reports(&b, want, KI_COUNT_OF(want));
    }
}

static void req_to_global_refuses_a_page_stride_below_the_page_field_20(void **state)
{
    struct batch b;

    (void)state;
    batch_init(&b);
    b.shape.page_stride = 1;

    assert_refused(&b, "page_stride = 1: expected at least block_size = 2");
}

static void req_to_global_refuses_half_a_workspace(void **state)
{
    struct batch b;

    (void)state;
    batch_init(&b);
    use_workspace(&b);
    b.args.is_prefill = NULL;
    assert_refused(&b, "is_prefill is missing");
    use_workspace(&b);
    b.args.workspace_start = NULL;
    assert_refused(&b, "workspace_start is missing");
}

static void req_to_global_refuses_a_workspace_of_several_ranks(void **state)
{
    struct batch b;

    (void)state;
    batch_init(&b);
    use_workspace(&b);
    b.shape.dcp_world = 2;

    assert_refused(&b, "workspace_start is given: expected none, as dcp_world is 2");
}

static void req_to_global_refuses_a_rank_out_of_range(void **state)
{
    struct batch b;

    (void)state;
    batch_init(&b);
    b.args.dcp_rank = 1;

    assert_refused(&b, "dcp_rank = 1");
}

static void req_to_global_equals_the_given_cases(void **state)
{
    (void)state;
    for (size_t i = 0; i < 12; i++) {
        case_check("req_to_global", i);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(req_to_global_steps_by_page_stride_field_12),
        cmocka_unit_test(req_to_global_takes_any_id_field_8),
        cmocka_unit_test(req_to_global_takes_any_page_whose_slot_fits),
        cmocka_unit_test(req_to_global_gathers_prefill_tokens),
        cmocka_unit_test(req_to_global_takes_any_byte_above_0_for_prefill),
        cmocka_unit_test(req_to_global_takes_any_workspace_start_whose_row_fits),
        cmocka_unit_test(req_to_global_rows_past_the_workspace_are_inert_field_7),
        cmocka_unit_test(req_to_global_prefill_rows_past_the_table_are_inert_field_7),
        cmocka_unit_test(req_to_global_rows_of_no_request_are_inert_field_7),
        cmocka_unit_test(req_to_global_rows_that_are_not_valid_are_inert_field_6),
        cmocka_unit_test(req_to_global_reads_live_tokens_from_memory_field_28),
        cmocka_unit_test(req_to_global_leaves_the_padding_of_rows),
        cmocka_unit_test(req_to_global_of_a_rank_is_compacted),
        cmocka_unit_test(req_to_global_of_a_rank_drops_unusable_pages),
        cmocka_unit_test(req_to_global_of_no_tokens_touches_nothing),
        cmocka_unit_test(req_to_global_reports_ids_and_pages),
        cmocka_unit_test(req_to_global_reports_indices_past_int32),
        cmocka_unit_test(req_to_global_reports_indices_of_a_workspace),
        cmocka_unit_test(req_to_global_reports_requests_of_live_rows),
        cmocka_unit_test(req_to_global_reports_a_count_once),
        cmocka_unit_test(req_to_global_reports_what_a_rank_owns),
        cmocka_unit_test(req_to_global_refuses_a_page_stride_below_the_page_field_20),
        cmocka_unit_test(req_to_global_refuses_half_a_workspace),
        cmocka_unit_test(req_to_global_refuses_a_workspace_of_several_ranks),
        cmocka_unit_test(req_to_global_refuses_a_rank_out_of_range),
        cmocka_unit_test(req_to_global_equals_the_given_cases),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
