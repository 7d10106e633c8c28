/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files below folders that were opened once and found trustworthy. Everything goes by folder
 * descriptor and name, so that nobody can swap a path between a check and its use. Calls
 * without `err` give 0 or an errno value. Knows nothing of what the files hold.
 */
#ifndef KI_BASE_FILE_H
#define KI_BASE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "kiln/status.h"

#include "base/blob.h"

enum ki_file_call {
    KI_FILE_OPEN,
    KI_FILE_STAT,
    KI_FILE_READ,
    KI_FILE_WRITE,
    KI_FILE_SYNC,
    KI_FILE_CLOSE,
    KI_FILE_RENAME,
    KI_FILE_UNLINK,
    KI_FILE_MKDIR,
    KI_FILE_CHMOD,
    KI_FILE_TOUCH,
    KI_FILE_LIST,
    KI_FILE_ACCESS,
};

/*
 * How tests make the n-th system call fail. `before` is asked ahead of each one: 0 lets it
 * happen, an errno value fails it without doing it (a close is done all the same). For reads
 * and writes it may lower *size to make the transfer a short one.
 */
struct ki_file_faults {
    int (*before)(void *user, enum ki_file_call call, size_t *size);
    void *user;
};

/* The file layer that calls go through; all zeros: the plain system. */
struct ki_files {
    const struct ki_file_faults *faults; /* NULL: none */
};

/* Which file it was, so that a delete cannot hit one that replaced it. */
struct ki_file_id {
    dev_t device;
    ino_t inode;
    int64_t size_bytes;
    int64_t modified_s, modified_ns; /* since 1970 */
    bool regular;                    /* a plain file: no folder, link or pipe */
};

/*
 * Opens a folder that only its owner (the caller or root) can put files into: not through a
 * symbolic link, not world-writable, sticky or not, group-writable only when allowed. With
 * `parent` >= 0, `path` is a name in a folder that was opened so; then, if groups are
 * allowed, its owner may be anybody: only a member could create it. A failure is KILN_E_STORE
 * with native_code ENOENT when there is no such folder.
 */
struct ki_dir_rules {
    int parent;              /* -1: path is absolute */
    const char *parent_path; /* for messages; not with parent -1 */
    bool allow_group_writable;
};
enum kiln_status ki_file_open_dir(const struct ki_files *files, const char *path,
                                  struct ki_dir_rules rules, int *out_fd,
                                  struct kiln_error *err);
void ki_file_close_dir(const struct ki_files *files, int fd); /* -1 is fine */

/* Can the caller put files into this folder? Path as in openat; makes nothing. */
int ki_file_writable(const struct ki_files *files, int parent, const char *path);

/* Creates an absolute path's missing folders, for their owner alone (0700). */
int ki_file_make_dirs(const struct ki_files *files, const char *path);

/* Creates one folder with the permissions of the one it lies in; one that exists is fine. A
 * group's write permission is kept in spite of the umask. */
int ki_file_make_dir(const struct ki_files *files, int parent, const char *name);

/* Reads a plain file of at most max_bytes whole. EINVAL: not a plain file; EFBIG: longer than
 * max_bytes; ENOMEM. `out` is untouched on failure. */
struct ki_file_content {
    struct ki_blob bytes; /* the caller's */
    struct ki_file_id id;
};
int ki_file_read(const struct ki_files *files, int dir, const char *name,
                 size_t max_bytes, const struct ki_mem *mem, struct ki_file_content *out);

/*
 * Publishes a file whole or not at all: writes tmp_dir/tmp_name (must not exist), syncs it,
 * renames it to dir/name and syncs that folder. It has the permissions of dir, less
 * execution. On failure no temporary file is left.
 */
struct ki_file_draft {
    int tmp_dir, dir;
    const char *tmp_name, *name;
    const void *data;
    size_t size;
};
int ki_file_publish(const struct ki_files *files, const struct ki_file_draft *draft);

int ki_file_stat(const struct ki_files *files, int dir, const char *name,
                 struct ki_file_id *out);

/* Removes dir/name if it is still the plain file `id`: moves it aside to tmp_dir/tmp_name
 * and back again if somebody replaced it meanwhile. *out_gone: no file `id` lies there. */
struct ki_file_victim {
    int dir, tmp_dir;
    const char *name, *tmp_name;
    struct ki_file_id id;
};
int ki_file_remove_same(const struct ki_files *files, const struct ki_file_victim *victim,
                        bool *out_gone);
int ki_file_remove(const struct ki_files *files, int dir, const char *name);

/* Sets the modification time to now. */
int ki_file_touch(const struct ki_files *files, int dir, const char *name);

/* The names in a folder in byte order, less "." and "..". */
struct ki_file_names {
    char **names; /* owned, each too */
    size_t n, capacity;
};
int ki_file_list(const struct ki_files *files, int dir, const struct ki_mem *mem,
                 struct ki_file_names *out);
void ki_file_names_finish(struct ki_file_names *names, const struct ki_mem *mem);

#endif
