/* SPDX-License-Identifier: Apache-2.0 */
/* Level check and formatted hand-off to the user's callback. A library does not print. */
#ifndef KI_BASE_LOG_H
#define KI_BASE_LOG_H

#include "kiln/status.h"

#include "base/attr.h"

struct ki_log {
    kiln_log_fn fn; /* NULL: silent */
    void *user;
    enum kiln_log_level level; /* the least important level that is handed on */
};

KI_PRINTF(3, 4)
void ki_log(const struct ki_log *log, enum kiln_log_level level, const char *format, ...);

/* A text of any length (a compiler's log), handed on whole. */
void ki_log_text(const struct ki_log *log, enum kiln_log_level level, const char *text);

#endif
