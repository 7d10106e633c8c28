// SPDX-License-Identifier: Apache-2.0
// Sliding windows: the positions that a token sees, where its request is known.
#pragma once

#include "common/int_math.cuh"

// Positions [start, end) of a sequence; none where end <= start.
struct range_t {
    long long start;
    long long end;
};

// A token's position: what its request lacks to its end, off the length of its sequence.
__device__ inline long long position_of(long long token, long long query_end,
                                        long long seq_len)
{
    return seq_len - (query_end - token);
}

// Tokens of an image that are seen before or after a token; arrays may be null.
template <int kImageWidth>
__device__ inline long long visible_at(const int *visible, unsigned token)
{
    return kImageWidth > 0 && visible != nullptr ? greatest(visible[token], 0) : 0;
}

template <int kWindow, int kImageWidth>
__device__ inline range_t window_of(long long position, long long seq_len, long long left,
                                    long long right)
{
    constexpr long long kBefore = kWindow - 1;
    constexpr long long kMost = static_cast<long long>(kWindow) + kImageWidth;
    const long long before = greatest(left, kBefore);
    const long long start = greatest<long long>(position - before, 0);
    const long long end = least(position + right + 1, seq_len);
    return {start, least(end, start + kMost)};
}
