/* SPDX-License-Identifier: Apache-2.0 */
/* Log lines reach the caller's callback, by level, whole. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/log.h"

struct seen {
    int n;
    enum kiln_log_level level;
    char text[4096];
};

static void keep(void *user, enum kiln_log_level level, const char *text)
{
    struct seen *seen = user;

    seen->n++;
    seen->level = level;
    assert_true(strlen(text) < sizeof seen->text);
    memcpy(seen->text, text, strlen(text) + 1);
}

static void log_formats_and_hands_on(void **state)
{
    struct seen seen = {0};
    struct ki_log log = {keep, &seen, KILN_LOG_INFO};

    ki_log(&log, KILN_LOG_WARN, "%s of %d", "one", 7);

    (void)state;
    assert_int_equal(seen.n, 1);
    assert_int_equal(seen.level, KILN_LOG_WARN);
    assert_string_equal(seen.text, "one of 7");
}

static void log_drops_what_is_less_important_than_its_level(void **state)
{
    static const enum kiln_log_level levels[] = {KILN_LOG_ERROR, KILN_LOG_WARN,
                                                 KILN_LOG_INFO, KILN_LOG_DEBUG};
    struct seen seen = {0};
    struct ki_log log = {keep, &seen, KILN_LOG_WARN};

    for (size_t i = 0; i < sizeof levels / sizeof levels[0]; i++) {
        ki_log(&log, levels[i], "x");
        ki_log_text(&log, levels[i], "x");
    }

    (void)state;
    assert_int_equal(seen.n, 4);
    assert_int_equal(seen.level, KILN_LOG_WARN);
}

static void log_without_a_callback_is_silent(void **state)
{
    struct ki_log log = {NULL, NULL, KILN_LOG_DEBUG};

    (void)state;
    ki_log(&log, KILN_LOG_ERROR, "nobody hears %d", 1);
    ki_log_text(&log, KILN_LOG_ERROR, "nobody hears");
    ki_log(NULL, KILN_LOG_ERROR, "nobody hears %d", 1);
    ki_log_text(NULL, KILN_LOG_ERROR, "nobody hears");
}

static void log_text_is_handed_on_whole_field_47(void **state)
{
    struct seen seen = {0};
    struct ki_log log = {keep, &seen, KILN_LOG_ERROR};
    char text[4000];

    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    ki_log_text(&log, KILN_LOG_ERROR, text);

    (void)state;
    assert_string_equal(seen.text, text);
}

static void log_cuts_a_formatted_line_instead_of_overrunning(void **state)
{
    struct seen seen = {0};
    struct ki_log log = {keep, &seen, KILN_LOG_ERROR};

    ki_log(&log, KILN_LOG_ERROR, "%4000d", 1);

    (void)state;
    assert_int_equal(strlen(seen.text), 2047);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(log_formats_and_hands_on),
        cmocka_unit_test(log_drops_what_is_less_important_than_its_level),
        cmocka_unit_test(log_without_a_callback_is_silent),
        cmocka_unit_test(log_text_is_handed_on_whole_field_47),
        cmocka_unit_test(log_cuts_a_formatted_line_instead_of_overrunning),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
