/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Linked before and after the kernel's object; KILN_SIMT_EDGE is its name, KILN_SIMT_ALIGN its
 * alignment: the second has none, so that it begins where the last variable ends. See
 * kiln_simt_shared.cpp.
 */
extern "C" {
alignas(KILN_SIMT_ALIGN) extern unsigned char KILN_SIMT_EDGE[64];
alignas(KILN_SIMT_ALIGN) unsigned char KILN_SIMT_EDGE[64];
}
