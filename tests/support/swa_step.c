/* SPDX-License-Identifier: Apache-2.0 */
/* See swa_step.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "support/swa_step.h"

void swa_step_init(struct swa_step *s)
{
    *s = (struct swa_step){
        .shape = {.window = 4,
                  .index_width = WIDTH,
                  .index_stride = WIDTH + 1,
                  .block_size = 2,
                  .table_width = PAGES,
                  .table_stride = PAGES,
                  .causal = 1,
                  .dcp_world = 1,
                  .dcp_interleave = 1},
        .starts = {0, 2, 5},
        .seq_lens = {9, 3},
        .requests = {0, 0, 1, 1, 1},
        .table = {{10, 11, 12, 13, 14, 15}, {20, 21, 22, 23, 24, 25}},
        .valid = {1, 1, 1, 1, 1},
    };
    memset(s->rows, 0x55, sizeof(s->rows));
    memset(s->lens, 0x55, sizeof(s->lens));
    s->args = (struct kiln_swa_indices_args){
        .query_start_loc = s->starts,
        .seq_lens = s->seq_lens,
        .token_to_req = s->requests,
        .block_table = s->table[0],
        .swa_indices = s->rows[0],
        .swa_lens = s->lens,
        .num_rows = TOKENS,
        .num_requests = 2,
        .table_rows = 2,
    };
}

void swa_step_run(struct swa_step *s)
{
    struct kiln_error err = {0};

    if (kiln_reference_swa_indices(&s->shape, &s->args, &err) != KILN_OK) {
        fail_msg("%s", err.message);
    }
}
