/* SPDX-License-Identifier: Apache-2.0 */
/* What kiln_create was told: options and environment, checked and copied. The only reader of the
 * environment. */
#ifndef KI_OPTIONS_H
#define KI_OPTIONS_H

#include <glob.h>
#include <stddef.h>

#include "kiln/kiln.h"

#include "base/mem.h"
#include "build/nvrtc.h"

enum { KI_PATH_BYTES = 4096 };

/* Copies, owned; NULL: not given. */
struct ki_paths {
    char *cache_dir; /* NULL: no disk layer */
    char **read_only_dirs;
    size_t n_read_only_dirs;
    char *nvrtc_path;
    char **nvrtc_dirs;
    size_t n_nvrtc_dirs;
    char *cuda_home;
    char *conda_prefix;
    char *virtual_env;
};

/*
 * A caller's struct that begins with its size, as this kiln knows it, `known` bytes: the smaller of
 * the two sizes is copied, a larger struct must be zero beyond. NULL: zeros. `setter` is what sets
 * the size.
 */
enum kiln_status ki_struct_read(const char *setter, const void *given, void *out,
                                size_t known, struct kiln_error *err);

/* The same of kiln_create's, with its numbers checked. */
enum kiln_status ki_options_read(const struct kiln_options *given,
                                 struct kiln_options *out, struct kiln_error *err);

/* `no_cache_reason`, of KILN_MESSAGE_BYTES, gets why there is no cache folder; else "". */
enum kiln_status ki_paths_init(struct ki_paths *paths, const struct kiln_options *options,
                               const struct ki_mem *mem, char *no_cache_reason,
                               struct kiln_error *err);
void ki_paths_finish(struct ki_paths *paths, const struct ki_mem *mem);

/* Where NVRTC may lie. `wheels` holds what `out` borrows; end it with globfree. */
void ki_paths_nvrtc_search(const struct ki_paths *paths, struct ki_nvrtc_search *out,
                           glob_t *wheels);

#endif
