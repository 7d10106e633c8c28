/* SPDX-License-Identifier: Apache-2.0 */
/* From a case that fails to a small one that still fails. */
#ifndef PROPERTY_SHRINK_H
#define PROPERTY_SHRINK_H

#include "property_case.h"

/* Who says whether a case still fails. */
struct property_judge {
    bool (*fails)(void *context, const struct property_case *c);
    void *context;
    int n_trials; /* how often it may be asked at most, */
    int n_shapes; /* and for how many new shapes, each of which costs a compilation */
};

/* Replaces the case by ever simpler ones as long as they fail: fewer rows, fewer arguments,
 * smaller shapes, smaller numbers. */
void property_shrink(struct property_case *c, const struct property_judge *judge);

#endif
