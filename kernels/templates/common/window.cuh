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

// Before it is cut at its end to the columns that a row has for it.
template <int kWindow>
__device__ inline range_t whole_window(long long position, long long seq_len,
                                       long long left, long long right)
{
    const long long before = greatest<long long>(left, kWindow - 1);
    return {greatest<long long>(position - before, 0),
            least(position + right + 1, seq_len)};
}

template <int kWindow, int kImageWidth>
__device__ inline range_t window_of(long long position, long long seq_len, long long left,
                                    long long right)
{
    constexpr long long kMost = static_cast<long long>(kWindow) + kImageWidth;
    const range_t whole = whole_window<kWindow>(position, seq_len, left, right);
    return {whole.start, least(whole.end, whole.start + kMost)};
}
