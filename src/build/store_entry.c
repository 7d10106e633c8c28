/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Encodes and decodes one cache entry. All numbers are little-endian at fixed offsets, so that
 * every machine reads and writes the same bytes. Knows nothing of files.
 */
#include <stdint.h>
#include <string.h>

#include "base/attr.h"
#include "base/hash.h"
#include "base/status.h"
#include "build/store_entry.h"

enum {
    MAGIC_BYTES = 8,
    AT_FORMAT = MAGIC_BYTES,
    AT_KEY_BYTES = 12,
    AT_FACTS_BYTES = 16,
    AT_IMAGE_BYTES = 20,
    HEAD_BYTES = 24,
    NAME_BYTES = 64,
    N_FACTS = 8,
    FACTS_BYTES = NAME_BYTES + 4 * N_FACTS,
    FIXED_BYTES = HEAD_BYTES + FACTS_BYTES + KI_DIGEST_BYTES,
};

/* The end of line shows when a transfer changed line ends. */
static const unsigned char magic[MAGIC_BYTES] = {'K', 'I', 'L', 'N', 'C', 'U', 'B', '\n'};

static void put_u32(unsigned char *at, uint32_t value)
{
    for (int i = 0; i < 4; i++) {
        at[i] = (unsigned char)(value >> (8 * i));
    }
}

static uint32_t get_u32(const unsigned char *at)
{
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 |
           (uint32_t)at[3] << 24;
}

static int32_t get_i32(const unsigned char *at)
{
    uint32_t bits = get_u32(at);
    int32_t value;

    memcpy(&value, &bits, sizeof value);
    return value;
}

static void put_facts(unsigned char *at, const struct ki_cubin *cubin)
{
    const int32_t facts[N_FACTS] = {
        cubin->nvrtc_major, cubin->nvrtc_minor, cubin->target.major, cubin->target.minor,
        cubin->threads,     cubin->registers,   cubin->smem_bytes,   cubin->waits,
    };

    memset(at, 0, NAME_BYTES);
    memcpy(at, cubin->entry_name, strlen(cubin->entry_name));
    for (size_t i = 0; i < N_FACTS; i++) {
        put_u32(at + NAME_BYTES + 4 * i, (uint32_t)facts[i]);
    }
}

static void get_facts(const unsigned char *at, struct ki_cubin *out)
{
    const unsigned char *numbers = at + NAME_BYTES;

    memcpy(out->entry_name, at, NAME_BYTES);
    out->nvrtc_major = get_i32(numbers);
    out->nvrtc_minor = get_i32(numbers + 4);
    out->target.major = get_i32(numbers + 8);
    out->target.minor = get_i32(numbers + 12);
    out->threads = get_i32(numbers + 16);
    out->registers = get_i32(numbers + 20);
    out->smem_bytes = get_i32(numbers + 24);
    out->waits = get_i32(numbers + 28);
}

enum kiln_status ki_store_entry_encode(const char *key_text, size_t key_size,
                                       const struct ki_cubin *cubin,
                                       const struct ki_mem *mem, struct ki_blob *out,
                                       struct kiln_error *err)
{
    const struct ki_blob *image = &cubin->image;
    unsigned char *at;
    size_t size;

    if (key_size == 0 || key_size >= KI_KEY_TEXT || image->size == 0 ||
        image->size > KI_STORE_ENTRY_MAX - FIXED_BYTES - KI_KEY_TEXT) {
        return ki_fail(
            err, KILN_E_STORE,
            "an entry of a %zu-byte key and a %zu-byte cubin: expected 1 to %d "
            "and 1 to %d",
            key_size, image->size, KI_KEY_TEXT - 1,
            KI_STORE_ENTRY_MAX - FIXED_BYTES - KI_KEY_TEXT);
    }
    size = FIXED_BYTES + key_size + 1 + image->size;
    at = ki_mem_alloc(mem, size);
    if (at == NULL) {
        return ki_fail_memory(err, "a cache entry");
    }
    *out = (struct ki_blob){.data = at, .size = size};
    memcpy(at, magic, MAGIC_BYTES);
    put_u32(at + AT_FORMAT, KI_STORE_ENTRY_FORMAT);
    put_u32(at + AT_KEY_BYTES, (uint32_t)key_size + 1);
    put_u32(at + AT_FACTS_BYTES, FACTS_BYTES);
    put_u32(at + AT_IMAGE_BYTES, (uint32_t)image->size);
    at += HEAD_BYTES;
    memcpy(at, key_text, key_size);
    at += key_size + 1;
    put_facts(at, cubin);
    at += FACTS_BYTES;
    memcpy(at, image->data, image->size);
    at += image->size;
    ki_hash(out->data, (size_t)(at - out->data), at);
    return KILN_OK;
}

/* ---- decoding --------------------------------------------------------------------- */

static enum kiln_status check_envelope(struct ki_blob bytes, struct kiln_error *err)
{
    unsigned char digest[KI_DIGEST_BYTES];
    uint64_t wanted;

    if (bytes.size < FIXED_BYTES) {
        return ki_fail(err, KILN_E_STORE, "it has %zu bytes: expected at least %d",
                       bytes.size, FIXED_BYTES);
    }
    if (memcmp(bytes.data, magic, MAGIC_BYTES) != 0) {
        return ki_fail(err, KILN_E_STORE, "it does not begin like an entry of kiln");
    }
    if (get_u32(bytes.data + AT_FORMAT) != KI_STORE_ENTRY_FORMAT) {
        return ki_fail(err, KILN_E_STORE, "it has format %u: expected %d",
                       (unsigned)get_u32(bytes.data + AT_FORMAT), KI_STORE_ENTRY_FORMAT);
    }
    wanted = (uint64_t)get_u32(bytes.data + AT_KEY_BYTES) +
             get_u32(bytes.data + AT_FACTS_BYTES) + get_u32(bytes.data + AT_IMAGE_BYTES) +
             HEAD_BYTES + KI_DIGEST_BYTES;
    if (wanted != bytes.size) {
        return ki_fail(err, KILN_E_STORE, "it has %zu bytes: expected %llu of its sizes",
                       bytes.size, (unsigned long long)wanted);
    }
    ki_hash(bytes.data, bytes.size - KI_DIGEST_BYTES, digest);
    if (memcmp(digest, bytes.data + bytes.size - KI_DIGEST_BYTES, KI_DIGEST_BYTES) != 0) {
        return ki_fail(err, KILN_E_STORE, "its digest is not that of its bytes");
    }
    return KILN_OK;
}

/* Cuts the bytes, whose sizes are known to add up, into their parts. */
static enum kiln_status cut_parts(struct ki_blob bytes, struct ki_store_entry *entry,
                                  struct kiln_error *err)
{
    uint32_t key_bytes = get_u32(bytes.data + AT_KEY_BYTES);
    uint32_t facts_bytes = get_u32(bytes.data + AT_FACTS_BYTES);
    uint32_t image_bytes = get_u32(bytes.data + AT_IMAGE_BYTES);
    unsigned char *at = bytes.data + HEAD_BYTES;

    if (key_bytes < 2 || key_bytes > KI_KEY_TEXT || facts_bytes != FACTS_BYTES ||
        image_bytes == 0) {
        return ki_fail(
            err, KILN_E_STORE,
            "its parts have %u, %u and %u bytes: expected 2 to %d, %d and some",
            (unsigned)key_bytes, (unsigned)facts_bytes, (unsigned)image_bytes,
            KI_KEY_TEXT, FACTS_BYTES);
    }
    if (memchr(at, '\0', key_bytes) != at + key_bytes - 1) {
        return ki_fail(err, KILN_E_STORE, "its key is not one string");
    }
    entry->key_text = (const char *)at;
    entry->key_size = key_bytes - 1;
    at += key_bytes;
    get_facts(at, &entry->cubin);
    at += FACTS_BYTES;
    entry->cubin.image = (struct ki_blob){.data = at, .size = image_bytes};
    return KILN_OK;
}

static bool is_name(const char name[NAME_BYTES])
{
    static const char allowed[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
    size_t size;

    if (memchr(name, '\0', NAME_BYTES) == NULL) {
        return false;
    }
    size = strlen(name);
    for (size_t i = size; i < NAME_BYTES; i++) {
        if (name[i] != '\0') {
            return false;
        }
    }
    return size > 0 && strspn(name, allowed) == size;
}

static enum kiln_status check_facts(const struct ki_cubin *facts, struct kiln_error *err)
{
    struct ki_cubin found = *facts;

    if (!is_name(facts->entry_name)) {
        return ki_fail(err, KILN_E_STORE, "its kernel's name is not one");
    }
    if (facts->threads < 1 || facts->threads > 1024) {
        return ki_fail(err, KILN_E_STORE, "it has %d threads a block: expected 1 to 1024",
                       facts->threads);
    }
    KI_TRY(ki_cubin_inspect(&found, facts->target, KILN_E_STORE, err));
    if (found.registers != facts->registers || found.smem_bytes != facts->smem_bytes ||
        found.waits != facts->waits) {
        return ki_fail(err, KILN_E_STORE,
                       "its registers, shared memory and waits are %d, %d, %d: its cubin "
                       "says %d, %d, %d",
                       facts->registers, facts->smem_bytes, facts->waits, found.registers,
                       found.smem_bytes, found.waits);
    }
    return KILN_OK;
}

enum kiln_status ki_store_entry_decode(struct ki_blob bytes, struct ki_store_entry *out,
                                       struct kiln_error *err)
{
    struct ki_store_entry entry = {0};

    KI_TRY(check_envelope(bytes, err));
    KI_TRY(cut_parts(bytes, &entry, err));
    KI_TRY(check_facts(&entry.cubin, err));
    *out = entry;
    return KILN_OK;
}
