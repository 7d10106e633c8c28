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
// line up. No shared memory.
#ifndef KILN_PRELUDE
constexpr int kTopk = 512;           // columns of topk_indices; 0: window only
constexpr int kTopkStride = 512;     // elements between its rows
constexpr int kWindow = 128;         // raw tokens of the sliding window
constexpr int kCompressRatio = 4;    // raw tokens of a record; 0: no records
constexpr int kImageWidth = 0;       // further window columns for image spans
constexpr int kAlign = 128;          // the row width is a multiple of it
constexpr int kCombinedStride = 640; // elements between rows of combined_indices
constexpr int kThreads = 128;        // threads of a block
#endif

static_assert(kTopk >= 0 && kWindow >= 1 && kImageWidth >= 0 && kCompressRatio >= 0 &&
                  kAlign >= 1,
              "window and align must be at least 1, the other widths not negative");
static_assert(kTopk <= kTopkStride, "topk_stride must be at least topk");
static_assert(kThreads % 32 == 0, "a row takes a whole warp");

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

constexpr long long kColumns = static_cast<long long>(kTopk) + kWindow + kImageWidth;
constexpr long long kWidth = div_up<long long>(kColumns, kAlign) * kAlign;
static_assert(kWidth <= kCombinedStride,
              "combined_stride must be at least the row width");

constexpr unsigned kRows = kThreads / kWarp;

// A row's token: the request that has it, and its position there, -1 if there is none.
struct token_t {
    long long position;
    unsigned request;
    int seq_len;
    int gather_len;
};

// By a warp: a lane for each request that it may be; the one that has the token tells
// all.
__device__ inline token_t token_of(const args_t &args, unsigned row)
{
    const int origin = args.num_requests > 0 ? args.query_start_loc[0] : 0;
    const long long token = static_cast<long long>(origin) + row;
    const int first = narrow_requests(args.query_start_loc, args.num_requests, token);
    const long long request = static_cast<long long>(first) + lane_of_thread();
    int begin = 0;
    int end = 0;
    int seq_len = 0;
    int gather_len = 0;
    if (request < args.num_requests) {
        begin = args.query_start_loc[request];
        end = args.query_start_loc[request + 1];
        seq_len = args.seq_lens[request];
        gather_len = args.gather_lens[request];
    }
    const unsigned has = __ballot_sync(kWholeWarp, begin <= token && token < end);
    if (has == 0) {
        return {-1, 0, 0, 0};
    }
    const int lane = __ffs(has) - 1;
    end = __shfl_sync(kWholeWarp, end, lane);
    seq_len = __shfl_sync(kWholeWarp, seq_len, lane);
    gather_len = __shfl_sync(kWholeWarp, gather_len, lane);
    return {seq_len - (end - token), static_cast<unsigned>(first + lane), seq_len,
            gather_len};
}

// What the columns of a row hold: a pick below n_picks, a gathered token in
// [gathered_begin, gathered_end), else nothing, which below length is an entry that
// cannot be mapped.
struct parts_t {
    unsigned n_picks;
    unsigned gathered_begin;
    unsigned gathered_end;
    unsigned length;
    unsigned n_records;     // a pick is below it
    unsigned record_base;   // the workspace row of record 0
    unsigned gathered_base; // add a column: the workspace row of its gathered token
};

__device__ inline parts_t parts_of(const args_t &args, unsigned row)
{
    const int workspace_rows = read_count(args.workspace_rows, 0);
    const int swa_base = read_count(args.swa_base, 0);
    const token_t token = token_of(args, row);
    if (token.position < 0) {
        return {};
    }
    long long left = 0;
    long long right = 0;
    if (kImageWidth > 0 && args.left_visible != nullptr) {
        left = greatest(args.left_visible[row], 0);
        right = greatest(args.right_visible[row], 0);
    }
    const long long reach = kWindow - 1 + greatest<long long>(left - (kWindow - 1), 0);
    const long long start = greatest<long long>(token.position - reach, 0);
    const long long stop = least<long long>(token.position + right + 1, token.seq_len);
    const long long n_window = least<long long>(stop - start, kWindow + kImageWidth);
    const long long n_picks = complete_records<kCompressRatio>(token.position, kTopk);
    const long long length = n_picks + n_window;
    // The column of the first gathered token, were the window to reach so far.
    const long long first = n_picks + token.seq_len - token.gather_len - start;
    const long long last = first + token.gather_len;
    const unsigned record_base = static_cast<unsigned>(workspace_rows) * token.request;
    parts_t parts;
    parts.n_picks = static_cast<unsigned>(n_picks);
    parts.gathered_begin = static_cast<unsigned>(clamp(first, n_picks, length));
    parts.gathered_end = static_cast<unsigned>(clamp(last, n_picks, length));
    parts.length = static_cast<unsigned>(length);
    parts.n_records = static_cast<unsigned>(greatest(swa_base, 0));
    parts.record_base = record_base;
    parts.gathered_base =
        record_base + static_cast<unsigned>(swa_base) - static_cast<unsigned>(first);
    return parts;
}

// The row in rounds of kBatch slices: as many as registers have room for, in equal
// shares.
constexpr unsigned kBatchMax = 9;
constexpr unsigned kSlices = static_cast<unsigned>(div_up<long long>(kWidth, kSlice));
constexpr unsigned kBatch = div_up(kSlices, div_up(kSlices, kBatchMax));

// A launch of few rows waits for its loads: there it fetches ids before it knows how many
// count. With many rows other warps fill the wait, and what was fetched in vain would
// cost bandwidth.
constexpr int kFewRows = 4096;

template <bool kWide>
__device__ inline void load_picks(const int *picks, unsigned slice, unsigned n,
                                  int_quad_t (&quads)[kBatch])
{
#pragma unroll // the batch lives in registers
    for (unsigned i = 0; i < kBatch; i++) {
        if (column_of<kWide>(slice + i, 0) < n) {
            quads[i] = load_quad<kWide>(picks, slice + i, kTopk);
        }
    }
}

__device__ inline int entry_of(const parts_t &parts, unsigned column, int pick)
{
    if (column < parts.n_picks) {
        const unsigned record = static_cast<unsigned>(pick);
        return record < parts.n_records ? static_cast<int>(parts.record_base + record)
                                        : -1;
    }
    const bool gathered = column >= parts.gathered_begin && column < parts.gathered_end;
    return gathered ? static_cast<int>(parts.gathered_base + column) : -1;
}

template <bool kWide>
__device__ inline void combine_row(const args_t &args, unsigned row, const int *picks,
                                   int *combined)
{
    const bool few = args.num_tokens <= kFewRows;
    int_quad_t quads[kBatch] = {};
    if (few) {
        load_picks<kWide>(picks, 0, kTopk, quads);
    }
    const parts_t parts = parts_of(args, row);
    for (unsigned slice = 0; slice < kSlices; slice += kBatch) {
        if (!few || slice > 0) {
            load_picks<kWide>(picks, slice, parts.n_picks, quads);
        }
#pragma unroll
        for (unsigned i = 0; i < kBatch; i++) {
#pragma unroll
            for (unsigned j = 0; j < kQuad; j++) {
                const unsigned column = column_of<kWide>(slice + i, j);
                quads[i].at[j] = entry_of(parts, column, quads[i].at[j]);
            }
            store_quad<kWide>(combined, slice + i, kWidth, quads[i]);
        }
    }
    if (lane_of_thread() == 0) {
        args.combined_lens[row] = static_cast<int>(parts.length);
    }
}

// What the rules turned away, for the checked build; by the warp that has the row.
__device__ inline void check_row(const args_t &args, unsigned row)
{
    const token_t token = token_of(args, row);
    if (token.position < 0) {
        return;
    }
    const range_t window = whole_window<kWindow>(
        token.position, token.seq_len, visible_at<kImageWidth>(args.left_visible, row),
        visible_at<kImageWidth>(args.right_visible, row));
    check_length<static_cast<long long>(kWindow) + kImageWidth>(
        lane_of_thread() == 0 ? args.report : nullptr, row, window);
    const int swa_base = read_count(args.swa_base, 0);
    const int n_picks = complete_records<kCompressRatio>(token.position, kTopk);
    const long long first = static_cast<long long>(row) * kTopkStride;
    for (int column = static_cast<int>(lane_of_thread()); column < n_picks;
         column += kWarp) {
        const int id = args.topk_indices[first + column];
        if (id != kNone && (id < 0 || id >= swa_base)) {
            report(args.report, kReasonId, row, column, id);
        }
    }
}

extern "C" __global__ void __launch_bounds__(kThreads)
    kiln_combine_topk_swa(const __grid_constant__ args_t args)
{
    wait_for_previous_kernel();
    const unsigned row = blockIdx.x * kRows + warp_of_thread();
    if (row >= static_cast<unsigned>(args.num_tokens)) {
        return;
    }
    const long long first_pick = static_cast<long long>(row) * kTopkStride;
    const int *picks = kTopk > 0 ? args.topk_indices + first_pick : nullptr;
    int *combined = args.combined_indices + static_cast<long long>(row) * kCombinedStride;
    if (takes_quads(picks) && takes_quads(combined)) {
        combine_row<true>(args, row, picks, combined);
    } else {
        combine_row<false>(args, row, picks, combined);
    }
    if constexpr (kChecked) {
        check_row(args, row);
    }
}
