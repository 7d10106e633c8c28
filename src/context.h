/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct kiln: the options and one of each part. What is opened late (NVRTC, the driver) is opened
 * once under `mutex` and not changed afterwards.
 */
#ifndef KI_CONTEXT_H
#define KI_CONTEXT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>

#include "kiln/kiln.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/sync.h"
#include "build/nvrtc.h"
#include "build/store.h"
#include "options.h"
#include "run/device.h"
#include "run/driver.h"
#include "run/table.h"

/* What a trial of programmatic launches has shown. */
enum ki_programmatic {
    KI_PROGRAMMATIC_UNKNOWN = 0,
    KI_PROGRAMMATIC_WORKS,
    KI_PROGRAMMATIC_FAILS,
};

struct kiln {
    struct ki_mem mem;
    struct ki_log log;
    struct ki_paths paths;
    int64_t build_timeout_ms;
    int64_t retry_ms;
    bool allow_group_writable;
    bool no_disk;
    kiln_event_fn event_fn; /* NULL: none */
    void *event_user;
    uint32_t variant; /* of all its kernels: bits of enum kiln_variant */
    pid_t pid;        /* of the creating process: another one is a child after fork */

    struct ki_store store;
    struct ki_table table;

    struct ki_mutex nvrtc_mutex; /* guards the opening of NVRTC, which takes long */
    _Atomic int nvrtc_is_open;
    struct ki_nvrtc nvrtc;
    struct kiln_error nvrtc_error; /* of the last failed search, which holds until... */
    int64_t nvrtc_retry_ms;        /* ... this time of ki_now_ms */

    struct ki_mutex mutex; /* guards the opening of what follows */
    _Atomic int driver_is_open;
    struct ki_driver driver;
    _Atomic int target_is_known;
    struct ki_target target; /* named by option, else the first prepare's device's */
    bool device_is_known;
    CUdevice ordinal; /* of the first prepare; the only one that this kiln serves */

    enum ki_programmatic programmatic; /* of the device; under mutex */

    _Atomic int64_t n_compiled, n_loaded, n_failed, compile_ms, load_ms;
    _Atomic int64_t n_found, n_not_found, n_violations;
    _Atomic int64_t n_launchers; /* alive; each holds this kiln */
};

#endif
