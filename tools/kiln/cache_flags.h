/* SPDX-License-Identifier: Apache-2.0 */
/* --cache: the folder, or folders, that a command looks at. */
#ifndef CLI_CACHE_FLAGS_H
#define CLI_CACHE_FLAGS_H

#include <stddef.h>

/* The folder of --cache, or the default one, from the root; the caller frees it.
 * Reported. */
int cli_cache_dir(const char *flag, char **out);

struct cli_cache_dirs {
    char **items; /* from the root; owned */
    size_t n;
};

/* As cli_cache_dir, for folders with colons between. */
int cli_cache_dirs(const char *flag, struct cli_cache_dirs *out);
void cli_cache_dirs_finish(struct cli_cache_dirs *dirs);

#endif
