/* SPDX-License-Identifier: Apache-2.0 */
/* The smallest image that ki_cubin_inspect accepts: no code in it ever runs. */
#ifndef TESTS_SUPPORT_FAKE_CUBIN_H
#define TESTS_SUPPORT_FAKE_CUBIN_H

#include <stdbool.h>

#include "build/cubin.h"

struct fake_cubin_options {
    const char *entry_name;
    struct ki_target target;
    int registers;        /* -1: the image does not say */
    int smem_bytes;       /* static; 0: no such section */
    bool waits;           /* holds griddepcontrol.wait */
    bool narrow_flags;    /* the SM number where ABI 7 has it */
    unsigned char filler; /* makes images of one kernel differ */
};

/* The sections in their order, for tests that damage one. */
enum {
    FAKE_CUBIN_NAMES = 1,
    FAKE_CUBIN_STRINGS = 2,
    FAKE_CUBIN_SYMBOLS = 3,
    FAKE_CUBIN_INFO = 4,
    FAKE_CUBIN_TEXT = 5,
    FAKE_CUBIN_SHARED = 6,
    FAKE_CUBIN_N_SECTIONS = 7,
};

/* Owner: the caller's, for free. */
struct ki_blob fake_cubin_image(const struct fake_cubin_options *options);

/* The whole value, facts filled in, as a compile of NVRTC 13.0 for sm_90 makes it. Owner:
 * the caller's, for ki_cubin_finish with the C library's allocator. */
void fake_cubin_make(const char *entry_name, unsigned char filler, struct ki_cubin *out);

#endif
