/* SPDX-License-Identifier: Apache-2.0 */
/* The random cases that every backend is compared with the reference on. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "plan/ops.h"
#include "support/random_case.h"

enum { N_CASES = 120 };

#define OP_NUMBER(name, op) op,
static const enum kiln_op ops[] = {KI_OPS(OP_NUMBER)};
#undef OP_NUMBER
enum { N_OPS = sizeof(ops) / sizeof(ops[0]) };

static void make(struct random_case *out, enum kiln_op op, bool device_counts,
                 uint64_t seed)
{
    struct random_options options = RANDOM_OPTIONS_INIT;
    struct kiln_shape shape;
    options.device_counts = device_counts;
    random_shape(op, seed, &shape);
    random_case_init(out, op, &shape, &options, seed);
}

static void random_case_is_the_same_for_the_same_seed(void **state)
{
    (void)state;
    for (int i = 0; i < N_OPS; i++) {
        struct random_case first, second;
        make(&first, ops[i], false, 7);
        make(&second, ops[i], false, 7);

        assert_int_equal(first.arena_bytes, second.arena_bytes);
        assert_memory_equal(first.arena, second.arena, first.arena_bytes);

        random_case_finish(&first);
        random_case_finish(&second);
    }
}

/* Legal shapes and legal arguments, whatever the values: a refusal is the case's fault. */
static void random_case_is_accepted_by_the_reference(void **state)
{
    char why[RANDOM_WHY] = "";
    (void)state;
    for (int i = 0; i < N_OPS * N_CASES; i++) {
        struct random_case random;
        make(&random, ops[i % N_OPS], i % 2 == 0, (uint64_t)i);
        unsigned char *expected = random_case_expect(&random, why);
        if (expected == NULL) {
            fail_msg("case %d: %s", i, why);
        }
        free(expected);
        random_case_finish(&random);
    }
}

/* What a captured launch holds would not hold any longer otherwise. */
static void random_case_refill_keeps_what_a_launch_freezes(void **state)
{
    (void)state;
    for (int i = 0; i < N_OPS * N_CASES; i++) {
        struct random_case random;
        union random_args before, after;
        make(&random, ops[i % N_OPS], i % 2 == 0, (uint64_t)i);
        random_case_bind(&random, random.arena, &before);

        random_case_refill(&random, 99);
        random_case_bind(&random, random.arena, &after);

        assert_memory_equal(&before, &after, sizeof(before));
        random_case_finish(&random);
    }
}

static void random_case_refill_changes_the_contents(void **state)
{
    struct random_case random;
    unsigned char *before;
    (void)state;
    make(&random, KILN_OP_GLOBAL_TOPK, true, 3);
    before = malloc(random.arena_bytes);
    memcpy(before, random.arena, random.arena_bytes);

    random_case_refill(&random, 99);

    assert_memory_not_equal(before, random.arena, random.arena_bytes);
    free(before);
    random_case_finish(&random);
}

static void random_case_equal_names_array_row_and_column(void **state)
{
    struct random_options options = {.n_tokens = 4, .n_requests = 2};
    struct kiln_shape shape;
    struct random_case random;
    unsigned char *got;
    char why[RANDOM_WHY] = "";
    (void)state;
    random_shape(KILN_OP_GLOBAL_TOPK, 5, &shape);
    random_case_init(&random, KILN_OP_GLOBAL_TOPK, &shape, &options, 5);
    got = malloc(random.arena_bytes);
    memcpy(got, random.arena, random.arena_bytes);
    assert_true(random_case_equal(&random, got, random.arena, why));

    random_case_set(&random, "lens", 3, 0, random_case_get(&random, "lens", 3, 0) ^ 1);

    assert_false(random_case_equal(&random, got, random.arena, why));
    assert_non_null(strstr(why, "lens[3, 0]"));
    free(got);
    random_case_finish(&random);
}

static void random_case_equal_sees_a_guard(void **state)
{
    struct random_case random;
    unsigned char *got;
    char why[RANDOM_WHY] = "";
    (void)state;
    make(&random, KILN_OP_C128A_TOPK, false, 5);
    got = malloc(random.arena_bytes);
    memcpy(got, random.arena, random.arena_bytes);

    got[random.arena_bytes - 1] ^= 1;

    assert_false(random_case_equal(&random, got, random.arena, why));
    assert_non_null(strstr(why, "guard"));
    free(got);
    random_case_finish(&random);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_case_is_the_same_for_the_same_seed),
        cmocka_unit_test(random_case_is_accepted_by_the_reference),
        cmocka_unit_test(random_case_refill_keeps_what_a_launch_freezes),
        cmocka_unit_test(random_case_refill_changes_the_contents),
        cmocka_unit_test(random_case_equal_names_array_row_and_column),
        cmocka_unit_test(random_case_equal_sees_a_guard),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
