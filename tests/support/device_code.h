/* SPDX-License-Identifier: Apache-2.0 */
/* Device code of the tests: text below tests/ that may include the library's headers and
 * references, compiled by the real NVRTC. */
#ifndef TESTS_SUPPORT_DEVICE_CODE_H
#define TESTS_SUPPORT_DEVICE_CODE_H

#include "kiln/op_info.h"

#include "build/cubin.h"
#include "build/nvrtc.h"

/* Where the environment says that NVRTC is; fails the test where it is not. */
void device_code_open_nvrtc(struct ki_nvrtc *out);

/* `file` as in "gpu/replay/reference.cu". The caller owns `out`. */
enum kiln_status device_code_compile(const struct ki_nvrtc *nvrtc,
                                     struct ki_target target, const char *file,
                                     const char *entry_name, struct ki_cubin *out,
                                     struct kiln_error *err);

/* The kernel "reference_rows" of an op and a shape; see gpu/replay/reference.cu. */
enum kiln_status device_code_compile_reference(const struct ki_nvrtc *nvrtc,
                                               struct ki_target target, enum kiln_op op,
                                               const struct kiln_shape *shape,
                                               struct ki_cubin *out,
                                               struct kiln_error *err);

#endif
