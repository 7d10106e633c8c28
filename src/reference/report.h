/* SPDX-License-Identifier: Apache-2.0 */
/* What a reference reports; see kiln/report.h. A NULL report takes nothing. */
#ifndef KI_REFERENCE_REPORT_H
#define KI_REFERENCE_REPORT_H

#include "kiln/report.h"

#include "reference/rules.h"

/* Where the entries of one op go. */
struct ki_reporter {
    struct kiln_report *report;
    enum kiln_op op;
};

static inline void ki_report(const struct ki_reporter *to, enum kiln_reason reason,
                             int64_t row, int64_t column, int64_t value)
{
    struct kiln_report *report = to->report;
    struct kiln_report_entry *entries;
    uint64_t place;

    if (report == NULL) {
        return;
    }
    entries = (struct kiln_report_entry *)(void *)(report + 1);
    place = report->n_found++;
    if (place < report->capacity) {
        const struct kiln_report_entry entry = {
            .op = to->op,
            .row = (int32_t)row,
            .column = (int32_t)column,
            .reason = reason,
            .value = value,
        };
        entries[place] = entry;
    }
}

/* A count of the launch that is given and not in [0, most]. */
static inline void ki_report_count(const struct ki_reporter *to, enum kiln_reason reason,
                                   struct kiln_count count, int64_t most)
{
    int64_t value = ki_count(count, 0);

    if (value < 0 || value > most) {
        ki_report(to, reason, -1, -1, value);
    }
}

/* Does an id, any int32, lead the rank to a page? Ids of other ranks are theirs to report;
 * one below -1 is nobody's. */
static inline bool ki_check_id(const struct ki_reporter *to, const struct ki_cache *cache,
                               int64_t row, int64_t column, int64_t id)
{
    if (id == -1 || (id >= 0 && !ki_is_mine(cache, id))) {
        return false;
    }
    if (!ki_has_page(cache, id)) {
        ki_report(to, KILN_REASON_ID, row, column, id);
        return false;
    }
    return true;
}

/* Is a page one of the first `usable`? */
static inline bool ki_check_page(const struct ki_reporter *to, int64_t row,
                                 int64_t column, int64_t page, int64_t usable)
{
    if (page < 0 || page >= usable) {
        ki_report(to, KILN_REASON_PAGE, row, column, page);
        return false;
    }
    return true;
}

/* An index, which an int32 must hold. */
static inline void ki_check_range(const struct ki_reporter *to, int64_t row,
                                  int64_t column, int64_t index)
{
    if (index < 0 || index > INT32_MAX) {
        ki_report(to, KILN_REASON_RANGE, row, column, index);
    }
}

/* Has an id of a request in the table an int32 slot? Not so for an id of another rank. */
static inline bool ki_check_slot(const struct ki_reporter *to,
                                 const struct ki_cache *cache, int64_t request,
                                 int64_t row, int64_t column, int64_t id)
{
    int64_t offset = 0;

    return ki_check_id(to, cache, row, column, id) &&
           ki_check_page(to, row, column, ki_page(cache, request, id, &offset),
                         ki_usable_pages(cache));
}

#endif
