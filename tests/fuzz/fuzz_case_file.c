/* SPDX-License-Identifier: Apache-2.0 */
/* Case files. What can be read runs on the reference, which must stay inside its arrays. */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kiln/kiln.h"

#include "case_file.h"
#include "fuzz.h"
#include "report.h"

/* More would be slow, and say nothing more. */
enum { BYTES_MAX = 1 << 22 };

static void run_reference(struct cli_case *c)
{
    struct kiln_error err = {0};
    char touched[256];

    if (c->call.total_bytes > BYTES_MAX) {
        return;
    }
    cli_call_bind_host(&c->call);
    if (kiln_reference(c->call.info->op, &c->call.shape, c->call.args, &err) != KILN_OK) {
        FUZZ_CHECK(err.message[0] != '\0');
    }
    FUZZ_CHECK(!cli_call_find_touched(&c->call, touched, sizeof touched));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct cli_case c;
    char path[64];
    int file = memfd_create("case", 0);

    FUZZ_CHECK(file >= 0);
    for (size_t done = 0; done < size;) {
        ssize_t n = write(file, data + done, size - done);
        FUZZ_CHECK(n > 0);
        done += (size_t)n;
    }
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    if (cli_case_read(path, &c) == CLI_DONE) {
        run_reference(&c);
        cli_case_finish(&c);
    }
    (void)close(file);
    return 0;
}
