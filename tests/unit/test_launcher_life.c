/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A launcher from create to destroy: memory of its own and of the caller's, contexts, graphs
 * that hold it, other threads' captures, forks, and each driver call and allocation failing.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "support/fake_kiln.h"

enum { RUNS_MAX = 2000, BUFFERS_MAX = 64 };

static _Alignas(16) const unsigned char memory[64]; /* every input: nothing reads it */

static enum kiln_status create(struct fake_kiln *fake,
                               const struct kiln_launcher_options *options,
                               struct kiln_launcher **out)
{
    struct kiln_deployment d = fake_kiln_deployment();

    return kiln_launcher_create(fake->kiln, &d, options, out, &fake->err);
}

static struct kiln_launcher *created(struct fake_kiln *fake)
{
    struct kiln_launcher *launcher = NULL;

    if (create(fake, NULL, &launcher) != KILN_OK) {
        fail_msg("%s", fake->err.message);
    }
    return launcher;
}

static void destroy(struct kiln_launcher **launcher)
{
    struct kiln_error err = {0};

    if (kiln_launcher_destroy(launcher, &err) != KILN_OK) {
        fail_msg("%s", err.message);
    }
    assert_null(*launcher);
}

/* ---- memory of its own ---- */

static void create_allocates_every_output_once_at_capacity(void **state)
{
    struct fake_kiln *fake = *state;
    struct kiln_deployment d = fake_kiln_deployment();
    struct kiln_launcher *launcher = created(fake);
    const struct kiln_layout *layout = kiln_launcher_layout(launcher);
    struct kiln_launcher_stats stats;
    struct kiln_layout planned;

    assert_int_equal(kiln_layout_make(&d, &planned, NULL), KILN_OK);
    assert_int_equal(layout->n_buffers, planned.n_buffers);
    for (size_t i = 0; i < layout->n_buffers; i++) {
        const struct kiln_buffer *buffer = &layout->buffers[i];

        assert_int_equal((uintptr_t)buffer->address % KILN_BUFFER_ALIGN, 0);
        assert_int_equal((char *)buffer->address - (char *)layout->buffers[0].address,
                         planned.buffers[i].offset);
        memset(buffer->address, 0xA5, (size_t)buffer->bytes);
    }
    kiln_launcher_get_stats(launcher, &stats);

    assert_int_equal(fake_driver_count(&fake->driver, FAKE_mem_alloc), 1);
    assert_int_equal(stats.allocated_bytes, planned.total_bytes);
    assert_int_equal(fake->driver.live.allocations, 1);
    destroy(&launcher);
    assert_int_equal(fake->driver.live.allocations, 0);
    kiln_layout_finish(&planned);
}

/* The kernels stay: another launcher, or a graph, may use them. */
static void destroy_frees_memory_and_unloads_nothing_field_69(void **state)
{
    struct fake_kiln *fake = *state;
    struct kiln_launcher *launcher = created(fake);
    int n_libraries = fake->driver.live.libraries;

    destroy(&launcher);

    assert_int_equal(n_libraries, 12);
    assert_int_equal(fake->driver.live.libraries, 12);
}

static void launchers_of_one_kiln_share_kernels_and_no_memory(void **state)
{
    struct fake_kiln *fake = *state;
    struct kiln_launcher *first = created(fake);
    struct kiln_launcher *second = created(fake);

    assert_int_equal(fake_kiln_loads(fake), 12);
    assert_ptr_not_equal(kiln_launcher_layout(first)->buffers[0].address,
                         kiln_launcher_layout(second)->buffers[0].address);
    destroy(&first);
    destroy(&second);
}

/* Load order elsewhere: a kernel that was never touched in a context stalls its first launch. */
static void create_in_a_second_context_finishes_the_load_there_field_66(void **state)
{
    struct fake_kiln *fake = *state;
    struct kiln_launcher *first = created(fake);
    struct kiln_launcher *second;

    fake_driver_forget(&fake->driver);
    fake_driver_set_context(fake_driver_other_context());
    second = created(fake);

    assert_int_equal(fake_kiln_loads(fake), 0);
    assert_int_equal(fake_driver_count(&fake->driver, FAKE_func_load), 12);
    destroy(&second);
    fake_driver_set_context(fake_driver_context());
    destroy(&first);
}

/* ---- memory of the caller's ---- */

struct given {
    struct kiln_buffer_memory memory[BUFFERS_MAX];
    struct kiln_launcher_options options;
    struct kiln_layout layout;
    CUdeviceptr block;
};

/* One block with every buffer at its offset in the layout. */
static void give_all(struct fake_kiln *fake, struct given *given)
{
    struct kiln_deployment d = fake_kiln_deployment();

    assert_int_equal(kiln_layout_make(&d, &given->layout, NULL), KILN_OK);
    assert_int_equal(
        fake->driver_table.mem_alloc(&given->block, (size_t)given->layout.total_bytes),
        CUDA_SUCCESS);
    for (size_t i = 0; i < given->layout.n_buffers; i++) {
        const struct kiln_buffer *buffer = &given->layout.buffers[i];

        given->memory[i] = (struct kiln_buffer_memory){
            buffer->name, (char *)(uintptr_t)given->block + buffer->offset,
            buffer->bytes};
    }
    given->options = (struct kiln_launcher_options){.size = sizeof given->options,
                                                    .memory = given->memory,
                                                    .n_memory = given->layout.n_buffers};
    fake_driver_forget(&fake->driver);
}

static void take_back(struct fake_kiln *fake, struct given *given)
{
    kiln_layout_finish(&given->layout);
    (void)fake->driver_table.mem_free(given->block);
}

static void create_takes_the_callers_memory_and_allocates_none(void **state)
{
    struct fake_kiln *fake = *state;
    struct kiln_launcher *launcher = NULL;
    struct given given;

    give_all(fake, &given);
    assert_int_equal(create(fake, &given.options, &launcher), KILN_OK);
    for (size_t i = 0; i < given.layout.n_buffers; i++) {
        assert_ptr_equal(kiln_launcher_layout(launcher)->buffers[i].address,
                         given.memory[i].address);
    }
    fake_driver_set_context(NULL); /* nothing of it is in a context */
    destroy(&launcher);
    fake_driver_set_context(fake_driver_context());

    assert_int_equal(fake_driver_count(&fake->driver, FAKE_mem_alloc), 0);
    assert_int_equal(fake_driver_count(&fake->driver, FAKE_mem_free), 0);
    take_back(fake, &given);
}

static void create_allocates_what_the_caller_did_not_bring(void **state)
{
    struct fake_kiln *fake = *state;
    struct kiln_launcher *launcher = NULL;
    struct kiln_launcher_stats stats;
    struct given given;

    give_all(fake, &given);
    given.options.memory = &given.memory[2];
    given.options.n_memory = 1;
    assert_int_equal(create(fake, &given.options, &launcher), KILN_OK);
    kiln_launcher_get_stats(launcher, &stats);

    assert_ptr_equal(kiln_launcher_layout(launcher)->buffers[2].address,
                     given.memory[2].address);
    assert_int_equal(stats.allocated_bytes,
                     given.layout.total_bytes -
                         (given.memory[2].bytes + 255) / 256 * 256);
    destroy(&launcher);
    take_back(fake, &given);
}

struct bad_memory {
    struct kiln_buffer_memory memory[2];
    size_t n;
    const char *words[3];
};

static void create_names_memory_that_is_wrong(void **state)
{
    static char *const at = (char *)0x10000;
    char *const last = (char *)(UINTPTR_MAX - 255);
    const struct bad_memory cases[] = {
        {{{"nobody", at, 4096}}, 1, {"nobody", "a buffer of the layout", ""}},
        {{{NULL, at, 4096}}, 1, {"a buffer of the layout", "", ""}},
        {{{"gather_lens.gather_lens", NULL, 4096}},
         1,
         {"gather_lens", "multiple", "256"}},
        {{{"gather_lens.gather_lens", at + 128, 4096}},
         1,
         {"0x10080", "multiple", "256"}},
        {{{"gather_lens.gather_lens", at, 399}},
         1,
         {"399 bytes", "expected 400", "100 row"}},
        {{{"gather_lens.gather_lens", at, 400}, {"gather_lens.gather_lens", at, 400}},
         2,
         {"twice", "", ""}},
        {{{"gather_lens.gather_lens", at, 400}, {"swa_indices.swa_lens", at + 256, 400}},
         2,
         {"overlaps", "gather_lens.gather_lens", "swa_indices.swa_lens"}},
        {{{"gather_lens.gather_lens", last, 400}, {"swa_indices.swa_lens", last, 400}},
         2,
         {"overlaps", "gather_lens.gather_lens", "swa_indices.swa_lens"}},
    };
    struct fake_kiln *fake = *state;

    for (size_t i = 0; i < KI_COUNT_OF(cases); i++) {
        struct kiln_launcher_options options = {
            .size = sizeof options, .memory = cases[i].memory, .n_memory = cases[i].n};
        struct kiln_launcher *launcher = (struct kiln_launcher *)&options;

        assert_int_equal(create(fake, &options, &launcher), KILN_E_ARGUMENT);
        assert_null(launcher);
        for (int word = 0; word < 3; word++) {
            if (strstr(fake->err.message, cases[i].words[word]) == NULL) {
                fail_msg("%s: lacks %s", fake->err.message, cases[i].words[word]);
            }
        }
    }
    assert_int_equal(fake->driver.n_calls, 0);
    assert_int_equal(fake_kiln_compiles(fake), 0);
}

/* ---- create's refusals ---- */

static void create_says_how_much_memory_it_did_not_get(void **state)
{
    struct fake_kiln *fake = *state;
    struct kiln_deployment d = fake_kiln_deployment();
    struct kiln_launcher *launcher = NULL;
    struct kiln_layout layout;
    char bytes[64];

    assert_int_equal(kiln_layout_make(&d, &layout, NULL), KILN_OK);
    (void)snprintf(bytes, sizeof bytes, "%lld bytes", (long long)layout.total_bytes);
    kiln_layout_finish(&layout);
    fake->driver.fail_call = FAKE_mem_alloc;
    fake->driver.fail_call_nth = 1;
    assert_int_equal(create(fake, NULL, &launcher), KILN_E_DRIVER);

    assert_null(launcher);
    assert_non_null(strstr(fake->err.message, bytes));
}

static void create_on_a_capturing_stream_touches_nothing_field_68(void **state)
{
    struct fake_kiln *fake = *state;
    struct kiln_launcher_options options = {.size = sizeof options,
                                            .stream = fake->stream};
    struct kiln_launcher *launcher = NULL;
    CUgraph graph = NULL;

    assert_int_equal(fake->driver_table.stream_begin_capture(
                         fake->stream, CU_STREAM_CAPTURE_MODE_GLOBAL),
                     CUDA_SUCCESS);
    assert_int_equal(create(fake, &options, &launcher), KILN_E_CAPTURING);

    assert_null(launcher);
    assert_int_equal(fake_kiln_compiles(fake), 0);
    assert_int_equal(fake_kiln_loads(fake), 0);
    assert_int_equal(fake_driver_count(&fake->driver, FAKE_mem_alloc), 0);
    assert_int_equal(fake->driver_table.stream_end_capture(fake->stream, &graph),
                     CUDA_SUCCESS);
    (void)fake->driver_table.graph_destroy(graph);
}

static void create_refuses_what_is_missing_or_newer(void **state)
{
    struct fake_kiln *fake = *state;
    struct kiln_deployment d = fake_kiln_deployment();
    struct {
        struct kiln_launcher_options known;
        uint64_t more;
    } newer = {.known = {.size = sizeof newer}, .more = 1};
    struct kiln_launcher_options many = {.size = sizeof many, .n_memory = 2};
    struct kiln_launcher *launcher = NULL;

    assert_int_equal(kiln_launcher_create(NULL, &d, NULL, &launcher, &fake->err),
                     KILN_E_ARGUMENT);
    assert_int_equal(kiln_launcher_create(fake->kiln, NULL, NULL, &launcher, &fake->err),
                     KILN_E_ARGUMENT);
    assert_int_equal(kiln_launcher_create(fake->kiln, &d, NULL, NULL, &fake->err),
                     KILN_E_ARGUMENT);
    assert_int_equal(create(fake, &newer.known, &launcher), KILN_E_VERSION);
    assert_int_equal(create(fake, &many, &launcher), KILN_E_ARGUMENT);
    assert_non_null(strstr(fake->err.message, "expected 2"));
    d.max_model_len = 0;
    assert_int_equal(kiln_launcher_create(fake->kiln, &d, NULL, &launcher, &fake->err),
                     KILN_E_ARGUMENT);
    assert_non_null(strstr(fake->err.message, "--max-model-len"));
    fake_driver_set_context(NULL);
    assert_int_equal(create(fake, NULL, &launcher), KILN_E_NO_CONTEXT);
    fake_driver_set_context(fake_driver_context());
}

static void create_in_a_child_after_fork_is_refused_field_50(void **state)
{
    struct fake_kiln *fake = *state;
    struct kiln_launcher *launcher = created(fake);
    pid_t child = fork();
    int result = -1;

    if (child == 0) {
        struct kiln_launcher *other = NULL;
        bool is_right = create(fake, NULL, &other) == KILN_E_FORKED && other == NULL;

        fake_driver_forget(&fake->driver);
        is_right = is_right && kiln_launcher_destroy(&launcher, NULL) == KILN_OK &&
                   launcher == NULL && fake->driver.n_calls == 0;
        _exit(is_right ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &result, 0), child);
    assert_int_equal(result, 0);
    destroy(&launcher);
}

/* ---- other threads' captures ---- */

static void create_and_destroy_harm_no_capture_field_70(void **state)
{
    struct fake_kiln *fake = *state;
    struct kiln_launcher *launcher = NULL;
    CUgraph graph = NULL;

    assert_int_equal(fake->driver_table.stream_begin_capture(
                         fake->stream, CU_STREAM_CAPTURE_MODE_GLOBAL),
                     CUDA_SUCCESS);
    launcher = created(fake);
    destroy(&launcher);

    assert_int_equal(fake->driver.n_broken, 0);
    assert_int_equal(fake_driver_thread_mode(), CU_STREAM_CAPTURE_MODE_GLOBAL);
    assert_int_equal(fake->driver_table.stream_end_capture(fake->stream, &graph),
                     CUDA_SUCCESS);
    (void)fake->driver_table.graph_destroy(graph);
}

/* ---- destroy's refusals ---- */

static void destroy_of_nothing_is_fine(void **state)
{
    struct kiln_launcher *launcher = NULL;

    (void)state;
    assert_int_equal(kiln_launcher_destroy(NULL, NULL), KILN_OK);
    assert_int_equal(kiln_launcher_destroy(&launcher, NULL), KILN_OK);
}

static void destroy_in_another_context_is_refused(void **state)
{
    struct fake_kiln *fake = *state;
    struct kiln_launcher *launcher = created(fake);

    fake_driver_set_context(fake_driver_other_context());
    assert_int_equal(kiln_launcher_destroy(&launcher, &fake->err), KILN_E_ARGUMENT);
    assert_non_null(strstr(fake->err.message, "context"));
    fake_driver_set_context(NULL);
    assert_int_equal(kiln_launcher_destroy(&launcher, &fake->err), KILN_E_NO_CONTEXT);

    assert_non_null(launcher);
    assert_int_equal(fake->driver.live.allocations, 1);
    fake_driver_set_context(fake_driver_context());
    destroy(&launcher);
}

/* A sticky error of an earlier launch comes out here; the memory is the driver's again. */
static void destroy_reports_what_the_free_said_and_is_done(void **state)
{
    struct fake_kiln *fake = *state;
    struct kiln_launcher *launcher = created(fake);

    fake->driver.fail_call = FAKE_mem_free;
    fake->driver.fail_call_nth = 1;
    fake->driver.fail_result = CUDA_ERROR_LAUNCH_FAILED;
    assert_int_equal(kiln_launcher_destroy(&launcher, &fake->err), KILN_E_DRIVER);

    assert_null(launcher);
    assert_int_equal(fake->err.native_code, CUDA_ERROR_LAUNCH_FAILED);
    assert_int_equal(fake->driver.live.allocations, 0);
}

static void destroy_of_the_kiln_under_a_launcher_does_nothing_but_complain(void **state)
{
    struct fake_kiln *fake = *state;
    struct kiln_launcher *launcher = created(fake);

    kiln_destroy(&fake->kiln);

    assert_non_null(fake->kiln);
    assert_int_equal(fake->log.n_errors, 1);
    assert_int_equal(fake->driver.live.libraries, 12);
    destroy(&launcher);
    kiln_destroy(&fake->kiln);
    assert_null(fake->kiln);
}

/* ---- graphs that hold it ---- */

static int64_t pins(const struct kiln_launcher *launcher)
{
    struct kiln_launcher_stats stats;

    kiln_launcher_get_stats(launcher, &stats);
    return stats.n_pins;
}

static enum kiln_status capture_and_retain(struct fake_kiln *fake,
                                           struct kiln_launcher *launcher, CUgraph *out)
{
    unsigned char args[FAKE_ARGS];
    enum kiln_status status;

    fake_kiln_args(kiln_launcher_layout(launcher)->launches[0].op, 5, memory, args);
    (void)fake->driver_table.stream_begin_capture(fake->stream,
                                                  CU_STREAM_CAPTURE_MODE_GLOBAL);
    status = kiln_launcher_launch(launcher, 0, args, fake->stream, &fake->err);
    (void)fake->driver_table.stream_end_capture(fake->stream, out);
    return status != KILN_OK || *out == NULL
               ? status
               : kiln_launcher_retain(launcher, *out, &fake->err);
}

static void destroy_waits_for_the_graph_and_all_made_of_it_field_69(void **state)
{
    struct fake_kiln *fake = *state;
    struct kiln_launcher *launcher = created(fake);
    CUgraph graph = NULL;
    CUgraphExec exec = NULL;

    assert_int_equal(capture_and_retain(fake, launcher, &graph), KILN_OK);
    assert_int_equal(fake->driver_table.graph_instantiate(&exec, graph, 0), CUDA_SUCCESS);
    assert_int_equal(kiln_launcher_destroy(&launcher, &fake->err), KILN_E_BUSY);
    assert_non_null(strstr(fake->err.message, "1 graphs"));
    (void)fake->driver_table.graph_destroy(graph);
    assert_int_equal(kiln_launcher_destroy(&launcher, &fake->err), KILN_E_BUSY);
    assert_int_equal(pins(launcher), 1);
    assert_int_equal(fake->driver.live.allocations, 1);
    (void)fake->driver_table.graph_exec_destroy(exec);

    assert_int_equal(pins(launcher), 0);
    destroy(&launcher);
}

static void retain_that_fails_holds_nothing(void **state)
{
    static const enum fake_call calls[] = {FAKE_thread_exchange_capture_mode,
                                           FAKE_user_object_create,
                                           FAKE_graph_retain_user_object};
    struct fake_kiln *fake = *state;
    struct kiln_launcher *launcher = created(fake);
    CUgraph graph = NULL;

    assert_int_equal(capture_and_retain(fake, launcher, &graph), KILN_OK);
    for (size_t i = 0; i < KI_COUNT_OF(calls); i++) {
        fake_driver_forget(&fake->driver);
        fake->driver.fail_call = calls[i];
        fake->driver.fail_call_nth = 1;
        assert_int_equal(kiln_launcher_retain(launcher, graph, &fake->err),
                         KILN_E_DRIVER);
        assert_int_equal(pins(launcher), 1);
    }
    fake->driver.fail_call_nth = 0;
    assert_int_equal(kiln_launcher_retain(NULL, graph, &fake->err), KILN_E_ARGUMENT);
    assert_int_equal(kiln_launcher_retain(launcher, NULL, &fake->err), KILN_E_ARGUMENT);
    (void)fake->driver_table.graph_destroy(graph);
    destroy(&launcher);
}

/* ---- each call failing ---- */

/* The whole life; the first failure ends it, as a caller would. */
static enum kiln_status live(struct fake_kiln *fake)
{
    struct kiln_launcher *launcher = (struct kiln_launcher *)fake;
    CUgraph graph = NULL;
    enum kiln_status status;
    enum kiln_status destroyed;

    status = create(fake, NULL, &launcher);
    if (status != KILN_OK) {
        assert_null(launcher);
        return status;
    }
    status = capture_and_retain(fake, launcher, &graph);
    if (graph != NULL) {
        (void)fake->driver_table.graph_destroy(graph);
    }
    assert_int_equal(pins(launcher), 0);
    destroyed = kiln_launcher_destroy(&launcher, &fake->err);
    if (launcher != NULL) {
        assert_int_equal(destroyed, KILN_E_DRIVER);
        assert_int_equal(fake->driver.live.allocations, 1);
        destroy(&launcher);
    }
    return status != KILN_OK ? status : destroyed;
}

static enum kiln_status whole_life(struct fake_kiln *fake)
{
    enum kiln_status status = fake_kiln_open(fake);

    if (status == KILN_OK) {
        status = live(fake);
    }
    fake_kiln_close(fake);
    assert_null(fake->kiln);
    return status;
}

static void begin(struct fake_kiln *fake, const char *kind, int n)
{
    char name[64];

    snprintf(name, sizeof name, "%s-%d", kind, n);
    tmpdir_join(&fake->dir, name, fake->cache_dir);
    fake->driver.fail_nth = 0;
    fake->mem.fail_nth = 0;
    fake->mem.n_calls = 0;
    fake_kiln_forget(fake);
}

static void assert_nothing_is_left(const struct fake_kiln *fake)
{
    assert_int_equal(fake->driver.live.libraries, 0);
    assert_int_equal(fake->driver.live.allocations, 0);
    assert_int_equal(fake->driver.live.user_objects, 0);
    assert_int_equal(fake->driver.live.graphs, 0);
    assert_int_equal(fake->driver.n_capturing, 0);
    assert_int_equal(fake->mem.n_live, 0);
    assert_int_equal(fake->nvrtc.n_live, 0);
}

/* The second exchange of a scope goes back to a mode that came from the driver: it cannot
 * fail. They alternate from the first call of the life on. And where the scope of an unload
 * cannot be entered, a kernel is left on the device, which harms nobody. */
static bool is_spared(const struct fake_driver *driver, int n)
{
    int n_exchanges = 0;

    for (int i = 0; i < n; i++) {
        n_exchanges += driver->order[i] == FAKE_thread_exchange_capture_mode ? 1 : 0;
    }
    return driver->order[n - 1] == FAKE_thread_exchange_capture_mode &&
           (n_exchanges % 2 == 0 || driver->order[n] == FAKE_library_unload);
}

static void launcher_survives_each_failing_driver_call(void **state)
{
    struct fake_kiln *fake = *state;
    int n_calls;
    int n_failed = 0;

    begin(fake, "driver", 0);
    assert_int_equal(whole_life(fake), KILN_OK);
    n_calls = fake->driver.n_order;
    assert_in_range(n_calls, 150, RUNS_MAX);
    for (int n = 1; n <= n_calls; n++) {
        enum kiln_status status;

        begin(fake, "driver", 0);
        assert_int_equal(whole_life(fake), KILN_OK);
        if (is_spared(&fake->driver, n)) {
            continue;
        }
        begin(fake, "driver", 0);
        fake->driver.fail_nth = n;
        status = whole_life(fake);
        if (status != KILN_OK && status != KILN_E_DRIVER) {
            fail_msg("call %d: %s", n, fake->err.message);
        }
        n_failed += status != KILN_OK ? 1 : 0;
        assert_nothing_is_left(fake);
    }
    assert_in_range(n_failed, 100, n_calls);
}

static void launcher_survives_each_failing_allocation(void **state)
{
    struct fake_kiln *fake = *state;
    int n_failed = 0;
    int n;

    for (n = 1; n < RUNS_MAX; n++) {
        enum kiln_status status;

        begin(fake, "memory", n);
        fake->mem.fail_nth = n;
        status = whole_life(fake);
        if (fake->mem.n_calls < n) {
            break;
        }
        if (status != KILN_OK && status != KILN_E_MEMORY) {
            fail_msg("allocation %d: %s", n, fake->err.message);
        }
        n_failed += status != KILN_OK ? 1 : 0;
        assert_nothing_is_left(fake);
    }
    assert_in_range(n, 40, RUNS_MAX - 1);
    assert_in_range(n_failed, 20, n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name)                                                                       \
    cmocka_unit_test_setup_teardown(name, fake_kiln_setup_open, fake_kiln_teardown)
        TEST(create_allocates_every_output_once_at_capacity),
        TEST(destroy_frees_memory_and_unloads_nothing_field_69),
        TEST(launchers_of_one_kiln_share_kernels_and_no_memory),
        TEST(create_in_a_second_context_finishes_the_load_there_field_66),
        TEST(create_takes_the_callers_memory_and_allocates_none),
        TEST(create_allocates_what_the_caller_did_not_bring),
        TEST(create_names_memory_that_is_wrong),
        TEST(create_says_how_much_memory_it_did_not_get),
        TEST(create_on_a_capturing_stream_touches_nothing_field_68),
        TEST(create_refuses_what_is_missing_or_newer),
        TEST(create_in_a_child_after_fork_is_refused_field_50),
        TEST(create_and_destroy_harm_no_capture_field_70),
        TEST(destroy_of_nothing_is_fine),
        TEST(destroy_in_another_context_is_refused),
        TEST(destroy_reports_what_the_free_said_and_is_done),
        TEST(destroy_of_the_kiln_under_a_launcher_does_nothing_but_complain),
        TEST(destroy_waits_for_the_graph_and_all_made_of_it_field_69),
        TEST(retain_that_fails_holds_nothing),
        cmocka_unit_test_setup_teardown(launcher_survives_each_failing_driver_call,
                                        fake_kiln_setup, fake_kiln_teardown),
        cmocka_unit_test_setup_teardown(launcher_survives_each_failing_allocation,
                                        fake_kiln_setup, fake_kiln_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
