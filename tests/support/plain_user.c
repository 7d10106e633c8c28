/* SPDX-License-Identifier: Apache-2.0 */
/* See plain_user.h. The real user stays root, so that there is a way back. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "support/plain_user.h"

enum { NOBODY = 65534 };

static void check(int result, const char *call)
{
    if (result != 0) {
        perror(call);
        abort();
    }
}

void plain_user_begin(const char *dir)
{
    if (geteuid() == 0) {
        check(chown(dir, NOBODY, (gid_t)-1), "chown");
        check(seteuid(NOBODY), "seteuid");
    }
}

void plain_user_end(void)
{
    if (getuid() == 0 && geteuid() != 0) {
        check(seteuid(0), "seteuid");
    }
}
