// SPDX-License-Identifier: Apache-2.0
// gather_lens: the raw tokens that a prefill request gathers.
//
//   gather_lens[b - first_request] =
//       qlen + clamp(prefix - replay_start[b], 0, kWindow - 1)
//   qlen = query_start_loc[b + 1] - query_start_loc[b],  prefix = seq_lens[b] - qlen
//
// for each request b from first_request on, clamped to [0, num_requests].
//
// In:  query_start_loc[num_requests + 1], seq_lens[num_requests],
//      replay_start[num_requests] or null: 0.
// Out: gather_lens[num_requests - first_request]. All int32; a sum past 2^31-1 becomes that.
//
// One thread per request, decode requests included: how many there are may be known on
// the device alone. A warp's accesses are dense at any alignment. No shared memory.
#ifndef KILN_PRELUDE
constexpr int kWindow = 128;  // raw tokens of the sliding window
constexpr int kThreads = 128; // threads of a block
#endif

static_assert(kWindow >= 1, "window must be at least 1");

#include "common/arch.cuh"
#include "common/count.cuh"
#include "common/int_math.cuh"
#include "common/launch_order.cuh"
#include "common/report.cuh"

struct args_t {
    const int *query_start_loc;
    const int *seq_lens;
    const int *replay_start;
    int *gather_lens;
    count_t first_request;
    int num_requests;
    report_t *report;
};

// What was clipped, for the checked build; a decode request's row is negative.
__device__ inline void check_request(const args_t &args, int row, long long sum)
{
    if (is_first_thread()) {
        report_count(args.report, kReasonFirstRequest, args.first_request,
                     args.num_requests);
    }
    if (row >= 0 && sum >= kTwo31) {
        report(args.report, kReasonLength, row, -1, sum);
    }
}

extern "C" __global__ void __launch_bounds__(kThreads)
    kiln_gather_lens(const __grid_constant__ args_t args)
{
    wait_for_previous_kernel();
    const unsigned request = blockIdx.x * kThreads + threadIdx.x;
    const unsigned requests = static_cast<unsigned>(args.num_requests);
    if (request >= requests) {
        return;
    }
    // Of decode requests too, so that nothing waits for the count.
    const long long begin = args.query_start_loc[request];
    const long long query_len = args.query_start_loc[request + 1] - begin;
    const long long prefix = args.seq_lens[request] - query_len;
    const int replayed = args.replay_start != nullptr ? args.replay_start[request] : 0;
    const long long before = clamp<long long>(prefix - replayed, 0, kWindow - 1);
    const long long sum = query_len + before;
    const long long gathered = least<long long>(sum, kTwo31 - 1);

    const int first = clamp(read_count(args.first_request, 0), 0, args.num_requests);
    if (request >= static_cast<unsigned>(first)) {
        args.gather_lens[request - first] = static_cast<int>(gathered);
    }
    if constexpr (kChecked) {
        check_request(args, static_cast<int>(request) - first, sum);
    }
}
