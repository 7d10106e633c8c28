/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "support/report_check.h"

struct kiln_report *report_begin(struct report_room *room)
{
    return kiln_report_init(room, REPORT_ROOM);
}

static const char *text_of(const struct kiln_report_entry *entry, char buf[160])
{
    struct kiln_error err;

    return kiln_report_text(entry, buf, 160, &err) == KILN_OK ? buf : err.message;
}

static void assert_entry(const struct kiln_report_entry *got,
                         const struct kiln_report_entry *want)
{
    char is[160], expected[160];

    if (memcmp(got, want, sizeof *got) != 0) {
        fail_msg("reported: \"%s\", expected: \"%s\"", text_of(got, is),
                 text_of(want, expected));
    }
}

void report_check(struct report_room *room, const struct kiln_report_entry *want,
                  size_t n)
{
    struct report_room sorted = {.report = {.n_found = n, .capacity = REPORT_ROOM}};
    size_t n_got = 0;
    const struct kiln_report_entry *got = kiln_report_sort(&room->report, &n_got);
    char buf[160];

    for (size_t i = 0; i < n; i++) {
        sorted.entries[i] = want[i];
    }
    want = kiln_report_sort(&sorted.report, NULL);
    for (size_t i = 0; i < n && i < n_got; i++) {
        assert_entry(&got[i], &want[i]);
    }
    if (n_got != n) {
        fail_msg("reported %zu entries, expected %zu; the next is \"%s\"", n_got, n,
                 text_of(n_got > n ? &got[n] : &want[n_got], buf));
    }
    assert_int_equal(room->report.n_found, n);
}
