// SPDX-License-Identifier: Apache-2.0
// Squeezing dropped entries out of a row.
#pragma once

#include "common/arch.cuh"

// How many entries were kept before this lane's, the warp's earlier ones included; counts
// this turn's entries into `kept`, the same for all lanes.
__device__ inline unsigned place_kept(bool keep, unsigned &kept)
{
    const unsigned keeps = __ballot_sync(kWholeWarp, keep);
    const unsigned lanes_below = (1u << lane_of_thread()) - 1;
    const unsigned place = kept + __popc(keeps & lanes_below);
    kept += __popc(keeps);
    return place;
}
