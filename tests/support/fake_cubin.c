/* SPDX-License-Identifier: Apache-2.0 */
/* The smallest image that ki_cubin_inspect accepts. */
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/fake_cubin.h"

enum {
    MACHINE = 190,
    NAME = 96,
    CODE_BYTES = 64,
    INFO_BYTES = 12,
    RESERVED_SMEM = 1024,
    N_SYMBOLS = 2,
    STRINGS_BYTES = 256,
};

struct layout {
    Elf64_Ehdr header;
    Elf64_Phdr segment;
    char names[STRINGS_BYTES];
    char strings[STRINGS_BYTES];
    Elf64_Sym symbols[N_SYMBOLS];
    unsigned char info[INFO_BYTES];
    unsigned char pad[4];
    unsigned char code[CODE_BYTES];
    Elf64_Shdr sections[FAKE_CUBIN_N_SECTIONS];
};

static Elf64_Word add_string(char table[STRINGS_BYTES], size_t *used, const char *prefix,
                             const char *name)
{
    Elf64_Word at = (Elf64_Word)*used;

    *used += (size_t)snprintf(table + at, STRINGS_BYTES - at, "%s%s", prefix, name) + 1;
    return at;
}

static void fill_header(struct layout *image, const struct fake_cubin_options *options)
{
    uint32_t sm = (uint32_t)(options->target.major * 10 + options->target.minor);
    Elf64_Ehdr *header = &image->header;

    memcpy(header->e_ident, ELFMAG, SELFMAG);
    header->e_ident[EI_CLASS] = ELFCLASS64;
    header->e_ident[EI_DATA] = ELFDATA2LSB;
    header->e_ident[EI_VERSION] = EV_CURRENT;
    header->e_ident[EI_OSABI] = options->narrow_flags ? 0x33 : 0x41;
    header->e_ident[EI_ABIVERSION] = options->narrow_flags ? 7 : 8;
    header->e_type = ET_EXEC;
    header->e_machine = MACHINE;
    header->e_version = 1;
    header->e_flags = options->narrow_flags ? sm | sm << 16 : 0x6000004U | sm << 8;
    header->e_phoff = offsetof(struct layout, segment);
    header->e_phentsize = sizeof(Elf64_Phdr);
    header->e_phnum = 1;
    header->e_shoff = offsetof(struct layout, sections);
    header->e_shentsize = sizeof(Elf64_Shdr);
    header->e_shnum = FAKE_CUBIN_N_SECTIONS;
    header->e_shstrndx = FAKE_CUBIN_NAMES;
    image->segment = (Elf64_Phdr){
        .p_type = PT_LOAD,
        .p_offset = offsetof(struct layout, code),
        .p_filesz = CODE_BYTES,
        .p_memsz = CODE_BYTES,
    };
}

static void fill_sections(struct layout *image, const struct fake_cubin_options *options)
{
    size_t used = 1;
    int reserved = options->target.major >= 9 ? RESERVED_SMEM : 0;
    const struct {
        const char *prefix, *name;
        Elf64_Word type;
        size_t offset, size;
    } rows[FAKE_CUBIN_N_SECTIONS] = {
        [FAKE_CUBIN_NAMES] = {".shstrtab", "", SHT_STRTAB, offsetof(struct layout, names),
                              STRINGS_BYTES},
        [FAKE_CUBIN_STRINGS] = {".strtab", "", SHT_STRTAB,
                                offsetof(struct layout, strings), STRINGS_BYTES},
        [FAKE_CUBIN_SYMBOLS] = {".symtab", "", SHT_SYMTAB,
                                offsetof(struct layout, symbols), sizeof image->symbols},
        [FAKE_CUBIN_INFO] = {".nv.info", "", 0x70000000, offsetof(struct layout, info),
                             options->registers >= 0 ? INFO_BYTES : 0},
        [FAKE_CUBIN_TEXT] = {".text.", options->entry_name, SHT_PROGBITS,
                             offsetof(struct layout, code), CODE_BYTES},
        [FAKE_CUBIN_SHARED] = {options->smem_bytes > 0 ? ".nv.shared." : ".none.",
                               options->entry_name, SHT_NOBITS,
                               offsetof(struct layout, code),
                               (size_t)(options->smem_bytes + reserved)},
    };

    for (size_t i = 1; i < FAKE_CUBIN_N_SECTIONS; i++) {
        image->sections[i] = (Elf64_Shdr){
            .sh_name = add_string(image->names, &used, rows[i].prefix, rows[i].name),
            .sh_type = rows[i].type,
            .sh_offset = rows[i].offset,
            .sh_size = rows[i].size,
        };
    }
    image->sections[FAKE_CUBIN_SYMBOLS].sh_link = FAKE_CUBIN_STRINGS;
    image->sections[FAKE_CUBIN_SYMBOLS].sh_entsize = sizeof(Elf64_Sym);
}

static void fill_rest(struct layout *image, const struct fake_cubin_options *options)
{
    static const unsigned char wait[8] = {0x2e, 0x78};
    const uint32_t registers[2] = {1, (uint32_t)options->registers};
    size_t used = 1;

    image->symbols[1] = (Elf64_Sym){
        .st_name = add_string(image->strings, &used, options->entry_name, ""),
        .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
        .st_shndx = FAKE_CUBIN_TEXT,
        .st_size = CODE_BYTES,
    };
    image->info[0] = 4;
    image->info[1] = 0x2f;
    image->info[2] = sizeof registers;
    memcpy(image->info + 4, registers, sizeof registers);
    memset(image->code, options->filler, CODE_BYTES);
    if (options->waits) {
        memcpy(image->code + 16, wait, sizeof wait);
    }
}

struct ki_blob fake_cubin_image(const struct fake_cubin_options *options)
{
    struct layout *image = calloc(1, sizeof *image);

    fill_header(image, options);
    fill_sections(image, options);
    fill_rest(image, options);
    return (struct ki_blob){.data = (unsigned char *)image, .size = sizeof *image};
}

void fake_cubin_make(const char *entry_name, unsigned char filler, struct ki_cubin *out)
{
    const struct fake_cubin_options options = {
        .entry_name = entry_name,
        .target = {.major = 9, .minor = 0},
        .registers = 24,
        .smem_bytes = 512,
        .filler = filler,
    };

    *out = (struct ki_cubin){
        .image = fake_cubin_image(&options),
        .target = options.target,
        .nvrtc_major = 13,
        .threads = 128,
        .registers = options.registers,
        .smem_bytes = options.smem_bytes,
    };
    snprintf(out->entry_name, sizeof out->entry_name, "%s", entry_name);
}
