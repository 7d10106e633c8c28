/* SPDX-License-Identifier: Apache-2.0 */
/* The public functions of report.h. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "kiln/op_info.h"
#include "kiln/report.h"

#include "base/attr.h"
#include "base/status.h"

struct reason {
    enum kiln_reason value;
    const char *name, *text;
};

/* NULL for a value that is none. */
static const struct reason *find_reason(enum kiln_reason value)
{
#define REASON_ROW(number, value_name, word, sentence) {value_name, word, sentence},
    static const struct reason reasons[] = {KILN_REASON_TABLE(REASON_ROW)};
#undef REASON_ROW

    for (size_t i = 0; i < KI_COUNT_OF(reasons); i++) {
        if (reasons[i].value == value) {
            return &reasons[i];
        }
    }
    return NULL;
}

static const char *reason_text(enum kiln_reason value)
{
    const struct reason *reason = find_reason(value);

    return reason != NULL ? reason->text : "unknown reason";
}

const char *kiln_reason_name(enum kiln_reason value)
{
    const struct reason *reason = find_reason(value);

    return reason != NULL ? reason->name : "unknown";
}

size_t kiln_report_bytes(uint32_t capacity)
{
    return sizeof(struct kiln_report) + capacity * sizeof(struct kiln_report_entry);
}

struct kiln_report *kiln_report_init(void *buf, uint32_t capacity)
{
    struct kiln_report *report = buf;

    if (report != NULL) {
        *report = (struct kiln_report){.capacity = capacity};
    }
    return report;
}

static int compare(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

static int compare_entries(const void *left, const void *right)
{
    const struct kiln_report_entry *a = left, *b = right;
    int order = compare(a->op, b->op);

    order = order != 0 ? order : compare(a->row, b->row);
    order = order != 0 ? order : compare(a->column, b->column);
    order = order != 0 ? order : compare(a->reason, b->reason);
    return order != 0 ? order : compare(a->value, b->value);
}

const struct kiln_report_entry *kiln_report_sort(struct kiln_report *report,
                                                 size_t *out_n)
{
    if (report == NULL) {
        return NULL;
    }
    struct kiln_report_entry *entries = (struct kiln_report_entry *)(void *)(report + 1);
    size_t n =
        report->n_found < report->capacity ? (size_t)report->n_found : report->capacity;

    qsort(entries, n, sizeof *entries, compare_entries);
    if (out_n != NULL) {
        *out_n = n;
    }
    return entries;
}

/* "count out of range" alone would not say which. */
static void describe(const struct kiln_report_entry *entry, char *out, size_t size)
{
    enum kiln_reason reason = (enum kiln_reason)entry->reason;

    if (reason >= KILN_REASON_LIVE_TOKENS && reason <= KILN_REASON_SPANS) {
        (void)snprintf(out, size, "%s: %s", kiln_reason_name(reason),
                       reason_text(reason));
    } else {
        (void)snprintf(out, size, "%s", reason_text(reason));
    }
}

enum kiln_status kiln_report_text(const struct kiln_report_entry *entry, char *buf,
                                  size_t size_bytes, struct kiln_error *err)
{
    char where[64] = "", what[64];

    if (entry == NULL || buf == NULL || size_bytes == 0) {
        return ki_fail(err, KILN_E_ARGUMENT,
                       "entry or buf is NULL, or size_bytes is 0: expected room");
    }
    const struct kiln_op_info *info = kiln_op_info_get((enum kiln_op)entry->op);

    describe(entry, what, sizeof what);
    if (entry->row >= 0 && entry->column >= 0) {
        (void)snprintf(where, sizeof where, "row %" PRId32 ", column %" PRId32 ": ",
                       entry->row, entry->column);
    } else if (entry->row >= 0) {
        (void)snprintf(where, sizeof where, "row %" PRId32 ": ", entry->row);
    }
    (void)snprintf(buf, size_bytes, "%s: %s%s: %" PRId64,
                   info != NULL ? info->name : "no op", where, what, entry->value);
    return KILN_OK;
}
