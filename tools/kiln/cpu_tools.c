/* SPDX-License-Identifier: Apache-2.0 */
/* Files, folders and other programs. Knows nothing of kernels. */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kiln/kiln.h"

#include "cpu_tools.h"

enum { WORDS_MAX = 64 };

char *cpu_format(const char *format, ...)
{
    va_list args;
    char *text = NULL;

    va_start(args, format);
    int size = vasprintf(&text, format, args);
    va_end(args);
    return size >= 0 ? text : NULL;
}

static char *read_stream(FILE *file)
{
    size_t size = 0, room = 4096;
    char *text = malloc(room);

    while (text != NULL) {
        size += fread(text + size, 1, room - size - 1, file);
        if (size + 1 < room) {
            text[size] = '\0';
            return text;
        }
        room *= 2;
        char *larger = realloc(text, room);
        if (larger == NULL) {
            free(text);
        }
        text = larger;
    }
    return NULL;
}

char *cpu_read_file(const char *path)
{
    FILE *file = fopen(path, "rbe");
    char *text = NULL;

    if (file != NULL) {
        text = read_stream(file);
        (void)fclose(file);
    }
    return text;
}

bool cpu_write_file(const char *path, const char *text, size_t size_bytes)
{
    FILE *file = fopen(path, "wbe");

    if (file == NULL) {
        return false;
    }
    bool is_done = fwrite(text, 1, size_bytes, file) == size_bytes;
    return fclose(file) == 0 && is_done;
}

bool cpu_make_folders(const char *path)
{
    char *copy = strdup(path);
    bool is_done = copy != NULL;

    for (char *c = copy; is_done && c != NULL; *c = '/') {
        c = strchr(c + 1, '/');
        if (c == NULL) {
            break;
        }
        *c = '\0';
        is_done = mkdir(copy, 0700) == 0 || errno == EEXIST;
    }
    is_done = is_done && (mkdir(path, 0700) == 0 || errno == EEXIST);
    free(copy);
    return is_done;
}

static int remove_one(const char *path, const struct stat *facts, int kind,
                      struct FTW *where)
{
    (void)facts;
    (void)kind;
    (void)where;
    (void)remove(path);
    return 0;
}

void cpu_remove_folder(const char *path)
{
    (void)nftw(path, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

bool cpu_has_default_cache(void)
{
    char dir[4096];
    struct kiln_error err;

    return kiln_default_cache_dir(dir, sizeof dir, &err) == KILN_OK;
}

char *cpu_find_program(const char *name)
{
    const char *path = getenv("PATH");

    if (strchr(name, '/') != NULL) {
        return access(name, X_OK) == 0 ? strdup(name) : NULL;
    }
    while (path != NULL && *path != '\0') {
        size_t len = strcspn(path, ":");
        char *found = cpu_format("%.*s/%s", (int)len, path, name);

        if (found != NULL && len > 0 && access(found, X_OK) == 0) {
            return found;
        }
        free(found);
        path += len + (path[len] == ':' ? 1 : 0);
    }
    return NULL;
}

char *cpu_output_of(const char *const *words)
{
    char *text = NULL;
    int ends[2];

    if (words[0] == NULL || pipe(ends) != 0) {
        return NULL;
    }
    pid_t child = fork();
    if (child == 0) {
        char *argv[WORDS_MAX] = {NULL};
        for (size_t i = 0; words[i] != NULL && i + 1 < WORDS_MAX; i++) {
            argv[i] = strdup(words[i]);
        }
        (void)dup2(ends[1], STDOUT_FILENO);
        (void)close(ends[0]);
        (void)execv(words[0], argv);
        _exit(127);
    }
    (void)close(ends[1]);
    FILE *file = fdopen(ends[0], "rb");
    if (file != NULL) {
        text = read_stream(file);
        (void)fclose(file);
    }
    int status = -1;
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0) {
        free(text);
        return NULL;
    }
    return text;
}

/* In the child: never returns. */
static void become(const char *folder, const char *program, const char *words,
                   const char *log)
{
    char *copy = strdup(words), *argv[WORDS_MAX] = {strdup(program)}, *rest = NULL;
    size_t n = 1;
    int fd = open(log, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    for (char *word = copy != NULL ? strtok_r(copy, " ", &rest) : NULL;
         word != NULL && n + 1 < WORDS_MAX; word = strtok_r(NULL, " ", &rest)) {
        argv[n++] = word;
    }
    if (fd >= 0 && chdir(folder) == 0 && dup2(fd, STDOUT_FILENO) >= 0 &&
        dup2(fd, STDERR_FILENO) >= 0) {
        (void)execv(program, argv);
    }
    _exit(127);
}

bool cpu_run_in(const char *folder, const char *program, const char *words,
                const char *log)
{
    int status = -1;
    pid_t child = fork();

    if (child == 0) {
        become(folder, program, words, log);
    }
    return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}
