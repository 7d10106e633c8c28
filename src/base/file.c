/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files by folder descriptor and name. Each system call has one small function that asks the
 * fault hook first, so that tests can fail any of them. Knows nothing of what files hold.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/attr.h"
#include "base/file.h"
#include "base/status.h"

enum { OWNER_ONLY = 0700, FIRST_NAMES = 32, SHOWN_PATH = 512 };

/* ---- system calls, each 0 or an errno value --------------------------------------- */

static int ask(const struct ki_files *files, enum ki_file_call call, size_t *size)
{
    if (files == NULL || files->faults == NULL) {
        return 0;
    }
    return files->faults->before(files->faults->user, call, size);
}

static int sys_open(const struct ki_files *files, int dir, const char *name, int flags,
                    mode_t mode, int *out)
{
    int fault = ask(files, KI_FILE_OPEN, NULL);
    int fd;

    if (fault != 0) {
        return fault;
    }
    do {
        fd = openat(dir, name, flags | O_CLOEXEC | O_NOFOLLOW, mode);
    } while (fd < 0 && errno == EINTR);
    if (fd < 0) {
        return errno;
    }
    *out = fd;
    return 0;
}

/* Not repeated on EINTR: the descriptor is gone either way. */
static int sys_close(const struct ki_files *files, int fd)
{
    int fault = ask(files, KI_FILE_CLOSE, NULL);
    int result = close(fd) == 0 ? 0 : errno;

    return fault != 0 ? fault : result;
}

static int sys_fstat(const struct ki_files *files, int fd, struct stat *out)
{
    int fault = ask(files, KI_FILE_STAT, NULL);

    if (fault != 0) {
        return fault;
    }
    return fstat(fd, out) == 0 ? 0 : errno;
}

static int sys_read(const struct ki_files *files, int fd, void *buf, size_t *size)
{
    int fault = ask(files, KI_FILE_READ, size);
    ssize_t got;

    if (fault != 0) {
        return fault;
    }
    got = read(fd, buf, *size);
    if (got < 0) {
        return errno;
    }
    *size = (size_t)got;
    return 0;
}

static int sys_write(const struct ki_files *files, int fd, const void *buf, size_t *size)
{
    int fault = ask(files, KI_FILE_WRITE, size);
    ssize_t put;

    if (fault != 0) {
        return fault;
    }
    put = write(fd, buf, *size);
    if (put < 0) {
        return errno;
    }
    *size = (size_t)put;
    return 0;
}

static int sys_fsync(const struct ki_files *files, int fd)
{
    int fault = ask(files, KI_FILE_SYNC, NULL);

    if (fault != 0) {
        return fault;
    }
    return fsync(fd) == 0 ? 0 : errno;
}

static int sys_rename(const struct ki_files *files, int from_dir, const char *from,
                      int to_dir, const char *to)
{
    int fault = ask(files, KI_FILE_RENAME, NULL);

    if (fault != 0) {
        return fault;
    }
    return renameat(from_dir, from, to_dir, to) == 0 ? 0 : errno;
}

static int sys_mkdir(const struct ki_files *files, int dir, const char *name, mode_t mode)
{
    int fault = ask(files, KI_FILE_MKDIR, NULL);

    if (fault != 0) {
        return fault;
    }
    return mkdirat(dir, name, mode) == 0 ? 0 : errno;
}

static int sys_fchmod(const struct ki_files *files, int fd, mode_t mode)
{
    int fault = ask(files, KI_FILE_CHMOD, NULL);

    if (fault != 0) {
        return fault;
    }
    return fchmod(fd, mode) == 0 ? 0 : errno;
}

int ki_file_remove(const struct ki_files *files, int dir, const char *name)
{
    int fault = ask(files, KI_FILE_UNLINK, NULL);

    if (fault != 0) {
        return fault;
    }
    return unlinkat(dir, name, 0) == 0 ? 0 : errno;
}

int ki_file_touch(const struct ki_files *files, int dir, const char *name)
{
    int fault = ask(files, KI_FILE_TOUCH, NULL);

    if (fault != 0) {
        return fault;
    }
    return utimensat(dir, name, NULL, AT_SYMLINK_NOFOLLOW) == 0 ? 0 : errno;
}

int ki_file_writable(const struct ki_files *files, int parent, const char *path)
{
    int fault = ask(files, KI_FILE_ACCESS, NULL);

    if (fault != 0) {
        return fault;
    }
    return faccessat(parent, path, W_OK | X_OK, AT_EACCESS) == 0 ? 0 : errno;
}

static void fill_id(const struct stat *st, struct ki_file_id *out)
{
    *out = (struct ki_file_id){
        .device = st->st_dev,
        .inode = st->st_ino,
        .size_bytes = (int64_t)st->st_size,
        .modified_s = (int64_t)st->st_mtim.tv_sec,
        .modified_ns = (int64_t)st->st_mtim.tv_nsec,
        .regular = S_ISREG(st->st_mode),
    };
}

int ki_file_stat(const struct ki_files *files, int dir, const char *name,
                 struct ki_file_id *out)
{
    struct stat st;
    int fault = ask(files, KI_FILE_STAT, NULL);

    if (fault != 0) {
        return fault;
    }
    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) != 0) {
        return errno;
    }
    fill_id(&st, out);
    return 0;
}

/* ---- folders ---------------------------------------------------------------------- */

/* A path as messages show it: whole, though it was opened by its last name, and cut where it
 * is very long. */
static void show_path(const char *path, struct ki_dir_rules rules, char out[SHOWN_PATH])
{
    if (rules.parent >= 0 && rules.parent_path != NULL) {
        snprintf(out, SHOWN_PATH, "%.400s/%.100s", rules.parent_path, path);
    } else {
        snprintf(out, SHOWN_PATH, "%.400s", path);
    }
}

static enum kiln_status check_trust(const struct stat *st, const char *path,
                                    struct ki_dir_rules rules, struct kiln_error *err)
{
    unsigned mode = (unsigned)st->st_mode & 07777U;
    bool any_owner = rules.parent >= 0 && rules.allow_group_writable;
    char shown[SHOWN_PATH];

    if (!any_owner && st->st_uid != 0 && st->st_uid != geteuid()) {
        show_path(path, rules, shown);
        return ki_fail(err, KILN_E_STORE,
                       "folder \"%s\" belongs to user %lu: expected %lu or root", shown,
                       (unsigned long)st->st_uid, (unsigned long)geteuid());
    }
    if ((mode & S_IWOTH) != 0) {
        show_path(path, rules, shown);
        return ki_fail(err, KILN_E_STORE,
                       "folder \"%s\" has mode %04o: expected one that not everybody "
                       "can write to",
                       shown, mode);
    }
    if ((mode & S_IWGRP) != 0 && !rules.allow_group_writable) {
        show_path(path, rules, shown);
        return ki_fail(err, KILN_E_STORE,
                       "folder \"%s\" has mode %04o: expected one that its group cannot "
                       "write to, unless that is allowed",
                       shown, mode);
    }
    return KILN_OK;
}

/* Behind a trailing "/" or "/." the system would follow a link in spite of O_NOFOLLOW. */
static int open_folder(const struct ki_files *files, int parent, const char *path,
                       int *out_fd)
{
    char bare[4096];
    size_t size = strlen(path);

    while (size > 1 &&
           (path[size - 1] == '/' || (path[size - 1] == '.' && path[size - 2] == '/'))) {
        size--;
    }
    if (size >= sizeof bare) {
        return ENAMETOOLONG;
    }
    memcpy(bare, path, size);
    bare[size] = '\0';
    return sys_open(files, parent, bare, O_RDONLY | O_DIRECTORY, 0, out_fd);
}

enum kiln_status ki_file_open_dir(const struct ki_files *files, const char *path,
                                  struct ki_dir_rules rules, int *out_fd,
                                  struct kiln_error *err)
{
    char shown[SHOWN_PATH];
    enum kiln_status status;
    struct stat st;
    int fd = -1;
    int fault;

    if (rules.parent < 0 && path[0] != '/') {
        return ki_fail(err, KILN_E_STORE,
                       "folder \"%.400s\" is relative: expected an absolute path", path);
    }
    fault = open_folder(files, rules.parent < 0 ? AT_FDCWD : rules.parent, path, &fd);
    if (fault != 0) {
        show_path(path, rules, shown);
        return ki_fail_os(
            err, KILN_E_STORE, fault, "folder \"%s\" cannot be opened%s", shown,
            fault == ELOOP || fault == ENOTDIR ? " (expected a folder, not a link to one)"
                                               : "");
    }
    fault = sys_fstat(files, fd, &st);
    if (fault != 0) {
        show_path(path, rules, shown);
        status = ki_fail_os(err, KILN_E_STORE, fault, "folder \"%s\" cannot be examined",
                            shown);
        goto out;
    }
    status = check_trust(&st, path, rules, err);
    if (status == KILN_OK) {
        *out_fd = fd;
        fd = -1;
    }

out:
    ki_file_close_dir(files, fd);
    return status;
}

/* Nothing was written through it: a failing close loses nothing. */
void ki_file_close_dir(const struct ki_files *files, int fd)
{
    if (fd >= 0) {
        (void)sys_close(files, fd);
    }
}

int ki_file_make_dirs(const struct ki_files *files, const char *path)
{
    char part[4096];
    size_t size = strlen(path);
    int fault = 0;

    if (path[0] != '/') {
        return EINVAL;
    }
    if (size >= sizeof part) {
        return ENAMETOOLONG;
    }
    for (size_t i = 1; i <= size && fault == 0; i++) {
        if (path[i] != '/' && path[i] != '\0') {
            continue;
        }
        memcpy(part, path, i);
        part[i] = '\0';
        fault = sys_mkdir(files, AT_FDCWD, part, OWNER_ONLY);
        /* Folders above that exist answer this way or that when they cannot be written;
         * whether the last one is there is seen when it is opened. */
        if (fault == EEXIST || (path[i] == '/' && (fault == EROFS || fault == EACCES))) {
            fault = 0;
        }
    }
    return fault;
}

/* What others may do in a folder, they may do in those below it. */
static int inherited_mode(const struct ki_files *files, int dir, mode_t *out)
{
    struct stat st;
    int fault = sys_fstat(files, dir, &st);

    if (fault == 0) {
        *out = st.st_mode & (S_ISGID | S_IRWXU | S_IRWXG | S_IROTH | S_IXOTH);
        *out |= S_IRWXU;
    }
    return fault;
}

int ki_file_make_dir(const struct ki_files *files, int parent, const char *name)
{
    mode_t mode = 0;
    int fd = -1;
    int fault = inherited_mode(files, parent, &mode);

    if (fault == 0) {
        fault = sys_mkdir(files, parent, name, mode);
    }
    if (fault == EEXIST) {
        return 0;
    }
    if (fault != 0 || (mode & S_IWGRP) == 0) {
        return fault;
    }
    fault = sys_open(files, parent, name, O_RDONLY | O_DIRECTORY, 0, &fd);
    if (fault == 0) {
        fault = sys_fchmod(files, fd, mode);
    }
    ki_file_close_dir(files, fd);
    return fault;
}

/* ---- reading ---------------------------------------------------------------------- */

/* Fills the blob; a file that ends early gives a smaller one. */
static int read_all(const struct ki_files *files, int fd, struct ki_blob *blob)
{
    size_t done = 0;

    while (done < blob->size) {
        size_t size = blob->size - done;
        int fault = sys_read(files, fd, blob->data + done, &size);

        if (fault == EINTR) {
            continue;
        }
        if (fault != 0) {
            return fault;
        }
        if (size == 0) {
            break;
        }
        done += size;
    }
    blob->size = done;
    return 0;
}

int ki_file_read(const struct ki_files *files, int dir, const char *name,
                 size_t max_bytes, const struct ki_mem *mem, struct ki_file_content *out)
{
    struct ki_blob blob = {0};
    struct stat st;
    int fd = -1;
    /* O_NONBLOCK: a pipe that lies there must not hang the reader. */
    int fault = sys_open(files, dir, name, O_RDONLY | O_NONBLOCK, 0, &fd);

    if (fault != 0) {
        return fault;
    }
    fault = sys_fstat(files, fd, &st);
    if (fault == 0 && !S_ISREG(st.st_mode)) {
        fault = EINVAL;
    }
    if (fault == 0 && (st.st_size < 0 || (uintmax_t)st.st_size > max_bytes)) {
        fault = EFBIG;
    }
    if (fault != 0) {
        goto out;
    }
    blob.size = (size_t)st.st_size;
    blob.data = ki_mem_alloc(mem, blob.size);
    fault = blob.data == NULL ? ENOMEM : read_all(files, fd, &blob);
    if (fault == 0) {
        fill_id(&st, &out->id);
        out->bytes = blob;
        blob = (struct ki_blob){0};
    }

out:
    ki_file_close_dir(files, fd);
    ki_blob_finish(&blob, mem);
    return fault;
}

/* ---- publishing ------------------------------------------------------------------- */

static int write_all(const struct ki_files *files, int fd, const void *data, size_t size)
{
    const unsigned char *bytes = data;
    size_t done = 0;

    while (done < size) {
        size_t part = size - done;
        int fault = sys_write(files, fd, bytes + done, &part);

        if (fault == EINTR) {
            continue;
        }
        if (fault != 0) {
            return fault;
        }
        if (part == 0) {
            return EIO;
        }
        done += part;
    }
    return 0;
}

/* Creates the temporary file with all its bytes on disk; what it leaves is the caller's to
 * remove. */
static int write_draft(const struct ki_files *files, const struct ki_file_draft *draft,
                       bool *out_exists)
{
    mode_t mode = 0;
    int fd = -1;
    int closing;
    int fault = inherited_mode(files, draft->dir, &mode);

    mode &= (mode_t) ~(mode_t)(S_ISGID | S_IXUSR | S_IXGRP | S_IXOTH);
    if (fault == 0) {
        fault = sys_open(files, draft->tmp_dir, draft->tmp_name,
                         O_WRONLY | O_CREAT | O_EXCL, mode, &fd);
    }
    if (fault != 0) {
        return fault;
    }
    *out_exists = true;
    fault = write_all(files, fd, draft->data, draft->size);
    if (fault == 0) {
        fault = sys_fsync(files, fd);
    }
    closing = sys_close(files, fd);
    return fault != 0 ? fault : closing;
}

int ki_file_publish(const struct ki_files *files, const struct ki_file_draft *draft)
{
    bool exists = false;
    int fault = write_draft(files, draft, &exists);

    if (fault == 0) {
        fault =
            sys_rename(files, draft->tmp_dir, draft->tmp_name, draft->dir, draft->name);
    }
    if (fault != 0) {
        if (exists) {
            (void)ki_file_remove(files, draft->tmp_dir, draft->tmp_name);
        }
        return fault;
    }
    fault = sys_fsync(files, draft->dir);
    /* Some file systems cannot sync a folder, and say so with this. */
    return fault == EINVAL ? 0 : fault;
}

/* ---- removing --------------------------------------------------------------------- */

static bool same_file(const struct ki_file_id *a, const struct ki_file_id *b)
{
    return a->regular && b->regular && a->device == b->device && a->inode == b->inode &&
           a->size_bytes == b->size_bytes && a->modified_s == b->modified_s &&
           a->modified_ns == b->modified_ns;
}

int ki_file_remove_same(const struct ki_files *files, const struct ki_file_victim *victim,
                        bool *out_gone)
{
    struct ki_file_id now = {0};
    int fault = ki_file_stat(files, victim->dir, victim->name, &now);

    *out_gone = false;
    if (fault == 0 && !same_file(&now, &victim->id)) {
        return 0;
    }
    if (fault == 0) {
        fault = sys_rename(files, victim->dir, victim->name, victim->tmp_dir,
                           victim->tmp_name);
    }
    if (fault != 0) {
        *out_gone = fault == ENOENT;
        return fault == ENOENT ? 0 : fault;
    }
    fault = ki_file_stat(files, victim->tmp_dir, victim->tmp_name, &now);
    if (fault == 0 && same_file(&now, &victim->id)) {
        fault = ki_file_remove(files, victim->tmp_dir, victim->tmp_name);
        *out_gone = true;
        return fault;
    }
    /* Somebody published between the look and the move: put theirs back. */
    return sys_rename(files, victim->tmp_dir, victim->tmp_name, victim->dir,
                      victim->name);
}

/* ---- listing ---------------------------------------------------------------------- */

static int add_name(struct ki_file_names *names, const struct ki_mem *mem,
                    const char *name)
{
    char *copy;

    if (names->n == names->capacity) {
        size_t capacity = names->capacity == 0 ? FIRST_NAMES : 2 * names->capacity;
        char **grown = ki_mem_resize(mem, names->names, capacity * sizeof *grown);

        if (grown == NULL) {
            return ENOMEM;
        }
        names->names = grown;
        names->capacity = capacity;
    }
    copy = ki_mem_string(mem, name);
    if (copy == NULL) {
        return ENOMEM;
    }
    names->names[names->n++] = copy;
    return 0;
}

static int read_names(const struct ki_files *files, DIR *stream, const struct ki_mem *mem,
                      struct ki_file_names *names)
{
    for (;;) {
        struct dirent *item;
        int fault = ask(files, KI_FILE_LIST, NULL);

        if (fault != 0) {
            return fault;
        }
        errno = 0;
        item = readdir(stream);
        if (item == NULL) {
            return errno;
        }
        if (strcmp(item->d_name, ".") == 0 || strcmp(item->d_name, "..") == 0) {
            continue;
        }
        fault = add_name(names, mem, item->d_name);
        if (fault != 0) {
            return fault;
        }
    }
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

int ki_file_list(const struct ki_files *files, int dir, const struct ki_mem *mem,
                 struct ki_file_names *out)
{
    struct ki_file_names names = {0};
    DIR *stream = NULL;
    int fd = -1;
    /* A descriptor of its own: reading moves the folder's position. */
    int fault = sys_open(files, dir, ".", O_RDONLY | O_DIRECTORY, 0, &fd);

    if (fault != 0) {
        return fault;
    }
    stream = fdopendir(fd);
    if (stream == NULL) {
        fault = errno;
        goto out;
    }
    fd = -1;
    fault = read_names(files, stream, mem, &names);
    if (fault == 0 && names.n > 1) {
        qsort(names.names, names.n, sizeof *names.names, compare_names);
    }
    if (fault == 0) {
        *out = names;
        names = (struct ki_file_names){0};
    }

out:
    if (stream != NULL) {
        (void)closedir(stream);
    }
    ki_file_close_dir(files, fd);
    ki_file_names_finish(&names, mem);
    return fault;
}

void ki_file_names_finish(struct ki_file_names *names, const struct ki_mem *mem)
{
    for (size_t i = 0; i < names->n; i++) {
        ki_mem_free(mem, names->names[i]);
    }
    ki_mem_free(mem, names->names);
    *names = (struct ki_file_names){0};
}
