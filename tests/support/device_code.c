/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "build/compile.h"
#include "support/device_code.h"

enum { PATH_BYTES = 4096, DEFINE_BYTES = 512, N_DEFINES = 4, N_FOLDERS = 4 };

struct device_code {
    const char *file; /* below tests/ */
    const char *entry_name;
    char defines[N_DEFINES][DEFINE_BYTES]; /* "-DNAME=VALUE"; empty: no more */
};

void device_code_open_nvrtc(struct ki_nvrtc *out)
{
    const struct ki_nvrtc_search search = {
        .path = getenv("KILN_NVRTC"),
        .cuda_home = getenv("CUDA_HOME"),
        .conda_prefix = getenv("CONDA_PREFIX"),
    };
    struct kiln_error err = {0};

    if (ki_nvrtc_open(out, &search, NULL, &err) != KILN_OK) {
        fail_msg("%s", err.message);
    }
}

static void print_log(void *user, enum kiln_log_level level, const char *text)
{
    (void)user;
    if (level == KILN_LOG_ERROR) {
        print_error("%s\n", text);
    }
}

/* One include is the whole source, so that messages name the file and its line. */
static enum kiln_status compile(const struct ki_nvrtc *nvrtc, struct ki_target target,
                                const struct device_code *code, struct ki_cubin *out,
                                struct kiln_error *err)
{
    static const char *const below[N_FOLDERS] = {"/gpu/replay/std", "/../src",
                                                 "/../include", ""};
    const struct ki_log log = {.fn = print_log, .level = KILN_LOG_ERROR};
    const char *tests = getenv("KILN_TEST_DATA");
    char source[PATH_BYTES], folders[N_FOLDERS][PATH_BYTES];
    const char *options[N_FOLDERS + N_DEFINES + 3] = {
        "--std=c++20", "--device-as-default-execution-space"};
    size_t n = 2;

    assert_non_null(tests);
    snprintf(source, sizeof source, "#include \"%s\"\n", code->file);
    for (size_t i = 0; i < N_FOLDERS; i++) {
        snprintf(folders[i], sizeof folders[i], "-I%s%s", tests, below[i]);
        options[n++] = folders[i];
    }
    for (size_t i = 0; i < N_DEFINES && code->defines[i][0] != '\0'; i++) {
        options[n++] = code->defines[i];
    }
    const struct ki_compile_job job = {
        .source = source,
        .entry_name = code->entry_name,
        .target = target,
        .options = options,
    };
    return ki_compile(nvrtc, &job, NULL, &log, out, err);
}

enum kiln_status device_code_compile(const struct ki_nvrtc *nvrtc,
                                     struct ki_target target, const char *file,
                                     const char *entry_name, struct ki_cubin *out,
                                     struct kiln_error *err)
{
    const struct device_code code = {.file = file, .entry_name = entry_name};

    return compile(nvrtc, target, &code, out, err);
}

enum kiln_status device_code_compile_reference(const struct ki_nvrtc *nvrtc,
                                               struct ki_target target, enum kiln_op op,
                                               const struct kiln_shape *shape,
                                               struct ki_cubin *out,
                                               struct kiln_error *err)
{
    const struct kiln_op_info *info = kiln_op_info_get(op);
    struct device_code code = {.file = "gpu/replay/reference.cu",
                               .entry_name = "reference_rows"};
    char *fields = code.defines[3];
    int end = snprintf(fields, DEFINE_BYTES, "-DFIELDS=");

    snprintf(code.defines[0], DEFINE_BYTES, "-DREFERENCE=\"reference/%s.c\"", info->name);
    snprintf(code.defines[1], DEFINE_BYTES, "-DROW=ki_row_%s", info->name);
    snprintf(code.defines[2], DEFINE_BYTES, "-DARGS=kiln_%s_args", info->name);
    for (size_t i = 0; i < info->n_fields; i++) {
        end += snprintf(fields + end, DEFINE_BYTES - (size_t)end, "%lld,",
                        (long long)shape->fields[i]);
    }
    return compile(nvrtc, target, &code, out, err);
}
