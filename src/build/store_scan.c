/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an operator does with a cache folder: look at every entry, ask whether more could be
 * put there, shrink it. Servers may use the folder at the same time, so each delete is a
 * guarded one. Knows nothing of a running kiln.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/attr.h"
#include "base/status.h"
#include "build/store.h"
#include "build/store_layer.h"

enum { TMP_SECONDS = 60 * 60, ITEM_NAME = 300, FIRST_ENTRIES = 64 };

/* Called for each file below a two-hex folder; file NULL: the folder itself cannot be read,
 * for that reason. */
typedef enum kiln_status (*file_fn)(void *user, int dir, const char *sub,
                                    const char *file, const char *reason,
                                    struct kiln_error *err);

/* `sub` "": the layer's own folder. */
static enum kiln_status fail_list(const struct ki_store_layer *layer, const char *sub,
                                  int fault, struct kiln_error *err)
{
    if (fault == ENOMEM) {
        return ki_fail_memory(err, "the names in a cache folder");
    }
    return ki_fail_os(err, KILN_E_STORE, fault, "folder \"%.400s%s%s\" cannot be listed",
                      layer->path, sub[0] != '\0' ? "/" : "", sub);
}

/* A file that NFS keeps under such a name until its last reader is gone is nobody's fault. */
static bool is_nfs_remnant(const char *file)
{
    return strncmp(file, ".nfs", 4) == 0;
}

static enum kiln_status walk_sub(const struct ki_store_layer *layer, const char *sub,
                                 file_fn fn, void *user, struct kiln_error *err)
{
    struct ki_file_names names = {0};
    struct kiln_error local = {0};
    enum kiln_status status = KILN_OK;
    int fd = -1;
    int fault;

    if (ki_store_layer_open_sub(layer, sub, &fd, &local) != KILN_OK) {
        return fn(user, -1, sub, NULL, local.message, err);
    }
    fault = ki_file_list(layer->files, fd, layer->mem, &names);
    if (fault != 0) {
        status = fail_list(layer, sub, fault, err);
    }
    for (size_t i = 0; i < names.n && status == KILN_OK; i++) {
        if (!is_nfs_remnant(names.names[i])) {
            status = fn(user, fd, sub, names.names[i], NULL, err);
        }
    }
    ki_file_names_finish(&names, layer->mem);
    ki_file_close_dir(layer->files, fd);
    return status;
}

static enum kiln_status walk(const struct ki_store_layer *layer, file_fn fn, void *user,
                             struct kiln_error *err)
{
    struct ki_file_names subs = {0};
    enum kiln_status status = KILN_OK;
    int fault;

    if (layer->dir < 0) {
        return KILN_OK;
    }
    fault = ki_file_list(layer->files, layer->dir, layer->mem, &subs);
    if (fault != 0) {
        return fail_list(layer, "", fault, err);
    }
    for (size_t i = 0; i < subs.n && status == KILN_OK; i++) {
        if (ki_store_sub_valid(subs.names[i])) {
            status = walk_sub(layer, subs.names[i], fn, user, err);
        }
    }
    ki_file_names_finish(&subs, layer->mem);
    return status;
}

/* ---- visiting --------------------------------------------------------------------- */

struct visit {
    const struct ki_store_layer *layer;
    ki_store_item_fn fn;
    void *user;
};

static void hand_out(const struct visit *visit, const char *name,
                     const struct ki_file_id *id, const struct ki_store_entry *entry,
                     const char *fault)
{
    struct ki_store_item item = {
        .name = name,
        .key_text = entry != NULL ? entry->key_text : NULL,
        .cubin = entry != NULL ? &entry->cubin : NULL,
        .fault = fault,
        .size_bytes = id->size_bytes,
        .used_ms = id->modified_s * 1000 + id->modified_ns / 1000000,
    };

    visit->fn(visit->user, &item);
}

static enum kiln_status visit_file(void *user, int dir, const char *sub, const char *file,
                                   const char *reason, struct kiln_error *err)
{
    const struct visit *visit = user;
    struct ki_store_found found = {0};
    struct ki_store_name name;
    struct kiln_error local = {0};
    char label[ITEM_NAME];
    enum ki_store_read result;

    snprintf(label, sizeof label, "%s%s%s", sub, file != NULL ? "/" : "",
             file != NULL ? file : "");
    if (file == NULL) {
        hand_out(visit, label, &found.id, NULL, reason);
        return KILN_OK;
    }
    if (!ki_store_name_parse(sub, file, &name)) {
        (void)ki_file_stat(visit->layer->files, dir, file, &found.id);
        hand_out(visit, label, &found.id, NULL, "it does not have the name of an entry");
        return KILN_OK;
    }
    result = ki_store_layer_read(visit->layer, &name, &found, &local);
    if (result == KI_STORE_READ_MEMORY) {
        return ki_fail_memory(err, "a cache entry");
    }
    if (result == KI_STORE_READ_OK) {
        hand_out(visit, label, &found.id, &found.entry, NULL);
    } else if (result != KI_STORE_READ_ABSENT) {
        hand_out(visit, label, &found.id, NULL, local.message);
    }
    ki_blob_finish(&found.bytes, visit->layer->mem);
    return KILN_OK;
}

enum kiln_status ki_store_visit(const char *root, bool allow_group_writable,
                                const struct ki_mem *mem, ki_store_item_fn fn, void *user,
                                struct kiln_error *err)
{
    struct ki_store_layer_options options = {
        .path = root,
        .allow_group_writable = allow_group_writable,
    };
    struct ki_store_layer layer;
    struct visit visit = {.layer = &layer, .fn = fn, .user = user};
    enum kiln_status status;

    KI_TRY(ki_store_layer_open(&layer, NULL, &options, mem, err));
    status = walk(&layer, visit_file, &visit, err);
    ki_store_layer_close(&layer);
    return status;
}

/* ---- asking ----------------------------------------------------------------------- */

/* An errno value, or 0, of a folder; `sub` "": the folder itself. */
static enum kiln_status say_writable(int fault, const char *folder, const char *sub,
                                     struct kiln_error *err)
{
    if (fault == 0) {
        return KILN_OK;
    }
    return ki_fail_os(err, KILN_E_STORE, fault,
                      "folder \"%.400s%s%s\" cannot be written to", folder,
                      sub[0] != '\0' ? "/" : "", sub);
}

/* Is there nothing of this name, not even a link to nowhere, which mkdir would not replace? */
static bool is_missing(const char *path)
{
    struct ki_file_id id;

    return ki_file_stat(NULL, AT_FDCWD, path, &id) == ENOENT;
}

/* Missing folders are made from the first one on, so the last that is there decides. */
static enum kiln_status ask_above(const char *root, struct kiln_error *err)
{
    char path[PATH_MAX];
    char *slash;

    snprintf(path, sizeof path, "%s", root);
    do {
        slash = strrchr(path, '/');
        slash[slash == path ? 1 : 0] = '\0';
    } while (is_missing(path) && path[1] != '\0');
    return say_writable(ki_file_writable(NULL, AT_FDCWD, path), path, "", err);
}

/* One that is missing is made, if the folder it would lie in can be written to. */
static enum kiln_status ask_sub(const struct ki_store_layer *layer, const char *name,
                                struct kiln_error *err)
{
    struct kiln_error local = {0};
    int fd = -1;
    int fault;

    if (ki_store_layer_open_sub(layer, name, &fd, &local) != KILN_OK) {
        if (local.native_code == ENOENT) {
            return KILN_OK;
        }
        *err = local;
        return local.status;
    }
    fault = ki_file_writable(NULL, fd, ".");
    ki_file_close_dir(NULL, fd);
    return say_writable(fault, layer->path, name, err);
}

static enum kiln_status ask_subs(const struct ki_store_layer *layer,
                                 struct kiln_error *err)
{
    struct ki_file_names subs = {0};
    enum kiln_status status = ask_sub(layer, "tmp", err);
    int fault;

    if (status != KILN_OK) {
        return status;
    }
    fault = ki_file_list(layer->files, layer->dir, layer->mem, &subs);
    if (fault != 0) {
        return fail_list(layer, "", fault, err);
    }
    for (size_t i = 0; i < subs.n && status == KILN_OK; i++) {
        if (ki_store_sub_valid(subs.names[i])) {
            status = ask_sub(layer, subs.names[i], err);
        }
    }
    ki_file_names_finish(&subs, layer->mem);
    return status;
}

static enum kiln_status ask_layer(const struct ki_store_layer *layer, const char *root,
                                  struct kiln_error *err)
{
    if (layer->dir < 0) {
        return say_writable(ki_file_writable(NULL, AT_FDCWD, root), root, "", err);
    }
    KI_TRY(say_writable(ki_file_writable(NULL, layer->dir, "."), layer->path, "", err));
    return ask_subs(layer, err);
}

enum kiln_status ki_store_writable(const char *root, bool allow_group_writable,
                                   const struct ki_mem *mem, struct kiln_error *err)
{
    struct ki_store_layer_options options = {
        .path = root,
        .allow_group_writable = allow_group_writable,
    };
    struct kiln_error local = {0};
    struct ki_store_layer layer;
    enum kiln_status status = ki_store_layer_open(&layer, NULL, &options, mem, &local);

    if (status == KILN_OK) {
        status = ask_layer(&layer, root, &local);
        ki_store_layer_close(&layer);
    } else if (local.native_code == ENOENT) {
        status = ask_above(root, &local);
    }
    if (status != KILN_OK && err != NULL) {
        *err = local;
    }
    return status;
}

/* ---- trimming --------------------------------------------------------------------- */

struct candidate {
    struct ki_store_name name;
    struct ki_file_id id;
};

struct trim {
    struct ki_store_layer *layer;
    struct candidate *entries; /* owned */
    size_t n, capacity;
    int64_t bytes;
};

static enum kiln_status add_candidate(void *user, int dir, const char *sub,
                                      const char *file, const char *reason,
                                      struct kiln_error *err)
{
    struct trim *trim = user;
    struct candidate one;

    (void)reason;
    /* What is not an entry is not kiln's to delete. */
    if (file == NULL || !ki_store_name_parse(sub, file, &one.name) ||
        ki_file_stat(trim->layer->files, dir, file, &one.id) != 0 || !one.id.regular) {
        return KILN_OK;
    }
    if (trim->n == trim->capacity) {
        size_t capacity = trim->capacity == 0 ? FIRST_ENTRIES : 2 * trim->capacity;
        struct candidate *grown =
            ki_mem_resize(trim->layer->mem, trim->entries, capacity * sizeof *grown);

        if (grown == NULL) {
            return ki_fail_memory(err, "the list of cache entries");
        }
        trim->entries = grown;
        trim->capacity = capacity;
    }
    trim->entries[trim->n++] = one;
    trim->bytes += one.id.size_bytes;
    return KILN_OK;
}

/* Oldest use first; names decide between equals, so that two trims agree. */
static int compare_use(const void *left, const void *right)
{
    const struct candidate *a = left;
    const struct candidate *b = right;

    if (a->id.modified_s != b->id.modified_s) {
        return a->id.modified_s < b->id.modified_s ? -1 : 1;
    }
    if (a->id.modified_ns != b->id.modified_ns) {
        return a->id.modified_ns < b->id.modified_ns ? -1 : 1;
    }
    if (strcmp(a->name.sub, b->name.sub) != 0) {
        return strcmp(a->name.sub, b->name.sub);
    }
    return strcmp(a->name.file, b->name.file);
}

/* Temporary files of writers that died; a living one is done within the hour. */
static void remove_stale_tmp(const struct ki_store_layer *layer)
{
    struct ki_file_names names = {0};
    int64_t now = (int64_t)time(NULL);

    if (ki_file_list(layer->files, layer->tmp, layer->mem, &names) != 0) {
        return;
    }
    for (size_t i = 0; i < names.n; i++) {
        struct ki_file_id id;

        if (ki_file_stat(layer->files, layer->tmp, names.names[i], &id) == 0 &&
            id.regular && now - id.modified_s > TMP_SECONDS) {
            (void)ki_file_remove(layer->files, layer->tmp, names.names[i]);
        }
    }
    ki_file_names_finish(&names, layer->mem);
}

static enum kiln_status remove_oldest(struct trim *trim, int64_t max_bytes,
                                      int64_t *n_removed, struct kiln_error *err)
{
    for (size_t i = 0; i < trim->n && trim->bytes > max_bytes; i++) {
        const struct candidate *oldest = &trim->entries[i];
        bool gone = false;

        KI_TRY(
            ki_store_layer_remove(trim->layer, &oldest->name, &oldest->id, &gone, err));
        if (gone) {
            trim->bytes -= oldest->id.size_bytes;
            ++*n_removed;
        }
    }
    return KILN_OK;
}

static enum kiln_status trim_layer(struct ki_store_layer *layer, int64_t max_bytes,
                                   int64_t *out_removed, int64_t *out_bytes_left,
                                   struct kiln_error *err)
{
    struct trim trim = {.layer = layer};
    int64_t n_removed = 0;
    enum kiln_status status = walk(layer, add_candidate, &trim, err);

    if (status == KILN_OK) {
        if (trim.n > 1) {
            qsort(trim.entries, trim.n, sizeof *trim.entries, compare_use);
        }
        remove_stale_tmp(layer);
        status = remove_oldest(&trim, max_bytes, &n_removed, err);
    }
    if (status == KILN_OK) {
        *out_removed = n_removed;
        *out_bytes_left = trim.bytes;
    }
    ki_mem_free(layer->mem, trim.entries);
    return status;
}

enum kiln_status ki_store_trim(const char *root, bool allow_group_writable,
                               int64_t max_bytes, const struct ki_mem *mem,
                               int64_t *out_removed, int64_t *out_bytes_left,
                               struct kiln_error *err)
{
    struct ki_store_layer_options options = {
        .path = root,
        .writable = true,
        .allow_group_writable = allow_group_writable,
    };
    struct ki_store_layer layer;
    enum kiln_status status;

    if (max_bytes < 0) {
        return ki_fail(err, KILN_E_ARGUMENT, "max_bytes is %lld: expected 0 or more",
                       (long long)max_bytes);
    }
    KI_TRY(ki_store_layer_open(&layer, NULL, &options, mem, err));
    status = trim_layer(&layer, max_bytes, out_removed, out_bytes_left, err);
    ki_store_layer_close(&layer);
    return status;
}
