// SPDX-License-Identifier: Apache-2.0
// Sums over the warps of a block that has one row.
#pragma once

#include "common/arch.cuh"

struct row_scan_t {
    unsigned before; // of the warps before this one
    unsigned total;
};

// For all threads of the block, with the same count in each lane of a warp. Shared memory: an int
// for each warp where there are several. Before the block calls it again it has to meet.
template <unsigned kWarps>
__device__ inline row_scan_t scan_row(unsigned count)
{
    if constexpr (kWarps == 1) {
        return {0, count};
    } else {
        __shared__ unsigned counts[kWarps];
        const unsigned warp = warp_of_thread();
        if (lane_of_thread() == 0) {
            counts[warp] = count;
        }
        __syncthreads();
        row_scan_t scan = {0, 0};
#pragma unroll
        for (unsigned i = 0; i < kWarps; i++) {
            scan.before += i < warp ? counts[i] : 0;
            scan.total += counts[i];
        }
        return scan;
    }
}
