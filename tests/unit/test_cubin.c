/* SPDX-License-Identifier: Apache-2.0 */
/* Inspecting images: what is read from good ones, and that no damage gets through. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <elf.h>

#include "base/attr.h"
#include "build/cubin.h"
#include "support/fake_cubin.h"

static const struct ki_target sm_90 = {.major = 9, .minor = 0};

static int setup(void **state)
{
    struct ki_cubin *cubin = calloc(1, sizeof *cubin);

    fake_cubin_make("kiln_global_topk", 0, cubin);
    *state = cubin;
    return 0;
}

static int teardown(void **state)
{
    ki_cubin_finish(*state, NULL);
    free(*state);
    return 0;
}

static void inspect_fills_facts_from_image(void **state)
{
    struct ki_cubin *cubin = *state;

    cubin->registers = cubin->smem_bytes = cubin->waits = 77;
    cubin->target = (struct ki_target){0};

    assert_int_equal(ki_cubin_inspect(cubin, sm_90, KILN_E_STORE, NULL), KILN_OK);
    assert_int_equal(cubin->registers, 24);
    assert_int_equal(cubin->smem_bytes, 512);
    assert_int_equal(cubin->waits, 0);
    assert_true(ki_target_equal(cubin->target, sm_90));
}

static void inspect_reads_each_flavour(void **state)
{
    static const struct {
        const char *label;
        struct fake_cubin_options options;
        int registers, smem_bytes, waits;
    } cases[] = {
        {"abi 8", {"kiln_x", {9, 0}, 32, 0, false, false, 0}, 32, 0, 0},
        {"abi 7", {"kiln_x", {9, 0}, 32, 0, false, true, 0}, 32, 0, 0},
        {"no register record", {"kiln_x", {12, 1}, -1, 0, false, false, 0}, -1, 0, 0},
        {"reserved shared memory", {"kiln_x", {10, 0}, 8, 4, false, false, 0}, 8, 4, 0},
        {"none reserved", {"kiln_x", {8, 0}, 8, 4096, false, false, 0}, 8, 4096, 0},
        {"waits", {"kiln_x", {9, 0}, 8, 0, true, false, 0}, 8, 0, 1},
        {"a load before the wait", {"kiln_x", {9, 0}, 8, 0, true, false, 0x81}, 8, 0, 0},
        {"no such instruction", {"kiln_x", {8, 9}, 8, 0, true, false, 0}, 8, 0, 0},
        {"smem out of reason", {"kiln_x", {9, 0}, 8, 1 << 24, false, false, 0}, 8, -1, 0},
    };

    (void)state;
    for (size_t i = 0; i < KI_COUNT_OF(cases); i++) {
        struct ki_cubin cubin = {.image = fake_cubin_image(&cases[i].options)};
        struct kiln_error err = {0};

        snprintf(cubin.entry_name, sizeof cubin.entry_name, "kiln_x");
        if (ki_cubin_inspect(&cubin, cases[i].options.target, KILN_E_STORE, &err) !=
                KILN_OK ||
            cubin.registers != cases[i].registers ||
            cubin.smem_bytes != cases[i].smem_bytes || cubin.waits != cases[i].waits) {
            fail_msg("%s: %d %d %d %s", cases[i].label, cubin.registers, cubin.smem_bytes,
                     cubin.waits, err.message);
        }
        ki_cubin_finish(&cubin, NULL);
    }
}

static void inspect_refuses_other_target_field_43(void **state)
{
    struct ki_cubin *cubin = *state;
    struct kiln_error err = {0};

    assert_int_equal(
        ki_cubin_inspect(cubin, (struct ki_target){10, 0}, KILN_E_STORE, &err),
        KILN_E_STORE);
    assert_non_null(strstr(err.message, "sm_90"));
    assert_non_null(strstr(err.message, "sm_100"));
}

static void inspect_gives_the_status_it_was_handed(void **state)
{
    struct ki_cubin *cubin = *state;

    cubin->image.data[0] = 0;

    assert_int_equal(ki_cubin_inspect(cubin, sm_90, KILN_E_COMPILE, NULL),
                     KILN_E_COMPILE);
}

static void inspect_refuses_image_without_the_entry(void **state)
{
    struct ki_cubin *cubin = *state;
    struct kiln_error err = {0};

    snprintf(cubin->entry_name, sizeof cubin->entry_name, "kiln_other");

    assert_int_equal(ki_cubin_inspect(cubin, sm_90, KILN_E_STORE, &err), KILN_E_STORE);
    assert_non_null(strstr(err.message, "kiln_other"));
}

static void inspect_refuses_empty_image(void **state)
{
    struct ki_cubin cubin = {.entry_name = "kiln_x"};

    (void)state;
    assert_int_equal(ki_cubin_inspect(&cubin, sm_90, KILN_E_STORE, NULL), KILN_E_STORE);
}

/* The tables lie at the end, so each cut takes something that the header promises. */
static void inspect_refuses_every_truncation(void **state)
{
    struct ki_cubin *cubin = *state;

    for (size_t size = 0; size < cubin->image.size; size++) {
        struct ki_cubin cut = *cubin;

        /* A block of just that size, so that a sanitizer sees a read past it. */
        cut.image.data = malloc(size == 0 ? 1 : size);
        cut.image.size = size;
        memcpy(cut.image.data, cubin->image.data, size);
        if (ki_cubin_inspect(&cut, sm_90, KILN_E_STORE, NULL) == KILN_OK) {
            fail_msg("cut to %zu of %zu bytes and accepted", size, cubin->image.size);
        }
        free(cut.image.data);
    }
}

/* Not each flipped byte makes an image wrong; none may be read past its end for it. */
static void inspect_survives_every_changed_byte(void **state)
{
    static const unsigned char masks[] = {0x01, 0x80, 0xff};
    struct ki_cubin *cubin = *state;

    for (size_t i = 0; i < cubin->image.size; i++) {
        for (size_t j = 0; j < sizeof masks; j++) {
            struct ki_cubin changed = *cubin;

            cubin->image.data[i] ^= masks[j];
            (void)ki_cubin_inspect(&changed, sm_90, KILN_E_STORE, NULL);
            cubin->image.data[i] ^= masks[j];
        }
    }
    assert_int_equal(ki_cubin_inspect(cubin, sm_90, KILN_E_STORE, NULL), KILN_OK);
}

static void put_header(struct ki_cubin *cubin, Elf64_Ehdr header)
{
    memcpy(cubin->image.data, &header, sizeof header);
}

static void inspect_refuses_wrong_headers(void **state)
{
    struct ki_cubin *cubin = *state;
    Elf64_Ehdr good;

    memcpy(&good, cubin->image.data, sizeof good);
    for (int i = 0; i < 12; i++) {
        Elf64_Ehdr header = good;

        header.e_ident[EI_CLASS] = i == 0 ? ELFCLASS32 : header.e_ident[EI_CLASS];
        header.e_ident[EI_DATA] = i == 1 ? ELFDATA2MSB : header.e_ident[EI_DATA];
        header.e_machine = i == 2 ? EM_X86_64 : header.e_machine;
        header.e_type = i == 3 ? ET_REL : header.e_type;
        header.e_shoff = i == 4 ? UINT64_MAX - 8 : header.e_shoff;
        header.e_shnum = i == 5 ? 0xffff : header.e_shnum;
        header.e_shentsize = i == 6 ? 1 : header.e_shentsize;
        header.e_shstrndx = i == 7 ? 0xffff : header.e_shstrndx;
        header.e_phoff = i == 8 ? UINT64_MAX - 8 : header.e_phoff;
        header.e_phnum = i == 9 ? 0xffff : header.e_phnum;
        header.e_phentsize = i == 10 ? 0 : header.e_phentsize;
        header.e_shnum = i == 11 ? 0 : header.e_shnum;
        put_header(cubin, header);
        if (ki_cubin_inspect(cubin, sm_90, KILN_E_STORE, NULL) == KILN_OK) {
            fail_msg("wrong header %d was accepted", i);
        }
    }
}

static void change_section(struct ki_cubin *cubin, size_t i, const Elf64_Shdr *section)
{
    Elf64_Ehdr header;

    memcpy(&header, cubin->image.data, sizeof header);
    memcpy(cubin->image.data + header.e_shoff + i * sizeof *section, section,
           sizeof *section);
}

static Elf64_Shdr get_section(const struct ki_cubin *cubin, size_t i)
{
    Elf64_Ehdr header;
    Elf64_Shdr section;

    memcpy(&header, cubin->image.data, sizeof header);
    memcpy(&section, cubin->image.data + header.e_shoff + i * sizeof section,
           sizeof section);
    return section;
}

static void inspect_refuses_wrong_sections(void **state)
{
    static const struct {
        size_t section;
        uint64_t offset, size;
        const char *label;
    } cases[] = {
        {FAKE_CUBIN_TEXT, UINT64_MAX, 1, "code past the end"},
        {FAKE_CUBIN_TEXT, 16, UINT64_MAX, "code of a size that wraps"},
        {FAKE_CUBIN_TEXT, 64, 8, "code shorter than its symbol"},
        {FAKE_CUBIN_NAMES, 64, 0, "no names"},
        {FAKE_CUBIN_NAMES, 0, 4, "names without a last NUL"},
        {FAKE_CUBIN_STRINGS, 0, 4, "strings without a last NUL"},
        {FAKE_CUBIN_STRINGS, UINT64_MAX - 1, 4, "strings past the end"},
        {FAKE_CUBIN_SYMBOLS, 64, 0, "no symbols"},
        {FAKE_CUBIN_SYMBOLS, UINT64_MAX - 7, 8, "symbols past the end"},
    };
    struct ki_cubin *cubin = *state;

    for (size_t i = 0; i < KI_COUNT_OF(cases); i++) {
        Elf64_Shdr good = get_section(cubin, cases[i].section);
        Elf64_Shdr wrong = good;

        wrong.sh_offset = cases[i].offset;
        wrong.sh_size = cases[i].size;
        change_section(cubin, cases[i].section, &wrong);
        if (ki_cubin_inspect(cubin, sm_90, KILN_E_STORE, NULL) == KILN_OK) {
            fail_msg("%s was accepted", cases[i].label);
        }
        change_section(cubin, cases[i].section, &good);
    }
}

static void inspect_refuses_symbols_that_link_nowhere(void **state)
{
    struct ki_cubin *cubin = *state;
    Elf64_Shdr symbols = get_section(cubin, FAKE_CUBIN_SYMBOLS);

    symbols.sh_link = 0xfffffff0U;
    change_section(cubin, FAKE_CUBIN_SYMBOLS, &symbols);

    assert_int_equal(ki_cubin_inspect(cubin, sm_90, KILN_E_STORE, NULL), KILN_E_STORE);
}

/* A record that says it is longer than its section is no reason to refuse, nor to read it. */
static void inspect_ignores_info_that_runs_over(void **state)
{
    struct ki_cubin *cubin = *state;
    Elf64_Shdr info = get_section(cubin, FAKE_CUBIN_INFO);

    memset(cubin->image.data + info.sh_offset + 2, 0xff, 2);

    assert_int_equal(ki_cubin_inspect(cubin, sm_90, KILN_E_STORE, NULL), KILN_OK);
    assert_int_equal(cubin->registers, -1);
}

static void finish_accepts_all_zero(void **state)
{
    struct ki_cubin cubin = {0};

    (void)state;
    ki_cubin_finish(&cubin, NULL);
    assert_null(cubin.image.data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(inspect_fills_facts_from_image, setup, teardown),
        cmocka_unit_test(inspect_reads_each_flavour),
        cmocka_unit_test_setup_teardown(inspect_refuses_other_target_field_43, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(inspect_gives_the_status_it_was_handed, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(inspect_refuses_image_without_the_entry, setup,
                                        teardown),
        cmocka_unit_test(inspect_refuses_empty_image),
        cmocka_unit_test_setup_teardown(inspect_refuses_every_truncation, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(inspect_survives_every_changed_byte, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(inspect_refuses_wrong_headers, setup, teardown),
        cmocka_unit_test_setup_teardown(inspect_refuses_wrong_sections, setup, teardown),
        cmocka_unit_test_setup_teardown(inspect_refuses_symbols_that_link_nowhere, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(inspect_ignores_info_that_runs_over, setup,
                                        teardown),
        cmocka_unit_test(finish_accepts_all_zero),
    };

    return cmocka_run_group_tests_name("cubin", tests, NULL, NULL);
}
