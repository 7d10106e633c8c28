/* SPDX-License-Identifier: Apache-2.0 */
/* Turns flags into a planned deployment. What a deployment launches is the library's
 * business. */
#include <stdlib.h>
#include <stdio.h>
#include <string.h>

#include "deployment_flags.h"
#include "report.h"
#include "shape_text.h"
#include "text_file.h"

static int64_t *at(struct kiln_deployment *numbers,
                   const struct kiln_deployment_field *field)
{
    return (int64_t *)(void *)((char *)numbers + field->offset);
}

void cli_add_deployment_flags(struct cli_deployment_flags *d, struct cli_flags *flags)
{
    const struct kiln_deployment_field *field;

    d->flags = flags;
    d->first_flag = flags->n;
    cli_add_text(flags, "--model", &d->model);
    for (size_t i = 0; (field = kiln_deployment_field_at(i)) != NULL; i++) {
        if (field->choices != NULL) {
            cli_add_text(flags, field->flag, &d->choices[i]);
        } else { /* lengths are int32 in every launch, whatever could be planned */
            cli_add_integer(flags, field->flag, field->min, INT32_MAX,
                            at(&d->numbers, field));
        }
    }
    d->last_flag = flags->n - 1;
    cli_add_text(flags, "--manifest", &d->manifest);
    cli_add_text(flags, "--arch", &d->arch);
}

/* The first flag given that a manifest holds too; NULL: none. */
static const char *first_given(const struct cli_deployment_flags *d)
{
    for (size_t i = d->first_flag; i <= d->last_flag; i++) {
        if (d->flags->items[i].given) {
            return d->flags->items[i].name;
        }
    }
    return NULL;
}

bool cli_has_deployment(const struct cli_deployment_flags *d)
{
    return d->manifest != NULL || first_given(d) != NULL;
}

static int add_target(struct kiln_manifest *manifest, const char *name, size_t len)
{
    char target[sizeof manifest->targets[0]];
    struct kiln_error err;

    if (len == 0 || len >= sizeof target) {
        return cli_wrong("--arch: \"%.*s\": expected targets such as sm_90, with commas "
                         "between",
                         (int)len, name);
    }
    memcpy(target, name, len);
    target[len] = '\0';
    for (size_t i = 0; i < manifest->n_targets; i++) {
        if (strcmp(manifest->targets[i], target) == 0) {
            return cli_wrong("--arch: %s is given twice", target);
        }
    }
    if (manifest->n_targets == KILN_MAX_TARGETS) {
        return cli_wrong("--arch: expected %d targets at most", KILN_MAX_TARGETS);
    }
    if (kiln_target_check(target, &err) != KILN_OK) {
        return cli_report("--arch", &err, true);
    }
    memcpy(manifest->targets[manifest->n_targets++], target, len + 1);
    return CLI_DONE;
}

/* --arch replaces the targets of a manifest. */
static int read_targets(const char *list, struct kiln_manifest *manifest)
{
    if (list == NULL) {
        return CLI_DONE;
    }
    manifest->n_targets = 0;
    memset(manifest->targets, 0, sizeof manifest->targets);
    for (;;) {
        size_t len = strcspn(list, ",");
        int status = add_target(manifest, list, len);

        if (status != CLI_DONE || list[len] == '\0') {
            return status;
        }
        list += len + 1;
    }
}

static int read_choices(const struct cli_deployment_flags *d, struct kiln_deployment *out)
{
    const struct kiln_deployment_field *field;
    struct kiln_error err;

    for (size_t i = 0; (field = kiln_deployment_field_at(i)) != NULL; i++) {
        if (d->choices[i] != NULL &&
            kiln_deployment_choice(field, d->choices[i], at(out, field), &err) !=
                KILN_OK) {
            return cli_report(field->flag, &err, true);
        }
    }
    return CLI_DONE;
}

static int read_model(const struct cli_deployment_flags *d, struct kiln_manifest *out)
{
    char *text;
    size_t size;
    struct kiln_error err;

    out->deployment = d->numbers;
    int status = read_choices(d, &out->deployment);
    if (status == CLI_DONE) {
        status = cli_read_json_text(d->model, &text, &size);
    }
    if (status != CLI_DONE) {
        return status;
    }
    if (kiln_deployment_from_config(text, size, d->model, &out->deployment, &err) !=
        KILN_OK) {
        status = cli_report_file(d->model, &err);
    } else if (kiln_plan_make(&out->deployment, &out->plan, &err) != KILN_OK) {
        status = cli_report("", &err, true);
    }
    free(text);
    return status;
}

static int read_manifest(const char *path, struct kiln_manifest *out)
{
    char *text;
    size_t size;
    struct kiln_error err;
    int status = cli_read_json_text(path, &text, &size);

    if (status != CLI_DONE) {
        return status;
    }
    if (kiln_manifest_read(text, size, path, out, &err) != KILN_OK) {
        status = cli_report_file(path, &err);
    }
    free(text);
    return status;
}

/* What of the call can be said to be wrong before a file is read. */
static int check_call(const struct cli_deployment_flags *d)
{
    const char *other = first_given(d);

    if (d->manifest != NULL && other != NULL) {
        return cli_wrong("%s: cannot be given with --manifest, which holds it", other);
    }
    if (d->manifest == NULL && d->model == NULL) {
        return cli_wrong(
            "--model: missing; expected a model's config.json, or --manifest");
    }
    if (d->manifest == NULL && d->numbers.max_model_len == 0) {
        return cli_wrong("--max-model-len: missing");
    }
    if (d->manifest == NULL && d->numbers.max_num_batched_tokens == 0) {
        return cli_wrong("--max-num-batched-tokens: missing");
    }
    return CLI_DONE;
}

int cli_read_deployment(const struct cli_deployment_flags *d, struct kiln_manifest *out)
{
    struct kiln_manifest manifest = {0};
    int status = check_call(d);

    /* the call's own mistakes come before a file's */
    if (status == CLI_DONE) {
        status = read_targets(d->arch, &manifest);
    }
    if (status != CLI_DONE) {
        return status;
    }
    if (d->manifest != NULL) {
        status = read_manifest(d->manifest, &manifest);
    } else {
        status = read_model(d, &manifest);
    }
    if (status == CLI_DONE) {
        status = read_targets(d->arch, &manifest);
    }
    if (status != CLI_DONE) {
        kiln_plan_finish(&manifest.plan);
        return status;
    }
    *out = manifest;
    return CLI_DONE;
}

int cli_read_targeted_deployment(const struct cli_deployment_flags *d,
                                 struct kiln_manifest *out)
{
    if (d->manifest == NULL && d->arch == NULL) {
        return cli_wrong("--arch: missing; expected targets such as sm_90,sm_100");
    }
    int status = cli_read_deployment(d, out);
    if (status != CLI_DONE) {
        return status;
    }
    if (out->n_targets == 0) {
        kiln_plan_finish(&out->plan);
        return cli_wrong("--arch: missing, and %s names no targets", d->manifest);
    }
    return CLI_DONE;
}

int cli_make_requests(const struct kiln_manifest *manifest, struct kiln_request **out,
                      size_t *out_n)
{
    const struct kiln_plan *plan = &manifest->plan;
    size_t n = 0;
    struct kiln_request *requests =
        calloc(plan->n_items * manifest->n_targets + 1, sizeof *requests);

    if (requests == NULL) {
        return cli_failed("out of memory");
    }
    for (size_t i_target = 0; i_target < manifest->n_targets; i_target++) {
        for (size_t i = 0; i < plan->n_items; i++) {
            const struct kiln_plan_item *item = &plan->items[i];

            if (!kiln_op_info_get(item->op)->supported) {
                continue;
            }
            requests[n].op = item->op;
            requests[n].shape = item->shape;
            requests[n++].target = manifest->targets[i_target];
        }
    }
    *out = requests;
    *out_n = n;
    return CLI_DONE;
}

void cli_print_unsupported(const struct kiln_plan *plan)
{
    for (size_t i = 0; i < plan->n_items; i++) {
        const struct kiln_plan_item *item = &plan->items[i];
        const struct kiln_op_info *info = kiln_op_info_get(item->op);
        char shape[512] = "";

        if (info->supported) {
            continue;
        }
        if (item->n_segments == 0) {
            cli_shape_words(info, &item->shape, shape, sizeof shape);
        } else {
            cli_append(shape, sizeof shape, "%zu segments", item->n_segments);
        }
        (void)printf("unsupported  %s  %s  (not in this kiln yet)\n", info->name, shape);
    }
}
