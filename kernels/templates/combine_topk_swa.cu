// SPDX-License-Identifier: Apache-2.0
// combine_topk_swa: top-k and window into one row, for gathered prefill.
//
//   columns [0, k):     id = topk_indices[t, j] -> M * b + id where 0 <= id < N, else -1
//   columns [k, k + s): the window's positions -> M * b + N + g where 0 <= g <
//                       gather_lens[b], else -1;
//                       g = position - (seq_lens[b] - gather_lens[b])
//   columns [k + s, C): -1;  C = align(kTopk + kWindow + kImageWidth, kAlign)
//   combined_lens[t] = k + s
//
// In:  topk_indices[num_tokens, kTopk] (rows kTopkStride apart),
//      query_start_loc[num_requests + 1], seq_lens and gather_lens[num_requests],
//      left_visible and right_visible[num_tokens] or null;
//      M = workspace_rows, N = swa_base.
// Out: combined_indices[num_tokens, C] (kCombinedStride), combined_lens[num_tokens].
//      All int32; sums are kept modulo 2^32.
//
// One warp per row, whatever request it is of, so that a long request spreads like many
// short ones: the warp searches its request with all lanes, then each lane takes quads of
// output columns, padding included. Top-k begins at column 0, so that ids and results
// line up. In a launch of many rows each has a block of kManyThreads, whose warps share its
// columns: there what counts is that memory sees whole rows. No shared memory.
#ifndef KILN_PRELUDE
constexpr int kTopk = 512;           // columns of topk_indices; 0: window only
constexpr int kTopkStride = 512;     // elements between its rows
constexpr int kWindow = 128;         // raw tokens of the sliding window
constexpr int kCompressRatio = 4;    // raw tokens of a record; 0: no records
constexpr int kImageWidth = 0;       // further window columns for image spans
constexpr int kAlign = 128;          // the row width is a multiple of it
constexpr int kCombinedStride = 640; // elements between rows of combined_indices
constexpr int kThreads = 128;        // threads of a block
constexpr int kManyThreads = 64;     // the same in a launch of many wide rows, fewer
#endif

static_assert(kTopk >= 0 && kWindow >= 1 && kImageWidth >= 0 && kCompressRatio >= 0 &&
                  kAlign >= 1,
              "window and align must be at least 1, the other widths not negative");
static_assert(kTopk <= kTopkStride, "topk_stride must be at least topk");
static_assert(kThreads % 32 == 0 && kManyThreads % 32 == 0 && kManyThreads < kThreads,
              "a row takes whole warps");

#include "common/access.cuh"
#include "common/arch.cuh"
#include "common/check_length.cuh"
#include "common/count.cuh"
#include "common/int_math.cuh"
#include "common/launch_order.cuh"
#include "common/quad.cuh"
#include "common/records.cuh"
#include "common/report.cuh"
#include "common/requests.cuh"
#include "common/window.cuh"

constexpr long long kColumns = static_cast<long long>(kTopk) + kWindow + kImageWidth;
constexpr long long kWidth = div_up<long long>(kColumns, kAlign) * kAlign;
static_assert(kWidth <= kCombinedStride,
              "combined_stride must be at least the row width");

#include "common/combined_row.cuh"

struct args_t {
    const int *topk_indices;
    const int *query_start_loc;
    const int *seq_lens;
    const int *gather_lens;
    const int *left_visible;
    const int *right_visible;
    int *combined_indices;
    int *combined_lens;
    count_t workspace_rows;
    count_t swa_base;
    int num_tokens;
    int num_requests;
    report_t *report;
};

// What a row's window is made of; of the requests that may have its token, a lane has one.
struct inputs_t {
    int workspace_rows;
    int swa_base;
    int left;
    int right;
    int origin; // the launch's first token
    unsigned request;
    int begin;
    int end;
    int seq_len;
    int gather_len;
};

// All of it is under way before any of it is looked at, but for the search where there
// are more requests than lanes.
__device__ inline inputs_t load_inputs(const args_t &args, unsigned row)
{
    inputs_t in = {};
    in.origin = load_if(args.num_requests > 0, args.query_start_loc, 0, 0);
    in.request = lane_of_thread();
    if (args.num_requests > static_cast<int>(kWarp)) {
        in.request += narrow_requests(args.query_start_loc, args.num_requests,
                                      static_cast<long long>(in.origin) + row);
    }
    const bool given = in.request < static_cast<unsigned>(args.num_requests);
    in.begin = load_if(given, args.query_start_loc, in.request, 0);
    in.end = load_if(given, args.query_start_loc, in.request + 1LL, 0);
    in.seq_len = load_if(given, args.seq_lens, in.request, 0);
    in.gather_len = load_if(given, args.gather_lens, in.request, 0);
    in.left = visible_at<kImageWidth>(args.left_visible, row);
    in.right = visible_at<kImageWidth>(args.right_visible, row);
    in.workspace_rows = read_count(args.workspace_rows, 0);
    in.swa_base = read_count(args.swa_base, 0);
    return in;
}

// A row's token: the request that has it, and its position there, -1 if there is none.
struct token_t {
    long long position;
    unsigned request;
    int seq_len;
    int gather_len;
};

// By a warp: the lane whose request has the token tells all.
__device__ inline token_t token_of(const inputs_t &in, unsigned row)
{
    const long long token = static_cast<long long>(in.origin) + row;
    const unsigned has = __ballot_sync(kWholeWarp, in.begin <= token && token < in.end);
    const int lane = __ffs(has) - 1; // none: what the last lane tells is not looked at
    const int end = __shfl_sync(kWholeWarp, in.end, lane);
    const int seq_len = __shfl_sync(kWholeWarp, in.seq_len, lane);
    const int gather_len = __shfl_sync(kWholeWarp, in.gather_len, lane);
    const unsigned request = in.request - lane_of_thread() + lane;
    const long long position = position_of(token, end, seq_len);
    return {has == 0 ? -1 : position, request, seq_len, gather_len};
}

__device__ inline parts_t parts_of(const inputs_t &in, const token_t &token,
                                   long long n_picks)
{
    if (token.position < 0) {
        return {};
    }
    const range_t window =
        window_of<kWindow, kImageWidth>(token.position, token.seq_len, in.left, in.right);
    const long long length = n_picks + window.end - window.start;
    // The column of the first gathered token, were the window to reach so far.
    const long long first = n_picks + token.seq_len - token.gather_len - window.start;
    const long long begin = clamp(first, n_picks, length);
    const long long end = clamp(first + token.gather_len, n_picks, length);
    const unsigned base = static_cast<unsigned>(in.workspace_rows) * token.request;
    parts_t parts;
    parts.n_picks = static_cast<unsigned>(n_picks);
    parts.gathered_begin = static_cast<unsigned>(begin);
    parts.n_gathered = static_cast<unsigned>(greatest(end - begin, 0LL));
    parts.length = static_cast<unsigned>(length);
    parts.n_records = static_cast<unsigned>(greatest(in.swa_base, 0));
    parts.record_base = base;
    parts.gathered_base =
        base + static_cast<unsigned>(in.swa_base) - static_cast<unsigned>(first);
    return parts;
}

using many = combined_rows_t<kManyThreads / kWarp, 1>;
using few = combined_rows_t<1, kThreads / kWarp>;

// Picks are asked for as soon as they can be; the rest is worked out while they come. A launch
// of few rows waits for its loads: there it fetches ids before it knows how many count. With
// many rows other warps fill the wait, and what was fetched in vain would cost bandwidth.
template <typename rows>
__device__ inline void combine_row(const args_t &args, unsigned row, const int *picks,
                                   int *combined)
{
    const bool wide = kTopk % kQuad == 0 && takes_quads(picks) && takes_quads(combined);
    typename rows::batch_t quads = {};
    const inputs_t in = load_inputs(args, row);
    if (!rows::kAlone && wide) {
        load_picks<rows>(picks, 0, kTopk, quads);
    }
    const token_t token = token_of(in, row);
    const unsigned n_picks = complete_records<kCompressRatio>(token.position, kTopk);
    if (rows::kAlone && wide) {
        load_picks<rows>(picks, 0, n_picks, quads);
    }
    const parts_t parts = parts_of(in, token, n_picks);
    unsigned done = 0; // columns, in quads
    if (wide) {
        for (unsigned round = 0; round < rows::kRounds; round++) {
            if (round > 0) {
                load_picks<rows>(picks, round, n_picks, quads);
            }
            store_entries<rows>(combined, round, parts, quads);
        }
        done = kWidth / kQuad * kQuad;
    }
    const unsigned thread = threadIdx.x % (rows::kWarps * kWarp);
#pragma unroll 1 // rows that take quads have none, or a tail: short code is better
    for (unsigned column = done + thread; column < kWidth;
         column += rows::kWarps * kWarp) {
        const int pick = load_if(column < n_picks, picks, column, -1);
        combined[column] = entry_of(parts, column, pick);
    }
    if (thread == 0) {
        args.combined_lens[row] = static_cast<int>(parts.length);
    }
}

// What the rules turned away, for the checked build; by the warp that has the row.
__device__ inline void check_row(const args_t &args, unsigned row)
{
    const inputs_t in = load_inputs(args, row);
    const token_t token = token_of(in, row);
    if (token.position < 0) {
        return;
    }
    const range_t window =
        whole_window<kWindow>(token.position, token.seq_len, in.left, in.right);
    check_length<static_cast<long long>(kWindow) + kImageWidth>(
        lane_of_thread() == 0 ? args.report : nullptr, row, window);
    const int n_picks = complete_records<kCompressRatio>(token.position, kTopk);
    const long long first = static_cast<long long>(row) * kTopkStride;
    for (int column = static_cast<int>(lane_of_thread()); column < n_picks;
         column += kWarp) {
        const int id = args.topk_indices[first + column];
        if (id != kNone && (id < 0 || id >= in.swa_base)) {
            report(args.report, kReasonId, row, column, id);
        }
    }
}

template <typename rows>
__device__ inline void combine_rows(const args_t &args)
{
    const unsigned row =
        blockIdx.x * rows::kRows + (rows::kRows > 1 ? warp_of_thread() : 0);
    if (rows::kRows > 1 && row >= static_cast<unsigned>(args.num_tokens)) {
        return;
    }
    const long long first_pick = static_cast<long long>(row) * kTopkStride;
    const int *picks = kTopk > 0 ? args.topk_indices + first_pick : nullptr;
    int *combined = args.combined_indices + static_cast<long long>(row) * kCombinedStride;
    combine_row<rows>(args, row, picks, combined);
    if constexpr (kChecked) {
        if (warp_of_thread() % rows::kWarps == 0) {
            check_row(args, row);
        }
    }
}

extern "C" __global__ void __launch_bounds__(kThreads)
    kiln_combine_topk_swa(const __grid_constant__ args_t args)
{
    wait_for_previous_kernel();
    // Compared like this, the compiler lays out the second branch first: few rows meet no jump.
    if (kManyThreads > kWarp && blockDim.x < kThreads) {
        combine_rows<many>(args);
    } else {
        let_next_kernel_start();
        combine_rows<few>(args);
    }
}
