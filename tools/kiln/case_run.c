/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One case on one backend. On the GPU it runs several ways, each from poisoned outputs:
 * launched, replayed in a graph, with counts in device memory, at other alignments. All
 * must give the same.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "case_report.h"
#include "case_run.h"
#include "cpu.h"
#include "device_call.h"
#include "report.h"

int cli_backend_open(enum cli_backend_kind kind, uint32_t variant,
                     struct cli_backend *out)
{
    struct cli_backend backend = {.kind = kind, .name = "reference", .variant = variant};
    struct kiln_options options = KILN_OPTIONS_INIT;
    struct kiln_error err;

    options.checked = (variant & KILN_VARIANT_CHECKED) != 0;
    if (kind == CLI_ON_GPU) {
        backend.name = "gpu";
        if (kiln_gpu_open(0, &backend.gpu, &err) != KILN_OK ||
            kiln_create(&options, &backend.kiln, &err) != KILN_OK) {
            cli_backend_close(&backend);
            return cli_report("gpu", &err, false);
        }
    }
    *out = backend;
    return CLI_DONE;
}

int cli_backend_open_cpu(const struct cli_cpu_options *options, uint32_t variant,
                         struct cli_backend *out)
{
    struct cli_backend backend = {.kind = CLI_ON_CPU, .name = "cpu", .variant = variant};
    int status = cli_cpu_open(options, &backend.cpu);

    *out = backend;
    return status;
}

void cli_backend_close(struct cli_backend *backend)
{
    cli_cpu_close(&backend->cpu);
    kiln_destroy(&backend->kiln);
    kiln_gpu_close(&backend->gpu);
}

/* ---- comparing */

static int report_difference(const struct cli_case *c, const struct cli_array *array,
                             int64_t row, int64_t column, const json_t *expected)
{
    char where[128] = "", want[64] = "", got[64] = "";

    cli_append(where, sizeof where, "%s[%" PRId64 "]", array->arg->name, row);
    if (array->arg->width != NULL) {
        cli_append(where, sizeof where, "[%" PRId64 "]", column);
    }
    if (json_is_null(expected)) {
        cli_append(want, sizeof want, "nothing written (null)");
    } else {
        cli_append(want, sizeof want, "%" JSON_INTEGER_FORMAT,
                   json_integer_value(expected));
    }
    if (cli_array_is_poison(array, row, column)) {
        cli_append(got, sizeof got, "nothing written");
    } else {
        cli_append(got, sizeof got, "%" PRId64, cli_array_get(array, row, column));
    }
    return cli_failed("%s: %s: expected %s, got %s", c->path, where, want, got);
}

static int compare_output(const struct cli_case *c, size_t i)
{
    const struct cli_array *array = &c->call.arrays[i];

    for (int64_t row = 0; row < array->rows; row++) {
        for (int64_t column = 0; column < array->width; column++) {
            const json_t *expected = cli_case_expected(c, i, row, column);
            bool is_poison = cli_array_is_poison(array, row, column);

            if (expected == NULL) {
                return CLI_DONE;
            }
            if (json_is_null(expected) != is_poison ||
                (!is_poison &&
                 json_integer_value(expected) != cli_array_get(array, row, column))) {
                return report_difference(c, array, row, column, expected);
            }
        }
    }
    return CLI_DONE;
}

static int compare(struct cli_case *c)
{
    char why[512] = "";

    if (cli_call_find_touched(&c->call, why, sizeof why)) {
        return cli_failed("%s: %s", c->path, why);
    }
    for (size_t i = 0; i < c->call.info->n_args; i++) {
        if (c->call.info->args[i].kind != KILN_ARG_OUTPUT) {
            continue;
        }
        int status = compare_output(c, i);
        if (status != CLI_DONE) {
            return status;
        }
    }
    if (c->call.report != NULL &&
        !cli_report_is(&c->call, c->must_report, why, sizeof why)) {
        return cli_failed("%s: %s", c->path, why);
    }
    return CLI_DONE;
}

static int run_on_reference(struct cli_case *c)
{
    struct kiln_error err;

    cli_call_bind_host(&c->call);
    if (kiln_reference(c->call.info->op, &c->call.shape, c->call.args, &err) != KILN_OK) {
        return cli_report(c->path, &err, false);
    }
    return compare(c);
}

/* ---- the GPU */

/* One way to run a case. */
struct way {
    bool in_graph;
    struct cli_placing placing;
};

static const struct way ways[] = {
    {.in_graph = false},
    {.in_graph = true},
    {.in_graph = true, .placing = {.counts_on_device = true, .skew_elems = 1}},
};

static enum kiln_status replay_once(struct cli_device_call *d,
                                    const struct kiln_kernel *kernel,
                                    struct kiln_error *err)
{
    struct kiln_gpu_graph *graph;
    enum kiln_status status = cli_device_capture(d, kernel, 1, &graph, err);

    if (status == KILN_OK) {
        status = kiln_gpu_replay(d->gpu, graph, NULL, err);
    }
    kiln_gpu_graph_destroy(d->gpu, &graph);
    return status;
}

static enum kiln_status run_one_way(struct cli_call *call, struct kiln_gpu *gpu,
                                    const struct kiln_kernel *kernel,
                                    const struct way *way, struct kiln_error *err)
{
    struct cli_device_call d;
    enum kiln_status status;

    cli_call_clear(call);
    status = cli_device_place(gpu, call, &way->placing, &d, err);
    if (status == KILN_OK && way->in_graph) {
        status = replay_once(&d, kernel, err);
    } else if (status == KILN_OK) {
        status = kiln_launch(kernel, call->args, kiln_gpu_stream(gpu), err);
    }
    if (status == KILN_OK) {
        status = cli_device_fetch(&d, err);
    }
    cli_device_finish(&d);
    return status;
}

static int run_on_gpu(struct cli_case *c, const struct cli_backend *backend)
{
    struct cli_call *call = &c->call;
    const struct kiln_kernel *kernel;
    struct kiln_error err;

    if (kiln_prepare(backend->kiln, call->info->op, &call->shape,
                     kiln_gpu_stream(backend->gpu), &kernel, &err) != KILN_OK) {
        return cli_report(c->path, &err, false);
    }
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        if (run_one_way(call, backend->gpu, kernel, &ways[i], &err) != KILN_OK) {
            return cli_report(c->path, &err, false);
        }
        int status = compare(c);
        if (status != CLI_DONE) {
            return status;
        }
    }
    return CLI_DONE;
}

static int run_on_cpu(struct cli_case *c, const struct cli_backend *backend)
{
    for (int way = 0; way < CLI_CPU_WAYS; way++) {
        cli_call_clear(&c->call);
        int status = cli_cpu_run(backend->cpu, &c->call, way, c->path);

        if (status == CLI_DONE) {
            status = compare(c);
        }
        if (status != CLI_DONE) {
            return status;
        }
    }
    return CLI_DONE;
}

/* What the reference reports; the case's call has room for it then. */
static int learn(struct cli_case *c)
{
    struct kiln_error err;

    free(c->must_report);
    if (cli_report_learn(&c->call, &c->must_report, &err) != KILN_OK) {
        return cli_report(c->path, &err, false);
    }
    return CLI_DONE;
}

static int run(struct cli_case *c, const struct cli_backend *backend)
{
    if (backend->kind == CLI_ON_CPU) {
        return run_on_cpu(c, backend);
    }
    if (backend->kind == CLI_ON_GPU) {
        return run_on_gpu(c, backend);
    }
    return run_on_reference(c);
}

/* A checked kernel without a report does the rest. */
static int run_without_report(struct cli_case *c, const struct cli_backend *backend)
{
    struct kiln_report *report = c->call.report;

    c->call.report = NULL;
    int status = run(c, backend);
    c->call.report = report;
    return status;
}

int cli_case_run(struct cli_case *c, const struct cli_backend *backend)
{
    int status = CLI_DONE;

    c->call.variant = backend->variant;
    if ((backend->variant & KILN_VARIANT_CHECKED) != 0) {
        status = learn(c);
        if (status == CLI_DONE) {
            status = run_without_report(c, backend);
        }
        cli_call_clear(&c->call);
    }
    return status == CLI_DONE ? run(c, backend) : status;
}
