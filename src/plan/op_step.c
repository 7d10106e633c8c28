/* SPDX-License-Identifier: Apache-2.0 */
/* step: planned. Its shape and outputs, so that plans list it whole; no kernel yet. */
#include "plan/op_table.h"

/* Its shape is a list of segments, which a plan holds; there is no field to name. */
const struct ki_op ki_op_step = {
    .info = {.op = KILN_OP_STEP, .name = "step"},
};
