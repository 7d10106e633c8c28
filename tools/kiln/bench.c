/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kiln bench: what a launch takes inside a replayed graph, beside the fastest time known
 * for its size, and beside a large copy of the same run.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "args.h"
#include "bench_cases.h"
#include "bench_fill.h"
#include "case_run.h"
#include "commands.h"
#include "device_call.h"
#include "report.h"

static const char help[] =
    "usage: kiln bench [OP ...] [--json]\n"
    "\n"
    "Times kernels on the first GPU: 40 launches in a graph, median of 60 replays after\n"
    "10 to warm up, microseconds per launch. `target` is the fastest known for the size\n"
    "(on one H200). Where enough is written, `copy` compares with the bandwidth of a\n"
    "large copy: 100% is as fast as copying the bytes that must be read and written.\n";

enum { LAUNCHES = 40, REPLAYS = 60, WARM_UPS = 10 };

/* Less is launched rather than copied. */
enum { ROWS_TO_COMPARE = 16384, BYTES_TO_COMPARE = 4 << 20 };

/* A copy large beside every cache, and how often in a graph. From 1 GiB the driver hands
 * graph nodes to a copy engine, which is slower. */
enum { COPIES = 16 };
static const size_t copy_bytes = (size_t)256 << 20;

static int compare_doubles(const void *a, const void *b)
{
    double x, y;

    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    return (x > y) - (x < y);
}

static enum kiln_status median_replay(struct kiln_gpu *gpu, struct kiln_gpu_graph *graph,
                                      double *out_us, struct kiln_error *err)
{
    double us[REPLAYS];

    for (int i = 0; i < WARM_UPS + REPLAYS; i++) {
        enum kiln_status status =
            kiln_gpu_replay(gpu, graph, &us[i < WARM_UPS ? 0 : i - WARM_UPS], err);

        if (status != KILN_OK) {
            return status;
        }
    }
    qsort(us, REPLAYS, sizeof us[0], compare_doubles);
    *out_us = (us[REPLAYS / 2 - 1] + us[REPLAYS / 2]) / 2;
    return KILN_OK;
}

static enum kiln_status time_copies(struct kiln_gpu *gpu, void *to, const void *from,
                                    double *out_us, struct kiln_error *err)
{
    struct kiln_gpu_graph *graph = NULL;
    enum kiln_status status = kiln_gpu_capture_begin(gpu, KILN_CAPTURE_GLOBAL, err);

    if (status != KILN_OK) {
        return status;
    }
    for (int i = 0; i < COPIES && status == KILN_OK; i++) {
        status = kiln_gpu_copy(gpu, to, from, copy_bytes, err);
    }
    enum kiln_status end_status =
        kiln_gpu_capture_end(gpu, &graph, status == KILN_OK ? err : NULL);
    if (status == KILN_OK) {
        status = end_status;
    }
    if (status == KILN_OK) {
        status = median_replay(gpu, graph, out_us, err);
    }
    kiln_gpu_graph_destroy(gpu, &graph);
    return status;
}

/* Bytes that a copy reads and writes in a microsecond. */
static int measure_copy(struct kiln_gpu *gpu, double *out_bytes_per_us)
{
    void *to = NULL, *from = NULL;
    struct kiln_error err;
    double us = 0;
    int status = CLI_DONE;

    if (kiln_gpu_alloc(gpu, copy_bytes, &to, &err) != KILN_OK ||
        kiln_gpu_alloc(gpu, copy_bytes, &from, &err) != KILN_OK ||
        time_copies(gpu, to, from, &us, &err) != KILN_OK) {
        status = cli_report("bench: copy", &err, false);
    } else {
        *out_bytes_per_us = 2.0 * COPIES * (double)copy_bytes / us;
    }
    kiln_gpu_free(gpu, to);
    kiln_gpu_free(gpu, from);
    return status;
}

/* What a launch must read and write, each byte once; tables are read in part and left
 * out. */
static double bytes_needed(const struct cli_call *call)
{
    double bytes = 0;

    for (size_t i = 0; i < call->info->n_args; i++) {
        const struct cli_array *array = &call->arrays[i];

        if (array->image != NULL && array->arg->extent != KILN_EXTENT_TABLE_ROWS &&
            array->arg->extent != KILN_EXTENT_SWA_TABLE_ROWS) {
            bytes +=
                (double)array->rows * (double)array->width * (double)array->elem_bytes;
        }
    }
    return bytes;
}

static enum kiln_status time_call(const struct cli_backend *backend,
                                  struct cli_call *call, double *out_us,
                                  struct kiln_error *err)
{
    static const struct cli_placing placing = {0};
    struct cli_device_call d = {0};
    struct kiln_gpu_graph *graph = NULL;
    const struct kiln_kernel *kernel;
    enum kiln_status status = kiln_prepare(backend->kiln, call->info->op, &call->shape,
                                           kiln_gpu_stream(backend->gpu), &kernel, err);

    if (status == KILN_OK) {
        status = cli_device_place(backend->gpu, call, &placing, &d, err);
    }
    if (status == KILN_OK) {
        status = cli_device_capture(&d, kernel, LAUNCHES, &graph, err);
    }
    if (status == KILN_OK) {
        status = median_replay(backend->gpu, graph, out_us, err);
    }
    if (status == KILN_OK) {
        *out_us /= LAUNCHES;
    }
    kiln_gpu_graph_destroy(backend->gpu, &graph);
    cli_device_finish(&d);
    return status;
}

struct timing {
    const struct cli_bench_case *bench;
    double us, bytes, copy_percent; /* copy_percent < 0: too little to compare */
};

static void print_timing(const struct timing *t)
{
    char fields[320] = "", copy[32] = "", target[32] = "-";

    for (size_t i = 0; i < CLI_BENCH_FIELDS_MAX && t->bench->fields[i].name != NULL;
         i++) {
        cli_append(fields, sizeof fields, "%s%s=%" PRId64, i == 0 ? "" : " ",
                   t->bench->fields[i].name, t->bench->fields[i].value);
    }
    if (t->bench->active_width > 0) {
        cli_append(fields, sizeof fields, " active_width=%" PRId64,
                   t->bench->active_width);
    }
    if (t->bench->n_prefill > 0) {
        cli_append(fields, sizeof fields, " prefill=%" PRId64, t->bench->n_prefill);
    }
    cli_append(fields, sizeof fields, "%scontext=%" PRId64, fields[0] == '\0' ? "" : " ",
               t->bench->context);
    for (size_t i = 0; i < CLI_BENCH_OPTIONAL_MAX && t->bench->optional[i] != NULL; i++) {
        cli_append(fields, sizeof fields, " %s", t->bench->optional[i]);
    }
    if (t->bench->target_us > 0) {
        (void)snprintf(target, sizeof target, "%8.2f %6.2f", t->bench->target_us,
                       t->us / t->bench->target_us);
    }
    if (t->copy_percent >= 0) {
        cli_append(copy, sizeof copy, "%5.1f MiB %5.1f%%", t->bytes / (1024 * 1024),
                   t->copy_percent);
    }
    (void)printf("%-20s %6" PRId64 " %4" PRId64 " %8.2f %15s %17s  %s\n", t->bench->op,
                 t->bench->n_tokens, t->bench->n_requests, t->us, target, copy, fields);
    (void)fflush(stdout);
}

static int print_timing_json(const struct timing *t)
{
    json_t *shape = json_object(), *optional = json_array();

    for (size_t i = 0; i < CLI_BENCH_FIELDS_MAX && t->bench->fields[i].name != NULL;
         i++) {
        (void)json_object_set_new(shape, t->bench->fields[i].name,
                                  json_integer(t->bench->fields[i].value));
    }
    for (size_t i = 0; i < CLI_BENCH_OPTIONAL_MAX && t->bench->optional[i] != NULL; i++) {
        (void)json_array_append_new(optional, json_string(t->bench->optional[i]));
    }
    json_t *target =
        t->bench->target_us > 0 ? json_real(t->bench->target_us) : json_null();
    json_t *percent = t->copy_percent >= 0 ? json_real(t->copy_percent) : json_null();
    return cli_print_json(json_pack(
        "{s:s, s:o, s:o, s:I, s:I, s:I, s:I, s:I, s:f, s:o, s:f, s:o}", "op",
        t->bench->op, "fields", shape, "optional", optional, "tokens",
        (json_int_t)t->bench->n_tokens, "requests", (json_int_t)t->bench->n_requests,
        "prefill", (json_int_t)t->bench->n_prefill, "context",
        (json_int_t)t->bench->context, "active_width", (json_int_t)t->bench->active_width,
        "us", t->us, "target_us", target, "bytes", t->bytes, "copy_percent", percent));
}

static int bench_one(const struct cli_bench_case *bench,
                     const struct cli_backend *backend, double copy_bytes_per_us,
                     bool is_json)
{
    struct timing timing = {.bench = bench, .copy_percent = -1};
    struct cli_call call;
    struct kiln_error err;
    int status = cli_bench_fill(bench, &call);

    if (status != CLI_DONE) {
        return status;
    }
    timing.bytes = bytes_needed(&call);
    if (time_call(backend, &call, &timing.us, &err) != KILN_OK) {
        status = cli_report("bench", &err, false);
    }
    if (bench->n_tokens >= ROWS_TO_COMPARE && timing.bytes >= BYTES_TO_COMPARE) {
        timing.copy_percent = timing.bytes / copy_bytes_per_us / timing.us * 100;
    }
    if (status == CLI_DONE && is_json) {
        status = print_timing_json(&timing);
    } else if (status == CLI_DONE) {
        print_timing(&timing);
    }
    cli_call_finish(&call);
    return status;
}

static bool is_wanted(const struct cli_bench_case *bench, const struct cli_words *ops)
{
    for (size_t i = 0; i < ops->n; i++) {
        if (strcmp(bench->op, ops->items[i]) == 0) {
            return true;
        }
    }
    return ops->n == 0;
}

static int check_op(char *name)
{
    struct cli_words one = {.items = &name, .n = 1};
    char known[320] = "";

    for (size_t i = 0; i < cli_n_bench_cases; i++) {
        const char *op = cli_bench_cases[i].op;

        if (is_wanted(&cli_bench_cases[i], &one)) {
            return CLI_DONE;
        }
        if (i == 0 || strcmp(op, cli_bench_cases[i - 1].op) != 0) {
            cli_append(known, sizeof known, "%s%s", i == 0 ? "" : ", ", op);
        }
    }
    return cli_wrong("%s: nothing to time; expected one of %s", name, known);
}

static int check_ops(const struct cli_words *ops)
{
    int status = CLI_DONE;

    for (size_t i = 0; i < ops->n && status == CLI_DONE; i++) {
        status = check_op(ops->items[i]);
    }
    return status;
}

static int bench_all(const struct cli_backend *backend, const struct cli_words *ops,
                     bool is_json)
{
    struct kiln_gpu_info info;
    double copy = 0;
    int status = measure_copy(backend->gpu, &copy);

    if (status != CLI_DONE) {
        return status;
    }
    kiln_gpu_get_info(backend->gpu, &info);
    if (is_json) {
        status = cli_print_json(json_pack("{s:s, s:s, s:f}", "gpu", info.name, "target",
                                          info.target, "copy_gb_s", copy / 1e3));
    } else {
        (void)printf("%s (%s); a large copy reads and writes %.0f GB/s\n"
                     "%-20s %6s %4s %8s %8s %6s %17s  shape\n",
                     info.name, info.target, copy / 1e3, "op", "tokens", "reqs", "us",
                     "target", "ratio", "copy");
    }
    for (size_t i = 0; i < cli_n_bench_cases; i++) {
        if (is_wanted(&cli_bench_cases[i], ops) &&
            bench_one(&cli_bench_cases[i], backend, copy, is_json) != CLI_DONE) {
            status = CLI_FAILED;
        }
    }
    return status;
}

static int run(int argc, char **argv)
{
    struct cli_flags flags = {0};
    struct cli_words ops;
    struct cli_backend backend = {0};
    bool is_json = false;

    cli_add_switch(&flags, "--json", &is_json);
    int status = cli_args_parse(&flags, argc, argv, &ops);
    if (status == CLI_DONE) {
        status = check_ops(&ops);
    }
    if (status == CLI_DONE) {
        status = cli_backend_open(CLI_ON_GPU, 0, &backend);
    }
    if (status != CLI_DONE) {
        return status;
    }
    status = bench_all(&backend, &ops, is_json);
    cli_backend_close(&backend);
    return status;
}

const struct cli_command cli_bench = {"bench", "time kernels on the GPU", help, run};
