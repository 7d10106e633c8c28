/* SPDX-License-Identifier: Apache-2.0 */
/* source -> cubin, and nothing else: no cache, no driver. */
#ifndef KI_BUILD_COMPILE_H
#define KI_BUILD_COMPILE_H

#include "base/log.h"
#include "base/text.h"
#include "build/cubin.h"
#include "build/nvrtc.h"

struct ki_compile_job {
    const char *source;     /* NUL-terminated */
    const char *entry_name; /* kiln_<op> */
    struct ki_target target;
    const char *const *options; /* NULL-terminated, less --gpu-architecture */
    int threads;                /* copied into the cubin's facts */
};

/*
 * Compiles under the fixed program name "kiln.cu". `out` is inspected and owned by the
 * caller; it is untouched on failure. The first error line goes into err, the whole log
 * to `log`.
 */
enum kiln_status ki_compile(const struct ki_nvrtc *nvrtc,
                            const struct ki_compile_job *job, const struct ki_mem *mem,
                            const struct ki_log *log, struct ki_cubin *out,
                            struct kiln_error *err);

#endif
