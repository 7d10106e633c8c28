// SPDX-License-Identifier: Apache-2.0
// The rows of mixed_sparse_indices, whose args_t and constants stand before this.
#pragma once

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

// What a row is, as far as no look-up decides it.
struct row_t {
    bool live;          // false: all of it is -1
    int request;        // whose pages the row is looked up in
    long long position; // of a prefill token
    long long seq_len;
    unsigned n_ids; // of the compressed part
};

__device__ inline row_t row_of(const args_t &args, unsigned token, bool decode)
{
    const int live_tokens = read_count(args.live_tokens, args.num_tokens);
    const int request = args.token_to_req[token];
    const bool valid = args.is_valid_token == nullptr || args.is_valid_token[token] != 0;
    const int requests =
        least(args.num_requests, least(args.swa_table_rows, args.table_rows));
    const bool known = request >= 0 && request < requests;
    const bool live = static_cast<int>(token) < live_tokens && valid;
    if (decode) {
        return {live && (known || !kCounts), known ? request : 0, 0, 0, kDecodeTopk};
    }
    if (!live || !known) {
        return {};
    }
    const long long seq_len = args.seq_lens[request];
    const long long position =
        position_of(token, args.query_start_loc[request + 1LL], seq_len);
    return {position >= 0, request, position, seq_len,
            static_cast<unsigned>(complete_records<kCompressRatio>(position, kTopk))};
}
