/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An inference server's loop around kiln: mixed prefill and decode with growing contexts,
 * one graph per batch size, every output of every step compared with the reference.
 *
 *   start:  deployment -> kiln -> launcher -> seal -> graphs
 *   step:   schedule -> copy inputs -> replay the graph of the next size up -> check
 *
 * kiln/gpu.h stands for the server's own CUDA code. A server passes what it has as it is:
 * its CUstream or cudaStream_t where kiln wants a struct CUstream_st *, and a CUdeviceptr
 * d as (void *)(uintptr_t)d; kiln works in the context that is current.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kiln/gpu.h"
#include "kiln/kiln.h"
#include "kiln/launcher.h"
#include "kiln/seal.h"

#include "batch.h"
#include "check.h"
#include "step.h"

enum {
    MAX_SEQS = 64,
    MAX_PREFILL = 8, /* requests with a prefill chunk in a step */
    MAX_TOKENS = 512,
    MAX_STEPS_OF_SIZES = 16,
    NOT_RUN = 77,
    POISON = 0xA5, /* what outputs hold before the first step */
};

struct options {
    const char *model;
    int64_t steps, max_model_len, seed;
};

struct server {
    struct kiln_gpu *gpu;
    struct kiln *kiln;
    struct kiln_launcher *launcher;
    struct sizes sizes;
    struct memory device;
    size_t in_bytes;
    char *saved;                           /* on the device; see step.h */
    struct step steps[MAX_STEPS_OF_SIZES]; /* decode by size, then the mixed one */
    size_t n_steps;
    struct batch batch;
    struct checker checker;
    struct kiln_stats sealed; /* what had happened when the kiln was sealed */
};

/* ---- options and deployment ---- */

static int read_number(const char *text, int64_t max, int64_t *out)
{
    char *end;
    const long long value = strtoll(text, &end, 10);

    if (*text == '\0' || *end != '\0' || value < 0 || value > max) {
        return -1;
    }
    *out = value;
    return 0;
}

static int read_options(int argc, char **argv, struct options *out)
{
    int bad = argc % 2 == 0;

    for (int i = 1; i + 1 < argc && !bad; i += 2) {
        if (strcmp(argv[i], "--model") == 0) {
            out->model = argv[i + 1];
        } else if (strcmp(argv[i], "--steps") == 0) {
            bad = read_number(argv[i + 1], INT32_MAX, &out->steps);
        } else if (strcmp(argv[i], "--max-model-len") == 0) {
            bad = read_number(argv[i + 1], INT32_MAX, &out->max_model_len);
        } else if (strcmp(argv[i], "--seed") == 0) {
            bad = read_number(argv[i + 1], INT64_MAX, &out->seed);
        } else {
            bad = 1;
        }
    }
    if (bad || out->model == NULL) {
        fprintf(stderr, "usage: server-embed --model CONFIG.json [--steps N] "
                        "[--max-model-len N] [--seed N]\n");
        return -1;
    }
    return 0;
}

static char *read_file(const char *path, size_t *out_bytes)
{
    enum { MAX_BYTES = 1 << 20 };
    FILE *file = fopen(path, "rb");
    char *text = malloc(MAX_BYTES);

    if (file == NULL || text == NULL) {
        perror(path);
        free(text);
        text = NULL;
    } else {
        *out_bytes = fread(text, 1, MAX_BYTES, file);
    }
    if (file != NULL) {
        fclose(file);
    }
    return text;
}

static enum kiln_status read_deployment(const struct options *options,
                                        struct kiln_deployment *out,
                                        struct kiln_error *err)
{
    size_t n_bytes = 0;
    char *text = read_file(options->model, &n_bytes);
    enum kiln_status status;

    if (text == NULL) {
        return KILN_E_SYSTEM;
    }
    memset(out, 0, sizeof *out);
    status = kiln_deployment_from_config(text, n_bytes, options->model, out, err);
    free(text);
    out->max_model_len = options->max_model_len;
    out->max_num_batched_tokens = MAX_TOKENS;
    out->max_num_seqs = MAX_SEQS;
    out->block_size = out->n_compress_ratios > 0 ? 256 : 64;
    return status;
}

/* ---- start-up ---- */

/* Everything that compiles, loads or allocates for kiln happens here. */
static enum kiln_status create_launcher(struct server *server,
                                        const struct kiln_deployment *deployment,
                                        struct kiln_error *err)
{
    struct kiln_launcher_options options = KILN_LAUNCHER_OPTIONS_INIT;
    const struct kiln_layout *layout;
    enum kiln_status status = kiln_create(NULL, &server->kiln, err);

    options.stream = kiln_gpu_stream(server->gpu);
    if (status == KILN_OK) {
        status = kiln_launcher_create(server->kiln, deployment, &options,
                                      &server->launcher, err);
    }
    if (status != KILN_OK) {
        return status;
    }
    layout = kiln_launcher_layout(server->launcher);
    server->device.out_block = layout->buffers[0].address; /* all in one block */
    server->sizes = (struct sizes){.max_decode = MAX_SEQS,
                                   .max_prefill = MAX_PREFILL,
                                   .max_tokens = MAX_TOKENS,
                                   .max_len = deployment->max_model_len,
                                   .block_size = deployment->block_size,
                                   .swa_block_size = 64};
    sizes_from_layout(&server->sizes, layout);
    server->checker.layout = layout;
    return KILN_OK;
}

/* The step of each batch size: 1, 2, 4, ... decode requests, and a mixed one. */
static int list_steps(struct server *server)
{
    const struct kiln_layout *layout = kiln_launcher_layout(server->launcher);
    int failed = 0;

    for (int64_t n = 1; n <= MAX_SEQS && !failed; n *= 2) {
        failed = step_init(&server->steps[server->n_steps++], layout, n, 0, n);
    }
    return failed || step_init(&server->steps[server->n_steps++], layout, MAX_SEQS,
                               MAX_PREFILL, MAX_TOKENS);
}

static int64_t most_saved_bytes(const struct server *server)
{
    int64_t most = 0;

    for (size_t i = 0; i < server->n_steps; i++) {
        if (server->steps[i].saved_bytes > most) {
            most = server->steps[i].saved_bytes;
        }
    }
    return most;
}

/* Inputs on both sides, allocated once; outputs start with the same bytes on both. */
static enum kiln_status allocate(struct server *server, struct kiln_error *err)
{
    const struct kiln_layout *layout = kiln_launcher_layout(server->launcher);
    struct memory *host = &server->checker.host;
    const size_t out_bytes = (size_t)layout->total_bytes;
    const size_t saved_bytes = (size_t)most_saved_bytes(server);
    void *in_block = NULL;
    void *saved = NULL;
    enum kiln_status status;

    server->in_bytes = inputs_place(&server->sizes, NULL, &host->in);
    host->in_block = calloc(1, server->in_bytes);
    host->out_block = malloc(out_bytes);
    server->checker.saved = malloc(saved_bytes);
    if (host->in_block == NULL || host->out_block == NULL ||
        server->checker.saved == NULL) {
        return KILN_E_MEMORY;
    }
    inputs_place(&server->sizes, host->in_block, &host->in);
    memset(host->out_block, POISON, out_bytes);
    status = kiln_gpu_alloc(server->gpu, server->in_bytes, &in_block, err);
    if (status == KILN_OK) {
        status = kiln_gpu_alloc(server->gpu, saved_bytes, &saved, err);
    }
    if (status == KILN_OK) {
        status = kiln_gpu_copy_in(server->gpu, server->device.out_block, host->out_block,
                                  out_bytes, err);
    }
    server->device.in_block = in_block;
    server->saved = saved;
    inputs_place(&server->sizes, server->device.in_block, &server->device.in);
    return status;
}

static enum kiln_status start(struct server *server, const struct options *options,
                              struct kiln_error *err)
{
    struct kiln_deployment deployment;
    struct kiln_plan plan = {0};
    enum kiln_status status = read_deployment(options, &deployment, err);

    if (status == KILN_OK) {
        status = kiln_plan_make(&deployment, &plan, err);
    }
    if (status == KILN_OK) {
        status = create_launcher(server, &deployment, err);
    }
    if (status == KILN_OK && list_steps(server) != 0) {
        status = KILN_E_MEMORY;
    }
    if (status == KILN_OK) {
        status = allocate(server, err);
    }
    if (status == KILN_OK) { /* from here on nothing compiles and nothing loads */
        status = kiln_seal(server->kiln, KILN_SEAL_ERROR, &plan, NULL, err);
    }
    for (size_t i = 0; i < server->n_steps && status == KILN_OK; i++) {
        status = step_capture(&server->steps[i], server->launcher, server->gpu,
                              &server->device, server->saved, err);
    }
    if (status == KILN_OK &&
        batch_init(&server->batch, &server->sizes, &server->checker.host.in,
                   (uint64_t)options->seed) != 0) {
        status = KILN_E_MEMORY;
    }
    kiln_get_stats(server->kiln, &server->sealed);
    kiln_plan_finish(&plan);
    return status;
}

/* ---- serve ---- */

/* The graph of the next size up; a batch with a prefill chunk has its own. */
static struct step *pick_step(struct server *server)
{
    size_t i = server->n_steps - 1;

    if (server->batch.n_prefill == 0) {
        i = 0;
        while (server->steps[i].n_decode < server->batch.n_decode) {
            i++;
        }
    }
    return &server->steps[i];
}

/* A server would queue the copy and the graph on its stream and wait for neither. */
static enum kiln_status serve_step(struct server *server, int64_t i_step,
                                   struct kiln_error *err)
{
    struct checker *checker = &server->checker;
    struct step *step;
    double us = 0;
    enum kiln_status status;

    batch_next(&server->batch);
    step = pick_step(server);
    status = kiln_gpu_copy_in(server->gpu, server->device.in_block,
                              checker->host.in_block, server->in_bytes, err);
    if (status == KILN_OK) {
        status = kiln_gpu_replay(server->gpu, step->graph, &us, err);
    }
    if (status == KILN_OK) {
        status = kiln_gpu_copy_out(server->gpu, checker->saved, server->saved,
                                   (size_t)step->saved_bytes, err);
    }
    if (status == KILN_OK) {
        status = check_step(checker, step, i_step, err);
    }
    step->n_replays++;
    step->total_us += us;
    return status;
}

static double seconds_now(void)
{
    struct timespec now;

    timespec_get(&now, TIME_UTC);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Returns whether nothing was built, loaded or refused since the seal. */
static int report(const struct server *server, int64_t n_steps, double seconds)
{
    const struct checker *checker = &server->checker;
    const struct kiln_stats *sealed = &server->sealed;
    struct kiln_launcher_stats launcher;
    struct kiln_stats now;
    int64_t n_late;

    kiln_get_stats(server->kiln, &now);
    kiln_launcher_get_stats(server->launcher, &launcher);
    n_late = now.n_compiled - sealed->n_compiled + now.n_loaded - sealed->n_loaded +
             now.n_violations;
    for (size_t i = 0; i < server->n_steps; i++) {
        const struct step *step = &server->steps[i];

        printf("graph of %3" PRId64 " tokens%s: %5zu launches, %6" PRId64 " replays",
               step->n_tokens, step->n_prefill > 0 ? ", mixed" : "       ", step->n_calls,
               step->n_replays);
        if (step->n_replays > 0) {
            printf(", %8.1f us each", step->total_us / (double)step->n_replays);
        }
        printf("\n");
    }
    printf("requests: %" PRId64 " admitted, the longest grew to %" PRId64 " tokens\n",
           server->batch.n_admitted, server->batch.longest);
    printf("kernels: %" PRId64 " loaded, %" PRId64 " of them compiled, %" PRId64
           " from the cache; built, loaded or refused after the seal: %" PRId64 "\n",
           now.n_loaded, now.n_compiled, now.n_store_hits, n_late);
    printf("launcher: %" PRId64 " launches captured, %" PRId64 " refused, %.1f MiB\n",
           launcher.n_launches, launcher.n_refused,
           (double)launcher.allocated_bytes / (1 << 20));
    printf("%" PRId64 " steps, %.1f a second: %" PRId64 " launches, %" PRId64
           " outputs, %" PRId64 " elements compared, %" PRId64 " differ\n",
           n_steps, (double)n_steps / seconds, checker->n_launches, checker->n_outputs,
           checker->n_elements, checker->n_differences);
    return n_late == 0 && launcher.n_refused == 0;
}

static enum kiln_status serve(struct server *server, int64_t n_steps, int *out_ok,
                              struct kiln_error *err)
{
    const double begin = seconds_now();
    enum kiln_status status = KILN_OK;

    for (int64_t i = 0; i < n_steps && status == KILN_OK; i++) {
        status = serve_step(server, i, err);
    }
    if (status == KILN_OK) {
        *out_ok = report(server, n_steps, seconds_now() - begin) &&
                  server->checker.n_differences == 0;
    }
    return status;
}

/* ---- end ---- */

/* Graphs before the launcher, the launcher before its kiln. */
static enum kiln_status stop(struct server *server, struct kiln_error *err)
{
    enum kiln_status status;

    for (size_t i = 0; i < server->n_steps; i++) {
        step_finish(&server->steps[i], server->gpu);
    }
    status = kiln_launcher_destroy(&server->launcher, err);
    kiln_destroy(&server->kiln);
    if (server->gpu != NULL) {
        kiln_gpu_free(server->gpu, server->device.in_block);
        kiln_gpu_free(server->gpu, server->saved);
    }
    kiln_gpu_close(&server->gpu);
    batch_finish(&server->batch);
    free(server->checker.host.in_block);
    free(server->checker.host.out_block);
    free(server->checker.saved);
    return status;
}

int main(int argc, char **argv)
{
    struct options options = {.steps = 200, .max_model_len = 65536, .seed = 1};
    static struct server server;
    struct kiln_error err = {0};
    enum kiln_status status;
    enum kiln_status stop_status;
    int ok = 0;

    if (read_options(argc, argv, &options) != 0) {
        return 2;
    }
    status = kiln_gpu_open(0, &server.gpu, &err);
    if (status == KILN_E_DRIVER_MISSING) {
        fprintf(stderr, "not run, there is no GPU: %s\n", err.message);
        return NOT_RUN;
    }
    if (status == KILN_OK) {
        status = start(&server, &options, &err);
    }
    if (status == KILN_OK) {
        status = serve(&server, options.steps, &ok, &err);
    }
    stop_status = stop(&server, status == KILN_OK ? &err : NULL);
    status = status != KILN_OK ? status : stop_status;
    if (status != KILN_OK) {
        fprintf(stderr, "%s: %s\n", kiln_status_name((int)status), err.message);
    }
    return status == KILN_OK && ok ? 0 : 1;
}
