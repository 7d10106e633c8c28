#line 1 "mixed_sparse_indices.cu"
// SPDX-License-Identifier: Apache-2.0
// mixed_sparse_indices: one matrix of window and compressed ids for a mixed batch.
//
//   Ws = kSwaWidth + align(kImageWidth, 4),  Kp = align(max(kTopk, kDecodeTopk), 4)
//   columns [0, Ws):       decode: the given slots; prefill: the window, looked up
//   columns [Ws, Ws + Kp): decode: the given slots, or with kDecodeLocal ids, looked up;
//                          prefill: min((pos + 1) / kCompressRatio, kTopk) picks, looked up
//   each part ends with -1; sparse_lens[t] = Ws + entries of the second part
//   slot x is named x / block * span + x % block; -1 where that does not fit int32
//
// In:  query_start_loc[num_requests + 1], seq_lens[num_requests], swa_block_table[swa_table_rows,
//      kSwaTableWidth], block_table[table_rows, kTableWidth], for each token token_to_req,
//      is_valid_token (bytes), left_visible and right_visible, the last three or null; for decode
//      tokens decode_swa_indices[., kSwaWidth], decode_compressed_indices[., kDecodeTopk],
//      decode_compressed_lens or null; for the others prefill_topk_indices[., max(kTopk, 1)].
// Out: sparse_indices[num_tokens, Ws + Kp], sparse_lens[num_tokens]. All int32.
//
// kRowThreads threads share a row; a block has several rows of one warp, or one row of several. A
// thread takes four neighbouring columns at a time; of the compressed part it fetches up to sixteen
// before it uses the first. Accesses are of 16 bytes where all rows are aligned to that. Shared
// memory: kRowThreads / 32 ints where several warps count local ids.
#ifndef KILN_PRELUDE
constexpr int kWindow = 128;        // raw tokens of the sliding window
constexpr int kSwaWidth = 128;      // columns of a given window row
constexpr int kImageWidth = 0;      // further window columns for image spans
constexpr int kCompressRatio = 4;   // raw tokens of a record; 0: no records
constexpr int kTopk = 512;          // columns of prefill_topk_indices; 0: none
constexpr int kDecodeTopk = 512;    // columns of decode_compressed_indices; 0: none
constexpr bool kDecodeLocal = true; // those are ids of a request; false: slots
constexpr int kSwaBlockSize = 64;   // slots of a page of the window's cache
constexpr int kSwaSpan = 64;        // ids between its pages
constexpr int kSwaTableWidth = 16384;
constexpr int kSwaTableStride = 16384;
constexpr int kBlockSize = 64; // the same of the compressed cache
constexpr int kSpan = 64;
constexpr int kTableWidth = 4096;
constexpr int kTableStride = 4096;
constexpr int kThreads = 128;   // threads of a block
constexpr int kRowThreads = 32; // threads of a row
#endif

static_assert(kWindow >= 1 && kSwaWidth >= kWindow && kImageWidth >= 0,
              "window must be at least 1, swa_width at least window, image_width 0");
static_assert(kCompressRatio >= 0 && kTopk >= 0 && kDecodeTopk >= 0,
              "compress_ratio, topk and decode_topk must not be negative");
static_assert(kSwaBlockSize >= 1 && kSwaSpan >= 1 && kBlockSize >= 1 && kSpan >= 1,
              "block sizes and spans must be at least 1");
static_assert(kSwaTableWidth >= 1 && kSwaTableWidth <= kSwaTableStride &&
                  kTableWidth >= 1 && kTableWidth <= kTableStride,
              "table widths must be at least 1, their strides at least the widths");
static_assert(kRowThreads % 32 == 0 && kThreads % kRowThreads == 0,
              "a row takes whole warps, a block whole rows");

#line 1 "common/arch.cuh"
// SPDX-License-Identifier: Apache-2.0
// Facts of the hardware, by name.


constexpr unsigned kWarp = 32; // threads that run in step
constexpr unsigned kWholeWarp = 0xffffffffu;
constexpr unsigned kTwo31 = 1u << 31; // every int32 that is not negative is below it

// Blocks of so many threads that fill an SM, or a part of it: a hint for __launch_bounds__ of how
// many registers a thread may have. No more than every SM can hold.
#ifdef __CUDA_ARCH__
constexpr bool kSmHolds2048 = __CUDA_ARCH__ == 800 || __CUDA_ARCH__ == 900 ||
                              __CUDA_ARCH__ == 1000 || __CUDA_ARCH__ == 1030;

template <int kBlockThreads, int kPart>
constexpr int kBlocksThatFit = (kSmHolds2048 ? 2048 : 1536) / kPart / kBlockThreads;

template <int kBlockThreads, int kPart = 1>
constexpr int kBlocksOfSm =
    kBlocksThatFit<kBlockThreads, kPart> < 1    ? 1
    : kBlocksThatFit<kBlockThreads, kPart> < 16 ? kBlocksThatFit<kBlockThreads, kPart>
                                                : 16;
#else
template <int, int = 1>
constexpr int kBlocksOfSm = 1;
#endif

__device__ inline unsigned lane_of_thread()
{
    return threadIdx.x % kWarp;
}

__device__ inline unsigned warp_of_thread()
{
    return threadIdx.x / kWarp;
}
#line 55 "mixed_sparse_indices.cu"
#line 1 "common/count.cuh"
// SPDX-License-Identifier: Apache-2.0
// A count given by value or by device address: struct kiln_count, byte for byte.


#line 1 "common/access.cuh"
// SPDX-License-Identifier: Apache-2.0
// Accesses under a condition: loads of arrays that no kernel writes, stores.
//
// One predicated instruction each. Of an `if` the compiler makes more: it may jump, and it forms
// the address under the condition too, so that the fetch of the array's argument, from memory that
// is cold when a kernel begins, waits for what is tested. Volatile and coherent, so that no load
// is moved ahead of wait_for_previous_kernel().


#ifdef __CUDA_ARCH__
__device__ inline int load_if(bool wanted, const int *array, long long index,
                              int otherwise)
{
    asm volatile("{.reg .pred wanted; setp.ne.b32 wanted, %2, 0;"
                 "@wanted ld.global.b32 %0, [%1];}"
                 : "+r"(otherwise)
                 : "l"(array + index), "r"(static_cast<int>(wanted)));
    return otherwise;
}

__device__ inline int load_if(bool wanted, const unsigned char *array, long long index,
                              int otherwise)
{
    asm volatile("{.reg .pred wanted; setp.ne.b32 wanted, %2, 0;"
                 "@wanted ld.global.u8 %0, [%1];}"
                 : "+r"(otherwise)
                 : "l"(array + index), "r"(static_cast<int>(wanted)));
    return otherwise;
}

__device__ inline void store_if(bool wanted, int *array, long long index, int value)
{
    asm volatile("{.reg .pred wanted; setp.ne.b32 wanted, %2, 0;"
                 "@wanted st.global.b32 [%0], %1;}"
                 :
                 : "l"(array + index), "r"(value), "r"(static_cast<int>(wanted))
                 : "memory");
}
#else
template <typename element_t>
inline int load_if(bool wanted, const element_t *array, long long index, int otherwise)
{
    return wanted ? array[index] : otherwise;
}

inline void store_if(bool wanted, int *array, long long index, int value)
{
    if (wanted) {
        array[index] = value;
    }
}
#endif
#line 6 "common/count.cuh"

struct count_t {
    const int *address;
    int value;
    int kind;
};

constexpr int kCountAbsent = 0;
constexpr int kCountValue = 1;
constexpr int kCountDevice = 2;

// All threads of a launch see the same kind.
__device__ inline int read_count(const count_t &count, int if_absent)
{
    const int given = count.kind == kCountValue ? count.value : if_absent;
    return load_if(count.kind == kCountDevice, count.address, 0, given);
}
#line 56 "mixed_sparse_indices.cu"
#line 1 "common/int_math.cuh"
// SPDX-License-Identifier: Apache-2.0
// Integer arithmetic that is there under every compiler, on constants and at run time.


template <typename int_t>
__host__ __device__ constexpr int_t least(int_t a, int_t b)
{
    return a < b ? a : b;
}

template <typename int_t>
__host__ __device__ constexpr int_t greatest(int_t a, int_t b)
{
    return a > b ? a : b;
}

template <typename int_t>
__host__ __device__ constexpr int_t clamp(int_t value, int_t low, int_t high)
{
    return value < low ? low : value > high ? high : value;
}

// For value >= 0 and unit > 0; the sum of both must fit the type.
template <typename int_t>
__host__ __device__ constexpr int_t div_up(int_t value, int_t unit)
{
    return (value + unit - 1) / unit;
}
#line 57 "mixed_sparse_indices.cu"
#line 1 "common/launch_order.cuh"
// SPDX-License-Identifier: Apache-2.0
// The order of launches. A programmatic launch may start before the kernel ahead of it on the
// stream has ended; every other launch starts after, and waits here for nothing.


#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
// First in every entry, by all threads: nothing of this kernel may touch memory before.
__device__ inline void wait_for_previous_kernel()
{
    asm volatile("griddepcontrol.wait;" ::: "memory");
}

// The kernel behind may start as soon as all blocks are here, as it waits in turn for the end of
// this one, and so of all ahead. Each block sends a message for it: short kernels of thousands of
// blocks, which leave the next one no room anyway, are over sooner without.
__device__ inline void let_next_kernel_start()
{
    asm volatile("griddepcontrol.launch_dependents;");
}
#else
// Older GPUs, and the CPU, have no programmatic launches.
__device__ inline void wait_for_previous_kernel()
{
}

__device__ inline void let_next_kernel_start()
{
}
#endif
#line 58 "mixed_sparse_indices.cu"
#line 1 "common/paged_run.cuh"
// SPDX-License-Identifier: Apache-2.0
// Consecutive ids of a request as slots of a paged cache, and slots as a pool names them.





#line 1 "common/paging.cuh"
// SPDX-License-Identifier: Apache-2.0
// From ids local to a request to slots of a paged cache.
//
// Under context parallelism ids are dealt to kWorld ranks in runs of kInterleave, and a
// rank stores its own densely: an id is number `local` of its owner. Since kInterleave
// divides the page, local / kPageSlots and local % kPageSlots are the logical page and
// the offset that the formula over pages of kPageSlots * kWorld ids gives.





struct owned_t {
    unsigned local;
    bool mine;
};

// Divisors past 2^31 act like 2^31: every id is below both. With one rank an id is its
// own local; a negative one, taken as unsigned, is past every page.
template <int kWorld, int kInterleave>
__device__ inline owned_t owned_by(int id, int rank)
{
    const unsigned index = static_cast<unsigned>(id);
    if constexpr (kWorld == 1) {
        return {index, true};
    } else {
        constexpr long long kAllRuns = static_cast<long long>(kInterleave) * kWorld;
        constexpr unsigned kRound =
            static_cast<unsigned>(least<long long>(kAllRuns, kTwo31));
        constexpr unsigned kRun = kInterleave;
        const unsigned owner = index / kRun % kWorld;
        return {index / kRound * kRun + index % kRun,
                id >= 0 && owner == static_cast<unsigned>(rank)};
    }
}

// How many of the ids [0, n) are the rank's, n >= 0: their locals are [0, that).
template <int kWorld, int kInterleave>
__device__ inline int owned_below(int n, int rank)
{
    if constexpr (kWorld == 1) {
        return n;
    } else {
        constexpr long long kRound = static_cast<long long>(kInterleave) * kWorld;
        const long long begin = static_cast<long long>(kInterleave) * rank;
        const long long rest = clamp<long long>(n % kRound - begin, 0, kInterleave);
        return static_cast<int>(n / kRound * kInterleave + rest);
    }
}

// Locals below it have a logical page. At most 2^31, so that one unsigned compare with it
// turns negative ids away too.
template <int kPageSlots, int kPages>
constexpr unsigned kPagedIds = static_cast<unsigned>(
    least<long long>(static_cast<long long>(kPageSlots) * kPages, kTwo31));

// Where the pages of a request begin. Of one that the table lacks nothing may be read: then
// it is only a number, which no pointer arithmetic could make.
template <int kStride>
__device__ inline const int *pages_of(const int *table, unsigned request)
{
    constexpr unsigned long long kRowBytes = sizeof(int) * kStride;
    return reinterpret_cast<const int *>(reinterpret_cast<unsigned long long>(table) +
                                         kRowBytes * request);
}

// The slot at an offset of a page, or -1 for a page whose slots an int32 cannot name.
template <int kPageSlots>
__device__ inline int slot_in_page(int page, unsigned offset)
{
    const bool usable = static_cast<unsigned>(page) < kTwo31 / kPageSlots;
    return usable ? page * kPageSlots + static_cast<int>(offset) : -1;
}
#line 9 "common/paged_run.cuh"
#line 1 "common/quad.cuh"
// SPDX-License-Identifier: Apache-2.0
// A warp's access to a slice of a row of int32: 128 columns, four for each lane.
//
// Arrays are aligned to their element and no more. Where a row's address allows (kWide) a
// lane's four columns are neighbours and move at once; elsewhere they lie a warp apart,
// so that the accesses of a warp are dense all the same.






constexpr unsigned kQuad = 4; // int32 of a 16-byte access, the widest there is
constexpr unsigned kSlice = kWarp * kQuad;

struct int_quad_t {
    int at[kQuad];
};

// Do all these rows? The same for all threads of a row.
template <typename... others_t>
__device__ inline bool takes_quads(const int *row, const others_t *...others)
{
    const auto addresses = (reinterpret_cast<unsigned long long>(row) | ... |
                            reinterpret_cast<unsigned long long>(others));
    return addresses % sizeof(int_quad_t) == 0;
}

// Column i of the lane's four.
template <bool kWide>
__device__ inline unsigned column_of(unsigned slice, unsigned i)
{
    const unsigned lane = lane_of_thread();
    return slice * kSlice + (kWide ? lane * kQuad + i : i * kWarp + lane);
}

// Four neighbours, from a column on that takes a 16-byte access. What is accessed once (kOnce)
// may leave the cache first.
template <bool kOnce = false>
__device__ inline int_quad_t load_whole_quad(const int *address)
{
    const int4 *whole_address = reinterpret_cast<const int4 *>(address);
    const int4 whole = kOnce ? __ldcs(whole_address) : __ldg(whole_address);
    return {whole.x, whole.y, whole.z, whole.w};
}

template <bool kOnce = false>
__device__ inline void store_whole_quad(int *address, const int_quad_t &quad)
{
    int4 *whole_address = reinterpret_cast<int4 *>(address);
    const int4 whole = make_int4(quad.at[0], quad.at[1], quad.at[2], quad.at[3]);
    if constexpr (kOnce) {
        __stcs(whole_address, whole);
    } else {
        *whole_address = whole;
    }
}

// Columns at or past width are not read and come back as -1.
template <bool kWide, bool kOnce = false>
__device__ inline int_quad_t load_quad(const int *row, unsigned slice, unsigned width)
{
    const unsigned first = column_of<kWide>(slice, 0);
    if (kWide && first / kQuad < width / kQuad) {
        return load_whole_quad<kOnce>(row + first);
    }
    int_quad_t quad;
#pragma unroll
    for (unsigned i = 0; i < kQuad; i++) {
        const unsigned column = column_of<kWide>(slice, i);
        quad.at[i] = column < width ? __ldg(row + column) : -1;
    }
    return quad;
}

// Columns at or past width are not written.
template <bool kWide>
__device__ inline void store_quad(int *row, unsigned slice, unsigned width,
                                  const int_quad_t &quad)
{
    const unsigned first = column_of<kWide>(slice, 0);
    if (kWide && first / kQuad < width / kQuad) {
        store_whole_quad(row + first, quad);
        return;
    }
#pragma unroll
    for (unsigned i = 0; i < kQuad; i++) {
        const unsigned column = column_of<kWide>(slice, i);
        if (column < width) {
            row[column] = quad.at[i];
        }
    }
}

// A row of kWidth columns that kLanes threads share in quads of neighbours: in each round a thread
// has kBatch of them.
template <unsigned kWidth, unsigned kLanes>
struct quads_of {
    static constexpr unsigned kTurns = greatest(1u, div_up(kWidth, kLanes *kQuad));
    static constexpr unsigned kBatch = least(4u, kTurns);
    static constexpr unsigned kRounds = div_up(kTurns, kBatch);
    static_assert(1ULL * kRounds * kBatch * kLanes * kQuad <= kTwo31,
                  "columns are compared as int");

    __device__ static unsigned column_of(unsigned round, unsigned i, unsigned lane)
    {
        return ((round * kBatch + i) * kLanes + lane) * kQuad;
    }
};

// A thread's quad from `column` on; where rows are not aligned (not kWide), one by one. Columns at
// or past kWidth are not read and come back as -1, as all do that are not wanted.
template <unsigned kWidth, bool kWide>
__device__ inline int_quad_t load_neighbours(const int *row, unsigned column, bool wanted)
{
    constexpr int kWhole = kWide ? kWidth / kQuad * kQuad : 0;
    const bool is_whole = static_cast<int>(column) < kWhole;
    int4 whole = make_int4(-1, -1, -1, -1);
    if (wanted && is_whole) {
        whole = __ldg(reinterpret_cast<const int4 *>(row + column));
    }
    int_quad_t quad = {whole.x, whole.y, whole.z, whole.w};
    if constexpr (kWhole < static_cast<int>(kWidth)) {
#pragma unroll
        for (unsigned i = 0; i < kQuad; i++) {
            const bool alone = !is_whole && column + i < kWidth;
            quad.at[i] = load_if(wanted && alone, row, column + i, quad.at[i]);
        }
    }
    return quad;
}

// Columns at or past kWidth are not written.
template <unsigned kWidth, bool kWide>
__device__ inline void store_neighbours(int *row, unsigned column, const int_quad_t &quad)
{
    constexpr int kWhole = kWide ? kWidth / kQuad * kQuad : 0;
    const bool is_whole = static_cast<int>(column) < kWhole;
    if (is_whole) {
        store_whole_quad(row + column, quad);
    }
    if constexpr (kWhole < static_cast<int>(kWidth)) {
#pragma unroll
        for (unsigned i = 0; i < kQuad; i++) {
            if (!is_whole && column + i < kWidth) {
                row[column + i] = quad.at[i];
            }
        }
    }
}

template <unsigned kWidth, unsigned kLanes, bool kWide>
__device__ inline void
store_batch(int *row, unsigned round, unsigned lane,
            const int_quad_t (&batch)[quads_of<kWidth, kLanes>::kBatch])
{
    using quads = quads_of<kWidth, kLanes>;
#pragma unroll
    for (unsigned i = 0; i < quads::kBatch; i++) {
        store_neighbours<kWidth, kWide>(row, quads::column_of(round, i, lane), batch[i]);
    }
}
#line 10 "common/paged_run.cuh"
#line 1 "common/window.cuh"
// SPDX-License-Identifier: Apache-2.0
// Sliding windows: the positions that a token sees, where its request is known.





// Positions [start, end) of a sequence; none where end <= start.
struct range_t {
    long long start;
    long long end;
};

// A token's position: what its request lacks to its end, off the length of its sequence.
__device__ inline long long position_of(long long token, long long query_end,
                                        long long seq_len)
{
    return seq_len - (query_end - token);
}

// Tokens of an image that are seen before or after a token; arrays may be null.
template <int kImageWidth>
__device__ inline int visible_at(const int *visible, unsigned token)
{
    if (kImageWidth == 0) {
        return 0;
    }
    return greatest(load_if(visible != nullptr, visible, token, 0), 0);
}

// Before it is cut at its end to the columns that a row has for it.
template <int kWindow>
__device__ inline range_t whole_window(long long position, long long seq_len,
                                       long long left, long long right)
{
    const long long before = greatest<long long>(left, kWindow - 1);
    return {greatest<long long>(position - before, 0),
            least(position + right + 1, seq_len)};
}

template <int kWindow, int kImageWidth>
__device__ inline range_t window_of(long long position, long long seq_len, long long left,
                                    long long right)
{
    constexpr long long kMost = static_cast<long long>(kWindow) + kImageWidth;
    const range_t whole = whole_window<kWindow>(position, seq_len, left, right);
    return {whole.start, least(whole.end, whole.start + kMost)};
}

// Positions [first, first + n), which all are below 2^31; n is 0 where there are none.
struct run_t {
    unsigned first;
    unsigned n;
};

// The same window in 32 bits, of a token of a request whose queries end at query_end. left and
// right are not negative.
template <int kWindow, int kImageWidth>
__device__ inline run_t window_run(int token, int query_end, int seq_len, int left,
                                   int right)
{
    constexpr unsigned kMost = static_cast<unsigned>(kWindow) + kImageWidth;
    const unsigned length = greatest(seq_len, 0);
    // Below length for a token before query_end, else not; unless 32 bits do not hold it: then
    // it is before the sequence, or further past its end than a token sees.
    const unsigned position =
        length + static_cast<unsigned>(token) - static_cast<unsigned>(query_end);
    const bool held = (position < length) == (token < query_end);
    const unsigned end = held ? length : 0;
    const unsigned before =
        least(position, static_cast<unsigned>(greatest(left, kWindow - 1)));
    const unsigned first = position - before;
    const unsigned seen = least(before + 1 + static_cast<unsigned>(right), kMost);
    return {first, least(seen, end - least(first, end))};
}
#line 11 "common/paged_run.cuh"

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
#line 59 "mixed_sparse_indices.cu"


#line 1 "common/records.cuh"
// SPDX-License-Identifier: Apache-2.0
// Compressed records: one for each kRatio consecutive raw tokens, complete with the last.




// Records that are complete once `position` is known, at most `limit`; kRatio 0: there
// are none. Unsigned, because the last position of all has a successor only there.
template <int kRatio>
__device__ inline int complete_records(long long position, int limit)
{
    if constexpr (kRatio == 0) {
        return 0;
    } else {
        if (position < 0) {
            return 0;
        }
        const unsigned long long seen = static_cast<unsigned long long>(position) + 1;
        return static_cast<int>(least<unsigned long long>(seen / kRatio, limit));
    }
}
#line 62 "mixed_sparse_indices.cu"
#line 1 "common/report.cuh"
// SPDX-License-Identifier: Apache-2.0
// The checked build: what the rules turned away goes to a report, and results stay.
//
// kOp and kChecked stand in every prelude. What a kernel checks it checks last, under
// `if constexpr (kChecked)`, and looks at the inputs anew, in plain code: so nothing in its
// own path is another.




#ifndef KILN_PRELUDE
constexpr int kOp = 1;           // enum kiln_op, whose kernel this is
constexpr bool kChecked = false; // the checked build
#endif

// struct kiln_report_entry and struct kiln_report, byte for byte.
struct report_entry_t {
    int op;
    int row;
    int column;
    int reason;
    long long value;
};

struct report_t {
    unsigned long long n_found;
    unsigned capacity;
    unsigned reserved;
};

// enum kiln_reason.
constexpr int kReasonRequest = 1;
constexpr int kReasonId = 2;
constexpr int kReasonPage = 3;
constexpr int kReasonRange = 4;
constexpr int kReasonLength = 5;
constexpr int kReasonLiveTokens = 6;
constexpr int kReasonDecodeTokens = 7;
constexpr int kReasonActiveWidth = 8;
constexpr int kReasonFirstRequest = 9;
constexpr int kReasonSpans = 10;

// Ids that say "none"; they are not worth a word.
constexpr int kNone = -1;

// The first `capacity` entries are kept, all are counted. Where nothing is to be reported
// (no report), nothing is.
__device__ inline void report(report_t *to, int reason, long long row, long long column,
                              long long value)
{
    if (to == nullptr) {
        return;
    }
    const unsigned long long place = atomicAdd(&to->n_found, 1ull);
    if (place < to->capacity) {
        reinterpret_cast<report_entry_t *>(to + 1)[place] = {
            kOp, static_cast<int>(row), static_cast<int>(column), reason, value};
    }
}

// By one thread of the launch: a count that is given and not in [0, most].
__device__ inline void report_count(report_t *to, int reason, const count_t &count,
                                    int most)
{
    const int value = read_count(count, 0);
    if (value < 0 || value > most) {
        report(to, reason, -1, -1, value);
    }
}

// The thread that speaks for the launch.
__device__ inline bool is_first_thread()
{
    return blockIdx.x == 0 && blockIdx.y == 0 && threadIdx.x == 0;
}
#line 63 "mixed_sparse_indices.cu"
#line 1 "common/row_scan.cuh"
// SPDX-License-Identifier: Apache-2.0
// Sums over the warps of a block that has one row.




struct row_scan_t {
    unsigned before; // of the warps before this one
    unsigned total;
};

// For all threads of the block, with the same count in each lane of a warp. Shared memory: an int
// for each warp where there are several. Before the block calls it again it has to meet.
template <unsigned kWarps>
__device__ inline row_scan_t scan_row(unsigned count)
{
    if constexpr (kWarps == 1) {
        return {0, count};
    } else {
        __shared__ unsigned counts[kWarps];
        const unsigned warp = warp_of_thread();
        if (lane_of_thread() == 0) {
            counts[warp] = count;
        }
        __syncthreads();
        row_scan_t scan = {0, 0};
#pragma unroll
        for (unsigned i = 0; i < kWarps; i++) {
            scan.before += i < warp ? counts[i] : 0;
            scan.total += counts[i];
        }
        return scan;
    }
}
#line 64 "mixed_sparse_indices.cu"


struct args_t {
    const int *query_start_loc;
    const int *seq_lens;
    const int *token_to_req;
    const unsigned char *is_valid_token;
    const int *swa_block_table;
    const int *block_table;
    const int *decode_swa_indices;
    const int *decode_compressed_indices;
    const int *decode_compressed_lens;
    const int *prefill_topk_indices;
    const int *left_visible;
    const int *right_visible;
    int *sparse_indices;
    int *sparse_lens;
    count_t num_decode_tokens;
    count_t live_tokens;
    int num_tokens;
    int num_requests;
    int swa_table_rows;
    int table_rows;
    report_t *report;
};

constexpr long long kImageColumns = div_up<long long>(kImageWidth, kQuad) * kQuad;
constexpr long long kRecordColumns =
    div_up<long long>(greatest(kTopk, kDecodeTopk), kQuad) * kQuad;
constexpr long long kColumns = kSwaWidth + kImageColumns + kRecordColumns;
static_assert(kColumns < kTwo31, "a row has fewer than 2^31 columns");
constexpr unsigned kWindowColumns = kSwaWidth + kImageColumns; // Ws

constexpr unsigned kRowWarps = kRowThreads / kWarp;
constexpr unsigned kRows = kThreads / kRowThreads;
constexpr int kSmBlocks =
    kBlocksOfSm<kThreads, 2>; // registers for all of a thread's loads
static_assert(kRows == 1 || kRowThreads == kWarp, "only a warp shares its block");

// What a thread has of either part.
using window_quads = quads_of<kWindowColumns, kRowThreads>;
using record_quads = quads_of<kRecordColumns, kRowThreads>;

// Decode rows that are looked up, so that their length is not known before.
constexpr bool kCounts = kDecodeLocal && kDecodeTopk > 0;

// Both are of this kernel alone.
#line 1 "common/mixed_checks.cuh"
// SPDX-License-Identifier: Apache-2.0
// The checked build of mixed_sparse_indices, whose args_t and constants stand before this.


#line 1 "common/check.cuh"
// SPDX-License-Identifier: Apache-2.0
// The checked build: what keeps an id of a request from an index, step by step.






// Where an entry goes, and what it speaks of.
struct report_at_t {
    report_t *to;
    long long row;
    long long column;
};

// An id, any int32: its number among the rank's own, or -1 where it has no page. Ids of other
// ranks are theirs to report; one below -1 is nobody's.
template <int kWorld, int kInterleave, int kPageSlots, int kPages>
__device__ inline int check_id(const report_at_t &at, int id, int rank)
{
    const owned_t owned = owned_by<kWorld, kInterleave>(id, rank);
    if (id == kNone || (id >= 0 && !owned.mine)) {
        return -1;
    }
    if (id < 0 || owned.local >= kPagedIds<kPageSlots, kPages>) {
        report(at.to, kReasonId, at.row, at.column, id);
        return -1;
    }
    return static_cast<int>(owned.local);
}

// Whether a page, any int32, is one of the first kUsable: kTwo31 / kPageSlots where slots
// are int32, kTwo31 where they are int64.
template <unsigned kUsable>
__device__ inline bool check_page(const report_at_t &at, int page)
{
    const bool usable = static_cast<unsigned>(page) < kUsable;
    if (!usable) {
        report(at.to, kReasonPage, at.row, at.column, page);
    }
    return usable;
}

// An index, which an int32 must hold.
__device__ inline void check_range(const report_at_t &at, long long index)
{
    if (index < 0 || index >= kTwo31) {
        report(at.to, kReasonRange, at.row, at.column, index);
    }
}
#line 6 "common/mixed_checks.cuh"
#line 1 "common/check_length.cuh"
// SPDX-License-Identifier: Apache-2.0
// The checked build: ranges of positions that are cut.





// A range of which kMost positions are kept; `once` is null for all threads of the row but
// one.
template <long long kMost>
__device__ inline void check_length(report_t *once, long long row, const range_t &range)
{
    const long long length = range.end - range.start;
    if (length > kMost) {
        report(once, kReasonLength, row, -1, length);
    }
}
#line 7 "common/mixed_checks.cuh"
#line 1 "common/mixed_rows.cuh"
// SPDX-License-Identifier: Apache-2.0
// The rows of mixed_sparse_indices, whose args_t and constants stand before this.








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
#line 8 "common/mixed_checks.cuh"


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
#line 112 "mixed_sparse_indices.cu"


template <bool kDecode>
__device__ inline int record_of(const int *pages, int id)
{
    return kDecode && !kDecodeLocal
               ? id_of_slot<kBlockSize, kSpan>(id)
               : id_of_local<kBlockSize, kTableWidth, kSpan>(pages, id);
}

// What a row is made of.
struct row_arrays_t {
    const int *given;     // of a decode row: its window
    const int *ids;       // of the compressed part
    const int *swa_pages; // where its window is looked up
    const int *pages;
    int *indices;
};

// The window of a decode row; `quad` holds what the thread has of it first.
template <bool kWide>
__device__ inline void copy_window(const row_arrays_t &arrays, bool live, unsigned thread,
                                   int_quad_t quad)
{
    for (unsigned turn = 0; turn < window_quads::kTurns; turn++) {
        const unsigned column = (turn * kRowThreads + thread) * kQuad;
        if (turn > 0) {
            quad = load_neighbours<kSwaWidth, kWide>(arrays.given, column, true);
        }
#pragma unroll
        for (unsigned i = 0; i < kQuad; i++) {
            quad.at[i] = live ? id_of_slot<kSwaBlockSize, kSwaSpan>(quad.at[i]) : -1;
        }
        store_neighbours<kWindowColumns, kWide>(arrays.indices, column, quad);
    }
}

// Of the first n columns.
template <bool kWide, bool kDecode>
__device__ inline void load_records(const row_arrays_t &arrays, unsigned round,
                                    unsigned thread, unsigned n,
                                    int_quad_t (&batch)[record_quads::kBatch])
{
    constexpr unsigned kWidth = kDecode ? kDecodeTopk : kTopk;
#pragma unroll // all under way together
    for (unsigned i = 0; i < record_quads::kBatch; i++) {
        const unsigned column = record_quads::column_of(round, i, thread);
        batch[i] = load_neighbours<kWidth, kWide>(arrays.ids, column, column < n);
    }
}

// `batch` holds what the thread has first. Returns what it mapped.
template <bool kWide, bool kDecode>
__device__ inline unsigned map_records(const row_arrays_t &arrays, unsigned n,
                                       unsigned thread,
                                       int_quad_t (&batch)[record_quads::kBatch])
{
    unsigned mapped = 0;
    for (unsigned round = 0; round < record_quads::kRounds; round++) {
        if (round > 0) {
            load_records<kWide, kDecode>(arrays, round, thread, n, batch);
        }
#pragma unroll
        for (unsigned i = 0; i < record_quads::kBatch; i++) {
            const unsigned column = record_quads::column_of(round, i, thread);
#pragma unroll
            for (unsigned j = 0; j < kQuad; j++) {
                int &id = batch[i].at[j];
                id = record_of<kDecode>(arrays.pages, column + j < n ? id : -1);
                mapped += id >= 0;
            }
        }
        store_batch<kRecordColumns, kRowThreads, kWide>(arrays.indices + kWindowColumns,
                                                        round, thread, batch);
    }
    return mapped;
}

// Returns the length of the compressed part.
template <bool kWide, bool kDecode>
__device__ inline unsigned write_row(const args_t &args, unsigned token,
                                     long long matrix_row)
{
    const unsigned thread = threadIdx.x % kRowThreads;
    row_arrays_t arrays = {};
    arrays.indices = args.sparse_indices + token * kColumns;
    arrays.ids = kDecode ? args.decode_compressed_indices + matrix_row * kDecodeTopk
                         : args.prefill_topk_indices + matrix_row * kTopk;
    if constexpr (kDecode) {
        arrays.given = args.decode_swa_indices + matrix_row * kSwaWidth;
    }
    // What is given to a decode row is under way before the row is looked at.
    int_quad_t first = {};
    int_quad_t batch[record_quads::kBatch];
    int length = kDecodeTopk;
    if constexpr (kDecode) {
        first = load_neighbours<kSwaWidth, kWide>(arrays.given, thread * kQuad, true);
        load_records<kWide, kDecode>(arrays, 0, thread, kDecodeTopk, batch);
        length = load_if(args.decode_compressed_lens != nullptr,
                         args.decode_compressed_lens, token, length);
    }
    const row_t row = row_of<kDecode>(args, token);
    arrays.swa_pages =
        args.swa_block_table + static_cast<long long>(row.request) * kSwaTableStride;
    arrays.pages = args.block_table + static_cast<long long>(row.request) * kTableStride;
    if constexpr (kDecode) {
        copy_window<kWide>(arrays, row.live, thread, first);
    } else {
        load_records<kWide, kDecode>(arrays, 0, thread, row.n_ids, batch);
        write_run<kWindowColumns, kSwaBlockSize, kSwaTableWidth, kSwaSpan, kRowThreads>(
            arrays.indices, arrays.swa_pages, row.window, thread, true);
    }
    const unsigned mapped = map_records<kWide, kDecode>(arrays, row.n_ids, thread, batch);
    if constexpr (!kDecode) {
        return row.n_ids;
    } else if constexpr (!kCounts) {
        return row.live ? clamp(length, 0, kDecodeTopk) : 0;
    } else {
        return scan_row<kRowWarps>(__reduce_add_sync(kWholeWarp, mapped)).total;
    }
}

template <bool kWide>
__device__ inline void write_rows(const args_t &args)
{
    const unsigned token = blockIdx.x * kRows + threadIdx.x / kRowThreads;
    if (token >= static_cast<unsigned>(args.num_tokens)) {
        return;
    }
    const place_t place = place_of(args, token);
    const unsigned length = place.decode
                                ? write_row<kWide, true>(args, token, place.matrix_row)
                                : write_row<kWide, false>(args, token, place.matrix_row);
    if (threadIdx.x % kRowThreads == 0) {
        args.sparse_lens[token] = static_cast<int>(kWindowColumns + length);
    }
    if constexpr (kChecked) {
        check_row(args, token);
    }
}

extern "C" __global__ void __launch_bounds__(kThreads, kSmBlocks)
    kiln_mixed_sparse_indices(const __grid_constant__ args_t args)
{
    wait_for_previous_kernel();
    let_next_kernel_start();
    // Rows of whole quads are aligned as their matrix is.
    constexpr bool kQuads =
        kSwaWidth % kQuad == 0 && kTopk % kQuad == 0 && kDecodeTopk % kQuad == 0;
    if (kQuads &&
        takes_quads(args.sparse_indices, args.decode_swa_indices,
                    args.decode_compressed_indices, args.prefill_topk_indices)) {
        write_rows<true>(args);
    } else {
        write_rows<false>(args);
    }
}
