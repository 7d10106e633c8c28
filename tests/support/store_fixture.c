/* SPDX-License-Identifier: Apache-2.0 */
/* What tests of the store start from. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/fake_cubin.h"
#include "support/plain_user.h"
#include "support/store_fixture.h"

static void keep_warning(void *user, enum kiln_log_level level, const char *text)
{
    struct store_fixture *fixture = user;

    if (level == KILN_LOG_WARN) {
        fixture->n_warnings++;
        snprintf(fixture->warning, sizeof fixture->warning, "%s", text);
    }
}

void store_fixture_begin(void)
{
    (void)umask(022);
    if (access("/dev/shm", W_OK) == 0) {
        (void)setenv("TMPDIR", "/dev/shm", 0);
    }
}

int store_fixture_setup(void **state)
{
    struct store_fixture *fixture = calloc(1, sizeof *fixture);

    tmpdir_create(&fixture->dir);
    tmpdir_join(&fixture->dir, "cache", fixture->root);
    fixture->options.writable = fixture->root;
    fixture->target = (struct ki_target){.major = 9, .minor = 0};
    fixture->log =
        (struct ki_log){.fn = keep_warning, .user = fixture, .level = KILN_LOG_DEBUG};
    store_fixture_key(0, &fixture->key);
    fake_cubin_make("kiln_test", 0, &fixture->cubin);
    *state = fixture;
    return 0;
}

int store_fixture_setup_plain_user(void **state)
{
    int status = store_fixture_setup(state);

    if (status == 0) {
        const struct store_fixture *fixture = *state;

        plain_user_begin(fixture->dir.path);
    }
    return status;
}

int store_fixture_teardown(void **state)
{
    struct store_fixture *fixture = *state;

    plain_user_end();
    ki_cubin_finish(&fixture->cubin, NULL);
    tmpdir_remove(&fixture->dir);
    free(fixture);
    return 0;
}

void store_fixture_open(struct store_fixture *fixture, struct ki_store *store)
{
    assert_int_equal(ki_store_open(store, &fixture->options, NULL, &fixture->log, NULL),
                     KILN_OK);
}

void store_fixture_key(int n, struct ki_key *out)
{
    memset(out, 0, sizeof *out);
    out->text_size = (size_t)snprintf(out->text, sizeof out->text,
                                      "format=1\nop=test\nn=%d\ntarget=sm_90\n", n);
    ki_hash(out->text, out->text_size, out->digest);
    ki_hash_hex(out->digest, out->digest_hex);
}

void store_fixture_path(const char *root, const struct ki_key *key, char out[TMPDIR_PATH])
{
    assert_true(snprintf(out, TMPDIR_PATH, "%s/kiln-v1/%.2s/%s.kiln", root,
                         key->digest_hex, key->digest_hex + 2) < TMPDIR_PATH);
}

struct ki_blob store_fixture_read(const char *path)
{
    FILE *file = fopen(path, "rb");
    struct ki_blob blob = {0};

    assert_non_null(file);
    blob.data = malloc(KI_STORE_ENTRY_MAX);
    blob.size = fread(blob.data, 1, KI_STORE_ENTRY_MAX, file);
    assert_int_equal(fclose(file), 0);
    return blob;
}

void store_fixture_write(const char *path, const void *data, size_t size)
{
    FILE *file = fopen(path, "wb");

    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}
