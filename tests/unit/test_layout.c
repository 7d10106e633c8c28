/* SPDX-License-Identifier: Apache-2.0 */
/* Layouts: names, sizes and places of every output, and the total that is told before. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "kiln/layout.h"

#include "base/attr.h"
#include "support/fake_kiln.h"

static struct kiln_layout layout_of(const struct kiln_deployment *d)
{
    struct kiln_layout layout = {0};
    struct kiln_error err = {0};

    if (kiln_layout_make(d, &layout, &err) != KILN_OK) {
        fail_msg("%s", err.message);
    }
    return layout;
}

static void layout_names_the_launches_of_a_step(void **state)
{
    static const char *const expected[] = {
        "combine_topk_swa.0",
        "global_topk.4",
        "combine_topk_swa.4",
        "combine_topk_swa.128",
        "token_to_req",
        "is_valid_token",
        "gather_lens",
        "swa_indices",
        "swa_indices.draft",
        "compressed_slots.4.main",
        "compressed_slots.4.indexer",
        "compressed_slots.128",
        "c128a_topk",
    };
    struct kiln_deployment d = fake_kiln_deployment();
    struct kiln_layout layout = layout_of(&d);

    (void)state;
    assert_int_equal(layout.n_launches, KI_COUNT_OF(expected));
    for (size_t i = 0; i < KI_COUNT_OF(expected); i++) {
        assert_string_equal(layout.launches[i].name, expected[i]);
        assert_int_equal(kiln_layout_find_launch(&layout, expected[i]), i);
    }
    kiln_layout_finish(&layout);
}

/* One page of a ratio's records tells global_topk's ratio, which its shape does not have. */
static void layout_names_each_ratio_of_a_model_with_two_indexers(void **state)
{
    struct kiln_deployment d = fake_kiln_deployment();
    struct kiln_layout layout;

    (void)state;
    d.n_compress_ratios = 2;
    d.num_hidden_layers = 2;
    d.compress_ratios[0] = 1;
    d.compress_ratios[1] = 2;
    layout = layout_of(&d);

    assert_true(kiln_layout_find_launch(&layout, "global_topk.1") < layout.n_launches);
    assert_true(kiln_layout_find_launch(&layout, "global_topk.2") < layout.n_launches);
    assert_true(kiln_layout_find_launch(&layout, "compressed_slots.2.indexer") <
                layout.n_launches);
    kiln_layout_finish(&layout);
}

struct expected_buffer {
    const char *name;
    enum kiln_dtype dtype;
    int64_t rows, width, stride, bytes;
};

static void layout_sizes_decode_and_prefill_matrices_at_capacity(void **state)
{
    static const struct expected_buffer expected[] = {
        {"swa_indices.swa_indices", KILN_I32, 100, 128, 128, 100 * 128 * 4},
        {"swa_indices.draft.swa_indices", KILN_I32, 21, 192, 192, 21 * 192 * 4},
        {"swa_indices.draft.swa_lens", KILN_I32, 21, 1, 1, 21 * 4},
        {"global_topk.4.slots", KILN_I32, 21, 64, 64, 21 * 64 * 4},
        {"global_topk.4.lens", KILN_I32, 21, 1, 1, 21 * 4},
        {"c128a_topk.decode_slots", KILN_I32, 21, 256, 256, 21 * 256 * 4},
        {"c128a_topk.decode_lens", KILN_I32, 21, 1, 1, 21 * 4},
        {"c128a_topk.prefill_local", KILN_I32, 100, 256, 256, 100 * 256 * 4},
        {"is_valid_token.is_valid_token", KILN_U8, 100, 1, 1, 100},
        {"compressed_slots.4.indexer.slots", KILN_I64, 100, 1, 1, 100 * 8},
        {"combine_topk_swa.128.combined_indices", KILN_I32, 100, 384, 384, 100 * 384 * 4},
    };
    struct kiln_deployment d = fake_kiln_deployment();
    struct kiln_layout layout = layout_of(&d);

    (void)state;
    for (size_t i = 0; i < KI_COUNT_OF(expected); i++) {
        const struct kiln_buffer *found =
            kiln_layout_find_buffer(&layout, expected[i].name);

        if (found == NULL) {
            fail_msg("there is no %s", expected[i].name);
        }
        assert_int_equal(found->dtype, expected[i].dtype);
        assert_int_equal(found->rows, expected[i].rows);
        assert_int_equal(found->width, expected[i].width);
        assert_int_equal(found->stride, expected[i].stride);
        assert_int_equal(found->bytes, expected[i].bytes);
        assert_null(found->address);
    }
    kiln_layout_finish(&layout);
}

static void layout_places_buffers_one_after_the_other_aligned(void **state)
{
    struct kiln_deployment d = fake_kiln_deployment();
    struct kiln_layout layout = layout_of(&d);
    int64_t end = 0;

    (void)state;
    for (size_t i = 0; i < layout.n_buffers; i++) {
        assert_int_equal(layout.buffers[i].offset, (end + 255) / 256 * 256);
        end = layout.buffers[i].offset + layout.buffers[i].bytes;
    }
    assert_int_equal(layout.total_bytes, (end + 255) / 256 * 256);
    kiln_layout_finish(&layout);
}

static void layout_names_are_unique_and_every_output_is_there(void **state)
{
    struct kiln_deployment d = fake_kiln_deployment();
    struct kiln_layout layout;

    (void)state;
    d.image_width = 64;
    layout = layout_of(&d);
    for (size_t i = 0; i < layout.n_buffers; i++) {
        const struct kiln_buffer *buffer = &layout.buffers[i];
        const struct kiln_layout_launch *launch = &layout.launches[buffer->i_launch];

        assert_ptr_equal(kiln_layout_find_buffer(&layout, buffer->name), buffer);
        assert_in_range(i, launch->first_buffer,
                        launch->first_buffer + launch->n_buffers - 1);
        assert_int_equal(strncmp(buffer->name, launch->name, strlen(launch->name)), 0);
    }
    assert_non_null(kiln_layout_find_buffer(&layout, "image_visibility.right_visible"));
    kiln_layout_finish(&layout);
}

static void layout_says_which_buffers_layers_share(void **state)
{
    struct kiln_deployment d = fake_kiln_deployment();
    struct kiln_layout layout = layout_of(&d);
    size_t i = kiln_layout_find_launch(&layout, "combine_topk_swa.128");

    (void)state;
    assert_int_equal(layout.launches[i].layers, 2);
    i = kiln_layout_find_launch(&layout, "compressed_slots.4.main");
    assert_int_equal(layout.launches[i].layers, 1);
    kiln_layout_finish(&layout);
}

static void layout_has_the_digest_of_its_plan(void **state)
{
    struct kiln_deployment d = fake_kiln_deployment();
    struct kiln_layout layout = layout_of(&d);
    struct kiln_plan plan = {0};

    (void)state;
    assert_int_equal(kiln_plan_make(&d, &plan, NULL), KILN_OK);
    assert_memory_equal(layout.digest, plan.digest, sizeof plan.digest);
    kiln_plan_finish(&plan);
    kiln_layout_finish(&layout);
}

static void layout_refuses_what_no_address_can_hold(void **state)
{
    struct kiln_deployment d = fake_kiln_deployment();
    struct kiln_layout layout = {.n_launches = 77};
    struct kiln_error err = {0};

    (void)state;
    /* combine_topk_swa's and c128a_topk's rows for every record each take 0.6 of it */
    d.max_num_batched_tokens = INT64_C(1288490188);
    d.max_model_len = (INT64_C(1) << 37) - 64;
    assert_int_equal(kiln_layout_make(&d, &layout, &err), KILN_E_ARGUMENT);
    assert_non_null(strstr(err.message, "outputs of all ops together would pass 2^63"));
    assert_int_equal(layout.n_launches, 77);
    assert_int_equal(kiln_layout_make(NULL, &layout, &err), KILN_E_ARGUMENT);
    assert_int_equal(kiln_layout_make(&d, NULL, &err), KILN_E_ARGUMENT);
}

static void layout_finds_nothing_in_nothing(void **state)
{
    struct kiln_layout layout = {0};

    (void)state;
    assert_int_equal(kiln_layout_find_launch(&layout, "token_to_req"), 0);
    assert_int_equal(kiln_layout_find_launch(NULL, "token_to_req"), 0);
    assert_null(kiln_layout_find_buffer(&layout, NULL));
    assert_null(kiln_layout_find_buffer(NULL, "x"));
    kiln_layout_finish(&layout);
    kiln_layout_finish(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layout_names_the_launches_of_a_step),
        cmocka_unit_test(layout_names_each_ratio_of_a_model_with_two_indexers),
        cmocka_unit_test(layout_sizes_decode_and_prefill_matrices_at_capacity),
        cmocka_unit_test(layout_places_buffers_one_after_the_other_aligned),
        cmocka_unit_test(layout_names_are_unique_and_every_output_is_there),
        cmocka_unit_test(layout_says_which_buffers_layers_share),
        cmocka_unit_test(layout_has_the_digest_of_its_plan),
        cmocka_unit_test(layout_refuses_what_no_address_can_hold),
        cmocka_unit_test(layout_finds_nothing_in_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
