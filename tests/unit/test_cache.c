/* SPDX-License-Identifier: Apache-2.0 */
/* The cache folder as an operator sees it: visited, checked and trimmed without a GPU. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <cmocka.h>

#include "kiln/store.h"
#include "support/fake_kiln.h"

enum { N = 4, NAME = 128 };

struct seen {
    size_t n, n_faulty;
    char names[16][NAME];
    struct kiln_store_item last; /* its strings are gone */
    char key_text[4096], op[64], target[16], nvrtc[16];
    int64_t bytes;
};

static void keep(void *user, const struct kiln_store_item *item)
{
    struct seen *seen = user;

    assert_true(seen->n < KI_COUNT_OF(seen->names));
    snprintf(seen->names[seen->n++], NAME, "%s", item->name);
    seen->bytes += item->size_bytes;
    seen->last = *item;
    if (item->fault != NULL) {
        seen->n_faulty++;
        assert_null(item->key_text);
        return;
    }
    snprintf(seen->key_text, sizeof seen->key_text, "%s", item->key_text);
    snprintf(seen->op, sizeof seen->op, "%s", item->op);
    snprintf(seen->target, sizeof seen->target, "%s", item->target);
    snprintf(seen->nvrtc, sizeof seen->nvrtc, "%s", item->nvrtc);
}

/* A store with N entries of global_topk and the kiln closed. */
static int setup(void **state)
{
    struct fake_kiln *fake;

    if (fake_kiln_setup_open(state) != 0) {
        return -1;
    }
    fake = *state;
    for (int i = 0; i < N; i++) {
        if (fake_kiln_build(fake, 256 << i) != KILN_OK) {
            return -1;
        }
    }
    fake_kiln_close(fake);
    return 0;
}

static void visit(struct fake_kiln *fake, struct seen *seen)
{
    memset(seen, 0, sizeof *seen);
    assert_int_equal(kiln_store_visit(fake->cache_dir, keep, seen, &fake->err), KILN_OK);
}

static void damage(struct fake_kiln *fake, const char *name)
{
    char path[TMPDIR_PATH + NAME + 16];
    FILE *file;

    snprintf(path, sizeof path, "%s/kiln-v1/%s", fake->cache_dir, name);
    file = fopen(path, "r+b");
    assert_non_null(file);
    assert_int_equal(fseek(file, -1, SEEK_END), 0);
    assert_int_equal(fputc('#', file), '#');
    assert_int_equal(fclose(file), 0);
}

/* ---- visit -------------------------------------------------------------------------- */

static void visit_shows_every_entry_in_the_order_of_names(void **state)
{
    struct fake_kiln *fake = *state;
    struct seen seen;

    visit(fake, &seen);

    assert_int_equal(seen.n, N);
    assert_int_equal(seen.n_faulty, 0);
    for (size_t i = 1; i < seen.n; i++) {
        assert_true(strcmp(seen.names[i - 1], seen.names[i]) < 0);
    }
}

static void visit_tells_what_an_entry_is(void **state)
{
    struct fake_kiln *fake = *state;
    struct seen seen;

    visit(fake, &seen);

    /* Which entry is the last one depends on every byte of the source. */
    const char *topk = strstr(seen.key_text, "\ntopk=");
    assert_non_null(topk);
    struct kiln_shape shape =
        fake_kiln_shape(strtoll(topk + strlen("\ntopk="), NULL, 10));

    assert_string_equal(seen.op, "global_topk");
    assert_string_equal(seen.target, "sm_90");
    assert_string_equal(seen.nvrtc, "13.0");
    assert_non_null(strstr(seen.key_text, "\nblock_size=64\n"));
    assert_int_equal(seen.last.threads, ki_op_get(KILN_OP_GLOBAL_TOPK)->threads(&shape));
    assert_int_equal(seen.last.registers, 24);
    assert_int_equal(seen.last.smem_bytes, 512);
    assert_true(seen.last.cubin_bytes > 0);
    assert_true(seen.last.cubin_bytes < seen.last.size_bytes);
    assert_true(seen.last.used_ms > INT64_C(1500000000000));
}

static void visit_says_what_is_wrong_with_a_damaged_entry(void **state)
{
    struct fake_kiln *fake = *state;
    struct seen before;
    struct seen after;

    visit(fake, &before);
    damage(fake, before.names[N - 1]);
    visit(fake, &after);

    assert_int_equal(after.n, N);
    assert_int_equal(after.n_faulty, 1);
    assert_string_equal(after.last.name != NULL ? after.names[N - 1] : "",
                        before.names[N - 1]);
    /* Looking deletes nothing. */
    assert_int_equal(fake_kiln_entries(fake), N);
}

static void visit_of_an_empty_folder_is_fine_and_of_none_is_not(void **state)
{
    struct fake_kiln *fake = *state;
    struct seen seen = {0};
    char path[TMPDIR_PATH];

    tmpdir_join(&fake->dir, "empty", path);
    assert_int_equal(kiln_store_visit(path, keep, &seen, &fake->err), KILN_E_STORE);
    assert_non_null(strstr(fake->err.message, path));
    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(kiln_store_visit(path, keep, &seen, &fake->err), KILN_OK);

    assert_int_equal(seen.n, 0);
}

static void visit_refuses_a_folder_that_anyone_can_write_to_field_57(void **state)
{
    struct fake_kiln *fake = *state;
    struct seen seen = {0};

    assert_int_equal(chmod(fake->cache_dir, 0777), 0);

    assert_int_equal(kiln_store_visit(fake->cache_dir, keep, &seen, &fake->err),
                     KILN_E_STORE);
    assert_int_equal(seen.n, 0);
}

static void visit_refuses_relative_paths_and_null(void **state)
{
    struct fake_kiln *fake = *state;
    struct seen seen = {0};

    assert_int_equal(kiln_store_visit("cache", keep, &seen, &fake->err), KILN_E_ARGUMENT);
    assert_non_null(strstr(fake->err.message, "dir = \"cache\""));
    assert_int_equal(kiln_store_visit("", keep, &seen, NULL), KILN_E_ARGUMENT);
    assert_int_equal(kiln_store_visit(NULL, keep, &seen, NULL), KILN_E_ARGUMENT);
    assert_int_equal(kiln_store_visit(fake->cache_dir, NULL, NULL, NULL),
                     KILN_E_ARGUMENT);
}

/* ---- check -------------------------------------------------------------------------- */

struct missing {
    size_t n;
    size_t requests[8];
};

static void keep_missing(void *user, size_t i_request)
{
    struct missing *missing = user;

    missing->requests[missing->n++] = i_request;
}

static struct kiln_request request(int64_t topk, const char *target)
{
    return (struct kiln_request){KILN_OP_GLOBAL_TOPK, fake_kiln_shape(topk), target};
}

static void check_names_what_is_not_there_field_61(void **state)
{
    struct fake_kiln *fake = *state;
    const char *const dirs[] = {fake->cache_dir};
    const struct kiln_request requests[] = {request(256, "sm_90"), request(257, "sm_90"),
                                            request(512, "sm_90"),
                                            request(512, "sm_100")};
    struct missing missing = {0};
    struct kiln_store_query query = {dirs, 1, requests, 4, keep_missing, &missing};
    size_t n_missing = 77;

    assert_int_equal(kiln_store_check(&query, &n_missing, &fake->err), KILN_OK);

    assert_int_equal(n_missing, 2);
    assert_int_equal(missing.n, 2);
    assert_int_equal(missing.requests[0], 1);
    assert_int_equal(missing.requests[1], 3);
}

static void check_looks_through_all_folders(void **state)
{
    struct fake_kiln *fake = *state;
    char path[TMPDIR_PATH];
    const char *const dirs[] = {tmpdir_join(&fake->dir, "empty", path), fake->cache_dir};
    const struct kiln_request requests[] = {request(256, "sm_90")};
    struct kiln_store_query query = {dirs, 2, requests, 1, NULL, NULL};
    size_t n_missing = 77;

    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(kiln_store_check(&query, &n_missing, &fake->err), KILN_OK);
    assert_int_equal(n_missing, 0);
    query.n_dirs = 1;
    assert_int_equal(kiln_store_check(&query, &n_missing, &fake->err), KILN_OK);
    assert_int_equal(n_missing, 1);
    query.n_dirs = 0;
    assert_int_equal(kiln_store_check(&query, &n_missing, &fake->err), KILN_OK);
    assert_int_equal(n_missing, 1);
}

static void check_counts_a_damaged_entry_as_missing_and_keeps_it(void **state)
{
    struct fake_kiln *fake = *state;
    const char *const dirs[] = {fake->cache_dir};
    const struct kiln_request requests[] = {request(256, "sm_90"), request(512, "sm_90"),
                                            request(1024, "sm_90"),
                                            request(2048, "sm_90")};
    struct kiln_store_query query = {dirs, 1, requests, 4, NULL, NULL};
    struct seen seen;
    size_t n_missing = 77;

    visit(fake, &seen);
    damage(fake, seen.names[2]);
    assert_int_equal(kiln_store_check(&query, &n_missing, &fake->err), KILN_OK);

    assert_int_equal(n_missing, 1);
    assert_int_equal(fake_kiln_entries(fake), N);
}

static void check_refuses_wrong_requests(void **state)
{
    struct fake_kiln *fake = *state;
    const char *const dirs[] = {fake->cache_dir};
    const struct {
        struct kiln_request request;
        enum kiln_status expected;
    } cases[] = {
        {request(0, "sm_90"), KILN_E_SHAPE},
        {request(256, "sm_7"), KILN_E_TARGET},
        {request(256, NULL), KILN_E_TARGET},
        {{KILN_OP_STEP, fake_kiln_shape(4), "sm_90"}, KILN_E_UNSUPPORTED},
        {{(enum kiln_op)99, fake_kiln_shape(4), "sm_90"}, KILN_E_ARGUMENT},
    };

    for (size_t i = 0; i < KI_COUNT_OF(cases); i++) {
        struct kiln_store_query query = {dirs, 1, &cases[i].request, 1, NULL, NULL};
        size_t n_missing = 77;

        assert_int_equal(kiln_store_check(&query, &n_missing, NULL), cases[i].expected);
        assert_int_equal(n_missing, 77);
    }
}

static void check_refuses_wrong_folders_and_null(void **state)
{
    struct fake_kiln *fake = *state;
    const char *const dirs[] = {fake->cache_dir};
    const char *const relative[] = {"cache"};
    const char *const none[] = {"/nowhere/at/all"};
    const struct kiln_request fine = request(256, "sm_90");
    const struct {
        struct kiln_store_query query;
        enum kiln_status expected;
    } cases[] = {
        {{none, 1, &fine, 1, NULL, NULL}, KILN_E_STORE},
        {{relative, 1, &fine, 1, NULL, NULL}, KILN_E_ARGUMENT},
        {{NULL, 1, &fine, 1, NULL, NULL}, KILN_E_ARGUMENT},
        {{dirs, 1, NULL, 1, NULL, NULL}, KILN_E_ARGUMENT},
    };
    size_t n_missing = 77;

    for (size_t i = 0; i < KI_COUNT_OF(cases); i++) {
        assert_int_equal(kiln_store_check(&cases[i].query, &n_missing, NULL),
                         cases[i].expected);
    }
    assert_int_equal(kiln_store_check(NULL, &n_missing, NULL), KILN_E_ARGUMENT);
    assert_int_equal(kiln_store_check(&cases[0].query, NULL, NULL), KILN_E_ARGUMENT);
    assert_int_equal(n_missing, 77);
}

/* ---- trim --------------------------------------------------------------------------- */

static void trim_removes_until_the_rest_fits(void **state)
{
    struct fake_kiln *fake = *state;
    struct seen before;
    struct seen after;
    int64_t removed = -1;
    int64_t left = -1;

    visit(fake, &before);
    assert_int_equal(
        kiln_store_trim(fake->cache_dir, before.bytes, &removed, &left, &fake->err),
        KILN_OK);
    assert_int_equal(removed, 0);
    assert_int_equal(left, before.bytes);
    assert_int_equal(
        kiln_store_trim(fake->cache_dir, before.bytes - 1, &removed, &left, &fake->err),
        KILN_OK);
    visit(fake, &after);

    assert_int_equal(removed, 1);
    assert_int_equal(after.n, N - 1);
    assert_int_equal(left, after.bytes);
    assert_true(left < before.bytes);
}

static void trim_to_nothing_empties_the_folder(void **state)
{
    struct fake_kiln *fake = *state;
    int64_t removed = -1;

    assert_int_equal(kiln_store_trim(fake->cache_dir, 0, &removed, NULL, &fake->err),
                     KILN_OK);

    assert_int_equal(removed, N);
    assert_int_equal(fake_kiln_entries(fake), 0);
}

static void trim_needs_neither_result(void **state)
{
    struct fake_kiln *fake = *state;

    assert_int_equal(kiln_store_trim(fake->cache_dir, INT64_MAX, NULL, NULL, NULL),
                     KILN_OK);

    assert_int_equal(fake_kiln_entries(fake), N);
}

static void trim_refuses_wrong_arguments_and_folders(void **state)
{
    struct fake_kiln *fake = *state;
    int64_t removed = 77;
    int64_t left = 78;

    assert_int_equal(kiln_store_trim(fake->cache_dir, -1, &removed, &left, &fake->err),
                     KILN_E_ARGUMENT);
    assert_non_null(strstr(fake->err.message, "max_bytes = -1"));
    assert_int_equal(kiln_store_trim("cache", 0, &removed, &left, NULL), KILN_E_ARGUMENT);
    assert_int_equal(kiln_store_trim(NULL, 0, &removed, &left, NULL), KILN_E_ARGUMENT);
    assert_int_equal(kiln_store_trim("/nowhere/at/all", 0, &removed, &left, NULL),
                     KILN_E_STORE);

    assert_int_equal(removed, 77);
    assert_int_equal(left, 78);
    assert_int_equal(fake_kiln_entries(fake), N);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, fake_kiln_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(visit_shows_every_entry_in_the_order_of_names),
        TEST(visit_tells_what_an_entry_is),
        TEST(visit_says_what_is_wrong_with_a_damaged_entry),
        TEST(visit_of_an_empty_folder_is_fine_and_of_none_is_not),
        TEST(visit_refuses_a_folder_that_anyone_can_write_to_field_57),
        TEST(visit_refuses_relative_paths_and_null),
        TEST(check_names_what_is_not_there_field_61),
        TEST(check_looks_through_all_folders),
        TEST(check_counts_a_damaged_entry_as_missing_and_keeps_it),
        TEST(check_refuses_wrong_requests),
        TEST(check_refuses_wrong_folders_and_null),
        TEST(trim_removes_until_the_rest_fits),
        TEST(trim_to_nothing_empties_the_folder),
        TEST(trim_needs_neither_result),
        TEST(trim_refuses_wrong_arguments_and_folders),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
