/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What stands in the inputs of a random case: mostly what a server would hand over, often
 * the edges of it, at times what no server should. Padding behind a row's width is filled
 * alike, so that a kernel that reads it gets something plausible and wrong.
 */
#include <string.h>

#include "support/random_case.h"

static const int64_t int32_min = INT32_MIN, int32_max = INT32_MAX;

static int64_t clamp(int64_t value, int64_t low, int64_t high)
{
    return value < low ? low : value > high ? high : value;
}

/* An int32 that is no sane index at all. */
static int64_t wild(struct random_source *source)
{
    static const int64_t values[] = {-1, -1, -2, INT32_MIN, INT32_MAX, INT32_MAX - 1};
    if (random_chance(source, 50)) {
        return random_range(source, int32_min, int32_max);
    }
    return values[random_range(source, 0, 5)];
}

/* Mostly in [0, n), else at its edges, else wild. */
static int64_t index_below(struct random_source *source, int64_t n)
{
    int64_t percent = random_range(source, 1, 100);
    if (percent <= 80 && n > 0) {
        return random_range(source, 0, n - 1);
    }
    if (percent <= 90) {
        return clamp(random_range(source, n - 2, n + 2), int32_min, int32_max);
    }
    return wild(source);
}

static int64_t table_tokens(const struct random_case *random)
{
    int64_t local =
        random_field(random, "table_width", 1) * random_field(random, "block_size", 1);
    return clamp(local, 0, INT64_C(1) << 32) * random_field(random, "dcp_world", 1);
}

/* A count's value, wherever it lies; `absent` for one that was not given. */
static int64_t count_of(const struct random_case *random, const char *name,
                        int64_t absent)
{
    int arg = random_arg_index(random->info, name);
    if (arg < 0 || random->counts[arg].kind == KILN_COUNT_ABSENT) {
        return absent;
    }
    return random->counts[arg].value;
}

static int64_t topk_index(const struct random_case *random, struct random_source *source,
                          int64_t row)
{
    (void)row;
    return index_below(source, count_of(random, "swa_base", table_tokens(random)));
}

/* The request whose tokens these are, by query_start_loc; -1: none, or not known. */
static int64_t request_of(const struct random_case *random, int64_t token)
{
    int64_t found = -1;
    if (random_arg_index(random->info, "query_start_loc") < 0) {
        return -1;
    }
    for (int64_t b = 0; b < random->extents[KILN_EXTENT_REQUESTS]; b++) {
        if (random_case_get(random, "query_start_loc", b, 0) <= token) {
            found = b;
        }
    }
    return found;
}

static int64_t request_index(const struct random_case *random,
                             struct random_source *source, int64_t row)
{
    int64_t request = request_of(random, row);
    if (request >= 0 && random_chance(source, 85)) {
        return request;
    }
    return index_below(source, random->extents[KILN_EXTENT_TABLE_ROWS]);
}

/* The first page that no slot of an int32 fits into is the edge here. */
static int64_t page_of(const struct random_case *random, struct random_source *source,
                       const char *block_size)
{
    int64_t n_pages = (INT64_C(1) << 31) / random_field(random, block_size, 1);
    if (random_chance(source, 70)) {
        return random_range(source, 0, clamp(n_pages - 1, 0, 5000));
    }
    return index_below(source, clamp(n_pages, 1, int32_max));
}

static int64_t page(const struct random_case *random, struct random_source *source,
                    int64_t row)
{
    (void)row;
    return page_of(random, source, "block_size");
}

static int64_t window_page(const struct random_case *random, struct random_source *source,
                           int64_t row)
{
    (void)row;
    return page_of(random, source, "swa_block_size");
}

/* A slot of any pool. */
static int64_t slot(const struct random_case *random, struct random_source *source,
                    int64_t row)
{
    (void)random, (void)row;
    return index_below(source, random_chance(source, 50) ? 100000 : int32_max);
}

static int64_t decode_record(const struct random_case *random,
                             struct random_source *source, int64_t row)
{
    return random_field(random, "decode_local", 0) != 0 ? topk_index(random, source, row)
                                                        : slot(random, source, row);
}

static int64_t decode_record_len(const struct random_case *random,
                                 struct random_source *source, int64_t row)
{
    (void)row;
    return index_below(source, random_field(random, "decode_topk", 0) + 1);
}

static int64_t flag(const struct random_case *random, struct random_source *source,
                    int64_t row)
{
    static const int64_t values[] = {0, 1, 1, 1, 1, 255};
    (void)random, (void)row;
    return values[random_range(source, 0, 5)];
}

/* Around the multiples of the ratio, where a record completes. */
static int64_t position(const struct random_case *random, struct random_source *source,
                        int64_t row)
{
    int64_t ratio = clamp(random_field(random, "compress_ratio", 1), 1, int32_max);
    int64_t records = random_range(source, 0, random_field(random, "capacity", 64) + 3);
    (void)row;
    if (random_chance(source, 90)) {
        return records * ratio + random_range(source, -2, 1);
    }
    return random_chance(source, 50) ? random_range(source, 0, INT64_C(1) << 40)
                                     : random_range(source, INT64_MIN, -1);
}

static int64_t raw_slot(const struct random_case *random, struct random_source *source,
                        int64_t row)
{
    (void)random, (void)row;
    return random_chance(source, 20) ? -1 : random_range(source, 0, INT64_C(1) << 35);
}

static int64_t visible(const struct random_case *random, struct random_source *source,
                       int64_t row)
{
    int64_t most = random_field(random, "image_width", 0) + 2;
    (void)row;
    if (random_chance(source, 85)) {
        return random_range(source, 0, most);
    }
    return random_chance(source, 50) ? random_range(source, 0, 2000) : wild(source);
}

/* Never decreases; some requests have no tokens; the sum may miss the number of tokens. */
static void fill_query_start_loc(struct random_case *random, struct random_source *source,
                                 int arg)
{
    int64_t n_requests = random->extents[KILN_EXTENT_REQUESTS];
    bool rebased = strcmp(random->info->name, "combine_topk_swa") == 0;
    bool has_rows = random_arg_index(random->info, "num_rows") >= 0;
    int64_t n_tokens =
        random->extents[has_rows ? KILN_EXTENT_CONTEXT_TOKENS : KILN_EXTENT_TOKENS];
    int64_t at =
        random_chance(source, rebased ? 50 : 90) ? 0 : random_range(source, 1, 100000);
    int64_t most = n_requests > 0 ? 2 * n_tokens / n_requests + 1 : 0;
    for (int64_t b = 0; b <= n_requests; b++) {
        random_store(random, arg, b, 0, at);
        at += random_chance(source, 20) ? random_range(source, 0, 1)
                                        : random_range(source, 0, most);
    }
}

static int64_t query_len(const struct random_case *random, int64_t b)
{
    return random_case_get(random, "query_start_loc", b + 1, 0) -
           random_case_get(random, "query_start_loc", b, 0);
}

static int64_t seq_len(const struct random_case *random, struct random_source *source,
                       int64_t row)
{
    int64_t query = query_len(random, row);
    int64_t window = random_field(random, "window", 1);
    int64_t ratio = random_field(random, "compress_ratio", 1);
    int64_t topk = random_field(random, "topk", 1);
    int64_t percent = random_range(source, 1, 100);
    if (percent <= 35) {
        return query + random_range(source, 0, 3 * window);
    }
    if (percent <= 55) {
        return query +
               random_range(source, 0, clamp(table_tokens(random) + 9, 0, 1 << 30));
    }
    if (percent <= 85) {
        return query + random_range(source, 0, (topk + 2) * (ratio + 1) + 100000);
    }
    if (percent <= 95) {
        return query - random_range(source, 0, query + 1);
    }
    return wild(source);
}

/* What the op's contract lets a caller gather: swa_base + gather_lens <= workspace_rows. */
static int64_t gather_len(const struct random_case *random, struct random_source *source,
                          int64_t row)
{
    int64_t room =
        count_of(random, "workspace_rows", 0) - count_of(random, "swa_base", 0);
    int64_t query = query_len(random, row);
    int64_t prefix = random_case_get(random, "seq_lens", row, 0) - query;
    int64_t window = random_field(random, "window", 1);
    if (random_chance(source, 80)) {
        return clamp(query + clamp(prefix, 0, window - 1), 0, room);
    }
    return random_range(source, -1, room);
}

/* Mostly where a request has been before, or where int32 ends for an id. */
static int64_t workspace_start(const struct random_case *random,
                               struct random_source *source, int64_t row)
{
    (void)random, (void)row;
    if (random_chance(source, 70)) {
        return random_range(source, 0, 100000);
    }
    return random_chance(source, 50) ? random_range(source, int32_max - 5000, int32_max)
                                     : wild(source);
}

/* Ascending from 0 to the number of spans mostly. */
static int64_t span_start(const struct random_case *random, struct random_source *source,
                          int64_t row)
{
    int64_t n_spans = random->extents[KILN_EXTENT_SPANS];
    int64_t n_requests = random->extents[KILN_EXTENT_REQUESTS];
    if (random_chance(source, 90)) {
        return n_requests > 0 ? row * n_spans / n_requests : 0;
    }
    return random_chance(source, 50) ? random_range(source, -2, n_spans + 2)
                                     : wild(source);
}

/* Around the end of some sequence, where its tokens are. */
static int64_t span_begin(const struct random_case *random, struct random_source *source,
                          int64_t row)
{
    int64_t n_requests = random->extents[KILN_EXTENT_REQUESTS];
    int64_t n_spans = random->extents[KILN_EXTENT_SPANS];
    int64_t b = n_requests > 0 && n_spans > 0 ? row * n_requests / n_spans : -1;
    if (b < 0 || random_chance(source, 10)) {
        return wild(source);
    }
    return clamp(random_case_get(random, "seq_lens", b, 0) - random_range(source, -2, 60),
                 int32_min, int32_max);
}

static int64_t span_end(const struct random_case *random, struct random_source *source,
                        int64_t row)
{
    int64_t begin = random_case_get(random, "span_begin", row, 0);
    return random_chance(source, 10)
               ? wild(source)
               : clamp(begin + random_range(source, -2, 60), int32_min, int32_max);
}

static int64_t replay_start(const struct random_case *random,
                            struct random_source *source, int64_t row)
{
    int64_t seq = random_case_get(random, "seq_lens", row, 0);
    if (random_chance(source, 80)) {
        return clamp(seq - random_range(source, -2, 300), 0, int32_max);
    }
    return random_chance(source, 50) ? 0 : wild(source);
}

static int64_t small_number(const struct random_case *random,
                            struct random_source *source, int64_t row)
{
    (void)random, (void)row;
    return random_range(source, 0, 100);
}

typedef int64_t (*value_fn)(const struct random_case *, struct random_source *,
                            int64_t row);

static value_fn value_of(const char *name)
{
    static const struct {
        const char *name;
        value_fn value;
    } known[] = {
        {"topk_indices", topk_index},
        {"token_to_req", request_index},
        {"block_table", page},
        {"is_valid_token", flag},
        {"positions", position},
        {"slot_mapping", raw_slot},
        {"seq_lens", seq_len},
        {"gather_lens", gather_len},
        {"left_visible", visible},
        {"right_visible", visible},
        {"replay_start", replay_start},
        {"own_slots", raw_slot},
        {"token_indices", topk_index},
        {"req_id", request_index},
        {"is_prefill", flag},
        {"span_begin", span_begin},
        {"span_end", span_end},
        {"workspace_start", workspace_start},
        {"span_start_loc", span_start},
        {"swa_block_table", window_page},
        {"decode_swa_indices", slot},
        {"decode_compressed_indices", decode_record},
        {"decode_compressed_lens", decode_record_len},
        {"prefill_topk_indices", topk_index},
    };
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (strcmp(name, known[i].name) == 0) {
            return known[i].value;
        }
    }
    return small_number;
}

/* In the order of the table: query_start_loc stands before what is drawn from it. */
void random_fill_inputs(struct random_case *random, struct random_source *source)
{
    for (size_t i = 0; i < random->info->n_args; i++) {
        const struct kiln_arg *arg = &random->info->args[i];
        const struct random_array *array = &random->arrays[i];
        value_fn value = value_of(arg->name);
        if (arg->kind != KILN_ARG_INPUT || !array->present) {
            continue;
        }
        if (strcmp(arg->name, "query_start_loc") == 0) {
            fill_query_start_loc(random, source, (int)i);
            continue;
        }
        for (int64_t row = 0; row < array->rows; row++) {
            for (int64_t column = 0; column < array->stride; column++) {
                random_store(random, (int)i, row, column, value(random, source, row));
            }
        }
    }
}

/* All rows, a part of them, none, or nonsense. */
static int64_t some_tokens(const struct random_case *random, struct random_source *source)
{
    bool has_rows = random_arg_index(random->info, "num_rows") >= 0;
    int64_t n_tokens =
        random->extents[has_rows ? KILN_EXTENT_CONTEXT_TOKENS : KILN_EXTENT_TOKENS];
    int64_t percent = random_range(source, 1, 100);
    if (percent <= 30) {
        return n_tokens;
    }
    if (percent <= 80) {
        return random_range(source, 0, n_tokens);
    }
    return percent <= 90 ? random_range(source, n_tokens, n_tokens + 9) : wild(source);
}

static int64_t some_width(const struct random_case *random, struct random_source *source)
{
    int64_t capacity = random_field(random, "capacity", 1);
    int64_t percent = random_range(source, 1, 100);
    if (percent <= 30) {
        return capacity;
    }
    if (percent <= 60) {
        return clamp(INT64_C(128) << random_range(source, 0, 6), 0, capacity);
    }
    return percent <= 90 ? random_range(source, 0, capacity + 2) : wild(source);
}

/* Whichever of the two is frozen bounds the other. */
static int64_t workspace_rows(const struct random_case *random,
                              struct random_source *source, int64_t base)
{
    int64_t n_requests = random->extents[KILN_EXTENT_REQUESTS];
    int64_t most = int32_max / clamp(n_requests, 1, int32_max);
    int64_t rows = random_chance(source, 80) ? base + random_range(source, 0, 3000)
                                             : random_range(source, base, most);
    return clamp(rows, base, most);
}

static int64_t count_value(const struct random_case *random, struct random_source *source,
                           const char *name)
{
    if (strcmp(name, "first_request") == 0) {
        return random_chance(source, 90)
                   ? random_range(source, -1, random->extents[KILN_EXTENT_REQUESTS] + 1)
                   : wild(source);
    }
    if (strcmp(name, "active_width") == 0) {
        return some_width(random, source);
    }
    if (strcmp(name, "workspace_rows") == 0) {
        int base = random_arg_index(random->info, "swa_base");
        bool bounded = random->counts[base].kind == KILN_COUNT_VALUE;
        return workspace_rows(random, source, bounded ? random->counts[base].value : 0);
    }
    if (strcmp(name, "swa_base") == 0) {
        int rows = random_arg_index(random->info, "workspace_rows");
        /* Rows by address come later and leave room for any base chosen here. */
        bool bounded =
            random->counts[rows].kind == KILN_COUNT_VALUE || random->arena != NULL;
        return random_range(source, 0, bounded ? random->counts[rows].value : 4000);
    }
    return some_tokens(random, source);
}

void random_fill_counts(struct random_case *random, struct random_source *source,
                        bool frozen)
{
    for (size_t i = 0; i < random->info->n_args; i++) {
        struct kiln_count *count = &random->counts[i];
        int32_t kind = frozen ? KILN_COUNT_VALUE : KILN_COUNT_DEVICE;
        if (random->info->args[i].kind != KILN_ARG_COUNT || count->kind != kind) {
            continue;
        }
        count->value = (int32_t)count_value(random, source, random->info->args[i].name);
        if (!frozen) {
            random_store(random, (int)i, 0, 0, count->value);
        }
    }
}
