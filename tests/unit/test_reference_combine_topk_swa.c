/* SPDX-License-Identifier: Apache-2.0 */
/* What combine_topk_swa means at the edges: ids, windows, images, requests of all kinds. */
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

enum { TOPK = 2, WINDOW = 3, WIDTH = 8, TOKENS = 2, POISON = 0x55555555 };

/*
 * Two requests, of which request 0 has no tokens: both rows are tokens 9 and 10 of request
 * 1's sequence of 11, whose last six raw tokens are gathered. A workspace of 100 rows a
 * request: records from row 0, raw tokens from row 40. Ratio 4.
 */
struct chunk {
    struct kiln_combine_topk_swa_shape shape;
    struct kiln_combine_topk_swa_args args;
    int32_t ids[TOKENS][TOPK], starts[3], seq_lens[2], gather_lens[2];
    int32_t left[TOKENS], right[TOKENS];
    int32_t rows[TOKENS][WIDTH + 1], lens[TOKENS];
};

static void chunk_init(struct chunk *c)
{
    *c = (struct chunk){
        .shape = {.topk = TOPK,
                  .topk_stride = TOPK,
                  .window = WINDOW,
                  .compress_ratio = 4,
                  .align = WIDTH,
                  .combined_stride = WIDTH + 1},
        .ids = {{1, 0}, {1, 0}},
        .starts = {50, 50, 52},
        .seq_lens = {5, 11},
        .gather_lens = {5, 6},
    };
    memset(c->rows, 0x55, sizeof(c->rows));
    memset(c->lens, 0x55, sizeof(c->lens));
    c->args = (struct kiln_combine_topk_swa_args){
        .topk_indices = c->ids[0],
        .query_start_loc = c->starts,
        .seq_lens = c->seq_lens,
        .gather_lens = c->gather_lens,
        .combined_indices = c->rows[0],
        .combined_lens = c->lens,
        .workspace_rows = value(100),
        .swa_base = value(40),
        .num_tokens = TOKENS,
        .num_requests = 2,
    };
}

/* Three image columns, so that the window may have six. */
static void add_images(struct chunk *c, int32_t left, int32_t right)
{
    c->shape.image_width = 3;
    c->left[0] = left;
    c->right[0] = right;
    c->args.left_visible = c->left;
    c->args.right_visible = c->right;
}

static void run(struct chunk *c)
{
    struct kiln_error err = {0};

    if (kiln_reference_combine_topk_swa(&c->shape, &c->args, &err) != KILN_OK) {
        fail_msg("%s", err.message);
    }
}

/* Row `i` begins with `want` and is -1 from there on. */
static void assert_row(const struct chunk *c, int i, const char *label,
                       const int32_t *want, int32_t len)
{
    for (int j = 0; j < WIDTH; j++) {
        int32_t expected = j < len ? want[j] : -1;
        if (c->rows[i][j] != expected) {
            fail_msg("%s: column %d is %d, expected %d", label, j, c->rows[i][j],
                     expected);
        }
    }
    if (c->lens[i] != len) {
        fail_msg("%s: length %d, expected %d", label, c->lens[i], len);
    }
}

/* The start moves with the gathered tokens: position 5 is row 100 + 40. */
static void combine_puts_the_window_right_after_the_records(void **state)
{
    static const int32_t first[] = {101, 100, 142, 143, 144};
    static const int32_t second[] = {101, 100, 143, 144, 145};
    struct chunk c;

    (void)state;
    chunk_init(&c);
    run(&c);

    assert_row(&c, 0, "token 9", first, 5);
    assert_row(&c, 1, "token 10", second, 5);
}

static void combine_starts_the_window_at_column_k(void **state)
{
    static const int32_t want[] = {101, 140, 141, 142};
    struct chunk c;

    (void)state;
    chunk_init(&c);
    c.seq_lens[1] = 8;
    c.gather_lens[1] = 4;
    run(&c);

    assert_row(&c, 0, "one record", want, 4);
}

static void combine_leaves_padding_alone(void **state)
{
    struct chunk c;

    (void)state;
    chunk_init(&c);
    run(&c);

    assert_int_equal(c.rows[0][WIDTH], POISON);
    assert_int_equal(c.rows[1][WIDTH], POISON);
}

static void combine_takes_any_id_field_8(void **state)
{
    static const int32_t ids[][TOPK] = {{INT32_MIN, -1}, {40, INT32_MAX}};
    static const int32_t want[] = {-1, -1, 142, 143, 144};
    static const int32_t last[] = {139, 100, 142, 143, 144};
    struct chunk c;

    (void)state;
    for (size_t i = 0; i < KI_COUNT_OF(ids); i++) {
        chunk_init(&c);
        memcpy(c.ids[0], ids[i], sizeof(ids[i]));
        run(&c);
        assert_row(&c, 0, "ids", want, 5);
    }
    chunk_init(&c);
    c.ids[0][0] = 39;
    run(&c);
    assert_row(&c, 0, "the last id", last, 5);
}

static void combine_tells_ratio_0_from_ratio_1_field_25(void **state)
{
    static const int32_t window[] = {142, 143, 144};
    static const int32_t both[] = {101, 100, 142, 143, 144};
    struct chunk c;

    (void)state;
    chunk_init(&c);
    c.shape.compress_ratio = 0;
    run(&c);
    assert_row(&c, 0, "ratio 0", window, 3);
    chunk_init(&c);
    c.shape.compress_ratio = 1;
    run(&c);
    assert_row(&c, 0, "ratio 1", both, 5);
}

static void combine_needs_no_ids_without_topk_field_32(void **state)
{
    static const int32_t want[] = {142, 143, 144};
    struct chunk c;

    (void)state;
    chunk_init(&c);
    c.shape.topk = 0;
    c.args.topk_indices = NULL;
    run(&c);

    assert_row(&c, 0, "window only", want, 3);
}

static void combine_begins_a_sequence_with_a_short_window(void **state)
{
    static const int32_t first[] = {140};
    static const int32_t second[] = {140, 141};
    struct chunk c;

    (void)state;
    chunk_init(&c);
    c.seq_lens[1] = c.gather_lens[1] = 2;
    run(&c);

    assert_row(&c, 0, "position 0", first, 1);
    assert_row(&c, 1, "position 1", second, 2);
}

static void combine_marks_tokens_that_were_not_gathered(void **state)
{
    static const int32_t one[] = {101, 100, -1, -1, -1};
    static const int32_t two[] = {101, 100, -1, -1, 140};
    static const int32_t lens[] = {1, 0, -1, INT32_MIN};
    struct chunk c;

    (void)state;
    for (size_t i = 0; i < KI_COUNT_OF(lens); i++) {
        chunk_init(&c);
        c.gather_lens[1] = lens[i];
        run(&c);
        assert_row(&c, 0, "token 9", one, 5);
    }
    chunk_init(&c);
    c.gather_lens[1] = 2;
    run(&c);
    assert_row(&c, 0, "the first gathered", two, 5);
}

static void combine_makes_tokens_of_no_request_inert(void **state)
{
    struct chunk c;

    (void)state;
    chunk_init(&c);
    c.starts[2] = 51;
    run(&c);
    assert_row(&c, 1, "past the last request", NULL, 0);

    chunk_init(&c);
    c.args.num_requests = 0;
    run(&c);
    assert_row(&c, 0, "no request", NULL, 0);
}

static void combine_makes_tokens_before_their_sequence_inert_field_11(void **state)
{
    static const int32_t lens[] = {0, -1, INT32_MIN};

    (void)state;
    for (size_t i = 0; i < KI_COUNT_OF(lens); i++) {
        struct chunk c;
        chunk_init(&c);
        c.seq_lens[1] = lens[i];
        run(&c);
        assert_row(&c, 0, "negative position", NULL, 0);
        assert_row(&c, 1, "negative position", NULL, 0);
    }
}

/* What an image would show to its right does not make such a token one of the sequence. */
static void combine_keeps_a_token_at_position_minus_1_inert(void **state)
{
    static const int32_t second[] = {140};
    struct chunk c;

    (void)state;
    chunk_init(&c);
    add_images(&c, 3, 3);
    c.seq_lens[1] = c.gather_lens[1] = 1;
    run(&c);

    assert_row(&c, 0, "position -1", NULL, 0);
    assert_row(&c, 1, "position 0", second, 1);
}

static void combine_rebases_query_start_loc(void **state)
{
    static const int32_t origins[] = {0, -7, INT32_MIN, INT32_MAX - 2};
    static const int32_t want[] = {101, 100, 143, 144, 145};

    (void)state;
    for (size_t i = 0; i < KI_COUNT_OF(origins); i++) {
        struct chunk c;
        chunk_init(&c);
        c.starts[0] = c.starts[1] = origins[i];
        c.starts[2] = origins[i] + 2;
        run(&c);
        assert_row(&c, 1, "rebased", want, 5);
    }
}

static void combine_takes_query_starts_that_span_all_of_int32(void **state)
{
    struct chunk c;

    (void)state;
    chunk_init(&c);
    c.starts[0] = c.starts[1] = INT32_MIN;
    c.starts[2] = INT32_MAX;
    c.seq_lens[1] = INT32_MAX;
    run(&c);

    assert_row(&c, 0, "a query of 2^32 - 1 tokens", NULL, 0);
}

static void combine_takes_the_longest_sequence(void **state)
{
    static const int32_t want[] = {101, 100, 142, 143, 144};
    struct chunk c;

    (void)state;
    chunk_init(&c);
    c.seq_lens[1] = INT32_MAX;
    run(&c);

    assert_row(&c, 0, "longest", want, 5);
}

struct image_case {
    const char *label;
    int32_t left, right, n_window;
    int32_t first; /* row of the window's first column */
};

/* Position 9, a window of 3 and 3 image columns, the sequence ends at 11. */
static void combine_widens_the_window_for_images(void **state)
{
    static const struct image_case cases[] = {
        {"none", 0, 0, 3, 142},
        {"inside the window", 2, 0, 3, 142},
        {"left", 4, 0, 5, 140},
        {"right", 0, 1, 4, 142},
        {"right past the end", 0, INT32_MAX, 4, 142},
        {"negative", -5, INT32_MIN, 3, 142},
        {"both", 3, 1, 5, 141},
    };

    (void)state;
    for (size_t i = 0; i < KI_COUNT_OF(cases); i++) {
        int32_t want[WIDTH] = {101, 100};
        struct chunk c;
        chunk_init(&c);
        add_images(&c, cases[i].left, cases[i].right);
        run(&c);
        for (int32_t j = 0; j < cases[i].n_window; j++) {
            want[2 + j] = cases[i].first + j;
        }
        assert_row(&c, 0, cases[i].label, want, 2 + cases[i].n_window);
    }
}

/* The whole sequence is visible: its oldest six columns are kept, of which none but
 * position 5 was gathered. */
static void combine_keeps_the_oldest_columns_of_a_wide_image(void **state)
{
    static const int32_t want[] = {101, 100, -1, -1, -1, -1, -1, 140};
    struct chunk c;

    (void)state;
    chunk_init(&c);
    add_images(&c, INT32_MAX, INT32_MAX);
    run(&c);

    assert_row(&c, 0, "widest", want, 8);
}

static void combine_ignores_images_without_image_columns(void **state)
{
    static const int32_t want[] = {101, 100, 142, 143, 144};
    struct chunk c;

    (void)state;
    chunk_init(&c);
    add_images(&c, 9, 9);
    c.shape.image_width = 0;
    run(&c);

    assert_row(&c, 0, "no columns", want, 5);
}

/* 2^31 - 1 rows for request 1 and a base beside it: 2^31 - 1 + 40 + 2 in 32 bits. */
static void combine_stores_the_low_bits_of_rows_past_int32(void **state)
{
    static const int32_t rows = INT32_MAX;
    static const int32_t want[] = {INT32_MIN, INT32_MAX, INT32_MIN + 41, INT32_MIN + 42,
                                   INT32_MIN + 43};
    struct chunk c;

    (void)state;
    chunk_init(&c);
    c.args.workspace_rows =
        (struct kiln_count){.address = &rows, .kind = KILN_COUNT_DEVICE};
    run(&c);

    assert_row(&c, 0, "wrapped", want, 5);
}

static void combine_reads_the_base_from_memory(void **state)
{
    static const int32_t bases[] = {1, 0, INT32_MIN};
    static const int32_t want[][5] = {
        {-1, 100, 103, 104, 105},
        {-1, -1, 102, 103, 104},
        {-1, -1, INT32_MIN + 102, INT32_MIN + 103, INT32_MIN + 104}};

    (void)state;
    for (size_t i = 0; i < KI_COUNT_OF(bases); i++) {
        struct chunk c;
        chunk_init(&c);
        c.args.swa_base =
            (struct kiln_count){.address = &bases[i], .kind = KILN_COUNT_DEVICE};
        run(&c);
        assert_row(&c, 0, "base", want[i], 5);
    }
}

static void combine_of_an_all_zero_batch_is_inert_field_10(void **state)
{
    struct chunk c;

    (void)state;
    chunk_init(&c);
    memset(c.starts, 0, sizeof(c.starts));
    memset(c.seq_lens, 0, sizeof(c.seq_lens));
    memset(c.gather_lens, 0, sizeof(c.gather_lens));
    run(&c);

    assert_row(&c, 0, "zero", NULL, 0);
    assert_row(&c, 1, "zero", NULL, 0);
}

static void combine_refuses_wrong_shapes_and_arguments(void **state)
{
    struct kiln_error err = {0};
    struct chunk c;

    (void)state;
    chunk_init(&c);
    c.shape.combined_stride = WIDTH - 1;
    assert_int_equal(kiln_reference_combine_topk_swa(&c.shape, &c.args, &err),
                     KILN_E_SHAPE);
    assert_non_null(strstr(err.message, "combined_stride"));
    chunk_init(&c);
    c.args.left_visible = c.left;
    assert_int_equal(kiln_reference_combine_topk_swa(&c.shape, &c.args, &err),
                     KILN_E_ARGUMENT);
    assert_non_null(strstr(err.message, "right_visible"));
    chunk_init(&c);
    c.args.workspace_rows = value(INT32_MAX);
    assert_int_equal(kiln_reference_combine_topk_swa(&c.shape, &c.args, &err),
                     KILN_E_ARGUMENT);
    assert_non_null(strstr(err.message, "workspace_rows"));
}

/* What a chunk's rows report; the entries that are FOUND. */
#define ASSERT_REPORT(c, ...)                                                            \
    do {                                                                                 \
        const struct kiln_report_entry want[] = {__VA_ARGS__};                           \
        struct report_room room;                                                         \
        (c)->args.report = report_begin(&room);                                          \
        run(c);                                                                          \
        report_check(&room, want, KI_COUNT_OF(want));                                    \
    } while (0)

#define FOUND(reason, row, column, value)                                                \
    {                                                                                    \
        KILN_OP_COMBINE_TOPK_SWA, (row), (column), KILN_REASON_##reason, (value)         \
    }

static void assert_no_report(struct chunk *c)
{
    struct report_room room;

    c->args.report = report_begin(&room);
    run(c);
    assert_int_equal(room.report.n_found, 0);
}

/* The workspace has 40 rows of records; -1 is no id, and not worth an entry. */
static void combine_reports_ids_outside_the_workspace(void **state)
{
    struct chunk c;

    (void)state;
    chunk_init(&c);
    c.ids[0][0] = -1;
    c.ids[0][1] = 39;
    assert_no_report(&c);

    c.ids[0][1] = 40;
    c.ids[1][0] = -2;
    c.ids[1][1] = INT32_MIN;
    ASSERT_REPORT(&c, FOUND(ID, 0, 1, 40), FOUND(ID, 1, 0, -2),
                  FOUND(ID, 1, 1, INT32_MIN));
    c.args.swa_base = value(-7);
    c.ids[0][1] = 0;
    c.ids[1][0] = c.ids[1][1] = INT32_MAX;
    ASSERT_REPORT(&c, FOUND(ID, 0, 1, 0), FOUND(ID, 1, 0, INT32_MAX),
                  FOUND(ID, 1, 1, INT32_MAX));
}

/* Position 9 has two complete records of four tokens, and one of eight. */
static void combine_reports_no_ids_past_the_complete_records(void **state)
{
    struct chunk c;

    (void)state;
    chunk_init(&c);
    c.shape.compress_ratio = 8;
    c.ids[0][1] = c.ids[1][1] = -2;
    assert_no_report(&c);
    c.shape.compress_ratio = 0;
    c.ids[0][0] = -2;
    assert_no_report(&c);
}

/* Three image columns, so that up to six positions are kept. */
static void combine_reports_windows_that_are_cut(void **state)
{
    struct chunk c;

    (void)state;
    chunk_init(&c);
    add_images(&c, 5, 0);
    assert_no_report(&c);
    add_images(&c, 6, 0);
    ASSERT_REPORT(&c, FOUND(LENGTH, 0, -1, 7));
    add_images(&c, 5, 9);
    ASSERT_REPORT(&c, FOUND(LENGTH, 0, -1, 7)); /* up to position 10, the last */
    c.shape.image_width = 0;
    assert_no_report(&c);
}

/* A token of no request, and one that stands before its sequence. */
static void combine_reports_nothing_of_inert_rows(void **state)
{
    struct chunk c;

    (void)state;
    chunk_init(&c);
    add_images(&c, 9, 9);
    memset(c.ids, 0x80, sizeof c.ids);
    c.starts[2] = 51;
    c.seq_lens[1] = 0;
    assert_no_report(&c);
    c.args.num_requests = 0;
    assert_no_report(&c);
}

static void combine_results_are_the_same_without_a_report(void **state)
{
    static const int32_t row[] = {-1, 100, 142, 143, 144};
    struct chunk c;

    (void)state;
    chunk_init(&c);
    c.ids[0][0] = -2;
    ASSERT_REPORT(&c, FOUND(ID, 0, 0, -2));
    assert_row(&c, 0, "with a report", row, 5);
    c.args.report = NULL;
    run(&c);
    assert_row(&c, 0, "without", row, 5);
}

static void combine_equals_the_given_cases(void **state)
{
    (void)state;
    for (size_t i = 0; i < 12; i++) {
        case_check("combine_topk_swa", i);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(combine_puts_the_window_right_after_the_records),
        cmocka_unit_test(combine_starts_the_window_at_column_k),
        cmocka_unit_test(combine_leaves_padding_alone),
        cmocka_unit_test(combine_takes_any_id_field_8),
        cmocka_unit_test(combine_tells_ratio_0_from_ratio_1_field_25),
        cmocka_unit_test(combine_needs_no_ids_without_topk_field_32),
        cmocka_unit_test(combine_begins_a_sequence_with_a_short_window),
        cmocka_unit_test(combine_marks_tokens_that_were_not_gathered),
        cmocka_unit_test(combine_makes_tokens_of_no_request_inert),
        cmocka_unit_test(combine_makes_tokens_before_their_sequence_inert_field_11),
        cmocka_unit_test(combine_keeps_a_token_at_position_minus_1_inert),
        cmocka_unit_test(combine_rebases_query_start_loc),
        cmocka_unit_test(combine_takes_query_starts_that_span_all_of_int32),
        cmocka_unit_test(combine_takes_the_longest_sequence),
        cmocka_unit_test(combine_widens_the_window_for_images),
        cmocka_unit_test(combine_keeps_the_oldest_columns_of_a_wide_image),
        cmocka_unit_test(combine_ignores_images_without_image_columns),
        cmocka_unit_test(combine_stores_the_low_bits_of_rows_past_int32),
        cmocka_unit_test(combine_reads_the_base_from_memory),
        cmocka_unit_test(combine_of_an_all_zero_batch_is_inert_field_10),
        cmocka_unit_test(combine_refuses_wrong_shapes_and_arguments),
        cmocka_unit_test(combine_reports_ids_outside_the_workspace),
        cmocka_unit_test(combine_reports_no_ids_past_the_complete_records),
        cmocka_unit_test(combine_reports_windows_that_are_cut),
        cmocka_unit_test(combine_reports_nothing_of_inert_rows),
        cmocka_unit_test(combine_results_are_the_same_without_a_report),
        cmocka_unit_test(combine_equals_the_given_cases),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
