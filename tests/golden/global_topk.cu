#line 1 "global_topk.cu"
// SPDX-License-Identifier: Apache-2.0
// global_topk: top-k picks to cache slots, and how many.
//
//   slots[t, j] = page * kBlockSize + v % kBlockSize,  v = topk_indices[t, j],
//                 page = block_table[token_to_req[t], v / kBlockSize];  or -1
//   lens[t]     = mapped entries of row t
//
// In:  topk_indices[num_tokens, kTopk] (rows kTopkStride apart),
//      block_table[table_rows, kTableWidth] (kTableStride), token_to_req[num_tokens],
//      is_valid_token[num_tokens] bytes, or null.
// Out: slots[num_tokens, kTopk] (kSlotsStride), lens[num_tokens]. int32 but where said.
// Holes stay where they are; with kDcpWorld > 1 what dcp_rank owns moves to the front.
//
// A row has a block, of kThreads threads or, in a launch of many rows, of kManyThreads;
// common/map_row.cuh has the rest. Ids and pages may be any int32. Shared memory: an int for
// each warp.
#ifndef KILN_PRELUDE
constexpr int kTopk = 512;        // columns of a row
constexpr int kTopkStride = 512;  // elements between rows of topk_indices
constexpr int kSlotsStride = 512; // elements between rows of slots
constexpr int kBlockSize = 64;    // slots of a page
constexpr int kTableWidth = 4096; // pages of a request
constexpr int kTableStride = 4096;
constexpr int kDcpWorld = 1;      // ranks that share the cache
constexpr int kDcpInterleave = 1; // consecutive ids of one rank
constexpr int kThreads = 128;     // threads of a row's block
constexpr int kManyThreads = 64;  // the same in a launch of many rows, no more
#endif

static_assert(kTopk >= 1 && kTopk <= kTopkStride && kTopk <= kSlotsStride,
              "topk must be at least 1 and at most both row strides");
static_assert(
    kBlockSize >= 1 && kTableWidth >= 1 && kTableWidth <= kTableStride,
    "block_size and table_width must be at least 1, table_stride at least table_width");
static_assert(kDcpWorld >= 1 && kDcpInterleave >= 1 && kBlockSize % kDcpInterleave == 0,
              "dcp_interleave must divide block_size");
static_assert(kThreads % 32 == 0 && kManyThreads % 32 == 0 && kManyThreads <= kThreads,
              "a row takes whole warps, and no more of them where rows are many");
static_assert(kDcpWorld == 1 || kThreads == kManyThreads, "there is one way to compact");

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
#line 42 "global_topk.cu"
#line 1 "common/check.cuh"
// SPDX-License-Identifier: Apache-2.0
// The checked build: what keeps an id of a request from an index, step by step.



#line 1 "common/paging.cuh"
// SPDX-License-Identifier: Apache-2.0
// From ids local to a request to slots of a paged cache.
//
// Under context parallelism ids are dealt to kWorld ranks in runs of kInterleave, and a
// rank stores its own densely: an id is number `local` of its owner. Since kInterleave
// divides the page, local / kPageSlots and local % kPageSlots are the logical page and
// the offset that the formula over pages of kPageSlots * kWorld ids gives.



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
#line 12 "common/paging.cuh"

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
#line 7 "common/check.cuh"
#line 1 "common/report.cuh"
// SPDX-License-Identifier: Apache-2.0
// The checked build: what the rules turned away goes to a report, and results stay.
//
// kOp and kChecked stand in every prelude. What a kernel checks it checks last, under
// `if constexpr (kChecked)`, and looks at the inputs anew, in plain code: so nothing in its
// own path is another.


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
#line 10 "common/report.cuh"

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
#line 8 "common/check.cuh"

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
#line 43 "global_topk.cu"

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
#line 45 "global_topk.cu"
#line 1 "common/map_row.cuh"
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




#line 1 "common/compact.cuh"
// SPDX-License-Identifier: Apache-2.0
// Squeezing dropped entries out of a row.




// How many entries were kept before this lane's, the warp's earlier ones included; counts
// this turn's entries into `kept`, the same for all lanes.
__device__ inline unsigned place_kept(bool keep, unsigned &kept)
{
    const unsigned keeps = __ballot_sync(kWholeWarp, keep);
    const unsigned lanes_below = (1u << lane_of_thread()) - 1;
    const unsigned place = kept + __popc(keeps & lanes_below);
    kept += __popc(keeps);
    return place;
}
#line 18 "common/map_row.cuh"

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
#line 20 "common/map_row.cuh"
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
#line 21 "common/map_row.cuh"

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
#line 46 "global_topk.cu"




struct args_t {
    const int *topk_indices;
    const int *token_to_req;
    const int *block_table;
    const unsigned char *is_valid_token;
    int *slots;
    int *lens;
    count_t live_tokens;
    int num_tokens;
    int table_rows;
    int dcp_rank;
    report_t *report;
};

constexpr int kSmBlocks = kBlocksOfSm<kThreads>;

using many = rows_t<kTopk, kManyThreads>;
using few = rows_t<kTopk, kThreads>;

__device__ inline const int *ids_of(const args_t &args, unsigned row)
{
    return args.topk_indices + static_cast<long long>(row) * kTopkStride;
}

__device__ inline int *slots_of(const args_t &args, unsigned row)
{
    return args.slots + static_cast<long long>(row) * kSlotsStride;
}

// What maps the ids of one row; its limit is 0 where the row is inert.
struct mapper_t {
    const int *pages;
    unsigned limit;
    int rank;

    // The look-up stands alone in its branch: it is predicated, and waits for no other.
    __device__ int index_of(int id) const
    {
        const owned_t owned = owned_by<kDcpWorld, kDcpInterleave>(id, rank);
        int page = -1;
        if (owned.mine && owned.local < limit) {
            page = __ldg(pages + owned.local / kBlockSize);
        }
        return slot_in_page<kBlockSize>(page, owned.local % kBlockSize);
    }
};

__device__ inline mapper_t mapper_of(const args_t &args, unsigned row,
                                     const ahead_t &ahead)
{
    const int live_tokens = read_count(args.live_tokens, args.num_tokens);
    const bool live = static_cast<int>(row) < live_tokens && ahead.valid != 0;
    const bool known = ahead.request < static_cast<unsigned>(args.table_rows);
    return {pages_of<kTableStride>(args.block_table, ahead.request),
            live && known ? kPagedIds<kBlockSize, kTableWidth> : 0, args.dcp_rank};
}

// What the rules turned away, for the checked build; by the threads of the row.
template <typename rows>
__device__ inline void check_row(const args_t &args, unsigned row)
{
    if (is_first_thread()) {
        report_count(args.report, kReasonLiveTokens, args.live_tokens, args.num_tokens);
    }
    const int live_tokens = read_count(args.live_tokens, args.num_tokens);
    const bool valid = args.is_valid_token == nullptr || args.is_valid_token[row] != 0;
    if (static_cast<int>(row) >= live_tokens || !valid) {
        return;
    }
    const int request = args.token_to_req[row];
    if (request < 0 || request >= args.table_rows) {
        report(threadIdx.x == 0 ? args.report : nullptr, kReasonRequest, row, -1,
               request);
        return;
    }
    const int *ids = ids_of(args, row);
    const int *pages = args.block_table + static_cast<long long>(request) * kTableStride;
    for (unsigned column = threadIdx.x; column < kTopk; column += rows::kThreads) {
        const report_at_t at = {args.report, row, column};
        const int local = check_id<kDcpWorld, kDcpInterleave, kBlockSize, kTableWidth>(
            at, ids[column], args.dcp_rank);
        if (local >= 0) {
            check_page<kTwo31 / kBlockSize>(at, pages[local / kBlockSize]);
        }
    }
}

// Rows that do not take quads, out of the way of those that do.
template <typename rows>
__device__ __noinline__ unsigned map_apart(const args_t &args, unsigned row,
                                           ahead_t ahead)
{
    return map_any_row<rows>([&] { return mapper_of(args, row, ahead); },
                             ids_of(args, row), slots_of(args, row));
}

// first: of the thread, if the rows are wide.
template <typename rows>
__device__ inline void write_row(const args_t &args, unsigned row, const ahead_t &ahead,
                                 bool wide, const int_quad_t &first)
{
    const auto make_mapper = [&] { return mapper_of(args, row, ahead); };
    const int *ids = ids_of(args, row);
    int *slots = slots_of(args, row);
    unsigned mapped;
    if constexpr (kDcpWorld > 1) {
        mapped = compact_block_row<rows>(make_mapper, ids, slots);
    } else {
        mapped = wide ? map_row<rows>(make_mapper, ids, slots, first)
                      : map_apart<rows>(args, row, ahead);
    }
    count_row<rows, (kDcpWorld > 1)>(mapped, args.lens + row);
    if constexpr (kChecked) {
        check_row<rows>(args, row);
    }
}

extern "C" __global__ void __launch_bounds__(kThreads, kSmBlocks)
    kiln_global_topk(const __grid_constant__ args_t args)
{
    wait_for_previous_kernel();
    const unsigned row = blockIdx.x;
    const bool wide = kDcpWorld == 1 && kTopkStride % kQuad == 0 &&
                      kSlotsStride % kQuad == 0 &&
                      takes_quads(args.topk_indices, args.slots);
    int_quad_t first = {};
    if (wide) {
        first = load_quad<true, few::kOnce>(ids_of(args, row), few::warp(), kTopk);
    }
    const ahead_t ahead = read_ahead(args, &args_t::token_to_req, row);
    // Compared like this, the compiler lays out the second branch first: few rows meet no jump.
    if (kManyThreads < kThreads && blockDim.x < kThreads) {
        write_row<many>(args, row, ahead, wide, first);
    } else {
        let_next_kernel_start();
        write_row<few>(args, row, ahead, wide, first);
    }
}
