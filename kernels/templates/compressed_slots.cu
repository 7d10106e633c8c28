// SPDX-License-Identifier: Apache-2.0
// compressed_slots: the slot of the record that a token completes.
//
//   slots[t] = page * kBlockSize + c % kBlockSize, where (pos + 1) % kCompressRatio == 0,
//              c = pos / kCompressRatio, page = block_table[b, c / kBlockSize];  or -1
//   pos      = seq_lens[b] - (query_start_loc[b + 1] - t),  b = the request of token t
//
// In:  query_start_loc[num_requests + 1], which never decreases, seq_lens[num_requests],
//      block_table[table_rows, kTableWidth] (rows kTableStride apart),
//      own_slots[num_tokens] int64, or null: with one rank a token whose own slot is
//      negative writes nothing.
// Out: slots[num_tokens] int64. All else int32. With kDcpWorld > 1 the records of other
//      ranks are -1.
//
// One thread per token, so that a long prefill spreads over the GPU; a warp searches for
// its 32 tokens together, and its accesses are dense at any alignment. Pages may be any
// int32. No shared memory.
#ifndef KILN_PRELUDE
constexpr int kCompressRatio = 4; // raw tokens of a record
constexpr int kBlockSize = 64;    // slots of a page
constexpr int kTableWidth = 4096; // pages of a request
constexpr int kTableStride = 4096;
constexpr int kDcpWorld = 1;      // ranks that share the cache
constexpr int kDcpInterleave = 1; // consecutive records of one rank
constexpr int kThreads = 256;     // threads of a block
#endif

static_assert(kCompressRatio >= 1, "compress_ratio must be at least 1");
static_assert(
    kBlockSize >= 1 && kTableWidth >= 1 && kTableWidth <= kTableStride,
    "block_size and table_width must be at least 1, table_stride at least table_width");
static_assert(kDcpWorld >= 1 && kDcpInterleave >= 1 && kBlockSize % kDcpInterleave == 0,
              "dcp_interleave must divide block_size");
static_assert(kThreads % 32 == 0, "tokens are searched by whole warps");

#include "common/arch.cuh"
#include "common/check.cuh"
#include "common/int_math.cuh"
#include "common/launch_order.cuh"
#include "common/paging.cuh"
#include "common/report.cuh"
#include "common/token_places.cuh"

struct args_t {
    const int *query_start_loc;
    const int *seq_lens;
    const int *block_table;
    const long long *own_slots;
    long long *slots;
    int num_tokens;
    int num_requests;
    int table_rows;
    int dcp_rank;
    report_t *report;
};

// The slot of what a token at this place completes, or -1. Nothing is jumped over but the
// page's look-up.
__device__ inline long long slot_of(const args_t &args, const place_t &place, bool writes)
{
    const unsigned position = static_cast<unsigned>(place.position);
    const int record = static_cast<int>(position / kCompressRatio);
    const owned_t owned = owned_by<kDcpWorld, kDcpInterleave>(record, args.dcp_rank);
    const bool maps = writes && (position + 1) % kCompressRatio == 0 &&
                      place.request < args.table_rows && owned.mine &&
                      owned.local < kPagedIds<kBlockSize, kTableWidth>;
    int page = -1;
    if (maps) {
        const int *pages =
            args.block_table + static_cast<long long>(place.request) * kTableStride;
        page = __ldg(pages + owned.local / kBlockSize);
    }
    const long long begin = static_cast<long long>(page) * kBlockSize;
    return page >= 0 ? begin + owned.local % kBlockSize : -1;
}

// What the rules turned away, for the checked build, of a token that may write.
__device__ inline void check_token(const args_t &args, unsigned row, const place_t &place)
{
    if ((place.position + 1) % kCompressRatio != 0) {
        return;
    }
    const report_at_t at = {args.report, row, -1};
    if (place.request >= args.table_rows) {
        report(at.to, kReasonRequest, at.row, at.column, place.request);
        return;
    }
    const int *pages =
        args.block_table + static_cast<long long>(place.request) * kTableStride;
    const int local = check_id<kDcpWorld, kDcpInterleave, kBlockSize, kTableWidth>(
        at, place.position / kCompressRatio, args.dcp_rank);
    if (local >= 0) {
        check_page<kTwo31>(at, pages[local / kBlockSize]);
    }
}

extern "C" __global__ void __launch_bounds__(kThreads)
    kiln_compressed_slots(const __grid_constant__ args_t args)
{
    wait_for_previous_kernel();
    let_next_kernel_start();
    const unsigned row = blockIdx.x * kThreads + threadIdx.x;
    const unsigned tokens = static_cast<unsigned>(args.num_tokens);
    // Lanes past the last token take part in the search, with that one.
    const int token = static_cast<int>(least(row, tokens - 1));
    long long own_slot = 0;
    if (kDcpWorld == 1 && args.own_slots != nullptr) {
        own_slot = __ldg(args.own_slots + token);
    }
    const place_t place = place_of_token<true>(args.query_start_loc, args.seq_lens,
                                               args.num_requests, args.num_tokens, token);
    // Both at once, so that the search does not wait for the slot.
    const bool writes = (place.position | static_cast<int>(own_slot >> 32)) >= 0;
    const long long slot = slot_of(args, place, writes);
    if (row < tokens) {
        args.slots[row] = slot;
    }
    if constexpr (kChecked) {
        if (row < tokens && writes) {
            check_token(args, row, place);
        }
    }
}
