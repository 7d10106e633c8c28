/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An emitted source -> a program that executes it on the CPU. Programs are kept in
 * <cache>/cpu-v1, one folder each, found by everything that went into them.
 */
#ifndef CLI_CPU_BUILD_H
#define CLI_CPU_BUILD_H

#include <stdbool.h>
#include <stddef.h>

/* Who watches memory. */
enum cpu_checker {
    CPU_CHECK_KILN = 0, /* kiln's own: bounds, order, first writes; any compiler */
    CPU_CHECK_NONE,
    CPU_CHECK_ADDRESS, /* with undefined behaviour */
    CPU_CHECK_THREAD,
    CPU_CHECK_MEMORY, /* clang only */
};

struct cpu_builder {
    enum cpu_checker checker;
    char *compiler; /* path; owned */
    char *version;  /* what it says of itself; owned */
    bool is_clang;
    char *root;      /* the folder of entries; owned */
    bool is_scratch; /* root goes away with the builder */
    char *runtime;   /* folder of the runtime's objects; owned; NULL: not made yet */
    unsigned n_made;
};

/* False where the name is no checker: address, thread, memory, kiln, none. */
bool cpu_checker_find(const char *name, enum cpu_checker *out);

/* cache: --cache or NULL. Reported; all zeros then. */
int cpu_builder_open(enum cpu_checker checker, const char *cache,
                     struct cpu_builder *out);
void cpu_builder_close(struct cpu_builder *builder);

/*
 * The program of a source whose kernel is `entry`. Reported. *out, its path, is the
 * caller's to free.
 */
int cpu_build(struct cpu_builder *builder, const char *entry, const char *source,
              char **out);

#endif
