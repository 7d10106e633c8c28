/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The given cases of an op against its reference. Every buffer is exactly as large as it
 * has to be, so that a sanitizer sees any step beside it.
 */
#ifndef KI_TESTS_SUPPORT_CASE_CHECK_H
#define KI_TESTS_SUPPORT_CASE_CHECK_H

#include <stddef.h>

/* Runs tests/cases/<op>-100-<i>.json; fails the test at the first difference. */
void case_check(const char *op, size_t i);

#endif
