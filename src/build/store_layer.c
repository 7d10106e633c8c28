/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One cache folder. Below the folder itself, which was found trustworthy, each sub-folder is
 * opened and examined anew: somebody may have put another one there.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "base/attr.h"
#include "base/status.h"
#include "build/store_layer.h"

enum { TMP_NAME = 64, SECONDS_BETWEEN_TOUCHES = 24 * 60 * 60 };

static const char versioned_dir[] = "kiln-v1";
static const char suffix[] = ".kiln";
static const char tag_name[] = "CACHEDIR.TAG";
static const char tag_text[] = "Signature: 8a477f597d28d172789f06886806bc55\n"
                               "# Compiled kernels of kiln. All of them can be made "
                               "again: backups may leave them out.\n";

/* ---- names ------------------------------------------------------------------------ */

static bool is_hex(const char *text, size_t size)
{
    return strspn(text, "0123456789abcdef") >= size;
}

void ki_store_name_make(const char digest_hex[KI_DIGEST_HEX], struct ki_store_name *out)
{
    snprintf(out->sub, sizeof out->sub, "%.2s", digest_hex);
    snprintf(out->file, sizeof out->file, "%s%s", digest_hex + 2, suffix);
}

bool ki_store_sub_valid(const char *sub)
{
    return strlen(sub) == KI_STORE_SUB - 1 && is_hex(sub, KI_STORE_SUB - 1);
}

bool ki_store_name_parse(const char *sub, const char *file, struct ki_store_name *out)
{
    size_t hex = KI_STORE_FILE - sizeof suffix;

    if (!ki_store_sub_valid(sub) || strlen(file) != KI_STORE_FILE - 1 ||
        !is_hex(file, hex) || strcmp(file + hex, suffix) != 0) {
        return false;
    }
    memcpy(out->sub, sub, KI_STORE_SUB);
    memcpy(out->file, file, KI_STORE_FILE);
    return true;
}

bool ki_store_name_matches(const struct ki_store_name *name,
                           const struct ki_store_entry *entry)
{
    unsigned char digest[KI_DIGEST_BYTES];
    char hex[KI_DIGEST_HEX];
    struct ki_store_name wanted;

    ki_hash(entry->key_text, entry->key_size, digest);
    ki_hash_hex(digest, hex);
    ki_store_name_make(hex, &wanted);
    return strcmp(wanted.sub, name->sub) == 0 && strcmp(wanted.file, name->file) == 0;
}

/* Unlike any name that another writer can have, also one in another container. */
static void make_tmp_name(struct ki_store_layer *layer, char out[TMP_NAME])
{
    uint64_t n = atomic_fetch_add_explicit(&layer->n_names, 1, memory_order_relaxed);

    snprintf(out, TMP_NAME, "%ld-%016llx-%llu", (long)getpid(),
             (unsigned long long)layer->random, (unsigned long long)n);
}

/* ---- opening ---------------------------------------------------------------------- */

static struct ki_dir_rules rules_below(const struct ki_store_layer *layer, int parent,
                                       const char *parent_path)
{
    return (struct ki_dir_rules){
        .parent = parent,
        .parent_path = parent_path,
        .allow_group_writable = layer->allow_group_writable,
    };
}

/* Opens a folder below another one, made first if it is missing. */
static enum kiln_status make_and_open(const struct ki_store_layer *layer,
                                      struct ki_dir_rules rules, const char *name,
                                      int *out_fd, struct kiln_error *err)
{
    int fault = ki_file_make_dir(layer->files, rules.parent, name);

    if (fault != 0) {
        return ki_fail_os(err, KILN_E_STORE, fault, "folder \"%.400s/%s\" cannot be made",
                          rules.parent_path, name);
    }
    return ki_file_open_dir(layer->files, name, rules, out_fd, err);
}

enum kiln_status ki_store_layer_open_sub(const struct ki_store_layer *layer,
                                         const char *name, int *out_fd,
                                         struct kiln_error *err)
{
    return ki_file_open_dir(layer->files, name,
                            rules_below(layer, layer->dir, layer->path), out_fd, err);
}

/* Keeps backup programs away from the cache; if it cannot be written, nothing is lost. */
static void write_tag(struct ki_store_layer *layer)
{
    char tmp_name[TMP_NAME];
    struct ki_file_id id;

    if (ki_file_stat(layer->files, layer->dir, tag_name, &id) == ENOENT) {
        make_tmp_name(layer, tmp_name);
        (void)ki_file_publish(layer->files, &(struct ki_file_draft){
                                                .tmp_dir = layer->tmp,
                                                .dir = layer->dir,
                                                .tmp_name = tmp_name,
                                                .name = tag_name,
                                                .data = tag_text,
                                                .size = sizeof tag_text - 1,
                                            });
    }
}

static enum kiln_status open_below(struct ki_store_layer *layer, int root,
                                   const struct ki_store_layer_options *options,
                                   struct kiln_error *err)
{
    struct ki_dir_rules rules = rules_below(layer, root, options->path);
    struct kiln_error local = {0};

    if (options->writable) {
        KI_TRY(make_and_open(layer, rules, versioned_dir, &layer->dir, err));
        rules = rules_below(layer, layer->dir, layer->path);
        KI_TRY(make_and_open(layer, rules, "tmp", &layer->tmp, err));
        write_tag(layer);
        return KILN_OK;
    }
    if (ki_file_open_dir(layer->files, versioned_dir, rules, &layer->dir, &local) !=
            KILN_OK &&
        local.native_code != ENOENT) {
        if (err != NULL) {
            *err = local;
        }
        return KILN_E_STORE;
    }
    return KILN_OK;
}

/* NULL: out of memory. */
static char *versioned_path(const char *root, const struct ki_mem *mem)
{
    size_t length = strlen(root);
    size_t size = length + 1 + sizeof versioned_dir;
    char *path = ki_mem_alloc(mem, size);

    while (length > 0 && root[length - 1] == '/') {
        length--;
    }
    if (path != NULL) {
        snprintf(path, size, "%.*s/%s", (int)length, root, versioned_dir);
    }
    return path;
}

enum kiln_status ki_store_layer_open(struct ki_store_layer *layer,
                                     const struct ki_files *files,
                                     const struct ki_store_layer_options *options,
                                     const struct ki_mem *mem, struct kiln_error *err)
{
    enum kiln_status status;
    int root = -1;

    *layer = (struct ki_store_layer){
        .files = files,
        .mem = mem,
        .dir = -1,
        .tmp = -1,
        .allow_group_writable = options->allow_group_writable,
    };
    layer->path = versioned_path(options->path, mem);
    if (layer->path == NULL) {
        return ki_fail_memory(err, "a cache folder's path");
    }
    if (getrandom(&layer->random, sizeof layer->random, GRND_NONBLOCK) < 0) {
        layer->random = (uint64_t)time(NULL);
    }
    if (options->create && options->path[0] == '/') {
        /* Whether it worked is seen when the folder is opened. */
        (void)ki_file_make_dirs(files, options->path);
    }
    status =
        ki_file_open_dir(files, options->path, rules_below(layer, -1, NULL), &root, err);
    if (status == KILN_OK) {
        status = open_below(layer, root, options, err);
    }
    ki_file_close_dir(files, root);
    if (status != KILN_OK) {
        ki_store_layer_close(layer);
    }
    return status;
}

void ki_store_layer_close(struct ki_store_layer *layer)
{
    ki_file_close_dir(layer->files, layer->tmp);
    ki_file_close_dir(layer->files, layer->dir);
    ki_mem_free(layer->mem, layer->path);
    *layer = (struct ki_store_layer){.dir = -1, .tmp = -1};
}

/* ---- reading ---------------------------------------------------------------------- */

/* A folder or a pipe, a socket, a link. */
static bool is_no_file(int fault)
{
    return fault == EINVAL || fault == ENXIO || fault == ELOOP;
}

static enum ki_store_read classify(int fault)
{
    if (is_no_file(fault)) {
        return KI_STORE_READ_BAD;
    }
    switch (fault) {
    case 0:
        return KI_STORE_READ_OK;
    case ENOENT:
        return KI_STORE_READ_ABSENT;
    case ENOMEM:
        return KI_STORE_READ_MEMORY;
    case EFBIG:
        return KI_STORE_READ_BAD;
    default:
        return KI_STORE_READ_FAULT;
    }
}

static bool has_line(const struct ki_store_entry *entry, const char *line)
{
    return memmem(entry->key_text, entry->key_size, line, strlen(line)) != NULL;
}

/* A key names its op and target, and the cubin must be of both: a digest proves that the bytes
 * belong together, not that whoever put them together meant well. */
static bool facts_match(const struct ki_store_entry *entry)
{
    static const char prefix[] = "kiln_";
    char target[KI_TARGET_NAME];
    char line[96];

    if (strncmp(entry->cubin.entry_name, prefix, strlen(prefix)) != 0) {
        return false;
    }
    snprintf(line, sizeof line, "\nop=%s\n", entry->cubin.entry_name + strlen(prefix));
    if (!has_line(entry, line)) {
        return false;
    }
    ki_target_name(entry->cubin.target, target);
    snprintf(line, sizeof line, "\ntarget=%s\n", target);
    return has_line(entry, line);
}

static enum ki_store_read read_file(const struct ki_store_layer *layer, int sub,
                                    const struct ki_store_name *name,
                                    struct ki_store_found *found, struct kiln_error *err)
{
    struct ki_file_content content;
    int fault = ki_file_read(layer->files, sub, name->file, KI_STORE_ENTRY_MAX,
                             layer->mem, &content);

    if (fault != 0) {
        if (is_no_file(fault)) {
            (void)ki_fail(err, KILN_E_STORE, "it is not a regular file");
        } else {
            (void)ki_fail_os(err, KILN_E_STORE, fault, "it cannot be read");
        }
        (void)ki_file_stat(layer->files, sub, name->file, &found->id);
        return classify(fault);
    }
    found->bytes = content.bytes;
    found->id = content.id;
    if (ki_store_entry_decode(found->bytes, &found->entry, err) != KILN_OK) {
        return KI_STORE_READ_BAD;
    }
    if (!ki_store_name_matches(name, &found->entry)) {
        (void)ki_fail(err, KILN_E_STORE, "it holds the kernel of another key");
        return KI_STORE_READ_BAD;
    }
    if (!facts_match(&found->entry)) {
        (void)ki_fail(
            err, KILN_E_STORE,
            "it holds %s for sm_%d%d, which is not the op and target of its key",
            found->entry.cubin.entry_name, found->entry.cubin.target.major,
            found->entry.cubin.target.minor);
        return KI_STORE_READ_BAD;
    }
    return KI_STORE_READ_OK;
}

enum ki_store_read ki_store_layer_read(const struct ki_store_layer *layer,
                                       const struct ki_store_name *name,
                                       struct ki_store_found *out, struct kiln_error *err)
{
    struct ki_store_found found = {0};
    struct kiln_error local = {0};
    enum ki_store_read result;
    int sub = -1;

    if (layer->dir < 0) {
        return KI_STORE_READ_ABSENT;
    }
    if (ki_store_layer_open_sub(layer, name->sub, &sub, &local) != KILN_OK) {
        if (err != NULL) {
            *err = local;
        }
        return local.native_code == ENOENT ? KI_STORE_READ_ABSENT : KI_STORE_READ_FAULT;
    }
    result = read_file(layer, sub, name, &found, err);
    ki_file_close_dir(layer->files, sub);
    if (result != KI_STORE_READ_OK) {
        ki_blob_finish(&found.bytes, layer->mem);
        found.entry = (struct ki_store_entry){0};
    }
    *out = found;
    return result;
}

/* ---- changing --------------------------------------------------------------------- */

enum kiln_status ki_store_layer_publish(struct ki_store_layer *layer,
                                        const struct ki_store_name *name,
                                        struct ki_blob bytes, struct kiln_error *err)
{
    char tmp_name[TMP_NAME];
    int sub = -1;
    int fault;

    KI_TRY(make_and_open(layer, rules_below(layer, layer->dir, layer->path), name->sub,
                         &sub, err));
    make_tmp_name(layer, tmp_name);
    fault = ki_file_publish(layer->files, &(struct ki_file_draft){
                                              .tmp_dir = layer->tmp,
                                              .dir = sub,
                                              .tmp_name = tmp_name,
                                              .name = name->file,
                                              .data = bytes.data,
                                              .size = bytes.size,
                                          });
    ki_file_close_dir(layer->files, sub);
    if (fault != 0) {
        return ki_fail_os(err, KILN_E_STORE, fault,
                          "entry \"%.400s/%s/%s\" cannot be written", layer->path,
                          name->sub, name->file);
    }
    return KILN_OK;
}

enum kiln_status ki_store_layer_remove(struct ki_store_layer *layer,
                                       const struct ki_store_name *name,
                                       const struct ki_file_id *id, bool *out_gone,
                                       struct kiln_error *err)
{
    char tmp_name[TMP_NAME];
    int sub = -1;
    int fault;

    *out_gone = false;
    KI_TRY(ki_store_layer_open_sub(layer, name->sub, &sub, err));
    make_tmp_name(layer, tmp_name);
    fault = ki_file_remove_same(layer->files,
                                &(struct ki_file_victim){
                                    .dir = sub,
                                    .tmp_dir = layer->tmp,
                                    .name = name->file,
                                    .tmp_name = tmp_name,
                                    .id = *id,
                                },
                                out_gone);
    ki_file_close_dir(layer->files, sub);
    if (fault != 0) {
        return ki_fail_os(err, KILN_E_STORE, fault,
                          "entry \"%.400s/%s/%s\" cannot be removed", layer->path,
                          name->sub, name->file);
    }
    return KILN_OK;
}

void ki_store_layer_touch(const struct ki_store_layer *layer,
                          const struct ki_store_name *name, const struct ki_file_id *id)
{
    int sub = -1;

    if ((int64_t)time(NULL) - id->modified_s < SECONDS_BETWEEN_TOUCHES) {
        return;
    }
    if (ki_store_layer_open_sub(layer, name->sub, &sub, NULL) == KILN_OK) {
        (void)ki_file_touch(layer->files, sub, name->file);
    }
    ki_file_close_dir(layer->files, sub);
}
