/* SPDX-License-Identifier: Apache-2.0 */
/*
 * deployment -> the launches of a step and the buffers that they fill: the plan's supported
 * items in its order, once for each set of outputs. Pure.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "kiln/layout.h"

#include "base/attr.h"
#include "base/mem.h"
#include "base/status.h"
#include "plan/deployment.h"
#include "plan/sizes.h"

struct placer {
    struct kiln_deployment d; /* complete */
    struct kiln_plan plan;
    struct kiln_layout layout;
};

/* ---- names ---- */

/* What tells an item from the others of its op; "" where it has none. */
static void write_suffix(const struct placer *p, const struct kiln_plan_item *item,
                         char out[KILN_LAUNCH_NAME])
{
    int64_t ratio = -1;

    out[0] = '\0';
    switch (item->op) {
    case KILN_OP_COMPRESSED_SLOTS:
        ratio = item->shape.compressed_slots.compress_ratio;
        break;
    case KILN_OP_COMBINE_TOPK_SWA:
        ratio = item->shape.combine_topk_swa.compress_ratio;
        break;
    case KILN_OP_GLOBAL_TOPK:
        /* a page holds the records of one scheduler block */
        ratio = p->d.block_size / item->shape.global_topk.block_size;
        break;
    case KILN_OP_SWA_INDICES:
        (void)snprintf(out, KILN_LAUNCH_NAME, "%s",
                       item->shape.swa_indices.causal ? "" : ".draft");
        break;
    case KILN_OP_C128A_TOPK:
    case KILN_OP_MIXED_SPARSE_INDICES:
    case KILN_OP_REQ_TO_GLOBAL:
    case KILN_OP_TOKEN_TO_REQ:
    case KILN_OP_IS_VALID_TOKEN:
    case KILN_OP_GATHER_LENS:
    case KILN_OP_IMAGE_VISIBILITY:
    case KILN_OP_STEP:
        break;
    }
    if (ratio >= 0) {
        (void)snprintf(out, KILN_LAUNCH_NAME, ".%" PRId64, ratio);
    }
}

/* ---- buffers ---- */

static enum kiln_status place_buffer(struct placer *p, const struct kiln_plan_item *item,
                                     const struct kiln_arg *arg, struct kiln_error *err)
{
    struct kiln_layout *layout = &p->layout;
    const struct kiln_layout_launch *launch = &layout->launches[layout->n_launches];
    struct kiln_buffer *buffer = &layout->buffers[layout->n_buffers];
    const int64_t rows = ki_rows_at_capacity(&p->d, item, arg->extent);

    *buffer = (struct kiln_buffer){
        .i_launch = layout->n_launches,
        .dtype = arg->dtype,
        .rows = rows,
        .width = ki_row_width(arg, &item->shape),
        .stride = ki_row_stride(arg, &item->shape),
        .offset = layout->total_bytes,
    };
    (void)snprintf(buffer->name, sizeof buffer->name, "%s.%s", launch->name, arg->name);
    if (!ki_add_product(&buffer->bytes, rows, ki_row_bytes(arg, &item->shape)) ||
        buffer->bytes > INT64_MAX - KILN_BUFFER_ALIGN ||
        !ki_add_product(&layout->total_bytes, ki_buffer_room(buffer->bytes), 1)) {
        return ki_fail_bytes(&p->d, "all ops together", err);
    }
    layout->n_buffers++;
    return KILN_OK;
}

/* One launch with its buffers; `cache` is its last name, or "". */
static enum kiln_status place_launch(struct placer *p, const struct kiln_plan_item *item,
                                     const char *cache, struct kiln_error *err)
{
    const struct kiln_op_info *info = kiln_op_info_get(item->op);
    struct kiln_layout *layout = &p->layout;
    struct kiln_layout_launch *launch = &layout->launches[layout->n_launches];
    char suffix[KILN_LAUNCH_NAME];

    write_suffix(p, item, suffix);
    *launch = (struct kiln_layout_launch){
        .op = item->op,
        .shape = item->shape,
        .layers = cache[0] != '\0' ? 1 : item->layers,
        .first_buffer = layout->n_buffers,
    };
    (void)snprintf(launch->name, sizeof launch->name, "%s%.24s%s", info->name, suffix,
                   cache);
    for (size_t i = 0; i < info->n_args; i++) {
        if (info->args[i].kind == KILN_ARG_OUTPUT) {
            KI_TRY(place_buffer(p, item, &info->args[i], err));
        }
    }
    launch->n_buffers = layout->n_buffers - launch->first_buffer;
    layout->n_launches++;
    return KILN_OK;
}

/* A ratio with an indexer has a cache of its own for it: two sets of outputs. */
static bool has_two_caches(const struct kiln_plan_item *item)
{
    return item->op == KILN_OP_COMPRESSED_SLOTS && item->layers == 2;
}

static enum kiln_status place_item(struct placer *p, const struct kiln_plan_item *item,
                                   struct kiln_error *err)
{
    if (!kiln_op_info_get(item->op)->supported) {
        return KILN_OK;
    }
    if (has_two_caches(item)) {
        KI_TRY(place_launch(p, item, ".main", err));
        return place_launch(p, item, ".indexer", err);
    }
    return place_launch(p, item, "", err);
}

static size_t count_outputs(const struct kiln_op_info *info)
{
    size_t n = 0;

    for (size_t i = 0; i < info->n_args; i++) {
        n += info->args[i].kind == KILN_ARG_OUTPUT ? 1 : 0;
    }
    return n;
}

/* Room for two sets of outputs of each item, the most that any has. */
static enum kiln_status make_room(struct placer *p, struct kiln_error *err)
{
    size_t n_launches = 0;
    size_t n_buffers = 0;

    for (size_t i = 0; i < p->plan.n_items; i++) {
        n_launches += 2;
        n_buffers += 2 * count_outputs(kiln_op_info_get(p->plan.items[i].op));
    }
    p->layout.launches = ki_mem_array(NULL, n_launches, sizeof(*p->layout.launches));
    p->layout.buffers = ki_mem_array(NULL, n_buffers, sizeof(*p->layout.buffers));
    if (p->layout.launches == NULL || p->layout.buffers == NULL) {
        return ki_fail_memory(err, "a layout");
    }
    return KILN_OK;
}

static enum kiln_status place_all(struct placer *p, struct kiln_error *err)
{
    KI_TRY(make_room(p, err));
    for (size_t i = 0; i < p->plan.n_items; i++) {
        KI_TRY(place_item(p, &p->plan.items[i], err));
    }
    memcpy(p->layout.digest, p->plan.digest, sizeof p->layout.digest);
    return KILN_OK;
}

/* ---- public ---- */

enum kiln_status kiln_layout_make(const struct kiln_deployment *deployment,
                                  struct kiln_layout *out, struct kiln_error *err)
{
    struct placer p = {.layout = {.total_bytes = 0}};
    enum kiln_status status;

    if (out == NULL) {
        return ki_fail(err, KILN_E_ARGUMENT, "out is NULL: expected an address");
    }
    KI_TRY(kiln_plan_make(deployment, &p.plan, err));
    status = ki_deployment_resolve(deployment, &p.d, err);
    if (status == KILN_OK) {
        status = place_all(&p, err);
    }
    kiln_plan_finish(&p.plan);
    if (status != KILN_OK) {
        kiln_layout_finish(&p.layout);
        return status;
    }
    *out = p.layout;
    return KILN_OK;
}

void kiln_layout_finish(struct kiln_layout *layout)
{
    if (layout == NULL) {
        return;
    }
    ki_mem_free(NULL, layout->launches);
    ki_mem_free(NULL, layout->buffers);
    memset(layout, 0, sizeof(*layout));
}

size_t kiln_layout_find_launch(const struct kiln_layout *layout, const char *name)
{
    size_t i = 0;

    if (layout == NULL) {
        return 0;
    }
    while (name != NULL && i < layout->n_launches &&
           strcmp(layout->launches[i].name, name) != 0) {
        i++;
    }
    return name != NULL ? i : layout->n_launches;
}

const struct kiln_buffer *kiln_layout_find_buffer(const struct kiln_layout *layout,
                                                  const char *name)
{
    for (size_t i = 0; layout != NULL && name != NULL && i < layout->n_buffers; i++) {
        if (strcmp(layout->buffers[i].name, name) == 0) {
            return &layout->buffers[i];
        }
    }
    return NULL;
}
