/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loads libnvrtc with the builtins that belong to it, and tries it before it is trusted.
 * Each place that fails is remembered with its reason. Knows nothing of kernels.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/attr.h"
#include "base/file.h"
#include "base/status.h"
#include "build/nvrtc.h"
#include "build/nvrtc_search.h"

enum { FLOOR_MAJOR = 12, FLOOR_MINOR = 4 };

static const char builtins_prefix[] = "libnvrtc-builtins.so.";

/* Needs a built-in declaration, so that it fails where the builtins are missing. */
static const char self_test_source[] = "extern \"C\" __global__ void kiln_self_test(int "
                                       "*out) { *out = (int)threadIdx.x; }\n";

struct attempt {
    struct ki_nvrtc *nvrtc;
    struct ki_text *report; /* may be NULL */
    struct ki_text faults;  /* places where something lies that cannot be used */
    struct ki_text missing; /* places where nothing lies */
};

/* ---- the function table ----------------------------------------------------------- */

struct function {
    const char *name;
    size_t offset; /* into struct ki_nvrtc_functions */
};

static const struct function functions[] = {
    {"nvrtcVersion", offsetof(struct ki_nvrtc_functions, version)},
    {"nvrtcGetErrorString", offsetof(struct ki_nvrtc_functions, get_error_string)},
    {"nvrtcGetNumSupportedArchs",
     offsetof(struct ki_nvrtc_functions, get_num_supported_archs)},
    {"nvrtcGetSupportedArchs", offsetof(struct ki_nvrtc_functions, get_supported_archs)},
    {"nvrtcCreateProgram", offsetof(struct ki_nvrtc_functions, create_program)},
    {"nvrtcDestroyProgram", offsetof(struct ki_nvrtc_functions, destroy_program)},
    {"nvrtcCompileProgram", offsetof(struct ki_nvrtc_functions, compile_program)},
    {"nvrtcGetCUBINSize", offsetof(struct ki_nvrtc_functions, get_cubin_size)},
    {"nvrtcGetCUBIN", offsetof(struct ki_nvrtc_functions, get_cubin)},
    {"nvrtcGetProgramLogSize", offsetof(struct ki_nvrtc_functions, get_program_log_size)},
    {"nvrtcGetProgramLog", offsetof(struct ki_nvrtc_functions, get_program_log)},
};

static enum kiln_status load_functions(struct ki_nvrtc *nvrtc, struct kiln_error *err)
{
    for (size_t i = 0; i < KI_COUNT_OF(functions); i++) {
        void *address = dlsym(nvrtc->library, functions[i].name);

        if (address == NULL) {
            return ki_fail(err, KILN_E_NVRTC_MISSING, "it has no %s", functions[i].name);
        }
        /* ISO C has no conversion between the two kinds of pointer. */
        memcpy((char *)&nvrtc->fn + functions[i].offset, &address, sizeof address);
    }
    return KILN_OK;
}

/* ---- asking and trying ------------------------------------------------------------ */

static enum kiln_status fail_call(const struct ki_nvrtc *nvrtc, nvrtcResult result,
                                  const char *call, struct kiln_error *err)
{
    return ki_fail_native(err, KILN_E_NVRTC_MISSING, KILN_ORIGIN_NVRTC, (int)result,
                          nvrtc->fn.get_error_string(result), "%s failed", call);
}

enum kiln_status ki_nvrtc_ask(struct ki_nvrtc *nvrtc, struct kiln_error *err)
{
    int archs[KI_NVRTC_ARCHS];
    int n = 0;
    nvrtcResult result = nvrtc->fn.version(&nvrtc->major, &nvrtc->minor);

    if (result != NVRTC_SUCCESS) {
        return fail_call(nvrtc, result, "nvrtcVersion", err);
    }
    if (nvrtc->major < FLOOR_MAJOR ||
        (nvrtc->major == FLOOR_MAJOR && nvrtc->minor < FLOOR_MINOR)) {
        return ki_fail(err, KILN_E_NVRTC_MISSING,
                       "it is version %d.%d: expected %d.%d or newer", nvrtc->major,
                       nvrtc->minor, FLOOR_MAJOR, FLOOR_MINOR);
    }
    result = nvrtc->fn.get_num_supported_archs(&n);
    if (result != NVRTC_SUCCESS) {
        return fail_call(nvrtc, result, "nvrtcGetNumSupportedArchs", err);
    }
    if (n < 1 || n > KI_NVRTC_ARCHS) {
        return ki_fail(err, KILN_E_NVRTC_MISSING, "it knows %d targets: expected 1 to %d",
                       n, KI_NVRTC_ARCHS);
    }
    result = nvrtc->fn.get_supported_archs(archs);
    if (result != NVRTC_SUCCESS) {
        return fail_call(nvrtc, result, "nvrtcGetSupportedArchs", err);
    }
    for (int i = 0; i < n; i++) {
        nvrtc->archs[i] =
            (struct ki_target){.major = archs[i] / 10, .minor = archs[i] % 10};
    }
    nvrtc->n_archs = n;
    return KILN_OK;
}

bool ki_nvrtc_supports(const struct ki_nvrtc *nvrtc, struct ki_target target)
{
    for (int i = 0; i < nvrtc->n_archs; i++) {
        if (ki_target_equal(nvrtc->archs[i], target)) {
            return true;
        }
    }
    return false;
}

char *ki_nvrtc_log(const struct ki_nvrtc *nvrtc, nvrtcProgram program,
                   const struct ki_mem *mem)
{
    size_t size = 0;
    char *log;

    if (nvrtc->fn.get_program_log_size(program, &size) != NVRTC_SUCCESS || size == 0 ||
        size == SIZE_MAX) {
        return NULL;
    }
    log = ki_mem_alloc(mem, size + 1);
    if (log != NULL && nvrtc->fn.get_program_log(program, log) != NVRTC_SUCCESS) {
        ki_mem_free(mem, log);
        return NULL;
    }
    return log;
}

void ki_nvrtc_error_line(const char *log, char out[KI_NVRTC_LINE])
{
    const char *line = log == NULL ? "" : log + strspn(log, " \r\n");
    const char *error = strstr(line, "error");

    if (error != NULL) {
        while (error > line && error[-1] != '\n') {
            error--;
        }
        line = error;
    }
    snprintf(out, KI_NVRTC_LINE, "%.*s", (int)strcspn(line, "\r\n"), line);
}

/* One compile of the self-test; its result, with the log's line in `line`. */
static nvrtcResult try_compile(const struct ki_nvrtc *nvrtc, bool no_cache,
                               char line[KI_NVRTC_LINE])
{
    char target[KI_TARGET_NAME];
    char arch[sizeof "--gpu-architecture=" + KI_TARGET_NAME];
    const char *options[] = {arch, "--no-cache"};
    nvrtcProgram program = NULL;
    size_t size = 0;
    nvrtcResult result =
        nvrtc->fn.create_program(&program, self_test_source, "kiln.cu", 0, NULL, NULL);

    line[0] = '\0';
    if (result != NVRTC_SUCCESS) {
        return result;
    }
    ki_target_name(nvrtc->archs[0], target);
    snprintf(arch, sizeof arch, "--gpu-architecture=%s", target);
    result = nvrtc->fn.compile_program(program, no_cache ? 2 : 1, options);
    if (result == NVRTC_SUCCESS) {
        result = nvrtc->fn.get_cubin_size(program, &size);
    }
    if (result != NVRTC_SUCCESS) {
        char *log = ki_nvrtc_log(nvrtc, program, NULL);

        ki_nvrtc_error_line(log, line);
        ki_mem_free(NULL, log);
    } else if (size == 0) {
        result = NVRTC_ERROR_INTERNAL_ERROR;
        snprintf(line, KI_NVRTC_LINE, "the cubin is empty");
    }
    (void)nvrtc->fn.destroy_program(&program);
    return result;
}

enum kiln_status ki_nvrtc_self_test(struct ki_nvrtc *nvrtc, struct kiln_error *err)
{
    char line[KI_NVRTC_LINE];
    nvrtcResult result = try_compile(nvrtc, true, line);

    nvrtc->knows_no_cache = result == NVRTC_SUCCESS;
    if (result == NVRTC_ERROR_INVALID_OPTION) {
        result = try_compile(nvrtc, false, line);
    }
    if (result != NVRTC_SUCCESS) {
        return ki_fail_native(err, KILN_E_NVRTC_MISSING, KILN_ORIGIN_NVRTC, (int)result,
                              nvrtc->fn.get_error_string(result),
                              "its self-test does not compile: %s", line);
    }
    return KILN_OK;
}

/* ---- loading ---------------------------------------------------------------------- */

/* What lies in the folder in place of the builtins that were wanted. */
static void list_builtins(const char *folder, struct ki_text *note)
{
    struct ki_file_names names = {0};
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    size_t n_found = 0;

    if (fd >= 0 && ki_file_list(NULL, fd, NULL, &names) == 0) {
        for (size_t i = 0; i < names.n; i++) {
            if (strncmp(names.names[i], builtins_prefix, strlen(builtins_prefix)) == 0) {
                ki_text_format(note, "%s%s", n_found++ == 0 ? ", found " : " ",
                               names.names[i]);
            }
        }
    }
    if (n_found == 0) {
        ki_text_string(note, ", found none");
    }
    ki_file_names_finish(&names, NULL);
    if (fd >= 0) {
        (void)close(fd);
    }
}

/*
 * libnvrtc asks the system for its builtins by name and does not look beside itself; loaded
 * ahead by path, the right ones are found. `note` says what is wrong when they are not there.
 */
static void preload_builtins(struct ki_nvrtc *nvrtc, const char *loaded_from,
                             struct ki_text *note)
{
    const char *const files[] = {nvrtc->path, loaded_from};

    for (size_t i = 0; i < KI_COUNT_OF(files) && nvrtc->builtins == NULL; i++) {
        const char *slash = strrchr(files[i], '/');
        char path[KI_NVRTC_PATH + 64];

        if (slash != NULL) {
            snprintf(path, sizeof path, "%.*s/%s%d.%d", (int)(slash - files[i]), files[i],
                     builtins_prefix, nvrtc->major, nvrtc->minor);
            nvrtc->builtins = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        }
    }
    if (nvrtc->builtins == NULL) {
        const char *slash = strrchr(nvrtc->path, '/');
        char folder[KI_NVRTC_PATH];

        snprintf(folder, sizeof folder, "%.*s",
                 slash == NULL ? 0 : (int)(slash - nvrtc->path), nvrtc->path);
        ki_text_format(note, "wanted %s%d.%d in %s", builtins_prefix, nvrtc->major,
                       nvrtc->minor, folder);
        list_builtins(folder, note);
    }
}

/* Where the library came from: its real path in nvrtc->path, and as the loader saw it. */
static void find_path(struct ki_nvrtc *nvrtc, char loaded_from[KI_NVRTC_PATH])
{
    char resolved[PATH_MAX];
    Dl_info info = {0};
    void *address;

    memcpy(&address, &nvrtc->fn.version, sizeof address);
    loaded_from[0] = '\0';
    if (dladdr(address, &info) != 0 && info.dli_fname != NULL) {
        snprintf(loaded_from, KI_NVRTC_PATH, "%s", info.dli_fname);
    }
    snprintf(nvrtc->path, sizeof nvrtc->path, "%.*s", KI_NVRTC_PATH - 1,
             realpath(loaded_from, resolved) != NULL ? resolved : loaded_from);
}

/* Everything from the open library to the passed self-test. */
static enum kiln_status examine(struct ki_nvrtc *nvrtc, struct ki_text *note,
                                struct kiln_error *err)
{
    char loaded_from[KI_NVRTC_PATH];

    KI_TRY(load_functions(nvrtc, err));
    find_path(nvrtc, loaded_from);
    KI_TRY(ki_nvrtc_ask(nvrtc, err));
    preload_builtins(nvrtc, loaded_from, note);
    return ki_nvrtc_self_test(nvrtc, err);
}

KI_PRINTF(3, 4)
static void remember(struct attempt *attempt, struct ki_text *where, const char *format,
                     ...)
{
    char line[KI_NVRTC_PATH + KILN_MESSAGE_BYTES];
    va_list args;

    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    if (where != NULL) {
        ki_text_format(where, "%s%s", where->size == 0 ? "" : "; ", line);
    }
    if (attempt->report != NULL) {
        ki_text_format(attempt->report, "%s\n", line);
    }
}

static void remember_unopened(struct attempt *attempt, const struct ki_nvrtc_place *place)
{
    const char *reason = dlerror();
    bool there = place->path[0] == '/' && access(place->path, F_OK) == 0;

    if (place->loaded) {
        remember(attempt, NULL, "%s: not loaded in this process yet", place->path);
        return;
    }
    if (there) {
        remember(attempt, &attempt->faults, "%s: %s", place->path,
                 reason != NULL ? reason : "cannot be loaded");
        return;
    }
    remember(attempt, &attempt->missing, "%s: not there", place->path);
}

/* Keeps the library in the process for good, closed or not: unloaded it leaves its memory
 * behind, and the next kiln would read its 100 MB again. */
static void pin(const struct ki_nvrtc_place *place)
{
    void *again =
        dlopen(place->path, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD | RTLD_NODELETE);

    if (again != NULL) {
        (void)dlclose(again);
    }
}

static bool try_place(void *user, const struct ki_nvrtc_place *place)
{
    struct attempt *attempt = user;
    struct ki_nvrtc *nvrtc = attempt->nvrtc;
    struct kiln_error err = {0};
    struct ki_text note;
    bool ok;

    nvrtc->library =
        dlopen(place->path, RTLD_NOW | RTLD_LOCAL | (place->loaded ? RTLD_NOLOAD : 0));
    if (nvrtc->library == NULL) {
        remember_unopened(attempt, place);
        return false;
    }
    ki_text_init(&note, attempt->faults.mem);
    ok = examine(nvrtc, &note, &err) == KILN_OK;
    if (ok) {
        pin(place);
        remember(attempt, NULL, "%s: NVRTC %d.%d%s", nvrtc->path, nvrtc->major,
                 nvrtc->minor, nvrtc->builtins != NULL ? "" : ", builtins elsewhere");
    } else {
        remember(attempt, &attempt->faults, "%s: %s%s%s", place->path, err.message,
                 note.size == 0 ? "" : "; ", note.size == 0 ? "" : note.data);
        ki_nvrtc_close(nvrtc);
    }
    ki_text_finish(&note);
    return ok;
}

static enum kiln_status fail_missing(const struct attempt *attempt,
                                     struct kiln_error *err)
{
    return ki_fail(err, KILN_E_NVRTC_MISSING, "no usable NVRTC: %s%s%s",
                   attempt->faults.size != 0 ? attempt->faults.data : "",
                   attempt->faults.size != 0 && attempt->missing.size != 0 ? "; " : "",
                   attempt->missing.size != 0 ? attempt->missing.data : "");
}

enum kiln_status ki_nvrtc_open(struct ki_nvrtc *nvrtc,
                               const struct ki_nvrtc_search *search,
                               struct ki_text *report, struct kiln_error *err)
{
    struct attempt attempt = {.nvrtc = nvrtc, .report = report};
    const struct ki_mem *mem = report != NULL ? report->mem : NULL;
    enum kiln_status status = KILN_OK;
    bool found;

    *nvrtc = (struct ki_nvrtc){0};
    if (search->path != NULL && search->path[0] != '/') {
        return ki_fail(err, KILN_E_NVRTC_MISSING,
                       "NVRTC path \"%.400s\" is relative: expected an absolute path",
                       search->path);
    }
    ki_text_init(&attempt.faults, mem);
    ki_text_init(&attempt.missing, mem);
    if (search->path != NULL) {
        found = try_place(&attempt, &(struct ki_nvrtc_place){.path = search->path});
    } else {
        found = ki_nvrtc_search_places(search, try_place, &attempt);
    }
    if (!found) {
        status = fail_missing(&attempt, err);
    }
    ki_text_finish(&attempt.faults);
    ki_text_finish(&attempt.missing);
    return status;
}

void ki_nvrtc_close(struct ki_nvrtc *nvrtc)
{
    if (nvrtc->library != NULL) {
        (void)dlclose(nvrtc->library);
    }
    if (nvrtc->builtins != NULL) {
        (void)dlclose(nvrtc->builtins);
    }
    *nvrtc = (struct ki_nvrtc){0};
}
