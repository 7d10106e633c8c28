/* SPDX-License-Identifier: Apache-2.0 */
/* One line per failure. Texts may quote files and arguments, so control characters are
 * replaced before anything reaches a terminal. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report.h"

/* Of a message; the middle of a longer one is left out, so that what is wrong with a
 * huge argument is still said. */
enum { LINE_BYTES = 4096, END_BYTES = 1024 };

static void shorten(char *text, size_t len)
{
    static const char gap[] = " ... ";
    char *end = text + LINE_BYTES - END_BYTES;

    if (len <= LINE_BYTES) {
        return;
    }
    memcpy(end - sizeof gap + 1, gap, sizeof gap - 1);
    memmove(end, text + len - END_BYTES, END_BYTES + 1);
}

static void print_error(const char *format, va_list args)
{
    char *text = NULL;
    int len = vasprintf(&text, format, args);

    if (len < 0) {
        (void)fputs("kiln: error: out of memory\n", stderr);
        return;
    }
    shorten(text, (size_t)len);
    for (char *c = text; *c != '\0'; c++) {
        if ((unsigned char)*c < 0x20 || *c == 0x7f) {
            *c = ' ';
        }
    }
    (void)fprintf(stderr, "kiln: error: %s\n", text);
    free(text);
}

int cli_failed(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    print_error(format, args);
    va_end(args);
    return CLI_FAILED;
}

int cli_wrong(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    print_error(format, args);
    va_end(args);
    return CLI_WRONG;
}

static bool is_about_a_value(enum kiln_status status)
{
    return status == KILN_E_ARGUMENT || status == KILN_E_SHAPE ||
           status == KILN_E_TARGET || status == KILN_E_UNSUPPORTED;
}

int cli_report(const char *prefix, const struct kiln_error *err, bool blame_call)
{
    const char *separator = *prefix == '\0' ? "" : ": ";

    if (blame_call && is_about_a_value(err->status)) {
        return cli_wrong("%s%s%s", prefix, separator, err->message);
    }
    return cli_failed("%s%s%s", prefix, separator, err->message);
}

int cli_report_file(const char *path, const struct kiln_error *err)
{
    bool is_named = strncmp(err->message, path, strlen(path)) == 0;

    return cli_report(is_named ? "" : path, err, false);
}

void cli_append(char *buf, size_t size_bytes, const char *format, ...)
{
    size_t len = strlen(buf);
    va_list args;

    va_start(args, format);
    (void)vsnprintf(buf + len, size_bytes - len, format, args);
    va_end(args);
}

/* Why a write of before failed was lost with its errno; the next one fails alike. */
static void fail_again(void)
{
    clearerr(stdout);
    errno = 0;
    (void)putchar('\n');
    (void)fflush(stdout);
}

int cli_close_output(int status)
{
    int was_bad = ferror(stdout);

    errno = 0;
    if (fflush(stdout) == 0 && !was_bad) {
        return status;
    }
    if (errno == 0) {
        fail_again();
    }
    (void)cli_failed("standard output: %s",
                     errno != 0 ? strerror(errno) : "a write failed");
    return status == CLI_DONE ? CLI_FAILED : status;
}

json_t *cli_json_text(const char *text)
{
    json_t *value = json_string(text);
    char *copy = value == NULL ? strdup(text) : NULL;

    if (copy == NULL) {
        return value;
    }
    for (char *c = copy; *c != '\0'; c++) {
        *c = (unsigned char)*c < 0x80 ? *c : '?';
    }
    value = json_string(copy);
    free(copy);
    return value;
}

int cli_print_json(json_t *value)
{
    char *text = value != NULL ? json_dumps(value, JSON_REAL_PRECISION(6)) : NULL;

    json_decref(value);
    if (text == NULL) {
        return cli_failed("out of memory");
    }
    (void)puts(text);
    free(text);
    return CLI_DONE;
}
