/* SPDX-License-Identifier: Apache-2.0 */
/* What an operator sees of a cache folder, and what shrinking it removes. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/attr.h"
#include "build/store.h"
#include "support/failing_mem.h"
#include "support/store_fixture.h"

enum { N_ENTRIES = 8 };

struct seen {
    int n_good, n_faults;
    bool in_order;
    char last[300];
    char fault[2048];
};

static void look(void *user, const struct ki_store_item *item)
{
    struct seen *seen = user;

    seen->in_order = seen->in_order && strcmp(seen->last, item->name) < 0;
    snprintf(seen->last, sizeof seen->last, "%s", item->name);
    if (item->fault != NULL) {
        seen->n_faults++;
        snprintf(seen->fault, sizeof seen->fault, "%s: %s", item->name, item->fault);
        assert_null(item->cubin);
        assert_null(item->key_text);
        return;
    }
    seen->n_good++;
    assert_non_null(strstr(item->key_text, "op=test"));
    assert_string_equal(item->cubin->entry_name, "kiln_test");
    assert_true(item->size_bytes > (int64_t)item->cubin->image.size);
    assert_true(llabs((long long)item->used_ms / 1000 - (long long)time(NULL)) < 1000000);
}

static struct seen visit(const struct store_fixture *fixture)
{
    struct seen seen = {.in_order = true};

    assert_int_equal(ki_store_visit(fixture->root, false, NULL, look, &seen, NULL),
                     KILN_OK);
    return seen;
}

/* Fills the folder; entry i was used i minutes after entry 0, long ago. */
static void fill(struct store_fixture *fixture)
{
    struct ki_store store;

    store_fixture_open(fixture, &store);
    for (int i = 0; i < N_ENTRIES; i++) {
        time_t used = time(NULL) - 500000 + 60 * i;
        const struct timespec times[2] = {{.tv_sec = used}, {.tv_sec = used}};
        char path[TMPDIR_PATH];
        struct ki_key key;

        store_fixture_key(i, &key);
        assert_true(ki_store_put(&store, &key, &fixture->cubin, NULL));
        store_fixture_path(fixture->root, &key, path);
        assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
    }
    ki_store_close(&store);
}

static void path_of(const struct store_fixture *fixture, int n, char out[TMPDIR_PATH])
{
    struct ki_key key;

    store_fixture_key(n, &key);
    store_fixture_path(fixture->root, &key, out);
}

static int64_t entry_bytes(const struct store_fixture *fixture)
{
    char path[TMPDIR_PATH];
    struct stat st;

    path_of(fixture, 0, path);
    assert_int_equal(stat(path, &st), 0);
    return (int64_t)st.st_size;
}

static void visit_shows_each_entry_in_name_order(void **state)
{
    struct store_fixture *fixture = *state;
    struct seen seen;

    fill(fixture);
    seen = visit(fixture);

    assert_int_equal(seen.n_good, N_ENTRIES);
    assert_int_equal(seen.n_faults, 0);
    assert_true(seen.in_order);
}

static void visit_accepts_empty_and_new_folder(void **state)
{
    struct store_fixture *fixture = *state;
    struct ki_store store;

    assert_int_equal(mkdir(fixture->root, 0700), 0);
    assert_int_equal(visit(fixture).n_good, 0);

    store_fixture_open(fixture, &store);
    ki_store_close(&store);
    assert_int_equal(visit(fixture).n_faults, 0);
}

static void visit_refuses_missing_and_untrusted_folders(void **state)
{
    struct store_fixture *fixture = *state;
    struct kiln_error err = {0};
    struct seen seen = {0};

    assert_int_equal(ki_store_visit(fixture->root, false, NULL, look, &seen, &err),
                     KILN_E_STORE);
    assert_non_null(strstr(err.message, fixture->root));
    assert_int_equal(mkdir(fixture->root, 0700), 0);
    assert_int_equal(chmod(fixture->root, 0777), 0);
    assert_int_equal(ki_store_visit(fixture->root, false, NULL, look, &seen, &err),
                     KILN_E_STORE);
    assert_non_null(strstr(err.message, "0777"));
}

static void visit_names_each_kind_of_fault(void **state)
{
    struct store_fixture *fixture = *state;
    static const struct {
        const char *label, *message;
    } cases[] = {
        {"foreign name", "name"},         {"garbage", "bytes"},
        {"another key's", "another key"}, {"folder as an entry", "not a regular file"},
        {"linked folder", "link"},
    };
    char path[TMPDIR_PATH];
    char other[TMPDIR_PATH];
    struct ki_blob bytes;

    for (size_t i = 0; i < KI_COUNT_OF(cases); i++) {
        struct seen seen;

        fill(fixture);
        path_of(fixture, 0, path);
        path_of(fixture, 1, other);
        if (i == 0) {
            snprintf(strrchr(path, '/'), 16, "/notes.txt");
        }
        if (i == 2) {
            bytes = store_fixture_read(other);
            store_fixture_write(path, bytes.data, bytes.size);
            free(bytes.data);
        } else if (i == 3) {
            assert_int_equal(unlink(path), 0);
            assert_int_equal(mkdir(path, 0700), 0);
        } else if (i == 4) {
            *strrchr(path, '/') = '\0';
            assert_int_equal(rename(path, tmpdir_join(&fixture->dir, "moved", other)), 0);
            assert_int_equal(symlink(other, path), 0);
        } else {
            store_fixture_write(path, "garbage", 7);
        }
        seen = visit(fixture);
        if (seen.n_faults != 1 || strstr(seen.fault, cases[i].message) == NULL ||
            seen.n_good != (i == 0 ? N_ENTRIES : N_ENTRIES - 1)) {
            fail_msg("%s: %d faults, %d good, %s", cases[i].label, seen.n_faults,
                     seen.n_good, seen.fault);
        }
        tmpdir_remove(&fixture->dir);
        tmpdir_create(&fixture->dir);
        tmpdir_join(&fixture->dir, "cache", fixture->root);
    }
}

static void visit_ignores_temporaries_and_nfs_remnants(void **state)
{
    struct store_fixture *fixture = *state;
    char path[TMPDIR_PATH];

    fill(fixture);
    store_fixture_write(tmpdir_join(&fixture->dir, "cache/kiln-v1/tmp/x", path), "x", 1);
    path_of(fixture, 0, path);
    snprintf(strrchr(path, '/'), 24, "/.nfs000000000001");
    store_fixture_write(path, "x", 1);

    assert_int_equal(visit(fixture).n_faults, 0);
}

static void visit_survives_no_memory_anywhere(void **state)
{
    struct store_fixture *fixture = *state;
    enum kiln_status status = KILN_E_MEMORY;

    fill(fixture);
    for (int n = 1; status != KILN_OK; n++) {
        struct seen seen = {0};
        struct failing_mem failing;

        failing_mem_init(&failing, n);
        status = ki_store_visit(fixture->root, false, &failing.mem, look, &seen, NULL);
        assert_true(status == KILN_OK || status == KILN_E_MEMORY);
        assert_int_equal(failing.n_live, 0);
        assert_true(n < 1000);
    }
}

/* ---- trimming --------------------------------------------------------------------- */

static void trim_removes_oldest_use_first(void **state)
{
    struct store_fixture *fixture = *state;
    int64_t removed = 0;
    int64_t left = 0;
    int64_t size;

    fill(fixture);
    size = entry_bytes(fixture);

    assert_int_equal(ki_store_trim(fixture->root, false, 3 * size + size / 2, NULL,
                                   &removed, &left, NULL),
                     KILN_OK);
    assert_int_equal(removed, N_ENTRIES - 3);
    assert_int_equal(left, 3 * size);
    for (int i = 0; i < N_ENTRIES; i++) {
        char path[TMPDIR_PATH];

        path_of(fixture, i, path);
        assert_int_equal(access(path, F_OK), i < N_ENTRIES - 3 ? -1 : 0);
    }
    assert_int_equal(visit(fixture).n_good, 3);
}

static void trim_keeps_all_that_fits(void **state)
{
    struct store_fixture *fixture = *state;
    int64_t removed = 9;
    int64_t left = 0;

    fill(fixture);

    assert_int_equal(
        ki_store_trim(fixture->root, false, INT64_MAX, NULL, &removed, &left, NULL),
        KILN_OK);
    assert_int_equal(removed, 0);
    assert_int_equal(left, N_ENTRIES * entry_bytes(fixture));
}

static void trim_removes_stale_temporaries_only(void **state)
{
    struct store_fixture *fixture = *state;
    const struct timespec old[2] = {{.tv_sec = time(NULL) - 7200},
                                    {.tv_sec = time(NULL) - 7200}};
    char stale[TMPDIR_PATH];
    char fresh[TMPDIR_PATH];
    int64_t removed = 0;
    int64_t left = 0;

    fill(fixture);
    store_fixture_write(tmpdir_join(&fixture->dir, "cache/kiln-v1/tmp/a", stale), "x", 1);
    store_fixture_write(tmpdir_join(&fixture->dir, "cache/kiln-v1/tmp/b", fresh), "x", 1);
    assert_int_equal(utimensat(AT_FDCWD, stale, old, 0), 0);

    assert_int_equal(
        ki_store_trim(fixture->root, false, INT64_MAX, NULL, &removed, &left, NULL),
        KILN_OK);
    assert_int_equal(access(stale, F_OK), -1);
    assert_int_equal(access(fresh, F_OK), 0);
}

static void trim_leaves_foreign_files_alone(void **state)
{
    struct store_fixture *fixture = *state;
    char path[TMPDIR_PATH];
    int64_t removed = 0;
    int64_t left = 9;

    fill(fixture);
    path_of(fixture, 0, path);
    snprintf(strrchr(path, '/'), 16, "/notes.txt");
    store_fixture_write(path, "mine", 4);

    assert_int_equal(ki_store_trim(fixture->root, false, 0, NULL, &removed, &left, NULL),
                     KILN_OK);
    assert_int_equal(removed, N_ENTRIES);
    assert_int_equal(left, 0);
    assert_int_equal(access(path, F_OK), 0);
}

static void trim_refuses_bad_arguments(void **state)
{
    struct store_fixture *fixture = *state;
    int64_t removed = 9;
    int64_t left = 9;

    assert_int_equal(ki_store_trim(fixture->root, false, -1, NULL, &removed, &left, NULL),
                     KILN_E_ARGUMENT);
    assert_int_equal(ki_store_trim(fixture->root, false, 0, NULL, &removed, &left, NULL),
                     KILN_E_STORE);
    assert_int_equal(access(fixture->root, F_OK), -1);
    assert_int_equal(removed + left, 18);
}

static void trim_survives_no_memory_anywhere(void **state)
{
    struct store_fixture *fixture = *state;
    enum kiln_status status = KILN_E_MEMORY;

    fill(fixture);
    for (int n = 1; status != KILN_OK; n++) {
        struct failing_mem failing;
        int64_t removed = 0;
        int64_t left = 0;

        failing_mem_init(&failing, n);
        status = ki_store_trim(fixture->root, false, INT64_MAX, &failing.mem, &removed,
                               &left, NULL);
        assert_true(status == KILN_OK || status == KILN_E_MEMORY);
        assert_int_equal(failing.n_live, 0);
        assert_true(n < 1000);
    }
}

/* ---- asking ----------------------------------------------------------------------- */

static void writable_makes_nothing(void **state)
{
    struct store_fixture *fixture = *state;
    char path[TMPDIR_PATH];

    assert_int_equal(ki_store_writable(fixture->root, false, NULL, NULL), KILN_OK);
    assert_int_equal(access(fixture->root, F_OK), -1);
    assert_int_equal(
        ki_store_writable(tmpdir_join(&fixture->dir, "a/b/c/", path), false, NULL, NULL),
        KILN_OK);
    assert_int_equal(access(tmpdir_join(&fixture->dir, "a", path), F_OK), -1);

    assert_int_equal(mkdir(fixture->root, 0700), 0);
    assert_int_equal(ki_store_writable(fixture->root, false, NULL, NULL), KILN_OK);
    assert_int_equal(access(tmpdir_join(&fixture->dir, "cache/kiln-v1", path), F_OK), -1);

    fill(fixture);
    assert_int_equal(rmdir(tmpdir_join(&fixture->dir, "cache/kiln-v1/tmp", path)), 0);
    assert_int_equal(ki_store_writable(fixture->root, false, NULL, NULL), KILN_OK);
    assert_int_equal(access(path, F_OK), -1);
}

/* Asks of `root`, and wants the folder at `path` named. */
static void assert_not_writable(const char *root, const char *path, const char *reason)
{
    char named[TMPDIR_PATH + 16];
    struct kiln_error err = {0};
    enum kiln_status status = ki_store_writable(root, false, NULL, &err);

    snprintf(named, sizeof named, "\"%s\"", path);
    if (status != KILN_E_STORE || strstr(err.message, named) == NULL ||
        strstr(err.message, reason) == NULL) {
        fail_msg("%s: status %d, %s", path, (int)status, err.message);
    }
}

static void writable_names_the_folder_that_is_not(void **state)
{
    struct store_fixture *fixture = *state;
    static const char *const names[] = {"cache/kiln-v1", "cache/kiln-v1/tmp", NULL};
    char path[TMPDIR_PATH];

    fill(fixture);
    for (size_t i = 0; i < KI_COUNT_OF(names); i++) {
        if (names[i] != NULL) {
            tmpdir_join(&fixture->dir, names[i], path);
        } else {
            path_of(fixture, 0, path);
            *strrchr(path, '/') = '\0';
        }
        assert_int_equal(chmod(path, 0555), 0);
        assert_not_writable(fixture->root, path,
                            "cannot be written to: Permission denied");
        assert_int_equal(visit(fixture).n_good, N_ENTRIES);
        assert_int_equal(chmod(path, 0777), 0);
        assert_not_writable(fixture->root, path, "has mode 0777");
        assert_int_equal(chmod(path, 0700), 0);
    }
    assert_int_equal(ki_store_writable(fixture->root, false, NULL, NULL), KILN_OK);
}

static void writable_asks_the_folder_in_which_it_would_be_made(void **state)
{
    struct store_fixture *fixture = *state;
    char path[TMPDIR_PATH];

    assert_int_equal(mkdir(fixture->root, 0555), 0);
    assert_not_writable(fixture->root, fixture->root, "Permission denied");
    assert_not_writable(tmpdir_join(&fixture->dir, "cache/a/b", path), fixture->root,
                        "Permission denied");

    /* mkdir does not make what such a link leads to */
    assert_int_equal(symlink("/nowhere", tmpdir_join(&fixture->dir, "link", path)), 0);
    snprintf(fixture->root, sizeof fixture->root, "%.400s/a", path);
    assert_not_writable(fixture->root, path, "No such file");
}

static void writable_survives_no_memory_anywhere(void **state)
{
    struct store_fixture *fixture = *state;
    enum kiln_status status = KILN_E_MEMORY;

    fill(fixture);
    for (int n = 1; status != KILN_OK; n++) {
        struct failing_mem failing;

        failing_mem_init(&failing, n);
        status = ki_store_writable(fixture->root, false, &failing.mem, NULL);
        assert_true(status == KILN_OK || status == KILN_E_MEMORY);
        assert_int_equal(failing.n_live, 0);
        assert_true(n < 1000);
    }
}

static void faults_name_the_whole_path(void **state)
{
    struct store_fixture *fixture = *state;
    static const char *const names[] = {"cache/kiln-v1", "cache/kiln-v1/tmp"};
    char path[TMPDIR_PATH];
    struct kiln_error err = {0};
    int64_t n;

    fill(fixture);
    for (size_t i = 0; i < KI_COUNT_OF(names); i++) {
        tmpdir_join(&fixture->dir, names[i], path);
        assert_int_equal(chmod(path, 0000), 0);
        assert_int_equal(ki_store_trim(fixture->root, false, 0, NULL, &n, &n, &err),
                         KILN_E_STORE);
        assert_non_null(strstr(err.message, path));
        assert_int_equal(chmod(path, 0700), 0);
    }
    path_of(fixture, 0, path);
    *strrchr(path, '/') = '\0';
    assert_int_equal(chmod(path, 0000), 0);
    assert_non_null(strstr(visit(fixture).fault, path));
}

#define TEST_PLAIN_USER(name)                                                            \
    cmocka_unit_test_setup_teardown(name, store_fixture_setup_plain_user,                \
                                    store_fixture_teardown)

#define TEST(name)                                                                       \
    cmocka_unit_test_setup_teardown(name, store_fixture_setup, store_fixture_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(visit_shows_each_entry_in_name_order),
        TEST(visit_accepts_empty_and_new_folder),
        TEST(visit_refuses_missing_and_untrusted_folders),
        TEST(visit_names_each_kind_of_fault),
        TEST(visit_ignores_temporaries_and_nfs_remnants),
        TEST(visit_survives_no_memory_anywhere),
        TEST(trim_removes_oldest_use_first),
        TEST(trim_keeps_all_that_fits),
        TEST(trim_removes_stale_temporaries_only),
        TEST(trim_leaves_foreign_files_alone),
        TEST(trim_refuses_bad_arguments),
        TEST(writable_makes_nothing),
        TEST_PLAIN_USER(writable_names_the_folder_that_is_not),
        TEST_PLAIN_USER(writable_asks_the_folder_in_which_it_would_be_made),
        TEST(writable_survives_no_memory_anywhere),
        TEST_PLAIN_USER(faults_name_the_whole_path),
        TEST(trim_survives_no_memory_anywhere),
    };

    store_fixture_begin();
    return cmocka_run_group_tests_name("store_scan", tests, NULL, NULL);
}
