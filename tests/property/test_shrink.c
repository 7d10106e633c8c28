/* SPDX-License-Identifier: Apache-2.0 */
/* Making cases small, and what stays the same on the way to a case file. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "property_check.h"
#include "property_shrink.h"

enum { N_CASES = 30, TRIALS = 5000, SHAPES = 200 };

static void make(struct property_case *out, enum kiln_op op, uint64_t seed)
{
    struct random_options options = RANDOM_OPTIONS_INIT;
    struct kiln_shape shape;
    struct random_case random;
    options.n_tokens = 7;
    options.n_requests = 5;
    random_shape(op, seed, &shape);
    random_case_init(&random, op, &shape, &options, seed);
    property_case_from(&random, out);
    random_case_finish(&random);
}

static const struct property_array *array_of(const struct property_case *c,
                                             const char *name)
{
    int arg = random_arg_index(c->info, name);
    assert_true(arg >= 0);
    return &c->arrays[arg];
}

/* What a kernel that reads one row too many would do: some row has this request. */
static bool has_request(void *context, const struct property_case *c)
{
    const struct property_array *requests = array_of(c, "token_to_req");
    int64_t wanted = *(const int64_t *)context;
    for (int64_t i = 0; i < requests->rows; i++) {
        if (requests->values[i] == wanted) {
            return true;
        }
    }
    return false;
}

static void shrink_leaves_the_row_that_matters(void **state)
{
    int64_t wanted = 77;
    const struct property_judge judge = {has_request, &wanted, TRIALS, SHAPES};
    struct property_case c;
    (void)state;
    make(&c, KILN_OP_GLOBAL_TOPK, 3);
    array_of(&c, "token_to_req")->values[5] = wanted;

    property_shrink(&c, &judge);

    assert_true(has_request(&wanted, &c));
    assert_int_equal(c.extents[KILN_EXTENT_TOKENS], 1);
    assert_int_equal(c.extents[KILN_EXTENT_TABLE_ROWS], 0);
    assert_int_equal(c.shape.global_topk.topk, 1);
    assert_int_equal(c.shape.global_topk.topk_stride, 1);
    assert_int_equal(c.shape.global_topk.table_width, 1);
    assert_false(array_of(&c, "is_valid_token")->present);
    assert_int_equal(array_of(&c, "topk_indices")->values[0], 0);
    property_case_finish(&c);
}

static bool is_above(void *context, const struct property_case *c)
{
    return c->shape.c128a_topk.capacity > *(const int64_t *)context;
}

static void shrink_finds_the_least_field_that_fails(void **state)
{
    int64_t limit = 41;
    const struct property_judge judge = {is_above, &limit, TRIALS, SHAPES};
    struct property_case c;
    (void)state;
    make(&c, KILN_OP_C128A_TOPK, 1);
    c.shape.c128a_topk.capacity = 1000;
    property_case_refit(&c, 0);

    property_shrink(&c, &judge);

    assert_int_equal(c.shape.c128a_topk.capacity, limit + 1);
    property_case_finish(&c);
}

static bool always(void *context, const struct property_case *c)
{
    if (!property_case_is_legal(c)) {
        *(bool *)context = true;
    }
    return true;
}

/* What is illegal would fail for a reason of its own. */
static void shrink_tries_legal_cases_alone(void **state)
{
    bool saw_illegal = false;
    const struct property_judge judge = {always, &saw_illegal, TRIALS, SHAPES};
    (void)state;
    for (uint64_t seed = 0; seed < N_CASES; seed++) {
        struct property_case c;
        make(&c, KILN_OP_COMBINE_TOPK_SWA, seed);

        property_shrink(&c, &judge);

        assert_false(saw_illegal);
        property_case_finish(&c);
    }
}

static bool counts(void *context, const struct property_case *c)
{
    (void)c;
    *(int *)context += 1;
    return false;
}

static void shrink_asks_no_more_often_than_it_may(void **state)
{
    int n_asked = 0;
    const struct property_judge judge = {counts, &n_asked, 10, SHAPES};
    struct property_case c;
    (void)state;
    make(&c, KILN_OP_GLOBAL_TOPK, 3);

    property_shrink(&c, &judge);

    assert_int_equal(n_asked, 10);
    property_case_finish(&c);
}

static void case_of_any_random_case_is_legal(void **state)
{
    const struct kiln_op_info *info;
    (void)state;
    for (size_t i = 0; (info = kiln_op_info_at(i)) != NULL; i++) {
        for (uint64_t seed = 0; seed < N_CASES && info->supported; seed++) {
            struct property_case c;
            make(&c, info->op, seed);

            assert_true(property_case_is_legal(&c));

            property_case_finish(&c);
        }
    }
}

static void case_that_gathers_past_its_workspace_is_illegal(void **state)
{
    struct property_case c;
    (void)state;
    make(&c, KILN_OP_COMBINE_TOPK_SWA, 1);

    array_of(&c, "gather_lens")->values[2] = INT32_MAX;

    assert_false(property_case_is_legal(&c));
    property_case_finish(&c);
}

static void case_whose_bounds_descend_is_illegal(void **state)
{
    struct property_case c;
    (void)state;
    make(&c, KILN_OP_COMBINE_TOPK_SWA, 1);

    array_of(&c, "query_start_loc")->values[2] = INT32_MAX;

    assert_false(property_case_is_legal(&c));
    property_case_finish(&c);
}

static void case_without_rows_keeps_those_before_and_after(void **state)
{
    struct property_case c;
    (void)state;
    make(&c, KILN_OP_GLOBAL_TOPK, 3);
    for (int64_t i = 0; i < 7; i++) {
        array_of(&c, "token_to_req")->values[i] = i;
    }

    c.extents[KILN_EXTENT_TOKENS] -= 3;
    property_case_refit(&c, 2);

    const int64_t left[] = {0, 1, 5, 6};
    assert_int_equal(array_of(&c, "token_to_req")->rows, 4);
    assert_memory_equal(array_of(&c, "token_to_req")->values, left, sizeof left);
    property_case_finish(&c);
}

static void case_text_has_what_a_case_file_needs(void **state)
{
    static const char *const parts[] = {"\"op\":\"c128a_topk\"", "\"shape\":{",
                                        "\"num_decode_tokens\":", "\"decode_lens\":["};
    struct property_case c;
    (void)state;
    make(&c, KILN_OP_C128A_TOPK, 1);

    char *text = property_check_text(&c);

    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        assert_non_null(strstr(text, parts[i]));
    }
    free(text);
    property_case_finish(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shrink_leaves_the_row_that_matters),
        cmocka_unit_test(shrink_finds_the_least_field_that_fails),
        cmocka_unit_test(shrink_tries_legal_cases_alone),
        cmocka_unit_test(shrink_asks_no_more_often_than_it_may),
        cmocka_unit_test(case_of_any_random_case_is_legal),
        cmocka_unit_test(case_that_gathers_past_its_workspace_is_illegal),
        cmocka_unit_test(case_whose_bounds_descend_is_illegal),
        cmocka_unit_test(case_without_rows_keeps_those_before_and_after),
        cmocka_unit_test(case_text_has_what_a_case_file_needs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
