// SPDX-License-Identifier: Apache-2.0
// Rows of ids, each mapped to an index or -1 by itself, read and written once.
//
// rows_t says how rows meet threads: columns of a row, threads of a row and of a block, and
// whether ids may leave the cache first. A warp takes slices of 128 columns. A row's mapper is
// made by make_mapper() once its ids are under way; mapper.index_of(id) is the index.
//
// A launch of few rows is over sooner with a block for each row and one quad a thread; many
// rows share blocks, and threads have several quads under way. Which of the two it is, and
// whether rows take quads, is known only after a jump, so what needs no answer is read ahead
// of it: the thread's first ids and what its mapper is made of.
#pragma once

#include "common/arch.cuh"
#include "common/compact.cuh"
#include "common/int_math.cuh"
#include "common/quad.cuh"
#include "common/row_scan.cuh"

template <unsigned kColumns_, unsigned kRowThreads_, unsigned kThreads, bool kOnce_>
struct rows_t {
    static constexpr unsigned kColumns = kColumns_;
    static constexpr bool kOnce = kOnce_;
    static constexpr unsigned kRowThreads = kRowThreads_;
    static constexpr unsigned kBlockThreads = kThreads;
    static constexpr unsigned kWarps = kThreads / kWarp;
    static constexpr unsigned kRowWarps = kRowThreads / kWarp;
    static constexpr unsigned kRows = kWarps / kRowWarps; // of a block
    static constexpr unsigned kSlices = div_up<unsigned>(kColumns, kSlice);
    // The row in rounds of kBatch slices for each warp.
    static constexpr unsigned kBatch = least(4u, div_up(kSlices, kRowWarps));
    static constexpr unsigned kRounds = div_up(kSlices, kBatch *kRowWarps);

    // Of the thread: its row of the launch, and its warp in the row.
    __device__ static unsigned row()
    {
        return blockIdx.x * kRows + (kRows > 1 ? warp_of_thread() / kRowWarps : 0);
    }

    __device__ static unsigned warp()
    {
        return warp_of_thread() % kRowWarps;
    }
};

// Of a row, read ahead.
struct ahead_t {
    unsigned request; // any int32
    int valid;
};

// requests: where the args have each row's. Arguments are fetched where they are used, and no
// earlier: their order is part of a small launch's time.
template <typename args_t>
__device__ inline ahead_t read_ahead(const args_t &args, const int *args_t::*requests,
                                     unsigned row)
{
    int valid = 1;
    if (args.is_valid_token != nullptr) {
        valid = args.is_valid_token[row];
    }
    return {static_cast<unsigned>((args.*requests)[row]), valid};
}

template <typename mapper_t>
__device__ inline int_quad_t map_quad(const mapper_t &mapper, const int_quad_t &ids)
{
    int_quad_t quad;
#pragma unroll
    for (unsigned i = 0; i < kQuad; i++) {
        quad.at[i] = mapper.index_of(ids.at[i]);
    }
    return quad;
}

__device__ inline unsigned count_mapped(const int_quad_t &quad)
{
    unsigned holes = 0;
#pragma unroll
    for (unsigned i = 0; i < kQuad; i++) {
        holes += quad.at[i] < 0;
    }
    return kQuad - holes;
}

// A row that takes quads, by slices that lie the row's warps apart; the first is loaded.
// Every id stays in its column. Returns what the thread mapped.
template <typename rows, typename make_mapper_t>
__device__ inline unsigned map_row(const make_mapper_t &make_mapper, const int *ids,
                                   int *indices, const int_quad_t &first)
{
    unsigned mapped = 0;
    for (unsigned round = 0; round < rows::kRounds; round++) {
        int_quad_t quads[rows::kBatch];
        const unsigned slice = round * rows::kBatch * rows::kRowWarps + rows::warp();
#pragma unroll // the batch lives in registers
        for (unsigned i = 0; i < rows::kBatch; i++) {
            quads[i] = round == 0 && i == 0
                           ? first
                           : load_quad<true, rows::kOnce>(
                                 ids, slice + i * rows::kRowWarps, rows::kColumns);
        }
        const auto mapper = make_mapper();
#pragma unroll // apart from the stores: all look-ups are under way at once
        for (unsigned i = 0; i < rows::kBatch; i++) {
            quads[i] = map_quad(mapper, quads[i]);
        }
#pragma unroll
        for (unsigned i = 0; i < rows::kBatch; i++) {
            store_quad<true>(indices, slice + i * rows::kRowWarps, rows::kColumns,
                             quads[i]);
            mapped += count_mapped(quads[i]);
        }
    }
    return mapped;
}

// The same for any row, in little code: it stands apart from the path above.
template <typename rows, typename make_mapper_t>
__device__ inline unsigned map_any_row(const make_mapper_t &make_mapper, const int *ids,
                                       int *indices)
{
    const auto mapper = make_mapper();
    unsigned mapped = 0;
    for (unsigned slice = rows::warp(); slice < rows::kSlices; slice += rows::kRowWarps) {
        const int_quad_t quad =
            map_quad(mapper, load_quad<false, rows::kOnce>(ids, slice, rows::kColumns));
        store_quad<false>(indices, slice, rows::kColumns, quad);
        mapped += count_mapped(quad);
    }
    return mapped;
}

// By a whole block, for its one row: what was mapped moves to the front, in order. Returns
// what the row kept.
template <typename rows, typename make_mapper_t>
__device__ inline unsigned compact_block_row(const make_mapper_t &make_mapper,
                                             const int *ids, int *indices)
{
    unsigned done = 0;
    for (unsigned round = 0; round < rows::kRounds; round++) {
        const unsigned slice = (round * rows::kRowWarps + rows::warp()) * rows::kBatch;
        int_quad_t quads[rows::kBatch];
#pragma unroll // the batch lives in registers
        for (unsigned i = 0; i < rows::kBatch; i++) {
            quads[i] = load_quad<false, rows::kOnce>(ids, slice + i, rows::kColumns);
        }
        const auto mapper = make_mapper();
#pragma unroll
        for (unsigned i = 0; i < rows::kBatch; i++) {
            quads[i] = map_quad(mapper, quads[i]);
        }
        unsigned places[rows::kBatch * kQuad];
        unsigned kept = 0;
#pragma unroll
        for (unsigned i = 0; i < rows::kBatch * kQuad; i++) {
            places[i] = place_kept(quads[i / kQuad].at[i % kQuad] >= 0, kept);
        }
        const row_scan_t scan = scan_row<rows::kRowWarps, rows::kWarps>(kept);
#pragma unroll
        for (unsigned i = 0; i < rows::kBatch * kQuad; i++) {
            const int index = quads[i / kQuad].at[i % kQuad];
            if (index >= 0) {
                indices[done + scan.before + places[i]] = index;
            }
        }
        done += scan.total;
        if (rows::kRounds > 1) {
            __syncthreads();
        }
    }
    for (unsigned column = done + threadIdx.x; column < rows::kColumns;
         column += rows::kBlockThreads) {
        indices[column] = -1;
    }
    return done;
}

// For all threads of the block: map() maps the thread's row and returns what the thread
// mapped, or, where the block compacts (kTotals), what the row kept. Writes the row's count.
template <typename rows, bool kTotals, typename map_t>
__device__ inline void count_row(const map_t &map, unsigned n_rows, int *counts)
{
    const unsigned row = rows::row();
    const bool launched = rows::kRows == 1 || row < n_rows;
    unsigned mapped = launched ? map(row) : 0;
    if constexpr (!kTotals) {
        mapped = __reduce_add_sync(kWholeWarp, mapped);
        mapped = scan_row<rows::kRowWarps, rows::kWarps>(mapped).total;
    }
    if (launched && threadIdx.x % rows::kRowThreads == 0) {
        counts[row] = static_cast<int>(mapped);
    }
}
