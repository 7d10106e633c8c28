/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The emitted text, unchanged, behind the words it uses. KILN_SIMT_SOURCE is its file,
 * KILN_SIMT_ENTRY its kernel. The only file that is compiled for each source.
 */
#include "kiln_simt.h"

#include KILN_SIMT_SOURCE

#line 11 "kiln_simt_kernel.cpp"
extern "C" {
#define KILN_SIMT_QUOTE(name) #name
#define KILN_SIMT_NAME(name) KILN_SIMT_QUOTE(name)
extern const char *const kiln_simt_kernel_name;
extern const unsigned long kiln_simt_kernel_args_bytes;
void kiln_simt_kernel(const void *args);

const char *const kiln_simt_kernel_name = KILN_SIMT_NAME(KILN_SIMT_ENTRY);
const unsigned long kiln_simt_kernel_args_bytes = kiln_simt_args_bytes(&KILN_SIMT_ENTRY);

void kiln_simt_kernel(const void *args)
{
    kiln_simt_call(&KILN_SIMT_ENTRY, args);
}
}
