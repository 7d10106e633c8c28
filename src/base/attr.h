/* SPDX-License-Identifier: Apache-2.0 */
/* Compiler attributes and the few macros that are allowed everywhere. */
#ifndef KI_BASE_ATTR_H
#define KI_BASE_ATTR_H

#if defined(__GNUC__)
#define KI_PRINTF(format_at, first_at)                                                   \
    __attribute__((format(printf, format_at, first_at)))
#define KI_COLD __attribute__((cold))
#else
#define KI_PRINTF(format_at, first_at)
#define KI_COLD
#endif

#define KI_COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/* Return a bad status at once. Only while the function holds nothing; else `goto out`. */
#define KI_TRY(call)                                                                     \
    do {                                                                                 \
        enum kiln_status ki_try_status = (call);                                         \
        if (ki_try_status != KILN_OK) {                                                  \
            return ki_try_status;                                                        \
        }                                                                                \
    } while (0)

#endif
