/* SPDX-License-Identifier: Apache-2.0 */
/* What a reference reports, against what it should. */
#ifndef KI_TESTS_SUPPORT_REPORT_CHECK_H
#define KI_TESTS_SUPPORT_REPORT_CHECK_H

#include <stddef.h>

#include "kiln/report.h"

enum { REPORT_ROOM = 32 };

struct report_room {
    struct kiln_report report;
    struct kiln_report_entry entries[REPORT_ROOM];
};

/* An empty report in the room. */
struct kiln_report *report_begin(struct report_room *room);

/* Fails the test unless these n entries, and no others, were reported; any order. */
void report_check(struct report_room *room, const struct kiln_report_entry *want,
                  size_t n);

#endif
