/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One rule per argument name, since ops share their inputs: a step whose tokens lie in
 * the order of their requests, with random selections and pages.
 */
#include <string.h>

#include "bench_fill.h"
#include "report.h"

struct filler {
    const struct cli_bench_case *bench;
    uint64_t random;
};

/* A linear congruential generator: the same inputs on every machine. */
static int64_t random_below(struct filler *f, int64_t limit)
{
    f->random = f->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (int64_t)((f->random >> 33) % (uint64_t)limit);
}

static int64_t first_token(const struct filler *f, int64_t request)
{
    return request * f->bench->n_tokens / f->bench->n_requests;
}

static int64_t random_id(struct filler *f, int64_t row)
{
    (void)row;
    return random_below(f, f->bench->ids);
}

static int64_t random_page(struct filler *f, int64_t row)
{
    enum { PAGES = 100000 };

    (void)row;
    return random_below(f, PAGES);
}

static int64_t request_of(struct filler *f, int64_t token)
{
    return token * f->bench->n_requests / f->bench->n_tokens;
}

static int64_t query_start(struct filler *f, int64_t request)
{
    return first_token(f, request);
}

static int64_t seq_len(struct filler *f, int64_t request)
{
    (void)request;
    return f->bench->context;
}

/* The tokens of the step, and the window before them. */
static int64_t gather_len(struct filler *f, int64_t request)
{
    enum { WINDOW = 128 };
    int64_t len = first_token(f, request + 1) - first_token(f, request) + WINDOW - 1;

    return len < f->bench->context ? len : f->bench->context;
}

static int64_t last_position(struct filler *f, int64_t token)
{
    (void)token;
    return f->bench->context - 1;
}

static int64_t n_decode_tokens(struct filler *f, int64_t row)
{
    (void)row;
    return f->bench->n_tokens - f->bench->n_prefill;
}

static int64_t one(struct filler *f, int64_t row)
{
    (void)f;
    (void)row;
    return 1;
}

static int64_t itself(struct filler *f, int64_t row)
{
    (void)f;
    return row;
}

/* Images lie evenly over a sequence and take half of their distance. */
static int64_t image_distance(const struct filler *f)
{
    return f->bench->context / f->bench->n_spans;
}

static int64_t first_image(struct filler *f, int64_t request)
{
    return request * f->bench->n_spans;
}

static int64_t image_begin(struct filler *f, int64_t image)
{
    return image % f->bench->n_spans * image_distance(f);
}

static int64_t image_end(struct filler *f, int64_t image)
{
    return image_begin(f, image) + image_distance(f) / 2 - 1;
}

static int64_t seen_of_image(struct filler *f, int64_t token)
{
    (void)token;
    return random_below(f, image_distance(f) / 2);
}

static int64_t active_width(struct filler *f, int64_t row)
{
    (void)row;
    return f->bench->active_width;
}

static int64_t gathered_base(struct filler *f, int64_t row)
{
    (void)row;
    return f->bench->gathered_base;
}

static int64_t workspace_rows(struct filler *f, int64_t row)
{
    return f->bench->gathered_base + gather_len(f, row);
}

static int64_t workspace_start(struct filler *f, int64_t request)
{
    return request * f->bench->context;
}

/* The value of one element of a row, or of a count. Optional counts that have no rule are
 * left out. */
static const struct rule {
    const char *name;
    int64_t (*value)(struct filler *f, int64_t row);
} rules[] = {
    {"active_width", active_width},
    {"block_table", random_page},
    {"decode_compressed_indices", random_id},
    {"decode_swa_indices", random_page},
    {"gather_lens", gather_len},
    {"is_prefill", one},
    {"is_valid_token", one},
    {"left_visible", seen_of_image},
    {"num_decode_tokens", n_decode_tokens},
    {"own_slots", itself},
    {"positions", last_position},
    {"prefill_topk_indices", random_id},
    {"query_start_loc", query_start},
    {"req_id", request_of},
    {"right_visible", seen_of_image},
    {"seq_lens", seq_len},
    {"slot_mapping", itself},
    {"span_begin", image_begin},
    {"span_end", image_end},
    {"span_start_loc", first_image},
    {"swa_base", gathered_base},
    {"swa_block_table", random_page},
    {"token_indices", random_id},
    {"token_to_req", request_of},
    {"topk_indices", random_id},
    {"workspace_rows", workspace_rows},
    {"workspace_start", workspace_start},
};

static const struct rule *find_rule(const char *name)
{
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        if (strcmp(rules[i].name, name) == 0) {
            return &rules[i];
        }
    }
    return NULL;
}

static int fill_array(struct filler *f, struct cli_call *call, size_t i,
                      const struct rule *rule)
{
    struct cli_array *array = &call->arrays[i];
    const char *fault = cli_call_add_array(call, i);

    if (fault != NULL) {
        return cli_failed("bench: %s: %s", array->arg->name, fault);
    }
    if (array->arg->kind == KILN_ARG_OUTPUT) {
        return CLI_DONE;
    }
    for (int64_t row = 0; row < array->rows; row++) {
        for (int64_t column = 0; column < array->width; column++) {
            cli_array_set(array, row, column, rule->value(f, row));
        }
    }
    return CLI_DONE;
}

static void fill_counts(struct filler *f, struct cli_call *call)
{
    for (size_t i = 0; i < call->info->n_args; i++) {
        const struct kiln_arg *arg = &call->info->args[i];
        const struct rule *rule = find_rule(arg->name);

        if (arg->kind != KILN_ARG_COUNT || rule == NULL) {
            continue;
        }
        call->arrays[i].count = (struct kiln_count){.kind = KILN_COUNT_VALUE,
                                                    .value = (int32_t)rule->value(f, 0)};
    }
}

/* Optional arrays are there where the case names them. */
static bool is_given(const struct cli_bench_case *bench, const struct kiln_arg *arg)
{
    bool named = false;

    for (size_t i = 0; i < CLI_BENCH_OPTIONAL_MAX; i++) {
        named = named || (bench->optional[i] != NULL &&
                          strcmp(bench->optional[i], arg->name) == 0);
    }
    return cli_arg_is_array(arg) && (named || !arg->optional);
}

static int fill_arrays(struct filler *f, struct cli_call *call)
{
    int status = CLI_DONE;

    for (size_t i = 0; i < call->info->n_args && status == CLI_DONE; i++) {
        const struct kiln_arg *arg = &call->info->args[i];
        const struct rule *rule = find_rule(arg->name);

        if (!is_given(f->bench, arg)) {
            continue;
        }
        if (arg->kind == KILN_ARG_INPUT && rule == NULL) {
            status = cli_failed("bench: no rule to fill %s.%s", f->bench->op, arg->name);
        } else {
            status = fill_array(f, call, i, rule);
        }
    }
    return status;
}

static int make_shape(const struct cli_bench_case *bench, const struct kiln_op_info *info,
                      struct kiln_shape *out)
{
    struct kiln_shape shape = {0};
    struct kiln_error err;
    uint32_t given = 0;

    for (size_t i = 0; i < info->n_fields; i++) {
        for (size_t k = 0; k < CLI_BENCH_FIELDS_MAX; k++) {
            const struct cli_bench_value *value = &bench->fields[k];

            if (value->name == NULL || strcmp(value->name, info->fields[i].name) != 0) {
                continue;
            }
            shape.fields[i] = value->value;
            given |= UINT32_C(1) << i;
        }
    }
    if (kiln_shape_defaults(info->op, given, &shape, &err) != KILN_OK) {
        return cli_report("bench", &err, false);
    }
    *out = shape;
    return CLI_DONE;
}

int cli_bench_fill(const struct cli_bench_case *bench, struct cli_call *out)
{
    const struct kiln_op_info *info = kiln_op_info_by_name(bench->op);
    struct cli_call call = {0};
    struct filler filler = {.bench = bench, .random = 1};
    struct kiln_shape shape;
    int status = make_shape(bench, info, &shape);

    if (status != CLI_DONE) {
        return status;
    }
    if (!cli_call_init(&call, info, &shape)) {
        return cli_failed("bench: out of memory");
    }
    call.extents[KILN_EXTENT_TOKENS] = bench->n_tokens;
    call.extents[KILN_EXTENT_ROWS] = bench->n_tokens;
    call.extents[KILN_EXTENT_REQUESTS] = bench->n_requests;
    call.extents[KILN_EXTENT_TABLE_ROWS] = bench->n_requests;
    call.extents[KILN_EXTENT_SWA_TABLE_ROWS] = bench->n_requests;
    call.extents[KILN_EXTENT_SPANS] = bench->n_requests * bench->n_spans;
    fill_counts(&filler, &call);
    cli_call_settle(&call);
    status = fill_arrays(&filler, &call);
    if (status != CLI_DONE) {
        cli_call_finish(&call);
        return status;
    }
    cli_call_bind_host(&call);
    *out = call;
    return CLI_DONE;
}
