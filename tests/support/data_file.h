/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading the files under tests/, whose folder KILN_TEST_DATA names. Anything wrong with
 * them fails the test at hand.
 */
#ifndef KI_TESTS_SUPPORT_DATA_FILE_H
#define KI_TESTS_SUPPORT_DATA_FILE_H

#include <jansson.h>
#include <stddef.h>

/* The whole file "<folder>/<name>", ending in a NUL that size does not count.
 * Owner: the caller's, for free. */
char *data_file_read(const char *folder, const char *name, size_t *size);

/* The same as JSON. Owner: the caller's, for json_decref. */
json_t *data_file_json(const char *folder, const char *name);

#endif
