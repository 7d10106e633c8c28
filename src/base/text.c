/* SPDX-License-Identifier: Apache-2.0 */
/* A growable byte string with a sticky failure flag. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

void ki_text_init(struct ki_text *text, const struct ki_mem *mem)
{
    *text = (struct ki_text){.mem = mem};
}

void ki_text_finish(struct ki_text *text)
{
    ki_mem_free(text->mem, text->data);
    *text = (struct ki_text){.mem = text->mem};
}

/* Makes room for `more` bytes and the NUL. */
static bool reserve(struct ki_text *text, size_t more)
{
    size_t capacity = text->capacity == 0 ? 256 : text->capacity;
    char *data;

    if (text->failed || more >= SIZE_MAX / 4 - text->size) {
        text->failed = true;
        return false;
    }
    while (capacity < text->size + more + 1) {
        capacity *= 2;
    }
    if (capacity == text->capacity) {
        return true;
    }
    data = ki_mem_resize(text->mem, text->data, capacity);
    if (data == NULL) {
        text->failed = true;
        return false;
    }
    text->data = data;
    text->capacity = capacity;
    return true;
}

void ki_text_bytes(struct ki_text *text, const void *data, size_t size)
{
    if (!reserve(text, size)) {
        return;
    }
    if (size != 0) {
        memcpy(text->data + text->size, data, size);
    }
    text->size += size;
    text->data[text->size] = '\0';
}

void ki_text_string(struct ki_text *text, const char *string)
{
    ki_text_bytes(text, string, strlen(string));
}

void ki_text_format(struct ki_text *text, const char *format, ...)
{
    va_list args;
    int size;

    va_start(args, format);
    size = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (size < 0 || !reserve(text, (size_t)size)) {
        text->failed = true;
        return;
    }
    va_start(args, format);
    vsnprintf(text->data + text->size, (size_t)size + 1, format, args);
    va_end(args);
    text->size += (size_t)size;
}

bool ki_text_ok(const struct ki_text *text)
{
    return !text->failed;
}

void ki_text_hand_out(const struct ki_text *text, char *buf, size_t size_bytes,
                      size_t *out_bytes)
{
    if (size_bytes > 0) {
        size_t n = text->size < size_bytes ? text->size : size_bytes - 1;

        if (n > 0) {
            memcpy(buf, text->data, n);
        }
        buf[n] = '\0';
    }
    *out_bytes = text->size;
}
