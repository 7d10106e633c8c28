/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The emitted source: the same bytes every time, whole in itself, and a template that knows
 * the constants and the parameter block of its op.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "kiln/report.h"

#include "base/attr.h"
#include "plan/op.h"
#include "plan/source.h"
#include "plan/templates.h"
#include "support/failing_mem.h"
#include "support/golden.h"

enum { NAMES_MAX = 32, NAME = 64 };

struct names {
    size_t n;
    char names[NAMES_MAX][NAME];
};

static void emit(const struct golden_shape *golden, struct ki_text *out)
{
    struct kiln_error err = {0};

    ki_text_init(out, NULL);
    if (ki_source_write(golden->op, &golden->shape, 0, out, &err) != KILN_OK) {
        fail_msg("%s", err.message);
    }
}

/* ---- the text ----------------------------------------------------------------------- */

static void source_is_the_golden_one(void **state)
{
    const struct golden_shape *golden = *state;
    struct ki_text source;

    emit(golden, &source);
    golden_check_source(golden, source.data);
    ki_text_finish(&source);
}

static void source_is_the_same_every_time(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_GOLDEN_SHAPES; i++) {
        struct ki_text one;
        struct ki_text two;

        emit(&golden_shapes[i], &one);
        emit(&golden_shapes[i], &two);
        assert_string_equal(one.data, two.data);
        assert_int_equal(one.size, strlen(one.data));
        ki_text_finish(&one);
        ki_text_finish(&two);
    }
}

static size_t count(const char *text, const char *what)
{
    size_t n = 0;

    for (const char *at = strstr(text, what); at != NULL; at = strstr(at + 1, what)) {
        n++;
    }
    return n;
}

static void source_includes_nothing_and_names_no_path(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_GOLDEN_SHAPES; i++) {
        struct ki_text source;

        emit(&golden_shapes[i], &source);
        assert_int_equal(count(source.data, "#include"), 0);
        assert_int_equal(count(source.data, "#line 1 \"/"), 0);
        assert_int_equal(count(source.data, "\"/"), 0);
        assert_int_equal(count(source.data, "__FILE__"), 0);
        assert_int_equal(count(source.data, "__DATE__"), 0);
        assert_int_equal(count(source.data, "__TIME__"), 0);
        ki_text_finish(&source);
    }
}

static void source_has_one_entry_with_the_ops_name(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_GOLDEN_SHAPES; i++) {
        struct ki_text source;
        char entry[64];
        char call[80];
        const char *at;

        emit(&golden_shapes[i], &source);
        ki_source_entry_name(golden_shapes[i].op, entry);
        snprintf(call, sizeof call, "%s(", entry);
        assert_int_equal(count(source.data, "__global__"), 1);
        assert_int_equal(count(source.data, "extern \"C\" __global__ void "
                                            "__launch_bounds__(kThreads"),
                         1);
        at = strstr(source.data, "__global__");
        assert_non_null(strstr(at, call));
        ki_text_finish(&source);
    }
}

/* What reads or writes before the wait may meet the kernel ahead at work. */
static void source_waits_for_the_kernel_ahead_before_all_else_field_73(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_GOLDEN_SHAPES; i++) {
        struct ki_text source;
        char entry[64];
        char expected[192];

        emit(&golden_shapes[i], &source);
        ki_source_entry_name(golden_shapes[i].op, entry);
        snprintf(expected, sizeof expected,
                 "%s(const __grid_constant__ args_t args)\n{\n"
                 "    wait_for_previous_kernel();\n",
                 entry);
        if (strstr(source.data, expected) == NULL) {
            fail_msg("%s: expected %s", golden_shapes[i].name, expected);
        }
        ki_text_finish(&source);
    }
}

static void source_lines_are_those_of_the_template(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_GOLDEN_SHAPES; i++) {
        const struct kiln_op_info *info = kiln_op_info_get(golden_shapes[i].op);
        char line[96];
        char name[80];
        struct ki_text source;
        const char *at;

        emit(&golden_shapes[i], &source);
        snprintf(name, sizeof name, "%s.cu", info->name);
        snprintf(line, sizeof line, "\n#line 1 \"%s\"\n", name);
        at = strstr(source.data, line);
        assert_non_null(at);
        assert_string_equal(at + strlen(line), ki_template_get(name)->text);
        ki_text_finish(&source);
    }
}

static void source_is_appended_to_what_is_there(void **state)
{
    struct ki_text source;

    ki_text_init(&source, NULL);
    ki_text_string(&source, "before|");

    (void)state;
    assert_int_equal(
        ki_source_write(golden_shapes[0].op, &golden_shapes[0].shape, 0, &source, NULL),
        KILN_OK);
    assert_memory_equal(source.data, "before|// kiln: ", 16);
    ki_text_finish(&source);
}

/* So a kernel that is not checked is what it would be without any check. */
static void source_of_the_checked_variant_differs_in_one_line(void **state)
{
    static const char plain_line[] =
        "\n[[maybe_unused]] constexpr bool kChecked = false;\n";
    static const char checked_line[] =
        "\n[[maybe_unused]] constexpr bool kChecked = true;\n";

    (void)state;
    for (size_t i = 0; i < N_GOLDEN_SHAPES; i++) {
        const struct golden_shape *golden = &golden_shapes[i];
        struct ki_text plain;
        struct ki_text checked;
        size_t head;

        emit(golden, &plain);
        ki_text_init(&checked, NULL);
        assert_int_equal(ki_source_write(golden->op, &golden->shape, KILN_VARIANT_CHECKED,
                                         &checked, NULL),
                         KILN_OK);
        assert_int_equal(count(plain.data, plain_line), 1);
        head = (size_t)(strstr(plain.data, plain_line) - plain.data);
        assert_memory_equal(checked.data, plain.data, head);
        assert_memory_equal(checked.data + head, checked_line, strlen(checked_line));
        assert_string_equal(checked.data + head + strlen(checked_line),
                            plain.data + head + strlen(plain_line));
        ki_text_finish(&plain);
        ki_text_finish(&checked);
    }
}

static void source_entry_name_is_kiln_and_the_op(void **state)
{
    char name[64];

    (void)state;
    ki_source_entry_name(KILN_OP_COMBINE_TOPK_SWA, name);
    assert_string_equal(name, "kiln_combine_topk_swa");
    ki_source_entry_name((enum kiln_op)99, name);
    assert_string_equal(name, "kiln_");
}

/* ---- the template's constants ------------------------------------------------------- */

static void add_name(struct names *names, const char *start, size_t length)
{
    assert_true(names->n < NAMES_MAX && length < NAME);
    memcpy(names->names[names->n], start, length);
    names->names[names->n][length] = '\0';
    names->n++;
}

/* Adds the constants declared between two places of a text, in their order. */
static void find_constants(const char *from, const char *to, struct names *out)
{
    static const char word[] = "constexpr ";

    for (const char *at = strstr(from, word); at != NULL && at < to;
         at = strstr(at + 1, word)) {
        const char *name = strstr(at, " k");

        assert_non_null(name);
        add_name(out, name + 1, strcspn(name + 1, " ="));
    }
}

/* A template has samples, and so may its helpers. */
static void find_samples(const char *source, struct names *out)
{
    const char *guard = source;

    while ((guard = strstr(guard, "#ifndef KILN_PRELUDE")) != NULL) {
        find_constants(guard, strstr(guard, "#endif"), out);
        guard++;
    }
}

/* One that the sample lacks is used by nobody; one that the prelude lacks does not compile. */
static void source_prelude_defines_what_the_template_has_samples_of(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_GOLDEN_SHAPES; i++) {
        struct ki_text source;
        struct names defined = {.n = 0};
        struct names sampled = {.n = 0};

        emit(&golden_shapes[i], &source);
        find_constants(source.data, strstr(source.data, "#line 1 "), &defined);
        find_samples(source.data, &sampled);

        assert_int_equal(defined.n, sampled.n);
        for (size_t k = 0; k < defined.n; k++) {
            assert_string_equal(defined.names[k], sampled.names[k]);
        }
        ki_text_finish(&source);
    }
}

/* topk_stride -> kTopkStride, spelled anew here. */
static void camel(const char *field, char out[NAME])
{
    size_t n = 1;
    bool up = true;

    out[0] = 'k';
    for (; *field != '\0'; field++) {
        if (*field != '_') {
            out[n++] =
                (char)(up ? *field - ('a' <= *field && *field <= 'z' ? 32 : 0) : *field);
        }
        up = *field == '_';
    }
    out[n] = '\0';
}

/* The line of the prelude that a field's value must be, spelled anew here. */
static void field_line(const struct kiln_shape_field *field, int64_t value, char *line,
                       size_t size)
{
    char name[NAME];

    camel(field->name, name);
    if (field->kind == KILN_FIELD_BOOLEAN) {
        snprintf(line, size, "[[maybe_unused]] constexpr bool %s = %s;\n", name,
                 value != 0 ? "true" : "false");
        return;
    }
    snprintf(line, size, "[[maybe_unused]] constexpr int %s = %lld;\n", name,
             (long long)value);
}

static void source_prelude_holds_the_shape_and_the_ops_constants(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_GOLDEN_SHAPES; i++) {
        const struct golden_shape *golden = &golden_shapes[i];
        const struct ki_op *op = ki_op_get(golden->op);
        struct ki_constant constants[KI_CONSTANTS_MAX];
        int n = op->constants != NULL ? op->constants(&golden->shape, constants) : 0;
        struct ki_text source;
        char line[160];

        emit(golden, &source);
        for (size_t f = 0; f < op->info.n_fields; f++) {
            field_line(&op->info.fields[f], golden->shape.fields[f], line, sizeof line);
            assert_int_equal(count(source.data, line), 1);
        }
        for (int c = 0; c < n; c++) {
            snprintf(line, sizeof line, "[[maybe_unused]] constexpr int %s = %lld;\n",
                     constants[c].name, (long long)constants[c].value);
            assert_int_equal(count(source.data, line), 1);
        }
        assert_in_range(n, 0, KI_CONSTANTS_MAX);
        snprintf(line, sizeof line, "[[maybe_unused]] constexpr int kThreads = %d;\n",
                 op->threads(&golden->shape));
        assert_int_equal(count(source.data, line), 1);
        ki_text_finish(&source);
    }
}

/* ---- the template's parameter block ------------------------------------------------- */

/* How the template must declare the argument. */
static const char *type_of(const struct kiln_arg *arg)
{
    static const char *const inputs[] = {"const unsigned char *", "const int *",
                                         "const long long *"};
    static const char *const outputs[] = {"unsigned char *", "int *", "long long *"};

    switch (arg->kind) {
    case KILN_ARG_INPUT:
        return inputs[arg->dtype];
    case KILN_ARG_OUTPUT:
        return outputs[arg->dtype];
    case KILN_ARG_COUNT:
        return "count_t ";
    case KILN_ARG_NUMBER:
    case KILN_ARG_EXTENT:
        break;
    }
    return "int ";
}

static void template_parameters_are_the_ops_args_struct(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_GOLDEN_SHAPES; i++) {
        const struct ki_op *op = ki_op_get(golden_shapes[i].op);
        const struct ki_template *template = ki_template_get(op->template_name);
        const char *at = strstr(template->text, "\nstruct args_t {\n");

        assert_non_null(at);
        at += strlen("\nstruct args_t {\n");
        for (size_t a = 0; a < op->info.n_args; a++) {
            char line[160];

            snprintf(line, sizeof line, "    %s%s;", type_of(&op->info.args[a]),
                     op->info.args[a].name);
            if (strncmp(at, line, strlen(line)) != 0) {
                fail_msg("%s: \"%.*s\": expected \"%s\"", op->template_name,
                         (int)strcspn(at, "\n"), at, line);
            }
            at += strcspn(at, "\n") + 1;
        }
        assert_memory_equal(at, "    report_t *report;\n};", 24);
    }
}

static void template_count_is_the_public_struct(void **state)
{
    const struct ki_template *template = ki_template_get("global_topk.cu");

    (void)state;
    assert_int_equal(offsetof(struct kiln_count, address), 0);
    assert_int_equal(offsetof(struct kiln_count, value), 8);
    assert_int_equal(offsetof(struct kiln_count, kind), 12);
    assert_non_null(strstr(template->text, "struct count_t {\n"
                                           "    const int *address;\n"
                                           "    int value;\n"
                                           "    int kind;\n"
                                           "};\n"));
    assert_non_null(strstr(template->text, "constexpr int kCountAbsent = 0;\n"
                                           "constexpr int kCountValue = 1;\n"
                                           "constexpr int kCountDevice = 2;\n"));
    assert_int_equal(KILN_COUNT_ABSENT, 0);
    assert_int_equal(KILN_COUNT_VALUE, 1);
    assert_int_equal(KILN_COUNT_DEVICE, 2);
}

static void template_report_is_the_public_struct(void **state)
{
    const char *text = ki_template_get("global_topk.cu")->text;

    (void)state;
    assert_int_equal(offsetof(struct kiln_report_entry, op), 0);
    assert_int_equal(offsetof(struct kiln_report_entry, row), 4);
    assert_int_equal(offsetof(struct kiln_report_entry, column), 8);
    assert_int_equal(offsetof(struct kiln_report_entry, reason), 12);
    assert_int_equal(offsetof(struct kiln_report_entry, value), 16);
    assert_int_equal(sizeof(struct kiln_report_entry), 24);
    assert_non_null(strstr(text, "struct report_entry_t {\n"
                                 "    int op;\n"
                                 "    int row;\n"
                                 "    int column;\n"
                                 "    int reason;\n"
                                 "    long long value;\n"
                                 "};\n"));
    assert_int_equal(offsetof(struct kiln_report, n_found), 0);
    assert_int_equal(offsetof(struct kiln_report, capacity), 8);
    assert_int_equal(offsetof(struct kiln_report, reserved), 12);
    assert_int_equal(sizeof(struct kiln_report), 16);
    assert_non_null(strstr(text, "struct report_t {\n"
                                 "    unsigned long long n_found;\n"
                                 "    unsigned capacity;\n"
                                 "    unsigned reserved;\n"
                                 "};\n"));
}

/* kReasonLiveTokens = 6 is KILN_REASON_LIVE_TOKENS = 6, for each. */
static void template_reasons_are_the_public_numbers(void **state)
{
    static const struct {
        const char *name;
        int value;
    } reasons[] = {
#define REASON(value, name, word, text) {#name, value},
        KILN_REASON_TABLE(REASON)
#undef REASON
    };
    const char *text = ki_template_get("global_topk.cu")->text;

    (void)state;
    for (size_t i = 0; i < KI_COUNT_OF(reasons); i++) {
        char line[NAME + 32] = "\nconstexpr int kReason";
        size_t n = strlen(line);

        for (const char *c = reasons[i].name + strlen("KILN_REASON"); *c != '\0'; c++) {
            if (*c != '_') {
                line[n++] = (char)(c[-1] == '_' ? *c : *c - 'A' + 'a');
            }
        }
        snprintf(line + n, sizeof line - n, " = %d;", reasons[i].value);
        if (strstr(text, line) == NULL) {
            fail_msg("report.cuh: expected the line \"%s\"", line + 1);
        }
    }
    assert_int_equal(count(text, "constexpr int kReason"), KI_COUNT_OF(reasons));
}

/* ---- failures ----------------------------------------------------------------------- */

static void source_write_refuses_what_has_none(void **state)
{
    struct kiln_shape zero = {0};
    struct ki_text out;

    ki_text_init(&out, NULL);

    (void)state;
    assert_int_equal(ki_source_write(KILN_OP_GLOBAL_TOPK, &zero, 0, &out, NULL),
                     KILN_E_SHAPE);
    assert_int_equal(ki_source_write(KILN_OP_STEP, &zero, 0, &out, NULL),
                     KILN_E_UNSUPPORTED);
    assert_int_equal(ki_source_write((enum kiln_op)99, &zero, 0, &out, NULL),
                     KILN_E_ARGUMENT);
    assert_int_equal(out.size, 0);
    ki_text_finish(&out);
}

static void source_write_names_a_variant_that_is_none(void **state)
{
    static const uint32_t bad[] = {2, 3, UINT32_C(1) << 31};
    struct ki_text out;

    ki_text_init(&out, NULL);

    (void)state;
    for (size_t i = 0; i < KI_COUNT_OF(bad); i++) {
        struct kiln_error err = {0};
        char named[32];

        snprintf(named, sizeof named, "variant = %u: expected", (unsigned)bad[i]);
        assert_int_equal(ki_source_write(golden_shapes[0].op, &golden_shapes[0].shape,
                                         bad[i], &out, &err),
                         KILN_E_ARGUMENT);
        assert_non_null(strstr(err.message, named));
    }
    assert_int_equal(out.size, 0);
    ki_text_finish(&out);
}

static void source_write_says_when_memory_is_out(void **state)
{
    enum kiln_status status;
    int n = 0;

    (void)state;
    do {
        struct failing_mem mem;
        struct ki_text out;

        failing_mem_init(&mem, ++n);
        ki_text_init(&out, &mem.mem);
        status =
            ki_source_write(golden_shapes[0].op, &golden_shapes[0].shape, 0, &out, NULL);
        assert_true(status == KILN_OK || status == KILN_E_MEMORY);
        ki_text_finish(&out);
        assert_int_equal(mem.n_live, 0);
    } while (status != KILN_OK);
    assert_true(n > 1);
}

#define GOLDEN(i)                                                                        \
    {                                                                                    \
        "source_is_the_golden_one_" #i, source_is_the_golden_one, NULL, NULL,            \
            (void *)(uintptr_t)&golden_shapes[i]                                         \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {
        GOLDEN(0),
        GOLDEN(1),
        GOLDEN(2),
        GOLDEN(3),
        GOLDEN(4),
        GOLDEN(5),
        GOLDEN(6),
        GOLDEN(7),
        GOLDEN(8),
        GOLDEN(9),
        GOLDEN(10),
        GOLDEN(11),
        GOLDEN(12),
        GOLDEN(13),
        GOLDEN(14),
        GOLDEN(15),
        GOLDEN(16),
        GOLDEN(17),
        cmocka_unit_test(source_is_the_same_every_time),
        cmocka_unit_test(source_includes_nothing_and_names_no_path),
        cmocka_unit_test(source_has_one_entry_with_the_ops_name),
        cmocka_unit_test(source_waits_for_the_kernel_ahead_before_all_else_field_73),
        cmocka_unit_test(source_lines_are_those_of_the_template),
        cmocka_unit_test(source_is_appended_to_what_is_there),
        cmocka_unit_test(source_of_the_checked_variant_differs_in_one_line),
        cmocka_unit_test(source_entry_name_is_kiln_and_the_op),
        cmocka_unit_test(source_prelude_defines_what_the_template_has_samples_of),
        cmocka_unit_test(source_prelude_holds_the_shape_and_the_ops_constants),
        cmocka_unit_test(template_parameters_are_the_ops_args_struct),
        cmocka_unit_test(template_count_is_the_public_struct),
        cmocka_unit_test(template_report_is_the_public_struct),
        cmocka_unit_test(template_reasons_are_the_public_numbers),
        cmocka_unit_test(source_write_refuses_what_has_none),
        cmocka_unit_test(source_write_names_a_variant_that_is_none),
        cmocka_unit_test(source_write_says_when_memory_is_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
