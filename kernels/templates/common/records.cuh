// SPDX-License-Identifier: Apache-2.0
// Compressed records: one for each kRatio consecutive raw tokens, complete with the last.
#pragma once

#include "common/int_math.cuh"

// Records that are complete once `position` is known, at most `limit`; kRatio 0: there
// are none. Unsigned, because the last position of all has a successor only there.
template <int kRatio>
__device__ inline int complete_records(long long position, int limit)
{
    if constexpr (kRatio == 0) {
        return 0;
    } else {
        if (position < 0) {
            return 0;
        }
        const unsigned long long seen = static_cast<unsigned long long>(position) + 1;
        return static_cast<int>(least<unsigned long long>(seen / kRatio, limit));
    }
}
