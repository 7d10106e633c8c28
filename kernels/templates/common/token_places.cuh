// SPDX-License-Identifier: Apache-2.0
// Where a warp's tokens stand: the request of each lane's token, and its position there.
#pragma once

#include "common/arch.cuh"
#include "common/int_math.cuh"
#include "common/requests.cuh"

struct place_t {
    int request;        // -1: none has the token
    long long position; // of the token in its sequence; -1 where there is no request
};

// By a whole warp, with tokens that do not descend from lane to lane. The warp searches the
// request of its first token together. From there on requests are looked at one per lane,
// and each lane finds its token's among them by the requests' ends, which never decrease:
// 32 neighbours rarely need a second look.
template <bool kPositions>
__device__ inline place_t place_of_token(const int *query_start_loc, const int *seq_lens,
                                         int num_requests, int token)
{
    constexpr int kPastEveryToken = 0x7fffffff;
    constexpr place_t kNone = {-1, -1};
    if (num_requests <= 0) {
        return kNone;
    }
    place_t place = kNone;
    // Looked at last, so that no other load waits for it.
    const int origin = query_start_loc[0];
    const unsigned requests = static_cast<unsigned>(num_requests);
    unsigned first = static_cast<unsigned>(narrow_requests(
        query_start_loc, num_requests, __shfl_sync(kWholeWarp, token, 0)));
    bool searches = true;
    do {
        const unsigned request = first + lane_of_thread();
        const unsigned known = least(request, requests - 1);
        int end = query_start_loc[known + 1];
        int seq_len = 0;
        if constexpr (kPositions) {
            seq_len = seq_lens[known];
        }
        end = request < requests ? end : kPastEveryToken;
        unsigned passed = 0; // how many of them end before the token, but for the last
#pragma unroll               // five steps
        for (unsigned step = kWarp / 2; step > 0; step /= 2) {
            const int other = __shfl_sync(kWholeWarp, end, passed + step - 1);
            passed += other <= token ? step : 0;
        }
        end = __shfl_sync(kWholeWarp, end, passed);
        if constexpr (kPositions) {
            seq_len = __shfl_sync(kWholeWarp, seq_len, passed);
        }
        if (searches && token < end) {
            searches = false;
            if (first + passed < requests) {
                place.request = static_cast<int>(first + passed);
                place.position = seq_len - (static_cast<long long>(end) - token);
            }
        }
        first += kWarp;
    } while (first < requests && __any_sync(kWholeWarp, searches));
    return token >= origin ? place : kNone;
}
