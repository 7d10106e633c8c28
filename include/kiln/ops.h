/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ops, a header each: a shape (what is baked into the kernel), its arguments (what
 * varies per call), a launch and a reference.
 *
 * Rules for every op
 * - Shapes hold int64_t so that a value out of range can be named; all must be at most
 *   2^31-1. Strides and widths count elements.
 * - Arrays are dense rows at the shape's stride, aligned to their element and no more.
 *   Inputs and outputs do not overlap. In a launch they are device addresses, in a
 *   reference host addresses.
 * - Every column of [0, width) of each row of the launch is written exactly once, a value
 *   or -1; the padding between width and stride is never touched.
 * - A row that is not live, not valid, or whose request is out of range is all -1 with
 *   length 0, where an op does not state another.
 * - Any int32 is acceptable as an id and as a page; what cannot be mapped becomes -1.
 * - An args struct of all zeros is a launch of zero rows; optional arrays are NULL when
 *   absent.
 * - An args struct is copied by the launch; the arrays must live until the kernel has
 *   run, and in a captured graph as long as the graph is replayed.
 */
#ifndef KILN_OPS_H
#define KILN_OPS_H

#include "kiln/op/common.h"
#include "kiln/op/c128a_topk.h"
#include "kiln/op/combine_topk_swa.h"
#include "kiln/op/compressed_slots.h"
#include "kiln/op/gather_lens.h"
#include "kiln/op/global_topk.h"
#include "kiln/op/image_visibility.h"
#include "kiln/op/is_valid_token.h"
#include "kiln/op/mixed_sparse_indices.h"
#include "kiln/op/req_to_global.h"
#include "kiln/op/swa_indices.h"
#include "kiln/op/token_to_req.h"
#endif
