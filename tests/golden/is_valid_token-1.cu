// kiln: is_valid_token
#define KILN_PRELUDE
[[maybe_unused]] constexpr int kDcpWorld = 1;
[[maybe_unused]] constexpr int kThreads = 128;
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
// One token per thread: dense accesses at any alignment, and a kernel so short costs less than
// one that chooses between wide accesses and others. No shared memory.
#ifndef KILN_PRELUDE
constexpr int kDcpWorld = 1;  // ranks that share the cache
constexpr int kThreads = 128; // threads of a block
#endif

static_assert(kDcpWorld >= 1, "dcp_world must be at least 1");

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
#line 20 "is_valid_token.cu"
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

// All threads of a launch see the same kind. The load stands alone in its branch, so that it
// is predicated and nothing is jumped over.
__device__ inline int read_count(const count_t &count, int if_absent)
{
    int value = count.kind == kCountValue ? count.value : if_absent;
    if (count.kind == kCountDevice) {
        value = *count.address;
    }
    return value;
}
#line 21 "is_valid_token.cu"
#line 1 "common/launch_order.cuh"
// SPDX-License-Identifier: Apache-2.0
// The order of launches. A programmatic launch may start before the kernel ahead of it on the
// stream has ended; every other launch starts after, and waits here for nothing.


#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
// First in every entry, by all threads: nothing of this kernel may touch memory before. The kernel
// behind may start as soon as all blocks are here, as it waits in turn for the end of this one,
// and so of all ahead.
__device__ inline void wait_for_previous_kernel()
{
    asm volatile("griddepcontrol.launch_dependents;");
    asm volatile("griddepcontrol.wait;" ::: "memory");
}
#else
// Older GPUs, and the CPU, have no programmatic launches.
__device__ inline void wait_for_previous_kernel()
{
}
#endif
#line 22 "is_valid_token.cu"
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
#line 23 "is_valid_token.cu"

struct args_t {
    const long long *slot_mapping;
    unsigned char *is_valid_token;
    count_t live_tokens;
    int num_tokens;
    report_t *report;
};

extern "C" __global__ void __launch_bounds__(kThreads)
    kiln_is_valid_token(const __grid_constant__ args_t args)
{
    wait_for_previous_kernel();
    const unsigned token = blockIdx.x * kThreads + threadIdx.x;
    if (token >= static_cast<unsigned>(args.num_tokens)) {
        return;
    }
    const int live_tokens = read_count(args.live_tokens, args.num_tokens);
    const bool masks = kDcpWorld == 1 && args.slot_mapping != nullptr;
    const bool mapped = !masks || __ldg(args.slot_mapping + token) >= 0;
    args.is_valid_token[token] = static_cast<int>(token) < live_tokens && mapped;
    if constexpr (kChecked) {
        if (is_first_thread()) {
            report_count(args.report, kReasonLiveTokens, args.live_tokens,
                         args.num_tokens);
        }
    }
}
