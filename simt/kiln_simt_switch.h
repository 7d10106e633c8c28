/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From one stack to another: what a called function must keep goes on the old stack, and comes
 * from the new. A few instructions where they are known; elsewhere the C library's way, which
 * makes two system calls.
 */
#ifndef KILN_SIMT_SWITCH_H
#define KILN_SIMT_SWITCH_H

#include <stddef.h>
#include <stdint.h>

#if defined(__x86_64__)
extern "C" void kiln_simt_switch(void **from, void *to);
asm(R"(
    .text
    .globl kiln_simt_switch
    .type kiln_simt_switch, @function
kiln_simt_switch:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
    .size kiln_simt_switch, .-kiln_simt_switch
)");

namespace simt
{
/* A stack on which `entry` begins, once it is switched to. */
inline void *first_switch(unsigned char *stack, size_t bytes, void (*entry)())
{
    constexpr size_t kSaved = 6;
    auto *top = reinterpret_cast<uint64_t *>(stack + bytes) - 2; /* 16-byte aligned */
    top[0] = reinterpret_cast<uint64_t>(entry);
    for (size_t i = 1; i <= kSaved; i++) {
        top[-static_cast<long>(i)] = 0;
    }
    return top - kSaved;
}
} // namespace simt

#elif defined(__aarch64__)
extern "C" void kiln_simt_switch(void **from, void *to);
asm(R"(
    .text
    .globl kiln_simt_switch
    .type kiln_simt_switch, %function
kiln_simt_switch:
    sub sp, sp, #160
    stp x19, x20, [sp, #0]
    stp x21, x22, [sp, #16]
    stp x23, x24, [sp, #32]
    stp x25, x26, [sp, #48]
    stp x27, x28, [sp, #64]
    stp x29, x30, [sp, #80]
    stp d8, d9, [sp, #96]
    stp d10, d11, [sp, #112]
    stp d12, d13, [sp, #128]
    stp d14, d15, [sp, #144]
    mov x9, sp
    str x9, [x0]
    mov sp, x1
    ldp x19, x20, [sp, #0]
    ldp x21, x22, [sp, #16]
    ldp x23, x24, [sp, #32]
    ldp x25, x26, [sp, #48]
    ldp x27, x28, [sp, #64]
    ldp x29, x30, [sp, #80]
    ldp d8, d9, [sp, #96]
    ldp d10, d11, [sp, #112]
    ldp d12, d13, [sp, #128]
    ldp d14, d15, [sp, #144]
    add sp, sp, #160
    ret
    .size kiln_simt_switch, .-kiln_simt_switch
)");

namespace simt
{
inline void *first_switch(unsigned char *stack, size_t bytes, void (*entry)())
{
    constexpr size_t kSaved = 20, kReturn = 11;
    auto *saved = reinterpret_cast<uint64_t *>(stack + bytes) - kSaved;
    for (size_t i = 0; i < kSaved; i++) {
        saved[i] = 0;
    }
    saved[kReturn] = reinterpret_cast<uint64_t>(entry);
    return saved;
}
} // namespace simt

#else
#include <ucontext.h>

#include <new>

/* A context stands for the stack pointer; it lives at the lower end of its stack. */
inline void kiln_simt_switch(void **from, void *to)
{
    ucontext_t here;
    *from = &here;
    swapcontext(&here, static_cast<ucontext_t *>(to));
}

namespace simt
{
inline void *first_switch(unsigned char *stack, size_t bytes, void (*entry)())
{
    auto *context = new (stack) ucontext_t;
    getcontext(context);
    context->uc_stack.ss_sp = stack + sizeof *context;
    context->uc_stack.ss_size = bytes - sizeof *context;
    context->uc_link = nullptr;
    makecontext(context, entry, 0);
    return context;
}
} // namespace simt
#endif

#endif
