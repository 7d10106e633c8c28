/* SPDX-License-Identifier: Apache-2.0 */
/* The public functions of kiln.h and op_info.h: check arguments, call one thing, return. */
#include <unistd.h>

#include "base/attr.h"
#include "base/status.h"
#include "plan/source.h"
#include "prepare.h"
#include "run/launch.h"
#include "warm.h"

enum {
    DEFAULT_MAX_KERNELS = 4096,
    DEFAULT_BUILD_TIMEOUT_MS = 60000,
    DEFAULT_RETRY_MS = 30000,
};

/* ---- lifecycle ---------------------------------------------------------------------- */

static int64_t or_default(int64_t value, int64_t fallback)
{
    return value != 0 ? value : fallback;
}

static enum kiln_status open_store(struct kiln *kiln, const struct kiln_options *options,
                                   const char *no_cache_reason, struct kiln_error *err)
{
    struct ki_store_options store = {
        .writable = kiln->paths.cache_dir,
        .no_write = options->no_write,
        .read_only = (const char *const *)kiln->paths.read_only_dirs,
        .n_read_only = kiln->paths.n_read_only_dirs,
        .allow_group_writable = options->allow_group_writable,
        .exact_compiler = options->exact_compiler,
        .no_writable_reason = "the kiln was created without one",
    };

    if (no_cache_reason[0] != '\0') {
        store.no_writable_reason = no_cache_reason;
    } else if (options->no_write) {
        store.no_writable_reason = "no_write was set";
    }

    return ki_store_open(&kiln->store, &store, &kiln->mem, &kiln->log, err);
}

/* Fills a kiln whose memory functions and log are set. What is held on failure is undone here. */
static enum kiln_status init(struct kiln *kiln, const struct kiln_options *options,
                             struct kiln_error *err)
{
    char no_cache_reason[KILN_MESSAGE_BYTES];
    enum kiln_status status;
    int result;

    if (options->target != NULL) {
        KI_TRY(ki_target_parse(options->target, &kiln->target, err));
        kiln->target_is_known = 1;
    }
    result = ki_mutex_init(&kiln->mutex);
    if (result != 0) {
        return ki_fail_os(err, KILN_E_SYSTEM, result, "a mutex");
    }
    result = ki_mutex_init(&kiln->nvrtc_mutex);
    if (result != 0) {
        status = ki_fail_os(err, KILN_E_SYSTEM, result, "a mutex");
        goto no_nvrtc_mutex;
    }
    status = ki_table_init(
        &kiln->table, (uint32_t)or_default(options->max_kernels, DEFAULT_MAX_KERNELS),
        &kiln->mem, err);
    if (status != KILN_OK) {
        goto no_table;
    }
    status = ki_paths_init(&kiln->paths, options, &kiln->mem, no_cache_reason, err);
    if (status != KILN_OK) {
        goto no_paths;
    }
    if (no_cache_reason[0] != '\0') {
        ki_log(&kiln->log, KILN_LOG_WARN, "no kernel cache on disk: %s", no_cache_reason);
    }
    status = open_store(kiln, options, no_cache_reason, err);
    if (status == KILN_OK) {
        return KILN_OK;
    }
    ki_paths_finish(&kiln->paths, &kiln->mem);
no_paths:
    ki_table_finish(&kiln->table);
no_table:
    ki_mutex_finish(&kiln->nvrtc_mutex);
no_nvrtc_mutex:
    ki_mutex_finish(&kiln->mutex);
    return status;
}

enum kiln_status kiln_create(const struct kiln_options *given, struct kiln **out,
                             struct kiln_error *err)
{
    struct kiln_options options;
    struct ki_mem mem;
    struct kiln *kiln;
    enum kiln_status status;

    if (out == NULL) {
        return ki_fail(err, KILN_E_ARGUMENT, "out is NULL: expected an address");
    }
    *out = NULL;
    KI_TRY(ki_options_read(given, &options, err));
    mem = (struct ki_mem){options.realloc_fn, options.realloc_user};
    kiln = ki_mem_alloc(&mem, sizeof *kiln);
    if (kiln == NULL) {
        return ki_fail_memory(err, "struct kiln");
    }
    kiln->mem = mem;
    kiln->log = (struct ki_log){
        .fn = options.log_fn,
        .user = options.log_user,
        .level = options.log_level != KILN_LOG_NONE ? options.log_level : KILN_LOG_WARN,
    };
    kiln->build_timeout_ms =
        or_default(options.build_timeout_ms, DEFAULT_BUILD_TIMEOUT_MS);
    kiln->retry_ms = or_default(options.retry_ms, DEFAULT_RETRY_MS);
    kiln->allow_group_writable = options.allow_group_writable;
    kiln->no_disk = options.no_disk;
    kiln->variant = options.checked ? KILN_VARIANT_CHECKED : 0;
    kiln->event_fn = options.event_fn;
    kiln->event_user = options.event_user;
    kiln->pid = getpid();
    status = init(kiln, &options, err);
    if (status != KILN_OK) {
        ki_mem_free(&mem, kiln);
        return status;
    }
    *out = kiln;
    return KILN_OK;
}

static void unload_all(struct kiln *kiln)
{
    for (uint32_t i = 0; i < kiln->table.capacity; i++) {
        struct ki_table_entry *entry = ki_table_at(&kiln->table, i);

        if (entry != NULL && entry->state == KI_ENTRY_READY) {
            ki_module_unload(&kiln->driver, &entry->kernel.module);
        }
    }
}

void kiln_destroy(struct kiln **address)
{
    struct kiln *kiln = address != NULL ? *address : NULL;
    struct ki_mem mem;

    if (kiln == NULL) {
        return;
    }
    if (kiln->pid == getpid() && kiln->n_launchers > 0) {
        ki_log(&kiln->log, KILN_LOG_ERROR,
               "kiln_destroy: %lld launchers are alive: expected none, and nothing was "
               "destroyed",
               (long long)kiln->n_launchers);
        return;
    }
    *address = NULL;
    /* A forked child has neither its parent's driver state nor the threads that may hold its
     * locks: it frees memory and no more. */
    if (kiln->pid == getpid()) {
        unload_all(kiln);
        ki_driver_close(&kiln->driver);
        ki_nvrtc_close(&kiln->nvrtc);
        ki_table_finish(&kiln->table);
        ki_mutex_finish(&kiln->nvrtc_mutex);
        ki_mutex_finish(&kiln->mutex);
    } else {
        ki_table_finish_in_child(&kiln->table);
    }
    ki_store_close(&kiln->store);
    ki_paths_finish(&kiln->paths, &kiln->mem);
    mem = kiln->mem;
    ki_mem_free(&mem, kiln);
}

/* ---- prepare ------------------------------------------------------------------------ */

static enum kiln_status check_call(const struct kiln *kiln, const void *shape,
                                   struct kiln_error *err)
{
    if (kiln == NULL || shape == NULL) {
        return ki_fail(err, KILN_E_ARGUMENT, "%s is NULL: expected one",
                       kiln == NULL ? "kiln" : "shape");
    }
    return ki_refuse_fork(kiln, err);
}

static enum kiln_status own_target(struct kiln *kiln, struct ki_target *out,
                                   struct kiln_error *err)
{
    struct ki_device device;

    if (kiln->target_is_known == 0) {
        KI_TRY(ki_current_device(kiln, &device, err));
    }
    *out = kiln->target;
    return KILN_OK;
}

static enum kiln_status make_ident(struct kiln *kiln, enum kiln_op op,
                                   const struct kiln_shape *shape, const char *target,
                                   struct ki_ident *out, struct kiln_error *err)
{
    ki_ident_init(out, op, shape);
    out->variant = kiln->variant;
    if (target != NULL) {
        return ki_target_parse(target, &out->target, err);
    }
    return own_target(kiln, &out->target, err);
}

enum kiln_status kiln_build(struct kiln *kiln, enum kiln_op op,
                            const struct kiln_shape *shape, const char *target,
                            struct kiln_error *err)
{
    struct ki_ident ident;
    struct ki_built built;

    KI_TRY(check_call(kiln, shape, err));
    KI_TRY(make_ident(kiln, op, shape, target, &ident, err));
    return ki_build(kiln, &ident, false, &built, err);
}

enum kiln_status kiln_prepare(struct kiln *kiln, enum kiln_op op,
                              const struct kiln_shape *shape, struct CUstream_st *stream,
                              const struct kiln_kernel **out, struct kiln_error *err)
{
    struct ki_ident ident;
    struct ki_device device;

    if (out == NULL) {
        return ki_fail(err, KILN_E_ARGUMENT, "out is NULL: expected an address");
    }
    *out = NULL;
    KI_TRY(check_call(kiln, shape, err));
    KI_TRY(ki_op_check(op, shape, err));
    KI_TRY(ki_current_device(kiln, &device, err));
    KI_TRY(ki_device_refuse_capture(&kiln->driver, stream, err));
    KI_TRY(make_ident(kiln, op, shape, NULL, &ident, err));
    if (!ki_target_runs_on(ident.target, device.target)) {
        char wanted[KI_TARGET_NAME];
        char found[KI_TARGET_NAME];

        ki_target_name(ident.target, wanted);
        ki_target_name(device.target, found);
        return ki_fail(err, KILN_E_TARGET,
                       "target %s cannot run on device %d, which is %s", wanted,
                       (int)device.ordinal, found);
    }
    return ki_prepare(kiln, &ident, &device, out, err);
}

enum kiln_status kiln_find(struct kiln *kiln, enum kiln_op op,
                           const struct kiln_shape *shape, const struct kiln_kernel **out,
                           struct kiln_error *err)
{
    struct ki_ident ident;
    struct ki_table_entry *entry = NULL;
    char words[KI_SHAPE_WORDS];

    if (kiln == NULL || shape == NULL || out == NULL) {
        return ki_fail(err, KILN_E_ARGUMENT,
                       "kiln, shape or out is NULL: expected all three");
    }
    *out = NULL;
    if (kiln->target_is_known != 0) {
        ki_ident_init(&ident, op, shape);
        ident.variant = kiln->variant;
        ident.target = kiln->target;
        entry = ki_table_find(&kiln->table, &ident);
    }
    atomic_fetch_add_explicit(entry != NULL ? &kiln->n_found : &kiln->n_not_found, 1,
                              memory_order_relaxed);
    if (entry == NULL) {
        ki_shape_words(op, shape, words, sizeof words);
        return ki_fail(err, KILN_E_NOT_READY, "not prepared: %s", words);
    }
    *out = &entry->kernel;
    return KILN_OK;
}

/* ---- warm --------------------------------------------------------------------------- */

enum kiln_status kiln_warm(struct kiln *kiln, const struct kiln_request *requests,
                           size_t n, const struct kiln_warm_options *options,
                           struct kiln_warm_summary *out, struct kiln_error *err)
{
    static const struct kiln_warm_options defaults = {0};
    struct kiln_warm_summary summary = {0};
    struct ki_warm_job *jobs;
    enum kiln_status status;

    if (out == NULL) {
        return ki_fail(err, KILN_E_ARGUMENT, "out is NULL: expected an address");
    }
    if (requests == NULL && n > 0) {
        return ki_fail(err, KILN_E_ARGUMENT, "requests is NULL: expected %zu", n);
    }
    KI_TRY(check_call(kiln, "", err));
    if (!kiln->store.has_writable) {
        return ki_fail(
            err, KILN_E_STORE,
            "warming would keep nothing, there is no writable cache folder: %.800s",
            kiln->store.no_writable_reason);
    }
    jobs = ki_mem_array(&kiln->mem, n, sizeof *jobs);
    if (jobs == NULL) {
        return ki_fail_memory(err, "the warm list");
    }
    for (size_t i = 0; i < n; i++) {
        (void)make_ident(kiln, requests[i].op, &requests[i].shape, requests[i].target,
                         &jobs[i].ident, &jobs[i].error);
    }
    status = ki_warm(kiln, jobs, n, options != NULL ? options : &defaults, &summary, err);
    ki_mem_free(&kiln->mem, jobs);
    if (status == KILN_OK) {
        *out = summary;
    }
    return status;
}

/* ---- look --------------------------------------------------------------------------- */

void kiln_get_stats(const struct kiln *kiln, struct kiln_stats *out)
{
    if (out == NULL) {
        return;
    }
    if (kiln == NULL) {
        *out = (struct kiln_stats){0};
        return;
    }
    *out = (struct kiln_stats){
        .n_compiled = kiln->n_compiled,
        .n_store_hits = (int64_t)kiln->store.n_hits,
        .n_store_misses = (int64_t)kiln->store.n_misses,
        .n_store_bad = (int64_t)kiln->store.n_bad,
        .n_store_faults = (int64_t)kiln->store.n_faults,
        .n_loaded = kiln->n_loaded,
        .n_failed = kiln->n_failed,
        .compile_ms = kiln->compile_ms,
        .load_ms = kiln->load_ms,
        .n_found = kiln->n_found,
        .n_not_found = kiln->n_not_found,
        .n_violations = kiln->n_violations,
        .n_launchers = kiln->n_launchers,
    };
    for (uint32_t i = 0; i < kiln->table.capacity; i++) {
        const struct ki_table_entry *entry = ki_table_at(&kiln->table, i);
        int state;

        if (entry == NULL) {
            continue;
        }
        state = entry->state;
        out->n_kernels += state == KI_ENTRY_READY || state == KI_ENTRY_BUILT ? 1 : 0;
        out->code_bytes += state == KI_ENTRY_READY ? entry->kernel.module.code_bytes : 0;
        out->n_launches += entry->counts.n_launches;
        out->n_refused += entry->counts.n_refused;
    }
}

void kiln_kernel_get_info(const struct kiln_kernel *kernel, struct kiln_kernel_info *out)
{
    if (out == NULL) {
        return;
    }
    if (kernel == NULL) {
        *out = (struct kiln_kernel_info){0};
        return;
    }
    *out = (struct kiln_kernel_info){
        .op = kernel->op->info.op,
        .threads = kernel->op->threads(&kernel->shape),
        .registers = kernel->module.registers,
        .smem_bytes = kernel->module.smem_bytes,
        .local_bytes = kernel->module.local_bytes,
        .cubin_bytes = kernel->module.code_bytes,
        .from_cache = kernel->from_cache,
        .checked = (kernel->variant & KILN_VARIANT_CHECKED) != 0,
        .build_ms = kernel->build_ms,
        .load_ms = kernel->load_ms,
    };
    ki_target_name(kernel->target, out->target);
}

enum kiln_status kiln_target_check(const char *target, struct kiln_error *err)
{
    struct ki_target parsed;

    if (target == NULL) {
        return ki_fail(err, KILN_E_ARGUMENT, "target is NULL: expected a name");
    }
    return ki_target_parse(target, &parsed, err);
}

enum kiln_status kiln_emit_source(enum kiln_op op, const struct kiln_shape *shape,
                                  uint32_t variant, char *buf, size_t size_bytes,
                                  size_t *out_bytes, struct kiln_error *err)
{
    struct ki_text source;
    enum kiln_status status;

    if (shape == NULL || out_bytes == NULL || (buf == NULL && size_bytes > 0)) {
        return ki_fail(err, KILN_E_ARGUMENT,
                       "shape, buf or out_bytes is NULL: expected all");
    }
    ki_text_init(&source, NULL);
    status = ki_source_write(op, shape, variant, &source, err);
    if (status == KILN_OK) {
        ki_text_hand_out(&source, buf, size_bytes, out_bytes);
    }
    ki_text_finish(&source);
    return status;
}
