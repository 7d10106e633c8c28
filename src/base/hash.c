/* SPDX-License-Identifier: Apache-2.0 */
/* BLAKE2b-256 by libsodium. The one-shot form needs no sodium_init and no random numbers.
 */
#include <sodium.h>

#include "base/hash.h"

void ki_hash(const void *data, size_t size, unsigned char out[KI_DIGEST_BYTES])
{
    crypto_generichash(out, KI_DIGEST_BYTES, data, size, NULL, 0);
}

void ki_hash_hex(const unsigned char digest[KI_DIGEST_BYTES], char out[KI_DIGEST_HEX])
{
    sodium_bin2hex(out, KI_DIGEST_HEX, digest, KI_DIGEST_BYTES);
}
