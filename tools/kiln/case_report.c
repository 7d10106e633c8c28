/* SPDX-License-Identifier: Apache-2.0 */
/* The reference says what must be reported: all of that, and nothing else. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "case_report.h"
#include "report.h"

enum {
    ROOM = 16,              /* for what should not be reported, to name it */
    ENTRIES_MAX = 16 << 20, /* 400 MB */
    LINES_MAX = 20,         /* for people */
    TEXT_BYTES = 160,
};

/* ---- the reference's */

/* One run of it from cleared outputs, with room for so many entries. */
static enum kiln_status refer(struct cli_call *call, uint32_t capacity,
                              struct kiln_error *err)
{
    const char *why = cli_call_add_report(call, capacity);

    if (why != NULL) {
        *err = (struct kiln_error){.status = KILN_E_MEMORY};
        (void)snprintf(err->message, sizeof err->message, "%s", why);
        return KILN_E_MEMORY;
    }
    cli_call_clear(call);
    cli_call_bind_host(call);
    return kiln_reference(call->info->op, &call->shape, call->args, err);
}

enum kiln_status cli_report_learn(struct cli_call *call, struct kiln_report **out,
                                  struct kiln_error *err)
{
    enum kiln_status status = refer(call, 0, err);
    uint64_t n_found = status == KILN_OK ? call->report->n_found : 0;

    *out = NULL;
    if (n_found > ENTRIES_MAX) {
        *err = (struct kiln_error){.status = KILN_E_UNSUPPORTED};
        (void)snprintf(err->message, sizeof err->message,
                       "the reference reports %" PRIu64 " entries: expected %d at most",
                       n_found, (int)ENTRIES_MAX);
        return err->status;
    }
    if (status == KILN_OK) {
        status = refer(call, (uint32_t)n_found + ROOM, err);
    }
    if (status != KILN_OK) {
        return status;
    }
    (void)kiln_report_sort(call->report, NULL);
    *out = malloc(cli_call_report_bytes(call));
    if (*out == NULL) {
        *err = (struct kiln_error){.status = KILN_E_MEMORY, .message = "out of memory"};
        return KILN_E_MEMORY;
    }
    memcpy(*out, call->report, cli_call_report_bytes(call));
    return KILN_OK;
}

/* ---- comparing */

static bool is_entry_same(const struct kiln_report_entry *a,
                          const struct kiln_report_entry *b)
{
    return a->op == b->op && a->row == b->row && a->column == b->column &&
           a->reason == b->reason && a->value == b->value;
}

static void entry_text(const struct kiln_report_entry *entry, char text[TEXT_BYTES])
{
    if (kiln_report_text(entry, text, TEXT_BYTES, NULL) != KILN_OK) {
        text[0] = '\0';
    }
}

/* NULL: no entry. */
static void say(const struct kiln_report_entry *entry, char *buf, size_t size_bytes)
{
    char text[TEXT_BYTES] = "no more";

    if (entry != NULL) {
        entry_text(entry, text);
    }
    cli_append(buf, size_bytes, "%s", text);
}

/* A kernel counts and writes entries, and only reads what else stands in the header. */
static bool is_header_whole(struct cli_call *call, char *buf, size_t size_bytes)
{
    struct kiln_report *report = call->report;

    if (report->capacity == call->report_capacity && report->reserved == 0) {
        return true;
    }
    cli_append(buf, size_bytes,
               "report: expected capacity %" PRIu32 ", reserved 0, got %" PRIu32
               ", %" PRIu32,
               call->report_capacity, report->capacity, report->reserved);
    cli_call_clear(call); /* nothing in it can be believed */
    return false;
}

bool cli_report_is(struct cli_call *call, const struct kiln_report *expected, char *buf,
                   size_t size_bytes)
{
    if (!is_header_whole(call, buf, size_bytes)) {
        return false;
    }
    const struct kiln_report_entry *want =
        (const struct kiln_report_entry *)(expected + 1);
    size_t n_want = (size_t)expected->n_found, n_got;
    const struct kiln_report_entry *got = kiln_report_sort(call->report, &n_got);

    for (size_t i = 0; i < n_want || i < n_got; i++) {
        if (i < n_want && i < n_got && is_entry_same(&want[i], &got[i])) {
            continue;
        }
        cli_append(buf, size_bytes, "report[%zu]: expected ", i);
        say(i < n_want ? &want[i] : NULL, buf, size_bytes);
        cli_append(buf, size_bytes, ", got ");
        say(i < n_got ? &got[i] : NULL, buf, size_bytes);
        return false;
    }
    return true; /* more than was kept would have filled the room that nothing should */
}

/* ---- printing */

void cli_report_print(struct kiln_report *report)
{
    char text[TEXT_BYTES];
    size_t n;
    const struct kiln_report_entry *entries = kiln_report_sort(report, &n);

    for (size_t i = 0; i < n && i < LINES_MAX; i++) {
        entry_text(&entries[i], text);
        (void)printf("      %s\n", text);
    }
    if (report->n_found > LINES_MAX) {
        (void)printf("      ... and %" PRIu64 " more\n", report->n_found - LINES_MAX);
    }
}

void cli_report_print_json(struct kiln_report *report)
{
    size_t n;
    const struct kiln_report_entry *entries = kiln_report_sort(report, &n);

    (void)printf("{\"found\": %" PRIu64 ", \"entries\": [", report->n_found);
    for (size_t i = 0; i < n; i++) {
        const struct kiln_report_entry *entry = &entries[i];
        const struct kiln_op_info *info = kiln_op_info_get((enum kiln_op)entry->op);

        (void)printf("%s{\"op\": \"%s\", \"row\": %" PRId32 ", \"column\": %" PRId32
                     ", \"reason\": \"%s\", \"value\": %" PRId64 "}",
                     i > 0 ? ", " : "", info != NULL ? info->name : "no op", entry->row,
                     entry->column, kiln_reason_name((enum kiln_reason)entry->reason),
                     entry->value);
    }
    (void)fputs("]}", stdout);
}
