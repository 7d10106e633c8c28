/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A cubin with the facts that are kept beside it: what compile makes, the store keeps and
 * the loader takes. The facts are read from the cubin itself, never from the file system.
 */
#ifndef KI_BUILD_CUBIN_H
#define KI_BUILD_CUBIN_H

#include <stdbool.h>
#include <stdint.h>

#include "kiln/status.h"

#include "base/blob.h"
#include "plan/target.h"

struct ki_cubin {
    struct ki_blob image;    /* owned */
    char entry_name[64];     /* kiln_<op> */
    struct ki_target target; /* what for */
    int32_t nvrtc_major;     /* who compiled it */
    int32_t nvrtc_minor;
    int32_t threads;    /* of the largest block */
    int32_t registers;  /* per thread; -1 when the image does not say */
    int32_t smem_bytes; /* static shared memory of a block; -1 likewise */
    int32_t waits;      /* 1: waits for the previous kernel (programmatic launch) */
};

void ki_cubin_finish(struct ki_cubin *cubin, const struct ki_mem *mem);

/*
 * Is the image an ELF of the right class, machine and target whose tables all lie inside
 * it, and does it hold the entry? The driver checks none of this. Fills target, registers,
 * smem_bytes and waits on success. A failure is `status` with what was found and
 * expected.
 */
enum kiln_status ki_cubin_inspect(struct ki_cubin *cubin, struct ki_target target,
                                  enum kiln_status status, struct kiln_error *err);

#endif
