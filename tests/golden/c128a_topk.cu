#line 1 "c128a_topk.cu"
// SPDX-License-Identifier: Apache-2.0
// c128a_topk: rows that attend every complete record.
//
//   width = clamp(active_width, 0, kCapacity)
//   n     = pos < 0 ? 0 : min((pos + 1) / kCompressRatio, width)
//   decode row  t < num_decode_tokens: decode_slots[t, j < n] = slot of record j, or -1
//   prefill row t - num_decode_tokens: prefill_local[., j < n] = j
//   and -1 in the other columns below width; those past it are not touched.
//
// In:  positions[num_tokens] int64, token_to_req[num_tokens],
//      block_table[table_rows, kTableWidth] (rows kTableStride apart),
//      slot_mapping[num_tokens] int64, or null.
// Out: decode_slots[num_decode_tokens, kCapacity], decode_lens[num_decode_tokens],
//      prefill_local[num_tokens - num_decode_tokens, kCapacity]. int32 but where said.
//
// A row belongs to one warp of each block in x, kThreads / 32 rows a block. The blocks of
// one x deal its rows' columns out among them in pieces of 256, so that few rows still
// fill the GPU and neither grid nor code depends on how many columns are active. With
// kDcpWorld > 1 a decode row is made of its rank's records alone, and a warp counts the
// usable ones before its slices itself: reading the pages again is cheaper than waiting
// for other warps. No shared memory.
#ifndef KILN_PRELUDE
constexpr int kCompressRatio = 128; // raw tokens of a record
constexpr int kCapacity = 8192;     // columns and row stride of the outputs
constexpr int kBlockSize = 2;       // slots of a page
constexpr int kTableWidth = 4096;   // pages of a request
constexpr int kTableStride = 4096;  // elements between rows of block_table
constexpr int kDcpWorld = 1;        // ranks that share the cache
constexpr int kDcpInterleave = 1;   // consecutive ids of one rank
constexpr int kThreads = 128;       // threads of a block
#endif

static_assert(kCompressRatio >= 1 && kCapacity >= 1,
              "compress_ratio and capacity must be at least 1");
static_assert(
    kBlockSize >= 1 && kTableWidth >= 1 && kTableWidth <= kTableStride,
    "block_size and table_width must be at least 1, table_stride at least table_width");
static_assert(kDcpWorld >= 1 && kDcpInterleave >= 1 && kBlockSize % kDcpInterleave == 0,
              "dcp_interleave must divide block_size");
static_assert(kThreads % 32 == 0, "a row takes a whole warp");

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
#line 43 "c128a_topk.cu"
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
#line 44 "c128a_topk.cu"
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
#line 45 "c128a_topk.cu"


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
#line 48 "c128a_topk.cu"

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
#line 50 "c128a_topk.cu"
#line 1 "common/record_row.cuh"
// SPDX-License-Identifier: Apache-2.0
// A row of c128a_topk where one rank has all records. Its constants stand before this.
//
// A warp of each block of one x takes pieces of the row, in turn. What a warp waits for is
// its look-ups: those of two pieces are under way at once.






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
#line 51 "c128a_topk.cu"
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
#line 52 "c128a_topk.cu"


struct args_t {
    int num_tokens;
    int table_rows;
    count_t num_decode_tokens;
    count_t active_width;
    const long long *positions;
    count_t live_tokens;
    const int *token_to_req;
    const long long *slot_mapping;
    const int *block_table;
    int *decode_slots;
    int *decode_lens;
    int *prefill_local;
    int dcp_rank;
    report_t *report;
};

constexpr unsigned kRows = kThreads / kWarp;

// How many of the records [begin, end) have a usable page, by a warp.
template <bool kWide>
__device__ inline unsigned count_usable(const int *pages, unsigned begin, unsigned end)
{
    if (begin == end) {
        return 0;
    }
    const unsigned n_pages = div_up<unsigned>(end, kBlockSize);
    const unsigned slices = div_up(n_pages, kSlice);
    unsigned usable = 0;
#pragma unroll 8 // look-ups of several slices in flight
    for (unsigned slice = begin / kBlockSize / kSlice; slice < slices; slice++) {
        const int_quad_t quad = load_quad<kWide>(pages, slice, n_pages);
#pragma unroll
        for (unsigned i = 0; i < kQuad; i++) {
            const unsigned page = column_of<kWide>(slice, i);
            const unsigned first = greatest(page * kBlockSize, begin);
            const unsigned last = least((page + 1) * kBlockSize, end);
            const bool counts =
                slot_in_page<kBlockSize>(quad.at[i], 0) >= 0 && first < last;
            usable += counts ? last - first : 0;
        }
    }
    return __reduce_add_sync(kWholeWarp, usable);
}

// The usable ones of the records [0, n) at the front. Returns how many, in the first
// block.
template <bool kWide>
__device__ inline unsigned compact_slices(int *row, unsigned width, unsigned n,
                                          const int *pages)
{
    const unsigned slices = div_up(width, kSlice);
    unsigned kept = 0; // of the records below `counted`
    unsigned counted = 0;
    for (unsigned slice = blockIdx.y; slice < slices; slice += gridDim.y) {
        if (slice * kSlice < n) {
            kept += count_usable<kWide>(pages, counted, slice * kSlice);
            counted = least((slice + 1) * kSlice, n);
        }
#pragma unroll
        for (unsigned i = 0; i < kQuad; i++) {
            const unsigned column = column_of<false>(slice, i);
            int slot = -1;
            if (column < n) {
                slot = slot_in_page<kBlockSize>(__ldg(pages + column / kBlockSize),
                                                column % kBlockSize);
            } else if (column < width) {
                row[column] = -1;
            }
            const unsigned place = place_kept(slot >= 0, kept);
            if (slot >= 0) {
                row[place] = slot;
            }
        }
    }
    if (blockIdx.y == 0) {
        kept += count_usable<kWide>(pages, counted, n);
        for (unsigned column = kept + lane_of_thread(); column < n; column += kWarp) {
            row[column] = -1;
        }
    }
    return kept;
}

// Returns the row's length, in the first block.
__device__ inline unsigned write_decode_row(int *row, unsigned width, unsigned n,
                                            const int *pages)
{
    if constexpr (kDcpWorld == 1) {
        write_row<true>(row, width, n, pages);
        return n;
    } else if (takes_quads(pages)) {
        return compact_slices<true>(row, width, n, pages);
    } else {
        return compact_slices<false>(row, width, n, pages);
    }
}

// What the rules turned away, for the checked build: of a live decode row with its records
// [0, n), by its warp; `once` is null for all lanes but one. Whether the row is not inert.
__device__ inline bool check_decode_row(const args_t &args, unsigned row, unsigned n,
                                        report_t *once)
{
    const bool masks = kDcpWorld == 1 && args.slot_mapping != nullptr;
    if (masks && args.slot_mapping[row] < 0) {
        return false;
    }
    const int request = args.token_to_req[row];
    if (request < 0 || request >= args.table_rows) {
        report(once, kReasonRequest, row, -1, request);
        return false;
    }
    const int *pages = args.block_table + static_cast<long long>(request) * kTableStride;
    for (unsigned record = lane_of_thread(); record < n; record += kWarp) {
        const owned_t owned =
            owned_by<kDcpWorld, kDcpInterleave>(static_cast<int>(record), args.dcp_rank);
        if (owned.mine && owned.local < kPagedIds<kBlockSize, kTableWidth>) {
            check_page<kTwo31 / kBlockSize>({args.report, row, record},
                                            pages[owned.local / kBlockSize]);
        }
    }
    return true;
}

// Of any row, by its warp in one block.
__device__ inline void check_row(const args_t &args, unsigned row)
{
    if (is_first_thread()) {
        report_count(args.report, kReasonDecodeTokens, args.num_decode_tokens,
                     args.num_tokens);
        report_count(args.report, kReasonLiveTokens, args.live_tokens, args.num_tokens);
        report_count(args.report, kReasonActiveWidth, args.active_width, kCapacity);
    }
    const int token = static_cast<int>(row);
    const long long position = args.positions[row];
    if (token >= read_count(args.live_tokens, args.num_tokens) || position < 0) {
        return;
    }
    const int width = clamp(read_count(args.active_width, kCapacity), 0, kCapacity);
    const int n = complete_records<kCompressRatio>(position, width);
    const unsigned long long complete =
        (static_cast<unsigned long long>(position) + 1) / kCompressRatio;
    bool clipped = complete > static_cast<unsigned>(n);
    report_t *once = lane_of_thread() == 0 ? args.report : nullptr;
    if (token < read_count(args.num_decode_tokens, 0)) {
        if (!check_decode_row(args, row, n, once)) {
            return;
        }
        const unsigned owned = owned_below<kDcpWorld, kDcpInterleave>(n, args.dcp_rank);
        clipped = clipped || owned > kPagedIds<kBlockSize, kTableWidth>;
    }
    if (clipped) {
        report(once, kReasonLength, row, -1,
               static_cast<long long>(least(complete, ~0ull >> 1)));
    }
}

extern "C" __global__ void __launch_bounds__(kThreads)
    kiln_c128a_topk(const __grid_constant__ args_t args)
{
    wait_for_previous_kernel();
    let_next_kernel_start();
    const unsigned row = blockIdx.x * kRows + warp_of_thread();
    if (row >= static_cast<unsigned>(args.num_tokens)) {
        return;
    }
    // All that a row may need is under way before the first of it is looked at.
    const int live_tokens = read_count(args.live_tokens, args.num_tokens);
    const int active_width = read_count(args.active_width, kCapacity);
    const int decode_tokens = read_count(args.num_decode_tokens, 0);
    const long long position = args.positions[row];
    const int request = args.token_to_req[row];
    const bool masks = kDcpWorld == 1 && args.slot_mapping != nullptr;
    const long long raw_slot = masks ? args.slot_mapping[row] : 0;

    const int width = clamp(active_width, 0, kCapacity);
    const unsigned n_decode = clamp(decode_tokens, 0, args.num_tokens);
    const bool live = static_cast<int>(row) < live_tokens;
    const bool known = request >= 0 && request < args.table_rows;
    const long long table_row = known ? request : 0;
    const int n = live ? complete_records<kCompressRatio>(position, width) : 0;
    if (row >= n_decode) {
        const long long prefill_row = row - n_decode;
        write_row<false>(args.prefill_local + prefill_row * kCapacity, width, n, nullptr);
    } else {
        const unsigned owned = owned_below<kDcpWorld, kDcpInterleave>(n, args.dcp_rank);
        const unsigned paged = least(owned, kPagedIds<kBlockSize, kTableWidth>);
        const unsigned length =
            write_decode_row(args.decode_slots + static_cast<long long>(row) * kCapacity,
                             width, known && raw_slot >= 0 ? paged : 0,
                             args.block_table + table_row * kTableStride);
        if (blockIdx.y == 0 && lane_of_thread() == 0) {
            args.decode_lens[row] = static_cast<int>(length);
        }
    }
    if constexpr (kChecked) {
        if (blockIdx.y == 0) {
            check_row(args, row);
        }
    }
}
