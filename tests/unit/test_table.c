/* SPDX-License-Identifier: Apache-2.0 */
/* The table of kernels: one builder per ident, waiting, remembered failures, the cap. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

#include "run/table.h"

enum { N_THREADS = 16, N_KEYS = 10, CAP = 24, NO_WAIT = 0, FOREVER = -1 };

struct fixture {
    struct ki_mem mem;
    struct ki_table table;
    struct kiln_error err;
    int n_blocks; /* live, of the table's allocator */
    int fail_nth; /* allocation that fails, from 1; 0: none */
    int n_allocations;
};

static void *counting_realloc(void *user, void *block, size_t size)
{
    struct fixture *fixture = user;
    if (size == 0) {
        fixture->n_blocks -= block != NULL;
        free(block);
        return NULL;
    }
    if (fixture->fail_nth != 0 && ++fixture->n_allocations == fixture->fail_nth) {
        return NULL;
    }
    fixture->n_blocks += block == NULL;
    return realloc(block, size);
}

static int setup(void **state)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));
    fixture->mem = (struct ki_mem){counting_realloc, fixture};
    *state = fixture;
    return ki_table_init(&fixture->table, CAP, &fixture->mem, NULL) == KILN_OK ? 0 : -1;
}

static int teardown(void **state)
{
    struct fixture *fixture = *state;
    ki_table_finish(&fixture->table);
    int n_blocks = fixture->n_blocks;
    free(fixture);
    return n_blocks == 0 ? 0 : -1;
}

static struct ki_ident ident_of(int64_t key)
{
    struct ki_ident ident;
    memset(&ident, 0, sizeof(ident));
    ident.op = KILN_OP_GLOBAL_TOPK;
    ident.target = (struct ki_target){9, 0};
    ident.shape.fields[0] = key;
    return ident;
}

static enum kiln_status claim(struct fixture *fixture, int64_t key,
                              enum ki_entry_state goal, int64_t timeout_ms,
                              struct ki_table_entry **entry, enum ki_claim *out)
{
    struct ki_ident ident = ident_of(key);
    return ki_table_claim(&fixture->table, &ident, goal, timeout_ms, entry, out,
                          &fixture->err);
}

static struct ki_table_entry *find(struct fixture *fixture, int64_t key)
{
    struct ki_ident ident = ident_of(key);
    return ki_table_find(&fixture->table, &ident);
}

/* Claims the key, which must be for building. */
static struct ki_table_entry *claim_build(struct fixture *fixture, int64_t key)
{
    struct ki_table_entry *entry = NULL;
    enum ki_claim got = KI_CLAIM_DONE;
    assert_int_equal(claim(fixture, key, KI_ENTRY_READY, NO_WAIT, &entry, &got), KILN_OK);
    assert_int_equal(got, KI_CLAIM_BUILD);
    return entry;
}

static struct ki_table_entry *claim_load(struct fixture *fixture, int64_t key)
{
    struct ki_table_entry *entry = NULL;
    enum ki_claim got = KI_CLAIM_DONE;
    assert_int_equal(claim(fixture, key, KI_ENTRY_READY, NO_WAIT, &entry, &got), KILN_OK);
    assert_int_equal(got, KI_CLAIM_LOAD);
    return entry;
}

static struct ki_table_entry *make_ready(struct fixture *fixture, int64_t key)
{
    struct ki_table_entry *entry = claim_build(fixture, key);
    ki_table_publish(&fixture->table, entry, KI_ENTRY_BUILT);
    assert_ptr_equal(claim_load(fixture, key), entry);
    ki_table_publish(&fixture->table, entry, KI_ENTRY_READY);
    return entry;
}

static void fail_entry(struct fixture *fixture, struct ki_table_entry *entry,
                       int64_t retry_after_ms)
{
    struct kiln_error error = {.status = KILN_E_COMPILE, .native_code = 6};
    snprintf(error.message, sizeof(error.message), "line 7 is wrong");
    ki_table_fail(&fixture->table, entry, &error, retry_after_ms);
}

static void table_find_gives_null_for_unknown(void **state)
{
    struct fixture *fixture = *state;

    assert_null(find(fixture, 1));
}

static void table_find_gives_null_until_ready(void **state)
{
    struct fixture *fixture = *state;
    struct ki_table_entry *entry = claim_build(fixture, 1);

    assert_null(find(fixture, 1));
    ki_table_publish(&fixture->table, entry, KI_ENTRY_BUILT);
    assert_null(find(fixture, 1));
    claim_load(fixture, 1);
    assert_null(find(fixture, 1));
    ki_table_publish(&fixture->table, entry, KI_ENTRY_READY);

    assert_ptr_equal(find(fixture, 1), entry);
}

static void table_keeps_idents_of_one_field_apart(void **state)
{
    struct fixture *fixture = *state;
    struct ki_ident ident = ident_of(1);
    make_ready(fixture, 1);

    ident.target.minor = 1;
    assert_null(ki_table_find(&fixture->table, &ident));
    ident = ident_of(1);
    ident.op = KILN_OP_C128A_TOPK;
    assert_null(ki_table_find(&fixture->table, &ident));
    ident = ident_of(1);
    ident.shape.fields[KILN_SHAPE_FIELDS - 1] = 1;
    assert_null(ki_table_find(&fixture->table, &ident));
}

static void table_holds_its_cap_of_entries_and_finds_each(void **state)
{
    struct fixture *fixture = *state;
    struct ki_table_entry *entries[CAP];

    for (int key = 0; key < CAP; key++) {
        entries[key] = make_ready(fixture, key);
    }

    for (int key = 0; key < CAP; key++) {
        assert_ptr_equal(find(fixture, key), entries[key]);
    }
    assert_null(find(fixture, CAP));
}

static void
table_claim_refuses_above_the_cap_and_says_how_to_raise_it_field_16(void **state)
{
    struct fixture *fixture = *state;
    struct ki_table_entry *entry = NULL;
    enum ki_claim got;
    for (int key = 0; key < CAP; key++) {
        make_ready(fixture, key);
    }

    assert_int_equal(claim(fixture, CAP, KI_ENTRY_READY, NO_WAIT, &entry, &got),
                     KILN_E_LIMIT);

    assert_null(entry);
    assert_non_null(strstr(fixture->err.message, "24"));
    assert_non_null(strstr(fixture->err.message, "max_kernels"));
    assert_non_null(find(fixture, 0));
}

static void table_claim_reports_failed_allocation(void **state)
{
    struct fixture *fixture = *state;
    struct ki_table_entry *entry = NULL;
    enum ki_claim got;
    fixture->fail_nth = 1;

    assert_int_equal(claim(fixture, 1, KI_ENTRY_READY, NO_WAIT, &entry, &got),
                     KILN_E_MEMORY);

    claim_build(fixture, 1);
}

static void table_init_reports_failed_allocation(void **state)
{
    struct fixture *fixture = *state;
    struct ki_table table;
    fixture->fail_nth = 1;

    assert_int_equal(ki_table_init(&table, CAP, &fixture->mem, &fixture->err),
                     KILN_E_MEMORY);
}

static void table_claim_is_done_when_the_goal_is_reached(void **state)
{
    struct fixture *fixture = *state;
    struct ki_table_entry *entry = claim_build(fixture, 1);
    struct ki_table_entry *again = NULL;
    enum ki_claim got = KI_CLAIM_BUILD;
    ki_table_publish(&fixture->table, entry, KI_ENTRY_BUILT);

    assert_int_equal(claim(fixture, 1, KI_ENTRY_BUILT, NO_WAIT, &again, &got), KILN_OK);

    assert_int_equal(got, KI_CLAIM_DONE);
    assert_ptr_equal(again, entry);
}

/* Whoever wants only the cubin does not wait for a GPU that is busy. */
static void table_claim_of_built_does_not_wait_for_a_loader(void **state)
{
    struct fixture *fixture = *state;
    struct ki_table_entry *entry = claim_build(fixture, 1);
    enum ki_claim got = KI_CLAIM_BUILD;
    ki_table_publish(&fixture->table, entry, KI_ENTRY_BUILT);
    claim_load(fixture, 1);

    assert_int_equal(claim(fixture, 1, KI_ENTRY_BUILT, NO_WAIT, &entry, &got), KILN_OK);

    assert_int_equal(got, KI_CLAIM_DONE);
}

static void table_claim_times_out_behind_another_builder(void **state)
{
    struct fixture *fixture = *state;
    struct ki_table_entry *entry = NULL;
    enum ki_claim got;
    int64_t start_ms;
    claim_build(fixture, 1);
    start_ms = ki_now_ms();

    assert_int_equal(claim(fixture, 1, KI_ENTRY_READY, 20, &entry, &got), KILN_E_TIMEOUT);

    assert_true(ki_now_ms() - start_ms >= 20);
    assert_non_null(strstr(fixture->err.message, "global_topk for sm_90"));
    assert_non_null(strstr(fixture->err.message, "20 ms"));
}

static void table_fail_is_remembered_before_its_retry_time_field_55(void **state)
{
    struct fixture *fixture = *state;
    struct ki_table_entry *entry = NULL;
    enum ki_claim got;
    fail_entry(fixture, claim_build(fixture, 1), 60000);

    assert_int_equal(claim(fixture, 1, KI_ENTRY_READY, FOREVER, &entry, &got),
                     KILN_E_COMPILE);

    assert_string_equal(fixture->err.message, "line 7 is wrong");
    assert_int_equal(fixture->err.native_code, 6);
    assert_null(find(fixture, 1));
}

static void table_fail_may_be_built_anew_after_its_retry_time_field_55(void **state)
{
    struct fixture *fixture = *state;
    struct ki_table_entry *entry = claim_build(fixture, 1);
    fail_entry(fixture, entry, 0);

    assert_ptr_equal(claim_build(fixture, 1), entry);

    ki_table_publish(&fixture->table, entry, KI_ENTRY_BUILT);
    claim_load(fixture, 1);
}

/* Builds need no driver, so trouble with the driver is not theirs. */
static void table_fail_of_a_load_keeps_the_build(void **state)
{
    struct fixture *fixture = *state;
    struct ki_table_entry *entry = claim_build(fixture, 1);
    enum ki_claim got = KI_CLAIM_BUILD;
    entry->image.data = ki_mem_alloc(&fixture->mem, 8);
    entry->image.size = 8;
    ki_table_publish(&fixture->table, entry, KI_ENTRY_BUILT);
    fail_entry(fixture, claim_load(fixture, 1), 60000);

    assert_int_equal(claim(fixture, 1, KI_ENTRY_BUILT, NO_WAIT, &entry, &got), KILN_OK);
    assert_int_equal(got, KI_CLAIM_DONE);
    assert_int_equal(claim(fixture, 1, KI_ENTRY_READY, NO_WAIT, &entry, &got),
                     KILN_E_COMPILE);

    assert_null(find(fixture, 1));
    assert_non_null(entry->image.data);
}

static void table_fail_of_a_load_may_be_loaded_anew_after_its_retry_time(void **state)
{
    struct fixture *fixture = *state;
    struct ki_table_entry *entry = claim_build(fixture, 1);
    ki_table_publish(&fixture->table, entry, KI_ENTRY_BUILT);
    fail_entry(fixture, claim_load(fixture, 1), 0);

    assert_ptr_equal(claim_load(fixture, 1), entry);

    ki_table_publish(&fixture->table, entry, KI_ENTRY_READY);
    assert_ptr_equal(find(fixture, 1), entry);
}

static void table_fail_does_not_poison_other_idents(void **state)
{
    struct fixture *fixture = *state;
    fail_entry(fixture, claim_build(fixture, 1), 60000);

    assert_non_null(make_ready(fixture, 2));
}

static void table_fail_frees_the_image(void **state)
{
    struct fixture *fixture = *state;
    struct ki_table_entry *entry = claim_build(fixture, 1);
    int n_blocks = fixture->n_blocks;
    entry->image.data = ki_mem_alloc(&fixture->mem, 8);
    entry->image.size = 8;

    fail_entry(fixture, entry, 0);

    assert_int_equal(fixture->n_blocks, n_blocks);
    assert_null(entry->image.data);
}

static void table_publish_of_ready_frees_the_image(void **state)
{
    struct fixture *fixture = *state;
    struct ki_table_entry *entry = claim_build(fixture, 1);
    entry->image.data = ki_mem_alloc(&fixture->mem, 8);
    entry->image.size = 8;
    ki_table_publish(&fixture->table, entry, KI_ENTRY_BUILT);
    assert_non_null(claim_load(fixture, 1)->image.data);

    ki_table_publish(&fixture->table, entry, KI_ENTRY_READY);

    assert_null(entry->image.data);
}

static void table_finish_frees_images_that_were_never_loaded(void **state)
{
    struct fixture *fixture = *state;
    struct ki_table_entry *entry = claim_build(fixture, 1);
    entry->image.data = ki_mem_alloc(&fixture->mem, 8);
    entry->image.size = 8;
    ki_table_publish(&fixture->table, entry, KI_ENTRY_BUILT);

    ki_table_finish(&fixture->table);

    assert_int_equal(fixture->n_blocks, 0);
}

static void table_abandon_of_a_build_lets_the_next_one_build(void **state)
{
    struct fixture *fixture = *state;
    struct ki_table_entry *entry = claim_build(fixture, 1);

    ki_table_abandon(&fixture->table, entry);

    assert_ptr_equal(claim_build(fixture, 1), entry);
}

static void table_abandon_of_a_load_keeps_the_build(void **state)
{
    struct fixture *fixture = *state;
    struct ki_table_entry *entry = claim_build(fixture, 1);
    ki_table_publish(&fixture->table, entry, KI_ENTRY_BUILT);
    claim_load(fixture, 1);

    ki_table_abandon(&fixture->table, entry);

    assert_ptr_equal(claim_load(fixture, 1), entry);
}

static void table_at_visits_every_entry_once(void **state)
{
    struct fixture *fixture = *state;
    int n_seen = 0;
    for (int key = 0; key < 5; key++) {
        make_ready(fixture, key);
    }

    for (uint32_t i = 0; i < fixture->table.capacity; i++) {
        n_seen += ki_table_at(&fixture->table, i) != NULL;
    }

    assert_int_equal(n_seen, 5);
}

static void table_finish_accepts_all_zeros(void **state)
{
    struct ki_table table;
    (void)state;
    memset(&table, 0, sizeof(table));

    ki_table_finish(&table);
}

/* What one of many threads did; every thread wants all keys READY. */
struct worker {
    pthread_t thread;
    struct fixture *fixture;
    int first_key;
    _Atomic int *builds, *loads; /* shared, per key */
    struct ki_table_entry *entries[N_KEYS];
    int n_failed;
    bool fail_first_build; /* the first build of each key fails and is retried */
};

static void nap(void)
{
    const struct timespec time = {.tv_nsec = 200000};
    nanosleep(&time, NULL);
}

static void work(struct worker *worker, struct ki_table_entry *entry, enum ki_claim got,
                 int key)
{
    struct ki_table *table = &worker->fixture->table;
    nap();
    if (got == KI_CLAIM_LOAD) {
        entry->kernel.load_ms = key;
        atomic_fetch_add(&worker->loads[key], 1);
        ki_table_publish(table, entry, KI_ENTRY_READY);
        return;
    }
    if (atomic_fetch_add(&worker->builds[key], 1) == 0 && worker->fail_first_build) {
        fail_entry(worker->fixture, entry, 0);
        return;
    }
    entry->kernel.build_ms = key;
    ki_table_publish(table, entry, KI_ENTRY_BUILT);
}

static void bring_to_ready(struct worker *worker, int key)
{
    struct ki_ident ident = ident_of(key);
    enum ki_claim got = KI_CLAIM_BUILD;
    while (got != KI_CLAIM_DONE) {
        struct ki_table_entry *entry = NULL;
        enum kiln_status status = ki_table_claim(
            &worker->fixture->table, &ident, KI_ENTRY_READY, FOREVER, &entry, &got, NULL);
        if (status != KILN_OK) {
            worker->n_failed++;
            return;
        }
        if (got != KI_CLAIM_DONE) {
            work(worker, entry, got, key);
        }
    }
    worker->entries[key] = ki_table_find(&worker->fixture->table, &ident);
}

static void *bring_all_to_ready(void *user)
{
    struct worker *worker = user;
    for (int i = 0; i < N_KEYS; i++) {
        bring_to_ready(worker, (worker->first_key + i) % N_KEYS);
    }
    return NULL;
}

static void run_workers(struct fixture *fixture, struct worker workers[N_THREADS],
                        _Atomic int *builds, _Atomic int *loads, bool fail_first_build)
{
    for (int i = 0; i < N_THREADS; i++) {
        workers[i] = (struct worker){
            .fixture = fixture,
            .first_key = i % N_KEYS,
            .builds = builds,
            .loads = loads,
            .fail_first_build = fail_first_build,
        };
        assert_int_equal(
            pthread_create(&workers[i].thread, NULL, bring_all_to_ready, &workers[i]), 0);
    }
    for (int i = 0; i < N_THREADS; i++) {
        assert_int_equal(pthread_join(workers[i].thread, NULL), 0);
    }
}

static void table_claim_lets_one_of_many_threads_build_each_key_field_65(void **state)
{
    struct fixture *fixture = *state;
    struct worker workers[N_THREADS];
    _Atomic int builds[N_KEYS] = {0}, loads[N_KEYS] = {0};

    run_workers(fixture, workers, builds, loads, false);

    for (int key = 0; key < N_KEYS; key++) {
        assert_int_equal(builds[key], 1);
        assert_int_equal(loads[key], 1);
    }
    for (int i = 0; i < N_THREADS; i++) {
        assert_int_equal(workers[i].n_failed, 0);
    }
}

static void table_gives_every_thread_the_same_entry(void **state)
{
    struct fixture *fixture = *state;
    struct worker workers[N_THREADS];
    _Atomic int builds[N_KEYS] = {0}, loads[N_KEYS] = {0};

    run_workers(fixture, workers, builds, loads, false);

    for (int i = 0; i < N_THREADS; i++) {
        for (int key = 0; key < N_KEYS; key++) {
            assert_non_null(workers[i].entries[key]);
            assert_ptr_equal(workers[i].entries[key], workers[0].entries[key]);
            assert_int_equal(workers[i].entries[key]->kernel.build_ms, key);
            assert_int_equal(workers[i].entries[key]->kernel.load_ms, key);
        }
    }
}

static void table_recovers_when_the_first_builds_fail_among_many_threads(void **state)
{
    struct fixture *fixture = *state;
    struct worker workers[N_THREADS];
    _Atomic int builds[N_KEYS] = {0}, loads[N_KEYS] = {0};

    run_workers(fixture, workers, builds, loads, true);

    for (int key = 0; key < N_KEYS; key++) {
        assert_int_equal(builds[key], 2);
        assert_int_equal(loads[key], 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
        TEST(table_find_gives_null_for_unknown),
        TEST(table_find_gives_null_until_ready),
        TEST(table_keeps_idents_of_one_field_apart),
        TEST(table_holds_its_cap_of_entries_and_finds_each),
        TEST(table_claim_refuses_above_the_cap_and_says_how_to_raise_it_field_16),
        TEST(table_claim_reports_failed_allocation),
        TEST(table_init_reports_failed_allocation),
        TEST(table_claim_is_done_when_the_goal_is_reached),
        TEST(table_claim_of_built_does_not_wait_for_a_loader),
        TEST(table_claim_times_out_behind_another_builder),
        TEST(table_fail_is_remembered_before_its_retry_time_field_55),
        TEST(table_fail_may_be_built_anew_after_its_retry_time_field_55),
        TEST(table_fail_of_a_load_keeps_the_build),
        TEST(table_fail_of_a_load_may_be_loaded_anew_after_its_retry_time),
        TEST(table_fail_does_not_poison_other_idents),
        TEST(table_fail_frees_the_image),
        TEST(table_publish_of_ready_frees_the_image),
        TEST(table_finish_frees_images_that_were_never_loaded),
        TEST(table_abandon_of_a_build_lets_the_next_one_build),
        TEST(table_abandon_of_a_load_keeps_the_build),
        TEST(table_at_visits_every_entry_once),
        TEST(table_finish_accepts_all_zeros),
        TEST(table_claim_lets_one_of_many_threads_build_each_key_field_65),
        TEST(table_gives_every_thread_the_same_entry),
        TEST(table_recovers_when_the_first_builds_fail_among_many_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
