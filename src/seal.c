/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kiln/seal.h. The table of kernels refuses claims once it is sealed; here is what is said
 * about it. No launch and no kiln_find ever comes by.
 */
#include <string.h>

#include "base/attr.h"
#include "base/status.h"
#include "plan/plan.h"
#include "prepare.h"
#include "seal.h"

/* ---- telling ---- */

void ki_tell(const struct kiln *kiln, const struct ki_ident *ident,
             struct kiln_event event)
{
    char target[KI_TARGET_NAME];

    if (kiln->event_fn == NULL) {
        return;
    }
    ki_target_name(ident->target, target);
    event.op = (enum kiln_op)ident->op;
    event.shape = &ident->shape;
    event.target = target;
    kiln->event_fn(kiln->event_user, &event);
}

static enum kiln_status fail_not_ready(enum kiln_op op, const struct kiln_shape *shape,
                                       const char *what, struct kiln_error *err)
{
    char words[KI_SHAPE_WORDS];

    ki_shape_words(op, shape, words, sizeof words);
    return ki_fail(err, KILN_E_NOT_READY, "%s: %s", what, words);
}

/* `status` is what the caller gets. */
static void violate(struct kiln *kiln, const struct ki_ident *ident, const char *what,
                    enum kiln_status status)
{
    struct kiln_error why;

    (void)fail_not_ready((enum kiln_op)ident->op, &ident->shape, what, &why);
    atomic_fetch_add_explicit(&kiln->n_violations, 1, memory_order_relaxed);
    ki_log(&kiln->log, status == KILN_OK ? KILN_LOG_WARN : KILN_LOG_ERROR, "%s",
           why.message);
    ki_tell(kiln, ident,
            (struct kiln_event){
                .kind = KILN_EVENT_VIOLATION, .status = status, .message = why.message});
}

enum kiln_status ki_seal_refuse(struct kiln *kiln, const struct ki_ident *ident,
                                const char *what, struct kiln_error *err)
{
    violate(kiln, ident, what, KILN_E_NOT_READY);
    return fail_not_ready((enum kiln_op)ident->op, &ident->shape, what, err);
}

void ki_seal_warn(struct kiln *kiln, const struct ki_ident *ident, const char *what)
{
    if (kiln_seal_get(kiln) == KILN_SEAL_WARN) {
        violate(kiln, ident, what, KILN_OK);
    }
}

/* ---- the seal ---- */

/* A kernel never stops being ready, so what holds here holds once the seal is set. */
static enum kiln_status check_plan(const struct kiln *kiln, const struct kiln_plan *plan,
                                   struct kiln_error *err)
{
    if (plan->n_items == 0) {
        return ki_fail(err, KILN_E_ARGUMENT,
                       "plan has no items: expected one that kiln_plan_make filled");
    }
    KI_TRY(ki_plan_check_ops(plan, err));
    for (size_t i = 0; i < plan->n_items; i++) {
        const struct kiln_plan_item *item = &plan->items[i];
        struct ki_ident ident;

        if (!kiln_op_info_get(item->op)->supported) {
            continue;
        }
        ki_ident_init(&ident, item->op, &item->shape);
        ident.target = kiln->target;
        ident.variant = kiln->variant;
        if (kiln->target_is_known == 0 || ki_table_find(&kiln->table, &ident) == NULL) {
            return fail_not_ready(item->op, &item->shape,
                                  "a kernel of the plan was not prepared before the seal",
                                  err);
        }
    }
    return KILN_OK;
}

enum kiln_status kiln_seal(struct kiln *kiln, enum kiln_seal_mode mode,
                           const struct kiln_plan *plan, unsigned char *out_digest,
                           struct kiln_error *err)
{
    if (kiln == NULL) {
        return ki_fail(err, KILN_E_ARGUMENT, "kiln is NULL: expected one");
    }
    if (mode != KILN_SEAL_OFF && mode != KILN_SEAL_WARN && mode != KILN_SEAL_ERROR) {
        return ki_fail(err, KILN_E_ARGUMENT,
                       "mode = %d: expected a value of enum kiln_seal_mode", (int)mode);
    }
    if (plan == NULL && out_digest != NULL) {
        return ki_fail(err, KILN_E_ARGUMENT,
                       "plan is NULL: expected one, whose digest is asked for");
    }
    KI_TRY(ki_refuse_fork(kiln, err));
    if (plan != NULL) {
        KI_TRY(check_plan(kiln, plan, err));
    }
    _Static_assert((int)KI_SEALED == (int)KILN_SEAL_ERROR, "one set of values");
    KI_TRY(ki_table_seal(&kiln->table, (int)mode, kiln->build_timeout_ms, err));
    if (out_digest != NULL) {
        memcpy(out_digest, plan->digest, sizeof plan->digest);
    }
    return KILN_OK;
}

enum kiln_seal_mode kiln_seal_get(const struct kiln *kiln)
{
    return kiln != NULL ? (enum kiln_seal_mode)atomic_load(&kiln->table.seal)
                        : KILN_SEAL_OFF;
}
