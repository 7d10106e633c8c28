/* SPDX-License-Identifier: Apache-2.0 */
/* Files, folders and other programs, for building and running programs of --on cpu. */
#ifndef CLI_CPU_TOOLS_H
#define CLI_CPU_TOOLS_H

#include <stdbool.h>
#include <stddef.h>

#include "report.h"

/* All strings are the caller's to free; NULL: no memory, or what the name says failed with
 * errno. */
char *cpu_format(const char *format, ...) CLI_PRINTF(1, 2);
char *cpu_read_file(const char *path);
bool cpu_write_file(const char *path, const char *text, size_t size_bytes);
bool cpu_make_folders(const char *path);
void cpu_remove_folder(const char *path);
bool cpu_has_default_cache(void);

/* A program's path, in PATH unless the name has a slash. */
char *cpu_find_program(const char *name);

/* What a program prints; NULL: it failed. */
char *cpu_output_of(const char *const *words);

/* Run a program in a folder with words between spaces; all it prints goes to `log`. */
bool cpu_run_in(const char *folder, const char *program, const char *words,
                const char *log);

#endif
