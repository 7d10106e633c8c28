/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One scenario - create, build, prepare, launch, warm, destroy - in which the n-th call of a
 * kind fails, for n = 1, 2, 3 ... until it passes untouched. Each time the status is of the
 * right family, outputs stay as they were, nothing is leaked or left half-written, and the
 * same scenario then succeeds over the same store.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <errno.h>
#include <cmocka.h>

#include "kiln/store.h"

#include "build/store_layer.h"
#include "support/fake_kiln.h"

enum { N_TOKENS = 4, TOPK = 512, N_WARM = 3, RUNS_MAX = 2000 };

struct file_faults {
    struct ki_file_faults faults; /* hand this in */
    struct ki_files files;
    int fail_nth;
    int n_calls;
};

struct run {
    struct fake_kiln *fake;
    struct file_faults *file_faults; /* NULL: none */
    enum kiln_status status;         /* of the first call that failed */
    int64_t n_warm_failed;
};

/* ---- the scenario ------------------------------------------------------------------- */

static enum kiln_status prepare(struct fake_kiln *fake, int64_t topk,
                                const struct kiln_kernel **out)
{
    const struct kiln_kernel *kernel = (const struct kiln_kernel *)fake;
    enum kiln_status status = fake_kiln_prepare(fake, topk, &kernel);

    assert_true(status == KILN_OK ? kernel != NULL : kernel == NULL);
    *out = kernel;
    return status;
}

static enum kiln_status launch(struct fake_kiln *fake, const struct kiln_kernel *kernel)
{
    int32_t ids[N_TOKENS * TOPK] = {0};
    int32_t table[32] = {0};
    int32_t zeros[N_TOKENS] = {0};
    int32_t slots[N_TOKENS * TOPK];
    int32_t lens[N_TOKENS];
    struct kiln_global_topk_args args = {
        .topk_indices = ids,
        .token_to_req = zeros,
        .block_table = table,
        .slots = slots,
        .lens = lens,
        .num_tokens = N_TOKENS,
        .table_rows = 1,
    };

    return kiln_launch_global_topk(kernel, &args, fake->stream, &fake->err);
}

static enum kiln_status warm(struct run *run)
{
    struct kiln_warm_options options = {.n_jobs = 1};
    struct kiln_warm_summary summary = {-1, -1, -1};
    struct kiln_request requests[N_WARM];
    enum kiln_status status;

    for (int i = 0; i < N_WARM; i++) {
        requests[i] = (struct kiln_request){
            .op = KILN_OP_GLOBAL_TOPK,
            .shape = fake_kiln_shape(TOPK << i),
            .target = "sm_90",
        };
    }
    status =
        kiln_warm(run->fake->kiln, requests, N_WARM, &options, &summary, &run->fake->err);
    if (status != KILN_OK) {
        assert_int_equal(summary.n_failed, -1);
        return status;
    }
    assert_int_equal(summary.n_compiled + summary.n_cached + summary.n_failed, N_WARM);
    run->n_warm_failed = summary.n_failed;
    return KILN_OK;
}

/* Another store in the same place, whose file calls can fail. */
static enum kiln_status reopen_store(struct run *run)
{
    struct kiln *kiln = run->fake->kiln;
    struct ki_store_options options = {
        .writable = run->fake->cache_dir,
        .files = &run->file_faults->files,
    };

    ki_store_close(&kiln->store);
    return ki_store_open(&kiln->store, &options, &kiln->mem, &kiln->log, &run->fake->err);
}

static enum kiln_status go(struct run *run)
{
    const struct kiln_kernel *kernel;
    const struct kiln_kernel *other;

    KI_TRY(fake_kiln_open(run->fake));
    if (run->file_faults != NULL) {
        KI_TRY(reopen_store(run));
    }
    KI_TRY(fake_kiln_build(run->fake, TOPK));
    KI_TRY(prepare(run->fake, TOPK, &kernel));
    KI_TRY(prepare(run->fake, 2 * TOPK, &other));
    KI_TRY(launch(run->fake, kernel));
    return warm(run);
}

static struct run scenario(struct fake_kiln *fake, struct file_faults *file_faults)
{
    struct run run = {.fake = fake, .file_faults = file_faults};

    fake->err = (struct kiln_error){0};
    fake->options.no_disk = file_faults != NULL;
    run.status = go(&run);
    assert_int_equal(fake->err.status, run.status);
    fake_kiln_close(fake);
    return run;
}

/* ---- what must hold after each ------------------------------------------------------ */

static void assert_item_verifies(void *user, const struct kiln_store_item *item)
{
    size_t *n = user;

    if (item->fault != NULL) {
        fail_msg("%s: %s", item->name, item->fault);
    }
    (*n)++;
}

static void assert_store_is_whole(const struct fake_kiln *fake)
{
    char tmp[TMPDIR_PATH + 32];
    size_t n = 0;
    struct kiln_error err = {0};
    enum kiln_status status;

    snprintf(tmp, sizeof tmp, "%s/kiln-v1/tmp", fake->cache_dir);
    assert_int_equal(tmpdir_count(tmp, ""), 0);
    status = kiln_store_visit(fake->cache_dir, assert_item_verifies, &n, &err);
    assert_true(status == KILN_OK || err.native_code == ENOENT);
    assert_int_equal(n, fake_kiln_entries(fake));
}

static void assert_nothing_is_left(const struct fake_kiln *fake, int n_descriptors)
{
    assert_int_equal(fake->driver.live.libraries, 0);
    assert_int_equal(fake->nvrtc.n_live, 0);
    assert_int_equal(fake->mem.n_live, 0);
    assert_int_equal(fake_kiln_descriptors(), n_descriptors);
    assert_store_is_whole(fake);
}

static void stop_failing(struct fake_kiln *fake)
{
    fake->driver.fail_nth = 0;
    fake->nvrtc.fail_nth = 0;
    fake->mem.fail_nth = 0;
    fake->mem.n_calls = 0;
    fake_kiln_forget(fake);
}

static void assert_succeeds_now(struct fake_kiln *fake)
{
    struct run run;

    stop_failing(fake);
    run = scenario(fake, NULL);
    if (run.status != KILN_OK) {
        fail_msg("%s", fake->err.message);
    }
    assert_int_equal(run.n_warm_failed, 0);
    assert_int_equal(fake_kiln_entries(fake), N_WARM);
    stop_failing(fake);
}

/* Each run has a store of its own, so that calls are the same up to the one that fails. */
static void begin(struct fake_kiln *fake, const char *kind, int n)
{
    char name[64];

    snprintf(name, sizeof name, "%s-%d", kind, n);
    tmpdir_join(&fake->dir, name, fake->cache_dir);
    stop_failing(fake);
}

static void end(struct fake_kiln *fake, struct run run, enum kiln_status expected,
                int n_descriptors)
{
    if (run.status != KILN_OK && run.status != expected) {
        fail_msg("%s: %s", kiln_status_name(run.status), fake->err.message);
    }
    assert_true(run.n_warm_failed <= 1);
    assert_nothing_is_left(fake, n_descriptors);
    assert_succeeds_now(fake);
    assert_nothing_is_left(fake, n_descriptors);
}

/* ---- the walks ---------------------------------------------------------------------- */

/* What the n-th call to the driver is, from 1, when none fails. */
static enum fake_call driver_call(const struct fake_kiln *fake, int n)
{
    return n <= fake->driver.n_order ? fake->driver.order[n - 1] : FAKE_N_CALLS;
}

/* Going back to the thread's own capture mode cannot fail: the mode came from the driver. */
static void scenario_survives_each_failing_driver_call(void **state)
{
    struct fake_kiln *fake = *state;
    int n_descriptors = fake_kiln_descriptors();
    int n_failed = 0;
    int n;

    for (n = 1; n < RUNS_MAX; n++) {
        enum fake_call call;
        struct run run;

        begin(fake, "driver-untouched", n);
        assert_int_equal(scenario(fake, NULL).status, KILN_OK);
        call = driver_call(fake, n);
        if (call == FAKE_N_CALLS) {
            break;
        }
        if (call == FAKE_thread_exchange_capture_mode) {
            continue;
        }
        begin(fake, "driver", n);
        fake->driver.fail_nth = n;
        run = scenario(fake, NULL);
        assert_int_equal(driver_call(fake, n), call);
        n_failed += run.status != KILN_OK ? 1 : 0;
        end(fake, run, KILN_E_DRIVER, n_descriptors);
    }

    assert_in_range(n, 30, RUNS_MAX - 1);
    assert_in_range(n_failed, 25, n);
}

static int walk_nvrtc(struct fake_kiln *fake, enum fake_nvrtc_call call, int *n_failed)
{
    int n_descriptors = fake_kiln_descriptors();
    int n;

    for (n = 1; n < RUNS_MAX; n++) {
        char kind[32];
        struct run run;

        snprintf(kind, sizeof kind, "nvrtc-%d", (int)call);
        begin(fake, kind, n);
        fake->nvrtc.fail_call = call;
        fake->nvrtc.fail_nth = n;
        run = scenario(fake, NULL);
        if (fake->nvrtc.calls[call] < n) {
            break;
        }
        *n_failed += run.status != KILN_OK || run.n_warm_failed > 0 ? 1 : 0;
        end(fake, run, KILN_E_COMPILE, n_descriptors);
    }
    return n - 1;
}

static void scenario_survives_each_failing_nvrtc_call_field_49(void **state)
{
    static const enum fake_nvrtc_call calls[] = {FAKE_NVRTC_CREATE, FAKE_NVRTC_COMPILE,
                                                 FAKE_NVRTC_CUBIN_SIZE, FAKE_NVRTC_CUBIN};
    struct fake_kiln *fake = *state;

    for (size_t i = 0; i < KI_COUNT_OF(calls); i++) {
        int n_failed = 0;

        assert_int_equal(walk_nvrtc(fake, calls[i], &n_failed), N_WARM);
        assert_int_equal(n_failed, N_WARM);
    }
}

static void scenario_survives_each_failing_allocation(void **state)
{
    struct fake_kiln *fake = *state;
    int n_descriptors = fake_kiln_descriptors();
    int n_failed = 0;
    int n;

    for (n = 1; n < RUNS_MAX; n++) {
        struct run run;

        begin(fake, "memory", n);
        fake->mem.fail_nth = n;
        run = scenario(fake, NULL);
        if (fake->mem.n_calls < n) {
            break;
        }
        n_failed += run.status != KILN_OK || run.n_warm_failed > 0 ? 1 : 0;
        end(fake, run, KILN_E_MEMORY, n_descriptors);
    }

    assert_in_range(n, 40, RUNS_MAX - 1);
    assert_in_range(n_failed, 30, n);
}

static int before_file_call(void *user, enum ki_file_call call, size_t *size)
{
    struct file_faults *faults = user;

    (void)call;
    (void)size;
    faults->n_calls++;
    return faults->n_calls == faults->fail_nth ? EIO : 0;
}

/* Disk trouble is never the caller's, but that warming has to keep what it makes. */
static void scenario_survives_each_failing_file_call(void **state)
{
    struct fake_kiln *fake = *state;
    int n_descriptors = fake_kiln_descriptors();
    int n_failed = 0;
    int n;

    for (n = 1; n < RUNS_MAX; n++) {
        struct file_faults faults = {.fail_nth = n};
        struct run run;

        faults.faults = (struct ki_file_faults){before_file_call, &faults};
        faults.files.faults = &faults.faults;
        begin(fake, "file", n);
        run = scenario(fake, &faults);
        if (faults.n_calls < n) {
            break;
        }
        /* A kernel is in the store, or is said not to be. */
        if (run.status == KILN_OK) {
            assert_true((int64_t)fake_kiln_entries(fake) + run.n_warm_failed >= N_WARM);
            n_failed += run.n_warm_failed > 0 ? 1 : 0;
        }
        end(fake, run, KILN_E_STORE, n_descriptors);
    }

    assert_in_range(n, 60, RUNS_MAX - 1);
    assert_in_range(n_failed, 10, n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(scenario_survives_each_failing_driver_call,
                                        fake_kiln_setup, fake_kiln_teardown),
        cmocka_unit_test_setup_teardown(
            scenario_survives_each_failing_nvrtc_call_field_49, fake_kiln_setup,
            fake_kiln_teardown),
        cmocka_unit_test_setup_teardown(scenario_survives_each_failing_allocation,
                                        fake_kiln_setup, fake_kiln_teardown),
        cmocka_unit_test_setup_teardown(scenario_survives_each_failing_file_call,
                                        fake_kiln_setup, fake_kiln_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
