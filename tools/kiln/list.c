/* SPDX-License-Identifier: Apache-2.0 */
/* kiln list: what lies in a cache folder. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "kiln/store.h"

#include "args.h"
#include "cache_flags.h"
#include "commands.h"
#include "report.h"

static const char help[] = "usage: kiln list [--cache DIR] [--json]\n"
                           "\n"
                           "Shows every entry of a cache folder.\n"
                           "\n"
                           "  --cache DIR  the cache folder\n"
                           "  --json       one object a line, with the text of the key\n";

struct listing {
    bool is_json;
    int64_t n, n_faulty, bytes;
    int status;
};

static void print_line(const struct kiln_store_item *item)
{
    time_t seconds = (time_t)(item->used_ms / 1000);
    struct tm when = {0};
    char used[32] = "?";

    if (gmtime_r(&seconds, &when) != NULL) {
        (void)strftime(used, sizeof used, "%Y-%m-%dT%H:%M:%SZ", &when);
    }
    (void)printf("%-17s %-8s %-6s %5" PRId32 " %5" PRId32 " %9" PRId64 "  %s  %s\n",
                 item->op, item->target, item->nvrtc, item->threads, item->registers,
                 item->size_bytes, used, item->name);
}

static json_t *to_json(const struct kiln_store_item *item)
{
    if (item->fault != NULL) {
        return json_pack("{s:s, s:s}", "name", item->name, "fault", item->fault);
    }
    return json_pack("{s:s, s:s, s:s, s:s, s:I, s:I, s:i, s:i, s:i, s:I, s:s}", "name",
                     item->name, "op", item->op, "target", item->target, "nvrtc",
                     item->nvrtc, "size_bytes", (json_int_t)item->size_bytes,
                     "cubin_bytes", (json_int_t)item->cubin_bytes, "threads",
                     (int)item->threads, "registers", (int)item->registers, "smem_bytes",
                     (int)item->smem_bytes, "used_ms", (json_int_t)item->used_ms, "key",
                     item->key_text);
}

static void on_entry(void *user, const struct kiln_store_item *item)
{
    struct listing *listing = user;

    listing->n++;
    if (item->fault != NULL) {
        listing->n_faulty++;
        listing->status = cli_failed("%s: %s", item->name, item->fault);
    } else {
        listing->bytes += item->size_bytes;
    }
    if (listing->is_json && cli_print_json(to_json(item)) != CLI_DONE) {
        listing->status = CLI_FAILED;
    } else if (!listing->is_json && item->fault == NULL) {
        print_line(item);
    }
}

static int run(int argc, char **argv)
{
    struct cli_flags flags = {0};
    struct listing listing = {0};
    struct kiln_error err;
    const char *cache = NULL;
    char *dir;

    cli_add_text(&flags, "--cache", &cache);
    cli_add_switch(&flags, "--json", &listing.is_json);
    int status = cli_args_parse_flags(&flags, argc, argv);
    if (status == CLI_DONE) {
        status = cli_cache_dir(cache, &dir);
    }
    if (status != CLI_DONE) {
        return status;
    }
    if (!listing.is_json) {
        (void)printf("%-17s %-8s %-6s %5s %5s %9s  %-20s  file\n", "op", "target",
                     "nvrtc", "thr", "regs", "bytes", "last use");
    }
    if (kiln_store_visit(dir, on_entry, &listing, &err) != KILN_OK) {
        listing.status = cli_report("", &err, false);
    } else if (!listing.is_json) {
        (void)printf("%" PRId64 " entries, %" PRId64 " faulty, %" PRId64 " bytes\n",
                     listing.n, listing.n_faulty, listing.bytes);
    }
    free(dir);
    return listing.status;
}

const struct cli_command cli_list = {"list", "show a cache", help, run};
