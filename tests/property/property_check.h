/* SPDX-License-Identifier: Apache-2.0 */
/* Does the property hold for a case: do the emitted source and the reference agree? */
#ifndef PROPERTY_CHECK_H
#define PROPERTY_CHECK_H

#include "cpu.h"
#include "property_case.h"

enum property_outcome {
    PROPERTY_HOLDS,
    PROPERTY_FAILS,
    PROPERTY_REFUSED, /* by the reference: no such call may be made */
    PROPERTY_BROKEN,  /* it could not be executed, which was reported */
};

enum { PROPERTY_ALL_WAYS = (1 << CLI_CPU_WAYS) - 1 };

/*
 * Executes the case in each way of the set and compares all that outputs, padding and guards
 * hold with what the reference left there, and what a checked kernel reports. `why` says how it
 * fails, or why it was refused.
 */
enum property_outcome property_check(struct cli_cpu *cpu, const struct property_case *c,
                                     unsigned ways, char why[CPU_WHY_BYTES]);

/* The case file of a case that the reference takes. Owner: the caller's, for free. */
char *property_check_text(const struct property_case *c);

#endif
