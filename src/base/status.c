/* SPDX-License-Identifier: Apache-2.0 */
/* The status table's names and texts, and the one way to fill a struct kiln_error. */

/* With the GNU extensions strerror_r is another function, which need not use its buffer. */
#undef _GNU_SOURCE
#define _POSIX_C_SOURCE 200809L
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/status.h"

const char *kiln_status_name(int status)
{
    switch (status) {
#define NAME_CASE(value, name, text)                                                     \
    case (value):                                                                        \
        return #name;
        KILN_STATUS_TABLE(NAME_CASE)
#undef NAME_CASE
    default:
        return "KILN_E_?";
    }
}

const char *kiln_status_text(int status)
{
    switch (status) {
#define TEXT_CASE(value, name, text)                                                     \
    case (value):                                                                        \
        return text;
        KILN_STATUS_TABLE(TEXT_CASE)
#undef TEXT_CASE
    default:
        return "not a status of kiln";
    }
}

KI_PRINTF(5, 0)
static void fill(struct kiln_error *err, enum kiln_status status, enum kiln_origin origin,
                 int native_code, const char *format, va_list args)
{
    err->status = status;
    err->origin = origin;
    err->native_code = native_code;
    vsnprintf(err->message, sizeof err->message, format, args);
}

KI_PRINTF(2, 3)
static void append(struct kiln_error *err, const char *format, ...)
{
    size_t used = strlen(err->message);
    va_list args;

    va_start(args, format);
    vsnprintf(err->message + used, sizeof err->message - used, format, args);
    va_end(args);
}

enum kiln_status ki_fail(struct kiln_error *err, enum kiln_status status,
                         const char *format, ...)
{
    va_list args;

    if (err != NULL) {
        va_start(args, format);
        fill(err, status, KILN_ORIGIN_KILN, 0, format, args);
        va_end(args);
    }
    return status;
}

enum kiln_status ki_fail_os(struct kiln_error *err, enum kiln_status status,
                            int errno_value, const char *format, ...)
{
    char text[128];
    va_list args;

    if (err == NULL) {
        return status;
    }
    va_start(args, format);
    fill(err, status, KILN_ORIGIN_OS, errno_value, format, args);
    va_end(args);
    if (strerror_r(errno_value, text, sizeof text) != 0) {
        snprintf(text, sizeof text, "error %d", errno_value);
    }
    append(err, ": %s", text);
    return status;
}

enum kiln_status ki_fail_native(struct kiln_error *err, enum kiln_status status,
                                enum kiln_origin origin, int native_code,
                                const char *native_name, const char *format, ...)
{
    va_list args;

    if (err == NULL) {
        return status;
    }
    va_start(args, format);
    fill(err, status, origin, native_code, format, args);
    va_end(args);
    append(err, ": %s (%d)", native_name != NULL ? native_name : "unknown result",
           native_code);
    return status;
}

enum kiln_status ki_fail_memory(struct kiln_error *err, const char *what)
{
    return ki_fail(err, KILN_E_MEMORY, "out of memory for %s", what);
}
