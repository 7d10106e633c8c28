/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every output of every launch of a step against the reference, whole buffers: rows that
 * are live, rows that are not, and what no launch may touch.
 */
#ifndef CHECK_H
#define CHECK_H

#include <stdint.h>

#include "step.h"

struct checker {
    const struct kiln_layout *layout;
    struct memory host; /* inputs, and outputs as the reference writes them */
    char *saved;        /* what the launches of a step wrote, from the device */
    int64_t n_launches, n_outputs, n_elements; /* compared */
    int64_t n_differences;                     /* elements */
};

/* Compute each launch of the step on the host and compare it with what was saved. */
enum kiln_status check_step(struct checker *checker, const struct step *step,
                            int64_t i_step, struct kiln_error *err);

#endif
