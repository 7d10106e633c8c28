/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The program around one kernel: takes launches from a socket, standard input, lays their arrays
 * out between guards, runs the grid, and answers. Its first fault is its last answer: threads
 * that stopped half way are not brought back.
 */
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <ucontext.h>
#include <unistd.h>

#include "kiln_simt_hooks.h"
#include "kiln_simt_internal.h"

extern "C" const char __executable_start;

namespace simt
{
namespace
{
constexpr int kSocket = 0;
constexpr size_t kGuard = 256;
constexpr size_t kArgsMax = 4096; /* CUDA's limit */
constexpr unsigned char kPoison = 0xa5;

/* One array as it came and where the kernel finds it. */
struct array_t {
    kiln_simt_array head;
    unsigned char *received; /* data_bytes */
    unsigned char *block;    /* guard, skew, data, guard */
    size_t block_bytes;
    unsigned char *data;
};

struct session_t {
    kiln_simt_request request;
    /* static, like all that a kernel may read beside its arrays */
    alignas(64) unsigned char args[kArgsMax];
    array_t arrays[KILN_SIMT_ARRAYS_MAX];
};

session_t session;

/* ---- the socket */

bool read_all(void *to, size_t bytes)
{
    auto *at = static_cast<unsigned char *>(to);
    while (bytes > 0) {
        const ssize_t n = read(kSocket, at, bytes);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return false;
        }
        at += n;
        bytes -= static_cast<size_t>(n);
    }
    return true;
}

void write_all(const void *from, size_t bytes)
{
    auto *at = static_cast<const unsigned char *>(from);
    while (bytes > 0) {
        const ssize_t n = write(kSocket, at, bytes);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            _exit(2);
        }
        at += n;
        bytes -= static_cast<size_t>(n);
    }
}

void *get_memory(size_t bytes)
{
    void *memory = calloc(1, bytes + 1);
    if (memory == nullptr) {
        fail(nullptr, "no memory for %zu bytes", bytes);
    }
    return memory;
}

/* ---- signals: what no checker saw */

#if defined(__x86_64__)
uintptr_t pc_of(const ucontext_t *context)
{
    return static_cast<uintptr_t>(context->uc_mcontext.gregs[REG_RIP]);
}
#elif defined(__aarch64__)
uintptr_t pc_of(const ucontext_t *context)
{
    return static_cast<uintptr_t>(context->uc_mcontext.pc);
}
#else
uintptr_t pc_of(const ucontext_t *)
{
    return reinterpret_cast<uintptr_t>(&__executable_start);
}
#endif

void on_signal(int number, siginfo_t *facts, void *context)
{
    /* other places are where a call returns to, one past it */
    const uintptr_t pc = pc_of(static_cast<const ucontext_t *>(context)) + 1;
    const void *place = reinterpret_cast<const void *>(pc);
    if (number == SIGVTALRM) {
        fail(place, "%s: still running after %u ms of processor time", who(),
             session.request.limit_ms);
    }
    if (number == SIGILL || number == SIGTRAP) {
        fail(
            place,
            "%s: undefined behaviour: an overflow, a shift too far, a misaligned address",
            who());
    }
    fail(place, "%s: %s at address %p", who(), strsignal(number), facts->si_addr);
}

void catch_signal(int number)
{
    struct sigaction action = {};
    action.sa_sigaction = on_signal;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigaction(number, &action, nullptr);
}

#if defined(KILN_SIMT_ADDRESS) || defined(KILN_SIMT_THREAD) || defined(KILN_SIMT_MEMORY)
void catch_faults()
{
}
#else
/* A fault may be that the thread's stack is full, so the handler has its own. */
void catch_faults()
{
    static unsigned char memory[64 << 10];
    stack_t stack = {};
    stack.ss_sp = memory;
    stack.ss_size = sizeof memory;
    sigaltstack(&stack, nullptr);
    const int faults[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP};
    for (int number : faults) {
        catch_signal(number);
    }
}
#endif

void set_limit(uint32_t limit_ms)
{
    itimerval limit = {};
    limit.it_value.tv_sec = limit_ms / 1000;
    limit.it_value.tv_usec = limit_ms % 1000 * 1000;
    setitimer(ITIMER_VIRTUAL, &limit, nullptr);
}

/* ---- arrays */

bool read_array(array_t &array)
{
    if (!read_all(&array.head, sizeof array.head)) {
        return false;
    }
    array.received = static_cast<unsigned char *>(get_memory(array.head.data_bytes));
    return read_all(array.received, array.head.data_bytes);
}

bool read_request()
{
    kiln_simt_request &request = session.request;
    if (!read_all(&request, sizeof request)) {
        return false;
    }
    if (request.magic != KILN_SIMT_MAGIC || request.n_arrays > KILN_SIMT_ARRAYS_MAX ||
        request.args_bytes != kiln_simt_kernel_args_bytes ||
        request.threads > kThreadsMax || request.args_bytes > kArgsMax) {
        fail(nullptr,
             "a launch with %u bytes of arguments, %u arrays, %u threads; expected %lu "
             "bytes",
             request.args_bytes, request.n_arrays, request.threads,
             kiln_simt_kernel_args_bytes);
    }
    bool is_whole = read_all(session.args, request.args_bytes);
    for (uint32_t i = 0; i < request.n_arrays && is_whole; i++) {
        is_whole = read_array(session.arrays[i]);
    }
    return is_whole;
}

region_t region_of(const array_t &array)
{
    region_t region = {};
    memcpy(region.name, array.head.name, sizeof region.name);
    region.begin = array.data;
    region.bytes = array.head.data_bytes;
    region.elem_bytes = array.head.elem_bytes;
    region.rows = array.head.rows;
    region.width = array.head.width;
    region.stride = array.head.stride;
    region.first_row = array.head.first_row;
    region.is_output = array.head.is_output != 0;
    region.is_defined = array.head.is_defined != 0;
    return region;
}

/* Nothing may be touched but the rows' columns. Most outputs, padding and guards hold nothing
 * yet. */
void protect(const array_t &array)
{
    const kiln_simt_array &head = array.head;
    forbid(array.block, array.block_bytes);
    make_undefined(array.block, array.block_bytes);
    for (uint64_t row = 0; row < head.rows; row++) {
        unsigned char *begin = array.data + row * head.stride * head.elem_bytes;
        const size_t bytes = head.width * head.elem_bytes;
        allow(begin, bytes);
        if (head.is_output == 0 || head.is_defined != 0) {
            make_defined(begin, bytes);
        }
    }
}

void place_array(array_t &array, uint32_t slot)
{
    const kiln_simt_array &head = array.head;
    const size_t skew = static_cast<size_t>(head.skew_elems) * head.elem_bytes;
    array.block_bytes = kGuard + skew + head.data_bytes + kGuard;
    array.block = static_cast<unsigned char *>(allocate(slot, array.block_bytes));
    if (array.block == nullptr) {
        fail(nullptr, "no memory for %s, %zu bytes", head.name, array.block_bytes);
    }
    array.data = array.block + kGuard + skew;
    memset(array.block, kPoison, kGuard + skew);
    memcpy(array.data, array.received, head.data_bytes);
    memset(array.data + head.data_bytes, kPoison, kGuard);
    const uint64_t before = head.first_row * head.stride * head.elem_bytes;
    const uint64_t row_0 = reinterpret_cast<uintptr_t>(array.data) - before;
    memcpy(session.args + head.args_offset, &row_0, sizeof row_0);
}

/* ---- after the launch */

void check_guard(const array_t &array, const unsigned char *begin, size_t bytes,
                 const char *where)
{
    for (size_t i = 0; i < bytes; i++) {
        if (begin[i] != kPoison) {
            fail(nullptr, "%s was written %s", array.head.name, where);
        }
    }
}

/* In words: which element the byte at offset is of. */
void name_element(const array_t &array, size_t offset, char out[64])
{
    const size_t index = offset / array.head.elem_bytes;
    snprintf(out, 64, "row %zu, column %zu", index / array.head.stride,
             index % array.head.stride);
}

void check_input(const array_t &array)
{
    for (size_t i = 0; i < array.head.data_bytes; i++) {
        if (array.data[i] != array.received[i]) {
            char where[64];
            name_element(array, i, where);
            fail(nullptr, "%s is an input, and was written: %s", array.head.name, where);
        }
    }
}

/* An element that was written is defined, unless it was made of what nobody wrote. */
void check_defined(const array_t &array)
{
    const kiln_simt_array &head = array.head;
    const size_t n = head.data_bytes / head.elem_bytes;
    for (size_t i = 0; i < n; i++) {
        const unsigned char *element = array.data + i * head.elem_bytes;
        if (first_undefined(element, head.elem_bytes) < 0) {
            continue;
        }
        make_defined(element, head.elem_bytes);
        if (memcmp(element, array.received + i * head.elem_bytes, head.elem_bytes) != 0) {
            char where[64];
            name_element(array, i * head.elem_bytes, where);
            fail(nullptr, "%s: %s was computed from memory that nobody wrote", head.name,
                 where);
        }
    }
}

void check_array(const array_t &array)
{
    const unsigned char *end = array.data + array.head.data_bytes;
    allow(array.block, array.block_bytes);
    if (array.head.is_output != 0) {
        check_defined(array);
    }
    make_defined(array.block, array.block_bytes);
    check_guard(array, array.block, static_cast<size_t>(array.data - array.block),
                "before its first element");
    check_guard(array, end, kGuard, "after its end");
    if (array.head.is_output == 0) {
        check_input(array);
    }
}

void free_array(array_t &array)
{
    free(array.received);
    release_block(array.block);
    array = {};
}

void serve()
{
    const kiln_simt_request &request = session.request;
    region_t regions[KILN_SIMT_ARRAYS_MAX];
    for (uint32_t i = 0; i < request.n_arrays; i++) {
        place_array(session.arrays[i], i);
        regions[i] = region_of(session.arrays[i]);
    }
    for (uint32_t i = 0; i < request.n_arrays; i++) {
        protect(session.arrays[i]);
    }
    check_begin(regions, request.n_arrays, next_block());
    set_limit(request.limit_ms);
    run_grid({request.grid_x, request.grid_y, request.threads, request.first_x,
              request.n_x == 0 ? request.grid_x : request.n_x, request.seed,
              session.args});
    set_limit(0);
    for (uint32_t i = 0; i < request.n_arrays; i++) {
        check_array(session.arrays[i]);
    }
    kiln_simt_reply reply = {};
    reply.magic = KILN_SIMT_MAGIC;
    write_all(&reply, sizeof reply);
    for (uint32_t i = 0; i < request.n_arrays; i++) {
        if (session.arrays[i].head.is_output != 0) {
            write_all(session.arrays[i].data, session.arrays[i].head.data_bytes);
        }
        free_array(session.arrays[i]);
    }
}

[[noreturn]] void answer_fault(const void *pc, uint32_t other, const char *format,
                               va_list args)
{
    static kiln_simt_reply reply; /* fibres have small stacks */
    reply.magic = KILN_SIMT_MAGIC;
    reply.failed = 1;
    reply.other_pc = other;
    if (pc != nullptr) {
        const auto first = reinterpret_cast<uintptr_t>(&__executable_start);
        reply.pc = reinterpret_cast<uintptr_t>(pc) - first;
    }
    vsnprintf(reply.message, sizeof reply.message, format, args);
    write_all(&reply, sizeof reply);
    _exit(1);
}

#if defined(KILN_SIMT_ADDRESS) || defined(KILN_SIMT_THREAD) || defined(KILN_SIMT_MEMORY)
/* A compiler's checker reports on stderr and ends; this line goes with it. */
void say_who()
{
    fprintf(stderr, "kiln_simt: %s\n", who());
}

void watch_death()
{
    __sanitizer_set_death_callback(say_who);
}
#else
void watch_death()
{
}
#endif
} // namespace

void fail(const void *pc, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    answer_fault(pc, 0, format, args);
}

void fail_two(const void *pc, uint32_t other, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    answer_fault(pc, other, format, args);
}
} // namespace simt

#if defined(KILN_SIMT_ADDRESS)
extern "C" const char *__asan_default_options()
{
    return "detect_leaks=0:detect_stack_use_after_return=0:handle_segv=1";
}

extern "C" const char *__ubsan_default_options()
{
    return "print_stacktrace=1:halt_on_error=1";
}
#endif
#if defined(KILN_SIMT_THREAD)
extern "C" const char *__tsan_default_options()
{
    return "halt_on_error=1:report_thread_leaks=0:report_signal_unsafe=0:history_size=4";
}
#endif

int main()
{
    simt::watch_death();
    simt::catch_faults();
    simt::catch_signal(SIGVTALRM);
    simt::find_shared();
    while (simt::read_request()) {
        simt::serve();
    }
    return 0;
}
