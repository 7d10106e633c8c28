/* SPDX-License-Identifier: Apache-2.0 */
/* What tests/gpu runs beside kiln's kernels compiles: it is written where no GPU is. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/attr.h"
#include "support/device_code.h"
#include "support/golden.h"

static const struct ki_target target = {9, 0};

static int open_nvrtc(void **state)
{
    static struct ki_nvrtc nvrtc;

    device_code_open_nvrtc(&nvrtc);
    *state = &nvrtc;
    return 0;
}

static int close_nvrtc(void **state)
{
    ki_nvrtc_close(*state);
    return 0;
}

static void every_reference_compiles_as_device_code(void **state)
{
    for (size_t i = 0; i < N_GOLDEN_SHAPES; i++) {
        const struct golden_shape *golden = &golden_shapes[i];
        struct ki_cubin cubin = {0};
        struct kiln_error err = {0};

        if (device_code_compile_reference(*state, target, golden->op, &golden->shape,
                                          &cubin, &err) != KILN_OK) {
            fail_msg("%s: %s", golden->name, err.message);
        }
        ki_cubin_finish(&cubin, NULL);
    }
}

static void own_kernels_of_the_replays_compile(void **state)
{
    static const char *const kernels[][2] = {
        {"gpu/replay/mutate.cu", "begin_step"},
        {"gpu/replay/mutate.cu", "fill_arrays"},
        {"gpu/replay/compare.cu", "compare"},
        {"gpu/replay/spin.cu", "spin"},
    };

    for (size_t i = 0; i < KI_COUNT_OF(kernels); i++) {
        struct ki_cubin cubin = {0};
        struct kiln_error err = {0};

        if (device_code_compile(*state, target, kernels[i][0], kernels[i][1], &cubin,
                                &err) != KILN_OK) {
            fail_msg("%s: %s", kernels[i][0], err.message);
        }
        ki_cubin_finish(&cubin, NULL);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_reference_compiles_as_device_code),
        cmocka_unit_test(own_kernels_of_the_replays_compile),
    };

    return cmocka_run_group_tests(tests, open_nvrtc, close_nvrtc);
}
