/* SPDX-License-Identifier: Apache-2.0 */
/* What tests of the store start from: a folder, keys and cubins that need no compiler. */
#ifndef TESTS_SUPPORT_STORE_FIXTURE_H
#define TESTS_SUPPORT_STORE_FIXTURE_H

#include "build/store.h"
#include "build/store_layer.h"
#include "support/tmpdir.h"

struct store_fixture {
    struct tmpdir dir;
    char root[TMPDIR_PATH]; /* <dir>/cache, not made yet */
    struct ki_store_options options;
    struct ki_log log;
    struct ki_key key;
    struct ki_cubin cubin; /* of key, for target */
    struct ki_target target;
    int n_warnings;
    char warning[2048]; /* the last one */
};

/* First in main: a umask that the tests know, and folders in memory, where a sync is free,
 * unless TMPDIR says otherwise. */
void store_fixture_begin(void);

/* Fixture functions; *state is the struct. */
int store_fixture_setup(void **state);
int store_fixture_setup_plain_user(void **state); /* see plain_user.h */
int store_fixture_teardown(void **state);

/* A store with the fixture's options; failing ends the test. */
void store_fixture_open(struct store_fixture *fixture, struct ki_store *store);

/* A key that differs by n. */
void store_fixture_key(int n, struct ki_key *out);

/* The path of a key's entry below root. */
void store_fixture_path(const char *root, const struct ki_key *key,
                        char out[TMPDIR_PATH]);

/* The file whole; the caller frees data. */
struct ki_blob store_fixture_read(const char *path);
void store_fixture_write(const char *path, const void *data, size_t size);

#endif
