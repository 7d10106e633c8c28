/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of the ops against the structs, against each other, and what they refuse. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "plan/op_table.h"

enum { N_OPS = 12 };

/* ---- tables against structs --------------------------------------------------------- */

struct member {
    const char *name;
    size_t offset;
};

#define MEMBER(type, member)                                                             \
    {                                                                                    \
#member, offsetof(struct type, member)                                           \
    }

static const struct member global_topk[] = {
    MEMBER(kiln_global_topk_shape, topk),
    MEMBER(kiln_global_topk_shape, topk_stride),
    MEMBER(kiln_global_topk_shape, slots_stride),
    MEMBER(kiln_global_topk_shape, block_size),
    MEMBER(kiln_global_topk_shape, table_width),
    MEMBER(kiln_global_topk_shape, table_stride),
    MEMBER(kiln_global_topk_shape, dcp_world),
    MEMBER(kiln_global_topk_shape, dcp_interleave),
};
static const struct member c128a_topk[] = {
    MEMBER(kiln_c128a_topk_shape, compress_ratio),
    MEMBER(kiln_c128a_topk_shape, capacity),
    MEMBER(kiln_c128a_topk_shape, block_size),
    MEMBER(kiln_c128a_topk_shape, table_width),
    MEMBER(kiln_c128a_topk_shape, table_stride),
    MEMBER(kiln_c128a_topk_shape, dcp_world),
    MEMBER(kiln_c128a_topk_shape, dcp_interleave),
};
static const struct member combine_topk_swa[] = {
    MEMBER(kiln_combine_topk_swa_shape, topk),
    MEMBER(kiln_combine_topk_swa_shape, topk_stride),
    MEMBER(kiln_combine_topk_swa_shape, window),
    MEMBER(kiln_combine_topk_swa_shape, compress_ratio),
    MEMBER(kiln_combine_topk_swa_shape, image_width),
    MEMBER(kiln_combine_topk_swa_shape, align),
    MEMBER(kiln_combine_topk_swa_shape, combined_stride),
};
static const struct member swa_indices[] = {
    MEMBER(kiln_swa_indices_shape, window),
    MEMBER(kiln_swa_indices_shape, index_width),
    MEMBER(kiln_swa_indices_shape, index_stride),
    MEMBER(kiln_swa_indices_shape, block_size),
    MEMBER(kiln_swa_indices_shape, table_width),
    MEMBER(kiln_swa_indices_shape, table_stride),
    MEMBER(kiln_swa_indices_shape, image_width),
    MEMBER(kiln_swa_indices_shape, causal),
    MEMBER(kiln_swa_indices_shape, dcp_world),
    MEMBER(kiln_swa_indices_shape, dcp_interleave),
    MEMBER(kiln_swa_indices_shape, dcp_storage),
};
static const struct member mixed_sparse_indices[] = {
    MEMBER(kiln_mixed_sparse_indices_shape, window),
    MEMBER(kiln_mixed_sparse_indices_shape, swa_width),
    MEMBER(kiln_mixed_sparse_indices_shape, image_width),
    MEMBER(kiln_mixed_sparse_indices_shape, compress_ratio),
    MEMBER(kiln_mixed_sparse_indices_shape, topk),
    MEMBER(kiln_mixed_sparse_indices_shape, decode_topk),
    MEMBER(kiln_mixed_sparse_indices_shape, decode_local),
    MEMBER(kiln_mixed_sparse_indices_shape, swa_block_size),
    MEMBER(kiln_mixed_sparse_indices_shape, swa_span),
    MEMBER(kiln_mixed_sparse_indices_shape, swa_table_width),
    MEMBER(kiln_mixed_sparse_indices_shape, swa_table_stride),
    MEMBER(kiln_mixed_sparse_indices_shape, block_size),
    MEMBER(kiln_mixed_sparse_indices_shape, span),
    MEMBER(kiln_mixed_sparse_indices_shape, table_width),
    MEMBER(kiln_mixed_sparse_indices_shape, table_stride),
};
static const struct member compressed_slots[] = {
    MEMBER(kiln_compressed_slots_shape, compress_ratio),
    MEMBER(kiln_compressed_slots_shape, block_size),
    MEMBER(kiln_compressed_slots_shape, table_width),
    MEMBER(kiln_compressed_slots_shape, table_stride),
    MEMBER(kiln_compressed_slots_shape, dcp_world),
    MEMBER(kiln_compressed_slots_shape, dcp_interleave),
};
static const struct member req_to_global[] = {
    MEMBER(kiln_req_to_global_shape, topk),
    MEMBER(kiln_req_to_global_shape, topk_stride),
    MEMBER(kiln_req_to_global_shape, out_stride),
    MEMBER(kiln_req_to_global_shape, block_size),
    MEMBER(kiln_req_to_global_shape, page_stride),
    MEMBER(kiln_req_to_global_shape, table_width),
    MEMBER(kiln_req_to_global_shape, table_stride),
    MEMBER(kiln_req_to_global_shape, dcp_world),
    MEMBER(kiln_req_to_global_shape, dcp_interleave),
};
static const struct member token_to_req[] = {
    MEMBER(kiln_token_to_req_shape, pad_req),
};
static const struct member is_valid_token[] = {
    MEMBER(kiln_is_valid_token_shape, dcp_world),
};
static const struct member gather_lens[] = {
    MEMBER(kiln_gather_lens_shape, window),
};
static const struct member image_visibility[] = {
    MEMBER(kiln_image_visibility_shape, image_width),
};

static const struct {
    enum kiln_op op;
    const struct member *members;
    size_t n_members, bytes;
} structs[] = {
#define STRUCT(op, name)                                                                 \
    {                                                                                    \
        op, name, KI_COUNT_OF(name), sizeof(struct kiln_##name##_shape)                  \
    }
    STRUCT(KILN_OP_GLOBAL_TOPK, global_topk),
    STRUCT(KILN_OP_C128A_TOPK, c128a_topk),
    STRUCT(KILN_OP_COMBINE_TOPK_SWA, combine_topk_swa),
    STRUCT(KILN_OP_SWA_INDICES, swa_indices),
    STRUCT(KILN_OP_MIXED_SPARSE_INDICES, mixed_sparse_indices),
    STRUCT(KILN_OP_COMPRESSED_SLOTS, compressed_slots),
    STRUCT(KILN_OP_REQ_TO_GLOBAL, req_to_global),
    STRUCT(KILN_OP_TOKEN_TO_REQ, token_to_req),
    STRUCT(KILN_OP_IS_VALID_TOKEN, is_valid_token),
    STRUCT(KILN_OP_GATHER_LENS, gather_lens),
    STRUCT(KILN_OP_IMAGE_VISIBILITY, image_visibility),
#undef STRUCT
};

static void op_fields_lie_where_the_shape_struct_has_them(void **state)
{
    (void)state;
    for (size_t i = 0; i < KI_COUNT_OF(structs); i++) {
        const struct kiln_op_info *info = kiln_op_info_get(structs[i].op);

        assert_non_null(info);
        assert_int_equal(info->n_fields, structs[i].n_members);
        assert_int_equal(info->n_fields * sizeof(int64_t), structs[i].bytes);
        for (size_t f = 0; f < info->n_fields; f++) {
            assert_string_equal(info->fields[f].name, structs[i].members[f].name);
            assert_int_equal(structs[i].members[f].offset, f * sizeof(int64_t));
        }
    }
}

static void op_tables_are_found_by_number_by_name_and_in_order(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_OPS; i++) {
        const struct kiln_op_info *info = kiln_op_info_at(i);

        assert_non_null(info);
        assert_int_equal(info->op, i + 1);
        assert_ptr_equal(kiln_op_info_get(info->op), info);
        assert_ptr_equal(kiln_op_info_by_name(info->name), info);
    }
    assert_null(kiln_op_info_at(N_OPS));
    assert_null(kiln_op_info_get((enum kiln_op)0));
    assert_null(kiln_op_info_get((enum kiln_op) - 1));
    assert_null(kiln_op_info_get((enum kiln_op)(N_OPS + 1)));
    assert_null(kiln_op_info_by_name("global_topk2"));
    assert_null(kiln_op_info_by_name(""));
    assert_null(kiln_op_info_by_name(NULL));
}

static void dtype_has_bytes(void **state)
{
    (void)state;
    assert_int_equal(kiln_dtype_bytes(KILN_U8), sizeof(uint8_t));
    assert_int_equal(kiln_dtype_bytes(KILN_I32), sizeof(int32_t));
    assert_int_equal(kiln_dtype_bytes(KILN_I64), sizeof(int64_t));
    assert_int_equal(kiln_dtype_bytes((enum kiln_dtype)3), 0);
    assert_int_equal(kiln_dtype_bytes((enum kiln_dtype) - 1), 0);
}

static void assert_field_is_sane(const struct kiln_op_info *info, size_t f)
{
    const struct kiln_shape_field *field = &info->fields[f];

    assert_true(field->min <= field->max);
    assert_true(field->max <= INT32_MAX && field->min >= INT32_MIN);
    if (field->default_kind == KILN_DEFAULT_VALUE) {
        assert_in_range(field->default_value - field->min, 0, field->max - field->min);
    }
    if (field->default_kind == KILN_DEFAULT_FIELD) {
        const struct kiln_shape_field *other = &info->fields[field->default_value];

        assert_in_range(field->default_value, 0, info->n_fields - 1);
        assert_int_not_equal(field->default_value, f);
        /* Copied in one pass, so it must not depend on a third one. */
        assert_true(other->default_kind == KILN_DEFAULT_NONE ||
                    other->default_kind == KILN_DEFAULT_VALUE);
    }
    assert_int_equal(field->kind == KILN_FIELD_CHOICE, field->choices != NULL);
    for (int64_t c = 0; field->choices != NULL && c <= field->max; c++) {
        assert_non_null(field->choices[c]);
    }
    for (size_t other = 0; other < f; other++) {
        assert_string_not_equal(info->fields[other].name, field->name);
    }
}

static void op_fields_are_sane_and_named_once(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_OPS; i++) {
        const struct kiln_op_info *info = kiln_op_info_at(i);

        assert_in_range(info->n_fields, 0, KILN_SHAPE_FIELDS);
        for (size_t f = 0; f < info->n_fields; f++) {
            assert_field_is_sane(info, f);
        }
    }
}

static bool is_stride(const struct kiln_op_info *info, int f)
{
    for (size_t i = 0; i < info->n_args; i++) {
        if (info->args[i].stride_field == f) {
            return true;
        }
    }
    return false;
}

/* A stride that no array has would be neither checked nor given a default. */
static void op_strides_belong_to_an_array(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_OPS; i++) {
        const struct kiln_op_info *info = kiln_op_info_at(i);

        for (size_t f = 0; info->supported && f < info->n_fields; f++) {
            /* A page's stride is counted in slots: it is no row's. */
            bool named = strstr(info->fields[f].name, "_stride") != NULL &&
                         strcmp(info->fields[f].name, "page_stride") != 0;
            bool has_default = info->fields[f].default_kind == KILN_DEFAULT_STRIDE;

            assert_int_equal(named, is_stride(info, (int)f));
            assert_int_equal(named, has_default);
        }
    }
}

static size_t bytes_of(const struct kiln_arg *arg)
{
    switch (arg->kind) {
    case KILN_ARG_INPUT:
    case KILN_ARG_OUTPUT:
        return sizeof(void *);
    case KILN_ARG_COUNT:
        return sizeof(struct kiln_count);
    case KILN_ARG_NUMBER:
    case KILN_ARG_EXTENT:
        break;
    }
    return sizeof(int32_t);
}

/* In the order of the struct, the report last, no gap but for alignment. */
static void op_args_cover_the_args_struct(void **state)
{
#define ARGS_BYTES(name, op) sizeof(struct kiln_##name##_args),
    static const size_t bytes[] = {KI_OPS(ARGS_BYTES)};
#undef ARGS_BYTES

    (void)state;
    for (size_t i = 0; i < KI_COUNT_OF(bytes); i++) {
        const struct kiln_op_info *info = kiln_op_info_at(i);
        size_t end = 0;

        assert_true(info->supported);
        assert_int_equal(info->args_bytes, bytes[i]);
        for (size_t a = 0; a < info->n_args; a++) {
            const size_t size = bytes_of(&info->args[a]);

            end += size > sizeof(int32_t) ? -end % sizeof(void *) : 0;
            assert_int_equal(info->args[a].offset, end);
            end += size;
        }
        assert_in_range(info->report_offset - end, 0, 7);
        assert_int_equal(info->report_offset + sizeof(void *), info->args_bytes);
    }
}

static void op_args_are_named_once_and_counted(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_OPS; i++) {
        const struct kiln_op_info *info = kiln_op_info_at(i);

        for (size_t a = 0; a < info->n_args; a++) {
            const struct kiln_arg *arg = &info->args[a];
            bool is_array = arg->kind == KILN_ARG_INPUT || arg->kind == KILN_ARG_OUTPUT;

            assert_true(arg->stride_field < (int)info->n_fields);
            assert_true(arg->extent >= 0 && arg->extent < KILN_N_EXTENTS);
            assert_true(!is_array || arg->extent != KILN_EXTENT_NONE);
            assert_true(is_array || arg->width == NULL);
            for (size_t other = 0; other < a; other++) {
                assert_string_not_equal(info->args[other].name, arg->name);
            }
        }
    }
}

/* ---- shapes ------------------------------------------------------------------------- */

static struct kiln_shape legal_shape(enum kiln_op op)
{
    struct kiln_shape shape = {0};

    switch ((int)op) {
    case KILN_OP_GLOBAL_TOPK:
        shape.global_topk =
            (struct kiln_global_topk_shape){512, 512, 512, 64, 4096, 4096, 1, 1};
        break;
    case KILN_OP_C128A_TOPK:
        shape.c128a_topk = (struct kiln_c128a_topk_shape){128, 8192, 2, 4096, 4096, 1, 1};
        break;
    case KILN_OP_COMBINE_TOPK_SWA:
        shape.combine_topk_swa =
            (struct kiln_combine_topk_swa_shape){512, 512, 128, 4, 0, 128, 640};
        break;
    case KILN_OP_SWA_INDICES:
        shape.swa_indices = (struct kiln_swa_indices_shape){
            128, 128, 128, 64, 16384, 16384, 0, 1, 1, 1, KILN_DCP_SHARDED};
        break;
    case KILN_OP_MIXED_SPARSE_INDICES:
        shape.mixed_sparse_indices = (struct kiln_mixed_sparse_indices_shape){
            128, 128, 0, 4, 512, 512, 1, 64, 64, 16384, 16384, 64, 64, 4096, 4096};
        break;
    case KILN_OP_COMPRESSED_SLOTS:
        shape.compressed_slots =
            (struct kiln_compressed_slots_shape){4, 64, 4096, 4096, 1, 1};
        break;
    case KILN_OP_REQ_TO_GLOBAL:
        shape.req_to_global =
            (struct kiln_req_to_global_shape){2048, 2048, 2048, 64, 64, 2560, 2560, 1, 1};
        break;
    case KILN_OP_IS_VALID_TOKEN:
        shape.is_valid_token.dcp_world = 1;
        break;
    case KILN_OP_GATHER_LENS:
        shape.gather_lens.window = 128;
        break;
    case KILN_OP_IMAGE_VISIBILITY:
        shape.image_visibility.image_width = 16;
        break;
    default: /* token_to_req: pad_req is 0 */
        break;
    }
    return shape;
}

static size_t field_index(enum kiln_op op, const char *name)
{
    const struct kiln_op_info *info = kiln_op_info_get(op);

    for (size_t i = 0; i < info->n_fields; i++) {
        if (strcmp(info->fields[i].name, name) == 0) {
            return i;
        }
    }
    fail_msg("%s has no %s", info->name, name);
    return 0;
}

struct bad_shape {
    enum kiln_op op;
    const char *field;
    int64_t value;
    const char *expected; /* in the message */
};

static const struct bad_shape bad_shapes[] = {
    {KILN_OP_GLOBAL_TOPK, "topk", 0, "expected 1 to 2147483647"},
    {KILN_OP_GLOBAL_TOPK, "topk", -512, "expected 1 to 2147483647"},
    {KILN_OP_GLOBAL_TOPK, "topk", INT64_C(1) << 31, "expected 1 to 2147483647"},
    {KILN_OP_GLOBAL_TOPK, "topk", INT64_MAX, "expected 1 to 2147483647"},
    {KILN_OP_GLOBAL_TOPK, "topk", INT64_MIN, "expected 1 to 2147483647"},
    {KILN_OP_GLOBAL_TOPK, "topk_stride", 511, "at least 512"},
    {KILN_OP_GLOBAL_TOPK, "topk_stride", INT64_C(1) << 31, "expected 1 to 2147483647"},
    {KILN_OP_GLOBAL_TOPK, "slots_stride", 511, "at least 512"},
    {KILN_OP_GLOBAL_TOPK, "slots_stride", 0, "expected 1 to 2147483647"},
    {KILN_OP_GLOBAL_TOPK, "block_size", 0, "expected 1 to 2147483647"},
    {KILN_OP_GLOBAL_TOPK, "block_size", -64, "expected 1 to 2147483647"},
    {KILN_OP_GLOBAL_TOPK, "table_width", 0, "expected 1 to 2147483647"},
    {KILN_OP_GLOBAL_TOPK, "table_width", INT64_C(1) << 31, "expected 1 to 2147483647"},
    {KILN_OP_GLOBAL_TOPK, "table_stride", 4095, "at least 4096"},
    {KILN_OP_GLOBAL_TOPK, "dcp_world", 0, "expected 1 to 2147483647"},
    {KILN_OP_GLOBAL_TOPK, "dcp_interleave", 0, "expected 1 to 2147483647"},
    {KILN_OP_GLOBAL_TOPK, "dcp_interleave", 3, "a divisor of block_size = 64"},
    {KILN_OP_GLOBAL_TOPK, "dcp_interleave", 128, "a divisor of block_size = 64"},
    {KILN_OP_C128A_TOPK, "compress_ratio", 0, "expected 1 to 2147483647"},
    {KILN_OP_C128A_TOPK, "compress_ratio", -1, "expected 1 to 2147483647"},
    {KILN_OP_C128A_TOPK, "capacity", 0, "expected 1 to 2147483647"},
    {KILN_OP_C128A_TOPK, "capacity", INT64_C(1) << 31, "expected 1 to 2147483647"},
    {KILN_OP_C128A_TOPK, "block_size", 0, "expected 1 to 2147483647"},
    {KILN_OP_C128A_TOPK, "table_width", 0, "expected 1 to 2147483647"},
    {KILN_OP_C128A_TOPK, "table_stride", 4095, "at least 4096"},
    {KILN_OP_C128A_TOPK, "dcp_world", -8, "expected 1 to 2147483647"},
    {KILN_OP_C128A_TOPK, "dcp_interleave", 3, "a divisor of block_size = 2"},
    {KILN_OP_COMBINE_TOPK_SWA, "topk", -1, "expected 0 to 2147483647"},
    {KILN_OP_COMBINE_TOPK_SWA, "topk_stride", 511, "at least 512"},
    {KILN_OP_COMBINE_TOPK_SWA, "topk_stride", 0, "expected 1 to 2147483647"},
    {KILN_OP_COMBINE_TOPK_SWA, "window", 0, "expected 1 to 2147483647"},
    {KILN_OP_COMBINE_TOPK_SWA, "compress_ratio", -1, "expected 0 to 2147483647"},
    {KILN_OP_COMBINE_TOPK_SWA, "image_width", -1, "expected 0 to 2147483647"},
    {KILN_OP_COMBINE_TOPK_SWA, "align", 0, "expected 1 to 2147483647"},
    {KILN_OP_COMBINE_TOPK_SWA, "combined_stride", 639, "at least 640"},
    {KILN_OP_COMBINE_TOPK_SWA, "combined_stride", INT64_C(1) << 31,
     "expected 1 to 2147483647"},
    {KILN_OP_SWA_INDICES, "window", 0, "expected 1 to 2147483647"},
    {KILN_OP_SWA_INDICES, "index_width", 0, "expected 1 to 2147483647"},
    {KILN_OP_SWA_INDICES, "index_stride", 127, "at least 128"},
    {KILN_OP_SWA_INDICES, "block_size", 0, "expected 1 to 2147483647"},
    {KILN_OP_SWA_INDICES, "table_stride", 16383, "at least 16384"},
    {KILN_OP_SWA_INDICES, "image_width", -1, "expected 0 to 2147483647"},
    {KILN_OP_SWA_INDICES, "causal", 2, "expected 0 to 1"},
    {KILN_OP_SWA_INDICES, "dcp_world", 0, "expected 1 to 2147483647"},
    {KILN_OP_SWA_INDICES, "dcp_interleave", 3, "a divisor of block_size = 64"},
    {KILN_OP_SWA_INDICES, "dcp_storage", 2, "expected 0 to 1"},
    {KILN_OP_MIXED_SPARSE_INDICES, "window", 0, "expected 1 to 2147483647"},
    {KILN_OP_MIXED_SPARSE_INDICES, "swa_width", 127, "at least window = 128"},
    {KILN_OP_MIXED_SPARSE_INDICES, "compress_ratio", -1, "expected 0 to 2147483647"},
    {KILN_OP_MIXED_SPARSE_INDICES, "topk", -1, "expected 0 to 2147483647"},
    {KILN_OP_MIXED_SPARSE_INDICES, "decode_topk", -1, "expected 0 to 2147483647"},
    {KILN_OP_MIXED_SPARSE_INDICES, "decode_local", -1, "expected 0 to 1"},
    {KILN_OP_MIXED_SPARSE_INDICES, "swa_block_size", 0, "expected 1 to 2147483647"},
    {KILN_OP_MIXED_SPARSE_INDICES, "swa_span", 0, "expected 1 to 2147483647"},
    {KILN_OP_MIXED_SPARSE_INDICES, "span", 0, "expected 1 to 2147483647"},
    {KILN_OP_MIXED_SPARSE_INDICES, "swa_table_stride", 16383, "at least 16384"},
    {KILN_OP_MIXED_SPARSE_INDICES, "table_stride", 4095, "at least 4096"},
};

static void shape_check_names_field_value_and_what_is_allowed(void **state)
{
    (void)state;
    for (size_t i = 0; i < KI_COUNT_OF(bad_shapes); i++) {
        const struct bad_shape *bad = &bad_shapes[i];
        struct kiln_shape shape = legal_shape(bad->op);
        struct kiln_error err = {0};
        char named[128];

        shape.fields[field_index(bad->op, bad->field)] = bad->value;
        snprintf(named, sizeof named, "%s: %s = %lld", kiln_op_info_get(bad->op)->name,
                 bad->field, (long long)bad->value);

        if (kiln_shape_check(bad->op, &shape, &err) != KILN_E_SHAPE ||
            strstr(err.message, named) == NULL ||
            strstr(err.message, bad->expected) == NULL) {
            fail_msg("%s gave \"%s\"", named, err.message);
        }
    }
}

static void shape_check_accepts_what_a_deployment_has(void **state)
{
    (void)state;
    for (int op = KILN_OP_GLOBAL_TOPK; op < KILN_OP_STEP; op++) {
        struct kiln_shape shape = legal_shape((enum kiln_op)op);

        assert_int_equal(kiln_shape_check((enum kiln_op)op, &shape, NULL), KILN_OK);
        assert_int_equal(ki_op_check((enum kiln_op)op, &shape, NULL), KILN_OK);
    }
}

static void shape_check_accepts_the_extremes(void **state)
{
    static const struct kiln_global_topk_shape smallest = {1, 1, 1, 1, 1, 1, 1, 1};
    static const struct kiln_global_topk_shape greatest = {
        INT32_MAX, INT32_MAX, INT32_MAX, INT32_MAX,
        INT32_MAX, INT32_MAX, INT32_MAX, INT32_MAX};
    static const struct kiln_combine_topk_swa_shape window_only = {0, 1, 1, 0, 0, 1, 1};
    struct kiln_shape shape = {0};

    (void)state;
    shape.global_topk = smallest;
    assert_int_equal(kiln_shape_check(KILN_OP_GLOBAL_TOPK, &shape, NULL), KILN_OK);
    shape.global_topk = greatest;
    assert_int_equal(kiln_shape_check(KILN_OP_GLOBAL_TOPK, &shape, NULL), KILN_OK);
    shape.combine_topk_swa = window_only;
    assert_int_equal(kiln_shape_check(KILN_OP_COMBINE_TOPK_SWA, &shape, NULL), KILN_OK);
}

/* Each field is in its range; their sum is not. */
static void shape_check_refuses_a_combined_width_beyond_int32(void **state)
{
    static const struct kiln_combine_topk_swa_shape wide[] = {
        {INT32_MAX, INT32_MAX, INT32_MAX, 4, INT32_MAX, 1, INT32_MAX},
        {INT32_MAX - 127, INT32_MAX, 128, 4, 0, 128, INT32_MAX},
        {1, 1, 1, 1, INT32_MAX, INT32_MAX, INT32_MAX},
    };

    (void)state;
    for (size_t i = 0; i < KI_COUNT_OF(wide); i++) {
        struct kiln_shape shape = {0};
        struct kiln_error err = {0};

        shape.combine_topk_swa = wide[i];
        assert_int_equal(kiln_shape_check(KILN_OP_COMBINE_TOPK_SWA, &shape, &err),
                         KILN_E_SHAPE);
        assert_non_null(strstr(err.message, "combined_indices"));
        assert_non_null(strstr(err.message, "at most 2147483647"));
    }
}

static void shape_check_refuses_an_op_that_is_none(void **state)
{
    struct kiln_shape shape = legal_shape(KILN_OP_GLOBAL_TOPK);
    struct kiln_error err = {0};

    (void)state;
    assert_int_equal(kiln_shape_check((enum kiln_op)99, &shape, &err), KILN_E_ARGUMENT);
    assert_non_null(strstr(err.message, "op 99"));
    assert_int_equal(kiln_shape_check(KILN_OP_GLOBAL_TOPK, NULL, &err), KILN_E_ARGUMENT);
}

static void op_check_refuses_an_op_without_a_kernel(void **state)
{
    struct kiln_shape shape = {0};
    struct kiln_error err = {0};

    (void)state;
    assert_int_equal(kiln_shape_check(KILN_OP_STEP, &shape, NULL), KILN_OK);
    assert_int_equal(ki_op_check(KILN_OP_STEP, &shape, &err), KILN_E_UNSUPPORTED);
    assert_non_null(strstr(err.message, "op step"));
}

/* ---- defaults ----------------------------------------------------------------------- */

static void shape_defaults_fill_what_was_not_given(void **state)
{
    struct kiln_shape shape;

    memset(&shape, 0x5a, sizeof shape);
    shape.global_topk.topk = 512;
    shape.global_topk.block_size = 64;
    shape.global_topk.table_width = 100;

    (void)state;
    assert_int_equal(
        kiln_shape_defaults(KILN_OP_GLOBAL_TOPK, 1U | 1U << 3 | 1U << 4, &shape, NULL),
        KILN_OK);
    assert_int_equal(shape.global_topk.topk_stride, 512);
    assert_int_equal(shape.global_topk.slots_stride, 512);
    assert_int_equal(shape.global_topk.table_stride, 100);
    assert_int_equal(shape.global_topk.dcp_world, 1);
    assert_int_equal(shape.global_topk.dcp_interleave, 1);
}

static void shape_defaults_compute_the_combined_stride(void **state)
{
    struct kiln_shape shape = {0};

    shape.combine_topk_swa.window = 133;
    shape.combine_topk_swa.image_width = 5;

    (void)state;
    /* topk 0, window, compress_ratio 0 and image_width are given. */
    assert_int_equal(kiln_shape_defaults(KILN_OP_COMBINE_TOPK_SWA,
                                         1U | 1U << 2 | 1U << 3 | 1U << 4, &shape, NULL),
                     KILN_OK);
    assert_int_equal(shape.combine_topk_swa.align, 128);
    assert_int_equal(shape.combine_topk_swa.topk_stride, 1);
    assert_int_equal(shape.combine_topk_swa.combined_stride, 256);
}

static void shape_defaults_keep_what_was_given(void **state)
{
    struct kiln_shape shape = legal_shape(KILN_OP_GLOBAL_TOPK);
    struct kiln_shape before;

    shape.global_topk.topk_stride = 777;
    before = shape;

    (void)state;
    assert_int_equal(kiln_shape_defaults(KILN_OP_GLOBAL_TOPK, 0xffU, &shape, NULL),
                     KILN_OK);
    assert_memory_equal(&shape, &before, sizeof shape);
}

static void shape_defaults_name_a_field_that_is_missing(void **state)
{
    struct kiln_shape shape;
    struct kiln_shape before;
    struct kiln_error err = {0};

    memset(&shape, 0x5a, sizeof shape);
    shape.global_topk.topk = 512;
    before = shape;

    (void)state;
    assert_int_equal(kiln_shape_defaults(KILN_OP_GLOBAL_TOPK, 1, &shape, &err),
                     KILN_E_SHAPE);
    assert_non_null(strstr(err.message, "global_topk: shape field \"block_size\""));
    assert_memory_equal(&shape, &before, sizeof shape);
}

static void shape_defaults_refuse_a_given_value_out_of_range(void **state)
{
    struct kiln_shape shape = {0};
    struct kiln_error err = {0};

    shape.combine_topk_swa.topk = INT64_MAX;

    (void)state;
    assert_int_equal(kiln_shape_defaults(KILN_OP_COMBINE_TOPK_SWA, 0x7fU, &shape, &err),
                     KILN_E_SHAPE);
    assert_non_null(strstr(err.message, "topk = 9223372036854775807"));
}

static void shape_defaults_refuse_an_op_that_is_none(void **state)
{
    struct kiln_shape shape = {0};

    (void)state;
    assert_int_equal(kiln_shape_defaults((enum kiln_op)0, 0, &shape, NULL),
                     KILN_E_ARGUMENT);
    assert_int_equal(kiln_shape_defaults(KILN_OP_GLOBAL_TOPK, 0, NULL, NULL),
                     KILN_E_ARGUMENT);
}

/* The defaults of each op are a legal shape, so that a case file may leave them out. */
static void shape_defaults_give_a_legal_shape_for_every_op(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_OPS; i++) {
        const struct kiln_op_info *info = kiln_op_info_at(i);
        struct kiln_shape shape = {0};
        uint32_t given = 0;
        struct kiln_error err = {0};

        for (size_t f = 0; f < info->n_fields; f++) {
            if (info->fields[f].default_kind == KILN_DEFAULT_NONE) {
                shape.fields[f] = 256;
                given |= 1U << f;
            }
        }
        if (kiln_shape_defaults(info->op, given, &shape, &err) != KILN_OK ||
            kiln_shape_check(info->op, &shape, &err) != KILN_OK) {
            fail_msg("%s", err.message);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(op_fields_lie_where_the_shape_struct_has_them),
        cmocka_unit_test(op_tables_are_found_by_number_by_name_and_in_order),
        cmocka_unit_test(dtype_has_bytes),
        cmocka_unit_test(op_fields_are_sane_and_named_once),
        cmocka_unit_test(op_strides_belong_to_an_array),
        cmocka_unit_test(op_args_cover_the_args_struct),
        cmocka_unit_test(op_args_are_named_once_and_counted),
        cmocka_unit_test(shape_check_names_field_value_and_what_is_allowed),
        cmocka_unit_test(shape_check_accepts_what_a_deployment_has),
        cmocka_unit_test(shape_check_accepts_the_extremes),
        cmocka_unit_test(shape_check_refuses_a_combined_width_beyond_int32),
        cmocka_unit_test(shape_check_refuses_an_op_that_is_none),
        cmocka_unit_test(op_check_refuses_an_op_without_a_kernel),
        cmocka_unit_test(shape_defaults_fill_what_was_not_given),
        cmocka_unit_test(shape_defaults_compute_the_combined_stride),
        cmocka_unit_test(shape_defaults_keep_what_was_given),
        cmocka_unit_test(shape_defaults_name_a_field_that_is_missing),
        cmocka_unit_test(shape_defaults_refuse_a_given_value_out_of_range),
        cmocka_unit_test(shape_defaults_refuse_an_op_that_is_none),
        cmocka_unit_test(shape_defaults_give_a_legal_shape_for_every_op),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
