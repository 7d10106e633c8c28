/* SPDX-License-Identifier: Apache-2.0 */
/* Inputs of a bench case, made up by the names of arguments. */
#ifndef CLI_BENCH_FILL_H
#define CLI_BENCH_FILL_H

#include "bench_cases.h"
#include "case_layout.h"

/* Lay out and fill the call of a case; bound to host addresses. Reported; all zeros
 * then. */
int cli_bench_fill(const struct cli_bench_case *bench, struct cli_call *out);

#endif
