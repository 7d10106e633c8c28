/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What each op means, in plain C: the oracle of every test. A function computes one row of
 * a launch, the first one also reports on the launch as a whole: rows do not know of each
 * other, so they may be computed in any order and at once. All take a legal shape and
 * checked arguments with addresses that they can reach, and cannot fail.
 *
 * They are C that is C++ too: tests/gpu compiles them for the GPU, a thread for each row.
 */
#ifndef KI_REFERENCE_REFERENCE_H
#define KI_REFERENCE_REFERENCE_H

#include "kiln/op_info.h"

typedef void ki_row_fn(const struct kiln_shape *shape, const void *args, int64_t row);

ki_row_fn ki_row_global_topk;
ki_row_fn ki_row_c128a_topk;
ki_row_fn ki_row_combine_topk_swa;
ki_row_fn ki_row_swa_indices;
ki_row_fn ki_row_mixed_sparse_indices;
ki_row_fn ki_row_compressed_slots;
ki_row_fn ki_row_req_to_global;
ki_row_fn ki_row_token_to_req;
ki_row_fn ki_row_is_valid_token;
ki_row_fn ki_row_gather_lens;
ki_row_fn ki_row_image_visibility;

#endif
