/* SPDX-License-Identifier: Apache-2.0 */
/* A temporary folder of a test, for a fixture. */
#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/tmpdir.h"

static _Noreturn void die(const char *call, const char *what)
{
    perror(call);
    fprintf(stderr, "tmpdir: %s\n", what);
    abort();
}

/* $TMPDIR, else a file system in memory if there is one: the store syncs each file that it writes,
 * and on a disk hundreds of them take seconds. */
static bool make_below(const char *root, char made[TMPDIR_PATH])
{
    if (root == NULL || root[0] != '/') {
        return false;
    }
    snprintf(made, TMPDIR_PATH, "%s/kiln-test-XXXXXX", root);
    return mkdtemp(made) != NULL;
}

void tmpdir_create(struct tmpdir *dir)
{
    char made[TMPDIR_PATH];
    char *real;

    if (!make_below(getenv("TMPDIR"), made) && !make_below("/dev/shm", made) &&
        !make_below("/tmp", made)) {
        die("mkdtemp", made);
    }
    real = realpath(made, NULL);
    if (real == NULL || strlen(real) >= sizeof dir->path) {
        die("realpath", made);
    }
    memcpy(dir->path, real, strlen(real) + 1);
    free(real);
}

static bool is_folder(int parent, const char *name)
{
    struct stat st;

    if (fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) != 0) {
        die("fstatat", name);
    }
    return S_ISDIR(st.st_mode);
}

/* NULL: the end. */
static const char *next_name(DIR *stream)
{
    struct dirent *item;

    do {
        item = readdir(stream);
    } while (item != NULL &&
             (strcmp(item->d_name, ".") == 0 || strcmp(item->d_name, "..") == 0));
    return item != NULL ? item->d_name : NULL;
}

static void remove_folder(int parent, const char *name)
{
    DIR *stream = NULL;
    const char *item;
    int fd;

    /* A test may have taken the permission to change it. */
    (void)fchmodat(parent, name, 0700, 0);
    fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0) {
        stream = fdopendir(fd);
    }
    if (stream == NULL) {
        die("openat", name);
    }
    while ((item = next_name(stream)) != NULL) {
        if (is_folder(dirfd(stream), item)) {
            remove_folder(dirfd(stream), item);
        } else if (unlinkat(dirfd(stream), item, 0) != 0) {
            die("unlinkat", item);
        }
    }
    closedir(stream);
    if (unlinkat(parent, name, AT_REMOVEDIR) != 0) {
        die("rmdir", name);
    }
}

void tmpdir_remove(struct tmpdir *dir)
{
    if (dir->path[0] != '\0') {
        remove_folder(AT_FDCWD, dir->path);
        dir->path[0] = '\0';
    }
}

char *tmpdir_join(const struct tmpdir *dir, const char *name, char out[TMPDIR_PATH])
{
    if (snprintf(out, TMPDIR_PATH, "%s/%s", dir->path, name) >= TMPDIR_PATH) {
        die("a path too long", name);
    }
    return out;
}

static bool ends_so(const char *name, const char *suffix)
{
    size_t size = strlen(name);
    size_t end = strlen(suffix);

    return size >= end && strcmp(name + size - end, suffix) == 0;
}

static size_t count_below(int parent, const char *name, const char *suffix)
{
    int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *stream = fd >= 0 ? fdopendir(fd) : NULL;
    const char *item;
    size_t n = 0;

    if (stream == NULL) {
        return 0;
    }
    while ((item = next_name(stream)) != NULL) {
        if (is_folder(dirfd(stream), item)) {
            n += count_below(dirfd(stream), item, suffix);
        } else if (ends_so(item, suffix)) {
            n++;
        }
    }
    closedir(stream);
    return n;
}

size_t tmpdir_count(const char *path, const char *suffix)
{
    return count_below(AT_FDCWD, path, suffix);
}
