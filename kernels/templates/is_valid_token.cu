// SPDX-License-Identifier: Apache-2.0
// is_valid_token: which tokens of a padded batch are real.
//
//   is_valid_token[t] = 1 where t < live_tokens and slot_mapping[t] >= 0, else 0
//
// In:  slot_mapping[num_tokens] int64 or null: all are mapped. With kDcpWorld > 1 it is -1 for
//      tokens that another rank stores, and not looked at.
// Out: is_valid_token[num_tokens], bytes.
//
// Four tokens per thread. Where both arrays allow they are neighbours, read in 16-byte
// accesses and written in one of 4; elsewhere they lie a warp apart, so that the warp's
// accesses are dense all the same. No shared memory.
#ifndef KILN_PRELUDE
constexpr int kDcpWorld = 1; // ranks that share the cache
constexpr int kThreads = 64; // threads of a block
#endif

static_assert(kDcpWorld >= 1, "dcp_world must be at least 1");
static_assert(kThreads % 32 == 0, "a warp's tokens are neighbours");

#include "common/arch.cuh"
#include "common/count.cuh"
#include "common/quad.cuh"
#include "common/report.cuh"

struct args_t {
    const long long *slot_mapping;
    unsigned char *is_valid_token;
    count_t live_tokens;
    int num_tokens;
    report_t *report;
};

// The slots of four tokens from `token` on.
__device__ inline void load_slots(const long long *slot_mapping, unsigned token,
                                  long long (&slots)[kQuad])
{
    const longlong2 *pairs = reinterpret_cast<const longlong2 *>(slot_mapping + token);
    const longlong2 low = __ldg(pairs);
    const longlong2 high = __ldg(pairs + 1);
    slots[0] = low.x;
    slots[1] = low.y;
    slots[2] = high.x;
    slots[3] = high.y;
}

__device__ inline void write_neighbours(const args_t &args, unsigned token, int live,
                                        bool masks)
{
    long long slots[kQuad] = {};
    unsigned char valid[kQuad];
    if (masks) {
        load_slots(args.slot_mapping, token, slots);
    }
#pragma unroll // both arrays live in registers
    for (unsigned i = 0; i < kQuad; i++) {
        valid[i] = static_cast<int>(token + i) < live && slots[i] >= 0;
    }
    *reinterpret_cast<uchar4 *>(args.is_valid_token + token) =
        make_uchar4(valid[0], valid[1], valid[2], valid[3]);
}

// A step of 1 takes neighbours, one of a warp dense accesses.
__device__ inline void write_singly(const args_t &args, unsigned token, unsigned step,
                                    int live, bool masks)
{
    const unsigned tokens = static_cast<unsigned>(args.num_tokens);
#pragma unroll // all loads under way before the first store
    for (unsigned i = 0; i < kQuad; i++, token += step) {
        if (token < tokens) {
            const bool mapped = !masks || __ldg(args.slot_mapping + token) >= 0;
            args.is_valid_token[token] = static_cast<int>(token) < live && mapped;
        }
    }
}

extern "C" __global__ void __launch_bounds__(kThreads)
    kiln_is_valid_token(const __grid_constant__ args_t args)
{
    const int live = read_count(args.live_tokens, args.num_tokens);
    const bool masks = kDcpWorld == 1 && args.slot_mapping != nullptr;
    const unsigned thread = blockIdx.x * kThreads + threadIdx.x;
    const unsigned lane = lane_of_thread();
    const bool wide =
        reinterpret_cast<unsigned long long>(args.slot_mapping) % sizeof(longlong2) ==
            0 &&
        reinterpret_cast<unsigned long long>(args.is_valid_token) % sizeof(uchar4) == 0;
    if (!wide) {
        write_singly(args, (thread - lane) * kQuad + lane, kWarp, live, masks);
    } else if (thread < static_cast<unsigned>(args.num_tokens) / kQuad) {
        write_neighbours(args, thread * kQuad, live, masks);
    } else {
        write_singly(args, thread * kQuad, 1, live, masks);
    }
    if constexpr (kChecked) {
        if (is_first_thread()) {
            report_count(args.report, kReasonLiveTokens, args.live_tokens,
                         args.num_tokens);
        }
    }
}
