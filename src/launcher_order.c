/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether a launcher's launches are programmatic: every kernel waits before it touches
 * memory, the device has it, and a trial on kiln's own stream and memory went well.
 */
#include <string.h>

#include "base/status.h"
#include "launcher.h"
#include "plan/op.h"
#include "plan/sizes.h"
#include "run/memory.h"
#include "run/programmatic.h"

enum { OLDEST_MAJOR = 9, TRIAL_ROWS = 2 /* one, and one to be safe */ };

static const struct kiln_arg *live_tokens_of(const struct kiln_op_info *info)
{
    for (size_t i = 0; i < info->n_args; i++) {
        if (info->args[i].kind == KILN_ARG_COUNT &&
            strcmp(info->args[i].name, "live_tokens") == 0) {
            return &info->args[i];
        }
    }
    return NULL;
}

/* A kernel that can be told that no row is live: nothing then depends on what it reads. Every
 * deployment has one. */
static const struct kiln_kernel *pick(const struct kiln_launcher *launcher)
{
    for (size_t i = 0; i < launcher->layout.n_launches; i++) {
        const struct kiln_kernel *kernel = launcher->slots[i].kernel;

        if (live_tokens_of(&kernel->op->info) != NULL) {
            return kernel;
        }
    }
    return NULL;
}

static bool is_array(const struct kiln_arg *arg)
{
    return arg->kind == KILN_ARG_OUTPUT ||
           (arg->kind == KILN_ARG_INPUT && !arg->optional);
}

static size_t array_bytes(const struct kiln_kernel *kernel, const struct kiln_arg *arg)
{
    return (size_t)ki_buffer_room(TRIAL_ROWS * ki_row_bytes(arg, &kernel->shape));
}

static size_t scratch_bytes(const struct kiln_kernel *kernel)
{
    const struct kiln_op_info *info = &kernel->op->info;
    size_t bytes = 0;

    for (size_t i = 0; i < info->n_args; i++) {
        bytes += is_array(&info->args[i]) ? array_bytes(kernel, &info->args[i]) : 0;
    }
    return bytes;
}

/* One row of which none is live; each array lies in the scratch memory. */
static void fill_args(const struct kiln_kernel *kernel, char *scratch,
                      unsigned char *args)
{
    const struct kiln_op_info *info = &kernel->op->info;
    const struct kiln_count none = {.kind = KILN_COUNT_VALUE, .value = 0};
    const int32_t one = 1;

    memset(args, 0, KI_ARGS_MAX);
    for (size_t i = 0; i < info->n_args; i++) {
        const struct kiln_arg *arg = &info->args[i];

        if (is_array(arg)) {
            memcpy(args + arg->offset, &scratch, sizeof scratch);
            scratch += array_bytes(kernel, arg);
        } else if (arg->kind == KILN_ARG_COUNT) {
            memcpy(args + arg->offset, &none, sizeof none);
        } else if (arg->kind == KILN_ARG_EXTENT ||
                   (arg->kind == KILN_ARG_NUMBER && (arg->extent == KILN_EXTENT_TOKENS ||
                                                     arg->extent == KILN_EXTENT_ROWS))) {
            memcpy(args + arg->offset, &one, sizeof one);
        }
    }
}

static enum kiln_status try_one(const struct kiln_kernel *chosen, struct kiln_error *err)
{
    _Alignas(16) unsigned char args[KI_ARGS_MAX];
    struct kiln_kernel kernel = *chosen;
    void *scratch = NULL;
    enum kiln_status status;

    kernel.counts = NULL; /* no launch of the caller's */
    KI_TRY(ki_memory_alloc(kernel.driver, scratch_bytes(&kernel), &scratch, err));
    fill_args(&kernel, scratch, args);
    status = ki_programmatic_try(&kernel, args, err);
    (void)ki_memory_free(kernel.driver, &scratch, NULL);
    return status;
}

/* Once per kiln, which serves one device. */
static bool device_can(struct kiln *kiln, const struct kiln_kernel *kernel)
{
    struct kiln_error why = {0};
    bool is_new = false;
    bool can;

    ki_mutex_lock(&kiln->mutex);
    if (kiln->programmatic == KI_PROGRAMMATIC_UNKNOWN) {
        is_new = true;
        kiln->programmatic = try_one(kernel, &why) == KILN_OK ? KI_PROGRAMMATIC_WORKS
                                                              : KI_PROGRAMMATIC_FAILS;
    }
    can = kiln->programmatic == KI_PROGRAMMATIC_WORKS;
    ki_mutex_unlock(&kiln->mutex);
    if (is_new && !can) {
        ki_log(&kiln->log, KILN_LOG_WARN,
               "programmatic launches are off, as a trial failed: %s", why.message);
    }
    return can;
}

bool ki_launcher_can_be_programmatic(const struct kiln_launcher *launcher)
{
    const struct kiln_kernel *kernel = pick(launcher);

    for (size_t i = 0; i < launcher->layout.n_launches; i++) {
        const struct kiln_kernel *each = launcher->slots[i].kernel;

        if (!each->waits || each->device.target.major < OLDEST_MAJOR) {
            return false;
        }
    }
    return kernel != NULL && device_can(launcher->kiln, kernel);
}
