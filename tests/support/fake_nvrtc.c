/* SPDX-License-Identifier: Apache-2.0 */
/* An NVRTC that compiles nothing and can be made to fail. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "support/fake_cubin.h"
#include "support/fake_nvrtc.h"

enum { ENTRY = 64 };

/* What an nvrtcProgram points to. */
struct program {
    char *source;
    struct ki_blob cubin;
};

/* NVRTC's functions take no user pointer; this is the one place in the tests. */
static struct fake_nvrtc *installed;

static nvrtcResult enter(enum fake_nvrtc_call call)
{
    struct fake_nvrtc *fake = installed;
    nvrtcResult result = NVRTC_SUCCESS;

    pthread_mutex_lock(&fake->mutex);
    fake->calls[call]++;
    if (fake->n_order < FAKE_NVRTC_ORDER) {
        fake->order[fake->n_order++] = call;
    }
    if (call == fake->fail_call &&
        (fake->fail_nth < 0 || fake->fail_nth == fake->calls[call])) {
        result = fake->fail_result;
    }
    pthread_mutex_unlock(&fake->mutex);
    return result;
}

static nvrtcResult fake_version(int *major, int *minor)
{
    *major = installed->major;
    *minor = installed->minor;
    return enter(FAKE_NVRTC_VERSION);
}

static const char *fake_error_string(nvrtcResult result)
{
    return result == NVRTC_ERROR_COMPILATION ? "NVRTC_ERROR_COMPILATION"
                                             : "NVRTC_ERROR_OTHER";
}

static nvrtcResult fake_num_archs(int *n)
{
    *n = installed->n_archs;
    return enter(FAKE_NVRTC_NUM_ARCHS);
}

static nvrtcResult fake_archs(int *archs)
{
    memcpy(archs, installed->archs, (size_t)installed->n_archs * sizeof *archs);
    return enter(FAKE_NVRTC_ARCHS);
}

static void add_live(int n)
{
    pthread_mutex_lock(&installed->mutex);
    installed->n_live += n;
    pthread_mutex_unlock(&installed->mutex);
}

static nvrtcResult fake_create(nvrtcProgram *out, const char *source, const char *name,
                               int n_headers, const char *const *headers,
                               const char *const *include_names)
{
    nvrtcResult result = enter(FAKE_NVRTC_CREATE);
    struct program *program;

    (void)name;
    (void)n_headers;
    (void)headers;
    (void)include_names;
    if (result != NVRTC_SUCCESS) {
        return result;
    }
    program = calloc(1, sizeof *program);
    program->source = strdup(source);
    add_live(1);
    *out = (nvrtcProgram)program;
    return NVRTC_SUCCESS;
}

static nvrtcResult fake_destroy(nvrtcProgram *handle)
{
    struct program *program = (struct program *)*handle;

    free(program->source);
    free(program->cubin.data);
    free(program);
    *handle = NULL;
    add_live(-1);
    return enter(FAKE_NVRTC_DESTROY);
}

/* The name of the kernel: the last one before the parenthesis that ends the declaration. */
static void find_entry(const char *source, char out[ENTRY])
{
    const char *at = strstr(source, "__global__");

    at = at != NULL ? strstr(at, "kiln_") : NULL;
    snprintf(out, ENTRY, "%.*s", at != NULL ? (int)strcspn(at, " (\n") : 0,
             at != NULL ? at : "");
}

static struct ki_blob make_cubin(const struct program *program, int sm)
{
    char entry[ENTRY];
    struct fake_cubin_options options = {
        .target = {.major = sm / 10, .minor = sm % 10},
        .registers = 24,
        .smem_bytes = 512,
        .entry_name = installed->wrong_entry,
        .waits = sm >= 90 && !installed->never_waits &&
                 strstr(program->source, "griddepcontrol.wait") != NULL,
    };

    find_entry(program->source, entry);
    if (options.entry_name == NULL) {
        options.entry_name = entry;
    }
    return fake_cubin_image(&options);
}

static nvrtcResult read_options(int n, const char *const *options, int *sm)
{
    char text[FAKE_NVRTC_OPTIONS] = "";
    nvrtcResult result = NVRTC_SUCCESS;
    size_t used = 0;

    for (int i = 0; i < n; i++) {
        (void)sscanf(options[i], "--gpu-architecture=sm_%d", sm);
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%s",
                                 i == 0 ? "" : " ", options[i]);
        if (installed->refused_option != NULL &&
            strcmp(options[i], installed->refused_option) == 0) {
            result = NVRTC_ERROR_INVALID_OPTION;
        }
    }
    pthread_mutex_lock(&installed->mutex);
    memcpy(installed->options, text, sizeof text);
    pthread_mutex_unlock(&installed->mutex);
    return result;
}

static nvrtcResult fake_compile(nvrtcProgram handle, int n, const char *const *options)
{
    struct program *program = (struct program *)handle;
    struct timespec wait = {.tv_nsec = (long)installed->compile_ms * 1000000};
    nvrtcResult result = enter(FAKE_NVRTC_COMPILE);
    int sm = 0;

    if (result == NVRTC_SUCCESS) {
        result = read_options(n, options, &sm);
    }
    if (installed->compile_ms > 0) {
        (void)nanosleep(&wait, NULL);
    }
    if (result == NVRTC_SUCCESS && !installed->empty_cubin) {
        program->cubin = make_cubin(program, sm);
    }
    return result;
}

static nvrtcResult fake_cubin_size(nvrtcProgram handle, size_t *size)
{
    *size = ((struct program *)handle)->cubin.size;
    return enter(FAKE_NVRTC_CUBIN_SIZE);
}

static nvrtcResult fake_cubin_bytes(nvrtcProgram handle, char *out)
{
    const struct program *program = (const struct program *)handle;
    nvrtcResult result = enter(FAKE_NVRTC_CUBIN);

    if (result == NVRTC_SUCCESS) {
        memcpy(out, program->cubin.data, program->cubin.size);
    }
    return result;
}

static nvrtcResult fake_log_size(nvrtcProgram handle, size_t *size)
{
    (void)handle;
    *size = strlen(installed->log) + 1;
    return enter(FAKE_NVRTC_LOG_SIZE);
}

static nvrtcResult fake_log(nvrtcProgram handle, char *out)
{
    (void)handle;
    memcpy(out, installed->log, strlen(installed->log) + 1);
    return enter(FAKE_NVRTC_LOG);
}

void fake_nvrtc_init(struct fake_nvrtc *fake, struct ki_nvrtc *out)
{
    *fake = (struct fake_nvrtc){
        .major = 13,
        .archs = {80, 90, 100, 120},
        .n_archs = 4,
        .fail_result = NVRTC_ERROR_INTERNAL_ERROR,
        .log = "",
    };
    pthread_mutex_init(&fake->mutex, NULL);
    installed = fake;
    *out = (struct ki_nvrtc){
        .fn =
            {
                .version = fake_version,
                .get_error_string = fake_error_string,
                .get_num_supported_archs = fake_num_archs,
                .get_supported_archs = fake_archs,
                .create_program = fake_create,
                .destroy_program = fake_destroy,
                .compile_program = fake_compile,
                .get_cubin_size = fake_cubin_size,
                .get_cubin = fake_cubin_bytes,
                .get_program_log_size = fake_log_size,
                .get_program_log = fake_log,
            },
        .path = "/fake/libnvrtc.so.13",
        .major = 13,
        .n_archs = 4,
        .archs = {{8, 0}, {9, 0}, {10, 0}, {12, 0}},
        .knows_no_cache = true,
    };
}

void fake_nvrtc_finish(struct fake_nvrtc *fake)
{
    pthread_mutex_destroy(&fake->mutex);
    installed = NULL;
}
