/* SPDX-License-Identifier: Apache-2.0 */
/* The reference once, the emitted source in some ways, and every byte compared. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "case_report.h"
#include "property_check.h"
#include "report.h"

static void say_element(char why[CPU_WHY_BYTES], const struct cli_array *array,
                        int64_t row, int64_t column)
{
    if (cli_array_is_poison(array, row, column)) {
        cli_append(why, CPU_WHY_BYTES, "nothing written");
    } else {
        cli_append(why, CPU_WHY_BYTES, "%" PRId64, cli_array_get(array, row, column));
    }
}

/* False: `why` names the first element that differs. */
static bool is_same(const struct cli_array *got, const struct cli_array *expected,
                    char why[CPU_WHY_BYTES])
{
    if (memcmp(got->image, expected->image, got->image_bytes) == 0) {
        return true;
    }
    for (int64_t row = 0; row < got->rows; row++) {
        for (int64_t column = 0; column < got->width; column++) {
            bool was_written = !cli_array_is_poison(expected, row, column);
            if (cli_array_get(got, row, column) == cli_array_get(expected, row, column) &&
                was_written == !cli_array_is_poison(got, row, column)) {
                continue;
            }
            cli_append(why, CPU_WHY_BYTES, "%s[%" PRId64 "][%" PRId64 "]: expected ",
                       got->arg->name, row, column);
            say_element(why, expected, row, column);
            cli_append(why, CPU_WHY_BYTES, ", got ");
            say_element(why, got, row, column);
            return false;
        }
    }
    cli_append(why, CPU_WHY_BYTES, "%s: a byte beside its rows changed", got->arg->name);
    return false;
}

static bool is_call_same(const struct cli_call *got, const struct cli_call *expected,
                         char why[CPU_WHY_BYTES])
{
    if (cli_call_find_touched(got, why, CPU_WHY_BYTES)) {
        return false;
    }
    for (size_t i = 0; i < got->info->n_args; i++) {
        if (got->arrays[i].image != NULL &&
            !is_same(&got->arrays[i], &expected->arrays[i], why)) {
            return false;
        }
    }
    return true;
}

static bool is_checked(const struct cli_call *call)
{
    return (call->variant & KILN_VARIANT_CHECKED) != 0;
}

/* *report: what a checked call must report, the caller's for free; else NULL. */
static enum property_outcome refer(struct cli_call *call, struct kiln_report **report,
                                   char why[CPU_WHY_BYTES])
{
    struct kiln_error err = {.status = KILN_OK};
    *report = NULL;
    enum kiln_status status =
        is_checked(call) ? cli_report_learn(call, report, &err)
                         : kiln_reference(call->info->op, &call->shape, call->args, &err);
    if (status != KILN_OK) {
        cli_append(why, CPU_WHY_BYTES, "the reference refused: %s", err.message);
        return PROPERTY_REFUSED;
    }
    return cli_call_find_touched(call, why, CPU_WHY_BYTES) ? PROPERTY_FAILS
                                                           : PROPERTY_HOLDS;
}

/* One way; `report` is NULL for a kernel that is not checked. */
static enum property_outcome execute(struct cli_cpu *cpu, struct cli_call *got, int way,
                                     const struct cli_call *expected,
                                     const struct kiln_report *report,
                                     char why[CPU_WHY_BYTES])
{
    cli_call_clear(got);
    if (cli_cpu_try(cpu, got, way, got->info->name, why) != CLI_DONE) {
        return why[0] == '\0' ? PROPERTY_BROKEN : PROPERTY_FAILS;
    }
    if (!is_call_same(got, expected, why)) {
        return PROPERTY_FAILS;
    }
    return report == NULL || cli_report_is(got, report, why, CPU_WHY_BYTES)
               ? PROPERTY_HOLDS
               : PROPERTY_FAILS;
}

enum property_outcome property_check(struct cli_cpu *cpu, const struct property_case *c,
                                     unsigned ways, char why[CPU_WHY_BYTES])
{
    struct cli_call expected, got;
    struct kiln_report *report;
    why[0] = '\0';
    property_case_call(c, &expected);
    property_case_call(c, &got);
    enum property_outcome outcome = refer(&expected, &report, why);
    if (report != NULL && cli_call_add_report(&got, expected.report_capacity) != NULL) {
        outcome = PROPERTY_BROKEN;
    }
    for (int way = 0; way < CLI_CPU_WAYS && outcome == PROPERTY_HOLDS; way++) {
        if ((ways >> way & 1) != 0) {
            outcome = execute(cpu, &got, way, &expected, report, why);
        }
    }
    free(report);
    cli_call_finish(&expected);
    cli_call_finish(&got);
    return outcome;
}

char *property_check_text(const struct property_case *c)
{
    char why[CPU_WHY_BYTES] = "";
    struct cli_call call;
    struct kiln_report *report;
    property_case_call(c, &call);
    (void)refer(&call, &report, why);
    free(report);
    char *text = property_case_text(c, &call);
    cli_call_finish(&call);
    return text;
}
