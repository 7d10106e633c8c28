/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a kernel is identified by. In memory the identity itself, a plain struct without
 * padding that is compared whole; on disk a readable text, one name=value per line in a
 * fixed order, and its digest. Nothing of the machine is in it: no path, no driver, no
 * device index, no locale, no time.
 */
#ifndef KI_PLAN_KEY_H
#define KI_PLAN_KEY_H

#include <stdbool.h>
#include <stdint.h>

#include "kiln/op_info.h"

#include "base/hash.h"
#include "base/mem.h"
#include "plan/target.h"

struct ki_ident {
    int32_t op;       /* enum kiln_op */
    uint32_t variant; /* bits of enum kiln_variant */
    struct ki_target target;
    struct kiln_shape shape;
};

enum { KI_KEY_TEXT = 4096, KI_KEY_FORMAT = 1 };

struct ki_key {
    char text[KI_KEY_TEXT]; /* NUL-terminated */
    size_t text_size;
    unsigned char digest[KI_DIGEST_BYTES]; /* of the text */
    char digest_hex[KI_DIGEST_HEX];
};

/* The compiler options of every kernel, NULL-terminated, in order, less
 * --gpu-architecture. */
extern const char *const ki_key_compiler_options[];

/* The op must be one that ki_op_check accepts with this shape. The source's digest is a part of the
 * key: every byte that reaches the compiler is covered. */
enum kiln_status ki_key_make(const struct ki_ident *ident, const struct ki_mem *mem,
                             struct ki_key *out, struct kiln_error *err);
/* The op's fields of the shape and zeros beyond; no target yet. No op has no fields. */
void ki_ident_init(struct ki_ident *out, enum kiln_op op, const struct kiln_shape *shape);
bool ki_ident_equal(const struct ki_ident *a, const struct ki_ident *b);

#endif
