/* SPDX-License-Identifier: Apache-2.0 */
/* The store in a world that means well, and with what lies in its folders going wrong. */
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
#include "support/fake_cubin.h"
#include "support/store_fixture.h"

/* Puts the fixture's cubin; path is where its entry lies. */
static void put(struct store_fixture *fixture, struct ki_store *store,
                char path[TMPDIR_PATH])
{
    assert_true(ki_store_put(store, &fixture->key, &fixture->cubin, NULL));
    store_fixture_path(fixture->root, &fixture->key, path);
}

static bool get(struct store_fixture *fixture, struct ki_store *store)
{
    struct ki_cubin cubin = {0};
    bool found = ki_store_get(store, &fixture->key, fixture->target, &cubin);

    if (found) {
        assert_int_equal(cubin.image.size, fixture->cubin.image.size);
        assert_memory_equal(cubin.image.data, fixture->cubin.image.data,
                            cubin.image.size);
    }
    ki_cubin_finish(&cubin, NULL);
    return found;
}

static void get_gives_what_was_put(void **state)
{
    struct store_fixture *fixture = *state;
    struct ki_cubin cubin = {0};
    char path[TMPDIR_PATH];
    struct ki_store store;

    store_fixture_open(fixture, &store);
    put(fixture, &store, path);

    assert_true(ki_store_get(&store, &fixture->key, fixture->target, &cubin));
    assert_string_equal(cubin.entry_name, "kiln_test");
    assert_int_equal(cubin.nvrtc_major, 13);
    assert_int_equal(cubin.threads, 128);
    assert_int_equal(cubin.registers, fixture->cubin.registers);
    assert_memory_equal(cubin.image.data, fixture->cubin.image.data, cubin.image.size);
    assert_int_equal(store.n_hits, 1);
    assert_int_equal(store.n_writes, 1);
    assert_int_equal(fixture->n_warnings, 0);
    ki_cubin_finish(&cubin, NULL);
    ki_store_close(&store);
}

static void get_misses_what_was_not_put(void **state)
{
    struct store_fixture *fixture = *state;
    struct ki_store store;

    store_fixture_open(fixture, &store);

    assert_false(get(fixture, &store));
    assert_int_equal(store.n_misses, 1);
    assert_int_equal(store.n_bad + store.n_faults, 0);
    assert_int_equal(fixture->n_warnings, 0);
    ki_store_close(&store);
}

static void open_makes_private_folder_with_tag(void **state)
{
    struct store_fixture *fixture = *state;
    char path[TMPDIR_PATH];
    struct ki_blob tag;
    struct ki_store store;
    struct stat st;

    store_fixture_open(fixture, &store);

    assert_int_equal(stat(fixture->root, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0700);
    tag = store_fixture_read(
        tmpdir_join(&fixture->dir, "cache/kiln-v1/CACHEDIR.TAG", path));
    assert_memory_equal(tag.data, "Signature: 8a477f597d28d172789f06886806bc55", 43);
    assert_int_equal(tmpdir_count(fixture->root, ""), 1);
    free(tag.data);
    ki_store_close(&store);
}

/* ---- layers ----------------------------------------------------------------------- */

static void get_reads_layer_behind_and_copies_nothing_up_field_59(void **state)
{
    struct store_fixture *fixture = *state;
    const char *behind[] = {fixture->root};
    char front[TMPDIR_PATH];
    char path[TMPDIR_PATH];
    struct ki_store store;

    store_fixture_open(fixture, &store);
    put(fixture, &store, path);
    ki_store_close(&store);
    fixture->options.writable = tmpdir_join(&fixture->dir, "front", front);
    fixture->options.read_only = behind;
    fixture->options.n_read_only = 1;
    store_fixture_open(fixture, &store);

    assert_true(get(fixture, &store));
    assert_int_equal(tmpdir_count(front, ".kiln"), 0);
    ki_store_close(&store);
}

static void put_shadows_layer_behind_field_59(void **state)
{
    struct store_fixture *fixture = *state;
    const char *behind[] = {fixture->root};
    char front[TMPDIR_PATH];
    char path[TMPDIR_PATH];
    struct ki_store store;

    store_fixture_open(fixture, &store);
    put(fixture, &store, path);
    ki_store_close(&store);
    fixture->options.writable = tmpdir_join(&fixture->dir, "front", front);
    fixture->options.read_only = behind;
    fixture->options.n_read_only = 1;
    store_fixture_open(fixture, &store);
    ki_cubin_finish(&fixture->cubin, NULL);
    fake_cubin_make("kiln_test", 9, &fixture->cubin);
    assert_true(ki_store_put(&store, &fixture->key, &fixture->cubin, NULL));

    assert_true(get(fixture, &store)); /* compares the image */
    ki_store_close(&store);
}

static void bad_entry_in_front_uncovers_layer_behind(void **state)
{
    struct store_fixture *fixture = *state;
    const char *behind[] = {fixture->root};
    char front[TMPDIR_PATH];
    char path[TMPDIR_PATH];
    struct ki_store store;

    store_fixture_open(fixture, &store);
    put(fixture, &store, path);
    ki_store_close(&store);
    fixture->options.writable = tmpdir_join(&fixture->dir, "front", front);
    fixture->options.read_only = behind;
    fixture->options.n_read_only = 1;
    store_fixture_open(fixture, &store);
    assert_true(ki_store_put(&store, &fixture->key, &fixture->cubin, NULL));
    store_fixture_path(front, &fixture->key, path);
    store_fixture_write(path, "garbage", 7);

    assert_true(get(fixture, &store));
    assert_int_equal(store.n_bad, 1);
    assert_int_equal(access(path, F_OK), -1);
    ki_store_close(&store);
}

static void bad_entry_in_read_only_layer_stays(void **state)
{
    struct store_fixture *fixture = *state;
    const char *behind[] = {fixture->root};
    char path[TMPDIR_PATH];
    struct ki_store store;

    store_fixture_open(fixture, &store);
    put(fixture, &store, path);
    ki_store_close(&store);
    store_fixture_write(path, "garbage", 7);
    fixture->options = (struct ki_store_options){.read_only = behind, .n_read_only = 1};
    store_fixture_open(fixture, &store);

    assert_false(get(fixture, &store));
    assert_false(ki_store_put(&store, &fixture->key, &fixture->cubin, NULL));
    assert_int_equal(store.n_bad, 1);
    assert_int_equal(access(path, F_OK), 0);
    ki_store_close(&store);
}

static void open_leaves_out_folders_that_are_missing_or_untrusted(void **state)
{
    struct store_fixture *fixture = *state;
    const char *behind[] = {"/no/such/folder", "relative", NULL, NULL};
    char wide[TMPDIR_PATH];
    char link[TMPDIR_PATH];
    struct ki_store store;

    behind[2] = tmpdir_join(&fixture->dir, "wide", wide);
    behind[3] = tmpdir_join(&fixture->dir, "link", link);
    assert_int_equal(mkdir(wide, 0777), 0);
    assert_int_equal(chmod(wide, 0777), 0);
    assert_int_equal(symlink(fixture->dir.path, link), 0);
    fixture->options.read_only = behind;
    fixture->options.n_read_only = KI_COUNT_OF(behind);
    store_fixture_open(fixture, &store);

    assert_int_equal(store.n_layers, 1);
    assert_true(store.has_writable);
    assert_int_equal(fixture->n_warnings, 4);
    ki_store_close(&store);
}

static void open_without_usable_writable_folder_warns_once_field_58(void **state)
{
    struct store_fixture *fixture = *state;
    static const char *const roots[] = {"/proc/kiln/cache", "/dev/null/cache",
                                        "relative"};

    for (size_t i = 0; i < KI_COUNT_OF(roots); i++) {
        struct ki_store store;

        fixture->options.writable = roots[i];
        fixture->n_warnings = 0;
        store_fixture_open(fixture, &store);
        assert_false(store.has_writable);
        assert_false(get(fixture, &store));
        assert_false(ki_store_put(&store, &fixture->key, &fixture->cubin, NULL));
        assert_int_equal(fixture->n_warnings, 1);
        ki_store_close(&store);
    }
}

static void open_without_writing_makes_nothing(void **state)
{
    struct store_fixture *fixture = *state;
    struct kiln_error why = {0};
    char path[TMPDIR_PATH];
    struct ki_store store;

    fixture->options.no_write = true;
    store_fixture_open(fixture, &store);
    assert_false(store.has_writable);
    assert_int_equal(access(fixture->root, F_OK), -1);
    ki_store_close(&store);

    fixture->options.no_write = false;
    store_fixture_open(fixture, &store);
    put(fixture, &store, path);
    ki_store_close(&store);

    fixture->options.no_write = true;
    store_fixture_open(fixture, &store);
    assert_true(get(fixture, &store));
    assert_false(ki_store_put(&store, &fixture->key, &fixture->cubin, &why));
    store_fixture_write(path, "bad", 3);
    assert_false(get(fixture, &store));
    assert_int_equal(access(path, F_OK), 0);
    ki_store_close(&store);
}

/* An operator has many caches: a message that says "8c" helps nobody. */
static void warnings_name_the_whole_path(void **state)
{
    struct store_fixture *fixture = *state;
    char entry[TMPDIR_PATH];
    char sub[TMPDIR_PATH];
    char dir[TMPDIR_PATH];
    struct kiln_error why = {0};
    struct ki_store store;

    store_fixture_open(fixture, &store);
    store_fixture_path(fixture->root, &fixture->key, entry);
    snprintf(sub, sizeof sub, "%s", entry);
    *strrchr(sub, '/') = '\0';
    tmpdir_join(&fixture->dir, "cache/kiln-v1", dir);

    assert_int_equal(chmod(dir, 0500), 0);
    assert_false(ki_store_put(&store, &fixture->key, &fixture->cubin, &why));
    assert_non_null(strstr(why.message, sub));
    assert_int_equal(chmod(dir, 0700), 0);

    put(fixture, &store, entry);
    assert_int_equal(chmod(sub, 0500), 0);
    assert_false(ki_store_put(&store, &fixture->key, &fixture->cubin, &why));
    assert_non_null(strstr(why.message, entry));

    assert_int_equal(chmod(entry, 0000), 0);
    assert_false(get(fixture, &store));
    assert_non_null(strstr(fixture->warning, entry));
    ki_store_close(&store);

    assert_int_equal(chmod(dir, 0000), 0);
    store_fixture_open(fixture, &store);
    assert_non_null(strstr(fixture->warning, dir));
    ki_store_close(&store);
}

static void open_refuses_world_writable_cache_field_57(void **state)
{
    struct store_fixture *fixture = *state;
    struct ki_store store;

    assert_int_equal(mkdir(fixture->root, 0700), 0);
    assert_int_equal(chmod(fixture->root, 01777), 0);
    store_fixture_open(fixture, &store);

    assert_false(store.has_writable);
    assert_int_equal(store.n_layers, 0);
    assert_non_null(strstr(fixture->warning, fixture->root));
    ki_store_close(&store);
}

static void put_refuses_sub_folder_that_is_a_link_field_57(void **state)
{
    struct store_fixture *fixture = *state;
    char path[TMPDIR_PATH];
    char other[TMPDIR_PATH];
    struct ki_store store;

    store_fixture_open(fixture, &store);
    store_fixture_path(fixture->root, &fixture->key, path);
    *strrchr(path, '/') = '\0';
    assert_int_equal(mkdir(tmpdir_join(&fixture->dir, "other", other), 0700), 0);
    assert_int_equal(symlink(other, path), 0);

    assert_false(ki_store_put(&store, &fixture->key, &fixture->cubin, NULL));
    assert_false(get(fixture, &store));
    assert_int_equal(tmpdir_count(other, ""), 0);
    assert_int_equal(store.n_faults, 2);
    ki_store_close(&store);
}

static void group_folder_is_used_only_when_allowed(void **state)
{
    struct store_fixture *fixture = *state;
    struct ki_store store;

    assert_int_equal(mkdir(fixture->root, 0700), 0);
    assert_int_equal(chmod(fixture->root, 0770), 0);
    store_fixture_open(fixture, &store);
    assert_false(store.has_writable);
    ki_store_close(&store);

    fixture->options.allow_group_writable = true;
    store_fixture_open(fixture, &store);
    assert_true(ki_store_put(&store, &fixture->key, &fixture->cubin, NULL));
    assert_true(get(fixture, &store));
    ki_store_close(&store);
}

/* ---- damage ----------------------------------------------------------------------- */

/* Damages the entry, which must then be a miss, gone, and replaced by the next put. */
static void assert_damage_is_survived(struct store_fixture *fixture,
                                      struct ki_store *store, const char *path,
                                      struct ki_blob bytes)
{
    uint64_t n_bad = store->n_bad;

    store_fixture_write(path, bytes.data, bytes.size);
    assert_false(get(fixture, store));
    assert_int_equal(store->n_bad, n_bad + 1);
    assert_int_equal(access(path, F_OK), -1);
}

static void get_deletes_entry_with_any_byte_changed_field_51(void **state)
{
    struct store_fixture *fixture = *state;
    char path[TMPDIR_PATH];
    struct ki_blob bytes;
    struct ki_store store;

    store_fixture_open(fixture, &store);
    put(fixture, &store, path);
    bytes = store_fixture_read(path);
    for (size_t i = 0; i < bytes.size; i++) {
        bytes.data[i] ^= 0x01;
        assert_damage_is_survived(fixture, &store, path, bytes);
        bytes.data[i] ^= 0x01;
    }
    put(fixture, &store, path);
    assert_true(get(fixture, &store));
    free(bytes.data);
    ki_store_close(&store);
}

static void get_deletes_truncated_entry_field_51(void **state)
{
    struct store_fixture *fixture = *state;
    char path[TMPDIR_PATH];
    struct ki_blob bytes;
    struct ki_store store;
    size_t size;

    store_fixture_open(fixture, &store);
    put(fixture, &store, path);
    bytes = store_fixture_read(path);
    size = bytes.size;
    for (bytes.size = 0; bytes.size < size; bytes.size++) {
        assert_damage_is_survived(fixture, &store, path, bytes);
    }
    /* One warning for all of them. */
    assert_int_equal(fixture->n_warnings, 1);
    put(fixture, &store, path);
    assert_true(get(fixture, &store));
    free(bytes.data);
    ki_store_close(&store);
}

/* Whoever can write the file can also sign it: the digest alone proves nothing. */
static void get_refuses_the_cubin_of_another_op(void **state)
{
    struct store_fixture *fixture = *state;
    struct ki_cubin other = {0};
    struct ki_store store;

    store_fixture_open(fixture, &store);
    fake_cubin_make("kiln_other", 0, &other);
    assert_true(ki_store_put(&store, &fixture->key, &other, NULL));

    assert_false(get(fixture, &store));
    assert_int_equal(store.n_bad, 1);
    assert_non_null(strstr(fixture->warning, "it holds kiln_other for sm_90"));
    ki_cubin_finish(&other, NULL);
    ki_store_close(&store);
}

static void get_refuses_the_cubin_of_another_target(void **state)
{
    struct store_fixture *fixture = *state;
    struct ki_cubin got = {0};
    struct ki_store store;
    struct ki_key *key = &fixture->key;

    store_fixture_open(fixture, &store);
    key->text_size = (size_t)snprintf(key->text, sizeof key->text,
                                      "format=1\nop=test\nn=0\ntarget=sm_80\n");
    ki_hash(key->text, key->text_size, key->digest);
    ki_hash_hex(key->digest, key->digest_hex);
    assert_true(ki_store_put(&store, key, &fixture->cubin, NULL));

    assert_false(ki_store_get(&store, key, (struct ki_target){8, 0}, &got));
    assert_int_equal(store.n_bad, 1);
    ki_store_close(&store);
}

static void get_deletes_entry_of_another_key(void **state)
{
    struct store_fixture *fixture = *state;
    struct ki_key other;
    char other_path[TMPDIR_PATH];
    char path[TMPDIR_PATH];
    struct ki_blob bytes;
    struct ki_store store;

    store_fixture_open(fixture, &store);
    put(fixture, &store, path);
    store_fixture_key(1, &other);
    assert_true(ki_store_put(&store, &other, &fixture->cubin, NULL));
    store_fixture_path(fixture->root, &other, other_path);
    bytes = store_fixture_read(other_path);

    assert_damage_is_survived(fixture, &store, path, bytes);
    assert_non_null(strstr(fixture->warning, "another key"));
    free(bytes.data);
    ki_store_close(&store);
}

static void get_refuses_entry_for_another_target_field_43(void **state)
{
    struct store_fixture *fixture = *state;
    struct fake_cubin_options options = {
        .entry_name = "kiln_test",
        .target = {.major = 10, .minor = 0},
        .registers = 24,
        .smem_bytes = 512,
    };
    struct ki_cubin cubin = {0};
    char path[TMPDIR_PATH];
    struct ki_store store;

    store_fixture_open(fixture, &store);
    free(fixture->cubin.image.data);
    fixture->cubin.image = fake_cubin_image(&options);
    fixture->cubin.target = options.target;
    put(fixture, &store, path);

    assert_false(ki_store_get(&store, &fixture->key, fixture->target, &cubin));
    assert_int_equal(store.n_bad, 1);
    assert_int_equal(access(path, F_OK), -1);
    ki_store_close(&store);
}

static void get_puts_up_with_strange_things_under_the_name_field_56(void **state)
{
    struct store_fixture *fixture = *state;
    char path[TMPDIR_PATH];
    struct ki_store store;

    store_fixture_open(fixture, &store);
    put(fixture, &store, path);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(symlink("/etc/passwd", path), 0);
    assert_false(get(fixture, &store));
    put(fixture, &store, path);
    assert_true(get(fixture, &store));

    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_false(get(fixture, &store)); /* does not wait for a writer */
    put(fixture, &store, path);
    assert_true(get(fixture, &store));

    assert_int_equal(truncate(path, (off_t)1 << 30), 0);
    assert_false(get(fixture, &store)); /* is not read */
    put(fixture, &store, path);
    assert_true(get(fixture, &store));

    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_false(get(fixture, &store));
    assert_false(ki_store_put(&store, &fixture->key, &fixture->cubin, NULL));
    ki_store_close(&store);
}

static void put_refuses_unverified_cubin_field_54(void **state)
{
    struct store_fixture *fixture = *state;
    struct ki_cubin empty = {.entry_name = "kiln_test", .threads = 128};
    struct ki_store store;

    store_fixture_open(fixture, &store);
    fixture->cubin.image.data[18] ^= 1; /* the machine */

    assert_false(ki_store_put(&store, &fixture->key, &empty, NULL));
    assert_false(ki_store_put(&store, &fixture->key, &fixture->cubin, NULL));
    assert_int_equal(tmpdir_count(fixture->root, ".kiln"), 0);
    ki_store_close(&store);
}

/* ---- compiler, last use --------------------------------------------------------- */

static void other_compiler_is_a_hit_unless_exact(void **state)
{
    struct store_fixture *fixture = *state;
    char path[TMPDIR_PATH];
    struct ki_store store;

    store_fixture_open(fixture, &store);
    put(fixture, &store, path);
    ki_store_close(&store);
    fixture->options.nvrtc_major = 12;
    fixture->options.nvrtc_minor = 8;
    store_fixture_open(fixture, &store);
    assert_true(get(fixture, &store));
    ki_store_close(&store);

    fixture->options.exact_compiler = true;
    store_fixture_open(fixture, &store);
    assert_false(get(fixture, &store));
    assert_int_equal(store.n_bad, 0);
    assert_int_equal(access(path, F_OK), 0);
    atomic_store(&store.nvrtc_major, 13);
    atomic_store(&store.nvrtc_minor, 0);
    assert_true(get(fixture, &store));
    atomic_store(&store.nvrtc_major, 0);
    assert_true(get(fixture, &store));
    ki_store_close(&store);
}

static void get_notes_last_use_once_a_day(void **state)
{
    struct store_fixture *fixture = *state;
    const struct timespec hour_ago[2] = {{.tv_sec = time(NULL) - 3600},
                                         {.tv_sec = time(NULL) - 3600}};
    const struct timespec days_ago[2] = {{.tv_sec = time(NULL) - 300000},
                                         {.tv_sec = time(NULL) - 300000}};
    char path[TMPDIR_PATH];
    struct ki_store store;
    struct stat st;

    store_fixture_open(fixture, &store);
    put(fixture, &store, path);
    assert_int_equal(utimensat(AT_FDCWD, path, hour_ago, 0), 0);
    assert_true(get(fixture, &store));
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mtime, hour_ago[0].tv_sec);

    assert_int_equal(utimensat(AT_FDCWD, path, days_ago, 0), 0);
    assert_true(get(fixture, &store));
    assert_int_equal(stat(path, &st), 0);
    assert_true(st.st_mtime > hour_ago[0].tv_sec);
    ki_store_close(&store);
}

#define TEST(name)                                                                       \
    cmocka_unit_test_setup_teardown(name, store_fixture_setup, store_fixture_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(get_gives_what_was_put),
        TEST(get_misses_what_was_not_put),
        TEST(open_makes_private_folder_with_tag),
        TEST(get_reads_layer_behind_and_copies_nothing_up_field_59),
        TEST(put_shadows_layer_behind_field_59),
        TEST(bad_entry_in_front_uncovers_layer_behind),
        TEST(bad_entry_in_read_only_layer_stays),
        TEST(open_leaves_out_folders_that_are_missing_or_untrusted),
        TEST(open_without_usable_writable_folder_warns_once_field_58),
        TEST(open_without_writing_makes_nothing),
        cmocka_unit_test_setup_teardown(warnings_name_the_whole_path,
                                        store_fixture_setup_plain_user,
                                        store_fixture_teardown),
        TEST(open_refuses_world_writable_cache_field_57),
        TEST(put_refuses_sub_folder_that_is_a_link_field_57),
        TEST(group_folder_is_used_only_when_allowed),
        TEST(get_deletes_entry_with_any_byte_changed_field_51),
        TEST(get_deletes_truncated_entry_field_51),
        TEST(get_refuses_the_cubin_of_another_op),
        TEST(get_refuses_the_cubin_of_another_target),
        TEST(get_deletes_entry_of_another_key),
        TEST(get_refuses_entry_for_another_target_field_43),
        TEST(get_puts_up_with_strange_things_under_the_name_field_56),
        TEST(put_refuses_unverified_cubin_field_54),
        TEST(other_compiler_is_a_hit_unless_exact),
        TEST(get_notes_last_use_once_a_day),
    };

    store_fixture_begin();
    return cmocka_run_group_tests_name("store", tests, NULL, NULL);
}
