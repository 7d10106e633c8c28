/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads an NVIDIA ELF image as the untrusted bytes that it is: each table is measured
 * against the image before anything in it is looked at. Knows neither where the image came
 * from nor the driver.
 */
#include <elf.h>
#include <stdio.h>
#include <string.h>

#include "base/attr.h"
#include "base/status.h"
#include "build/cubin.h"

enum {
    MACHINE_CUDA = 190,
    /* The first version of the ABI that keeps the SM number in bits 8 to 15 of e_flags; before
     * it was in bits 0 to 7. */
    ABI_WIDE_FLAGS = 8,
    INFO_SECTION = 0x70000000, /* sh_type of .nv.info */
    INFO_SIZED = 4,            /* record format: a 16-bit size, then that many bytes */
    INFO_REGISTERS = 0x2f,     /* record: symbol index, registers per thread */
    INFO_HEAD_BYTES = 4,
    INSTRUCTION_BYTES = 16,
    /* From 9.0 on, .nv.shared holds what the system keeps for itself at the start of a block's
     * shared memory, if the kernel has any. */
    RESERVED_SMEM_BYTES = 1024,
    SMEM_BYTES_MAX = 1 << 20,
    SECTION_NAME = 96,
};

/* The low half of griddepcontrol.wait, unpredicated: 9.0 to 12.1 encode it alike. A predicated
 * one is not sure to wait and is not taken for one. */
static const uint64_t wait_instruction = 0x782e;

struct image {
    const unsigned char *data;
    size_t size;
    const char *entry_name;
    enum kiln_status status; /* of a failure */
    Elf64_Ehdr header;
    Elf64_Shdr names; /* the section names */
};

struct symbol {
    Elf64_Sym value;
    uint32_t index;
};

static enum kiln_status fault(const struct image *image, const char *what,
                              struct kiln_error *err)
{
    return ki_fail(err, image->status, "cubin of %s, %zu bytes: %s", image->entry_name,
                   image->size, what);
}

static bool inside(const struct image *image, uint64_t offset, uint64_t size)
{
    return offset <= image->size && size <= image->size - offset;
}

static Elf64_Shdr section_at(const struct image *image, size_t i)
{
    Elf64_Shdr section;

    memcpy(&section, image->data + image->header.e_shoff + i * sizeof section,
           sizeof section);
    return section;
}

/* A string of a table that was found to end in a NUL; NULL when it is not in there. */
static const char *string_at(const struct image *image, const Elf64_Shdr *table,
                             uint32_t at)
{
    return at < table->sh_size ? (const char *)image->data + table->sh_offset + at : NULL;
}

static bool is_strings(const struct image *image, size_t i)
{
    Elf64_Shdr table;

    if (i >= image->header.e_shnum) {
        return false;
    }
    table = section_at(image, i);
    return table.sh_type == SHT_STRTAB && table.sh_size > 0 &&
           image->data[table.sh_offset + table.sh_size - 1] == '\0';
}

static bool find_section(const struct image *image, const char *prefix, const char *name,
                         Elf64_Shdr *out)
{
    char wanted[SECTION_NAME];

    snprintf(wanted, sizeof wanted, "%s%s", prefix, name);
    for (size_t i = 0; i < image->header.e_shnum; i++) {
        Elf64_Shdr section = section_at(image, i);
        const char *found = string_at(image, &image->names, section.sh_name);

        if (found != NULL && strcmp(found, wanted) == 0) {
            *out = section;
            return true;
        }
    }
    return false;
}

static enum kiln_status check_header(struct image *image, struct kiln_error *err)
{
    const unsigned char *id = image->header.e_ident;

    if (image->size < sizeof image->header) {
        return fault(image, "too short for an ELF header", err);
    }
    memcpy(&image->header, image->data, sizeof image->header);
    if (memcmp(id, ELFMAG, SELFMAG) != 0) {
        return fault(image, "no ELF file", err);
    }
    if (id[EI_CLASS] != ELFCLASS64 || id[EI_DATA] != ELFDATA2LSB ||
        id[EI_VERSION] != EV_CURRENT) {
        return fault(image, "not a 64-bit little-endian ELF file", err);
    }
    if (image->header.e_machine != MACHINE_CUDA || image->header.e_type != ET_EXEC) {
        return fault(image, "not a linked program for CUDA", err);
    }
    return KILN_OK;
}

static enum kiln_status check_target(const struct image *image, struct ki_target target,
                                     struct kiln_error *err)
{
    uint32_t flags = image->header.e_flags;
    bool wide = image->header.e_ident[EI_ABIVERSION] >= ABI_WIDE_FLAGS;
    uint32_t found = (wide ? flags >> 8 : flags) & 0xffU;

    if (target.major < 0 || target.minor < 0 ||
        found != (uint32_t)target.major * 10U + (uint32_t)target.minor) {
        return ki_fail(err, image->status,
                       "cubin of %s is for sm_%u: expected one for sm_%d%d",
                       image->entry_name, found, target.major, target.minor);
    }
    return KILN_OK;
}

static enum kiln_status check_segments(const struct image *image, struct kiln_error *err)
{
    const Elf64_Ehdr *header = &image->header;

    if (header->e_phnum == 0 || header->e_phentsize != sizeof(Elf64_Phdr) ||
        !inside(image, header->e_phoff, header->e_phnum * sizeof(Elf64_Phdr))) {
        return fault(image, "its program headers do not lie inside it", err);
    }
    for (size_t i = 0; i < header->e_phnum; i++) {
        Elf64_Phdr segment;

        memcpy(&segment, image->data + header->e_phoff + i * sizeof segment,
               sizeof segment);
        if (!inside(image, segment.p_offset, segment.p_filesz)) {
            return fault(image, "one of its segments does not lie inside it", err);
        }
    }
    return KILN_OK;
}

static enum kiln_status check_sections(struct image *image, struct kiln_error *err)
{
    const Elf64_Ehdr *header = &image->header;

    if (header->e_shnum == 0 || header->e_shentsize != sizeof(Elf64_Shdr) ||
        !inside(image, header->e_shoff, header->e_shnum * sizeof(Elf64_Shdr))) {
        return fault(image, "its section headers do not lie inside it", err);
    }
    for (size_t i = 0; i < header->e_shnum; i++) {
        Elf64_Shdr section = section_at(image, i);

        if (section.sh_type != SHT_NOBITS && section.sh_type != SHT_NULL &&
            !inside(image, section.sh_offset, section.sh_size)) {
            return fault(image, "one of its sections does not lie inside it", err);
        }
    }
    if (!is_strings(image, header->e_shstrndx)) {
        return fault(image, "its sections have no names", err);
    }
    image->names = section_at(image, header->e_shstrndx);
    return KILN_OK;
}

static bool is_entry(const struct image *image, const Elf64_Sym *symbol, const char *name)
{
    Elf64_Shdr code;

    if (name == NULL || strcmp(name, image->entry_name) != 0 ||
        ELF64_ST_TYPE(symbol->st_info) != STT_FUNC ||
        ELF64_ST_BIND(symbol->st_info) != STB_GLOBAL ||
        symbol->st_shndx >= image->header.e_shnum) {
        return false;
    }
    code = section_at(image, symbol->st_shndx);
    return code.sh_type == SHT_PROGBITS && symbol->st_value <= code.sh_size &&
           symbol->st_size <= code.sh_size - symbol->st_value && symbol->st_size > 0;
}

static bool find_symbol(const struct image *image, const Elf64_Shdr *table,
                        struct symbol *out)
{
    Elf64_Shdr strings = section_at(image, table->sh_link);

    for (uint32_t i = 0; i < table->sh_size / sizeof out->value; i++) {
        memcpy(&out->value, image->data + table->sh_offset + i * sizeof out->value,
               sizeof out->value);
        if (is_entry(image, &out->value,
                     string_at(image, &strings, out->value.st_name))) {
            out->index = i;
            return true;
        }
    }
    return false;
}

static enum kiln_status find_entry(const struct image *image, struct symbol *out,
                                   struct kiln_error *err)
{
    for (size_t i = 0; i < image->header.e_shnum; i++) {
        Elf64_Shdr table = section_at(image, i);

        if (table.sh_type != SHT_SYMTAB) {
            continue;
        }
        if (table.sh_entsize != sizeof(Elf64_Sym) || !is_strings(image, table.sh_link)) {
            return fault(image, "its symbol table is malformed", err);
        }
        if (find_symbol(image, &table, out)) {
            return KILN_OK;
        }
    }
    return fault(image, "it does not hold that kernel", err);
}

/* -1 when the image does not say. */
static int32_t read_registers(const struct image *image, uint32_t symbol_index)
{
    Elf64_Shdr info;
    size_t at = 0;

    if (!find_section(image, ".nv.info", "", &info) || info.sh_type != INFO_SECTION) {
        return -1;
    }
    while (info.sh_size - at >= INFO_HEAD_BYTES) {
        const unsigned char *record = image->data + info.sh_offset + at;
        uint16_t size = 0;
        uint32_t values[2];

        if (record[0] == INFO_SIZED) {
            memcpy(&size, record + 2, sizeof size);
        }
        at += INFO_HEAD_BYTES;
        if (size > info.sh_size - at) {
            return -1;
        }
        at += size;
        if (record[1] != INFO_REGISTERS || size != sizeof values) {
            continue;
        }
        memcpy(values, record + INFO_HEAD_BYTES, sizeof values);
        if (values[0] == symbol_index && values[1] <= 255) {
            return (int32_t)values[1];
        }
    }
    return -1;
}

static int32_t read_smem(const struct image *image, struct ki_target target)
{
    Elf64_Shdr shared;
    int32_t size;

    if (!find_section(image, ".nv.shared.", image->entry_name, &shared)) {
        return 0;
    }
    if (shared.sh_size > SMEM_BYTES_MAX) {
        return -1;
    }
    size = (int32_t)shared.sh_size;
    return target.major >= 9 && size >= RESERVED_SMEM_BYTES ? size - RESERVED_SMEM_BYTES
                                                            : size;
}

/* A load or store of memory that other kernels see: LD, LDG, ST, STG, ATOM, ATOMG, RED. The
 * opcode is the low nine bits; what follows says where operands come from. */
static bool is_memory_access(const unsigned char *instruction)
{
    static const unsigned opcodes[] = {0x180, 0x181, 0x185, 0x186, 0x18a,
                                       0x18e, 0x1a8, 0x1a9, 0x1a3};
    const unsigned opcode = (instruction[0] | (unsigned)instruction[1] << 8) & 0x1ff;

    for (size_t i = 0; i < KI_COUNT_OF(opcodes); i++) {
        if (opcodes[i] == opcode) {
            return true;
        }
    }
    return false;
}

/* A wait behind an access is none: compilers move loads ahead of it that they take for
 * constant. */
static int32_t read_waits(const struct image *image, const Elf64_Sym *entry,
                          struct ki_target target)
{
    Elf64_Shdr code = section_at(image, entry->st_shndx);
    const unsigned char *start = image->data + code.sh_offset + entry->st_value;

    if (target.major < 9) {
        return 0;
    }
    for (size_t at = 0; at + INSTRUCTION_BYTES <= entry->st_size;
         at += INSTRUCTION_BYTES) {
        if (memcmp(start + at, &wait_instruction, sizeof wait_instruction) == 0) {
            return 1;
        }
        if (is_memory_access(start + at)) {
            return 0;
        }
    }
    return 0;
}

enum kiln_status ki_cubin_inspect(struct ki_cubin *cubin, struct ki_target target,
                                  enum kiln_status status, struct kiln_error *err)
{
    struct image image = {
        .data = cubin->image.data,
        .size = cubin->image.size,
        .entry_name = cubin->entry_name,
        .status = status,
    };
    struct symbol entry = {0};

    KI_TRY(check_header(&image, err));
    KI_TRY(check_target(&image, target, err));
    KI_TRY(check_segments(&image, err));
    KI_TRY(check_sections(&image, err));
    KI_TRY(find_entry(&image, &entry, err));
    cubin->target = target;
    cubin->registers = read_registers(&image, entry.index);
    cubin->smem_bytes = read_smem(&image, target);
    cubin->waits = read_waits(&image, &entry.value, target);
    return KILN_OK;
}

void ki_cubin_finish(struct ki_cubin *cubin, const struct ki_mem *mem)
{
    ki_blob_finish(&cubin->image, mem);
    *cubin = (struct ki_cubin){0};
}
