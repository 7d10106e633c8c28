/* SPDX-License-Identifier: Apache-2.0 */
/* The GPU a kernel is compiled for: a base target such as sm_90, never a compute_ one. */
#ifndef KI_PLAN_TARGET_H
#define KI_PLAN_TARGET_H

#include <stdbool.h>

#include "kiln/status.h"

struct ki_target {
    int major, minor; /* compute capability; all zeros: none */
};

enum { KI_TARGET_NAME = 16 };

/* "sm_90" and its like; a name that is unknown is KILN_E_TARGET with the list of those
 * that are. */
enum kiln_status ki_target_parse(const char *name, struct ki_target *out,
                                 struct kiln_error *err);
void ki_target_name(struct ki_target target, char out[KI_TARGET_NAME]);
bool ki_target_equal(struct ki_target a, struct ki_target b);

/* A cubin of `target` runs on a device of the same major and at least its minor. */
bool ki_target_runs_on(struct ki_target target, struct ki_target device);

#endif
