/* SPDX-License-Identifier: Apache-2.0 */
/* See mixed_batch.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "support/count.h"
#include "support/mixed_batch.h"

void mixed_batch_init(struct mixed_batch *b)
{
    *b = (struct mixed_batch){
        .shape = {.window = WINDOW,
                  .swa_width = WINDOW,
                  .compress_ratio = 4,
                  .topk = TOPK,
                  .decode_topk = GIVEN,
                  .swa_block_size = 2,
                  .swa_span = 10,
                  .swa_table_width = PAGES,
                  .swa_table_stride = PAGES,
                  .block_size = 2,
                  .span = 6,
                  .table_width = PAGES,
                  .table_stride = PAGES},
        .starts = {0, 1, 2, 4},
        .seq_lens = {5, 5, 11},
        .requests = {0, 1, 2, 2},
        .window_table = {{0}, {0}, {10, 11, 12, 13, 14, 15}},
        .table = {{10, 11, 12}, {20, 21, 22}, {30, 31, 32, 33, 34, 35}},
        .given_window = {{5, -1, 0, 21}, {1, 2, 3, 4}},
        .given = {{7, -1, 4}, {0, 1, 2}},
        .picks = {{1, 0}, {3, 2}},
        .valid = {1, 1, 1, 1},
    };
    memset(b->rows, 0x55, sizeof(b->rows));
    memset(b->lens, 0x55, sizeof(b->lens));
    b->args = (struct kiln_mixed_sparse_indices_args){
        .query_start_loc = b->starts,
        .seq_lens = b->seq_lens,
        .token_to_req = b->requests,
        .swa_block_table = b->window_table[0],
        .block_table = b->table[0],
        .decode_swa_indices = b->given_window[0],
        .decode_compressed_indices = b->given[0],
        .prefill_topk_indices = b->picks[0],
        .sparse_indices = b->rows,
        .sparse_lens = b->lens,
        .num_decode_tokens = value(DECODE),
        .num_tokens = TOKENS,
        .num_requests = 3,
        .swa_table_rows = 3,
        .table_rows = 3,
    };
}

void mixed_batch_run(struct mixed_batch *b)
{
    struct kiln_error err = {0};

    if (kiln_reference_mixed_sparse_indices(&b->shape, &b->args, &err) != KILN_OK) {
        fail_msg("%s", err.message);
    }
}
