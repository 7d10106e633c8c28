// SPDX-License-Identifier: Apache-2.0
// req_to_global: request-local token ids to cache slots, and how many.
//
//   global_indices[t, j], for an id = token_indices[t, j] in [0, kTableWidth * kBlockSize)
//   and r = req_id[t]:
//     a prefill token with a workspace: workspace_start[r] + id
//     else page * kPageStride + id % kBlockSize, page = block_table[r, id / kBlockSize] >= 0
//   -1 elsewhere, and where the result is negative or does not fit int32
//   counts[t] = mapped entries of row t
//
// In:  token_indices[num_tokens, kTopk] (rows kTopkStride apart), req_id[num_tokens],
//      block_table[table_rows, kTableWidth] (kTableStride), is_valid_token[num_tokens] or null,
//      workspace_start[num_requests] and is_prefill[num_tokens], or both null.
// Out: global_indices[num_tokens, kTopk] (kOutStride), counts[num_tokens]. All int32, flags
//      in bytes.
// Holes stay where they are. With kDcpWorld > 1 there is no workspace; a rank maps the
// number that an id has among its own, and those entries move to the front.
//
// A row has a block, of kThreads threads or, in a launch of many rows, of kManyThreads;
// common/map_row.cuh has the rest. Shared memory: an int for each warp.
#ifndef KILN_PRELUDE
constexpr int kTopk = 2048;       // columns of a row
constexpr int kTopkStride = 2048; // elements between rows of token_indices
constexpr int kOutStride = 2048;  // elements between rows of global_indices
constexpr int kBlockSize = 64;    // slots of a page
constexpr int kPageStride = 64;   // slots from page to page
constexpr int kTableWidth = 2560; // pages of a request
constexpr int kTableStride = 2560;
constexpr int kDcpWorld = 1;      // ranks that share the cache
constexpr int kDcpInterleave = 1; // consecutive ids of one rank
constexpr int kThreads = 512;     // threads of a row's block
constexpr int kManyThreads = 128; // the same in a launch of many rows, no more
#endif

static_assert(kTopk >= 1 && kTopk <= kTopkStride && kTopk <= kOutStride,
              "topk must be at least 1 and at most both row strides");
static_assert(
    kBlockSize >= 1 && kTableWidth >= 1 && kTableWidth <= kTableStride,
    "block_size and table_width must be at least 1, table_stride at least table_width");
static_assert(kPageStride >= kBlockSize, "page_stride must be at least block_size");
static_assert(kDcpWorld >= 1 && kDcpInterleave >= 1 && kBlockSize % kDcpInterleave == 0,
              "dcp_interleave must divide block_size");
static_assert(kThreads % 32 == 0 && kManyThreads % 32 == 0 && kManyThreads <= kThreads,
              "a row takes whole warps, and no more of them where rows are many");
static_assert(kDcpWorld == 1 || kThreads == kManyThreads, "there is one way to compact");

#include "common/arch.cuh"
#include "common/check.cuh"
#include "common/count.cuh"
#include "common/int_math.cuh"
#include "common/launch_order.cuh"
#include "common/map_row.cuh"
#include "common/paging.cuh"
#include "common/quad.cuh"
#include "common/report.cuh"

struct args_t {
    const int *token_indices;
    const int *req_id;
    const int *block_table;
    const unsigned char *is_valid_token;
    const int *workspace_start;
    const unsigned char *is_prefill;
    int *global_indices;
    int *counts;
    count_t live_tokens;
    int num_tokens;
    int num_requests;
    int table_rows;
    int dcp_rank;
    report_t *report;
};

constexpr int kSmBlocks = kBlocksOfSm<kThreads>;

using many = rows_t<kTopk, kManyThreads>;
using few = rows_t<kTopk, kThreads>;

__device__ inline const int *ids_of(const args_t &args, unsigned row)
{
    return args.token_indices + static_cast<long long>(row) * kTopkStride;
}

__device__ inline int *indices_of(const args_t &args, unsigned row)
{
    return args.global_indices + static_cast<long long>(row) * kOutStride;
}

// Ids below it are mapped: none of an inert row.
__device__ inline unsigned limit_of(const args_t &args, unsigned row,
                                    const ahead_t &ahead, int requests)
{
    const int live_tokens = read_count(args.live_tokens, args.num_tokens);
    const bool live = static_cast<int>(row) < live_tokens && ahead.valid != 0;
    const bool known = ahead.request < static_cast<unsigned>(requests);
    return live && known ? kPagedIds<kBlockSize, kTableWidth> : 0;
}

// Maps ids to slots.
struct mapper_t {
    const int *pages;
    unsigned limit;
    int rank;

    // The look-up stands alone in its branch: it is predicated, and waits for no other.
    __device__ int index_of(int id) const
    {
        const owned_t owned = owned_by<kDcpWorld, kDcpInterleave>(id, rank);
        unsigned page = kTwo31;
        if (owned.mine && owned.local < limit) {
            page = static_cast<unsigned>(__ldg(pages + owned.local / kBlockSize));
        }
        constexpr unsigned kLast = kTwo31 / kPageStride; // the page with slot 2^31
        const int offset = static_cast<int>(owned.local % kBlockSize);
        const bool fits =
            page < kLast ||
            (page == kLast && offset < static_cast<int>(kTwo31 % kPageStride));
        return fits ? static_cast<int>(page * kPageStride) + offset : -1;
    }
};

__device__ inline mapper_t mapper_of(const args_t &args, unsigned request, unsigned limit)
{
    return {pages_of<kTableStride>(args.block_table, request), limit, args.dcp_rank};
}

// Maps ids to rows of the workspace.
struct gatherer_t {
    unsigned start; // the workspace row of id 0, any int32
    unsigned limit;

    __device__ int index_of(int id) const
    {
        const unsigned index = start + static_cast<unsigned>(id);
        const bool fits = static_cast<unsigned>(id) < limit && index < kTwo31;
        return fits ? static_cast<int>(index) : -1;
    }
};

__device__ inline gatherer_t gatherer_of(const args_t &args, unsigned request,
                                         unsigned limit)
{
    const int start = limit > 0 ? args.workspace_start[request] : 0;
    return {static_cast<unsigned>(start), limit};
}

// What the rules turned away, for the checked build: an id of a row that is not inert.
__device__ inline void check_entry(const args_t &args, const report_at_t &at, int request,
                                   int id)
{
    const int local = check_id<kDcpWorld, kDcpInterleave, kBlockSize, kTableWidth>(
        at, id, args.dcp_rank);
    if (local < 0) {
        return;
    }
    if (args.workspace_start != nullptr && args.is_prefill[at.row] != 0) {
        check_range(at, static_cast<long long>(args.workspace_start[request]) + id);
        return;
    }
    const int page = args.block_table[static_cast<long long>(request) * kTableStride +
                                      local / kBlockSize];
    if (check_page<kTwo31>(at, page)) {
        check_range(at, static_cast<long long>(page) * kPageStride + local % kBlockSize);
    }
}

// By the threads of the row.
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
    const int request = args.req_id[row];
    const bool in_workspace =
        args.workspace_start == nullptr || request < args.num_requests;
    if (request < 0 || request >= args.table_rows || !in_workspace) {
        report(threadIdx.x == 0 ? args.report : nullptr, kReasonRequest, row, -1,
               request);
        return;
    }
    const int *ids = ids_of(args, row);
    for (unsigned column = threadIdx.x; column < kTopk; column += rows::kThreads) {
        check_entry(args, {args.report, row, column}, request, ids[column]);
    }
}

// By the row's own alignment.
template <typename rows, typename make_mapper_t>
__device__ inline unsigned map_either(const make_mapper_t &make_mapper, const int *ids,
                                      int *indices)
{
    if (takes_quads(ids, indices)) {
        return map_row<rows>(make_mapper, ids, indices,
                             load_quad<true, rows::kOnce>(ids, rows::warp(), kTopk));
    }
    return map_any_row<rows>(make_mapper, ids, indices);
}

// Rows that do not take quads, and those of a launch with a workspace, out of the way of the
// others.
template <typename rows>
__device__ __noinline__ unsigned map_apart(const args_t &args, unsigned row,
                                           ahead_t ahead)
{
    const int *ids = ids_of(args, row);
    int *indices = indices_of(args, row);
    const bool has_workspace = args.workspace_start != nullptr;
    const int requests =
        has_workspace ? least(args.table_rows, args.num_requests) : args.table_rows;
    const unsigned limit = limit_of(args, row, ahead, requests);
    if (has_workspace && args.is_prefill[row] != 0) {
        return map_either<rows>([&] { return gatherer_of(args, ahead.request, limit); },
                                ids, indices);
    }
    return map_either<rows>([&] { return mapper_of(args, ahead.request, limit); }, ids,
                            indices);
}

// first: of the thread, if the rows are plain.
template <typename rows>
__device__ inline void write_row(const args_t &args, unsigned row, const ahead_t &ahead,
                                 bool plain, const int_quad_t &first)
{
    const auto make_mapper = [&] {
        return mapper_of(args, ahead.request,
                         limit_of(args, row, ahead, args.table_rows));
    };
    const int *ids = ids_of(args, row);
    int *indices = indices_of(args, row);
    unsigned mapped;
    if constexpr (kDcpWorld > 1) {
        mapped = compact_block_row<rows>(make_mapper, ids, indices);
    } else {
        mapped = plain ? map_row<rows>(make_mapper, ids, indices, first)
                       : map_apart<rows>(args, row, ahead);
    }
    count_row<rows, (kDcpWorld > 1)>(mapped, args.counts + row);
    if constexpr (kChecked) {
        check_row<rows>(args, row);
    }
}

extern "C" __global__ void __launch_bounds__(kThreads, kSmBlocks)
    kiln_req_to_global(const __grid_constant__ args_t args)
{
    wait_for_previous_kernel();
    const unsigned row = blockIdx.x;
    const bool plain = kDcpWorld == 1 && kTopkStride % kQuad == 0 &&
                       kOutStride % kQuad == 0 &&
                       takes_quads(args.token_indices, args.global_indices) &&
                       args.workspace_start == nullptr;
    int_quad_t first = {};
    if (plain) {
        first = load_quad<true, few::kOnce>(ids_of(args, row), few::warp(), kTopk);
    }
    const ahead_t ahead = read_ahead(args, &args_t::req_id, row);
    // Compared like this, the compiler lays out the second branch first: few rows meet no jump.
    if (kManyThreads < kThreads && blockDim.x < kThreads) {
        write_row<many>(args, row, ahead, plain, first);
    } else {
        let_next_kernel_start();
        write_row<few>(args, row, ahead, plain, first);
    }
}
