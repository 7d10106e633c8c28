/* SPDX-License-Identifier: Apache-2.0 */
/* Telling the user what happened to a kernel, violations of the seal among it. */
#ifndef KI_SEAL_H
#define KI_SEAL_H

#include "kiln/seal.h"

#include "context.h"

/* Hands the event to the user's callback, if there is one. No lock may be held. */
void ki_tell(const struct kiln *kiln, const struct ki_ident *ident,
             struct kiln_event event);

/* A violation that is refused: counted, logged, told; KILN_E_NOT_READY with `what` and the
 * shape in words. */
enum kiln_status ki_seal_refuse(struct kiln *kiln, const struct ki_ident *ident,
                                const char *what, struct kiln_error *err);

/* Work that goes on: under KILN_SEAL_WARN it is counted, logged and told. */
void ki_seal_warn(struct kiln *kiln, const struct ki_ident *ident, const char *what);

#endif
