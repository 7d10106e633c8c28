// SPDX-License-Identifier: Apache-2.0
// Which request a token belongs to, searched by a whole warp.
#pragma once

#include "common/arch.cuh"
#include "common/int_math.cuh"

// Narrows the requests down to one per lane: the token's, if it has one, is among the
// kWarp from the result on. Each turn splits what is left in kWarp parts; up to kWarp
// requests cost no turn.
__device__ inline int narrow_requests(const int *query_start_loc, int num_requests,
                                      long long token)
{
    int first = 0;
    int left = num_requests;
    while (left > static_cast<int>(kWarp)) {
        const int part = (left - 1) / static_cast<int>(kWarp) + 1;
        const long long end = static_cast<long long>(lane_of_thread() + 1) * part;
        const bool passed = end <= left && query_start_loc[first + end] <= token;
        const int skipped = __popc(__ballot_sync(kWholeWarp, passed)) * part;
        first += skipped;
        left = least(part, left - skipped);
    }
    return first;
}
