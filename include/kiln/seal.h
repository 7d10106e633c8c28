/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end of start-up: after kiln_seal nothing builds and nothing loads, and what would
 * have is told. And the callback by which a kiln tells.
 */
#ifndef KILN_SEAL_H
#define KILN_SEAL_H

#include <stdint.h>

#include "kiln/kiln.h"
#include "kiln/plan.h"

#ifdef __cplusplus
extern "C" {
#endif

enum kiln_seal_mode {
    KILN_SEAL_OFF = 0,   /* build and load as asked */
    KILN_SEAL_WARN = 1,  /* the same, and each is a violation: counted, logged, told */
    KILN_SEAL_ERROR = 2, /* a violation is refused with KILN_E_NOT_READY */
};

/**
 * Set the seal. A violation is a call of kiln_build, kiln_prepare, kiln_warm or
 * kiln_launcher_create that finds a kernel not built, or not loaded where it wants that;
 * calls that find all done go on as before. Launches and kiln_find never look at it.
 * Builds and loads under way are waited for, so that after KILN_SEAL_ERROR none is left.
 * Of threads that set it at once, the last one whose call is done has its mode.
 *
 * @param plan NULL, or one whose every supported kernel must be ready: if one is not, the
 *        seal stays as it was
 * @param out_digest NULL, or 32 bytes for the plan's digest, which ranks compare before
 *        they serve; needs a plan
 * Threads: any
 * Capture: allowed; touches no driver
 * Cost: waits for builds under way, build_timeout_ms at most
 * @return KILN_OK; KILN_E_ARGUMENT; KILN_E_NOT_READY: the plan's first kernel that is not,
 *         its shape in words; KILN_E_TIMEOUT: a build is still under way; KILN_E_FORKED
 * Since: 1
 */
KILN_API KILN_MUST_USE enum kiln_status
kiln_seal(struct kiln *kiln, enum kiln_seal_mode mode, const struct kiln_plan *plan,
          unsigned char *out_digest, struct kiln_error *err);

/** The mode now; off for NULL. Threads: any. Capture: allowed. @return the mode */
KILN_API enum kiln_seal_mode kiln_seal_get(const struct kiln *kiln);

/* ---- events ------------------------------------------------------------------------------ */

enum kiln_event_kind {
    KILN_EVENT_BUILT = 1,     /* compiled, or read from the cache (`from_cache`) */
    KILN_EVENT_LOADED = 2,    /* onto the device */
    KILN_EVENT_FAILED = 3,    /* a build or load; `status` and `message` say why */
    KILN_EVENT_VIOLATION = 4, /* of the seal; `message` has the shape in words */
};

/* Valid for the call. */
struct kiln_event {
    enum kiln_event_kind kind;
    enum kiln_op op;
    const struct kiln_shape *shape;
    const char *target;      /* "sm_90" */
    bool from_cache;         /* BUILT */
    int64_t ms;              /* BUILT, LOADED */
    enum kiln_status status; /* FAILED; VIOLATION: KILN_OK where it was let through */
    const char *message;     /* NULL for BUILT and LOADED */
};

#ifdef __cplusplus
}
#endif
#endif
