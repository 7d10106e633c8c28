/* SPDX-License-Identifier: Apache-2.0 */
/* Looks at everything that kiln depends on and says what it found and what to do. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/attr.h"
#include "base/status.h"
#include "prepare.h"

enum { CACHE_TEXT = KI_PATH_BYTES + KILN_MESSAGE_BYTES + 128 };

struct hand {
    kiln_finding_fn fn;
    void *user;
};

static void tell(const struct hand *hand, const char *topic,
                 enum kiln_finding_state state, const char *advice, const char *text)
{
    struct kiln_finding finding = {topic, state, text, advice};

    hand->fn(hand->user, &finding);
}

/* Each line of the search's report is a note: the path tried and the reason. */
static void tell_lines(const struct hand *hand, const char *topic, const char *lines)
{
    char line[2048];

    while (lines != NULL && *lines != '\0') {
        size_t length = strcspn(lines, "\n");

        snprintf(line, sizeof line, "%.*s", (int)(length < 2000 ? length : 2000), lines);
        tell(hand, topic, KILN_FINDING_NOTE, NULL, line);
        lines += length + (lines[length] == '\n' ? 1 : 0);
    }
}

static void tell_targets(const struct hand *hand, const struct ki_nvrtc *nvrtc)
{
    char text[1024];
    size_t used;

    used = (size_t)snprintf(text, sizeof text, "NVRTC %d.%d at %.600s; targets",
                            nvrtc->major, nvrtc->minor, nvrtc->path);
    for (int i = 0; i < nvrtc->n_archs && used < sizeof text; i++) {
        char name[KI_TARGET_NAME];
        struct ki_target known;

        ki_target_name(nvrtc->archs[i], name);
        if (ki_target_parse(name, &known, NULL) != KILN_OK) {
            continue; /* older than what kiln serves */
        }
        used += (size_t)snprintf(text + used, sizeof text - used, " %s", name);
    }
    tell(hand, "nvrtc", KILN_FINDING_OK, NULL, text);
}

static enum kiln_status look_at_nvrtc(struct kiln *kiln, const struct hand *hand,
                                      struct kiln_error *err)
{
    struct ki_nvrtc nvrtc = {0};
    struct ki_nvrtc_search search;
    struct ki_text report;
    struct kiln_error why;
    glob_t wheels;
    enum kiln_status status;

    ki_text_init(&report, &kiln->mem);
    ki_paths_nvrtc_search(&kiln->paths, &search, &wheels);
    status = ki_nvrtc_open(&nvrtc, &search, &report, &why);
    globfree(&wheels);
    if (status == KILN_OK) {
        tell_targets(hand, &nvrtc);
    } else {
        tell_lines(hand, "nvrtc", report.data);
        tell(hand, "nvrtc", KILN_FINDING_FAULT,
             "install a CUDA toolkit or the wheel nvidia-cuda-nvrtc, or name libnvrtc.so "
             "with KILN_NVRTC; a host whose cache is warm needs none",
             why.message);
    }
    ki_nvrtc_close(&nvrtc);
    status = ki_text_ok(&report) ? KILN_OK : ki_fail_memory(err, "the report");
    ki_text_finish(&report);
    return status;
}

static void look_at_gpu(const struct ki_driver *driver, int i, const struct hand *hand)
{
    char name[128] = "?";
    char text[256];
    CUdevice device;
    int major = 0;
    int minor = 0;
    int n_sms = 0;

    if (driver->device_get(&device, i) != CUDA_SUCCESS ||
        driver->device_get_name(name, sizeof name, device) != CUDA_SUCCESS ||
        driver->device_get_attribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
                                     device) != CUDA_SUCCESS ||
        driver->device_get_attribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
                                     device) != CUDA_SUCCESS ||
        driver->device_get_attribute(&n_sms, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT,
                                     device) != CUDA_SUCCESS) {
        snprintf(text, sizeof text, "device %d does not answer", i);
        tell(hand, "gpu", KILN_FINDING_FAULT, "look at nvidia-smi", text);
        return;
    }
    snprintf(text, sizeof text, "device %d: %s, sm_%d%d, %d multiprocessors", i, name,
             major, minor, n_sms);
    tell(hand, "gpu", KILN_FINDING_OK, NULL, text);
}

static void look_at_driver(const struct hand *hand)
{
    struct ki_driver driver = {0};
    struct kiln_error why;
    char text[64];
    int n = 0;

    if (ki_driver_open(&driver, &why) != KILN_OK) {
        tell(hand, "driver", KILN_FINDING_NOTE,
             "nothing to do on a machine that only warms; to launch, install the NVIDIA "
             "driver",
             why.message);
        return;
    }
    snprintf(text, sizeof text, "libcuda.so.1, CUDA %d.%d", driver.version / 1000,
             driver.version % 1000 / 10);
    tell(hand, "driver", KILN_FINDING_OK, NULL, text);
    if (driver.device_get_count(&n) != CUDA_SUCCESS) {
        n = 0;
    }
    if (n == 0) {
        tell(hand, "gpu", KILN_FINDING_NOTE,
             "look at nvidia-smi and CUDA_VISIBLE_DEVICES", "the driver sees no GPU");
    }
    for (int i = 0; i < n; i++) {
        look_at_gpu(&driver, i, hand);
    }
    ki_driver_close(&driver);
}

static void count_item(void *user, const struct ki_store_item *item)
{
    int64_t *counts = user;

    counts[item->fault == NULL ? 0 : 1]++;
}

/* `why` is NULL where it could be made. */
static void tell_missing(const struct hand *hand, const char *dir,
                         const struct kiln_error *why)
{
    char text[CACHE_TEXT];

    if (why == NULL) {
        snprintf(text, sizeof text,
                 "folder %s: is not there; the first server or `kiln warm` that uses it "
                 "makes it",
                 dir);
        tell(hand, "cache", KILN_FINDING_NOTE,
             "look whether the path is right; if other users are to read it, make it "
             "with `install -d -m 755` before warming",
             text);
        return;
    }
    snprintf(text, sizeof text,
             "folder %s: is not there and cannot be made, every start compiles anew: %s",
             dir, why->message);
    tell(hand, "cache", KILN_FINDING_FAULT,
         "make it, or set KILN_CACHE_DIR to an absolute path that you own", text);
}

/* `why` is NULL where it can be written to. One that cannot still serves what is in it. */
static void tell_kernels(const struct hand *hand, const char *dir, int64_t n_kernels,
                         const struct kiln_error *why)
{
    char text[CACHE_TEXT];

    if (why == NULL) {
        snprintf(text, sizeof text, "writable folder %s: %lld kernels", dir,
                 (long long)n_kernels);
        tell(hand, "cache", KILN_FINDING_OK, NULL, text);
        return;
    }
    snprintf(text, sizeof text,
             "folder %s: %lld kernels; cannot be written to: what it lacks is compiled "
             "anew at every start (%s)",
             dir, (long long)n_kernels, why->message);
    tell(hand, "cache", KILN_FINDING_NOTE,
         "nothing to do where `kiln check --plan` finds it complete; else let its owner "
         "warm it",
         text);
}

/* Memory that ran out is no fault of the folder. */
static enum kiln_status tell_unusable(const struct hand *hand,
                                      const struct kiln_error *why,
                                      struct kiln_error *err)
{
    if (why->status == KILN_E_MEMORY) {
        return ki_fail_memory(err, "what lies in a cache folder");
    }
    tell(hand, "cache", KILN_FINDING_FAULT,
         "the folder must exist, belong to you or root, and be writable for no one else",
         why->message);
    return KILN_OK;
}

static void tell_bad(const struct hand *hand, const char *dir, int64_t n_bad)
{
    char text[CACHE_TEXT];

    if (n_bad > 0) {
        snprintf(text, sizeof text, "%s: %lld entries do not verify", dir,
                 (long long)n_bad);
        tell(hand, "cache", KILN_FINDING_FAULT,
             "`kiln check` names them; a server rebuilds them, `kiln warm` too", text);
    }
}

static enum kiln_status look_at_read_only(struct kiln *kiln, const char *dir,
                                          const struct hand *hand, struct kiln_error *err)
{
    int64_t counts[2] = {0, 0};
    struct kiln_error why;
    char text[CACHE_TEXT];
    enum kiln_status status = ki_store_visit(dir, kiln->allow_group_writable, &kiln->mem,
                                             count_item, counts, &why);

    if (status != KILN_OK) {
        return tell_unusable(hand, &why, err);
    }
    snprintf(text, sizeof text, "read-only folder %s: %lld kernels", dir,
             (long long)counts[0]);
    tell(hand, "cache", KILN_FINDING_OK, NULL, text);
    tell_bad(hand, dir, counts[1]);
    return KILN_OK;
}

static enum kiln_status look_at_writable(struct kiln *kiln, const char *dir,
                                         const struct hand *hand, struct kiln_error *err)
{
    int64_t counts[2] = {0, 0};
    struct kiln_error why;
    struct kiln_error why_not;
    const struct kiln_error *reason = NULL;
    enum kiln_status status = ki_store_visit(dir, kiln->allow_group_writable, &kiln->mem,
                                             count_item, counts, &why);

    if (status != KILN_OK && why.native_code != ENOENT) {
        return tell_unusable(hand, &why, err);
    }
    if (ki_store_writable(dir, kiln->allow_group_writable, &kiln->mem, &why_not) !=
        KILN_OK) {
        reason = &why_not;
    }
    if (reason != NULL && reason->status == KILN_E_MEMORY) {
        return tell_unusable(hand, reason, err);
    }
    if (status != KILN_OK) {
        tell_missing(hand, dir, reason);
        return KILN_OK;
    }
    tell_kernels(hand, dir, counts[0], reason);
    tell_bad(hand, dir, counts[1]);
    return KILN_OK;
}

static enum kiln_status look_at_cache(struct kiln *kiln, const struct hand *hand,
                                      struct kiln_error *err)
{
    const struct ki_paths *paths = &kiln->paths;

    if (kiln->no_disk) {
        tell(hand, "cache", KILN_FINDING_NOTE, NULL,
             "no cache folders, as the options say: every start compiles anew");
    } else if (paths->cache_dir == NULL) {
        char text[KILN_MESSAGE_BYTES + 64];

        snprintf(text, sizeof text,
                 "no writable cache folder, every start compiles anew: %s",
                 kiln->store.no_writable_reason);
        tell(hand, "cache", KILN_FINDING_FAULT,
             "set KILN_CACHE_DIR to an absolute path that you own", text);
    } else {
        KI_TRY(look_at_writable(kiln, paths->cache_dir, hand, err));
    }
    for (size_t i = 0; i < paths->n_read_only_dirs; i++) {
        KI_TRY(look_at_read_only(kiln, paths->read_only_dirs[i], hand, err));
    }
    return KILN_OK;
}

enum kiln_status kiln_doctor(struct kiln *kiln, kiln_finding_fn fn, void *user,
                             struct kiln_error *err)
{
    struct hand hand = {fn, user};

    if (kiln == NULL || fn == NULL) {
        return ki_fail(err, KILN_E_ARGUMENT, "%s is NULL: expected one",
                       kiln == NULL ? "kiln" : "fn");
    }
    KI_TRY(ki_refuse_fork(kiln, err));
    KI_TRY(look_at_nvrtc(kiln, &hand, err));
    look_at_driver(&hand);
    return look_at_cache(kiln, &hand, err);
}
