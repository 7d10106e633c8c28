/* SPDX-License-Identifier: Apache-2.0 */
/* Manifests: what is written is read again, and every way to spoil one is named. */
#include <stdarg.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "kiln/plan.h"
#include "base/attr.h"
#include "support/data_file.h"

enum { TEXT_BYTES = 1 << 16 };

struct fixture {
    struct kiln_manifest manifest;
    char text[TEXT_BYTES];
    size_t size;
};

static int setup_model(void **state, const char *model)
{
    struct fixture *f = calloc(1, sizeof(*f));
    size_t size = 0;
    char *config = data_file_read("models", model, &size);
    struct kiln_deployment *d = &f->manifest.deployment;

    assert_int_equal(kiln_deployment_from_config(config, size, model, d, NULL), KILN_OK);
    free(config);
    d->max_model_len = 1048576;
    d->max_num_batched_tokens = 8192;
    strcpy(f->manifest.targets[0], "sm_90");
    strcpy(f->manifest.targets[1], "sm_120");
    f->manifest.n_targets = 2;
    assert_int_equal(kiln_plan_make(d, &f->manifest.plan, NULL), KILN_OK);
    assert_int_equal(
        kiln_manifest_write(&f->manifest, f->text, sizeof(f->text), &f->size, NULL),
        KILN_OK);
    *state = f;
    return 0;
}

static int setup(void **state)
{
    return setup_model(state, "deepseek-v4-flash.json");
}

static int setup_without_ratios(void **state)
{
    return setup_model(state, "glm-5.json");
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    kiln_plan_finish(&f->manifest.plan);
    free(f);
    return 0;
}

static void manifest_is_read_as_it_was_written(void **state)
{
    const struct fixture *f = *state;
    struct kiln_manifest got = {0};
    struct kiln_error err = {0};

    if (kiln_manifest_read(f->text, f->size, "m.json", &got, &err) != KILN_OK) {
        fail_msg("%s", err.message);
    }

    assert_int_equal(got.n_targets, 2);
    assert_string_equal(got.targets[1], "sm_120");
    assert_int_equal(got.deployment.max_model_len, 1048576);
    assert_int_equal(got.deployment.n_compress_ratios,
                     f->manifest.deployment.n_compress_ratios);
    assert_memory_equal(got.deployment.compress_ratios,
                        f->manifest.deployment.compress_ratios,
                        sizeof(got.deployment.compress_ratios));
    assert_int_equal(got.plan.n_items, f->manifest.plan.n_items);
    assert_memory_equal(got.plan.digest, f->manifest.plan.digest, 32);
    kiln_plan_finish(&got.plan);
}

static void manifest_written_again_is_the_same_bytes(void **state)
{
    const struct fixture *f = *state;
    struct kiln_manifest got = {0};
    char *again = calloc(1, TEXT_BYTES);
    size_t size = 0;

    assert_int_equal(kiln_manifest_read(f->text, f->size, "m.json", &got, NULL), KILN_OK);
    assert_int_equal(kiln_manifest_write(&got, again, TEXT_BYTES, &size, NULL), KILN_OK);

    assert_int_equal(size, f->size);
    assert_string_equal(again, f->text);
    free(again);
    kiln_plan_finish(&got.plan);
}

static void manifest_keeps_every_number_that_changes_a_shape(void **state)
{
    struct fixture *f = *state;
    struct kiln_deployment *d = &f->manifest.deployment;
    struct kiln_manifest got = {0};

    kiln_plan_finish(&f->manifest.plan);
    d->max_num_seqs = 12;
    d->block_size = 512;
    d->num_speculative_tokens = 5;
    d->dcp_world = 4;
    d->dcp_interleave = 2;
    d->dcp_storage = KILN_DCP_REPLICATED;
    d->image_width = 64;
    d->profile = KILN_PROFILE_FLASHINFER;
    assert_int_equal(kiln_plan_make(d, &f->manifest.plan, NULL), KILN_OK);
    assert_int_equal(
        kiln_manifest_write(&f->manifest, f->text, sizeof(f->text), &f->size, NULL),
        KILN_OK);
    assert_int_equal(kiln_manifest_read(f->text, f->size, "m.json", &got, NULL), KILN_OK);

    assert_memory_equal(&got.deployment, d, sizeof(*d));
    kiln_plan_finish(&got.plan);
}

static void manifest_write_says_how_long_the_text_is(void **state)
{
    const struct fixture *f = *state;
    char small[8];
    size_t size = 0;

    assert_int_equal(kiln_manifest_write(&f->manifest, NULL, 0, &size, NULL), KILN_OK);
    assert_int_equal(size, f->size);
    assert_int_equal(kiln_manifest_write(&f->manifest, small, sizeof(small), &size, NULL),
                     KILN_OK);

    assert_int_equal(size, f->size);
    assert_int_equal(strlen(small), sizeof(small) - 1);
    assert_memory_equal(small, f->text, sizeof(small) - 1);
}

static void manifest_write_refuses_a_wrong_deployment(void **state)
{
    struct fixture *f = *state;
    struct kiln_error err = {0};
    size_t size = 99;

    f->manifest.deployment.max_model_len = 0;

    assert_int_equal(
        kiln_manifest_write(&f->manifest, f->text, sizeof(f->text), &size, &err),
        KILN_E_ARGUMENT);
    assert_non_null(strstr(err.message, "--max-model-len is 0"));
    assert_int_equal(size, 99);
}

static void manifest_write_refuses_a_plan_with_no_op(void **state)
{
    struct fixture *f = *state;
    struct kiln_error err = {0};
    size_t size = 99;
    const enum kiln_op op = f->manifest.plan.items[1].op;

    f->manifest.plan.items[1].op = (enum kiln_op)99;

    assert_int_equal(
        kiln_manifest_write(&f->manifest, f->text, sizeof(f->text), &size, &err),
        KILN_E_ARGUMENT);
    assert_non_null(strstr(err.message, "plan item 1: op = 99"));
    assert_int_equal(size, 99);
    f->manifest.plan.items[1].op = op;
}

/* ---- spoilt manifests: the first `from` becomes `to` ---- */

struct spoilt {
    const char *label, *from, *to;
    enum kiln_status status;
    const char *named;
};

static const struct spoilt spoilt[] = {
    {"cut short", "\"digest\"", "", KILN_E_PARSE, "m.json: line"},
    {"format", "\"kiln_manifest\": 1", "\"kiln_manifest\": 2", KILN_E_PARSE,
     "kiln_manifest is 2"},
    {"no format", "\"kiln_manifest\": 1", "\"other\": 1", KILN_E_PARSE,
     "kiln_manifest is missing"},
    {"unknown key", "\"kiln_manifest\": 1", "\"kiln_manifest\": 1, \"extra\": 1",
     KILN_E_PARSE, "the field \"extra\", which is unknown"},
    {"deployment text", "\"deployment\": {", "\"targets\": 1, \"targets\": {",
     KILN_E_PARSE, "duplicate"},
    {"unknown number", "\"block_size\": 256", "\"block_size\": 256, \"newer\": 1",
     KILN_E_PARSE, "deployment has the field \"newer\", which is unknown"},
    {"missing number", "\"max_num_seqs\": 256,", "", KILN_E_PARSE,
     "max_num_seqs is missing"},
    {"wrong number", "\"max_num_seqs\": 256", "\"max_num_seqs\": \"256\"", KILN_E_PARSE,
     "max_num_seqs is \"256\""},
    {"wrong choice", "\"sharded\"", "\"shared\"", KILN_E_PARSE,
     "dcp_storage is \"shared\", expected sharded or replicated"},
    {"wrong profile", "\"flashmla\"", "7", KILN_E_PARSE,
     "profile is 7, expected flashmla or flashinfer"},
    {"unknown profile", "\"flashmla\"", "\"flash\\nmla\"", KILN_E_PARSE,
     "profile is \"flash\\nmla\", expected flashmla or flashinfer"},
    {"another kiln's profile", "\"flashmla\"", "\"sglang\"", KILN_E_PARSE,
     "m.json: profile: sglang is not in this kiln yet, expected flashmla or flashinfer"},
    {"wrong ratio", "\"compress_ratios\": [\n   0", "\"compress_ratios\": [\n   -1",
     KILN_E_PARSE, "compress_ratios[0] is -1"},
    {"deployment that cannot be", "\"block_size\": 256", "\"block_size\": 64",
     KILN_E_ARGUMENT, "--block-size is 64"},
    {"unknown target", "\"sm_120\"", "\"sm_12\"", KILN_E_TARGET,
     "targets[1]: target \"sm_12\" is unknown"},
    {"target twice", "\"sm_120\"", "\"sm_90\"", KILN_E_PARSE,
     "targets[1] is \"sm_90\", as targets[0] is"},
    {"target no text", "\"sm_120\"", "120", KILN_E_PARSE, "targets[1] is 120"},
    {"targets no list", "\"targets\": [\n  \"sm_90\",\n  \"sm_120\"\n ]",
     "\"targets\": {}", KILN_E_PARSE, "targets is an object"},
    {"another deployment", "\"max_model_len\": 1048576", "\"max_model_len\": 131072",
     KILN_E_PARSE, "table_width is 4096, expected 512"},
    {"another list", "\"topk\": 512", "\"topk\": 511", KILN_E_PARSE,
     "plan[1].shape.topk is 511, expected 512"},
    {"another op", "\"op\": \"token_to_req\"", "\"op\": \"gather_lens\"", KILN_E_PARSE,
     "plan[4].op is \"gather_lens\", expected \"token_to_req\""},
    {"an unknown field", "\"pad_req\": 0", "\"pad_req\": 0, \"more\": 0", KILN_E_PARSE,
     "plan[4].shape has the field \"more\""},
    {"a missing field", "\"pad_req\": 0", "", KILN_E_PARSE,
     "plan[4].shape.pad_req is missing"},
    {"a real", "\"pad_req\": 0", "\"pad_req\": 0.0", KILN_E_PARSE,
     "plan[4].shape.pad_req is 0.0"},
    {"digest", "\"digest\": \"", "\"digest\": \"0", KILN_E_PARSE, "digest is"},
};

static char *spoil(const struct fixture *f, const struct spoilt *how)
{
    const char *at = strstr(f->text, how->from);
    char *text = calloc(1, f->size + strlen(how->to) + 1);

    if (at == NULL) {
        fail_msg("%s: the manifest has no %s", how->label, how->from);
    }
    memcpy(text, f->text, (size_t)(at - f->text));
    strcat(text, how->to);
    if (how->to[0] != '\0' || strcmp(how->label, "cut short") != 0) {
        strcat(text, at + strlen(how->from));
    }
    return text;
}

static void manifest_read_names_each_fault(void **state)
{
    const struct fixture *f = *state;

    for (size_t i = 0; i < KI_COUNT_OF(spoilt); i++) {
        struct kiln_manifest got = {.n_targets = 77};
        struct kiln_error err = {0};
        char *text = spoil(f, &spoilt[i]);

        enum kiln_status status =
            kiln_manifest_read(text, strlen(text), "m.json", &got, &err);

        free(text);
        if (status != spoilt[i].status || strstr(err.message, spoilt[i].named) == NULL ||
            got.n_targets != 77) {
            fail_msg("%s: status %d, message \"%s\", expected \"%s\"", spoilt[i].label,
                     (int)status, err.message, spoilt[i].named);
        }
    }
}

static void manifest_read_never_crashes_on_a_prefix(void **state)
{
    const struct fixture *f = *state;

    for (size_t size = 0; size + 1 < f->size; size += 7) {
        struct kiln_manifest got = {0};
        char *exact = malloc(size + 1);
        memcpy(exact, f->text, size);
        assert_int_equal(kiln_manifest_read(exact, size, "m.json", &got, NULL),
                         KILN_E_PARSE);
        free(exact);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(manifest_is_read_as_it_was_written, setup,
                                        teardown),
        {"manifest_without_ratios_is_read_as_it_was_written",
         manifest_is_read_as_it_was_written, setup_without_ratios, teardown, NULL},
        cmocka_unit_test_setup_teardown(manifest_written_again_is_the_same_bytes, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(manifest_keeps_every_number_that_changes_a_shape,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(manifest_write_says_how_long_the_text_is, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(manifest_write_refuses_a_wrong_deployment, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(manifest_write_refuses_a_plan_with_no_op, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(manifest_read_names_each_fault, setup, teardown),
        cmocka_unit_test_setup_teardown(manifest_read_never_crashes_on_a_prefix, setup,
                                        teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
