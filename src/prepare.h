/* SPDX-License-Identifier: Apache-2.0 */
/* The coordinator: calls the arrows in their order. Nobody else calls any of them. */
#ifndef KI_PREPARE_H
#define KI_PREPARE_H

#include "context.h"

/* What one build did. */
struct ki_built {
    bool from_cache;
    int64_t build_ms;
    struct kiln_error
        unstored; /* why no cache folder holds it; status KILN_OK: one does */
};

/* shape -> ... -> cubin, in the store or held in memory. `rebuild` does not ask the store; what
 * this kiln has built before is not built again. */
enum kiln_status ki_build(struct kiln *kiln, const struct ki_ident *ident, bool rebuild,
                          struct ki_built *out, struct kiln_error *err);

/* shape -> ... -> loaded kernel on the device of the current context. */
enum kiln_status ki_prepare(struct kiln *kiln, const struct ki_ident *ident,
                            const struct ki_device *device,
                            const struct kiln_kernel **out, struct kiln_error *err);

/* KILN_E_FORKED in a child of the process that created the kiln. */
enum kiln_status ki_refuse_fork(const struct kiln *kiln, struct kiln_error *err);

/* NVRTC and the driver, opened when first needed. */
enum kiln_status ki_open_nvrtc(struct kiln *kiln, struct kiln_error *err);
enum kiln_status ki_open_driver(struct kiln *kiln, struct kiln_error *err);

/* The current context's device, which must be the one that this kiln serves. */
enum kiln_status ki_current_device(struct kiln *kiln, struct ki_device *out,
                                   struct kiln_error *err);

#endif
