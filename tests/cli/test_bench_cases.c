/* SPDX-License-Identifier: Apache-2.0 */
/* What `kiln bench` times is a call that the reference takes, and one that does something.
 * Without a GPU nothing else looks at these rows. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdint.h>
#include <string.h>

#include "kiln/op_info.h"

#include "bench_cases.h"
#include "bench_fill.h"
#include "report.h"

/* Larger ones differ in their numbers only. */
enum { TOKENS_MAX = 8192 };

/* Bit i: argument i is an output that has rows; the same where one is above 0. */
struct outputs {
    uint64_t there, used;
};

static bool has_positive(const struct cli_array *array)
{
    for (int64_t row = 0; row < array->rows; row++) {
        for (int64_t column = 0; column < array->width; column++) {
            if (cli_array_get(array, row, column) > 0) {
                return true;
            }
        }
    }
    return false;
}

static void compute(const struct cli_bench_case *bench, struct outputs *outputs)
{
    struct cli_call call;
    struct kiln_error err;

    assert_int_equal(cli_bench_fill(bench, &call), CLI_DONE);
    if (kiln_reference(call.info->op, &call.shape, call.args, &err) != KILN_OK) {
        fail_msg("%s, %d tokens: %s", bench->op, (int)bench->n_tokens, err.message);
    }
    for (size_t i = 0; i < call.info->n_args; i++) {
        if (call.info->args[i].kind == KILN_ARG_OUTPUT && call.arrays[i].rows > 0) {
            outputs->there |= UINT64_C(1) << i;
            outputs->used |= (uint64_t)has_positive(&call.arrays[i]) << i;
        }
    }
    cli_call_finish(&call);
}

static void every_op_is_timed_with_inputs_that_do_something(void **state)
{
    const struct kiln_op_info *info;

    (void)state;
    for (size_t op = 0; (info = kiln_op_info_at(op)) != NULL; op++) {
        struct outputs outputs = {0};

        for (size_t i = 0; i < cli_n_bench_cases; i++) {
            const struct cli_bench_case *bench = &cli_bench_cases[i];

            if (strcmp(bench->op, info->name) == 0 && bench->n_tokens <= TOKENS_MAX) {
                compute(bench, &outputs);
            }
        }
        if (info->supported && (outputs.there == 0 || outputs.used != outputs.there)) {
            fail_msg("%s: an output of every case is empty", info->name);
        }
    }
}

static size_t arg_index(const struct kiln_op_info *info, const char *name)
{
    size_t i = 0;

    while (i < info->n_args && strcmp(info->args[i].name, name) != 0) {
        i++;
    }
    return i;
}

static size_t field_index(const struct kiln_op_info *info, const char *name)
{
    size_t i = 0;

    while (i < info->n_fields && strcmp(info->fields[i].name, name) != 0) {
        i++;
    }
    return i;
}

static void every_field_and_optional_array_of_a_case_is_one_of_its_op(void **state)
{
    (void)state;
    for (size_t i = 0; i < cli_n_bench_cases; i++) {
        const struct cli_bench_case *bench = &cli_bench_cases[i];
        const struct kiln_op_info *info = kiln_op_info_by_name(bench->op);

        assert_non_null(info);
        for (size_t k = 0; k < CLI_BENCH_FIELDS_MAX && bench->fields[k].name; k++) {
            assert_true(field_index(info, bench->fields[k].name) < info->n_fields);
        }
        for (size_t k = 0; k < CLI_BENCH_OPTIONAL_MAX && bench->optional[k]; k++) {
            const size_t arg = arg_index(info, bench->optional[k]);

            assert_true(arg < info->n_args);
            assert_true(info->args[arg].optional);
        }
    }
}

static void the_cases_of_an_op_are_neighbours(void **state)
{
    (void)state;
    for (size_t i = 1; i < cli_n_bench_cases; i++) {
        for (size_t k = 0; k + 1 < i; k++) {
            const char *op = cli_bench_cases[i].op;

            if (strcmp(op, cli_bench_cases[k].op) == 0) {
                assert_string_equal(op, cli_bench_cases[i - 1].op);
            }
        }
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_op_is_timed_with_inputs_that_do_something),
        cmocka_unit_test(every_field_and_optional_array_of_a_case_is_one_of_its_op),
        cmocka_unit_test(the_cases_of_an_op_are_neighbours),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
