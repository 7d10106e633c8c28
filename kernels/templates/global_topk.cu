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
// kRowThreads threads share a row, kThreads / kRowThreads rows a block; common/map_row.cuh
// has the rest. Ids and pages may be any int32. Shared memory: kThreads / 32 ints where a
// row has several warps.
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
#include "common/check.cuh"
#include "common/count.cuh"
#include "common/int_math.cuh"
#include "common/launch_order.cuh"
#include "common/map_row.cuh"
#include "common/paging.cuh"
#include "common/report.cuh"

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
    report_t *report;
};

// Large launches of short rows gain when ids leave the cache before slots; longer rows
// lose.
using rows = rows_t<kTopk, kRowThreads, kThreads, kTopk <= 512>;

// What maps the ids of one row; its limit is 0 where the row is inert.
struct mapper_t {
    const int *pages;
    unsigned limit;
    int rank;

    __device__ int index_of(int id) const
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

// What the rules turned away, for the checked build; by the threads of the row.
__device__ inline void check_row(const args_t &args, unsigned row)
{
    if (is_first_thread()) {
        report_count(args.report, kReasonLiveTokens, args.live_tokens, args.num_tokens);
    }
    const int live_tokens = read_count(args.live_tokens, args.num_tokens);
    const bool valid = args.is_valid_token == nullptr || args.is_valid_token[row] != 0;
    if (static_cast<int>(row) >= live_tokens || !valid) {
        return;
    }
    const int request = args.token_to_req[row];
    const unsigned thread = threadIdx.x % kRowThreads;
    if (request < 0 || request >= args.table_rows) {
        report(thread == 0 ? args.report : nullptr, kReasonRequest, row, -1, request);
        return;
    }
    const int *ids = args.topk_indices + static_cast<long long>(row) * kTopkStride;
    const int *pages = args.block_table + static_cast<long long>(request) * kTableStride;
    for (unsigned column = thread; column < kTopk; column += kRowThreads) {
        const report_at_t at = {args.report, row, column};
        const int local = check_id<kDcpWorld, kDcpInterleave, kBlockSize, kTableWidth>(
            at, ids[column], args.dcp_rank);
        if (local >= 0) {
            check_page<kTwo31 / kBlockSize>(at, pages[local / kBlockSize]);
        }
    }
}

extern "C" __global__ void __launch_bounds__(kThreads)
    kiln_global_topk(const __grid_constant__ args_t args)
{
    wait_for_previous_kernel();
    const unsigned row = blockIdx.x * rows::kRows + warp_of_thread() / rows::kRowWarps;
    const bool launched = row < static_cast<unsigned>(args.num_tokens);
    const auto make_mapper = [&] { return mapper_of(args, row); };
    unsigned mapped = 0;
    if (launched) {
        const int *ids = args.topk_indices + static_cast<long long>(row) * kTopkStride;
        int *slots = args.slots + static_cast<long long>(row) * kSlotsStride;
        if constexpr (kDcpWorld > 1) {
            mapped = compact_block_row<rows>(make_mapper, ids, slots);
        } else if (takes_quads(ids) && takes_quads(slots)) {
            mapped = map_row<rows, true>(make_mapper, ids, slots);
        } else {
            mapped = map_row<rows, false>(make_mapper, ids, slots);
        }
    }
    if constexpr (kDcpWorld == 1) {
        mapped = __reduce_add_sync(kWholeWarp, mapped);
        mapped = scan_row<rows::kRowWarps, rows::kWarps>(mapped).total;
    }
    if (launched && threadIdx.x % kRowThreads == 0) {
        args.lens[row] = static_cast<int>(mapped);
    }
    if constexpr (kChecked) {
        if (launched) {
            check_row(args, row);
        }
    }
}
