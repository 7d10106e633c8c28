/* SPDX-License-Identifier: Apache-2.0 */
/*
 * This project's own checker. The compiler announces every access of the kernel as it would to
 * ThreadSanitizer; here each is judged by what it touches, element by element:
 *
 *   bounds   inside an array's rows, not in the padding between them
 *   rights   inputs are not written; outputs are written once
 *   order    of two accesses of which one writes, a barrier or __syncwarp lies between
 *   content  what is read was written: by the launch, this block or the caller
 *
 * It knows nothing of what is right to write, and nothing of stacks, which are private.
 */
#include "kiln_simt_hooks.h"

#if defined(KILN_SIMT_CHECK)
#include <stdio.h>
#include <sys/mman.h>

extern "C" {
extern const char __executable_start, _end;
void *__real_memcpy(void *to, const void *from, size_t bytes);
void *__real_memmove(void *to, const void *from, size_t bytes);
void *__real_memset(void *to, int value, size_t bytes);
}

namespace simt
{
namespace
{
/* Who touched an element; block 0 is nobody, and a block of an earlier launch is too. */
struct touch_t {
    uint32_t block;
    uint32_t thread : 10, epoch : 21, is_atomic : 1;
    uint32_t clock;
    uint32_t pc; /* in the program */
};

/* Two readers: a third replaces the second. */
struct cell_t {
    touch_t writer, readers[2];
};

enum access_t { kRead, kWrite, kAtomic };

/* Each array has a gigabyte of addresses of its own, so a stray access meets no other array. */
constexpr size_t kSlotBytes = size_t{1} << 30;
constexpr size_t kSlots = KILN_SIMT_ARRAYS_MAX;
constexpr size_t kStart = 4096;

struct checker_t {
    unsigned char *arena;
    cell_t *cells[kSlots];
    size_t n_cells[kSlots];
    region_t arrays[kSlots];
    size_t n_arrays;
    uint32_t first_block; /* of the launch */
    cell_t *shared;       /* a cell a byte */
};

checker_t checker;

void *reserve(size_t bytes)
{
    void *memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
        fail(nullptr, "no room for %zu bytes of addresses", bytes);
    }
    return memory;
}

/* Where an access is: an element, and what it belongs to. */
struct spot_t {
    const region_t *region;
    size_t element;
};

const char *verb_of(access_t access)
{
    return access == kRead ? "reads" : "writes";
}

/* "slots[3][17]" */
void name_spot(const spot_t &spot, char out[96])
{
    const region_t &region = *spot.region;
    if (region.is_shared) {
        snprintf(out, 96, "shared memory, byte %zu", spot.element);
    } else if (region.stride == 1) {
        snprintf(out, 96, "%s[%zu]", region.name, region.first_row + spot.element);
    } else {
        snprintf(out, 96, "%s[%zu][%zu]", region.name,
                 region.first_row + spot.element / region.stride,
                 spot.element % region.stride);
    }
}

/* ---- order */

bool was_here(const touch_t &touch, const clocks_t &now, bool is_shared)
{
    return touch.block >= (is_shared ? now.block : checker.first_block);
}

bool comes_before(const touch_t &touch, const clocks_t &now)
{
    if (touch.block != now.block) {
        return false;
    }
    const bool same_warp = touch.thread / kWarpLanes == now.thread / kWarpLanes;
    return touch.thread == now.thread || touch.epoch < now.epoch ||
           (same_warp && touch.clock <= now.warp_seen[touch.thread % kWarpLanes]);
}

[[noreturn]] void fail_order(const spot_t &spot, const touch_t &other,
                             const char *other_verb, access_t access, const void *pc)
{
    char name[96];
    name_spot(spot, name);
    const bool same = other.block == clocks().block;
    fail_two(pc, other.pc,
             "%s: race: %s %s, which thread %u of %s block %s, with no barrier between",
             who(), verb_of(access), name, other.thread, same ? "the same" : "another",
             other_verb);
}

void check_order(const spot_t &spot, const cell_t &cell, access_t access,
                 const clocks_t &now, const void *pc)
{
    const bool is_shared = spot.region->is_shared;
    const touch_t &writer = cell.writer;
    const bool both_atomic = access == kAtomic && writer.is_atomic;
    if (was_here(writer, now, is_shared) && !both_atomic && !comes_before(writer, now)) {
        fail_order(spot, writer, "wrote", access, pc);
    }
    for (const touch_t &reader : cell.readers) {
        if (access != kRead && was_here(reader, now, is_shared) &&
            !comes_before(reader, now)) {
            fail_order(spot, reader, "read", access, pc);
        }
    }
}

/* ---- one element */

void check_content(const spot_t &spot, const cell_t &cell, const clocks_t &now,
                   const void *pc)
{
    const region_t &region = *spot.region;
    if ((region.is_shared || (region.is_output && !region.is_defined)) &&
        !was_here(cell.writer, now, region.is_shared)) {
        char name[96];
        name_spot(spot, name);
        fail(pc, "%s: reads %s, which nobody wrote", who(), name);
    }
}

void check_rights(const spot_t &spot, const cell_t &cell, const clocks_t &now,
                  const void *pc)
{
    const region_t &region = *spot.region;
    char name[96];
    if (region.is_shared) {
        return;
    }
    name_spot(spot, name);
    if (!region.is_output) {
        fail(pc, "%s: writes %s, an input", who(), name);
    }
    if (was_here(cell.writer, now, false)) {
        fail_two(pc, cell.writer.pc,
                 "%s: writes %s, which thread %u of %s block wrote before", who(), name,
                 cell.writer.thread,
                 cell.writer.block == now.block ? "the same" : "another");
    }
}

void remember(cell_t &cell, access_t access, const clocks_t &now, const void *pc)
{
    touch_t touch = {};
    touch.block = now.block;
    touch.thread = now.thread & 1023;
    touch.epoch = now.epoch & 0x1fffff;
    touch.is_atomic = access == kAtomic;
    touch.clock = now.clock;
    touch.pc = static_cast<uint32_t>(static_cast<const char *>(pc) - &__executable_start);
    if (access != kRead) {
        cell.writer = touch;
        return;
    }
    const touch_t &first = cell.readers[0];
    const bool is_free = first.block < checker.first_block || comes_before(first, now);
    cell.readers[is_free ? 0 : 1] = touch;
}

void check_element(const spot_t &spot, cell_t &cell, access_t access, const clocks_t &now,
                   const void *pc)
{
    if (access == kWrite) {
        check_rights(spot, cell, now, pc);
    }
    if (access != kWrite && (access == kRead || !spot.region->is_output)) {
        check_content(spot, cell, now, pc);
    }
    check_order(spot, cell, access, now, pc);
    remember(cell, access, now, pc);
}

/* ---- an access */

void check_array(size_t slot, const unsigned char *address, size_t bytes, access_t access,
                 const void *pc)
{
    if (slot >= checker.n_arrays) {
        fail(pc, "%s: %s address %p, which is in no array", who(), verb_of(access),
             address);
    }
    const region_t &region = checker.arrays[slot];
    const long offset = address - region.begin;
    const long end = static_cast<long>(region.bytes);
    if (offset < 0 || offset + static_cast<long>(bytes) > end) {
        fail(pc, "%s: %s %zu bytes of %s, %ld bytes %s (%zu rows of %zu, stride %zu)",
             who(), verb_of(access), bytes, region.name,
             offset < 0 ? -offset : offset + static_cast<long>(bytes) - end,
             offset < 0 ? "before its first element" : "past its last element",
             region.rows, region.width, region.stride);
    }
    const clocks_t &now = clocks();
    const size_t first = static_cast<size_t>(offset) / region.elem_bytes;
    const size_t last = (static_cast<size_t>(offset) + bytes - 1) / region.elem_bytes;
    for (size_t element = first; element <= last; element++) {
        const spot_t spot = {&region, element};
        if (element % region.stride >= region.width) {
            char name[96];
            name_spot(spot, name);
            fail(pc, "%s: %s %s, padding beyond the row's %zu columns", who(),
                 verb_of(access), name, region.width);
        }
        check_element(spot, checker.cells[slot][element], access, now, pc);
    }
}

/* False: it is not in shared memory. */
bool check_shared(const unsigned char *address, size_t bytes, access_t access,
                  const void *pc)
{
    const region_t &region = shared();
    const auto offset = static_cast<size_t>(address - region.begin);
    if (is_beside_shared(address)) {
        fail(pc, "%s: %s beside shared memory", who(), verb_of(access));
    }
    if (offset >= region.bytes) {
        return false;
    }
    const clocks_t &now = clocks();
    for (size_t i = offset; i < offset + bytes && i < region.bytes; i++) {
        check_element({&region, i}, checker.shared[i], access, now, pc);
    }
    return true;
}

/* False: it is in memory that no kernel shares. */
bool check_known(const void *where, size_t bytes, access_t access, const void *pc)
{
    const auto *address = static_cast<const unsigned char *>(where);
    const auto offset = static_cast<size_t>(address - checker.arena);
    if (offset < kSlots * kSlotBytes) {
        check_array(offset / kSlotBytes, address, bytes, access, pc);
        return true;
    }
    return check_shared(address, bytes, access, pc);
}

/* Constants, threadIdx and its like: nothing that a kernel may write. */
inline bool is_readable(const void *address, access_t access)
{
    return access == kRead && address >= &__executable_start && address < &_end;
}

inline void check(const void *address, size_t bytes, access_t access, const void *pc)
{
    if (is_on_stack(address) || check_known(address, bytes, access, pc) ||
        is_readable(address, access)) {
        return;
    }
    fail(pc, "%s: %s address %p, which is in no array", who(), verb_of(access), address);
}
} // namespace

void *allocate(uint32_t slot, size_t bytes)
{
    if (bytes + kStart > kSlotBytes) {
        return nullptr;
    }
    if (checker.arena == nullptr) {
        checker.arena = static_cast<unsigned char *>(reserve(kSlots * kSlotBytes));
        checker.shared =
            static_cast<cell_t *>(reserve((shared().bytes + 1) * sizeof(cell_t)));
    }
    return checker.arena + slot * kSlotBytes + kStart;
}

void check_begin(const region_t *arrays, size_t n_arrays, uint32_t first_block)
{
    checker.first_block = first_block;
    checker.n_arrays = n_arrays;
    for (size_t i = 0; i < n_arrays; i++) {
        const size_t n = arrays[i].bytes / arrays[i].elem_bytes + 1;
        checker.arrays[i] = arrays[i];
        if (n > checker.n_cells[i]) {
            if (checker.cells[i] != nullptr) {
                munmap(checker.cells[i], checker.n_cells[i] * sizeof(cell_t));
            }
            checker.cells[i] = static_cast<cell_t *>(reserve(n * sizeof(cell_t)));
            checker.n_cells[i] = n;
        }
    }
}
} // namespace simt

/* ---- what the compiler calls */

#define KILN_SIMT_PC __builtin_return_address(0)

#define KILN_SIMT_SIZE(n)                                                                \
    void __tsan_read##n(void *address)                                                   \
    {                                                                                    \
        simt::check(address, n, simt::kRead, KILN_SIMT_PC);                              \
    }                                                                                    \
    void __tsan_write##n(void *address)                                                  \
    {                                                                                    \
        simt::check(address, n, simt::kWrite, KILN_SIMT_PC);                             \
    }                                                                                    \
    void __tsan_unaligned_read##n(void *address)                                         \
    {                                                                                    \
        simt::check(address, n, simt::kRead, KILN_SIMT_PC);                              \
    }                                                                                    \
    void __tsan_unaligned_write##n(void *address)                                        \
    {                                                                                    \
        simt::check(address, n, simt::kWrite, KILN_SIMT_PC);                             \
    }

#define KILN_SIMT_ATOMICS(bits)                                                          \
    uint##bits##_t __tsan_atomic##bits##_load(const volatile uint##bits##_t *address,    \
                                              int)                                       \
    {                                                                                    \
        simt::check(const_cast<const uint##bits##_t *>(address), bits / 8,               \
                    simt::kAtomic, KILN_SIMT_PC);                                        \
        return *address;                                                                 \
    }                                                                                    \
    uint##bits##_t __tsan_atomic##bits##_compare_exchange_val(                           \
        volatile uint##bits##_t *address, uint##bits##_t expected, uint##bits##_t value, \
        int, int)                                                                        \
    {                                                                                    \
        simt::check(const_cast<uint##bits##_t *>(address), bits / 8, simt::kAtomic,      \
                    KILN_SIMT_PC);                                                       \
        const uint##bits##_t old = *address;                                             \
        *address = old == expected ? value : old;                                        \
        return old;                                                                      \
    }                                                                                    \
    int __tsan_atomic##bits##_compare_exchange_strong(volatile uint##bits##_t *address,  \
                                                      uint##bits##_t *expected,          \
                                                      uint##bits##_t value, int, int)    \
    {                                                                                    \
        simt::check(const_cast<uint##bits##_t *>(address), bits / 8, simt::kAtomic,      \
                    KILN_SIMT_PC);                                                       \
        const uint##bits##_t old = *address;                                             \
        const bool is_same = old == *expected;                                           \
        *address = is_same ? value : old;                                                \
        *expected = old;                                                                 \
        return is_same;                                                                  \
    }

extern "C" {
KILN_SIMT_SIZE(1)
KILN_SIMT_SIZE(2)
KILN_SIMT_SIZE(4)
KILN_SIMT_SIZE(8)
KILN_SIMT_SIZE(16)
KILN_SIMT_ATOMICS(8)
KILN_SIMT_ATOMICS(16)
KILN_SIMT_ATOMICS(32)
KILN_SIMT_ATOMICS(64)

void __tsan_read_range(void *address, size_t bytes)
{
    simt::check(address, bytes, simt::kRead, KILN_SIMT_PC);
}

void __tsan_write_range(void *address, size_t bytes)
{
    simt::check(address, bytes, simt::kWrite, KILN_SIMT_PC);
}

void __tsan_init()
{
}
void __tsan_func_entry(void *)
{
}
void __tsan_func_exit()
{
}

/* Copies that the compiler makes of whole structs. The linker brings the runtime's own here too,
 * so only what is a kernel's for certain is judged. */
static bool is_of_kernel()
{
    return simt::is_running();
}

void *__wrap_memcpy(void *to, const void *from, size_t bytes)
{
    if (bytes > 0 && is_of_kernel()) {
        simt::check_known(from, bytes, simt::kRead, KILN_SIMT_PC);
        simt::check_known(to, bytes, simt::kWrite, KILN_SIMT_PC);
    }
    return __real_memcpy(to, from, bytes);
}

void *__wrap_memmove(void *to, const void *from, size_t bytes)
{
    if (bytes > 0 && is_of_kernel()) {
        simt::check_known(from, bytes, simt::kRead, KILN_SIMT_PC);
        simt::check_known(to, bytes, simt::kWrite, KILN_SIMT_PC);
    }
    return __real_memmove(to, from, bytes);
}

void *__wrap_memset(void *to, int value, size_t bytes)
{
    if (bytes > 0 && is_of_kernel()) {
        simt::check_known(to, bytes, simt::kWrite, KILN_SIMT_PC);
    }
    return __real_memset(to, value, bytes);
}
}
#endif
