/* SPDX-License-Identifier: Apache-2.0 */
/* Nothing of its own: the compiler is told which header to put in front. */
typedef int translation_unit_is_not_empty_fn;
