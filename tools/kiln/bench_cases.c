/* SPDX-License-Identifier: Apache-2.0 */
/* The sizes that other implementations were measured at, and their times: graph-replayed,
 * per launch. Where there are none, those of a deployment: decode of a request for every
 * token, or prefill. */
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

/* Picks of raw tokens over pages of 64, without or with a workspace for all of them. */
#define REQ_TO_GLOBAL(tokens, requests, length, ...)                                     \
    {                                                                                    \
        .op = "req_to_global",                                                           \
        .fields = {{"topk", 2048}, {"block_size", 64}, {"table_width", 2560}},           \
        .optional = {__VA_ARGS__}, .n_tokens = (tokens), .n_requests = (requests),       \
        .context = (length), .ids = (length)                                             \
    }

/* Rows of a window of 128. */
#define SWA(width, is_causal, tokens, requests)                                          \
    {                                                                                    \
        .op = "swa_indices",                                                             \
        .fields = {{"window", 128},                                                      \
                   {"index_width", (width)},                                             \
                   {"block_size", 64},                                                   \
                   {"table_width", 16384},                                               \
                   {"causal", (is_causal)}},                                             \
        .optional = {"is_valid_token"}, .n_tokens = (tokens), .n_requests = (requests),  \
        .context = 65536                                                                 \
    }

/* The same where tokens see whole images. */
#define SWA_IMAGES(tokens, requests)                                                     \
    {                                                                                    \
        .op = "swa_indices",                                                             \
        .fields = {{"window", 128},                                                      \
                   {"index_width", 1152},                                                \
                   {"block_size", 64},                                                   \
                   {"table_width", 16384},                                               \
                   {"image_width", 1024}},                                               \
        .optional = {"left_visible", "right_visible"}, .n_tokens = (tokens),             \
        .n_requests = (requests), .context = 65536, .n_spans = 32                        \
    }

/* Decode rows hold slots, or with is_local ids. */
#define MIXED(k, is_local, tokens, prefill, requests)                                    \
    {                                                                                    \
        .op = "mixed_sparse_indices",                                                    \
        .fields = {{"window", 128},        {"swa_width", 128},                           \
                   {"compress_ratio", 4},  {"topk", (k)},                                \
                   {"decode_topk", (k)},   {"decode_local", (is_local)},                 \
                   {"swa_block_size", 64}, {"swa_table_width", 16384},                   \
                   {"block_size", 64},     {"table_width", 4096}},                       \
        .optional = {"is_valid_token", "decode_compressed_indices"},                     \
        .n_tokens = (tokens), .n_requests = (requests), .n_prefill = (prefill),          \
        .context = 65536, .ids = 16384                                                   \
    }

#define COMPRESSED_SLOTS(ratio, block, tokens, requests)                                 \
    {                                                                                    \
        .op = "compressed_slots",                                                        \
        .fields = {{"compress_ratio", (ratio)},                                          \
                   {"block_size", (block)},                                              \
                   {"table_width", 4096}},                                               \
        .optional = {"own_slots"}, .n_tokens = (tokens), .n_requests = (requests),       \
        .context = 65536                                                                 \
    }

#define TOKEN_TO_REQ(tokens, requests)                                                   \
    {                                                                                    \
        .op = "token_to_req", .n_tokens = (tokens), .n_requests = (requests),            \
        .context = 65536                                                                 \
    }

#define IS_VALID_TOKEN(tokens)                                                           \
    {                                                                                    \
        .op = "is_valid_token", .optional = {"slot_mapping"}, .n_tokens = (tokens),      \
        .n_requests = 1, .context = 65536                                                \
    }

#define GATHER_LENS(tokens, requests)                                                    \
    {                                                                                    \
        .op = "gather_lens", .fields = {{"window", 128}}, .n_tokens = (tokens),          \
        .n_requests = (requests), .context = 65536                                       \
    }

#define IMAGE_VISIBILITY(tokens, requests)                                               \
    {                                                                                    \
        .op = "image_visibility", .fields = {{"image_width", 1024}},                     \
        .n_tokens = (tokens), .n_requests = (requests), .context = 65536, .n_spans = 32  \
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
    REQ_TO_GLOBAL(1, 1, 65536, NULL),
    REQ_TO_GLOBAL(32, 32, 65536, NULL),
    REQ_TO_GLOBAL(256, 256, 65536, NULL),
    REQ_TO_GLOBAL(4096, 4, 65536, NULL),
    REQ_TO_GLOBAL(16384, 4, 65536, NULL),
    REQ_TO_GLOBAL(16384, 4, 163840, NULL),
    REQ_TO_GLOBAL(16384, 4, 65536, "workspace_start", "is_prefill"),
    SWA(128, 1, 1, 1),
    SWA(128, 1, 32, 32),
    SWA(128, 1, 256, 256),
    SWA(128, 1, 8192, 4),
    SWA(128, 1, 16384, 4),
    SWA(192, 0, 6, 1),
    SWA(192, 0, 192, 32),
    SWA(192, 0, 1536, 256),
    SWA_IMAGES(8192, 4),
    SWA_IMAGES(16384, 4),
    MIXED(512, 1, 1, 0, 1),
    MIXED(512, 1, 32, 0, 32),
    MIXED(512, 1, 256, 0, 256),
    MIXED(512, 0, 256, 0, 256),
    MIXED(512, 1, 4096, 4096, 4),
    MIXED(512, 1, 8192, 7936, 260),
    MIXED(512, 1, 16384, 16384, 4),
    MIXED(1024, 1, 256, 0, 256),
    MIXED(1024, 1, 16384, 16384, 4),
    COMPRESSED_SLOTS(4, 64, 1, 1),
    COMPRESSED_SLOTS(4, 64, 32, 32),
    COMPRESSED_SLOTS(4, 64, 256, 256),
    COMPRESSED_SLOTS(4, 64, 8192, 1),
    COMPRESSED_SLOTS(4, 64, 8192, 256),
    COMPRESSED_SLOTS(4, 64, 16384, 4),
    COMPRESSED_SLOTS(128, 2, 256, 256),
    COMPRESSED_SLOTS(128, 2, 16384, 4),
    TOKEN_TO_REQ(1, 1),
    TOKEN_TO_REQ(32, 32),
    TOKEN_TO_REQ(256, 256),
    TOKEN_TO_REQ(8192, 1),
    TOKEN_TO_REQ(8192, 256),
    TOKEN_TO_REQ(16384, 4),
    IS_VALID_TOKEN(1),
    IS_VALID_TOKEN(32),
    IS_VALID_TOKEN(256),
    IS_VALID_TOKEN(8192),
    IS_VALID_TOKEN(16384),
    GATHER_LENS(8192, 1),
    GATHER_LENS(8192, 32),
    GATHER_LENS(8192, 256),
    IMAGE_VISIBILITY(32, 32),
    IMAGE_VISIBILITY(256, 256),
    IMAGE_VISIBILITY(8192, 1),
    IMAGE_VISIBILITY(8192, 4),
    IMAGE_VISIBILITY(16384, 4),
};

const size_t cli_n_bench_cases = sizeof cli_bench_cases / sizeof cli_bench_cases[0];
