/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A deployment's numbers: read from a model's config, made complete, checked one by one.
 * Must know no op: what the numbers add up to is plan.c's.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/attr.h"
#include "base/status.h"
#include "plan/deployment.h"
#include "plan/json.h"
#include "plan/profile.h"

/* Token counts are int32 in every kernel's arguments. */
#define COUNT_MAX INT32_MAX

/* Of a model's widths and ratios. No model comes near it, and it leaves the operator's
 * numbers as the only ones that can make a row too long: those are what is blamed then. */
enum { MODEL_MAX = 1 << 24 };

static const char *const storages[] = {"sharded", "replicated", NULL};

#define FIELD(field, flag, min, max)                                                     \
    {                                                                                    \
#field, flag, offsetof(struct kiln_deployment, field), min, max, NULL, NULL      \
    }
#define CHOICE(field, flag, max, choices, later)                                         \
    {                                                                                    \
#field, flag, offsetof(struct kiln_deployment, field), 0, max, choices, later    \
    }

static const struct kiln_deployment_field fields[] = {
    FIELD(max_model_len, "--max-model-len", 1, INT64_MAX),
    FIELD(max_num_batched_tokens, "--max-num-batched-tokens", 1, COUNT_MAX),
    FIELD(max_num_seqs, "--max-num-seqs", 1, COUNT_MAX),
    FIELD(block_size, "--block-size", 1, COUNT_MAX),
    FIELD(num_speculative_tokens, "--num-speculative-tokens", 0, COUNT_MAX),
    FIELD(dcp_world, "--dcp-world", 1, COUNT_MAX),
    FIELD(dcp_interleave, "--dcp-interleave", 1, COUNT_MAX),
    CHOICE(dcp_storage, "--dcp-storage", KILN_DCP_REPLICATED, storages, NULL),
    FIELD(image_width, "--image-width", 0, COUNT_MAX),
    CHOICE(profile, "--profile", KILN_PROFILE_FLASHINFER, ki_profile_names,
           ki_profiles_later),
};

const struct kiln_deployment_field *kiln_deployment_field_at(size_t i)
{
    return i < KI_COUNT_OF(fields) ? &fields[i] : NULL;
}

int64_t *ki_deployment_at(struct kiln_deployment *deployment,
                          const struct kiln_deployment_field *field)
{
    return (int64_t *)(void *)((char *)deployment + field->offset);
}

int64_t ki_deployment_get(const struct kiln_deployment *deployment,
                          const struct kiln_deployment_field *field)
{
    int64_t value;

    memcpy(&value, (const char *)deployment + field->offset, sizeof(value));
    return value;
}

static int64_t index_in(const char *const *names, const char *name)
{
    for (int64_t i = 0; names != NULL && names[i] != NULL; i++) {
        if (strcmp(names[i], name) == 0) {
            return i;
        }
    }
    return -1;
}

void ki_deployment_list_choices(const struct kiln_deployment_field *field,
                                char out[KI_CHOICES_BYTES])
{
    const char *const *choices = field->choices;
    size_t used = 0;

    out[0] = '\0';
    for (size_t i = 0; choices[i] != NULL && used < KI_CHOICES_BYTES; i++) {
        const char *before = i == 0 ? "" : choices[i + 1] == NULL ? " or " : ", ";
        used += (size_t)snprintf(out + used, KI_CHOICES_BYTES - used, "%s%s", before,
                                 choices[i]);
    }
}

enum kiln_status kiln_deployment_choice(const struct kiln_deployment_field *field,
                                        const char *name, int64_t *out,
                                        struct kiln_error *err)
{
    char expected[KI_CHOICES_BYTES];

    if (field == NULL || name == NULL || out == NULL) {
        return ki_fail(err, KILN_E_ARGUMENT, "%s is NULL: expected one",
                       field == NULL  ? "field"
                       : name == NULL ? "name"
                                      : "out");
    }
    if (field->choices == NULL) {
        return ki_fail(err, KILN_E_ARGUMENT, "%s is a number: expected a choice",
                       field->name);
    }
    int64_t value = index_in(field->choices, name);
    if (value >= 0) {
        *out = value;
        return KILN_OK;
    }
    ki_deployment_list_choices(field, expected);
    if (index_in(field->later, name) >= 0) {
        return ki_fail(err, KILN_E_UNSUPPORTED, "%s is not in this kiln yet, expected %s",
                       name, expected);
    }
    return ki_fail(err, KILN_E_ARGUMENT, "expected %s, got \"%.256s\"", expected, name);
}

static enum kiln_status check_range(const char *what, int64_t value, int64_t min,
                                    int64_t max, struct kiln_error *err)
{
    if (value >= min && value <= max) {
        return KILN_OK;
    }
    if (max == INT64_MAX) {
        return ki_fail(err, KILN_E_ARGUMENT,
                       "%s is %" PRId64 ", expected %" PRId64 " or more", what, value,
                       min);
    }
    return ki_fail(err, KILN_E_ARGUMENT,
                   "%s is %" PRId64 ", expected %" PRId64 " to %" PRId64, what, value,
                   min, max);
}

/* Ratios are padded to the layers, so that from here on their number is all there is. */
static enum kiln_status resolve_model(struct kiln_deployment *d, struct kiln_error *err)
{
    char what[48];

    KI_TRY(
        check_range("num_hidden_layers", d->num_hidden_layers, 1, KILN_MAX_LAYERS, err));
    KI_TRY(check_range("index_topk", d->index_topk, 1, MODEL_MAX, err));
    KI_TRY(check_range("the number of compress_ratios", d->n_compress_ratios, 0,
                       KILN_MAX_LAYERS, err));
    if (d->n_compress_ratios == 0) {
        return KILN_OK;
    }
    KI_TRY(check_range("sliding_window", d->sliding_window, 1, MODEL_MAX, err));
    for (int64_t i = 0; i < d->n_compress_ratios; i++) {
        (void)snprintf(what, sizeof(what), "compress_ratios[%" PRId64 "]", i);
        KI_TRY(check_range(what, d->compress_ratios[i], 0, MODEL_MAX, err));
    }
    while (d->n_compress_ratios < d->num_hidden_layers) {
        d->compress_ratios[d->n_compress_ratios++] = 0;
    }
    return KILN_OK;
}

static void default_to(int64_t *value, int64_t default_value)
{
    if (*value == 0) {
        *value = default_value;
    }
}

enum kiln_status ki_deployment_resolve(const struct kiln_deployment *deployment,
                                       struct kiln_deployment *out,
                                       struct kiln_error *err)
{
    struct kiln_deployment d = *deployment;

    KI_TRY(resolve_model(&d, err));
    default_to(&d.max_num_seqs, 256);
    default_to(&d.block_size, d.n_compress_ratios > 0 ? 256 : 64);
    default_to(&d.dcp_world, 1);
    default_to(&d.dcp_interleave, 1);
    for (size_t i = 0; i < KI_COUNT_OF(fields); i++) {
        KI_TRY(check_range(fields[i].flag, ki_deployment_get(&d, &fields[i]),
                           fields[i].min, fields[i].max, err));
    }
    *out = d;
    return KILN_OK;
}

static int64_t layers_at(const struct kiln_deployment *d, int64_t ratio)
{
    int64_t layers = 0;

    for (int64_t i = 0; i < d->n_compress_ratios; i++) {
        layers += d->compress_ratios[i] == ratio;
    }
    return layers;
}

bool ki_deployment_next_kind(const struct kiln_deployment *d, struct ki_layer_kind *kind)
{
    int64_t next = INT64_MAX;

    for (int64_t i = 0; i < d->n_compress_ratios; i++) {
        int64_t ratio = d->compress_ratios[i];
        next = ratio > kind->ratio && ratio < next ? ratio : next;
    }
    if (next == INT64_MAX) {
        return false;
    }
    kind->ratio = next;
    kind->layers = layers_at(d, next);
    /* A model has records at ratio 1 only beside ratio 2; alone 1 is another name of 0. */
    kind->is_window_only = next == 0 || (next == 1 && layers_at(d, 2) == 0);
    kind->has_indexer = !kind->is_window_only && next != KI_RATIO_ALL;
    return true;
}

static enum kiln_status check_interleave(const struct kiln_deployment *d,
                                         const char *what, int64_t block_size,
                                         struct kiln_error *err)
{
    if (block_size % d->dcp_interleave == 0) {
        return KILN_OK;
    }
    return ki_fail(err, KILN_E_ARGUMENT,
                   "--dcp-interleave is %" PRId64 ", expected a divisor of %" PRId64
                   ", the block size of %s",
                   d->dcp_interleave, block_size, what);
}

enum kiln_status ki_deployment_check_blocks(const struct kiln_deployment *d,
                                            struct kiln_error *err)
{
    struct ki_layer_kind kind = {.ratio = -1};

    KI_TRY(check_interleave(d, "the scheduler", d->block_size, err));
    if (d->n_compress_ratios > 0) {
        KI_TRY(check_interleave(d, "the window cache", KI_WINDOW_BLOCK, err));
    }
    while (ki_deployment_next_kind(d, &kind)) {
        if (kind.ratio == 0) {
            continue;
        }
        if (d->block_size % kind.ratio != 0) {
            return ki_fail(err, KILN_E_ARGUMENT,
                           "--block-size is %" PRId64 ", expected a multiple of %" PRId64
                           ", one of compress_ratios",
                           d->block_size, kind.ratio);
        }
        KI_TRY(check_interleave(d, "a compressed cache (--block-size over its ratio)",
                                d->block_size / kind.ratio, err));
    }
    return KILN_OK;
}

static enum kiln_status read_ratios(const char *name, const json_t *list,
                                    struct kiln_deployment *d, struct kiln_error *err)
{
    char where[48];
    int64_t ratio = 0;

    if (!json_is_array(list)) {
        return ki_json_wrong(name, "compress_ratios", list, "a list of integers", err);
    }
    if (json_array_size(list) > KILN_MAX_LAYERS) {
        return ki_fail(err, KILN_E_PARSE,
                       "%s: compress_ratios has %zu entries, expected %d at most", name,
                       json_array_size(list), KILN_MAX_LAYERS);
    }
    for (size_t i = 0; i < json_array_size(list); i++) {
        (void)snprintf(where, sizeof(where), "compress_ratios[%zu]", i);
        KI_TRY(ki_json_integer(name, where, json_array_get(list, i), 0, MODEL_MAX, &ratio,
                               err));
        d->compress_ratios[i] = (int32_t)ratio;
    }
    d->n_compress_ratios = (int64_t)json_array_size(list);
    /* An empty list is a list: all layers are window only. */
    while (d->n_compress_ratios < d->num_hidden_layers) {
        d->compress_ratios[d->n_compress_ratios++] = 0;
    }
    return KILN_OK;
}

enum kiln_status ki_deployment_read_model(const char *name, const json_t *root,
                                          struct kiln_deployment *d,
                                          struct kiln_error *err)
{
    const json_t *ratios = json_object_get(root, "compress_ratios");

    KI_TRY(ki_json_integer(name, "num_hidden_layers",
                           json_object_get(root, "num_hidden_layers"), 1, KILN_MAX_LAYERS,
                           &d->num_hidden_layers, err));
    KI_TRY(ki_json_integer(name, "index_topk", json_object_get(root, "index_topk"), 1,
                           MODEL_MAX, &d->index_topk, err));
    d->n_compress_ratios = 0;
    d->sliding_window = 0;
    memset(d->compress_ratios, 0, sizeof(d->compress_ratios));
    if (ratios == NULL || json_is_null(ratios)) {
        return KILN_OK;
    }
    KI_TRY(read_ratios(name, ratios, d, err));
    return ki_json_integer(name, "sliding_window",
                           json_object_get(root, "sliding_window"), 1, MODEL_MAX,
                           &d->sliding_window, err);
}

enum kiln_status kiln_deployment_from_config(const char *text, size_t size_bytes,
                                             const char *name,
                                             struct kiln_deployment *out,
                                             struct kiln_error *err)
{
    struct kiln_deployment d;
    json_t *root = NULL;

    if (text == NULL || name == NULL || out == NULL) {
        return ki_fail(err, KILN_E_ARGUMENT, "%s is NULL: expected one",
                       text == NULL   ? "text"
                       : name == NULL ? "name"
                                      : "out");
    }
    d = *out;
    KI_TRY(ki_json_object_load(text, size_bytes, name, &root, err));
    enum kiln_status status = ki_deployment_read_model(name, root, &d, err);
    json_decref(root);
    if (status == KILN_OK) {
        *out = d;
    }
    return status;
}
