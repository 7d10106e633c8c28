/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Does the execution of kernels on the CPU see what it must see? Small kernels with one fault
 * each, every checker that has to report it, and the line it has to name: that marked FAULT.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cpu_build.h"
#include "cpu_child.h"
#include "cpu_tools.h"

enum { ROWS = 2, WIDTH = 60, STRIDE = 64, POISON = (int)0xa5a5a5a5 };

/* A report takes the place of `out`: room for so many entries of so many words. */
enum { CAPACITY = 25, HEADER_WORDS = 4, ENTRY_WORDS = 4 };

/* What the kernels take. */
struct probe_args {
    const int32_t *in;
    int32_t *out;
};

struct probe {
    struct cpu_child child;
    struct cpu_launch launch;
    struct probe_args args;
    int32_t in[ROWS * STRIDE], out[ROWS * STRIDE];
};

/* One builder for each checker, and one folder for all that they compile. */
struct fixture {
    char folder[64];
    struct cpu_builder builders[CPU_CHECK_MEMORY + 1];
};

static char *read_kernel(const char *name)
{
    char *path = cpu_format("%s/kernels/%s.cu", getenv("KILN_SIMT_TESTS"), name);
    char *text = cpu_read_file(path);

    assert_non_null(text);
    free(path);
    /* as the emitter does, so that messages name the file that people edit */
    char *source = cpu_format("#line 1 \"%s.cu\"\n%s", name, text);
    free(text);
    return source;
}

static void add_array(struct probe *probe, const char *name, size_t offset, int32_t *data,
                      bool is_output)
{
    struct kiln_simt_array *array = &probe->launch.arrays[probe->launch.request.n_arrays];

    *array = (struct kiln_simt_array){
        .args_offset = offset,
        .rows = ROWS,
        .width = WIDTH,
        .stride = STRIDE,
        .elem_bytes = sizeof *data,
        .is_output = is_output,
        .data_bytes = sizeof *data * (is_output ? ROWS * STRIDE : STRIDE + WIDTH),
    };
    (void)snprintf(array->name, sizeof array->name, "%s", name);
    probe->launch.data[probe->launch.request.n_arrays++] = (unsigned char *)data;
}

/* It holds something before the launch, and is written; its header says CAPACITY. */
static void make_report(struct probe *probe)
{
    struct kiln_simt_array *array = &probe->launch.arrays[1];

    array->rows = HEADER_WORDS + CAPACITY * ENTRY_WORDS;
    array->width = array->stride = 1;
    array->data_bytes = array->rows * array->elem_bytes;
    array->is_defined = 1;
    probe->out[0] = probe->out[1] = probe->out[3] = 0;
    probe->out[2] = CAPACITY;
}

static void probe_init(struct probe *probe, struct fixture *fixture,
                       enum cpu_checker checker, const char *kernel)
{
    struct cpu_builder *builder = &fixture->builders[checker];
    char *source = read_kernel(kernel), *program = NULL;

    *probe = (struct probe){0};
    if (builder->root == NULL) {
        assert_int_equal(cpu_builder_open(checker, fixture->folder, builder), CLI_DONE);
    }
    assert_int_equal(cpu_build(builder, "kiln_probe", source, &program), CLI_DONE);
    free(source);
    cpu_child_init(&probe->child, program);
    for (int i = 0; i < ROWS * STRIDE; i++) {
        probe->in[i] = i;
        probe->out[i] = POISON;
    }
    probe->launch.request = (struct kiln_simt_request){
        .magic = KILN_SIMT_MAGIC,
        .grid_x = ROWS,
        .grid_y = 1,
        .threads = STRIDE,
        .args_bytes = sizeof probe->args,
        .limit_ms = 500,
    };
    probe->launch.args = (unsigned char *)&probe->args;
    add_array(probe, "in", offsetof(struct probe_args, in), probe->in, false);
    add_array(probe, "out", offsetof(struct probe_args, out), probe->out, true);
    if (strstr(kernel, "report") != NULL) {
        make_report(probe);
    }
}

/* The line of a kernel that is marked FAULT, as "name.cu:12"; at most 64 bytes. */
static void fault_place(const char *kernel, char place[64])
{
    char *source = read_kernel(kernel);
    char *mark = strstr(source, "FAULT");
    int line = 0;

    assert_non_null(mark);
    for (char *c = source; c < mark; c++) {
        line += *c == '\n' ? 1 : 0;
    }
    (void)snprintf(place, 64, "%s.cu:%d", kernel, line);
    free(source);
}

struct expected {
    const char *kernel;
    enum cpu_checker checker;
    const char *words;
};

static const struct expected faults[] = {
    {"removed_barrier", CPU_CHECK_KILN, ": reads shared memory"},
    {"removed_barrier", CPU_CHECK_THREAD, "data race"},
    {"removed_syncwarp", CPU_CHECK_KILN, ": reads shared memory"},
    {"removed_syncwarp", CPU_CHECK_THREAD, "data race"},
    {"padding", CPU_CHECK_KILN, "reads in[0][60], padding beyond the row's 60 columns"},
    {"padding", CPU_CHECK_ADDRESS, "use-after-poison"},
    {"past_end", CPU_CHECK_KILN, "past its last element"},
    {"past_end", CPU_CHECK_ADDRESS, "use-after-poison"},
    {"past_shared", CPU_CHECK_KILN, "writes beside shared memory"},
    {"past_shared", CPU_CHECK_ADDRESS, "global-buffer-overflow"},
    {"writes_padding", CPU_CHECK_KILN, "writes out["},
    {"writes_padding", CPU_CHECK_ADDRESS, "use-after-poison"},
    {"past_report", CPU_CHECK_KILN, "past its last element"},
    {"past_report", CPU_CHECK_ADDRESS, "use-after-poison"},
    {"report_without_atomic", CPU_CHECK_KILN, ": race: "},
    {"report_without_atomic", CPU_CHECK_THREAD, "data race"},
    {"report_entry_twice", CPU_CHECK_KILN, "wrote before"},
    {"report_entry_twice", CPU_CHECK_THREAD, "data race"},
    {"before_begin", CPU_CHECK_KILN, "4 bytes before its first element"},
    {"before_begin", CPU_CHECK_ADDRESS, "use-after-poison"},
    {"store_then_scatter", CPU_CHECK_KILN, "wrote before"},
    {"store_then_scatter", CPU_CHECK_THREAD, "data race"},
    {"writes_twice", CPU_CHECK_KILN, "the same block wrote before"},
    {"blocks_race", CPU_CHECK_KILN, "another block wrote before"},
    {"blocks_race", CPU_CHECK_THREAD, "data race"},
    {"reads_output", CPU_CHECK_KILN, "which nobody wrote"},
    {"reads_output", CPU_CHECK_MEMORY, "use-of-uninitialized-value"},
    {"uninitialised_shared", CPU_CHECK_KILN, "which nobody wrote"},
    {"uninitialised_shared", CPU_CHECK_MEMORY, "use-of-uninitialized-value"},
    {"computed_from_nothing", CPU_CHECK_KILN, "which nobody wrote"},
    {"writes_input", CPU_CHECK_KILN, ", an input"},
    {"divergent_barrier", CPU_CHECK_KILN, "divergence: thread 0 of block ("},
    {"divergent_barrier", CPU_CHECK_ADDRESS, "divergence: thread 0 of block ("},
    {"divergent_barrier", CPU_CHECK_THREAD, "divergence: thread 0 of block ("},
    {"divergent_barrier", CPU_CHECK_MEMORY, "divergence: thread 0 of block ("},
    {"half_a_barrier", CPU_CHECK_KILN, "waits at __syncwarp for thread 32"},
    {"mask_without_self", CPU_CHECK_KILN, "which lacks its own lane"},
    {"mask_names_returned", CPU_CHECK_KILN, "but thread"},
    {"mask_names_elsewhere", CPU_CHECK_KILN, "waits at __ballot_sync for thread"},
    {"overflow", CPU_CHECK_KILN, "undefined behaviour"},
    {"overflow", CPU_CHECK_ADDRESS, "signed integer overflow"},
    {"misaligned", CPU_CHECK_KILN, "undefined behaviour"},
    {"misaligned", CPU_CHECK_ADDRESS, "misaligned address"},
    {"null", CPU_CHECK_KILN, "which is in no array"},
    {"null", CPU_CHECK_NONE, "Segmentation fault"},
    {"wild", CPU_CHECK_KILN, "which is in no array"},
    {"endless", CPU_CHECK_KILN, "still running after 500 ms"},
    {"trap", CPU_CHECK_KILN, "__trap"},
};

static void each_fault_is_reported_with_its_line(void **state)
{
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        struct probe probe;
        char why[CPU_WHY_BYTES], place[64];

        probe_init(&probe, *state, faults[i].checker, faults[i].kernel);
        fault_place(faults[i].kernel, place);
        bool is_done = cpu_child_launch(&probe.child, &probe.launch, why);
        if (is_done || strstr(why, faults[i].words) == NULL ||
            strstr(why, place) == NULL) {
            fail_msg("%s, checker %d: expected \"%s\" at %s, got: %s", faults[i].kernel,
                     (int)faults[i].checker, faults[i].words, place,
                     is_done ? "no fault" : why);
        }
        cpu_child_finish(&probe.child);
    }
}

/* What is seen only when the launch is over has no line. */
static const struct expected late_faults[] = {
    {"computed_from_nothing", CPU_CHECK_MEMORY,
     "was computed from memory that nobody wrote"},
    {"writes_input", CPU_CHECK_NONE, "in is an input, and was written: row 0, column 0"},
    {"before_begin", CPU_CHECK_NONE, "out was written before its first element"},
    {"past_report", CPU_CHECK_NONE, "out was written after its end"},
};

static void late_faults_are_reported_with_their_element(void **state)
{
    for (size_t i = 0; i < sizeof late_faults / sizeof late_faults[0]; i++) {
        struct probe probe;
        char why[CPU_WHY_BYTES];

        probe_init(&probe, *state, late_faults[i].checker, late_faults[i].kernel);
        bool is_done = cpu_child_launch(&probe.child, &probe.launch, why);
        if (is_done || strstr(why, late_faults[i].words) == NULL) {
            fail_msg("%s, checker %d: expected \"%s\", got: %s", late_faults[i].kernel,
                     (int)late_faults[i].checker, late_faults[i].words,
                     is_done ? "no fault" : why);
        }
        cpu_child_finish(&probe.child);
    }
}

static void run_correct(struct probe *probe, const char *kernel, int checker,
                        uint64_t seed)
{
    char why[CPU_WHY_BYTES];

    probe->launch.request.seed = seed;
    for (int i = 0; i < 2; i++) {
        probe->launch.arrays[i].skew_elems = (uint32_t)(seed >> i) % 4;
    }
    if (!cpu_child_launch(&probe->child, &probe->launch, why)) {
        fail_msg("%s, checker %d, seed %d: %s", kernel, checker, (int)seed, why);
    }
}

/* The kernels' results: copies, but for those that turn their block's row around. */
static int32_t expected_of(const char *kernel, int row, int column)
{
    if (strcmp(kernel, "barrier") == 0) {
        return row * STRIDE + WIDTH - 1 - column;
    }
    if (strcmp(kernel, "syncwarp") == 0) {
        return column ^ 1;
    }
    return row * STRIDE + column;
}

static void check_results(const struct probe *probe, const char *kernel, int checker)
{
    for (int i = 0; i < ROWS * STRIDE; i++) {
        int row = i / STRIDE, column = i % STRIDE;
        int32_t want =
            column < WIDTH ? expected_of(kernel, row, column) : (int32_t)POISON;

        if (probe->out[i] != want) {
            fail_msg("%s, checker %d: out[%d][%d] is %d, expected %d", kernel, checker,
                     row, column, probe->out[i], want);
        }
    }
}

static void correct_kernels_pass_every_checker_in_any_order(void **state)
{
    static const char *const kernels[] = {"all_features", "barrier", "copy", "syncwarp"};

    for (size_t i = 0; i < sizeof kernels / sizeof kernels[0]; i++) {
        for (int checker = CPU_CHECK_KILN; checker <= CPU_CHECK_MEMORY; checker++) {
            struct probe probe;

            probe_init(&probe, *state, (enum cpu_checker)checker, kernels[i]);
            for (uint64_t seed = 0; seed < 20; seed++) {
                run_correct(&probe, kernels[i], checker, seed);
            }
            check_results(&probe, kernels[i], checker);
            cpu_child_finish(&probe.child);
        }
    }
}

/* More threads than ever before, then fewer: a barrier waits for those there are. */
static void blocks_of_each_launch_have_their_own_size(void **state)
{
    static const uint32_t sizes[] = {WIDTH, STRIDE, WIDTH};

    for (int checker = CPU_CHECK_KILN; checker <= CPU_CHECK_MEMORY; checker++) {
        struct probe probe;

        probe_init(&probe, *state, (enum cpu_checker)checker, "barrier");
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
            probe.launch.request.threads = sizes[i];
            run_correct(&probe, "barrier", checker, i);
            check_results(&probe, "barrier", checker);
        }
        cpu_child_finish(&probe.child);
    }
}

/* All that was found is counted, and each entry is of another element. */
static void check_report(const struct probe *probe, int checker)
{
    bool seen[ROWS][WIDTH] = {{false}};

    assert_int_equal(probe->out[0], ROWS * WIDTH);
    assert_int_equal(probe->out[2], CAPACITY);
    for (int i = 0; i < CAPACITY; i++) {
        const int32_t *entry = probe->out + HEADER_WORDS + i * ENTRY_WORDS;

        if (entry[0] < 0 || entry[0] >= ROWS || entry[1] < 0 || entry[1] >= WIDTH ||
            seen[entry[0]][entry[1]] || entry[2] != entry[0] * STRIDE + entry[1]) {
            fail_msg("checker %d: entry %d: row %d, column %d, value %d", checker, i,
                     entry[0], entry[1], entry[2]);
        }
        seen[entry[0]][entry[1]] = true;
    }
}

static void report_is_counted_and_kept_under_every_checker(void **state)
{
    for (int checker = CPU_CHECK_KILN; checker <= CPU_CHECK_MEMORY; checker++) {
        struct probe probe;

        probe_init(&probe, *state, (enum cpu_checker)checker, "report");
        for (uint64_t seed = 0; seed < 20; seed++) {
            make_report(&probe);
            run_correct(&probe, "report", checker, seed * 4);
            check_report(&probe, checker);
        }
        cpu_child_finish(&probe.child);
    }
}

static void program_serves_again_after_a_fault(void **state)
{
    struct probe probe;
    char why[CPU_WHY_BYTES];

    probe_init(&probe, *state, CPU_CHECK_KILN, "padding");

    assert_false(cpu_child_launch(&probe.child, &probe.launch, why));
    assert_false(cpu_child_launch(&probe.child, &probe.launch, why));
    assert_non_null(strstr(why, "padding beyond"));

    cpu_child_finish(&probe.child);
}

static void source_that_does_not_compile_is_an_error(void **state)
{
    struct fixture *fixture = *state;
    char *source = read_kernel("syntax"), *program = NULL;
    struct cpu_builder builder;

    assert_int_equal(cpu_builder_open(CPU_CHECK_NONE, fixture->folder, &builder),
                     CLI_DONE);

    assert_int_equal(cpu_build(&builder, "kiln_probe", source, &program), CLI_FAILED);
    assert_null(program);

    cpu_builder_close(&builder);
    free(source);
}

static void program_is_compiled_once_and_found_again(void **state)
{
    struct fixture *fixture = *state;
    char *source = read_kernel("copy"), *first = NULL, *second = NULL;
    struct cpu_builder builder;

    assert_int_equal(cpu_builder_open(CPU_CHECK_KILN, fixture->folder, &builder),
                     CLI_DONE);
    assert_int_equal(cpu_build(&builder, "kiln_probe", source, &first), CLI_DONE);
    cpu_builder_close(&builder);
    assert_int_equal(cpu_builder_open(CPU_CHECK_KILN, fixture->folder, &builder),
                     CLI_DONE);
    free(builder.compiler);
    builder.compiler = strdup("/nowhere/no-compiler");

    assert_int_equal(cpu_build(&builder, "kiln_probe", source, &second), CLI_FAILED);

    free(builder.compiler);
    builder.compiler = NULL;
    cpu_builder_close(&builder);
    assert_int_equal(cpu_builder_open(CPU_CHECK_KILN, fixture->folder, &builder),
                     CLI_DONE);
    assert_int_equal(cpu_build(&builder, "kiln_probe", source, &second), CLI_DONE);
    assert_string_equal(first, second);
    cpu_builder_close(&builder);
    free(source);
    free(first);
    free(second);
}

static int make_fixture(void **state)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);

    assert_non_null(fixture);
    (void)snprintf(fixture->folder, sizeof fixture->folder, "/tmp/kiln-simt-XXXXXX");
    assert_non_null(mkdtemp(fixture->folder));
    *state = fixture;
    return 0;
}

static int remove_fixture(void **state)
{
    struct fixture *fixture = *state;

    for (int i = 0; i <= CPU_CHECK_MEMORY; i++) {
        cpu_builder_close(&fixture->builders[i]);
    }
    cpu_remove_folder(fixture->folder);
    free(fixture);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_fault_is_reported_with_its_line),
        cmocka_unit_test(late_faults_are_reported_with_their_element),
        cmocka_unit_test(correct_kernels_pass_every_checker_in_any_order),
        cmocka_unit_test(blocks_of_each_launch_have_their_own_size),
        cmocka_unit_test(report_is_counted_and_kept_under_every_checker),
        cmocka_unit_test(program_serves_again_after_a_fault),
        cmocka_unit_test(source_that_does_not_compile_is_an_error),
        cmocka_unit_test(program_is_compiled_once_and_found_again),
    };

    return cmocka_run_group_tests(tests, make_fixture, remove_fixture);
}
