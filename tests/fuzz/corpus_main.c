/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a fuzzer on every file of the folders given, which is its corpus, without libFuzzer.
 * Each file is also cut short and changed at places of its own. */
#include <dirent.h>
#include <string.h>

#include "fuzz.h"

enum { FILE_BYTES_MAX = 1 << 20, VARIANTS = 64 };

/* The data in a block of its own size, so that a read past its end is seen. */
static void try_bytes(const uint8_t *data, size_t size)
{
    uint8_t *copy = malloc(size > 0 ? size : 1);

    FUZZ_CHECK(copy != NULL);
    memcpy(copy, data, size);
    (void)LLVMFuzzerTestOneInput(copy, size);
    free(copy);
}

static void try_variants(uint8_t *data, size_t size)
{
    uint32_t random = (uint32_t)size + 1;

    for (int i = 0; i < VARIANTS && size > 0; i++) {
        random = random * 1664525u + 1013904223u;
        size_t at = (random >> 8) % size;
        uint8_t was = data[at];

        try_bytes(data, at);
        data[at] = (uint8_t)(was ^ 1u << (random >> 5) % 8);
        try_bytes(data, size);
        data[at] = was;
    }
}

static void run_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    uint8_t *data = malloc(FILE_BYTES_MAX);

    FUZZ_CHECK(data != NULL);
    if (file == NULL) {
        perror(path);
        exit(1);
    }
    size_t size = fread(data, 1, FILE_BYTES_MAX, file);
    FUZZ_CHECK(ferror(file) == 0 && size < FILE_BYTES_MAX);
    (void)fclose(file);
    (void)printf("%s\n", path);
    (void)fflush(stdout);
    try_bytes(data, size);
    try_variants(data, size);
    free(data);
}

/* Returns how many files the folder has. */
static size_t run_folder(const char *folder)
{
    DIR *dir = opendir(folder);
    struct dirent *entry;
    size_t n = 0;

    if (dir == NULL) {
        perror(folder);
        exit(1);
    }
    while ((entry = readdir(dir)) != NULL) {
        char path[4096];

        if (entry->d_name[0] != '.') {
            FUZZ_CHECK(snprintf(path, sizeof path, "%s/%s", folder, entry->d_name) <
                       (int)sizeof path);
            run_file(path);
            n++;
        }
    }
    (void)closedir(dir);
    return n;
}

int main(int argc, char **argv)
{
    size_t n = 0;

    for (int i = 1; i < argc; i++) {
        n += run_folder(argv[i]);
    }
    (void)printf("%zu files\n", n);
    return n > 0 ? 0 : 1;
}
