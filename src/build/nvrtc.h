/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finding and loading libnvrtc with its builtins, and its function table. Loaded once,
 * RTLD_LOCAL, never linked, and one that works is never unloaded. Knows nothing of kernels.
 */
#ifndef KI_BUILD_NVRTC_H
#define KI_BUILD_NVRTC_H

#include <stdbool.h>
#include <nvrtc.h>

#include "kiln/status.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"
#include "plan/target.h"

struct ki_nvrtc_functions {
    nvrtcResult (*version)(int *major, int *minor);
    const char *(*get_error_string)(nvrtcResult result);
    nvrtcResult (*get_num_supported_archs)(int *n);
    nvrtcResult (*get_supported_archs)(int *archs);
    nvrtcResult (*create_program)(nvrtcProgram *program, const char *src,
                                  const char *name, int n_headers,
                                  const char *const *headers,
                                  const char *const *include_names);
    nvrtcResult (*destroy_program)(nvrtcProgram *program);
    nvrtcResult (*compile_program)(nvrtcProgram program, int n_options,
                                   const char *const *options);
    nvrtcResult (*get_cubin_size)(nvrtcProgram program, size_t *size);
    nvrtcResult (*get_cubin)(nvrtcProgram program, char *cubin);
    nvrtcResult (*get_program_log_size)(nvrtcProgram program, size_t *size);
    nvrtcResult (*get_program_log)(nvrtcProgram program, char *log);
};

enum { KI_NVRTC_PATH = 1024, KI_NVRTC_ARCHS = 64 };

struct ki_nvrtc {
    struct ki_nvrtc_functions fn; /* all zeros: not open */
    void *library;                /* dlopen handles, owned */
    void *builtins;
    char path[KI_NVRTC_PATH]; /* of the loaded library */
    int major, minor;
    int n_archs;
    struct ki_target archs[KI_NVRTC_ARCHS];
    bool
        knows_no_cache; /* accepts --no-cache: it then opens no libcuda, writes no ~/.nv */
};

/* Where to look; every string is borrowed and may be NULL. */
struct ki_nvrtc_search {
    const char *path;        /* KILN_NVRTC or option: absolute; failing is an error */
    const char *const *dirs; /* the caller's folders */
    size_t n_dirs;
    const char *cuda_home; /* $CUDA_PATH or $CUDA_HOME */
    const char *conda_prefix;
    const char *python_prefixes[4]; /* site-packages that may hold NVIDIA's wheels */
};

/*
 * Opens the first one that loads, is 12.4 or newer and compiles a self-test. A failure is
 * KILN_E_NVRTC_MISSING; `report`, when not NULL, gets each path tried with its reason, a
 * line each, on success too.
 */
enum kiln_status ki_nvrtc_open(struct ki_nvrtc *nvrtc,
                               const struct ki_nvrtc_search *search,
                               struct ki_text *report, struct kiln_error *err);
void ki_nvrtc_close(struct ki_nvrtc *nvrtc); /* all-zero is fine */
bool ki_nvrtc_supports(const struct ki_nvrtc *nvrtc, struct ki_target target);

/* The two halves of ki_nvrtc_open that need only `fn`: version and targets, then a compile
 * that also finds out knows_no_cache. */
enum kiln_status ki_nvrtc_ask(struct ki_nvrtc *nvrtc, struct kiln_error *err);
enum kiln_status ki_nvrtc_self_test(struct ki_nvrtc *nvrtc, struct kiln_error *err);

/* A program's log, owned by the caller; NULL when NVRTC gives none or memory is out. */
char *ki_nvrtc_log(const struct ki_nvrtc *nvrtc, nvrtcProgram program,
                   const struct ki_mem *mem);

/* The line of a log (may be NULL) that says most: the first with an error, else the first. */
enum { KI_NVRTC_LINE = 512 };
void ki_nvrtc_error_line(const char *log, char out[KI_NVRTC_LINE]);

#endif
