/* SPDX-License-Identifier: Apache-2.0 */
/*
 * key <-> cubin over all layers: tries them in order, counts, warns once per kind of fault,
 * and turns every trouble with the disk into a miss. Knows neither bytes nor paths of an
 * entry: store_entry and store_layer do.
 */
#include <stdio.h>
#include <string.h>

#include "base/attr.h"
#include "base/status.h"
#include "build/store.h"
#include "build/store_layer.h"

/* A bit each in `warned`. */
enum fault_kind {
    FAULT_READ = 1 << 0,
    FAULT_WRITE = 1 << 1,
    FAULT_REMOVE = 1 << 2,
    FAULT_BAD = 1 << 3,
};

static void count(_Atomic uint64_t *counter)
{
    atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
}

static void warn_once(struct ki_store *store, enum fault_kind kind, const char *what,
                      const struct kiln_error *err)
{
    uint32_t before =
        atomic_fetch_or_explicit(&store->warned, (uint32_t)kind, memory_order_relaxed);

    if ((before & (uint32_t)kind) == 0) {
        ki_log(store->log, KILN_LOG_WARN, "%s: %s (said once)", what, err->message);
    }
}

static void note_fault(struct ki_store *store, enum fault_kind kind, const char *what,
                       const struct kiln_error *err)
{
    count(&store->n_faults);
    warn_once(store, kind, what, err);
}

/* ---- opening ---------------------------------------------------------------------- */

/* A folder that cannot be used is left out; only memory can fail. */
static enum kiln_status add_read_only(struct ki_store *store,
                                      const struct ki_store_options *options,
                                      const char *path, struct kiln_error *err)
{
    struct ki_store_layer_options layer = {
        .path = path,
        .allow_group_writable = options->allow_group_writable,
    };
    struct kiln_error local = {0};
    enum kiln_status status = ki_store_layer_open(
        &store->layers[store->n_layers], options->files, &layer, store->mem, &local);

    if (status == KILN_E_MEMORY) {
        return ki_fail_memory(err, "a cache folder");
    }
    if (status == KILN_OK) {
        store->n_layers++;
        return KILN_OK;
    }
    count(&store->n_faults);
    ki_log(store->log, KILN_LOG_WARN, "cache folder is left out: %s", local.message);
    return KILN_OK;
}

/* One that can only be read still serves what is in it. */
static enum kiln_status add_writable(struct ki_store *store,
                                     const struct ki_store_options *options,
                                     struct kiln_error *err)
{
    struct ki_store_layer_options layer = {
        .path = options->writable,
        .writable = true,
        .create = true,
        .allow_group_writable = options->allow_group_writable,
    };
    struct kiln_error local = {0};
    enum kiln_status status = ki_store_layer_open(
        &store->layers[store->n_layers], options->files, &layer, store->mem, &local);

    if (status == KILN_E_MEMORY) {
        return ki_fail_memory(err, "a cache folder");
    }
    if (status == KILN_OK) {
        store->n_layers++;
        store->has_writable = true;
        return KILN_OK;
    }
    snprintf(store->no_writable_reason, sizeof store->no_writable_reason, "%s",
             local.message);
    count(&store->n_faults);
    layer.writable = false;
    layer.create = false;
    status = ki_store_layer_open(&store->layers[store->n_layers], options->files, &layer,
                                 store->mem, NULL);
    if (status == KILN_E_MEMORY) {
        return ki_fail_memory(err, "a cache folder");
    }
    if (status == KILN_OK) {
        store->n_layers++;
    }
    ki_log(store->log, KILN_LOG_WARN, "cache folder %s: %s",
           status == KILN_OK ? "is only read" : "is left out", local.message);
    return KILN_OK;
}

enum kiln_status ki_store_open(struct ki_store *store,
                               const struct ki_store_options *options,
                               const struct ki_mem *mem, const struct ki_log *log,
                               struct kiln_error *err)
{
    bool writes = options->writable != NULL && !options->no_write;
    enum kiln_status status = KILN_OK;

    memset(store, 0, sizeof *store);
    store->mem = mem;
    store->log = log;
    store->exact_compiler = options->exact_compiler;
    atomic_init(&store->nvrtc_major, options->nvrtc_major);
    atomic_init(&store->nvrtc_minor, options->nvrtc_minor);
    store->layers = ki_mem_array(mem, options->n_read_only + 1, sizeof *store->layers);
    if (store->layers == NULL) {
        return ki_fail_memory(err, "the cache folders");
    }
    if (!writes && options->no_writable_reason != NULL) {
        snprintf(store->no_writable_reason, sizeof store->no_writable_reason, "%s",
                 options->no_writable_reason);
    }
    if (writes) {
        status = add_writable(store, options, err);
    } else if (options->writable != NULL) {
        status = add_read_only(store, options, options->writable, err);
    }
    for (size_t i = 0; i < options->n_read_only && status == KILN_OK; i++) {
        status = add_read_only(store, options, options->read_only[i], err);
    }
    if (status != KILN_OK) {
        ki_store_close(store);
    }
    return status;
}

void ki_store_close(struct ki_store *store)
{
    for (size_t i = 0; i < store->n_layers; i++) {
        ki_store_layer_close(&store->layers[i]);
    }
    ki_mem_free(store->mem, store->layers);
    store->layers = NULL;
    store->n_layers = 0;
    store->has_writable = false;
}

/* ---- reading ---------------------------------------------------------------------- */

static void remove_entry(struct ki_store *store, const struct ki_store_name *name,
                         const struct ki_file_id *id)
{
    struct kiln_error err = {0};
    bool gone;

    if (ki_store_layer_remove(&store->layers[0], name, id, &gone, &err) != KILN_OK) {
        note_fault(store, FAULT_REMOVE, "cache entry stays", &err);
    }
}

/* A layer's reader does not say which entry it was. */
static void name_entry(const struct ki_store_layer *layer,
                       const struct ki_store_name *name, const struct kiln_error *err,
                       struct kiln_error *out)
{
    (void)ki_fail(out, KILN_E_STORE, "\"%.400s/%s/%s\": %.400s", layer->path, name->sub,
                  name->file, err->message);
}

static void note_bad(struct ki_store *store, size_t i_layer,
                     const struct ki_store_name *name, const struct ki_store_found *found,
                     const struct kiln_error *err)
{
    struct kiln_error named = {0};

    count(&store->n_bad);
    name_entry(&store->layers[i_layer], name, err, &named);
    warn_once(store, FAULT_BAD, "bad cache entry is not used", &named);
    if (i_layer == 0 && store->has_writable) {
        remove_entry(store, name, &found->id);
    }
}

/* Another key's text cannot have this digest unless somebody made it so. */
static enum kiln_status check_asked_for(const struct ki_store_entry *entry,
                                        const struct ki_key *key, struct ki_target target,
                                        struct kiln_error *err)
{
    if (entry->key_size != key->text_size ||
        memcmp(entry->key_text, key->text, key->text_size) != 0) {
        return ki_fail(err, KILN_E_STORE, "it holds the kernel of another key");
    }
    if (!ki_target_equal(entry->cubin.target, target)) {
        return ki_fail(err, KILN_E_STORE, "it is for sm_%d%d: expected sm_%d%d",
                       entry->cubin.target.major, entry->cubin.target.minor, target.major,
                       target.minor);
    }
    return KILN_OK;
}

static bool compiler_differs(const struct ki_store *store, const struct ki_cubin *cubin)
{
    int32_t major = atomic_load_explicit(&store->nvrtc_major, memory_order_relaxed);
    int32_t minor = atomic_load_explicit(&store->nvrtc_minor, memory_order_relaxed);

    return store->exact_compiler && major != 0 &&
           (cubin->nvrtc_major != major || cubin->nvrtc_minor != minor);
}

/* The entry's bytes become the cubin's: the image moves to their front. */
static void take_cubin(struct ki_store_found *found, struct ki_cubin *out)
{
    struct ki_blob image = found->entry.cubin.image;

    *out = found->entry.cubin;
    memmove(found->bytes.data, image.data, image.size);
    out->image = (struct ki_blob){.data = found->bytes.data, .size = image.size};
    found->bytes = (struct ki_blob){0};
}

/* One layer's answer; a bad entry is dealt with here. */
static bool get_from(struct ki_store *store, size_t i_layer, const struct ki_key *key,
                     struct ki_target target, struct ki_cubin *out)
{
    const struct ki_store_layer *layer = &store->layers[i_layer];
    struct ki_store_name name;
    struct ki_store_found found = {0};
    struct kiln_error err = {0};
    enum ki_store_read result;

    ki_store_name_make(key->digest_hex, &name);
    result = ki_store_layer_read(layer, &name, &found, &err);
    if (result == KI_STORE_READ_OK &&
        check_asked_for(&found.entry, key, target, &err) != KILN_OK) {
        result = KI_STORE_READ_BAD;
    }
    if (result == KI_STORE_READ_BAD) {
        note_bad(store, i_layer, &name, &found, &err);
    }
    if (result == KI_STORE_READ_FAULT) {
        struct kiln_error named = {0};

        name_entry(layer, &name, &err, &named);
        note_fault(store, FAULT_READ, "cache folder cannot be read", &named);
    }
    if (result != KI_STORE_READ_OK || compiler_differs(store, &found.entry.cubin)) {
        ki_blob_finish(&found.bytes, store->mem);
        return false;
    }
    if (i_layer == 0 && store->has_writable) {
        ki_store_layer_touch(layer, &name, &found.id);
    }
    take_cubin(&found, out);
    return true;
}

bool ki_store_get(struct ki_store *store, const struct ki_key *key,
                  struct ki_target target, struct ki_cubin *out)
{
    for (size_t i = 0; i < store->n_layers; i++) {
        if (get_from(store, i, key, target, out)) {
            count(&store->n_hits);
            return true;
        }
    }
    count(&store->n_misses);
    return false;
}

/* ---- writing ---------------------------------------------------------------------- */

/* Encodes what a reader will accept, and nothing else: a failed build must not get here. */
static enum kiln_status encode_verified(const struct ki_store *store,
                                        const struct ki_key *key,
                                        const struct ki_cubin *cubin, struct ki_blob *out,
                                        struct kiln_error *err)
{
    struct ki_store_entry entry;
    enum kiln_status status;

    KI_TRY(ki_store_entry_encode(key->text, key->text_size, cubin, store->mem, out, err));
    status = ki_store_entry_decode(*out, &entry, err);
    if (status != KILN_OK) {
        ki_blob_finish(out, store->mem);
    }
    return status;
}

bool ki_store_put(struct ki_store *store, const struct ki_key *key,
                  const struct ki_cubin *cubin, struct kiln_error *why)
{
    struct ki_store_name name;
    struct ki_blob bytes = {0};
    struct kiln_error err = {0};
    enum kiln_status status;

    if (!store->has_writable) {
        (void)ki_fail(why, KILN_E_STORE, "there is no cache folder to write to");
        return false;
    }
    ki_store_name_make(key->digest_hex, &name);
    status = encode_verified(store, key, cubin, &bytes, &err);
    if (status == KILN_OK) {
        status = ki_store_layer_publish(&store->layers[0], &name, bytes, &err);
    }
    ki_blob_finish(&bytes, store->mem);
    if (status != KILN_OK) {
        note_fault(store, FAULT_WRITE, "kernel is not cached", &err);
        if (why != NULL) {
            *why = err;
        }
        return false;
    }
    count(&store->n_writes);
    return true;
}
