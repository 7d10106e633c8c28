/* SPDX-License-Identifier: Apache-2.0 */
/* A report is made, read and put into words on the host; a reference writes it as a kernel does. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "kiln/kiln.h"

#include "base/attr.h"
#include "reference/report.h"
#include "support/count.h"

enum { CAPACITY = 6, TEXT = 160 };

/* A report and its room. */
struct buffer {
    struct kiln_report report;
    struct kiln_report_entry entries[CAPACITY];
};

/* ---- making one --------------------------------------------------------------------- */

static void report_bytes_are_the_header_and_the_entries(void **state)
{
    (void)state;
    assert_int_equal(kiln_report_bytes(0), 16);
    assert_int_equal(kiln_report_bytes(1), 16 + 24);
    assert_int_equal(kiln_report_bytes(CAPACITY), sizeof(struct buffer));
    assert_true(kiln_report_bytes(UINT32_MAX) == 16 + (size_t)24 * UINT32_MAX);
}

static void report_init_makes_an_empty_one_and_leaves_the_entries(void **state)
{
    struct buffer buffer;

    (void)state;
    memset(&buffer, 0xA5, sizeof buffer);
    assert_ptr_equal(kiln_report_init(&buffer, CAPACITY), &buffer);

    assert_int_equal(buffer.report.n_found, 0);
    assert_int_equal(buffer.report.capacity, CAPACITY);
    assert_int_equal(buffer.report.reserved, 0);
    assert_int_equal(buffer.entries[0].reason, (int32_t)0xA5A5A5A5);
}

static void report_init_of_nothing_is_nothing(void **state)
{
    (void)state;
    assert_null(kiln_report_init(NULL, 1));
}

/* ---- the entries -------------------------------------------------------------------- */

static void sort_orders_by_op_row_column_reason_and_value(void **state)
{
    static const struct kiln_report_entry sorted[CAPACITY] = {
        {1, 9, 9, 9, 9}, {2, -1, 9, 9, 9},        {2, 0, -1, 9, 9},
        {2, 0, 0, 1, 9}, {2, 0, 0, 2, INT64_MIN}, {2, 0, 0, 2, INT64_MAX},
    };
    struct buffer buffer = {{CAPACITY, CAPACITY, 0}, {{0}}};

    (void)state;
    for (size_t turn = 0; turn < CAPACITY; turn++) {
        size_t n = 0;

        for (size_t i = 0; i < CAPACITY; i++) {
            buffer.entries[i] = sorted[(i * 5 + turn) % CAPACITY];
        }
        assert_ptr_equal(kiln_report_sort(&buffer.report, &n), buffer.entries);
        assert_int_equal(n, CAPACITY);
        assert_memory_equal(buffer.entries, sorted, sizeof sorted);
    }
}

static void sort_looks_at_kept_entries_alone(void **state)
{
    struct buffer buffer = {{2, CAPACITY, 0}, {{3, 0, 0, 1, 0}, {2, 0, 0, 1, 0}}};
    size_t n = 77;

    (void)state;
    assert_non_null(kiln_report_sort(&buffer.report, &n));
    assert_int_equal(n, 2);
    assert_int_equal(buffer.entries[0].op, 2);
    assert_int_equal(buffer.entries[2].op, 0);
}

static void sort_of_more_than_there_is_room_for_gives_what_was_kept(void **state)
{
    struct buffer buffer = {{UINT64_C(1) << 40, 1, 0},
                            {{3, 0, 0, 1, 0}, {2, 0, 0, 1, 0}}};
    size_t n = 77;

    (void)state;
    assert_non_null(kiln_report_sort(&buffer.report, &n));
    assert_int_equal(n, 1);
    assert_int_equal(buffer.entries[0].op, 3);
    assert_non_null(kiln_report_sort(&buffer.report, NULL));
}

static void sort_of_nothing_is_nothing(void **state)
{
    size_t n = 77;

    (void)state;
    assert_null(kiln_report_sort(NULL, &n));
    assert_int_equal(n, 77);
}

/* ---- words -------------------------------------------------------------------------- */

struct words {
    struct kiln_report_entry entry;
    const char *text;
};

static const struct words words[] = {
    {{KILN_OP_GLOBAL_TOPK, 3, -1, KILN_REASON_REQUEST, -7},
     "global_topk: row 3: request out of range: -7"},
    {{KILN_OP_GLOBAL_TOPK, 3, 17, KILN_REASON_ID, 4711},
     "global_topk: row 3, column 17: id that has no page: 4711"},
    {{KILN_OP_C128A_TOPK, 0, 0, KILN_REASON_PAGE, -1},
     "c128a_topk: row 0, column 0: page that cannot be used: -1"},
    {{KILN_OP_REQ_TO_GLOBAL, 1, 2, KILN_REASON_RANGE, INT64_MAX},
     "req_to_global: row 1, column 2: index that an int32 cannot hold: "
     "9223372036854775807"},
    {{KILN_OP_COMBINE_TOPK_SWA, INT32_MAX, -1, KILN_REASON_LENGTH, 129},
     "combine_topk_swa: row 2147483647: length that was clipped: 129"},
    {{KILN_OP_SWA_INDICES, -1, -1, KILN_REASON_LIVE_TOKENS, -5},
     "swa_indices: live_tokens: count out of range: -5"},
    {{KILN_OP_MIXED_SPARSE_INDICES, -1, -1, KILN_REASON_DECODE_TOKENS, 9},
     "mixed_sparse_indices: num_decode_tokens: count out of range: 9"},
    {{KILN_OP_C128A_TOPK, -1, -1, KILN_REASON_ACTIVE_WIDTH, 8193},
     "c128a_topk: active_width: count out of range: 8193"},
    {{KILN_OP_GATHER_LENS, -1, -1, KILN_REASON_FIRST_REQUEST, 5},
     "gather_lens: first_request: count out of range: 5"},
    {{KILN_OP_IMAGE_VISIBILITY, 4, -1, KILN_REASON_SPANS, 99},
     "image_visibility: row 4: span_start_loc: bound out of range: 99"},
    {{0, 0, 0, 77, 1}, "no op: row 0, column 0: unknown reason: 1"},
};

static void text_names_op_place_reason_and_value(void **state)
{
    (void)state;
    for (size_t i = 0; i < KI_COUNT_OF(words); i++) {
        char text[TEXT];

        assert_int_equal(kiln_report_text(&words[i].entry, text, sizeof text, NULL),
                         KILN_OK);
        assert_string_equal(text, words[i].text);
    }
}

/* The longest of everything. */
static void text_of_every_entry_fits_in_160_bytes(void **state)
{
    const struct kiln_op_info *info;

    (void)state;
    for (size_t i = 0; (info = kiln_op_info_at(i)) != NULL; i++) {
        for (int32_t reason = 0; reason <= KILN_REASON_SPANS + 1; reason++) {
            const struct kiln_report_entry entry = {(int32_t)info->op, INT32_MAX,
                                                    INT32_MAX, reason, INT64_MIN};
            char text[TEXT];

            assert_int_equal(kiln_report_text(&entry, text, sizeof text, NULL), KILN_OK);
            assert_non_null(strstr(text, ": -9223372036854775808"));
        }
    }
}

static void text_that_does_not_fit_is_cut(void **state)
{
    char text[12] = "xxxxxxxxxxx";

    (void)state;
    assert_int_equal(kiln_report_text(&words[1].entry, text, 5, NULL), KILN_OK);
    assert_memory_equal(text, "glob\0xxxxxx", sizeof text);
    assert_int_equal(kiln_report_text(&words[1].entry, text, 1, NULL), KILN_OK);
    assert_string_equal(text, "");
}

static void text_refuses_what_is_not_there(void **state)
{
    struct kiln_error err = {0};
    char text[TEXT];

    (void)state;
    assert_int_equal(kiln_report_text(NULL, text, sizeof text, &err), KILN_E_ARGUMENT);
    assert_non_null(strstr(err.message, "expected"));
    assert_int_equal(kiln_report_text(&words[0].entry, NULL, sizeof text, NULL),
                     KILN_E_ARGUMENT);
    assert_int_equal(kiln_report_text(&words[0].entry, text, 0, NULL), KILN_E_ARGUMENT);
}

static void reasons_have_names(void **state)
{
    (void)state;
#define NAMED(value, name, word, text)                                                   \
    assert_int_equal(name, value);                                                       \
    assert_string_equal(kiln_reason_name(name), word);
    KILN_REASON_TABLE(NAMED)
#undef NAMED
    assert_string_equal(kiln_reason_name((enum kiln_reason)0), "unknown");
    assert_string_equal(kiln_reason_name((enum kiln_reason)11), "unknown");
}

/* ---- what a reference writes -------------------------------------------------------- */

static void reference_counts_all_and_keeps_what_there_is_room_for(void **state)
{
    struct buffer buffer;
    const struct ki_reporter to = {kiln_report_init(&buffer, 2), KILN_OP_GLOBAL_TOPK};

    (void)state;
    memset(buffer.entries, 0xA5, sizeof buffer.entries);
    for (int i = 0; i < 4; i++) {
        ki_report(&to, KILN_REASON_PAGE, i, i + 1, -i);
    }

    assert_int_equal(buffer.report.n_found, 4);
    for (int i = 0; i < 2; i++) {
        const struct kiln_report_entry expected = {KILN_OP_GLOBAL_TOPK, i, i + 1,
                                                   KILN_REASON_PAGE, -i};
        assert_memory_equal(&buffer.entries[i], &expected, sizeof expected);
    }
    assert_int_equal(buffer.entries[2].op, (int32_t)0xA5A5A5A5);
}

static void reference_without_a_report_writes_nowhere(void **state)
{
    const struct ki_reporter nowhere = {NULL, KILN_OP_GLOBAL_TOPK};

    (void)state;
    ki_report(&nowhere, KILN_REASON_PAGE, 0, 0, 0);
    ki_report_count(&nowhere, KILN_REASON_LIVE_TOKENS, value(-1), 0);
}

static void count_is_reported_where_it_is_given_and_out_of_range(void **state)
{
    struct buffer buffer;
    const struct ki_reporter to = {kiln_report_init(&buffer, CAPACITY),
                                   KILN_OP_C128A_TOPK};
    const struct kiln_count absent = {.kind = KILN_COUNT_ABSENT, .value = -1};
    const struct kiln_report_entry expected[] = {
        {KILN_OP_C128A_TOPK, -1, -1, KILN_REASON_ACTIVE_WIDTH, -1},
        {KILN_OP_C128A_TOPK, -1, -1, KILN_REASON_ACTIVE_WIDTH, 9},
    };

    (void)state;
    ki_report_count(&to, KILN_REASON_ACTIVE_WIDTH, absent, 8);
    ki_report_count(&to, KILN_REASON_ACTIVE_WIDTH, value(0), 8);
    ki_report_count(&to, KILN_REASON_ACTIVE_WIDTH, value(8), 8);
    assert_int_equal(buffer.report.n_found, 0);

    ki_report_count(&to, KILN_REASON_ACTIVE_WIDTH, value(-1), 8);
    ki_report_count(&to, KILN_REASON_ACTIVE_WIDTH, value(9), 8);
    assert_int_equal(buffer.report.n_found, 2);
    assert_memory_equal(buffer.entries, expected, sizeof expected);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(report_bytes_are_the_header_and_the_entries),
        cmocka_unit_test(report_init_makes_an_empty_one_and_leaves_the_entries),
        cmocka_unit_test(report_init_of_nothing_is_nothing),
        cmocka_unit_test(sort_orders_by_op_row_column_reason_and_value),
        cmocka_unit_test(sort_looks_at_kept_entries_alone),
        cmocka_unit_test(sort_of_more_than_there_is_room_for_gives_what_was_kept),
        cmocka_unit_test(sort_of_nothing_is_nothing),
        cmocka_unit_test(text_names_op_place_reason_and_value),
        cmocka_unit_test(text_of_every_entry_fits_in_160_bytes),
        cmocka_unit_test(text_that_does_not_fit_is_cut),
        cmocka_unit_test(text_refuses_what_is_not_there),
        cmocka_unit_test(reasons_have_names),
        cmocka_unit_test(reference_counts_all_and_keeps_what_there_is_room_for),
        cmocka_unit_test(reference_without_a_report_writes_nowhere),
        cmocka_unit_test(count_is_reported_where_it_is_given_and_out_of_range),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
