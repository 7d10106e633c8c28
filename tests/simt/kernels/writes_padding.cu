// SPDX-License-Identifier: Apache-2.0
// Wrong: writes one column too many.
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
    if (column < 61) {
        out[column] = 7; // FAULT
    }
}
