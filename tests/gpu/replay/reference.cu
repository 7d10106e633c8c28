/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reference of an op as device code: the C that tests on the CPU trust, a thread for
 * each row. REFERENCE is its file, ROW its function, ARGS the op's args struct, FIELDS the
 * fields of its shape in order.
 */
#include REFERENCE

extern "C" __global__ void reference_rows(const struct ARGS args, const int64_t n_rows)
{
    const struct kiln_shape shape = {{{FIELDS}}};
    const int64_t row = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;

    if (row < n_rows) {
        ROW(&shape, &args, row);
    }
}
