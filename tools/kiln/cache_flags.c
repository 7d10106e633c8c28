/* SPDX-License-Identifier: Apache-2.0 */
/* The library wants folders from the root and no default of its own; this gives it
 * both. */
#include <stdlib.h>
#include <string.h>

#include "kiln/kiln.h"

#include "cache_flags.h"
#include "report.h"
#include "text_file.h"

int cli_cache_dir(const char *flag, char **out)
{
    char dir[4096];
    struct kiln_error err;

    /* check takes a list of folders, and would never find this one */
    if (flag != NULL && strchr(flag, ':') != NULL) {
        return cli_wrong("--cache: \"%s\": expected one folder, with no ':' in its name",
                         flag);
    }
    if (flag == NULL) {
        if (kiln_default_cache_dir(dir, sizeof dir, &err) != KILN_OK) {
            return cli_report("--cache", &err, false);
        }
        flag = dir;
    }
    *out = cli_absolute_path(flag);
    return *out != NULL ? CLI_DONE : CLI_FAILED;
}

static int add_dir(struct cli_cache_dirs *dirs, const char *name, size_t len)
{
    char *dir;
    int status;

    if (len == 0) {
        return cli_wrong("--cache: an empty folder name, expected DIR[:DIR...]");
    }
    dir = strndup(name, len);
    if (dir == NULL) {
        return cli_failed("out of memory");
    }
    status = cli_cache_dir(dir, &dirs->items[dirs->n]);
    free(dir);
    dirs->n += status == CLI_DONE ? 1 : 0;
    return status;
}

int cli_cache_dirs(const char *flag, struct cli_cache_dirs *out)
{
    size_t n_most = 1;
    int status = CLI_DONE;

    for (const char *c = flag; c != NULL && *c != '\0'; c++) {
        n_most += *c == ':' ? 1 : 0;
    }
    *out = (struct cli_cache_dirs){.items = calloc(n_most, sizeof *out->items)};
    if (out->items == NULL) {
        return cli_failed("out of memory");
    }
    if (flag == NULL) {
        status = cli_cache_dir(NULL, &out->items[0]);
        out->n = status == CLI_DONE ? 1 : 0;
    }
    while (flag != NULL && status == CLI_DONE) {
        size_t len = strcspn(flag, ":");

        status = add_dir(out, flag, len);
        flag = flag[len] == ':' ? flag + len + 1 : NULL;
    }
    if (status != CLI_DONE) {
        cli_cache_dirs_finish(out);
    }
    return status;
}

void cli_cache_dirs_finish(struct cli_cache_dirs *dirs)
{
    for (size_t i = 0; i < dirs->n; i++) {
        free(dirs->items[i]);
    }
    free(dirs->items);
    *dirs = (struct cli_cache_dirs){0};
}
