/* SPDX-License-Identifier: Apache-2.0 */
/* The sizes that other implementations were measured at, and their times: graph-replayed,
 * per launch. */
#include "bench_cases.h"

/* Rows of decode: a request of its own for every token; more rows: four requests. A record is 4
 * tokens, so a context of 65,536 tokens spreads the picks over 256 pages, one of 1,048,576 over all
 * 4,096. The times to compare with are of the former. */
#define GLOBAL_TOPK(k, tokens, requests, length, us)                                     \
    {                                                                                    \
        .op = "global_topk",                                                             \
        .fields = {{"topk", (k)}, {"block_size", 64}, {"table_width", 4096}},            \
        .n_tokens = (tokens), .n_requests = (requests), .context = (length),             \
        .ids = (length) / 4, .target_us = (us)                                           \
    }

/* 65,536 tokens of context are 16,384 records of 4. */
#define COMBINE(k, tokens, requests, us)                                                 \
    {                                                                                    \
        .op = "combine_topk_swa",                                                        \
        .fields = {{"topk", (k)}, {"window", 128}, {"compress_ratio", 4}},               \
        .n_tokens = (tokens), .n_requests = (requests), .context = 65536, .ids = 16384,  \
        .gathered_base = 16384, .target_us = (us)                                        \
    }

/* `live` complete records of 128 tokens for every row. */
#define C128A(tokens, live, us)                                                          \
    {                                                                                    \
        .op = "c128a_topk",                                                              \
        .fields = {{"compress_ratio", 128},                                              \
                   {"capacity", 8192},                                                   \
                   {"block_size", 2},                                                    \
                   {"table_width", 4096}},                                               \
        .n_tokens = (tokens), .n_requests = (tokens), .context = (live)*128,             \
        .active_width = (live), .target_us = (us)                                        \
    }

const struct cli_bench_case cli_bench_cases[] = {
    GLOBAL_TOPK(512, 1, 1, 65536, 1.50),
    GLOBAL_TOPK(512, 32, 32, 65536, 1.63),
    GLOBAL_TOPK(512, 256, 256, 65536, 2.08),
    GLOBAL_TOPK(512, 512, 512, 65536, 2.78),
    GLOBAL_TOPK(512, 4096, 4, 65536, 6.97),
    GLOBAL_TOPK(512, 16384, 4, 65536, 18.6),
    GLOBAL_TOPK(1024, 1, 1, 65536, 1.61),
    GLOBAL_TOPK(1024, 32, 32, 65536, 1.78),
    GLOBAL_TOPK(1024, 256, 256, 65536, 2.34),
    GLOBAL_TOPK(1024, 512, 512, 65536, 3.39),
    GLOBAL_TOPK(1024, 4096, 4, 65536, 13.7),
    GLOBAL_TOPK(1024, 16384, 4, 65536, 37.7),
    GLOBAL_TOPK(2048, 1, 1, 65536, 1.86),
    GLOBAL_TOPK(2048, 32, 32, 65536, 2.73),
    GLOBAL_TOPK(2048, 256, 256, 65536, 3.32),
    GLOBAL_TOPK(2048, 512, 512, 65536, 7.54),
    GLOBAL_TOPK(2048, 4096, 4, 65536, 21.7),
    GLOBAL_TOPK(2048, 16384, 4, 65536, 72.5),
    GLOBAL_TOPK(512, 1, 1, 1048576, 0),
    GLOBAL_TOPK(512, 256, 256, 1048576, 0),
    GLOBAL_TOPK(512, 16384, 4, 1048576, 0),
    COMBINE(512, 1024, 1, 2.72),
    COMBINE(512, 4096, 1, 5.41),
    COMBINE(512, 16384, 1, 21.6),
    COMBINE(512, 16384, 4, 21.7),
    COMBINE(1024, 1024, 1, 6.21),
    COMBINE(1024, 4096, 1, 19.9),
    COMBINE(1024, 16384, 1, 38.7),
    COMBINE(1024, 16384, 4, 62.7),
    C128A(1, 128, 1.5),
    C128A(32, 128, 1.7),
    C128A(256, 128, 1.9),
    C128A(1, 8192, 1.5),
    C128A(32, 8192, 1.9),
    C128A(256, 8192, 3.9),
};

const size_t cli_n_bench_cases = sizeof cli_bench_cases / sizeof cli_bench_cases[0];
