/* SPDX-License-Identifier: Apache-2.0 */
/* Whole files in and out, and paths. */
#ifndef CLI_TEXT_FILE_H
#define CLI_TEXT_FILE_H

#include <jansson.h>
#include <stddef.h>

/* Read a whole file; *out is the caller's, for free, and ends in a NUL beyond *out_bytes.
 * Reported. */
int cli_read_file(const char *path, char **out, size_t *out_bytes);

/* As cli_read_file, for JSON: a text that would take too much memory once parsed is
 * refused. */
int cli_read_json_text(const char *path, char **out, size_t *out_bytes);

/* Read a file that is strict JSON, no key twice; *out is the caller's. Reported. */
int cli_read_json(const char *path, json_t **out);

/* Replace a file in one step: readers see the old text or the new one. Links stay, and
 * lead to it; what is no regular file is written to. Reported. */
int cli_write_file(const char *path, const char *text, size_t size_bytes);

/* The path from the root, with no "/" or "/." at its end; the caller frees it; NULL:
 * out of memory or no working folder, reported. */
char *cli_absolute_path(const char *path);

#endif
