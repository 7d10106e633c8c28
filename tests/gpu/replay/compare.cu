/* SPDX-License-Identifier: Apache-2.0 */
/* Counts the elements in which an output of kiln's differs from the reference's. */
#include "gpu/replay/inputs.h"

static int64_t load(const void *array, int64_t i, int32_t element_bytes)
{
    switch (element_bytes) {
    case 1:
        return ((const uint8_t *)array)[i];
    case 4:
        return ((const int32_t *)array)[i];
    default:
        return ((const int64_t *)array)[i];
    }
}

extern "C" __global__ void compare(const void *got, const void *expected,
                                   const int64_t n_elements, const int32_t element_bytes,
                                   const struct replay_inputs *in,
                                   struct replay_difference *out)
{
    const int64_t n_threads = (int64_t)gridDim.x * blockDim.x;
    const int64_t thread = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;

    for (int64_t i = thread; i < n_elements; i += n_threads) {
        if (load(got, i, element_bytes) != load(expected, i, element_bytes)) {
            atomicAdd(&out->n, 1ull);
            atomicMin(&out->first, in->step << 32 | (uint64_t)i);
        }
    }
}
