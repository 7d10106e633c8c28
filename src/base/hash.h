/* SPDX-License-Identifier: Apache-2.0 */
/* 256-bit digests (BLAKE2b from libsodium) and their hex form. */
#ifndef KI_BASE_HASH_H
#define KI_BASE_HASH_H

#include <stddef.h>

enum { KI_DIGEST_BYTES = 32, KI_DIGEST_HEX = 2 * KI_DIGEST_BYTES + 1 /* with NUL */ };

void ki_hash(const void *data, size_t size, unsigned char out[KI_DIGEST_BYTES]);
void ki_hash_hex(const unsigned char digest[KI_DIGEST_BYTES], char out[KI_DIGEST_HEX]);

#endif
