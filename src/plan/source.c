/* SPDX-License-Identifier: Apache-2.0 */
/* shape -> source. Integers in decimal, booleans as words: the same bytes on every machine. */
#include <stdio.h>

#include "base/attr.h"
#include "base/status.h"
#include "plan/op.h"
#include "plan/source.h"
#include "plan/templates.h"

enum { CONSTANT_NAME = 64 };

/* topk_stride -> kTopkStride. Names are ASCII, so no locale plays a part. */
static void constant_name(const char *field, char out[CONSTANT_NAME])
{
    size_t used = 0;
    bool upper = true;

    out[used++] = 'k';
    for (; *field != '\0' && used < CONSTANT_NAME - 1; field++) {
        if (*field == '_') {
            upper = true;
            continue;
        }
        out[used++] =
            upper && *field >= 'a' && *field <= 'z' ? (char)(*field - 'a' + 'A') : *field;
        upper = false;
    }
    out[used] = '\0';
}

static void write_integer(struct ki_text *out, const char *name, int64_t value)
{
    ki_text_format(out, "[[maybe_unused]] constexpr int %s = %lld;\n", name,
                   (long long)value);
}

static void write_boolean(struct ki_text *out, const char *name, bool value)
{
    ki_text_format(out, "[[maybe_unused]] constexpr bool %s = %s;\n", name,
                   value ? "true" : "false");
}

static void write_field(struct ki_text *out, const struct kiln_shape_field *field,
                        int64_t value)
{
    char name[CONSTANT_NAME];

    constant_name(field->name, name);
    if (field->kind == KILN_FIELD_BOOLEAN) {
        write_boolean(out, name, value != 0);
        return;
    }
    write_integer(out, name, value);
}

static void write_constants(struct ki_text *out, const struct ki_op *op,
                            const struct kiln_shape *shape, uint32_t variant)
{
    struct ki_constant constants[KI_CONSTANTS_MAX];
    int n = op->constants != NULL ? op->constants(shape, constants) : 0;

    for (size_t i = 0; i < op->info.n_fields; i++) {
        write_field(out, &op->info.fields[i], shape->fields[i]);
    }
    write_integer(out, "kThreads", op->threads(shape));
    for (int i = 0; i < n; i++) {
        write_integer(out, constants[i].name, constants[i].value);
    }
    write_integer(out, "kOp", op->info.op);
    write_boolean(out, "kChecked", (variant & KILN_VARIANT_CHECKED) != 0);
}

enum kiln_status ki_source_write(enum kiln_op op, const struct kiln_shape *shape,
                                 uint32_t variant, struct ki_text *out,
                                 struct kiln_error *err)
{
    const struct ki_op *found = ki_op_get(op);
    const struct ki_template *template;

    KI_TRY(ki_op_check(op, shape, err));
    if ((variant & ~(uint32_t)KILN_VARIANT_CHECKED) != 0) {
        return ki_fail(err, KILN_E_ARGUMENT,
                       "%s: variant = %u: expected bits of enum kiln_variant",
                       found->info.name, (unsigned)variant);
    }
    template = ki_template_get(found->template_name);
    if (template == NULL) {
        return ki_fail(err, KILN_E_INTERNAL, "%s: its template is not built in",
                       found->info.name);
    }
    ki_text_format(out, "// kiln: %s\n#define KILN_PRELUDE\n", found->info.name);
    write_constants(out, found, shape, variant);
    ki_text_format(out, "#line 1 \"%s\"\n", template->name);
    ki_text_bytes(out, template->text, template->size);
    return ki_text_ok(out) ? KILN_OK : ki_fail_memory(err, "the emitted source");
}

void ki_source_entry_name(enum kiln_op op, char out[64])
{
    const struct kiln_op_info *info = kiln_op_info_get(op);

    snprintf(out, 64, "kiln_%s", info != NULL ? info->name : "");
}
