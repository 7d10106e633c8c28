/* SPDX-License-Identifier: Apache-2.0 */
/* From a call to a launch of its op's program. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "kiln/kiln.h"

#include "cpu.h"
#include "cpu_tools.h"
#include "report.h"

/* Of processor time for one launch; the largest given case takes a hundredth. */
enum { LIMIT_MS = 20000 };

int cli_cpu_open(const struct cli_cpu_options *options, struct cli_cpu **out)
{
    const char *checker = options->checker;
    enum cpu_checker kind = CPU_CHECK_KILN;

    *out = NULL;
    if (checker != NULL && !cpu_checker_find(checker, &kind)) {
        return cli_wrong(
            "--sanitize: \"%s\": expected kiln, none, address, thread or memory",
            checker);
    }
    struct cli_cpu *cpu = calloc(1, sizeof *cpu);
    if (cpu == NULL) {
        return cli_failed("out of memory");
    }
    cpu->seed = options->seed;
    cpu_child_init(&cpu->child, NULL);
    int status = cpu_builder_open(kind, options->cache, &cpu->builder);
    if (status == CLI_DONE && options->replacement != NULL) {
        cpu->replacement = cpu_read_file(options->replacement);
        status =
            cpu->replacement != NULL
                ? CLI_DONE
                : cli_failed("--template: %s: %s", options->replacement, strerror(errno));
    }
    if (status == CLI_DONE) {
        *out = cpu;
    } else {
        cli_cpu_close(&cpu);
    }
    return status;
}

void cli_cpu_close(struct cli_cpu **cpu)
{
    if (*cpu != NULL) {
        cpu_child_finish(&(*cpu)->child);
        cpu_builder_close(&(*cpu)->builder);
        free((*cpu)->source);
        free((*cpu)->replacement);
        free(*cpu);
    }
    *cpu = NULL;
}

/* ---- the program */

static char *emit(const struct cli_call *call, struct kiln_error *err)
{
    size_t size;

    if (kiln_emit_source(call->info->op, &call->shape, call->variant, NULL, 0, &size,
                         err) != KILN_OK) {
        return NULL;
    }
    char *text = malloc(size + 1);
    if (text == NULL) {
        *err = (struct kiln_error){.status = KILN_E_MEMORY, .message = "out of memory"};
        return NULL;
    }
    if (kiln_emit_source(call->info->op, &call->shape, call->variant, text, size + 1,
                         &size, err) != KILN_OK) {
        free(text);
        return NULL;
    }
    return text;
}

/* The constants of an emitted source with another text than the template's behind them. */
static char *replace_template(const struct cli_cpu *cpu, char *source)
{
    const char *line = strstr(source, "#line 1 ");
    int len = line != NULL ? (int)(line - source) + (int)strcspn(line, "\n") : 0;
    char *replaced = cpu_format("%.*s\n%s", len, source, cpu->replacement);

    free(source);
    return replaced;
}

/* The child that executes the call's source; the last one where that is the same. */
static int choose_child(struct cli_cpu *cpu, const struct cli_call *call,
                        const char *prefix)
{
    struct kiln_error err;
    char *source = emit(call, &err), *program = NULL;

    if (source == NULL) {
        return cli_report(prefix, &err, false);
    }
    if (cpu->replacement != NULL) {
        source = replace_template(cpu, source);
    }
    if (source == NULL) {
        return cli_failed("out of memory");
    }
    if (cpu->source != NULL && strcmp(cpu->source, source) == 0) {
        free(source);
        return CLI_DONE;
    }
    cpu_child_finish(&cpu->child);
    free(cpu->source);
    cpu->source = NULL;
    char *entry = cpu_format("kiln_%s", call->info->name);
    int status = entry != NULL ? cpu_build(&cpu->builder, entry, source, &program)
                               : cli_failed("out of memory");
    free(entry);
    if (status != CLI_DONE) {
        free(source);
        return status;
    }
    cpu->source = source;
    cpu_child_init(&cpu->child, program);
    return CLI_DONE;
}

/* ---- the launch */

static uint64_t mix(uint64_t value)
{
    value = (value + 1) * UINT64_C(0x9e3779b97f4a7c15);
    value = (value ^ value >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    return value ^ value >> 31;
}

/* A row of four-byte elements begins at each of its four places in sixteen bytes. */
static uint32_t skew_of(int way, uint64_t seed, size_t i)
{
    return way == 0 ? 0 : (uint32_t)(mix(seed + i) >> 7) % 4;
}

static void add_array(struct cpu_launch *launch, const char *name, size_t args_offset,
                      uint32_t skew_elems)
{
    struct kiln_simt_array *to = &launch->arrays[launch->request.n_arrays];

    *to = (struct kiln_simt_array){.args_offset = args_offset, .skew_elems = skew_elems};
    cli_append(to->name, sizeof to->name, "%s", name);
}

static void add_image(struct cpu_launch *launch, const struct cli_array *array,
                      uint32_t skew_elems)
{
    struct kiln_simt_array *to = &launch->arrays[launch->request.n_arrays];

    add_array(launch, array->arg->name, array->arg->offset, skew_elems);
    to->rows = (uint64_t)array->rows;
    to->width = (uint64_t)array->width;
    to->stride = (uint64_t)array->stride;
    to->elem_bytes = (uint32_t)array->elem_bytes;
    to->data_bytes = array->image_bytes - 2 * CLI_GUARD_BYTES;
    to->is_output = array->arg->kind == KILN_ARG_OUTPUT;
    launch->data[launch->request.n_arrays++] = array->image + CLI_GUARD_BYTES;
}

/* A count that the kernel reads from memory; `value` is that memory. */
static void add_count(struct cpu_launch *launch, struct cli_call *call, size_t i,
                      int32_t *value, uint32_t skew_elems)
{
    struct kiln_simt_array *to = &launch->arrays[launch->request.n_arrays];
    struct kiln_count count = {.kind = KILN_COUNT_DEVICE, .address = value};
    size_t offset = call->info->args[i].offset + offsetof(struct kiln_count, address);

    cli_call_set_count(call, i, &count);
    add_array(launch, call->info->args[i].name, offset, skew_elems);
    to->rows = to->width = to->stride = 1;
    to->elem_bytes = sizeof *value;
    to->data_bytes = sizeof *value;
    launch->data[launch->request.n_arrays++] = (unsigned char *)value;
}

/* In words of four bytes, so that each part of an entry is one that is written once. */
static void add_report(struct cpu_launch *launch, const struct cli_call *call, int way)
{
    struct kiln_simt_array *to = &launch->arrays[launch->request.n_arrays];

    add_array(launch, "report", call->info->report_offset, way == 0 ? 0 : 2);
    to->elem_bytes = sizeof(int32_t);
    to->data_bytes = cli_call_report_bytes(call);
    to->rows = to->data_bytes / to->elem_bytes;
    to->width = to->stride = 1;
    to->is_output = to->is_defined = 1;
    launch->data[launch->request.n_arrays++] = (unsigned char *)call->report;
}

static void add_arrays(struct cpu_launch *launch, struct cli_call *call, int way)
{
    for (size_t i = 0; i < call->info->n_args; i++) {
        struct cli_array *array = &call->arrays[i];
        uint32_t skew = skew_of(way, launch->request.seed, i);

        if (launch->request.n_arrays == KILN_SIMT_ARRAYS_MAX) {
            return;
        }
        if (array->image != NULL) {
            add_image(launch, array, skew);
        } else if (way == 1 && array->count.kind == KILN_COUNT_VALUE) {
            add_count(launch, call, i, &array->count.value, skew);
        }
    }
    if (call->report != NULL && launch->request.n_arrays < KILN_SIMT_ARRAYS_MAX) {
        add_report(launch, call, way);
    }
}

static const void *const nowhere = (const void *)(uintptr_t)16;

/* What does not exist in a case: results depend on none of it. */
static const int gpu_sizes[] = {132, 1, 7, 148};

int cli_cpu_try(struct cli_cpu *cpu, struct cli_call *call, int way, const char *prefix,
                char why[CPU_WHY_BYTES])
{
    struct cpu_launch launch = {.args = call->args};
    struct kiln_geometry geometry;
    struct kiln_error err;
    uint64_t seed = mix(cpu->seed * CLI_CPU_WAYS + (uint64_t)way);
    int status = choose_child(cpu, call, prefix);

    why[0] = '\0';
    if (status != CLI_DONE) {
        return status;
    }
    launch.request = (struct kiln_simt_request){
        .magic = KILN_SIMT_MAGIC,
        .seed = seed,
        .args_bytes = (uint32_t)call->info->args_bytes,
        .limit_ms = LIMIT_MS,
    };
    cli_call_bind_host(call);
    if ((call->variant & KILN_VARIANT_CHECKED) == 0) {
        cli_call_set_report(call, nowhere); /* which no other kernel reads */
    }
    add_arrays(&launch, call, way);
    if (kiln_geometry_make(call->info->op, &call->shape, call->args, gpu_sizes[seed % 4],
                           &geometry, &err) != KILN_OK) {
        return cli_report(prefix, &err, false);
    }
    if (geometry.grid_x == 0 || geometry.grid_y == 0) {
        return CLI_DONE;
    }
    launch.request.grid_x = geometry.grid_x;
    launch.request.grid_y = geometry.grid_y;
    launch.request.threads = geometry.threads;
    return cpu_child_launch(&cpu->child, &launch, why) ? CLI_DONE : CLI_FAILED;
}

int cli_cpu_run(struct cli_cpu *cpu, struct cli_call *call, int way, const char *prefix)
{
    char why[CPU_WHY_BYTES];
    int status = cli_cpu_try(cpu, call, way, prefix, why);

    return why[0] == '\0' ? status
                          : cli_failed("%s: cpu: %s: %s", prefix, call->info->name, why);
}
