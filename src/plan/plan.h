/* SPDX-License-Identifier: Apache-2.0 */
/* A plan as a caller hands it over: kiln_plan_make's, or one filled in by hand. */
#ifndef KI_PLAN_PLAN_H
#define KI_PLAN_PLAN_H

#include "kiln/plan.h"
#include "kiln/status.h"

/* KILN_E_ARGUMENT, with the item, where one names no op. */
enum kiln_status ki_plan_check_ops(const struct kiln_plan *plan, struct kiln_error *err);

#endif
