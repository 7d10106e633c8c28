/* SPDX-License-Identifier: Apache-2.0 */
/* What mixed_sparse_indices means at the edges: given slots, local ids, windows, spans. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "kiln/ops.h"
#include "base/attr.h"
#include "support/case_check.h"
#include "support/count.h"
#include "support/mixed_batch.h"

/* All columns of a row, so that what they are called is where they lie. */
static void assert_row(const struct mixed_batch *b, int i, const int32_t *want, int width)
{
    for (int j = 0; j < width; j++) {
        if (b->rows[i * width + j] != want[j]) {
            fail_msg("row %d, column %d is %d, expected %d", i, j, b->rows[i * width + j],
                     want[j]);
        }
    }
}

#define ASSERT_ROW(b, i, ...)                                                            \
    assert_row((b), (i), (const int32_t[]){__VA_ARGS__},                                 \
               (int)(sizeof((const int32_t[]){__VA_ARGS__}) / sizeof(int32_t)))

static void assert_inert(const struct mixed_batch *b, int i)
{
    ASSERT_ROW(b, i, -1, -1, -1, -1, -1, -1, -1, -1);
    assert_int_equal(b->lens[i], WS);
}

static void mixed_renames_given_slots_for_their_pools_field_12(void **state)
{
    struct mixed_batch b;

    (void)state;
    mixed_batch_init(&b);
    mixed_batch_run(&b);

    ASSERT_ROW(&b, 0, 21, -1, 0, 101, 19, -1, 12, -1);
    ASSERT_ROW(&b, 1, 1, 10, 11, 20, 0, 1, 6, -1);
    assert_int_equal(b.lens[0], WS + GIVEN);
    assert_int_equal(b.lens[1], WS + GIVEN);
}

/* The length says how many columns count; the columns are written all the same. */
static void mixed_clamps_given_lengths_field_9(void **state)
{
    static const struct {
        int32_t given, len;
    } cases[] = {{2, 2}, {0, 0}, {3, 3}, {4, 3}, {-1, 0}, {INT32_MIN, 0}, {INT32_MAX, 3}};
    struct mixed_batch b;

    (void)state;
    for (size_t c = 0; c < KI_COUNT_OF(cases); c++) {
        mixed_batch_init(&b);
        b.args.decode_compressed_lens = b.given_lens;
        b.given_lens[0] = cases[c].given;
        mixed_batch_run(&b);
        ASSERT_ROW(&b, 0, 21, -1, 0, 101, 19, -1, 12, -1);
        assert_int_equal(b.lens[0], WS + cases[c].len);
    }
}

static void mixed_looks_local_ids_up_and_counts_them(void **state)
{
    struct mixed_batch b;

    (void)state;
    mixed_batch_init(&b);
    b.shape.decode_local = 1;
    b.args.decode_compressed_lens = b.given_lens; /* not read */
    b.given[0][0] = 5;
    mixed_batch_run(&b);

    ASSERT_ROW(&b, 0, 21, -1, 0, 101, 12 * 6 + 1, -1, 12 * 6, -1);
    ASSERT_ROW(&b, 1, 1, 10, 11, 20, 120, 121, 126, -1);
    assert_int_equal(b.lens[0], WS + 2);
    assert_int_equal(b.lens[1], WS + 3);
}

static void mixed_takes_any_id_and_any_page_field_8(void **state)
{
    static const int32_t none[] = {-1, INT32_MIN, INT32_MAX, 2 * PAGES};
    static const int32_t pages[] = {-1, INT32_MIN, INT32_MAX, 1 << 30};
    struct mixed_batch b;

    (void)state;
    for (size_t c = 0; c < KI_COUNT_OF(none); c++) {
        mixed_batch_init(&b);
        b.shape.decode_local = 1;
        b.given[1][1] = none[c];
        b.picks[0][0] = none[c];
        mixed_batch_run(&b);
        ASSERT_ROW(&b, 1, 1, 10, 11, 20, 120, -1, 126, -1);
        assert_int_equal(b.lens[1], WS + 2);
        ASSERT_ROW(&b, 2, 130, 131, 140, 141, -1, 180, -1, -1);
        assert_int_equal(b.lens[2], WS + 2);

        mixed_batch_init(&b);
        b.shape.decode_local = 1;
        b.table[1][0] = pages[c];
        b.window_table[2][4] = pages[c];
        mixed_batch_run(&b);
        ASSERT_ROW(&b, 1, 1, 10, 11, 20, -1, -1, 126, -1);
        assert_int_equal(b.lens[1], WS + 1);
        ASSERT_ROW(&b, 2, 130, 131, -1, -1, 181, 180, -1, -1);
    }
}

static void mixed_puts_a_prefill_window_before_its_picks(void **state)
{
    struct mixed_batch b;

    (void)state;
    mixed_batch_init(&b);
    mixed_batch_run(&b);

    ASSERT_ROW(&b, 2, 130, 131, 140, 141, 181, 180, -1, -1);
    ASSERT_ROW(&b, 3, 131, 140, 141, 150, 187, 186, -1, -1);
    assert_int_equal(b.lens[2], WS + 2);
    assert_int_equal(b.lens[3], WS + 2);
}

/* Picks past the complete records are not looked at; the parts stay where they are. */
static void mixed_begins_a_sequence_with_short_parts(void **state)
{
    struct mixed_batch b;

    (void)state;
    mixed_batch_init(&b);
    b.seq_lens[2] = 4; /* positions 2 and 3 */
    mixed_batch_run(&b);

    ASSERT_ROW(&b, 2, 100, 101, 110, -1, -1, -1, -1, -1);
    assert_int_equal(b.lens[2], WS);
    ASSERT_ROW(&b, 3, 100, 101, 110, 111, 187, -1, -1, -1);
    assert_int_equal(b.lens[3], WS + 1);
}

static void mixed_tells_ratio_0_from_ratio_1_field_25(void **state)
{
    struct mixed_batch b;

    (void)state;
    mixed_batch_init(&b);
    b.seq_lens[2] = 2; /* positions 0 and 1 */
    b.shape.compress_ratio = 0;
    mixed_batch_run(&b);
    ASSERT_ROW(&b, 2, 100, -1, -1, -1, -1, -1, -1, -1);
    assert_int_equal(b.lens[3], WS);

    b.shape.compress_ratio = 1;
    mixed_batch_run(&b);
    ASSERT_ROW(&b, 2, 100, -1, -1, -1, 181, -1, -1, -1);
    ASSERT_ROW(&b, 3, 100, 101, -1, -1, 187, 186, -1, -1);
    assert_int_equal(b.lens[2], WS + 1);
    assert_int_equal(b.lens[3], WS + 2);
}

/* Two image columns take four, so that rows stay on 16 bytes. */
static void mixed_widens_the_window_for_images(void **state)
{
    struct mixed_batch b;

    (void)state;
    mixed_batch_init(&b);
    b.shape.image_width = 2;
    b.args.left_visible = b.left;
    b.args.right_visible = b.right;
    b.left[2] = 5;
    b.right[2] = 9;
    b.left[3] = b.right[3] = -9;
    b.left[0] = b.right[0] = 7; /* a decode token's window is given */
    mixed_batch_run(&b);

    ASSERT_ROW(&b, 0, 21, -1, 0, 101, -1, -1, -1, -1, 19, -1, 12, -1);
    ASSERT_ROW(&b, 2, 120, 121, 130, 131, 140, 141, -1, -1, 181, 180, -1, -1);
    ASSERT_ROW(&b, 3, 131, 140, 141, 150, -1, -1, -1, -1, 187, 186, -1, -1);
    assert_int_equal(b.lens[0], 8 + GIVEN);
    assert_int_equal(b.lens[2], 8 + 2);
}

static void mixed_gives_inert_rows_the_window_s_length(void **state)
{
    struct mixed_batch b;

    (void)state;
    mixed_batch_init(&b);
    b.args.live_tokens = value(3);
    b.args.is_valid_token = b.valid;
    b.valid[0] = b.valid[2] = 0;
    b.requests[0] = b.requests[2] = INT32_MIN;
    mixed_batch_run(&b);

    assert_inert(&b, 0);
    ASSERT_ROW(&b, 1, 1, 10, 11, 20, 0, 1, 6, -1);
    assert_inert(&b, 2);
    assert_inert(&b, 3);
    b.args.live_tokens = value(INT32_MIN);
    mixed_batch_run(&b);
    assert_inert(&b, 1);
}

static void mixed_makes_tokens_before_their_sequence_inert_field_11(void **state)
{
    struct mixed_batch b;

    (void)state;
    mixed_batch_init(&b);
    b.shape.window = b.shape.swa_width = b.shape.image_width = 2;
    b.args.num_decode_tokens = value(0);
    b.args.left_visible = b.left;
    b.args.right_visible = b.right;
    b.right[2] = 9;    /* what would be seen from there is not */
    b.seq_lens[2] = 1; /* positions -1 and 0 */
    mixed_batch_run(&b);

    ASSERT_ROW(&b, 2, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1);
    assert_int_equal(b.lens[2], 2 + 4);
    ASSERT_ROW(&b, 3, 100, -1, -1, -1, -1, -1, -1, -1, -1, -1);
}

/* A request below one bound and not the others is out of range, whichever table the row reads. */
static void mixed_bounds_requests_by_all_that_has_them_field_7(void **state)
{
    struct mixed_batch b;
    int32_t *bounds[] = {&b.args.num_requests, &b.args.swa_table_rows,
                         &b.args.table_rows};

    (void)state;
    for (size_t c = 0; c < KI_COUNT_OF(bounds); c++) {
        mixed_batch_init(&b);
        *bounds[c] = 2;
        mixed_batch_run(&b);
        assert_inert(&b, 2);
        assert_inert(&b, 3);

        *bounds[c] = 1;
        b.shape.decode_local = 1;
        mixed_batch_run(&b);
        assert_inert(&b, 1);
        assert_int_equal(b.lens[0], WS + 2);
    }
    mixed_batch_init(&b);
    b.requests[3] = -1;
    mixed_batch_run(&b);
    assert_inert(&b, 3);
}

/* What is given needs no request. */
static void mixed_asks_for_a_decode_request_only_where_it_looks_up(void **state)
{
    struct mixed_batch b;

    (void)state;
    mixed_batch_init(&b);
    b.requests[0] = INT32_MAX;
    mixed_batch_run(&b);
    ASSERT_ROW(&b, 0, 21, -1, 0, 101, 19, -1, 12, -1);

    b.shape.decode_local = 1;
    mixed_batch_run(&b);
    assert_inert(&b, 0);

    b.shape.decode_topk = 0;
    b.shape.topk = 4;
    b.args.decode_compressed_indices = NULL;
    mixed_batch_run(&b);
    ASSERT_ROW(&b, 0, 21, -1, 0, 101, -1, -1, -1, -1);
    assert_int_equal(b.lens[0], WS);
}

/* A count past int32 is neither an id nor mapped; a span may also be less than a page. */
static void mixed_marks_ids_that_int32_cannot_hold_field_20(void **state)
{
    struct mixed_batch b;

    (void)state;
    mixed_batch_init(&b);
    b.shape.decode_local = 1;
    b.shape.span = b.shape.swa_span = 3;
    b.given_window[0][0] = 1431655764; /* page 715827882, offset 0: 2147483646 */
    b.given_window[0][1] = 1431655765; /* offset 1: 2147483647 */
    b.given_window[0][2] = 1431655766; /* the next page: 2147483649 */
    b.table[0][0] = 715827882;
    b.table[0][1] = 715827883;
    b.given[0][0] = 1;
    b.given[0][1] = 2;
    b.given[0][2] = 3;
    mixed_batch_run(&b);
    ASSERT_ROW(&b, 0, 2147483646, INT32_MAX, -1, 31, INT32_MAX, -1, -1, -1);
    assert_int_equal(b.lens[0], WS + 1);

    b.shape.span = b.shape.swa_span = INT32_MAX;
    b.given_window[0][0] = 3;
    b.given_window[0][1] = 2;
    b.given_window[0][2] = 1;
    mixed_batch_run(&b);
    ASSERT_ROW(&b, 0, -1, INT32_MAX, 1, -1, -1, -1, -1, -1);
    assert_int_equal(b.lens[0], WS);

    b.shape.span = b.shape.swa_span = 1;
    b.given_window[0][0] = INT32_MAX;
    mixed_batch_run(&b);
    assert_int_equal(b.rows[0], 1 << 30);
}

/* A page need not be a power of two: the last slots lie on a page that is not whole. */
static void mixed_takes_every_given_slot(void **state)
{
    struct mixed_batch b;

    (void)state;
    mixed_batch_init(&b);
    b.shape.swa_block_size = b.shape.swa_span = 3;
    b.given_window[0][0] = INT32_MAX;
    mixed_batch_run(&b);

    assert_int_equal(b.rows[0], INT32_MAX);
}

/* One split decides both matrices; it is clamped to the tokens of the launch. */
static void mixed_splits_where_the_count_says_field_21(void **state)
{
    static const int32_t one = 1;
    struct mixed_batch b;

    (void)state;
    mixed_batch_init(&b);
    b.args.num_decode_tokens =
        (struct kiln_count){.address = &one, .kind = KILN_COUNT_DEVICE};
    b.seq_lens[1] = 11; /* position 10 */
    mixed_batch_run(&b);
    ASSERT_ROW(&b, 0, 21, -1, 0, 101, 19, -1, 12, -1);
    ASSERT_ROW(&b, 1, 1, 0, 1, 0, 121, 120, -1, -1);
    ASSERT_ROW(&b, 2, 130, 131, 140, 141, 187, 186, -1, -1);

    mixed_batch_init(&b);
    b.args.num_decode_tokens = value(INT32_MAX);
    mixed_batch_run(&b);
    assert_int_equal(b.lens[3], WS + GIVEN);
    b.args.num_decode_tokens = value(-1);
    mixed_batch_run(&b);
    ASSERT_ROW(&b, 3, 131, 140, 141, 150, 180, 180, -1, -1);
}

static void mixed_needs_no_records_without_topk_field_32(void **state)
{
    struct mixed_batch b;

    (void)state;
    mixed_batch_init(&b);
    b.shape.topk = b.shape.decode_topk = 0;
    b.args.decode_compressed_indices = NULL;
    b.args.prefill_topk_indices = NULL;
    mixed_batch_run(&b);

    ASSERT_ROW(&b, 0, 21, -1, 0, 101);
    ASSERT_ROW(&b, 3, 131, 140, 141, 150);
    assert_int_equal(b.lens[0], WS);
    assert_int_equal(b.lens[3], WS);
    assert_int_equal(b.rows[TOKENS * WS], POISON);
}

static void mixed_of_an_all_zero_batch_is_inert_field_10(void **state)
{
    struct mixed_batch b;

    (void)state;
    mixed_batch_init(&b);
    memset(b.starts, 0, sizeof(b.starts));
    memset(b.seq_lens, 0, sizeof(b.seq_lens));
    memset(b.requests, 0, sizeof(b.requests));
    b.args.num_decode_tokens = value(0);
    b.starts[1] = TOKENS;
    mixed_batch_run(&b);

    for (int i = 0; i < TOKENS; i++) {
        assert_inert(&b, i);
    }
}

static void mixed_takes_the_longest_sequence(void **state)
{
    struct mixed_batch b;

    (void)state;
    mixed_batch_init(&b);
    b.shape.swa_block_size = b.shape.swa_span = 1 << 29;
    b.seq_lens[2] = INT32_MAX;
    b.window_table[2][3] = 3;
    b.shape.compress_ratio = INT32_MAX;
    mixed_batch_run(&b);

    ASSERT_ROW(&b, 2, INT32_MAX - 5, INT32_MAX - 4, INT32_MAX - 3, INT32_MAX - 2, -1, -1,
               -1, -1);
    ASSERT_ROW(&b, 3, INT32_MAX - 4, INT32_MAX - 3, INT32_MAX - 2, INT32_MAX - 1, 187, -1,
               -1, -1);
}

static void mixed_refuses_wrong_shapes_and_arguments(void **state)
{
    struct kiln_error err = {0};
    struct mixed_batch b;

    (void)state;
    mixed_batch_init(&b);
    b.shape.swa_width = WINDOW - 1;
    assert_int_equal(kiln_reference_mixed_sparse_indices(&b.shape, &b.args, &err),
                     KILN_E_SHAPE);
    assert_non_null(strstr(err.message, "swa_width = 3"));
    mixed_batch_init(&b);
    b.shape.topk = b.shape.decode_topk = INT32_MAX;
    assert_int_equal(kiln_reference_mixed_sparse_indices(&b.shape, &b.args, &err),
                     KILN_E_SHAPE);
    assert_non_null(strstr(err.message, "sparse_indices"));
    mixed_batch_init(&b);
    b.args.decode_compressed_indices = NULL;
    assert_int_equal(kiln_reference_mixed_sparse_indices(&b.shape, &b.args, &err),
                     KILN_E_ARGUMENT);
    assert_non_null(strstr(err.message, "decode_compressed_indices"));
    mixed_batch_init(&b);
    b.args.left_visible = b.left;
    assert_int_equal(kiln_reference_mixed_sparse_indices(&b.shape, &b.args, &err),
                     KILN_E_ARGUMENT);
    assert_non_null(strstr(err.message, "right_visible"));
}

static void mixed_equals_the_given_cases(void **state)
{
    (void)state;
    for (size_t i = 0; i < 12; i++) {
        case_check("mixed_sparse_indices", i);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mixed_renames_given_slots_for_their_pools_field_12),
        cmocka_unit_test(mixed_clamps_given_lengths_field_9),
        cmocka_unit_test(mixed_looks_local_ids_up_and_counts_them),
        cmocka_unit_test(mixed_takes_any_id_and_any_page_field_8),
        cmocka_unit_test(mixed_puts_a_prefill_window_before_its_picks),
        cmocka_unit_test(mixed_begins_a_sequence_with_short_parts),
        cmocka_unit_test(mixed_tells_ratio_0_from_ratio_1_field_25),
        cmocka_unit_test(mixed_widens_the_window_for_images),
        cmocka_unit_test(mixed_gives_inert_rows_the_window_s_length),
        cmocka_unit_test(mixed_makes_tokens_before_their_sequence_inert_field_11),
        cmocka_unit_test(mixed_bounds_requests_by_all_that_has_them_field_7),
        cmocka_unit_test(mixed_asks_for_a_decode_request_only_where_it_looks_up),
        cmocka_unit_test(mixed_marks_ids_that_int32_cannot_hold_field_20),
        cmocka_unit_test(mixed_takes_every_given_slot),
        cmocka_unit_test(mixed_splits_where_the_count_says_field_21),
        cmocka_unit_test(mixed_needs_no_records_without_topk_field_32),
        cmocka_unit_test(mixed_of_an_all_zero_batch_is_inert_field_10),
        cmocka_unit_test(mixed_takes_the_longest_sequence),
        cmocka_unit_test(mixed_refuses_wrong_shapes_and_arguments),
        cmocka_unit_test(mixed_equals_the_given_cases),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
