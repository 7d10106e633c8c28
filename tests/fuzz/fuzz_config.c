/* SPDX-License-Identifier: Apache-2.0 */
/* A model's config.json, and the plan of what was read. */
#include <string.h>

#include "kiln/plan.h"

#include "fuzz.h"

static void check_plan(struct kiln_deployment *deployment)
{
    struct kiln_plan plan = {0};
    struct kiln_error err = {0};

    deployment->max_model_len = 8192;
    deployment->max_num_batched_tokens = 1024;
    if (kiln_plan_make(deployment, &plan, &err) != KILN_OK) {
        FUZZ_CHECK(err.message[0] != '\0');
        FUZZ_CHECK(plan.items == NULL && plan.n_items == 0);
        return;
    }
    FUZZ_CHECK(plan.n_items > 0);
    for (size_t i = 0; i < plan.n_items; i++) {
        FUZZ_CHECK(plan.items[i].layers > 0 && plan.items[i].bytes >= 0);
    }
    kiln_plan_finish(&plan);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct kiln_deployment deployment = {0};
    struct kiln_error err = {0};

    if (kiln_deployment_from_config((const char *)data, size, "config.json", &deployment,
                                    &err) == KILN_OK) {
        FUZZ_CHECK(deployment.n_compress_ratios >= 0 &&
                   deployment.n_compress_ratios <= KILN_MAX_LAYERS);
        check_plan(&deployment);
    } else {
        FUZZ_CHECK(err.status != KILN_OK && err.message[0] != '\0');
    }
    return 0;
}
