// SPDX-License-Identifier: Apache-2.0
// Consecutive ids of a request as slots of a paged cache, and slots as a pool names them.
#pragma once

#include "common/arch.cuh"
#include "common/int_math.cuh"
#include "common/paging.cuh"
#include "common/quad.cuh"

// What a pool calls the slot at an offset of a page, where its pages lie kSpan ids apart; -1 where
// an int32 cannot name it. The slot itself must fit, so that only a greater span can exceed it.
template <int kPageSlots, int kSpan>
__device__ inline int id_in_pool(int page, unsigned offset)
{
    if constexpr (kSpan <= kPageSlots) {
        return page * kSpan + static_cast<int>(offset);
    } else {
        const long long id = static_cast<long long>(page) * kSpan + offset;
        return id < kTwo31 ? static_cast<int>(id) : -1;
    }
}

// The same of a slot, which may be any int32: negative ones are -1.
template <int kPageSlots, int kSpan>
__device__ inline int id_of_slot(int slot)
{
    if (slot < 0) {
        return -1;
    }
    if constexpr (kSpan == kPageSlots) {
        return slot;
    } else {
        return id_in_pool<kPageSlots, kSpan>(slot / kPageSlots,
                                             static_cast<unsigned>(slot) % kPageSlots);
    }
}

// The same of an offset of a page that may be any int32.
template <int kPageSlots, int kSpan>
__device__ inline int id_of_entry(int page, unsigned offset)
{
    const bool usable = static_cast<unsigned>(page) < kTwo31 / kPageSlots;
    return usable ? id_in_pool<kPageSlots, kSpan>(page, offset) : -1;
}

// The same of an id of a request, any int32, from its pages.
template <int kPageSlots, int kPages, int kSpan>
__device__ inline int id_of_local(const int *pages, int id)
{
    const unsigned local = static_cast<unsigned>(id);
    if (local >= kPagedIds<kPageSlots, kPages>) {
        return -1;
    }
    return id_of_entry<kPageSlots, kSpan>(__ldg(pages + local / kPageSlots),
                                          local % kPageSlots);
}

// The page of an id, -1 where there is none. Only the load hangs on a condition, so that several
// are under way together.
template <int kPageSlots, int kPages>
__device__ inline int page_of(const int *pages, unsigned id, bool wanted)
{
    const bool paged = wanted && id < kPagedIds<kPageSlots, kPages>;
    return paged ? __ldg(pages + id / kPageSlots) : -1;
}

// The columns of a slice where column j < n holds id first + j, and the others -1. All ids are
// below 2^31.
template <bool kWide, int kPageSlots, int kPages, int kSpan>
__device__ inline int_quad_t run_quad(const int *pages, unsigned first, unsigned n,
                                      unsigned slice)
{
    // Four neighbours lie on two pages at most, unless pages are smaller than they.
    constexpr bool kShares = kWide && kPageSlots >= kQuad;
    const unsigned begin = column_of<kWide>(slice, 0);
    const unsigned last = least(begin + kQuad, n) - 1;
    const bool looks = begin < n;
    const int low = page_of<kPageSlots, kPages>(pages, first + begin, looks);
    const int high = page_of<kPageSlots, kPages>(pages, first + last, looks);
    int_quad_t quad;
#pragma unroll
    for (unsigned i = 0; i < kQuad; i++) {
        const unsigned column = column_of<kWide>(slice, i);
        const unsigned id = first + column;
        const unsigned offset = id % kPageSlots;
        int page = offset < i ? high : low;
        if constexpr (!kShares) {
            page = page_of<kPageSlots, kPages>(pages, id, column < n);
        }
        quad.at[i] = column < n ? id_of_entry<kPageSlots, kSpan>(page, offset) : -1;
    }
    return quad;
}

// A row of kColumns columns: the run's ids, then -1.
template <unsigned kColumns, int kPageSlots, int kPages, int kSpan, bool kWide>
__device__ inline void write_run_slices(int *row, const int *pages, unsigned first,
                                        unsigned n)
{
#pragma unroll 4 // look-ups of several slices in flight
    for (unsigned slice = 0; slice < div_up(kColumns, kSlice); slice++) {
        store_quad<kWide>(
            row, slice, kColumns,
            run_quad<kWide, kPageSlots, kPages, kSpan>(pages, first, n, slice));
    }
}

template <unsigned kColumns, int kPageSlots, int kPages, int kSpan = kPageSlots>
__device__ inline void write_run(int *row, const int *pages, unsigned first, unsigned n)
{
    if (takes_quads(row)) {
        write_run_slices<kColumns, kPageSlots, kPages, kSpan, true>(row, pages, first, n);
    } else {
        write_run_slices<kColumns, kPageSlots, kPages, kSpan, false>(row, pages, first,
                                                                     n);
    }
}
