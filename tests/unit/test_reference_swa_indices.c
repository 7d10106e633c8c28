/* SPDX-License-Identifier: Apache-2.0 */
/* What swa_indices means at the edges: windows, drafts, images, replay, ranks. */
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
#include "support/swa_step.h"

/* Row `i` begins with `want` and is -1 from there on. */
static void assert_row(const struct swa_step *s, int i, const int32_t *want, int32_t len)
{
    for (int j = 0; j < s->shape.index_width; j++) {
        int32_t expected = j < len ? want[j] : -1;
        if (s->rows[i][j] != expected) {
            fail_msg("row %d, column %d is %d, expected %d", i, j, s->rows[i][j],
                     expected);
        }
    }
    if (s->lens[i] != len) {
        fail_msg("row %d: length %d, expected %d", i, s->lens[i], len);
    }
}

#define ASSERT_ROW(s, i, ...)                                                            \
    assert_row((s), (i), (const int32_t[]){__VA_ARGS__},                                 \
               (int32_t)(sizeof((const int32_t[]){__VA_ARGS__}) / sizeof(int32_t)))

static void assert_inert(const struct swa_step *s, int i)
{
    assert_row(s, i, NULL, 0);
}

static void swa_holds_each_window_oldest_first(void **state)
{
    struct swa_step s;

    (void)state;
    swa_step_init(&s);
    swa_step_run(&s);

    ASSERT_ROW(&s, 0, 24, 25, 26, 27);
    ASSERT_ROW(&s, 1, 25, 26, 27, 28);
    ASSERT_ROW(&s, 2, 40);
    ASSERT_ROW(&s, 3, 40, 41);
    ASSERT_ROW(&s, 4, 40, 41, 42);
}

/* What is indexed by tokens stays absolute; rows are counted from the offset. */
static void swa_starts_its_rows_at_the_offset(void **state)
{
    struct swa_step s;

    (void)state;
    swa_step_init(&s);
    s.shape.image_width = 1;
    s.args.token_offset = 1;
    s.args.num_rows = 2;
    s.valid[0] = s.valid[2] = 0;
    s.right[0] = 1;
    s.args.is_valid_token = s.valid;
    s.args.left_visible = s.left;
    s.args.right_visible = s.right;
    s.args.live_tokens = value(3);
    swa_step_run(&s);

    ASSERT_ROW(&s, 0, 25, 26, 27, 28);
    assert_inert(&s, 1);
    assert_int_equal(s.rows[2][0], POISON);
    assert_int_equal(s.lens[2], POISON);
}

static void swa_leaves_padding_alone(void **state)
{
    struct swa_step s;

    (void)state;
    swa_step_init(&s);
    swa_step_run(&s);

    for (int i = 0; i < TOKENS; i++) {
        assert_int_equal(s.rows[i][WIDTH], POISON);
    }
}

static void swa_makes_rows_past_the_live_ones_inert(void **state)
{
    static const struct {
        int32_t live;
        int32_t n_live;
    } cases[] = {{0, 0}, {-1, 0}, {INT32_MIN, 0}, {4, 4}, {5, 5}, {INT32_MAX, 5}};
    struct swa_step s;

    (void)state;
    for (size_t c = 0; c < KI_COUNT_OF(cases); c++) {
        swa_step_init(&s);
        s.args.live_tokens = value(cases[c].live);
        swa_step_run(&s);
        for (int i = 0; i < TOKENS; i++) {
            assert_int_equal(s.lens[i] > 0, i < cases[c].n_live);
        }
    }
}

/* A padded row of a graph holds anything; no address is formed from it. */
static void swa_tests_validity_before_it_reads_field_6(void **state)
{
    struct swa_step s;

    (void)state;
    swa_step_init(&s);
    s.args.is_valid_token = s.valid;
    s.valid[1] = 0;
    s.valid[2] = 255;
    s.requests[1] = INT32_MAX;
    swa_step_run(&s);

    ASSERT_ROW(&s, 0, 24, 25, 26, 27);
    assert_inert(&s, 1);
    ASSERT_ROW(&s, 2, 40);
}

static void swa_makes_requests_out_of_range_inert_field_7(void **state)
{
    static const int32_t strangers[] = {-1, 2, INT32_MIN, INT32_MAX};
    struct swa_step s;

    (void)state;
    for (size_t c = 0; c < KI_COUNT_OF(strangers); c++) {
        swa_step_init(&s);
        s.requests[0] = strangers[c];
        swa_step_run(&s);
        assert_inert(&s, 0);
        ASSERT_ROW(&s, 1, 25, 26, 27, 28);
    }
    swa_step_init(&s);
    s.args.table_rows = 1;
    swa_step_run(&s);
    assert_inert(&s, 2);
    swa_step_init(&s);
    s.args.num_requests = 1;
    swa_step_run(&s);
    assert_inert(&s, 2);
}

static void swa_makes_tokens_before_their_sequence_inert_field_11(void **state)
{
    struct swa_step s;

    (void)state;
    swa_step_init(&s);
    s.shape.image_width = 2;
    s.args.left_visible = s.left;
    s.args.right_visible = s.right;
    s.seq_lens[0] = 1;
    s.seq_lens[1] = -7;
    s.right[0] = s.right[2] = 9; /* what would be seen from there is not */
    swa_step_run(&s);

    assert_inert(&s, 0); /* position -1 */
    ASSERT_ROW(&s, 1, 20);
    assert_inert(&s, 2);
    assert_inert(&s, 4);
}

static void swa_of_an_all_zero_batch_is_inert_field_10(void **state)
{
    struct swa_step s;

    (void)state;
    swa_step_init(&s);
    memset(s.starts, 0, sizeof(s.starts));
    memset(s.seq_lens, 0, sizeof(s.seq_lens));
    memset(s.requests, 0, sizeof(s.requests));
    swa_step_run(&s);

    for (int i = 0; i < TOKENS; i++) {
        assert_inert(&s, i);
    }
}

/* A token that its request does not have stands past the sequence: no column is left. */
static void swa_ends_with_the_sequence(void **state)
{
    struct swa_step s;

    (void)state;
    swa_step_init(&s);
    s.requests[3] = 0; /* position 10 of 9 */
    s.requests[4] = 0; /* position 11 */
    swa_step_run(&s);

    ASSERT_ROW(&s, 3, 27, 28);
    ASSERT_ROW(&s, 4, 28);
}

static void swa_widens_the_window_for_images(void **state)
{
    struct swa_step s;

    (void)state;
    swa_step_init(&s);
    s.shape.image_width = 2;
    s.args.left_visible = s.left;
    s.args.right_visible = s.right;
    s.left[0] = 3; /* no more than the window has */
    s.right[0] = 1;
    s.left[1] = 5;
    s.right[2] = 9;              /* as far as the sequence */
    s.left[3] = s.right[3] = -9; /* as none */
    swa_step_run(&s);

    ASSERT_ROW(&s, 0, 24, 25, 26, 27, 28);
    ASSERT_ROW(&s, 1, 23, 24, 25, 26, 27, 28);
    ASSERT_ROW(&s, 2, 40, 41, 42);
    ASSERT_ROW(&s, 3, 40, 41);
}

/* At most window + image_width columns, from the oldest; of those the row's newest. */
static void swa_cuts_a_wide_image_at_both_limits(void **state)
{
    struct swa_step s;

    (void)state;
    swa_step_init(&s);
    s.shape.image_width = 2;
    s.args.left_visible = s.left;
    s.args.right_visible = s.right;
    s.left[0] = INT32_MAX;
    s.right[0] = INT32_MAX;
    swa_step_run(&s);
    ASSERT_ROW(&s, 0, 20, 21, 22, 23, 24, 25);

    s.shape.index_width = 5;
    swa_step_run(&s);
    ASSERT_ROW(&s, 0, 21, 22, 23, 24, 25);
}

static void swa_ignores_images_without_image_columns(void **state)
{
    struct swa_step s;

    (void)state;
    swa_step_init(&s);
    s.args.left_visible = s.left;
    s.args.right_visible = s.right;
    s.left[0] = 6;
    s.right[0] = 1;
    swa_step_run(&s);

    ASSERT_ROW(&s, 0, 24, 25, 26, 27);
}

static void swa_keeps_the_newest_of_a_range_wider_than_the_row(void **state)
{
    struct swa_step s;

    (void)state;
    swa_step_init(&s);
    s.shape.index_width = 3;
    swa_step_run(&s);

    ASSERT_ROW(&s, 0, 25, 26, 27);
    ASSERT_ROW(&s, 4, 40, 41, 42);
}

static void swa_begins_no_earlier_than_the_replay_field_29(void **state)
{
    struct swa_step s;

    (void)state;
    swa_step_init(&s);
    s.args.replay_start = s.replay;
    s.replay[0] = 6;
    s.replay[1] = INT32_MIN;
    swa_step_run(&s);
    ASSERT_ROW(&s, 0, 26, 27);
    ASSERT_ROW(&s, 1, 26, 27, 28);
    ASSERT_ROW(&s, 4, 40, 41, 42);

    s.replay[0] = 8;
    s.replay[1] = INT32_MAX;
    swa_step_run(&s);
    assert_inert(&s, 0);
    ASSERT_ROW(&s, 1, 28);
    assert_inert(&s, 4);
}

/* Each token of a block sees what was before the block, and all of the block. */
static void swa_gives_a_draft_block_one_range(void **state)
{
    struct swa_step s;

    (void)state;
    swa_step_init(&s);
    s.shape.causal = 0;
    s.shape.image_width = 2;
    s.args.left_visible = s.left;
    s.args.right_visible = s.right;
    s.left[0] = s.right[0] = 2;
    swa_step_run(&s);

    ASSERT_ROW(&s, 0, 23, 24, 25, 26, 27, 28);
    ASSERT_ROW(&s, 1, 23, 24, 25, 26, 27, 28);
    ASSERT_ROW(&s, 2, 40, 41, 42);
    ASSERT_ROW(&s, 4, 40, 41, 42);
}

static void swa_cuts_a_draft_block_like_a_window(void **state)
{
    struct swa_step s;

    (void)state;
    swa_step_init(&s);
    s.shape.causal = 0;
    s.shape.index_width = 4;
    s.args.replay_start = s.replay;
    s.replay[1] = 1;
    swa_step_run(&s);

    ASSERT_ROW(&s, 0, 25, 26, 27, 28);
    ASSERT_ROW(&s, 2, 41, 42);
}

/* Position plays no part: a request shorter than its block has a range all the same. */
static void swa_asks_no_position_of_a_draft_block(void **state)
{
    struct swa_step s;

    (void)state;
    swa_step_init(&s);
    s.shape.causal = 0;
    s.seq_lens[0] = 1;
    s.seq_lens[1] = -1;
    swa_step_run(&s);

    ASSERT_ROW(&s, 0, 20);
    assert_inert(&s, 2);
}

/* Length counts the columns of the range, holes included. */
static void swa_marks_pages_that_are_none_field_31(void **state)
{
    static const int32_t pages[] = {-1, INT32_MIN, INT32_MAX, 1 << 30};
    struct swa_step s;

    (void)state;
    for (size_t c = 0; c < KI_COUNT_OF(pages); c++) {
        swa_step_init(&s);
        s.table[0][3] = pages[c];
        swa_step_run(&s);
        ASSERT_ROW(&s, 0, 24, 25, -1, -1);
        ASSERT_ROW(&s, 1, 25, -1, -1, 28);
    }
    swa_step_init(&s);
    s.table[0][3] = (1 << 30) - 1;
    s.table[0][2] = 0;
    swa_step_run(&s);
    ASSERT_ROW(&s, 0, 0, 1, INT32_MAX - 1, INT32_MAX);
}

static void swa_marks_positions_past_the_table(void **state)
{
    struct swa_step s;

    (void)state;
    swa_step_init(&s);
    s.shape.table_width = 3;
    swa_step_run(&s);

    ASSERT_ROW(&s, 0, 24, 25, -1, -1);
}

/* Two ranks take turns: position p lies at number p / 2 of its owner's slots. */
static void swa_gives_a_rank_its_own_slots_of_a_sharded_cache(void **state)
{
    struct swa_step s;

    (void)state;
    swa_step_init(&s);
    s.shape.dcp_world = 2;
    swa_step_run(&s);
    ASSERT_ROW(&s, 0, 22, 23); /* positions 4, 6 */
    ASSERT_ROW(&s, 1, 23, 24); /* 6, 8 */
    ASSERT_ROW(&s, 4, 40, 41); /* 0, 2 */

    s.args.dcp_rank = 1;
    swa_step_run(&s);
    ASSERT_ROW(&s, 0, 22, 23); /* 5, 7 */
    ASSERT_ROW(&s, 1, 22, 23); /* 5, 7 */
    assert_inert(&s, 2);       /* only position 0, the other's */
    ASSERT_ROW(&s, 4, 40);     /* 1 */
}

static void swa_gives_a_rank_ordinary_slots_of_a_replicated_cache(void **state)
{
    struct swa_step s;

    (void)state;
    swa_step_init(&s);
    s.shape.dcp_world = 2;
    s.shape.dcp_storage = KILN_DCP_REPLICATED;
    swa_step_run(&s);
    ASSERT_ROW(&s, 0, 24, 26);
    ASSERT_ROW(&s, 1, 26, 28);

    s.args.dcp_rank = 1;
    swa_step_run(&s);
    ASSERT_ROW(&s, 0, 25, 27);
    assert_inert(&s, 2);

    s.shape.dcp_interleave = 2; /* positions 2, 3, 6, 7 are rank 1's */
    swa_step_run(&s);
    ASSERT_ROW(&s, 0, 26, 27);
    ASSERT_ROW(&s, 4, 42);
}

static void swa_deals_positions_in_runs(void **state)
{
    struct swa_step s;

    (void)state;
    swa_step_init(&s);
    s.shape.dcp_world = 2;
    s.shape.dcp_interleave = 2;
    swa_step_run(&s);
    ASSERT_ROW(&s, 0, 22, 23); /* 4, 5 */
    ASSERT_ROW(&s, 1, 23, 24); /* 5, 8 */

    s.args.dcp_rank = 1;
    swa_step_run(&s);
    ASSERT_ROW(&s, 0, 22, 23); /* 6, 7 */
    ASSERT_ROW(&s, 4, 40);     /* 2 */
}

static void swa_drops_a_rank_s_entries_without_a_page(void **state)
{
    struct swa_step s;

    (void)state;
    swa_step_init(&s);
    s.shape.dcp_world = 2;
    s.shape.window = 5;
    s.table[0][1] = -1; /* records 2 and 3 of rank 0: positions 4 and 6 */
    swa_step_run(&s);
    ASSERT_ROW(&s, 1, 24); /* 8 */

    s.shape.dcp_storage = KILN_DCP_REPLICATED;
    s.table[0][1] = 11;
    s.table[0][3] = -1; /* positions 6 and 7 */
    swa_step_run(&s);
    ASSERT_ROW(&s, 1, 24, 28); /* 4, 8 */
}

/* The three newest are 5, 6 and 7; rank 0 has one of them, though it has two of the window. */
static void swa_cuts_the_range_before_a_rank_filters_it(void **state)
{
    struct swa_step s;

    (void)state;
    swa_step_init(&s);
    s.shape.dcp_world = 2;
    s.shape.dcp_storage = KILN_DCP_REPLICATED;
    s.shape.index_width = 3;
    swa_step_run(&s);

    ASSERT_ROW(&s, 0, 26);
}

static void swa_of_one_rank_has_no_storage(void **state)
{
    struct swa_step s;

    (void)state;
    swa_step_init(&s);
    s.shape.dcp_storage = KILN_DCP_REPLICATED;
    s.table[0][3] = -1;
    swa_step_run(&s);

    ASSERT_ROW(&s, 0, 24, 25, -1, -1);
}

/* The last position of all, at the end of the greatest table that is read in two places. */
static void swa_takes_the_longest_sequence(void **state)
{
    struct swa_step s;

    (void)state;
    swa_step_init(&s);
    s.shape.block_size = 1 << 29;
    s.starts[0] = INT32_MIN;
    s.starts[1] = 2;
    s.seq_lens[0] = INT32_MAX;
    s.table[0][3] = 3;
    swa_step_run(&s);
    ASSERT_ROW(&s, 1, INT32_MAX - 4, INT32_MAX - 3, INT32_MAX - 2, INT32_MAX - 1);

    s.shape.causal = 0;
    swa_step_run(&s);
    assert_int_equal(s.lens[1], WIDTH);
    assert_int_equal(s.rows[1][WIDTH - 1], INT32_MAX - 1);
}

static void swa_refuses_wrong_shapes_and_arguments(void **state)
{
    struct kiln_error err = {0};
    struct swa_step s;

    (void)state;
    swa_step_init(&s);
    s.shape.index_stride = WIDTH - 1;
    assert_int_equal(kiln_reference_swa_indices(&s.shape, &s.args, &err), KILN_E_SHAPE);
    assert_non_null(strstr(err.message, "index_stride"));
    swa_step_init(&s);
    s.shape.dcp_interleave = 3;
    assert_int_equal(kiln_reference_swa_indices(&s.shape, &s.args, &err), KILN_E_SHAPE);
    assert_non_null(strstr(err.message, "dcp_interleave"));
    swa_step_init(&s);
    s.args.right_visible = s.right;
    assert_int_equal(kiln_reference_swa_indices(&s.shape, &s.args, &err),
                     KILN_E_ARGUMENT);
    assert_non_null(strstr(err.message, "left_visible"));
    swa_step_init(&s);
    s.args.token_offset = -1;
    assert_int_equal(kiln_reference_swa_indices(&s.shape, &s.args, &err),
                     KILN_E_ARGUMENT);
    assert_non_null(strstr(err.message, "token_offset = -1"));
    swa_step_init(&s);
    s.args.dcp_rank = 1;
    assert_int_equal(kiln_reference_swa_indices(&s.shape, &s.args, &err),
                     KILN_E_ARGUMENT);
    assert_non_null(strstr(err.message, "dcp_rank"));
}

static void swa_equals_the_given_cases(void **state)
{
    (void)state;
    for (size_t i = 0; i < 12; i++) {
        case_check("swa_indices", i);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(swa_holds_each_window_oldest_first),
        cmocka_unit_test(swa_starts_its_rows_at_the_offset),
        cmocka_unit_test(swa_leaves_padding_alone),
        cmocka_unit_test(swa_makes_rows_past_the_live_ones_inert),
        cmocka_unit_test(swa_tests_validity_before_it_reads_field_6),
        cmocka_unit_test(swa_makes_requests_out_of_range_inert_field_7),
        cmocka_unit_test(swa_makes_tokens_before_their_sequence_inert_field_11),
        cmocka_unit_test(swa_of_an_all_zero_batch_is_inert_field_10),
        cmocka_unit_test(swa_ends_with_the_sequence),
        cmocka_unit_test(swa_widens_the_window_for_images),
        cmocka_unit_test(swa_cuts_a_wide_image_at_both_limits),
        cmocka_unit_test(swa_ignores_images_without_image_columns),
        cmocka_unit_test(swa_keeps_the_newest_of_a_range_wider_than_the_row),
        cmocka_unit_test(swa_begins_no_earlier_than_the_replay_field_29),
        cmocka_unit_test(swa_gives_a_draft_block_one_range),
        cmocka_unit_test(swa_cuts_a_draft_block_like_a_window),
        cmocka_unit_test(swa_asks_no_position_of_a_draft_block),
        cmocka_unit_test(swa_marks_pages_that_are_none_field_31),
        cmocka_unit_test(swa_marks_positions_past_the_table),
        cmocka_unit_test(swa_gives_a_rank_its_own_slots_of_a_sharded_cache),
        cmocka_unit_test(swa_gives_a_rank_ordinary_slots_of_a_replicated_cache),
        cmocka_unit_test(swa_deals_positions_in_runs),
        cmocka_unit_test(swa_drops_a_rank_s_entries_without_a_page),
        cmocka_unit_test(swa_cuts_the_range_before_a_rank_filters_it),
        cmocka_unit_test(swa_of_one_rank_has_no_storage),
        cmocka_unit_test(swa_takes_the_longest_sequence),
        cmocka_unit_test(swa_refuses_wrong_shapes_and_arguments),
        cmocka_unit_test(swa_equals_the_given_cases),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
