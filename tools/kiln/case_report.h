/* SPDX-License-Identifier: Apache-2.0 */
/* What a checked call reports: learnt from the reference, compared, printed. */
#ifndef CLI_CASE_REPORT_H
#define CLI_CASE_REPORT_H

#include "case_layout.h"

/*
 * Run the reference, and give the call a report with room for all that it found and some more.
 * The outputs and the report are the reference's then.
 *
 * *out: what it found, sorted; owned by the caller, for free; NULL on failure
 */
enum kiln_status cli_report_learn(struct cli_call *call, struct kiln_report **out,
                                  struct kiln_error *err);

/* Sort the call's report and compare it. False: `buf` has the first difference appended. */
bool cli_report_is(struct cli_call *call, const struct kiln_report *expected, char *buf,
                   size_t size_bytes);

/* The call's report on standard output: some lines for people, or an object. */
void cli_report_print(struct kiln_report *report);
void cli_report_print_json(struct kiln_report *report);

#endif
