/* SPDX-License-Identifier: Apache-2.0 */
/* What went wrong in a program of --on cpu, as one line that names the template's. */
#ifndef CLI_CPU_REPORT_H
#define CLI_CPU_REPORT_H

#include <stdio.h>

#include "kiln_simt_protocol.h"

/* `why` has CPU_WHY_BYTES. */
void cpu_report_fault(const char *program, const struct kiln_simt_reply *reply,
                      char *why);

/* The child ended without an answer: a compiler's checker has written why. */
void cpu_report_death(FILE *errors, int wait_status, char *why);

#endif
