/* SPDX-License-Identifier: Apache-2.0 */
/* A kernel that keeps the GPU from being idle. */
#include <stdint.h>

static uint64_t now_ns()
{
    uint64_t ns;

    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
    return ns;
}

extern "C" __global__ void spin(const uint64_t ns)
{
    const uint64_t begun = now_ns();

    while (now_ns() - begun < ns) {
        __nanosleep(1000);
    }
}
