/* SPDX-License-Identifier: Apache-2.0 */
/* See fake_kiln.h. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/fake_kiln.h"

static void keep(void *user, enum kiln_log_level level, const char *text)
{
    struct fake_log *log = user;

    if (level == KILN_LOG_ERROR) {
        atomic_fetch_add(&log->n_errors, 1);
    }
    /* Tests that read `last` have one thread. */
    if (level == KILN_LOG_WARN && atomic_fetch_add(&log->n_warnings, 1) == 0) {
        snprintf(log->last, sizeof log->last, "%s", text);
    }
}

int fake_kiln_setup(void **state)
{
    struct fake_kiln *fake = calloc(1, sizeof *fake);

    if (fake == NULL) {
        return -1;
    }
    tmpdir_create(&fake->dir);
    tmpdir_join(&fake->dir, "cache", fake->cache_dir);
    failing_mem_init(&fake->mem, 0);
    fake->options = (struct kiln_options){
        .size = sizeof fake->options,
        .cache_dir = fake->cache_dir,
        .log_fn = keep,
        .log_user = &fake->log,
        .realloc_fn = fake->mem.mem.realloc_fn,
        .realloc_user = &fake->mem,
    };
    fake_driver_init(&fake->driver, &fake->driver_table);
    fake_nvrtc_init(&fake->nvrtc, &fake->nvrtc_table);
    fake_driver_set_context(fake_driver_context());
    if (fake->driver_table.stream_create(&fake->stream, 0) != CUDA_SUCCESS) {
        return -1;
    }
    fake_driver_forget(&fake->driver);
    *state = fake;
    return 0;
}

int fake_kiln_setup_open(void **state)
{
    return fake_kiln_setup(state) == 0 && fake_kiln_open(*state) == KILN_OK ? 0 : -1;
}

static bool nothing_is_left(struct fake_kiln *fake)
{
    bool clean = fake_driver_is_clean(&fake->driver);

    if (fake->nvrtc.n_live != 0 || fake->mem.n_live != 0) {
        fprintf(stderr, "alive: %d programs, %d blocks\n", fake->nvrtc.n_live,
                (int)fake->mem.n_live);
        clean = false;
    }
    return clean;
}

int fake_kiln_teardown(void **state)
{
    struct fake_kiln *fake = *state;
    bool clean;

    fake_kiln_close(fake);
    (void)fake->driver_table.stream_destroy(fake->stream);
    clean = nothing_is_left(fake);
    fake_nvrtc_finish(&fake->nvrtc);
    fake_driver_finish(&fake->driver);
    tmpdir_remove(&fake->dir);
    free(fake);
    return clean ? 0 : -1;
}

enum kiln_status fake_kiln_open(struct fake_kiln *fake)
{
    enum kiln_status status;

    if (fake->without_nvrtc) {
        /* An absolute path that is given is the only one tried. */
        fake->options.nvrtc_path = "/nowhere/libnvrtc.so";
    }
    status = kiln_create(&fake->options, &fake->kiln, &fake->err);
    if (status != KILN_OK) {
        return status;
    }
    fake->kiln->driver = fake->driver_table;
    fake->kiln->driver_is_open = 1;
    if (!fake->without_nvrtc) {
        fake->kiln->nvrtc = fake->nvrtc_table;
        fake->kiln->nvrtc_is_open = 1;
        fake->kiln->store.nvrtc_major = fake->nvrtc_table.major;
        fake->kiln->store.nvrtc_minor = fake->nvrtc_table.minor;
    }
    return KILN_OK;
}

void fake_kiln_close(struct fake_kiln *fake)
{
    kiln_destroy(&fake->kiln);
}

void fake_kiln_forget(struct fake_kiln *fake)
{
    fake_driver_forget(&fake->driver);
    memset(fake->nvrtc.calls, 0, sizeof fake->nvrtc.calls);
    fake->nvrtc.n_order = 0;
}

int fake_kiln_compiles(struct fake_kiln *fake)
{
    return fake->nvrtc.calls[FAKE_NVRTC_COMPILE];
}

int fake_kiln_loads(struct fake_kiln *fake)
{
    return fake_driver_count(&fake->driver, FAKE_library_load_data);
}

size_t fake_kiln_entries(const struct fake_kiln *fake)
{
    return tmpdir_count(fake->cache_dir, ".kiln");
}

enum kiln_status fake_kiln_prepare(struct fake_kiln *fake, int64_t topk,
                                   const struct kiln_kernel **out)
{
    struct kiln_shape shape = fake_kiln_shape(topk);

    return kiln_prepare(fake->kiln, KILN_OP_GLOBAL_TOPK, &shape, NULL, out, &fake->err);
}

enum kiln_status fake_kiln_build(struct fake_kiln *fake, int64_t topk)
{
    struct kiln_shape shape = fake_kiln_shape(topk);

    return kiln_build(fake->kiln, KILN_OP_GLOBAL_TOPK, &shape, "sm_90", &fake->err);
}

struct kiln_shape fake_kiln_shape(int64_t topk)
{
    struct kiln_shape shape = {0};

    shape.global_topk = (struct kiln_global_topk_shape){
        .topk = topk,
        .topk_stride = topk,
        .slots_stride = topk,
        .block_size = 64,
        .table_width = 32,
        .table_stride = 32,
        .dcp_world = 1,
        .dcp_interleave = 1,
    };
    return shape;
}

struct kiln_deployment fake_kiln_deployment(void)
{
    struct kiln_deployment d = {
        .num_hidden_layers = 5,
        .index_topk = 64,
        .sliding_window = 128,
        .n_compress_ratios = 5,
        .compress_ratios = {0, 4, 128, 4, 128},
        .max_model_len = 32768,
        .max_num_batched_tokens = 100,
        .max_num_seqs = 7,
        .num_speculative_tokens = 2,
    };

    return d;
}

/* Any kind of row is counted in n, any part of them in one. */
static void put_number(const struct kiln_arg *arg, int32_t n, unsigned char *out)
{
    int32_t value = arg->extent == KILN_EXTENT_TOKENS ||
                            arg->extent == KILN_EXTENT_ROWS ||
                            arg->extent == KILN_EXTENT_REQUESTS
                        ? n
                        : 1;

    if (arg->extent == KILN_EXTENT_NONE || arg->extent == KILN_EXTENT_FIRST_TOKENS) {
        value = 0;
    }
    memcpy(out + arg->offset, &value, sizeof value);
}

void fake_kiln_args(enum kiln_op op, int32_t n, const void *memory,
                    unsigned char out[FAKE_ARGS])
{
    const struct kiln_op_info *info = kiln_op_info_get(op);
    const struct kiln_count one = {.kind = KILN_COUNT_VALUE, .value = 1};

    memset(out, 0, FAKE_ARGS);
    for (size_t i = 0; i < info->n_args; i++) {
        const struct kiln_arg *arg = &info->args[i];

        if (arg->kind == KILN_ARG_INPUT && !arg->optional) {
            memcpy(out + arg->offset, &memory, sizeof memory);
        } else if (arg->kind == KILN_ARG_COUNT && !arg->optional) {
            memcpy(out + arg->offset, &one, sizeof one);
        } else if (arg->kind == KILN_ARG_NUMBER || arg->kind == KILN_ARG_EXTENT) {
            put_number(arg, n, out);
        }
    }
}

int fake_kiln_descriptors(void)
{
    DIR *folder = opendir("/proc/self/fd");
    int n = 0;

    while (folder != NULL && readdir(folder) != NULL) {
        n++;
    }
    if (folder != NULL) {
        closedir(folder);
    }
    return n;
}
