/* SPDX-License-Identifier: Apache-2.0 */
/* Where the arrays of a call lie, and what must not change around them. It knows no op
 * and no JSON. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "case_layout.h"

/* As int32 and int64 far below -1, as a byte neither 0 nor 1. */
enum { POISON = 0xA5 };

/* A case that needs more is a mistake, and would take the machine down. */
#define CALL_BYTES_MAX (UINT64_C(8) << 30)

const char *cli_dtype_name(enum kiln_dtype dtype)
{
    switch (dtype) {
    case KILN_U8:
        return "a byte";
    case KILN_I32:
        return "int32";
    case KILN_I64:
        return "int64";
    }
    return "?";
}

bool cli_dtype_holds(enum kiln_dtype dtype, int64_t value)
{
    switch (dtype) {
    case KILN_U8:
        return value >= 0 && value <= UINT8_MAX;
    case KILN_I32:
        return value >= INT32_MIN && value <= INT32_MAX;
    case KILN_I64:
        return true;
    }
    return false;
}

bool cli_arg_is_array(const struct kiln_arg *arg)
{
    return arg->kind == KILN_ARG_INPUT || arg->kind == KILN_ARG_OUTPUT;
}

bool cli_call_init(struct cli_call *call, const struct kiln_op_info *info,
                   const struct kiln_shape *shape)
{
    *call = (struct cli_call){.info = info, .shape = *shape};
    for (int i = 0; i < KILN_N_EXTENTS; i++) {
        call->extents[i] = -1;
    }
    call->arrays = calloc(info->n_args + 1, sizeof *call->arrays);
    call->args = calloc(1, info->args_bytes + 1);
    if (call->arrays == NULL || call->args == NULL) {
        cli_call_finish(call);
        return false;
    }
    for (size_t i = 0; i < info->n_args; i++) {
        const struct kiln_arg *arg = &info->args[i];
        struct cli_array *array = &call->arrays[i];

        array->arg = arg;
        if (!cli_arg_is_array(arg)) {
            continue;
        }
        array->elem_bytes = kiln_dtype_bytes(arg->dtype);
        array->width = arg->width != NULL ? arg->width(shape) : 1;
        array->stride =
            arg->stride_field >= 0 ? shape->fields[arg->stride_field] : array->width;
    }
    return true;
}

void cli_call_finish(struct cli_call *call)
{
    for (size_t i = 0; call->arrays != NULL && i < call->info->n_args; i++) {
        free(call->arrays[i].image);
    }
    free(call->arrays);
    free(call->args);
    free(call->report);
    *call = (struct cli_call){0};
}

/* The count of this extent, clamped to [0, whole]; 0 where the op has none. */
static int64_t part_of(const struct cli_call *call, enum kiln_extent extent,
                       int64_t whole)
{
    int64_t part = 0;

    for (size_t i = 0; i < call->info->n_args; i++) {
        const struct kiln_arg *arg = &call->info->args[i];

        if (arg->kind == KILN_ARG_COUNT && arg->extent == extent) {
            part = call->arrays[i].count.value;
        }
    }
    if (part < 0) {
        return 0;
    }
    return part < whole ? part : whole;
}

void cli_call_settle(struct cli_call *call)
{
    int64_t *extents = call->extents;

    for (int i = KILN_EXTENT_TOKENS; i < KILN_N_EXTENTS; i++) {
        if (extents[i] < 0) {
            extents[i] = 0;
        }
    }
    int64_t n_tokens = extents[KILN_EXTENT_TOKENS];
    int64_t n_requests = extents[KILN_EXTENT_REQUESTS];
    int64_t n_decode = part_of(call, KILN_EXTENT_DECODE_TOKENS, n_tokens);
    int64_t n_decoding = part_of(call, KILN_EXTENT_DECODE_REQUESTS, n_requests);

    extents[KILN_EXTENT_DECODE_TOKENS] = n_decode;
    extents[KILN_EXTENT_PREFILL_TOKENS] = n_tokens - n_decode;
    extents[KILN_EXTENT_DECODE_REQUESTS] = n_decoding;
    extents[KILN_EXTENT_PREFILL_REQUESTS] = n_requests - n_decoding;
    extents[KILN_EXTENT_REQUEST_BOUNDS] = n_requests + 1;
    extents[KILN_EXTENT_CONTEXT_TOKENS] =
        extents[KILN_EXTENT_FIRST_TOKENS] + extents[KILN_EXTENT_ROWS];
    for (size_t i = 0; i < call->info->n_args; i++) {
        struct cli_array *array = &call->arrays[i];

        array->rows = cli_arg_is_array(array->arg) ? extents[array->arg->extent] : 0;
    }
}

const char *cli_call_add_array(struct cli_call *call, size_t i)
{
    struct cli_array *array = &call->arrays[i];
    int64_t rows = array->rows;
    uint64_t row_bytes = (uint64_t)array->stride * array->elem_bytes;
    uint64_t left = CALL_BYTES_MAX - call->total_bytes;

    if (row_bytes != 0 && (uint64_t)rows > left / row_bytes) {
        return "the arrays take more than 8 GiB";
    }
    /* the last row of an input may end with its width, and so it does here */
    uint64_t bytes = (uint64_t)rows * row_bytes;
    if (array->arg->kind == KILN_ARG_INPUT && rows > 0) {
        bytes -= (uint64_t)(array->stride - array->width) * array->elem_bytes;
    }
    array->image_bytes = (size_t)bytes + 2 * CLI_GUARD_BYTES;
    array->image = malloc(array->image_bytes);
    if (array->image == NULL) {
        return "out of memory";
    }
    memset(array->image, POISON, array->image_bytes);
    call->total_bytes += bytes;
    return NULL;
}

void cli_call_set_number(struct cli_call *call, size_t i, int32_t value)
{
    memcpy(call->args + call->info->args[i].offset, &value, sizeof value);
}

void cli_call_set_count(struct cli_call *call, size_t i, const struct kiln_count *count)
{
    memcpy(call->args + call->info->args[i].offset, count, sizeof *count);
}

void cli_call_set_address(struct cli_call *call, size_t i, const void *address)
{
    memcpy(call->args + call->info->args[i].offset, &address, sizeof address);
}

void cli_call_set_report(struct cli_call *call, const void *address)
{
    memcpy(call->args + call->info->report_offset, &address, sizeof address);
}

size_t cli_call_report_bytes(const struct cli_call *call)
{
    return kiln_report_bytes(call->report_capacity);
}

/* An entry that is counted and not written shows: no op is what poison says. */
static void empty_report(struct cli_call *call)
{
    memset(call->report, POISON, cli_call_report_bytes(call));
    (void)kiln_report_init(call->report, call->report_capacity);
}

const char *cli_call_add_report(struct cli_call *call, uint32_t capacity)
{
    free(call->report);
    call->report = NULL;
    if (kiln_report_bytes(capacity) > CALL_BYTES_MAX - call->total_bytes) {
        return "the arrays and the report take more than 8 GiB";
    }
    call->report_capacity = capacity;
    call->report = malloc(kiln_report_bytes(capacity));
    if (call->report == NULL) {
        return "out of memory";
    }
    empty_report(call);
    return NULL;
}

void cli_call_bind_host(struct cli_call *call)
{
    cli_call_set_report(call, call->report);
    for (size_t i = 0; i < call->info->n_args; i++) {
        const struct kiln_arg *arg = &call->info->args[i];
        const struct cli_array *array = &call->arrays[i];

        if (array->image != NULL) {
            cli_call_set_address(call, i, array->image + CLI_GUARD_BYTES);
        } else if (arg->kind == KILN_ARG_COUNT) {
            cli_call_set_count(call, i, &array->count);
        } else if (arg->kind == KILN_ARG_EXTENT ||
                   (arg->kind == KILN_ARG_NUMBER && arg->extent != KILN_EXTENT_NONE)) {
            cli_call_set_number(call, i, (int32_t)call->extents[arg->extent]);
        }
    }
}

static unsigned char *element(const struct cli_array *array, int64_t row, int64_t column)
{
    size_t index = (size_t)row * (size_t)array->stride + (size_t)column;

    return array->image + CLI_GUARD_BYTES + index * array->elem_bytes;
}

int64_t cli_array_get(const struct cli_array *array, int64_t row, int64_t column)
{
    const unsigned char *bytes = element(array, row, column);
    int32_t narrow;
    int64_t wide;

    switch (array->arg->dtype) {
    case KILN_U8:
        return bytes[0];
    case KILN_I32:
        memcpy(&narrow, bytes, sizeof narrow);
        return narrow;
    case KILN_I64:
        memcpy(&wide, bytes, sizeof wide);
        return wide;
    }
    return 0;
}

void cli_array_set(struct cli_array *array, int64_t row, int64_t column, int64_t value)
{
    unsigned char *bytes = element(array, row, column);
    int32_t narrow = (int32_t)value;

    switch (array->arg->dtype) {
    case KILN_U8:
        bytes[0] = (unsigned char)value;
        return;
    case KILN_I32:
        memcpy(bytes, &narrow, sizeof narrow);
        return;
    case KILN_I64:
        memcpy(bytes, &value, sizeof value);
        return;
    }
}

/* The first byte of [bytes, bytes + n) that is not poison; n: all are. */
static size_t find_change(const unsigned char *bytes, size_t n)
{
    size_t i = 0;

    while (i < n && bytes[i] == POISON) {
        i++;
    }
    return i;
}

bool cli_array_is_poison(const struct cli_array *array, int64_t row, int64_t column)
{
    return find_change(element(array, row, column), array->elem_bytes) ==
           array->elem_bytes;
}

void cli_call_clear(struct cli_call *call)
{
    for (size_t i = 0; i < call->info->n_args; i++) {
        struct cli_array *array = &call->arrays[i];

        if (array->image != NULL && array->arg->kind == KILN_ARG_OUTPUT) {
            memset(array->image, POISON, array->image_bytes);
        }
    }
    if (call->report != NULL) {
        empty_report(call);
    }
}

static bool is_guard_touched(const struct cli_array *array, char *buf, size_t size_bytes)
{
    const unsigned char *after = array->image + array->image_bytes - CLI_GUARD_BYTES;
    size_t i = find_change(array->image, CLI_GUARD_BYTES);

    if (i < CLI_GUARD_BYTES) {
        (void)snprintf(buf, size_bytes, "%s: written %zu bytes before row 0, column 0",
                       array->arg->name, CLI_GUARD_BYTES - i);
        return true;
    }
    i = find_change(after, CLI_GUARD_BYTES);
    if (i < CLI_GUARD_BYTES) {
        (void)snprintf(buf, size_bytes,
                       "%s: written %zu bytes after its end, row %" PRId64 ", column 0",
                       array->arg->name, i, array->rows);
        return true;
    }
    return false;
}

static bool is_padding_touched(const struct cli_array *array, char *buf,
                               size_t size_bytes)
{
    size_t padding = (size_t)(array->stride - array->width) * array->elem_bytes;

    for (int64_t row = 0; padding > 0 && row < array->rows; row++) {
        size_t i = find_change(element(array, row, array->width), padding);

        if (i == padding) {
            continue;
        }
        int64_t column = array->width + (int64_t)(i / array->elem_bytes);
        (void)snprintf(buf, size_bytes,
                       "%s[%" PRId64 "][%" PRId64 "]: padding beyond the row's %" PRId64
                       " columns was written: %" PRId64,
                       array->arg->name, row, column, array->width,
                       cli_array_get(array, row, column));
        return true;
    }
    return false;
}

bool cli_call_find_touched(const struct cli_call *call, char *buf, size_t size_bytes)
{
    for (size_t i = 0; i < call->info->n_args; i++) {
        const struct cli_array *array = &call->arrays[i];

        if (array->image == NULL || array->arg->kind != KILN_ARG_OUTPUT) {
            continue;
        }
        if (is_guard_touched(array, buf, size_bytes) ||
            is_padding_touched(array, buf, size_bytes)) {
            return true;
        }
    }
    return false;
}
