/* SPDX-License-Identifier: Apache-2.0 */
/* kiln check: are the entries of a cache whole, and is everything that a plan needs
 * there? Needs neither NVRTC nor a GPU. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "kiln/store.h"

#include "cache_flags.h"
#include "commands.h"
#include "deployment_flags.h"
#include "report.h"
#include "shape_text.h"

static const char help[] =
    "usage: kiln check [--cache DIR[:DIR...]] [--plan MANIFEST | FLAGS --arch LIST]\n"
    "\n"
    "Verifies every entry of the cache; with a plan, that every kernel is there for "
    "every\n"
    "target. Exit status 1 and a line for each fault.\n"
    "\n"
    "  --cache DIR[:DIR...]         cache folders, tried in order\n"
    "  --plan MANIFEST              from kiln plan --manifest-out; as --manifest\n"
    "  --arch LIST                  instead of the manifest's "
    "targets\n" CLI_DEPLOYMENT_HELP;

struct findings {
    const char *dir;
    const struct kiln_request *requests;
    int64_t n_entries, n_faulty, n_missing;
};

static void on_entry(void *user, const struct kiln_store_item *item)
{
    struct findings *findings = user;

    findings->n_entries++;
    if (item->fault == NULL) {
        return;
    }
    findings->n_faulty++;
    (void)cli_failed("%s: %s: %s", findings->dir, item->name, item->fault);
}

static void on_missing(void *user, size_t i_request)
{
    struct findings *findings = user;
    const struct kiln_request *request = &findings->requests[i_request];
    const struct kiln_op_info *info = kiln_op_info_get(request->op);
    char shape[512];

    findings->n_missing++;
    cli_shape_words(info, &request->shape, shape, sizeof shape);
    (void)cli_failed("missing: %s %s %s", info->name, request->target, shape);
}

/* Visit every folder; `good` gets those that could be read. */
static int check_entries(const struct cli_cache_dirs *dirs, struct findings *findings,
                         const char **good, size_t *n_good)
{
    struct kiln_error err;
    int status = CLI_DONE;

    *n_good = 0;
    for (size_t i = 0; i < dirs->n; i++) {
        findings->dir = dirs->items[i];
        if (kiln_store_visit(dirs->items[i], on_entry, findings, &err) == KILN_OK) {
            good[(*n_good)++] = dirs->items[i];
        } else {
            status = cli_report("", &err, false);
        }
    }
    return status;
}

static int check_plan(const char *const *dirs, size_t n_dirs,
                      const struct kiln_manifest *manifest, struct findings *findings)
{
    struct kiln_request *requests = NULL;
    size_t n = 0, n_missing = 0;
    struct kiln_error err;
    int status = cli_make_requests(manifest, &requests, &n);

    if (status != CLI_DONE) {
        return status;
    }
    findings->requests = requests;
    struct kiln_store_query query = {
        .dirs = dirs,
        .n_dirs = n_dirs,
        .requests = requests,
        .n_requests = n,
        .missing = on_missing,
        .user = findings,
    };
    if (kiln_store_check(&query, &n_missing, &err) != KILN_OK) {
        status = cli_report("", &err, false);
    } else {
        cli_print_unsupported(&manifest->plan);
        (void)printf("%zu kernels planned, %zu missing\n", n, n_missing);
    }
    free(requests);
    return status;
}

/* `manifest` may be NULL. */
static int check(const char *cache, const struct kiln_manifest *manifest)
{
    struct findings findings = {0};
    struct cli_cache_dirs dirs;
    size_t n_good;
    int status = cli_cache_dirs(cache, &dirs);

    if (status != CLI_DONE) {
        return status;
    }
    const char **good = calloc(dirs.n, sizeof *good);
    if (good == NULL) {
        cli_cache_dirs_finish(&dirs);
        return cli_failed("out of memory");
    }
    status = check_entries(&dirs, &findings, good, &n_good);
    if (manifest != NULL &&
        check_plan((const char *const *)good, n_good, manifest, &findings) != CLI_DONE) {
        status = CLI_FAILED;
    }
    (void)printf("%" PRId64 " entries, %" PRId64 " faulty\n", findings.n_entries,
                 findings.n_faulty);
    free(good);
    cli_cache_dirs_finish(&dirs);
    return findings.n_faulty > 0 || findings.n_missing > 0 ? CLI_FAILED : status;
}

static int run(int argc, char **argv)
{
    struct cli_flags flags = {0};
    struct cli_deployment_flags deployment = {0};
    struct kiln_manifest manifest = {0};
    const char *cache = NULL, *plan = NULL;

    cli_add_deployment_flags(&deployment, &flags);
    cli_add_text(&flags, "--cache", &cache);
    cli_add_text(&flags, "--plan", &plan);
    int status = cli_args_parse_flags(&flags, argc, argv);
    if (status != CLI_DONE) {
        return status;
    }
    if (plan != NULL && deployment.manifest != NULL) {
        return cli_wrong("--plan: cannot be given with --manifest, which is the same");
    }
    if (plan != NULL) {
        deployment.manifest = plan;
    }
    bool has_plan = cli_has_deployment(&deployment);
    if (!has_plan && deployment.arch != NULL) {
        return cli_wrong("--arch: expected --plan or a deployment's flags with it");
    }
    if (has_plan) {
        status = cli_read_targeted_deployment(&deployment, &manifest);
    }
    if (status != CLI_DONE) {
        return status;
    }
    status = check(cache, has_plan ? &manifest : NULL);
    kiln_plan_finish(&manifest.plan);
    return status;
}

const struct cli_command cli_check = {"check", "verify a cache, and that it is complete",
                                      help, run};
