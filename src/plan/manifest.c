/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Manifests: a deployment, its targets, its list and the list's digest as JSON. The list
 * in a file is never used: it is planned anew from the deployment and must be the same,
 * so that a kiln that plans otherwise says so.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/attr.h"
#include "base/hash.h"
#include "base/status.h"
#include "base/text.h"
#include "plan/deployment.h"
#include "plan/json.h"
#include "plan/plan.h"
#include "plan/target.h"

enum { MANIFEST_FORMAT = 1 };

static const char *const top_keys[] = {"kiln_manifest", "deployment", "targets",
                                       "digest",        "plan",       NULL};

/* ---- writing ---- */

static json_t *field_json(enum kiln_field_kind kind, const char *const *choices,
                          int64_t value)
{
    switch (kind) {
    case KILN_FIELD_BOOLEAN:
        return json_boolean(value != 0);
    case KILN_FIELD_CHOICE:
        return json_string(choices[value]);
    case KILN_FIELD_INTEGER:
        break;
    }
    return json_integer(value);
}

/* Owner: the caller. NULL: no memory, as for all below; a NULL member fails its object. */
static json_t *shape_json(const struct kiln_op_info *info, const struct kiln_shape *shape)
{
    json_t *object = json_object();

    for (size_t i = 0; i < info->n_fields; i++) {
        const struct kiln_shape_field *field = &info->fields[i];
        json_t *value = field_json(field->kind, field->choices, shape->fields[i]);
        if (json_object_set_new(object, field->name, value) != 0) {
            json_decref(object);
            return NULL;
        }
    }
    return object;
}

static json_t *op_json(const struct kiln_plan_item *item, json_t *shape)
{
    return json_pack("{s:s, s:o}", "op", kiln_op_info_get(item->op)->name, "shape",
                     shape);
}

static json_t *segments_json(const struct kiln_plan *plan,
                             const struct kiln_plan_item *step)
{
    json_t *list = json_array();

    for (size_t i = 0; i < step->n_segments; i++) {
        const struct kiln_plan_item *segment = &plan->segments[step->first_segment + i];
        json_t *shape = shape_json(kiln_op_info_get(segment->op), &segment->shape);
        if (json_array_append_new(list, op_json(segment, shape)) != 0) {
            json_decref(list);
            return NULL;
        }
    }
    return json_pack("{s:o}", "segments", list);
}

static json_t *plan_json(const struct kiln_plan *plan)
{
    json_t *list = json_array();

    for (size_t i = 0; i < plan->n_items; i++) {
        const struct kiln_plan_item *item = &plan->items[i];
        json_t *shape = item->op == KILN_OP_STEP
                            ? segments_json(plan, item)
                            : shape_json(kiln_op_info_get(item->op), &item->shape);
        if (json_array_append_new(list, op_json(item, shape)) != 0) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}

static json_t *digest_json(const struct kiln_plan *plan)
{
    char hex[KI_DIGEST_HEX];

    ki_hash_hex(plan->digest, hex);
    return json_string(hex);
}

static json_t *ratios_json(const struct kiln_deployment *d)
{
    json_t *list = json_array();

    for (int64_t i = 0; i < d->n_compress_ratios; i++) {
        if (json_array_append_new(list, json_integer(d->compress_ratios[i])) != 0) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}

static json_t *deployment_json(const struct kiln_deployment *d)
{
    const struct kiln_deployment_field *field;
    json_t *object = json_pack("{s:I, s:I}", "num_hidden_layers", d->num_hidden_layers,
                               "index_topk", d->index_topk);
    int failed = object == NULL;

    if (d->n_compress_ratios > 0) {
        failed |= json_object_set_new(object, "sliding_window",
                                      json_integer(d->sliding_window));
        failed |= json_object_set_new(object, "compress_ratios", ratios_json(d));
    }
    for (size_t i = 0; (field = kiln_deployment_field_at(i)) != NULL; i++) {
        enum kiln_field_kind kind =
            field->choices != NULL ? KILN_FIELD_CHOICE : KILN_FIELD_INTEGER;
        failed |= json_object_set_new(
            object, field->name,
            field_json(kind, field->choices, ki_deployment_get(d, field)));
    }
    if (failed != 0) {
        json_decref(object);
        return NULL;
    }
    return object;
}

static json_t *targets_json(const struct kiln_manifest *manifest)
{
    json_t *list = json_array();

    for (size_t i = 0; i < manifest->n_targets; i++) {
        if (json_array_append_new(list, json_string(manifest->targets[i])) != 0) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}

static int append_chunk(const char *chunk, size_t size, void *text)
{
    ki_text_bytes(text, chunk, size);
    return ki_text_ok(text) ? 0 : -1;
}

enum kiln_status kiln_manifest_write(const struct kiln_manifest *manifest, char *buf,
                                     size_t size_bytes, size_t *out_bytes,
                                     struct kiln_error *err)
{
    struct kiln_deployment d;
    struct ki_text text;
    enum kiln_status status = KILN_OK;

    if (manifest == NULL || out_bytes == NULL || (buf == NULL && size_bytes > 0)) {
        return ki_fail(err, KILN_E_ARGUMENT, "%s is NULL: expected one",
                       manifest == NULL    ? "manifest"
                       : out_bytes == NULL ? "out_bytes"
                                           : "buf");
    }
    if (manifest->n_targets > KILN_MAX_TARGETS) {
        return ki_fail(err, KILN_E_ARGUMENT, "n_targets = %zu: expected at most %d",
                       manifest->n_targets, KILN_MAX_TARGETS);
    }
    KI_TRY(ki_deployment_resolve(&manifest->deployment, &d, err));
    KI_TRY(ki_plan_check_ops(&manifest->plan, err));
    ki_text_init(&text, NULL);
    json_t *root = json_pack(
        "{s:i, s:o, s:o, s:o, s:o}", "kiln_manifest", MANIFEST_FORMAT, "deployment",
        deployment_json(&d), "targets", targets_json(manifest), "digest",
        digest_json(&manifest->plan), "plan", plan_json(&manifest->plan));
    if (root == NULL ||
        json_dump_callback(root, append_chunk, &text, JSON_INDENT(1)) != 0) {
        status = ki_fail_memory(err, "a manifest");
        goto out;
    }
    ki_text_string(&text, "\n");
    if (!ki_text_ok(&text)) {
        status = ki_fail_memory(err, "a manifest");
        goto out;
    }
    ki_text_hand_out(&text, buf, size_bytes, out_bytes);
out:
    json_decref(root);
    ki_text_finish(&text);
    return status;
}

/* ---- reading ---- */

static enum kiln_status read_choice(const char *name,
                                    const struct kiln_deployment_field *field,
                                    const json_t *value, int64_t *out,
                                    struct kiln_error *err)
{
    char expected[KI_CHOICES_BYTES];
    const char *given = json_is_string(value) ? json_string_value(value) : "";
    struct kiln_error why;
    enum kiln_status status = kiln_deployment_choice(field, given, out, &why);

    if (status == KILN_E_UNSUPPORTED) {
        return ki_fail(err, KILN_E_PARSE, "%s: %s: %.600s", name, field->name,
                       why.message);
    }
    if (status != KILN_OK) {
        ki_deployment_list_choices(field, expected);
        return ki_json_wrong(name, field->name, value, expected, err);
    }
    return KILN_OK;
}

/* Unknown fields are refused: a newer kiln may have written one that changes a shape. */
static enum kiln_status read_deployment(const char *name, const json_t *object,
                                        struct kiln_deployment *d, struct kiln_error *err)
{
    static const char *const model_keys[] = {"num_hidden_layers", "index_topk",
                                             "sliding_window", "compress_ratios"};
    const char *keys[32] = {NULL};
    const struct kiln_deployment_field *field;

    if (!json_is_object(object)) {
        return ki_json_wrong(name, "deployment", object, "an object", err);
    }
    memcpy(keys, model_keys, sizeof(model_keys));
    for (size_t i = 0; (field = kiln_deployment_field_at(i)) != NULL; i++) {
        keys[KI_COUNT_OF(model_keys) + i] = field->name;
    }
    KI_TRY(ki_json_only_keys(name, "deployment", object, keys, err));
    KI_TRY(ki_deployment_read_model(name, object, d, err));
    for (size_t i = 0; (field = kiln_deployment_field_at(i)) != NULL; i++) {
        const json_t *value = json_object_get(object, field->name);
        int64_t *out = ki_deployment_at(d, field);
        if (field->choices != NULL) {
            KI_TRY(read_choice(name, field, value, out, err));
            continue;
        }
        KI_TRY(
            ki_json_integer(name, field->name, value, field->min, field->max, out, err));
    }
    return KILN_OK;
}

static enum kiln_status read_targets(const char *name, const json_t *list,
                                     struct kiln_manifest *out, struct kiln_error *err)
{
    struct ki_target target;
    struct kiln_error why;
    char expected[48];
    char where[32];

    if (!json_is_array(list) || json_array_size(list) > KILN_MAX_TARGETS) {
        (void)snprintf(expected, sizeof(expected), "a list of %d targets at most",
                       KILN_MAX_TARGETS);
        return ki_json_wrong(name, "targets", list, expected, err);
    }
    out->n_targets = json_array_size(list);
    for (size_t i = 0; i < out->n_targets; i++) {
        const json_t *entry = json_array_get(list, i);
        (void)snprintf(where, sizeof(where), "targets[%zu]", i);
        if (!json_is_string(entry)) {
            return ki_json_wrong(name, where, entry, "a target such as \"sm_90\"", err);
        }
        if (ki_target_parse(json_string_value(entry), &target, &why) != KILN_OK) {
            return ki_fail(err, why.status, "%s: %s: %.600s", name, where, why.message);
        }
        ki_target_name(target, out->targets[i]);
        for (size_t k = 0; k < i; k++) {
            if (strcmp(out->targets[k], out->targets[i]) == 0) {
                return ki_fail(err, KILN_E_PARSE,
                               "%s: %s is \"%s\", as targets[%zu] is: expected each once",
                               name, where, out->targets[i], k);
            }
        }
    }
    return KILN_OK;
}

/* A list that differs is most often another kiln's. */
static void advise(struct kiln_error *err)
{
    if (err != NULL) {
        size_t used = strlen(err->message);
        (void)snprintf(err->message + used, sizeof(err->message) - used,
                       ": this kiln plans another list, so make the manifest anew");
    }
}

/* The file's list and digest against those of the plan. */
static enum kiln_status compare_plan(const char *name, const json_t *root,
                                     const struct kiln_plan *plan, struct kiln_error *err)
{
    json_t *list = plan_json(plan);
    json_t *digest = digest_json(plan);
    enum kiln_status status;

    if (list == NULL || digest == NULL) {
        status = ki_fail_memory(err, "a manifest's list");
        goto out;
    }
    status = ki_json_same(name, "plan", json_object_get(root, "plan"), list, err);
    if (status == KILN_OK) {
        status =
            ki_json_same(name, "digest", json_object_get(root, "digest"), digest, err);
    }
    if (status != KILN_OK) {
        advise(err);
    }
out:
    json_decref(list);
    json_decref(digest);
    return status;
}

static enum kiln_status read_root(const char *name, const json_t *root,
                                  struct kiln_manifest *out, struct kiln_error *err)
{
    int64_t format = 0;

    KI_TRY(ki_json_integer(name, "kiln_manifest", json_object_get(root, "kiln_manifest"),
                           MANIFEST_FORMAT, MANIFEST_FORMAT, &format, err));
    KI_TRY(ki_json_only_keys(name, "the manifest", root, top_keys, err));
    KI_TRY(read_deployment(name, json_object_get(root, "deployment"), &out->deployment,
                           err));
    KI_TRY(read_targets(name, json_object_get(root, "targets"), out, err));
    KI_TRY(kiln_plan_make(&out->deployment, &out->plan, err));
    enum kiln_status status = compare_plan(name, root, &out->plan, err);
    if (status != KILN_OK) {
        kiln_plan_finish(&out->plan);
    }
    return status;
}

enum kiln_status kiln_manifest_read(const char *text, size_t size_bytes, const char *name,
                                    struct kiln_manifest *out, struct kiln_error *err)
{
    struct kiln_manifest manifest = {.n_targets = 0};
    json_t *root = NULL;

    if (text == NULL || name == NULL || out == NULL) {
        return ki_fail(err, KILN_E_ARGUMENT, "%s is NULL: expected one",
                       text == NULL   ? "text"
                       : name == NULL ? "name"
                                      : "out");
    }
    KI_TRY(ki_json_object_load(text, size_bytes, name, &root, err));
    enum kiln_status status = read_root(name, root, &manifest, err);
    json_decref(root);
    if (status == KILN_OK) {
        *out = manifest;
    }
    return status;
}
