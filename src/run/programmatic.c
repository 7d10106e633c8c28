/* SPDX-License-Identifier: Apache-2.0 */
/* See programmatic.h. The stream is non-blocking: nothing of the caller's waits for it. */
#include "run/programmatic.h"

struct trial {
    const struct ki_driver *driver;
    CUstream stream;
    CUgraph graph;
    CUgraphExec exec;
};

static enum kiln_status capture(struct trial *trial, const struct kiln_kernel *kernel,
                                const void *args, struct kiln_error *err)
{
    const struct ki_driver *driver = trial->driver;
    enum kiln_status status;

    KI_TRY(ki_driver_check(
        driver,
        driver->stream_begin_capture(trial->stream, CU_STREAM_CAPTURE_MODE_RELAXED),
        "cuStreamBeginCapture", err));
    status = ki_launch(kernel, args, trial->stream, KI_LAUNCH_PROGRAMMATIC, err);
    if (status == KILN_OK) {
        status = ki_launch(kernel, args, trial->stream, KI_LAUNCH_PROGRAMMATIC, err);
    }
    /* The capture ends in any case. */
    CUresult result = driver->stream_end_capture(trial->stream, &trial->graph);
    KI_TRY(status);
    return ki_driver_check(driver, result, "cuStreamEndCapture", err);
}

static enum kiln_status replay(struct trial *trial, struct kiln_error *err)
{
    const struct ki_driver *driver = trial->driver;

    KI_TRY(ki_driver_check(driver,
                           driver->graph_instantiate(&trial->exec, trial->graph, 0),
                           "cuGraphInstantiateWithFlags", err));
    KI_TRY(ki_driver_check(driver, driver->graph_launch(trial->exec, trial->stream),
                           "cuGraphLaunch", err));
    return ki_driver_check(driver, driver->stream_synchronize(trial->stream),
                           "cuStreamSynchronize", err);
}

static enum kiln_status run(struct trial *trial, const struct kiln_kernel *kernel,
                            const void *args, struct kiln_error *err)
{
    const struct ki_driver *driver = trial->driver;

    KI_TRY(ki_driver_check(driver,
                           driver->stream_create(&trial->stream, CU_STREAM_NON_BLOCKING),
                           "cuStreamCreate", err));
    KI_TRY(capture(trial, kernel, args, err));
    return replay(trial, err);
}

/* What a release reports, an earlier call has. */
static void release(struct trial *trial)
{
    const struct ki_driver *driver = trial->driver;

    if (trial->exec != NULL) {
        (void)driver->graph_exec_destroy(trial->exec);
    }
    if (trial->graph != NULL) {
        (void)driver->graph_destroy(trial->graph);
    }
    if (trial->stream != NULL) {
        (void)driver->stream_destroy(trial->stream);
    }
}

enum kiln_status ki_programmatic_try(const struct kiln_kernel *kernel, const void *args,
                                     struct kiln_error *err)
{
    struct trial trial = {.driver = kernel->driver};
    struct ki_relaxed scope;
    enum kiln_status status;

    KI_TRY(ki_relaxed_enter(trial.driver, &scope, err));
    status = run(&trial, kernel, args, err);
    release(&trial);
    ki_relaxed_leave(trial.driver, &scope);
    return status;
}
