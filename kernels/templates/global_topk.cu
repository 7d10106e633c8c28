// SPDX-License-Identifier: Apache-2.0
// global_topk: top-k picks to cache slots, and how many.
//
//   slots[t, j] = page * kBlockSize + v % kBlockSize,  v = topk_indices[t, j],
//                 page = block_table[token_to_req[t], v / kBlockSize];  or -1
//   lens[t]     = mapped entries of row t
//
// In:  topk_indices[num_tokens, kTopk] (rows kTopkStride apart),
//      block_table[table_rows, kTableWidth] (kTableStride), token_to_req[num_tokens],
//      is_valid_token[num_tokens] bytes, or null.
// Out: slots[num_tokens, kTopk] (kSlotsStride), lens[num_tokens]. int32 but where said.
// Holes stay where they are; with kDcpWorld > 1 what dcp_rank owns moves to the front.
//
// kRowThreads threads share a row, kThreads / kRowThreads rows a block. Each warp takes
// slices of 128 columns, several in flight at a time: a row is read and written once, in
// 16-byte accesses where its addresses allow, and looked up through the L1 cache, which
// holds a request's pages. Ids and pages may be any int32. Shared memory: kThreads / 32
// ints where a row has several warps.
#ifndef KILN_PRELUDE
constexpr int kTopk = 512;        // columns of a row
constexpr int kTopkStride = 512;  // elements between rows of topk_indices
constexpr int kSlotsStride = 512; // elements between rows of slots
constexpr int kBlockSize = 64;    // slots of a page
constexpr int kTableWidth = 4096; // pages of a request
constexpr int kTableStride = 4096;
constexpr int kDcpWorld = 1;      // ranks that share the cache
constexpr int kDcpInterleave = 1; // consecutive ids of one rank
constexpr int kThreads = 128;     // threads of a block
constexpr int kRowThreads = 64;   // threads of a row
#endif

static_assert(kTopk >= 1 && kTopk <= kTopkStride && kTopk <= kSlotsStride,
              "topk must be at least 1 and at most both row strides");
static_assert(
    kBlockSize >= 1 && kTableWidth >= 1 && kTableWidth <= kTableStride,
    "block_size and table_width must be at least 1, table_stride at least table_width");
static_assert(kDcpWorld >= 1 && kDcpInterleave >= 1 && kBlockSize % kDcpInterleave == 0,
              "dcp_interleave must divide block_size");
static_assert(kRowThreads % 32 == 0 && kThreads % kRowThreads == 0,
              "a row takes whole warps, a block whole rows");
static_assert(kDcpWorld == 1 || kThreads == kRowThreads, "a block compacts one row");

#include "common/arch.cuh"
#include "common/compact.cuh"
#include "common/count.cuh"
#include "common/int_math.cuh"
#include "common/paging.cuh"
#include "common/quad.cuh"
#include "common/row_scan.cuh"

struct args_t {
    const int *topk_indices;
    const int *token_to_req;
    const int *block_table;
    const unsigned char *is_valid_token;
    int *slots;
    int *lens;
    count_t live_tokens;
    int num_tokens;
    int table_rows;
    int dcp_rank;
};

constexpr unsigned kWarps = kThreads / kWarp;
constexpr unsigned kRowWarps = kRowThreads / kWarp;
constexpr unsigned kRows = kWarps / kRowWarps;

// The row in rounds of kBatch slices for each warp, of which a round's are neighbours.
constexpr unsigned kSlices = div_up<unsigned>(kTopk, kSlice);
constexpr unsigned kBatch = least(4u, div_up(kSlices, kRowWarps));
constexpr unsigned kRounds = div_up(kSlices, kBatch *kRowWarps);

// Large launches of short rows gain when ids leave the cache before slots; longer rows
// lose.
constexpr bool kIdsOnce = kTopk <= 512;

// What maps the ids of one row; its limit is 0 where the row is inert.
struct mapper_t {
    const int *pages;
    unsigned limit;
    int rank;

    __device__ int slot_of(int id) const
    {
        const owned_t owned = owned_by<kDcpWorld, kDcpInterleave>(id, rank);
        if (!owned.mine || owned.local >= limit) {
            return -1;
        }
        return slot_in_page<kBlockSize>(__ldg(pages + owned.local / kBlockSize),
                                        owned.local % kBlockSize);
    }
};

__device__ inline mapper_t mapper_of(const args_t &args, unsigned row)
{
    const int live_tokens = read_count(args.live_tokens, args.num_tokens);
    const int request = args.token_to_req[row];
    const bool valid = args.is_valid_token == nullptr || args.is_valid_token[row] != 0;
    const bool live = static_cast<int>(row) < live_tokens;
    const bool known = request >= 0 && request < args.table_rows;
    return {args.block_table + static_cast<long long>(known ? request : 0) * kTableStride,
            live && valid && known ? kPagedIds<kBlockSize, kTableWidth> : 0,
            args.dcp_rank};
}

// A round's slots. Its ids are under way before the row's request is looked at: what they
// are does not depend on it, and a row of ids is there for each row of the launch.
template <bool kWide>
__device__ inline void map_slices(const args_t &args, unsigned row, const int *ids,
                                  unsigned slice, int_quad_t (&quads)[kBatch])
{
#pragma unroll // the batch lives in registers
    for (unsigned i = 0; i < kBatch; i++) {
        quads[i] = load_quad<kWide, kIdsOnce>(ids, slice + i, kTopk);
    }
    const mapper_t mapper = mapper_of(args, row);
#pragma unroll
    for (unsigned i = 0; i < kBatch; i++) {
#pragma unroll
        for (unsigned j = 0; j < kQuad; j++) {
            quads[i].at[j] = mapper.slot_of(quads[i].at[j]);
        }
    }
}

// Every id stays in its column. Returns what the thread mapped.
template <bool kWide>
__device__ inline int map_row(const args_t &args, unsigned row, const int *ids,
                              int *slots)
{
    int mapped = 0;
    for (unsigned round = 0; round < kRounds; round++) {
        const unsigned slice =
            (round * kRowWarps + warp_of_thread() % kRowWarps) * kBatch;
        int_quad_t quads[kBatch];
        map_slices<kWide>(args, row, ids, slice, quads);
#pragma unroll
        for (unsigned i = 0; i < kBatch; i++) {
            store_quad<kWide>(slots, slice + i, kTopk, quads[i]);
#pragma unroll
            for (unsigned j = 0; j < kQuad; j++) {
                mapped += quads[i].at[j] >= 0;
            }
        }
    }
    return mapped;
}

// What was mapped moves to the front, in order. Returns what the row kept.
__device__ inline unsigned compact_block_row(const args_t &args, unsigned row,
                                             const int *ids, int *slots)
{
    unsigned done = 0;
    for (unsigned round = 0; round < kRounds; round++) {
        const unsigned slice = (round * kRowWarps + warp_of_thread()) * kBatch;
        int_quad_t quads[kBatch];
        map_slices<false>(args, row, ids, slice, quads);
        unsigned places[kBatch * kQuad];
        unsigned kept = 0;
#pragma unroll
        for (unsigned i = 0; i < kBatch * kQuad; i++) {
            places[i] = place_kept(quads[i / kQuad].at[i % kQuad] >= 0, kept);
        }
        const row_scan_t scan = scan_row<kRowWarps, kWarps>(kept);
#pragma unroll
        for (unsigned i = 0; i < kBatch * kQuad; i++) {
            const int slot = quads[i / kQuad].at[i % kQuad];
            if (slot >= 0) {
                slots[done + scan.before + places[i]] = slot;
            }
        }
        done += scan.total;
        if (kRounds > 1) {
            __syncthreads();
        }
    }
    for (unsigned column = done + threadIdx.x; column < kTopk; column += kThreads) {
        slots[column] = -1;
    }
    return done;
}

extern "C" __global__ void __launch_bounds__(kThreads)
    kiln_global_topk(const __grid_constant__ args_t args)
{
    const unsigned row = blockIdx.x * kRows + warp_of_thread() / kRowWarps;
    const bool launched = row < static_cast<unsigned>(args.num_tokens);
    unsigned mapped = 0;
    if (launched) {
        const int *ids = args.topk_indices + static_cast<long long>(row) * kTopkStride;
        int *slots = args.slots + static_cast<long long>(row) * kSlotsStride;
        if constexpr (kDcpWorld > 1) {
            mapped = compact_block_row(args, row, ids, slots);
        } else if (takes_quads(ids) && takes_quads(slots)) {
            mapped = map_row<true>(args, row, ids, slots);
        } else {
            mapped = map_row<false>(args, row, ids, slots);
        }
    }
    if constexpr (kDcpWorld == 1) {
        mapped = __reduce_add_sync(kWholeWarp, mapped);
        mapped = scan_row<kRowWarps, kWarps>(mapped).total;
    }
    if (launched && threadIdx.x % kRowThreads == 0) {
        args.lens[row] = static_cast<int>(mapped);
    }
}
