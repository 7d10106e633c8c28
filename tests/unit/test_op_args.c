/* SPDX-License-Identifier: Apache-2.0 */
/* The arguments of a launch: what is missing, misaligned or out of range is named. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/attr.h"
#include "plan/op.h"
#include "support/golden.h"

enum { ARGS_BYTES = 256, TOKENS = 6, REQUESTS = 3, DECODE = 2 };

/* The args struct of any op, and memory that all its arrays point to. */
struct call {
    const struct ki_op *op;
    const struct kiln_shape *shape;
    _Alignas(16) unsigned char args[ARGS_BYTES];
    int64_t memory[16];
    struct kiln_error err;
};

static void put(struct call *call, const struct kiln_arg *arg, const void *value,
                size_t size)
{
    assert_true(arg->offset + size <= call->op->info.args_bytes);
    memcpy(call->args + arg->offset, value, size);
}

static void put_address(struct call *call, const struct kiln_arg *arg, uintptr_t address)
{
    put(call, arg, &address, sizeof address);
}

static void put_number(struct call *call, const struct kiln_arg *arg, int32_t value)
{
    put(call, arg, &value, sizeof value);
}

static void put_count(struct call *call, const struct kiln_arg *arg,
                      struct kiln_count count)
{
    put(call, arg, &count, sizeof count);
}

static bool is_array(const struct kiln_arg *arg)
{
    return arg->kind == KILN_ARG_INPUT || arg->kind == KILN_ARG_OUTPUT;
}

static int32_t number_for(const struct kiln_arg *arg)
{
    switch (arg->extent) {
    case KILN_EXTENT_TOKENS:
    case KILN_EXTENT_ROWS:
        return TOKENS;
    case KILN_EXTENT_REQUESTS:
    case KILN_EXTENT_TABLE_ROWS:
    case KILN_EXTENT_SWA_TABLE_ROWS:
    case KILN_EXTENT_SPANS:
        return REQUESTS;
    case KILN_EXTENT_NONE:
    case KILN_EXTENT_DECODE_TOKENS:
    case KILN_EXTENT_PREFILL_TOKENS:
    case KILN_EXTENT_REQUEST_BOUNDS:
    case KILN_EXTENT_FIRST_TOKENS:
    case KILN_EXTENT_CONTEXT_TOKENS:
    case KILN_EXTENT_DECODE_REQUESTS:
    case KILN_EXTENT_PREFILL_REQUESTS:
    case KILN_N_EXTENTS:
        break;
    }
    return 0;
}

/* A call in which everything is given. */
static void init(struct call *call, const struct golden_shape *golden)
{
    memset(call, 0, sizeof *call);
    call->op = ki_op_get(golden->op);
    call->shape = &golden->shape;
    for (size_t i = 0; i < call->op->info.n_args; i++) {
        const struct kiln_arg *arg = &call->op->info.args[i];

        if (is_array(arg)) {
            put_address(call, arg, (uintptr_t)call->memory);
        } else if (arg->kind == KILN_ARG_COUNT) {
            put_count(call, arg,
                      (struct kiln_count){.kind = KILN_COUNT_VALUE, .value = DECODE});
        } else {
            put_number(call, arg, number_for(arg));
        }
    }
}

static enum kiln_status check(struct call *call)
{
    call->err = (struct kiln_error){0};
    return ki_op_check_args(call->op, call->shape, call->args, &call->err);
}

static void assert_refused(struct call *call, const char *name)
{
    enum kiln_status status = check(call);

    if (status != KILN_E_ARGUMENT || strstr(call->err.message, name) == NULL ||
        strstr(call->err.message, call->op->info.name) == NULL ||
        strstr(call->err.message, "expected") == NULL) {
        fail_msg("%s, %s: \"%s\"", call->op->info.name, name, call->err.message);
    }
}

static void args_that_are_complete_are_accepted(void **state)
{
    struct call call;

    (void)state;
    for (size_t i = 0; i < N_GOLDEN_SHAPES; i++) {
        init(&call, &golden_shapes[i]);
        if (check(&call) != KILN_OK) {
            fail_msg("%s", call.err.message);
        }
    }
}

static void args_of_all_zeros_are_a_launch_of_no_rows(void **state)
{
    struct call call;

    (void)state;
    for (size_t i = 0; i < N_GOLDEN_SHAPES; i++) {
        struct ki_grid grid;

        init(&call, &golden_shapes[i]);
        memset(call.args, 0, sizeof call.args);
        if (check(&call) != KILN_OK) {
            fail_msg("%s", call.err.message);
        }
        grid = call.op->grid(call.shape, call.args, 132);
        assert_true(grid.x == 0 || grid.y == 0);
    }
}

/* Arrays that may be left out only with others, or only with some shapes. */
static bool depends_on_others(const struct kiln_arg *arg)
{
    static const char *const names[] = {"left_visible", "right_visible",
                                        "decode_compressed_indices", "workspace_start",
                                        "is_prefill"};

    for (size_t i = 0; i < KI_COUNT_OF(names); i++) {
        if (arg->kind == KILN_ARG_INPUT && strcmp(arg->name, names[i]) == 0) {
            return true;
        }
    }
    return false;
}

static void args_arrays_may_be_null_only_when_optional(void **state)
{
    struct call call;

    (void)state;
    for (size_t i = 0; i < N_GOLDEN_SHAPES; i++) {
        const struct kiln_op_info *info = kiln_op_info_get(golden_shapes[i].op);

        for (size_t a = 0; a < info->n_args; a++) {
            const struct kiln_arg *arg = &info->args[a];

            init(&call, &golden_shapes[i]);
            if (!is_array(arg) || depends_on_others(arg)) {
                continue;
            }
            put_address(&call, arg, 0);
            if (arg->optional) {
                assert_int_equal(check(&call), KILN_OK);
            } else {
                assert_refused(&call, arg->name);
            }
        }
    }
}

static void assert_aligned(const struct golden_shape *golden, const struct kiln_arg *arg)
{
    static const uintptr_t bytes[] = {1, 4, 8};
    struct call call;

    for (uintptr_t shift = 1; shift <= 8; shift++) {
        init(&call, golden);
        put_address(&call, arg, (uintptr_t)call.memory + shift);
        if (shift % bytes[arg->dtype] == 0) {
            assert_int_equal(check(&call), KILN_OK);
        } else {
            assert_refused(&call, arg->name);
        }
    }
}

static void args_arrays_are_aligned_to_their_element(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_GOLDEN_SHAPES; i++) {
        const struct kiln_op_info *info = kiln_op_info_get(golden_shapes[i].op);

        for (size_t a = 0; a < info->n_args; a++) {
            if (is_array(&info->args[a])) {
                assert_aligned(&golden_shapes[i], &info->args[a]);
            }
        }
    }
}

static void args_report_is_aligned_to_its_count(void **state)
{
    struct call call;

    (void)state;
    for (size_t i = 0; i < N_GOLDEN_SHAPES; i++) {
        for (uintptr_t shift = 1; shift <= 8; shift++) {
            init(&call, &golden_shapes[i]);
            uintptr_t address = (uintptr_t)call.memory + shift;
            memcpy(call.args + call.op->info.report_offset, &address, sizeof address);
            if (shift == 8) {
                assert_int_equal(check(&call), KILN_OK);
            } else {
                assert_refused(&call, "report");
            }
        }
    }
}

static void args_counts_are_values_or_good_addresses(void **state)
{
    struct call call;

    (void)state;
    for (size_t i = 0; i < N_GOLDEN_SHAPES; i++) {
        const struct kiln_op_info *info = kiln_op_info_get(golden_shapes[i].op);

        for (size_t a = 0; a < info->n_args; a++) {
            const struct kiln_arg *arg = &info->args[a];
            const int32_t *odd;
            const int32_t *fine;

            if (arg->kind != KILN_ARG_COUNT) {
                continue;
            }
            init(&call, &golden_shapes[i]);
            fine = (const int32_t *)call.memory;
            odd = (const int32_t *)(const void *)((const char *)call.memory + 2);
            put_count(&call, arg, (struct kiln_count){.kind = 3});
            assert_refused(&call, arg->name);
            put_count(&call, arg, (struct kiln_count){.kind = -1});
            assert_refused(&call, arg->name);
            put_count(&call, arg, (struct kiln_count){.kind = KILN_COUNT_DEVICE});
            assert_refused(&call, arg->name);
            put_count(&call, arg, (struct kiln_count){odd, 0, KILN_COUNT_DEVICE});
            assert_refused(&call, arg->name);
            put_count(&call, arg, (struct kiln_count){fine, 0, KILN_COUNT_DEVICE});
            assert_int_equal(check(&call), KILN_OK);
            put_count(&call, arg, (struct kiln_count){0});
            if (arg->optional) {
                assert_int_equal(check(&call), KILN_OK);
            } else {
                assert_refused(&call, arg->name);
            }
        }
    }
}

static void args_numbers_are_not_negative(void **state)
{
    struct call call;

    (void)state;
    for (size_t i = 0; i < N_GOLDEN_SHAPES; i++) {
        const struct kiln_op_info *info = kiln_op_info_get(golden_shapes[i].op);

        for (size_t a = 0; a < info->n_args; a++) {
            const struct kiln_arg *arg = &info->args[a];

            /* Any token may be the first that images count for. */
            if ((arg->kind == KILN_ARG_NUMBER || arg->kind == KILN_ARG_EXTENT) &&
                strcmp(arg->name, "first_token") != 0) {
                char named[64];

                init(&call, &golden_shapes[i]);
                put_number(&call, arg, INT32_MIN);
                snprintf(named, sizeof named, "%s = -2147483648", arg->name);
                assert_refused(&call, named);
            }
        }
    }
}

static void args_rank_is_one_of_the_world(void **state)
{
    struct kiln_global_topk_args *topk;
    struct kiln_c128a_topk_args *c128a;
    struct call call;

    (void)state;
    init(&call, &golden_shapes[5]); /* global_topk, 4 ranks */
    topk = (struct kiln_global_topk_args *)(void *)call.args;
    topk->dcp_rank = 3;
    assert_int_equal(check(&call), KILN_OK);
    topk->dcp_rank = 4;
    assert_refused(&call, "dcp_rank = 4: expected 0 to 3");
    init(&call, &golden_shapes[0]); /* c128a_topk, alone */
    c128a = (struct kiln_c128a_topk_args *)(void *)call.args;
    c128a->dcp_rank = 1;
    assert_refused(&call, "dcp_rank = 1: expected 0 to 0");
}

static const struct kiln_arg *find_input(const struct kiln_op_info *info,
                                         const char *name)
{
    for (size_t i = 0; i < info->n_args; i++) {
        if (info->args[i].kind == KILN_ARG_INPUT &&
            strcmp(info->args[i].name, name) == 0) {
            return &info->args[i];
        }
    }
    return NULL;
}

static void args_visibility_comes_in_pairs(void **state)
{
    struct call call;
    int n_pairs = 0;

    (void)state;
    for (size_t i = 0; i < N_GOLDEN_SHAPES; i++) {
        const struct kiln_op_info *info = kiln_op_info_get(golden_shapes[i].op);
        const struct kiln_arg *left = find_input(info, "left_visible");
        const struct kiln_arg *right = find_input(info, "right_visible");

        if (left == NULL || right == NULL) {
            continue;
        }
        n_pairs++;
        init(&call, &golden_shapes[i]);
        put_address(&call, left, 0);
        assert_refused(&call, "left_visible is missing");
        put_address(&call, right, 0);
        assert_int_equal(check(&call), KILN_OK);
        put_address(&call, left, (uintptr_t)call.memory);
        assert_refused(&call, "right_visible is missing");
    }
    assert_int_equal(n_pairs, 6);
}

static void args_workspace_stays_below_2_to_the_31(void **state)
{
    struct kiln_combine_topk_swa_args *args;
    struct call call;

    (void)state;
    init(&call, &golden_shapes[2]);
    args = (struct kiln_combine_topk_swa_args *)(void *)call.args;
    args->num_requests = 1 << 15;
    args->workspace_rows.value = (1 << 16) - 1;
    assert_int_equal(check(&call), KILN_OK);
    args->workspace_rows.value = 1 << 16;
    assert_refused(&call, "workspace_rows = 65536 with 32768 requests");
}

static void args_of_swa_rows_end_below_2_to_the_31(void **state)
{
    struct kiln_swa_indices_args *args;
    struct call call;

    (void)state;
    init(&call, &golden_shapes[6]);
    args = (struct kiln_swa_indices_args *)(void *)call.args;
    args->token_offset = INT32_MAX - TOKENS;
    assert_int_equal(check(&call), KILN_OK);
    assert_int_equal(ki_op_rows(call.op, args, KILN_EXTENT_CONTEXT_TOKENS), INT32_MAX);
    args->token_offset = INT32_MAX - TOKENS + 1;
    assert_refused(&call, "token_offset = 2147483642 with 6 rows");
}

/* By shape, and by how many rows of the matrix there are: on the device any number. */
static void args_of_a_mixed_batch_need_what_its_shape_reads(void **state)
{
    struct golden_shape bare = golden_shapes[8];
    struct kiln_mixed_sparse_indices_args *args;
    struct call call;

    (void)state;
    init(&call, &golden_shapes[8]);
    args = (struct kiln_mixed_sparse_indices_args *)(void *)call.args;
    args->decode_compressed_indices = NULL;
    assert_refused(&call, "decode_compressed_indices is NULL");
    args->num_decode_tokens.value = 0;
    assert_int_equal(check(&call), KILN_OK);
    args->num_decode_tokens =
        (struct kiln_count){(const int32_t *)call.memory, 0, KILN_COUNT_DEVICE};
    assert_refused(&call, "decode_compressed_indices is NULL");
    bare.shape.mixed_sparse_indices.topk = 0;
    bare.shape.mixed_sparse_indices.decode_topk = 0;
    init(&call, &bare);
    args->decode_compressed_indices = NULL;
    args->prefill_topk_indices = NULL;
    assert_int_equal(check(&call), KILN_OK);
}

static void args_of_a_window_only_shape_need_no_topk(void **state)
{
    struct golden_shape window = {
        "", KILN_OP_COMBINE_TOPK_SWA, {.combine_topk_swa = {0, 1, 128, 0, 0, 128, 128}}};
    struct kiln_combine_topk_swa_args *args;
    struct call call;

    (void)state;
    init(&call, &window);
    args = (struct kiln_combine_topk_swa_args *)(void *)call.args;
    args->topk_indices = NULL;

    assert_int_equal(check(&call), KILN_OK);
}

static void args_rows_follow_from_numbers_and_counts(void **state)
{
    struct kiln_c128a_topk_args *args;
    struct call call;

    (void)state;
    init(&call, &golden_shapes[0]);
    args = (struct kiln_c128a_topk_args *)(void *)call.args;
    assert_int_equal(ki_op_rows(call.op, args, KILN_EXTENT_TOKENS), TOKENS);
    assert_int_equal(ki_op_rows(call.op, args, KILN_EXTENT_TABLE_ROWS), REQUESTS);
    assert_int_equal(ki_op_rows(call.op, args, KILN_EXTENT_DECODE_TOKENS), DECODE);
    assert_int_equal(ki_op_rows(call.op, args, KILN_EXTENT_PREFILL_TOKENS),
                     TOKENS - DECODE);
    args->num_decode_tokens.value = 100;
    assert_int_equal(ki_op_rows(call.op, args, KILN_EXTENT_DECODE_TOKENS), TOKENS);
    assert_int_equal(ki_op_rows(call.op, args, KILN_EXTENT_PREFILL_TOKENS), 0);
    args->num_decode_tokens.value = -100;
    assert_int_equal(ki_op_rows(call.op, args, KILN_EXTENT_DECODE_TOKENS), 0);
    args->num_decode_tokens.kind = KILN_COUNT_DEVICE;
    assert_int_equal(ki_op_rows(call.op, args, KILN_EXTENT_DECODE_TOKENS), -1);
    assert_int_equal(ki_op_rows(call.op, args, KILN_EXTENT_PREFILL_TOKENS), -1);
    init(&call, &golden_shapes[2]);
    assert_int_equal(ki_op_rows(call.op, call.args, KILN_EXTENT_REQUESTS), REQUESTS);
    assert_int_equal(ki_op_rows(call.op, call.args, KILN_EXTENT_REQUEST_BOUNDS),
                     REQUESTS + 1);
}

/* What a grid follows: tokens, or rows, and where an op has neither, requests. */
static bool counts_rows(const struct kiln_op_info *info, const struct kiln_arg *arg)
{
    bool is_number = arg->kind == KILN_ARG_NUMBER || arg->kind == KILN_ARG_EXTENT;

    return is_number &&
           (arg->extent == KILN_EXTENT_TOKENS || arg->extent == KILN_EXTENT_ROWS ||
            (arg->extent == KILN_EXTENT_REQUESTS && info->op == KILN_OP_GATHER_LENS));
}

/* The y of a grid ends at 65,535; a launch beyond it is refused by the driver. */
static void args_of_any_size_give_a_grid_that_the_driver_takes(void **state)
{
    static const int32_t rows[] = {1, 2, 127, 128, 4096, 65536, 1 << 20, INT32_MAX};
    static const int sms[] = {1, 16, 132, 1000};
    struct call call;

    (void)state;
    for (size_t i = 0; i < N_GOLDEN_SHAPES * KI_COUNT_OF(rows); i++) {
        const struct golden_shape *golden = &golden_shapes[i % N_GOLDEN_SHAPES];
        const struct kiln_op_info *info = kiln_op_info_get(golden->op);

        init(&call, golden);
        for (size_t a = 0; a < info->n_args; a++) {
            if (counts_rows(info, &info->args[a])) {
                put_number(&call, &info->args[a], rows[i / N_GOLDEN_SHAPES]);
            }
        }
        for (size_t s = 0; s < KI_COUNT_OF(sms); s++) {
            struct ki_grid grid = call.op->grid(call.shape, call.args, sms[s]);

            assert_in_range(grid.x, 1, INT32_MAX);
            assert_in_range(grid.y, 1, 65535);
            assert_in_range(grid.threads, 32, call.op->threads(call.shape));
            assert_int_equal(grid.threads % 32, 0);
        }
        assert_in_range(call.op->threads(call.shape), 32, 1024);
    }
}

/* The kernels tell the two apart by their blocks: smaller than the largest. */
static void args_of_many_picks_give_each_row_a_smaller_block(void **state)
{
    static const struct kiln_shape shape = {.global_topk = {.topk = 512}};
    const struct ki_op *op = ki_op_get(KILN_OP_GLOBAL_TOPK);
    struct kiln_global_topk_args args = {.num_tokens = 1584};

    assert_int_equal(op->threads(&shape), 128);
    assert_int_equal(op->grid(&shape, &args, 132).x, 1584);
    assert_int_equal(op->grid(&shape, &args, 132).threads, 128);
    args.num_tokens = 1585;
    assert_int_equal(op->grid(&shape, &args, 132).x, 1585);
    assert_int_equal(op->grid(&shape, &args, 132).threads, 64);
    args.num_tokens = 1;
    assert_int_equal(op->grid(&shape, &args, 1).x, 1);
    (void)state;
}

/* The same; narrow rows have no second way. */
static void args_of_many_combined_rows_give_each_a_block(void **state)
{
    static const struct kiln_shape shape = {
        .combine_topk_swa = {.topk = 1024, .window = 128, .compress_ratio = 4}};
    static const struct kiln_shape narrow = {.combine_topk_swa = {.window = 128}};
    const struct ki_op *op = ki_op_get(KILN_OP_COMBINE_TOPK_SWA);
    struct kiln_combine_topk_swa_args args = {.num_tokens = 4224};

    assert_int_equal(op->grid(&shape, &args, 132).x, 1056);
    assert_int_equal(op->grid(&shape, &args, 132).threads, 128);
    args.num_tokens = 4225;
    assert_int_equal(op->grid(&shape, &args, 132).x, 4225);
    assert_int_equal(op->grid(&shape, &args, 132).threads, 96);
    assert_int_equal(op->grid(&narrow, &args, 132).x, 1057);
    (void)state;
}

static void args_of_picks_that_a_block_compacts_keep_their_block_when_many(void **state)
{
    static const struct kiln_shape shape = {.global_topk = {.topk = 512, .dcp_world = 2}};
    const struct ki_op *op = ki_op_get(KILN_OP_GLOBAL_TOPK);
    const struct kiln_global_topk_args args = {.num_tokens = 100000};

    assert_int_equal(op->grid(&shape, &args, 132).x, 100000);
    assert_int_equal(op->grid(&shape, &args, 132).threads, op->threads(&shape));
    (void)state;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(args_that_are_complete_are_accepted),
        cmocka_unit_test(args_of_all_zeros_are_a_launch_of_no_rows),
        cmocka_unit_test(args_arrays_may_be_null_only_when_optional),
        cmocka_unit_test(args_arrays_are_aligned_to_their_element),
        cmocka_unit_test(args_report_is_aligned_to_its_count),
        cmocka_unit_test(args_counts_are_values_or_good_addresses),
        cmocka_unit_test(args_numbers_are_not_negative),
        cmocka_unit_test(args_rank_is_one_of_the_world),
        cmocka_unit_test(args_visibility_comes_in_pairs),
        cmocka_unit_test(args_workspace_stays_below_2_to_the_31),
        cmocka_unit_test(args_of_swa_rows_end_below_2_to_the_31),
        cmocka_unit_test(args_of_a_mixed_batch_need_what_its_shape_reads),
        cmocka_unit_test(args_of_a_window_only_shape_need_no_topk),
        cmocka_unit_test(args_rows_follow_from_numbers_and_counts),
        cmocka_unit_test(args_of_any_size_give_a_grid_that_the_driver_takes),
        cmocka_unit_test(args_of_many_picks_give_each_row_a_smaller_block),
        cmocka_unit_test(args_of_many_combined_rows_give_each_a_block),
        cmocka_unit_test(args_of_picks_that_a_block_compacts_keep_their_block_when_many),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
