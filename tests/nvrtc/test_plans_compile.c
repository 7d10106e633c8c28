/* SPDX-License-Identifier: Apache-2.0 */
/* Every kernel that a known model launches compiles for every target that this NVRTC serves. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "kiln/kiln.h"
#include "kiln/plan.h"

#include "base/attr.h"
#include "context.h"
#include "support/golden.h"

static const char *const models[] = {
    "deepseek-v3.2.json", "deepseek-v4-flash.json", "deepseek-v4-pro.json",
    "glm-5.json",         "ratios-0-1-2.json",
};

/* What kiln knows and NVRTC may not. */
static const char *const targets[] = {
    "sm_80",  "sm_86",  "sm_87",  "sm_88",  "sm_89",  "sm_90",
    "sm_100", "sm_103", "sm_110", "sm_120", "sm_121",
};

/* Those that NVRTC 13.0 serves for certain. */
static const char *const served[] = {"sm_80", "sm_90", "sm_100", "sm_103", "sm_120"};

static bool is_served(const char *target)
{
    for (size_t i = 0; i < KI_COUNT_OF(served); i++) {
        if (strcmp(served[i], target) == 0) {
            return true;
        }
    }
    return false;
}

struct variant {
    const char *label;
    int64_t max_model_len;
    int64_t block_size;
    int64_t num_speculative_tokens;
    int64_t dcp_world;
    int64_t image_width;
};

static const struct variant variants[] = {
    {"1M", 1048576, 0, 0, 0, 0},
    {"70,000 tokens", 70000, 0, 5, 0, 0},
    {"context parallel", 131072, 0, 0, 4, 0},
    {"images", 1000000, 0, 0, 0, 64},
};

/* Pages of a half and a quarter, which a model with ratio 128 cannot have. */
static const struct variant small_blocks[] = {
    {"block 128", 1048576, 128, 5, 0, 0},
    {"block 64", 100000, 64, 5, 0, 0},
};

static void read_model(const char *name, struct kiln_deployment *out)
{
    char path[4096];
    char text[65536];
    struct kiln_error err;
    size_t size;
    FILE *file;

    snprintf(path, sizeof path, "%s/models/%s", getenv("KILN_TEST_DATA"), name);
    file = fopen(path, "rb");
    assert_non_null(file);
    size = fread(text, 1, sizeof text, file);
    fclose(file);
    if (kiln_deployment_from_config(text, size, name, out, &err) != KILN_OK) {
        fail_msg("%s", err.message);
    }
}

/* Builds each supported item for the target, none where NVRTC lacks the target. */
static void build_items(struct kiln *kiln, const struct kiln_plan *plan,
                        const char *target)
{
    for (size_t i = 0; i < plan->n_items; i++) {
        const struct kiln_plan_item *item = &plan->items[i];
        struct kiln_error err;
        enum kiln_status status;

        if (!kiln_op_info_get(item->op)->supported) {
            continue;
        }
        status = kiln_build(kiln, item->op, &item->shape, target, &err);
        if (status == KILN_E_TARGET && !is_served(target)) {
            return;
        }
        if (status != KILN_OK) {
            fail_msg("%s for %s: %s", kiln_op_info_get(item->op)->name, target,
                     err.message);
        }
    }
}

static void build_model(struct kiln *kiln, const char *model,
                        const struct variant *variant)
{
    struct kiln_deployment deployment = {
        .max_model_len = variant->max_model_len,
        .max_num_batched_tokens = 8192,
        .block_size = variant->block_size,
        .num_speculative_tokens = variant->num_speculative_tokens,
        .dcp_world = variant->dcp_world,
        .image_width = variant->image_width,
    };
    struct kiln_plan plan = {0};
    struct kiln_error err;

    read_model(model, &deployment);
    if (kiln_plan_make(&deployment, &plan, &err) != KILN_OK) {
        fail_msg("%s, %s: %s", model, variant->label, err.message);
    }
    for (size_t i = 0; i < KI_COUNT_OF(targets); i++) {
        build_items(kiln, &plan, targets[i]);
    }
    kiln_plan_finish(&plan);
}

static int setup_checked(void **state)
{
    struct kiln_options options = KILN_OPTIONS_INIT;

    options.no_disk = true;
    options.checked = true;
    return kiln_create(&options, (struct kiln **)state, NULL) == KILN_OK ? 0 : -1;
}

static int setup(void **state)
{
    struct kiln_options options = KILN_OPTIONS_INIT;

    options.no_disk = true;
    return kiln_create(&options, (struct kiln **)state, NULL) == KILN_OK ? 0 : -1;
}

static int teardown(void **state)
{
    kiln_destroy((struct kiln **)state);
    return 0;
}

/* Every kernel may be launched programmatically, where the GPU has that. */
static void assert_kernels_wait(const struct kiln *kiln)
{
    for (uint32_t i = 0; i < kiln->table.capacity; i++) {
        const struct ki_table_entry *entry = ki_table_at(&kiln->table, i);

        if (entry != NULL && entry->state == KI_ENTRY_BUILT) {
            assert_int_equal(entry->kernel.waits, entry->kernel.target.major >= 9);
        }
    }
}

static void every_plan_compiles_for_every_target(void **state)
{
    struct kiln *kiln = *state;
    struct kiln_stats stats;

    for (size_t i = 0; i < KI_COUNT_OF(models); i++) {
        for (size_t j = 0; j < KI_COUNT_OF(variants); j++) {
            build_model(kiln, models[i], &variants[j]);
        }
    }
    for (size_t i = 0; i < KI_COUNT_OF(small_blocks); i++) {
        build_model(kiln, "ratios-0-1-2.json", &small_blocks[i]);
    }

    kiln_get_stats(kiln, &stats);
    print_message("%lld kernels compiled, %lld ms\n", (long long)stats.n_compiled,
                  (long long)stats.compile_ms);
    /* Three models with compress_ratios launch six or more distinct kernels in each variant. */
    assert_true(stats.n_compiled >= 100);
    assert_kernels_wait(kiln);
}

/* Of what they cost nothing is asked. */
static void checked_kernels_compile_for_every_served_target(void **state)
{
    for (size_t i = 0; i < N_GOLDEN_SHAPES; i++) {
        const struct golden_shape *golden = &golden_shapes[i];

        for (size_t j = 0; j < KI_COUNT_OF(served); j++) {
            struct kiln_error err;

            if (kiln_build(*state, golden->op, &golden->shape, served[j], &err) !=
                KILN_OK) {
                fail_msg("%s, %s: %s", golden->name, served[j], err.message);
            }
        }
    }
}

static void seed_targets_are_served(void **state)
{
    struct kiln_shape shape = {0};
    struct kiln_error err;

    shape.global_topk.topk = 512;
    shape.global_topk.block_size = 64;
    shape.global_topk.table_width = 4096;
    assert_int_equal(kiln_shape_defaults(KILN_OP_GLOBAL_TOPK, 1u << 0 | 1u << 3 | 1u << 4,
                                         &shape, &err),
                     KILN_OK);
    for (size_t i = 0; i < KI_COUNT_OF(served); i++) {
        if (kiln_build(*state, KILN_OP_GLOBAL_TOPK, &shape, served[i], &err) != KILN_OK) {
            fail_msg("%s: %s", served[i], err.message);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(seed_targets_are_served, setup, teardown),
        cmocka_unit_test_setup_teardown(checked_kernels_compile_for_every_served_target,
                                        setup_checked, teardown),
        cmocka_unit_test_setup_teardown(every_plan_compiles_for_every_target, setup,
                                        teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
