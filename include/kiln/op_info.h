/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an op is made of, as data: one table per op that the command line, case files,
 * plans and tests read, so that nothing else has to know an op's fields.
 */
#ifndef KILN_OP_INFO_H
#define KILN_OP_INFO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kiln/ops.h"

#ifdef __cplusplus
extern "C" {
#endif

/* An op's shape struct is this many int64_t at most; unused ones are 0. */
#define KILN_SHAPE_FIELDS 16

/*
 * Any op's shape: its struct, or the same int64_t one after the other in the order of the
 * op's table, so that `fields[i]` is the table's field i. What lies beyond the op's
 * fields is ignored.
 */
struct kiln_shape {
    union {
        int64_t fields[KILN_SHAPE_FIELDS];
        struct kiln_global_topk_shape global_topk;
        struct kiln_c128a_topk_shape c128a_topk;
        struct kiln_combine_topk_swa_shape combine_topk_swa;
        struct kiln_swa_indices_shape swa_indices;
        struct kiln_mixed_sparse_indices_shape mixed_sparse_indices;
        struct kiln_compressed_slots_shape compressed_slots;
        struct kiln_req_to_global_shape req_to_global;
        struct kiln_token_to_req_shape token_to_req;
        struct kiln_is_valid_token_shape is_valid_token;
        struct kiln_gather_lens_shape gather_lens;
        struct kiln_image_visibility_shape image_visibility;
    };
};

/* What a kernel can be built as: bits, each another key. */
enum kiln_variant {
    KILN_VARIANT_CHECKED = 1, /* writes a report; see report.h */
};

enum kiln_field_kind {
    KILN_FIELD_INTEGER = 0,
    KILN_FIELD_BOOLEAN = 1, /* 0 or 1; true or false in JSON and in emitted source */
    KILN_FIELD_CHOICE = 2,  /* an index into `choices`; one of those strings in JSON */
};

enum kiln_default_kind {
    KILN_DEFAULT_NONE = 0,   /* must be given */
    KILN_DEFAULT_VALUE = 1,  /* `default_value` */
    KILN_DEFAULT_FIELD = 2,  /* the value of the field whose index is `default_value` */
    KILN_DEFAULT_STRIDE = 3, /* the width of the array that has it as its stride */
};

struct kiln_shape_field {
    const char *name;
    enum kiln_field_kind kind;
    enum kiln_default_kind default_kind;
    int64_t default_value;
    int64_t min, max;           /* inclusive */
    const char *const *choices; /* KILN_FIELD_CHOICE: NULL-terminated */
};

enum kiln_dtype { KILN_U8 = 0, KILN_I32 = 1, KILN_I64 = 2 };

/** Bytes of an element. Threads: any. Capture: allowed. @return 0 for a number that is no
 * type. */
KILN_API size_t kiln_dtype_bytes(enum kiln_dtype dtype);

/* What the rows of an array are counted in; in parentheses what of the args struct says so. */
enum kiln_extent {
    KILN_EXTENT_NONE = 0,
    KILN_EXTENT_TOKENS = 1,            /* (num_tokens) */
    KILN_EXTENT_DECODE_TOKENS = 2,     /* (num_decode_tokens, clamped to the tokens) */
    KILN_EXTENT_PREFILL_TOKENS = 3,    /* the tokens less the former */
    KILN_EXTENT_REQUESTS = 4,          /* (num_requests) */
    KILN_EXTENT_REQUEST_BOUNDS = 5,    /* the requests and one more */
    KILN_EXTENT_TABLE_ROWS = 6,        /* (table_rows) */
    KILN_EXTENT_SWA_TABLE_ROWS = 7,    /* (swa_table_rows) */
    KILN_EXTENT_ROWS = 8,              /* (num_rows) */
    KILN_EXTENT_FIRST_TOKENS = 9,      /* (token_offset) tokens before the rows' */
    KILN_EXTENT_CONTEXT_TOKENS = 10,   /* those and the rows' */
    KILN_EXTENT_DECODE_REQUESTS = 11,  /* (first_request, clamped to the requests) */
    KILN_EXTENT_PREFILL_REQUESTS = 12, /* the requests less the former */
    KILN_EXTENT_SPANS = 13,            /* (num_spans) */
    KILN_N_EXTENTS = 14,
};

enum kiln_arg_kind {
    KILN_ARG_INPUT = 0,  /* array, read */
    KILN_ARG_OUTPUT = 1, /* array, written */
    KILN_ARG_NUMBER = 2, /* int32_t */
    KILN_ARG_COUNT = 3,  /* struct kiln_count */
    KILN_ARG_EXTENT = 4, /* int32_t that follows from the lists; not in case files */
};

struct kiln_arg {
    const char *name;
    enum kiln_arg_kind kind;
    bool optional; /* may be left out of a case file, and be NULL or absent in a launch */
    bool may_be_null;        /* an array that some shapes never read (in a launch only) */
    enum kiln_dtype dtype;   /* arrays */
    enum kiln_extent extent; /* arrays: their rows; numbers and counts: what they count */
    size_t offset;           /* bytes into the op's args struct */
    /* columns; NULL: a vector of one per row */
    int64_t (*width)(const struct kiln_shape *shape);
    int stride_field; /* index of the shape's field with the row stride; -1: packed */
};

struct kiln_op_info {
    enum kiln_op op;
    const char *name;
    bool supported; /* this kiln has its kernel and its reference */
    const struct kiln_shape_field *fields;
    size_t n_fields;
    const struct kiln_arg *args;
    size_t n_args;
    size_t args_bytes;    /* sizeof the op's args struct */
    size_t report_offset; /* of its struct kiln_report *report */
};

/**
 * The table of an op.
 *
 * Owner: static, never freed.
 * Threads: any
 * Capture: allowed
 * @return the table; NULL for a number or a name that is no op
 * Since: 1
 */
KILN_API const struct kiln_op_info *kiln_op_info_get(enum kiln_op op);
/** As kiln_op_info_get, by name. Threads: any. Capture: allowed. @return as there. */
KILN_API const struct kiln_op_info *kiln_op_info_by_name(const char *name);
/** As kiln_op_info_get, the i-th of all ops, from 0; NULL beyond the last. Threads: any.
 * Capture: allowed. @return as there. */
KILN_API const struct kiln_op_info *kiln_op_info_at(size_t i);

/**
 * Fill the fields of a shape that were not given with their defaults.
 *
 * @param given bit i set: fields[i] holds a given value and stays
 * Threads: any
 * Capture: allowed
 * @return KILN_OK; KILN_E_SHAPE: a field without default was not given, or a given one is out
 *         of range, and is named; KILN_E_ARGUMENT: op is none
 * Since: 1
 */
KILN_API KILN_MUST_USE enum kiln_status kiln_shape_defaults(enum kiln_op op,
                                                            uint32_t given,
                                                            struct kiln_shape *shape,
                                                            struct kiln_error *err);

/**
 * Say whether an op can have this shape: each field in its range, each stride at least
 * its width, and what the op itself demands.
 *
 * Threads: any
 * Capture: allowed
 * @return KILN_OK; KILN_E_SHAPE: the message names field, value and what is allowed;
 *         KILN_E_ARGUMENT: op is none
 * Since: 1
 */
KILN_API KILN_MUST_USE enum kiln_status
kiln_shape_check(enum kiln_op op, const struct kiln_shape *shape, struct kiln_error *err);

/**
 * Compute any op on host arrays: the reference of its number. args points to the op's
 * args struct.
 *
 * Threads: any
 * Capture: allowed
 * @return as kiln_reference_global_topk; KILN_E_UNSUPPORTED: this kiln lacks the op
 * Since: 1
 */
KILN_API KILN_MUST_USE enum kiln_status kiln_reference(enum kiln_op op,
                                                       const struct kiln_shape *shape,
                                                       const void *args,
                                                       struct kiln_error *err);

/* The grid of a launch, in blocks, and the threads of a block; no blocks: nothing to do. */
struct kiln_geometry {
    uint32_t grid_x, grid_y, threads;
};

/**
 * Say how an op would be launched: for whoever executes its source elsewhere.
 *
 * @param args the op's args struct; its arrays are not read, but must be there
 * @param n_sms multiprocessors of the GPU, at least 1; results do not depend on it
 * Threads: any
 * Capture: allowed
 * @return KILN_OK; KILN_E_SHAPE, KILN_E_ARGUMENT, KILN_E_UNSUPPORTED: as kiln_reference
 * Since: 1
 */
KILN_API KILN_MUST_USE enum kiln_status
kiln_geometry_make(enum kiln_op op, const struct kiln_shape *shape, const void *args,
                   int32_t n_sms, struct kiln_geometry *out, struct kiln_error *err);

/**
 * Launch any op: as kiln_launch_global_topk, with args pointing to the op's args struct.
 *
 * Threads: any
 * Capture: allowed
 * @return as kiln_launch_global_topk
 * Since: 1
 */
KILN_API KILN_MUST_USE enum kiln_status kiln_launch(const struct kiln_kernel *kernel,
                                                    const void *args,
                                                    struct CUstream_st *stream,
                                                    struct kiln_error *err);

#ifdef __cplusplus
}
#endif
#endif
