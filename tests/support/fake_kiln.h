/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A kiln over fakes: a driver without a GPU, an NVRTC that compiles nothing, and a real store
 * in a folder of its own. What the fakes shall do differently is set between setup and open.
 */
#ifndef TESTS_SUPPORT_FAKE_KILN_H
#define TESTS_SUPPORT_FAKE_KILN_H

#include "kiln/launcher.h"

#include "context.h"
#include "support/failing_mem.h"
#include "support/fake_driver.h"
#include "support/fake_nvrtc.h"
#include "support/tmpdir.h"

struct fake_log {
    _Atomic int n_errors, n_warnings;
    char last[KILN_MESSAGE_BYTES + 256]; /* warning or error */
};

struct fake_kiln {
    struct tmpdir dir;
    char cache_dir[TMPDIR_PATH];
    struct kiln_options options; /* cache_dir, log and memory are set */
    struct fake_log log;
    struct failing_mem mem;
    struct fake_driver driver;
    struct fake_nvrtc nvrtc;
    struct ki_driver driver_table;
    struct ki_nvrtc nvrtc_table;
    bool without_nvrtc; /* there is none, and none is searched for */
    struct kiln *kiln;  /* NULL: not open */
    struct kiln_error err;
    CUstream stream;
};

/* Fixtures of cmocka; *state becomes a struct fake_kiln. The calling thread has the fake
 * device's context. Teardown fails the test when something is left alive. */
int fake_kiln_setup(void **state);
int fake_kiln_setup_open(void **state); /* opened too */
int fake_kiln_teardown(void **state);

/* kiln_create with `options`, then the fakes are put in its place. */
enum kiln_status fake_kiln_open(struct fake_kiln *fake);
void fake_kiln_close(struct fake_kiln *fake);

/* Forgets what the fakes have counted. */
void fake_kiln_forget(struct fake_kiln *fake);

/* How often NVRTC compiled, the driver loaded, and entries lie in the store. */
int fake_kiln_compiles(struct fake_kiln *fake);
int fake_kiln_loads(struct fake_kiln *fake);
size_t fake_kiln_entries(const struct fake_kiln *fake);

/* A legal shape of global_topk; another width is another key. */
struct kiln_shape fake_kiln_shape(int64_t topk);

/* A small deployment: window-only, ratio 4 and ratio 128 layers, two drafts; 13 launches. */
struct kiln_deployment fake_kiln_deployment(void);

/* Any args of an op for a launch of n rows whose inputs all lie at `memory`, 16-byte aligned:
 * required counts are by value, optional arrays are absent. */
enum { FAKE_ARGS = 512 };
void fake_kiln_args(enum kiln_op op, int32_t n, const void *memory,
                    unsigned char out[FAKE_ARGS]);

/* The two slow calls for such a shape, without a stream, for sm_90; into fake->err. */
enum kiln_status fake_kiln_prepare(struct fake_kiln *fake, int64_t topk,
                                   const struct kiln_kernel **out);
enum kiln_status fake_kiln_build(struct fake_kiln *fake, int64_t topk);

/* Every descriptor that this process has open, counted. */
int fake_kiln_descriptors(void);

#endif
