/* SPDX-License-Identifier: Apache-2.0 */
/* Which request a token is of, and what stands for none. */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "kiln/ops.h"
#include "base/attr.h"
#include "support/case_check.h"
#include "support/report_check.h"

enum { TOKENS = 6, REQUESTS = 4, PAD = -9 };

struct token_to_req_case {
    const char *label;
    int32_t start[REQUESTS + 1];
    int32_t want[TOKENS];
};

static void run(const int32_t *start, int32_t num_requests, int64_t pad, int32_t *out)
{
    const struct kiln_token_to_req_shape shape = {.pad_req = pad};
    const struct kiln_token_to_req_args args = {
        .query_start_loc = start,
        .token_to_req = out,
        .num_tokens = TOKENS,
        .num_requests = num_requests,
    };
    struct kiln_error err = {0};

    if (kiln_reference_token_to_req(&shape, &args, &err) != KILN_OK) {
        fail_msg("%s", err.message);
    }
}

static void token_to_req_is_the_request_whose_tokens_hold_it(void **state)
{
    static const struct token_to_req_case cases[] = {
        {"one each and padding", {0, 1, 2, 3, 4}, {0, 1, 2, 3, PAD, PAD}},
        {"one long request", {0, 0, 0, 6, 6}, {2, 2, 2, 2, 2, 2}},
        {"requests of zero length have none", {0, 2, 2, 2, 5}, {0, 0, 3, 3, 3, PAD}},
        {"the last past the launch", {0, 1, 4, 100, 100}, {0, 1, 1, 1, 2, 2}},
        {"not rebased", {2, 4, 5, 5, 5}, {PAD, PAD, 0, 0, 1, PAD}},
        {"from before the launch", {-3, 1, 2, 2, 3}, {0, 1, 3, PAD, PAD, PAD}},
        {"all zero", {0, 0, 0, 0, 0}, {PAD, PAD, PAD, PAD, PAD, PAD}},
        {"all past the launch", {7, 8, 9, 9, 10}, {PAD, PAD, PAD, PAD, PAD, PAD}},
        {"the whole of int32",
         {INT32_MIN, INT32_MIN, INT32_MAX, INT32_MAX, INT32_MAX},
         {1, 1, 1, 1, 1, 1}},
    };

    (void)state;
    for (size_t i = 0; i < KI_COUNT_OF(cases); i++) {
        int32_t got[TOKENS];
        memset(got, 0x55, sizeof(got));
        run(cases[i].start, REQUESTS, PAD, got);
        for (int t = 0; t < TOKENS; t++) {
            if (got[t] != cases[i].want[t]) {
                fail_msg("%s: token %d has %d, expected %d", cases[i].label, t, got[t],
                         cases[i].want[t]);
            }
        }
    }
}

static void token_to_req_pads_with_any_int32(void **state)
{
    static const int32_t pads[] = {0, -1, 5, INT32_MIN, INT32_MAX};
    static const int32_t start[] = {0};

    (void)state;
    for (size_t i = 0; i < KI_COUNT_OF(pads); i++) {
        int32_t got[TOKENS];
        run(start, 0, pads[i], got);
        assert_int_equal(got[0], pads[i]);
        assert_int_equal(got[TOKENS - 1], pads[i]);
    }
}

static void token_to_req_reports_nothing(void **state)
{
    static const int32_t start[] = {-3, 1, 2, 2, 3};
    const struct kiln_token_to_req_shape shape = {.pad_req = PAD};
    struct report_room room;
    int32_t out[TOKENS];
    const struct kiln_token_to_req_args args = {
        .query_start_loc = start,
        .token_to_req = out,
        .num_tokens = TOKENS,
        .num_requests = REQUESTS,
        .report = report_begin(&room),
    };
    struct kiln_error err = {0};

    (void)state;
    assert_int_equal(kiln_reference_token_to_req(&shape, &args, &err), KILN_OK);
    report_check(&room, NULL, 0);
}

static void token_to_req_refuses_what_is_no_int32(void **state)
{
    static const struct kiln_token_to_req_args none = {.num_tokens = 0};
    const struct kiln_token_to_req_shape shape = {.pad_req = (int64_t)1 << 31};
    struct kiln_error err = {0};

    (void)state;
    assert_int_equal(kiln_reference_token_to_req(&shape, &none, &err), KILN_E_SHAPE);
    assert_non_null(strstr(err.message, "pad_req = 2147483648"));
}

static void token_to_req_of_no_tokens_needs_no_arrays(void **state)
{
    static const struct kiln_token_to_req_args none = {.num_tokens = 0};
    const struct kiln_token_to_req_shape shape = {.pad_req = 0};
    struct kiln_error err = {0};

    (void)state;
    assert_int_equal(kiln_reference_token_to_req(&shape, &none, &err), KILN_OK);
}

static void token_to_req_equals_the_given_cases(void **state)
{
    (void)state;
    for (size_t i = 0; i < 12; i++) {
        case_check("token_to_req", i);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(token_to_req_is_the_request_whose_tokens_hold_it),
        cmocka_unit_test(token_to_req_pads_with_any_int32),
        cmocka_unit_test(token_to_req_reports_nothing),
        cmocka_unit_test(token_to_req_refuses_what_is_no_int32),
        cmocka_unit_test(token_to_req_of_no_tokens_needs_no_arrays),
        cmocka_unit_test(token_to_req_equals_the_given_cases),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
