// SPDX-License-Identifier: Apache-2.0
// Rows of ids, each mapped to an index or -1 by itself, read and written once.
//
// A row has a block, and a warp of it takes slices of 128 columns. rows_t says how: columns of a
// row and threads of its block. A row's mapper is made by make_mapper() once its ids are under way;
// mapper.index_of(id) is the index.
//
// A launch of few rows is over sooner with one quad a thread, or two of very long rows; in a
// launch of many, threads have two under way. Which of the two it is, and whether rows take
// quads, is known only after a jump, so what needs no answer is read ahead of it: the thread's
// first ids, the row's request and its validity. The compiler might move those ids ahead of all;
// build/cubin.c looks.
#pragma once

#include "common/access.cuh"
#include "common/arch.cuh"
#include "common/compact.cuh"
#include "common/int_math.cuh"
#include "common/quad.cuh"
#include "common/row_scan.cuh"

template <unsigned kColumns_, unsigned kThreads_>
struct rows_t {
    static constexpr unsigned kColumns = kColumns_;
    static constexpr unsigned kThreads = kThreads_;
    // Large launches of short rows gain when ids leave the cache before indices; longer rows lose.
    static constexpr bool kOnce = kColumns <= 512;
    static constexpr unsigned kWarps = kThreads / kWarp;
    static constexpr unsigned kSlices = div_up<unsigned>(kColumns, kSlice);
    // The row in rounds of kBatch slices for each warp.
    static constexpr unsigned kBatch = least(2u, div_up(kSlices, kWarps));
    static constexpr unsigned kRounds = div_up(kSlices, kBatch *kWarps);

    // Of the thread; the compiler sees from it what warps there are.
    __device__ static unsigned warp()
    {
        return warp_of_thread() % kWarps;
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
    const int valid =
        load_if(args.is_valid_token != nullptr, args.is_valid_token, row, 1);
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

// A row that takes quads, by slices that lie the block's warps apart; the first is loaded.
// Every id stays in its column. Returns what the thread mapped.
template <typename rows, typename make_mapper_t>
__device__ inline unsigned map_row(const make_mapper_t &make_mapper, const int *ids,
                                   int *indices, const int_quad_t &first)
{
    unsigned mapped = 0;
    for (unsigned round = 0; round < rows::kRounds; round++) {
        int_quad_t quads[rows::kBatch];
        const unsigned slice = round * rows::kBatch * rows::kWarps + rows::warp();
#pragma unroll // the batch lives in registers
        for (unsigned i = 0; i < rows::kBatch; i++) {
            quads[i] = round == 0 && i == 0
                           ? first
                           : load_quad<true, rows::kOnce>(ids, slice + i * rows::kWarps,
                                                          rows::kColumns);
        }
        const auto mapper = make_mapper();
#pragma unroll // apart from the stores: all look-ups are under way at once
        for (unsigned i = 0; i < rows::kBatch; i++) {
            quads[i] = map_quad(mapper, quads[i]);
        }
#pragma unroll
        for (unsigned i = 0; i < rows::kBatch; i++) {
            store_quad<true>(indices, slice + i * rows::kWarps, rows::kColumns, quads[i]);
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
    for (unsigned slice = rows::warp(); slice < rows::kSlices; slice += rows::kWarps) {
        const int_quad_t quad =
            map_quad(mapper, load_quad<false>(ids, slice, rows::kColumns));
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
        const unsigned slice = (round * rows::kWarps + rows::warp()) * rows::kBatch;
        int_quad_t quads[rows::kBatch];
#pragma unroll // the batch lives in registers
        for (unsigned i = 0; i < rows::kBatch; i++) {
            quads[i] = load_quad<false>(ids, slice + i, rows::kColumns);
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
        const row_scan_t scan = scan_row<rows::kWarps>(kept);
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
         column += rows::kThreads) {
        indices[column] = -1;
    }
    return done;
}

// For all threads of the block, with what each mapped or, where the block compacts (kTotals),
// what the row kept. Writes the row's count.
template <typename rows, bool kTotals>
__device__ inline void count_row(unsigned mapped, int *count)
{
    if constexpr (!kTotals) {
        mapped = __reduce_add_sync(kWholeWarp, mapped);
        mapped = scan_row<rows::kWarps>(mapped).total;
    }
    if (threadIdx.x == 0) {
        *count = static_cast<int>(mapped);
    }
}
