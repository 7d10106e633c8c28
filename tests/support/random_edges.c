/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What lies at the ends of what a random case may hold: shapes of no round number and of the
 * largest, many requests, one request with all tokens, and in any array what the shape's own
 * numbers make an edge. Knows arrays by name only where their contract forbids some values.
 */
#include <string.h>

#include "support/random_case.h"

enum { EDGES = 160 };

static const int64_t two31 = INT64_C(1) << 31;

static bool has_text(const char *name, const char *part)
{
    return strstr(name, part) != NULL;
}

/* What fields of unknown names are drawn from begins at their least value. */
static int64_t field_span(const char *name)
{
    static const struct {
        const char *part;
        int64_t span;
    } known[] = {
        {"capacity", 8300}, {"topk", 2100},  {"block_size", 600},  {"table_width", 600},
        {"dcp_world", 9},   {"window", 700}, {"image_width", 300}, {"align", 300},
    };
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (has_text(name, known[i].part)) {
            return known[i].span;
        }
    }
    return 300;
}

/* Fields that cost no memory may be as large as they can be. */
static bool may_be_huge(const char *name)
{
    return has_text(name, "block_size") || has_text(name, "dcp_world") ||
           has_text(name, "compress_ratio");
}

int64_t random_edge_field(struct random_source *source,
                          const struct kiln_shape_field *field)
{
    static const int64_t huge[] = {INT32_MAX,        INT32_MAX - 1, INT64_C(1) << 30,
                                   INT64_C(1) << 20, 65536,         65537};
    int64_t high = field->min + field_span(field->name);
    if (field->kind != KILN_FIELD_INTEGER) {
        return random_range(source, field->min, field->max);
    }
    if (may_be_huge(field->name) && random_chance(source, 15)) {
        return huge[random_range(source, 0, 5)];
    }
    return random_range(source, field->min, high < field->max ? high : field->max);
}

static int64_t *field_of(const struct kiln_op_info *info, const char *name,
                         struct kiln_shape *shape)
{
    for (size_t i = 0; i < info->n_fields; i++) {
        if (strcmp(info->fields[i].name, name) == 0) {
            return &shape->fields[i];
        }
    }
    return NULL;
}

void random_edge_shape(const struct kiln_op_info *info, struct random_source *source,
                       struct kiln_shape *shape)
{
    int64_t *interleave = field_of(info, "dcp_interleave", shape);
    int64_t *topk = field_of(info, "topk", shape);
    int64_t *world = field_of(info, "dcp_world", shape);
    const int64_t *page = field_of(info, "block_size", shape);
    /* rows that take a block several turns */
    if (topk != NULL && random_chance(source, 12)) {
        *topk = random_range(source, 4097, 9000);
    }
    if (topk != NULL && *topk > 4096 && world != NULL) {
        *world = random_range(source, 1, 5);
    }
    if (interleave == NULL || page == NULL || *page % *interleave == 0) {
        return;
    }
    /* few numbers divide a page of no round size; the page itself does */
    *interleave = random_chance(source, 50) ? *page : 1;
    for (int i = 0; i < 16; i++) {
        int64_t divisor = random_range(source, 1, *page < 600 ? *page : 600);
        if (*page % divisor == 0) {
            *interleave = divisor;
        }
    }
}

int64_t random_edge_tokens(struct random_source *source, int64_t most)
{
    int64_t n = random_range(source, 4095, 5000);
    return most >= n && random_chance(source, 15) ? n : -1;
}

int64_t random_edge_requests(struct random_source *source, int64_t most)
{
    static const int64_t values[] = {31, 32, 33, 64, 65, 1024, 1025, 1057, 2000};
    if (!random_chance(source, 8)) {
        return -1;
    }
    int64_t n = random_chance(source, 50) ? values[random_range(source, 0, 8)]
                                          : random_range(source, 10, 2000);
    return n < most ? n : most;
}

/* ---- values */

/* Numbers worth being, for elements of [low, high]. */
struct edges {
    int64_t low, high;
    int64_t values[EDGES];
    int n;
};

static void add_edge(struct edges *edges, int64_t value)
{
    for (int64_t near = -1; near <= 1; near++) {
        bool fits = edges->n < EDGES && (near <= 0 || value < edges->high) &&
                    (near >= 0 || value > edges->low);
        if (fits && value + near >= edges->low && value + near <= edges->high) {
            edges->values[edges->n++] = value + near;
        }
    }
}

static void collect_edges(const struct random_case *random, enum kiln_dtype dtype,
                          struct edges *out)
{
    int64_t tokens =
        random_field(random, "table_width", 1) * random_field(random, "block_size", 1);
    int64_t world = random_field(random, "dcp_world", 1);
    out->n = 0;
    out->low = dtype == KILN_U8 ? 0 : dtype == KILN_I32 ? INT32_MIN : INT64_MIN;
    out->high = dtype == KILN_U8 ? UINT8_MAX : dtype == KILN_I32 ? INT32_MAX : INT64_MAX;
    add_edge(out, 0);
    add_edge(out, out->low);
    add_edge(out, out->high);
    add_edge(out, tokens);
    if (world < two31 && tokens < two31) {
        add_edge(out, tokens * world);
    }
    for (int shift = 30; shift <= 40 && dtype == KILN_I64; shift++) {
        add_edge(out, INT64_C(1) << shift);
    }
    for (size_t i = 0; i < random->info->n_fields; i++) {
        add_edge(out, random->shape.fields[i]);
        if (random->shape.fields[i] > 0) {
            add_edge(out, two31 / random->shape.fields[i]);
        }
    }
    for (int i = 0; i < KILN_N_EXTENTS; i++) {
        add_edge(out, random->extents[i]);
    }
}

static void store_if_there(struct random_case *random, const char *name, int64_t row,
                           int64_t value)
{
    int arg = random_arg_index(random->info, name);
    if (arg >= 0 && random->arrays[arg].present && row < random->arrays[arg].rows) {
        random_store(random, arg, row, 0, value);
    }
}

/* Of gather_lens, where nothing else counts tokens: a request of all that an int32 counts,
 * which is replayed from before its sequence, so that it gathers more than that. */
static void edge_length(struct random_case *random, struct random_source *source, int arg)
{
    int64_t n = random->arrays[arg].rows;
    int64_t only = random_range(source, 1, n);
    int64_t last = INT32_MAX - random_range(source, 0, 1);
    for (int64_t b = 0; b < n; b++) {
        random_store(random, arg, b, 0, b < only ? 0 : last);
    }
    store_if_there(random, "seq_lens", only - 1, INT32_MAX);
    store_if_there(random, "replay_start", only - 1, -random_range(source, 0, 300));
}

/* All tokens in one request, the others empty; or as far up as an int32 counts. */
static void edge_bounds(struct random_case *random, struct random_source *source, int arg)
{
    int64_t n = random->arrays[arg].rows;
    int64_t first = random_load(random, random->arena, arg, 0, 0);
    int64_t last = random_load(random, random->arena, arg, n - 1, 0);
    int64_t only = random_range(source, 1, n);
    if (random_chance(source, 50)) {
        for (int64_t b = 0; b < n; b++) {
            random_store(random, arg, b, 0, b < only ? first : last);
        }
        return;
    }
    for (int64_t b = 0; b < n; b++) {
        int64_t at = random_load(random, random->arena, arg, b, 0);
        random_store(random, arg, b, 0, at + (INT32_MAX - last));
    }
}

static void edge_array(struct random_case *random, struct random_source *source, int arg,
                       const struct edges *edges)
{
    const struct random_array *array = &random->arrays[arg];
    int64_t cells = array->rows * array->width;
    int64_t n = random_range(source, 1, 8), at = 0;
    int64_t same = edges->values[random_range(source, 0, edges->n - 1)];
    bool is_run = random_chance(source, 30), is_whole = random_chance(source, 10);
    n = is_whole ? cells : is_run ? random_range(source, 1, array->width) : n;
    for (int64_t i = 0; i < n; i++) {
        at =
            i == 0 || !(is_run || is_whole) ? random_range(source, 0, cells - 1) : at + 1;
        random_store(random, arg, at % cells / array->width, at % array->width,
                     is_whole ? same
                              : edges->values[random_range(source, 0, edges->n - 1)]);
    }
}

void random_edge_values(struct random_case *random, struct random_source *source)
{
    if (!random_chance(source, 40)) {
        return;
    }
    for (size_t i = 0; i < random->info->n_args; i++) {
        const struct kiln_arg *arg = &random->info->args[i];
        const struct random_array *array = &random->arrays[i];
        struct edges edges;
        if (arg->kind != KILN_ARG_INPUT || !array->present || array->rows == 0 ||
            array->width == 0 || !random_chance(source, 40)) {
            continue;
        }
        if (strcmp(arg->name, "query_start_loc") == 0 &&
            random->info->op == KILN_OP_GATHER_LENS && random_chance(source, 50)) {
            edge_length(random, source, (int)i);
        } else if (strcmp(arg->name, "query_start_loc") == 0) {
            edge_bounds(random, source, (int)i);
        } else if (strcmp(arg->name, "gather_lens") != 0) {
            /* what a caller gathers has to fit what it gathers into */
            collect_edges(random, arg->dtype, &edges);
            edge_array(random, source, (int)i, &edges);
        }
    }
}
