/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source -> cubin. One NVRTC program lives for one call and is destroyed on every path. Knows
 * no cache, no driver and nothing of what the source computes.
 */
#include <stdio.h>

#include "base/attr.h"
#include "base/status.h"
#include "build/compile.h"

enum { OPTIONS_MAX = 16, IMAGE_BYTES_MAX = 1 << 28 };

/* The same in every process and folder: it ends up in messages only, never in the cubin. */
static const char program_name[] = "kiln.cu";

struct compile {
    const struct ki_nvrtc *nvrtc;
    const struct ki_compile_job *job;
    const struct ki_mem *mem;
    const struct ki_log *log;
    nvrtcProgram program;
};

static enum kiln_status check_target(const struct compile *compile,
                                     struct kiln_error *err)
{
    const struct ki_nvrtc *nvrtc = compile->nvrtc;
    char wanted[KI_TARGET_NAME];
    char newest[KI_TARGET_NAME];

    if (ki_nvrtc_supports(nvrtc, compile->job->target)) {
        return KILN_OK;
    }
    ki_target_name(compile->job->target, wanted);
    ki_target_name(nvrtc->archs[nvrtc->n_archs > 0 ? nvrtc->n_archs - 1 : 0], newest);
    return ki_fail(
        err, KILN_E_TARGET,
        "target %s is not one that NVRTC %d.%d at %.600s compiles for: its newest "
        "is %s",
        wanted, nvrtc->major, nvrtc->minor, nvrtc->path, newest);
}

/* A failed call with the program's log: whole to the log callback, its first error line into
 * err. */
static enum kiln_status fail_call(const struct compile *compile, nvrtcResult result,
                                  const char *call, struct kiln_error *err)
{
    const struct ki_nvrtc *nvrtc = compile->nvrtc;
    char target[KI_TARGET_NAME];
    char line[KI_NVRTC_LINE];
    char *log = NULL;

    if (compile->program != NULL) {
        log = ki_nvrtc_log(nvrtc, compile->program, compile->mem);
    }
    if (log != NULL && log[0] != '\0') {
        ki_log_text(compile->log, KILN_LOG_ERROR, log);
    }
    ki_nvrtc_error_line(log, line);
    ki_mem_free(compile->mem, log);
    ki_target_name(compile->job->target, target);
    return ki_fail_native(err, KILN_E_COMPILE, KILN_ORIGIN_NVRTC, (int)result,
                          nvrtc->fn.get_error_string(result),
                          "%s of %s for %s by NVRTC %d.%d: %s", call,
                          compile->job->entry_name, target, nvrtc->major, nvrtc->minor,
                          line[0] != '\0' ? line : "it gives no log");
}

static enum kiln_status run_compiler(const struct compile *compile,
                                     struct kiln_error *err)
{
    char target[KI_TARGET_NAME];
    char arch[sizeof "--gpu-architecture=" + KI_TARGET_NAME];
    const char *options[OPTIONS_MAX];
    int n = 0;
    nvrtcResult result;

    ki_target_name(compile->job->target, target);
    snprintf(arch, sizeof arch, "--gpu-architecture=%s", target);
    options[n++] = arch;
    if (compile->nvrtc->knows_no_cache) {
        options[n++] = "--no-cache";
    }
    for (size_t i = 0; compile->job->options[i] != NULL; i++) {
        if (n == OPTIONS_MAX) {
            return ki_fail(err, KILN_E_INTERNAL, "more than %d compiler options",
                           OPTIONS_MAX);
        }
        options[n++] = compile->job->options[i];
    }
    result = compile->nvrtc->fn.compile_program(compile->program, n, options);
    return result == NVRTC_SUCCESS
               ? KILN_OK
               : fail_call(compile, result, "nvrtcCompileProgram", err);
}

/* A virtual target compiles to nothing, with success; so size 0 is a failure. */
static enum kiln_status take_image(const struct compile *compile, struct ki_blob *image,
                                   struct kiln_error *err)
{
    const struct ki_nvrtc_functions *fn = &compile->nvrtc->fn;
    size_t size = 0;
    nvrtcResult result = fn->get_cubin_size(compile->program, &size);

    if (result != NVRTC_SUCCESS) {
        return fail_call(compile, result, "nvrtcGetCUBINSize", err);
    }
    if (size == 0 || size > IMAGE_BYTES_MAX) {
        return ki_fail(err, KILN_E_COMPILE,
                       "NVRTC %d.%d made a cubin of %zu bytes of %s: expected 1 to %d",
                       compile->nvrtc->major, compile->nvrtc->minor, size,
                       compile->job->entry_name, IMAGE_BYTES_MAX);
    }
    image->data = ki_mem_alloc(compile->mem, size);
    if (image->data == NULL) {
        return ki_fail_memory(err, "a cubin");
    }
    image->size = size;
    result = fn->get_cubin(compile->program, (char *)image->data);
    return result == NVRTC_SUCCESS ? KILN_OK
                                   : fail_call(compile, result, "nvrtcGetCUBIN", err);
}

static enum kiln_status build_image(struct compile *compile, struct ki_blob *image,
                                    struct kiln_error *err)
{
    const struct ki_nvrtc_functions *fn = &compile->nvrtc->fn;
    enum kiln_status status;
    nvrtcResult result = fn->create_program(&compile->program, compile->job->source,
                                            program_name, 0, NULL, NULL);

    if (result != NVRTC_SUCCESS) {
        compile->program = NULL;
        return fail_call(compile, result, "nvrtcCreateProgram", err);
    }
    status = run_compiler(compile, err);
    if (status == KILN_OK) {
        status = take_image(compile, image, err);
    }
    (void)fn->destroy_program(&compile->program);
    return status;
}

enum kiln_status ki_compile(const struct ki_nvrtc *nvrtc,
                            const struct ki_compile_job *job, const struct ki_mem *mem,
                            const struct ki_log *log, struct ki_cubin *out,
                            struct kiln_error *err)
{
    struct compile compile = {.nvrtc = nvrtc, .job = job, .mem = mem, .log = log};
    struct ki_cubin cubin = {
        .nvrtc_major = nvrtc->major,
        .nvrtc_minor = nvrtc->minor,
        .threads = job->threads,
    };
    enum kiln_status status;

    KI_TRY(check_target(&compile, err));
    snprintf(cubin.entry_name, sizeof cubin.entry_name, "%s", job->entry_name);
    status = build_image(&compile, &cubin.image, err);
    if (status == KILN_OK) {
        status = ki_cubin_inspect(&cubin, job->target, KILN_E_COMPILE, err);
    }
    if (status == KILN_OK) {
        *out = cubin;
        cubin = (struct ki_cubin){0};
    }
    ki_cubin_finish(&cubin, mem);
    return status;
}
