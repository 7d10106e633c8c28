/* SPDX-License-Identifier: Apache-2.0 */
/* kiln warm: compile what a deployment's cache lacks. Needs NVRTC, and neither a GPU nor
 * a driver. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cache_flags.h"
#include "commands.h"
#include "deployment_flags.h"
#include "report.h"
#include "shape_text.h"

static const char help[] =
    "usage: kiln warm FLAGS --arch sm_90[,sm_100,...] [--cache DIR] [--jobs N]\n"
    "                 [--rebuild]\n"
    "\n"
    "Compiles every kernel of the deployment that the cache lacks.\n"
    "\n" CLI_DEPLOYMENT_HELP
    "  --arch LIST                  targets; a manifest may name them instead\n"
    "  --cache DIR                  the cache folder\n"
    "  --jobs N                     compilers at a time (as many as cores, 4 at most)\n"
    "  --rebuild                    compile what is cached too\n";

struct progress {
    const struct kiln_request *requests;
    size_t n, n_done;
    bool is_terminal;
};

static void on_progress(void *user, size_t i_request, enum kiln_warm_result result,
                        int64_t build_ms, const char *message)
{
    struct progress *p = user;
    const struct kiln_request *request = &p->requests[i_request];
    const struct kiln_op_info *info = kiln_op_info_get(request->op);
    char shape[512];

    p->n_done++;
    if (p->is_terminal) {
        (void)printf("\r%zu of %zu", p->n_done, p->n);
        (void)fflush(stdout);
    }
    cli_shape_words(info, &request->shape, shape, sizeof shape);
    if (result == KILN_WARM_FAILED) {
        (void)cli_failed("%s %s %s: %s", info->name, request->target, shape,
                         message != NULL ? message : "failed");
    } else if (!p->is_terminal && result == KILN_WARM_COMPILED) {
        (void)printf("compiled  %s  %s  %s  (%" PRId64 " ms)\n", request->target,
                     info->name, shape, build_ms);
    } else if (!p->is_terminal) {
        (void)printf("cached    %s  %s  %s\n", request->target, info->name, shape);
    }
}

static int warm_requests(struct kiln *kiln, const struct kiln_request *requests, size_t n,
                         struct kiln_warm_options *options)
{
    struct progress progress = {
        .requests = requests, .n = n, .is_terminal = isatty(STDOUT_FILENO) == 1};
    struct kiln_warm_summary summary = {0};
    struct kiln_error err;

    options->progress = on_progress;
    options->user = &progress;
    if (kiln_warm(kiln, requests, n, options, &summary, &err) != KILN_OK) {
        return cli_report("warm", &err, false);
    }
    (void)printf("%s%" PRId64 " compiled, %" PRId64 " cached, %" PRId64 " failed\n",
                 progress.is_terminal ? "\r" : "", summary.n_compiled, summary.n_cached,
                 summary.n_failed);
    return summary.n_failed == 0 ? CLI_DONE : CLI_FAILED;
}

static int warm_manifest(const struct kiln_manifest *manifest, const char *cache,
                         struct kiln_warm_options *warm_options)
{
    struct kiln_options options = KILN_OPTIONS_INIT;
    struct kiln_request *requests = NULL;
    struct kiln *kiln = NULL;
    struct kiln_error err;
    char *dir = NULL;
    size_t n = 0;
    int status = cli_make_requests(manifest, &requests, &n);

    if (status == CLI_DONE) {
        status = cli_cache_dir(cache, &dir);
    }
    if (status != CLI_DONE) {
        goto out;
    }
    options.cache_dir = dir;
    if (kiln_create(&options, &kiln, &err) != KILN_OK) {
        status = cli_report("warm", &err, false);
        goto out;
    }
    cli_print_unsupported(&manifest->plan);
    status = warm_requests(kiln, requests, n, warm_options);
out:
    kiln_destroy(&kiln);
    free(requests);
    free(dir);
    return status;
}

static int run(int argc, char **argv)
{
    enum { JOBS_MAX = 256 };
    struct cli_flags flags = {0};
    struct cli_deployment_flags deployment = {0};
    struct kiln_warm_options options = {0};
    struct kiln_manifest manifest;
    const char *cache = NULL;
    int64_t n_jobs = 0;

    cli_add_deployment_flags(&deployment, &flags);
    cli_add_text(&flags, "--cache", &cache);
    cli_add_integer(&flags, "--jobs", 1, JOBS_MAX, &n_jobs);
    cli_add_switch(&flags, "--rebuild", &options.rebuild);
    int status = cli_args_parse_flags(&flags, argc, argv);
    if (status == CLI_DONE) {
        status = cli_read_targeted_deployment(&deployment, &manifest);
    }
    if (status != CLI_DONE) {
        return status;
    }
    options.n_jobs = (int32_t)n_jobs;
    status = warm_manifest(&manifest, cache, &options);
    kiln_plan_finish(&manifest.plan);
    return status;
}

const struct cli_command cli_warm = {"warm", "compile what the cache lacks", help, run};
