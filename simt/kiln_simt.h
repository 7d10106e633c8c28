/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The words of CUDA C++ that emitted sources use, for a host compiler: with this header in
 * front the text compiles unchanged, and each CUDA thread is a fibre of kiln_simt_run.cpp.
 * Includes nothing, so that a source sees no name but CUDA's. Every operation that threads do
 * together takes the place it was called from: #line makes that the template's.
 */
#ifndef KILN_SIMT_H
#define KILN_SIMT_H

#define __global__
#define __device__
#define __host__
#define __constant__ static const
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __grid_constant__
#define __align__(n) alignas(n)
/* The runtime makes these anew for each block: `used` keeps the compiler from concluding that what
 * no kernel writes is zero. */
#define __shared__ static __attribute__((used))

/* ---- vector types */

#define KILN_SIMT_VECTORS(type, name, align2, align4)                                    \
    struct name##1                                                                       \
    {                                                                                    \
        type x;                                                                          \
    };                                                                                   \
    struct alignas(align2) name##2                                                       \
    {                                                                                    \
        type x, y;                                                                       \
    };                                                                                   \
    struct name##3                                                                       \
    {                                                                                    \
        type x, y, z;                                                                    \
    };                                                                                   \
    struct alignas(align4) name##4                                                       \
    {                                                                                    \
        type x, y, z, w;                                                                 \
    };                                                                                   \
    inline name##1 make_##name##1(type x)                                                \
    {                                                                                    \
        return {x};                                                                      \
    }                                                                                    \
    inline name##2 make_##name##2(type x, type y)                                        \
    {                                                                                    \
        return {x, y};                                                                   \
    }                                                                                    \
    inline name##3 make_##name##3(type x, type y, type z)                                \
    {                                                                                    \
        return {x, y, z};                                                                \
    }                                                                                    \
    inline name##4 make_##name##4(type x, type y, type z, type w)                        \
    {                                                                                    \
        return {x, y, z, w};                                                             \
    }

KILN_SIMT_VECTORS(signed char, char, 2, 4)
KILN_SIMT_VECTORS(unsigned char, uchar, 2, 4)
KILN_SIMT_VECTORS(short, short, 4, 8)
KILN_SIMT_VECTORS(unsigned short, ushort, 4, 8)
KILN_SIMT_VECTORS(int, int, 8, 16)
KILN_SIMT_VECTORS(unsigned, uint, 8, 16)
KILN_SIMT_VECTORS(long long, longlong, 16, 16)
KILN_SIMT_VECTORS(unsigned long long, ulonglong, 16, 16)
#undef KILN_SIMT_VECTORS

struct dim3 {
    unsigned x, y, z;
};

/* ---- the runtime's side, kiln_simt_run.cpp */

struct kiln_simt_place {
    const char *what, *file;
    int line;
};

enum kiln_simt_count { KILN_SIMT_COUNT, KILN_SIMT_AND, KILN_SIMT_OR };

extern "C" {
extern uint3 threadIdx, blockIdx;
extern dim3 blockDim, gridDim;

/* Waits for the block. Returns a value made of all threads' predicates. */
int kiln_simt_block_sync(const kiln_simt_place *place, kiln_simt_count how,
                         int predicate);

/* Waits for the lanes in mask, each with its value: values[lane] of each. `orders` makes their
 * accesses before it come before those after it, and hands no values over. */
void kiln_simt_warp_sync(const kiln_simt_place *place, unsigned mask,
                         unsigned long long value, bool orders,
                         unsigned long long values[32]);
unsigned kiln_simt_active_mask(void);
void kiln_simt_trap(const kiln_simt_place *place);
long long kiln_simt_clock(void);
}

constexpr int warpSize = 32;

#define KILN_SIMT_HERE const char *file = __builtin_FILE(), int line = __builtin_LINE()
#define KILN_SIMT_PLACE(name) const kiln_simt_place place = {name, file, line}

/* ---- the block */

inline void __syncthreads(KILN_SIMT_HERE)
{
    KILN_SIMT_PLACE("__syncthreads");
    kiln_simt_block_sync(&place, KILN_SIMT_COUNT, 0);
}

inline int __syncthreads_count(int predicate, KILN_SIMT_HERE)
{
    KILN_SIMT_PLACE("__syncthreads_count");
    return kiln_simt_block_sync(&place, KILN_SIMT_COUNT, predicate != 0);
}

inline int __syncthreads_and(int predicate, KILN_SIMT_HERE)
{
    KILN_SIMT_PLACE("__syncthreads_and");
    return kiln_simt_block_sync(&place, KILN_SIMT_AND, predicate != 0);
}

inline int __syncthreads_or(int predicate, KILN_SIMT_HERE)
{
    KILN_SIMT_PLACE("__syncthreads_or");
    return kiln_simt_block_sync(&place, KILN_SIMT_OR, predicate != 0);
}

/* One host thread runs all, so a fence has nothing to do; it orders no other thread. */
inline void __threadfence()
{
}
inline void __threadfence_block()
{
}
inline void __threadfence_system()
{
}

inline void __trap(KILN_SIMT_HERE)
{
    KILN_SIMT_PLACE("__trap");
    kiln_simt_trap(&place);
}

inline long long clock64()
{
    return kiln_simt_clock();
}

inline void __nanosleep(unsigned)
{
}

/* ---- the warp. As in CUDA only __syncwarp orders memory. */

inline unsigned kiln_simt_lane()
{
    return threadIdx.x % 32;
}

inline bool kiln_simt_in(unsigned mask, unsigned lane)
{
    return mask >> lane & 1;
}

/* A value as the runtime carries it. */
template <typename type>
unsigned long long kiln_simt_pack(type value)
{
    static_assert(sizeof(type) <= sizeof(unsigned long long), "at most 8 bytes");
    unsigned long long packed = 0;
    __builtin_memcpy(&packed, &value, sizeof value);
    return packed;
}

template <typename type>
type kiln_simt_unpack(unsigned long long packed)
{
    type value;
    __builtin_memcpy(&value, &packed, sizeof value);
    return value;
}

inline void __syncwarp(unsigned mask = 0xffffffffu, KILN_SIMT_HERE)
{
    KILN_SIMT_PLACE("__syncwarp");
    kiln_simt_warp_sync(&place, mask, 0, true, nullptr);
}

inline unsigned __activemask()
{
    return kiln_simt_active_mask();
}

inline unsigned kiln_simt_ballot(const kiln_simt_place *place, unsigned mask,
                                 bool predicate)
{
    unsigned long long values[32];
    kiln_simt_warp_sync(place, mask, predicate, false, values);
    unsigned ballot = 0;
    for (unsigned lane = 0; lane < 32; lane++) {
        ballot |= kiln_simt_in(mask, lane) && values[lane] != 0 ? 1u << lane : 0;
    }
    return ballot;
}

inline unsigned __ballot_sync(unsigned mask, int predicate, KILN_SIMT_HERE)
{
    KILN_SIMT_PLACE("__ballot_sync");
    return kiln_simt_ballot(&place, mask, predicate != 0);
}

inline int __any_sync(unsigned mask, int predicate, KILN_SIMT_HERE)
{
    KILN_SIMT_PLACE("__any_sync");
    return kiln_simt_ballot(&place, mask, predicate != 0) != 0;
}

inline int __all_sync(unsigned mask, int predicate, KILN_SIMT_HERE)
{
    KILN_SIMT_PLACE("__all_sync");
    return kiln_simt_ballot(&place, mask, predicate != 0) == mask;
}

/* The value of another lane; of the own one where that lane lies outside [low, high). A lane
 * that is not in the mask has no value: what comes back is a pattern that no result can be. */
template <typename type>
type kiln_simt_take(const kiln_simt_place *place, unsigned mask, type value, int from,
                    int low, int high)
{
    unsigned long long values[32];
    kiln_simt_warp_sync(place, mask, kiln_simt_pack(value), false, values);
    if (from < low || from >= high) {
        return value;
    }
    return kiln_simt_unpack<type>(kiln_simt_in(mask, static_cast<unsigned>(from))
                                      ? values[from]
                                      : 0xa5a5a5a5a5a5a5a5ull);
}

template <typename type>
type __shfl_sync(unsigned mask, type value, int from, int width = 32, KILN_SIMT_HERE)
{
    KILN_SIMT_PLACE("__shfl_sync");
    const int low = static_cast<int>(kiln_simt_lane()) / width * width;
    return kiln_simt_take(&place, mask, value, low + (from & (width - 1)), low,
                          low + width);
}

template <typename type>
type __shfl_up_sync(unsigned mask, type value, unsigned delta, int width = 32,
                    KILN_SIMT_HERE)
{
    KILN_SIMT_PLACE("__shfl_up_sync");
    const int lane = static_cast<int>(kiln_simt_lane());
    const int low = lane / width * width;
    return kiln_simt_take(&place, mask, value, lane - static_cast<int>(delta), low,
                          low + width);
}

template <typename type>
type __shfl_down_sync(unsigned mask, type value, unsigned delta, int width = 32,
                      KILN_SIMT_HERE)
{
    KILN_SIMT_PLACE("__shfl_down_sync");
    const int lane = static_cast<int>(kiln_simt_lane());
    const int low = lane / width * width;
    return kiln_simt_take(&place, mask, value, lane + static_cast<int>(delta), low,
                          low + width);
}

template <typename type>
type __shfl_xor_sync(unsigned mask, type value, int flips, int width = 32, KILN_SIMT_HERE)
{
    KILN_SIMT_PLACE("__shfl_xor_sync");
    const int lane = static_cast<int>(kiln_simt_lane());
    const int high = lane / width * width + width;
    return kiln_simt_take(&place, mask, value, lane ^ flips, 0, high);
}

/* Folds the values of the lanes in mask. */
template <typename type, typename fold_fn>
type kiln_simt_reduce(const kiln_simt_place *place, unsigned mask, type value,
                      fold_fn fold)
{
    unsigned long long values[32];
    kiln_simt_warp_sync(place, mask, kiln_simt_pack(value), false, values);
    bool any = false;
    type result = value;
    for (unsigned lane = 0; lane < 32; lane++) {
        if (kiln_simt_in(mask, lane)) {
            const type other = kiln_simt_unpack<type>(values[lane]);
            result = any ? fold(result, other) : other;
            any = true;
        }
    }
    return result;
}

#define KILN_SIMT_REDUCE(name, type, expression)                                         \
    inline type name(unsigned mask, type value, KILN_SIMT_HERE)                          \
    {                                                                                    \
        KILN_SIMT_PLACE(#name);                                                          \
        return kiln_simt_reduce(&place, mask, value, [](type a, type b) {                \
            return static_cast<type>(expression);                                        \
        });                                                                              \
    }
KILN_SIMT_REDUCE(__reduce_add_sync, unsigned, a + b)
KILN_SIMT_REDUCE(__reduce_add_sync, int,
                 static_cast<unsigned>(a) + static_cast<unsigned>(b))
KILN_SIMT_REDUCE(__reduce_min_sync, unsigned, a < b ? a : b)
KILN_SIMT_REDUCE(__reduce_min_sync, int, a < b ? a : b)
KILN_SIMT_REDUCE(__reduce_max_sync, unsigned, a > b ? a : b)
KILN_SIMT_REDUCE(__reduce_max_sync, int, a > b ? a : b)
KILN_SIMT_REDUCE(__reduce_and_sync, unsigned, a &b)
KILN_SIMT_REDUCE(__reduce_or_sync, unsigned, a | b)
KILN_SIMT_REDUCE(__reduce_xor_sync, unsigned, a ^ b)
#undef KILN_SIMT_REDUCE

template <typename type>
unsigned kiln_simt_match(const kiln_simt_place *place, unsigned mask, type value)
{
    const unsigned long long packed = kiln_simt_pack(value);
    unsigned long long values[32];
    kiln_simt_warp_sync(place, mask, packed, false, values);
    unsigned same = 0;
    for (unsigned lane = 0; lane < 32; lane++) {
        same |= kiln_simt_in(mask, lane) && values[lane] == packed ? 1u << lane : 0;
    }
    return same;
}

template <typename type>
unsigned __match_any_sync(unsigned mask, type value, KILN_SIMT_HERE)
{
    KILN_SIMT_PLACE("__match_any_sync");
    return kiln_simt_match(&place, mask, value);
}

template <typename type>
unsigned __match_all_sync(unsigned mask, type value, int *all, KILN_SIMT_HERE)
{
    KILN_SIMT_PLACE("__match_all_sync");
    *all = kiln_simt_match(&place, mask, value) == mask;
    return *all != 0 ? mask : 0;
}

/* ---- memory: hints change nothing */

#define KILN_SIMT_LOAD(name)                                                             \
    template <typename type>                                                             \
    type name(const type *address)                                                       \
    {                                                                                    \
        return *address;                                                                 \
    }
KILN_SIMT_LOAD(__ldg)
KILN_SIMT_LOAD(__ldca)
KILN_SIMT_LOAD(__ldcg)
KILN_SIMT_LOAD(__ldcs)
KILN_SIMT_LOAD(__ldcv)
KILN_SIMT_LOAD(__ldlu)
#undef KILN_SIMT_LOAD

/* The value's type is the address's, as it is for CUDA's overloads. */
template <typename type>
struct kiln_simt_same {
    using as = type;
};

#define KILN_SIMT_STORE(name)                                                            \
    template <typename type>                                                             \
    void name(type *address, typename kiln_simt_same<type>::as value)                    \
    {                                                                                    \
        *address = value;                                                                \
    }
KILN_SIMT_STORE(__stwb)
KILN_SIMT_STORE(__stcg)
KILN_SIMT_STORE(__stcs)
KILN_SIMT_STORE(__stwt)
#undef KILN_SIMT_STORE

/* ---- atomics: relaxed, as CUDA's; the builtins tell every sanitizer what they are */

#define KILN_SIMT_ATOMIC(name, expression)                                               \
    template <typename type>                                                             \
    type name(type *address, typename kiln_simt_same<type>::as value)                    \
    {                                                                                    \
        type old = __atomic_load_n(address, __ATOMIC_RELAXED);                           \
        while (!__atomic_compare_exchange_n(address, &old,                               \
                                            static_cast<type>(expression), false,        \
                                            __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {       \
        }                                                                                \
        return old;                                                                      \
    }
KILN_SIMT_ATOMIC(atomicAdd, old + value)
KILN_SIMT_ATOMIC(atomicSub, old - value)
KILN_SIMT_ATOMIC(atomicExch, value)
KILN_SIMT_ATOMIC(atomicMin, old < value ? old : value)
KILN_SIMT_ATOMIC(atomicMax, old > value ? old : value)
KILN_SIMT_ATOMIC(atomicAnd, old &value)
KILN_SIMT_ATOMIC(atomicOr, old | value)
KILN_SIMT_ATOMIC(atomicXor, old ^ value)
KILN_SIMT_ATOMIC(atomicInc, old >= value ? 0 : old + 1)
KILN_SIMT_ATOMIC(atomicDec, old == 0 || old > value ? value : old - 1)
#undef KILN_SIMT_ATOMIC

template <typename type>
type atomicCAS(type *address, typename kiln_simt_same<type>::as expected,
               typename kiln_simt_same<type>::as value)
{
    __atomic_compare_exchange_n(address, &expected, value, false, __ATOMIC_RELAXED,
                                __ATOMIC_RELAXED);
    return expected;
}

/* ---- integers */

inline int __popc(unsigned value)
{
    return __builtin_popcount(value);
}

inline int __popcll(unsigned long long value)
{
    return __builtin_popcountll(value);
}

inline int __clz(int value)
{
    return value == 0 ? 32 : __builtin_clz(static_cast<unsigned>(value));
}

inline int __clzll(long long value)
{
    return value == 0 ? 64 : __builtin_clzll(static_cast<unsigned long long>(value));
}

inline int __ffs(int value)
{
    return __builtin_ffs(value);
}

inline int __ffsll(long long value)
{
    return __builtin_ffsll(value);
}

inline unsigned __brev(unsigned value)
{
    unsigned reversed = 0;
    for (int i = 0; i < 32; i++) {
        reversed |= (value >> i & 1) << (31 - i);
    }
    return reversed;
}

inline int __mulhi(int a, int b)
{
    return static_cast<int>(static_cast<long long>(a) * b >> 32);
}

inline unsigned __umulhi(unsigned a, unsigned b)
{
    return static_cast<unsigned>(static_cast<unsigned long long>(a) * b >> 32);
}

inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift)
{
    const unsigned long long both = static_cast<unsigned long long>(high) << 32 | low;
    return static_cast<unsigned>(both << (shift & 31) >> 32);
}

inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift)
{
    const unsigned long long both = static_cast<unsigned long long>(high) << 32 | low;
    return static_cast<unsigned>(both >> (shift & 31));
}

/* CUDA overloads these for every pair of integer types. */
template <typename a_type, typename b_type>
auto min(a_type a, b_type b)
{
    using type = decltype(a + b);
    return static_cast<type>(a) < static_cast<type>(b) ? static_cast<type>(a)
                                                       : static_cast<type>(b);
}

template <typename a_type, typename b_type>
auto max(a_type a, b_type b)
{
    using type = decltype(a + b);
    return static_cast<type>(a) > static_cast<type>(b) ? static_cast<type>(a)
                                                       : static_cast<type>(b);
}

/* ---- the entry: kiln_simt_kernel.cpp names it */

template <typename args_type>
void kiln_simt_call(void (*kernel)(args_type), const void *args)
{
    kernel(*static_cast<const args_type *>(args));
}

template <typename args_type>
constexpr unsigned long kiln_simt_args_bytes(void (*)(args_type))
{
    return sizeof(args_type);
}

#endif
