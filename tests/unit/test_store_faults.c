/* SPDX-License-Identifier: Apache-2.0 */
/* The store while the disk, the memory or other processes do their worst. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/attr.h"
#include "build/store.h"
#include "support/failing_mem.h"
#include "support/fake_cubin.h"
#include "support/store_fixture.h"

enum { MOST_CALLS = 500, N_PROCESSES = 3, N_ROUNDS = 4000, N_KEYS = 3 };

struct faults {
    int n_calls, fail_nth, error;
};

static int fail_nth_call(void *user, enum ki_file_call call, size_t *size)
{
    struct faults *faults = user;

    (void)call;
    (void)size;
    return ++faults->n_calls == faults->fail_nth ? faults->error : 0;
}

/* The whole life of a store in which the n-th file call fails. True: none of them did. */
static bool live_with_fault(struct store_fixture *fixture, int n, int error)
{
    struct faults faults = {.fail_nth = n, .error = error};
    struct ki_file_faults hook = {.before = fail_nth_call, .user = &faults};
    struct ki_files files = {.faults = &hook};
    struct ki_cubin got = {0};
    struct ki_store store;

    fixture->options.files = &files;
    store_fixture_open(fixture, &store);
    if (!ki_store_put(&store, &fixture->key, &fixture->cubin, NULL)) {
        assert_true(faults.n_calls >= n);
    }
    if (ki_store_get(&store, &fixture->key, fixture->target, &got)) {
        assert_memory_equal(got.image.data, fixture->cubin.image.data, got.image.size);
    } else {
        assert_true(faults.n_calls >= n); /* a miss has the fault as its reason */
    }
    ki_cubin_finish(&got, NULL);
    ki_store_close(&store);
    return faults.n_calls < n;
}

/* The folder holds no entry or a whole one, and works when the disk does. */
static void assert_folder_is_sound(struct store_fixture *fixture)
{
    struct ki_cubin got = {0};
    struct ki_store store;

    fixture->options.files = NULL;
    store_fixture_open(fixture, &store);
    assert_true(store.has_writable);
    if (ki_store_get(&store, &fixture->key, fixture->target, &got)) {
        ki_cubin_finish(&got, NULL);
    }
    assert_int_equal(store.n_bad, 0);
    assert_true(ki_store_put(&store, &fixture->key, &fixture->cubin, NULL));
    assert_true(ki_store_get(&store, &fixture->key, fixture->target, &got));
    ki_cubin_finish(&got, NULL);
    ki_store_close(&store);
}

static void store_downgrades_wherever_the_disk_fails_field_58(void **state)
{
    static const int errors[] = {EIO, ENOSPC, EROFS, EACCES, ESTALE};
    struct store_fixture *fixture = *state;

    for (size_t i = 0; i < KI_COUNT_OF(errors); i++) {
        bool done = false;
        char tmp[TMPDIR_PATH];

        for (int n = 1; !done; n++) {
            assert_true(n < MOST_CALLS);
            done = live_with_fault(fixture, n, errors[i]);
            assert_folder_is_sound(fixture);
            /* A move aside that could not be ended may stay, until a trim; half a draft
             * may not. */
            tmpdir_join(&fixture->dir, "cache/kiln-v1/tmp", tmp);
            assert_true(tmpdir_count(tmp, "") <= 1);
            tmpdir_remove(&fixture->dir);
            tmpdir_create(&fixture->dir);
            tmpdir_join(&fixture->dir, "cache", fixture->root);
        }
    }
}

static void put_leaves_nothing_in_tmp_wherever_it_fails(void **state)
{
    struct store_fixture *fixture = *state;
    struct faults faults = {.error = ENOSPC};
    struct ki_file_faults hook = {.before = fail_nth_call, .user = &faults};
    struct ki_files files = {.faults = &hook};
    struct ki_store store;
    char tmp[TMPDIR_PATH];
    int n_failed = 0;

    fixture->options.files = &files;
    store_fixture_open(fixture, &store);
    tmpdir_join(&fixture->dir, "cache/kiln-v1/tmp", tmp);
    do {
        faults.n_calls = 0;
        faults.fail_nth++;
        n_failed += ki_store_put(&store, &fixture->key, &fixture->cubin, NULL) ? 0 : 1;
        assert_int_equal(tmpdir_count(tmp, ""), 0);
    } while (faults.n_calls >= faults.fail_nth);
    assert_true(n_failed > 5);
    assert_int_equal(store.n_faults, n_failed);
    assert_int_equal(fixture->n_warnings, 1);
    ki_store_close(&store);
}

static void store_survives_no_memory_anywhere(void **state)
{
    struct store_fixture *fixture = *state;
    bool done = false;

    for (int n = 1; !done; n++) {
        struct failing_mem failing;
        struct ki_cubin got = {0};
        struct ki_store store;

        assert_true(n < MOST_CALLS);
        failing_mem_init(&failing, n);
        if (ki_store_open(&store, &fixture->options, &failing.mem, NULL, NULL) ==
            KILN_OK) {
            (void)ki_store_put(&store, &fixture->key, &fixture->cubin, NULL);
            (void)ki_store_get(&store, &fixture->key, fixture->target, &got);
            /* Memory is no reason to distrust what lies on the disk. */
            assert_int_equal(store.n_bad, 0);
            ki_cubin_finish(&got, &failing.mem);
            ki_store_close(&store);
        }
        assert_int_equal(failing.n_live, 0);
        done = failing.n_calls < n;
    }
}

/* ---- threads ---------------------------------------------------------------------- */

struct worker {
    struct store_fixture *fixture;
    struct ki_store *store;
    pthread_t thread;
    int n_wrong;
};

static void *put_and_get(void *user)
{
    struct worker *worker = user;

    for (int round = 0; round < N_ROUNDS / 20; round++) {
        struct ki_cubin got = {0};
        struct ki_key key;

        store_fixture_key(round % N_KEYS, &key);
        worker->n_wrong +=
            ki_store_put(worker->store, &key, &worker->fixture->cubin, NULL) ? 0 : 1;
        if (!ki_store_get(worker->store, &key, worker->fixture->target, &got)) {
            worker->n_wrong++;
        }
        ki_cubin_finish(&got, NULL);
    }
    return NULL;
}

static void threads_share_a_store(void **state)
{
    struct store_fixture *fixture = *state;
    struct worker workers[N_PROCESSES] = {0};
    struct ki_store store;

    store_fixture_open(fixture, &store);
    for (int i = 0; i < N_PROCESSES; i++) {
        workers[i].fixture = fixture;
        workers[i].store = &store;
        assert_int_equal(
            pthread_create(&workers[i].thread, NULL, put_and_get, &workers[i]), 0);
    }
    for (int i = 0; i < N_PROCESSES; i++) {
        assert_int_equal(pthread_join(workers[i].thread, NULL), 0);
        assert_int_equal(workers[i].n_wrong, 0);
    }
    assert_int_equal(store.n_hits, store.n_writes);
    ki_store_close(&store);
}

/* ---- processes -------------------------------------------------------------------- */

/* What one process does: puts, gets and damages the same few keys as all others. The
 * exit status says what was wrong, 0: nothing. */
static int disturb(struct store_fixture *fixture, unsigned seed)
{
    struct ki_cubin cubins[N_KEYS];
    struct ki_key keys[N_KEYS];
    struct ki_store store;

    if (ki_store_open(&store, &fixture->options, NULL, NULL, NULL) != KILN_OK ||
        !store.has_writable) {
        return 2;
    }
    for (int i = 0; i < N_KEYS; i++) {
        store_fixture_key(i, &keys[i]);
        fake_cubin_make("kiln_test", (unsigned char)i, &cubins[i]);
    }
    for (int round = 0; round < N_ROUNDS; round++) {
        struct ki_cubin got = {0};
        int i;

        seed = seed * 1103515245U + 12345U;
        i = (int)(seed >> 16) % N_KEYS;
        if ((seed >> 20) % 4 == 0 && !ki_store_put(&store, &keys[i], &cubins[i], NULL)) {
            return 3;
        }
        if (ki_store_get(&store, &keys[i], fixture->target, &got)) {
            if (got.image.size != cubins[i].image.size ||
                memcmp(got.image.data, cubins[i].image.data, got.image.size) != 0) {
                return 4;
            }
            ki_cubin_finish(&got, NULL);
        }
    }
    if (store.n_bad != 0 || store.n_faults != 0) {
        return 5;
    }
    ki_store_close(&store);
    for (int i = 0; i < N_KEYS; i++) {
        ki_cubin_finish(&cubins[i], NULL);
    }
    return 0;
}

static void processes_race_and_read_whole_entries_only_field_51_52_53(void **state)
{
    struct store_fixture *fixture = *state;
    char tmp[TMPDIR_PATH];
    pid_t children[N_PROCESSES];

    for (int i = 0; i < N_PROCESSES; i++) {
        children[i] = fork();
        if (children[i] == 0) {
            _exit(disturb(fixture, (unsigned)i + 1));
        }
        assert_true(children[i] > 0);
    }
    for (int i = 0; i < N_PROCESSES; i++) {
        int status = -1;

        assert_int_equal(waitpid(children[i], &status, 0), children[i]);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 0);
    }
    tmpdir_join(&fixture->dir, "cache/kiln-v1/tmp", tmp);
    assert_int_equal(tmpdir_count(tmp, ""), 0);
    assert_folder_is_sound(fixture);
}

/* One process destroys entries under the eyes of those that publish good ones. */
static int damage(struct store_fixture *fixture)
{
    struct ki_key key;
    char path[TMPDIR_PATH];

    for (int round = 0; round < N_ROUNDS; round++) {
        FILE *file;

        store_fixture_key(round % N_KEYS, &key);
        store_fixture_path(fixture->root, &key, path);
        file = fopen(path, "r+b");
        if (file != NULL) {
            (void)fwrite("damage", 1, 6, file);
            (void)fclose(file);
        }
    }
    return 0;
}

static void damage_meanwhile_is_never_handed_out(void **state)
{
    struct store_fixture *fixture = *state;
    struct ki_store store;
    pid_t child;
    int status = -1;

    store_fixture_open(fixture, &store);
    child = fork();
    if (child == 0) {
        _exit(damage(fixture));
    }
    assert_true(child > 0);
    for (int round = 0; round < N_ROUNDS / 4; round++) {
        struct ki_cubin got = {0};

        if (ki_store_get(&store, &fixture->key, fixture->target, &got)) {
            assert_memory_equal(got.image.data, fixture->cubin.image.data,
                                got.image.size);
            ki_cubin_finish(&got, NULL);
            continue;
        }
        assert_true(ki_store_put(&store, &fixture->key, &fixture->cubin, NULL));
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(store.n_faults, 0);
    ki_store_close(&store);
}

#define TEST(name)                                                                       \
    cmocka_unit_test_setup_teardown(name, store_fixture_setup, store_fixture_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(store_downgrades_wherever_the_disk_fails_field_58),
        TEST(put_leaves_nothing_in_tmp_wherever_it_fails),
        TEST(store_survives_no_memory_anywhere),
        TEST(threads_share_a_store),
        TEST(processes_race_and_read_whole_entries_only_field_51_52_53),
        TEST(damage_meanwhile_is_never_handed_out),
    };

    store_fixture_begin();
    return cmocka_run_group_tests_name("store_faults", tests, NULL, NULL);
}
