// SPDX-License-Identifier: Apache-2.0
// Rows of ids, each mapped to an index or -1 by itself, read and written once.
//
// rows_t says how rows meet threads: columns of a row, threads of a row and of a block, and
// whether ids may leave the cache first. Each warp of a row takes slices of 128 columns,
// several in flight at a time. A row's mapper is made by make_mapper() once its ids are
// under way, which do not depend on what it reads; mapper.index_of(id) is the index.
#pragma once

#include "common/arch.cuh"
#include "common/compact.cuh"
#include "common/int_math.cuh"
#include "common/quad.cuh"
#include "common/row_scan.cuh"

template <unsigned kColumns_, unsigned kRowThreads, unsigned kThreads, bool kOnce_>
struct rows_t {
    static constexpr unsigned kColumns = kColumns_;
    static constexpr bool kOnce = kOnce_;
    static constexpr unsigned kBlockThreads = kThreads;
    static constexpr unsigned kWarps = kThreads / kWarp;
    static constexpr unsigned kRowWarps = kRowThreads / kWarp;
    static constexpr unsigned kRows = kWarps / kRowWarps; // of a block
    static constexpr unsigned kSlices = div_up<unsigned>(kColumns, kSlice);
    // The row in rounds of kBatch slices for each warp, of which a round's are neighbours.
    static constexpr unsigned kBatch = least(4u, div_up(kSlices, kRowWarps));
    static constexpr unsigned kRounds = div_up(kSlices, kBatch *kRowWarps);
};

template <typename rows, bool kWide, typename make_mapper_t>
__device__ inline void map_slices(const make_mapper_t &make_mapper, const int *ids,
                                  unsigned slice, int_quad_t (&quads)[rows::kBatch])
{
#pragma unroll // the batch lives in registers
    for (unsigned i = 0; i < rows::kBatch; i++) {
        quads[i] = load_quad<kWide, rows::kOnce>(ids, slice + i, rows::kColumns);
    }
    const auto mapper = make_mapper();
#pragma unroll
    for (unsigned i = 0; i < rows::kBatch; i++) {
#pragma unroll
        for (unsigned j = 0; j < kQuad; j++) {
            quads[i].at[j] = mapper.index_of(quads[i].at[j]);
        }
    }
}

// Every id stays in its column. Returns what the thread mapped.
template <typename rows, bool kWide, typename make_mapper_t>
__device__ inline unsigned map_row(const make_mapper_t &make_mapper, const int *ids,
                                   int *indices)
{
    unsigned mapped = 0;
    for (unsigned round = 0; round < rows::kRounds; round++) {
        const unsigned slice =
            (round * rows::kRowWarps + warp_of_thread() % rows::kRowWarps) * rows::kBatch;
        int_quad_t quads[rows::kBatch];
        map_slices<rows, kWide>(make_mapper, ids, slice, quads);
#pragma unroll
        for (unsigned i = 0; i < rows::kBatch; i++) {
            store_quad<kWide>(indices, slice + i, rows::kColumns, quads[i]);
#pragma unroll
            for (unsigned j = 0; j < kQuad; j++) {
                mapped += quads[i].at[j] >= 0;
            }
        }
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
        const unsigned slice =
            (round * rows::kRowWarps + warp_of_thread()) * rows::kBatch;
        int_quad_t quads[rows::kBatch];
        map_slices<rows, false>(make_mapper, ids, slice, quads);
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
