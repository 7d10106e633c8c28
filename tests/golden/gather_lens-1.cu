// kiln: gather_lens
#define KILN_PRELUDE
[[maybe_unused]] constexpr int kWindow = 128;
[[maybe_unused]] constexpr int kThreads = 128;
[[maybe_unused]] constexpr int kOp = 10;
[[maybe_unused]] constexpr bool kChecked = false;
#line 1 "gather_lens.cu"
// SPDX-License-Identifier: Apache-2.0
// gather_lens: the raw tokens that a prefill request gathers.
//
//   gather_lens[b - first_request] =
//       qlen + clamp(prefix - replay_start[b], 0, kWindow - 1)
//   qlen = query_start_loc[b + 1] - query_start_loc[b],  prefix = seq_lens[b] - qlen
//
// for each request b from first_request on, clamped to [0, num_requests].
//
// In:  query_start_loc[num_requests + 1], seq_lens[num_requests],
//      replay_start[num_requests] or null: 0.
// Out: gather_lens[num_requests - first_request]. All int32; a sum past 2^31-1 becomes that.
//
// One thread per request, decode requests included: how many there are may be known on
// the device alone. A warp's accesses are dense at any alignment. No shared memory.
#ifndef KILN_PRELUDE
constexpr int kWindow = 128;  // raw tokens of the sliding window
constexpr int kThreads = 128; // threads of a block
#endif

static_assert(kWindow >= 1, "window must be at least 1");

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
#line 24 "gather_lens.cu"
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
#line 25 "gather_lens.cu"
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
#line 26 "gather_lens.cu"
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
#line 27 "gather_lens.cu"
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
#line 28 "gather_lens.cu"

struct args_t {
    const int *query_start_loc;
    const int *seq_lens;
    const int *replay_start;
    int *gather_lens;
    count_t first_request;
    int num_requests;
    report_t *report;
};

// What was clipped, for the checked build; a decode request's row is negative.
__device__ inline void check_request(const args_t &args, int row, long long sum)
{
    if (is_first_thread()) {
        report_count(args.report, kReasonFirstRequest, args.first_request,
                     args.num_requests);
    }
    if (row >= 0 && sum >= kTwo31) {
        report(args.report, kReasonLength, row, -1, sum);
    }
}

extern "C" __global__ void __launch_bounds__(kThreads)
    kiln_gather_lens(const __grid_constant__ args_t args)
{
    wait_for_previous_kernel();
    const unsigned request = blockIdx.x * kThreads + threadIdx.x;
    const unsigned requests = static_cast<unsigned>(args.num_requests);
    if (request >= requests) {
        return;
    }
    // Of decode requests too, so that nothing waits for the count.
    const long long begin = args.query_start_loc[request];
    const long long query_len = args.query_start_loc[request + 1] - begin;
    const long long prefix = args.seq_lens[request] - query_len;
    const int replayed = args.replay_start != nullptr ? args.replay_start[request] : 0;
    const long long before = clamp<long long>(prefix - replayed, 0, kWindow - 1);
    const long long sum = query_len + before;
    const long long gathered = least<long long>(sum, kTwo31 - 1);

    const int first = clamp(read_count(args.first_request, 0), 0, args.num_requests);
    if (request >= static_cast<unsigned>(first)) {
        args.gather_lens[request - first] = static_cast<int>(gathered);
    }
    if constexpr (kChecked) {
        check_request(args, static_cast<int>(request) - first, sum);
    }
}
