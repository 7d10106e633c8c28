// kiln: compressed_slots
#define KILN_PRELUDE
[[maybe_unused]] constexpr int kCompressRatio = 4;
[[maybe_unused]] constexpr int kBlockSize = 64;
[[maybe_unused]] constexpr int kTableWidth = 4096;
[[maybe_unused]] constexpr int kTableStride = 4096;
[[maybe_unused]] constexpr int kDcpWorld = 1;
[[maybe_unused]] constexpr int kDcpInterleave = 1;
[[maybe_unused]] constexpr int kThreads = 64;
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
constexpr int kThreads = 64;      // threads of a block
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

__device__ inline unsigned lane_of_thread()
{
    return threadIdx.x % kWarp;
}

__device__ inline unsigned warp_of_thread()
{
    return threadIdx.x / kWarp;
}
#line 37 "compressed_slots.cu"
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
#line 38 "compressed_slots.cu"
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

// The slot at an offset of a page, or -1 for a page whose slots an int32 cannot name.
template <int kPageSlots>
__device__ inline int slot_in_page(int page, unsigned offset)
{
    const bool usable = static_cast<unsigned>(page) < kTwo31 / kPageSlots;
    return usable ? page * kPageSlots + static_cast<int>(offset) : -1;
}
#line 39 "compressed_slots.cu"
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
    int request;        // -1: none has the token
    long long position; // of the token in its sequence; -1 where there is no request
};

// By a whole warp, with tokens that do not descend from lane to lane. The warp searches the
// request of its first token together. From there on requests are looked at one per lane,
// and each lane finds its token's among them by the requests' ends, which never decrease:
// 32 neighbours rarely need a second look.
template <bool kPositions>
__device__ inline place_t place_of_token(const int *query_start_loc, const int *seq_lens,
                                         int num_requests, int token)
{
    constexpr int kPastEveryToken = 0x7fffffff;
    place_t place = {-1, -1};
    if (num_requests <= 0) {
        return place;
    }
    bool searches = token >= query_start_loc[0];
    const unsigned requests = static_cast<unsigned>(num_requests);
    unsigned first = static_cast<unsigned>(narrow_requests(
        query_start_loc, num_requests, __shfl_sync(kWholeWarp, token, 0)));
    do {
        const unsigned request = first + lane_of_thread();
        int end = kPastEveryToken;
        int seq_len = 0;
        if (request < requests) {
            end = query_start_loc[request + 1];
            if constexpr (kPositions) {
                seq_len = seq_lens[request];
            }
        }
        unsigned passed = 0; // how many of them end before the token, but for the last
#pragma unroll               // five steps
        for (unsigned step = kWarp / 2; step > 0; step /= 2) {
            const int other = __shfl_sync(kWholeWarp, end, passed + step - 1);
            passed += other <= token ? step : 0;
        }
        end = __shfl_sync(kWholeWarp, end, passed);
        if constexpr (kPositions) {
            seq_len = __shfl_sync(kWholeWarp, seq_len, passed);
        }
        if (searches && token < end) {
            searches = false;
            if (first + passed < requests) {
                place.request = static_cast<int>(first + passed);
                place.position = seq_len - (static_cast<long long>(end) - token);
            }
        }
        first += kWarp;
    } while (first < requests && __any_sync(kWholeWarp, searches));
    return place;
}
#line 40 "compressed_slots.cu"

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
};

// The slot of what a token at this place completes, or -1.
__device__ inline long long slot_of(const args_t &args, const place_t &place)
{
    // Below the length of its sequence, which is an int.
    const unsigned position = static_cast<unsigned>(place.position);
    if (place.position < 0 || place.request >= args.table_rows ||
        (position + 1) % kCompressRatio != 0) {
        return -1;
    }
    const int record = static_cast<int>(position / kCompressRatio);
    const owned_t owned = owned_by<kDcpWorld, kDcpInterleave>(record, args.dcp_rank);
    if (!owned.mine || owned.local >= kPagedIds<kBlockSize, kTableWidth>) {
        return -1;
    }
    const int *pages =
        args.block_table + static_cast<long long>(place.request) * kTableStride;
    const long long page = __ldg(pages + owned.local / kBlockSize);
    return page >= 0 ? page * kBlockSize + owned.local % kBlockSize : -1;
}

extern "C" __global__ void __launch_bounds__(kThreads)
    kiln_compressed_slots(const __grid_constant__ args_t args)
{
    const unsigned row = blockIdx.x * kThreads + threadIdx.x;
    const unsigned tokens = static_cast<unsigned>(args.num_tokens);
    if (row - lane_of_thread() >= tokens) {
        return;
    }
    // Lanes past the last token take part in the search, with that one.
    const int token = static_cast<int>(least(row, tokens - 1));
    const bool masks = kDcpWorld == 1 && args.own_slots != nullptr;
    const bool stored = !masks || args.own_slots[token] >= 0;
    const place_t place = place_of_token<true>(args.query_start_loc, args.seq_lens,
                                               args.num_requests, token);
    if (row < tokens) {
        args.slots[row] = stored ? slot_of(args, place) : -1;
    }
}
