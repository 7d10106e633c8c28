// SPDX-License-Identifier: Apache-2.0
// Sums over the warps that share a row; a block holds kWarps / kRowWarps rows.
#pragma once

#include "common/arch.cuh"

struct row_scan_t {
    unsigned before; // of the row's warps before this one
    unsigned total;
};

// For all threads of the block, with the same count in each lane of a warp. Shared
// memory: kWarps ints where a row has several warps. Before the block calls it again it
// has to meet.
template <unsigned kRowWarps, unsigned kWarps>
__device__ inline row_scan_t scan_row(unsigned count)
{
    if constexpr (kRowWarps == 1) {
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
        for (unsigned i = 0; i < kRowWarps; i++) {
            const unsigned other = counts[warp / kRowWarps * kRowWarps + i];
            scan.before += i < warp % kRowWarps ? other : 0;
            scan.total += other;
        }
        return scan;
    }
}
