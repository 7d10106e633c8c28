/* SPDX-License-Identifier: Apache-2.0 */
/* Many builds at once, by a bounded number of threads. */
#ifndef KI_WARM_H
#define KI_WARM_H

#include "context.h"
#include "plan/key.h"

/* One request resolved: its identity, or why it has none. */
struct ki_warm_job {
    struct ki_ident ident;
    struct kiln_error error; /* status KILN_OK: none */
};

/* Builds every job; one that fails does not stop the others. `jobs` are the caller's. */
enum kiln_status ki_warm(struct kiln *kiln, struct ki_warm_job *jobs, size_t n,
                         const struct kiln_warm_options *options,
                         struct kiln_warm_summary *out, struct kiln_error *err);

#endif
