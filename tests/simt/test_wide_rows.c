/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Row addresses of 300,000 rows of 8,192 columns: the emitted source, executed on the
 * blocks of three bands of rows (wide_call.h), against the reference. The kernel sees whole
 * arrays but may touch the bands alone, so an offset that wraps at 32 bits is reported; that
 * it would be is shown by sources with one offset of 32 bits each.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kiln/kiln.h"

#include "cpu_build.h"
#include "cpu_child.h"
#include "cpu_tools.h"
#include "support/wide_call.h"

enum { NARROWINGS = 4, N_SMS = 132, LIMIT_MS = 20000 };

/* What makes an offset 64 bits wide in the source, and what would make it an int. */
struct narrowing {
    const char *from, *to;
};

struct row_case {
    struct wide_case wide;
    struct narrowing narrowings[NARROWINGS];
};

#define CAST(what)                                                                       \
    {                                                                                    \
        "static_cast<long long>(" what ")", "static_cast<int>(" what ")"                 \
    }
#define ROW(stride)                                                                      \
    {                                                                                    \
        "static_cast<long long>(row) * " stride, "static_cast<int>(row) * " stride       \
    }
#define TABLE_ROW                                                                        \
    {                                                                                    \
        "constexpr unsigned long long kRowBytes", "constexpr unsigned kRowBytes"         \
    }
#define MATRIX_ROW(stride)                                                               \
    {                                                                                    \
        "matrix_row * " stride, "static_cast<int>(matrix_row) * " stride                 \
    }

static const struct kiln_shape compressed_slots = {
    .compressed_slots = {.compress_ratio = 1,
                         .block_size = 4,
                         .table_width = 40,
                         .table_stride = WIDE_STRIDE,
                         .dcp_world = 1,
                         .dcp_interleave = 1},
};

static const struct kiln_shape c128a_topk = {
    .c128a_topk = {.compress_ratio = 4,
                   .capacity = WIDE_STRIDE,
                   .block_size = 2,
                   .table_width = 128,
                   .table_stride = WIDE_STRIDE,
                   .dcp_world = 1,
                   .dcp_interleave = 1},
};

static const struct kiln_shape global_topk = {
    .global_topk = {.topk = 8,
                    .topk_stride = WIDE_STRIDE,
                    .slots_stride = WIDE_STRIDE,
                    .block_size = 4,
                    .table_width = 16,
                    .table_stride = WIDE_STRIDE,
                    .dcp_world = 1,
                    .dcp_interleave = 1},
};

static const struct kiln_shape combine_topk_swa = {
    .combine_topk_swa = {.topk = 4,
                         .topk_stride = WIDE_STRIDE,
                         .window = 4,
                         .compress_ratio = 4,
                         .align = 8,
                         .combined_stride = WIDE_STRIDE},
};

static const struct kiln_shape swa_indices = {
    .swa_indices = {.window = 8,
                    .index_width = 8,
                    .index_stride = WIDE_STRIDE,
                    .block_size = 4,
                    .table_width = 40,
                    .table_stride = WIDE_STRIDE,
                    .causal = 1,
                    .dcp_world = 1,
                    .dcp_interleave = 1},
};

static const struct kiln_shape req_to_global = {
    .req_to_global = {.topk = 8,
                      .topk_stride = WIDE_STRIDE,
                      .out_stride = WIDE_STRIDE,
                      .block_size = 4,
                      .page_stride = 6,
                      .table_width = 16,
                      .table_stride = WIDE_STRIDE,
                      .dcp_world = 1,
                      .dcp_interleave = 1},
};

/* All its rows but the tables' are packed, so they have to be wide. */
static const struct kiln_shape mixed_decode = {
    .mixed_sparse_indices = {.window = 8,
                             .swa_width = WIDE_STRIDE,
                             .compress_ratio = 4,
                             .decode_topk = WIDE_STRIDE,
                             .decode_local = 1,
                             .swa_block_size = 4,
                             .swa_span = 4,
                             .swa_table_width = 40,
                             .swa_table_stride = WIDE_STRIDE,
                             .block_size = 4,
                             .span = 4,
                             .table_width = 16,
                             .table_stride = WIDE_STRIDE},
};

static const struct kiln_shape mixed_prefill = {
    .mixed_sparse_indices = {.window = 8,
                             .swa_width = 8,
                             .compress_ratio = 1,
                             .topk = WIDE_STRIDE,
                             .swa_block_size = 4,
                             .swa_span = 4,
                             .swa_table_width = 40,
                             .swa_table_stride = WIDE_STRIDE,
                             .block_size = 4,
                             .span = 4,
                             .table_width = 16,
                             .table_stride = WIDE_STRIDE},
};

#define EVERY_ROW .n_tokens = WIDE_ROWS, .n_requests = WIDE_ROWS
#define FEW_TOKENS .n_tokens = WIDE_BAND_ROWS, .n_requests = WIDE_ROWS

static const struct row_case row_cases[] = {
    {{"picks", KILN_OP_GLOBAL_TOPK, global_topk, EVERY_ROW},
     {ROW("kTopkStride"), ROW("kSlotsStride"), TABLE_ROW}},
    {{"decode", KILN_OP_C128A_TOPK, c128a_topk, EVERY_ROW, .n_decode = WIDE_ROWS,
      .active_width = 256},
     {ROW("kCapacity"), {"const long long table_row", "const int table_row"}}},
    {{"prefill", KILN_OP_C128A_TOPK, c128a_topk, EVERY_ROW, .active_width = 256},
     {{"const long long prefill_row", "const int prefill_row"}}},
    {{"chunk", KILN_OP_COMBINE_TOPK_SWA, combine_topk_swa, .n_tokens = WIDE_ROWS,
      .n_requests = 1},
     {ROW("kTopkStride"), ROW("kCombinedStride")}},
    {{"window", KILN_OP_SWA_INDICES, swa_indices, EVERY_ROW},
     {ROW("kIndexStride"), CAST("request")}},
    {{"decode", KILN_OP_MIXED_SPARSE_INDICES, mixed_decode, EVERY_ROW,
      .n_decode = WIDE_ROWS},
     {MATRIX_ROW("kSwaWidth"),
      MATRIX_ROW("kDecodeTopk"),
      CAST("row.request"),
      {"token * kColumns", "static_cast<int>(token * kColumns)"}}},
    {{"prefill", KILN_OP_MIXED_SPARSE_INDICES, mixed_prefill, EVERY_ROW},
     {MATRIX_ROW("kTopk"), CAST("row.request")}},
    {.wide = {"first", KILN_OP_COMPRESSED_SLOTS, compressed_slots, FEW_TOKENS}},
    {.wide = {"at 2^31", KILN_OP_COMPRESSED_SLOTS, compressed_slots, FEW_TOKENS,
              .first_request = 262144 - WIDE_BAND_ROWS / 2}},
    {{"last", KILN_OP_COMPRESSED_SLOTS, compressed_slots, FEW_TOKENS,
      .first_request = WIDE_ROWS - WIDE_BAND_ROWS},
     {CAST("place.request")}},
    {{"picks", KILN_OP_REQ_TO_GLOBAL, req_to_global, EVERY_ROW},
     {ROW("kTopkStride"), ROW("kOutStride"), TABLE_ROW}},
};
enum { N_ROW_CASES = sizeof(row_cases) / sizeof(row_cases[0]) };

struct fixture {
    char folder[64];
    struct cpu_builder builder;
};

/* ---- the source */

static char *emit(const struct wide_case *spec)
{
    struct kiln_error err = {.status = KILN_OK};
    size_t size = 0;
    if (kiln_emit_source(spec->op, &spec->shape, 0, NULL, 0, &size, &err) != KILN_OK) {
        fail_msg("%s", err.message);
    }
    char *text = malloc(size + 1);
    assert_non_null(text);
    assert_int_equal(
        kiln_emit_source(spec->op, &spec->shape, 0, text, size + 1, &size, &err),
        KILN_OK);
    return text;
}

/* With every such offset an int; takes the text. */
static char *narrow(char *text, const struct narrowing *narrowing)
{
    int n_found = 0;
    for (char *at = strstr(text, narrowing->from); at != NULL; n_found++) {
        char *next = cpu_format("%.*s%s%s", (int)(at - text), text, narrowing->to,
                                at + strlen(narrowing->from));
        assert_non_null(next);
        at = strstr(next + (at - text) + strlen(narrowing->to), narrowing->from);
        free(text);
        text = next;
    }
    if (n_found == 0) {
        fail_msg("no \"%s\" in the source: name what makes the offset 64 bits wide",
                 narrowing->from);
    }
    return text;
}

static void build(struct fixture *fixture, const struct wide_case *spec, char *source,
                  struct cpu_child *out)
{
    char *entry = cpu_format("kiln_%s", kiln_op_info_get(spec->op)->name);
    char *program = NULL;
    assert_int_equal(cpu_build(&fixture->builder, entry, source, &program), CLI_DONE);
    cpu_child_init(out, program);
    free(entry);
    free(source);
}

/* ---- the launch */

static void add_array(const struct wide_call *call, size_t i, int band,
                      struct cpu_launch *launch)
{
    const struct wide_array *from = &call->arrays[i];
    struct kiln_simt_array *to = &launch->arrays[launch->request.n_arrays];
    int64_t first = 0, n = wide_call_rows(call, i, band, &first);
    *to = (struct kiln_simt_array){
        .args_offset = call->info->args[i].offset,
        .rows = (uint64_t)n,
        .width = (uint64_t)from->width,
        .stride = (uint64_t)from->stride,
        .first_row = (uint64_t)first,
        .elem_bytes = (uint32_t)from->elem_bytes,
        .data_bytes = (uint64_t)n * (uint64_t)from->stride * from->elem_bytes,
        .is_output = call->info->args[i].kind == KILN_ARG_OUTPUT,
    };
    (void)snprintf(to->name, sizeof(to->name), "%s", call->info->args[i].name);
    unsigned char *copy = malloc(to->data_bytes + 1);
    assert_non_null(copy);
    memcpy(copy, wide_call_row(call, i, first), to->data_bytes);
    if (to->is_output) {
        memset(copy, 0xA5, to->data_bytes);
    }
    launch->data[launch->request.n_arrays++] = copy;
}

/* The blocks of the band's rows; a block has the same number of rows in all of the grid. */
static void init_launch(const struct wide_call *call, int band, struct cpu_launch *out)
{
    const struct wide_case *spec = call->spec;
    struct kiln_geometry geometry;
    struct kiln_error err = {.status = KILN_OK};
    memset(out, 0, sizeof(*out));
    if (kiln_geometry_make(spec->op, &spec->shape, &call->args, N_SMS, &geometry, &err) !=
        KILN_OK) {
        fail_msg("%s", err.message);
    }
    int64_t rows = (spec->n_tokens + geometry.grid_x - 1) / geometry.grid_x;
    out->args = call->args.bytes;
    out->request = (struct kiln_simt_request){
        .magic = KILN_SIMT_MAGIC,
        .grid_x = geometry.grid_x,
        .grid_y = geometry.grid_y,
        .threads = geometry.threads,
        .args_bytes = (uint32_t)call->info->args_bytes,
        .limit_ms = LIMIT_MS,
        .first_x = (uint32_t)(wide_call_first_row(call, band) / rows),
        .n_x = (uint32_t)((WIDE_BAND_ROWS + rows - 1) / rows),
    };
    for (size_t i = 0; i < call->info->n_args; i++) {
        if (call->arrays[i].host != NULL) {
            add_array(call, i, band, out);
        }
    }
}

static void finish_launch(struct cpu_launch *launch)
{
    for (uint32_t i = 0; i < launch->request.n_arrays; i++) {
        free(launch->data[i]);
    }
}

/* ---- comparing */

static int64_t count_mapped(const unsigned char *row, const struct kiln_simt_array *array)
{
    int64_t n_mapped = 0;
    for (uint64_t column = 0; column < array->width; column++) {
        int32_t low;
        memcpy(&low, row + column * array->elem_bytes, sizeof(low));
        n_mapped += low >= 0;
    }
    return n_mapped;
}

/* The band's rows of an output, where the reference wrote more than -1. */
static void compare_output(const struct wide_call *call, size_t i, int band,
                           const struct kiln_simt_array *array, const unsigned char *got)
{
    const size_t row_bytes = (size_t)array->stride * array->elem_bytes;
    const int64_t first = wide_call_first_row(call, band);
    int64_t n_mapped = 0;
    for (int64_t row = first; row < first + WIDE_BAND_ROWS; row++) {
        const unsigned char *at =
            got + (size_t)(row - (int64_t)array->first_row) * row_bytes;
        const unsigned char *expected = wide_call_row(call, i, row);
        if (memcmp(at, expected, row_bytes) != 0) {
            fail_msg("%s of %s: row %lld of %s differs from the reference",
                     call->spec->label, call->info->name, (long long)row, array->name);
        }
        n_mapped += count_mapped(expected, array);
    }
    assert_true(n_mapped > 0);
}

static void compare(const struct wide_call *call, int band,
                    const struct cpu_launch *launch)
{
    uint32_t at = 0;
    for (size_t i = 0; i < call->info->n_args; i++) {
        if (call->arrays[i].host == NULL) {
            continue;
        }
        if (call->info->args[i].kind == KILN_ARG_OUTPUT && call->arrays[i].rows > 0) {
            compare_output(call, i, band, &launch->arrays[at], launch->data[at]);
        }
        at++;
    }
}

static void check_case(struct fixture *fixture, const struct wide_case *spec)
{
    struct wide_call call;
    struct cpu_child child;
    struct kiln_error err = {.status = KILN_OK};
    wide_call_init(&call, spec);
    if (kiln_reference(spec->op, &spec->shape, &call.args, &err) != KILN_OK) {
        fail_msg("%s", err.message);
    }
    build(fixture, spec, emit(spec), &child);
    for (int band = 0; band < wide_call_n_bands(&call); band++) {
        struct cpu_launch launch;
        char why[CPU_WHY_BYTES];
        init_launch(&call, band, &launch);
        if (!cpu_child_launch(&child, &launch, why)) {
            fail_msg("%s of %s, band %d: %s", spec->label, call.info->name, band, why);
        }
        compare(&call, band, &launch);
        finish_launch(&launch);
    }
    cpu_child_finish(&child);
    wide_call_finish(&call);
}

static void wide_rows_equal_the_reference(void **state)
{
    for (size_t i = 0; i < N_ROW_CASES; i++) {
        check_case(*state, &row_cases[i].wide);
    }
}

/* ---- would it be seen? */

static void check_narrowing(struct fixture *fixture, const struct wide_case *spec,
                            const struct narrowing *narrowing)
{
    struct wide_call call;
    struct cpu_child child;
    struct cpu_launch launch;
    char why[CPU_WHY_BYTES];
    wide_call_init(&call, spec);
    build(fixture, spec, narrow(emit(spec), narrowing), &child);
    init_launch(&call, wide_call_n_bands(&call) - 1, &launch);
    bool is_done = cpu_child_launch(&child, &launch, why);
    if (is_done || (strstr(why, "undefined behaviour") == NULL &&
                    strstr(why, "which is in no array") == NULL)) {
        fail_msg("%s of %s with %s: expected an address out of the arrays, got: %s",
                 spec->label, call.info->name, narrowing->to, is_done ? "no fault" : why);
    }
    finish_launch(&launch);
    cpu_child_finish(&child);
    wide_call_finish(&call);
}

static void row_offset_of_32_bits_is_reported(void **state)
{
    for (size_t i = 0; i < N_ROW_CASES; i++) {
        for (size_t j = 0; j < NARROWINGS; j++) {
            if (row_cases[i].narrowings[j].from != NULL) {
                check_narrowing(*state, &row_cases[i].wide, &row_cases[i].narrowings[j]);
            }
        }
    }
}

static int make_fixture(void **state)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));
    assert_non_null(fixture);
    (void)snprintf(fixture->folder, sizeof(fixture->folder), "/tmp/kiln-wide-XXXXXX");
    assert_non_null(mkdtemp(fixture->folder));
    *state = fixture;
    return cpu_builder_open(CPU_CHECK_KILN, fixture->folder, &fixture->builder);
}

static int remove_fixture(void **state)
{
    struct fixture *fixture = *state;
    cpu_builder_close(&fixture->builder);
    cpu_remove_folder(fixture->folder);
    free(fixture);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wide_rows_equal_the_reference),
        cmocka_unit_test(row_offset_of_32_bits_is_reported),
    };
    return cmocka_run_group_tests(tests, make_fixture, remove_fixture);
}
