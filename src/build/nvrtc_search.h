/* SPDX-License-Identifier: Apache-2.0 */
/* Where libnvrtc may lie, in the order in which it is looked for. Loads nothing. */
#ifndef KI_BUILD_NVRTC_SEARCH_H
#define KI_BUILD_NVRTC_SEARCH_H

#include "build/nvrtc.h"

/* One place. `loaded`: take it only if the process has it already. */
struct ki_nvrtc_place {
    const char *path; /* a path, or a bare library name for the system's search */
    bool loaded;
};

/* True: stop here. */
typedef bool (*ki_nvrtc_place_fn)(void *user, const struct ki_nvrtc_place *place);

/* Offers every place but `search->path`, best first, until one is taken; false: none was. */
bool ki_nvrtc_search_places(const struct ki_nvrtc_search *search, ki_nvrtc_place_fn fn,
                            void *user);

#endif
