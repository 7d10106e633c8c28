/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kiln/launcher.h: a layout with addresses, and for each of its launches a loaded kernel.
 * Everything but the counters is fixed once it is created, so a launch takes no lock.
 */
#include <string.h>
#include <unistd.h>

#include "base/attr.h"
#include "base/status.h"
#include "launcher.h"
#include "options.h"
#include "plan/op.h"
#include "plan/sizes.h"
#include "prepare.h"
#include "run/memory.h"
#include "run/user_object.h"
#include "seal.h"

/* ---- the caller's memory ---------------------------------------------------------------- */

static enum kiln_status check_memory(const struct kiln_buffer *buffer,
                                     const struct kiln_buffer_memory *memory,
                                     struct kiln_error *err)
{
    if (buffer == NULL) {
        return ki_fail(err, KILN_E_ARGUMENT,
                       "memory is given for \"%.100s\": expected a buffer of the layout",
                       memory->name != NULL ? memory->name : "");
    }
    if (buffer->address != NULL) {
        return ki_fail(err, KILN_E_ARGUMENT,
                       "memory for %s is given twice: expected once", buffer->name);
    }
    if (memory->address == NULL || (uintptr_t)memory->address % KILN_BUFFER_ALIGN != 0) {
        return ki_fail(
            err, KILN_E_ARGUMENT,
            "memory for %s is at %p: expected an address that is a multiple of "
            "%d",
            buffer->name, memory->address, KILN_BUFFER_ALIGN);
    }
    if (memory->bytes < buffer->bytes) {
        return ki_fail(
            err, KILN_E_ARGUMENT,
            "memory for %s has %lld bytes: expected %lld or more, for %lld rows",
            buffer->name, (long long)memory->bytes, (long long)buffer->bytes,
            (long long)buffer->rows);
    }
    return KILN_OK;
}

/* By distances, as an end may lie past the last address. */
static bool overlap(const struct kiln_buffer *a, const struct kiln_buffer *b)
{
    const uintptr_t begin_a = (uintptr_t)a->address;
    const uintptr_t begin_b = (uintptr_t)b->address;

    return a->address != NULL && b->address != NULL &&
           (begin_b - begin_a < (uintptr_t)a->bytes ||
            begin_a - begin_b < (uintptr_t)b->bytes);
}

static enum kiln_status check_overlap(const struct kiln_layout *layout,
                                      struct kiln_error *err)
{
    for (size_t i = 0; i < layout->n_buffers; i++) {
        for (size_t j = 0; j < i; j++) {
            if (overlap(&layout->buffers[i], &layout->buffers[j])) {
                return ki_fail(err, KILN_E_ARGUMENT,
                               "memory for %s overlaps that for %s: expected buffers of "
                               "their own",
                               layout->buffers[i].name, layout->buffers[j].name);
            }
        }
    }
    return KILN_OK;
}

static enum kiln_status take_memory(struct kiln_layout *layout,
                                    const struct kiln_launcher_options *options,
                                    struct kiln_error *err)
{
    if (options->n_memory > 0 && options->memory == NULL) {
        return ki_fail(err, KILN_E_ARGUMENT, "memory is NULL: expected %zu of them",
                       options->n_memory);
    }
    for (size_t i = 0; i < options->n_memory; i++) {
        const struct kiln_buffer_memory *memory = &options->memory[i];
        const struct kiln_buffer *buffer = kiln_layout_find_buffer(layout, memory->name);

        KI_TRY(check_memory(buffer, memory, err));
        layout->buffers[buffer - layout->buffers].address = memory->address;
    }
    return check_overlap(layout, err);
}

/* ---- create ----------------------------------------------------------------------------- */

/* One block for all that the caller did not bring; what it brought leaves no gap. */
static enum kiln_status allocate(struct kiln_launcher *launcher, struct kiln_error *err)
{
    struct kiln_layout *layout = &launcher->layout;
    int64_t total_bytes = 0;

    for (size_t i = 0; i < layout->n_buffers; i++) {
        struct kiln_buffer *buffer = &layout->buffers[i];

        if (buffer->address == NULL) {
            buffer->offset = total_bytes;
            total_bytes += ki_buffer_room(buffer->bytes);
        }
    }
    if (total_bytes == 0) {
        return KILN_OK;
    }
    KI_TRY(ki_memory_alloc(&launcher->kiln->driver, (size_t)total_bytes, &launcher->block,
                           err));
    launcher->allocated_bytes = total_bytes;
    for (size_t i = 0; i < layout->n_buffers; i++) {
        struct kiln_buffer *buffer = &layout->buffers[i];

        if (buffer->address == NULL) {
            buffer->address = (char *)launcher->block + buffer->offset;
        }
    }
    return KILN_OK;
}

/* Each kernel ready in this context. */
static enum kiln_status prepare_all(struct kiln_launcher *launcher,
                                    struct CUstream_st *stream, struct kiln_error *err)
{
    struct kiln *kiln = launcher->kiln;
    struct ki_device device;

    for (size_t i = 0; i < launcher->layout.n_launches; i++) {
        const struct kiln_layout_launch *planned = &launcher->layout.launches[i];
        struct ki_launch_slot *slot = &launcher->slots[i];

        KI_TRY(
            kiln_prepare(kiln, planned->op, &planned->shape, stream, &slot->kernel, err));
    }
    KI_TRY(ki_current_device(kiln, &device, err));
    launcher->context = device.context;
    return KILN_OK;
}

/* Where each output's address belongs in an args struct, and how many rows it has. */
static enum kiln_status wire(struct kiln_launcher *launcher, size_t i_launch,
                             struct kiln_error *err)
{
    struct ki_launch_slot *slot = &launcher->slots[i_launch];
    const struct ki_op *op = slot->kernel->op;
    const struct kiln_buffer *buffer =
        &launcher->layout.buffers[launcher->layout.launches[i_launch].first_buffer];

    if (op->info.args_bytes > KI_ARGS_MAX) {
        return ki_fail(err, KILN_E_INTERNAL, "%s: its args have %zu bytes, more than %d",
                       op->info.name, op->info.args_bytes, KI_ARGS_MAX);
    }
    for (size_t i = 0; i < op->info.n_args; i++) {
        const struct kiln_arg *arg = &op->info.args[i];

        if (arg->kind != KILN_ARG_OUTPUT) {
            continue;
        }
        if (slot->n_outputs == KI_OUTPUTS_MAX) {
            return ki_fail(err, KILN_E_INTERNAL, "%s has more than %d outputs",
                           op->info.name, KI_OUTPUTS_MAX);
        }
        slot->outputs[slot->n_outputs++] = (struct ki_output){
            .buffer = buffer++,
            .offset = arg->offset,
            .rows = ki_op_row_source(op, arg->extent),
        };
    }
    return KILN_OK;
}

static enum kiln_status fill(struct kiln_launcher *launcher,
                             const struct kiln_deployment *deployment,
                             const struct kiln_launcher_options *options,
                             struct kiln_error *err)
{
    const struct ki_mem *mem = &launcher->kiln->mem;

    KI_TRY(kiln_layout_make(deployment, &launcher->layout, err));
    KI_TRY(take_memory(&launcher->layout, options, err));
    launcher->slots =
        ki_mem_array(mem, launcher->layout.n_launches, sizeof(*launcher->slots));
    if (launcher->slots == NULL) {
        return ki_fail_memory(err, "a launcher's launches");
    }
    KI_TRY(prepare_all(launcher, options->stream, err));
    for (size_t i = 0; i < launcher->layout.n_launches; i++) {
        KI_TRY(wire(launcher, i, err));
    }
    KI_TRY(allocate(launcher, err));
    if (options->programmatic && ki_launcher_can_be_programmatic(launcher)) {
        launcher->order = KI_LAUNCH_PROGRAMMATIC;
    }
    return KILN_OK;
}

static void free_host(struct kiln_launcher *launcher)
{
    const struct ki_mem mem = launcher->kiln->mem;

    ki_mem_free(&mem, launcher->slots);
    kiln_layout_finish(&launcher->layout);
    ki_mem_free(&mem, launcher);
}

enum kiln_status kiln_launcher_create(struct kiln *kiln,
                                      const struct kiln_deployment *deployment,
                                      const struct kiln_launcher_options *given,
                                      struct kiln_launcher **out, struct kiln_error *err)
{
    struct kiln_launcher_options options;
    struct kiln_launcher *launcher;
    const int64_t began_ms = ki_now_ms();
    enum kiln_status status;

    if (out == NULL) {
        return ki_fail(err, KILN_E_ARGUMENT, "out is NULL: expected an address");
    }
    *out = NULL;
    if (kiln == NULL || deployment == NULL) {
        return ki_fail(err, KILN_E_ARGUMENT, "%s is NULL: expected one",
                       kiln == NULL ? "kiln" : "deployment");
    }
    KI_TRY(ki_refuse_fork(kiln, err));
    KI_TRY(ki_struct_read("KILN_LAUNCHER_OPTIONS_INIT", given, &options, sizeof options,
                          err));
    launcher = ki_mem_alloc(&kiln->mem, sizeof *launcher);
    if (launcher == NULL) {
        return ki_fail_memory(err, "a launcher");
    }
    launcher->kiln = kiln;
    status = fill(launcher, deployment, &options, err);
    if (status != KILN_OK) {
        free_host(launcher);
        return status;
    }
    atomic_fetch_add(&kiln->n_launchers, 1);
    launcher->create_ms = ki_now_ms() - began_ms;
    *out = launcher;
    return KILN_OK;
}

/* ---- destroy ---------------------------------------------------------------------------- */

static enum kiln_status refuse_other_context(const struct kiln_launcher *launcher,
                                             struct kiln_error *err)
{
    CUcontext current = NULL;

    KI_TRY(ki_device_context(&launcher->kiln->driver, &current, err));
    if (current != launcher->context) {
        return ki_fail(
            err, KILN_E_ARGUMENT,
            "the current context is %p: expected %p, in which the launcher was "
            "created",
            (void *)current, (void *)launcher->context);
    }
    return KILN_OK;
}

/* The driver's part; the launcher stays as it was while *is_gone is false. */
static enum kiln_status release(struct kiln_launcher *launcher, bool *is_gone,
                                struct kiln_error *err)
{
    const int64_t n_pins = atomic_load_explicit(&launcher->n_pins, memory_order_acquire);
    enum kiln_status status;

    *is_gone = false;
    if (n_pins > 0) {
        return ki_fail(err, KILN_E_BUSY,
                       "%lld graphs hold the launcher: expected all to be destroyed",
                       (long long)n_pins);
    }
    if (launcher->block != NULL) {
        KI_TRY(refuse_other_context(launcher, err));
    }
    status = ki_memory_free(&launcher->kiln->driver, &launcher->block, err);
    *is_gone = launcher->block == NULL;
    return status;
}

enum kiln_status kiln_launcher_destroy(struct kiln_launcher **address,
                                       struct kiln_error *err)
{
    struct kiln_launcher *launcher = address != NULL ? *address : NULL;
    enum kiln_status status = KILN_OK;
    bool is_gone = true;

    if (launcher == NULL) {
        return KILN_OK;
    }
    /* A forked child has nothing of its parent's driver: it frees memory and no more. */
    if (launcher->kiln->pid == getpid()) {
        status = release(launcher, &is_gone, err);
    }
    if (is_gone) {
        struct kiln *kiln = launcher->kiln;

        *address = NULL;
        free_host(launcher);
        atomic_fetch_sub(&kiln->n_launchers, 1);
    }
    return status;
}

/* ---- retain ----------------------------------------------------------------------------- */

/* Called by the driver, late and on a thread of its own: no CUDA call is allowed here. */
static void CUDA_CB drop_pin(void *user)
{
    struct kiln_launcher *launcher = user;

    /* With release, and the last touch: whoever then sees no pins may free the launcher. */
    atomic_fetch_sub_explicit(&launcher->n_pins, 1, memory_order_release);
}

enum kiln_status kiln_launcher_retain(struct kiln_launcher *launcher,
                                      struct CUgraph_st *graph, struct kiln_error *err)
{
    enum kiln_status status;
    int is_dropped = 0;

    if (launcher == NULL || graph == NULL) {
        return ki_fail(err, KILN_E_ARGUMENT, "%s is NULL: expected one",
                       launcher == NULL ? "launcher" : "graph");
    }
    KI_TRY(ki_refuse_fork(launcher->kiln, err));
    atomic_fetch_add(&launcher->n_pins, 1);
    status = ki_user_object_tie(&launcher->kiln->driver, graph, drop_pin, launcher,
                                &is_dropped, err);
    if (status != KILN_OK && !is_dropped) {
        drop_pin(launcher);
    }
    return status;
}

/* ---- launch ----------------------------------------------------------------------------- */

KI_COLD
static enum kiln_status refuse_call(struct kiln_launcher *launcher, size_t i_launch,
                                    const void *args, struct kiln_error *err)
{
    if (launcher == NULL) {
        return ki_fail(err, KILN_E_ARGUMENT, "launcher is NULL: expected one");
    }
    atomic_fetch_add_explicit(&launcher->n_astray, 1, memory_order_relaxed);
    if (args == NULL) {
        return ki_fail(err, KILN_E_ARGUMENT, "args is NULL: expected one");
    }
    return ki_fail(err, KILN_E_ARGUMENT, "i_launch = %zu: expected below %zu", i_launch,
                   launcher->layout.n_launches);
}

KI_COLD
static enum kiln_status refuse_address(const struct ki_output *output,
                                       const void *address, struct kiln_error *err)
{
    return ki_fail(err, KILN_E_ARGUMENT,
                   "%s is given as %p: expected NULL or the launcher's own, %p",
                   output->buffer->name, address, output->buffer->address);
}

KI_COLD
static enum kiln_status refuse_rows(const struct ki_output *output, int64_t rows,
                                    struct kiln_error *err)
{
    return ki_fail(err, KILN_E_ARGUMENT,
                   "%s: a launch of %lld rows: expected at most %lld, its capacity",
                   output->buffer->name, (long long)rows,
                   (long long)output->buffer->rows);
}

static enum kiln_status put_output(const struct ki_output *output, unsigned char *args,
                                   struct kiln_error *err)
{
    void *const address = output->buffer->address;
    const int64_t rows = ki_op_most_rows(output->rows, args);
    void *given;

    memcpy(&given, args + output->offset, sizeof given);
    if (given != NULL && given != address) {
        return refuse_address(output, given, err);
    }
    if (rows > output->buffer->rows) {
        return refuse_rows(output, rows, err);
    }
    memcpy(args + output->offset, &address, sizeof address);
    return KILN_OK;
}

static enum kiln_status launch(const struct ki_launch_slot *slot, const void *args,
                               struct CUstream_st *stream, enum ki_launch_order order,
                               struct kiln_error *err)
{
    _Alignas(16) unsigned char copy[KI_ARGS_MAX];

    memcpy(copy, args, slot->kernel->op->info.args_bytes);
    for (size_t i = 0; i < slot->n_outputs; i++) {
        enum kiln_status status = put_output(&slot->outputs[i], copy, err);

        if (status != KILN_OK) {
            ki_count_launch(slot->kernel->counts, status);
            return status;
        }
    }
    return ki_launch(slot->kernel, copy, stream, order, err);
}

enum kiln_status kiln_launcher_launch(struct kiln_launcher *launcher, size_t i_launch,
                                      const void *args, struct CUstream_st *stream,
                                      struct kiln_error *err)
{
    enum kiln_status status;

    if (launcher == NULL || args == NULL || i_launch >= launcher->layout.n_launches) {
        return refuse_call(launcher, i_launch, args, err);
    }
    status = launch(&launcher->slots[i_launch], args, stream, launcher->order, err);
    ki_count_launch(&launcher->slots[i_launch].counts, status);
    return status;
}

/* ---- look ------------------------------------------------------------------------------- */

const struct kiln_layout *kiln_launcher_layout(const struct kiln_launcher *launcher)
{
    return launcher != NULL ? &launcher->layout : NULL;
}

bool kiln_launcher_is_programmatic(const struct kiln_launcher *launcher)
{
    return launcher != NULL && launcher->order == KI_LAUNCH_PROGRAMMATIC;
}

void kiln_launcher_get_stats(const struct kiln_launcher *launcher,
                             struct kiln_launcher_stats *out)
{
    if (out == NULL) {
        return;
    }
    *out = (struct kiln_launcher_stats){0};
    if (launcher == NULL) {
        return;
    }
    out->n_pins = launcher->n_pins;
    out->allocated_bytes = launcher->allocated_bytes;
    out->create_ms = launcher->create_ms;
    out->n_refused = launcher->n_astray;
    for (size_t i = 0; i < launcher->layout.n_launches; i++) {
        out->n_launches += launcher->slots[i].counts.n_launches;
        out->n_refused += launcher->slots[i].counts.n_refused;
    }
}
