// SPDX-License-Identifier: Apache-2.0
// Consecutive ids of a request as slots of a paged cache, and slots as a pool names them.
#pragma once

#include "common/access.cuh"
#include "common/arch.cuh"
#include "common/int_math.cuh"
#include "common/paging.cuh"
#include "common/quad.cuh"
#include "common/window.cuh"

// What a pool calls the first slot of a page, any int32, where its pages lie kSpan ids apart.
// 2^31, negative as an int32, where an int32 can name no such slot or no such id; so is an id
// past 2^31 further on in the page, since it exceeds that by less than a page.
template <int kPageSlots, int kSpan>
__device__ inline unsigned id_of_page(int page)
{
    constexpr unsigned kPages =
        least(kTwo31 / kPageSlots, div_up<unsigned>(kTwo31, kSpan));
    const unsigned number = static_cast<unsigned>(page);
    return number < kPages ? number * kSpan : kTwo31;
}

// What it calls the slot at an offset of a page, or -1.
template <int kPageSlots, int kSpan>
__device__ inline int id_of_entry(int page, unsigned offset)
{
    return greatest(static_cast<int>(id_of_page<kPageSlots, kSpan>(page) + offset), -1);
}

// The same of a slot, any int32.
template <int kPageSlots, int kSpan>
__device__ inline int id_of_slot(int slot)
{
    constexpr unsigned kRest = least<unsigned>(kTwo31 % kSpan, kPageSlots);
    constexpr unsigned long long kNamed = kTwo31 / kSpan * 1ULL * kPageSlots + kRest;
    constexpr unsigned kSlots =
        static_cast<unsigned>(least<unsigned long long>(kNamed, kTwo31));
    const unsigned entry = static_cast<unsigned>(slot);
    const unsigned id = entry / kPageSlots * kSpan + entry % kPageSlots;
    return entry < kSlots ? static_cast<int>(id) : -1;
}

// The page of an id, any int32, or -1.
template <int kPageSlots, int kPages>
__device__ inline int page_of(const int *pages, unsigned id, bool wanted)
{
    return load_if(wanted && id < kPagedIds<kPageSlots, kPages>, pages, id / kPageSlots,
                   -1);
}

// The same of an id of a request, any int32, from its pages.
template <int kPageSlots, int kPages, int kSpan>
__device__ inline int id_of_local(const int *pages, int id)
{
    const unsigned local = static_cast<unsigned>(id);
    return id_of_entry<kPageSlots, kSpan>(page_of<kPageSlots, kPages>(pages, local, true),
                                          local % kPageSlots);
}

// Four neighbours of a row: the ids from `id` on, of which the run has `left` more, then -1. All of
// the run's ids are below 2^31.
template <int kPageSlots, int kPages, int kSpan>
__device__ inline int_quad_t run_quad(const int *pages, unsigned id, unsigned left)
{
    int_quad_t quad;
    if constexpr (kPageSlots < kQuad) {
#pragma unroll
        for (unsigned i = 0; i < kQuad; i++) {
            const int page = page_of<kPageSlots, kPages>(pages, id + i, i < left);
            quad.at[i] = id_of_entry<kPageSlots, kSpan>(page, (id + i) % kPageSlots);
        }
        return quad;
    }
    // The first `rest` of them lie on one page, the others on the next.
    const unsigned offset = id % kPageSlots;
    const unsigned rest = kPageSlots - offset;
    const int low = page_of<kPageSlots, kPages>(pages, id, left > 0);
    const int high =
        page_of<kPageSlots, kPages>(pages, id + rest, rest < least(left, kQuad));
    const unsigned in_low = id_of_page<kPageSlots, kSpan>(low) + offset;
    const unsigned in_high = id_of_page<kPageSlots, kSpan>(high) - rest;
#pragma unroll
    for (unsigned i = 0; i < kQuad; i++) {
        unsigned before = i == 0 || i < rest ? in_low : in_high;
        if (i > 0 && i >= left) {
            before = kTwo31;
        }
        quad.at[i] = greatest(static_cast<int>(before + i), -1);
    }
    return quad;
}

// A row of kColumns columns, the run's ids, then -1, by kLanes threads. What is not launched looks
// nothing up, its run being empty, and writes nothing.
template <unsigned kColumns, int kPageSlots, int kPages, int kSpan, unsigned kLanes>
__device__ inline void write_run(int *row, const int *pages, const run_t &run,
                                 unsigned lane, bool launched)
{
    using quads = quads_of<kColumns, kLanes>;
    const bool wide = takes_quads(row);
    for (unsigned round = 0; round < quads::kRounds; round++) {
        int_quad_t batch[quads::kBatch];
#pragma unroll // look-ups under way together
        for (unsigned i = 0; i < quads::kBatch; i++) {
            const unsigned column = quads::column_of(round, i, lane);
            batch[i] = run_quad<kPageSlots, kPages, kSpan>(pages, run.first + column,
                                                           run.n - least(run.n, column));
        }
        if (launched && !wide) {
            store_batch<kColumns, kLanes, false>(row, round, lane, batch);
        } else if (launched) {
            store_batch<kColumns, kLanes, true>(row, round, lane, batch);
        }
    }
}
