/* SPDX-License-Identifier: Apache-2.0 */
/* See wide_call.h. An array's addresses are all mapped; islands of it are memory. */
#include <assert.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "support/wide_call.h"

enum { POISON = 0xA5 };

/* What inert rows share, again and again. An array of more bytes is banded. */
static const size_t shared_bytes = (size_t)64 << 20;

static const int64_t first_rows[WIDE_BANDS] = {0, 262144 - WIDE_BAND_ROWS / 2,
                                               WIDE_ROWS - WIDE_BAND_ROWS};

/* ---- memory */

static void *map(void *at, size_t bytes, int flags, int file)
{
    void *memory = mmap(at, bytes, PROT_READ | PROT_WRITE, flags, file, 0);
    assert(memory != MAP_FAILED);
    return memory;
}

static void *map_own(void *at, size_t bytes)
{
    int fixed = at != NULL ? MAP_FIXED : 0;
    return map(at, bytes, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | fixed, -1);
}

/* The band's rows to the pages around them. */
static void map_island(const struct wide_array *array, int band, int value)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const size_t row_bytes = (size_t)array->stride * array->elem_bytes;
    size_t begin = (size_t)first_rows[band] * row_bytes;
    size_t end = begin + WIDE_BAND_ROWS * row_bytes;
    begin -= begin % page;
    end = (end + page - 1) / page * page;
    map_own(array->host + begin, end - begin);
    memset(array->host + begin, value, end - begin);
}

static void map_array(struct wide_call *call, struct wide_array *array, bool is_output)
{
    int value = is_output ? POISON : 0;
    array->is_banded = array->bytes > shared_bytes;
    array->bytes = (array->bytes / shared_bytes + 1) * shared_bytes;
    array->host = map_own(NULL, array->bytes);
    if (!array->is_banded) {
        memset(array->host, value,
               (size_t)(array->rows * array->stride) * array->elem_bytes);
        return;
    }
    for (size_t at = 0; is_output && at < array->bytes; at += shared_bytes) {
        map(array->host + at, shared_bytes, MAP_SHARED | MAP_FIXED, call->shared);
    }
    for (int band = 0; band < WIDE_BANDS; band++) {
        map_island(array, band, value);
    }
}

/* ---- contents */

static int64_t below(int64_t row, int64_t column, int64_t n)
{
    struct random_source source = {(uint64_t)row * 8192 + (uint64_t)column};
    return (int64_t)(random_next(&source) >> 32) % n;
}

/* All tokens in one request, one in each, or all in those from first_request. */
static int64_t bound(const struct wide_case *spec, int64_t request)
{
    if (spec->n_tokens >= spec->n_requests) {
        return request * (spec->n_tokens / spec->n_requests);
    }
    int64_t begun = request - spec->first_request;
    return begun < 0 ? 0 : begun < spec->n_tokens ? begun : spec->n_tokens;
}

static int64_t value_of(const struct wide_case *spec, const char *name, int64_t row,
                        int64_t column)
{
    const int64_t per_request = spec->n_tokens / spec->n_requests;
    if (strcmp(name, "query_start_loc") == 0) {
        return bound(spec, row);
    }
    if (strcmp(name, "seq_lens") == 0) {
        return per_request + 90 + below(row, 0, 60);
    }
    if (strcmp(name, "gather_lens") == 0) {
        return per_request;
    }
    if (strcmp(name, "token_to_req") == 0 || strcmp(name, "req_id") == 0) {
        return row % spec->n_requests;
    }
    if (strcmp(name, "is_valid_token") == 0) {
        return 1;
    }
    if (strcmp(name, "positions") == 0) {
        return below(row, 0, 1200);
    }
    /* pages; ids, some of them none */
    return strstr(name, "table") != NULL ? below(row, column, 100000)
                                         : below(row, column, 66) - 1;
}

static void put(const struct wide_array *array, int64_t row, int64_t column,
                int64_t value)
{
    const size_t index = (size_t)row * (size_t)array->stride + (size_t)column;
    unsigned char *at = array->host + index * array->elem_bytes;
    const int32_t narrow = (int32_t)value;
    if (array->elem_bytes == 4) {
        memcpy(at, &narrow, sizeof(narrow));
    } else if (array->elem_bytes == 8) {
        memcpy(at, &value, sizeof(value));
    } else {
        *at = (unsigned char)value;
    }
}

static void fill_rows(struct wide_call *call, size_t i, int64_t first, int64_t n)
{
    const struct wide_array *array = &call->arrays[i];
    for (int64_t row = first; row < first + n; row++) {
        for (int64_t column = 0; column < array->width; column++) {
            put(array, row, column,
                value_of(call->spec, call->info->args[i].name, row, column));
        }
    }
}

/* What requests have is there for all of them, what tokens and tables have in the bands. */
static void fill(struct wide_call *call, size_t i)
{
    const struct wide_array *array = &call->arrays[i];
    const enum kiln_extent extent = call->info->args[i].extent;
    bool of_requests =
        extent == KILN_EXTENT_REQUESTS || extent == KILN_EXTENT_REQUEST_BOUNDS;
    if (of_requests || array->rows <= WIDE_BAND_ROWS) {
        fill_rows(call, i, 0, array->rows);
        return;
    }
    for (int band = 0; band < WIDE_BANDS; band++) {
        fill_rows(call, i, first_rows[band], WIDE_BAND_ROWS);
    }
}

/* ---- the call */

static int64_t extent_of(const struct wide_case *spec, enum kiln_extent extent)
{
    switch (extent) {
    case KILN_EXTENT_TOKENS:
    case KILN_EXTENT_ROWS:
    case KILN_EXTENT_CONTEXT_TOKENS:
        return spec->n_tokens;
    case KILN_EXTENT_DECODE_TOKENS:
        return spec->n_decode;
    case KILN_EXTENT_PREFILL_TOKENS:
        return spec->n_tokens - spec->n_decode;
    case KILN_EXTENT_REQUESTS:
    case KILN_EXTENT_TABLE_ROWS:
    case KILN_EXTENT_SWA_TABLE_ROWS:
        return spec->n_requests;
    case KILN_EXTENT_REQUEST_BOUNDS:
        return spec->n_requests + 1;
    case KILN_EXTENT_NONE:
    case KILN_EXTENT_FIRST_TOKENS:
    case KILN_EXTENT_DECODE_REQUESTS:
    case KILN_EXTENT_PREFILL_REQUESTS:
    case KILN_EXTENT_SPANS:
    case KILN_N_EXTENTS:
        break;
    }
    return 0;
}

/* -1: it is left out. */
static int32_t count_of(const struct wide_case *spec, const char *name)
{
    if (strcmp(name, "num_decode_tokens") == 0) {
        return spec->n_decode;
    }
    if (strcmp(name, "active_width") == 0) {
        return spec->active_width > 0 ? spec->active_width : -1;
    }
    if (strcmp(name, "workspace_rows") == 0) {
        return 2 * WIDE_ROWS;
    }
    return strcmp(name, "swa_base") == 0 ? 64 : -1;
}

static void add_array(struct wide_call *call, size_t i)
{
    const struct kiln_arg *arg = &call->info->args[i];
    const struct kiln_shape *shape = &call->spec->shape;
    struct wide_array *array = &call->arrays[i];
    bool is_given = !arg->optional || strcmp(arg->name, "is_valid_token") == 0 ||
                    strcmp(arg->name, "decode_compressed_indices") == 0;
    array->rows = extent_of(call->spec, arg->extent);
    array->width = arg->width != NULL ? arg->width(shape) : 1;
    array->stride =
        arg->stride_field >= 0 ? shape->fields[arg->stride_field] : array->width;
    array->elem_bytes = kiln_dtype_bytes(arg->dtype);
    array->bytes = (size_t)(array->rows * array->stride) * array->elem_bytes;
    if (!is_given) {
        return;
    }
    map_array(call, array, arg->kind == KILN_ARG_OUTPUT);
    memcpy(call->args.bytes + arg->offset, &array->host, sizeof(array->host));
    if (arg->kind == KILN_ARG_INPUT) {
        fill(call, i);
    }
}

static void add_number(struct wide_call *call, const struct kiln_arg *arg)
{
    if (arg->kind == KILN_ARG_COUNT) {
        struct kiln_count count = {.value = count_of(call->spec, arg->name)};
        count.kind = count.value >= 0 ? KILN_COUNT_VALUE : KILN_COUNT_ABSENT;
        memcpy(call->args.bytes + arg->offset, &count, sizeof(count));
        return;
    }
    int32_t number = (int32_t)extent_of(call->spec, arg->extent);
    memcpy(call->args.bytes + arg->offset, &number, sizeof(number));
}

void wide_call_init(struct wide_call *out, const struct wide_case *spec)
{
    memset(out, 0, sizeof(*out));
    out->spec = spec;
    out->info = kiln_op_info_get(spec->op);
    out->shared = memfd_create("kiln-wide-call", MFD_CLOEXEC);
    int sized = ftruncate(out->shared, (off_t)shared_bytes);
    assert(sized == 0 && out->info->n_args <= RANDOM_ARGS);
    (void)sized;
    for (size_t i = 0; i < out->info->n_args; i++) {
        const struct kiln_arg *arg = &out->info->args[i];
        if (arg->kind == KILN_ARG_INPUT || arg->kind == KILN_ARG_OUTPUT) {
            add_array(out, i);
        } else {
            add_number(out, arg);
        }
    }
}

void wide_call_finish(struct wide_call *call)
{
    for (size_t i = 0; i < RANDOM_ARGS; i++) {
        if (call->arrays[i].host != NULL) {
            munmap(call->arrays[i].host, call->arrays[i].bytes);
        }
    }
    close(call->shared);
    memset(call, 0, sizeof(*call));
}

int wide_call_n_bands(const struct wide_call *call)
{
    return call->spec->n_tokens > WIDE_BAND_ROWS ? WIDE_BANDS : 1;
}

int64_t wide_call_first_row(const struct wide_call *call, int band)
{
    return call->spec->n_tokens > WIDE_BAND_ROWS ? first_rows[band] : 0;
}

int64_t wide_call_rows(const struct wide_call *call, size_t i, int band, int64_t *first)
{
    const struct wide_array *array = &call->arrays[i];
    if (!array->is_banded) {
        *first = 0;
        return array->rows;
    }
    *first = wide_call_n_bands(call) > 1 ? first_rows[band] : call->spec->first_request;
    return WIDE_BAND_ROWS;
}

unsigned char *wide_call_row(const struct wide_call *call, size_t i, int64_t row)
{
    const struct wide_array *array = &call->arrays[i];
    return array->host + (size_t)row * (size_t)array->stride * array->elem_bytes;
}
