/* SPDX-License-Identifier: Apache-2.0 */
/* kiln plan: what a deployment launches, as a table, as JSON lines or as a manifest. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "kiln/layout.h"

#include "commands.h"
#include "deployment_flags.h"
#include "report.h"
#include "shape_text.h"
#include "text_file.h"

static const char help[] =
    "usage: kiln plan FLAGS [--arch sm_90,...] [--manifest-out FILE] [--json]\n"
    "\n"
    "Lists every op and shape that the deployment launches.\n"
    "\n" CLI_DEPLOYMENT_HELP "  --arch LIST                  targets of the manifest\n"
    "  --manifest-out FILE          write deployment, targets, list and digest\n"
    "  --json                       one object a line\n";

static void print_json_shape(const struct kiln_plan *plan,
                             const struct kiln_plan_item *item)
{
    if (item->n_segments == 0) {
        cli_print_shape_json(kiln_op_info_get(item->op), &item->shape);
        return;
    }
    (void)fputs("{\"segments\": [", stdout);
    for (size_t i = 0; i < item->n_segments; i++) {
        const struct kiln_plan_item *segment = &plan->segments[item->first_segment + i];
        const struct kiln_op_info *info = kiln_op_info_get(segment->op);

        (void)printf("%s{\"op\": \"%s\", \"shape\": ", i == 0 ? "" : ", ", info->name);
        cli_print_shape_json(info, &segment->shape);
        (void)putchar('}');
    }
    (void)fputs("]}", stdout);
}

static void print_json(const struct kiln_plan *plan)
{
    for (size_t i = 0; i < plan->n_items; i++) {
        const struct kiln_plan_item *item = &plan->items[i];
        const struct kiln_op_info *info = kiln_op_info_get(item->op);

        (void)printf("{\"op\": \"%s\", \"shape\": ", info->name);
        print_json_shape(plan, item);
        (void)printf(", \"supported\": %s, \"layers\": %" PRId64 ", \"rows\": %" PRId64
                     ", \"bytes\": %" PRId64 "}\n",
                     info->supported ? "true" : "false", item->layers, item->rows,
                     item->bytes);
    }
}

/* The total is a launcher's: supported ops, once for each set of outputs. */
static void print_table(const struct kiln_plan *plan, int64_t total_bytes)
{
    static const double mib = 1024.0 * 1024.0;
    size_t n_missing = 0;

    (void)printf("%-20s %6s %8s %10s  shape\n", "op", "layers", "rows", "MiB");
    for (size_t i = 0; i < plan->n_items; i++) {
        const struct kiln_plan_item *item = &plan->items[i];
        const struct kiln_op_info *info = kiln_op_info_get(item->op);
        char shape[512] = "";

        if (item->n_segments > 0) {
            cli_append(shape, sizeof shape, "%zu segments", item->n_segments);
        } else {
            cli_shape_words(info, &item->shape, shape, sizeof shape);
        }
        (void)printf("%-20s %6" PRId64 " %8" PRId64 " %10.2f  %s%s\n", info->name,
                     item->layers, item->rows, (double)item->bytes / mib, shape,
                     info->supported ? "" : "  (not in this kiln yet)");
        n_missing += info->supported ? 0 : 1;
    }
    (void)printf("%zu kernels, %zu of them not in this kiln yet; %.2f MiB of buffers\n",
                 plan->n_items, n_missing, (double)total_bytes / mib);
}

/* What no launcher could hold is no plan, however it is printed. */
static int find_total(const struct cli_deployment_flags *flags,
                      const struct kiln_manifest *manifest, int64_t *out)
{
    struct kiln_layout layout;
    struct kiln_error err;

    if (kiln_layout_make(&manifest->deployment, &layout, &err) == KILN_OK) {
        *out = layout.total_bytes;
        kiln_layout_finish(&layout);
        return CLI_DONE;
    }
    return flags->manifest != NULL ? cli_report_file(flags->manifest, &err)
                                   : cli_report("", &err, true);
}

static int write_manifest(const char *path, const struct kiln_manifest *manifest)
{
    struct kiln_error err;
    size_t size;
    char *text = NULL;
    int status;

    if (kiln_manifest_write(manifest, NULL, 0, &size, &err) != KILN_OK) {
        return cli_report(path, &err, false);
    }
    text = malloc(size + 1);
    if (text == NULL) {
        return cli_failed("%s: out of memory", path);
    }
    if (kiln_manifest_write(manifest, text, size + 1, &size, &err) != KILN_OK) {
        status = cli_report(path, &err, false);
    } else {
        status = cli_write_file(path, text, size);
    }
    free(text);
    return status;
}

static int run(int argc, char **argv)
{
    struct cli_flags flags = {0};
    struct cli_deployment_flags deployment = {0};
    struct kiln_manifest manifest;
    const char *manifest_out = NULL;
    int64_t total_bytes = 0;
    bool is_json = false;

    cli_add_deployment_flags(&deployment, &flags);
    cli_add_text(&flags, "--manifest-out", &manifest_out);
    cli_add_switch(&flags, "--json", &is_json);
    int status = cli_args_parse_flags(&flags, argc, argv);
    if (status == CLI_DONE) {
        status = cli_read_deployment(&deployment, &manifest);
    }
    if (status != CLI_DONE) {
        return status;
    }
    status = find_total(&deployment, &manifest, &total_bytes);
    if (status == CLI_DONE && manifest_out != NULL) {
        status = write_manifest(manifest_out, &manifest);
    }
    if (status == CLI_DONE && is_json) {
        print_json(&manifest.plan);
    } else if (status == CLI_DONE) {
        print_table(&manifest.plan, total_bytes);
    }
    kiln_plan_finish(&manifest.plan);
    return status;
}

const struct cli_command cli_plan = {"plan", "list what a deployment launches", help,
                                     run};
