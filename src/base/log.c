/* SPDX-License-Identifier: Apache-2.0 */
/* Hands log lines to the user's callback. Never prints. */
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include "base/log.h"

void ki_log_text(const struct ki_log *log, enum kiln_log_level level, const char *text)
{
    if (log != NULL && log->fn != NULL && level <= log->level) {
        log->fn(log->user, level, text);
    }
}

void ki_log(const struct ki_log *log, enum kiln_log_level level, const char *format, ...)
{
    char line[2048];
    va_list args;

    if (log == NULL || log->fn == NULL || level > log->level) {
        return;
    }
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    log->fn(log->user, level, line);
}
