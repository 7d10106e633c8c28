/* SPDX-License-Identifier: Apache-2.0 */
/* Root can write anywhere: tests of what a user cannot write to are run as somebody else. */
#ifndef TESTS_SUPPORT_PLAIN_USER_H
#define TESTS_SUPPORT_PLAIN_USER_H

/* Run by root: the folder, which is empty, becomes a plain user's, and so does the process until
 * plain_user_end. Whatever fails here ends the test program. */
void plain_user_begin(const char *dir);

/* For a teardown: does nothing where the other was not called. */
void plain_user_end(void);

#endif
