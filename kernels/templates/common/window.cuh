// SPDX-License-Identifier: Apache-2.0
// Sliding windows: the positions that a token sees, where its request is known.
#pragma once

#include "common/access.cuh"
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
__device__ inline int visible_at(const int *visible, unsigned token)
{
    if (kImageWidth == 0) {
        return 0;
    }
    return greatest(load_if(visible != nullptr, visible, token, 0), 0);
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

// Positions [first, first + n), which all are below 2^31; n is 0 where there are none.
struct run_t {
    unsigned first;
    unsigned n;
};

// The same window in 32 bits, of a token of a request whose queries end at query_end. left and
// right are not negative.
template <int kWindow, int kImageWidth>
__device__ inline run_t window_run(int token, int query_end, int seq_len, int left,
                                   int right)
{
    constexpr unsigned kMost = static_cast<unsigned>(kWindow) + kImageWidth;
    const unsigned length = greatest(seq_len, 0);
    // Below length for a token before query_end, else not; unless 32 bits do not hold it: then
    // it is before the sequence, or further past its end than a token sees.
    const unsigned position =
        length + static_cast<unsigned>(token) - static_cast<unsigned>(query_end);
    const bool held = (position < length) == (token < query_end);
    const unsigned end = held ? length : 0;
    const unsigned before =
        least(position, static_cast<unsigned>(greatest(left, kWindow - 1)));
    const unsigned first = position - before;
    const unsigned seen = least(before + 1 + static_cast<unsigned>(right), kMost);
    return {first, least(seen, end - least(first, end))};
}
