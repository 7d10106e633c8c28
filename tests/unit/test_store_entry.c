/* SPDX-License-Identifier: Apache-2.0 */
/* The entry format: what was put in comes out, and nothing else does. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/attr.h"
#include "base/hash.h"
#include "build/store_entry.h"
#include "support/failing_mem.h"
#include "support/fake_cubin.h"

static const char key_text[] = "format=1\nop=global_topk\ntarget=sm_90\n";

struct fixture {
    struct ki_cubin cubin;
    struct ki_blob bytes;
};

/* Places in an entry, as docs/cache-format.md has them. */
enum { AT_FORMAT = 8, AT_KEY_BYTES = 12, AT_IMAGE_BYTES = 20, AT_KEY = 24 };
enum { AT_FACTS = AT_KEY + sizeof key_text, AT_THREADS = AT_FACTS + 64 + 16 };

static int setup(void **state)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);

    fake_cubin_make("kiln_global_topk", 0x5a, &fixture->cubin);
    *state = fixture;
    return ki_store_entry_encode(key_text, strlen(key_text), &fixture->cubin, NULL,
                                 &fixture->bytes, NULL) == KILN_OK
               ? 0
               : -1;
}

static int teardown(void **state)
{
    struct fixture *fixture = *state;

    ki_cubin_finish(&fixture->cubin, NULL);
    ki_blob_finish(&fixture->bytes, NULL);
    free(fixture);
    return 0;
}

/* A forger knows the digest too. */
static void sign_again(struct ki_blob bytes)
{
    ki_hash(bytes.data, bytes.size - KI_DIGEST_BYTES,
            bytes.data + bytes.size - KI_DIGEST_BYTES);
}

static void decode_gives_what_was_encoded(void **state)
{
    struct fixture *fixture = *state;
    const struct ki_cubin *cubin = &fixture->cubin;
    struct ki_store_entry entry;

    assert_int_equal(ki_store_entry_decode(fixture->bytes, &entry, NULL), KILN_OK);

    assert_string_equal(entry.key_text, key_text);
    assert_int_equal(entry.key_size, strlen(key_text));
    assert_string_equal(entry.cubin.entry_name, cubin->entry_name);
    assert_int_equal(entry.cubin.nvrtc_major, 13);
    assert_int_equal(entry.cubin.threads, 128);
    assert_int_equal(entry.cubin.registers, cubin->registers);
    assert_int_equal(entry.cubin.smem_bytes, cubin->smem_bytes);
    assert_true(ki_target_equal(entry.cubin.target, cubin->target));
    assert_int_equal(entry.cubin.image.size, cubin->image.size);
    assert_memory_equal(entry.cubin.image.data, cubin->image.data, cubin->image.size);
}

/* The bytes of a format must not change unless its number does. */
static void encode_writes_the_documented_places(void **state)
{
    static const unsigned char head[] = {'K', 'I', 'L', 'N', 'C', 'U', 'B', '\n', 1, 0,
                                         0,   0,   38,  0,   0,   0,   96,  0,    0, 0};
    struct fixture *fixture = *state;
    const unsigned char *bytes = fixture->bytes.data;

    assert_memory_equal(bytes, head, sizeof head);
    assert_memory_equal(bytes + AT_KEY, key_text, sizeof key_text);
    assert_string_equal((const char *)bytes + AT_FACTS, "kiln_global_topk");
    assert_int_equal(bytes[AT_THREADS], 128);
}

static void decode_refuses_every_changed_byte_field_51(void **state)
{
    struct fixture *fixture = *state;
    struct ki_store_entry entry;

    for (size_t i = 0; i < fixture->bytes.size; i++) {
        fixture->bytes.data[i] ^= 0x20;
        if (ki_store_entry_decode(fixture->bytes, &entry, NULL) == KILN_OK) {
            fail_msg("byte %zu was changed and accepted", i);
        }
        fixture->bytes.data[i] ^= 0x20;
    }
}

static void decode_refuses_every_truncation_field_51(void **state)
{
    struct fixture *fixture = *state;
    struct ki_store_entry entry;

    for (size_t size = 0; size < fixture->bytes.size; size++) {
        struct ki_blob cut = {.data = malloc(size == 0 ? 1 : size), .size = size};

        memcpy(cut.data, fixture->bytes.data, size);
        if (ki_store_entry_decode(cut, &entry, NULL) == KILN_OK) {
            fail_msg("cut to %zu bytes and accepted", size);
        }
        free(cut.data);
    }
}

static void decode_refuses_bytes_after_the_end(void **state)
{
    struct fixture *fixture = *state;
    struct ki_blob longer = {.size = fixture->bytes.size + 1};
    struct ki_store_entry entry;

    longer.data = calloc(1, longer.size);
    memcpy(longer.data, fixture->bytes.data, fixture->bytes.size);

    assert_int_equal(ki_store_entry_decode(longer, &entry, NULL), KILN_E_STORE);
    free(longer.data);
}

/* Correctly signed, and still wrong: each is found by what it says, not by the digest. */
static void decode_refuses_signed_lies(void **state)
{
    static const struct {
        const char *label;
        size_t at;
        unsigned char bytes[4];
        const char *message;
    } cases[] = {
        {"newer format", AT_FORMAT, {2, 0, 0, 0}, "format 2"},
        {"sizes that wrap", AT_IMAGE_BYTES, {0xff, 0xff, 0xff, 0xff}, "expected"},
        {"key over the image", AT_KEY_BYTES, {0xff, 0xff, 0, 0}, "expected"},
        {"NUL in the key", AT_KEY + 4, {0, 0, 0, 0}, "one string"},
        {"no kernel name", AT_FACTS, {0, 0, 0, 0}, "name"},
        {"kernel name of a path", AT_FACTS, {'.', '.', '/', 'x'}, "name"},
        {"no threads", AT_THREADS, {0, 0, 0, 0}, "threads"},
        {"too many threads", AT_THREADS, {1, 4, 0, 0}, "threads"},
        {"other target", AT_FACTS + 64 + 8, {10, 0, 0, 0}, "sm_100"},
        {"negative target", AT_FACTS + 64 + 8, {0xff, 0xff, 0xff, 0xff}, "sm_"},
        {"other registers", AT_FACTS + 64 + 20, {99, 0, 0, 0}, "registers"},
        {"waits", AT_FACTS + 64 + 28, {1, 0, 0, 0}, "waits"},
        {"no ELF", AT_FACTS + 96, {0, 0, 0, 0}, "ELF"},
    };
    struct fixture *fixture = *state;
    unsigned char *data = fixture->bytes.data;

    for (size_t i = 0; i < KI_COUNT_OF(cases); i++) {
        struct ki_store_entry entry;
        struct kiln_error err = {0};
        unsigned char before[4];

        memcpy(before, data + cases[i].at, 4);
        memcpy(data + cases[i].at, cases[i].bytes, 4);
        sign_again(fixture->bytes);
        if (ki_store_entry_decode(fixture->bytes, &entry, &err) != KILN_E_STORE ||
            strstr(err.message, cases[i].message) == NULL) {
            fail_msg("%s: \"%s\"", cases[i].label, err.message);
        }
        memcpy(data + cases[i].at, before, 4);
    }
}

static void encode_refuses_empty_cubin_field_54(void **state)
{
    struct ki_cubin cubin = {.entry_name = "kiln_x"};
    struct ki_blob out = {0};

    (void)state;
    assert_int_equal(
        ki_store_entry_encode(key_text, strlen(key_text), &cubin, NULL, &out, NULL),
        KILN_E_STORE);
    assert_null(out.data);
}

static void encode_reports_no_memory(void **state)
{
    struct fixture *fixture = *state;
    struct failing_mem failing;
    struct ki_blob out = {0};

    failing_mem_init(&failing, 1);

    assert_int_equal(ki_store_entry_encode(key_text, strlen(key_text), &fixture->cubin,
                                           &failing.mem, &out, NULL),
                     KILN_E_MEMORY);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(decode_gives_what_was_encoded, setup, teardown),
        cmocka_unit_test_setup_teardown(encode_writes_the_documented_places, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(decode_refuses_every_changed_byte_field_51, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(decode_refuses_every_truncation_field_51, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(decode_refuses_bytes_after_the_end, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(decode_refuses_signed_lies, setup, teardown),
        cmocka_unit_test(encode_refuses_empty_cubin_field_54),
        cmocka_unit_test_setup_teardown(encode_reports_no_memory, setup, teardown),
    };

    return cmocka_run_group_tests_name("store_entry", tests, NULL, NULL);
}
