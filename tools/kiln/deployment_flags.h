/* SPDX-License-Identifier: Apache-2.0 */
/* The flags that describe a deployment, or the manifest that holds them. */
#ifndef CLI_DEPLOYMENT_FLAGS_H
#define CLI_DEPLOYMENT_FLAGS_H

#include "kiln/kiln.h"
#include "kiln/plan.h"

#include "args.h"

struct cli_deployment_flags {
    const char *model, *manifest, *arch;
    struct kiln_deployment numbers;     /* what the integer flags set */
    const char *choices[CLI_FLAGS_MAX]; /* by the number of the deployment's field */
    struct cli_flags *flags;
    size_t first_flag; /* of the deployment's in flags, up to and with the last */
    size_t last_flag;
};

void cli_add_deployment_flags(struct cli_deployment_flags *d, struct cli_flags *flags);

/* Was a flag of a deployment, or a manifest, given? */
bool cli_has_deployment(const struct cli_deployment_flags *d);

/* Read the model or the manifest, and plan. Reported. The plan is the caller's. */
int cli_read_deployment(const struct cli_deployment_flags *d, struct kiln_manifest *out);

/* As cli_read_deployment, with a target at least. */
int cli_read_targeted_deployment(const struct cli_deployment_flags *d,
                                 struct kiln_manifest *out);

/*
 * Every kernel of a manifest that this kiln has, for every target. The caller frees
 * *out; its targets are the manifest's. Reported.
 */
int cli_make_requests(const struct kiln_manifest *manifest, struct kiln_request **out,
                      size_t *out_n);

/* A line for each item of the plan of which cli_make_requests makes none. */
void cli_print_unsupported(const struct kiln_plan *plan);

/* What --help of plan, warm and check says of them. */
#define CLI_DEPLOYMENT_HELP                                                              \
    "  --model FILE                 the model's config.json\n"                           \
    "  --max-model-len N            tokens\n"                                            \
    "  --max-num-batched-tokens N   tokens\n"                                            \
    "  --max-num-seqs N             sequences (256)\n"                                   \
    "  --block-size N               the scheduler's, tokens (256; 64 without ratios)\n"  \
    "  --num-speculative-tokens N   (0)\n"                                               \
    "  --dcp-world N                ranks that share the cache (1)\n"                    \
    "  --dcp-interleave N           tokens (1)\n"                                        \
    "  --dcp-storage sharded|replicated\n"                                               \
    "  --image-width N              further window columns for images (0)\n"             \
    "  --profile flashmla|flashinfer  the consumer of the rows (flashmla)\n"             \
    "  --manifest FILE              all of the above, from kiln plan --manifest-out\n"

#endif
