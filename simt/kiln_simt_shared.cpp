/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared variables: statics of the kernel's object without initialisers, and its only ones, so
 * they are what the linker puts between the objects of kiln_simt_edge.cpp. (A section of their
 * own would say it better, but g++ forgets the attribute in templates.) Each block gets them
 * anew, filled with what no kernel wrote.
 */
#include <string.h>

#include "kiln_simt_hooks.h"
#include "kiln_simt_internal.h"

extern "C" {
/* The first of kEdge bytes each, which are guards. */
extern unsigned char kiln_simt_shared_begin, kiln_simt_shared_end;
}

namespace simt
{
namespace
{
constexpr size_t kEdge = 64;
region_t region;
} // namespace

const region_t &shared()
{
    return region;
}

void find_shared()
{
    strcpy(region.name, "shared memory");
    region.is_shared = true;
    region.begin = &kiln_simt_shared_begin + kEdge;
    if (&kiln_simt_shared_end < region.begin) {
        fail(nullptr, "the linker did not put the kernel's object between its edges");
    }
    region.bytes = static_cast<size_t>(&kiln_simt_shared_end - region.begin);
    if (region.bytes > 0) {
        begin_renewing(region.begin, (region.bytes + 7) / 8 * 8);
    }
}

bool is_beside_shared(const void *address)
{
    const auto *at = static_cast<const unsigned char *>(address);
    return at >= &kiln_simt_shared_begin && at < &kiln_simt_shared_end + kEdge &&
           static_cast<size_t>(at - region.begin) >= region.bytes;
}

/* By hand: the compilers' checkers watch memset, and their red zones are in the range too. */
void renew_shared(uint64_t seed)
{
    auto *bytes = static_cast<volatile unsigned char *>(region.begin);
    for (size_t i = 0; i < region.bytes; i++) {
        bytes[i] = static_cast<unsigned char>(0x81 | seed >> i % 8);
    }
    if (region.bytes > 0) {
        renew(region.begin, (region.bytes + 7) / 8 * 8);
        make_undefined(region.begin, region.bytes);
    }
}
} // namespace simt
