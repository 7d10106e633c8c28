// SPDX-License-Identifier: Apache-2.0
// The checked build: ranges of positions that are cut.
#pragma once

#include "common/report.cuh"
#include "common/window.cuh"

// A range of which kMost positions are kept; `once` is null for all threads of the row but
// one.
template <long long kMost>
__device__ inline void check_length(report_t *once, long long row, const range_t &range)
{
    const long long length = range.end - range.start;
    if (length > kMost) {
        report(once, kReasonLength, row, -1, length);
    }
}
