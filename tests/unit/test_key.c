/* SPDX-License-Identifier: Apache-2.0 */
/* A key says what a kernel is, all of it, and nothing of the machine. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <locale.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/text.h"
#include "plan/key.h"
#include "plan/op.h"
#include "plan/source.h"
#include "support/failing_mem.h"
#include "support/golden.h"
#include "support/tmpdir.h"

static struct ki_ident ident_of(const struct golden_shape *golden)
{
    struct ki_ident ident;

    ki_ident_init(&ident, golden->op, &golden->shape);
    ident.target = (struct ki_target){9, 0};
    return ident;
}

static struct ki_key key_of(const struct ki_ident *ident)
{
    struct ki_key key;
    struct kiln_error err = {0};

    if (ki_key_make(ident, NULL, &key, &err) != KILN_OK) {
        fail_msg("%s", err.message);
    }
    return key;
}

/* ---- the text ----------------------------------------------------------------------- */

/* One test for each shape, so that one run with KILN_UPDATE_GOLDEN=1 writes all. */
static void key_text_is_the_golden_one(void **state)
{
    const struct golden_shape *golden = *state;
    struct ki_ident ident = ident_of(golden);
    struct ki_key key = key_of(&ident);

    golden_check(golden->name, ".key", key.text);
}

static void key_text_is_lines_of_name_and_value(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_GOLDEN_SHAPES; i++) {
        struct ki_ident ident = ident_of(&golden_shapes[i]);
        struct ki_key key = key_of(&ident);
        const char *line = key.text;

        assert_int_equal(key.text_size, strlen(key.text));
        while (*line != '\0') {
            size_t length = strcspn(line, "\n");
            size_t name = strspn(line, "abcdefghijklmnopqrstuvwxyz0123456789_");

            assert_true(name > 0 && line[name] == '=' && length > name + 1);
            assert_int_equal(line[length], '\n');
            line += length + 1;
        }
    }
}

static void key_digest_is_that_of_the_text(void **state)
{
    struct ki_ident ident = ident_of(&golden_shapes[0]);
    struct ki_key key = key_of(&ident);
    unsigned char digest[KI_DIGEST_BYTES];
    char hex[KI_DIGEST_HEX];

    ki_hash(key.text, key.text_size, digest);
    ki_hash_hex(digest, hex);

    (void)state;
    assert_memory_equal(key.digest, digest, sizeof digest);
    assert_string_equal(key.digest_hex, hex);
}

/* A stale kernel after an update was one whose text was not all in its key. */
static void key_covers_every_byte_of_the_source_field_44(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_GOLDEN_SHAPES; i++) {
        struct ki_ident ident = ident_of(&golden_shapes[i]);
        struct ki_key key = key_of(&ident);
        struct ki_text source;
        unsigned char digest[KI_DIGEST_BYTES];
        char line[KI_DIGEST_HEX + 16];
        char hex[KI_DIGEST_HEX];

        ki_text_init(&source, NULL);
        assert_int_equal(
            ki_source_write(golden_shapes[i].op, &ident.shape, 0, &source, NULL),
            KILN_OK);
        ki_hash(source.data, source.size, digest);
        ki_hash_hex(digest, hex);
        snprintf(line, sizeof line, "\nsource=%s\n", hex);
        assert_non_null(strstr(key.text, line));
        ki_text_finish(&source);
    }
}

/* Two variants in one folder must not be taken for each other. */
static void key_of_the_checked_variant_is_another(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_GOLDEN_SHAPES; i++) {
        struct ki_ident ident = ident_of(&golden_shapes[i]);
        struct ki_key plain = key_of(&ident);
        struct ki_key checked;

        ident.variant = KILN_VARIANT_CHECKED;
        checked = key_of(&ident);
        assert_non_null(strstr(plain.text, "\nchecked=0\n"));
        assert_non_null(strstr(checked.text, "\nchecked=1\n"));
        assert_memory_not_equal(plain.digest, checked.digest, sizeof plain.digest);
    }
}

static void key_covers_the_compilers_options(void **state)
{
    struct ki_ident ident = ident_of(&golden_shapes[0]);
    struct ki_key key = key_of(&ident);

    (void)state;
    for (size_t i = 0; ki_key_compiler_options[i] != NULL; i++) {
        char line[64];

        snprintf(line, sizeof line, "\noption=%s\n", ki_key_compiler_options[i]);
        assert_non_null(strstr(key.text, line));
    }
}

/* ---- nothing of the machine --------------------------------------------------------- */

/* A warm cache went cold after a move, because a path was in its keys. */
static void key_holds_no_path_field_45(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_GOLDEN_SHAPES; i++) {
        struct ki_ident ident = ident_of(&golden_shapes[i]);
        struct ki_key key = key_of(&ident);

        assert_null(strchr(key.text, '/'));
        assert_null(strchr(key.text, '\\'));
    }
}

static void key_is_the_same_in_another_home_and_folder(void **state)
{
    struct ki_ident ident = ident_of(&golden_shapes[1]);
    struct ki_key before = key_of(&ident);
    struct ki_key after;
    struct tmpdir dir;
    char *was = realpath(".", NULL);

    tmpdir_create(&dir);
    assert_int_equal(setenv("HOME", dir.path, 1), 0);
    assert_int_equal(chdir(dir.path), 0);
    after = key_of(&ident);
    assert_int_equal(chdir(was), 0);
    free(was);
    tmpdir_remove(&dir);

    (void)state;
    assert_string_equal(after.text, before.text);
}

/* Decimal commas and grouped digits came from the user's locale. */
static void key_is_the_same_in_any_locale_field_46(void **state)
{
    static const char *const locales[] = {
        "", "de_DE.UTF-8", "fr_FR.UTF-8", "tr_TR.UTF-8", "hi_IN", "C.UTF-8", "C"};
    struct ki_ident ident = ident_of(&golden_shapes[1]);
    struct ki_key before = key_of(&ident);
    int n_set = 0;

    (void)state;
    for (size_t i = 0; i < sizeof locales / sizeof locales[0]; i++) {
        struct ki_key after;

        n_set += setlocale(LC_ALL, locales[i]) != NULL ? 1 : 0;
        after = key_of(&ident);
        assert_string_equal(after.text, before.text);
    }
    assert_true(n_set > 0);
    setlocale(LC_ALL, "C");
}

static void *make_key(void *argument)
{
    struct ki_key *key = argument;
    struct ki_ident ident = ident_of(&golden_shapes[2]);

    *key = key_of(&ident);
    return NULL;
}

static void key_is_the_same_on_any_thread(void **state)
{
    static struct ki_key keys[8];
    pthread_t threads[8];

    (void)state;
    for (int i = 0; i < 8; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, make_key, &keys[i]), 0);
    }
    for (int i = 0; i < 8; i++) {
        pthread_join(threads[i], NULL);
    }
    for (int i = 1; i < 8; i++) {
        assert_string_equal(keys[i].text, keys[0].text);
    }
}

/* ---- what makes another key --------------------------------------------------------- */

/* Rows that fill their stride exactly leave a width no other legal value. */
static struct ki_ident roomy_ident_of(const struct golden_shape *golden)
{
    const struct kiln_op_info *info = kiln_op_info_get(golden->op);
    struct ki_ident ident = ident_of(golden);

    for (size_t f = 0; f < info->n_fields; f++) {
        if (strstr(info->fields[f].name, "_stride") != NULL) {
            ident.shape.fields[f] *= 2;
        }
    }
    return ident;
}

/* Another legal value of the field, near the one it has. */
static void change_field(struct ki_ident *ident, size_t field)
{
    const int64_t was = ident->shape.fields[field];
    const int64_t candidates[] = {was + 1, was - 1, was * 2};

    for (size_t i = 0; i < sizeof candidates / sizeof candidates[0]; i++) {
        ident->shape.fields[field] = candidates[i];
        if (candidates[i] != was &&
            ki_op_check((enum kiln_op)ident->op, &ident->shape, NULL) == KILN_OK) {
            return;
        }
    }
    fail_msg("field %zu has no other value", field);
}

static void key_differs_for_every_field(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_GOLDEN_SHAPES; i++) {
        const struct kiln_op_info *info = kiln_op_info_get(golden_shapes[i].op);
        struct ki_ident ident = roomy_ident_of(&golden_shapes[i]);
        struct ki_key before = key_of(&ident);

        for (size_t f = 0; f < info->n_fields; f++) {
            struct ki_ident changed = ident;
            struct ki_key after;

            change_field(&changed, f);
            after = key_of(&changed);
            assert_string_not_equal(after.digest_hex, before.digest_hex);
            assert_false(ki_ident_equal(&changed, &ident));
        }
    }
}

static void key_differs_for_every_target_field_43(void **state)
{
    static const struct ki_target targets[] = {{8, 0}, {8, 9}, {9, 0}, {10, 0}, {12, 0}};
    struct ki_key keys[sizeof targets / sizeof targets[0]];

    (void)state;
    for (size_t i = 0; i < sizeof targets / sizeof targets[0]; i++) {
        struct ki_ident ident = ident_of(&golden_shapes[0]);

        ident.target = targets[i];
        keys[i] = key_of(&ident);
        for (size_t other = 0; other < i; other++) {
            assert_string_not_equal(keys[i].digest_hex, keys[other].digest_hex);
        }
    }
}

/* ---- identities --------------------------------------------------------------------- */

static void ident_ignores_what_lies_beyond_the_ops_fields(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_GOLDEN_SHAPES; i++) {
        const struct golden_shape *golden = &golden_shapes[i];
        const struct kiln_op_info *info = kiln_op_info_get(golden->op);
        struct kiln_shape dirty;
        struct ki_ident clean = ident_of(golden);
        struct ki_ident other;

        memset(&dirty, 0x5a, sizeof dirty);
        memcpy(&dirty, &golden->shape, info->n_fields * sizeof(int64_t));
        memset(&other, 0xa5, sizeof other);
        ki_ident_init(&other, golden->op, &dirty);
        other.target = clean.target;

        assert_true(ki_ident_equal(&other, &clean));
        assert_memory_equal(&other, &clean, sizeof clean);
    }
}

static void ident_of_no_op_has_no_fields(void **state)
{
    struct ki_ident ident;
    struct kiln_shape shape;
    static const struct kiln_shape zeros = {0};

    memset(&shape, 0x5a, sizeof shape);
    ki_ident_init(&ident, (enum kiln_op)99, &shape);

    (void)state;
    assert_int_equal(ident.op, 99);
    assert_memory_equal(&ident.shape, &zeros, sizeof zeros);
}

static void ident_equal_looks_at_op_target_and_shape(void **state)
{
    struct ki_ident one = ident_of(&golden_shapes[0]);
    struct ki_ident op = one;
    struct ki_ident target = one;
    struct ki_ident shape = one;
    struct ki_ident checked = one;

    op.op++;
    target.target.minor++;
    shape.shape.fields[KILN_SHAPE_FIELDS - 1]++;
    checked.variant = KILN_VARIANT_CHECKED;

    (void)state;
    assert_true(ki_ident_equal(&one, &one));
    assert_false(ki_ident_equal(&one, &op));
    assert_false(ki_ident_equal(&one, &target));
    assert_false(ki_ident_equal(&one, &shape));
    assert_false(ki_ident_equal(&one, &checked));
}

/* The table of kernels hashes it as words. */
static void ident_has_no_padding(void **state)
{
    struct ki_ident ident;

    (void)state;
    assert_int_equal(sizeof ident, sizeof ident.op + sizeof ident.variant +
                                       sizeof ident.target + sizeof ident.shape);
}

/* ---- failures ----------------------------------------------------------------------- */

static void key_make_passes_on_what_is_wrong(void **state)
{
    struct ki_ident shape = ident_of(&golden_shapes[0]);
    struct ki_ident unsupported = {.op = KILN_OP_STEP};
    struct ki_ident none = {.op = 99};
    struct ki_key key;

    shape.shape.fields[0] = 0;

    (void)state;
    assert_int_equal(ki_key_make(&shape, NULL, &key, NULL), KILN_E_SHAPE);
    assert_int_equal(ki_key_make(&unsupported, NULL, &key, NULL), KILN_E_UNSUPPORTED);
    assert_int_equal(ki_key_make(&none, NULL, &key, NULL), KILN_E_ARGUMENT);
}

static void key_make_leaks_nothing_when_memory_is_out(void **state)
{
    struct ki_ident ident = ident_of(&golden_shapes[0]);
    enum kiln_status status;
    int n = 0;

    (void)state;
    do {
        struct failing_mem mem;
        struct ki_key key;

        failing_mem_init(&mem, ++n);
        status = ki_key_make(&ident, &mem.mem, &key, NULL);
        assert_true(status == KILN_OK || status == KILN_E_MEMORY);
        assert_int_equal(mem.n_live, 0);
    } while (status != KILN_OK);
    assert_true(n > 1);
}

#define GOLDEN(i)                                                                        \
    {                                                                                    \
        "key_text_is_the_golden_one_" #i, key_text_is_the_golden_one, NULL, NULL,        \
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
        cmocka_unit_test(key_text_is_lines_of_name_and_value),
        cmocka_unit_test(key_digest_is_that_of_the_text),
        cmocka_unit_test(key_covers_every_byte_of_the_source_field_44),
        cmocka_unit_test(key_of_the_checked_variant_is_another),
        cmocka_unit_test(key_covers_the_compilers_options),
        cmocka_unit_test(key_holds_no_path_field_45),
        cmocka_unit_test(key_is_the_same_in_another_home_and_folder),
        cmocka_unit_test(key_is_the_same_in_any_locale_field_46),
        cmocka_unit_test(key_is_the_same_on_any_thread),
        cmocka_unit_test(key_differs_for_every_field),
        cmocka_unit_test(key_differs_for_every_target_field_43),
        cmocka_unit_test(ident_ignores_what_lies_beyond_the_ops_fields),
        cmocka_unit_test(ident_of_no_op_has_no_fields),
        cmocka_unit_test(ident_equal_looks_at_op_target_and_shape),
        cmocka_unit_test(ident_has_no_padding),
        cmocka_unit_test(key_make_passes_on_what_is_wrong),
        cmocka_unit_test(key_make_leaks_nothing_when_memory_is_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
