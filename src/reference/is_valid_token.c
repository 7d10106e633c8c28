/* SPDX-License-Identifier: Apache-2.0 */
/*
 * is_valid_token: one byte per token, 1 for those that are live and mapped. A rank of
 * several has other ranks' tokens mapped to -1, so there the mapping says nothing.
 */
#include "reference/reference.h"
#include "reference/report.h"
#include "reference/rules.h"

enum kiln_status ki_reference_is_valid_token(const struct kiln_shape *shape,
                                             const void *args)
{
    const struct kiln_is_valid_token_args *a = args;
    const struct ki_reporter to = {a->report, KILN_OP_IS_VALID_TOKEN};
    bool masks = shape->is_valid_token.dcp_world == 1 && a->slot_mapping != NULL;
    int64_t live = ki_count(a->live_tokens, a->num_tokens);

    for (int64_t t = 0; t < a->num_tokens; t++) {
        a->is_valid_token[t] = t < live && (!masks || a->slot_mapping[t] >= 0);
    }
    if (a->num_tokens > 0) {
        ki_report_count(&to, KILN_REASON_LIVE_TOKENS, a->live_tokens, a->num_tokens);
    }
    return KILN_OK;
}
