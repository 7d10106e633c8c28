// SPDX-License-Identifier: Apache-2.0
// Where a warp's tokens stand: the request of each lane's token, and its position there.
#pragma once

#include "common/arch.cuh"
#include "common/int_math.cuh"
#include "common/requests.cuh"

struct place_t {
    int request;  // -1: none has the token
    int position; // of the token in its sequence, below 0 before it; -1: no request
};

constexpr place_t kNoPlace = {-1, -1};

// Of a token below its request's end. A sequence of less than nothing is as one of nothing:
// all of its tokens stand before it.
__device__ inline int position_of(int token, int end, int seq_len)
{
    return greatest(seq_len, 0) - (end - token);
}

// How many requests end at or before a token.
__device__ inline unsigned requests_before(const int *query_start_loc, unsigned requests,
                                           int token)
{
    unsigned low = 0;
    unsigned high = requests;
#pragma unroll 1
    while (low < high) {
        const unsigned middle = (low + high) / 2;
        const bool passed = query_start_loc[middle + 1] <= token;
        low = passed ? middle + 1 : low;
        high = passed ? high : middle;
    }
    return low;
}

// Requests are looked at one per lane, from the first that may have the warp's first token.
// Each that ends inside the warp leaves a mark there: a token's request comes as many
// requests further as there are marks up to it.
template <bool kPositions>
__device__ inline place_t search_place(const int *query_start_loc, const int *seq_lens,
                                       int num_requests, int token)
{
    const unsigned requests = static_cast<unsigned>(num_requests);
    const int lead = __shfl_sync(kWholeWarp, token, 0);
    const unsigned first =
        static_cast<unsigned>(narrow_requests(query_start_loc, num_requests, lead));
    const unsigned looked_at = first + lane_of_thread();
    const bool known = looked_at < requests;
    int origin = 0;
    int end = 0;
    int seq_len = 0;
    if (num_requests > 0) {
        origin = query_start_loc[0];
    }
    if (known) {
        end = query_start_loc[looked_at + 1];
    }
    if (kPositions && known) {
        seq_len = seq_lens[looked_at];
    }
    const unsigned at = known ? static_cast<unsigned>(greatest(end, lead) - lead) : kWarp;
    const bool inside = 0 < at && at < kWarp;
    const unsigned marks = __reduce_or_sync(kWholeWarp, inside ? 1u << at : 0u);
    const unsigned before = __popc(__ballot_sync(kWholeWarp, at == 0));
    const unsigned ends = __popc(__ballot_sync(kWholeWarp, inside));

    const unsigned passed = before + __popc(marks << (kWarp - 1 - (token - lead)));
    unsigned request = first + passed;
    end = __shfl_sync(kWholeWarp, end, passed);
    seq_len = kPositions ? __shfl_sync(kWholeWarp, seq_len, passed) : 0;
    // Where requests share a mark, some without tokens, or go on behind the last lane's.
    if (__popc(marks) != ends || before + ends == kWarp) {
        request = requests_before(query_start_loc, requests, token);
        end = request < requests ? query_start_loc[request + 1] : 0;
        seq_len = kPositions && request < requests ? seq_lens[request] : 0;
    }
    const bool has = request < requests && origin <= token;
    return has ? place_t{static_cast<int>(request), position_of(token, end, seq_len)}
               : kNoPlace;
}

// By a whole warp, with tokens that count up from its first lane's to the last token.
template <bool kPositions>
__device__ inline place_t place_of_token(const int *query_start_loc, const int *seq_lens,
                                         int num_requests, int num_tokens, int token)
{
    const unsigned tokens = static_cast<unsigned>(num_tokens);
    // In decode each token is a request of its own: token t is request t.
    if (tokens < 2 * static_cast<unsigned>(num_requests)) {
        const int request = least(token, num_requests - 1);
        const int *bounds = query_start_loc + request;
        const int begin = bounds[0];
        const int end = bounds[1];
        const int seq_len = kPositions ? seq_lens[request] : 0;
        if (__all_sync(kWholeWarp, begin <= token && token < end)) {
            return {request, position_of(token, end, seq_len)};
        }
    }
    return search_place<kPositions>(query_start_loc, seq_lens, num_requests, token);
}
