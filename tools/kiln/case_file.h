/* SPDX-License-Identifier: Apache-2.0 */
/* A case file: one op, its shape, arguments and expected outputs, read strictly. */
#ifndef CLI_CASE_FILE_H
#define CLI_CASE_FILE_H

#include <jansson.h>

#include "case_layout.h"

struct cli_case {
    const char *path; /* borrowed */
    json_t *root;     /* owned */
    json_t *expect;   /* borrowed from root; NULL: nothing is expected */
    struct cli_call call;
    struct kiln_report *must_report; /* of a checked run; owned; NULL: not known */
};

/* Read and lay out a case. Reported; all zeros then. */
int cli_case_read(const char *path, struct cli_case *out);
void cli_case_finish(struct cli_case *c);

/* The expected element of output i; NULL: the case does not name the output. */
const json_t *cli_case_expected(const struct cli_case *c, size_t i, int64_t row,
                                int64_t column);

#endif
