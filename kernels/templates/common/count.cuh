// SPDX-License-Identifier: Apache-2.0
// A count given by value or by device address: struct kiln_count, byte for byte.
#pragma once

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
