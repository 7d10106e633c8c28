/* SPDX-License-Identifier: Apache-2.0 */
/* --on cpu: emitted sources, executed here on a call's arrays. */
#ifndef CLI_CPU_H
#define CLI_CPU_H

#include "case_layout.h"
#include "cpu_build.h"
#include "cpu_child.h"

struct cli_cpu {
    struct cpu_builder builder;
    struct cpu_child child; /* of the last source */
    char *source;           /* that; owned */
    char *replacement;      /* goes where the template's text would; owned; NULL: none */
    uint64_t seed;
};

/* How often a case is executed, each time another way. */
enum { CLI_CPU_WAYS = 2 };

struct cli_cpu_options {
    const char *checker;     /* --sanitize; NULL: kiln */
    const char *cache;       /* --cache; NULL: the default */
    const char *replacement; /* --template; NULL: none */
    uint64_t seed;
};

/* Reported; *out NULL then. */
int cli_cpu_open(const struct cli_cpu_options *options, struct cli_cpu **out);
void cli_cpu_close(struct cli_cpu **cpu);

/*
 * Execute a call and leave its outputs in its images; `way` chooses the order of threads, where
 * counts and arrays lie, and the size of the GPU. CLI_FAILED: `why` says what the kernel did
 * wrong; empty: it could not be run, which is reported behind `prefix`.
 */
int cli_cpu_try(struct cli_cpu *cpu, struct cli_call *call, int way, const char *prefix,
                char why[CPU_WHY_BYTES]);

/* As cli_cpu_try; CLI_FAILED is reported behind `prefix` in any case. */
int cli_cpu_run(struct cli_cpu *cpu, struct cli_call *call, int way, const char *prefix);

#endif
