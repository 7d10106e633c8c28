/* SPDX-License-Identifier: Apache-2.0 */
/* kiln_geometry_make: what whoever executes a source elsewhere has to know. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include "kiln/kiln.h"

static const struct kiln_shape shape = {
    .combine_topk_swa = {.topk = 8,
                         .topk_stride = 8,
                         .window = 8,
                         .compress_ratio = 4,
                         .align = 16,
                         .combined_stride = 16},
};

/* Arrays are not read; only their addresses are looked at. */
static struct kiln_combine_topk_swa_args args_of(int32_t n_tokens, int32_t *some)
{
    return (struct kiln_combine_topk_swa_args){
        .topk_indices = some,
        .query_start_loc = some,
        .seq_lens = some,
        .gather_lens = some,
        .combined_indices = some,
        .combined_lens = some,
        .workspace_rows = {.kind = KILN_COUNT_VALUE, .value = 64},
        .swa_base = {.kind = KILN_COUNT_VALUE, .value = 16},
        .num_tokens = n_tokens,
        .num_requests = 1,
    };
}

static void geometry_covers_every_row(void **state)
{
    int32_t some[1] = {0};
    struct kiln_combine_topk_swa_args args = args_of(9, some);
    struct kiln_geometry geometry;
    struct kiln_error err;

    assert_int_equal(
        kiln_geometry_make(KILN_OP_COMBINE_TOPK_SWA, &shape, &args, 132, &geometry, &err),
        KILN_OK);

    assert_true(geometry.threads >= 32 && geometry.threads % 32 == 0);
    assert_true(geometry.grid_x * geometry.grid_y * (geometry.threads / 32) >= 9);
    (void)state;
}

static void geometry_of_no_rows_has_no_blocks(void **state)
{
    int32_t some[1] = {0};
    struct kiln_combine_topk_swa_args args = args_of(0, some);
    struct kiln_geometry geometry;
    struct kiln_error err;

    assert_int_equal(
        kiln_geometry_make(KILN_OP_COMBINE_TOPK_SWA, &shape, &args, 132, &geometry, &err),
        KILN_OK);

    assert_int_equal(geometry.grid_x * geometry.grid_y, 0);
    (void)state;
}

static void geometry_refuses_what_a_launch_refuses(void **state)
{
    int32_t some[1] = {0};
    struct kiln_combine_topk_swa_args args = args_of(1, some);
    struct kiln_geometry geometry;
    struct kiln_shape wrong = shape;
    struct kiln_error err;

    wrong.combine_topk_swa.window = 0;
    assert_int_equal(
        kiln_geometry_make(KILN_OP_COMBINE_TOPK_SWA, &wrong, &args, 132, &geometry, &err),
        KILN_E_SHAPE);
    assert_int_equal(
        kiln_geometry_make(KILN_OP_COMBINE_TOPK_SWA, &shape, &args, 0, &geometry, &err),
        KILN_E_ARGUMENT);
    assert_int_equal(
        kiln_geometry_make(KILN_OP_COMBINE_TOPK_SWA, &shape, NULL, 1, &geometry, &err),
        KILN_E_ARGUMENT);
    assert_int_equal(kiln_geometry_make(KILN_OP_STEP, &shape, &args, 1, &geometry, &err),
                     KILN_E_UNSUPPORTED);
    args.combined_lens = NULL;
    assert_int_equal(
        kiln_geometry_make(KILN_OP_COMBINE_TOPK_SWA, &shape, &args, 1, &geometry, &err),
        KILN_E_ARGUMENT);
    (void)state;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(geometry_covers_every_row),
        cmocka_unit_test(geometry_of_no_rows_has_no_blocks),
        cmocka_unit_test(geometry_refuses_what_a_launch_refuses),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
