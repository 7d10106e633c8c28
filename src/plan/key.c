/* SPDX-License-Identifier: Apache-2.0 */
/* identity -> readable key text and digest, field by field. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/attr.h"
#include "base/status.h"
#include "plan/key.h"
#include "plan/op.h"
#include "plan/source.h"

const char *const ki_key_compiler_options[] = {"--std=c++17", "--minimal", NULL};

struct writer {
    struct ki_key *key;
    bool full;
};

KI_PRINTF(2, 3)
static void line(struct writer *writer, const char *format, ...)
{
    size_t room = KI_KEY_TEXT - writer->key->text_size;
    va_list args;
    int size;

    va_start(args, format);
    size = vsnprintf(writer->key->text + writer->key->text_size, room, format, args);
    va_end(args);
    if (size < 0 || (size_t)size >= room) {
        writer->full = true;
        return;
    }
    writer->key->text_size += (size_t)size;
}

/* The digest of every byte that the compiler will get. */
static enum kiln_status source_digest(const struct ki_ident *ident,
                                      const struct ki_mem *mem, char out[KI_DIGEST_HEX],
                                      struct kiln_error *err)
{
    struct ki_text source;
    unsigned char digest[KI_DIGEST_BYTES];
    enum kiln_status status;

    ki_text_init(&source, mem);
    status = ki_source_write((enum kiln_op)ident->op, &ident->shape, ident->variant,
                             &source, err);
    if (status == KILN_OK) {
        ki_hash(source.data, source.size, digest);
        ki_hash_hex(digest, out);
    }
    ki_text_finish(&source);
    return status;
}

enum kiln_status ki_key_make(const struct ki_ident *ident, const struct ki_mem *mem,
                             struct ki_key *out, struct kiln_error *err)
{
    const struct kiln_op_info *info = kiln_op_info_get((enum kiln_op)ident->op);
    struct writer writer = {.key = out};
    char source[KI_DIGEST_HEX];
    char target[KI_TARGET_NAME];

    KI_TRY(source_digest(ident, mem, source, err));
    out->text_size = 0;
    line(&writer, "format=%d\nop=%s\n", KI_KEY_FORMAT, info->name);
    for (size_t i = 0; i < info->n_fields; i++) {
        line(&writer, "%s=%lld\n", info->fields[i].name,
             (long long)ident->shape.fields[i]);
    }
    line(&writer, "checked=%d\n", (ident->variant & KILN_VARIANT_CHECKED) != 0 ? 1 : 0);
    line(&writer, "source=%s\n", source);
    for (const char *const *option = ki_key_compiler_options; *option != NULL; option++) {
        line(&writer, "option=%s\n", *option);
    }
    ki_target_name(ident->target, target);
    line(&writer, "target=%s\n", target);
    if (writer.full) {
        return ki_fail(err, KILN_E_INTERNAL, "%s: its key is longer than %d bytes",
                       info->name, KI_KEY_TEXT);
    }
    ki_hash(out->text, out->text_size, out->digest);
    ki_hash_hex(out->digest, out->digest_hex);
    return KILN_OK;
}

void ki_ident_init(struct ki_ident *out, enum kiln_op op, const struct kiln_shape *shape)
{
    const struct kiln_op_info *info = kiln_op_info_get(op);

    *out = (struct ki_ident){.op = (int32_t)op};
    memset(&out->shape, 0, sizeof out->shape);
    for (size_t i = 0; info != NULL && i < info->n_fields; i++) {
        out->shape.fields[i] = shape->fields[i];
    }
}

bool ki_ident_equal(const struct ki_ident *a, const struct ki_ident *b)
{
    return a->op == b->op && a->variant == b->variant &&
           ki_target_equal(a->target, b->target) &&
           memcmp(a->shape.fields, b->shape.fields, sizeof a->shape.fields) == 0;
}
