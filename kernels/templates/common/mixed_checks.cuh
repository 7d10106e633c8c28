// SPDX-License-Identifier: Apache-2.0
// The checked build of mixed_sparse_indices, whose args_t and constants stand before this.
#pragma once

#include "common/check.cuh"
#include "common/check_length.cuh"
#include "common/mixed_rows.cuh"
#include "common/paging.cuh"

// A slot, any int32, as its pool names it.
template <int kPageSlots, int kPoolSpan>
__device__ inline void check_slot(const report_at_t &at, int slot)
{
    if (slot < kNone) {
        report(at.to, kReasonId, at.row, at.column, slot);
    } else if (slot != kNone) {
        check_range(at, static_cast<long long>(slot / kPageSlots) * kPoolSpan +
                            slot % kPageSlots);
    }
}

// An id of a request, any int32, from its pages.
template <int kPageSlots, int kPages, int kPoolSpan>
__device__ inline void check_local(const report_at_t &at, const int *pages, int id)
{
    const int local = check_id<1, 1, kPageSlots, kPages>(at, id, 0);
    if (local < 0) {
        return;
    }
    const int page = pages[local / kPageSlots];
    if (check_page<kTwo31 / kPageSlots>(at, page)) {
        check_slot<kPageSlots, kPoolSpan>(at, page * kPageSlots + local % kPageSlots);
    }
}

// An entry of the compressed part, from column kWindowColumns on.
__device__ inline void check_record(const args_t &args, unsigned token, unsigned column,
                                    int request, int id)
{
    const int *pages = args.block_table + static_cast<long long>(request) * kTableStride;
    check_local<kBlockSize, kTableWidth, kSpan>(
        {args.report, token, kWindowColumns + column}, pages, id);
}

__device__ inline void check_decode_row(const args_t &args, unsigned token, int request)
{
    const unsigned thread = threadIdx.x % kRowThreads;
    for (unsigned column = thread; column < kSwaWidth; column += kRowThreads) {
        const long long at = static_cast<long long>(token) * kSwaWidth + column;
        check_slot<kSwaBlockSize, kSwaSpan>({args.report, token, column},
                                            args.decode_swa_indices[at]);
    }
    for (unsigned column = thread; column < kDecodeTopk; column += kRowThreads) {
        const long long at = static_cast<long long>(token) * kDecodeTopk + column;
        const int given = args.decode_compressed_indices[at];
        if (kDecodeLocal) {
            check_record(args, token, column, request, given);
        } else {
            check_slot<kBlockSize, kSpan>({args.report, token, kWindowColumns + column},
                                          given);
        }
    }
    if (!kDecodeLocal && args.decode_compressed_lens != nullptr && thread == 0) {
        const int length = args.decode_compressed_lens[token];
        if (length < 0 || length > kDecodeTopk) {
            report(args.report, kReasonLength, token, -1, length);
        }
    }
}

// Its picks are in row `matrix_row`.
__device__ inline void check_prefill_row(const args_t &args, unsigned token, int request,
                                         long long matrix_row)
{
    constexpr long long kMost = static_cast<long long>(kWindow) + kImageWidth;
    const unsigned thread = threadIdx.x % kRowThreads;
    const long long seq_len = args.seq_lens[request];
    const long long position =
        position_of(token, args.query_start_loc[request + 1LL], seq_len);
    if (position < 0) {
        return;
    }
    const range_t window = whole_window<kWindow>(
        position, seq_len, visible_at<kImageWidth>(args.left_visible, token),
        visible_at<kImageWidth>(args.right_visible, token));
    check_length<kMost>(thread == 0 ? args.report : nullptr, token, window);
    const int *pages =
        args.swa_block_table + static_cast<long long>(request) * kSwaTableStride;
    const long long n = least(window.end - window.start, kMost);
    for (long long column = thread; column < n; column += kRowThreads) {
        check_local<kSwaBlockSize, kSwaTableWidth, kSwaSpan>(
            {args.report, token, column}, pages, static_cast<int>(window.start + column));
    }
    const int n_picks = complete_records<kCompressRatio>(position, kTopk);
    for (int column = static_cast<int>(thread); column < n_picks; column += kRowThreads) {
        check_record(args, token, static_cast<unsigned>(column), request,
                     args.prefill_topk_indices[matrix_row * kTopk + column]);
    }
}

// What the rules turned away; by the threads of the row.
__device__ inline void check_row(const args_t &args, unsigned token)
{
    if (is_first_thread()) {
        report_count(args.report, kReasonDecodeTokens, args.num_decode_tokens,
                     args.num_tokens);
        report_count(args.report, kReasonLiveTokens, args.live_tokens, args.num_tokens);
    }
    const bool live =
        static_cast<int>(token) < read_count(args.live_tokens, args.num_tokens);
    const bool valid = args.is_valid_token == nullptr || args.is_valid_token[token] != 0;
    if (!live || !valid) {
        return;
    }
    const place_t place = place_of(args, token);
    const int request = args.token_to_req[token];
    const int requests =
        least(args.num_requests, least(args.swa_table_rows, args.table_rows));
    if ((!place.decode || kCounts) && (request < 0 || request >= requests)) {
        if (threadIdx.x % kRowThreads == 0) {
            report(args.report, kReasonRequest, token, -1, request);
        }
    } else if (place.decode) {
        check_decode_row(args, token, request);
    } else {
        check_prefill_row(args, token, request, place.matrix_row);
    }
}
