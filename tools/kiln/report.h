/* SPDX-License-Identifier: Apache-2.0 */
/* How the command line says that something failed: one line on stderr, and an exit
 * status. */
#ifndef CLI_REPORT_H
#define CLI_REPORT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "kiln/status.h"

enum cli_exit {
    CLI_DONE = 0,   /* it did what was asked */
    CLI_FAILED = 1, /* it ran, and something failed or differed */
    CLI_WRONG = 2,  /* the call itself was wrong */
};

#if defined(__GNUC__)
#define CLI_PRINTF(text, first) __attribute__((format(printf, text, first)))
#else
#define CLI_PRINTF(text, first)
#endif

/* Print "kiln: error: ..." as one line, whatever the text holds. Returns CLI_FAILED. */
int cli_failed(const char *format, ...) CLI_PRINTF(1, 2);

/* As cli_failed, for a call that is wrong. Returns CLI_WRONG. */
int cli_wrong(const char *format, ...) CLI_PRINTF(1, 2);

/*
 * Report a library failure behind a prefix. `blame_call`: statuses that say that a value
 * was not acceptable came from the command's own arguments, not from a file.
 */
int cli_report(const char *prefix, const struct kiln_error *err, bool blame_call);

/* Report what is wrong with a file, which the message may name already. */
int cli_report_file(const char *path, const struct kiln_error *err);

/* Append to a NUL-terminated buffer; what does not fit is cut. */
void cli_append(char *buf, size_t size_bytes, const char *format, ...) CLI_PRINTF(3, 4);

/* Flush stdout; a write that was lost turns `status` into CLI_FAILED with a message. */
int cli_close_output(int status);

/* Text that may quote a path, whose bytes may be anything: as it is where it is UTF-8, else
 * with '?' for each byte beyond ASCII. NULL: out of memory. Owner: the caller. */
json_t *cli_json_text(const char *text);

/* Print a JSON value as one line, and drop it; NULL is out of memory. */
int cli_print_json(json_t *value);

#endif
