/* SPDX-License-Identifier: Apache-2.0 */
/* What swa_indices reports: requests, lengths that are cut, positions without a page. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "kiln/ops.h"
#include "base/attr.h"
#include "support/count.h"
#include "support/report_check.h"
#include "support/swa_step.h"

/* Row 0 is token 1. */
static void slice_init(struct swa_step *s)
{
    swa_step_init(s);
    s->args.num_rows = TOKENS - 1;
    s->args.token_offset = 1;
}

static void run(struct swa_step *s)
{
    s->args.report = report_begin(&s->room);
    swa_step_run(s);
}

#define FOUND(reason, row, column, value)                                                \
    {                                                                                    \
        KILN_OP_SWA_INDICES, (row), (column), KILN_REASON_##reason, (value)              \
    }

/* What run() reports; the entries that are FOUND. */
#define ASSERT_REPORT(s, ...)                                                            \
    do {                                                                                 \
        const struct kiln_report_entry want[] = {__VA_ARGS__};                           \
        run(s);                                                                          \
        report_check(&(s)->room, want, KI_COUNT_OF(want));                               \
    } while (0)

static void assert_no_report(struct swa_step *s)
{
    run(s);
    assert_int_equal(s->room.report.n_found, 0);
}

static void add_images(struct swa_step *s, int64_t width)
{
    s->shape.image_width = width;
    s->args.left_visible = s->left;
    s->args.right_visible = s->right;
}

static void swa_report_of_a_good_step_is_empty(void **state)
{
    struct swa_step s;

    (void)state;
    slice_init(&s);
    s.args.live_tokens = value(INT32_MAX); /* of a step that this is a slice of */
    s.args.is_valid_token = s.valid;
    s.args.replay_start = s.replay;
    s.shape.table_width = 5; /* position 8 is the last with a page */
    add_images(&s, 2);
    s.left[1] = 3;
    s.right[2] = 2;
    s.shape.index_width = 5;
    assert_no_report(&s);
}

static void swa_reports_requests_of_live_valid_rows(void **state)
{
    static const int32_t strangers[] = {-1, 2, INT32_MIN, INT32_MAX};
    struct swa_step s;

    (void)state;
    for (size_t c = 0; c < KI_COUNT_OF(strangers); c++) {
        slice_init(&s);
        s.requests[0] = s.requests[2] = strangers[c]; /* token 0 has no row */
        ASSERT_REPORT(&s, FOUND(REQUEST, 1, -1, strangers[c]));

        s.args.is_valid_token = s.valid;
        s.valid[2] = 0;
        assert_no_report(&s);
        s.valid[2] = 1;
        s.args.live_tokens = value(2);
        assert_no_report(&s);
        s.args.live_tokens = value(3);
        ASSERT_REPORT(&s, FOUND(REQUEST, 1, -1, strangers[c]));
    }
    slice_init(&s);
    s.args.table_rows = 1;
    ASSERT_REPORT(&s, FOUND(REQUEST, 1, -1, 1), FOUND(REQUEST, 2, -1, 1),
                  FOUND(REQUEST, 3, -1, 1));
    slice_init(&s);
    s.args.num_requests = 1;
    ASSERT_REPORT(&s, FOUND(REQUEST, 1, -1, 1), FOUND(REQUEST, 2, -1, 1),
                  FOUND(REQUEST, 3, -1, 1));
}

/* Nothing of a row before its sequence. */
static void swa_reports_nothing_of_inert_rows(void **state)
{
    struct swa_step s;

    (void)state;
    slice_init(&s);
    memset(s.table, 0xff, sizeof s.table);
    add_images(&s, 0);
    s.right[1] = 99;
    s.seq_lens[0] = 0;
    s.seq_lens[1] = -7;
    assert_no_report(&s);
}

static void swa_reports_live_tokens_below_0_once(void **state)
{
    struct swa_step s;

    (void)state;
    slice_init(&s);
    s.args.live_tokens = value(-3);
    ASSERT_REPORT(&s, FOUND(LIVE_TOKENS, -1, -1, -3));
    s.args.live_tokens = value(0);
    assert_no_report(&s);

    s.args.live_tokens = value(-3);
    s.args.num_rows = 0;
    assert_no_report(&s);
}

/* Once before the window's own cut, once for what the row has no columns for. */
static void swa_reports_both_cuts(void **state)
{
    struct swa_step s;

    (void)state;
    slice_init(&s);
    s.seq_lens[0] = 20; /* positions 18 and 19, of which 19 is the last */
    s.shape.table_width = s.shape.table_stride = 12;
    s.args.table_rows = 1;
    s.args.num_rows = 1;
    add_images(&s, 1);
    s.left[1] = 5;
    ASSERT_REPORT(&s, FOUND(LENGTH, 0, -1, 6));
    s.left[1] = 4;
    assert_no_report(&s);

    s.shape.index_width = 4;
    s.left[1] = 5;
    ASSERT_REPORT(&s, FOUND(LENGTH, 0, -1, 6), FOUND(LENGTH, 0, -1, 5));
    s.args.replay_start = s.replay;
    s.replay[0] = 15; /* of 14 to 18 */
    ASSERT_REPORT(&s, FOUND(LENGTH, 0, -1, 6));
}

static void swa_reports_a_draft_block_that_is_cut(void **state)
{
    struct swa_step s;

    (void)state;
    slice_init(&s);
    s.shape.causal = 0;
    s.shape.index_width = 5;
    ASSERT_REPORT(&s, FOUND(LENGTH, 0, -1, 6)); /* positions 3 to 8 */
    s.args.replay_start = s.replay;
    s.replay[0] = 4;
    assert_no_report(&s);
}

/* Columns are counted from where the range starts after all cuts. */
static void swa_reports_positions_without_a_page(void **state)
{
    static const int32_t pages[] = {-1, INT32_MIN, INT32_MAX, 1 << 30};
    struct swa_step s;

    (void)state;
    for (size_t c = 0; c < KI_COUNT_OF(pages); c++) {
        slice_init(&s);
        s.table[0][3] = s.table[0][5] = pages[c];
        ASSERT_REPORT(&s, FOUND(PAGE, 0, 1, pages[c]), FOUND(PAGE, 0, 2, pages[c]));

        s.shape.index_width = 2;
        ASSERT_REPORT(&s, FOUND(LENGTH, 0, -1, 4), FOUND(PAGE, 0, 0, pages[c]),
                      FOUND(LENGTH, 3, -1, 3));

        s.args.replay_start = s.replay;
        s.replay[0] = 8;
        ASSERT_REPORT(&s, FOUND(LENGTH, 3, -1, 3));
    }
    slice_init(&s);
    s.table[0][3] = (1 << 30) - 1;
    assert_no_report(&s);
    s.shape.table_width = 4;
    ASSERT_REPORT(&s, FOUND(ID, 0, 3, 8));
}

/* Positions 5 to 8 of row 0, of which 5 and 7 are rank 1's; two ranks' pages hold 4. */
static void swa_reports_what_a_rank_owns_of_a_sharded_cache(void **state)
{
    struct swa_step s;

    (void)state;
    slice_init(&s);
    s.args.num_rows = 1;
    s.shape.dcp_world = 2;
    s.table[0][1] = -9;
    ASSERT_REPORT(&s, FOUND(PAGE, 0, 1, -9));
    s.shape.table_width = 2;
    ASSERT_REPORT(&s, FOUND(PAGE, 0, 1, -9), FOUND(ID, 0, 3, 8));

    s.args.dcp_rank = 1;
    ASSERT_REPORT(&s, FOUND(PAGE, 0, 0, -9), FOUND(PAGE, 0, 2, -9));
    s.shape.table_width = 1;
    ASSERT_REPORT(&s, FOUND(ID, 0, 0, 5), FOUND(ID, 0, 2, 7));
}

static void swa_reports_what_a_rank_keeps_of_a_replicated_cache(void **state)
{
    struct swa_step s;

    (void)state;
    slice_init(&s);
    s.args.num_rows = 1;
    s.shape.dcp_world = 2;
    s.shape.dcp_storage = KILN_DCP_REPLICATED;
    s.table[0][3] = -9;
    s.shape.table_width = 4;
    ASSERT_REPORT(&s, FOUND(PAGE, 0, 1, -9), FOUND(ID, 0, 3, 8));

    s.args.dcp_rank = 1;
    ASSERT_REPORT(&s, FOUND(PAGE, 0, 2, -9));
    s.shape.dcp_interleave = 2;
    ASSERT_REPORT(&s, FOUND(PAGE, 0, 1, -9), FOUND(PAGE, 0, 2, -9));
}

static void swa_results_are_the_same_without_a_report(void **state)
{
    struct swa_step s, other;
    struct kiln_error err = {0};

    (void)state;
    slice_init(&s);
    s.requests[3] = 9;
    s.table[0][3] = -1;
    s.shape.index_width = 3;
    other = s;
    other.args.swa_indices = other.rows[0];
    other.args.swa_lens = other.lens;
    run(&s);

    assert_null(other.args.report);
    assert_int_equal(kiln_reference_swa_indices(&other.shape, &other.args, &err),
                     KILN_OK);
    assert_true(s.room.report.n_found > 0);
    assert_memory_equal(s.rows, other.rows, sizeof s.rows);
    assert_memory_equal(s.lens, other.lens, sizeof s.lens);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(swa_report_of_a_good_step_is_empty),
        cmocka_unit_test(swa_reports_requests_of_live_valid_rows),
        cmocka_unit_test(swa_reports_nothing_of_inert_rows),
        cmocka_unit_test(swa_reports_live_tokens_below_0_once),
        cmocka_unit_test(swa_reports_both_cuts),
        cmocka_unit_test(swa_reports_a_draft_block_that_is_cut),
        cmocka_unit_test(swa_reports_positions_without_a_page),
        cmocka_unit_test(swa_reports_what_a_rank_owns_of_a_sharded_cache),
        cmocka_unit_test(swa_reports_what_a_rank_keeps_of_a_replicated_cache),
        cmocka_unit_test(swa_results_are_the_same_without_a_report),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
