/* SPDX-License-Identifier: Apache-2.0 */
/* The table of ops, and everything about an op that its table alone can say. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/attr.h"
#include "base/status.h"
#include "plan/ops.h"

#define OP_ADDRESS(name, op) &ki_op_##name,
static const struct ki_op *const ops[] = {KI_OPS(OP_ADDRESS) KI_PLANNED_OPS(OP_ADDRESS)};
#undef OP_ADDRESS

const struct ki_op *ki_op_get(enum kiln_op op)
{
    for (size_t i = 0; i < KI_COUNT_OF(ops); i++) {
        if (ops[i]->info.op == op) {
            return ops[i];
        }
    }
    return NULL;
}

static const size_t dtype_bytes[] = {[KILN_U8] = 1, [KILN_I32] = 4, [KILN_I64] = 8};

size_t kiln_dtype_bytes(enum kiln_dtype dtype)
{
    return (size_t)dtype < KI_COUNT_OF(dtype_bytes) ? dtype_bytes[dtype] : 0;
}

const struct kiln_op_info *kiln_op_info_get(enum kiln_op op)
{
    const struct ki_op *found = ki_op_get(op);

    return found != NULL ? &found->info : NULL;
}

const struct kiln_op_info *kiln_op_info_by_name(const char *name)
{
    for (size_t i = 0; name != NULL && i < KI_COUNT_OF(ops); i++) {
        if (strcmp(ops[i]->info.name, name) == 0) {
            return &ops[i]->info;
        }
    }
    return NULL;
}

const struct kiln_op_info *kiln_op_info_at(size_t i)
{
    return i < KI_COUNT_OF(ops) ? &ops[i]->info : NULL;
}

void ki_shape_words(enum kiln_op op, const struct kiln_shape *shape, char *out,
                    size_t size)
{
    const struct kiln_op_info *info = kiln_op_info_get(op);
    size_t used;

    used = (size_t)snprintf(out, size, "%s", info != NULL ? info->name : "no op");
    for (size_t i = 0; info != NULL && i < info->n_fields && used < size; i++) {
        used += (size_t)snprintf(out + used, size - used, " %s=%lld",
                                 info->fields[i].name, (long long)shape->fields[i]);
    }
}

static enum kiln_status fail_no_op(enum kiln_op op, struct kiln_error *err)
{
    return ki_fail(err, KILN_E_ARGUMENT,
                   "op %d is unknown: expected a value of enum kiln_op", (int)op);
}

static enum kiln_status fail_no_shape(const struct kiln_op_info *info,
                                      struct kiln_error *err)
{
    return ki_fail(err, KILN_E_ARGUMENT, "%s: shape is NULL: expected one", info->name);
}

/* The width of the array whose rows lie at the stride in this field; 0: no array does. */
static int64_t width_at_stride(const struct kiln_op_info *info, size_t field,
                               const struct kiln_shape *shape)
{
    for (size_t i = 0; i < info->n_args; i++) {
        const struct kiln_arg *arg = &info->args[i];

        if (arg->stride_field == (int)field && arg->width != NULL) {
            return arg->width(shape);
        }
    }
    return 0;
}

static enum kiln_status check_range(const struct kiln_op_info *info, size_t i,
                                    const struct kiln_shape *shape,
                                    struct kiln_error *err)
{
    const struct kiln_shape_field *field = &info->fields[i];
    int64_t value = shape->fields[i];

    if (value < field->min || value > field->max) {
        return ki_fail(err, KILN_E_SHAPE, "%s: %s = %lld: expected %lld to %lld",
                       info->name, field->name, (long long)value, (long long)field->min,
                       (long long)field->max);
    }
    return KILN_OK;
}

/* The fields that do not depend on others; the others become 0. */
static enum kiln_status fill_plain(const struct kiln_op_info *info, uint32_t given,
                                   struct kiln_shape *shape, struct kiln_error *err)
{
    for (size_t i = 0; i < info->n_fields; i++) {
        const struct kiln_shape_field *field = &info->fields[i];

        if ((given >> i & 1) != 0) {
            /* Widths are computed from these below, so they must be sane first. */
            KI_TRY(check_range(info, i, shape, err));
            continue;
        }
        if (field->default_kind == KILN_DEFAULT_NONE) {
            return ki_fail(err, KILN_E_SHAPE, "%s: shape field \"%s\" is missing",
                           info->name, field->name);
        }
        shape->fields[i] =
            field->default_kind == KILN_DEFAULT_VALUE ? field->default_value : 0;
    }
    return KILN_OK;
}

enum kiln_status kiln_shape_defaults(enum kiln_op op, uint32_t given,
                                     struct kiln_shape *shape, struct kiln_error *err)
{
    const struct kiln_op_info *info = kiln_op_info_get(op);
    struct kiln_shape filled;

    if (info == NULL) {
        return fail_no_op(op, err);
    }
    if (shape == NULL) {
        return fail_no_shape(info, err);
    }
    filled = *shape;
    KI_TRY(fill_plain(info, given, &filled, err));
    for (size_t i = 0; i < info->n_fields; i++) {
        const struct kiln_shape_field *field = &info->fields[i];

        if ((given >> i & 1) != 0) {
            continue;
        }
        if (field->default_kind == KILN_DEFAULT_FIELD) {
            filled.fields[i] = filled.fields[field->default_value];
        }
        if (field->default_kind == KILN_DEFAULT_STRIDE) {
            filled.fields[i] = width_at_stride(info, i, &filled);
        }
    }
    *shape = filled;
    return KILN_OK;
}

/* Each array's columns fit an int32 and its rows do not overlap. */
static enum kiln_status check_widths(const struct kiln_op_info *info,
                                     const struct kiln_shape *shape,
                                     struct kiln_error *err)
{
    for (size_t i = 0; i < info->n_args; i++) {
        const struct kiln_arg *arg = &info->args[i];
        int64_t width = arg->width != NULL ? arg->width(shape) : 1;
        int64_t stride;

        if (width > INT32_MAX) {
            return ki_fail(err, KILN_E_SHAPE,
                           "%s: a row of %s has %lld columns: expected at most %lld",
                           info->name, arg->name, (long long)width, (long long)INT32_MAX);
        }
        if (arg->stride_field < 0) {
            continue;
        }
        stride = shape->fields[arg->stride_field];
        if (stride < width) {
            return ki_fail(err, KILN_E_SHAPE,
                           "%s: %s = %lld: expected at least %lld, the columns of %s",
                           info->name, info->fields[arg->stride_field].name,
                           (long long)stride, (long long)width, arg->name);
        }
    }
    return KILN_OK;
}

enum kiln_status kiln_shape_check(enum kiln_op op, const struct kiln_shape *shape,
                                  struct kiln_error *err)
{
    const struct ki_op *found = ki_op_get(op);

    if (found == NULL) {
        return fail_no_op(op, err);
    }
    if (shape == NULL) {
        return fail_no_shape(&found->info, err);
    }
    for (size_t i = 0; i < found->info.n_fields; i++) {
        KI_TRY(check_range(&found->info, i, shape, err));
    }
    KI_TRY(check_widths(&found->info, shape, err));
    return found->check != NULL ? found->check(shape, err) : KILN_OK;
}

enum kiln_status ki_op_check(enum kiln_op op, const struct kiln_shape *shape,
                             struct kiln_error *err)
{
    const struct ki_op *found = ki_op_get(op);

    KI_TRY(kiln_shape_check(op, shape, err));
    if (!found->info.supported) {
        return ki_fail(err, KILN_E_UNSUPPORTED,
                       "op %s is planned: this kiln has no kernel for it",
                       found->info.name);
    }
    return KILN_OK;
}

enum kiln_status ki_op_check_dcp(const char *op_name, int64_t block_size,
                                 int64_t dcp_interleave, struct kiln_error *err)
{
    if (block_size % dcp_interleave != 0) {
        return ki_fail(
            err, KILN_E_SHAPE,
            "%s: dcp_interleave = %lld: expected a divisor of block_size = %lld", op_name,
            (long long)dcp_interleave, (long long)block_size);
    }
    return KILN_OK;
}

enum kiln_status ki_op_check_rank(const char *op_name, int64_t dcp_rank,
                                  int64_t dcp_world, struct kiln_error *err)
{
    if (dcp_rank < 0 || dcp_rank >= dcp_world) {
        return ki_fail(err, KILN_E_ARGUMENT,
                       "%s: dcp_rank = %lld: expected 0 to %lld, as dcp_world is %lld",
                       op_name, (long long)dcp_rank, (long long)dcp_world - 1,
                       (long long)dcp_world);
    }
    return KILN_OK;
}

enum kiln_status ki_op_check_pair(const char *op_name, const void *left_visible,
                                  const void *right_visible, struct kiln_error *err)
{
    if ((left_visible == NULL) != (right_visible == NULL)) {
        return ki_fail(err, KILN_E_ARGUMENT,
                       "%s: %s is missing: expected left_visible and right_visible, both "
                       "or neither",
                       op_name, left_visible == NULL ? "left_visible" : "right_visible");
    }
    return KILN_OK;
}

static int32_t number_at(const void *args, const struct kiln_arg *arg)
{
    int32_t value;

    memcpy(&value, (const char *)args + arg->offset, sizeof value);
    return value;
}

/* The number or count of the args struct that counts `extent`; NULL: the op has none. */
static const struct kiln_arg *counter_of(const struct ki_op *op, enum kiln_extent extent)
{
    for (size_t i = 0; i < op->info.n_args; i++) {
        const struct kiln_arg *arg = &op->info.args[i];

        if (arg->kind >= KILN_ARG_NUMBER && arg->extent == extent) {
            return arg;
        }
    }
    return NULL;
}

/* A count that divides `whole`; -1 where it lives in device memory, 0 where there is none. */
static int64_t part_of(const struct ki_op *op, const void *args, enum kiln_extent extent,
                       int64_t whole)
{
    const struct kiln_arg *arg = counter_of(op, extent);
    const struct kiln_count *count;

    if (arg == NULL) {
        return 0;
    }
    count = (const struct kiln_count *)(const void *)((const char *)args + arg->offset);
    if (count->kind == KILN_COUNT_DEVICE) {
        return -1;
    }
    if (count->value < 0 || count->kind == KILN_COUNT_ABSENT) {
        return 0;
    }
    return count->value < whole ? count->value : whole;
}

static int64_t rest_of(int64_t part, int64_t whole)
{
    return part < 0 ? -1 : whole - part;
}

static int64_t counted(const struct ki_op *op, const void *args, enum kiln_extent extent)
{
    const struct kiln_arg *arg = counter_of(op, extent);

    return arg != NULL ? number_at(args, arg) : 0;
}

int64_t ki_op_rows(const struct ki_op *op, const void *args, enum kiln_extent extent)
{
    const int64_t tokens = counted(op, args, KILN_EXTENT_TOKENS);
    const int64_t requests = counted(op, args, KILN_EXTENT_REQUESTS);

    switch (extent) {
    case KILN_EXTENT_DECODE_TOKENS:
        return part_of(op, args, extent, tokens);
    case KILN_EXTENT_PREFILL_TOKENS:
        return rest_of(part_of(op, args, KILN_EXTENT_DECODE_TOKENS, tokens), tokens);
    case KILN_EXTENT_DECODE_REQUESTS:
        return part_of(op, args, extent, requests);
    case KILN_EXTENT_PREFILL_REQUESTS:
        return rest_of(part_of(op, args, KILN_EXTENT_DECODE_REQUESTS, requests),
                       requests);
    case KILN_EXTENT_REQUEST_BOUNDS:
        return requests + 1;
    case KILN_EXTENT_CONTEXT_TOKENS:
        return counted(op, args, KILN_EXTENT_FIRST_TOKENS) +
               counted(op, args, KILN_EXTENT_ROWS);
    case KILN_EXTENT_NONE:
    case KILN_EXTENT_TOKENS:
    case KILN_EXTENT_REQUESTS:
    case KILN_EXTENT_TABLE_ROWS:
    case KILN_EXTENT_SWA_TABLE_ROWS:
    case KILN_EXTENT_ROWS:
    case KILN_EXTENT_FIRST_TOKENS:
    case KILN_EXTENT_SPANS:
    case KILN_N_EXTENTS:
        break;
    }
    return counted(op, args, extent);
}

struct ki_row_source ki_op_row_source(const struct ki_op *op, enum kiln_extent extent)
{
    struct ki_row_source source = {.part = KI_ROWS_ALL};
    enum kiln_extent whole = extent;
    enum kiln_extent count = KILN_EXTENT_NONE;
    const struct kiln_arg *counter;

    if (extent == KILN_EXTENT_DECODE_TOKENS || extent == KILN_EXTENT_PREFILL_TOKENS) {
        whole = KILN_EXTENT_TOKENS;
        count = KILN_EXTENT_DECODE_TOKENS;
    }
    if (extent == KILN_EXTENT_DECODE_REQUESTS || extent == KILN_EXTENT_PREFILL_REQUESTS) {
        whole = KILN_EXTENT_REQUESTS;
        count = KILN_EXTENT_DECODE_REQUESTS;
    }
    counter = counter_of(op, whole);
    assert(counter != NULL);
    source.whole = counter->offset;
    counter = counter_of(op, count);
    if (count != KILN_EXTENT_NONE && counter != NULL) {
        source.count = counter->offset;
        source.part = extent == count ? KI_ROWS_FIRST : KI_ROWS_REST;
    }
    return source;
}

int64_t ki_op_most_rows(struct ki_row_source source, const void *args)
{
    int32_t whole;
    struct kiln_count count;
    int64_t first = 0;

    memcpy(&whole, (const char *)args + source.whole, sizeof whole);
    if (source.part == KI_ROWS_ALL) {
        return whole;
    }
    memcpy(&count, (const char *)args + source.count, sizeof count);
    if (count.kind == KILN_COUNT_VALUE && count.value > 0) {
        first = count.value < whole ? count.value : whole;
    }
    return source.part == KI_ROWS_FIRST ? first : whole - first;
}

/* What rows are is the first of these that the op counts. */
struct ki_grid ki_grid_of(int64_t n, int64_t rows_of_block, int threads)
{
    return (struct ki_grid){(uint32_t)((n + rows_of_block - 1) / rows_of_block), 1,
                            (uint32_t)threads};
}

int64_t ki_op_launch_rows(const struct ki_op *op, const void *args)
{
    static const enum kiln_extent rows[] = {KILN_EXTENT_TOKENS, KILN_EXTENT_ROWS,
                                            KILN_EXTENT_REQUESTS};

    for (size_t i = 0; i < KI_COUNT_OF(rows); i++) {
        const struct kiln_arg *arg = counter_of(op, rows[i]);

        if (arg != NULL) {
            return number_at(args, arg);
        }
    }
    return 0;
}

/* A launch of no rows reads and writes nothing, so nothing has to be there. */
static bool is_empty(const struct ki_op *op, const void *args)
{
    return ki_op_launch_rows(op, args) == 0;
}

static enum kiln_status check_array(const struct ki_op *op, const void *args,
                                    const struct kiln_arg *arg, struct kiln_error *err)
{
    const void *address;

    memcpy(&address, (const char *)args + arg->offset, sizeof address);
    if (address == NULL) {
        if (arg->optional || arg->may_be_null || is_empty(op, args) ||
            ki_op_rows(op, args, arg->extent) == 0) {
            return KILN_OK;
        }
        return ki_fail(err, KILN_E_ARGUMENT, "%s: %s is NULL: expected an array",
                       op->info.name, arg->name);
    }
    if ((uintptr_t)address % dtype_bytes[arg->dtype] != 0) {
        return ki_fail(err, KILN_E_ARGUMENT,
                       "%s: %s = %p: expected a multiple of %zu bytes", op->info.name,
                       arg->name, address, dtype_bytes[arg->dtype]);
    }
    return KILN_OK;
}

static enum kiln_status check_count(const struct ki_op *op, const void *args,
                                    const struct kiln_arg *arg, struct kiln_error *err)
{
    const struct kiln_count *count =
        (const struct kiln_count *)(const void *)((const char *)args + arg->offset);

    if (count->kind == KILN_COUNT_VALUE ||
        (count->kind == KILN_COUNT_ABSENT && (arg->optional || is_empty(op, args)))) {
        return KILN_OK;
    }
    if (count->kind == KILN_COUNT_ABSENT) {
        return ki_fail(err, KILN_E_ARGUMENT,
                       "%s: %s is absent: expected a value or an address", op->info.name,
                       arg->name);
    }
    if (count->kind != KILN_COUNT_DEVICE) {
        return ki_fail(err, KILN_E_ARGUMENT,
                       "%s: %s.kind = %d: expected a value of enum kiln_count_kind",
                       op->info.name, arg->name, (int)count->kind);
    }
    if (count->address == NULL || (uintptr_t)count->address % sizeof(int32_t) != 0) {
        return ki_fail(err, KILN_E_ARGUMENT,
                       "%s: %s.address = %p: expected an address that is a multiple of 4",
                       op->info.name, arg->name, (const void *)count->address);
    }
    return KILN_OK;
}

static enum kiln_status check_arg(const struct ki_op *op, const void *args,
                                  const struct kiln_arg *arg, struct kiln_error *err)
{
    switch (arg->kind) {
    case KILN_ARG_INPUT:
    case KILN_ARG_OUTPUT:
        return check_array(op, args, arg, err);
    case KILN_ARG_COUNT:
        return check_count(op, args, arg, err);
    case KILN_ARG_NUMBER:
    case KILN_ARG_EXTENT:
        break;
    }
    if (arg->extent != KILN_EXTENT_NONE && number_at(args, arg) < 0) {
        return ki_fail(err, KILN_E_ARGUMENT, "%s: %s = %d: expected 0 or more",
                       op->info.name, arg->name, (int)number_at(args, arg));
    }
    return KILN_OK;
}

/* Counted with 64-bit atomics, which trap where they are not aligned. */
static enum kiln_status check_report(const struct ki_op *op, const void *args,
                                     struct kiln_error *err)
{
    const void *address;

    memcpy(&address, (const char *)args + op->info.report_offset, sizeof address);
    if ((uintptr_t)address % sizeof(uint64_t) != 0) {
        return ki_fail(err, KILN_E_ARGUMENT,
                       "%s: report = %p: expected a multiple of 8 bytes", op->info.name,
                       address);
    }
    return KILN_OK;
}

enum kiln_status ki_op_check_args(const struct ki_op *op, const struct kiln_shape *shape,
                                  const void *args, struct kiln_error *err)
{
    for (size_t i = 0; i < op->info.n_args; i++) {
        KI_TRY(check_arg(op, args, &op->info.args[i], err));
    }
    KI_TRY(check_report(op, args, err));
    return op->check_args != NULL ? op->check_args(shape, args, err) : KILN_OK;
}
