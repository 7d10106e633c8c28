/* SPDX-License-Identifier: Apache-2.0 */
/* Filling a struct kiln_error, once, by the function that first learns of a failure. */
#ifndef KI_BASE_STATUS_H
#define KI_BASE_STATUS_H

#include "kiln/status.h"

#include "base/attr.h"

/* Writes the message (err may be NULL) and returns the status, so that it can be
 * returned. */
KI_PRINTF(3, 4)
enum kiln_status ki_fail(struct kiln_error *err, enum kiln_status status,
                         const char *format, ...);

/* The same for a failed system call: errno_value's text is appended. */
KI_PRINTF(4, 5)
enum kiln_status ki_fail_os(struct kiln_error *err, enum kiln_status status,
                            int errno_value, const char *format, ...);

/* The same for NVRTC and the driver: "<message>: <native_name> (<code>)"; native_name may
 * be NULL. */
KI_PRINTF(6, 7)
enum kiln_status ki_fail_native(struct kiln_error *err, enum kiln_status status,
                                enum kiln_origin origin, int native_code,
                                const char *native_name, const char *format, ...);

/* KILN_E_MEMORY, naming what could not be allocated. */
enum kiln_status ki_fail_memory(struct kiln_error *err, const char *what);

#endif
