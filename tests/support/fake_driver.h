/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A whole struct ki_driver that needs no GPU: counts and orders its calls, fails the n-th
 * one, tracks what is alive, polices captures as the driver does, and keeps each launch.
 * Device memory is host memory, so copies are real; kernels do not run.
 *
 * The driver's functions take no user pointer, so one fake at a time is installed in a
 * process. Its functions may be called from any thread; what is set here, before.
 */
#ifndef TESTS_SUPPORT_FAKE_DRIVER_H
#define TESTS_SUPPORT_FAKE_DRIVER_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "run/driver.h"

enum fake_call {
#define FAKE_CALL_VALUE(member, symbol, version, required) FAKE_##member,
    KI_DRIVER_TABLE(FAKE_CALL_VALUE)
#undef FAKE_CALL_VALUE
        FAKE_N_CALLS
};

enum {
    FAKE_USER_OBJECTS = 64, /* of a graph */
    FAKE_ORDER = 4096,      /* calls whose order is kept */
    FAKE_LAUNCHES = 64,     /* launches that are kept whole */
    FAKE_PARAMS = 256,      /* bytes of a launch's first parameter that are kept */
    FAKE_SMS = 132,
    FAKE_VERSION = 13000,
    FAKE_REGISTERS = 40,
    FAKE_SMEM_BYTES = 1024,
    FAKE_LOCAL_BYTES = 16,
};

struct fake_launch {
    CUlaunchConfig config;
    CUfunction function;
    bool captured; /* recorded into a graph, not run */
    bool is_programmatic;
    unsigned char params[FAKE_PARAMS];
};

struct fake_live {
    int contexts, streams, events, libraries, allocations, graphs, execs, user_objects;
};

struct fake_driver {
    pthread_mutex_t mutex; /* guards all that the calls change */

    /* What is asked of it: set before use. */
    int n_devices;
    int cc_major, cc_minor;
    size_t params_bytes;      /* of a launch's first parameter: what to copy; 0: none */
    int fail_nth;             /* fail the n-th call of all, from 1; 0: none */
    enum fake_call fail_call; /* fail the fail_call_nth-th call of this function */
    int fail_call_nth;
    CUresult fail_result;       /* with this */
    int refuse_image_nth;       /* fail the n-th cuLibraryLoadData, from 1; 0: none, */
    int refuse_images;          /* and this many in all from there; 0: that one alone */
    CUresult refuse_result;     /* with this */
    bool loads_fail_in_capture; /* an old driver: no load beside a capture at all (900) */
    const char *hidden_symbol;  /* cuGetProcAddress does not know this one */

    /* What happened. */
    int calls[FAKE_N_CALLS];
    int n_calls; /* of all, less the two that only name results */
    enum fake_call order[FAKE_ORDER];
    int n_order;
    struct fake_launch launches[FAKE_LAUNCHES];
    int n_launches;
    struct fake_live live;
    int n_capturing;       /* streams */
    int n_global_captures; /* those in global mode */
    int n_broken;          /* captures that an unsafe call invalidated */
};

/* Installs it and fills the table. fake_driver_finish takes it away. */
void fake_driver_init(struct fake_driver *fake, struct ki_driver *out);
void fake_driver_finish(struct fake_driver *fake);

/* True when nothing that a call made is alive. Prints what is. */
bool fake_driver_is_clean(const struct fake_driver *fake);

/* Forgets the counts, the order and the launches; what is alive stays. */
void fake_driver_forget(struct fake_driver *fake);

/* How often the function was called. */
int fake_driver_count(struct fake_driver *fake, enum fake_call call);

/* The place of its first call in the order, or -1. */
int fake_driver_first(const struct fake_driver *fake, enum fake_call call);

/* A context of the fake's device 0 for the calling thread, or none. */
CUcontext fake_driver_context(void);
CUcontext fake_driver_other_context(void); /* of the same device */
void fake_driver_set_context(CUcontext context);

/* The capture mode of the calling thread: RELAXED only inside a scope. */
CUstreamCaptureMode fake_driver_thread_mode(void);

/* cuGetProcAddress of the fake. */
CUresult fake_driver_get_proc_address(const char *symbol, void **out, int version,
                                      cuuint64_t flags,
                                      CUdriverProcAddressQueryResult *found);

#endif
