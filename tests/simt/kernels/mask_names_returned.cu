// SPDX-License-Identifier: Apache-2.0
// Wrong: the mask names lanes that have returned.
struct args_t {
    const int *in; // [2, 60], rows 64 apart
    int *out;      // the same
};

extern "C" __global__ void __launch_bounds__(64)
    kiln_probe(const __grid_constant__ args_t args)
{
    const unsigned column = threadIdx.x;
    const int *in = args.in + blockIdx.x * 64;
    int *out = args.out + blockIdx.x * 64;
    if (column % 32 == 7) {
        return;
    }
    const unsigned votes = __ballot_sync(0xffffffffu, column > 0); // FAULT
    if (column < 60) {
        out[column] = static_cast<int>(votes);
    }
}
