/* SPDX-License-Identifier: Apache-2.0 */
/* Counts as tests write them. */
#ifndef TESTS_SUPPORT_COUNT_H
#define TESTS_SUPPORT_COUNT_H

#include <stdint.h>

#include "kiln/op/common.h"

static inline struct kiln_count value(int32_t n)
{
    return (struct kiln_count){.value = n, .kind = KILN_COUNT_VALUE};
}

#endif
