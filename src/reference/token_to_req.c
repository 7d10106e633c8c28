/* SPDX-License-Identifier: Apache-2.0 */
/* token_to_req: the request of each token, pad_req where there is none. */
#include "reference/reference.h"
#include "reference/rules.h"

void ki_row_token_to_req(const struct kiln_shape *shape, const void *args, int64_t t)
{
    const struct kiln_token_to_req_args *a = (const struct kiln_token_to_req_args *)args;
    int64_t b = ki_request_of(a->query_start_loc, a->num_requests, 0, t);

    a->token_to_req[t] = (int32_t)(b >= 0 ? b : shape->token_to_req.pad_req);
}
