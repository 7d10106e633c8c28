/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random and edge cases of every op, from a seed, as many as asked for: each is computed by the
 * reference and by executing the emitted source on the CPU, and must give the same bytes; every
 * second shape's kernel is the checked one, and must report the same. A case
 * that does not is made small and becomes a case file that `kiln run --on cpu` fails too.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "args.h"
#include "cpu_tools.h"
#include "property_check.h"
#include "property_shrink.h"
#include "report.h"

static const char help[] =
    "usage: property [--seed N] [--cases N] [--seconds N] [--endless] [--op NAME]\n"
    "                [--sanitize CHECKER] [--template FILE] [--keep DIR] [--cache DIR]\n"
    "\n"
    "Compares the reference with the emitted source, executed on the CPU, over random\n"
    "cases of every op. Exit status 1: some differ; the first of each op is made small\n"
    "and written as a case file.\n"
    "\n"
    "  --seed N         where the cases begin (default 1)\n"
    "  --cases N        of each op (default 400)\n"
    "  --seconds N      stop after so many, whatever was asked for\n"
    "  --endless        until it fails or is ended; from the clock unless --seed is "
    "given\n"
    "  --op NAME        only this one\n"
    "  --sanitize       who checks: kiln (default), address, thread, memory, none\n"
    "  --template FILE  in place of the template's text; with --op\n"
    "  --keep DIR       where case files go (default .)\n"
    "  --cache DIR      keeps what was compiled\n";

enum {
    CASES = 400,
    CASES_OF_SHAPE = 20, /* a shape costs a compilation */
    OPS_MAX = 32,
    TRIALS = 3000, /* to make a case smaller */
    SHAPES = 60,
    PROGRAMS = 400, /* that an endless run keeps */
};

/* What was done for an op so far. */
struct tally {
    int64_t n_cases, n_shapes;
    bool failed; /* one failure of an op is enough to look at */
};

struct run {
    struct cli_cpu_options options;
    struct cli_cpu *cpu;
    const char *op;   /* NULL: all */
    const char *keep; /* folder */
    int64_t seed, cases, seconds;
    bool is_endless;
    char *scratch; /* the cache of an endless run; owned */
    int64_t n_programs;
    double started;
    struct tally tallies[OPS_MAX];
};

static double now(void)
{
    struct timespec time;
    (void)clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static bool is_over(const struct run *run)
{
    return run->seconds >= 0 && now() - run->started >= (double)run->seconds;
}

/* ---- a failure */

static bool still_fails(void *context, const struct property_case *c)
{
    char why[CPU_WHY_BYTES];
    return property_check(context, c, PROPERTY_ALL_WAYS, why) == PROPERTY_FAILS;
}

static char *write_case(const struct run *run, const struct property_case *c)
{
    char *text = property_check_text(c);
    char *path =
        cpu_format("%s/%s-%" PRIu64 ".json", run->keep, c->info->name, run->cpu->seed);
    if (path == NULL || !cpu_write_file(path, text, strlen(text))) {
        (void)cli_failed("%s: %s", path != NULL ? path : run->keep, strerror(errno));
    }
    if (strlen(text) < 4000) {
        (void)printf("%s\n", text);
    }
    free(text);
    return path;
}

static void print_again(const struct run *run, const struct property_case *c,
                        const char *path)
{
    (void)printf("again: kiln run %s --on cpu --seed %" PRIu64, path, run->cpu->seed);
    if (run->options.checker != NULL) {
        (void)printf(" --sanitize %s", run->options.checker);
    }
    if ((c->variant & KILN_VARIANT_CHECKED) != 0) {
        (void)printf(" --checked");
    }
    if (run->options.replacement != NULL) {
        (void)printf(" --template %s", run->options.replacement);
    }
    (void)printf("\n");
}

static void report_failure(struct run *run, struct property_case *c, const char *why)
{
    const struct property_judge judge = {still_fails, run->cpu, TRIALS, SHAPES};
    char small_why[CPU_WHY_BYTES];
    int64_t size = property_case_size(c);
    (void)printf("FAILED %s: %s\n", c->info->name, why);
    (void)fflush(stdout);
    property_shrink(c, &judge);
    (void)property_check(run->cpu, c, PROPERTY_ALL_WAYS, small_why);
    (void)printf("from %" PRId64 " numbers to %" PRId64 ": %s\n", size,
                 property_case_size(c), small_why);
    char *path = write_case(run, c);
    print_again(run, c, path);
    (void)fflush(stdout);
    free(path);
}

/* ---- cases */

/* CLI_FAILED: no further case can be run. */
static int run_case(struct run *run, const struct random_case *random,
                    struct tally *tally, int64_t i)
{
    /* both ways now and then, else one: other inputs show more than the same ones again */
    unsigned ways = i % 5 == 0 ? PROPERTY_ALL_WAYS : 1U << i % CLI_CPU_WAYS;
    char why[CPU_WHY_BYTES];
    struct property_case c;
    property_case_from(random, &c);
    c.variant = tally->n_shapes % 2 == 0 ? KILN_VARIANT_CHECKED : 0;
    run->cpu->seed = random->seed % 1000000;
    enum property_outcome outcome = property_check(run->cpu, &c, ways, why);
    if (outcome == PROPERTY_HOLDS && !property_case_is_legal(&c)) {
        cli_append(why, sizeof why, "no caller may make this call");
        outcome = PROPERTY_REFUSED;
    }
    if (outcome == PROPERTY_FAILS) {
        tally->failed = true;
        report_failure(run, &c, why);
    } else if (outcome == PROPERTY_REFUSED) {
        (void)cli_failed("%s seed %" PRIu64 ": %s", c.info->name, random->seed, why);
    }
    tally->n_cases++;
    property_case_finish(&c);
    return outcome == PROPERTY_HOLDS || outcome == PROPERTY_FAILS ? CLI_DONE : CLI_FAILED;
}

/* Few rows mostly: more cases show more than larger ones. */
static struct random_options choose_options(struct random_source *source)
{
    struct random_options options = RANDOM_OPTIONS_INIT;
    if (random_chance(source, 75)) {
        options.n_tokens = random_range(source, 0, 9);
    }
    return options;
}

static int run_shape(struct run *run, const struct kiln_op_info *info,
                     struct tally *tally)
{
    struct random_source source = {(uint64_t)run->seed * 1000003 +
                                   (uint64_t)info->op * 1009 +
                                   (uint64_t)tally->n_shapes * UINT64_C(0x9E3779B9)};
    struct kiln_shape shape;
    int status = CLI_DONE;
    random_shape(info->op, random_next(&source), &shape);
    tally->n_shapes++;
    run->n_programs++;
    for (int64_t i = 0;
         i < CASES_OF_SHAPE && status == CLI_DONE && !tally->failed && !is_over(run);
         i++) {
        const struct random_options options = choose_options(&source);
        struct random_case random;
        random_case_init(&random, info->op, &shape, &options, random_next(&source));
        status = run_case(run, &random, tally, i);
        random_case_finish(&random);
    }
    return status;
}

/* Programs of an endless run would fill the disk. */
static int renew_cache(struct run *run)
{
    if (!run->is_endless || (run->cpu != NULL && run->n_programs < PROGRAMS)) {
        return CLI_DONE;
    }
    const char *temporary = getenv("TMPDIR");
    cli_cpu_close(&run->cpu);
    if (run->scratch != NULL) {
        cpu_remove_folder(run->scratch);
    }
    free(run->scratch);
    run->scratch =
        cpu_format("%s/kiln-property-XXXXXX", temporary != NULL ? temporary : "/tmp");
    if (run->scratch == NULL || mkdtemp(run->scratch) == NULL) {
        return cli_failed("no folder for programs: %s", strerror(errno));
    }
    run->options.cache = run->scratch;
    run->n_programs = 0;
    return cli_cpu_open(&run->options, &run->cpu);
}

/* One shape of each op. False: all that was asked for is done. */
static bool run_round(struct run *run, int *status)
{
    bool has_more = false;
    const struct kiln_op_info *info;
    for (size_t i = 0; (info = kiln_op_info_at(i)) != NULL && i < OPS_MAX; i++) {
        struct tally *tally = &run->tallies[i];
        bool is_wanted = info->supported && !tally->failed &&
                         (run->op == NULL || strcmp(run->op, info->name) == 0);
        if (!is_wanted || (!run->is_endless && tally->n_cases >= run->cases)) {
            continue;
        }
        has_more = true;
        *status = renew_cache(run);
        if (*status == CLI_DONE) {
            *status = run_shape(run, info, tally);
        }
        if (*status != CLI_DONE || is_over(run)) {
            return false;
        }
    }
    return has_more;
}

static int run_all(struct run *run)
{
    const struct kiln_op_info *info;
    int status = CLI_DONE;
    int64_t n_cases = 0, n_failed = 0;
    run->started = now();
    while (run_round(run, &status)) {
    }
    for (size_t i = 0; (info = kiln_op_info_at(i)) != NULL && i < OPS_MAX; i++) {
        const struct tally *tally = &run->tallies[i];
        if (tally->n_cases > 0) {
            (void)printf("%-22s %6" PRId64 " cases of %" PRId64 " shapes%s\n", info->name,
                         tally->n_cases, tally->n_shapes,
                         tally->failed ? ", FAILED" : "");
        }
        n_cases += tally->n_cases;
        n_failed += tally->failed ? 1 : 0;
    }
    (void)printf("%" PRId64 " cases, %" PRId64 " failed (%.1f s, --seed %" PRId64 ")\n",
                 n_cases, n_failed, now() - run->started, run->seed);
    if (n_cases == 0 && status == CLI_DONE) {
        return cli_failed("no case was run");
    }
    return n_failed > 0 ? CLI_FAILED : status;
}

/* ---- the command line */

static int check_flags(const struct run *run)
{
    const struct kiln_op_info *info =
        run->op != NULL ? kiln_op_info_by_name(run->op) : NULL;
    if (run->op != NULL && (info == NULL || !info->supported)) {
        return cli_wrong("--op: \"%s\": expected an op that this kiln has", run->op);
    }
    if (run->options.replacement != NULL && run->op == NULL) {
        return cli_wrong("--template: only with --op, whose template it replaces");
    }
    return CLI_DONE;
}

static int parse(struct run *run, int argc, char **argv)
{
    struct cli_flags flags = {.n = 0};
    cli_add_integer(&flags, "--seed", 0, INT32_MAX, &run->seed);
    cli_add_integer(&flags, "--cases", 1, INT64_MAX, &run->cases);
    cli_add_integer(&flags, "--seconds", 1, INT32_MAX, &run->seconds);
    cli_add_switch(&flags, "--endless", &run->is_endless);
    cli_add_text(&flags, "--op", &run->op);
    cli_add_text(&flags, "--sanitize", &run->options.checker);
    cli_add_text(&flags, "--template", &run->options.replacement);
    cli_add_text(&flags, "--keep", &run->keep);
    cli_add_text(&flags, "--cache", &run->options.cache);
    int status = cli_args_parse_flags(&flags, argc, argv);
    if (run->seed < 0) {
        run->seed = run->is_endless ? (int64_t)time(NULL) % INT32_MAX : 1;
    }
    return status == CLI_DONE ? check_flags(run) : status;
}

int main(int argc, char **argv)
{
    struct run run = {.keep = ".", .seed = -1, .cases = CASES, .seconds = -1};
    if (argc == 2 && strcmp(argv[1], "--help") == 0) {
        (void)fputs(help, stdout);
        return CLI_DONE;
    }
    int status = parse(&run, argc - 1, argv + 1);
    if (status == CLI_DONE && !run.is_endless) {
        status = cli_cpu_open(&run.options, &run.cpu);
    }
    if (status == CLI_DONE) {
        status = run_all(&run);
    }
    cli_cpu_close(&run.cpu);
    if (run.scratch != NULL) {
        cpu_remove_folder(run.scratch);
    }
    free(run.scratch);
    return cli_close_output(status);
}
