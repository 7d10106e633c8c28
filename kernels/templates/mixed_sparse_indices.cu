// SPDX-License-Identifier: Apache-2.0
// mixed_sparse_indices: one matrix of window and compressed ids for a mixed batch.
//
//   Ws = kSwaWidth + align(kImageWidth, 4),  Kp = align(max(kTopk, kDecodeTopk), 4)
//   columns [0, Ws):       decode: the given slots; prefill: the window, looked up
//   columns [Ws, Ws + Kp): decode: the given slots, or with kDecodeLocal ids, looked up;
//                          prefill: min((pos + 1) / kCompressRatio, kTopk) picks, looked up
//   each part ends with -1; sparse_lens[t] = Ws + entries of the second part
//   slot x is named x / block * span + x % block; -1 where that does not fit int32
//
// In:  query_start_loc[num_requests + 1], seq_lens[num_requests], the tables swa_block_table and
//      block_table; for each token token_to_req, is_valid_token (bytes), left_visible and
//      right_visible, the last three or null; for decode tokens decode_swa_indices[., kSwaWidth],
//      decode_compressed_indices[., kDecodeTopk], decode_compressed_lens or null; for the others
//      prefill_topk_indices[., max(kTopk, 1)].
// Out: sparse_indices[num_tokens, Ws + Kp], sparse_lens[num_tokens]. All int32.
// kRowThreads threads share a row, kThreads / kRowThreads rows a block: its first warp has the
// window, the others slices of 128 compressed columns. Accesses are of 16 bytes where addresses
// allow. Shared memory: kThreads / 32 ints where local ids are counted.
#ifndef KILN_PRELUDE
constexpr int kWindow = 128;        // raw tokens of the sliding window
constexpr int kSwaWidth = 128;      // columns of a given window row
constexpr int kImageWidth = 0;      // further window columns for image spans
constexpr int kCompressRatio = 4;   // raw tokens of a record; 0: no records
constexpr int kTopk = 512;          // columns of prefill_topk_indices; 0: none
constexpr int kDecodeTopk = 512;    // columns of decode_compressed_indices; 0: none
constexpr bool kDecodeLocal = true; // those are ids of a request; false: slots
constexpr int kSwaBlockSize = 64;   // slots of a page of the window's cache
constexpr int kSwaSpan = 64;        // ids between its pages
constexpr int kSwaTableWidth = 16384;
constexpr int kSwaTableStride = 16384;
constexpr int kBlockSize = 64; // the same of the compressed cache
constexpr int kSpan = 64;
constexpr int kTableWidth = 4096;
constexpr int kTableStride = 4096;
constexpr int kThreads = 96;    // threads of a block
constexpr int kRowThreads = 96; // threads of a row
#endif

static_assert(kWindow >= 1 && kSwaWidth >= kWindow && kImageWidth >= 0,
              "window must be at least 1, swa_width at least window, image_width 0");
static_assert(kCompressRatio >= 0 && kTopk >= 0 && kDecodeTopk >= 0,
              "compress_ratio, topk and decode_topk must not be negative");
static_assert(kSwaBlockSize >= 1 && kSwaSpan >= 1 && kBlockSize >= 1 && kSpan >= 1,
              "block sizes and spans must be at least 1");
static_assert(kSwaTableWidth >= 1 && kSwaTableWidth <= kSwaTableStride &&
                  kTableWidth >= 1 && kTableWidth <= kTableStride,
              "table widths must be at least 1, their strides at least the widths");
static_assert(kRowThreads % 32 == 0 && kThreads % kRowThreads == 0,
              "a row takes whole warps, a block whole rows");

#include "common/arch.cuh"
#include "common/count.cuh"
#include "common/int_math.cuh"
#include "common/launch_order.cuh"
#include "common/paged_run.cuh"
#include "common/paging.cuh"
#include "common/quad.cuh"
#include "common/records.cuh"
#include "common/report.cuh"
#include "common/row_scan.cuh"
#include "common/window.cuh"

struct args_t {
    const int *query_start_loc;
    const int *seq_lens;
    const int *token_to_req;
    const unsigned char *is_valid_token;
    const int *swa_block_table;
    const int *block_table;
    const int *decode_swa_indices;
    const int *decode_compressed_indices;
    const int *decode_compressed_lens;
    const int *prefill_topk_indices;
    const int *left_visible;
    const int *right_visible;
    int *sparse_indices;
    int *sparse_lens;
    count_t num_decode_tokens;
    count_t live_tokens;
    int num_tokens;
    int num_requests;
    int swa_table_rows;
    int table_rows;
    report_t *report;
};

constexpr long long kImageColumns = div_up<long long>(kImageWidth, kQuad) * kQuad;
constexpr long long kRecordColumns =
    div_up<long long>(greatest(kTopk, kDecodeTopk), kQuad) * kQuad;
constexpr long long kColumns = kSwaWidth + kImageColumns + kRecordColumns;
static_assert(kColumns < kTwo31, "a row has fewer than 2^31 columns");
constexpr unsigned kWindowColumns = kSwaWidth + kImageColumns; // Ws
constexpr unsigned kWindowSlices = div_up(kWindowColumns, kSlice);

constexpr unsigned kWarps = kThreads / kWarp;
constexpr unsigned kRowWarps = kRowThreads / kWarp;
constexpr unsigned kRows = kWarps / kRowWarps;

// The compressed part in rounds of kBatch slices for each of its warps.
constexpr unsigned kRecordWarps = greatest(kRowWarps - 1, 1u);
constexpr unsigned kRecordSlices = greatest(1u, div_up<unsigned>(kRecordColumns, kSlice));
constexpr unsigned kBatch = least(2u, div_up(kRecordSlices, kRecordWarps));
constexpr unsigned kRounds = div_up(kRecordSlices, kBatch *kRecordWarps);
static_assert(kRecordColumns == 0 || kRowWarps > 1, "the compressed part needs a warp");

constexpr int kFewRows = 4096; // a launch of more hides its loads behind other rows

// Decode rows that are looked up, so that their length is not known before.
constexpr bool kCounts = kDecodeLocal && kDecodeTopk > 0;

// Both are of this kernel alone.
#include "common/mixed_rows.cuh"
#include "common/mixed_checks.cuh"

template <bool kWide>
__device__ inline bool copy_window(const args_t &args, unsigned token, const int *given,
                                   int *part)
{
    // The first columns are under way before the row is looked at.
    int_quad_t quad = load_quad<kWide>(given, 0, kSwaWidth);
    const bool live = row_of(args, token, true).live;
    for (unsigned slice = 0; slice < kWindowSlices; slice++) {
        if (slice > 0) {
            quad = load_quad<kWide>(given, slice, kSwaWidth);
        }
#pragma unroll
        for (unsigned i = 0; i < kQuad; i++) {
            quad.at[i] = live ? id_of_slot<kSwaBlockSize, kSwaSpan>(quad.at[i]) : -1;
        }
        store_quad<kWide>(part, slice, kWindowColumns, quad);
    }
    return live;
}

// Returns how many picks the row has.
__device__ inline unsigned write_prefill_window(const args_t &args, unsigned token,
                                                int *part)
{
    const long long left = visible_at<kImageWidth>(args.left_visible, token);
    const long long right = visible_at<kImageWidth>(args.right_visible, token);
    const row_t row = row_of(args, token, false);
    const range_t range =
        row.live ? window_of<kWindow, kImageWidth>(row.position, row.seq_len, left, right)
                 : range_t{0, 0};
    // A range past the sequence is empty, wherever it begins.
    const long long n = greatest<long long>(range.end - range.start, 0);
    write_run<kWindowColumns, kSwaBlockSize, kSwaTableWidth, kSwaSpan>(
        part,
        args.swa_block_table + static_cast<long long>(row.request) * kSwaTableStride,
        static_cast<unsigned>(range.start), static_cast<unsigned>(n));
    return row.n_ids;
}

// Returns the length of the compressed part, where it does not have to be counted.
__device__ inline unsigned write_window(const args_t &args, unsigned token,
                                        const place_t &place, int *part)
{
    if (!place.decode) {
        return write_prefill_window(args, token, part);
    }
    unsigned length = kCounts ? 0 : kDecodeTopk;
    if (!kCounts && args.decode_compressed_lens != nullptr) {
        length = clamp(args.decode_compressed_lens[token], 0, kDecodeTopk);
    }
    const int *given = args.decode_swa_indices + place.matrix_row * kSwaWidth;
    const bool live = takes_quads(given) && takes_quads(part)
                          ? copy_window<true>(args, token, given, part)
                          : copy_window<false>(args, token, given, part);
    return live ? length : 0;
}

template <bool kWide>
__device__ inline void load_batch(const int *ids, unsigned slice, unsigned n,
                                  int_quad_t (&quads)[kBatch])
{
#pragma unroll // the batch lives in registers
    for (unsigned i = 0; i < kBatch; i++) {
        quads[i] = load_quad<kWide>(ids, slice + i, n);
    }
}

// By warp number `warp` of those that share the part. Returns what the thread mapped.
template <bool kWide>
__device__ inline unsigned map_records(const args_t &args, unsigned token, bool decode,
                                       unsigned warp, const int *ids, int *part)
{
    // Picks are fetched before it is known how many count only where a launch has few rows.
    const bool early = decode || args.num_tokens <= kFewRows;
    int_quad_t quads[kBatch];
    if (early) {
        load_batch<kWide>(ids, warp * kBatch, decode ? kDecodeTopk : kTopk, quads);
    }
    const row_t row = row_of(args, token, decode);
    const int *pages =
        args.block_table + static_cast<long long>(row.request) * kTableStride;
    const unsigned n_ids = row.live ? row.n_ids : 0;
    unsigned mapped = 0;
    for (unsigned round = 0; round < kRounds; round++) {
        const unsigned slice = (round * kRecordWarps + warp) * kBatch;
        if (!early || round > 0) {
            load_batch<kWide>(ids, slice, n_ids, quads);
        }
#pragma unroll
        for (unsigned i = 0; i < kBatch; i++) {
#pragma unroll
            for (unsigned j = 0; j < kQuad; j++) {
                int &id = quads[i].at[j];
                id = column_of<kWide>(slice + i, j) < n_ids ? id : -1;
                id = decode && !kDecodeLocal
                         ? id_of_slot<kBlockSize, kSpan>(id)
                         : id_of_local<kBlockSize, kTableWidth, kSpan>(pages, id);
                mapped += id >= 0;
            }
            store_quad<kWide>(part, slice + i, kRecordColumns, quads[i]);
        }
    }
    return mapped;
}

// Returns what the thread mapped, where it counts.
__device__ inline unsigned write_records(const args_t &args, unsigned token,
                                         const place_t &place, unsigned warp, int *part)
{
    const int *ids = nullptr;
    if (place.decode && kDecodeTopk > 0) {
        ids = args.decode_compressed_indices + place.matrix_row * kDecodeTopk;
    } else if (!place.decode && kTopk > 0) {
        ids = args.prefill_topk_indices + place.matrix_row * kTopk;
    }
    const unsigned mapped =
        takes_quads(ids) && takes_quads(part)
            ? map_records<true>(args, token, place.decode, warp, ids, part)
            : map_records<false>(args, token, place.decode, warp, ids, part);
    return kCounts && place.decode ? mapped : 0;
}

extern "C" __global__ void __launch_bounds__(kThreads)
    kiln_mixed_sparse_indices(const __grid_constant__ args_t args)
{
    wait_for_previous_kernel();
    const unsigned token = blockIdx.x * kRows + warp_of_thread() / kRowWarps;
    const unsigned role = warp_of_thread() % kRowWarps;
    const bool launched = token < static_cast<unsigned>(args.num_tokens);
    unsigned length = 0; // of the compressed part: the first lane's, or the row's sum
    if (launched) {
        const place_t place = place_of(args, token);
        int *indices = args.sparse_indices + token * kColumns;
        length = role == 0 ? write_window(args, token, place, indices)
                           : write_records(args, token, place, role - 1,
                                           indices + kWindowColumns);
    }
    if constexpr (kCounts) {
        // The first warp knows the length of a row that is not counted; each lane has it.
        length = role > 0 ? __reduce_add_sync(kWholeWarp, length) : length;
        length = scan_row<kRowWarps, kWarps>(length).total;
    }
    if (launched && threadIdx.x % kRowThreads == 0) {
        args.sparse_lens[token] = static_cast<int>(kWindowColumns + length);
    }
    if constexpr (kChecked) {
        if (launched) {
            check_row(args, token);
        }
    }
}
