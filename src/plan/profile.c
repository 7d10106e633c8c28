/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The consumers of rows, a row of one table each, and whether one can take what an op
 * makes. The only place that knows consumers by name: plans follow the table.
 */
#include <stdint.h>
#include <string.h>

#include "base/attr.h"
#include "base/status.h"
#include "plan/profile.h"

const char *const ki_profile_names[] = {"flashmla", "flashinfer", NULL};
const char *const ki_profiles_later[] = {"flashinfer_sm120", "b12x", "sglang", NULL};

static const struct kiln_profile_info profiles[] = {
    [KILN_PROFILE_FLASHMLA] = {.name = "flashmla",
                               .align = 128,
                               .width_multiple = 64,
                               .stride_multiple = 1,
                               .contiguous_above = INT64_MAX,
                               .padding = KILN_PADDING_ZERO,
                               .ids = KILN_IDS_SLOTS,
                               .no_write_slot = -1},
    [KILN_PROFILE_FLASHINFER] = {.name = "flashinfer",
                                 .align = 4,
                                 .width_multiple = 1,
                                 .stride_multiple = 4,
                                 .contiguous_above = INT64_MAX,
                                 .padding = KILN_PADDING_WINDOW,
                                 .ids = KILN_IDS_SPANS,
                                 .no_write_slot = -1},
};

const struct kiln_profile_info *kiln_profile_info_get(enum kiln_profile profile)
{
    return (size_t)profile < KI_COUNT_OF(profiles) ? &profiles[profile] : NULL;
}

/* The matrix of an op that attention reads as it is, by name; NULL: none. Window rows are
 * as wide as images make them, and are not judged. */
static const char *matrix_of(enum kiln_op op)
{
    switch (op) {
    case KILN_OP_GLOBAL_TOPK:
        return "slots";
    case KILN_OP_C128A_TOPK:
        return "decode_slots";
    case KILN_OP_COMBINE_TOPK_SWA:
        return "combined_indices";
    case KILN_OP_MIXED_SPARSE_INDICES:
        return "sparse_indices";
    case KILN_OP_REQ_TO_GLOBAL:
        return "global_indices";
    case KILN_OP_SWA_INDICES:
    case KILN_OP_COMPRESSED_SLOTS:
    case KILN_OP_TOKEN_TO_REQ:
    case KILN_OP_IS_VALID_TOKEN:
    case KILN_OP_GATHER_LENS:
    case KILN_OP_IMAGE_VISIBILITY:
    case KILN_OP_STEP:
        break;
    }
    return NULL;
}

/* A matrix that is offered to a consumer. */
struct offer {
    const struct kiln_profile_info *profile;
    const struct kiln_op_info *op;
    const struct kiln_arg *matrix;
    const struct kiln_shape *shape;
};

static enum kiln_status check_multiple(const struct offer *o, const char *what,
                                       int64_t value, int64_t multiple,
                                       struct kiln_error *err)
{
    if (value % multiple == 0) {
        return KILN_OK;
    }
    return ki_fail(err, KILN_E_SHAPE,
                   "%s cannot take %s of %s: %s = %lld: expected a multiple of %lld",
                   o->profile->name, o->matrix->name, o->op->name, what, (long long)value,
                   (long long)multiple);
}

static enum kiln_status check_equal(const struct offer *o, const char *what,
                                    int64_t value, int64_t expected, const char *why,
                                    struct kiln_error *err)
{
    if (value == expected) {
        return KILN_OK;
    }
    return ki_fail(err, KILN_E_SHAPE,
                   "%s cannot take %s of %s: %s = %lld: expected %lld, %s",
                   o->profile->name, o->matrix->name, o->op->name, what, (long long)value,
                   (long long)expected, why);
}

static enum kiln_status check_rows(const struct offer *o, struct kiln_error *err)
{
    const struct kiln_profile_info *profile = o->profile;
    int field = o->matrix->stride_field;
    int64_t width = o->matrix->width(o->shape);
    int64_t stride = field >= 0 ? o->shape->fields[field] : width;
    const char *stride_name = field >= 0 ? o->op->fields[field].name : "width";

    KI_TRY(check_multiple(o, "width", width, profile->width_multiple, err));
    KI_TRY(check_multiple(o, stride_name, stride, profile->stride_multiple, err));
    if (profile->contiguous_above == INT64_MAX) {
        return KILN_OK;
    }
    return check_equal(o, stride_name, stride, width,
                       "its width, as rows must be contiguous", err);
}

static enum kiln_status check_ids(const struct offer *o, struct kiln_error *err)
{
    static const char why[] = "as its ids are slots";
    const struct kiln_req_to_global_shape *r = &o->shape->req_to_global;
    const struct kiln_mixed_sparse_indices_shape *m = &o->shape->mixed_sparse_indices;

    if (o->profile->ids == KILN_IDS_SPANS) {
        return KILN_OK;
    }
    if (o->op->op == KILN_OP_REQ_TO_GLOBAL) {
        return check_equal(o, "page_stride", r->page_stride, r->block_size, why, err);
    }
    if (o->op->op == KILN_OP_MIXED_SPARSE_INDICES) {
        KI_TRY(check_equal(o, "swa_span", m->swa_span, m->swa_block_size, why, err));
        return check_equal(o, "span", m->span, m->block_size, why, err);
    }
    return KILN_OK;
}

/* All other ops' inert rows have length 0, which both kinds take. */
static enum kiln_status check_padding(const struct offer *o, struct kiln_error *err)
{
    if (o->op->op != KILN_OP_MIXED_SPARSE_INDICES ||
        o->profile->padding == KILN_PADDING_WINDOW) {
        return KILN_OK;
    }
    return ki_fail(err, KILN_E_SHAPE,
                   "%s cannot take %s of %s: the length of an inert row is that of its "
                   "window: expected 0",
                   o->profile->name, o->matrix->name, o->op->name);
}

enum kiln_status ki_profile_check(const struct kiln_profile_info *profile,
                                  enum kiln_op op, const struct kiln_shape *shape,
                                  struct kiln_error *err)
{
    struct offer o = {.profile = profile, .op = kiln_op_info_get(op), .shape = shape};
    const char *name = matrix_of(op);

    if (name == NULL) {
        return KILN_OK;
    }
    o.matrix = o.op->args;
    while (strcmp(o.matrix->name, name) != 0) {
        o.matrix++;
    }
    KI_TRY(check_rows(&o, err));
    KI_TRY(check_ids(&o, err));
    return check_padding(&o, err);
}

enum kiln_status kiln_profile_check(enum kiln_profile profile, enum kiln_op op,
                                    const struct kiln_shape *shape,
                                    struct kiln_error *err)
{
    const struct kiln_profile_info *info = kiln_profile_info_get(profile);

    if (info == NULL) {
        return ki_fail(err, KILN_E_ARGUMENT,
                       "profile %d is unknown: expected a value of enum kiln_profile",
                       (int)profile);
    }
    KI_TRY(kiln_shape_check(op, shape, err));
    return ki_profile_check(info, op, shape, err);
}
