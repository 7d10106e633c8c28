/* SPDX-License-Identifier: Apache-2.0 */
/* Options and environment -> checked copies. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/attr.h"
#include "base/status.h"
#include "options.h"

enum { KERNELS_MAX = 1 << 20 };

static enum kiln_status check_numbers(const struct kiln_options *options,
                                      struct kiln_error *err)
{
    if (options->max_kernels > KERNELS_MAX) {
        return ki_fail(err, KILN_E_ARGUMENT, "max_kernels = %u: expected at most %d",
                       (unsigned)options->max_kernels, KERNELS_MAX);
    }
    if (options->build_timeout_ms < 0) {
        return ki_fail(err, KILN_E_ARGUMENT, "build_timeout_ms = %d: expected 0 or more",
                       (int)options->build_timeout_ms);
    }
    if (options->retry_ms < 0) {
        return ki_fail(err, KILN_E_ARGUMENT, "retry_ms = %d: expected 0 or more",
                       (int)options->retry_ms);
    }
    return KILN_OK;
}

enum kiln_status ki_struct_read(const char *setter, const void *given, void *out,
                                size_t known, struct kiln_error *err)
{
    const unsigned char *bytes = given;
    size_t size;

    memset(out, 0, known);
    memcpy(out, &known, sizeof known);
    if (given == NULL) {
        return KILN_OK;
    }
    memcpy(&size, given, sizeof size);
    /* Whole fields only: half a pointer would be an address that nobody gave. */
    if (size < sizeof size || size > 65536 || size % sizeof size != 0) {
        return ki_fail(err, KILN_E_ARGUMENT,
                       "options.size = %zu: expected %zu: set it with %s", size, known,
                       setter);
    }
    for (size_t i = known; i < size; i++) {
        if (bytes[i] != 0) {
            return ki_fail(err, KILN_E_VERSION,
                           "options.size = %zu with byte %zu set: this kiln (%s) knows "
                           "%zu bytes",
                           size, i, KILN_VERSION, known);
        }
    }
    memcpy(out, given, size < known ? size : known);
    return KILN_OK;
}

enum kiln_status ki_options_read(const struct kiln_options *given,
                                 struct kiln_options *out, struct kiln_error *err)
{
    KI_TRY(ki_struct_read("KILN_OPTIONS_INIT", given, out, sizeof *out, err));
    return check_numbers(out, err);
}

/* An environment variable, where it may be believed; NULL when unset or empty. */
static const char *environment(const char *name)
{
    const char *value = secure_getenv(name);

    return value != NULL && value[0] != '\0' ? value : NULL;
}

/* "" in out and the reason in why when there is no default cache folder. */
static void default_cache_dir(char out[KI_PATH_BYTES], char *why, size_t why_bytes)
{
    const char *own = environment("KILN_CACHE_DIR");
    const char *xdg = environment("XDG_CACHE_HOME");
    const char *home = environment("HOME");
    int size;

    out[0] = '\0';
    if (own != NULL && own[0] != '/') {
        snprintf(why, why_bytes, "KILN_CACHE_DIR = \"%.256s\": expected an absolute path",
                 own);
        return;
    }
    if (own != NULL) {
        size = snprintf(out, KI_PATH_BYTES, "%s", own);
    } else if (xdg != NULL && xdg[0] == '/') {
        size = snprintf(out, KI_PATH_BYTES, "%s/kiln", xdg);
    } else if (home != NULL && home[0] == '/' && home[1] != '\0') {
        size = snprintf(out, KI_PATH_BYTES, "%s/.cache/kiln", home);
    } else {
        snprintf(why, why_bytes,
                 "HOME is not a usable folder: set KILN_CACHE_DIR to an absolute path");
        return;
    }
    if (size >= KI_PATH_BYTES) {
        out[0] = '\0';
        snprintf(why, why_bytes,
                 "the cache folder's path has %d bytes: expected below %d", size,
                 KI_PATH_BYTES);
    }
}

enum kiln_status kiln_default_cache_dir(char *buf, size_t size_bytes,
                                        struct kiln_error *err)
{
    char path[KI_PATH_BYTES];
    char why[512];

    default_cache_dir(path, why, sizeof why);
    if (path[0] == '\0') {
        return ki_fail(err, KILN_E_STORE, "no default cache folder: %s", why);
    }
    if (buf == NULL) {
        return ki_fail(err, KILN_E_ARGUMENT, "buf is NULL: expected an address");
    }
    if (strlen(path) >= size_bytes) {
        return ki_fail(err, KILN_E_ARGUMENT, "size_bytes = %zu: expected more than %zu",
                       size_bytes, strlen(path));
    }
    memcpy(buf, path, strlen(path) + 1);
    return KILN_OK;
}

static enum kiln_status copy_string(const char *text, const struct ki_mem *mem,
                                    char **out, struct kiln_error *err)
{
    if (text == NULL) {
        return KILN_OK;
    }
    *out = ki_mem_string(mem, text);
    return *out != NULL ? KILN_OK : ki_fail_memory(err, "options");
}

static enum kiln_status copy_path(const char *text, const char *name,
                                  const struct ki_mem *mem, char **out,
                                  struct kiln_error *err)
{
    if (text != NULL && text[0] != '/') {
        return ki_fail(err, KILN_E_ARGUMENT, "%s = \"%.256s\": expected an absolute path",
                       name, text);
    }
    return copy_string(text, mem, out, err);
}

static enum kiln_status copy_paths(const char *const *list, size_t n, const char *name,
                                   const struct ki_mem *mem, char ***out,
                                   struct kiln_error *err)
{
    if (n == 0) {
        return KILN_OK;
    }
    if (list == NULL) {
        return ki_fail(err, KILN_E_ARGUMENT, "%s is NULL: expected %zu paths", name, n);
    }
    *out = ki_mem_array(mem, n, sizeof **out);
    if (*out == NULL) {
        return ki_fail_memory(err, "options");
    }
    for (size_t i = 0; i < n; i++) {
        if (list[i] == NULL) {
            return ki_fail(err, KILN_E_ARGUMENT, "%s[%zu] is NULL: expected a path", name,
                           i);
        }
        KI_TRY(copy_path(list[i], name, mem, &(*out)[i], err));
    }
    return KILN_OK;
}

static enum kiln_status copy_cache_dir(struct ki_paths *paths,
                                       const struct kiln_options *options,
                                       const struct ki_mem *mem, char *no_cache_reason,
                                       struct kiln_error *err)
{
    char path[KI_PATH_BYTES];

    no_cache_reason[0] = '\0';
    if (options->no_disk) {
        return KILN_OK;
    }
    if (options->cache_dir != NULL) {
        return copy_path(options->cache_dir, "cache_dir", mem, &paths->cache_dir, err);
    }
    default_cache_dir(path, no_cache_reason, KILN_MESSAGE_BYTES);
    return path[0] != '\0' ? copy_string(path, mem, &paths->cache_dir, err) : KILN_OK;
}

static enum kiln_status copy_all(struct ki_paths *paths,
                                 const struct kiln_options *options,
                                 const struct ki_mem *mem, char *no_cache_reason,
                                 struct kiln_error *err)
{
    const char *nvrtc = options->nvrtc_path;
    const char *cuda_home = environment("CUDA_PATH");

    KI_TRY(copy_cache_dir(paths, options, mem, no_cache_reason, err));
    paths->n_read_only_dirs = options->no_disk ? 0 : options->n_read_only_dirs;
    KI_TRY(copy_paths(options->read_only_dirs, paths->n_read_only_dirs, "read_only_dirs",
                      mem, &paths->read_only_dirs, err));
    /* A wrong variable harms no call that needs no NVRTC: the search refuses it and says so. */
    KI_TRY(nvrtc != NULL
               ? copy_path(nvrtc, "nvrtc_path", mem, &paths->nvrtc_path, err)
               : copy_string(environment("KILN_NVRTC"), mem, &paths->nvrtc_path, err));
    paths->n_nvrtc_dirs = options->n_nvrtc_dirs;
    KI_TRY(copy_paths(options->nvrtc_dirs, options->n_nvrtc_dirs, "nvrtc_dirs", mem,
                      &paths->nvrtc_dirs, err));
    KI_TRY(copy_string(cuda_home != NULL ? cuda_home : environment("CUDA_HOME"), mem,
                       &paths->cuda_home, err));
    KI_TRY(copy_string(environment("CONDA_PREFIX"), mem, &paths->conda_prefix, err));
    return copy_string(environment("VIRTUAL_ENV"), mem, &paths->virtual_env, err);
}

enum kiln_status ki_paths_init(struct ki_paths *paths, const struct kiln_options *options,
                               const struct ki_mem *mem, char *no_cache_reason,
                               struct kiln_error *err)
{
    enum kiln_status status;

    *paths = (struct ki_paths){0};
    status = copy_all(paths, options, mem, no_cache_reason, err);
    if (status != KILN_OK) {
        ki_paths_finish(paths, mem);
    }
    return status;
}

static void free_list(char **list, size_t n, const struct ki_mem *mem)
{
    for (size_t i = 0; list != NULL && i < n; i++) {
        ki_mem_free(mem, list[i]);
    }
    ki_mem_free(mem, list);
}

void ki_paths_finish(struct ki_paths *paths, const struct ki_mem *mem)
{
    free_list(paths->read_only_dirs, paths->n_read_only_dirs, mem);
    free_list(paths->nvrtc_dirs, paths->n_nvrtc_dirs, mem);
    ki_mem_free(mem, paths->cache_dir);
    ki_mem_free(mem, paths->nvrtc_path);
    ki_mem_free(mem, paths->cuda_home);
    ki_mem_free(mem, paths->conda_prefix);
    ki_mem_free(mem, paths->virtual_env);
    *paths = (struct ki_paths){0};
}

/* Site-packages folders below a prefix, added to `wheels`; none found is no fault. */
static void add_site_packages(const char *prefix, const char *pattern, glob_t *wheels)
{
    char path[KI_PATH_BYTES];

    if (prefix == NULL ||
        snprintf(path, sizeof path, "%s%s", prefix, pattern) >= (int)sizeof path) {
        return;
    }
    (void)glob(path, wheels->gl_pathc > 0 ? GLOB_APPEND : 0, NULL, wheels);
}

void ki_paths_nvrtc_search(const struct ki_paths *paths, struct ki_nvrtc_search *out,
                           glob_t *wheels)
{
    *wheels = (glob_t){0};
    add_site_packages(paths->virtual_env, "/lib/python3*/site-packages/nvidia/..",
                      wheels);
    add_site_packages(paths->conda_prefix, "/lib/python3*/site-packages/nvidia/..",
                      wheels);
    add_site_packages("/usr", "/local/lib/python3*/dist-packages/nvidia/..", wheels);
    add_site_packages("/usr", "/lib/python3/dist-packages/nvidia/..", wheels);
    *out = (struct ki_nvrtc_search){
        .path = paths->nvrtc_path,
        .dirs = (const char *const *)paths->nvrtc_dirs,
        .n_dirs = paths->n_nvrtc_dirs,
        .cuda_home = paths->cuda_home,
        .conda_prefix = paths->conda_prefix,
    };
    for (size_t i = 0; i < wheels->gl_pathc && i < KI_COUNT_OF(out->python_prefixes);
         i++) {
        out->python_prefixes[i] = wheels->gl_pathv[i];
    }
}
