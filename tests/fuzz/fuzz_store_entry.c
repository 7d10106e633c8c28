/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cache entries. The digest of what comes is made right first, or nothing would ever get past
 * it; the first byte says whether, and whether the sizes in the head are too.
 */
#include <string.h>

#include "base/hash.h"
#include "build/store_entry.h"
#include "fuzz.h"

enum { SIGN = 1, AT_IMAGE_BYTES = 20, HEAD_BYTES = 24 };

/* A head whose sizes add up: the image takes what the other parts leave. */
static void fit_image(unsigned char *data, size_t size)
{
    uint32_t others[2], image;

    memcpy(others, data + 12, sizeof others); /* little-endian here, as in the format */
    uint64_t used = (uint64_t)others[0] + others[1] + HEAD_BYTES + KI_DIGEST_BYTES;
    if (used < size) {
        image = (uint32_t)(size - used);
        memcpy(data + AT_IMAGE_BYTES, &image, sizeof image);
    }
}

static void check_inside(const void *part, size_t part_size, struct ki_blob whole)
{
    const unsigned char *at = part;

    FUZZ_CHECK(at >= whole.data && part_size <= whole.size);
    FUZZ_CHECK((size_t)(at - whole.data) <= whole.size - part_size);
}

static void check_decoded(const struct ki_store_entry *entry, struct ki_blob bytes)
{
    struct ki_blob again = {0};
    const char *name = entry->cubin.entry_name;

    check_inside(entry->key_text, entry->key_size + 1, bytes);
    check_inside(entry->cubin.image.data, entry->cubin.image.size, bytes);
    FUZZ_CHECK(strlen(entry->key_text) == entry->key_size);
    FUZZ_CHECK(memchr(name, '\0', sizeof entry->cubin.entry_name) != NULL);
    FUZZ_CHECK(ki_store_entry_encode(entry->key_text, entry->key_size, &entry->cubin,
                                     NULL, &again, NULL) == KILN_OK);
    FUZZ_CHECK(again.size == bytes.size);
    FUZZ_CHECK(memcmp(again.data, bytes.data, again.size) == 0);
    free(again.data);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ki_store_entry entry;
    struct kiln_error err = {0};

    if (size == 0) {
        return 0;
    }
    struct ki_blob bytes = {.data = malloc(size), .size = size - 1};
    FUZZ_CHECK(bytes.data != NULL);
    memcpy(bytes.data, data + 1, size - 1);
    if ((data[0] & SIGN) != 0 && bytes.size >= HEAD_BYTES + KI_DIGEST_BYTES) {
        fit_image(bytes.data, bytes.size);
        ki_hash(bytes.data, bytes.size - KI_DIGEST_BYTES,
                bytes.data + bytes.size - KI_DIGEST_BYTES);
    }
    if (ki_store_entry_decode(bytes, &entry, &err) == KILN_OK) {
        check_decoded(&entry, bytes);
    } else {
        FUZZ_CHECK(err.status == KILN_E_STORE && err.message[0] != '\0');
    }
    free(bytes.data);
    return 0;
}
