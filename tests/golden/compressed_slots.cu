#line 1 "compressed_slots.cu"
// SPDX-License-Identifier: Apache-2.0
// compressed_slots: the slot of the record that a token completes.
//
//   slots[t] = page * kBlockSize + c % kBlockSize, where (pos + 1) % kCompressRatio == 0,
//              c = pos / kCompressRatio, page = block_table[b, c / kBlockSize];  or -1
//   pos      = seq_lens[b] - (query_start_loc[b + 1] - t),  b = the request of token t
//
// In:  query_start_loc[num_requests + 1], which never decreases, seq_lens[num_requests],
//      block_table[table_rows, kTableWidth] (rows kTableStride apart),
//      own_slots[num_tokens] int64, or null: with one rank a token whose own slot is
//      negative writes nothing.
// Out: slots[num_tokens] int64. All else int32. With kDcpWorld > 1 the records of other
//      ranks are -1.
//
// One thread per token, so that a long prefill spreads over the GPU; a warp searches for
// its 32 tokens together, and its accesses are dense at any alignment. Pages may be any
// int32. No shared memory.
#ifndef KILN_PRELUDE
constexpr int kCompressRatio = 4; // raw tokens of a record
constexpr int kBlockSize = 64;    // slots of a page
constexpr int kTableWidth = 4096; // pages of a request
constexpr int kTableStride = 4096;
constexpr int kDcpWorld = 1;      // ranks that share the cache
constexpr int kDcpInterleave = 1; // consecutive records of one rank
constexpr int kThreads = 256;     // threads of a block
#endif

static_assert(kCompressRatio >= 1, "compress_ratio must be at least 1");
static_assert(
    kBlockSize >= 1 && kTableWidth >= 1 && kTableWidth <= kTableStride,
    "block_size and table_width must be at least 1, table_stride at least table_width");
static_assert(kDcpWorld >= 1 && kDcpInterleave >= 1 && kBlockSize % kDcpInterleave == 0,
              "dcp_interleave must divide block_size");
static_assert(kThreads % 32 == 0, "tokens are searched by whole warps");

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
#line 37 "compressed_slots.cu"
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
#line 38 "compressed_slots.cu"

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
#line 40 "compressed_slots.cu"


#line 1 "common/token_places.cuh"
// SPDX-License-Identifier: Apache-2.0
// Where a warp's tokens stand: the request of each lane's token, and its position there.




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
#line 8 "common/token_places.cuh"

struct place_t {
    int request;  // -1: none has the token
    int position; // of the token in its sequence, below 0 before it; -1: no request
};

constexpr place_t kNoPlace = {-1, -1};

// Of a token below its request's end. A sequence of less than nothing is as one of nothing:
// all of its tokens stand before it.
__device__ inline int position_of(int token, int end, int seq_len)
{
    return greatest(seq_len, 0) - (end - token);
}

// How many requests end at or before a token.
__device__ inline unsigned requests_before(const int *query_start_loc, unsigned requests,
                                           int token)
{
    unsigned low = 0;
    unsigned high = requests;
#pragma unroll 1
    while (low < high) {
        const unsigned middle = (low + high) / 2;
        const bool passed = query_start_loc[middle + 1] <= token;
        low = passed ? middle + 1 : low;
        high = passed ? high : middle;
    }
    return low;
}

// Requests are looked at one per lane, from the first that may have the warp's first token.
// Each that ends inside the warp leaves a mark there: a token's request comes as many
// requests further as there are marks up to it.
template <bool kPositions>
__device__ inline place_t search_place(const int *query_start_loc, const int *seq_lens,
                                       int num_requests, int token)
{
    const unsigned requests = static_cast<unsigned>(num_requests);
    const int lead = __shfl_sync(kWholeWarp, token, 0);
    const unsigned first =
        static_cast<unsigned>(narrow_requests(query_start_loc, num_requests, lead));
    const unsigned looked_at = first + lane_of_thread();
    const bool known = looked_at < requests;
    int origin = 0;
    int end = 0;
    int seq_len = 0;
    if (num_requests > 0) {
        origin = query_start_loc[0];
    }
    if (known) {
        end = query_start_loc[looked_at + 1];
    }
    if (kPositions && known) {
        seq_len = seq_lens[looked_at];
    }
    const unsigned at = known ? static_cast<unsigned>(greatest(end, lead) - lead) : kWarp;
    const bool inside = 0 < at && at < kWarp;
    const unsigned marks = __reduce_or_sync(kWholeWarp, inside ? 1u << at : 0u);
    const unsigned before = __popc(__ballot_sync(kWholeWarp, at == 0));
    const unsigned ends = __popc(__ballot_sync(kWholeWarp, inside));

    const unsigned passed = before + __popc(marks << (kWarp - 1 - (token - lead)));
    unsigned request = first + passed;
    end = __shfl_sync(kWholeWarp, end, passed);
    seq_len = kPositions ? __shfl_sync(kWholeWarp, seq_len, passed) : 0;
    // Where requests share a mark, some without tokens, or go on behind the last lane's.
    if (__popc(marks) != ends || before + ends == kWarp) {
        request = requests_before(query_start_loc, requests, token);
        end = request < requests ? query_start_loc[request + 1] : 0;
        seq_len = kPositions && request < requests ? seq_lens[request] : 0;
    }
    const bool has = request < requests && origin <= token;
    return has ? place_t{static_cast<int>(request), position_of(token, end, seq_len)}
               : kNoPlace;
}

// By a whole warp, with tokens that count up from its first lane's to the last token.
template <bool kPositions>
__device__ inline place_t place_of_token(const int *query_start_loc, const int *seq_lens,
                                         int num_requests, int num_tokens, int token)
{
    const unsigned tokens = static_cast<unsigned>(num_tokens);
    // In decode each token is a request of its own: token t is request t.
    if (tokens < 2 * static_cast<unsigned>(num_requests)) {
        const int request = least(token, num_requests - 1);
        const int *bounds = query_start_loc + request;
        const int begin = bounds[0];
        const int end = bounds[1];
        const int seq_len = kPositions ? seq_lens[request] : 0;
        if (__all_sync(kWholeWarp, begin <= token && token < end)) {
            return {request, position_of(token, end, seq_len)};
        }
    }
    return search_place<kPositions>(query_start_loc, seq_lens, num_requests, token);
}
#line 43 "compressed_slots.cu"

struct args_t {
    const int *query_start_loc;
    const int *seq_lens;
    const int *block_table;
    const long long *own_slots;
    long long *slots;
    int num_tokens;
    int num_requests;
    int table_rows;
    int dcp_rank;
    report_t *report;
};

// The slot of what a token at this place completes, or -1. Nothing is jumped over but the
// page's look-up.
__device__ inline long long slot_of(const args_t &args, const place_t &place, bool writes)
{
    const unsigned position = static_cast<unsigned>(place.position);
    const int record = static_cast<int>(position / kCompressRatio);
    const owned_t owned = owned_by<kDcpWorld, kDcpInterleave>(record, args.dcp_rank);
    const bool maps = writes && (position + 1) % kCompressRatio == 0 &&
                      place.request < args.table_rows && owned.mine &&
                      owned.local < kPagedIds<kBlockSize, kTableWidth>;
    int page = -1;
    if (maps) {
        const int *pages =
            args.block_table + static_cast<long long>(place.request) * kTableStride;
        page = __ldg(pages + owned.local / kBlockSize);
    }
    const long long begin = static_cast<long long>(page) * kBlockSize;
    return page >= 0 ? begin + owned.local % kBlockSize : -1;
}

// What the rules turned away, for the checked build, of a token that may write.
__device__ inline void check_token(const args_t &args, unsigned row, const place_t &place)
{
    if ((place.position + 1) % kCompressRatio != 0) {
        return;
    }
    const report_at_t at = {args.report, row, -1};
    if (place.request >= args.table_rows) {
        report(at.to, kReasonRequest, at.row, at.column, place.request);
        return;
    }
    const int *pages =
        args.block_table + static_cast<long long>(place.request) * kTableStride;
    const int local = check_id<kDcpWorld, kDcpInterleave, kBlockSize, kTableWidth>(
        at, place.position / kCompressRatio, args.dcp_rank);
    if (local >= 0) {
        check_page<kTwo31>(at, pages[local / kBlockSize]);
    }
}

extern "C" __global__ void __launch_bounds__(kThreads)
    kiln_compressed_slots(const __grid_constant__ args_t args)
{
    wait_for_previous_kernel();
    let_next_kernel_start();
    const unsigned row = blockIdx.x * kThreads + threadIdx.x;
    const unsigned tokens = static_cast<unsigned>(args.num_tokens);
    // Lanes past the last token take part in the search, with that one.
    const int token = static_cast<int>(least(row, tokens - 1));
    long long own_slot = 0;
    if (kDcpWorld == 1 && args.own_slots != nullptr) {
        own_slot = __ldg(args.own_slots + token);
    }
    const place_t place = place_of_token<true>(args.query_start_loc, args.seq_lens,
                                               args.num_requests, args.num_tokens, token);
    // Both at once, so that the search does not wait for the slot.
    const bool writes = (place.position | static_cast<int>(own_slot >> 32)) >= 0;
    const long long slot = slot_of(args, place, writes);
    if (row < tokens) {
        args.slots[row] = slot;
    }
    if constexpr (kChecked) {
        if (row < tokens && writes) {
            check_token(args, row, place);
        }
    }
}
