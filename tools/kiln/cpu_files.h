/* SPDX-License-Identifier: Apache-2.0 */
/* The files of simt/, carried in the program; cpu_files.c is generated. */
#ifndef CLI_CPU_FILES_H
#define CLI_CPU_FILES_H

#include <stddef.h>

struct cpu_file {
    const char *name, *text;
    size_t size_bytes;
};

extern const struct cpu_file cpu_files[];
extern const size_t cpu_n_files;
extern const char cpu_files_digest[]; /* of all names and texts, hexadecimal */

#endif
