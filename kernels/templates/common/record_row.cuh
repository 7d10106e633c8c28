// SPDX-License-Identifier: Apache-2.0
// A row of c128a_topk where one rank has all records. Its constants stand before this.
//
// A warp of each block of one x takes pieces of the row, in turn. What a warp waits for is
// its look-ups: those of two pieces are under way at once.
#pragma once

#include "common/access.cuh"
#include "common/paging.cuh"
#include "common/quad.cuh"

// A piece is kPiece slices; a lane has a quad of each.
constexpr unsigned kPiece = 2;

// Neighbours in a quad that surely share a page.
constexpr unsigned kSharing = kBlockSize % 4 == 0 ? 4 : kBlockSize % 2 == 0 ? 2 : 1;

// Column j < n holds record j: its slot (kPaged) or just its number.
template <bool kPaged>
__device__ inline int entry_of(unsigned record, unsigned n, int page)
{
    const int entry = kPaged ? slot_in_page<kBlockSize>(page, record % kBlockSize)
                             : static_cast<int>(record);
    return record < n ? entry : -1;
}

// The pages of a lane's columns of a piece, -1 past n: as one address and constants, and
// no look-up waits for another.
template <bool kPaged>
__device__ inline void look_up(const int *pages, unsigned first, unsigned n,
                               int_quad_t (&quads)[kPiece])
{
    if (!kPaged) {
        return;
    }
    const int *near = pages + first / kBlockSize;
#pragma unroll
    for (unsigned i = 0; i < kPiece; i++) {
#pragma unroll
        for (unsigned j = 0; j < kQuad; j++) {
            const unsigned offset = i * kSlice + j;
            const unsigned page = (first % kBlockSize + offset) / kBlockSize;
            quads[i].at[j] = j % kSharing == 0
                                 ? load_if(first + offset < n, near, page, -1)
                                 : quads[i].at[j - j % kSharing];
        }
    }
}

template <bool kPaged>
__device__ inline void write_piece(int *row, unsigned first, unsigned whole, unsigned n,
                                   int_quad_t (&quads)[kPiece])
{
    int *out = row + first;
#pragma unroll
    for (unsigned i = 0; i < kPiece; i++) {
        const unsigned column = first + i * kSlice;
#pragma unroll
        for (unsigned j = 0; j < kQuad; j++) {
            quads[i].at[j] = entry_of<kPaged>(column + j, n, quads[i].at[j]);
        }
        if (column < whole) {
            store_whole_quad(out + i * kSlice, quads[i]);
        }
    }
}

// In quads where the row's address allows.
template <bool kPaged>
__device__ inline void write_row(int *row, unsigned width, unsigned n, const int *pages)
{
    const unsigned whole = takes_quads(row) ? width / kQuad * kQuad : 0;
    const unsigned step = gridDim.y * kPiece * kSlice;
    const unsigned begin = column_of<true>(blockIdx.y * kPiece, 0);
#pragma unroll 1 // short code is better
    for (unsigned first = begin; first < whole; first += 2 * step) {
        const unsigned next = first + step;
        int_quad_t quads[kPiece] = {};
        int_quad_t next_quads[kPiece] = {};
        look_up<kPaged>(pages, first, n, quads);
        if (next < whole) {
            look_up<kPaged>(pages, next, n, next_quads);
        }
        write_piece<kPaged>(row, first, whole, n, quads);
        if (next < whole) {
            write_piece<kPaged>(row, next, whole, n, next_quads);
        }
    }
    const unsigned rest = whole + blockIdx.y * kWarp + lane_of_thread();
#pragma unroll 1
    for (unsigned column = rest; column < width; column += gridDim.y * kWarp) {
        const int page =
            kPaged ? load_if(column < n, pages, column / kBlockSize, -1) : -1;
        row[column] = entry_of<kPaged>(column, n, page);
    }
}
