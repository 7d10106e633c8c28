// SPDX-License-Identifier: Apache-2.0
// is_valid_token: which tokens of a padded batch are real.
//
//   is_valid_token[t] = 1 where t < live_tokens and slot_mapping[t] >= 0, else 0
//
// In:  slot_mapping[num_tokens] int64 or null: all are mapped. With kDcpWorld > 1 it is -1 for
//      tokens that another rank stores, and not looked at.
// Out: is_valid_token[num_tokens], bytes.
//
// One token per thread: dense accesses at any alignment, and a kernel so short costs less than
// one that chooses between wide accesses and others. Threads past the last token leave last,
// so that no load waits for that. No shared memory.
#ifndef KILN_PRELUDE
constexpr int kDcpWorld = 1;  // ranks that share the cache
constexpr int kThreads = 256; // threads of a block
#endif

static_assert(kDcpWorld >= 1, "dcp_world must be at least 1");

#include "common/count.cuh"
#include "common/launch_order.cuh"
#include "common/report.cuh"

struct args_t {
    const long long *slot_mapping;
    unsigned char *is_valid_token;
    count_t live_tokens;
    int num_tokens;
    report_t *report;
};

extern "C" __global__ void __launch_bounds__(kThreads)
    kiln_is_valid_token(const __grid_constant__ args_t args)
{
    wait_for_previous_kernel();
    let_next_kernel_start();
    const unsigned token = blockIdx.x * kThreads + threadIdx.x;
    const bool inside = token < static_cast<unsigned>(args.num_tokens);
    const int live_tokens = read_count(args.live_tokens, args.num_tokens);
    long long slot = 0; // mapped, where nothing says otherwise
    if (inside && kDcpWorld == 1 && args.slot_mapping != nullptr) {
        slot = __ldg(args.slot_mapping + token);
    }
    if (inside) {
        args.is_valid_token[token] = static_cast<int>(token) < live_tokens && slot >= 0;
    }
    if constexpr (kChecked) {
        if (is_first_thread()) {
            report_count(args.report, kReasonLiveTokens, args.live_tokens,
                         args.num_tokens);
        }
    }
}
