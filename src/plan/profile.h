/* SPDX-License-Identifier: Apache-2.0 */
/* The consumers of rows by name, and the check of one that may be in no table. */
#ifndef KI_PLAN_PROFILE_H
#define KI_PLAN_PROFILE_H

#include "kiln/plan.h"

/* By number, and those that are later work; each ends in NULL. */
extern const char *const ki_profile_names[];
extern const char *const ki_profiles_later[];

/* As kiln_profile_check, for a legal shape. */
enum kiln_status ki_profile_check(const struct kiln_profile_info *profile,
                                  enum kiln_op op, const struct kiln_shape *shape,
                                  struct kiln_error *err);

#endif
