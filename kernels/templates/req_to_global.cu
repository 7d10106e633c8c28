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
// kRowThreads threads share a row, kThreads / kRowThreads rows a block; common/map_row.cuh
// has the rest. Shared memory: kThreads / 32 ints where a row has several warps.
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
constexpr int kThreads = 256;     // threads of a block
constexpr int kRowThreads = 256;  // threads of a row
#endif

static_assert(kTopk >= 1 && kTopk <= kTopkStride && kTopk <= kOutStride,
              "topk must be at least 1 and at most both row strides");
static_assert(
    kBlockSize >= 1 && kTableWidth >= 1 && kTableWidth <= kTableStride,
    "block_size and table_width must be at least 1, table_stride at least table_width");
static_assert(kPageStride >= kBlockSize, "page_stride must be at least block_size");
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

// Long rows keep their ids in the cache: there room matters less than an early load.
using rows = rows_t<kTopk, kRowThreads, kThreads, kTopk <= 512>;

// What maps the ids of one row; its limit is 0 where the row is inert.
struct mapper_t {
    const int *pages;
    unsigned limit;
    int rank;
    bool gathers;        // to the workspace, the same for all threads of the row
    int workspace_start; // the workspace row of id 0

    __device__ int index_of(int id) const
    {
        const owned_t owned = owned_by<kDcpWorld, kDcpInterleave>(id, rank);
        const bool counts = owned.mine && owned.local < limit;
        // Nothing but the look-up hangs on a condition: a thread's are under way together.
        const unsigned page =
            counts && !gathers
                ? static_cast<unsigned>(__ldg(pages + owned.local / kBlockSize))
                : 0;
        const unsigned offset = gathers
                                    ? static_cast<unsigned>(workspace_start) + owned.local
                                    : owned.local % kBlockSize;
        // Does not wrap for a page that `fits` lets pass; what is negative is past 2^31.
        const unsigned index = page * kPageStride + offset;
        const bool fits = page <= kTwo31 / kPageStride && index < kTwo31;
        return counts && fits ? static_cast<int>(index) : -1;
    }
};

__device__ inline mapper_t mapper_of(const args_t &args, unsigned row)
{
    const int live_tokens = read_count(args.live_tokens, args.num_tokens);
    const int request = args.req_id[row];
    const bool valid = args.is_valid_token == nullptr || args.is_valid_token[row] != 0;
    const bool live = static_cast<int>(row) < live_tokens;
    const bool has_workspace = kDcpWorld == 1 && args.workspace_start != nullptr;
    const int requests =
        has_workspace ? least(args.table_rows, args.num_requests) : args.table_rows;
    const bool known = request >= 0 && request < requests;
    const bool gathers = has_workspace && known && args.is_prefill[row] != 0;
    return {args.block_table + static_cast<long long>(known ? request : 0) * kTableStride,
            live && valid && known ? kPagedIds<kBlockSize, kTableWidth> : 0,
            args.dcp_rank, gathers, gathers ? args.workspace_start[request] : 0};
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
    const unsigned thread = threadIdx.x % kRowThreads;
    const bool in_workspace =
        args.workspace_start == nullptr || request < args.num_requests;
    if (request < 0 || request >= args.table_rows || !in_workspace) {
        report(thread == 0 ? args.report : nullptr, kReasonRequest, row, -1, request);
        return;
    }
    const int *ids = args.token_indices + static_cast<long long>(row) * kTopkStride;
    for (unsigned column = thread; column < kTopk; column += kRowThreads) {
        check_entry(args, {args.report, row, column}, request, ids[column]);
    }
}

extern "C" __global__ void __launch_bounds__(kThreads)
    kiln_req_to_global(const __grid_constant__ args_t args)
{
    wait_for_previous_kernel();
    const unsigned row = blockIdx.x * rows::kRows + warp_of_thread() / rows::kRowWarps;
    const bool launched = row < static_cast<unsigned>(args.num_tokens);
    const auto make_mapper = [&] { return mapper_of(args, row); };
    unsigned mapped = 0;
    if (launched) {
        const int *ids = args.token_indices + static_cast<long long>(row) * kTopkStride;
        int *indices = args.global_indices + static_cast<long long>(row) * kOutStride;
        if constexpr (kDcpWorld > 1) {
            mapped = compact_block_row<rows>(make_mapper, ids, indices);
        } else if (takes_quads(ids) && takes_quads(indices)) {
            mapped = map_row<rows, true>(make_mapper, ids, indices);
        } else {
            mapped = map_row<rows, false>(make_mapper, ids, indices);
        }
    }
    if constexpr (kDcpWorld == 1) {
        mapped = __reduce_add_sync(kWholeWarp, mapped);
        mapped = scan_row<rows::kRowWarps, rows::kWarps>(mapped).total;
    }
    if (launched && threadIdx.x % kRowThreads == 0) {
        args.counts[row] = static_cast<int>(mapped);
    }
    if constexpr (kChecked) {
        if (launched) {
            check_row(args, row);
        }
    }
}
