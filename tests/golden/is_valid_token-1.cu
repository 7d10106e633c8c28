// kiln: is_valid_token
#define KILN_PRELUDE
[[maybe_unused]] constexpr int kDcpWorld = 1;
[[maybe_unused]] constexpr int kThreads = 64;
[[maybe_unused]] constexpr int kOp = 9;
[[maybe_unused]] constexpr bool kChecked = false;
#line 1 "is_valid_token.cu"
// SPDX-License-Identifier: Apache-2.0
// is_valid_token: which tokens of a padded batch are real.
//
//   is_valid_token[t] = 1 where t < live_tokens and slot_mapping[t] >= 0, else 0
//
// In:  slot_mapping[num_tokens] int64 or null: all are mapped. With kDcpWorld > 1 it is -1 for
//      tokens that another rank stores, and not looked at.
// Out: is_valid_token[num_tokens], bytes.
//
// Four tokens per thread. Where both arrays allow they are neighbours, read in 16-byte
// accesses and written in one of 4; elsewhere they lie a warp apart, so that the warp's
// accesses are dense all the same. No shared memory.
#ifndef KILN_PRELUDE
constexpr int kDcpWorld = 1; // ranks that share the cache
constexpr int kThreads = 64; // threads of a block
#endif

static_assert(kDcpWorld >= 1, "dcp_world must be at least 1");
static_assert(kThreads % 32 == 0, "a warp's tokens are neighbours");

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
#line 22 "is_valid_token.cu"
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

// All threads of a launch see the same kind, so this branch is uniform.
__device__ inline int read_count(const count_t &count, int if_absent)
{
    if (count.kind == kCountDevice) {
        return *count.address;
    }
    return count.kind == kCountValue ? count.value : if_absent;
}
#line 23 "is_valid_token.cu"
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

// The same for all threads of a row.
__device__ inline bool takes_quads(const int *row)
{
    return reinterpret_cast<unsigned long long>(row) % sizeof(int_quad_t) == 0;
}

// Column i of the lane's four.
template <bool kWide>
__device__ inline unsigned column_of(unsigned slice, unsigned i)
{
    const unsigned lane = lane_of_thread();
    return slice * kSlice + (kWide ? lane * kQuad + i : i * kWarp + lane);
}

// Columns at or past width are not read and come back as -1. What is read once (kOnce)
// may leave the cache first.
template <bool kWide, bool kOnce = false>
__device__ inline int_quad_t load_quad(const int *row, unsigned slice, unsigned width)
{
    const unsigned first = column_of<kWide>(slice, 0);
    if (kWide && first / kQuad < width / kQuad) {
        const int4 *address = reinterpret_cast<const int4 *>(row + first);
        const int4 whole = kOnce ? __ldcs(address) : __ldg(address);
        return {whole.x, whole.y, whole.z, whole.w};
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
        *reinterpret_cast<int4 *>(row + first) =
            make_int4(quad.at[0], quad.at[1], quad.at[2], quad.at[3]);
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
#line 24 "is_valid_token.cu"
#line 1 "common/report.cuh"
// SPDX-License-Identifier: Apache-2.0
// The checked build: what the rules turned away goes to a report, and results stay.
//
// kOp and kChecked stand in every prelude. A kernel calls its check_launch() last, under
// `if constexpr (kChecked)`: it looks at the inputs anew, in plain code, so that nothing
// in the kernel's own path is another.




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
#line 25 "is_valid_token.cu"

struct args_t {
    const long long *slot_mapping;
    unsigned char *is_valid_token;
    count_t live_tokens;
    int num_tokens;
    report_t *report;
};

// The slots of four tokens from `token` on.
__device__ inline void load_slots(const long long *slot_mapping, unsigned token,
                                  long long (&slots)[kQuad])
{
    const longlong2 *pairs = reinterpret_cast<const longlong2 *>(slot_mapping + token);
    const longlong2 low = __ldg(pairs);
    const longlong2 high = __ldg(pairs + 1);
    slots[0] = low.x;
    slots[1] = low.y;
    slots[2] = high.x;
    slots[3] = high.y;
}

__device__ inline void write_neighbours(const args_t &args, unsigned token, int live,
                                        bool masks)
{
    long long slots[kQuad] = {};
    unsigned char valid[kQuad];
    if (masks) {
        load_slots(args.slot_mapping, token, slots);
    }
#pragma unroll // both arrays live in registers
    for (unsigned i = 0; i < kQuad; i++) {
        valid[i] = static_cast<int>(token + i) < live && slots[i] >= 0;
    }
    *reinterpret_cast<uchar4 *>(args.is_valid_token + token) =
        make_uchar4(valid[0], valid[1], valid[2], valid[3]);
}

// A step of 1 takes neighbours, one of a warp dense accesses.
__device__ inline void write_singly(const args_t &args, unsigned token, unsigned step,
                                    int live, bool masks)
{
    const unsigned tokens = static_cast<unsigned>(args.num_tokens);
#pragma unroll // all loads under way before the first store
    for (unsigned i = 0; i < kQuad; i++, token += step) {
        if (token < tokens) {
            const bool mapped = !masks || __ldg(args.slot_mapping + token) >= 0;
            args.is_valid_token[token] = static_cast<int>(token) < live && mapped;
        }
    }
}

extern "C" __global__ void __launch_bounds__(kThreads)
    kiln_is_valid_token(const __grid_constant__ args_t args)
{
    const int live = read_count(args.live_tokens, args.num_tokens);
    const bool masks = kDcpWorld == 1 && args.slot_mapping != nullptr;
    const unsigned thread = blockIdx.x * kThreads + threadIdx.x;
    const unsigned lane = lane_of_thread();
    const bool wide =
        reinterpret_cast<unsigned long long>(args.slot_mapping) % sizeof(longlong2) ==
            0 &&
        reinterpret_cast<unsigned long long>(args.is_valid_token) % sizeof(uchar4) == 0;
    if (!wide) {
        write_singly(args, (thread - lane) * kQuad + lane, kWarp, live, masks);
    } else if (thread < static_cast<unsigned>(args.num_tokens) / kQuad) {
        write_neighbours(args, thread * kQuad, live, masks);
    } else {
        write_singly(args, thread * kQuad, 1, live, masks);
    }
    if constexpr (kChecked) {
        if (is_first_thread()) {
            report_count(args.report, kReasonLiveTokens, args.live_tokens,
                         args.num_tokens);
        }
    }
}
