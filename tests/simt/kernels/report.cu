// SPDX-License-Identifier: Apache-2.0
// Correct: blocks count together, and keep what there is room for.
struct entry_t {
    int row;
    int column;
    long long value;
};

struct report_t {
    unsigned long long n_found;
    unsigned capacity;
    unsigned reserved;
};

struct args_t {
    const int *in; // [2, 60], rows 64 apart
    report_t *out; // entries behind it
};

extern "C" __global__ void __launch_bounds__(64)
    kiln_probe(const __grid_constant__ args_t args)
{
    const int row = static_cast<int>(blockIdx.x);
    const int column = static_cast<int>(threadIdx.x);
    if (column >= 60) {
        return;
    }
    entry_t *entries = reinterpret_cast<entry_t *>(args.out + 1);
    const unsigned long long place = atomicAdd(&args.out->n_found, 1ull);
    if (place < args.out->capacity) {
        entries[place] = {row, column, args.in[row * 64 + column]};
    }
}
