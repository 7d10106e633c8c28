/* SPDX-License-Identifier: Apache-2.0 */
/* shape -> source: a prelude of constants, then the template. One loop, no per-op text.
 */
#ifndef KI_PLAN_SOURCE_H
#define KI_PLAN_SOURCE_H

#include "kiln/op_info.h"

#include "base/text.h"

/* Appends the whole source of a legal shape; variant: bits of enum kiln_variant. */
enum kiln_status ki_source_write(enum kiln_op op, const struct kiln_shape *shape,
                                 uint32_t variant, struct ki_text *out,
                                 struct kiln_error *err);

/* The kernel's name in the cubin, kiln_<op>. Writes into a buffer of 64. */
void ki_source_entry_name(enum kiln_op op, char out[64]);

#endif
