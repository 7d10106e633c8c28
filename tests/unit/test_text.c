/* SPDX-License-Identifier: Apache-2.0 */
/* A text grows, stays NUL-terminated and remembers that memory ran out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/text.h"

/* Gives `left` blocks and then no more. */
static void *give(void *user, void *block, size_t size)
{
    int *left = user;

    if (size == 0) {
        free(block);
        return NULL;
    }
    return (*left)-- > 0 ? realloc(block, size) : NULL;
}

static void text_joins_what_is_appended(void **state)
{
    struct ki_text text;

    ki_text_init(&text, NULL);
    ki_text_string(&text, "one ");
    ki_text_bytes(&text, "two!", 3);
    ki_text_format(&text, " %s %d", "three", 4);

    (void)state;
    assert_true(ki_text_ok(&text));
    assert_string_equal(text.data, "one two three 4");
    assert_int_equal(text.size, strlen(text.data));
    ki_text_finish(&text);
}

static void text_keeps_bytes_that_are_zero(void **state)
{
    struct ki_text text;

    ki_text_init(&text, NULL);
    ki_text_bytes(&text, "a\0b", 3);
    ki_text_string(&text, "c");

    (void)state;
    assert_int_equal(text.size, 4);
    assert_memory_equal(text.data, "a\0bc", 5);
    ki_text_finish(&text);
}

static void text_grows_over_every_size(void **state)
{
    struct ki_text text;
    size_t total = 0;

    ki_text_init(&text, NULL);
    for (size_t i = 0; i < 600; i++) {
        char piece[601];

        memset(piece, 'a' + (int)(i % 26), i);
        piece[i] = '\0';
        if (i % 2 == 0) {
            ki_text_string(&text, piece);
        } else {
            ki_text_format(&text, "%s", piece);
        }
        total += i;
        assert_int_equal(text.size, total);
        assert_int_equal(text.data[total], '\0');
    }

    (void)state;
    assert_true(ki_text_ok(&text));
    ki_text_finish(&text);
}

static void text_that_nothing_was_appended_to_is_fine(void **state)
{
    struct ki_text text = {0};

    (void)state;
    assert_true(ki_text_ok(&text));
    ki_text_finish(&text);
    ki_text_finish(&text);
    assert_null(text.data);
}

static void text_of_no_bytes_is_an_empty_string(void **state)
{
    struct ki_text text;

    ki_text_init(&text, NULL);
    ki_text_bytes(&text, NULL, 0);

    (void)state;
    assert_string_equal(text.data, "");
    assert_int_equal(text.size, 0);
    ki_text_finish(&text);
}

static void text_failure_is_sticky_and_keeps_what_was_there(void **state)
{
    int left = 1;
    struct ki_mem mem = {give, &left};
    struct ki_text text;
    char big[4096];

    memset(big, 'x', sizeof big);
    ki_text_init(&text, &mem);
    ki_text_string(&text, "kept");
    ki_text_bytes(&text, big, sizeof big);
    left = 100;
    ki_text_string(&text, "more");
    ki_text_format(&text, "%d", 1);

    (void)state;
    assert_false(ki_text_ok(&text));
    assert_string_equal(text.data, "kept");
    ki_text_finish(&text);
}

static void text_refuses_a_size_that_overflows(void **state)
{
    struct ki_text text;

    ki_text_init(&text, NULL);
    ki_text_string(&text, "x");
    ki_text_bytes(&text, "y", SIZE_MAX);

    (void)state;
    assert_false(ki_text_ok(&text));
    assert_string_equal(text.data, "x");
    ki_text_finish(&text);
}

static void text_hand_out_cuts_what_does_not_fit_and_tells_the_whole_length(void **state)
{
    static const char *const expected[] = {"????", "", "a", "ab", "abc"};
    struct ki_text text;

    (void)state;
    ki_text_init(&text, NULL);
    ki_text_string(&text, "abc");
    for (size_t size = 0; size < sizeof expected / sizeof expected[0]; size++) {
        char buf[] = "????";
        size_t length = 0;

        ki_text_hand_out(&text, buf, size, &length);

        assert_int_equal(length, 3);
        assert_string_equal(buf, expected[size]);
    }
    ki_text_finish(&text);
}

static void text_hand_out_of_nothing_is_an_empty_string(void **state)
{
    struct ki_text text;
    char buf[] = "?";
    size_t length = 7;

    (void)state;
    ki_text_init(&text, NULL);
    ki_text_hand_out(&text, buf, sizeof buf, &length);

    assert_int_equal(length, 0);
    assert_string_equal(buf, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_joins_what_is_appended),
        cmocka_unit_test(text_keeps_bytes_that_are_zero),
        cmocka_unit_test(text_grows_over_every_size),
        cmocka_unit_test(text_that_nothing_was_appended_to_is_fine),
        cmocka_unit_test(text_of_no_bytes_is_an_empty_string),
        cmocka_unit_test(text_failure_is_sticky_and_keeps_what_was_there),
        cmocka_unit_test(text_refuses_a_size_that_overflows),
        cmocka_unit_test(text_hand_out_cuts_what_does_not_fit_and_tells_the_whole_length),
        cmocka_unit_test(text_hand_out_of_nothing_is_an_empty_string),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
