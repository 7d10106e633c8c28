/* SPDX-License-Identifier: Apache-2.0 */
/* The calling thread's context and what is unsafe in it: everything of capture is in this
 * file. */
#ifndef KI_RUN_DEVICE_H
#define KI_RUN_DEVICE_H

#include <stdbool.h>

#include "plan/target.h"
#include "run/driver.h"

struct ki_device {
    CUcontext context; /* NULL where a device's facts were asked for alone */
    CUdevice ordinal;
    struct ki_target target; /* its compute capability */
    int n_sms;
};

/* KILN_E_NO_CONTEXT when the thread has none. */
enum kiln_status ki_device_context(const struct ki_driver *driver, CUcontext *out,
                                   struct kiln_error *err);
enum kiln_status ki_device_current(const struct ki_driver *driver, struct ki_device *out,
                                   struct kiln_error *err);

/* The same of a device that need not have a context. */
enum kiln_status ki_device_facts(const struct ki_driver *driver, CUdevice ordinal,
                                 struct ki_device *out, struct kiln_error *err);

/* Is this one of the results by which a driver says that a capture is in the way? */
bool ki_device_is_capture_result(CUresult result);

/* KILN_E_CAPTURING when this stream is being captured; a NULL stream is not asked.
 * Touches nothing. */
enum kiln_status ki_device_refuse_capture(const struct ki_driver *driver, CUstream stream,
                                          struct kiln_error *err);

/* The thread's capture mode, relaxed from enter to leave: what lies between may load and
 * allocate without killing another thread's capture. */
struct ki_relaxed {
    CUstreamCaptureMode saved;
    int entered;
};
enum kiln_status ki_relaxed_enter(const struct ki_driver *driver,
                                  struct ki_relaxed *scope, struct kiln_error *err);
void ki_relaxed_leave(const struct ki_driver *driver, struct ki_relaxed *scope);

#endif
