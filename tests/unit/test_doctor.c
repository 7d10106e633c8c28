/* SPDX-License-Identifier: Apache-2.0 */
/* The doctor finds what is there and what is not, and has advice for each fault. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "support/fake_kiln.h"

struct findings {
    int n;
    bool nvrtc_fault, cache_ok, driver_or_gpu;
};

static void keep_finding(void *user, const struct kiln_finding *finding)
{
    struct findings *findings = user;

    findings->n++;
    assert_non_null(finding->text);
    assert_true(finding->state != KILN_FINDING_FAULT || finding->advice != NULL);
    findings->nvrtc_fault |=
        strcmp(finding->topic, "nvrtc") == 0 && finding->state == KILN_FINDING_FAULT;
    findings->cache_ok |= strcmp(finding->topic, "cache") == 0 &&
                          finding->state == KILN_FINDING_OK &&
                          strstr(finding->text, "1 kernels") != NULL;
    findings->driver_or_gpu |= strcmp(finding->topic, "driver") == 0;
}

static void doctor_looks_at_everything(void **state)
{
    struct fake_kiln *fake = *state;
    struct findings findings = {0};

    assert_int_equal(fake_kiln_open(fake), KILN_OK);
    assert_int_equal(fake_kiln_build(fake, 512), KILN_OK);
    fake_kiln_close(fake);
    fake->without_nvrtc = true;
    assert_int_equal(fake_kiln_open(fake), KILN_OK);
    assert_int_equal(kiln_doctor(fake->kiln, keep_finding, &findings, &fake->err),
                     KILN_OK);

    assert_true(findings.nvrtc_fault);
    assert_true(findings.cache_ok);
    assert_true(findings.driver_or_gpu);
}

static void doctor_refuses_null(void **state)
{
    struct fake_kiln *fake = *state;
    struct kiln *none = NULL;

    assert_int_equal(kiln_doctor(none, keep_finding, NULL, NULL), KILN_E_ARGUMENT);
    assert_int_equal(kiln_doctor(fake->kiln, NULL, NULL, NULL), KILN_E_ARGUMENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(doctor_looks_at_everything, fake_kiln_setup,
                                        fake_kiln_teardown),
        cmocka_unit_test_setup_teardown(doctor_refuses_null, fake_kiln_setup_open,
                                        fake_kiln_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
