// SPDX-License-Identifier: Apache-2.0
// token_to_req: the request of each token.
//
//   token_to_req[t] = b where query_start_loc[b] <= t < query_start_loc[b + 1];
//                     else kPadReq
//
// In:  query_start_loc[num_requests + 1], which never decreases.
// Out: token_to_req[num_tokens]. All int32.
//
// One thread per token, so that a long request spreads like many short ones; a warp
// searches for its 32 tokens together, and its stores are dense at any alignment. No
// shared memory.
#ifndef KILN_PRELUDE
constexpr int kPadReq = 0;    // stands for no request
constexpr int kThreads = 256; // threads of a block
#endif

static_assert(kThreads % 32 == 0, "tokens are searched by whole warps");

#include "common/int_math.cuh"
#include "common/launch_order.cuh"
#include "common/report.cuh"
#include "common/token_places.cuh"

struct args_t {
    const int *query_start_loc;
    int *token_to_req;
    int num_tokens;
    int num_requests;
    report_t *report;
};

extern "C" __global__ void __launch_bounds__(kThreads)
    kiln_token_to_req(const __grid_constant__ args_t args)
{
    wait_for_previous_kernel();
    let_next_kernel_start();
    const unsigned row = blockIdx.x * kThreads + threadIdx.x;
    const unsigned tokens = static_cast<unsigned>(args.num_tokens);
    // Lanes past the last token take part in the search, with that one.
    const int token = static_cast<int>(least(row, tokens - 1));
    const place_t place = place_of_token<false>(
        args.query_start_loc, nullptr, args.num_requests, args.num_tokens, token);
    if (row < tokens) {
        args.token_to_req[row] = place.request >= 0 ? place.request : kPadReq;
    }
}
