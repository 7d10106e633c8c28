/* SPDX-License-Identifier: Apache-2.0 */
/* A launcher's launches: one driver call with the launcher's outputs, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "support/fake_kiln.h"

static _Alignas(16) const unsigned char memory[64]; /* every input: nothing reads it */

struct fixture {
    struct fake_kiln *fake;
    struct kiln_launcher *launcher;
    const struct kiln_layout *layout;
    unsigned char args[FAKE_ARGS];
};

static int setup(void **state)
{
    struct kiln_deployment d = fake_kiln_deployment();
    struct fixture *fixture = test_calloc(1, sizeof *fixture);

    if (fake_kiln_setup_open((void **)&fixture->fake) != 0 ||
        kiln_launcher_create(fixture->fake->kiln, &d, NULL, &fixture->launcher,
                             &fixture->fake->err) != KILN_OK) {
        return -1;
    }
    fixture->layout = kiln_launcher_layout(fixture->launcher);
    fixture->fake->driver.params_bytes = FAKE_PARAMS;
    fake_driver_forget(&fixture->fake->driver);
    *state = fixture;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *fixture = *state;
    void *fake = fixture->fake;
    int result = kiln_launcher_destroy(&fixture->launcher, NULL) == KILN_OK ? 0 : -1;

    test_free(fixture);
    return fake_kiln_teardown(&fake) == 0 ? result : -1;
}

/* The launch's args for n rows; a pointer to its op's args struct. */
static void *args_of(struct fixture *fixture, size_t i_launch, int64_t n)
{
    fake_kiln_args(fixture->layout->launches[i_launch].op, (int32_t)n, memory,
                   fixture->args);
    return fixture->args;
}

static enum kiln_status launch(struct fixture *fixture, size_t i_launch)
{
    return kiln_launcher_launch(fixture->launcher, i_launch, fixture->args,
                                fixture->fake->stream, &fixture->fake->err);
}

static size_t named(const struct fixture *fixture, const char *name)
{
    return kiln_layout_find_launch(fixture->layout, name);
}

static void *address_of(const struct fixture *fixture, const char *name)
{
    return kiln_layout_find_buffer(fixture->layout, name)->address;
}

/* ---- the one driver call ---- */

static void each_launch_is_one_driver_call_and_no_allocation_field_70(void **state)
{
    struct fixture *fixture = *state;
    int n_allocations = fixture->fake->mem.n_calls;

    for (size_t i = 0; i < fixture->layout->n_launches; i++) {
        args_of(fixture, i, 5);
        fake_driver_forget(&fixture->fake->driver);
        if (launch(fixture, i) != KILN_OK) {
            fail_msg("%s: %s", fixture->layout->launches[i].name,
                     fixture->fake->err.message);
        }
        assert_int_equal(fixture->fake->driver.n_calls, 1);
        assert_int_equal(fixture->fake->driver.n_launches, 1);
    }
    assert_int_equal(fixture->fake->mem.n_calls, n_allocations);
}

static void launch_passes_the_launchers_outputs(void **state)
{
    struct fixture *fixture = *state;
    struct kiln_c128a_topk_args passed;
    size_t i = named(fixture, "c128a_topk");

    args_of(fixture, i, 5);
    assert_int_equal(launch(fixture, i), KILN_OK);

    memcpy(&passed, fixture->fake->driver.launches[0].params, sizeof passed);
    assert_ptr_equal(passed.decode_slots, address_of(fixture, "c128a_topk.decode_slots"));
    assert_ptr_equal(passed.decode_lens, address_of(fixture, "c128a_topk.decode_lens"));
    assert_ptr_equal(passed.prefill_local,
                     address_of(fixture, "c128a_topk.prefill_local"));
    assert_ptr_equal(passed.positions, memory);
    assert_int_equal(passed.num_tokens, 5);
}

/* Where the driver is told to write: the outputs in the order of the op's args. */
static void assert_writes_to(const struct fixture *fixture, size_t i_launch,
                             void *const *addresses)
{
    const struct kiln_layout_launch *one = &fixture->layout->launches[i_launch];
    const struct kiln_op_info *info = kiln_op_info_get(one->op);
    const unsigned char *params = fixture->fake->driver.launches[0].params;
    size_t buffer = one->first_buffer;

    for (size_t i = 0; i < info->n_args; i++) {
        if (info->args[i].kind == KILN_ARG_OUTPUT) {
            assert_memory_equal(params + info->args[i].offset, &addresses[buffer++],
                                sizeof(void *));
        }
    }
    assert_int_equal(buffer, one->first_buffer + one->n_buffers);
}

static void outputs_never_move_field_22(void **state)
{
    enum { BUFFERS = 32 };
    static const int64_t rows[] = {1, 5, 2, 0, 3};
    struct fixture *fixture = *state;
    void *addresses[BUFFERS];

    assert_in_range(fixture->layout->n_buffers, 1, BUFFERS);
    for (size_t i = 0; i < fixture->layout->n_buffers; i++) {
        addresses[i] = fixture->layout->buffers[i].address;
    }
    for (size_t turn = 0; turn < sizeof rows / sizeof rows[0]; turn++) {
        for (size_t i = 0; i < fixture->layout->n_launches; i++) {
            fake_driver_forget(&fixture->fake->driver);
            args_of(fixture, i, rows[turn]);
            assert_int_equal(launch(fixture, i), KILN_OK);
            if (rows[turn] > 0) {
                assert_writes_to(fixture, i, addresses);
            }
        }
    }
    for (size_t i = 0; i < fixture->layout->n_buffers; i++) {
        assert_ptr_equal(fixture->layout->buffers[i].address, addresses[i]);
    }
}

static void caches_of_one_shape_have_outputs_of_their_own(void **state)
{
    static const char *const caches[] = {"compressed_slots.4.main",
                                         "compressed_slots.4.indexer"};
    struct fixture *fixture = *state;
    struct kiln_compressed_slots_args passed[2];

    for (int i = 0; i < 2; i++) {
        args_of(fixture, named(fixture, caches[i]), 5);
        assert_int_equal(launch(fixture, named(fixture, caches[i])), KILN_OK);
        memcpy(&passed[i], fixture->fake->driver.launches[i].params, sizeof passed[i]);
    }

    assert_ptr_equal(passed[0].slots,
                     address_of(fixture, "compressed_slots.4.main.slots"));
    assert_ptr_equal(passed[1].slots,
                     address_of(fixture, "compressed_slots.4.indexer.slots"));
    assert_ptr_not_equal(passed[0].slots, passed[1].slots);
    assert_ptr_equal(fixture->fake->driver.launches[0].function,
                     fixture->fake->driver.launches[1].function);
}

static void launch_does_not_change_the_callers_args(void **state)
{
    struct fixture *fixture = *state;
    unsigned char before[FAKE_ARGS];

    args_of(fixture, 0, 5);
    memcpy(before, fixture->args, sizeof before);
    assert_int_equal(launch(fixture, 0), KILN_OK);

    assert_memory_equal(fixture->args, before, sizeof before);
}

/* What changes is in device memory: each count goes as it was given, address and all. */
static void launch_passes_counts_in_device_memory_on(void **state)
{
    static const struct kiln_count device = {
        .kind = KILN_COUNT_DEVICE, .address = (const int32_t *)(const void *)memory};
    struct fixture *fixture = *state;
    struct kiln_c128a_topk_args *args =
        args_of(fixture, named(fixture, "c128a_topk"), 100);
    struct kiln_c128a_topk_args passed;

    args->num_decode_tokens = device;
    args->active_width = device;
    args->live_tokens = device;
    assert_int_equal(launch(fixture, named(fixture, "c128a_topk")), KILN_OK);

    memcpy(&passed, fixture->fake->driver.launches[0].params, sizeof passed);
    assert_memory_equal(&passed.num_decode_tokens, &device, sizeof device);
    assert_memory_equal(&passed.active_width, &device, sizeof device);
    assert_memory_equal(&passed.live_tokens, &device, sizeof device);
}

static void launch_of_zero_rows_makes_no_driver_call(void **state)
{
    struct fixture *fixture = *state;

    for (size_t i = 0; i < fixture->layout->n_launches; i++) {
        memset(fixture->args, 0, sizeof fixture->args);
        assert_int_equal(launch(fixture, i), KILN_OK);
    }
    assert_int_equal(fixture->fake->driver.n_calls, 0);
}

/* ---- what is refused ---- */

static void launch_takes_its_own_output_and_no_other(void **state)
{
    struct fixture *fixture = *state;
    size_t i = named(fixture, "token_to_req");
    struct kiln_token_to_req_args *args = args_of(fixture, i, 5);

    args->token_to_req = address_of(fixture, "token_to_req.token_to_req");
    assert_int_equal(launch(fixture, i), KILN_OK);
    args->token_to_req = address_of(fixture, "swa_indices.swa_lens");
    assert_int_equal(launch(fixture, i), KILN_E_ARGUMENT);

    assert_non_null(strstr(fixture->fake->err.message, "token_to_req.token_to_req"));
    assert_int_equal(fixture->fake->driver.n_launches, 1);
}

static void launch_at_capacity_is_fine_and_one_row_more_is_refused(void **state)
{
    struct fixture *fixture = *state;

    for (size_t i = 0; i < fixture->layout->n_launches; i++) {
        const struct kiln_layout_launch *planned = &fixture->layout->launches[i];
        int64_t rows = fixture->layout->buffers[planned->first_buffer].rows;
        char numbers[64];

        if (planned->op == KILN_OP_C128A_TOPK) {
            continue; /* its rows are two matrices': below */
        }
        args_of(fixture, i, rows);
        assert_int_equal(launch(fixture, i), KILN_OK);
        args_of(fixture, i, rows + 1);
        fake_driver_forget(&fixture->fake->driver);
        assert_int_equal(launch(fixture, i), KILN_E_ARGUMENT);
        snprintf(numbers, sizeof numbers, "%d rows: expected at most %d", (int)rows + 1,
                 (int)rows);
        assert_non_null(strstr(fixture->fake->err.message, planned->name));
        assert_non_null(strstr(fixture->fake->err.message, numbers));
        assert_int_equal(fixture->fake->driver.n_calls, 0);
    }
}

struct split {
    int32_t tokens, decode;
    const char *refused; /* by this buffer; NULL: not */
};

static void launch_checks_decode_and_prefill_rows_by_themselves(void **state)
{
    static const struct split splits[] = {
        {100, 21, NULL},
        {100, 0, NULL},
        {121, 21, NULL},
        {10, 2147483647, NULL},
        {100, -5, NULL},
        {100, 22, "decode_slots"},
        {101, 0, "prefill_local"},
        {101, -5, "prefill_local"},
        {122, 21, "prefill_local"},
        {2147483647, 2147483647, "decode_slots"},
    };
    struct fixture *fixture = *state;
    size_t i_launch = named(fixture, "c128a_topk");

    for (size_t i = 0; i < sizeof splits / sizeof splits[0]; i++) {
        struct kiln_c128a_topk_args *args = args_of(fixture, i_launch, splits[i].tokens);
        enum kiln_status status;

        args->num_decode_tokens.value = splits[i].decode;
        status = launch(fixture, i_launch);
        if (splits[i].refused == NULL) {
            assert_int_equal(status, KILN_OK);
            continue;
        }
        assert_int_equal(status, KILN_E_ARGUMENT);
        assert_non_null(strstr(fixture->fake->err.message, splits[i].refused));
    }
}

static void launch_refuses_what_the_op_refuses(void **state)
{
    struct fixture *fixture = *state;
    size_t i = named(fixture, "token_to_req");
    struct kiln_token_to_req_args *args = args_of(fixture, i, 5);

    args->num_tokens = -1;
    assert_int_equal(launch(fixture, i), KILN_E_ARGUMENT);
    assert_non_null(strstr(fixture->fake->err.message, "num_tokens = -1"));
    args_of(fixture, i, 5);
    args->query_start_loc = NULL;
    assert_int_equal(launch(fixture, i), KILN_E_ARGUMENT);
    assert_non_null(strstr(fixture->fake->err.message, "query_start_loc"));
    assert_int_equal(fixture->fake->driver.n_calls, 0);
}

static void launch_refuses_what_is_missing(void **state)
{
    struct fixture *fixture = *state;
    struct kiln_launcher_stats stats;
    struct kiln_error err = {0};

    args_of(fixture, 0, 5);
    assert_int_equal(kiln_launcher_launch(NULL, 0, fixture->args, NULL, &err),
                     KILN_E_ARGUMENT);
    assert_non_null(strstr(err.message, "launcher is NULL"));
    assert_int_equal(kiln_launcher_launch(fixture->launcher, 0, NULL, NULL, &err),
                     KILN_E_ARGUMENT);
    assert_non_null(strstr(err.message, "args is NULL"));
    assert_int_equal(launch(fixture, fixture->layout->n_launches), KILN_E_ARGUMENT);
    assert_non_null(strstr(fixture->fake->err.message, "i_launch = 13"));
    assert_int_equal(fixture->fake->driver.n_calls, 0);
    kiln_launcher_get_stats(fixture->launcher, &stats);
    assert_int_equal(stats.n_refused, 2);
}

/* ---- what is counted ---- */

static void launches_are_counted_by_launcher_and_kiln(void **state)
{
    struct fixture *fixture = *state;
    struct kiln_launcher_stats stats;
    struct kiln_stats all;

    for (int i = 0; i < 3; i++) {
        args_of(fixture, 4, 5);
        assert_int_equal(launch(fixture, 4), KILN_OK);
    }
    args_of(fixture, 4, 101);
    assert_int_equal(launch(fixture, 4), KILN_E_ARGUMENT);
    args_of(fixture, 4, -1);
    assert_int_equal(launch(fixture, 4), KILN_E_ARGUMENT);
    kiln_launcher_get_stats(fixture->launcher, &stats);
    kiln_get_stats(fixture->fake->kiln, &all);

    assert_int_equal(stats.n_launches, 3);
    assert_int_equal(stats.n_refused, 2);
    assert_int_equal(all.n_launches, 3);
    assert_int_equal(all.n_refused, 2);
    assert_int_equal(all.n_launchers, 1);
}

static void statistics_of_nothing_are_zeros(void **state)
{
    struct kiln_launcher_stats stats = {.n_launches = 5, .n_pins = 5};

    (void)state;
    kiln_launcher_get_stats(NULL, &stats);
    kiln_launcher_get_stats(NULL, NULL);
    assert_int_equal(stats.n_launches, 0);
    assert_int_equal(stats.n_pins, 0);
    assert_null(kiln_launcher_layout(NULL));
    assert_false(kiln_launcher_is_programmatic(NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
        TEST(each_launch_is_one_driver_call_and_no_allocation_field_70),
        TEST(launch_passes_the_launchers_outputs),
        TEST(outputs_never_move_field_22),
        TEST(caches_of_one_shape_have_outputs_of_their_own),
        TEST(launch_does_not_change_the_callers_args),
        TEST(launch_passes_counts_in_device_memory_on),
        TEST(launch_of_zero_rows_makes_no_driver_call),
        TEST(launch_takes_its_own_output_and_no_other),
        TEST(launch_at_capacity_is_fine_and_one_row_more_is_refused),
        TEST(launch_checks_decode_and_prefill_rows_by_themselves),
        TEST(launch_refuses_what_the_op_refuses),
        TEST(launch_refuses_what_is_missing),
        TEST(launches_are_counted_by_launcher_and_kiln),
        cmocka_unit_test(statistics_of_nothing_are_zeros),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
