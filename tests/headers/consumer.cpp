// SPDX-License-Identifier: Apache-2.0
// How a server in C++ uses kiln: all of it without a cast and without a warning.
#include <cstdio>

#include "kiln/gpu.h"
#include "kiln/kiln.h"
#include "kiln/launcher.h"
#include "kiln/plan.h"
#include "kiln/seal.h"
#include "kiln/store.h"

namespace
{

void log_line(void *user, kiln_log_level level, const char *text)
{
    std::fprintf(static_cast<std::FILE *>(user), "%d: %s\n", static_cast<int>(level),
                 text);
}

void show(void *, const kiln_store_item *item)
{
    std::puts(item->name);
}

void progress(void *, size_t, kiln_warm_result, int64_t, const char *)
{
}

kiln_status check_consumer(const kiln_shape &shape, kiln_error *err)
{
    const kiln_profile_info *profile = kiln_profile_info_get(KILN_PROFILE_FLASHINFER);

    std::puts(profile->name);
    return kiln_profile_check(KILN_PROFILE_FLASHINFER, KILN_OP_GLOBAL_TOPK, &shape, err);
}

kiln_status serve(struct kiln *kiln, kiln_error *err)
{
    kiln_shape shape = kiln_shape();
    const kiln_kernel *kernel = nullptr;
    kiln_global_topk_args args = kiln_global_topk_args();
    kiln_kernel_info info;
    kiln_stats stats;
    kiln_status status;

    shape.global_topk.topk = 512;
    status = kiln_shape_defaults(KILN_OP_GLOBAL_TOPK, 1U, &shape, err);
    if (status == KILN_OK) {
        status = check_consumer(shape, err);
    }
    if (status == KILN_OK) {
        status = kiln_prepare(kiln, KILN_OP_GLOBAL_TOPK, &shape, nullptr, &kernel, err);
    }
    if (status == KILN_OK) {
        status = kiln_find(kiln, KILN_OP_GLOBAL_TOPK, &shape, &kernel, err);
    }
    if (status != KILN_OK) {
        return status;
    }
    args.live_tokens.kind = KILN_COUNT_VALUE;
    kiln_kernel_get_info(kernel, &info);
    kiln_get_stats(kiln, &stats);
    return kiln_launch_global_topk(kernel, &args, nullptr, err);
}

void tell(void *, const kiln_event *event)
{
    std::puts(event->message != nullptr ? event->message : event->target);
}

kiln_status serve_for_days(struct kiln *kiln, CUgraph_st *graph, kiln_error *err)
{
    kiln_deployment deployment = kiln_deployment();
    kiln_launcher_options options = KILN_LAUNCHER_OPTIONS_INIT;
    kiln_token_to_req_args args = kiln_token_to_req_args();
    kiln_launcher_stats stats;
    struct kiln_launcher *launcher = nullptr;
    const kiln_layout *layout;
    kiln_status status;

    status = kiln_launcher_create(kiln, &deployment, &options, &launcher, err);
    if (status != KILN_OK) {
        return status;
    }
    layout = kiln_launcher_layout(launcher);
    status = kiln_launcher_launch(
        launcher, kiln_layout_find_launch(layout, "token_to_req"), &args, nullptr, err);
    if (status == KILN_OK) {
        status = kiln_launcher_retain(launcher, graph, err);
    }
    if (status == KILN_OK) {
        status = kiln_seal(kiln, KILN_SEAL_ERROR, nullptr, nullptr, err);
    }
    kiln_launcher_get_stats(launcher, &stats);
    return status != KILN_OK ? status : kiln_launcher_destroy(&launcher, err);
}

} // namespace

int main()
{
    kiln_options options = KILN_OPTIONS_INIT;
    kiln_warm_options warm = kiln_warm_options();
    kiln_warm_summary summary;
    kiln_request request = kiln_request();
    kiln_error err;
    struct kiln *kiln = nullptr;
    kiln_status status;

    options.log_fn = log_line;
    options.log_user = stderr;
    options.event_fn = tell;
    options.target = "sm_90";
    warm.progress = progress;
    request.op = KILN_OP_GLOBAL_TOPK;
    status = kiln_create(&options, &kiln, &err);
    if (status == KILN_OK) {
        status = kiln_warm(kiln, &request, 1, &warm, &summary, &err);
    }
    if (status == KILN_OK) {
        status = serve(kiln, &err);
    }
    if (status == KILN_OK) {
        status = serve_for_days(kiln, nullptr, &err);
    }
    if (status == KILN_OK) {
        status = kiln_store_visit("/cache", show, nullptr, &err);
    }
    std::fprintf(stderr, "%s: %s\n", kiln_status_name(status), err.message);
    kiln_destroy(&kiln);
    return status == KILN_OK ? 0 : 1;
}
