/* SPDX-License-Identifier: Apache-2.0 */
/* The base targets that kiln serves, by name. */
#include <stdio.h>
#include <string.h>

#include "base/attr.h"
#include "base/status.h"
#include "plan/target.h"

/* Compute capabilities of data-centre and desktop GPUs since Ampere. What NVRTC can
 * compile for is another question, asked of NVRTC. */
static const struct ki_target known[] = {
    {8, 0},  {8, 6},  {8, 7},  {8, 8},  {8, 9},  {9, 0},
    {10, 0}, {10, 3}, {11, 0}, {12, 0}, {12, 1},
};

void ki_target_name(struct ki_target target, char out[KI_TARGET_NAME])
{
    snprintf(out, KI_TARGET_NAME, "sm_%d%d", target.major, target.minor);
}

bool ki_target_equal(struct ki_target a, struct ki_target b)
{
    return a.major == b.major && a.minor == b.minor;
}

bool ki_target_runs_on(struct ki_target target, struct ki_target device)
{
    return target.major == device.major && target.minor <= device.minor;
}

static enum kiln_status fail_unknown(const char *name, struct kiln_error *err)
{
    char list[KI_COUNT_OF(known) * KI_TARGET_NAME] = "";
    char shown[33];
    size_t used = 0;

    /* A message is one line, whatever bytes the name has. */
    snprintf(shown, sizeof shown, "%s", name);
    for (char *c = shown; *c != '\0'; c++) {
        if (*c < 0x20 || *c > 0x7e) {
            *c = '?';
        }
    }

    for (size_t i = 0; i < KI_COUNT_OF(known); i++) {
        char one[KI_TARGET_NAME];

        ki_target_name(known[i], one);
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%s",
                                 i == 0 ? "" : " ", one);
    }
    return ki_fail(err, KILN_E_TARGET, "target \"%s\" is unknown: expected one of %s",
                   shown, list);
}

enum kiln_status ki_target_parse(const char *name, struct ki_target *out,
                                 struct kiln_error *err)
{
    for (size_t i = 0; i < KI_COUNT_OF(known); i++) {
        char one[KI_TARGET_NAME];

        ki_target_name(known[i], one);
        if (strcmp(name, one) == 0) {
            *out = known[i];
            return KILN_OK;
        }
    }
    return fail_unknown(name, err);
}
