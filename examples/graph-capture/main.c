/* SPDX-License-Identifier: Apache-2.0 */
/* One launch, captured with eight rows, replayed with eight of them live and with three. */
#include <stdio.h>

#include "kiln/gpu.h" /* a context, memory and graphs; a server has its own */
#include "kiln/kiln.h"
#include "kiln/launcher.h"

enum { ROWS = 8, ROW = 4 /* that is looked at */, TOPK = 512, PAGE = 64 };

int main(void)
{
    const struct kiln_deployment deployment = {.num_hidden_layers = 1,
                                               .index_topk = TOPK,
                                               .max_model_len = TOPK,
                                               .max_num_batched_tokens = ROWS};
    struct {
        int32_t live, picks[ROWS][TOPK], request[ROWS], pages[TOPK / PAGE];
    } host = {.pages = {7, 3, 5, 0, 2, 6, 1, 4}}, *dev = NULL;
    struct kiln_gpu *gpu = NULL;
    struct kiln *kiln = NULL;
    struct kiln_launcher *launcher = NULL;
    struct kiln_gpu_graph *graph = NULL;
    struct kiln_error err = {0};
    int n_wrong = 0;

    for (int i = 0; i < ROWS * TOPK; i++)
        host.picks[i / TOPK][i % TOPK] = i % TOPK;
    if (!kiln_gpu_open(0, &gpu, &err) && !kiln_create(NULL, &kiln, &err) &&
        !kiln_launcher_create(kiln, &deployment, NULL, &launcher, &err) &&
        !kiln_gpu_alloc(gpu, sizeof host, (void **)&dev, &err) &&
        !kiln_gpu_capture_begin(gpu, KILN_CAPTURE_GLOBAL, &err)) {
        const struct kiln_layout *layout = kiln_launcher_layout(launcher);
        const size_t i_launch = kiln_layout_find_launch(layout, "req_to_global");
        const struct kiln_buffer *out =
            kiln_layout_find_buffer(layout, "req_to_global.global_indices");
        const struct kiln_req_to_global_args args = {
            .token_indices = dev->picks[0],
            .req_id = dev->request,
            .block_table = dev->pages,
            .num_tokens = ROWS,
            .table_rows = 1,
            .live_tokens = {.kind = KILN_COUNT_DEVICE, .address = &dev->live}};
        int32_t slots[ROWS][TOPK];

        int ok =
            !kiln_launcher_launch(launcher, i_launch, &args, kiln_gpu_stream(gpu), &err);

        ok = !kiln_gpu_capture_end(gpu, &graph, ok ? &err : NULL) && ok;
        for (host.live = ROWS; host.live > 0 && ok; host.live -= 5) {
            if (kiln_gpu_copy_in(gpu, dev, &host, sizeof host, &err) ||
                kiln_gpu_replay(gpu, graph, NULL, &err) ||
                kiln_gpu_copy_out(gpu, slots, out->address, sizeof slots, &err))
                break;
            for (int i = 0; i < TOPK; i++)
                n_wrong +=
                    slots[ROW][i] !=
                    (ROW < host.live ? host.pages[i / PAGE] * PAGE + i % PAGE : -1);
            printf("%d live: row %d starts %d %d %d\n", host.live, ROW, slots[ROW][0],
                   slots[ROW][1], slots[ROW][2]);
        }
    }
    if (err.status)
        fprintf(stderr, "%s: %s\n", kiln_status_name((int)err.status), err.message);
    kiln_gpu_graph_destroy(gpu, &graph); /* graphs, launcher, kiln, in this order */
    n_wrong += kiln_launcher_destroy(&launcher, NULL) != KILN_OK;
    kiln_destroy(&kiln);
    if (gpu)
        kiln_gpu_free(gpu, dev);
    kiln_gpu_close(&gpu);
    return err.status == KILN_E_DRIVER_MISSING ? 77 : err.status || n_wrong != 0;
}
