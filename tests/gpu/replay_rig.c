/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/attr.h"
#include "plan/ops.h"
#include "replay_rig.h"
#include "support/data_file.h"
#include "support/device_code.h"

enum { POISON = 0xA5, ROW_THREADS = 32, BLOCKS = 132, BLOCK_THREADS = 256 };

static void check(enum kiln_status status, const struct kiln_error *err, const char *what)
{
    if (status != KILN_OK) {
        fail_msg("%s: %s: %s", what, kiln_status_name((int)status), err->message);
    }
}

/* ---- arguments -------------------------------------------------------------------------- */

#define INPUT(name, member)                                                              \
    {                                                                                    \
        name, offsetof(struct replay_inputs, member)                                     \
    }

/* What the inputs and counts of the ops are called, and where they lie. */
static const struct {
    const char *name;
    size_t offset;
} inputs[] = {
    INPUT("query_start_loc", query_start_loc),
    INPUT("seq_lens", seq_lens),
    INPUT("gather_lens", gather_lens),
    INPUT("replay_start", replay_start),
    INPUT("positions", positions),
    INPUT("slot_mapping", slot_mapping),
    INPUT("own_slots", slot_mapping),
    INPUT("topk_indices", picks),
    INPUT("block_table", pages),
    INPUT("live_tokens", live_tokens),
    INPUT("num_decode_tokens", num_decode_tokens),
    INPUT("first_request", first_request),
    INPUT("active_width", active_width),
    INPUT("workspace_rows", workspace_rows),
    INPUT("swa_base", swa_base),
};

/* NULL: none is called so. */
static const void *find_input(const char *name, const void *block)
{
    for (size_t i = 0; i < KI_COUNT_OF(inputs); i++) {
        if (strcmp(inputs[i].name, name) == 0) {
            return (const char *)block + inputs[i].offset;
        }
    }
    return NULL;
}

/* What an earlier launch of the step wrote for the others, into the same outputs. */
static const void *find_chained(const struct rig *rig, const char *name, char *outputs)
{
    char buffer_name[KILN_BUFFER_NAME];
    const struct kiln_buffer *buffer;

    snprintf(buffer_name, sizeof buffer_name, "%s.%s", name, name);
    buffer = kiln_layout_find_buffer(rig->layout, buffer_name);
    return buffer != NULL ? outputs + buffer->offset : NULL;
}

static const void *input_of(const struct rig *rig, const struct kiln_arg *arg,
                            const void *block, char *outputs)
{
    const void *address = find_input(arg->name, block);

    if (address == NULL) {
        address = find_chained(rig, arg->name, outputs);
    }
    if (address == NULL && !arg->optional) {
        fail_msg("nothing is bound to the input %s", arg->name);
    }
    return address;
}

/* No matrix of decode rows alone has room for the whole batch. */
static int32_t rows_of(const struct rig *rig, const struct kiln_layout_launch *launch)
{
    const size_t last = launch->first_buffer + launch->n_buffers - 1;

    const int64_t rows = rig->layout->buffers[last].rows;

    return rows < rig->limits.n_tokens ? (int32_t)rows : rig->limits.n_tokens;
}

/* token_offset and dcp_rank are 0. */
static int32_t number_of(const struct rig *rig, const struct kiln_layout_launch *launch,
                         enum kiln_extent extent)
{
    if (extent == KILN_EXTENT_TOKENS || extent == KILN_EXTENT_ROWS) {
        return rows_of(rig, launch);
    }
    return extent == KILN_EXTENT_REQUESTS || extent == KILN_EXTENT_TABLE_ROWS
               ? rig->limits.n_requests
               : 0;
}

void rig_bind(const struct rig *rig, size_t i_launch, const void *block, char *outputs,
              union random_args *out)
{
    const struct kiln_layout_launch *launch = &rig->layout->launches[i_launch];
    const struct kiln_buffer *buffer = &rig->layout->buffers[launch->first_buffer];
    const struct kiln_op_info *info = kiln_op_info_get(launch->op);

    memset(out, 0, sizeof *out);
    for (size_t i = 0; i < info->n_args; i++) {
        const struct kiln_arg *arg = &info->args[i];
        unsigned char *at = out->bytes + arg->offset;
        const struct kiln_count count = {.kind = KILN_COUNT_DEVICE,
                                         .address = find_input(arg->name, block)};
        const void *address;
        int32_t number;

        switch (arg->kind) {
        case KILN_ARG_INPUT:
            address = input_of(rig, arg, block, outputs);
            memcpy(at, &address, sizeof address);
            break;
        case KILN_ARG_OUTPUT:
            address = outputs + buffer++->offset;
            memcpy(at, &address, sizeof address);
            break;
        case KILN_ARG_COUNT:
            assert_non_null(count.address);
            memcpy(at, &count, sizeof count);
            break;
        case KILN_ARG_NUMBER:
        case KILN_ARG_EXTENT:
            number = number_of(rig, launch, arg->extent);
            memcpy(at, &number, sizeof number);
            break;
        }
    }
}

char *rig_outputs(const struct rig *rig)
{
    return (char *)rig->layout->buffers[0].address - rig->layout->buffers[0].offset;
}

/* ---- a step ----------------------------------------------------------------------------- */

void rig_launch(const struct rig *rig, const struct ki_module *module,
                unsigned int n_blocks, unsigned int n_threads, void **params)
{
    const CUlaunchConfig config = {
        .gridDimX = n_blocks,
        .gridDimY = 1,
        .gridDimZ = 1,
        .blockDimX = n_threads,
        .blockDimY = 1,
        .blockDimZ = 1,
        .hStream = kiln_gpu_stream(rig->gpu),
    };
    struct kiln_error err = {0};

    check(ki_driver_check(&rig->driver,
                          rig->driver.launch_kernel_ex(
                              &config, (CUfunction)module->kernel, params, NULL),
                          "cuLaunchKernelEx", &err),
          &err, "a kernel of the test");
}

static void draw_batch(const struct rig *rig)
{
    struct replay_inputs *in = rig->inputs;
    struct replay_limits limits = rig->limits;
    void *params[] = {&in, &limits};

    rig_launch(rig, &rig->begin_step, 1, 1, params);
    rig_launch(rig, &rig->fill_arrays, BLOCKS, BLOCK_THREADS, params);
}

static void launch_kiln(const struct rig *rig, size_t i_launch, void *user)
{
    struct kiln_error err = {0};
    union random_args args;

    (void)user;
    rig_bind(rig, i_launch, rig->inputs, rig_outputs(rig), &args);
    check(kiln_launcher_launch(rig->launcher, i_launch, &args, kiln_gpu_stream(rig->gpu),
                               &err),
          &err, rig->layout->launches[i_launch].name);
}

/* A thread for each row. */
static void launch_reference(const struct rig *rig, size_t i_launch, void *user)
{
    const struct ki_op *op = ki_op_get(rig->layout->launches[i_launch].op);
    union random_args args;
    int64_t n_rows;
    void *params[] = {&args, &n_rows};

    (void)user;
    rig_bind(rig, i_launch, rig->inputs, rig->expected, &args);
    n_rows = ki_op_launch_rows(op, &args);
    rig_launch(rig, &rig->references[i_launch],
               (unsigned int)((n_rows + ROW_THREADS - 1) / ROW_THREADS), ROW_THREADS,
               params);
}

/* All of it: what lies past the columns that are in use was left by an earlier step. */
static void launch_compare(const struct rig *rig, size_t i_buffer)
{
    const struct kiln_buffer *buffer = &rig->layout->buffers[i_buffer];
    const void *got = buffer->address, *expected = rig->expected + buffer->offset;
    int64_t n_elements = buffer->rows * buffer->stride;
    int32_t bytes = (int32_t)kiln_dtype_bytes(buffer->dtype);
    const struct replay_inputs *in = rig->inputs;
    struct replay_difference *out = &rig->differences[i_buffer];
    void *params[] = {(void *)&got, (void *)&expected, &n_elements,
                      &bytes,       (void *)&in,       &out};

    rig_launch(rig, &rig->compare, BLOCKS, BLOCK_THREADS, params);
}

/* What is once per step makes inputs of the others, so it comes before what each layer has. */
void rig_for_each_launch(const struct rig *rig,
                         void (*fn)(const struct rig *rig, size_t i_launch, void *user),
                         void *user)
{
    for (int is_layered = 0; is_layered < 2; is_layered++) {
        for (size_t i = 0; i < rig->layout->n_launches; i++) {
            if ((rig->layout->launches[i].layers > 1) == is_layered) {
                fn(rig, i, user);
            }
        }
    }
}

void rig_compare(const struct rig *rig)
{
    for (size_t i = 0; i < rig->layout->n_buffers; i++) {
        launch_compare(rig, i);
    }
}

void rig_capture(struct rig *rig, enum kiln_capture_mode mode)
{
    struct kiln_error err = {0};

    kiln_gpu_graph_destroy(rig->gpu, &rig->graph);
    check(kiln_gpu_capture_begin(rig->gpu, mode, &err), &err, "begin capture");
    draw_batch(rig);
    rig_for_each_launch(rig, launch_kiln, NULL);
    if (!rig->kiln_alone) {
        rig_for_each_launch(rig, launch_reference, NULL);
        rig_compare(rig);
    }
    check(kiln_gpu_capture_end(rig->gpu, &rig->graph, &err), &err, "end capture");
}

void rig_replay(struct rig *rig, int64_t n)
{
    struct kiln_error err = {0};

    for (int64_t i = 0; i < n; i++) {
        check(kiln_gpu_replay(rig->gpu, rig->graph, NULL, &err), &err, "replay");
    }
}

uint64_t rig_differences(const struct rig *rig, char why[RANDOM_WHY])
{
    struct replay_difference found[RIG_BUFFERS];
    struct kiln_error err = {0};
    uint64_t n = 0, first = UINT64_MAX;

    why[0] = '\0';
    check(kiln_gpu_copy_out(rig->gpu, found, rig->differences,
                            rig->layout->n_buffers * sizeof *found, &err),
          &err, "differences");
    for (size_t i = 0; i < rig->layout->n_buffers; i++) {
        const struct kiln_buffer *buffer = &rig->layout->buffers[i];
        n += found[i].n;
        if (found[i].first < first) {
            const int64_t element = (int64_t)(found[i].first & UINT32_MAX);
            first = found[i].first;
            snprintf(why, RANDOM_WHY, "step %llu: %s, row %lld, column %lld",
                     (unsigned long long)(first >> 32), buffer->name,
                     (long long)(element / buffer->stride),
                     (long long)(element % buffer->stride));
        }
    }
    return n;
}

/* ---- init ------------------------------------------------------------------------------- */

void rig_deployment(const struct rig_options *options, struct kiln_deployment *out)
{
    struct kiln_error err = {0};
    size_t size;
    char *text = data_file_read("models", "deepseek-v4-flash.json", &size);

    *out = (struct kiln_deployment){
        .max_model_len = options->max_model_len,
        .max_num_batched_tokens = options->n_tokens,
        .max_num_seqs = options->n_requests,
        .num_speculative_tokens = 1,
    };
    check(kiln_deployment_from_config(text, size, "deepseek-v4-flash.json", out, &err),
          &err, "model");
    free(text);
}

static void set_limits(struct rig *rig, const struct rig_options *options)
{
    const size_t i = kiln_layout_find_launch(rig->layout, "c128a_topk");
    const struct kiln_c128a_topk_shape *shape;

    assert_in_range(i, 0, rig->layout->n_launches - 1);
    shape = &rig->layout->launches[i].shape.c128a_topk;
    rig->limits = (struct replay_limits){
        .seed = options->seed,
        .max_model_len = options->max_model_len,
        .n_tokens = options->n_tokens,
        .n_requests = options->n_requests,
        .tokens_of_decode = 2,
        .compress_ratio = (int32_t)shape->compress_ratio,
        .capacity = (int32_t)shape->capacity,
    };
}

/* Rows lie as far apart as the launch's shape says, in arrays that are long enough. */
static void check_lengths(const struct rig *rig)
{
    for (size_t i = 0; i < rig->layout->n_launches; i++) {
        const struct kiln_layout_launch *launch = &rig->layout->launches[i];
        const struct kiln_op_info *info = kiln_op_info_get(launch->op);

        for (size_t j = 0; j < info->n_args; j++) {
            const struct kiln_arg *arg = &info->args[j];
            if (arg->kind == KILN_ARG_INPUT && arg->stride_field >= 0) {
                const int64_t stride = launch->shape.fields[arg->stride_field];
                const bool is_table = arg->extent == KILN_EXTENT_TABLE_ROWS;
                assert_true(is_table ? stride * rig->limits.n_requests <= REPLAY_PAGES
                                     : stride * rows_of(rig, launch) <= REPLAY_PICKS);
            }
        }
    }
    assert_true(rig->limits.n_tokens <= REPLAY_TOKENS);
    assert_true(rig->limits.n_requests <= REPLAY_REQUESTS);
    assert_true(rig->layout->n_launches <= RIG_LAUNCHES);
    assert_true(rig->layout->n_buffers <= RIG_BUFFERS);
}

static void load(const struct rig *rig, struct ki_cubin *cubin, struct ki_module *out)
{
    struct kiln_error err = {0};

    check(ki_module_load(&rig->driver, &rig->device, cubin->image, cubin->entry_name, out,
                         &err),
          &err, cubin->entry_name);
    ki_cubin_finish(cubin, NULL);
}

void rig_load(const struct rig *rig, const char *file, const char *entry_name,
              struct ki_module *out)
{
    struct kiln_error err = {0};
    struct ki_cubin cubin;

    check(device_code_compile(&rig->nvrtc, rig->device.target, file, entry_name, &cubin,
                              &err),
          &err, file);
    load(rig, &cubin, out);
}

static void load_references(struct rig *rig)
{
    struct kiln_error err = {0};
    struct ki_cubin cubin;

    for (size_t i = 0; i < rig->layout->n_launches; i++) {
        const struct kiln_layout_launch *launch = &rig->layout->launches[i];
        check(device_code_compile_reference(&rig->nvrtc, rig->device.target, launch->op,
                                            &launch->shape, &cubin, &err),
              &err, launch->name);
        load(rig, &cubin, &rig->references[i]);
    }
}

static void fill(const struct rig *rig, void *address, size_t size, int byte)
{
    struct kiln_error err = {0};
    char *filled = malloc(size);

    assert_non_null(filled);
    memset(filled, byte, size);
    check(kiln_gpu_copy_in(rig->gpu, address, filled, size, &err), &err, "memory");
    free(filled);
}

void rig_fill_outputs(const struct rig *rig, int byte)
{
    fill(rig, rig_outputs(rig), (size_t)rig->layout->total_bytes, byte);
}

static void *allocate(const struct rig *rig, size_t size, int byte)
{
    struct kiln_error err = {0};
    void *address = NULL;

    check(kiln_gpu_alloc(rig->gpu, size, &address, &err), &err, "memory");
    fill(rig, address, size, byte);
    return address;
}

static void allocate_all(struct rig *rig)
{
    const struct replay_difference none = {.n = 0, .first = UINT64_MAX};
    struct kiln_error err = {0};

    rig->inputs = allocate(rig, sizeof *rig->inputs, 0);
    rig->expected = allocate(rig, (size_t)rig->layout->total_bytes, POISON);
    rig_fill_outputs(rig, POISON);
    rig->differences = allocate(rig, RIG_BUFFERS * sizeof none, 0);
    for (size_t i = 0; i < RIG_BUFFERS; i++) {
        check(kiln_gpu_copy_in(rig->gpu, &rig->differences[i], &none, sizeof none, &err),
              &err, "differences");
    }
}

void rig_init(struct rig *out, struct kiln_gpu *gpu, struct kiln *kiln,
              const struct rig_options *options)
{
    struct kiln_launcher_options launcher_options = KILN_LAUNCHER_OPTIONS_INIT;
    struct kiln_deployment deployment;
    struct kiln_error err = {0};

    *out = (struct rig){.gpu = gpu, .kiln_alone = options->kiln_alone};
    rig_deployment(options, &deployment);
    launcher_options.programmatic = options->programmatic;
    check(
        kiln_launcher_create(kiln, &deployment, &launcher_options, &out->launcher, &err),
        &err, "launcher");
    check(ki_driver_open(&out->driver, &err), &err, "driver");
    check(ki_device_current(&out->driver, &out->device, &err), &err, "device");
    out->layout = kiln_launcher_layout(out->launcher);
    set_limits(out, options);
    check_lengths(out);
    device_code_open_nvrtc(&out->nvrtc);
    rig_load(out, "gpu/replay/mutate.cu", "begin_step", &out->begin_step);
    rig_load(out, "gpu/replay/mutate.cu", "fill_arrays", &out->fill_arrays);
    rig_load(out, "gpu/replay/compare.cu", "compare", &out->compare);
    if (!out->kiln_alone) {
        load_references(out);
    }
    allocate_all(out);
}

void rig_finish(struct rig *rig)
{
    kiln_gpu_graph_destroy(rig->gpu, &rig->graph);
    kiln_gpu_free(rig->gpu, rig->differences);
    kiln_gpu_free(rig->gpu, rig->expected);
    kiln_gpu_free(rig->gpu, rig->inputs);
    for (size_t i = 0; i < RIG_LAUNCHES; i++) {
        ki_module_unload(&rig->driver, &rig->references[i]);
    }
    ki_module_unload(&rig->driver, &rig->compare);
    ki_module_unload(&rig->driver, &rig->fill_arrays);
    ki_module_unload(&rig->driver, &rig->begin_step);
    assert_int_equal(kiln_launcher_destroy(&rig->launcher, NULL), KILN_OK);
    ki_nvrtc_close(&rig->nvrtc);
    ki_driver_close(&rig->driver);
}
