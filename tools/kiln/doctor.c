/* SPDX-License-Identifier: Apache-2.0 */
/* kiln doctor: what was found on this machine, and what to do about each fault. */
#include <stdio.h>
#include <stdlib.h>

#include "kiln/kiln.h"

#include "args.h"
#include "cache_flags.h"
#include "commands.h"
#include "report.h"

static const char help[] =
    "usage: kiln doctor [--cache DIR] [--json]\n"
    "\n"
    "Looks at NVRTC, the driver, the GPUs and the cache folder. Exit status 1 when\n"
    "something is at fault.\n";

struct visit {
    bool is_json;
    int n_faults;
    int status;
};

static const char *state_name(enum kiln_finding_state state)
{
    switch (state) {
    case KILN_FINDING_OK:
        return "ok";
    case KILN_FINDING_NOTE:
        return "note";
    case KILN_FINDING_FAULT:
        return "fault";
    }
    return "?";
}

static void on_finding(void *user, const struct kiln_finding *finding)
{
    struct visit *visit = user;
    const char *state = state_name(finding->state);

    visit->n_faults += finding->state == KILN_FINDING_FAULT ? 1 : 0;
    if (visit->is_json) {
        json_t *line =
            json_pack("{s:s, s:s, s:o, s:s?}", "topic", finding->topic, "state", state,
                      "text", cli_json_text(finding->text), "advice", finding->advice);

        if (cli_print_json(line) != CLI_DONE) {
            visit->status = CLI_FAILED;
        }
        return;
    }
    (void)printf("%-6s %-7s %s\n", state, finding->topic, finding->text);
    if (finding->advice != NULL) {
        (void)printf("%-6s %-7s -> %s\n", "", "", finding->advice);
    }
}

static int run(int argc, char **argv)
{
    struct cli_flags flags = {0};
    struct kiln_options options = KILN_OPTIONS_INIT;
    struct visit visit = {0};
    struct kiln *kiln = NULL;
    struct kiln_error err;
    const char *cache = NULL;
    char *dir = NULL;

    cli_add_text(&flags, "--cache", &cache);
    cli_add_switch(&flags, "--json", &visit.is_json);
    int status = cli_args_parse_flags(&flags, argc, argv);
    /* without --cache the library finds the folder itself, and says what it found */
    if (status == CLI_DONE && cache != NULL) {
        status = cli_cache_dir(cache, &dir);
    }
    if (status != CLI_DONE) {
        return status;
    }
    options.cache_dir = dir;
    options.no_write = true; /* a folder made here would hide a mistyped path */
    if (kiln_create(&options, &kiln, &err) != KILN_OK ||
        kiln_doctor(kiln, on_finding, &visit, &err) != KILN_OK) {
        visit.status = cli_report("doctor", &err, false);
    } else if (visit.n_faults > 0) {
        visit.status = cli_failed("doctor: %d at fault", visit.n_faults);
    }
    kiln_destroy(&kiln);
    free(dir);
    return visit.status;
}

const struct cli_command cli_doctor = {"doctor", "say what is here and what is amiss",
                                       help, run};
