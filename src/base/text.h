/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A growable byte string. Failure is sticky: after one failed append all others do
 * nothing, and ki_text_ok says so once at the end. `data` always ends in a NUL that
 * `size` does not count.
 */
#ifndef KI_BASE_TEXT_H
#define KI_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/mem.h"

struct ki_text {
    const struct ki_mem *mem;
    char *data; /* owned; NULL until the first append */
    size_t size;
    size_t capacity;
    bool failed;
};

void ki_text_init(struct ki_text *text, const struct ki_mem *mem);
void ki_text_finish(struct ki_text *text); /* all-zero is fine */
void ki_text_bytes(struct ki_text *text, const void *data, size_t size);
void ki_text_string(struct ki_text *text, const char *string);
KI_PRINTF(2, 3)
void ki_text_format(struct ki_text *text, const char *format, ...);
bool ki_text_ok(const struct ki_text *text);

/* As snprintf: what fits goes into buf, ending in a NUL; the whole length is told either way.
 * buf may be NULL when size_bytes is 0. */
void ki_text_hand_out(const struct ki_text *text, char *buf, size_t size_bytes,
                      size_t *out_bytes);

#endif
