/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a case where it is asked to and compares what came out. */
#ifndef CLI_CASE_RUN_H
#define CLI_CASE_RUN_H

#include "kiln/gpu.h"
#include "kiln/kiln.h"

#include "case_file.h"

enum cli_backend_kind { CLI_ON_REFERENCE, CLI_ON_GPU, CLI_ON_CPU };

struct cli_backend {
    enum cli_backend_kind kind;
    const char *name;     /* as in --on */
    struct kiln_gpu *gpu; /* owned; NULL but for CLI_ON_GPU */
    struct kiln *kiln;    /* owned; NULL but for CLI_ON_GPU */
    struct cli_cpu *cpu;  /* owned; NULL but for CLI_ON_CPU */
    uint32_t variant;     /* bits of enum kiln_variant: of the kernels that run */
};

/* Open what the kind needs. Reported. */
int cli_backend_open(enum cli_backend_kind kind, uint32_t variant,
                     struct cli_backend *out);
/* As cli_backend_open, for the CPU. */
struct cli_cpu_options;
int cli_backend_open_cpu(const struct cli_cpu_options *options, uint32_t variant,
                         struct cli_backend *out);
void cli_backend_close(struct cli_backend *backend);

/* Run a case, leave its outputs in its images and compare them. A checked backend also
 * compares what is reported with what the reference reports, and leaves that in the call.
 * CLI_FAILED is reported, with the first difference. */
int cli_case_run(struct cli_case *c, const struct cli_backend *backend);

#endif
