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

#include "common/access.cuh"
#include "common/arch.cuh"
#include "common/count.cuh"
#include "common/int_math.cuh"
#include "common/launch_order.cuh"
#include "common/report.cuh"

struct args_t {
    const int *replay_start;
    int num_requests;
    count_t first_request;
    const int *query_start_loc;
    const int *seq_lens;
    int *gather_lens;
    report_t *report;
};

constexpr unsigned kMost = kTwo31 - 1;

// What was clipped, for the checked build; a decode request's row is negative.
__device__ inline void check_request(const args_t &args, int row, long long sum)
{
    if (row >= 0 && sum > kMost) {
        report(args.report, kReasonLength, row, -1, sum);
    }
}

extern "C" __global__ void __launch_bounds__(kThreads)
    kiln_gather_lens(const __grid_constant__ args_t args)
{
    wait_for_previous_kernel();
    let_next_kernel_start();
    const unsigned row = blockIdx.x * kThreads + threadIdx.x;
    const unsigned requests = static_cast<unsigned>(args.num_requests);
    // Threads past the last request look at that one: nothing is loaded behind a branch.
    const unsigned request = least(row, requests - 1);
    const int first = greatest(read_count(args.first_request, 0), 0);
    const int *bounds = args.query_start_loc + request;
    const int begin = bounds[0];
    const int end = bounds[1];
    const int seq_len = args.seq_lens[request];
    const int replay_start =
        load_if(args.replay_start != nullptr, args.replay_start, request, 0);

    // Unsigned: neither difference is negative where it counts, and both may pass 2^31-1.
    const unsigned query_len = static_cast<unsigned>(end) - static_cast<unsigned>(begin);
    const unsigned replayed =
        static_cast<unsigned>(seq_len) - static_cast<unsigned>(replay_start);
    const unsigned past = greatest(replayed, query_len) - query_len;
    const unsigned before =
        seq_len >= replay_start ? least<unsigned>(past, kWindow - 1) : 0;
    const unsigned gathered = least(least(query_len, kMost) + before, kMost);
    store_if(row < requests && static_cast<int>(row) >= first, args.gather_lens,
             static_cast<int>(row) - first, static_cast<int>(gathered));
    if constexpr (kChecked) {
        if (is_first_thread()) {
            report_count(args.report, kReasonFirstRequest, args.first_request,
                         args.num_requests);
        }
        if (row < requests) {
            check_request(args, static_cast<int>(row) - first,
                          static_cast<long long>(query_len) + before);
        }
    }
}
