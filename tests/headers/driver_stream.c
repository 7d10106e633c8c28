/* SPDX-License-Identifier: Apache-2.0 */
/* Beside cuda.h, a CUstream goes where kiln wants a stream, without a cast. */
#include <string.h>

#include <cuda.h>

#include "kiln/gpu.h"
#include "kiln/kiln.h"
#include "kiln/plan.h"
#include "kiln/store.h"

int main(void)
{
    CUstream stream = 0;
    struct kiln *kiln = 0;
    const struct kiln_kernel *kernel = 0;
    struct kiln_shape shape = {{{0}}};
    struct kiln_global_topk_args args;
    enum kiln_status status;

    memset(&args, 0, sizeof(args));
    status = kiln_prepare(kiln, KILN_OP_GLOBAL_TOPK, &shape, stream, &kernel, 0);
    if (status == KILN_OK) {
        status = kiln_launch_global_topk(kernel, &args, stream, 0);
    }
    if (status == KILN_OK) {
        status = kiln_launch(kernel, &args, stream, 0);
    }
    return (int)status;
}
