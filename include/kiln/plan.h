/* SPDX-License-Identifier: Apache-2.0 */
/*
 * deployment -> the complete list of (op, shape) that it launches. Pure: no compiler, no
 * driver, no disk. Server and command line share these, so that they cannot differ.
 */
#ifndef KILN_PLAN_H
#define KILN_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kiln/op_info.h"
#include "kiln/status.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { KILN_MAX_LAYERS = 1024 };

/* A consumer of rows: the attention kernels that read them. */
enum kiln_profile { KILN_PROFILE_FLASHMLA = 0, KILN_PROFILE_FLASHINFER = 1 };

/* What changes a shape, and what sizes buffers. An optional field's default is at 0. */
struct kiln_deployment {
    /* from the model's config.json */
    int64_t num_hidden_layers;
    int64_t index_topk;
    int64_t sliding_window;    /* 0 where the model has none */
    int64_t n_compress_ratios; /* 0: no compress_ratios (V3.2, GLM-5) */
    int32_t compress_ratios[KILN_MAX_LAYERS];
    /* from the operator */
    int64_t max_model_len;          /* tokens, required */
    int64_t max_num_batched_tokens; /* tokens, required */
    int64_t max_num_seqs;           /* 0: 256 */
    int64_t block_size; /* scheduler block, raw tokens; 0: 256, or 64 without ratios */
    int64_t num_speculative_tokens;
    int64_t dcp_world;      /* 0: 1 */
    int64_t dcp_interleave; /* 0: 1 */
    int64_t dcp_storage;    /* enum kiln_dcp_storage */
    int64_t image_width;
    int64_t profile; /* enum kiln_profile */
};

/**
 * Read the fields of a model's config.json that matter; all other keys are ignored.
 *
 * @param name what the text is called in messages
 * @param out its model fields are set, the others stay
 * Threads: any
 * Capture: allowed
 * @return KILN_OK; KILN_E_PARSE: not JSON, or a field is missing or wrong, and is named;
 *         KILN_E_MEMORY
 * Since: 1
 */
KILN_API KILN_MUST_USE enum kiln_status
kiln_deployment_from_config(const char *text, size_t size_bytes, const char *name,
                            struct kiln_deployment *out, struct kiln_error *err);

/* A field of the operator's part, by its names; `offset` is that of its int64_t. */
struct kiln_deployment_field {
    const char *name;           /* in a manifest: "max_model_len" */
    const char *flag;           /* on the command line: "--max-model-len" */
    size_t offset;              /* in struct kiln_deployment */
    int64_t min, max;           /* inclusive, once defaults are filled in */
    const char *const *choices; /* NULL: a number; else NULL-terminated, value = index */
    const char *const *later; /* the same of choices that this kiln lacks yet, or NULL */
};

/** The i-th field of the operator's part, from 0, in the order of a manifest; NULL beyond
 * the last. Owner: static. Threads: any. Capture: allowed. @return as said. */
KILN_API const struct kiln_deployment_field *kiln_deployment_field_at(size_t i);

/**
 * Find the value of a field that is a choice.
 *
 * @param name of the choice: "flashmla"
 * @param out untouched on failure
 * Threads: any
 * Capture: allowed
 * @return KILN_OK; KILN_E_ARGUMENT: the field has no such choice, and the message lists
 *         those that it has; KILN_E_UNSUPPORTED: the same, but a later kiln will have it
 * Since: 1
 */
KILN_API KILN_MUST_USE enum kiln_status
kiln_deployment_choice(const struct kiln_deployment_field *field, const char *name,
                       int64_t *out, struct kiln_error *err);

/* The length of an inert row (not live, not valid, or of no request). Every op gives 0,
 * but mixed_sparse_indices: its window's columns, swa_width + align(image_width, 4). */
enum kiln_padding {
    KILN_PADDING_ZERO = 0,
    KILN_PADDING_WINDOW = 1, /* of rows that begin with the window's columns; others: 0 */
};

/* What an entry of a row counts. */
enum kiln_ids {
    KILN_IDS_SLOTS = 0, /* page * block size + offset: pages lie end to end */
    KILN_IDS_SPANS = 1, /* page * span + offset: other layers' may lie between */
};

/* What a consumer takes. Widths and strides in elements. */
struct kiln_profile_info {
    const char *name;
    int64_t align;           /* of combined rows: combine_topk_swa's field */
    int64_t width_multiple;  /* a row's width is a multiple of it */
    int64_t stride_multiple; /* and its stride of this: 4 is 16 bytes */
    int64_t
        contiguous_above; /* with more rows the stride is the width; INT64_MAX: never */
    enum kiln_padding padding; /* the length of an inert row */
    enum kiln_ids ids;
    bool is_window_descending; /* newest token first; kiln's ops give the oldest first */
    int64_t no_write_slot;     /* of a token that is not stored; kiln's ops give -1 */
};

/**
 * The table of a consumer.
 *
 * Owner: static, never freed.
 * Threads: any
 * Capture: allowed
 * @return the table; NULL for a number that is no profile
 * Since: 1
 */
KILN_API const struct kiln_profile_info *kiln_profile_info_get(enum kiln_profile profile);

/**
 * Say whether a consumer can take the rows that an op makes for attention: slots of
 * global_topk, decode_slots, combined_indices, sparse_indices, global_indices. It reads
 * no other op's rows as they are, and takes those. Everything that kiln_plan_make lists for a
 * profile passes.
 *
 * Threads: any
 * Capture: allowed
 * @return KILN_OK; KILN_E_SHAPE: the shape is not legal, or the consumer cannot take it:
 *         the message names profile, op, field, value and what was expected;
 *         KILN_E_ARGUMENT: profile or op is none
 * Since: 1
 */
KILN_API KILN_MUST_USE enum kiln_status kiln_profile_check(enum kiln_profile profile,
                                                           enum kiln_op op,
                                                           const struct kiln_shape *shape,
                                                           struct kiln_error *err);

/* One (op, shape). For KILN_OP_STEP the shape is the list of segments and `shape` is all
 * zeros. */
struct kiln_plan_item {
    enum kiln_op op;
    struct kiln_shape shape;
    int64_t layers;                   /* layers, or launches per step */
    int64_t rows;                     /* of the outputs at capacity; c128a_topk: of its
                                         decode and its prefill rows, step: of all */
    int64_t bytes;                    /* of all outputs at their strides */
    size_t first_segment, n_segments; /* KILN_OP_STEP: into kiln_plan.segments */
};

struct kiln_plan {
    struct kiln_plan_item *items; /* owned by the plan */
    size_t n_items;
    struct kiln_plan_item *segments; /* owned by the plan */
    size_t n_segments;
    unsigned char digest[32]; /* of ops and shapes in order, a step's segments among them;
                                 not of layers, rows, bytes, targets or the deployment */
};

/**
 * List everything that the deployment launches, each (op, shape) once.
 *
 * Owner: out's arrays are the caller's, for kiln_plan_finish; untouched on failure
 * Threads: any
 * Capture: allowed
 * @return KILN_OK; KILN_E_ARGUMENT: a field is wrong and is named as the command line's
 *         flag, or the profile's consumer cannot take the model's rows; KILN_E_SHAPE;
 *         KILN_E_MEMORY
 * Since: 1
 */
KILN_API KILN_MUST_USE enum kiln_status
kiln_plan_make(const struct kiln_deployment *deployment, struct kiln_plan *out,
               struct kiln_error *err);

/** Free a plan's arrays; all zeros and NULL are fine. Threads: any. Capture: allowed.
 * @return nothing */
KILN_API void kiln_plan_finish(struct kiln_plan *plan);

/* A deployment with its targets and its plan's digest, as a file. Numbers that change no
 * shape, such as max_num_seqs, and targets may be edited: the list and the digest stay. */
enum { KILN_MAX_TARGETS = 32 };
struct kiln_manifest {
    struct kiln_deployment deployment;
    char targets[KILN_MAX_TARGETS][16]; /* "sm_90" */
    size_t n_targets;
    struct kiln_plan plan; /* owned */
};

/**
 * The text of a manifest: JSON, the same bytes for the same manifest.
 *
 * @param buf, size_bytes, out_bytes as kiln_emit_source
 * Threads: any
 * Capture: allowed
 * @return KILN_OK; KILN_E_ARGUMENT: the deployment is wrong; KILN_E_MEMORY
 * Since: 1
 */
KILN_API KILN_MUST_USE enum kiln_status
kiln_manifest_write(const struct kiln_manifest *manifest, char *buf, size_t size_bytes,
                    size_t *out_bytes, struct kiln_error *err);

/**
 * Read a manifest. Its plan is computed from its deployment, and must be the list that it
 * holds.
 *
 * @param name what the text is called in messages
 * Owner: out->plan is the caller's, for kiln_plan_finish; untouched on failure
 * Threads: any
 * Capture: allowed
 * @return KILN_OK; KILN_E_PARSE: what is wrong; a list that this kiln plans differently
 *         is one too; KILN_E_ARGUMENT, KILN_E_SHAPE: the deployment is wrong;
 *         KILN_E_TARGET; KILN_E_MEMORY
 * Since: 1
 */
KILN_API KILN_MUST_USE enum kiln_status
kiln_manifest_read(const char *text, size_t size_bytes, const char *name,
                   struct kiln_manifest *out, struct kiln_error *err);

#ifdef __cplusplus
}
#endif
#endif
