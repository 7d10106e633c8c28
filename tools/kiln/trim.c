/* SPDX-License-Identifier: Apache-2.0 */
/* kiln trim: shrink a cache folder, oldest use first. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "kiln/store.h"

#include "args.h"
#include "cache_flags.h"
#include "commands.h"
#include "report.h"

static const char help[] =
    "usage: kiln trim --max-bytes N [--cache DIR]\n"
    "\n"
    "Deletes entries, oldest use first, until at most N bytes are left.\n";

static int run(int argc, char **argv)
{
    struct cli_flags flags = {0};
    struct kiln_error err;
    const char *cache = NULL;
    int64_t max_bytes = -1, n_removed = 0, bytes_left = 0;
    char *dir;

    cli_add_text(&flags, "--cache", &cache);
    cli_add_integer(&flags, "--max-bytes", 0, INT64_MAX, &max_bytes);
    int status = cli_args_parse_flags(&flags, argc, argv);
    if (status != CLI_DONE) {
        return status;
    }
    if (max_bytes < 0) {
        return cli_wrong("--max-bytes: missing");
    }
    status = cli_cache_dir(cache, &dir);
    if (status != CLI_DONE) {
        return status;
    }
    if (kiln_store_trim(dir, max_bytes, &n_removed, &bytes_left, &err) != KILN_OK) {
        status = cli_report("", &err, false);
    } else {
        (void)printf("%" PRId64 " removed, %" PRId64 " bytes left\n", n_removed,
                     bytes_left);
    }
    free(dir);
    return status;
}

const struct cli_command cli_trim = {"trim", "shrink a cache", help, run};
