/* SPDX-License-Identifier: Apache-2.0 */
/* The seal: what it refuses, what goes on, who is told; and the events of builds and loads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "kiln/seal.h"

#include "support/fake_kiln.h"

enum { EVENTS_MAX = 64 };

/* Copies: an event is valid for the call alone. */
struct told {
    struct kiln_event events[EVENTS_MAX];
    char messages[EVENTS_MAX][256];
    struct kiln_shape shapes[EVENTS_MAX];
    int n;
};

struct fixture {
    struct fake_kiln *fake;
    struct told told;
};

static void keep(void *user, const struct kiln_event *event)
{
    struct told *told = user;

    assert_in_range(told->n, 0, EVENTS_MAX - 1);
    assert_string_equal(event->target, "sm_90");
    told->events[told->n] = *event;
    told->shapes[told->n] = *event->shape;
    if (event->message != NULL) {
        strncpy(told->messages[told->n], event->message, 255);
    }
    told->n++;
}

static int setup(void **state)
{
    struct fixture *fixture = test_calloc(1, sizeof *fixture);

    if (fake_kiln_setup((void **)&fixture->fake) != 0) {
        return -1;
    }
    fixture->fake->options.event_fn = keep;
    fixture->fake->options.event_user = &fixture->told;
    *state = fixture;
    return fake_kiln_open(fixture->fake) == KILN_OK ? 0 : -1;
}

static int teardown(void **state)
{
    struct fixture *fixture = *state;
    void *fake = fixture->fake;

    test_free(fixture);
    return fake_kiln_teardown(&fake);
}

static void seal(struct fixture *fixture, enum kiln_seal_mode mode)
{
    assert_int_equal(
        kiln_seal(fixture->fake->kiln, mode, NULL, NULL, &fixture->fake->err), KILN_OK);
    assert_int_equal(kiln_seal_get(fixture->fake->kiln), mode);
}

static int64_t violations(struct fixture *fixture)
{
    struct kiln_stats stats;

    kiln_get_stats(fixture->fake->kiln, &stats);
    return stats.n_violations;
}

static struct kiln_plan plan_of(void)
{
    struct kiln_deployment d = fake_kiln_deployment();
    struct kiln_plan plan = {0};

    assert_int_equal(kiln_plan_make(&d, &plan, NULL), KILN_OK);
    return plan;
}

/* ---- error ---- */

static void sealed_kiln_neither_builds_nor_loads_what_is_not_ready_field_61(void **state)
{
    struct fixture *fixture = *state;
    struct fake_kiln *fake = fixture->fake;
    const struct kiln_kernel *kernel = NULL;
    struct kiln_stats before;
    struct kiln_stats after;

    kiln_get_stats(fake->kiln, &before);
    seal(fixture, KILN_SEAL_ERROR);
    assert_int_equal(fake_kiln_prepare(fake, 512, &kernel), KILN_E_NOT_READY);
    assert_null(kernel);
    assert_non_null(
        strstr(fake->err.message, "sealed: global_topk topk=512 topk_stride"));
    assert_int_equal(fake_kiln_build(fake, 512), KILN_E_NOT_READY);
    assert_non_null(
        strstr(fake->err.message, "sealed: global_topk topk=512 topk_stride"));
    kiln_get_stats(fake->kiln, &after);

    assert_int_equal(fake_kiln_compiles(fake), 0);
    assert_int_equal(fake_kiln_loads(fake), 0);
    assert_int_equal(fake->kiln->table.n_entries, 0);
    assert_int_equal(after.n_violations, 2);
    assert_int_equal(after.n_failed, before.n_failed);
    assert_int_equal(fake->log.n_errors, 2);
    assert_int_equal(fixture->told.n, 2);
    assert_int_equal(fixture->told.events[0].kind, KILN_EVENT_VIOLATION);
    assert_int_equal(fixture->told.events[0].status, KILN_E_NOT_READY);
    assert_int_equal(fixture->told.events[0].op, KILN_OP_GLOBAL_TOPK);
    assert_int_equal(fixture->told.shapes[0].global_topk.topk, 512);
    assert_non_null(strstr(fixture->told.messages[1], "topk=512"));
}

static void sealed_kiln_serves_what_is_ready(void **state)
{
    struct fixture *fixture = *state;
    struct fake_kiln *fake = fixture->fake;
    struct kiln_global_topk_args nothing = {0};
    struct kiln_shape shape = fake_kiln_shape(512);
    const struct kiln_kernel *kernel;
    const struct kiln_kernel *again;

    assert_int_equal(fake_kiln_prepare(fake, 512, &kernel), KILN_OK);
    seal(fixture, KILN_SEAL_ERROR);

    assert_int_equal(fake_kiln_build(fake, 512), KILN_OK);
    assert_int_equal(fake_kiln_prepare(fake, 512, &again), KILN_OK);
    assert_ptr_equal(again, kernel);
    assert_int_equal(kiln_find(fake->kiln, KILN_OP_GLOBAL_TOPK, &shape, &again, NULL),
                     KILN_OK);
    assert_int_equal(kiln_launch_global_topk(kernel, &nothing, NULL, NULL), KILN_OK);
    assert_int_equal(violations(fixture), 0);
}

static void sealed_kiln_does_not_load_what_is_built(void **state)
{
    struct fixture *fixture = *state;
    struct fake_kiln *fake = fixture->fake;
    const struct kiln_kernel *kernel;

    assert_int_equal(fake_kiln_build(fake, 512), KILN_OK);
    seal(fixture, KILN_SEAL_ERROR);

    assert_int_equal(fake_kiln_build(fake, 512), KILN_OK);
    assert_int_equal(fake_kiln_prepare(fake, 512, &kernel), KILN_E_NOT_READY);
    assert_int_equal(fake_kiln_loads(fake), 0);
}

/* Not its old error: who asks a sealed kiln shall read that it is sealed. */
static void sealed_kiln_does_not_try_a_failed_key_again(void **state)
{
    struct fixture *fixture = *state;
    struct fake_kiln *fake = fixture->fake;
    const struct kiln_kernel *kernel;

    fake->nvrtc.fail_call = FAKE_NVRTC_COMPILE;
    fake->nvrtc.fail_nth = 1;
    assert_int_equal(fake_kiln_prepare(fake, 512, &kernel), KILN_E_COMPILE);
    seal(fixture, KILN_SEAL_ERROR);

    assert_int_equal(fake_kiln_prepare(fake, 512, &kernel), KILN_E_NOT_READY);
    assert_int_equal(fake_kiln_compiles(fake), 1);
}

static void sealed_kiln_warms_nothing(void **state)
{
    struct fixture *fixture = *state;
    struct fake_kiln *fake = fixture->fake;
    struct kiln_request requests[2] = {
        {KILN_OP_GLOBAL_TOPK, fake_kiln_shape(512), "sm_90"},
        {KILN_OP_GLOBAL_TOPK, fake_kiln_shape(1024), "sm_90"}};
    struct kiln_warm_options options = {.n_jobs = 1};
    struct kiln_warm_summary summary;

    assert_int_equal(fake_kiln_build(fake, 512), KILN_OK);
    seal(fixture, KILN_SEAL_ERROR);
    assert_int_equal(kiln_warm(fake->kiln, requests, 2, &options, &summary, &fake->err),
                     KILN_OK);

    assert_int_equal(summary.n_cached, 1);
    assert_int_equal(summary.n_failed, 1);
    assert_int_equal(violations(fixture), 1);
    assert_int_equal(fake_kiln_compiles(fake), 1);
}

/* ---- warn, off ---- */

static void warned_kiln_builds_and_tells_once_for_each_call_field_63(void **state)
{
    struct fixture *fixture = *state;
    struct fake_kiln *fake = fixture->fake;
    const struct kiln_kernel *kernel;

    seal(fixture, KILN_SEAL_WARN);
    assert_int_equal(fake_kiln_prepare(fake, 512, &kernel), KILN_OK);
    assert_int_equal(fake_kiln_prepare(fake, 512, &kernel), KILN_OK);
    assert_int_equal(fake_kiln_build(fake, 1024), KILN_OK);

    assert_int_equal(violations(fixture), 2);
    assert_int_equal(fake->log.n_warnings, 2);
    assert_non_null(strstr(fake->log.last, "global_topk topk=512"));
    assert_int_equal(fixture->told.events[0].kind, KILN_EVENT_VIOLATION);
    assert_int_equal(fixture->told.events[0].status, KILN_OK);
    assert_int_equal(fixture->told.events[1].kind, KILN_EVENT_BUILT);
    assert_int_equal(fixture->told.events[2].kind, KILN_EVENT_LOADED);
}

static void seal_can_be_taken_off_again(void **state)
{
    struct fixture *fixture = *state;
    const struct kiln_kernel *kernel;

    seal(fixture, KILN_SEAL_ERROR);
    assert_int_equal(fake_kiln_prepare(fixture->fake, 512, &kernel), KILN_E_NOT_READY);
    seal(fixture, KILN_SEAL_OFF);
    assert_int_equal(fake_kiln_prepare(fixture->fake, 512, &kernel), KILN_OK);
    assert_int_equal(violations(fixture), 1);
    assert_int_equal(kiln_seal_get(NULL), KILN_SEAL_OFF);
}

/* ---- with a plan ---- */

static void
seal_names_the_first_kernel_of_the_plan_that_is_not_ready_field_64(void **state)
{
    struct fixture *fixture = *state;
    struct fake_kiln *fake = fixture->fake;
    struct kiln_plan plan = plan_of();
    unsigned char digest[32] = {7};
    const struct kiln_kernel *kernel;

    assert_int_equal(kiln_seal(fake->kiln, KILN_SEAL_ERROR, &plan, digest, &fake->err),
                     KILN_E_NOT_READY);
    assert_non_null(strstr(fake->err.message, "combine_topk_swa topk=0"));
    for (size_t i = 0; i < plan.n_items - 2; i++) {
        assert_int_equal(kiln_prepare(fake->kiln, plan.items[i].op, &plan.items[i].shape,
                                      NULL, &kernel, &fake->err),
                         KILN_OK);
    }
    assert_int_equal(kiln_seal(fake->kiln, KILN_SEAL_ERROR, &plan, digest, &fake->err),
                     KILN_E_NOT_READY);

    assert_non_null(strstr(fake->err.message, "c128a_topk compress_ratio=128"));
    assert_int_equal(kiln_seal_get(fake->kiln), KILN_SEAL_OFF);
    assert_int_equal(digest[0], 7);
    assert_int_equal(fake_kiln_build(fake, 512), KILN_OK);
    kiln_plan_finish(&plan);
}

static void seal_of_a_launchers_kiln_gives_the_plans_digest_field_64(void **state)
{
    struct fixture *fixture = *state;
    struct fake_kiln *fake = fixture->fake;
    struct kiln_deployment d = fake_kiln_deployment();
    struct kiln_launcher *launcher = NULL;
    struct kiln_launcher *second = NULL;
    struct kiln_plan plan = plan_of();
    unsigned char digest[32] = {0};

    assert_int_equal(kiln_launcher_create(fake->kiln, &d, NULL, &launcher, &fake->err),
                     KILN_OK);
    assert_int_equal(kiln_seal(fake->kiln, KILN_SEAL_ERROR, &plan, digest, &fake->err),
                     KILN_OK);

    assert_memory_equal(digest, plan.digest, sizeof digest);
    assert_memory_equal(digest, kiln_launcher_layout(launcher)->digest, sizeof digest);
    assert_int_equal(kiln_launcher_create(fake->kiln, &d, NULL, &second, &fake->err),
                     KILN_OK);
    assert_int_equal(violations(fixture), 0);
    assert_int_equal(kiln_launcher_destroy(&launcher, NULL), KILN_OK);
    assert_int_equal(kiln_launcher_destroy(&second, NULL), KILN_OK);
    kiln_plan_finish(&plan);
}

static void sealed_kiln_has_no_launcher_that_would_load(void **state)
{
    struct fixture *fixture = *state;
    struct fake_kiln *fake = fixture->fake;
    struct kiln_deployment d = fake_kiln_deployment();
    struct kiln_launcher *launcher = NULL;
    struct kiln_launcher *other = NULL;

    seal(fixture, KILN_SEAL_ERROR);
    assert_int_equal(kiln_launcher_create(fake->kiln, &d, NULL, &launcher, &fake->err),
                     KILN_E_NOT_READY);
    assert_int_equal(fake_driver_count(&fake->driver, FAKE_mem_alloc), 0);
    seal(fixture, KILN_SEAL_OFF);
    assert_int_equal(kiln_launcher_create(fake->kiln, &d, NULL, &launcher, &fake->err),
                     KILN_OK);
    seal(fixture, KILN_SEAL_ERROR);
    fake_driver_set_context(fake_driver_other_context());
    fake_driver_forget(&fake->driver);
    assert_int_equal(kiln_launcher_create(fake->kiln, &d, NULL, &other, &fake->err),
                     KILN_E_NOT_READY);

    assert_non_null(strstr(fake->err.message, "in this context"));
    assert_int_equal(fake_driver_count(&fake->driver, FAKE_func_load), 0);
    seal(fixture, KILN_SEAL_WARN);
    assert_int_equal(kiln_launcher_create(fake->kiln, &d, NULL, &other, &fake->err),
                     KILN_OK);
    assert_int_equal(violations(fixture), 2 + 12);
    assert_int_equal(kiln_launcher_destroy(&other, NULL), KILN_OK);
    fake_driver_set_context(fake_driver_context());
    assert_int_equal(kiln_launcher_destroy(&launcher, NULL), KILN_OK);
}

/* ---- refusals ---- */

static void seal_refuses_what_makes_no_sense(void **state)
{
    struct fixture *fixture = *state;
    struct fake_kiln *fake = fixture->fake;
    const struct kiln_plan unfilled = {0};
    struct kiln_plan_item no_op = {.op = (enum kiln_op)99};
    const struct kiln_plan by_hand = {.items = &no_op, .n_items = 1};
    unsigned char digest[32];

    assert_int_equal(kiln_seal(NULL, KILN_SEAL_ERROR, NULL, NULL, &fake->err),
                     KILN_E_ARGUMENT);
    assert_int_equal(
        kiln_seal(fake->kiln, (enum kiln_seal_mode)3, NULL, NULL, &fake->err),
        KILN_E_ARGUMENT);
    assert_non_null(strstr(fake->err.message, "mode = 3"));
    assert_int_equal(kiln_seal(fake->kiln, KILN_SEAL_ERROR, NULL, digest, &fake->err),
                     KILN_E_ARGUMENT);
    assert_int_equal(
        kiln_seal(fake->kiln, KILN_SEAL_ERROR, &unfilled, digest, &fake->err),
        KILN_E_ARGUMENT);
    assert_non_null(strstr(fake->err.message, "plan has no items"));
    assert_int_equal(kiln_seal(fake->kiln, KILN_SEAL_ERROR, &by_hand, digest, &fake->err),
                     KILN_E_ARGUMENT);
    assert_non_null(strstr(fake->err.message, "plan item 0: op = 99"));
    assert_int_equal(kiln_seal_get(fake->kiln), KILN_SEAL_OFF);
}

static void seal_in_a_child_after_fork_is_refused_field_50(void **state)
{
    struct fixture *fixture = *state;
    pid_t child = fork();
    int result = -1;

    if (child == 0) {
        enum kiln_status status =
            kiln_seal(fixture->fake->kiln, KILN_SEAL_ERROR, NULL, NULL, NULL);

        _exit(status == KILN_E_FORKED ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &result, 0), child);
    assert_int_equal(result, 0);
}

/* ---- builds under way ---- */

static struct ki_ident ident_of(int64_t topk)
{
    struct kiln_shape shape = fake_kiln_shape(topk);
    struct ki_ident ident;

    ki_ident_init(&ident, KILN_OP_GLOBAL_TOPK, &shape);
    ident.target = (struct ki_target){.major = 9};
    return ident;
}

static struct ki_table_entry *entry_of(struct fake_kiln *fake, int64_t topk)
{
    const struct ki_ident ident = ident_of(topk);

    return ki_table_find(&fake->kiln->table, &ident);
}

/* The test itself is the thread at work: it claims the key, and ends when it likes. */
static struct ki_table_entry *claim(struct fake_kiln *fake)
{
    struct ki_table_entry *entry = NULL;
    const struct ki_ident ident = ident_of(512);
    enum ki_claim claim;

    assert_int_equal(ki_table_claim(&fake->kiln->table, &ident, KI_ENTRY_BUILT, 0, &entry,
                                    &claim, &fake->err),
                     KILN_OK);
    assert_int_equal(claim, KI_CLAIM_BUILD);
    return entry;
}

struct sealer {
    struct kiln *kiln;
    int64_t timeout_ms;
    enum kiln_status status;
    _Atomic int is_done;
};

static void *seal_on_a_thread(void *argument)
{
    struct sealer *sealer = argument;

    sealer->status =
        ki_table_seal(&sealer->kiln->table, KI_SEALED, sealer->timeout_ms, NULL);
    atomic_store(&sealer->is_done, 1);
    return NULL;
}

static void seal_waits_for_builds_under_way(void **state)
{
    struct fixture *fixture = *state;
    struct fake_kiln *fake = fixture->fake;
    struct ki_table_entry *entry = claim(fake);
    struct sealer sealer = {.kiln = fake->kiln, .timeout_ms = 60000};
    pthread_t thread;
    int was_done;

    assert_int_equal(pthread_create(&thread, NULL, seal_on_a_thread, &sealer), 0);
    (void)usleep(20000);
    was_done = atomic_load(&sealer.is_done);
    ki_table_abandon(&fake->kiln->table, entry);
    assert_int_equal(pthread_join(thread, NULL), 0);

    assert_int_equal(was_done, 0);
    assert_int_equal(sealer.status, KILN_OK);
    assert_int_equal(kiln_seal_get(fake->kiln), KILN_SEAL_ERROR);
    assert_int_equal(fake_kiln_build(fake, 512), KILN_E_NOT_READY);
}

static void seal_gives_up_on_a_build_that_does_not_end(void **state)
{
    struct fixture *fixture = *state;
    struct fake_kiln *fake = fixture->fake;
    struct ki_table_entry *entry = claim(fake);

    fake->kiln->build_timeout_ms = 10;
    assert_int_equal(kiln_seal(fake->kiln, KILN_SEAL_ERROR, NULL, NULL, &fake->err),
                     KILN_E_TIMEOUT);

    assert_int_equal(kiln_seal_get(fake->kiln), KILN_SEAL_OFF);
    ki_table_abandon(&fake->kiln->table, entry);
    assert_int_equal(fake_kiln_build(fake, 512), KILN_OK);
}

/* The one that gives up must not take off what the other one is about to set. */
static void seal_holds_where_an_earlier_one_gave_up(void **state)
{
    struct fixture *fixture = *state;
    struct fake_kiln *fake = fixture->fake;
    struct ki_table_entry *entry = claim(fake);
    struct sealer hasty = {.kiln = fake->kiln, .timeout_ms = 50};
    struct sealer patient = {.kiln = fake->kiln, .timeout_ms = 60000};
    pthread_t threads[2];

    assert_int_equal(pthread_create(&threads[0], NULL, seal_on_a_thread, &hasty), 0);
    while (kiln_seal_get(fake->kiln) == KILN_SEAL_OFF &&
           atomic_load(&hasty.is_done) == 0) {
        (void)usleep(1000);
    }
    assert_int_equal(pthread_create(&threads[1], NULL, seal_on_a_thread, &patient), 0);
    assert_int_equal(pthread_join(threads[0], NULL), 0);
    ki_table_abandon(&fake->kiln->table, entry);
    assert_int_equal(pthread_join(threads[1], NULL), 0);

    assert_int_equal(hasty.status, KILN_E_TIMEOUT);
    assert_int_equal(patient.status, KILN_OK);
    assert_int_equal(kiln_seal_get(fake->kiln), KILN_SEAL_ERROR);
    assert_int_equal(fake_kiln_build(fake, 512), KILN_E_NOT_READY);
}

static void seal_that_gives_up_leaves_what_another_thread_set(void **state)
{
    struct fixture *fixture = *state;
    struct fake_kiln *fake = fixture->fake;
    struct ki_table_entry *entry = claim(fake);
    struct sealer hasty = {.kiln = fake->kiln, .timeout_ms = 200};
    pthread_t thread;

    assert_int_equal(pthread_create(&thread, NULL, seal_on_a_thread, &hasty), 0);
    while (kiln_seal_get(fake->kiln) == KILN_SEAL_OFF &&
           atomic_load(&hasty.is_done) == 0) {
        (void)usleep(1000);
    }
    seal(fixture, KILN_SEAL_WARN);
    assert_int_equal(pthread_join(thread, NULL), 0);

    assert_int_equal(hasty.status, KILN_E_TIMEOUT);
    assert_int_equal(kiln_seal_get(fake->kiln), KILN_SEAL_WARN);
    ki_table_abandon(&fake->kiln->table, entry);
}

/* Of a kernel that is ready in another context. */
static void seal_waits_for_loads_in_other_contexts(void **state)
{
    struct fixture *fixture = *state;
    struct fake_kiln *fake = fixture->fake;
    struct ki_table *table = &fake->kiln->table;
    CUcontext other = fake_driver_other_context();
    const struct kiln_kernel *kernel;
    struct ki_table_entry *entry;

    assert_int_equal(fake_kiln_prepare(fake, 512, &kernel), KILN_OK);
    entry = entry_of(fake, 512);
    assert_int_equal(ki_table_claim_here(table, entry, other), KI_CLAIM_LOAD);
    fake->kiln->build_timeout_ms = 10;
    assert_int_equal(kiln_seal(fake->kiln, KILN_SEAL_ERROR, NULL, NULL, NULL),
                     KILN_E_TIMEOUT);
    ki_table_end_here(table, entry, other, false);
    seal(fixture, KILN_SEAL_ERROR);

    assert_int_equal(ki_table_claim_here(table, entry, other), KI_CLAIM_SEALED);
}

/* What was loaded in a context before is no load there. */
static void sealed_kiln_serves_every_context_that_was_prepared(void **state)
{
    struct fixture *fixture = *state;
    struct fake_kiln *fake = fixture->fake;
    const struct kiln_kernel *kernel;

    for (int i = 0; i < 2; i++) {
        assert_int_equal(fake_kiln_prepare(fake, 512, &kernel), KILN_OK);
        fake_driver_set_context(fake_driver_other_context());
        assert_int_equal(fake_kiln_prepare(fake, 512, &kernel), KILN_OK);
        fake_driver_set_context(fake_driver_context());
        seal(fixture, KILN_SEAL_ERROR);
    }

    assert_int_equal(fake_driver_count(&fake->driver, FAKE_func_load), 2);
    assert_int_equal(violations(fixture), 0);
}

/* ---- events ---- */

static void builds_and_loads_are_told_with_their_origin(void **state)
{
    struct fixture *fixture = *state;
    struct fake_kiln *fake = fixture->fake;
    struct told *told = &fixture->told;
    const struct kiln_kernel *kernel;

    assert_int_equal(fake_kiln_prepare(fake, 512, &kernel), KILN_OK);
    fake_kiln_close(fake);
    assert_int_equal(fake_kiln_open(fake), KILN_OK);
    assert_int_equal(fake_kiln_prepare(fake, 512, &kernel), KILN_OK);

    assert_int_equal(told->n, 4);
    assert_int_equal(told->events[0].kind, KILN_EVENT_BUILT);
    assert_false(told->events[0].from_cache);
    assert_null(told->events[0].message);
    assert_int_equal(told->events[1].kind, KILN_EVENT_LOADED);
    assert_int_equal(told->events[2].kind, KILN_EVENT_BUILT);
    assert_true(told->events[2].from_cache);
    assert_int_equal(told->events[3].kind, KILN_EVENT_LOADED);
}

static void failures_are_told_with_their_reason(void **state)
{
    struct fixture *fixture = *state;
    struct fake_kiln *fake = fixture->fake;
    const struct kiln_kernel *kernel;

    fake->driver.fail_call = FAKE_library_get_kernel;
    fake->driver.fail_call_nth = 1;
    assert_int_equal(fake_kiln_prepare(fake, 512, &kernel), KILN_E_DRIVER);

    assert_int_equal(fixture->told.n, 2);
    assert_int_equal(fixture->told.events[1].kind, KILN_EVENT_FAILED);
    assert_int_equal(fixture->told.events[1].status, KILN_E_DRIVER);
    assert_non_null(strstr(fixture->told.messages[1], "cuLibraryGetKernel"));
}

static void finds_are_counted(void **state)
{
    struct fixture *fixture = *state;
    struct fake_kiln *fake = fixture->fake;
    struct kiln_shape shape = fake_kiln_shape(512);
    const struct kiln_kernel *kernel;
    struct kiln_stats stats;

    assert_int_equal(kiln_find(fake->kiln, KILN_OP_GLOBAL_TOPK, &shape, &kernel, NULL),
                     KILN_E_NOT_READY);
    assert_int_equal(fake_kiln_prepare(fake, 512, &kernel), KILN_OK);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(
            kiln_find(fake->kiln, KILN_OP_GLOBAL_TOPK, &shape, &kernel, NULL), KILN_OK);
    }
    kiln_get_stats(fake->kiln, &stats);

    assert_int_equal(stats.n_found, 3);
    assert_int_equal(stats.n_not_found, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
        TEST(sealed_kiln_neither_builds_nor_loads_what_is_not_ready_field_61),
        TEST(sealed_kiln_serves_what_is_ready),
        TEST(sealed_kiln_does_not_load_what_is_built),
        TEST(sealed_kiln_does_not_try_a_failed_key_again),
        TEST(sealed_kiln_warms_nothing),
        TEST(warned_kiln_builds_and_tells_once_for_each_call_field_63),
        TEST(seal_can_be_taken_off_again),
        TEST(seal_names_the_first_kernel_of_the_plan_that_is_not_ready_field_64),
        TEST(seal_of_a_launchers_kiln_gives_the_plans_digest_field_64),
        TEST(sealed_kiln_has_no_launcher_that_would_load),
        TEST(seal_refuses_what_makes_no_sense),
        TEST(seal_in_a_child_after_fork_is_refused_field_50),
        TEST(seal_waits_for_builds_under_way),
        TEST(seal_gives_up_on_a_build_that_does_not_end),
        TEST(seal_holds_where_an_earlier_one_gave_up),
        TEST(seal_that_gives_up_leaves_what_another_thread_set),
        TEST(seal_waits_for_loads_in_other_contexts),
        TEST(sealed_kiln_serves_every_context_that_was_prepared),
        TEST(builds_and_loads_are_told_with_their_origin),
        TEST(failures_are_told_with_their_reason),
        TEST(finds_are_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
