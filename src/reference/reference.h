/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What each op means, in plain C: the oracle of every test. All take a legal shape and
 * checked arguments with host addresses, so that none can fail for another reason than
 * memory.
 */
#ifndef KI_REFERENCE_REFERENCE_H
#define KI_REFERENCE_REFERENCE_H

#include "kiln/op_info.h"

enum kiln_status ki_reference_global_topk(const struct kiln_shape *shape,
                                          const void *args);
enum kiln_status ki_reference_swa_indices(const struct kiln_shape *shape,
                                          const void *args);
enum kiln_status ki_reference_mixed_sparse_indices(const struct kiln_shape *shape,
                                                   const void *args);
enum kiln_status ki_reference_compressed_slots(const struct kiln_shape *shape,
                                               const void *args);
enum kiln_status ki_reference_req_to_global(const struct kiln_shape *shape,
                                            const void *args);
enum kiln_status ki_reference_token_to_req(const struct kiln_shape *shape,
                                           const void *args);
enum kiln_status ki_reference_is_valid_token(const struct kiln_shape *shape,
                                             const void *args);
enum kiln_status ki_reference_gather_lens(const struct kiln_shape *shape,
                                          const void *args);
enum kiln_status ki_reference_image_visibility(const struct kiln_shape *shape,
                                               const void *args);
enum kiln_status ki_reference_c128a_topk(const struct kiln_shape *shape,
                                         const void *args);
enum kiln_status ki_reference_combine_topk_swa(const struct kiln_shape *shape,
                                               const void *args);

#endif
