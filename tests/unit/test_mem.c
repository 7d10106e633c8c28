/* SPDX-License-Identifier: Apache-2.0 */
/* Every byte comes from the caller's allocator, and no size overflows on its way there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/mem.h"

struct heap {
    int n_calls;
    int n_live;
    int fails; /* every call from now on */
};

static void *count(void *user, void *block, size_t size)
{
    struct heap *heap = user;

    heap->n_calls++;
    if (size == 0) {
        heap->n_live -= block != NULL;
        free(block);
        return NULL;
    }
    if (heap->fails) {
        return NULL;
    }
    heap->n_live += block == NULL;
    return realloc(block, size);
}

static bool is_zero(const void *block, size_t size)
{
    const unsigned char *bytes = block;
    unsigned char any = 0;

    for (size_t i = 0; i < size; i++) {
        any |= bytes[i];
    }
    return any == 0;
}

static void mem_blocks_are_zeroed(void **state)
{
    struct heap heap = {0};
    struct ki_mem mem = {count, &heap};
    void *block;

    for (int round = 0; round < 2; round++) {
        block = ki_mem_alloc(&mem, 300);
        assert_non_null(block);
        assert_true(is_zero(block, 300));
        memset(block, 0xff, 300);
        ki_mem_free(&mem, block);
    }

    (void)state;
    assert_int_equal(heap.n_live, 0);
}

static void mem_asks_only_the_callers_allocator(void **state)
{
    struct heap heap = {0};
    struct ki_mem mem = {count, &heap};
    void *one = ki_mem_alloc(&mem, 1);
    void *two = ki_mem_array(&mem, 3, 8);
    char *three = ki_mem_string(&mem, "three");

    two = ki_mem_resize(&mem, two, 1000);

    (void)state;
    assert_int_equal(heap.n_calls, 4);
    assert_int_equal(heap.n_live, 3);
    ki_mem_free(&mem, one);
    ki_mem_free(&mem, two);
    ki_mem_free(&mem, three);
    assert_int_equal(heap.n_live, 0);
}

static void mem_without_an_allocator_uses_the_c_librarys(void **state)
{
    static const struct ki_mem plain = {0};
    const struct ki_mem *const all[] = {NULL, &plain};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        char *copy = ki_mem_string(all[i], "text");

        assert_string_equal(copy, "text");
        copy = ki_mem_resize(all[i], copy, 4096);
        assert_string_equal(copy, "text");
        ki_mem_free(all[i], copy);
    }
}

static void mem_array_refuses_a_product_that_overflows(void **state)
{
    static const struct {
        size_t n, size;
    } cases[] = {
        {SIZE_MAX, 2}, {2, SIZE_MAX}, {SIZE_MAX / 2 + 1, 2}, {SIZE_MAX, SIZE_MAX}};
    struct heap heap = {0};
    struct ki_mem mem = {count, &heap};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_null(ki_mem_array(&mem, cases[i].n, cases[i].size));
    }
    assert_int_equal(heap.n_calls, 0);
}

static void mem_of_no_bytes_is_still_a_block(void **state)
{
    struct heap heap = {0};
    struct ki_mem mem = {count, &heap};
    void *one = ki_mem_alloc(&mem, 0);
    void *two = ki_mem_array(&mem, 0, 8);

    (void)state;
    assert_non_null(one);
    assert_non_null(two);
    ki_mem_free(&mem, one);
    ki_mem_free(&mem, two);
    assert_int_equal(heap.n_live, 0);
}

static void mem_failure_is_null_and_keeps_the_old_block(void **state)
{
    struct heap heap = {0};
    struct ki_mem mem = {count, &heap};
    char *kept = ki_mem_string(&mem, "kept");

    heap.fails = 1;

    (void)state;
    assert_null(ki_mem_alloc(&mem, 8));
    assert_null(ki_mem_array(&mem, 2, 8));
    assert_null(ki_mem_string(&mem, "x"));
    assert_null(ki_mem_resize(&mem, kept, 4096));
    assert_string_equal(kept, "kept");
    ki_mem_free(&mem, kept);
    assert_int_equal(heap.n_live, 0);
}

static void mem_free_of_null_does_not_reach_the_allocator(void **state)
{
    struct heap heap = {0};
    struct ki_mem mem = {count, &heap};

    ki_mem_free(&mem, NULL);

    (void)state;
    assert_int_equal(heap.n_calls, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mem_blocks_are_zeroed),
        cmocka_unit_test(mem_asks_only_the_callers_allocator),
        cmocka_unit_test(mem_without_an_allocator_uses_the_c_librarys),
        cmocka_unit_test(mem_array_refuses_a_product_that_overflows),
        cmocka_unit_test(mem_of_no_bytes_is_still_a_block),
        cmocka_unit_test(mem_failure_is_null_and_keeps_the_old_block),
        cmocka_unit_test(mem_free_of_null_does_not_reach_the_allocator),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
