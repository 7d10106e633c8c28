/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An NVRTC that compiles nothing: for each source it makes a fake_cubin of the kernel that
 * the source declares, for the target that the options name. Counts and orders its calls,
 * fails the n-th one, keeps the last options, tracks live programs.
 *
 * NVRTC's functions take no user pointer, so one fake at a time is installed in a process.
 * They may be called from any thread; what is set here, before.
 */
#ifndef TESTS_SUPPORT_FAKE_NVRTC_H
#define TESTS_SUPPORT_FAKE_NVRTC_H

#include <pthread.h>

#include "build/nvrtc.h"

enum fake_nvrtc_call {
    FAKE_NVRTC_VERSION,
    FAKE_NVRTC_NUM_ARCHS,
    FAKE_NVRTC_ARCHS,
    FAKE_NVRTC_CREATE,
    FAKE_NVRTC_DESTROY,
    FAKE_NVRTC_COMPILE,
    FAKE_NVRTC_CUBIN_SIZE,
    FAKE_NVRTC_CUBIN,
    FAKE_NVRTC_LOG_SIZE,
    FAKE_NVRTC_LOG,
    FAKE_NVRTC_N_CALLS,
};

enum { FAKE_NVRTC_ORDER = 256, FAKE_NVRTC_OPTIONS = 1024 };

struct fake_nvrtc {
    pthread_mutex_t mutex; /* guards all that the calls change */

    /* What is asked of it: set before use. */
    int major, minor; /* 13.0 */
    int archs[8];     /* 80 90 100 120 */
    int n_archs;
    enum fake_nvrtc_call fail_call; /* fail the fail_nth-th call of this function, */
    int fail_nth;                   /* from 1; 0: none, -1: each */
    nvrtcResult fail_result;        /* with this */
    const char *refused_option;     /* NVRTC_ERROR_INVALID_OPTION when it is given */
    const char *log;                /* of every program */
    bool empty_cubin;               /* success with no byte, as for compute_90 */
    const char *wrong_entry;        /* the cubin holds this kernel; NULL: the right one */
    int compile_ms;                 /* how long a compile takes */
    bool never_waits;               /* no cubin holds the wait that its source has */

    /* What happened. */
    int calls[FAKE_NVRTC_N_CALLS];
    enum fake_nvrtc_call order[FAKE_NVRTC_ORDER];
    int n_order;
    int n_live;                       /* programs */
    char options[FAKE_NVRTC_OPTIONS]; /* of the last compile, separated by spaces */
};

/* Installs it and fills `out` as ki_nvrtc_open would. fake_nvrtc_finish takes it away. */
void fake_nvrtc_init(struct fake_nvrtc *fake, struct ki_nvrtc *out);
void fake_nvrtc_finish(struct fake_nvrtc *fake);

#endif
