/* SPDX-License-Identifier: Apache-2.0 */
/* Every launch of a launcher many times, between two system calls that mark begin and end:
 * for test_launch_strace.py. */
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#include "support/fake_kiln.h"

enum { N_ROUNDS = 1000 };

static _Alignas(16) const unsigned char memory[64]; /* every input: nothing reads it */

static int launch_all(const struct fake_kiln *fake, struct kiln_launcher *launcher)
{
    const struct kiln_layout *layout = kiln_launcher_layout(launcher);
    unsigned char args[FAKE_ARGS];
    int n_failed = 0;

    for (size_t i = 0; i < layout->n_launches; i++) {
        fake_kiln_args(layout->launches[i].op, 5, memory, args);
        n_failed +=
            kiln_launcher_launch(launcher, i, args, fake->stream, NULL) != KILN_OK;
    }
    return n_failed;
}

/* There is no such file descriptor, so nothing is written. */
static void mark(const char *text, size_t size)
{
    if (write(-1, text, size) >= 0) {
        (void)fputs("a mark was written\n", stderr);
    }
}

int main(void)
{
    struct kiln_deployment d = fake_kiln_deployment();
    struct kiln_launcher *launcher = NULL;
    struct fake_kiln *fake;
    void *state;
    int n_failed = 0;

    if (fake_kiln_setup_open(&state) != 0) {
        return 1;
    }
    fake = state;
    if (kiln_launcher_create(fake->kiln, &d, NULL, &launcher, &fake->err) != KILN_OK) {
        (void)fprintf(stderr, "%s\n", fake->err.message);
        return 1;
    }
    mark("begin", 5);
    for (int round = 0; round < N_ROUNDS; round++) {
        n_failed += launch_all(fake, launcher);
    }
    mark("end", 3);
    if (kiln_launcher_destroy(&launcher, NULL) != KILN_OK ||
        fake_kiln_teardown(&state) != 0) {
        return 1;
    }
    return n_failed == 0 ? 0 : 1;
}
