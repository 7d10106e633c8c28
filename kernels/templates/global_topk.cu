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
// A row has a block, of kThreads threads or, in a launch of many rows, of kManyThreads;
// common/map_row.cuh has the rest. Ids and pages may be any int32. Shared memory: an int for
// each warp.
#ifndef KILN_PRELUDE
constexpr int kTopk = 512;        // columns of a row
constexpr int kTopkStride = 512;  // elements between rows of topk_indices
constexpr int kSlotsStride = 512; // elements between rows of slots
constexpr int kBlockSize = 64;    // slots of a page
constexpr int kTableWidth = 4096; // pages of a request
constexpr int kTableStride = 4096;
constexpr int kDcpWorld = 1;      // ranks that share the cache
constexpr int kDcpInterleave = 1; // consecutive ids of one rank
constexpr int kThreads = 128;     // threads of a row's block
constexpr int kManyThreads = 64;  // the same in a launch of many rows, no more
#endif

static_assert(kTopk >= 1 && kTopk <= kTopkStride && kTopk <= kSlotsStride,
              "topk must be at least 1 and at most both row strides");
static_assert(
    kBlockSize >= 1 && kTableWidth >= 1 && kTableWidth <= kTableStride,
    "block_size and table_width must be at least 1, table_stride at least table_width");
static_assert(kDcpWorld >= 1 && kDcpInterleave >= 1 && kBlockSize % kDcpInterleave == 0,
              "dcp_interleave must divide block_size");
static_assert(kThreads % 32 == 0 && kManyThreads % 32 == 0 && kManyThreads <= kThreads,
              "a row takes whole warps, and no more of them where rows are many");
static_assert(kDcpWorld == 1 || kThreads == kManyThreads, "there is one way to compact");

#include "common/arch.cuh"
#include "common/check.cuh"
#include "common/count.cuh"
#include "common/launch_order.cuh"
#include "common/map_row.cuh"
#include "common/paging.cuh"
#include "common/quad.cuh"
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

constexpr int kSmBlocks = kBlocksOfSm<kThreads>;

using many = rows_t<kTopk, kManyThreads>;
using few = rows_t<kTopk, kThreads>;

__device__ inline const int *ids_of(const args_t &args, unsigned row)
{
    return args.topk_indices + static_cast<long long>(row) * kTopkStride;
}

__device__ inline int *slots_of(const args_t &args, unsigned row)
{
    return args.slots + static_cast<long long>(row) * kSlotsStride;
}

// What maps the ids of one row; its limit is 0 where the row is inert.
struct mapper_t {
    const int *pages;
    unsigned limit;
    int rank;

    // The look-up stands alone in its branch: it is predicated, and waits for no other.
    __device__ int index_of(int id) const
    {
        const owned_t owned = owned_by<kDcpWorld, kDcpInterleave>(id, rank);
        int page = -1;
        if (owned.mine && owned.local < limit) {
            page = __ldg(pages + owned.local / kBlockSize);
        }
        return slot_in_page<kBlockSize>(page, owned.local % kBlockSize);
    }
};

__device__ inline mapper_t mapper_of(const args_t &args, unsigned row,
                                     const ahead_t &ahead)
{
    const int live_tokens = read_count(args.live_tokens, args.num_tokens);
    const bool live = static_cast<int>(row) < live_tokens && ahead.valid != 0;
    const bool known = ahead.request < static_cast<unsigned>(args.table_rows);
    return {pages_of<kTableStride>(args.block_table, ahead.request),
            live && known ? kPagedIds<kBlockSize, kTableWidth> : 0, args.dcp_rank};
}

// What the rules turned away, for the checked build; by the threads of the row.
template <typename rows>
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
    if (request < 0 || request >= args.table_rows) {
        report(threadIdx.x == 0 ? args.report : nullptr, kReasonRequest, row, -1,
               request);
        return;
    }
    const int *ids = ids_of(args, row);
    const int *pages = args.block_table + static_cast<long long>(request) * kTableStride;
    for (unsigned column = threadIdx.x; column < kTopk; column += rows::kThreads) {
        const report_at_t at = {args.report, row, column};
        const int local = check_id<kDcpWorld, kDcpInterleave, kBlockSize, kTableWidth>(
            at, ids[column], args.dcp_rank);
        if (local >= 0) {
            check_page<kTwo31 / kBlockSize>(at, pages[local / kBlockSize]);
        }
    }
}

// Rows that do not take quads, out of the way of those that do.
template <typename rows>
__device__ __noinline__ unsigned map_apart(const args_t &args, unsigned row,
                                           ahead_t ahead)
{
    return map_any_row<rows>([&] { return mapper_of(args, row, ahead); },
                             ids_of(args, row), slots_of(args, row));
}

// first: of the thread, if the rows are wide.
template <typename rows>
__device__ inline void write_row(const args_t &args, unsigned row, const ahead_t &ahead,
                                 bool wide, const int_quad_t &first)
{
    const auto make_mapper = [&] { return mapper_of(args, row, ahead); };
    const int *ids = ids_of(args, row);
    int *slots = slots_of(args, row);
    unsigned mapped;
    if constexpr (kDcpWorld > 1) {
        mapped = compact_block_row<rows>(make_mapper, ids, slots);
    } else {
        mapped = wide ? map_row<rows>(make_mapper, ids, slots, first)
                      : map_apart<rows>(args, row, ahead);
    }
    count_row<rows, (kDcpWorld > 1)>(mapped, args.lens + row);
    if constexpr (kChecked) {
        check_row<rows>(args, row);
    }
}

extern "C" __global__ void __launch_bounds__(kThreads, kSmBlocks)
    kiln_global_topk(const __grid_constant__ args_t args)
{
    wait_for_previous_kernel();
    const unsigned row = blockIdx.x;
    const bool wide = kDcpWorld == 1 && kTopkStride % kQuad == 0 &&
                      kSlotsStride % kQuad == 0 &&
                      takes_quads(args.topk_indices, args.slots);
    int_quad_t first = {};
    if (wide) {
        first = load_quad<true, few::kOnce>(ids_of(args, row), few::warp(), kTopk);
    }
    const ahead_t ahead = read_ahead(args, &args_t::token_to_req, row);
    // Compared like this, the compiler lays out the second branch first: few rows meet no jump.
    if (kManyThreads < kThreads && blockDim.x < kThreads) {
        write_row<many>(args, row, ahead, wide, first);
    } else {
        let_next_kernel_start();
        write_row<few>(args, row, ahead, wide, first);
    }
}
