#line 1 "combine_topk_swa.cu"
// SPDX-License-Identifier: Apache-2.0
// combine_topk_swa: top-k and window into one row, for gathered prefill.
//
//   columns [0, k):     id = topk_indices[t, j] -> M * b + id where 0 <= id < N, else -1
//   columns [k, k + s): the window's positions -> M * b + N + g where 0 <= g <
//                       gather_lens[b], else -1;
//                       g = position - (seq_lens[b] - gather_lens[b])
//   columns [k + s, C): -1;  C = align(kTopk + kWindow + kImageWidth, kAlign)
//   combined_lens[t] = k + s
//
// In:  topk_indices[num_tokens, kTopk] (rows kTopkStride apart),
//      query_start_loc[num_requests + 1], seq_lens and gather_lens[num_requests],
//      left_visible and right_visible[num_tokens] or null;
//      M = workspace_rows, N = swa_base.
// Out: combined_indices[num_tokens, C] (kCombinedStride), combined_lens[num_tokens].
//      All int32; sums are kept modulo 2^32.
//
// One warp per row, whatever request it is of, so that a long request spreads like many
// short ones: the warp searches its request with all lanes, then each lane takes quads of
// output columns, padding included. Top-k begins at column 0, so that ids and results
// line up. In a launch of many rows each has a block of kManyThreads, whose warps share its
// columns: there what counts is that memory sees whole rows. No shared memory.
#ifndef KILN_PRELUDE
constexpr int kTopk = 512;           // columns of topk_indices; 0: window only
constexpr int kTopkStride = 512;     // elements between its rows
constexpr int kWindow = 128;         // raw tokens of the sliding window
constexpr int kCompressRatio = 4;    // raw tokens of a record; 0: no records
constexpr int kImageWidth = 0;       // further window columns for image spans
constexpr int kAlign = 128;          // the row width is a multiple of it
constexpr int kCombinedStride = 640; // elements between rows of combined_indices
constexpr int kThreads = 128;        // threads of a block
constexpr int kManyThreads = 64;     // the same in a launch of many wide rows, fewer
#endif

static_assert(kTopk >= 0 && kWindow >= 1 && kImageWidth >= 0 && kCompressRatio >= 0 &&
                  kAlign >= 1,
              "window and align must be at least 1, the other widths not negative");
static_assert(kTopk <= kTopkStride, "topk_stride must be at least topk");
static_assert(kThreads % 32 == 0 && kManyThreads % 32 == 0 && kManyThreads < kThreads,
              "a row takes whole warps");

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
#line 43 "combine_topk_swa.cu"
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
#line 44 "combine_topk_swa.cu"
#line 1 "common/check_length.cuh"
// SPDX-License-Identifier: Apache-2.0
// The checked build: ranges of positions that are cut.


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
#line 6 "common/check_length.cuh"
#line 1 "common/window.cuh"
// SPDX-License-Identifier: Apache-2.0
// Sliding windows: the positions that a token sees, where its request is known.



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
#line 7 "common/window.cuh"

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
#line 45 "combine_topk_swa.cu"


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
#line 48 "combine_topk_swa.cu"
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
#line 49 "combine_topk_swa.cu"
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
#line 50 "combine_topk_swa.cu"

#line 1 "common/requests.cuh"
// SPDX-License-Identifier: Apache-2.0
// Which request a token belongs to, searched by a whole warp.





// Narrows the requests down to one per lane: the token's, if it has one, is among the
// kWarp from the result on. Each turn splits what is left in kWarp parts; up to kWarp
// requests cost no turn.
__device__ inline int narrow_requests(const int *query_start_loc, int num_requests,
                                      long long token)
{
    int first = 0;
    int left = num_requests;
    while (left > static_cast<int>(kWarp)) {
        const int part = (left - 1) / static_cast<int>(kWarp) + 1;
        const long long end = static_cast<long long>(lane_of_thread() + 1) * part;
        const bool passed = end <= left && query_start_loc[first + end] <= token;
        const int skipped = __popc(__ballot_sync(kWholeWarp, passed)) * part;
        first += skipped;
        left = least(part, left - skipped);
    }
    return first;
}
#line 52 "combine_topk_swa.cu"


constexpr long long kColumns = static_cast<long long>(kTopk) + kWindow + kImageWidth;
constexpr long long kWidth = div_up<long long>(kColumns, kAlign) * kAlign;
static_assert(kWidth <= kCombinedStride,
              "combined_stride must be at least the row width");

#line 1 "common/combined_row.cuh"
// SPDX-License-Identifier: Apache-2.0
// A row of combine_topk_swa in quads of columns. Its constants stand before this.






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
#line 60 "combine_topk_swa.cu"

struct args_t {
    const int *topk_indices;
    const int *query_start_loc;
    const int *seq_lens;
    const int *gather_lens;
    const int *left_visible;
    const int *right_visible;
    int *combined_indices;
    int *combined_lens;
    count_t workspace_rows;
    count_t swa_base;
    int num_tokens;
    int num_requests;
    report_t *report;
};

// What a row's window is made of; of the requests that may have its token, a lane has one.
struct inputs_t {
    int workspace_rows;
    int swa_base;
    int left;
    int right;
    int origin; // the launch's first token
    unsigned request;
    int begin;
    int end;
    int seq_len;
    int gather_len;
};

// All of it is under way before any of it is looked at, but for the search where there
// are more requests than lanes.
__device__ inline inputs_t load_inputs(const args_t &args, unsigned row)
{
    inputs_t in = {};
    in.origin = load_if(args.num_requests > 0, args.query_start_loc, 0, 0);
    in.request = lane_of_thread();
    if (args.num_requests > static_cast<int>(kWarp)) {
        in.request += narrow_requests(args.query_start_loc, args.num_requests,
                                      static_cast<long long>(in.origin) + row);
    }
    const bool given = in.request < static_cast<unsigned>(args.num_requests);
    in.begin = load_if(given, args.query_start_loc, in.request, 0);
    in.end = load_if(given, args.query_start_loc, in.request + 1LL, 0);
    in.seq_len = load_if(given, args.seq_lens, in.request, 0);
    in.gather_len = load_if(given, args.gather_lens, in.request, 0);
    in.left = visible_at<kImageWidth>(args.left_visible, row);
    in.right = visible_at<kImageWidth>(args.right_visible, row);
    in.workspace_rows = read_count(args.workspace_rows, 0);
    in.swa_base = read_count(args.swa_base, 0);
    return in;
}

// A row's token: the request that has it, and its position there, -1 if there is none.
struct token_t {
    long long position;
    unsigned request;
    int seq_len;
    int gather_len;
};

// By a warp: the lane whose request has the token tells all.
__device__ inline token_t token_of(const inputs_t &in, unsigned row)
{
    const long long token = static_cast<long long>(in.origin) + row;
    const unsigned has = __ballot_sync(kWholeWarp, in.begin <= token && token < in.end);
    const int lane = __ffs(has) - 1; // none: what the last lane tells is not looked at
    const int end = __shfl_sync(kWholeWarp, in.end, lane);
    const int seq_len = __shfl_sync(kWholeWarp, in.seq_len, lane);
    const int gather_len = __shfl_sync(kWholeWarp, in.gather_len, lane);
    const unsigned request = in.request - lane_of_thread() + lane;
    const long long position = position_of(token, end, seq_len);
    return {has == 0 ? -1 : position, request, seq_len, gather_len};
}

__device__ inline parts_t parts_of(const inputs_t &in, const token_t &token,
                                   long long n_picks)
{
    if (token.position < 0) {
        return {};
    }
    const range_t window =
        window_of<kWindow, kImageWidth>(token.position, token.seq_len, in.left, in.right);
    const long long length = n_picks + window.end - window.start;
    // The column of the first gathered token, were the window to reach so far.
    const long long first = n_picks + token.seq_len - token.gather_len - window.start;
    const long long begin = clamp(first, n_picks, length);
    const long long end = clamp(first + token.gather_len, n_picks, length);
    const unsigned base = static_cast<unsigned>(in.workspace_rows) * token.request;
    parts_t parts;
    parts.n_picks = static_cast<unsigned>(n_picks);
    parts.gathered_begin = static_cast<unsigned>(begin);
    parts.n_gathered = static_cast<unsigned>(greatest(end - begin, 0LL));
    parts.length = static_cast<unsigned>(length);
    parts.n_records = static_cast<unsigned>(greatest(in.swa_base, 0));
    parts.record_base = base;
    parts.gathered_base =
        base + static_cast<unsigned>(in.swa_base) - static_cast<unsigned>(first);
    return parts;
}

using many = combined_rows_t<kManyThreads / kWarp, 1>;
using few = combined_rows_t<1, kThreads / kWarp>;

// Picks are asked for as soon as they can be; the rest is worked out while they come. A launch
// of few rows waits for its loads: there it fetches ids before it knows how many count. With
// many rows other warps fill the wait, and what was fetched in vain would cost bandwidth.
template <typename rows>
__device__ inline void combine_row(const args_t &args, unsigned row, const int *picks,
                                   int *combined)
{
    const bool wide = kTopk % kQuad == 0 && takes_quads(picks) && takes_quads(combined);
    typename rows::batch_t quads = {};
    const inputs_t in = load_inputs(args, row);
    if (!rows::kAlone && wide) {
        load_picks<rows>(picks, 0, kTopk, quads);
    }
    const token_t token = token_of(in, row);
    const unsigned n_picks = complete_records<kCompressRatio>(token.position, kTopk);
    if (rows::kAlone && wide) {
        load_picks<rows>(picks, 0, n_picks, quads);
    }
    const parts_t parts = parts_of(in, token, n_picks);
    unsigned done = 0; // columns, in quads
    if (wide) {
        for (unsigned round = 0; round < rows::kRounds; round++) {
            if (round > 0) {
                load_picks<rows>(picks, round, n_picks, quads);
            }
            store_entries<rows>(combined, round, parts, quads);
        }
        done = kWidth / kQuad * kQuad;
    }
    const unsigned thread = threadIdx.x % (rows::kWarps * kWarp);
#pragma unroll 1 // rows that take quads have none, or a tail: short code is better
    for (unsigned column = done + thread; column < kWidth;
         column += rows::kWarps * kWarp) {
        const int pick = load_if(column < n_picks, picks, column, -1);
        combined[column] = entry_of(parts, column, pick);
    }
    if (thread == 0) {
        args.combined_lens[row] = static_cast<int>(parts.length);
    }
}

// What the rules turned away, for the checked build; by the warp that has the row.
__device__ inline void check_row(const args_t &args, unsigned row)
{
    const inputs_t in = load_inputs(args, row);
    const token_t token = token_of(in, row);
    if (token.position < 0) {
        return;
    }
    const range_t window =
        whole_window<kWindow>(token.position, token.seq_len, in.left, in.right);
    check_length<static_cast<long long>(kWindow) + kImageWidth>(
        lane_of_thread() == 0 ? args.report : nullptr, row, window);
    const int n_picks = complete_records<kCompressRatio>(token.position, kTopk);
    const long long first = static_cast<long long>(row) * kTopkStride;
    for (int column = static_cast<int>(lane_of_thread()); column < n_picks;
         column += kWarp) {
        const int id = args.topk_indices[first + column];
        if (id != kNone && (id < 0 || id >= in.swa_base)) {
            report(args.report, kReasonId, row, column, id);
        }
    }
}

template <typename rows>
__device__ inline void combine_rows(const args_t &args)
{
    const unsigned row =
        blockIdx.x * rows::kRows + (rows::kRows > 1 ? warp_of_thread() : 0);
    if (rows::kRows > 1 && row >= static_cast<unsigned>(args.num_tokens)) {
        return;
    }
    const long long first_pick = static_cast<long long>(row) * kTopkStride;
    const int *picks = kTopk > 0 ? args.topk_indices + first_pick : nullptr;
    int *combined = args.combined_indices + static_cast<long long>(row) * kCombinedStride;
    combine_row<rows>(args, row, picks, combined);
    if constexpr (kChecked) {
        if (warp_of_thread() % rows::kWarps == 0) {
            check_row(args, row);
        }
    }
}

extern "C" __global__ void __launch_bounds__(kThreads)
    kiln_combine_topk_swa(const __grid_constant__ args_t args)
{
    wait_for_previous_kernel();
    // Compared like this, the compiler lays out the second branch first: few rows meet no jump.
    if (kManyThreads > kWarp && blockDim.x < kThreads) {
        combine_rows<many>(args);
    } else {
        let_next_kernel_start();
        combine_rows<few>(args);
    }
}
