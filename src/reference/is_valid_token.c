/* SPDX-License-Identifier: Apache-2.0 */
/*
 * is_valid_token: one byte per token, 1 for those that are live and mapped. A rank of
 * several has other ranks' tokens mapped to -1, so there the mapping says nothing.
 */
#include "reference/reference.h"
#include "reference/report.h"
#include "reference/rules.h"

void ki_row_is_valid_token(const struct kiln_shape *shape, const void *args, int64_t t)
{
    const struct kiln_is_valid_token_args *a =
        (const struct kiln_is_valid_token_args *)args;
    const struct ki_reporter to = {a->report, KILN_OP_IS_VALID_TOKEN};
    bool masks = shape->is_valid_token.dcp_world == 1 && a->slot_mapping != NULL;

    if (t == 0) {
        ki_report_count(&to, KILN_REASON_LIVE_TOKENS, a->live_tokens, a->num_tokens);
    }
    a->is_valid_token[t] = t < ki_count(a->live_tokens, a->num_tokens) &&
                           (!masks || a->slot_mapping[t] >= 0);
}
