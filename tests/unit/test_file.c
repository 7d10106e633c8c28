/* SPDX-License-Identifier: Apache-2.0 */
/* Folders that are trusted or not, and files that are whole or not there. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/attr.h"
#include "base/file.h"
#include "support/failing_mem.h"
#include "support/store_fixture.h"
#include "support/tmpdir.h"

enum { MAX_BYTES = 1 << 16, MANY = 1000 };

static const struct ki_dir_rules strict = {.parent = -1};

struct fixture {
    struct tmpdir dir;
    int fd;  /* of dir */
    int tmp; /* of dir/tmp */
    /* The file layer of a test: */
    struct ki_file_faults faults;
    struct ki_files files;
    int fail_nth; /* 0: none */
    int n_calls;
    int error;
    size_t most_bytes; /* of one transfer; 0: any */
};

static int fail_nth_call(void *user, enum ki_file_call call, size_t *size)
{
    struct fixture *fixture = user;

    (void)call;
    fixture->n_calls++;
    if (size != NULL && fixture->most_bytes != 0 && *size > fixture->most_bytes) {
        *size = fixture->most_bytes;
    }
    return fixture->n_calls == fixture->fail_nth ? fixture->error : 0;
}

static int setup(void **state)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);

    tmpdir_create(&fixture->dir);
    fixture->faults = (struct ki_file_faults){.before = fail_nth_call, .user = fixture};
    fixture->files.faults = &fixture->faults;
    fixture->error = EIO;
    *state = fixture;
    if (ki_file_open_dir(NULL, fixture->dir.path, strict, &fixture->fd, NULL) !=
            KILN_OK ||
        ki_file_make_dir(NULL, fixture->fd, "tmp") != 0) {
        return -1;
    }
    fixture->tmp = openat(fixture->fd, "tmp", O_RDONLY | O_DIRECTORY);
    return fixture->tmp < 0 ? -1 : 0;
}

static int teardown(void **state)
{
    struct fixture *fixture = *state;

    ki_file_close_dir(NULL, fixture->fd);
    ki_file_close_dir(NULL, fixture->tmp);
    tmpdir_remove(&fixture->dir);
    free(fixture);
    return 0;
}

static int publish(struct fixture *fixture, const char *name, const char *text)
{
    const struct ki_file_draft draft = {
        .tmp_dir = fixture->tmp,
        .dir = fixture->fd,
        .tmp_name = "draft",
        .name = name,
        .data = text,
        .size = strlen(text),
    };

    return ki_file_publish(&fixture->files, &draft);
}

static void assert_holds(const struct fixture *fixture, const char *name,
                         const char *text)
{
    struct ki_file_content file = {0};

    assert_int_equal(ki_file_read(NULL, fixture->fd, name, MAX_BYTES, NULL, &file), 0);
    assert_int_equal(file.bytes.size, strlen(text));
    assert_memory_equal(file.bytes.data, text, file.bytes.size);
    ki_blob_finish(&file.bytes, NULL);
}

/* ---- folders ---------------------------------------------------------------------- */

static void open_dir_judges_by_mode_field_57(void **state)
{
    static const struct {
        mode_t mode;
        bool allow_group, ok;
    } cases[] = {
        {0700, false, true},   {0755, false, true},  {0775, false, false},
        {0775, true, true},    {0777, true, false},  {01777, true, false},
        {01777, false, false}, {0702, false, false}, {02770, true, true},
    };
    struct fixture *fixture = *state;

    for (size_t i = 0; i < KI_COUNT_OF(cases); i++) {
        struct ki_dir_rules rules = {.parent = -1,
                                     .allow_group_writable = cases[i].allow_group};
        struct kiln_error err = {0};
        int fd = -1;

        assert_int_equal(chmod(fixture->dir.path, cases[i].mode), 0);
        if ((ki_file_open_dir(NULL, fixture->dir.path, rules, &fd, &err) == KILN_OK) !=
            cases[i].ok) {
            fail_msg("mode %04o: %s", (unsigned)cases[i].mode, err.message);
        }
        assert_true((fd >= 0) == cases[i].ok);
        ki_file_close_dir(NULL, fd);
    }
}

static void open_dir_refuses_link_to_folder_field_57(void **state)
{
    struct fixture *fixture = *state;
    struct kiln_error err = {0};
    static const char *const names[] = {"link", "link/", "link//", "link/.", "link/.//."};
    char link[TMPDIR_PATH];
    int fd = -1;

    tmpdir_join(&fixture->dir, "link", link);
    assert_int_equal(symlink("tmp", link), 0);
    for (size_t i = 0; i < KI_COUNT_OF(names); i++) {
        tmpdir_join(&fixture->dir, names[i], link);

        assert_int_equal(ki_file_open_dir(NULL, link, strict, &fd, &err), KILN_E_STORE);
        assert_non_null(strstr(err.message, link));
        assert_int_equal(fd, -1);
    }
}

static void open_dir_takes_a_folder_however_its_path_ends(void **state)
{
    struct fixture *fixture = *state;
    static const char *const names[] = {"tmp/", "tmp//", "tmp/.", "tmp/./", "."};
    char path[TMPDIR_PATH];

    for (size_t i = 0; i < KI_COUNT_OF(names); i++) {
        int fd = -1;

        tmpdir_join(&fixture->dir, names[i], path);
        assert_int_equal(ki_file_open_dir(NULL, path, strict, &fd, NULL), KILN_OK);
        ki_file_close_dir(NULL, fd);
    }
}

static void open_dir_accepts_folders_of_its_user_and_root_only(void **state)
{
    struct fixture *fixture = *state;
    struct kiln_error err = {0};
    int fd = -1;

    assert_int_equal(ki_file_open_dir(NULL, "/usr", strict, &fd, &err), KILN_OK);
    ki_file_close_dir(NULL, fd);
    fd = -1;
    /* Only root can give a folder away. */
    if (geteuid() == 0) {
        assert_int_equal(chown(fixture->dir.path, 12345, (gid_t)-1), 0);
        assert_int_equal(ki_file_open_dir(NULL, fixture->dir.path, strict, &fd, &err),
                         KILN_E_STORE);
        assert_non_null(strstr(err.message, "12345"));
    }
}

static void open_dir_refuses_relative_path(void **state)
{
    int fd = -1;

    (void)state;
    assert_int_equal(ki_file_open_dir(NULL, "tmp", strict, &fd, NULL), KILN_E_STORE);
}

static void open_dir_says_when_there_is_none(void **state)
{
    struct kiln_error err = {0};
    int fd = -1;

    (void)state;
    assert_int_equal(ki_file_open_dir(NULL, "/no/such/folder", strict, &fd, &err),
                     KILN_E_STORE);
    assert_int_equal(err.native_code, ENOENT);
}

static void make_dirs_makes_private_parents(void **state)
{
    struct fixture *fixture = *state;
    char path[TMPDIR_PATH];
    struct stat st;

    assert_int_equal(ki_file_make_dirs(NULL, tmpdir_join(&fixture->dir, "a/b/c", path)),
                     0);
    assert_int_equal(ki_file_make_dirs(NULL, path), 0);
    assert_int_equal(stat(tmpdir_join(&fixture->dir, "a", path), &st), 0);
    assert_int_equal(st.st_mode & 07777, 0700);
}

static void make_dir_inherits_permissions(void **state)
{
    static const mode_t modes[][2] = {
        {0700, 0700}, {0755, 0755}, {0775, 0775}, {01777, 0775}};
    struct fixture *fixture = *state;

    for (size_t i = 0; i < KI_COUNT_OF(modes); i++) {
        struct stat st;

        assert_int_equal(fchmod(fixture->fd, modes[i][0]), 0);
        assert_int_equal(ki_file_make_dir(NULL, fixture->fd, "sub"), 0);
        assert_int_equal(fstatat(fixture->fd, "sub", &st, 0), 0);
        assert_int_equal(st.st_mode & 07777, modes[i][1]);
        assert_int_equal(unlinkat(fixture->fd, "sub", AT_REMOVEDIR), 0);
    }
}

/* ---- reading ---------------------------------------------------------------------- */

static void read_refuses_what_is_no_plain_file(void **state)
{
    struct fixture *fixture = *state;
    static const struct {
        const char *name;
        int error;
    } cases[] = {{"tmp", EINVAL}, {"pipe", EINVAL}, {"link", ELOOP}, {"none", ENOENT}};

    assert_int_equal(mkfifoat(fixture->fd, "pipe", 0600), 0);
    assert_int_equal(symlinkat("/etc/passwd", fixture->fd, "link"), 0);
    for (size_t i = 0; i < KI_COUNT_OF(cases); i++) {
        struct ki_file_content file = {0};
        int error =
            ki_file_read(NULL, fixture->fd, cases[i].name, MAX_BYTES, NULL, &file);

        if (error != cases[i].error || file.bytes.data != NULL) {
            fail_msg("%s: %s", cases[i].name, strerror(error));
        }
    }
}

static void read_refuses_file_over_the_cap(void **state)
{
    struct fixture *fixture = *state;
    struct ki_file_content file = {0};

    assert_int_equal(publish(fixture, "file", "12345"), 0);

    assert_int_equal(ki_file_read(NULL, fixture->fd, "file", 4, NULL, &file), EFBIG);
    assert_null(file.bytes.data);
}

static void read_and_publish_put_up_with_short_transfers(void **state)
{
    struct fixture *fixture = *state;
    struct ki_file_content file = {0};

    fixture->most_bytes = 3;
    assert_int_equal(publish(fixture, "file", "one two three four"), 0);
    assert_holds(fixture, "file", "one two three four");
    assert_int_equal(
        ki_file_read(&fixture->files, fixture->fd, "file", MAX_BYTES, NULL, &file), 0);
    assert_int_equal(file.bytes.size, 18);
    ki_blob_finish(&file.bytes, NULL);
}

static void read_gives_back_memory_wherever_it_fails(void **state)
{
    struct fixture *fixture = *state;
    struct failing_mem failing;
    int error = EIO;

    assert_int_equal(publish(fixture, "file", "text"), 0);
    for (int n = 1; n < MANY && error != 0; n++) {
        struct ki_file_content file = {0};

        failing_mem_init(&failing, 0);
        fixture->n_calls = 0;
        fixture->fail_nth = n;
        error = ki_file_read(&fixture->files, fixture->fd, "file", MAX_BYTES,
                             &failing.mem, &file);
        ki_blob_finish(&file.bytes, &failing.mem);
        assert_int_equal(failing.n_live, 0);
        /* A failed close after the bytes are in loses nothing. */
        assert_true(error == 0 || file.bytes.data == NULL);
    }
    assert_int_equal(error, 0);
}

/* ---- publishing ------------------------------------------------------------------- */

static void publish_replaces_whole(void **state)
{
    struct fixture *fixture = *state;

    assert_int_equal(publish(fixture, "file", "a long first text"), 0);
    assert_int_equal(publish(fixture, "file", "second"), 0);

    assert_holds(fixture, "file", "second");
    assert_int_equal(tmpdir_count(fixture->dir.path, ""), 1);
}

static void publish_never_writes_into_an_existing_temporary(void **state)
{
    struct fixture *fixture = *state;

    assert_int_equal(symlinkat("../victim", fixture->tmp, "draft"), 0);

    assert_int_equal(publish(fixture, "file", "text"), EEXIST);
    assert_int_equal(faccessat(fixture->fd, "victim", F_OK, 0), -1);
}

static void publish_leaves_old_or_new_wherever_it_fails_field_51(void **state)
{
    static const int errors[] = {EIO, ENOSPC, EROFS, EACCES};
    struct fixture *fixture = *state;

    for (size_t i = 0; i < KI_COUNT_OF(errors); i++) {
        int error = -1;
        int n;

        for (n = 1; n < MANY && error != 0; n++) {
            fixture->fail_nth = 0;
            assert_int_equal(publish(fixture, "file", "old"), 0);
            fixture->n_calls = 0;
            fixture->fail_nth = n;
            fixture->error = errors[i];
            error = publish(fixture, "file", "new");
            fixture->fail_nth = 0;
            if (error != 0) {
                struct ki_file_content file = {0};

                assert_int_equal(error, errors[i]);
                assert_int_equal(ki_file_read(NULL, fixture->fd, "file", 9, NULL, &file),
                                 0);
                assert_true(memcmp(file.bytes.data, "old", 3) == 0 ||
                            memcmp(file.bytes.data, "new", 3) == 0);
                ki_blob_finish(&file.bytes, NULL);
            }
            assert_int_equal(tmpdir_count(fixture->dir.path, ""), 1);
        }
        assert_int_equal(error, 0);
        assert_true(n > 6);
    }
}

static void publish_takes_permissions_from_the_folder(void **state)
{
    struct fixture *fixture = *state;
    struct stat st;

    assert_int_equal(fchmod(fixture->fd, 0755), 0);
    assert_int_equal(publish(fixture, "file", "text"), 0);
    assert_int_equal(fstatat(fixture->fd, "file", &st, 0), 0);
    assert_int_equal(st.st_mode & 07777, 0644);
}

/* ---- removing --------------------------------------------------------------------- */

static struct ki_file_victim victim_of(const struct fixture *fixture)
{
    struct ki_file_victim victim = {
        .dir = fixture->fd,
        .tmp_dir = fixture->tmp,
        .name = "file",
        .tmp_name = "aside",
    };

    assert_int_equal(ki_file_stat(NULL, fixture->fd, "file", &victim.id), 0);
    return victim;
}

static void remove_same_removes_the_file_it_was_shown(void **state)
{
    struct fixture *fixture = *state;
    struct ki_file_victim victim;
    bool gone = false;

    assert_int_equal(publish(fixture, "file", "bad"), 0);
    victim = victim_of(fixture);

    assert_int_equal(ki_file_remove_same(NULL, &victim, &gone), 0);
    assert_true(gone);
    assert_int_equal(tmpdir_count(fixture->dir.path, ""), 0);
}

static void remove_same_spares_a_replacement(void **state)
{
    struct fixture *fixture = *state;
    struct ki_file_victim victim;
    bool gone = true;

    assert_int_equal(publish(fixture, "file", "bad"), 0);
    victim = victim_of(fixture);
    assert_int_equal(publish(fixture, "file", "good"), 0);

    assert_int_equal(ki_file_remove_same(NULL, &victim, &gone), 0);
    assert_false(gone);
    assert_holds(fixture, "file", "good");
}

/* Publishes in between the look and the move. */
static int publish_before_rename(void *user, enum ki_file_call call, size_t *size)
{
    struct fixture *fixture = user;

    (void)size;
    if (call == KI_FILE_RENAME && fixture->n_calls++ == 0) {
        fixture->files.faults = NULL;
        assert_int_equal(publish(fixture, "file", "good"), 0);
        fixture->files.faults = &fixture->faults;
    }
    return 0;
}

static void remove_same_puts_back_what_a_peer_published_meanwhile(void **state)
{
    struct fixture *fixture = *state;
    struct ki_file_victim victim;
    bool gone = true;

    assert_int_equal(publish(fixture, "file", "bad"), 0);
    victim = victim_of(fixture);
    fixture->n_calls = 0;
    fixture->faults.before = publish_before_rename;

    assert_int_equal(ki_file_remove_same(&fixture->files, &victim, &gone), 0);
    assert_false(gone);
    assert_holds(fixture, "file", "good");
    assert_int_equal(tmpdir_count(fixture->dir.path, ""), 1);
}

static void remove_same_accepts_that_it_is_gone(void **state)
{
    struct fixture *fixture = *state;
    struct ki_file_victim victim;
    bool gone = false;

    assert_int_equal(publish(fixture, "file", "bad"), 0);
    victim = victim_of(fixture);
    assert_int_equal(ki_file_remove(NULL, fixture->fd, "file"), 0);

    assert_int_equal(ki_file_remove_same(NULL, &victim, &gone), 0);
    assert_true(gone);
}

/* ---- listing ---------------------------------------------------------------------- */

static void list_gives_sorted_names(void **state)
{
    struct fixture *fixture = *state;
    struct ki_file_names names = {0};
    char name[16];

    for (int i = 0; i < 100; i++) {
        snprintf(name, sizeof name, "f%02d", (i * 37) % 100);
        assert_int_equal(publish(fixture, name, "x"), 0);
    }
    assert_int_equal(ki_file_list(NULL, fixture->fd, NULL, &names), 0);
    assert_int_equal(names.n, 101);
    for (size_t i = 1; i < names.n; i++) {
        assert_true(strcmp(names.names[i - 1], names.names[i]) < 0);
    }
    ki_file_names_finish(&names, NULL);
}

static void list_gives_back_memory_wherever_it_fails(void **state)
{
    struct fixture *fixture = *state;
    int error = ENOMEM;

    assert_int_equal(publish(fixture, "a", "x"), 0);
    for (int n = 1; n < MANY && error != 0; n++) {
        struct ki_file_names names = {0};
        struct failing_mem failing;

        failing_mem_init(&failing, n);
        error = ki_file_list(NULL, fixture->fd, &failing.mem, &names);
        assert_true(error == 0 || error == ENOMEM);
        ki_file_names_finish(&names, &failing.mem);
        assert_int_equal(failing.n_live, 0);
    }
    assert_int_equal(error, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(open_dir_judges_by_mode_field_57),
        TEST(open_dir_refuses_link_to_folder_field_57),
        TEST(open_dir_takes_a_folder_however_its_path_ends),
        TEST(open_dir_accepts_folders_of_its_user_and_root_only),
        TEST(open_dir_refuses_relative_path),
        TEST(open_dir_says_when_there_is_none),
        TEST(make_dirs_makes_private_parents),
        TEST(make_dir_inherits_permissions),
        TEST(read_refuses_what_is_no_plain_file),
        TEST(read_refuses_file_over_the_cap),
        TEST(read_and_publish_put_up_with_short_transfers),
        TEST(read_gives_back_memory_wherever_it_fails),
        TEST(publish_replaces_whole),
        TEST(publish_never_writes_into_an_existing_temporary),
        TEST(publish_leaves_old_or_new_wherever_it_fails_field_51),
        TEST(publish_takes_permissions_from_the_folder),
        TEST(remove_same_removes_the_file_it_was_shown),
        TEST(remove_same_spares_a_replacement),
        TEST(remove_same_puts_back_what_a_peer_published_meanwhile),
        TEST(remove_same_accepts_that_it_is_gone),
        TEST(list_gives_sorted_names),
        TEST(list_gives_back_memory_wherever_it_fails),
    };

    store_fixture_begin();
    return cmocka_run_group_tests_name("file", tests, NULL, NULL);
}
