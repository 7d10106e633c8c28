/* SPDX-License-Identifier: Apache-2.0 */
/* When a launcher's launches may start before the kernel ahead has ended, and when not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "support/fake_kiln.h"

static _Alignas(16) const unsigned char memory[64]; /* every input: nothing reads it */

static struct kiln_launcher *created(struct fake_kiln *fake, bool programmatic)
{
    struct kiln_deployment d = fake_kiln_deployment();
    struct kiln_launcher_options options = {.size = sizeof options,
                                            .programmatic = programmatic};
    struct kiln_launcher *launcher = NULL;

    if (kiln_launcher_create(fake->kiln, &d, &options, &launcher, &fake->err) !=
        KILN_OK) {
        fail_msg("%s", fake->err.message);
    }
    return launcher;
}

static void destroy(struct kiln_launcher **launcher)
{
    assert_int_equal(kiln_launcher_destroy(launcher, NULL), KILN_OK);
}

static void assert_launches(struct fake_kiln *fake, struct kiln_launcher *launcher,
                            bool programmatic)
{
    const struct kiln_layout *layout = kiln_launcher_layout(launcher);
    unsigned char args[FAKE_ARGS];

    assert_int_equal(kiln_launcher_is_programmatic(launcher), programmatic);
    for (size_t i = 0; i < layout->n_launches; i++) {
        fake_kiln_args(layout->launches[i].op, 5, memory, args);
        fake_driver_forget(&fake->driver);
        assert_int_equal(kiln_launcher_launch(launcher, i, args, fake->stream, NULL),
                         KILN_OK);
        assert_int_equal(fake->driver.n_calls, 1);
        assert_int_equal(fake->driver.launches[0].is_programmatic, programmatic);
    }
}

static void programmatic_launches_are_tried_once_for_a_device(void **state)
{
    struct fake_kiln *fake = *state;
    struct kiln_launcher *first = created(fake, true);
    struct kiln_launcher *second = created(fake, true);
    struct kiln_stats stats;

    kiln_get_stats(fake->kiln, &stats);
    assert_int_equal(fake_driver_count(&fake->driver, FAKE_stream_begin_capture), 1);
    assert_int_equal(fake->driver.n_launches, 2);
    assert_true(fake->driver.launches[1].captured);
    assert_true(fake->driver.launches[1].is_programmatic);
    assert_int_equal(fake_driver_count(&fake->driver, FAKE_graph_launch), 1);
    assert_int_equal(stats.n_launches, 0);
    assert_int_equal(fake->driver.live.allocations, 2);
    assert_launches(fake, first, true);
    assert_launches(fake, second, true);
    destroy(&first);
    destroy(&second);
}

/* The kernel of the trial takes an optional array for one that is there unless it is NULL. */
static void trial_gives_each_required_array_and_no_other(void **state)
{
    struct fake_kiln *fake = *state;
    const struct kiln_op_info *info = kiln_op_info_get(KILN_OP_GLOBAL_TOPK);
    struct kiln_launcher *launcher;

    fake->driver.params_bytes = info->args_bytes;
    launcher = created(fake, true);
    assert_int_equal(fake->driver.n_launches, 2);
    for (size_t i = 0; i < info->n_args; i++) {
        const struct kiln_arg *arg = &info->args[i];
        const void *address;

        if (arg->kind == KILN_ARG_INPUT || arg->kind == KILN_ARG_OUTPUT) {
            memcpy(&address, fake->driver.launches[0].params + arg->offset,
                   sizeof address);
            assert_int_equal(address == NULL, arg->optional);
        }
    }
    fake->driver.params_bytes = 0;
    destroy(&launcher);
}

static void programmatic_launches_are_off_where_not_asked_for_field_73(void **state)
{
    struct fake_kiln *fake = *state;
    struct kiln_launcher *launcher = created(fake, false);

    assert_int_equal(fake->driver.n_launches, 0);
    assert_launches(fake, launcher, false);
    destroy(&launcher);
}

static void kernel_that_does_not_wait_is_never_launched_so_field_73(void **state)
{
    struct fake_kiln *fake = *state;
    struct kiln_launcher *launcher;

    fake->nvrtc.never_waits = true;
    launcher = created(fake, true);

    assert_int_equal(fake->driver.n_launches, 0);
    assert_launches(fake, launcher, false);
    destroy(&launcher);
}

static void older_device_has_no_programmatic_launches(void **state)
{
    struct fake_kiln *fake = *state;
    struct kiln_launcher *launcher;

    fake->driver.cc_major = 8;
    launcher = created(fake, true);

    assert_int_equal(fake->driver.n_launches, 0);
    assert_launches(fake, launcher, false);
    destroy(&launcher);
}

static void kernel_of_a_launcher_is_launched_plainly_by_itself(void **state)
{
    struct fake_kiln *fake = *state;
    struct kiln_launcher *launcher = created(fake, true);
    const struct kiln_layout_launch *planned =
        &kiln_launcher_layout(launcher)->launches[4];
    const struct kiln_kernel *kernel;
    unsigned char args[FAKE_ARGS];
    void *output = kiln_launcher_layout(launcher)->buffers[planned->first_buffer].address;

    assert_int_equal(planned->op, KILN_OP_TOKEN_TO_REQ);
    assert_int_equal(kiln_find(fake->kiln, planned->op, &planned->shape, &kernel, NULL),
                     KILN_OK);
    fake_kiln_args(planned->op, 5, memory, args);
    memcpy(args + offsetof(struct kiln_token_to_req_args, token_to_req), &output,
           sizeof output);
    fake_driver_forget(&fake->driver);
    assert_int_equal(kiln_launch(kernel, args, fake->stream, NULL), KILN_OK);

    assert_false(fake->driver.launches[0].is_programmatic);
    destroy(&launcher);
}

static void trial_harms_no_capture_field_70(void **state)
{
    struct fake_kiln *fake = *state;
    struct kiln_launcher *launcher;
    CUgraph graph = NULL;

    assert_int_equal(fake->driver_table.stream_begin_capture(
                         fake->stream, CU_STREAM_CAPTURE_MODE_GLOBAL),
                     CUDA_SUCCESS);
    launcher = created(fake, true);

    assert_true(kiln_launcher_is_programmatic(launcher));
    assert_int_equal(fake->driver.n_broken, 0);
    assert_int_equal(fake->driver_table.stream_end_capture(fake->stream, &graph),
                     CUDA_SUCCESS);
    (void)fake->driver_table.graph_destroy(graph);
    destroy(&launcher);
}

/* Each call of the trial fails in turn: launches are plain, and nothing is left of it. */
static void trial_that_fails_leaves_plain_launches_and_a_warning(void **state)
{
    static const enum fake_call calls[] = {
        FAKE_stream_create,      FAKE_stream_begin_capture, FAKE_launch_kernel_ex,
        FAKE_stream_end_capture, FAKE_graph_instantiate,    FAKE_graph_launch,
        FAKE_stream_synchronize};
    struct fake_kiln *fake = *state;

    for (size_t i = 0; i < KI_COUNT_OF(calls); i++) {
        struct kiln_launcher *launcher;

        fake_kiln_close(fake);
        assert_int_equal(fake_kiln_open(fake), KILN_OK);
        fake_driver_forget(&fake->driver);
        fake->driver.fail_call = calls[i];
        fake->driver.fail_call_nth = 1;
        launcher = created(fake, true);
        fake->driver.fail_call_nth = 0;

        assert_int_equal(fake_driver_count(&fake->driver, calls[i]), 1);
        assert_int_equal(fake->log.n_warnings, i + 1);
        assert_int_equal(fake->driver.live.allocations, 1);
        assert_int_equal(fake->driver.live.streams, 1);
        assert_int_equal(fake->driver.live.graphs + fake->driver.live.execs, 0);
        assert_int_equal(fake->driver.n_capturing, 0);
        assert_launches(fake, launcher, false);
        destroy(&launcher);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name)                                                                       \
    cmocka_unit_test_setup_teardown(name, fake_kiln_setup_open, fake_kiln_teardown)
        TEST(programmatic_launches_are_tried_once_for_a_device),
        TEST(trial_gives_each_required_array_and_no_other),
        TEST(programmatic_launches_are_off_where_not_asked_for_field_73),
        TEST(kernel_that_does_not_wait_is_never_launched_so_field_73),
        TEST(older_device_has_no_programmatic_launches),
        TEST(kernel_of_a_launcher_is_launched_plainly_by_itself),
        TEST(trial_harms_no_capture_field_70),
        TEST(trial_that_fails_leaves_plain_launches_and_a_warning),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
