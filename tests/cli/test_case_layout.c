/* SPDX-License-Identifier: Apache-2.0 */
/* The runner's watch over padding and guards: a byte that a kernel must not write is found
 * and named. No backend makes that mistake on purpose, so it is made here. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "kiln/op_info.h"

#include "case_layout.h"

enum { ROWS = 3, TOPK = 4, STRIDE = 6, ELEM = 4 };

static size_t arg_index(const struct cli_call *call, const char *name)
{
    size_t i = 0;

    while (strcmp(call->info->args[i].name, name) != 0) {
        i++;
    }
    return i;
}

static struct cli_array *slots_of(struct cli_call *call)
{
    return &call->arrays[arg_index(call, "slots")];
}

/* Outputs of three rows, four columns at a stride of six. */
static int set_up(void **state)
{
    const struct kiln_op_info *info = kiln_op_info_by_name("global_topk");
    struct kiln_shape shape = {0};
    struct cli_call *call = malloc(sizeof *call);

    shape.global_topk = (struct kiln_global_topk_shape){.topk = TOPK,
                                                        .topk_stride = STRIDE,
                                                        .slots_stride = STRIDE,
                                                        .block_size = 2,
                                                        .table_width = 4,
                                                        .table_stride = 4,
                                                        .dcp_world = 1,
                                                        .dcp_interleave = 1};
    if (call == NULL || !cli_call_init(call, info, &shape)) {
        free(call);
        return -1;
    }
    call->extents[KILN_EXTENT_TOKENS] = ROWS;
    cli_call_settle(call);
    *state = call;
    return cli_call_add_array(call, arg_index(call, "slots")) == NULL &&
                   cli_call_add_array(call, arg_index(call, "lens")) == NULL &&
                   cli_call_add_array(call, arg_index(call, "topk_indices")) == NULL
               ? 0
               : -1;
}

static int tear_down(void **state)
{
    struct cli_call *call = *state;

    cli_call_finish(call);
    free(call);
    return 0;
}

static void outputs_written_up_to_their_width_are_not_touched_elsewhere(void **state)
{
    struct cli_call *call = *state;
    char where[256];

    for (int64_t row = 0; row < ROWS; row++) {
        for (int64_t column = 0; column < TOPK; column++) {
            cli_array_set(slots_of(call), row, column, -1);
        }
    }

    assert_false(cli_call_find_touched(call, where, sizeof where));
}

static void every_byte_outside_the_columns_is_watched(void **state)
{
    struct cli_call *call = *state;
    struct cli_array *slots = slots_of(call);
    char where[256];

    for (size_t i = 0; i < slots->image_bytes; i++) {
        size_t body = i - CLI_GUARD_BYTES;
        bool is_inside = i >= CLI_GUARD_BYTES && body < ROWS * STRIDE * ELEM &&
                         body % (STRIDE * ELEM) < TOPK * ELEM;

        slots->image[i] ^= 1;

        if (cli_call_find_touched(call, where, sizeof where) == is_inside) {
            fail_msg("byte %zu of %zu", i, slots->image_bytes);
        }
        slots->image[i] ^= 1;
    }
}

static void touched_padding_is_named_by_row_and_column(void **state)
{
    struct cli_call *call = *state;
    char where[256];

    cli_array_set(slots_of(call), 1, 5, 77);

    assert_true(cli_call_find_touched(call, where, sizeof where));
    assert_string_equal(
        where, "slots[1][5]: padding beyond the row's 4 columns was written: 77");
}

static void touched_guards_are_named_by_side(void **state)
{
    struct cli_call *call = *state;
    struct cli_array *slots = slots_of(call);
    char where[256];

    slots->image[CLI_GUARD_BYTES - 4] = 0;
    assert_true(cli_call_find_touched(call, where, sizeof where));
    assert_string_equal(where, "slots: written 4 bytes before row 0, column 0");

    cli_call_clear(call);
    slots->image[slots->image_bytes - CLI_GUARD_BYTES + 8] = 0;
    assert_true(cli_call_find_touched(call, where, sizeof where));
    assert_string_equal(where, "slots: written 8 bytes after its end, row 3, column 0");
}

static void an_input_ends_with_the_width_of_its_last_row(void **state)
{
    struct cli_call *call = *state;
    const struct cli_array *input = &call->arrays[arg_index(call, "topk_indices")];

    assert_int_equal(input->image_bytes,
                     2 * CLI_GUARD_BYTES + ((ROWS - 1) * STRIDE + TOPK) * ELEM);
}

static void elements_are_poison_until_they_are_set(void **state)
{
    struct cli_call *call = *state;
    struct cli_array *slots = slots_of(call);

    assert_true(cli_array_is_poison(slots, 2, 3));
    assert_true(cli_array_get(slots, 2, 3) < -1);

    cli_array_set(slots, 2, 3, -1);

    assert_false(cli_array_is_poison(slots, 2, 3));
    assert_int_equal(cli_array_get(slots, 2, 3), -1);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        TEST(outputs_written_up_to_their_width_are_not_touched_elsewhere),
        TEST(every_byte_outside_the_columns_is_watched),
        TEST(touched_padding_is_named_by_row_and_column),
        TEST(touched_guards_are_named_by_side),
        TEST(an_input_ends_with_the_width_of_its_last_row),
        TEST(elements_are_poison_until_they_are_set),
#undef TEST
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
