/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of kiln/gpu.h that tests need: a gpu over any function table. */
#ifndef KI_GPU_H
#define KI_GPU_H

#include "kiln/gpu.h"
#include "run/driver.h"

/* As kiln_gpu_open, over a copy of the table; kiln_gpu_close closes it. On failure it stays
 * the caller's. */
enum kiln_status ki_gpu_open_with(const struct ki_driver *driver, int ordinal,
                                  struct kiln_gpu **out, struct kiln_error *err);

#endif
