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
#line 24 "gather_lens.cu"
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
#line 25 "gather_lens.cu"
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
#line 26 "gather_lens.cu"
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
#line 27 "gather_lens.cu"
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
#line 28 "gather_lens.cu"
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
#line 29 "gather_lens.cu"

struct args_t {
    const int *replay_start;
    int num_requests;
    count_t first_request;
    const int *query_start_loc;
    const int *seq_lens;
    int *gather_lens;
    report_t *report;
};

constexpr unsigned kMost = kTwo31 - 1;

// What was clipped, for the checked build; a decode request's row is negative.
__device__ inline void check_request(const args_t &args, int row, long long sum)
{
    if (row >= 0 && sum > kMost) {
        report(args.report, kReasonLength, row, -1, sum);
    }
}

extern "C" __global__ void __launch_bounds__(kThreads)
    kiln_gather_lens(const __grid_constant__ args_t args)
{
    wait_for_previous_kernel();
    let_next_kernel_start();
    const unsigned row = blockIdx.x * kThreads + threadIdx.x;
    const unsigned requests = static_cast<unsigned>(args.num_requests);
    // Threads past the last request look at that one: nothing is loaded behind a branch.
    const unsigned request = least(row, requests - 1);
    const int first = greatest(read_count(args.first_request, 0), 0);
    const int *bounds = args.query_start_loc + request;
    const int begin = bounds[0];
    const int end = bounds[1];
    const int seq_len = args.seq_lens[request];
    const int replay_start =
        load_if(args.replay_start != nullptr, args.replay_start, request, 0);

    // Unsigned: neither difference is negative where it counts, and both may pass 2^31-1.
    const unsigned query_len = static_cast<unsigned>(end) - static_cast<unsigned>(begin);
    const unsigned replayed =
        static_cast<unsigned>(seq_len) - static_cast<unsigned>(replay_start);
    const unsigned past = greatest(replayed, query_len) - query_len;
    const unsigned before =
        seq_len >= replay_start ? least<unsigned>(past, kWindow - 1) : 0;
    const unsigned gathered = least(least(query_len, kMost) + before, kMost);
    store_if(row < requests && static_cast<int>(row) >= first, args.gather_lens,
             static_cast<int>(row) - first, static_cast<int>(gathered));
    if constexpr (kChecked) {
        if (is_first_thread()) {
            report_count(args.report, kReasonFirstRequest, args.first_request,
                         args.num_requests);
        }
        if (row < requests) {
            check_request(args, static_cast<int>(row) - first,
                          static_cast<long long>(query_len) + before);
        }
    }
}
