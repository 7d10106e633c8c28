/* SPDX-License-Identifier: Apache-2.0 */
/* The ops by name: those that this kiln has, and those that are planned: plans are whole. */
#ifndef KI_PLAN_OPS_H
#define KI_PLAN_OPS_H

#include "plan/op.h"

/* X(name, number) */
#define KI_OPS(X)                                                                        \
    X(global_topk, KILN_OP_GLOBAL_TOPK)                                                  \
    X(c128a_topk, KILN_OP_C128A_TOPK)                                                    \
    X(combine_topk_swa, KILN_OP_COMBINE_TOPK_SWA)                                        \
    X(swa_indices, KILN_OP_SWA_INDICES)                                                  \
    X(mixed_sparse_indices, KILN_OP_MIXED_SPARSE_INDICES)                                \
    X(compressed_slots, KILN_OP_COMPRESSED_SLOTS)                                        \
    X(req_to_global, KILN_OP_REQ_TO_GLOBAL)                                              \
    X(token_to_req, KILN_OP_TOKEN_TO_REQ)                                                \
    X(is_valid_token, KILN_OP_IS_VALID_TOKEN)                                            \
    X(gather_lens, KILN_OP_GATHER_LENS)                                                  \
    X(image_visibility, KILN_OP_IMAGE_VISIBILITY)

#define KI_PLANNED_OPS(X) X(step, KILN_OP_STEP)

/* op_<name>.c fills ki_op_<name> in. */
#define KI_DECLARE_OP(name, op) extern const struct ki_op ki_op_##name;
KI_OPS(KI_DECLARE_OP)
KI_PLANNED_OPS(KI_DECLARE_OP)
#undef KI_DECLARE_OP

#endif
