/* SPDX-License-Identifier: Apache-2.0 */
/* A temporary folder of a test, for a fixture. Whatever fails here ends the test program. */
#ifndef TESTS_SUPPORT_TMPDIR_H
#define TESTS_SUPPORT_TMPDIR_H

#include <stddef.h>

enum { TMPDIR_PATH = 512 };

struct tmpdir {
    char path[TMPDIR_PATH]; /* absolute, without links; mode 0700 */
};

void tmpdir_create(struct tmpdir *dir);
void tmpdir_remove(struct tmpdir *dir); /* with all that is in it; all-zero is fine */

/* "<dir>/<name>" in out, which is also returned. */
char *tmpdir_join(const struct tmpdir *dir, const char *name, char out[TMPDIR_PATH]);

/* How many files, less folders, lie below the path, at any depth, with names that end so. 0
 * too when there is no such folder. */
size_t tmpdir_count(const char *path, const char *suffix);

#endif
