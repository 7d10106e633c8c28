// SPDX-License-Identifier: Apache-2.0
// swa_indices: sliding-window rows.
//
//   causal:  start = max(pos - max(kWindow - 1, left), 0)
//            end   = min(pos + right + 1, seq_len, start + kWindow + kImageWidth)
//   a draft: start = max(prefix - kWindow, 0), end = seq_len
//   then     start = max(start, replay_start, end - kIndexWidth), n = max(end - start, 0)
//
//   swa_indices[i, j < n] = the slot of position start + j of the request of token
//                           token_offset + i, or -1;  -1 in the columns from n on
//   swa_lens[i] = n
//
// In:  query_start_loc[num_requests + 1], seq_lens[num_requests], replay_start[num_requests] or
//      null, block_table[table_rows, kTableWidth] (rows kTableStride apart); by absolute token
//      token_to_req, is_valid_token (bytes) or null, left_visible and right_visible or null.
// Out: swa_indices[num_rows, kIndexWidth] (rows kIndexStride apart), swa_lens[num_rows]. All int32.
//
// One warp per row, whatever request it is of; past kFewRows rows a warp has kRowsOfWarp of them. A
// lane takes four neighbouring columns at a time, padding included, in one 16-byte store where the
// row's address allows. With kDcpWorld > 1 the warp walks the rank's own positions alone, which are
// known without looking at the others, and squeezes out those without a usable page; a row's length
// is what was kept. No shared memory.
#ifndef KILN_PRELUDE
constexpr int kWindow = 128;        // raw tokens of the sliding window
constexpr int kIndexWidth = 128;    // columns of a row
constexpr int kIndexStride = 128;   // elements between rows of swa_indices
constexpr int kBlockSize = 64;      // slots of a page
constexpr int kTableWidth = 16384;  // pages of a request
constexpr int kTableStride = 16384; // elements between rows of block_table
constexpr int kImageWidth = 0;      // further window columns for image spans
constexpr bool kCausal = true;      // false: a draft block, whose tokens share one range
constexpr int kDcpWorld = 1;        // ranks that share the cache
constexpr int kDcpInterleave = 1;   // consecutive positions of one rank
constexpr int kDcpStorage = 0;      // 0: a rank stores its own positions; 1: all of them
constexpr int kThreads = 128;       // threads of a block
constexpr int kFewRows = 1024;      // rows of a launch up to which each has a warp
constexpr int kRowsOfWarp = 2;      // rows that share a warp where there are more
#endif

static_assert(kWindow >= 1 && kImageWidth >= 0,
              "window must be at least 1, image_width not negative");
static_assert(kIndexWidth >= 1 && kIndexWidth <= kIndexStride,
              "index_width must be at least 1, index_stride at least index_width");
static_assert(
    kBlockSize >= 1 && kTableWidth >= 1 && kTableWidth <= kTableStride,
    "block_size and table_width must be at least 1, table_stride at least table_width");
static_assert(kDcpWorld >= 1 && kDcpInterleave >= 1 && kBlockSize % kDcpInterleave == 0,
              "dcp_interleave must divide block_size");
static_assert(kDcpStorage == 0 || kDcpStorage == 1, "dcp_storage is 0 or 1");
static_assert(kThreads % 32 == 0 && 32 % kRowsOfWarp == 0, "rows fill warps");
static_assert(kDcpWorld == 1 || kRowsOfWarp == 1, "a row that is squeezed has a warp");

#include "common/access.cuh"
#include "common/arch.cuh"
#include "common/check.cuh"
#include "common/check_length.cuh"
#include "common/compact.cuh"
#include "common/count.cuh"
#include "common/int_math.cuh"
#include "common/launch_order.cuh"
#include "common/paged_run.cuh"
#include "common/paging.cuh"
#include "common/report.cuh"
#include "common/window.cuh"

struct args_t {
    int num_rows;
    int token_offset;
    count_t live_tokens;
    const int *token_to_req;
    const unsigned char *is_valid_token;
    int num_requests;
    int table_rows;
    const int *query_start_loc;
    const int *seq_lens;
    const int *block_table;
    const int *replay_start;
    int *swa_indices;
    int *swa_lens;
    const int *left_visible;
    const int *right_visible;
    int dcp_rank;
    report_t *report;
};

// Threads of a row where rows are many: what is done once per row is done by fewer of them.
constexpr unsigned kManyLanes = kWarp / kRowsOfWarp;

constexpr bool kReplicated = kDcpStorage == 1;
constexpr int kPageRanks = kReplicated ? 1 : kDcpWorld; // that store what a page holds
constexpr int kPageRuns = kReplicated ? 1 : kDcpInterleave;

// What a row is, as far as no look-up decides it.
struct row_t {
    const int *pages;
    run_t run;
};

__device__ inline range_t draft_range(long long query_len, long long seq_len)
{
    return {greatest<long long>(seq_len - query_len - kWindow, 0), seq_len};
}

__device__ inline run_t draft_run(long long query_len, int seq_len)
{
    const unsigned length = greatest(seq_len, 0);
    const auto n =
        static_cast<unsigned>(clamp<long long>(query_len + kWindow, 0, length));
    return {length - n, n};
}

// The newest kIndexWidth positions of a run, none before `floor`.
__device__ inline run_t newest(const run_t &run, int floor)
{
    constexpr long long kMost = static_cast<long long>(kWindow) + kImageWidth;
    constexpr bool kFits = kCausal && kMost <= kIndexWidth;
    const unsigned end = run.first + run.n;
    const unsigned start = kFits ? run.first : end - least<unsigned>(run.n, kIndexWidth);
    const unsigned first = greatest(start, static_cast<unsigned>(greatest(floor, 0)));
    return {first, end - least(first, end)};
}

// Reads nothing and has no positions where the token is not one of the launch.
__device__ inline row_t row_of(const args_t &args, int token, bool launched)
{
    // All that does not depend on the request is under way before it is looked at.
    const int live_tokens = read_count(args.live_tokens, token + 1);
    const int request = load_if(launched, args.token_to_req, token, -1);
    const int valid = load_if(launched && args.is_valid_token != nullptr,
                              args.is_valid_token, token, 1);
    const int left =
        visible_at<kImageWidth>(launched ? args.left_visible : nullptr, token);
    const int right =
        visible_at<kImageWidth>(launched ? args.right_visible : nullptr, token);
    const unsigned requests = least(args.num_requests, args.table_rows);
    const bool known =
        static_cast<unsigned>(request) < requests && token < live_tokens && valid != 0;
    const int query_end = load_if(known, args.query_start_loc, request + 1LL, 0);
    const int query_start =
        kCausal ? 0 : load_if(known, args.query_start_loc, request, 0);
    const int seq_len = load_if(known, args.seq_lens, request, 0);
    const int floor =
        load_if(known && args.replay_start != nullptr, args.replay_start, request, 0);
    const run_t run =
        kCausal ? window_run<kWindow, kImageWidth>(token, query_end, seq_len, left, right)
                : draft_run(static_cast<long long>(query_end) - query_start, seq_len);
    const int *pages = args.block_table;
    if (known) {
        pages += static_cast<long long>(request) * kTableStride;
    }
    return {pages, newest(run, floor)};
}

// The slot of a rank's own position number `local`, or -1. Where every rank stores all positions it
// is found by the position itself.
__device__ inline int owned_slot(const int *pages, unsigned local, int rank)
{
    constexpr long long kAllRuns = static_cast<long long>(kDcpInterleave) * kDcpWorld;
    constexpr unsigned kRound = static_cast<unsigned>(least<long long>(kAllRuns, kTwo31));
    constexpr unsigned kRun = kDcpInterleave;
    unsigned id = local;
    if (kReplicated) {
        id = local / kRun * kRound + static_cast<unsigned>(rank) * kRun + local % kRun;
    }
    const int page = page_of<kBlockSize, kTableWidth>(pages, id, true);
    return slot_in_page<kBlockSize>(page, id % kBlockSize);
}

// By a warp. Returns the row's length.
__device__ inline unsigned compact_row(int *indices, const row_t &row, int rank)
{
    const int first = static_cast<int>(row.run.first);
    const int past = static_cast<int>(row.run.first + row.run.n);
    const unsigned begin = owned_below<kDcpWorld, kDcpInterleave>(first, rank);
    const unsigned end = owned_below<kDcpWorld, kDcpInterleave>(past, rank);
    unsigned kept = 0;
    for (unsigned warp_first = begin; warp_first < end; warp_first += kWarp) {
        const unsigned local = warp_first + lane_of_thread();
        const int slot = local < end ? owned_slot(row.pages, local, rank) : -1;
        const unsigned place = place_kept(slot >= 0, kept);
        if (slot >= 0) {
            indices[place] = slot;
        }
    }
    for (unsigned column = kept + lane_of_thread(); column < kIndexWidth;
         column += kWarp) {
        indices[column] = -1;
    }
    return kept;
}

// For the checked build: the positions of a row whose request is known. What is cut goes to
// `once`, which is null for all threads of the row but one.
__device__ inline range_t check_lengths(const args_t &args, unsigned row, int request,
                                        report_t *once)
{
    const int token = args.token_offset + static_cast<int>(row);
    const long long query_end = args.query_start_loc[request + 1LL];
    const long long seq_len = args.seq_lens[request];
    range_t range = draft_range(query_end - args.query_start_loc[request], seq_len);
    if constexpr (kCausal) {
        constexpr long long kMost = static_cast<long long>(kWindow) + kImageWidth;
        const long long position = position_of(token, query_end, seq_len);
        if (position < 0) {
            return {0, 0};
        }
        range = whole_window<kWindow>(position, seq_len,
                                      visible_at<kImageWidth>(args.left_visible, token),
                                      visible_at<kImageWidth>(args.right_visible, token));
        check_length<kMost>(once, row, range);
        range.end = least(range.end, range.start + kMost);
    }
    if (args.replay_start != nullptr) {
        range.start = greatest<long long>(range.start, args.replay_start[request]);
    }
    check_length<kIndexWidth>(once, row, range);
    return {greatest(range.start, range.end - kIndexWidth), range.end};
}

// What the rules turned away, for the checked build; by the threads of the row.
__device__ inline void check_row(const args_t &args, unsigned row, unsigned lane,
                                 unsigned lanes)
{
    if (is_first_thread()) {
        // Tokens past this launch's may be live.
        report_count(args.report, kReasonLiveTokens, args.live_tokens, kTwo31 - 1);
    }
    const int token = args.token_offset + static_cast<int>(row);
    const bool live = token < read_count(args.live_tokens, token + 1);
    const bool valid = args.is_valid_token == nullptr || args.is_valid_token[token] != 0;
    if (!live || !valid) {
        return;
    }
    const int request = args.token_to_req[token];
    report_t *once = lane == 0 ? args.report : nullptr;
    if (request < 0 || request >= least(args.num_requests, args.table_rows)) {
        report(once, kReasonRequest, row, -1, request);
        return;
    }
    const range_t range = check_lengths(args, row, request, once);
    const int *pages = args.block_table + static_cast<long long>(request) * kTableStride;
    for (long long column = lane; column < range.end - range.start; column += lanes) {
        const int position = static_cast<int>(range.start + column);
        const report_at_t at = {args.report, row, column};
        if (!owned_by<kDcpWorld, kDcpInterleave>(position, args.dcp_rank).mine) {
            continue;
        }
        const int local = check_id<kPageRanks, kPageRuns, kBlockSize, kTableWidth>(
            at, position, args.dcp_rank);
        if (local >= 0) {
            check_page<kTwo31 / kBlockSize>(at, pages[local / kBlockSize]);
        }
    }
}

extern "C" __global__ void __launch_bounds__(kThreads)
    kiln_swa_indices(const __grid_constant__ args_t args)
{
    wait_for_previous_kernel();
    let_next_kernel_start();
    const bool many = kManyLanes < kWarp && args.num_rows > kFewRows;
    const unsigned block_row = many ? threadIdx.x / kManyLanes : warp_of_thread();
    const unsigned lane = many ? threadIdx.x % kManyLanes : lane_of_thread();
    const unsigned row =
        blockIdx.x * (kThreads / (many ? kManyLanes : kWarp)) + block_row;
    const bool launched = row < static_cast<unsigned>(args.num_rows);
    const row_t found = row_of(args, args.token_offset + static_cast<int>(row), launched);
    int *indices = args.swa_indices + static_cast<long long>(row) * kIndexStride;
    unsigned length = found.run.n;
    if constexpr (kDcpWorld > 1) {
        length = launched ? compact_row(indices, found, args.dcp_rank) : 0;
    }
    if (launched && lane == 0) {
        args.swa_lens[row] = static_cast<int>(length);
    }
    // Of the two branches the compiler lays out the second first: few rows meet no jump.
    if (kDcpWorld == 1 && many) {
        write_run<kIndexWidth, kBlockSize, kTableWidth, kBlockSize, kManyLanes>(
            indices, found.pages, found.run, lane, launched);
    } else if (kDcpWorld == 1) {
        write_run<kIndexWidth, kBlockSize, kTableWidth, kBlockSize, kWarp>(
            indices, found.pages, found.run, lane, launched);
    }
    if constexpr (kChecked) {
        if (launched) {
            check_row(args, row, lane, many ? kManyLanes : kWarp);
        }
    }
}
