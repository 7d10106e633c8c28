/* SPDX-License-Identifier: Apache-2.0 */
/* Consumers: their table, the rows that each takes or refuses, and plans made for them. */
#include <stdarg.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "kiln/plan.h"
#include "base/attr.h"
#include "plan/profile.h"
#include "support/data_file.h"

static const enum kiln_profile profiles[] = {KILN_PROFILE_FLASHMLA,
                                             KILN_PROFILE_FLASHINFER};

/* ---- the table ---- */

static const struct kiln_deployment_field *profile_field(void)
{
    const struct kiln_deployment_field *field;

    for (size_t i = 0; (field = kiln_deployment_field_at(i)) != NULL; i++) {
        if (strcmp(field->name, "profile") == 0) {
            return field;
        }
    }
    fail_msg("a deployment has no profile");
    return NULL;
}

static void profiles_have_the_names_of_the_flag(void **state)
{
    const char *const *names = profile_field()->choices;

    (void)state;
    for (size_t i = 0; i < KI_COUNT_OF(profiles); i++) {
        assert_string_equal(kiln_profile_info_get(profiles[i])->name, names[profiles[i]]);
    }
    assert_null(names[KI_COUNT_OF(profiles)]);
    assert_null(kiln_profile_info_get((enum kiln_profile)KI_COUNT_OF(profiles)));
    assert_null(kiln_profile_info_get((enum kiln_profile) - 1));
}

static void profile_flashmla_is_as_documented(void **state)
{
    const struct kiln_profile_info *p = kiln_profile_info_get(KILN_PROFILE_FLASHMLA);

    (void)state;
    assert_int_equal(p->align, 128);
    assert_int_equal(p->width_multiple, 64);
    assert_int_equal(p->stride_multiple, 1);
    assert_int_equal(p->contiguous_above, INT64_MAX);
    assert_int_equal(p->padding, KILN_PADDING_ZERO);
    assert_int_equal(p->ids, KILN_IDS_SLOTS);
    assert_false(p->is_window_descending);
    assert_int_equal(p->no_write_slot, -1);
}

static void profile_flashinfer_is_as_documented(void **state)
{
    const struct kiln_profile_info *p = kiln_profile_info_get(KILN_PROFILE_FLASHINFER);

    (void)state;
    assert_int_equal(p->align, 4);
    assert_int_equal(p->width_multiple, 1);
    assert_int_equal(p->stride_multiple, 4);
    assert_int_equal(p->contiguous_above, INT64_MAX);
    assert_int_equal(p->padding, KILN_PADDING_WINDOW);
    assert_int_equal(p->ids, KILN_IDS_SPANS);
    assert_false(p->is_window_descending);
    assert_int_equal(p->no_write_slot, -1);
}

/* ---- rows ---- */

static struct kiln_shape global_topk(int64_t topk, int64_t slots_stride)
{
    return (struct kiln_shape){.global_topk = {.topk = topk,
                                               .topk_stride = topk,
                                               .slots_stride = slots_stride,
                                               .block_size = 64,
                                               .table_width = 4,
                                               .table_stride = 4,
                                               .dcp_world = 1,
                                               .dcp_interleave = 1}};
}

static struct kiln_shape c128a_topk(int64_t capacity)
{
    return (struct kiln_shape){.c128a_topk = {.compress_ratio = 128,
                                              .capacity = capacity,
                                              .block_size = 2,
                                              .table_width = 4,
                                              .table_stride = 4,
                                              .dcp_world = 1,
                                              .dcp_interleave = 1}};
}

static struct kiln_shape combine_topk_swa(int64_t align, int64_t stride)
{
    return (struct kiln_shape){.combine_topk_swa = {.topk = 512,
                                                    .topk_stride = 512,
                                                    .window = 120,
                                                    .compress_ratio = 4,
                                                    .align = align,
                                                    .combined_stride = stride}};
}

static struct kiln_shape swa_indices(int64_t width)
{
    return (struct kiln_shape){.swa_indices = {.window = 100,
                                               .index_width = width,
                                               .index_stride = width,
                                               .block_size = 64,
                                               .table_width = 4,
                                               .table_stride = 4,
                                               .causal = 1,
                                               .dcp_world = 1,
                                               .dcp_interleave = 1}};
}

static struct kiln_shape req_to_global(int64_t topk, int64_t stride, int64_t page_stride)
{
    return (struct kiln_shape){.req_to_global = {.topk = topk,
                                                 .topk_stride = topk,
                                                 .out_stride = stride,
                                                 .block_size = 64,
                                                 .page_stride = page_stride,
                                                 .table_width = 4,
                                                 .table_stride = 4,
                                                 .dcp_world = 1,
                                                 .dcp_interleave = 1}};
}

static struct kiln_shape mixed(int64_t swa_width, int64_t swa_span, int64_t span)
{
    return (struct kiln_shape){.mixed_sparse_indices = {.window = 128,
                                                        .swa_width = swa_width,
                                                        .compress_ratio = 4,
                                                        .topk = 512,
                                                        .decode_topk = 510,
                                                        .swa_block_size = 64,
                                                        .swa_span = swa_span,
                                                        .swa_table_width = 4,
                                                        .swa_table_stride = 4,
                                                        .block_size = 64,
                                                        .span = span,
                                                        .table_width = 4,
                                                        .table_stride = 4}};
}

#define FLASHMLA KILN_PROFILE_FLASHMLA
#define FLASHINFER KILN_PROFILE_FLASHINFER

struct offer {
    enum kiln_profile profile;
    enum kiln_op op;
    struct kiln_shape shape;
    const char *refusal; /* NULL: taken */
};

static void assert_answers(const struct offer *offers, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct kiln_error err = {.message = ""};
        enum kiln_status want = offers[i].refusal != NULL ? KILN_E_SHAPE : KILN_OK;

        enum kiln_status status =
            kiln_profile_check(offers[i].profile, offers[i].op, &offers[i].shape, &err);

        if (status != want ||
            (offers[i].refusal != NULL && strcmp(err.message, offers[i].refusal) != 0)) {
            fail_msg("offer %zu: status %d, message \"%s\", expected \"%s\"", i,
                     (int)status, err.message,
                     offers[i].refusal != NULL ? offers[i].refusal : "");
        }
    }
}

static void flashmla_takes_rows_of_whole_64_columns_alone_field_4(void **state)
{
    const struct offer offers[] = {
        {FLASHMLA, KILN_OP_GLOBAL_TOPK, global_topk(64, 64), NULL},
        {FLASHMLA, KILN_OP_GLOBAL_TOPK, global_topk(192, 193), NULL},
        {FLASHMLA, KILN_OP_GLOBAL_TOPK, global_topk(17, 64),
         "flashmla cannot take slots of global_topk: width = 17: expected a multiple of "
         "64"},
        {FLASHMLA, KILN_OP_C128A_TOPK, c128a_topk(7936), NULL},
        {FLASHMLA, KILN_OP_C128A_TOPK, c128a_topk(7813),
         "flashmla cannot take decode_slots of c128a_topk: width = 7813: expected a "
         "multiple of 64"},
        {FLASHMLA, KILN_OP_COMBINE_TOPK_SWA, combine_topk_swa(128, 640), NULL},
        {FLASHMLA, KILN_OP_COMBINE_TOPK_SWA, combine_topk_swa(4, 640),
         "flashmla cannot take combined_indices of combine_topk_swa: width = 632: "
         "expected a multiple of 64"},
        {FLASHMLA, KILN_OP_REQ_TO_GLOBAL, req_to_global(2048, 2048, 64), NULL},
        {FLASHMLA, KILN_OP_REQ_TO_GLOBAL, req_to_global(2000, 2048, 64),
         "flashmla cannot take global_indices of req_to_global: width = 2000: expected a "
         "multiple of 64"},
    };

    (void)state;
    assert_answers(offers, KI_COUNT_OF(offers));
}

static void flashinfer_takes_rows_that_start_on_16_bytes_alone(void **state)
{
    const struct offer offers[] = {
        {FLASHINFER, KILN_OP_GLOBAL_TOPK, global_topk(17, 20), NULL},
        {FLASHINFER, KILN_OP_GLOBAL_TOPK, global_topk(17, 17),
         "flashinfer cannot take slots of global_topk: slots_stride = 17: expected a "
         "multiple of 4"},
        {FLASHINFER, KILN_OP_C128A_TOPK, c128a_topk(7816), NULL},
        {FLASHINFER, KILN_OP_C128A_TOPK, c128a_topk(7813),
         "flashinfer cannot take decode_slots of c128a_topk: width = 7813: expected a "
         "multiple of 4"},
        {FLASHINFER, KILN_OP_COMBINE_TOPK_SWA, combine_topk_swa(4, 632), NULL},
        {FLASHINFER, KILN_OP_COMBINE_TOPK_SWA, combine_topk_swa(1, 634),
         "flashinfer cannot take combined_indices of combine_topk_swa: combined_stride = "
         "634: expected a multiple of 4"},
        {FLASHINFER, KILN_OP_REQ_TO_GLOBAL, req_to_global(2046, 2048, 64), NULL},
        {FLASHINFER, KILN_OP_REQ_TO_GLOBAL, req_to_global(2046, 2046, 64),
         "flashinfer cannot take global_indices of req_to_global: out_stride = 2046: "
         "expected a multiple of 4"},
        {FLASHINFER, KILN_OP_MIXED_SPARSE_INDICES, mixed(132, 64, 64), NULL},
        {FLASHINFER, KILN_OP_MIXED_SPARSE_INDICES, mixed(133, 64, 64),
         "flashinfer cannot take sparse_indices of mixed_sparse_indices: width = 645: "
         "expected a multiple of 4"},
    };

    (void)state;
    assert_answers(offers, KI_COUNT_OF(offers));
}

static void ids_of_packed_pages_are_flashinfers_alone(void **state)
{
    const struct offer offers[] = {
        {FLASHINFER, KILN_OP_REQ_TO_GLOBAL, req_to_global(2048, 2048, 192), NULL},
        {FLASHINFER, KILN_OP_MIXED_SPARSE_INDICES, mixed(128, 80, 96), NULL},
        {FLASHMLA, KILN_OP_REQ_TO_GLOBAL, req_to_global(2048, 2048, 192),
         "flashmla cannot take global_indices of req_to_global: page_stride = 192: "
         "expected 64, as its ids are slots"},
        {FLASHMLA, KILN_OP_MIXED_SPARSE_INDICES, mixed(128, 80, 64),
         "flashmla cannot take sparse_indices of mixed_sparse_indices: swa_span = 80: "
         "expected 64, as its ids are slots"},
        {FLASHMLA, KILN_OP_MIXED_SPARSE_INDICES, mixed(128, 64, 96),
         "flashmla cannot take sparse_indices of mixed_sparse_indices: span = 96: "
         "expected 64, as its ids are slots"},
    };

    (void)state;
    assert_answers(offers, KI_COUNT_OF(offers));
}

static void an_inert_row_as_long_as_the_window_is_flashinfers_alone(void **state)
{
    const struct offer offers[] = {
        {FLASHINFER, KILN_OP_MIXED_SPARSE_INDICES, mixed(128, 64, 64), NULL},
        {FLASHMLA, KILN_OP_MIXED_SPARSE_INDICES, mixed(128, 64, 64),
         "flashmla cannot take sparse_indices of mixed_sparse_indices: the length of an "
         "inert row is that of its window: expected 0"},
    };

    (void)state;
    assert_answers(offers, KI_COUNT_OF(offers));
}

/* Images widen window rows to any number of columns, and plans list them so. */
static void rows_that_no_profile_rules_are_taken(void **state)
{
    (void)state;
    for (size_t i = 0; i < KI_COUNT_OF(profiles); i++) {
        const struct offer offers[] = {
            {profiles[i], KILN_OP_SWA_INDICES, swa_indices(165), NULL},
            {profiles[i],
             KILN_OP_IMAGE_VISIBILITY,
             {.image_visibility = {.image_width = 65}},
             NULL},
            {profiles[i], KILN_OP_STEP, {.fields = {0}}, NULL},
        };
        assert_answers(offers, KI_COUNT_OF(offers));
    }
}

static void a_narrow_view_of_a_wide_buffer_is_taken_field_5(void **state)
{
    const struct offer offers[] = {
        {FLASHMLA, KILN_OP_GLOBAL_TOPK, global_topk(512, 8192), NULL},
        {FLASHINFER, KILN_OP_GLOBAL_TOPK, global_topk(512, 8192), NULL},
    };

    (void)state;
    assert_answers(offers, KI_COUNT_OF(offers));
}

static void a_consumer_of_contiguous_rows_refuses_a_narrow_view_field_5(void **state)
{
    struct kiln_profile_info strict = *kiln_profile_info_get(KILN_PROFILE_FLASHMLA);
    struct kiln_shape narrow = global_topk(512, 8192);
    struct kiln_shape packed = global_topk(512, 512);
    struct kiln_error err = {.message = ""};

    (void)state;
    strict.name = "strict";
    strict.contiguous_above = 64;

    assert_int_equal(ki_profile_check(&strict, KILN_OP_GLOBAL_TOPK, &packed, &err),
                     KILN_OK);
    assert_int_equal(ki_profile_check(&strict, KILN_OP_GLOBAL_TOPK, &narrow, &err),
                     KILN_E_SHAPE);
    assert_string_equal(err.message,
                        "strict cannot take slots of global_topk: slots_stride = 8192: "
                        "expected 512, its width, as rows must be contiguous");
}

static void profile_check_names_a_wrong_argument(void **state)
{
    struct kiln_shape shape = global_topk(512, 512);
    struct kiln_error err = {.message = ""};

    (void)state;
    assert_int_equal(
        kiln_profile_check((enum kiln_profile)2, KILN_OP_GLOBAL_TOPK, &shape, &err),
        KILN_E_ARGUMENT);
    assert_string_equal(err.message,
                        "profile 2 is unknown: expected a value of enum kiln_profile");
    assert_int_equal(
        kiln_profile_check(KILN_PROFILE_FLASHMLA, KILN_OP_GLOBAL_TOPK, NULL, &err),
        KILN_E_ARGUMENT);
    assert_non_null(strstr(err.message, "shape is NULL"));
    shape.global_topk.block_size = 0;
    assert_int_equal(
        kiln_profile_check(KILN_PROFILE_FLASHMLA, KILN_OP_GLOBAL_TOPK, &shape, &err),
        KILN_E_SHAPE);
    assert_non_null(strstr(err.message, "block_size = 0"));
}

/* ---- plans ---- */

static const char *const models[] = {"deepseek-v3.2.json", "deepseek-v4-flash.json",
                                     "deepseek-v4-pro.json", "glm-5.json",
                                     "ratios-0-1-2.json"};

static struct kiln_deployment deployment_of(const char *model)
{
    struct kiln_deployment d = {.max_model_len = 131072, .max_num_batched_tokens = 8192};
    size_t size = 0;
    char *text = data_file_read("models", model, &size);

    assert_int_equal(kiln_deployment_from_config(text, size, model, &d, NULL), KILN_OK);
    free(text);
    return d;
}

static struct kiln_plan plan_of(const struct kiln_deployment *d)
{
    struct kiln_plan plan = {0};
    struct kiln_error err = {.message = ""};

    if (kiln_plan_make(d, &plan, &err) != KILN_OK) {
        fail_msg("plan failed: %s", err.message);
    }
    return plan;
}

static void assert_contiguous(const struct kiln_plan_item *item)
{
    const struct kiln_op_info *info = kiln_op_info_get(item->op);

    for (size_t i = 0; i < info->n_args; i++) {
        const struct kiln_arg *arg = &info->args[i];
        if (arg->kind == KILN_ARG_OUTPUT && arg->stride_field >= 0) {
            assert_int_equal(item->shape.fields[arg->stride_field],
                             arg->width(&item->shape));
        }
    }
}

static void assert_takes_its_plan(const struct kiln_deployment *d)
{
    struct kiln_plan plan = plan_of(d);
    struct kiln_error err = {.message = ""};

    for (size_t i = 0; i < plan.n_items; i++) {
        if (kiln_profile_check((enum kiln_profile)d->profile, plan.items[i].op,
                               &plan.items[i].shape, &err) != KILN_OK) {
            fail_msg("planned, and refused: %s", err.message);
        }
        assert_contiguous(&plan.items[i]);
    }
    for (size_t i = 0; i < plan.n_segments; i++) {
        assert_contiguous(&plan.segments[i]);
    }
    kiln_plan_finish(&plan);
}

/* What is planned has no gaps between rows, so that no consumer can refuse it for them. */
static void every_plan_is_taken_by_its_consumer_field_4_5(void **state)
{
    static const int64_t lengths[] = {1, 70000, 1000000, 1048576};
    static const int64_t images[] = {0, 1, 65, 1024};

    (void)state;
    for (size_t i = 0; i < KI_COUNT_OF(models) * KI_COUNT_OF(profiles) *
                               KI_COUNT_OF(lengths) * KI_COUNT_OF(images);
         i++) {
        size_t rest = i / KI_COUNT_OF(models);
        struct kiln_deployment d = deployment_of(models[i % KI_COUNT_OF(models)]);
        d.profile = profiles[rest % KI_COUNT_OF(profiles)];
        rest /= KI_COUNT_OF(profiles);
        d.max_model_len = lengths[rest % KI_COUNT_OF(lengths)];
        d.image_width = images[rest / KI_COUNT_OF(lengths)];
        d.num_speculative_tokens = (int64_t)(i % 6);
        d.sliding_window += d.sliding_window > 0 ? (int64_t)(i % 3) : 0;

        assert_takes_its_plan(&d);
    }
}

/* An op's item; of combine_topk_swa that with top-k. */
static const struct kiln_plan_item *find(const struct kiln_plan *plan, enum kiln_op op)
{
    for (size_t i = 0; i < plan->n_items; i++) {
        if (plan->items[i].op == op && (op != KILN_OP_COMBINE_TOPK_SWA ||
                                        plan->items[i].shape.combine_topk_swa.topk > 0)) {
            return &plan->items[i];
        }
    }
    fail_msg("the plan has no %s", kiln_op_info_get(op)->name);
    return NULL;
}

static void plan_aligns_combined_rows_as_the_profile_says(void **state)
{
    static const int64_t columns[] = {768, 708}; /* of 512 + 128 + 65 */

    (void)state;
    for (size_t i = 0; i < KI_COUNT_OF(profiles); i++) {
        struct kiln_deployment d = deployment_of("deepseek-v4-flash.json");
        d.profile = profiles[i];
        d.image_width = 65;
        struct kiln_plan plan = plan_of(&d);
        const struct kiln_combine_topk_swa_shape *shape =
            &find(&plan, KILN_OP_COMBINE_TOPK_SWA)->shape.combine_topk_swa;

        assert_int_equal(shape->align, kiln_profile_info_get(profiles[i])->align);
        assert_int_equal(shape->combined_stride, columns[i]);
        kiln_plan_finish(&plan);
    }
}

static bool is_same_but_for_align(const struct kiln_plan_item *a,
                                  const struct kiln_plan_item *b)
{
    struct kiln_shape other = b->shape;

    if (a->op == KILN_OP_COMBINE_TOPK_SWA) {
        other.combine_topk_swa.align = a->shape.combine_topk_swa.align;
    }
    return a->op == b->op && a->layers == b->layers && a->rows == b->rows &&
           memcmp(&a->shape, &other, sizeof(other)) == 0;
}

static void plan_differs_between_profiles_in_align_alone(void **state)
{
    (void)state;
    for (size_t m = 0; m < KI_COUNT_OF(models); m++) {
        struct kiln_deployment d = deployment_of(models[m]);
        d.num_speculative_tokens = 5;
        struct kiln_plan flashmla = plan_of(&d);
        d.profile = KILN_PROFILE_FLASHINFER;
        struct kiln_plan flashinfer = plan_of(&d);

        assert_int_equal(flashmla.n_items, flashinfer.n_items);
        for (size_t i = 0; i < flashmla.n_items; i++) {
            assert_true(is_same_but_for_align(&flashmla.items[i], &flashinfer.items[i]));
        }
        kiln_plan_finish(&flashmla);
        kiln_plan_finish(&flashinfer);
    }
}

struct odd_model {
    const char *model;
    enum kiln_profile profile;
    int64_t index_topk;
    const char *refusal; /* NULL: planned */
};

static const struct odd_model odd_models[] = {
    {"deepseek-v4-flash.json", FLASHMLA, 17,
     "--profile is flashmla and index_topk 17: flashmla cannot take slots of "
     "global_topk: "
     "width = 17: expected a multiple of 64"},
    {"glm-5.json", FLASHMLA, 2000,
     "--profile is flashmla and index_topk 2000: flashmla cannot take global_indices of "
     "req_to_global: width = 2000: expected a multiple of 64"},
    {"deepseek-v4-flash.json", FLASHINFER, 17,
     "--profile is flashinfer and index_topk 17: flashinfer cannot take slots of "
     "global_topk: slots_stride = 17: expected a multiple of 4"},
    {"deepseek-v4-flash.json", FLASHINFER, 20, NULL},
    {"glm-5.json", FLASHINFER, 2000, NULL},
    {"glm-5.json", FLASHMLA, 64, NULL},
};

static void plan_refuses_a_model_that_its_consumer_cannot_take_field_4(void **state)
{
    (void)state;
    for (size_t i = 0; i < KI_COUNT_OF(odd_models); i++) {
        const struct odd_model *odd = &odd_models[i];
        struct kiln_deployment d = deployment_of(odd->model);
        struct kiln_plan plan = {0};
        struct kiln_error err = {.message = ""};

        d.index_topk = odd->index_topk;
        d.profile = odd->profile;
        enum kiln_status status = kiln_plan_make(&d, &plan, &err);

        if (status != (odd->refusal != NULL ? KILN_E_ARGUMENT : KILN_OK) ||
            (odd->refusal != NULL && strcmp(err.message, odd->refusal) != 0)) {
            fail_msg("odd model %zu: status %d, message \"%s\"", i, (int)status,
                     err.message);
        }
        kiln_plan_finish(&plan);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(profiles_have_the_names_of_the_flag),
        cmocka_unit_test(profile_flashmla_is_as_documented),
        cmocka_unit_test(profile_flashinfer_is_as_documented),
        cmocka_unit_test(flashmla_takes_rows_of_whole_64_columns_alone_field_4),
        cmocka_unit_test(flashinfer_takes_rows_that_start_on_16_bytes_alone),
        cmocka_unit_test(ids_of_packed_pages_are_flashinfers_alone),
        cmocka_unit_test(an_inert_row_as_long_as_the_window_is_flashinfers_alone),
        cmocka_unit_test(rows_that_no_profile_rules_are_taken),
        cmocka_unit_test(a_narrow_view_of_a_wide_buffer_is_taken_field_5),
        cmocka_unit_test(a_consumer_of_contiguous_rows_refuses_a_narrow_view_field_5),
        cmocka_unit_test(profile_check_names_a_wrong_argument),
        cmocka_unit_test(every_plan_is_taken_by_its_consumer_field_4_5),
        cmocka_unit_test(plan_aligns_combined_rows_as_the_profile_says),
        cmocka_unit_test(plan_differs_between_profiles_in_align_alone),
        cmocka_unit_test(plan_refuses_a_model_that_its_consumer_cannot_take_field_4),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
