/* SPDX-License-Identifier: Apache-2.0 */
/* Reading a model's config: what it gives, and what each fault in it is called. */
#include <stdarg.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "kiln/plan.h"
#include "base/attr.h"
#include "support/data_file.h"

static enum kiln_status read_text(const char *text, struct kiln_deployment *out,
                                  struct kiln_error *err)
{
    return kiln_deployment_from_config(text, strlen(text), "model.json", out, err);
}

static void config_gives_layers_of_v4_flash(void **state)
{
    struct kiln_deployment d = {.max_model_len = 77};
    size_t size = 0;
    char *text = data_file_read("models", "deepseek-v4-flash.json", &size);

    (void)state;
    assert_int_equal(kiln_deployment_from_config(text, size, "flash", &d, NULL), KILN_OK);

    free(text);
    assert_int_equal(d.num_hidden_layers, 43);
    assert_int_equal(d.index_topk, 512);
    assert_int_equal(d.sliding_window, 128);
    assert_int_equal(d.n_compress_ratios, 44);
    assert_int_equal(d.compress_ratios[2], 4);
    assert_int_equal(d.compress_ratios[3], 128);
    assert_int_equal(d.compress_ratios[43], 0);
    assert_int_equal(d.max_model_len, 77);
}

static void config_without_ratios_has_none(void **state)
{
    struct kiln_deployment d = {.n_compress_ratios = 3, .compress_ratios = {1, 2, 3}};
    size_t size = 0;
    char *text = data_file_read("models", "glm-5.json", &size);

    (void)state;
    assert_int_equal(kiln_deployment_from_config(text, size, "glm", &d, NULL), KILN_OK);

    free(text);
    assert_int_equal(d.num_hidden_layers, 78);
    assert_int_equal(d.index_topk, 2048);
    assert_int_equal(d.n_compress_ratios, 0);
    assert_int_equal(d.compress_ratios[0], 0);
}

static void config_treats_null_ratios_as_absent(void **state)
{
    struct kiln_deployment d = {0};

    (void)state;
    assert_int_equal(read_text("{\"num_hidden_layers\": 2, \"index_topk\": 64,"
                               "\"compress_ratios\": null, \"sliding_window\": null}",
                               &d, NULL),
                     KILN_OK);

    assert_int_equal(d.n_compress_ratios, 0);
}

static void config_pads_short_ratios_with_window_layers(void **state)
{
    struct kiln_deployment d = {0};

    (void)state;
    assert_int_equal(read_text("{\"num_hidden_layers\": 5, \"index_topk\": 64,"
                               "\"compress_ratios\": [], \"sliding_window\": 8}",
                               &d, NULL),
                     KILN_OK);

    assert_int_equal(d.n_compress_ratios, 5);
    assert_int_equal(d.compress_ratios[4], 0);
}

static void config_ignores_unknown_keys_of_any_kind(void **state)
{
    struct kiln_deployment d = {0};

    (void)state;
    assert_int_equal(read_text("{\"rope\": {\"index_topk\": \"no\"}, \"eps\": 1e-6,"
                               "\"index_topk\": 7, \"list\": [null, true, -1.5],"
                               "\"num_hidden_layers\": 1, \"block_size\": \"x\"}",
                               &d, NULL),
                     KILN_OK);

    assert_int_equal(d.index_topk, 7);
    assert_int_equal(d.block_size, 0);
}

struct bad_config {
    const char *label, *text, *named;
};

#define MODEL "\"num_hidden_layers\": 2, \"index_topk\": 64"

static const struct bad_config bad_configs[] = {
    {"empty", "", "model.json: line"},
    {"not JSON", "{\"index_topk\": ", "model.json: line"},
    {"a list", "[1]", "expected a JSON object"},
    {"a duplicate", "{\"index_topk\": 1, \"index_topk\": 2}", "duplicate"},
    {"no topk", "{\"num_hidden_layers\": 2}", "index_topk is missing"},
    {"no layers", "{\"index_topk\": 2}", "num_hidden_layers is missing"},
    {"topk text", "{\"num_hidden_layers\": 2, \"index_topk\": \"512\"}",
     "index_topk is \"512\", expected an integer"},
    {"topk real", "{\"num_hidden_layers\": 2, \"index_topk\": 512.0}",
     "index_topk is 512.0, expected an integer"},
    {"topk zero", "{\"num_hidden_layers\": 2, \"index_topk\": 0}", "index_topk is 0"},
    {"topk null", "{\"num_hidden_layers\": 2, \"index_topk\": null}",
     "index_topk is null"},
    {"topk past int32", "{\"num_hidden_layers\": 2, \"index_topk\": 2147483648}",
     "index_topk is 2147483648"},
    {"topk past int64", "{\"num_hidden_layers\": 2, \"index_topk\": 9223372036854775808}",
     "too big integer"},
    {"many layers", "{\"num_hidden_layers\": 1025, \"index_topk\": 1}",
     "num_hidden_layers is 1025"},
    {"no window", "{" MODEL ", \"compress_ratios\": [0]}", "sliding_window is missing"},
    {"null window", "{" MODEL ", \"compress_ratios\": [0], \"sliding_window\": null}",
     "sliding_window is null"},
    {"ratios no list", "{" MODEL ", \"compress_ratios\": {}}",
     "compress_ratios is an object, expected a list"},
    {"negative ratio", "{" MODEL ", \"compress_ratios\": [4, -4]}",
     "compress_ratios[1] is -4"},
    {"real ratio", "{" MODEL ", \"compress_ratios\": [0, 4, 4.5]}",
     "compress_ratios[2] is 4.5"},
    {"boolean ratio", "{" MODEL ", \"compress_ratios\": [true]}",
     "compress_ratios[0] is true"},
    {"nested ratio", "{" MODEL ", \"compress_ratios\": [[4]]}",
     "compress_ratios[0] is a list"},
};

static void config_names_each_fault(void **state)
{
    (void)state;
    for (size_t i = 0; i < KI_COUNT_OF(bad_configs); i++) {
        const struct bad_config *bad = &bad_configs[i];
        struct kiln_deployment d = {.index_topk = 99};
        struct kiln_error err = {0};

        enum kiln_status status = read_text(bad->text, &d, &err);

        if (status != KILN_E_PARSE || strstr(err.message, bad->named) == NULL ||
            d.index_topk != 99) {
            fail_msg("%s: status %d, message \"%s\", expected \"%s\"", bad->label,
                     (int)status, err.message, bad->named);
        }
    }
}

static void config_with_too_many_ratios_is_refused(void **state)
{
    struct kiln_deployment d = {0};
    struct kiln_error err = {0};
    json_t *ratios = json_array();
    json_t *root = json_pack("{s:i, s:i, s:o}", "num_hidden_layers", 1, "index_topk", 1,
                             "compress_ratios", ratios);

    (void)state;
    for (int i = 0; i < 1025; i++) {
        assert_int_equal(json_array_append_new(ratios, json_integer(0)), 0);
    }
    char *text = json_dumps(root, 0);
    assert_int_equal(read_text(text, &d, &err), KILN_E_PARSE);

    free(text);
    json_decref(root);
    assert_non_null(strstr(err.message, "compress_ratios has 1025 entries"));
}

static void config_messages_are_one_line(void **state)
{
    struct kiln_deployment d = {0};
    struct kiln_error err = {0};

    (void)state;
    assert_int_equal(read_text("{\"a\": \"x\ny\"}", &d, &err), KILN_E_PARSE);

    assert_null(strchr(err.message, '\n'));
}

/* ---- the operator's fields ---- */

static const struct kiln_deployment_field *field_named(const char *name)
{
    const struct kiln_deployment_field *field;

    for (size_t i = 0; (field = kiln_deployment_field_at(i)) != NULL; i++) {
        if (strcmp(field->name, name) == 0) {
            return field;
        }
    }
    fail_msg("a deployment has no %s", name);
    return NULL;
}

static void fields_cover_the_operators_part_once(void **state)
{
    size_t first = offsetof(struct kiln_deployment, max_model_len);
    size_t n = (sizeof(struct kiln_deployment) - first) / sizeof(int64_t);
    unsigned seen = 0;

    (void)state;
    for (size_t i = 0; i < n; i++) {
        const struct kiln_deployment_field *field = kiln_deployment_field_at(i);
        assert_non_null(field);
        assert_true(field->offset >= first);
        seen |= 1U << (field->offset - first) / sizeof(int64_t);
    }
    assert_int_equal(seen, (1U << n) - 1);
    assert_null(kiln_deployment_field_at(n));
    assert_int_equal(field_named("image_width")->offset,
                     offsetof(struct kiln_deployment, image_width));
}

static void fields_have_one_name_in_two_spellings(void **state)
{
    const struct kiln_deployment_field *field;

    (void)state;
    for (size_t i = 0; (field = kiln_deployment_field_at(i)) != NULL; i++) {
        assert_memory_equal(field->flag, "--", 2);
        assert_int_equal(strlen(field->flag), strlen(field->name) + 2);
        for (size_t c = 0; field->name[c] != '\0'; c++) {
            char want = field->name[c] == '_' ? '-' : field->name[c];
            assert_int_equal(field->flag[c + 2], want);
        }
    }
}

static void choice_is_found_by_its_name(void **state)
{
    int64_t value = 77;

    (void)state;
    assert_int_equal(
        kiln_deployment_choice(field_named("dcp_storage"), "replicated", &value, NULL),
        KILN_OK);
    assert_int_equal(value, KILN_DCP_REPLICATED);
    assert_int_equal(
        kiln_deployment_choice(field_named("profile"), "flashmla", &value, NULL),
        KILN_OK);
    assert_int_equal(value, KILN_PROFILE_FLASHMLA);
}

static void choice_that_is_none_is_named_with_those_that_are(void **state)
{
    static const struct {
        const char *field, *name;
        enum kiln_status status;
        const char *message;
    } wrong[] = {
        {"dcp_storage", "split", KILN_E_ARGUMENT,
         "expected sharded or replicated, got \"split\""},
        {"profile", "", KILN_E_ARGUMENT, "expected flashmla or flashinfer, got \"\""},
        {"profile", "sglang", KILN_E_UNSUPPORTED,
         "sglang is not in this kiln yet, expected flashmla or flashinfer"},
        {"profile", "b12x", KILN_E_UNSUPPORTED, "b12x is not in this kiln yet"},
        {"profile", "flashinfer_sm120", KILN_E_UNSUPPORTED, "flashinfer_sm120 is not"},
        {"profile", NULL, KILN_E_ARGUMENT, "name is NULL"},
        {"block_size", "64", KILN_E_ARGUMENT, "block_size is a number"},
    };

    (void)state;
    for (size_t i = 0; i < KI_COUNT_OF(wrong); i++) {
        struct kiln_error err = {0};
        int64_t value = 77;

        assert_int_equal(kiln_deployment_choice(field_named(wrong[i].field),
                                                wrong[i].name, &value, &err),
                         wrong[i].status);
        assert_non_null(strstr(err.message, wrong[i].message));
        assert_int_equal(value, 77);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(config_gives_layers_of_v4_flash),
        cmocka_unit_test(config_without_ratios_has_none),
        cmocka_unit_test(config_treats_null_ratios_as_absent),
        cmocka_unit_test(config_pads_short_ratios_with_window_layers),
        cmocka_unit_test(config_ignores_unknown_keys_of_any_kind),
        cmocka_unit_test(config_names_each_fault),
        cmocka_unit_test(config_with_too_many_ratios_is_refused),
        cmocka_unit_test(config_messages_are_one_line),
        cmocka_unit_test(fields_cover_the_operators_part_once),
        cmocka_unit_test(fields_have_one_name_in_two_spellings),
        cmocka_unit_test(choice_is_found_by_its_name),
        cmocka_unit_test(choice_that_is_none_is_named_with_those_that_are),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
