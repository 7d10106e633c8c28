/* SPDX-License-Identifier: Apache-2.0 */
/* Plans: the given lists, what may and may not change them, sizes, and named errors. */
#include <stdarg.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "kiln/plan.h"
#include "base/attr.h"
#include "support/data_file.h"

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
    struct kiln_error err = {0};

    if (kiln_plan_make(d, &plan, &err) != KILN_OK) {
        fail_msg("plan failed: %s", err.message);
    }
    return plan;
}

/* The nth item of an op, from 0. */
static const struct kiln_plan_item *find(const struct kiln_plan *plan, enum kiln_op op,
                                         size_t nth)
{
    for (size_t i = 0; i < plan->n_items; i++) {
        if (plan->items[i].op == op && nth-- == 0) {
            return &plan->items[i];
        }
    }
    fail_msg("the plan has no such %s", kiln_op_info_get(op)->name);
    return NULL;
}

static size_t count(const struct kiln_plan *plan, enum kiln_op op)
{
    size_t n = 0;

    for (size_t i = 0; i < plan->n_items; i++) {
        n += plan->items[i].op == op;
    }
    return n;
}

/* ---- the given lists ---- */

static int64_t field_value(const struct kiln_shape_field *field, const json_t *value)
{
    if (field->kind == KILN_FIELD_BOOLEAN) {
        assert_true(json_is_boolean(value));
        return json_is_true(value);
    }
    if (field->kind == KILN_FIELD_CHOICE) {
        const char *text = json_string_value(value);
        int64_t i = 0;
        assert_non_null(text);
        while (field->choices[i] != NULL && strcmp(field->choices[i], text) != 0) {
            i++;
        }
        return i;
    }
    assert_true(json_is_integer(value));
    return json_integer_value(value);
}

static bool same_shape(const struct kiln_plan_item *item, const json_t *line)
{
    const struct kiln_op_info *info = kiln_op_info_get(item->op);
    const json_t *shape = json_object_get(line, "shape");

    if (strcmp(info->name, json_string_value(json_object_get(line, "op"))) != 0 ||
        json_object_size(shape) != info->n_fields) {
        return false;
    }
    for (size_t i = 0; i < info->n_fields; i++) {
        const json_t *value = json_object_get(shape, info->fields[i].name);
        if (field_value(&info->fields[i], value) != item->shape.fields[i]) {
            return false;
        }
    }
    return true;
}

static bool same_item(const struct kiln_plan *plan, const struct kiln_plan_item *item,
                      const json_t *line)
{
    if (json_integer_value(json_object_get(line, "layers")) != item->layers) {
        return false;
    }
    if (item->op != KILN_OP_STEP) {
        return same_shape(item, line);
    }
    const json_t *segments = json_object_get(json_object_get(line, "shape"), "segments");
    if (json_array_size(segments) != item->n_segments) {
        return false;
    }
    for (size_t i = 0; i < item->n_segments; i++) {
        if (!same_shape(&plan->segments[item->first_segment + i],
                        json_array_get(segments, i))) {
            return false;
        }
    }
    return true;
}

static bool holds(const struct kiln_plan *plan, const json_t *line)
{
    for (size_t i = 0; i < plan->n_items; i++) {
        if (same_item(plan, &plan->items[i], line)) {
            return true;
        }
    }
    return false;
}

/* Every line is in the plan, and the plan has no more: its items differ from each other. */
static void assert_plan_is(const char *file, const struct kiln_deployment *d)
{
    struct kiln_plan plan = plan_of(d);
    size_t size = 0;
    char *text = data_file_read("plans", file, &size);
    size_t n_lines = 0;

    for (char *line = strtok(text, "\n"); line != NULL; line = strtok(NULL, "\n")) {
        json_t *want = json_loads(line, 0, NULL);
        assert_non_null(want);
        if (!holds(&plan, want)) {
            fail_msg("%s: the plan lacks %s", file, line);
        }
        json_decref(want);
        n_lines++;
    }
    assert_int_equal(plan.n_items, n_lines);
    free(text);
    kiln_plan_finish(&plan);
}

static void plan_of_v4_flash_is_the_given_list(void **state)
{
    struct kiln_deployment d = deployment_of("deepseek-v4-flash.json");

    (void)state;
    d.max_model_len = 1048576;

    assert_plan_is("deepseek-v4-flash-1048576.jsonl", &d);
}

static void plan_of_glm_is_the_given_list(void **state)
{
    struct kiln_deployment d = deployment_of("glm-5.json");

    (void)state;
    assert_plan_is("glm-5-131072.jsonl", &d);
}

static void plan_of_ratios_0_1_2_is_the_given_list(void **state)
{
    struct kiln_deployment d = deployment_of("ratios-0-1-2.json");

    (void)state;
    d.max_model_len = 262144;
    d.block_size = 128;
    d.num_speculative_tokens = 5;

    assert_plan_is("ratios-0-1-2-262144-block128-spec5.jsonl", &d);
}

/* ---- what changes a plan ---- */

static void plan_names_each_op_and_shape_once(void **state)
{
    (void)state;
    for (size_t m = 0; m < KI_COUNT_OF(models); m++) {
        struct kiln_deployment d = deployment_of(models[m]);
        d.num_speculative_tokens = 3;
        d.image_width = 64;
        struct kiln_plan plan = plan_of(&d);

        for (size_t i = 0; i < plan.n_items; i++) {
            for (size_t j = i + 1; j < plan.n_items; j++) {
                assert_false(plan.items[i].op == plan.items[j].op &&
                             memcmp(&plan.items[i].shape, &plan.items[j].shape,
                                    sizeof(struct kiln_shape)) == 0);
            }
        }
        kiln_plan_finish(&plan);
    }
}

static void plan_does_not_depend_on_the_batch(void **state)
{
    (void)state;
    for (size_t m = 0; m < KI_COUNT_OF(models); m++) {
        struct kiln_deployment d = deployment_of(models[m]);
        struct kiln_plan one = plan_of(&d);
        d.max_num_seqs = 512;
        d.max_num_batched_tokens = 2048;
        struct kiln_plan other = plan_of(&d);

        assert_int_equal(one.n_items, other.n_items);
        assert_memory_equal(one.digest, other.digest, sizeof(one.digest));
        for (size_t i = 0; i < one.n_items; i++) {
            assert_memory_equal(&one.items[i].shape, &other.items[i].shape,
                                sizeof(struct kiln_shape));
        }
        kiln_plan_finish(&one);
        kiln_plan_finish(&other);
    }
}

static bool follows_length(const struct kiln_plan_item *item, const char *field)
{
    if (strcmp(field, "capacity") == 0 || strcmp(field, "table_width") == 0 ||
        strcmp(field, "table_stride") == 0) {
        return true;
    }
    return item->op == KILN_OP_COMBINE_TOPK_SWA &&
           item->shape.combine_topk_swa.compress_ratio == 128 &&
           (strcmp(field, "topk") == 0 || strcmp(field, "topk_stride") == 0 ||
            strcmp(field, "combined_stride") == 0);
}

static void assert_differs_by_length_only(const struct kiln_plan_item *a,
                                          const struct kiln_plan_item *b)
{
    const struct kiln_op_info *info = kiln_op_info_get(a->op);

    assert_int_equal(a->op, b->op);
    assert_int_equal(a->layers, b->layers);
    for (size_t f = 0; f < info->n_fields; f++) {
        if (follows_length(a, info->fields[f].name)) {
            continue;
        }
        if (a->shape.fields[f] != b->shape.fields[f]) {
            fail_msg("%s.%s follows max_model_len", info->name, info->fields[f].name);
        }
    }
}

static void plan_follows_max_model_len_in_tables_and_capacity_alone(void **state)
{
    static const int64_t lengths[] = {1, 8192, 70000, 1000000, 1048576};

    (void)state;
    for (size_t m = 0; m < KI_COUNT_OF(models); m++) {
        struct kiln_deployment d = deployment_of(models[m]);
        struct kiln_plan one = plan_of(&d);
        for (size_t l = 0; l < KI_COUNT_OF(lengths); l++) {
            d.max_model_len = lengths[l];
            struct kiln_plan other = plan_of(&d);
            assert_int_equal(one.n_items, other.n_items);
            for (size_t i = 0; i < one.n_items; i++) {
                assert_differs_by_length_only(&one.items[i], &other.items[i]);
            }
            kiln_plan_finish(&other);
        }
        kiln_plan_finish(&one);
    }
}

static void plan_digest_tells_shapes_apart_field_64(void **state)
{
    struct kiln_deployment d = deployment_of("deepseek-v4-flash.json");
    struct kiln_plan one = plan_of(&d);

    (void)state;
    d.dcp_storage = KILN_DCP_REPLICATED;
    struct kiln_plan other = plan_of(&d);

    assert_memory_not_equal(one.digest, other.digest, sizeof(one.digest));
    kiln_plan_finish(&one);
    kiln_plan_finish(&other);
}

/* ---- widths ---- */

struct length_case {
    int64_t max_model_len, capacity, table_width;
};

static void plan_capacity_is_aligned_and_need_not_be_a_power_of_two(void **state)
{
    static const struct length_case cases[] = {
        {1, 128, 1},          {8192, 128, 32},       {65536, 512, 256},
        {70000, 640, 274},    {131072, 1024, 512},   {163840, 1280, 640},
        {300000, 2432, 1172}, {1000000, 7936, 3907}, {1048576, 8192, 4096},
    };
    struct kiln_deployment d = deployment_of("deepseek-v4-flash.json");

    (void)state;
    for (size_t i = 0; i < KI_COUNT_OF(cases); i++) {
        d.max_model_len = cases[i].max_model_len;
        struct kiln_plan plan = plan_of(&d);
        const struct kiln_c128a_topk_shape *shape =
            &find(&plan, KILN_OP_C128A_TOPK, 0)->shape.c128a_topk;

        assert_int_equal(shape->capacity, cases[i].capacity);
        assert_int_equal(shape->table_width, cases[i].table_width);
        kiln_plan_finish(&plan);
    }
}

static void plan_shares_tables_between_ranks(void **state)
{
    struct kiln_deployment d = deployment_of("deepseek-v4-flash.json");

    (void)state;
    d.max_model_len = 1000001;
    d.dcp_world = 4;
    d.dcp_interleave = 2;
    struct kiln_plan plan = plan_of(&d);
    const struct kiln_swa_indices_shape *swa =
        &find(&plan, KILN_OP_SWA_INDICES, 0)->shape.swa_indices;

    assert_int_equal(find(&plan, KILN_OP_GLOBAL_TOPK, 0)->shape.global_topk.table_width,
                     977);
    assert_int_equal(swa->table_width, 3907);
    assert_int_equal(swa->dcp_world, 4);
    assert_int_equal(find(&plan, KILN_OP_IS_VALID_TOKEN, 0)->shape.fields[0], 4);
    kiln_plan_finish(&plan);
}

static void plan_keeps_the_whole_window_table_when_storage_is_replicated(void **state)
{
    struct kiln_deployment d = deployment_of("deepseek-v4-flash.json");

    (void)state;
    d.dcp_world = 4;
    d.dcp_storage = KILN_DCP_REPLICATED;
    struct kiln_plan plan = plan_of(&d);

    assert_int_equal(find(&plan, KILN_OP_SWA_INDICES, 0)->shape.swa_indices.table_width,
                     2048);
    assert_int_equal(find(&plan, KILN_OP_C128A_TOPK, 0)->shape.c128a_topk.table_width,
                     128);
    kiln_plan_finish(&plan);
}

static void plan_widens_rows_for_images(void **state)
{
    struct kiln_deployment d = deployment_of("deepseek-v4-flash.json");

    (void)state;
    d.image_width = 65;
    d.num_speculative_tokens = 5;
    struct kiln_plan plan = plan_of(&d);
    const struct kiln_swa_indices_shape *causal =
        &find(&plan, KILN_OP_SWA_INDICES, 0)->shape.swa_indices;
    const struct kiln_swa_indices_shape *draft =
        &find(&plan, KILN_OP_SWA_INDICES, 1)->shape.swa_indices;

    assert_int_equal(causal->index_width, 193);
    assert_int_equal(causal->image_width, 65);
    assert_int_equal(draft->index_width, 192);
    assert_int_equal(draft->image_width, 0);
    assert_int_equal(
        find(&plan, KILN_OP_COMBINE_TOPK_SWA, 1)->shape.combine_topk_swa.combined_stride,
        768);
    assert_int_equal(find(&plan, KILN_OP_IMAGE_VISIBILITY, 0)->shape.fields[0], 65);
    assert_int_equal(find(&plan, KILN_OP_STEP, 0)->n_segments, 8);
    kiln_plan_finish(&plan);
}

static void plan_takes_ratio_1_for_a_window_unless_there_is_ratio_2(void **state)
{
    struct kiln_deployment d = {.num_hidden_layers = 3,
                                .index_topk = 512,
                                .sliding_window = 128,
                                .n_compress_ratios = 4,
                                .compress_ratios = {0, 1, 4, 1},
                                .max_model_len = 4096,
                                .max_num_batched_tokens = 2048};

    (void)state;
    struct kiln_plan plan = plan_of(&d);

    assert_int_equal(find(&plan, KILN_OP_COMBINE_TOPK_SWA, 0)->layers, 3);
    assert_int_equal(count(&plan, KILN_OP_GLOBAL_TOPK), 1);
    assert_int_equal(count(&plan, KILN_OP_COMPRESSED_SLOTS), 1);
    kiln_plan_finish(&plan);
}

static void plan_of_window_layers_alone_has_no_records_field_32(void **state)
{
    struct kiln_deployment d = {.num_hidden_layers = 3,
                                .index_topk = 512,
                                .sliding_window = 128,
                                .n_compress_ratios = 1,
                                .compress_ratios = {0},
                                .max_model_len = 4096,
                                .max_num_batched_tokens = 2048};

    (void)state;
    struct kiln_plan plan = plan_of(&d);

    assert_int_equal(find(&plan, KILN_OP_COMBINE_TOPK_SWA, 0)->layers, 3);
    assert_int_equal(count(&plan, KILN_OP_GLOBAL_TOPK), 0);
    assert_int_equal(count(&plan, KILN_OP_COMPRESSED_SLOTS), 0);
    assert_int_equal(count(&plan, KILN_OP_C128A_TOPK), 0);
    assert_int_equal(find(&plan, KILN_OP_STEP, 0)->n_segments, 4);
    kiln_plan_finish(&plan);
}

static void plan_takes_topk_from_the_model_field_23(void **state)
{
    struct kiln_deployment flash = deployment_of("deepseek-v4-flash.json");
    struct kiln_deployment pro = deployment_of("deepseek-v4-pro.json");
    struct kiln_plan plans[] = {plan_of(&flash), plan_of(&pro)};

    (void)state;
    assert_int_equal(find(&plans[0], KILN_OP_GLOBAL_TOPK, 0)->shape.global_topk.topk,
                     512);
    assert_int_equal(find(&plans[1], KILN_OP_GLOBAL_TOPK, 0)->shape.global_topk.topk,
                     1024);
    kiln_plan_finish(&plans[0]);
    kiln_plan_finish(&plans[1]);
}

/* ---- sizes ---- */

static void plan_sizes_decode_rows_by_sequences_and_drafts(void **state)
{
    struct kiln_deployment d = deployment_of("deepseek-v4-flash.json");

    (void)state;
    d.max_num_seqs = 64;
    d.num_speculative_tokens = 2;
    struct kiln_plan plan = plan_of(&d);
    const struct kiln_plan_item *topk = find(&plan, KILN_OP_GLOBAL_TOPK, 0);
    const struct kiln_plan_item *draft = find(&plan, KILN_OP_SWA_INDICES, 1);

    assert_int_equal(topk->rows, 192);
    assert_int_equal(topk->bytes, 192 * (512 + 1) * 4);
    assert_int_equal(draft->rows, 192);
    assert_int_equal(draft->bytes, 192 * (192 + 1) * 4);
    kiln_plan_finish(&plan);
}

static void plan_sizes_all_other_rows_by_batched_tokens(void **state)
{
    struct kiln_deployment d = deployment_of("deepseek-v4-flash.json");
    struct kiln_plan plan = plan_of(&d);
    const struct kiln_plan_item *combine = find(&plan, KILN_OP_COMBINE_TOPK_SWA, 1);
    const struct kiln_plan_item *slots = find(&plan, KILN_OP_COMPRESSED_SLOTS, 0);

    (void)state;
    assert_int_equal(combine->rows, 8192);
    assert_int_equal(combine->bytes, 8192 * (640 + 1) * 4);
    assert_int_equal(slots->rows, 8192);
    assert_int_equal(slots->bytes, 8192 * 8);
    assert_int_equal(find(&plan, KILN_OP_IS_VALID_TOKEN, 0)->bytes, 8192);
    kiln_plan_finish(&plan);
}

static void plan_sizes_c128a_by_both_of_its_matrices(void **state)
{
    struct kiln_deployment d = deployment_of("deepseek-v4-flash.json");

    (void)state;
    d.max_model_len = 1048576;
    struct kiln_plan plan = plan_of(&d);
    const struct kiln_plan_item *item = find(&plan, KILN_OP_C128A_TOPK, 0);

    assert_int_equal(item->rows, 256 + 8192);
    assert_int_equal(item->bytes, (256 + 8192) * 8192LL * 4 + 256 * 4);
    kiln_plan_finish(&plan);
}

static void plan_sizes_step_as_the_sum_of_its_segments(void **state)
{
    struct kiln_deployment d = deployment_of("deepseek-v4-flash.json");
    struct kiln_plan plan = plan_of(&d);
    const struct kiln_plan_item *step = find(&plan, KILN_OP_STEP, 0);
    int64_t bytes = 0;

    (void)state;
    for (size_t i = 0; i < plan.n_items; i++) {
        enum kiln_op op = plan.items[i].op;
        bool is_part = op != KILN_OP_GLOBAL_TOPK && op != KILN_OP_COMBINE_TOPK_SWA &&
                       op != KILN_OP_STEP;
        bytes += is_part ? plan.items[i].bytes * plan.items[i].layers : 0;
    }
    assert_int_equal(step->bytes, bytes);
    assert_int_equal(step->rows, 7 * 8192 + 256 + 8192);
    kiln_plan_finish(&plan);
}

/* ---- errors ---- */

struct bad_field {
    const char *label;
    size_t offset;
    int64_t value;
    const char *named;
};

#define BAD(field, value, named)                                                         \
    {                                                                                    \
#field, offsetof(struct kiln_deployment, field), value, named                    \
    }

static const struct bad_field bad_fields[] = {
    BAD(max_model_len, 0, "--max-model-len is 0"),
    BAD(max_model_len, -1, "--max-model-len is -1"),
    BAD(max_model_len, (int64_t)1 << 40, "--max-model-len is 1099511627776"),
    BAD(max_model_len, INT64_MAX, "--max-model-len is 9223372036854775807"),
    BAD(max_num_batched_tokens, 0, "--max-num-batched-tokens is 0"),
    BAD(max_num_batched_tokens, INT64_MAX, "--max-num-batched-tokens is"),
    BAD(max_num_seqs, -1, "--max-num-seqs is -1"),
    BAD(max_num_seqs, (int64_t)1 << 31, "--max-num-seqs is 2147483648"),
    BAD(block_size, -256, "--block-size is -256"),
    BAD(block_size, 64, "--block-size is 64, expected a multiple of 128"),
    BAD(block_size, 130, "--block-size is 130, expected a multiple of 4"),
    BAD(num_speculative_tokens, -1, "--num-speculative-tokens is -1"),
    BAD(num_speculative_tokens, INT32_MAX, "--num-speculative-tokens 2147483647"),
    BAD(dcp_world, -2, "--dcp-world is -2"),
    BAD(dcp_world, (int64_t)1 << 31, "--dcp-world is 2147483648"),
    BAD(dcp_interleave, -1, "--dcp-interleave is -1"),
    BAD(dcp_interleave, 3, "--dcp-interleave is 3"),
    BAD(dcp_interleave, 4, "--dcp-interleave is 4, expected a divisor of 2"),
    BAD(dcp_interleave, 128, "--dcp-interleave is 128, expected a divisor of 64"),
    BAD(dcp_storage, 2, "--dcp-storage is 2"),
    BAD(image_width, -1, "--image-width is -1"),
    BAD(image_width, INT32_MAX, "--image-width is 2147483647"),
    BAD(profile, 2, "--profile is 2"),
    BAD(index_topk, 0, "index_topk is 0"),
    BAD(index_topk, INT32_MAX, "index_topk is 2147483647, expected 1 to 16777216"),
    BAD(sliding_window, 0, "sliding_window is 0"),
    BAD(sliding_window, INT32_MAX,
        "sliding_window is 2147483647, expected 1 to 16777216"),
    BAD(num_hidden_layers, 0, "num_hidden_layers is 0"),
    BAD(n_compress_ratios, 1025, "compress_ratios is 1025"),
    BAD(n_compress_ratios, -1, "compress_ratios is -1"),
};

static void plan_names_what_is_wrong(void **state)
{
    (void)state;
    for (size_t i = 0; i < KI_COUNT_OF(bad_fields); i++) {
        const struct bad_field *bad = &bad_fields[i];
        struct kiln_deployment d = deployment_of("deepseek-v4-flash.json");
        struct kiln_plan plan = {.n_items = 77};
        struct kiln_error err = {0};

        memcpy((char *)&d + bad->offset, &bad->value, sizeof(bad->value));
        enum kiln_status status = kiln_plan_make(&d, &plan, &err);

        if (status != KILN_E_ARGUMENT || strstr(err.message, bad->named) == NULL ||
            plan.n_items != 77) {
            fail_msg("%s = %lld: status %d, message \"%s\", expected \"%s\"", bad->label,
                     (long long)bad->value, (int)status, err.message, bad->named);
        }
    }
}

static void plan_names_a_negative_ratio_with_its_index(void **state)
{
    struct kiln_deployment d = deployment_of("deepseek-v4-flash.json");
    struct kiln_plan plan = {0};
    struct kiln_error err = {0};

    (void)state;
    d.compress_ratios[7] = -4;

    assert_int_equal(kiln_plan_make(&d, &plan, &err), KILN_E_ARGUMENT);
    assert_non_null(strstr(err.message, "compress_ratios[7] is -4"));
}

static void plan_refuses_outputs_past_int64(void **state)
{
    struct kiln_deployment d = deployment_of("deepseek-v4-flash.json");
    struct kiln_plan plan = {0};
    struct kiln_error err = {0};

    (void)state;
    /* rows of nearly 2^31 columns, 2^31 of them */
    d.max_model_len = ((int64_t)INT32_MAX - (1 << 16)) * 128;
    d.dcp_world = 64;
    d.max_num_batched_tokens = INT32_MAX;

    assert_int_equal(kiln_plan_make(&d, &plan, &err), KILN_E_ARGUMENT);
    assert_non_null(strstr(err.message, "--max-num-batched-tokens is 2147483647"));
}

static void plan_takes_the_greatest_widths_of_a_model(void **state)
{
    struct kiln_deployment d = deployment_of("deepseek-v4-flash.json");

    (void)state;
    d.index_topk = 1 << 24;
    d.sliding_window = 1 << 24;
    struct kiln_plan plan = plan_of(&d);

    assert_int_equal(find(&plan, KILN_OP_GLOBAL_TOPK, 0)->shape.global_topk.topk,
                     1 << 24);
    kiln_plan_finish(&plan);
}

static void plan_blames_a_long_context_for_long_rows(void **state)
{
    struct kiln_deployment d = deployment_of("deepseek-v4-flash.json");
    struct kiln_plan plan = {0};
    struct kiln_error err = {0};

    (void)state;
    d.max_model_len = ((int64_t)INT32_MAX - 127) * 128;
    d.dcp_world = 64;

    assert_int_equal(kiln_plan_make(&d, &plan, &err), KILN_E_ARGUMENT);
    assert_non_null(
        strstr(err.message, "--max-model-len is 274877890560: a combined row"));
}

static void plan_takes_the_greatest_numbers(void **state)
{
    struct kiln_deployment d = deployment_of("ratios-0-1-2.json");

    (void)state;
    d.max_model_len = ((int64_t)INT32_MAX * 64) << 20;
    d.dcp_world = 1 << 20;
    d.max_num_batched_tokens = INT32_MAX;
    struct kiln_plan plan = plan_of(&d);

    assert_int_equal(find(&plan, KILN_OP_SWA_INDICES, 0)->shape.swa_indices.table_width,
                     INT32_MAX);
    kiln_plan_finish(&plan);
}

static void plan_finish_takes_nothing_twice(void **state)
{
    struct kiln_deployment d = deployment_of("glm-5.json");
    struct kiln_plan plan = plan_of(&d);

    (void)state;
    kiln_plan_finish(&plan);
    kiln_plan_finish(&plan);
    kiln_plan_finish(NULL);

    assert_null(plan.items);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plan_of_v4_flash_is_the_given_list),
        cmocka_unit_test(plan_of_glm_is_the_given_list),
        cmocka_unit_test(plan_of_ratios_0_1_2_is_the_given_list),
        cmocka_unit_test(plan_names_each_op_and_shape_once),
        cmocka_unit_test(plan_does_not_depend_on_the_batch),
        cmocka_unit_test(plan_follows_max_model_len_in_tables_and_capacity_alone),
        cmocka_unit_test(plan_digest_tells_shapes_apart_field_64),
        cmocka_unit_test(plan_capacity_is_aligned_and_need_not_be_a_power_of_two),
        cmocka_unit_test(plan_shares_tables_between_ranks),
        cmocka_unit_test(plan_keeps_the_whole_window_table_when_storage_is_replicated),
        cmocka_unit_test(plan_widens_rows_for_images),
        cmocka_unit_test(plan_takes_ratio_1_for_a_window_unless_there_is_ratio_2),
        cmocka_unit_test(plan_of_window_layers_alone_has_no_records_field_32),
        cmocka_unit_test(plan_takes_topk_from_the_model_field_23),
        cmocka_unit_test(plan_sizes_decode_rows_by_sequences_and_drafts),
        cmocka_unit_test(plan_sizes_all_other_rows_by_batched_tokens),
        cmocka_unit_test(plan_sizes_c128a_by_both_of_its_matrices),
        cmocka_unit_test(plan_sizes_step_as_the_sum_of_its_segments),
        cmocka_unit_test(plan_names_what_is_wrong),
        cmocka_unit_test(plan_names_a_negative_ratio_with_its_index),
        cmocka_unit_test(plan_refuses_outputs_past_int64),
        cmocka_unit_test(plan_takes_the_greatest_widths_of_a_model),
        cmocka_unit_test(plan_blames_a_long_context_for_long_rows),
        cmocka_unit_test(plan_takes_the_greatest_numbers),
        cmocka_unit_test(plan_finish_takes_nothing_twice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
