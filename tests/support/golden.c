/* SPDX-License-Identifier: Apache-2.0 */
/* See golden.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "support/golden.h"

const struct golden_shape golden_shapes[N_GOLDEN_SHAPES] = {
    {"c128a_topk-1",
     KILN_OP_C128A_TOPK,
     {.c128a_topk = {128, 8192, 2, 4096, 4096, 1, 1}}},
    {"c128a_topk-2", KILN_OP_C128A_TOPK, {.c128a_topk = {128, 7936, 2, 977, 980, 4, 2}}},
    {"combine_topk_swa-1",
     KILN_OP_COMBINE_TOPK_SWA,
     {.combine_topk_swa = {512, 512, 128, 4, 0, 128, 640}}},
    {"combine_topk_swa-2",
     KILN_OP_COMBINE_TOPK_SWA,
     {.combine_topk_swa = {7936, 7940, 133, 128, 5, 64, 8192}}},
    {"global_topk-1",
     KILN_OP_GLOBAL_TOPK,
     {.global_topk = {512, 512, 512, 64, 4096, 4096, 1, 1}}},
    {"global_topk-2",
     KILN_OP_GLOBAL_TOPK,
     {.global_topk = {1024, 1030, 1025, 4352, 137, 139, 4, 2}}},
    {"swa_indices-1",
     KILN_OP_SWA_INDICES,
     {.swa_indices = {128, 128, 128, 64, 16384, 16384, 0, 1, 1, 1, KILN_DCP_SHARDED}}},
    {"swa_indices-2",
     KILN_OP_SWA_INDICES,
     {.swa_indices = {128, 192, 195, 64, 513, 520, 5, 0, 4, 2, KILN_DCP_REPLICATED}}},
    {"mixed_sparse_indices-1",
     KILN_OP_MIXED_SPARSE_INDICES,
     {.mixed_sparse_indices = {128, 128, 0, 4, 512, 512, 1, 64, 64, 16384, 16384, 64, 64,
                               4096, 4096}}},
    {"mixed_sparse_indices-2",
     KILN_OP_MIXED_SPARSE_INDICES,
     {.mixed_sparse_indices = {128, 133, 6, 128, 8192, 16, 0, 64, 192, 4096, 4100, 2, 6,
                               977, 980}}},
    {"compressed_slots-1",
     KILN_OP_COMPRESSED_SLOTS,
     {.compressed_slots = {4, 64, 4096, 4096, 1, 1}}},
    {"compressed_slots-2",
     KILN_OP_COMPRESSED_SLOTS,
     {.compressed_slots = {128, 2, 1001, 1003, 4, 2}}},
    {"req_to_global-1",
     KILN_OP_REQ_TO_GLOBAL,
     {.req_to_global = {2048, 2048, 2048, 64, 64, 2560, 2560, 1, 1}}},
    {"req_to_global-2",
     KILN_OP_REQ_TO_GLOBAL,
     {.req_to_global = {2048, 2050, 2049, 64, 4352, 321, 324, 1, 1}}},
    {"token_to_req-1", KILN_OP_TOKEN_TO_REQ, {.token_to_req = {0}}},
    {"is_valid_token-1", KILN_OP_IS_VALID_TOKEN, {.is_valid_token = {1}}},
    {"gather_lens-1", KILN_OP_GATHER_LENS, {.gather_lens = {128}}},
    {"image_visibility-1", KILN_OP_IMAGE_VISIBILITY, {.image_visibility = {16}}},
};

static bool is_update(void)
{
    const char *update = getenv("KILN_UPDATE_GOLDEN");

    return update != NULL && strcmp(update, "1") == 0;
}

/* What wrote has not compared. */
static void refuse_update(const char *name)
{
    if (is_update()) {
        fail_msg("%s is written anew: run again without KILN_UPDATE_GOLDEN", name);
    }
}

static const char *path_of(const char *name, const char *suffix, char path[512])
{
    const char *data = getenv("KILN_TEST_DATA");

    if (data == NULL) {
        fail_msg("KILN_TEST_DATA is not set: expected the folder tests/");
    }
    assert_in_range(snprintf(path, 512, "%s/golden/%s%s", data, name, suffix), 1, 511);
    return path;
}

static void rewrite(const char *path, const char *text)
{
    FILE *file = fopen(path, "wb");

    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, strlen(text), file), strlen(text));
    assert_int_equal(fclose(file), 0);
}

static char *read_whole(const char *path)
{
    FILE *file = fopen(path, "rb");
    long size;
    char *text;

    if (file == NULL) {
        fail_msg("%s is not there: make it with KILN_UPDATE_GOLDEN=1", path);
    }
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    size = ftell(file);
    assert_int_equal(fseek(file, 0, SEEK_SET), 0);
    text = calloc(1, (size_t)size + 1);
    assert_non_null(text);
    assert_int_equal(fread(text, 1, (size_t)size, file), size);
    fclose(file);
    return text;
}

/* The number of the first line that differs, from 1; 0: none does. */
static int differing_line(const char *a, const char *b)
{
    int line = 1;

    while (*a == *b && *a != '\0') {
        line += *a == '\n' ? 1 : 0;
        a++;
        b++;
    }
    return *a == *b ? 0 : line;
}

static void check_file(const char *name, const char *suffix, const char *text)
{
    char path[512];
    char *kept;
    int line;

    path_of(name, suffix, path);
    if (is_update()) {
        rewrite(path, text);
        return;
    }
    kept = read_whole(path);
    line = differing_line(kept, text);
    free(kept);
    if (line != 0) {
        fail_msg("%s differs from line %d on; if that is meant, KILN_UPDATE_GOLDEN=1 "
                 "writes it anew",
                 path, line);
    }
}

void golden_check(const char *name, const char *suffix, const char *text)
{
    check_file(name, suffix, text);
    refuse_update(name);
}

void golden_check_source(const struct golden_shape *golden, const char *source)
{
    const char *body = strstr(source, "\n#line");
    char prelude[4096];

    assert_non_null(body);
    body++;
    assert_in_range(body - source, 1, sizeof prelude - 1);
    memcpy(prelude, source, (size_t)(body - source));
    prelude[body - source] = '\0';
    check_file(golden->name, ".cu", prelude);
    check_file(kiln_op_info_get(golden->op)->name, ".cu", body);
    refuse_update(golden->name);
}
