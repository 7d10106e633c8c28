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
// In:  query_start_loc[num_requests + 1], seq_lens[num_requests], swa_block_table[swa_table_rows,
//      kSwaTableWidth], block_table[table_rows, kTableWidth], for each token token_to_req,
//      is_valid_token (bytes), left_visible and right_visible, the last three or null; for decode
//      tokens decode_swa_indices[., kSwaWidth], decode_compressed_indices[., kDecodeTopk],
//      decode_compressed_lens or null; for the others prefill_topk_indices[., max(kTopk, 1)].
// Out: sparse_indices[num_tokens, Ws + Kp], sparse_lens[num_tokens]. All int32.
//
// kRowThreads threads share a row; a block has several rows of one warp, or one row of several. A
// thread takes four neighbouring columns at a time; of the compressed part it fetches up to sixteen
// before it uses the first. Accesses are of 16 bytes where all rows are aligned to that. Shared
// memory: kRowThreads / 32 ints where several warps count local ids.
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
constexpr int kThreads = 128;   // threads of a block
constexpr int kRowThreads = 32; // threads of a row
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

constexpr unsigned kRowWarps = kRowThreads / kWarp;
constexpr unsigned kRows = kThreads / kRowThreads;
constexpr int kSmBlocks =
    kBlocksOfSm<kThreads, 2>; // registers for all of a thread's loads
static_assert(kRows == 1 || kRowThreads == kWarp, "only a warp shares its block");

// What a thread has of either part.
using window_quads = quads_of<kWindowColumns, kRowThreads>;
using record_quads = quads_of<kRecordColumns, kRowThreads>;

// Decode rows that are looked up, so that their length is not known before.
constexpr bool kCounts = kDecodeLocal && kDecodeTopk > 0;

// Both are of this kernel alone.
#include "common/mixed_checks.cuh"
#include "common/mixed_rows.cuh"

template <bool kDecode>
__device__ inline int record_of(const int *pages, int id)
{
    return kDecode && !kDecodeLocal
               ? id_of_slot<kBlockSize, kSpan>(id)
               : id_of_local<kBlockSize, kTableWidth, kSpan>(pages, id);
}

// What a row is made of.
struct row_arrays_t {
    const int *given;     // of a decode row: its window
    const int *ids;       // of the compressed part
    const int *swa_pages; // where its window is looked up
    const int *pages;
    int *indices;
};

// The window of a decode row; `quad` holds what the thread has of it first.
template <bool kWide>
__device__ inline void copy_window(const row_arrays_t &arrays, bool live, unsigned thread,
                                   int_quad_t quad)
{
    for (unsigned turn = 0; turn < window_quads::kTurns; turn++) {
        const unsigned column = (turn * kRowThreads + thread) * kQuad;
        if (turn > 0) {
            quad = load_neighbours<kSwaWidth, kWide>(arrays.given, column, true);
        }
#pragma unroll
        for (unsigned i = 0; i < kQuad; i++) {
            quad.at[i] = live ? id_of_slot<kSwaBlockSize, kSwaSpan>(quad.at[i]) : -1;
        }
        store_neighbours<kWindowColumns, kWide>(arrays.indices, column, quad);
    }
}

// Of the first n columns.
template <bool kWide, bool kDecode>
__device__ inline void load_records(const row_arrays_t &arrays, unsigned round,
                                    unsigned thread, unsigned n,
                                    int_quad_t (&batch)[record_quads::kBatch])
{
    constexpr unsigned kWidth = kDecode ? kDecodeTopk : kTopk;
#pragma unroll // all under way together
    for (unsigned i = 0; i < record_quads::kBatch; i++) {
        const unsigned column = record_quads::column_of(round, i, thread);
        batch[i] = load_neighbours<kWidth, kWide>(arrays.ids, column, column < n);
    }
}

// `batch` holds what the thread has first. Returns what it mapped.
template <bool kWide, bool kDecode>
__device__ inline unsigned map_records(const row_arrays_t &arrays, unsigned n,
                                       unsigned thread,
                                       int_quad_t (&batch)[record_quads::kBatch])
{
    unsigned mapped = 0;
    for (unsigned round = 0; round < record_quads::kRounds; round++) {
        if (round > 0) {
            load_records<kWide, kDecode>(arrays, round, thread, n, batch);
        }
#pragma unroll
        for (unsigned i = 0; i < record_quads::kBatch; i++) {
            const unsigned column = record_quads::column_of(round, i, thread);
#pragma unroll
            for (unsigned j = 0; j < kQuad; j++) {
                int &id = batch[i].at[j];
                id = record_of<kDecode>(arrays.pages, column + j < n ? id : -1);
                mapped += id >= 0;
            }
        }
        store_batch<kRecordColumns, kRowThreads, kWide>(arrays.indices + kWindowColumns,
                                                        round, thread, batch);
    }
    return mapped;
}

// Returns the length of the compressed part.
template <bool kWide, bool kDecode>
__device__ inline unsigned write_row(const args_t &args, unsigned token,
                                     long long matrix_row)
{
    const unsigned thread = threadIdx.x % kRowThreads;
    row_arrays_t arrays = {};
    arrays.indices = args.sparse_indices + token * kColumns;
    arrays.ids = kDecode ? args.decode_compressed_indices + matrix_row * kDecodeTopk
                         : args.prefill_topk_indices + matrix_row * kTopk;
    if constexpr (kDecode) {
        arrays.given = args.decode_swa_indices + matrix_row * kSwaWidth;
    }
    // What is given to a decode row is under way before the row is looked at.
    int_quad_t first = {};
    int_quad_t batch[record_quads::kBatch];
    int length = kDecodeTopk;
    if constexpr (kDecode) {
        first = load_neighbours<kSwaWidth, kWide>(arrays.given, thread * kQuad, true);
        load_records<kWide, kDecode>(arrays, 0, thread, kDecodeTopk, batch);
        length = load_if(args.decode_compressed_lens != nullptr,
                         args.decode_compressed_lens, token, length);
    }
    const row_t row = row_of<kDecode>(args, token);
    arrays.swa_pages =
        args.swa_block_table + static_cast<long long>(row.request) * kSwaTableStride;
    arrays.pages = args.block_table + static_cast<long long>(row.request) * kTableStride;
    if constexpr (kDecode) {
        copy_window<kWide>(arrays, row.live, thread, first);
    } else {
        load_records<kWide, kDecode>(arrays, 0, thread, row.n_ids, batch);
        write_run<kWindowColumns, kSwaBlockSize, kSwaTableWidth, kSwaSpan, kRowThreads>(
            arrays.indices, arrays.swa_pages, row.window, thread, true);
    }
    const unsigned mapped = map_records<kWide, kDecode>(arrays, row.n_ids, thread, batch);
    if constexpr (!kDecode) {
        return row.n_ids;
    } else if constexpr (!kCounts) {
        return row.live ? clamp(length, 0, kDecodeTopk) : 0;
    } else {
        return scan_row<kRowWarps>(__reduce_add_sync(kWholeWarp, mapped)).total;
    }
}

template <bool kWide>
__device__ inline void write_rows(const args_t &args)
{
    const unsigned token = blockIdx.x * kRows + threadIdx.x / kRowThreads;
    if (token >= static_cast<unsigned>(args.num_tokens)) {
        return;
    }
    const place_t place = place_of(args, token);
    const unsigned length = place.decode
                                ? write_row<kWide, true>(args, token, place.matrix_row)
                                : write_row<kWide, false>(args, token, place.matrix_row);
    if (threadIdx.x % kRowThreads == 0) {
        args.sparse_lens[token] = static_cast<int>(kWindowColumns + length);
    }
    if constexpr (kChecked) {
        check_row(args, token);
    }
}

extern "C" __global__ void __launch_bounds__(kThreads, kSmBlocks)
    kiln_mixed_sparse_indices(const __grid_constant__ args_t args)
{
    wait_for_previous_kernel();
    let_next_kernel_start();
    // Rows of whole quads are aligned as their matrix is.
    constexpr bool kQuads =
        kSwaWidth % kQuad == 0 && kTopk % kQuad == 0 && kDecodeTopk % kQuad == 0;
    if (kQuads &&
        takes_quads(args.sparse_indices, args.decode_swa_indices,
                    args.decode_compressed_indices, args.prefill_topk_indices)) {
        write_rows<true>(args);
    } else {
        write_rows<false>(args);
    }
}
