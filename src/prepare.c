/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pipeline, top to bottom: shape -> key -> source -> cubin -> loaded kernel, with the store and
 * the table as short cuts. Every stage is one call; none of them knows another.
 */
#include <unistd.h>

#include "base/attr.h"
#include "base/status.h"
#include "build/compile.h"
#include "plan/source.h"
#include "prepare.h"
#include "run/module.h"
#include "seal.h"

enum kiln_status ki_refuse_fork(const struct kiln *kiln, struct kiln_error *err)
{
    if (kiln->pid != getpid()) {
        return ki_fail(
            err, KILN_E_FORKED,
            "process %ld is a child of %ld, which created this kiln: expected a kiln "
            "of its own",
            (long)getpid(), (long)kiln->pid);
    }
    return KILN_OK;
}

/* Under nvrtc_mutex. A failed search is remembered, so that it costs once and not once per key. */
static enum kiln_status search_nvrtc(struct kiln *kiln, struct kiln_error *err)
{
    struct ki_nvrtc_search search;
    glob_t wheels;
    enum kiln_status status;

    if (kiln->nvrtc_error.status != KILN_OK && ki_now_ms() < kiln->nvrtc_retry_ms) {
        if (err != NULL) {
            *err = kiln->nvrtc_error;
        }
        return kiln->nvrtc_error.status;
    }
    ki_paths_nvrtc_search(&kiln->paths, &search, &wheels);
    kiln->nvrtc_error = (struct kiln_error){0};
    status = ki_nvrtc_open(&kiln->nvrtc, &search, NULL, &kiln->nvrtc_error);
    globfree(&wheels);
    if (status != KILN_OK) {
        kiln->nvrtc_retry_ms = ki_now_ms() + kiln->retry_ms;
        if (err != NULL) {
            *err = kiln->nvrtc_error;
        }
        return status;
    }
    kiln->store.nvrtc_major = kiln->nvrtc.major;
    kiln->store.nvrtc_minor = kiln->nvrtc.minor;
    atomic_store_explicit(&kiln->nvrtc_is_open, 1, memory_order_release);
    return KILN_OK;
}

enum kiln_status ki_open_nvrtc(struct kiln *kiln, struct kiln_error *err)
{
    enum kiln_status status = KILN_OK;
    bool is_new = false;

    if (atomic_load_explicit(&kiln->nvrtc_is_open, memory_order_acquire) != 0) {
        return KILN_OK;
    }
    ki_mutex_lock(&kiln->nvrtc_mutex);
    if (atomic_load_explicit(&kiln->nvrtc_is_open, memory_order_relaxed) == 0) {
        status = search_nvrtc(kiln, err);
        is_new = status == KILN_OK;
    }
    ki_mutex_unlock(&kiln->nvrtc_mutex);
    /* Not under the lock: the callback may wait for a lock whose owner waits for this one. */
    if (is_new) {
        ki_log(&kiln->log, KILN_LOG_INFO, "NVRTC %d.%d: %s", kiln->nvrtc.major,
               kiln->nvrtc.minor, kiln->nvrtc.path);
    }
    return status;
}

enum kiln_status ki_open_driver(struct kiln *kiln, struct kiln_error *err)
{
    enum kiln_status status = KILN_OK;

    if (atomic_load_explicit(&kiln->driver_is_open, memory_order_acquire) != 0) {
        return KILN_OK;
    }
    ki_mutex_lock(&kiln->mutex);
    if (atomic_load_explicit(&kiln->driver_is_open, memory_order_relaxed) == 0) {
        status = ki_driver_open(&kiln->driver, err);
        if (status == KILN_OK) {
            atomic_store_explicit(&kiln->driver_is_open, 1, memory_order_release);
        }
    }
    ki_mutex_unlock(&kiln->mutex);
    return status;
}

enum kiln_status ki_current_device(struct kiln *kiln, struct ki_device *out,
                                   struct kiln_error *err)
{
    bool is_other;

    KI_TRY(ki_open_driver(kiln, err));
    KI_TRY(ki_device_current(&kiln->driver, out, err));
    ki_mutex_lock(&kiln->mutex);
    if (!kiln->device_is_known) {
        kiln->device_is_known = true;
        kiln->ordinal = out->ordinal;
    }
    is_other = kiln->ordinal != out->ordinal;
    if (!is_other && kiln->target_is_known == 0) {
        kiln->target = out->target;
        kiln->target_is_known = 1;
    }
    ki_mutex_unlock(&kiln->mutex);
    if (is_other) {
        return ki_fail(
            err, KILN_E_ARGUMENT,
            "the current context is of device %d: expected device %d, which this "
            "kiln serves",
            (int)out->ordinal, (int)kiln->ordinal);
    }
    return KILN_OK;
}

/* source -> cubin. */
static enum kiln_status compile(struct kiln *kiln, const struct ki_ident *ident,
                                struct ki_cubin *out, struct kiln_error *err)
{
    const struct ki_op *op = ki_op_get((enum kiln_op)ident->op);
    struct ki_compile_job job = {
        .target = ident->target,
        .options = ki_key_compiler_options,
        .threads = op->threads(&ident->shape),
    };
    struct ki_text source;
    char entry_name[64];
    int64_t began_ms = ki_now_ms();
    enum kiln_status status;

    ki_source_entry_name(op->info.op, entry_name);
    ki_text_init(&source, &kiln->mem);
    status = ki_source_write(op->info.op, &ident->shape, ident->variant, &source, err);
    if (status == KILN_OK) {
        job.source = source.data;
        job.entry_name = entry_name;
        status = ki_compile(&kiln->nvrtc, &job, &kiln->mem, &kiln->log, out, err);
    }
    ki_text_finish(&source);
    if (status == KILN_OK) {
        atomic_fetch_add(&kiln->n_compiled, 1);
        atomic_fetch_add(&kiln->compile_ms, ki_now_ms() - began_ms);
    }
    return status;
}

/* key -> cubin: from the store, else compiled and put there. */
static enum kiln_status obtain(struct kiln *kiln, const struct ki_ident *ident,
                               const struct ki_key *key, bool ask_store,
                               struct ki_cubin *out, struct ki_built *built,
                               struct kiln_error *err)
{
    if (ask_store && ki_store_get(&kiln->store, key, ident->target, out)) {
        built->from_cache = true;
        return KILN_OK;
    }
    KI_TRY(ki_open_nvrtc(kiln, err));
    KI_TRY(compile(kiln, ident, out, err));
    (void)ki_store_put(&kiln->store, key, out, &built->unstored);
    return KILN_OK;
}

/* The entry's cubin becomes this one; its facts stay with the kernel. */
static void adopt(struct kiln *kiln, struct ki_table_entry *entry, struct ki_cubin *cubin,
                  const struct ki_built *built)
{
    struct kiln_kernel *kernel = &entry->kernel;

    kernel->op = ki_op_get((enum kiln_op)entry->ident.op);
    kernel->driver = &kiln->driver;
    kernel->counts = &entry->counts;
    kernel->shape = entry->ident.shape;
    kernel->target = entry->ident.target;
    kernel->variant = entry->ident.variant;
    kernel->nvrtc_major = cubin->nvrtc_major;
    kernel->nvrtc_minor = cubin->nvrtc_minor;
    kernel->from_cache = built->from_cache;
    kernel->waits = cubin->waits != 0;
    kernel->build_ms = built->build_ms;
    entry->is_stored = built->unstored.status == KILN_OK;
    ki_blob_finish(&entry->image, &kiln->mem);
    entry->image = cubin->image;
    cubin->image = (struct ki_blob){0};
}

/* The claimed entry's shape -> key -> cubin. */
static enum kiln_status build_entry(struct kiln *kiln, struct ki_table_entry *entry,
                                    bool ask_store, struct ki_built *out,
                                    struct kiln_error *err)
{
    struct ki_key key;
    struct ki_cubin cubin = {0};
    int64_t began_ms = ki_now_ms();

    *out = (struct ki_built){0};
    if (kiln->store.exact_compiler) {
        /* Which compiler is the exact one is known only once it is open; without one, all are. */
        (void)ki_open_nvrtc(kiln, NULL);
    }
    KI_TRY(ki_key_make(&entry->ident, &kiln->mem, &key, err));
    KI_TRY(obtain(kiln, &entry->ident, &key, ask_store, &cubin, out, err));
    out->build_ms = ki_now_ms() - began_ms;
    adopt(kiln, entry, &cubin, out);
    ki_cubin_finish(&cubin, &kiln->mem);
    return KILN_OK;
}

/* The driver did not take the cached cubin (a newer toolkit's, say): once more from source. The new
 * entry replaces the old one; if there is none, the old one stays for hosts with a newer driver. */
static enum kiln_status rebuild_refused(struct kiln *kiln, struct ki_table_entry *entry,
                                        struct kiln_error *err)
{
    struct kiln_kernel *kernel = &entry->kernel;
    struct ki_built built;
    struct kiln_error why;
    enum kiln_status status;

    ki_log(&kiln->log, KILN_LOG_WARN,
           "%s: the driver refused the cached cubin of NVRTC %d.%d: rebuilding",
           kernel->op->info.name, kernel->nvrtc_major, kernel->nvrtc_minor);
    status = build_entry(kiln, entry, false, &built, &why);
    if (status != KILN_OK) {
        return ki_fail(
            err, KILN_E_CUBIN_REFUSED,
            "%s: the driver (CUDA %d.%d) refused the cached cubin of NVRTC %d.%d, "
            "and it could not be rebuilt: %.600s",
            kernel->op->info.name, kiln->driver.version / 1000,
            kiln->driver.version % 1000 / 10, kernel->nvrtc_major, kernel->nvrtc_minor,
            why.message);
    }
    return KILN_OK;
}

/* The claimed entry's cubin -> loaded kernel. */
static enum kiln_status load_entry(struct kiln *kiln, struct ki_table_entry *entry,
                                   const struct ki_device *device, struct kiln_error *err)
{
    struct kiln_kernel *kernel = &entry->kernel;
    int64_t began_ms = ki_now_ms();
    char name[64];
    enum kiln_status status;

    ki_source_entry_name(kernel->op->info.op, name);
    status =
        ki_module_load(&kiln->driver, device, entry->image, name, &kernel->module, err);
    if (status == KILN_E_CUBIN_REFUSED && kernel->from_cache) {
        KI_TRY(rebuild_refused(kiln, entry, err));
        status = ki_module_load(&kiln->driver, device, entry->image, name,
                                &kernel->module, err);
    }
    if (status == KILN_E_CUBIN_REFUSED) {
        return ki_fail(
            err, status,
            "%s: the driver (CUDA %d.%d) refused the cubin of NVRTC %d.%d: expected "
            "an NVRTC no newer than the driver",
            kernel->op->info.name, kiln->driver.version / 1000,
            kiln->driver.version % 1000 / 10, kernel->nvrtc_major, kernel->nvrtc_minor);
    }
    KI_TRY(status);
    kernel->device = *device;
    kernel->load_ms = ki_now_ms() - began_ms;
    ki_blob_finish(&entry->image, &kiln->mem);
    atomic_fetch_add(&kiln->n_loaded, 1);
    atomic_fetch_add(&kiln->load_ms, kernel->load_ms);
    return KILN_OK;
}

/* What a claim's end is told as. Filled before the entry is others' again. */
static struct kiln_event event_of(const struct ki_table_entry *entry,
                                  enum ki_entry_state reached)
{
    const struct kiln_kernel *kernel = &entry->kernel;

    if (reached == KI_ENTRY_READY) {
        return (struct kiln_event){.kind = KILN_EVENT_LOADED, .ms = kernel->load_ms};
    }
    return (struct kiln_event){.kind = KILN_EVENT_BUILT,
                               .from_cache = kernel->from_cache,
                               .ms = kernel->build_ms};
}

/* A claim's end: published, given back untouched, or remembered as failed. */
static enum kiln_status settle(struct kiln *kiln, struct ki_table_entry *entry,
                               enum kiln_status status, enum ki_entry_state reached,
                               const struct kiln_error *why, struct kiln_error *err)
{
    struct kiln_event event;

    if (status == KILN_OK) {
        event = event_of(entry, reached);
        ki_table_publish(&kiln->table, entry, reached);
        ki_tell(kiln, &entry->ident, event);
        return status;
    }
    if (err != NULL) {
        *err = *why;
    }
    if (status == KILN_E_CAPTURING) {
        ki_table_abandon(&kiln->table, entry);
        return status;
    }
    atomic_fetch_add(&kiln->n_failed, 1);
    ki_log(&kiln->log, KILN_LOG_ERROR, "%s", why->message);
    ki_table_fail(&kiln->table, entry, why, kiln->retry_ms);
    ki_tell(kiln, &entry->ident,
            (struct kiln_event){
                .kind = KILN_EVENT_FAILED, .status = status, .message = why->message});
    return status;
}

enum kiln_status ki_build(struct kiln *kiln, const struct ki_ident *ident, bool rebuild,
                          struct ki_built *out, struct kiln_error *err)
{
    static const char what[] = "not built, and the kiln is sealed";
    struct ki_table_entry *entry;
    struct kiln_error why = {0};
    enum ki_claim claim;
    enum kiln_status status;

    KI_TRY(ki_op_check((enum kiln_op)ident->op, &ident->shape, err));
    KI_TRY(ki_table_claim(&kiln->table, ident, KI_ENTRY_BUILT, kiln->build_timeout_ms,
                          &entry, &claim, err));
    if (claim == KI_CLAIM_SEALED) {
        return ki_seal_refuse(kiln, ident, what, err);
    }
    if (claim == KI_CLAIM_DONE) {
        *out = (struct ki_built){.from_cache = true};
        if (!entry->is_stored) {
            (void)ki_fail(&out->unstored, KILN_E_STORE,
                          "it was built before, and no cache folder took it");
        }
        return KILN_OK;
    }
    ki_seal_warn(kiln, ident, what);
    status = build_entry(kiln, entry, !rebuild, out, &why);
    return settle(kiln, entry, status, KI_ENTRY_BUILT, &why, err);
}

/* One stage towards a loaded kernel; *out is set once it is there. */
static enum kiln_status advance(struct kiln *kiln, struct ki_table_entry *entry,
                                enum ki_claim claim, const struct ki_device *device,
                                const struct kiln_kernel **out, struct kiln_error *err)
{
    struct ki_built built;
    struct kiln_error why = {0};
    enum kiln_status status;

    switch (claim) {
    case KI_CLAIM_BUILD:
        status = build_entry(kiln, entry, true, &built, &why);
        return settle(kiln, entry, status, KI_ENTRY_BUILT, &why, err);
    case KI_CLAIM_LOAD:
        status = load_entry(kiln, entry, device, &why);
        return settle(kiln, entry, status, KI_ENTRY_READY, &why, err);
    case KI_CLAIM_DONE:
    case KI_CLAIM_SEALED:
        break;
    }
    *out = &entry->kernel;
    return KILN_OK;
}

/* The load of a kernel that is ready in another context, finished in this one. */
static enum kiln_status load_here(struct kiln *kiln, struct ki_table_entry *entry,
                                  const struct ki_device *device, struct kiln_error *err)
{
    static const char what[] = "not loaded in this context, and the kiln is sealed";
    enum ki_claim claim = ki_table_claim_here(&kiln->table, entry, device->context);
    enum kiln_status status;

    if (claim == KI_CLAIM_SEALED) {
        return ki_seal_refuse(kiln, &entry->ident, what, err);
    }
    if (claim == KI_CLAIM_DONE) {
        return KILN_OK;
    }
    ki_seal_warn(kiln, &entry->ident, what);
    status = ki_module_load_here(&kiln->driver, device, &entry->kernel.module,
                                 entry->kernel.op->info.name, err);
    ki_table_end_here(&kiln->table, entry, device->context, status == KILN_OK);
    return status;
}

enum kiln_status ki_prepare(struct kiln *kiln, const struct ki_ident *ident,
                            const struct ki_device *device,
                            const struct kiln_kernel **out, struct kiln_error *err)
{
    static const char what[] = "not loaded, and the kiln is sealed";
    const struct kiln_kernel *ready = NULL;
    struct ki_table_entry *entry = NULL;
    bool is_told = false;

    KI_TRY(ki_op_check((enum kiln_op)ident->op, &ident->shape, err));
    while (ready == NULL) {
        enum ki_claim claim;

        KI_TRY(ki_table_claim(&kiln->table, ident, KI_ENTRY_READY, kiln->build_timeout_ms,
                              &entry, &claim, err));
        if (claim == KI_CLAIM_SEALED) {
            return ki_seal_refuse(kiln, ident, what, err);
        }
        if (claim != KI_CLAIM_DONE && !is_told) {
            ki_seal_warn(kiln, ident, what);
            is_told = true;
        }
        KI_TRY(advance(kiln, entry, claim, device, &ready, err));
    }
    KI_TRY(load_here(kiln, entry, device, err));
    *out = ready;
    return KILN_OK;
}
