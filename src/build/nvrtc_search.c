/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where libnvrtc may lie, in the order in which it is looked for. Loads nothing and reads no
 * environment; it lists a toolkit's targets/ folder, nothing else of the disk.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/attr.h"
#include "base/file.h"
#include "build/nvrtc_search.h"

/* The newer first: it knows the newer GPUs. */
static const char *const sonames[] = {"libnvrtc.so.13", "libnvrtc.so.12"};

struct walk {
    ki_nvrtc_place_fn fn;
    void *user;
};

static bool offer_sonames(const struct walk *walk, bool loaded)
{
    for (size_t i = 0; i < KI_COUNT_OF(sonames); i++) {
        struct ki_nvrtc_place place = {.path = sonames[i], .loaded = loaded};

        if (walk->fn(walk->user, &place)) {
            return true;
        }
    }
    return false;
}

static bool offer_folder(const struct walk *walk, const char *folder, const char *below)
{
    /* A relative folder would be searched for in the process's current one. */
    if (folder == NULL || folder[0] != '/') {
        return false;
    }
    for (size_t i = 0; i < KI_COUNT_OF(sonames); i++) {
        char path[KI_NVRTC_PATH];
        struct ki_nvrtc_place place = {.path = path};
        int size = snprintf(path, sizeof path, "%s%s/%s", folder, below, sonames[i]);

        if (size > 0 && (size_t)size < sizeof path && walk->fn(walk->user, &place)) {
            return true;
        }
    }
    return false;
}

/* <home>/targets/<each>/lib: which ones there are depends on the machine. */
static bool offer_targets(const struct walk *walk, const char *home)
{
    struct ki_file_names names = {0};
    char folder[KI_NVRTC_PATH];
    bool taken = false;
    int fd;

    snprintf(folder, sizeof folder, "%s/targets", home);
    fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        return false;
    }
    if (ki_file_list(NULL, fd, NULL, &names) == 0) {
        for (size_t i = 0; i < names.n && !taken; i++) {
            char below[KI_NVRTC_PATH];

            snprintf(below, sizeof below, "/%s/lib", names.names[i]);
            taken = offer_folder(walk, folder, below);
        }
    }
    ki_file_names_finish(&names, NULL);
    (void)close(fd);
    return taken;
}

static bool offer_toolkit(const struct walk *walk, const char *home)
{
    if (home == NULL || home[0] != '/') {
        return false;
    }
    return offer_folder(walk, home, "/lib64") || offer_folder(walk, home, "/lib") ||
           offer_targets(walk, home);
}

static bool offer_wheels(const struct walk *walk, const struct ki_nvrtc_search *search)
{
    for (size_t i = 0; i < KI_COUNT_OF(search->python_prefixes); i++) {
        const char *prefix = search->python_prefixes[i];

        if (offer_folder(walk, prefix, "/nvidia/cu13/lib") ||
            offer_folder(walk, prefix, "/nvidia/cuda_nvrtc/lib")) {
            return true;
        }
    }
    return false;
}

bool ki_nvrtc_search_places(const struct ki_nvrtc_search *search, ki_nvrtc_place_fn fn,
                            void *user)
{
    struct walk walk = {.fn = fn, .user = user};

    if (offer_sonames(&walk, true)) {
        return true;
    }
    for (size_t i = 0; i < search->n_dirs; i++) {
        if (offer_folder(&walk, search->dirs[i], "")) {
            return true;
        }
    }
    return offer_sonames(&walk, false) || offer_toolkit(&walk, search->cuda_home) ||
           offer_toolkit(&walk, "/usr/local/cuda") ||
           offer_folder(&walk, search->conda_prefix, "/lib") ||
           offer_wheels(&walk, search);
}
