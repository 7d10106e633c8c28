/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the checkers of memory are told, whichever is compiled in: KILN_SIMT_CHECK (this
 * project's own, kiln_simt_check.cpp), KILN_SIMT_ADDRESS, _THREAD or _MEMORY (the
 * compilers'), or none.
 */
#ifndef KILN_SIMT_HOOKS_H
#define KILN_SIMT_HOOKS_H

#include <stdlib.h>

#include "kiln_simt_internal.h"

#if defined(KILN_SIMT_ADDRESS) || defined(KILN_SIMT_THREAD) || defined(KILN_SIMT_MEMORY)
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(KILN_SIMT_ADDRESS)
#include <sanitizer/asan_interface.h>
#endif
#if defined(KILN_SIMT_MEMORY)
#include <sanitizer/msan_interface.h>
#endif

extern "C" {
void *__tsan_get_current_fiber(void);
void *__tsan_create_fiber(unsigned flags);
void __tsan_destroy_fiber(void *fiber);
void __tsan_switch_to_fiber(void *fiber, unsigned flags);
void __tsan_acquire(void *address);
void __tsan_release(void *address);
void __tsan_java_init(unsigned long begin, unsigned long bytes);
void __tsan_java_alloc(unsigned long begin, unsigned long bytes);
void __tsan_java_free(unsigned long begin, unsigned long bytes);
}

namespace simt
{
/* A stack as the checkers know it; the scheduler's is one too. */
struct known_stack_t {
    const void *bottom = nullptr;
    size_t bytes = 0;
    void *fake = nullptr; /* AddressSanitizer's */
    void *tsan = nullptr; /* ThreadSanitizer's thread */
};

/* ---- stacks */

#if defined(KILN_SIMT_ADDRESS)
inline void before_switch(known_stack_t &from, const known_stack_t &to)
{
    __sanitizer_start_switch_fiber(&from.fake, to.bottom, to.bytes);
}

inline void after_switch(known_stack_t &self, known_stack_t *learn)
{
    const void *bottom = nullptr;
    size_t bytes = 0;
    __sanitizer_finish_switch_fiber(self.fake, &bottom, &bytes);
    if (learn != nullptr) {
        learn->bottom = bottom;
        learn->bytes = bytes;
    }
}
#elif defined(KILN_SIMT_THREAD)
inline void before_switch(known_stack_t &, const known_stack_t &to)
{
    constexpr unsigned kWithoutOrder = 1;
    __tsan_switch_to_fiber(to.tsan, kWithoutOrder);
}

inline void after_switch(known_stack_t &, known_stack_t *)
{
}
#else
inline void before_switch(known_stack_t &, const known_stack_t &)
{
}
inline void after_switch(known_stack_t &, known_stack_t *)
{
}
#endif

/* Each thread of each block is a thread of its own, ordered after the launch alone. */
#if defined(KILN_SIMT_THREAD)
inline void begin_scheduler(known_stack_t &self)
{
    self.tsan = __tsan_get_current_fiber();
}

inline void begin_thread(known_stack_t &self)
{
    self.tsan = __tsan_create_fiber(0);
}

inline void end_thread(known_stack_t &self)
{
    __tsan_destroy_fiber(self.tsan);
    self.tsan = nullptr;
}

inline void release(void *object)
{
    __tsan_release(object);
}

inline void acquire(void *object)
{
    __tsan_acquire(object);
}
#else
inline void begin_scheduler(known_stack_t &)
{
}
inline void begin_thread(known_stack_t &)
{
}
inline void end_thread(known_stack_t &)
{
}
inline void release(void *)
{
}
inline void acquire(void *)
{
}
#endif

/* ---- memory */

#if defined(KILN_SIMT_ADDRESS)
inline void forbid(const void *begin, size_t bytes)
{
    __asan_poison_memory_region(begin, bytes);
}

inline void allow(const void *begin, size_t bytes)
{
    __asan_unpoison_memory_region(begin, bytes);
}
#else
inline void forbid(const void *, size_t)
{
}
inline void allow(const void *, size_t)
{
}
#endif

#if defined(KILN_SIMT_MEMORY)
inline void make_undefined(const void *begin, size_t bytes)
{
    __msan_poison(begin, bytes);
}

inline void make_defined(const void *begin, size_t bytes)
{
    __msan_unpoison(begin, bytes);
}

/* Offset of the first undefined byte; -1: all are defined. */
inline long first_undefined(const void *begin, size_t bytes)
{
    return static_cast<long>(__msan_test_shadow(begin, bytes));
}
#else
inline void make_undefined(const void *, size_t)
{
}
inline void make_defined(const void *, size_t)
{
}
inline long first_undefined(const void *, size_t)
{
    return -1;
}
#endif

/* Memory that is new again: what earlier blocks did to it is forgotten. */
#if defined(KILN_SIMT_THREAD)
inline void begin_renewing(const void *begin, size_t bytes)
{
    __tsan_java_init(reinterpret_cast<unsigned long>(begin), bytes);
}

inline void renew(const void *begin, size_t bytes)
{
    __tsan_java_free(reinterpret_cast<unsigned long>(begin), bytes);
    __tsan_java_alloc(reinterpret_cast<unsigned long>(begin), bytes);
}
#else
inline void begin_renewing(const void *, size_t)
{
}
inline void renew(const void *, size_t)
{
}
#endif

/* ---- this project's own checker: kiln_simt_check.cpp */

#if defined(KILN_SIMT_CHECK)
void *allocate(uint32_t slot, size_t bytes);
inline void release_block(void *)
{
}
/* first_block: the serial number of the launch's first. */
void check_begin(const region_t *arrays, size_t n_arrays, uint32_t first_block);
#else
inline void *allocate(uint32_t, size_t bytes)
{
    return aligned_alloc(256, (bytes + 255) / 256 * 256);
}

inline void release_block(void *block)
{
    free(block);
}

inline void check_begin(const region_t *, size_t, uint32_t)
{
}
#endif
} // namespace simt

#endif
