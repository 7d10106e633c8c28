/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Folders of compiled programs. An entry is made under another name and then renamed, so it is
 * whole or not there; its key's text lies in it and is compared, so it is the right one.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cache_flags.h"
#include "cpu_build.h"
#include "cpu_files.h"
#include "cpu_tools.h"
#include "report.h"

/* Raised when what lies in an entry, or how it is compiled, changes. */
#define FORMAT "kiln cpu 1"

struct way {
    const char *name;
    const char *define; /* for the runtime */
    const char *kernel; /* flags, each for one compilation */
    const char *runtime;
    const char *link;
};

static const struct way ways[] = {
    [CPU_CHECK_KILN] = {"kiln", "-DKILN_SIMT_CHECK",
                        "-fsanitize=thread,undefined -fsanitize-undefined-trap-on-error",
                        "", "-Wl,--wrap=memcpy,--wrap=memmove,--wrap=memset"},
    [CPU_CHECK_NONE] = {"none", "", "", "", ""},
    [CPU_CHECK_ADDRESS] = {"address", "-DKILN_SIMT_ADDRESS",
                           "-fsanitize=address,undefined -fno-sanitize-recover=all"
                           " -fno-omit-frame-pointer",
                           "", "-fsanitize=address,undefined"},
    [CPU_CHECK_THREAD] = {"thread", "-DKILN_SIMT_THREAD",
                          "-fsanitize=thread -fno-omit-frame-pointer", "",
                          "-fsanitize=thread"},
    [CPU_CHECK_MEMORY] = {"memory", "-DKILN_SIMT_MEMORY",
                          "-fsanitize=memory -fno-omit-frame-pointer",
                          "-fsanitize=memory", "-fsanitize=memory"},
};

/* The devices' compilers know no aliasing by type either; addr2line misreads version 5. */
#define COMMON "-std=c++17 -O1 -g1 -gdwarf-4 -fno-strict-aliasing -Wno-unknown-pragmas"

bool cpu_checker_find(const char *name, enum cpu_checker *out)
{
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        if (strcmp(ways[i].name, name) == 0) {
            *out = (enum cpu_checker)i;
            return true;
        }
    }
    return false;
}

/* ---- the compiler */

static char *find_compiler(enum cpu_checker checker)
{
    static const char *const any[] = {"c++", "g++", "clang++", NULL};
    /* g++ has no MemorySanitizer, and its fibres of ThreadSanitizer take a millisecond each */
    static const char *const clang_first[] = {"clang++",    "clang++-14", "clang++-15",
                                              "clang++-16", "clang++-17", "clang++-18",
                                              "clang++-19", "c++",        NULL};
    bool wants_clang = checker == CPU_CHECK_THREAD || checker == CPU_CHECK_MEMORY;
    const char *const *names = wants_clang ? clang_first : any;
    const char *chosen = getenv("CXX");

    if (chosen != NULL && chosen[0] != '\0' && !wants_clang) {
        return cpu_find_program(chosen);
    }
    for (size_t i = 0; names[i] != NULL; i++) {
        char *path = cpu_find_program(names[i]);
        if (path != NULL) {
            return path;
        }
    }
    return NULL;
}

static int open_compiler(struct cpu_builder *builder)
{
    builder->compiler = find_compiler(builder->checker);
    if (builder->compiler == NULL) {
        return cli_failed(
            "--on cpu: no C++ compiler found: looked for c++, g++ and clang++ in "
            "PATH; install the package g++ (Debian, Ubuntu), gcc-c++ (Fedora, "
            "RHEL) or clang");
    }
    const char *words[] = {builder->compiler, "--version", NULL};
    builder->version = cpu_output_of(words);
    if (builder->version == NULL) {
        return cli_failed("--on cpu: %s --version: it does not run", builder->compiler);
    }
    builder->is_clang = strstr(builder->version, "clang") != NULL;
    if (builder->checker == CPU_CHECK_MEMORY && !builder->is_clang) {
        return cli_failed(
            "--sanitize memory: only clang has it, and no clang++ was found in "
            "PATH; install the package clang");
    }
    return CLI_DONE;
}

/* ---- the folder */

/* What lies in it is executed, so nobody else may write there. */
static int check_root(const char *root)
{
    struct stat facts;

    if (lstat(root, &facts) != 0) {
        return cli_failed("%s: %s", root, strerror(errno));
    }
    if (!S_ISDIR(facts.st_mode) || facts.st_uid != geteuid() ||
        (facts.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
        return cli_failed(
            "%s: expected a folder that belongs to this user and that nobody "
            "else can write to: programs in it are executed",
            root);
    }
    return CLI_DONE;
}

/* Whoever can write to the folder above can put another in its place. */
static int check_above(const char *dir)
{
    struct stat facts;

    if (lstat(dir, &facts) != 0) {
        return cli_failed("%s: %s", dir, strerror(errno));
    }
    if (!S_ISDIR(facts.st_mode) || (facts.st_uid != geteuid() && facts.st_uid != 0) ||
        ((facts.st_mode & (S_IWGRP | S_IWOTH)) != 0 && (facts.st_mode & S_ISVTX) == 0)) {
        return cli_failed(
            "%s: expected a folder, and no link to one, that belongs to this "
            "user or root and that nobody else can write to, unless it is "
            "sticky: programs below it are executed",
            dir);
    }
    return CLI_DONE;
}

static int open_scratch(struct cpu_builder *builder)
{
    const char *temporary = getenv("TMPDIR");

    builder->root =
        cpu_format("%s/kiln-cpu-XXXXXX",
                   temporary != NULL && temporary[0] == '/' ? temporary : "/tmp");
    builder->is_scratch = true;
    if (builder->root == NULL || mkdtemp(builder->root) == NULL) {
        return cli_failed("--on cpu: no folder for programs: %s", strerror(errno));
    }
    return CLI_DONE;
}

/* The programs' folder in a cache folder; *out_made false: it cannot be made, errno says
 * why. */
static int open_below(struct cpu_builder *builder, const char *dir, bool *out_made)
{
    builder->root = cpu_format("%s/cpu-v1", dir);
    if (builder->root == NULL) {
        return cli_failed("out of memory");
    }
    *out_made = cpu_make_folders(builder->root);
    if (!*out_made) {
        return CLI_DONE;
    }
    int status = check_above(dir);
    return status == CLI_DONE ? check_root(builder->root) : status;
}

static int open_root(struct cpu_builder *builder, const char *cache)
{
    char *dir = NULL;
    bool is_made = false;

    if (cache == NULL && !cpu_has_default_cache()) {
        return open_scratch(builder);
    }
    int status = cli_cache_dir(cache, &dir);
    if (status == CLI_DONE) {
        status = open_below(builder, dir, &is_made);
        int fault = errno;
        free(dir);
        errno = fault;
    }
    if (status != CLI_DONE || is_made) {
        return status;
    }
    if (cache != NULL) {
        return cli_failed("%s: %s", builder->root, strerror(errno));
    }
    free(builder->root);
    return open_scratch(builder);
}

int cpu_builder_open(enum cpu_checker checker, const char *cache, struct cpu_builder *out)
{
    struct cpu_builder builder = {.checker = checker};
    int status = open_compiler(&builder);

    *out = (struct cpu_builder){0};
    if (status == CLI_DONE) {
        status = open_root(&builder, cache);
    }
    if (status != CLI_DONE) {
        cpu_builder_close(&builder);
        return status;
    }
    *out = builder;
    return CLI_DONE;
}

void cpu_builder_close(struct cpu_builder *builder)
{
    if (builder->is_scratch && builder->root != NULL) {
        cpu_remove_folder(builder->root);
    }
    free(builder->compiler);
    free(builder->version);
    free(builder->root);
    free(builder->runtime);
    *builder = (struct cpu_builder){0};
}

/* ---- entries */

/* The name of a key's folder. It need not be unique: the key is compared. */
static char *entry_path(const struct cpu_builder *builder, const char *key)
{
    uint64_t low = UINT64_C(0xcbf29ce484222325), high = UINT64_C(0x84222325cbf29ce4);

    for (const char *c = key; *c != '\0'; c++) {
        low = (low ^ (unsigned char)*c) * UINT64_C(0x100000001b3);
        high = (high ^ (unsigned char)*c) * UINT64_C(0x10000000233);
    }
    return cpu_format("%s/%016" PRIx64 "%016" PRIx64, builder->root, low, high);
}

static bool is_entry_of(const char *folder, const char *key)
{
    char *path = cpu_format("%s/key", folder);
    char *found = path != NULL ? cpu_read_file(path) : NULL;
    bool is_same = found != NULL && strcmp(found, key) == 0;

    free(found);
    free(path);
    return is_same;
}

static int write_in(const char *folder, const char *name, const char *text, size_t size)
{
    char *path = cpu_format("%s/%s", folder, name);
    bool is_done = path != NULL && cpu_write_file(path, text, size);

    free(path);
    return is_done ? CLI_DONE : cli_failed("%s/%s: %s", folder, name, strerror(errno));
}

/* Run the compiler in a folder; `words` are separated by spaces. */
static int compile(const struct cpu_builder *builder, const char *folder,
                   const char *words)
{
    char *log = cpu_format("%s/log", folder);
    bool is_done = log != NULL && cpu_run_in(folder, builder->compiler, words, log);
    char *text = is_done || log == NULL ? NULL : cpu_read_file(log);
    const char *error = text != NULL ? strstr(text, "error: ") : NULL;

    /* the linker says why before its driver says that */
    if (error != NULL && strstr(text, "collect2: ") == NULL) {
        while (error > text && error[-1] != '\n') {
            error--;
        }
    } else {
        error = text != NULL ? text : "it does not run";
    }
    if (!is_done) {
        (void)cli_failed("--on cpu: %s: %.*s", builder->compiler,
                         (int)strcspn(error, "\n"), error);
    }
    free(text);
    free(log);
    return is_done ? CLI_DONE : CLI_FAILED;
}

static int compile_runtime(const struct cpu_builder *builder, const char *folder)
{
    static const struct {
        const char *name, *source, *more;
    } parts[] = {
        {"run", "run", ""},
        {"fibre", "fibre", ""},
        {"shared", "shared", ""},
        {"check", "check", ""},
        {"begin", "edge", "-DKILN_SIMT_EDGE=kiln_simt_shared_begin -DKILN_SIMT_ALIGN=64"},
        {"end", "edge", "-DKILN_SIMT_EDGE=kiln_simt_shared_end -DKILN_SIMT_ALIGN=1"},
    };
    const struct way *way = &ways[builder->checker];
    int status = CLI_DONE;

    for (size_t i = 0; i < cpu_n_files && status == CLI_DONE; i++) {
        status = write_in(folder, cpu_files[i].name, cpu_files[i].text,
                          cpu_files[i].size_bytes);
    }
    for (size_t i = 0; i < sizeof parts / sizeof parts[0] && status == CLI_DONE; i++) {
        char *words =
            cpu_format(COMMON " %s %s %s -c kiln_simt_%s.cpp -o %s.o", way->define,
                       way->runtime, parts[i].more, parts[i].source, parts[i].name);
        status = words != NULL ? compile(builder, folder, words) : CLI_FAILED;
        free(words);
    }
    return status;
}

/* The runtime's folder is beside this one; its name has no spaces, wherever the cache is. */
static int compile_kernel(const struct cpu_builder *builder, const char *folder,
                          const char *entry, const char *source)
{
    const struct way *way = &ways[builder->checker];
    const char *name = builder->runtime + strlen(builder->root) + 1;
    int status = write_in(folder, "source.cu", source, strlen(source));
    char *words = cpu_format(COMMON " %s -I. -DKILN_SIMT_SOURCE=\"source.cu\" "
                                    "-DKILN_SIMT_ENTRY=%s -c ../%s/kiln_simt_kernel.cpp "
                                    "-o kernel.o",
                             way->kernel, entry, name);
    /* the order matters: shared variables are between begin.o and end.o */
    char *link = cpu_format("%s ../%s/begin.o kernel.o ../%s/end.o ../%s/run.o "
                            "../%s/fibre.o ../%s/shared.o ../%s/check.o -o program",
                            way->link, name, name, name, name, name, name);

    if (words == NULL || link == NULL) {
        status = cli_failed("out of memory");
    }
    if (status == CLI_DONE) {
        status = compile(builder, folder, words);
    }
    if (status == CLI_DONE) {
        status = compile(builder, folder, link);
    }
    free(words);
    free(link);
    return status;
}

/* Give a finished folder its name. A loser of the race has the same; a folder that is not
 * what it should be is replaced. */
static char *publish(const char *made, const char *folder, const char *key)
{
    if (rename(made, folder) == 0) {
        return strdup(folder);
    }
    if (!is_entry_of(folder, key)) {
        cpu_remove_folder(folder);
        return strdup(rename(made, folder) == 0 ? folder : made);
    }
    cpu_remove_folder(made);
    return strdup(folder);
}

/* The folder of a key, made at need. entry NULL: the runtime's objects. */
static int get_entry(struct cpu_builder *builder, const char *key, const char *entry,
                     const char *source, char **out)
{
    char *folder = entry_path(builder, key);
    char *made =
        cpu_format("%s/made-%ld-%u", builder->root, (long)getpid(), builder->n_made++);
    int status = CLI_DONE;

    *out = NULL;
    if (folder == NULL || made == NULL) {
        status = cli_failed("out of memory");
    } else if (is_entry_of(folder, key)) {
        *out = strdup(folder);
    } else if (mkdir(made, 0700) != 0) {
        status = cli_failed("%s: %s", made, strerror(errno));
    } else {
        status = write_in(made, "key", key, strlen(key));
        if (status == CLI_DONE) {
            status = entry == NULL ? compile_runtime(builder, made)
                                   : compile_kernel(builder, made, entry, source);
        }
        if (status == CLI_DONE) {
            *out = publish(made, folder, key);
        } else {
            cpu_remove_folder(made);
        }
    }
    free(folder);
    free(made);
    return status;
}

static char *make_key(const struct cpu_builder *builder, const char *entry,
                      const char *source)
{
    const struct way *way = &ways[builder->checker];

    return cpu_format(FORMAT "\nfiles %s\ncompiler %s\n%s\nflags " COMMON
                             " | %s | %s | %s | %s\nentry %s\n%s",
                      cpu_files_digest, builder->compiler, builder->version, way->define,
                      way->kernel, way->runtime, way->link, entry, source);
}

static int get_runtime(struct cpu_builder *builder)
{
    char *key = make_key(builder, "", "");
    int status = key != NULL ? get_entry(builder, key, NULL, NULL, &builder->runtime)
                             : cli_failed("out of memory");

    free(key);
    return status;
}

int cpu_build(struct cpu_builder *builder, const char *entry, const char *source,
              char **out)
{
    char *folder = NULL;
    int status = CLI_DONE;

    *out = NULL;
    if (builder->runtime == NULL) {
        status = get_runtime(builder);
    }
    if (status != CLI_DONE) {
        return status;
    }
    char *key = make_key(builder, entry, source);
    status = key != NULL ? get_entry(builder, key, entry, source, &folder)
                         : cli_failed("out of memory");
    if (status == CLI_DONE) {
        *out = cpu_format("%s/program", folder);
    }
    free(folder);
    free(key);
    return status;
}
