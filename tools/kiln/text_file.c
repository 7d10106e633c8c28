/* SPDX-License-Identifier: Apache-2.0 */
/* Files that people hand in can be anything, of any size: everything is bounded before
 * it is held or parsed. */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "text_file.h"
#include "report.h"

#define MIB ((size_t)1 << 20)
#define FILE_BYTES_MAX (256 * MIB)
#define PARSED_BYTES_MAX ((uint64_t)4096 * MIB)

/* Read to the end, one byte beyond the limit at most. */
static char *read_stream(FILE *file, size_t *out_bytes)
{
    size_t capacity = 64 * 1024, size = 0;
    char *text = malloc(capacity + 1);

    while (text != NULL) {
        size += fread(text + size, 1, capacity - size, file);
        if (size < capacity || size > FILE_BYTES_MAX) {
            break;
        }
        capacity *= 2;
        char *larger = realloc(text, capacity + 1);
        if (larger == NULL) {
            free(text);
        }
        text = larger;
    }
    if (text != NULL) {
        text[size] = '\0';
    }
    *out_bytes = size;
    return text;
}

int cli_read_file(const char *path, char **out, size_t *out_bytes)
{
    FILE *file = fopen(path, "rb");
    int status = CLI_DONE;

    if (file == NULL) {
        return cli_failed("%s: cannot be read: %s", path, strerror(errno));
    }
    errno = 0;
    size_t size;
    char *text = read_stream(file, &size);
    if (text == NULL) {
        status = cli_failed("%s: out of memory", path);
    } else if (ferror(file)) {
        status = cli_failed("%s: cannot be read: %s", path, strerror(errno));
    } else if (size > FILE_BYTES_MAX) {
        status = cli_failed("%s: larger than %zu MiB, the most that is read", path,
                            FILE_BYTES_MAX / MIB);
    }
    (void)fclose(file);
    if (status != CLI_DONE) {
        free(text);
        return status;
    }
    *out = text;
    *out_bytes = size;
    return CLI_DONE;
}

/* Roughly what the parsed value takes at most, so that a small file of many empty objects
 * cannot take all memory. */
static uint64_t parsed_bytes(const char *text, size_t size_bytes)
{
    uint64_t bytes = 0;

    for (size_t i = 0; i < size_bytes; i++) {
        if (text[i] == '{') {
            bytes += 512;
        } else if (text[i] == '[') {
            bytes += 160;
        } else if (text[i] == ',') {
            bytes += 64;
        } else if (text[i] == ':') {
            bytes += 96;
        }
    }
    return bytes;
}

int cli_read_json_text(const char *path, char **out, size_t *out_bytes)
{
    char *text = NULL;
    size_t size = 0;
    int status = cli_read_file(path, &text, &size);

    if (status != CLI_DONE) {
        return status;
    }
    if (parsed_bytes(text, size) > PARSED_BYTES_MAX) {
        free(text);
        return cli_failed("%s: too many values for one file", path);
    }
    *out = text;
    *out_bytes = size;
    return CLI_DONE;
}

int cli_read_json(const char *path, json_t **out)
{
    char *text = NULL;
    size_t size = 0;
    json_error_t error;
    int status = cli_read_json_text(path, &text, &size);

    if (status != CLI_DONE) {
        return status;
    }
    json_t *value = json_loadb(text, size, JSON_REJECT_DUPLICATES, &error);
    free(text);
    /* jansson says nothing at all when it has no memory */
    if (value == NULL && error.text[0] == '\0') {
        return cli_failed("%s: out of memory", path);
    }
    if (value == NULL) {
        return cli_failed("%s: not JSON that kiln takes: line %d, column %d: %s", path,
                          error.line, error.column, error.text);
    }
    *out = value;
    return CLI_DONE;
}

/* All of it, then close; errno says why not. */
static bool write_and_close(FILE *file, const char *text, size_t size_bytes, bool is_kept)
{
    bool is_written = fwrite(text, 1, size_bytes, file) == size_bytes &&
                      fflush(file) == 0 && (!is_kept || fsync(fileno(file)) == 0);
    int fault = errno;
    bool is_closed = fclose(file) == 0;

    if (!is_written) {
        errno = fault;
    }
    return is_written && is_closed;
}

/* What is no file, a pipe or a device, is written to as it is and stays what it is. */
static bool write_through(const char *path, const char *text, size_t size_bytes)
{
    FILE *file = fopen(path, "wbe");

    return file != NULL && write_and_close(file, text, size_bytes, false);
}

/* Write all of it to an open temporary and name it `path`. */
static bool write_and_rename(int fd, const char *temporary, const char *path,
                             const char *text, size_t size_bytes)
{
    FILE *file = fdopen(fd, "wb");

    if (file == NULL) {
        (void)close(fd);
        return false;
    }
    return write_and_close(file, text, size_bytes, true) && rename(temporary, path) == 0;
}

/* errno says why not, and nothing is left then. */
static bool replace_file(const char *path, mode_t mode, const char *text,
                         size_t size_bytes)
{
    static const char suffix[] = ".XXXXXX";
    size_t bytes = strlen(path) + sizeof suffix;
    char *temporary = malloc(bytes);
    bool is_done = false;

    if (temporary == NULL) {
        return false;
    }
    (void)snprintf(temporary, bytes, "%s%s", path, suffix);
    int fd = mkstemp(temporary);
    if (fd >= 0) {
        (void)fchmod(fd, mode);
        is_done = write_and_rename(fd, temporary, path, text, size_bytes);
    }
    int fault = errno;
    if (fd >= 0 && !is_done) {
        (void)unlink(temporary);
    }
    free(temporary);
    errno = fault;
    return is_done;
}

/* Where `path` leads, which is what is replaced: not a link on the way there. */
static bool replace_target(const char *path, mode_t mode, const char *text,
                           size_t size_bytes)
{
    char *target = realpath(path, NULL);
    bool is_done = target != NULL && replace_file(target, mode, text, size_bytes);
    int fault = errno;

    free(target);
    errno = fault;
    return is_done;
}

int cli_write_file(const char *path, const char *text, size_t size_bytes)
{
    struct stat facts;
    bool is_done;

    if (stat(path, &facts) == 0 && S_ISREG(facts.st_mode)) {
        is_done = replace_target(path, facts.st_mode & 0777, text, size_bytes);
    } else if (lstat(path, &facts) != 0 && errno == ENOENT) {
        is_done = replace_file(path, 0644, text, size_bytes);
    } else { /* a link that leads nowhere too: its file is made */
        is_done = write_through(path, text, size_bytes);
    }
    return is_done ? CLI_DONE
                   : cli_failed("%s: cannot be written: %s", path, strerror(errno));
}

static char *join_paths(const char *folder, const char *path)
{
    size_t bytes = strlen(folder) + 1 + strlen(path) + 1;
    char *joined = malloc(bytes);

    if (joined != NULL) {
        (void)snprintf(joined, bytes, "%s/%s", folder, path);
    }
    return joined;
}

/* Behind a trailing "/" or "/." the system would follow a link. */
static void strip_tail(char *path)
{
    size_t len = strlen(path);

    while (len > 1 &&
           (path[len - 1] == '/' || (path[len - 1] == '.' && path[len - 2] == '/'))) {
        path[--len] = '\0';
    }
}

char *cli_absolute_path(const char *path)
{
    char folder[4096];
    char *absolute = NULL;

    if (path[0] == '/') {
        absolute = strdup(path);
    } else if (getcwd(folder, sizeof folder) != NULL) {
        absolute = join_paths(folder, path);
    }
    if (absolute == NULL) {
        (void)cli_failed("%s: the folder cannot be named from the root: %s", path,
                         strerror(errno));
        return NULL;
    }
    strip_tail(absolute);
    return absolute;
}
