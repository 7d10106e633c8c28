/* SPDX-License-Identifier: Apache-2.0 */
/* Warming on a machine that starts no thread: the linker puts a refusal in its place. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <cmocka.h>

#include "support/fake_kiln.h"

int __wrap_pthread_create(pthread_t *out, const pthread_attr_t *attributes,
                          void *(*function)(void *), void *argument);

int __wrap_pthread_create(pthread_t *out, const pthread_attr_t *attributes,
                          void *(*function)(void *), void *argument)
{
    (void)out;
    (void)attributes;
    (void)function;
    (void)argument;
    function_called();
    return EAGAIN;
}

static void warm_works_where_the_system_refuses_threads_field_48(void **state)
{
    struct fake_kiln *fake = *state;
    struct kiln_warm_options options = {.n_jobs = 8};
    struct kiln_request requests[8];
    struct kiln_warm_summary summary;

    for (int i = 0; i < 8; i++) {
        requests[i] = (struct kiln_request){
            .op = KILN_OP_GLOBAL_TOPK,
            .shape = fake_kiln_shape(i + 1),
            .target = "sm_90",
        };
    }
    expect_function_call(__wrap_pthread_create);
    assert_int_equal(kiln_warm(fake->kiln, requests, 8, &options, &summary, &fake->err),
                     KILN_OK);

    assert_int_equal(summary.n_compiled, 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            warm_works_where_the_system_refuses_threads_field_48, fake_kiln_setup_open,
            fake_kiln_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
