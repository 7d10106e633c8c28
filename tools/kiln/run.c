/* SPDX-License-Identifier: Apache-2.0 */
/* kiln run: case files on a backend, one line each. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "args.h"
#include "case_report.h"
#include "case_run.h"
#include "commands.h"
#include "cpu.h"
#include "report.h"

static const char help[] =
    "usage: kiln run CASE.json ... [--on reference|cpu|gpu] [--checked] [--json]\n"
    "                [--sanitize CHECKER] [--seed N] [--cache DIR] [--template FILE]\n"
    "\n"
    "Runs an op on the data of each case file and compares its outputs with the case's\n"
    "\"expect\". Padding and guards around every output must stay untouched.\n"
    "\n"
    "  --on reference  plain C (default)\n"
    "  --on cpu        the emitted source, executed on the CPU with every access "
    "checked;\n"
    "                  needs a C++ compiler\n"
    "  --on gpu        the compiled kernel, launched and replayed in a graph\n"
    "  --checked       the variant that reports what the rules turn away: prints that, "
    "and\n"
    "                  fails where it is not what the reference reports\n"
    "  --sanitize      who checks on the CPU: kiln (default), address, thread, memory, "
    "none\n"
    "  --seed N        of the order in which the CPU executes blocks and threads\n"
    "  --template FILE on the CPU, in place of the template's text; its helpers written "
    "in\n"
    "  --cache DIR     keeps what was compiled for the CPU\n"
    "  --json          one object a file with the outputs; null is what nobody wrote\n";

static int find_backend(const char *on, enum cli_backend_kind *out)
{
    if (on == NULL || strcmp(on, "reference") == 0) {
        *out = CLI_ON_REFERENCE;
        return CLI_DONE;
    }
    if (strcmp(on, "gpu") == 0) {
        *out = CLI_ON_GPU;
        return CLI_DONE;
    }
    if (strcmp(on, "cpu") == 0) {
        *out = CLI_ON_CPU;
        return CLI_DONE;
    }
    return cli_wrong("--on: \"%s\": expected reference, cpu or gpu", on);
}

static void print_element(const struct cli_array *array, int64_t row, int64_t column)
{
    if (cli_array_is_poison(array, row, column)) {
        (void)fputs("null", stdout);
    } else {
        (void)printf("%" PRId64, cli_array_get(array, row, column));
    }
}

static void print_output(const struct cli_array *array)
{
    bool is_matrix = array->arg->width != NULL;

    (void)putchar('[');
    for (int64_t row = 0; row < array->rows; row++) {
        (void)fputs(row > 0 ? ", " : "", stdout);
        (void)fputs(is_matrix ? "[" : "", stdout);
        for (int64_t column = 0; column < array->width; column++) {
            (void)fputs(column > 0 ? ", " : "", stdout);
            print_element(array, row, column);
        }
        (void)fputs(is_matrix ? "]" : "", stdout);
    }
    (void)putchar(']');
}

static void print_json(const struct cli_case *c, const char *on, bool pass)
{
    const struct kiln_op_info *info = c->call.info;
    const char *separator = "";

    (void)printf("{\"op\": \"%s\", \"on\": \"%s\", \"outputs\": {", info->name, on);
    for (size_t i = 0; i < info->n_args; i++) {
        if (info->args[i].kind != KILN_ARG_OUTPUT) {
            continue;
        }
        (void)printf("%s\"%s\": ", separator, info->args[i].name);
        print_output(&c->call.arrays[i]);
        separator = ", ";
    }
    (void)putchar('}');
    if (c->must_report != NULL) {
        (void)fputs(", \"report\": ", stdout);
        cli_report_print_json(c->call.report);
    }
    (void)printf(", \"pass\": %s}\n", pass ? "true" : "false");
}

static int run_file(const char *path, const struct cli_backend *backend, bool is_json)
{
    struct cli_case c;
    int status = cli_case_read(path, &c);

    if (status != CLI_DONE) {
        return status;
    }
    status = cli_case_run(&c, backend);
    if (is_json) {
        print_json(&c, backend->name, status == CLI_DONE);
    } else if (status == CLI_DONE) {
        (void)printf("pass  %s%s\n", path,
                     c.expect == NULL ? "  (it expects nothing)" : "");
        if (c.must_report != NULL) {
            cli_report_print(c.call.report);
        }
    }
    cli_case_finish(&c);
    return status;
}

static int run(int argc, char **argv)
{
    struct cli_flags flags = {0};
    struct cli_words files;
    struct cli_backend backend = {0};
    enum cli_backend_kind kind = CLI_ON_REFERENCE;
    struct cli_cpu_options cpu = {0};
    const char *on = NULL;
    int64_t seed = -1;
    bool is_json = false, is_checked = false;
    size_t n_failed = 0;

    cli_add_text(&flags, "--on", &on);
    cli_add_switch(&flags, "--checked", &is_checked);
    cli_add_switch(&flags, "--json", &is_json);
    cli_add_text(&flags, "--sanitize", &cpu.checker);
    cli_add_text(&flags, "--template", &cpu.replacement);
    cli_add_text(&flags, "--cache", &cpu.cache);
    cli_add_integer(&flags, "--seed", 0, INT64_MAX, &seed);
    int status = cli_args_parse(&flags, argc, argv, &files);
    uint32_t variant = is_checked ? KILN_VARIANT_CHECKED : 0;
    if (status == CLI_DONE) {
        status = find_backend(on, &kind);
    }
    if (status != CLI_DONE) {
        return status;
    }
    if (files.n == 0) {
        return cli_wrong("no case file given; usage: kiln run CASE.json ...");
    }
    if (kind == CLI_ON_CPU) {
        cpu.seed = seed < 0 ? 0 : (uint64_t)seed;
        status = cli_backend_open_cpu(&cpu, variant, &backend);
    } else if (cpu.checker != NULL || cpu.cache != NULL || cpu.replacement != NULL ||
               seed >= 0) {
        status =
            cli_wrong("--sanitize, --seed, --cache and --template: only with --on cpu");
    } else {
        status = cli_backend_open(kind, variant, &backend);
    }
    if (status != CLI_DONE) {
        return status;
    }
    for (size_t i = 0; i < files.n; i++) {
        if (run_file(files.items[i], &backend, is_json) != CLI_DONE) {
            n_failed++;
        }
    }
    cli_backend_close(&backend);
    if (!is_json) {
        (void)printf("%zu passed, %zu failed\n", files.n - n_failed, n_failed);
    }
    return n_failed == 0 ? CLI_DONE : CLI_FAILED;
}

const struct cli_command cli_run = {"run", "run case files and compare", help, run};
