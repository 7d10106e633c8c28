/* SPDX-License-Identifier: Apache-2.0 */
/* What `kiln bench` times, as data. */
#ifndef CLI_BENCH_CASES_H
#define CLI_BENCH_CASES_H

#include <stddef.h>
#include <stdint.h>

struct cli_bench_value {
    const char *name;
    int64_t value;
};

enum { CLI_BENCH_FIELDS_MAX = 12, CLI_BENCH_OPTIONAL_MAX = 2 };

struct cli_bench_case {
    const char *op;
    struct cli_bench_value fields[CLI_BENCH_FIELDS_MAX]; /* ends at a NULL name */
    const char *optional[CLI_BENCH_OPTIONAL_MAX]; /* arrays given all the same, or NULL */
    int64_t n_tokens;
    int64_t n_requests;    /* spread over the tokens in order */
    int64_t n_prefill;     /* tokens after those that decode */
    int64_t context;       /* length of every sequence, tokens */
    int64_t ids;           /* ids of the selection are below it; 0: there is none */
    int64_t active_width;  /* 0: absent */
    int64_t gathered_base; /* workspace rows before the gathered tokens */
    int64_t n_spans;       /* images of every sequence, half of its tokens */
    double target_us; /* the fastest known that writes whole rows, on one H200; 0: none */
};

extern const struct cli_bench_case cli_bench_cases[];
extern const size_t cli_n_bench_cases;

#endif
