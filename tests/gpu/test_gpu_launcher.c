/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a launch costs, and what it does not wait for: measured beside bare launches and
 * beside a kernel that does not end.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

#include "base/attr.h"
#include "plan/op.h"
#include "replay_rig.h"
#include "run/launch.h"

enum { SKIPPED = 77, N_TIMED = 100000, LAUNCHES_IN_FLIGHT = 64 };

struct fixture {
    struct kiln_gpu *gpu, *other; /* streams of one context */
    struct kiln *kiln;
};

static double now_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static void check(enum kiln_status status, const struct kiln_error *err)
{
    if (status != KILN_OK) {
        fail_msg("%s: %s", kiln_status_name((int)status), err->message);
    }
}

static void begin(const struct fixture *fixture, struct rig *rig)
{
    const struct rig_options options = {
        .max_model_len = 131072, .n_tokens = 64, .n_requests = 64, .kiln_alone = true};

    rig_init(rig, fixture->gpu, fixture->kiln, &options);
    rig_capture(rig, KILN_CAPTURE_GLOBAL);
    rig_replay(rig, 1); /* a batch to work on */
}

/* The stream's work is done. */
static void wait(struct rig *rig)
{
    struct kiln_error err = {0};

    check(ki_driver_check(&rig->driver,
                          rig->driver.stream_synchronize(kiln_gpu_stream(rig->gpu)), "",
                          &err),
          &err);
}

/* ---- the cost of a launch --------------------------------------------------------------- */

/* The same launch of the same kernel, three ways. */
struct ways {
    struct rig *rig;
    const struct kiln_kernel *kernel;
    CUlaunchConfig config;
    size_t i_launch;
    union random_args args;
};

static enum kiln_status launch_bare(struct ways *ways, struct kiln_error *err)
{
    void *params[] = {&ways->args};
    const struct ki_driver *driver = &ways->rig->driver;

    return ki_driver_check(
        driver,
        driver->launch_kernel_ex(&ways->config, (CUfunction)ways->kernel->module.kernel,
                                 params, NULL),
        "cuLaunchKernelEx", err);
}

static enum kiln_status launch_kernel(struct ways *ways, struct kiln_error *err)
{
    return kiln_launch(ways->kernel, &ways->args, kiln_gpu_stream(ways->rig->gpu), err);
}

static enum kiln_status launch_launcher(struct ways *ways, struct kiln_error *err)
{
    return kiln_launcher_launch(ways->rig->launcher, ways->i_launch, &ways->args,
                                kiln_gpu_stream(ways->rig->gpu), err);
}

static enum kiln_status (*const all_ways[])(struct ways *, struct kiln_error *) = {
    launch_bare, launch_kernel, launch_launcher};

enum { N_WAYS = 3 };

static void ways_of(struct fixture *fixture, struct rig *rig, struct ways *out)
{
    const size_t i = kiln_layout_find_launch(rig->layout, "global_topk.4");
    const struct kiln_layout_launch *launch = &rig->layout->launches[i];
    struct kiln_geometry geometry;
    struct kiln_error err = {0};

    *out = (struct ways){.rig = rig, .i_launch = i};
    rig_bind(rig, i, rig->inputs, rig_outputs(rig), &out->args);
    check(kiln_find(fixture->kiln, launch->op, &launch->shape, &out->kernel, &err), &err);
    check(kiln_geometry_make(launch->op, &launch->shape, &out->args, rig->device.n_sms,
                             &geometry, &err),
          &err);
    out->config = (CUlaunchConfig){
        .gridDimX = geometry.grid_x,
        .gridDimY = geometry.grid_y,
        .gridDimZ = 1,
        .blockDimX = geometry.threads,
        .blockDimY = 1,
        .blockDimZ = 1,
        .hStream = kiln_gpu_stream(rig->gpu),
    };
}

static int compare_doubles(const void *left, const void *right)
{
    const double a = *(const double *)left, b = *(const double *)right;

    return (a > b) - (a < b);
}

static double median(double *values, size_t n)
{
    qsort(values, n, sizeof *values, compare_doubles);
    return values[n / 2];
}

static void launch_costs_no_more_than_150_ns_over_a_bare_one(void **state)
{
    struct fixture *fixture = *state;
    struct kiln_error err = {0};
    double *us[N_WAYS], medians[N_WAYS];
    struct ways ways;
    struct rig rig;

    begin(fixture, &rig);
    ways_of(fixture, &rig, &ways);
    for (size_t way = 0; way < N_WAYS; way++) {
        us[way] = malloc(N_TIMED * sizeof(double));
        assert_non_null(us[way]);
    }
    for (size_t i = 0; i < N_TIMED; i++) {
        for (size_t way = 0; way < N_WAYS; way++) {
            const double begun = now_us();
            const enum kiln_status status = all_ways[way](&ways, &err);
            us[way][i] = now_us() - begun;
            check(status, &err);
        }
        if (i % (LAUNCHES_IN_FLIGHT / N_WAYS) == 0) {
            wait(&rig);
        }
    }
    for (size_t way = 0; way < N_WAYS; way++) {
        medians[way] = median(us[way], N_TIMED);
        free(us[way]);
    }
    print_message("bare %.3f us, kiln_launch %+.3f, kiln_launcher_launch %+.3f\n",
                  medians[0], medians[1] - medians[0], medians[2] - medians[0]);
    assert_true(medians[1] - medians[0] <= 0.15);
    assert_true(medians[2] - medians[0] <= 0.15);
    rig_finish(&rig);
}

/* ---- beside a kernel that spins --------------------------------------------------------- */

/* A launch and its end. */
static double launch_us(struct ways *ways)
{
    struct kiln_error err = {0};
    const double begun = now_us();

    check(launch_launcher(ways, &err), &err);
    wait(ways->rig);
    return now_us() - begun;
}

/* Of a kernel that is in no cache. */
static double build_us(const struct fixture *fixture, int64_t pad_req)
{
    const struct kiln_shape shape = {.token_to_req = {.pad_req = pad_req}};
    struct kiln_error err = {0};
    const double begun = now_us();

    check(kiln_build(fixture->kiln, KILN_OP_TOKEN_TO_REQ, &shape, NULL, &err), &err);
    return now_us() - begun;
}

static void launch_and_build_wait_for_no_other_kernel_field_66(void **state)
{
    enum { SPIN_MS = 2000 };
    struct fixture *fixture = *state;
    uint64_t ns = SPIN_MS * 1000000ull;
    void *params[] = {&ns};
    struct ki_module spin = {0};
    struct rig rig, beside;
    struct ways ways;
    double usual_launch, usual_build, launch, build, all;

    begin(fixture, &rig);
    ways_of(fixture, &rig, &ways);
    rig_load(&rig, "gpu/replay/spin.cu", "spin", &spin);
    usual_launch = launch_us(&ways);
    usual_build = build_us(fixture, 71);
    beside = rig;
    beside.gpu = fixture->other;
    all = now_us();
    rig_launch(&beside, &spin, 1, 32, params);
    launch = launch_us(&ways);
    build = build_us(fixture, 72);
    all = now_us() - all;
    print_message("launch %.0f us, beside the other kernel %.0f; build %.0f us, %.0f\n",
                  usual_launch, launch, usual_build, build);
    wait(&beside);
    ki_module_unload(&rig.driver, &spin);
    rig_finish(&rig);
    assert_true(all < SPIN_MS * 1000.0 / 2);
    assert_true(launch < usual_launch + 1000);
    assert_true(build < 2 * usual_build + 50000);
}

/* ---- main ------------------------------------------------------------------------------- */

static void close_all(struct fixture *fixture)
{
    kiln_destroy(&fixture->kiln);
    kiln_gpu_close(&fixture->other);
    kiln_gpu_close(&fixture->gpu);
}

int main(void)
{
    static struct fixture fixture;
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_prestate(name, &fixture)
        TEST(launch_costs_no_more_than_150_ns_over_a_bare_one),
        TEST(launch_and_build_wait_for_no_other_kernel_field_66),
    };
    struct kiln_options options = KILN_OPTIONS_INIT;
    struct kiln_error err = {0};
    enum kiln_status status = kiln_gpu_open(0, &fixture.gpu, &err);
    int n_failed;

    if (status == KILN_E_DRIVER_MISSING) {
        fprintf(stderr, "skipped: %s\n", err.message);
        return SKIPPED;
    }
    options.no_disk = true;
    if (status != KILN_OK || kiln_gpu_open(0, &fixture.other, &err) != KILN_OK ||
        kiln_create(&options, &fixture.kiln, &err) != KILN_OK) {
        fprintf(stderr, "cannot begin: %s\n", err.message);
        close_all(&fixture);
        return EXIT_FAILURE;
    }
    n_failed = cmocka_run_group_tests(tests, NULL, NULL);
    close_all(&fixture);
    return n_failed;
}
