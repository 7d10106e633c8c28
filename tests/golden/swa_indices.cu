#line 1 "swa_indices.cu"
// SPDX-License-Identifier: Apache-2.0
// swa_indices: sliding-window rows.
//
//   causal:  start = max(pos - max(kWindow - 1, left), 0)
//            end   = min(pos + right + 1, seq_len, start + kWindow + kImageWidth)
//   a draft: start = max(prefix - kWindow, 0), end = seq_len
//   then     start = max(start, replay_start, end - kIndexWidth), n = max(end - start, 0)
//
//   swa_indices[i, j < n] = the slot of position start + j of the request of token
//                           token_offset + i, or -1;  -1 in the columns from n on
//   swa_lens[i] = n
//
// In:  query_start_loc[num_requests + 1], seq_lens[num_requests], replay_start[num_requests] or
//      null, block_table[table_rows, kTableWidth] (rows kTableStride apart); by absolute token
//      token_to_req, is_valid_token (bytes) or null, left_visible and right_visible or null.
// Out: swa_indices[num_rows, kIndexWidth] (rows kIndexStride apart), swa_lens[num_rows]. All int32.
//
// One warp per row, whatever request it is of; past kFewRows rows a warp has kRowsOfWarp of them. A
// lane takes four neighbouring columns at a time, padding included, in one 16-byte store where the
// row's address allows. With kDcpWorld > 1 the warp walks the rank's own positions alone, which are
// known without looking at the others, and squeezes out those without a usable page; a row's length
// is what was kept. No shared memory.
#ifndef KILN_PRELUDE
constexpr int kWindow = 128;        // raw tokens of the sliding window
constexpr int kIndexWidth = 128;    // columns of a row
constexpr int kIndexStride = 128;   // elements between rows of swa_indices
constexpr int kBlockSize = 64;      // slots of a page
constexpr int kTableWidth = 16384;  // pages of a request
constexpr int kTableStride = 16384; // elements between rows of block_table
constexpr int kImageWidth = 0;      // further window columns for image spans
constexpr bool kCausal = true;      // false: a draft block, whose tokens share one range
constexpr int kDcpWorld = 1;        // ranks that share the cache
constexpr int kDcpInterleave = 1;   // consecutive positions of one rank
constexpr int kDcpStorage = 0;      // 0: a rank stores its own positions; 1: all of them
constexpr int kThreads = 128;       // threads of a block
constexpr int kFewRows = 1024;      // rows of a launch up to which each has a warp
constexpr int kRowsOfWarp = 2;      // rows that share a warp where there are more
#endif

static_assert(kWindow >= 1 && kImageWidth >= 0,
              "window must be at least 1, image_width not negative");
static_assert(kIndexWidth >= 1 && kIndexWidth <= kIndexStride,
              "index_width must be at least 1, index_stride at least index_width");
static_assert(
    kBlockSize >= 1 && kTableWidth >= 1 && kTableWidth <= kTableStride,
    "block_size and table_width must be at least 1, table_stride at least table_width");
static_assert(kDcpWorld >= 1 && kDcpInterleave >= 1 && kBlockSize % kDcpInterleave == 0,
              "dcp_interleave must divide block_size");
static_assert(kDcpStorage == 0 || kDcpStorage == 1, "dcp_storage is 0 or 1");
static_assert(kThreads % 32 == 0 && 32 % kRowsOfWarp == 0, "rows fill warps");
static_assert(kDcpWorld == 1 || kRowsOfWarp == 1, "a row that is squeezed has a warp");

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
#line 54 "swa_indices.cu"
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
#line 55 "swa_indices.cu"
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
#line 56 "swa_indices.cu"
#line 1 "common/check_length.cuh"
// SPDX-License-Identifier: Apache-2.0
// The checked build: ranges of positions that are cut.



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
#line 7 "common/check_length.cuh"

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
#line 57 "swa_indices.cu"
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
#line 58 "swa_indices.cu"


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
#line 61 "swa_indices.cu"
#line 1 "common/paged_run.cuh"
// SPDX-License-Identifier: Apache-2.0
// Consecutive ids of a request as slots of a paged cache, and slots as a pool names them.






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
#line 62 "swa_indices.cu"




struct args_t {
    int num_rows;
    int token_offset;
    count_t live_tokens;
    const int *token_to_req;
    const unsigned char *is_valid_token;
    int num_requests;
    int table_rows;
    const int *query_start_loc;
    const int *seq_lens;
    const int *block_table;
    const int *replay_start;
    int *swa_indices;
    int *swa_lens;
    const int *left_visible;
    const int *right_visible;
    int dcp_rank;
    report_t *report;
};

// Threads of a row where rows are many: what is done once per row is done by fewer of them.
constexpr unsigned kManyLanes = kWarp / kRowsOfWarp;

constexpr bool kReplicated = kDcpStorage == 1;
constexpr int kPageRanks = kReplicated ? 1 : kDcpWorld; // that store what a page holds
constexpr int kPageRuns = kReplicated ? 1 : kDcpInterleave;

// What a row is, as far as no look-up decides it.
struct row_t {
    const int *pages;
    run_t run;
};

__device__ inline range_t draft_range(long long query_len, long long seq_len)
{
    return {greatest<long long>(seq_len - query_len - kWindow, 0), seq_len};
}

__device__ inline run_t draft_run(long long query_len, int seq_len)
{
    const unsigned length = greatest(seq_len, 0);
    const auto n =
        static_cast<unsigned>(clamp<long long>(query_len + kWindow, 0, length));
    return {length - n, n};
}

// The newest kIndexWidth positions of a run, none before `floor`.
__device__ inline run_t newest(const run_t &run, int floor)
{
    constexpr long long kMost = static_cast<long long>(kWindow) + kImageWidth;
    constexpr bool kFits = kCausal && kMost <= kIndexWidth;
    const unsigned end = run.first + run.n;
    const unsigned start = kFits ? run.first : end - least<unsigned>(run.n, kIndexWidth);
    const unsigned first = greatest(start, static_cast<unsigned>(greatest(floor, 0)));
    return {first, end - least(first, end)};
}

// Reads nothing and has no positions where the token is not one of the launch.
__device__ inline row_t row_of(const args_t &args, int token, bool launched)
{
    // All that does not depend on the request is under way before it is looked at.
    const int live_tokens = read_count(args.live_tokens, token + 1);
    const int request = load_if(launched, args.token_to_req, token, -1);
    const int valid = load_if(launched && args.is_valid_token != nullptr,
                              args.is_valid_token, token, 1);
    const int left =
        visible_at<kImageWidth>(launched ? args.left_visible : nullptr, token);
    const int right =
        visible_at<kImageWidth>(launched ? args.right_visible : nullptr, token);
    const unsigned requests = least(args.num_requests, args.table_rows);
    const bool known =
        static_cast<unsigned>(request) < requests && token < live_tokens && valid != 0;
    const int query_end = load_if(known, args.query_start_loc, request + 1LL, 0);
    const int query_start =
        kCausal ? 0 : load_if(known, args.query_start_loc, request, 0);
    const int seq_len = load_if(known, args.seq_lens, request, 0);
    const int floor =
        load_if(known && args.replay_start != nullptr, args.replay_start, request, 0);
    const run_t run =
        kCausal ? window_run<kWindow, kImageWidth>(token, query_end, seq_len, left, right)
                : draft_run(static_cast<long long>(query_end) - query_start, seq_len);
    const int *pages = args.block_table;
    if (known) {
        pages += static_cast<long long>(request) * kTableStride;
    }
    return {pages, newest(run, floor)};
}

// The slot of a rank's own position number `local`, or -1. Where every rank stores all positions it
// is found by the position itself.
__device__ inline int owned_slot(const int *pages, unsigned local, int rank)
{
    constexpr long long kAllRuns = static_cast<long long>(kDcpInterleave) * kDcpWorld;
    constexpr unsigned kRound = static_cast<unsigned>(least<long long>(kAllRuns, kTwo31));
    constexpr unsigned kRun = kDcpInterleave;
    unsigned id = local;
    if (kReplicated) {
        id = local / kRun * kRound + static_cast<unsigned>(rank) * kRun + local % kRun;
    }
    const int page = page_of<kBlockSize, kTableWidth>(pages, id, true);
    return slot_in_page<kBlockSize>(page, id % kBlockSize);
}

// By a warp. Returns the row's length.
__device__ inline unsigned compact_row(int *indices, const row_t &row, int rank)
{
    const int first = static_cast<int>(row.run.first);
    const int past = static_cast<int>(row.run.first + row.run.n);
    const unsigned begin = owned_below<kDcpWorld, kDcpInterleave>(first, rank);
    const unsigned end = owned_below<kDcpWorld, kDcpInterleave>(past, rank);
    unsigned kept = 0;
    for (unsigned warp_first = begin; warp_first < end; warp_first += kWarp) {
        const unsigned local = warp_first + lane_of_thread();
        const int slot = local < end ? owned_slot(row.pages, local, rank) : -1;
        const unsigned place = place_kept(slot >= 0, kept);
        if (slot >= 0) {
            indices[place] = slot;
        }
    }
    for (unsigned column = kept + lane_of_thread(); column < kIndexWidth;
         column += kWarp) {
        indices[column] = -1;
    }
    return kept;
}

// For the checked build: the positions of a row whose request is known. What is cut goes to
// `once`, which is null for all threads of the row but one.
__device__ inline range_t check_lengths(const args_t &args, unsigned row, int request,
                                        report_t *once)
{
    const int token = args.token_offset + static_cast<int>(row);
    const long long query_end = args.query_start_loc[request + 1LL];
    const long long seq_len = args.seq_lens[request];
    range_t range = draft_range(query_end - args.query_start_loc[request], seq_len);
    if constexpr (kCausal) {
        constexpr long long kMost = static_cast<long long>(kWindow) + kImageWidth;
        const long long position = position_of(token, query_end, seq_len);
        if (position < 0) {
            return {0, 0};
        }
        range = whole_window<kWindow>(position, seq_len,
                                      visible_at<kImageWidth>(args.left_visible, token),
                                      visible_at<kImageWidth>(args.right_visible, token));
        check_length<kMost>(once, row, range);
        range.end = least(range.end, range.start + kMost);
    }
    if (args.replay_start != nullptr) {
        range.start = greatest<long long>(range.start, args.replay_start[request]);
    }
    check_length<kIndexWidth>(once, row, range);
    return {greatest(range.start, range.end - kIndexWidth), range.end};
}

// What the rules turned away, for the checked build; by the threads of the row.
__device__ inline void check_row(const args_t &args, unsigned row, unsigned lane,
                                 unsigned lanes)
{
    if (is_first_thread()) {
        // Tokens past this launch's may be live.
        report_count(args.report, kReasonLiveTokens, args.live_tokens, kTwo31 - 1);
    }
    const int token = args.token_offset + static_cast<int>(row);
    const bool live = token < read_count(args.live_tokens, token + 1);
    const bool valid = args.is_valid_token == nullptr || args.is_valid_token[token] != 0;
    if (!live || !valid) {
        return;
    }
    const int request = args.token_to_req[token];
    report_t *once = lane == 0 ? args.report : nullptr;
    if (request < 0 || request >= least(args.num_requests, args.table_rows)) {
        report(once, kReasonRequest, row, -1, request);
        return;
    }
    const range_t range = check_lengths(args, row, request, once);
    const int *pages = args.block_table + static_cast<long long>(request) * kTableStride;
    for (long long column = lane; column < range.end - range.start; column += lanes) {
        const int position = static_cast<int>(range.start + column);
        const report_at_t at = {args.report, row, column};
        if (!owned_by<kDcpWorld, kDcpInterleave>(position, args.dcp_rank).mine) {
            continue;
        }
        const int local = check_id<kPageRanks, kPageRuns, kBlockSize, kTableWidth>(
            at, position, args.dcp_rank);
        if (local >= 0) {
            check_page<kTwo31 / kBlockSize>(at, pages[local / kBlockSize]);
        }
    }
}

extern "C" __global__ void __launch_bounds__(kThreads)
    kiln_swa_indices(const __grid_constant__ args_t args)
{
    wait_for_previous_kernel();
    let_next_kernel_start();
    const bool many = kManyLanes < kWarp && args.num_rows > kFewRows;
    const unsigned block_row = many ? threadIdx.x / kManyLanes : warp_of_thread();
    const unsigned lane = many ? threadIdx.x % kManyLanes : lane_of_thread();
    const unsigned row =
        blockIdx.x * (kThreads / (many ? kManyLanes : kWarp)) + block_row;
    const bool launched = row < static_cast<unsigned>(args.num_rows);
    const row_t found = row_of(args, args.token_offset + static_cast<int>(row), launched);
    int *indices = args.swa_indices + static_cast<long long>(row) * kIndexStride;
    unsigned length = found.run.n;
    if constexpr (kDcpWorld > 1) {
        length = launched ? compact_row(indices, found, args.dcp_rank) : 0;
    }
    if (launched && lane == 0) {
        args.swa_lens[row] = static_cast<int>(length);
    }
    // Of the two branches the compiler lays out the second first: few rows meet no jump.
    if (kDcpWorld == 1 && many) {
        write_run<kIndexWidth, kBlockSize, kTableWidth, kBlockSize, kManyLanes>(
            indices, found.pages, found.run, lane, launched);
    } else if (kDcpWorld == 1) {
        write_run<kIndexWidth, kBlockSize, kTableWidth, kBlockSize, kWarp>(
            indices, found.pages, found.run, lane, launched);
    }
    if constexpr (kChecked) {
        if (launched) {
            check_row(args, row, lane, many ? kManyLanes : kWarp);
        }
    }
}
