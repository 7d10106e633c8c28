// SPDX-License-Identifier: Apache-2.0
// A row of combine_topk_swa in quads of columns. Its constants stand before this.
#pragma once

#include "common/arch.cuh"
#include "common/int_math.cuh"
#include "common/quad.cuh"

// What the columns of a row hold: a pick below n_picks, the n_gathered tokens from
// gathered_begin on, else nothing, which below length is an entry that cannot be mapped.
struct parts_t {
    unsigned n_picks;
    unsigned gathered_begin;
    unsigned n_gathered;
    unsigned length;
    unsigned n_records;     // a pick is below it
    unsigned record_base;   // the workspace row of record 0
    unsigned gathered_base; // add a column: the workspace row of its gathered token
};

// How rows meet threads: a row has kWarps warps, a block kRows rows.
template <unsigned kWarps_, unsigned kRows_>
struct combined_rows_t {
    static constexpr unsigned kWarps = kWarps_;
    static constexpr unsigned kRows = kRows_;
    // Alone in its block, many like it: it is read and written once.
    static constexpr bool kAlone = kRows == 1;
    // The row in rounds of kBatch slices for each warp: as many as registers have room for,
    // in equal shares.
    static constexpr unsigned kBatchMax = 9;
    static constexpr unsigned kSlices =
        static_cast<unsigned>(div_up<long long>(kWidth, kSlice));
    static constexpr unsigned kRounds = div_up(kSlices, kBatchMax *kWarps);
    static constexpr unsigned kBatch = div_up(kSlices, kRounds *kWarps);
    using batch_t = int_quad_t[kBatch];

    // Of the thread, the first column of its quad i in a round.
    __device__ static unsigned column(unsigned round, unsigned i)
    {
        const unsigned batch = round * kWarps + warp_of_thread() % kWarps;
        return column_of<true>(batch * kBatch + i, 0);
    }
};

// Whole quads; the other columns of a quad that reaches past n are read in vain.
template <typename rows>
__device__ inline void load_picks(const int *picks, unsigned round, unsigned n,
                                  typename rows::batch_t &quads)
{
#pragma unroll // the batch lives in registers
    for (unsigned i = 0; i < rows::kBatch; i++) {
        const unsigned first = rows::column(round, i);
        if (static_cast<int>(first) < kTopk && first < n) {
            quads[i] = load_whole_quad<rows::kAlone>(picks + first);
        }
    }
}

__device__ inline int entry_of(const parts_t &parts, unsigned column, int pick)
{
    const unsigned record = static_cast<unsigned>(pick);
    const bool mapped = column < parts.n_picks && record < parts.n_records;
    const int entry = mapped ? static_cast<int>(parts.record_base + record) : -1;
    const bool gathered = column - parts.gathered_begin < parts.n_gathered;
    return gathered ? static_cast<int>(parts.gathered_base + column) : entry;
}

template <typename rows>
__device__ inline void store_entries(int *combined, unsigned round, const parts_t &parts,
                                     typename rows::batch_t &quads)
{
#pragma unroll
    for (unsigned i = 0; i < rows::kBatch; i++) {
        const unsigned first = rows::column(round, i);
#pragma unroll
        for (unsigned j = 0; j < kQuad; j++) {
            quads[i].at[j] = entry_of(parts, first + j, quads[i].at[j]);
        }
        if (first / kQuad < kWidth / kQuad) {
            store_whole_quad<rows::kAlone>(combined + first, quads[i]);
        }
    }
}
