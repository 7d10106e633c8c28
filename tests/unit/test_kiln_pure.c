/* SPDX-License-Identifier: Apache-2.0 */
/* The public functions that need no kiln: emitted source and references. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "kiln/plan.h"

#include "support/fake_kiln.h"

static const enum kiln_op global_topk = KILN_OP_GLOBAL_TOPK;

/* ---- emit --------------------------------------------------------------------------- */

static void emit_is_sized_like_snprintf(void **state)
{
    struct kiln_shape shape = fake_kiln_shape(512);
    size_t whole = 0;
    size_t cut = 0;
    char *text;
    char small[16];

    (void)state;
    assert_int_equal(kiln_emit_source(global_topk, &shape, 0, NULL, 0, &whole, NULL),
                     KILN_OK);
    text = malloc(whole + 1);
    assert_non_null(text);
    assert_int_equal(
        kiln_emit_source(global_topk, &shape, 0, text, whole + 1, &cut, NULL), KILN_OK);
    assert_int_equal(cut, whole);
    assert_int_equal(strlen(text), whole);
    assert_int_equal(
        kiln_emit_source(global_topk, &shape, 0, small, sizeof small, &cut, NULL),
        KILN_OK);
    assert_int_equal(cut, whole);
    assert_int_equal(strlen(small), sizeof small - 1);
    assert_memory_equal(small, text, sizeof small - 1);
    assert_int_equal(kiln_emit_source(global_topk, &shape, 0, text, whole, &cut, NULL),
                     KILN_OK);
    assert_int_equal(strlen(text), whole - 1);
    free(text);
}

static void emit_refuses_what_has_no_source(void **state)
{
    struct kiln_shape shape = fake_kiln_shape(0);
    struct kiln_error err = {0};
    size_t size = 77;
    char text[4] = "abc";

    (void)state;
    assert_int_equal(kiln_emit_source(global_topk, &shape, 0, text, 4, &size, &err),
                     KILN_E_SHAPE);
    assert_non_null(strstr(err.message, "topk = 0"));
    shape = fake_kiln_shape(512);
    assert_int_equal(kiln_emit_source(KILN_OP_STEP, &shape, 0, text, 4, &size, NULL),
                     KILN_E_UNSUPPORTED);
    assert_int_equal(kiln_emit_source((enum kiln_op)0, &shape, 0, text, 4, &size, NULL),
                     KILN_E_ARGUMENT);
    assert_int_equal(kiln_emit_source(global_topk, &shape, 2, text, 4, &size, &err),
                     KILN_E_ARGUMENT);
    assert_non_null(strstr(err.message, "variant = 2"));
    assert_int_equal(kiln_emit_source(global_topk, NULL, 0, text, 4, &size, NULL),
                     KILN_E_ARGUMENT);
    assert_int_equal(kiln_emit_source(global_topk, &shape, 0, NULL, 4, &size, NULL),
                     KILN_E_ARGUMENT);
    assert_int_equal(kiln_emit_source(global_topk, &shape, 0, text, 4, NULL, NULL),
                     KILN_E_ARGUMENT);
    assert_int_equal(size, 77);
    assert_string_equal(text, "abc");
}

/* ---- reference ---------------------------------------------------------------------- */

static void reference_of_no_rows_does_nothing(void **state)
{
    static const struct kiln_global_topk_shape one = {4, 4, 4, 2, 4, 4, 1, 1};
    static const struct kiln_c128a_topk_shape two = {128, 128, 2, 4, 4, 1, 1};
    static const struct kiln_combine_topk_swa_shape three = {4, 4, 128, 4, 0, 128, 256};

    (void)state;
    assert_int_equal(
        kiln_reference_global_topk(&one, &(struct kiln_global_topk_args){0}, NULL),
        KILN_OK);
    assert_int_equal(
        kiln_reference_c128a_topk(&two, &(struct kiln_c128a_topk_args){0}, NULL),
        KILN_OK);
    assert_int_equal(kiln_reference_combine_topk_swa(
                         &three, &(struct kiln_combine_topk_swa_args){0}, NULL),
                     KILN_OK);
}

static void reference_refuses_bad_shapes_and_null(void **state)
{
    struct kiln_shape shape = {0};
    struct kiln_global_topk_args args = {0};

    (void)state;
    assert_int_equal(kiln_reference_global_topk(&shape.global_topk, &args, NULL),
                     KILN_E_SHAPE);
    assert_int_equal(kiln_reference_global_topk(NULL, &args, NULL), KILN_E_ARGUMENT);
    assert_int_equal(kiln_reference_global_topk(&shape.global_topk, NULL, NULL),
                     KILN_E_ARGUMENT);
    assert_int_equal(kiln_reference_c128a_topk(NULL, NULL, NULL), KILN_E_ARGUMENT);
    assert_int_equal(kiln_reference_combine_topk_swa(NULL, NULL, NULL), KILN_E_ARGUMENT);
    assert_int_equal(kiln_reference(KILN_OP_STEP, &shape, &args, NULL),
                     KILN_E_UNSUPPORTED);
    assert_int_equal(kiln_reference((enum kiln_op) - 5, &shape, &args, NULL),
                     KILN_E_ARGUMENT);
}

static void pure_calls_survive_null(void **state)
{
    static struct kiln_deployment deployment;
    static struct kiln_manifest manifest;
    struct kiln_plan plan = {0};
    struct kiln_stats stats = {.n_compiled = 7};
    struct kiln_kernel_info info = {.threads = 7};
    size_t size;

    (void)state;
    assert_int_equal(kiln_plan_make(NULL, &plan, NULL), KILN_E_ARGUMENT);
    assert_int_equal(kiln_plan_make(&deployment, NULL, NULL), KILN_E_ARGUMENT);
    assert_int_equal(kiln_deployment_from_config(NULL, 0, "x", &deployment, NULL),
                     KILN_E_ARGUMENT);
    assert_int_equal(kiln_deployment_from_config("{}", 2, NULL, &deployment, NULL),
                     KILN_E_ARGUMENT);
    assert_int_equal(kiln_deployment_from_config("{}", 2, "x", NULL, NULL),
                     KILN_E_ARGUMENT);
    assert_int_equal(kiln_manifest_read(NULL, 0, "x", &manifest, NULL), KILN_E_ARGUMENT);
    assert_int_equal(kiln_manifest_read("{}", 2, "x", NULL, NULL), KILN_E_ARGUMENT);
    assert_int_equal(kiln_manifest_write(NULL, NULL, 0, &size, NULL), KILN_E_ARGUMENT);
    manifest.n_targets = KILN_MAX_TARGETS + 1;
    assert_int_equal(kiln_manifest_write(&manifest, NULL, 0, &size, NULL),
                     KILN_E_ARGUMENT);
    assert_int_equal(kiln_target_check(NULL, NULL), KILN_E_ARGUMENT);
    assert_int_equal(kiln_target_check("sm_9", NULL), KILN_E_TARGET);
    assert_int_equal(kiln_target_check("sm_90", NULL), KILN_OK);
    kiln_get_stats(NULL, &stats);
    assert_int_equal(stats.n_compiled, 0);
    kiln_get_stats(NULL, NULL);
    kiln_kernel_get_info(NULL, &info);
    assert_int_equal(info.threads, 0);
    kiln_kernel_get_info(NULL, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(emit_is_sized_like_snprintf),
        cmocka_unit_test(emit_refuses_what_has_no_source),
        cmocka_unit_test(reference_of_no_rows_does_nothing),
        cmocka_unit_test(reference_refuses_bad_shapes_and_null),
        cmocka_unit_test(pure_calls_survive_null),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
