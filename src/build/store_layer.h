/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One cache folder: opened once, then used by descriptor. Hands out only entries that were
 * decoded and found whole. Knows nothing of the other layers, of counting or of warning.
 */
#ifndef KI_BUILD_STORE_LAYER_H
#define KI_BUILD_STORE_LAYER_H

#include <stdatomic.h>

#include "base/file.h"
#include "build/store_entry.h"

struct ki_store_layer {
    const struct ki_files *files; /* borrowed; NULL: the plain system */
    const struct ki_mem *mem;
    char *path; /* of the next, for messages; owned */
    int dir;    /* <root>/kiln-v1; -1: there is none yet, so no entries */
    int tmp;    /* its tmp/; -1: read-only */
    bool allow_group_writable;
    uint64_t random; /* makes names in tmp/ unique, with process id and counter */
    _Atomic uint64_t n_names;
};

struct ki_store_layer_options {
    const char *path; /* absolute */
    bool writable;    /* create what is missing in it */
    bool create;      /* create the folder itself too */
    bool allow_group_writable;
};

/* KILN_E_STORE with native_code ENOENT when there is no such folder; KILN_E_MEMORY. */
enum kiln_status ki_store_layer_open(struct ki_store_layer *layer,
                                     const struct ki_files *files,
                                     const struct ki_store_layer_options *options,
                                     const struct ki_mem *mem, struct kiln_error *err);
void ki_store_layer_close(struct ki_store_layer *layer);

/* Opens a folder below `dir`, which must be there, by the layer's rules: "tmp", "8c". As
 * ki_file_open_dir. */
enum kiln_status ki_store_layer_open_sub(const struct ki_store_layer *layer,
                                         const char *name, int *out_fd,
                                         struct kiln_error *err);

/* The name of an entry: <2 hex>/<62 hex>.kiln. */
enum { KI_STORE_SUB = 3, KI_STORE_FILE = KI_DIGEST_HEX - 2 + sizeof ".kiln" - 1 };
struct ki_store_name {
    char sub[KI_STORE_SUB];
    char file[KI_STORE_FILE];
};
void ki_store_name_make(const char digest_hex[KI_DIGEST_HEX], struct ki_store_name *out);
bool ki_store_name_parse(const char *sub, const char *file, struct ki_store_name *out);
bool ki_store_sub_valid(const char *sub);

/* The digest of an entry's key is its name. */
bool ki_store_name_matches(const struct ki_store_name *name,
                           const struct ki_store_entry *entry);

enum ki_store_read {
    KI_STORE_READ_OK,
    KI_STORE_READ_ABSENT,
    KI_STORE_READ_BAD,    /* something lies there that is no whole entry */
    KI_STORE_READ_FAULT,  /* the disk failed */
    KI_STORE_READ_MEMORY, /* out of memory */
};

/* What was read; `bytes` is the caller's, `entry` lies in it. */
struct ki_store_found {
    struct ki_blob bytes;
    struct ki_file_id id; /* also of a bad one, when there is a file; else all zeros */
    struct ki_store_entry entry;
};

enum ki_store_read ki_store_layer_read(const struct ki_store_layer *layer,
                                       const struct ki_store_name *name,
                                       struct ki_store_found *out,
                                       struct kiln_error *err);

/* Writable layers only. */
enum kiln_status ki_store_layer_publish(struct ki_store_layer *layer,
                                        const struct ki_store_name *name,
                                        struct ki_blob bytes, struct kiln_error *err);

/* Removes the entry if it is still that file; *out_gone as in base/file.h. Writable layers only. */
enum kiln_status ki_store_layer_remove(struct ki_store_layer *layer,
                                       const struct ki_store_name *name,
                                       const struct ki_file_id *id, bool *out_gone,
                                       struct kiln_error *err);

/* Notes that an entry was used, if the last note is old. Best effort. */
void ki_store_layer_touch(const struct ki_store_layer *layer,
                          const struct ki_store_name *name, const struct ki_file_id *id);

#endif
