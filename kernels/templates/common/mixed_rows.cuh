// SPDX-License-Identifier: Apache-2.0
// The rows of mixed_sparse_indices, whose args_t and constants stand before this.
#pragma once

#include "common/access.cuh"
#include "common/count.cuh"
#include "common/int_math.cuh"
#include "common/records.cuh"
#include "common/window.cuh"

// Where a token's given row or picks lie: decode tokens come first, in matrices of their own.
struct place_t {
    bool decode;
    long long matrix_row;
};

__device__ inline place_t place_of(const args_t &args, unsigned token)
{
    const int decode_tokens = read_count(args.num_decode_tokens, 0);
    const unsigned n_decode = clamp(decode_tokens, 0, args.num_tokens);
    const bool decode = token < n_decode;
    return {decode, decode ? token : token - n_decode};
}

// What a row is, as far as no look-up decides it. One that is not live is -1 throughout.
struct row_t {
    int request;    // whose pages the row is looked up in
    run_t window;   // of a prefill row
    bool live;      // of a decode row
    unsigned n_ids; // of the compressed part
};

template <bool kDecode>
__device__ inline row_t row_of(const args_t &args, unsigned token)
{
    constexpr bool kLooksUp = !kDecode || kCounts;
    const int live_tokens = read_count(args.live_tokens, args.num_tokens);
    const int valid =
        load_if(args.is_valid_token != nullptr, args.is_valid_token, token, 1);
    const int request = kLooksUp ? __ldg(args.token_to_req + token) : 0;
    const unsigned requests =
        least(args.num_requests, least(args.swa_table_rows, args.table_rows));
    const bool known = !kLooksUp || static_cast<unsigned>(request) < requests;
    const bool live = static_cast<int>(token) < live_tokens && valid != 0 && known;
    if constexpr (kDecode) {
        return {live ? request : 0, {0, 0}, live, live ? kDecodeTopk : 0u};
    }
    const int left = visible_at<kImageWidth>(args.left_visible, token);
    const int right = visible_at<kImageWidth>(args.right_visible, token);
    const int query_end = load_if(live, args.query_start_loc, request + 1LL, 0);
    const int seq_len = load_if(live, args.seq_lens, request, 0);
    const long long position = live ? position_of(token, query_end, seq_len) : -1;
    return {live ? request : 0,
            window_run<kWindow, kImageWidth>(static_cast<int>(token), query_end, seq_len,
                                             left, right),
            false,
            static_cast<unsigned>(complete_records<kCompressRatio>(position, kTopk))};
}
