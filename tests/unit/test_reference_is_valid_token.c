/* SPDX-License-Identifier: Apache-2.0 */
/* Which tokens of a padded batch count as real. */
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

enum { TOKENS = 5 };

static const int64_t mapping[TOKENS] = {0, -1, INT64_MAX, INT64_MIN, 7};

struct validity_case {
    const char *label;
    int64_t dcp_world;
    const int64_t *mapping;
    struct kiln_count live;
    uint8_t want[TOKENS];
};

static void run(const struct validity_case *c, uint8_t *out)
{
    const struct kiln_is_valid_token_shape shape = {.dcp_world = c->dcp_world};
    const struct kiln_is_valid_token_args args = {
        .slot_mapping = c->mapping,
        .is_valid_token = out,
        .live_tokens = c->live,
        .num_tokens = TOKENS,
    };
    struct kiln_error err = {0};

    if (kiln_reference_is_valid_token(&shape, &args, &err) != KILN_OK) {
        fail_msg("%s", err.message);
    }
}

static void is_valid_token_is_live_and_mapped_field_28(void **state)
{
    static const int32_t three = 3;
#define VALUE(n)                                                                         \
    {                                                                                    \
        .value = (n), .kind = KILN_COUNT_VALUE                                           \
    }
    static const struct validity_case cases[] = {
        {"nothing given", 1, NULL, {.kind = KILN_COUNT_ABSENT}, {1, 1, 1, 1, 1}},
        {"mapped", 1, mapping, {.kind = KILN_COUNT_ABSENT}, {1, 0, 1, 0, 1}},
        {"live", 1, NULL, VALUE(3), {1, 1, 1, 0, 0}},
        {"both", 1, mapping, VALUE(3), {1, 0, 1, 0, 0}},
        {"none live", 1, mapping, VALUE(0), {0, 0, 0, 0, 0}},
        {"less than none", 1, NULL, VALUE(INT32_MIN), {0, 0, 0, 0, 0}},
        {"more than there are", 1, NULL, VALUE(INT32_MAX), {1, 1, 1, 1, 1}},
        {"from memory",
         1,
         mapping,
         {.address = &three, .kind = KILN_COUNT_DEVICE},
         {1, 0, 1, 0, 0}},
        {"several ranks", 2, mapping, {.kind = KILN_COUNT_ABSENT}, {1, 1, 1, 1, 1}},
        {"live on several ranks", 8, mapping, VALUE(2), {1, 1, 0, 0, 0}},
    };
#undef VALUE

    (void)state;
    for (size_t i = 0; i < KI_COUNT_OF(cases); i++) {
        uint8_t got[TOKENS];
        memset(got, 0x55, sizeof(got));
        run(&cases[i], got);
        for (int t = 0; t < TOKENS; t++) {
            if (got[t] != cases[i].want[t]) {
                fail_msg("%s: token %d has %d, expected %d", cases[i].label, t, got[t],
                         cases[i].want[t]);
            }
        }
    }
}

static void is_valid_token_reports_a_count_out_of_range(void **state)
{
    static const int32_t counts[] = {INT32_MIN, -1, TOKENS + 1, INT32_MAX, 0, TOKENS};
    const struct kiln_is_valid_token_shape shape = {.dcp_world = 1};
    struct kiln_error err = {0};

    (void)state;
    for (size_t i = 0; i < KI_COUNT_OF(counts); i++) {
        const struct kiln_report_entry want = {KILN_OP_IS_VALID_TOKEN, -1, -1,
                                               KILN_REASON_LIVE_TOKENS, counts[i]};
        uint8_t out[TOKENS];
        struct report_room room;
        struct kiln_is_valid_token_args args = {
            .slot_mapping = mapping,
            .is_valid_token = out,
            .live_tokens = {.address = &counts[i], .kind = KILN_COUNT_DEVICE},
            .num_tokens = TOKENS,
            .report = report_begin(&room),
        };
        assert_int_equal(kiln_reference_is_valid_token(&shape, &args, &err), KILN_OK);
        report_check(&room, &want, i < 4 ? 1 : 0);
        args.num_tokens = 0;
        args.report = report_begin(&room);
        assert_int_equal(kiln_reference_is_valid_token(&shape, &args, &err), KILN_OK);
        report_check(&room, NULL, 0);
    }
}

static void is_valid_token_refuses_no_ranks(void **state)
{
    const struct kiln_is_valid_token_shape shape = {.dcp_world = 0};
    const struct kiln_is_valid_token_args args = {.num_tokens = 0};
    struct kiln_error err = {0};

    (void)state;
    assert_int_equal(kiln_reference_is_valid_token(&shape, &args, &err), KILN_E_SHAPE);
    assert_non_null(strstr(err.message, "dcp_world = 0"));
}

static void is_valid_token_equals_the_given_cases(void **state)
{
    (void)state;
    for (size_t i = 0; i < 12; i++) {
        case_check("is_valid_token", i);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(is_valid_token_is_live_and_mapped_field_28),
        cmocka_unit_test(is_valid_token_reports_a_count_out_of_range),
        cmocka_unit_test(is_valid_token_refuses_no_ranks),
        cmocka_unit_test(is_valid_token_equals_the_given_cases),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
