/* SPDX-License-Identifier: Apache-2.0 */
/* cubin -> loaded kernel, with nothing left to load lazily. */
#ifndef KI_RUN_MODULE_H
#define KI_RUN_MODULE_H

#include "base/blob.h"
#include "run/device.h"

struct ki_module {
    CUlibrary library; /* owned */
    CUkernel kernel;   /* serves every context of the process */
    int registers, smem_bytes, local_bytes;
    int code_bytes; /* of the image */
};

/*
 * Loads on the device of the current context and finishes the load, inside a relaxed
 * scope. `out` is untouched on failure and nothing stays loaded. KILN_E_CUBIN_REFUSED:
 * the driver does not take this image (a newer toolkit's, say); KILN_E_CAPTURING: a
 * driver that does not load beside a capture.
 */
enum kiln_status ki_module_load(const struct ki_driver *driver,
                                const struct ki_device *device, struct ki_blob image,
                                const char *entry_name, struct ki_module *out,
                                struct kiln_error *err);
/* Finishes the load in the current context too, where the module was loaded in another. */
enum kiln_status ki_module_load_here(const struct ki_driver *driver,
                                     const struct ki_device *device,
                                     const struct ki_module *module,
                                     const char *entry_name, struct kiln_error *err);
void ki_module_unload(const struct ki_driver *driver, struct ki_module *module);

#endif
