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
// one that chooses between wide accesses and others. Threads past the last token leave last,
// so that no load waits for that. No shared memory.
#ifndef KILN_PRELUDE
constexpr int kDcpWorld = 1;  // ranks that share the cache
constexpr int kThreads = 256; // threads of a block
#endif

static_assert(kDcpWorld >= 1, "dcp_world must be at least 1");

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
#line 21 "is_valid_token.cu"
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
#line 22 "is_valid_token.cu"
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
    let_next_kernel_start();
    const unsigned token = blockIdx.x * kThreads + threadIdx.x;
    const bool inside = token < static_cast<unsigned>(args.num_tokens);
    const int live_tokens = read_count(args.live_tokens, args.num_tokens);
    long long slot = 0; // mapped, where nothing says otherwise
    if (inside && kDcpWorld == 1 && args.slot_mapping != nullptr) {
        slot = __ldg(args.slot_mapping + token);
    }
    if (inside) {
        args.is_valid_token[token] = static_cast<int>(token) < live_tokens && slot >= 0;
    }
    if constexpr (kChecked) {
        if (is_first_thread()) {
            report_count(args.report, kReasonLiveTokens, args.live_tokens,
                         args.num_tokens);
        }
    }
}
