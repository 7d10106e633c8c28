/* SPDX-License-Identifier: Apache-2.0 */
/* The public functions of store.h: the cache on disk for operators, without NVRTC and driver. */
#include <stdio.h>
#include <string.h>

#include "kiln/store.h"

#include "base/attr.h"
#include "base/status.h"
#include "build/store.h"
#include "build/store_layer.h"

struct visit {
    kiln_store_item_fn fn;
    void *user;
};

/* The value of `name` in a key text, up to its line's end, cut to `size`. */
static void key_value(const char *text, const char *name, char *out, size_t size)
{
    size_t length = strlen(name);
    const char *line = text;

    out[0] = '\0';
    while (line != NULL && strncmp(line, name, length) != 0) {
        line = strchr(line, '\n');
        line = line != NULL ? line + 1 : NULL;
    }
    if (line != NULL) {
        size_t n = strcspn(line + length, "\n");

        n = n < size ? n : size - 1;
        memcpy(out, line + length, n);
        out[n] = '\0';
    }
}

static void hand_on(void *user, const struct ki_store_item *item)
{
    const struct visit *visit = user;
    char op[64];
    char target[KI_TARGET_NAME];
    char nvrtc[32];
    struct kiln_store_item out = {
        .name = item->name,
        .fault = item->fault,
        .size_bytes = item->size_bytes,
        .used_ms = item->used_ms,
    };

    if (item->fault == NULL) {
        key_value(item->key_text, "op=", op, sizeof op);
        key_value(item->key_text, "target=", target, sizeof target);
        snprintf(nvrtc, sizeof nvrtc, "%d.%d", (int)item->cubin->nvrtc_major,
                 (int)item->cubin->nvrtc_minor);
        out.key_text = item->key_text;
        out.op = op;
        out.target = target;
        out.nvrtc = nvrtc;
        out.cubin_bytes = (int64_t)item->cubin->image.size;
        out.registers = item->cubin->registers;
        out.smem_bytes = item->cubin->smem_bytes;
        out.threads = item->cubin->threads;
    }
    visit->fn(visit->user, &out);
}

static enum kiln_status check_dir(const char *dir, struct kiln_error *err)
{
    if (dir == NULL || dir[0] != '/') {
        return ki_fail(err, KILN_E_ARGUMENT,
                       "dir = \"%.256s\": expected an absolute path",
                       dir != NULL ? dir : "");
    }
    return KILN_OK;
}

enum kiln_status kiln_store_visit(const char *dir, kiln_store_item_fn fn, void *user,
                                  struct kiln_error *err)
{
    struct visit visit = {fn, user};

    KI_TRY(check_dir(dir, err));
    if (fn == NULL) {
        return ki_fail(err, KILN_E_ARGUMENT, "fn is NULL: expected a function");
    }
    return ki_store_visit(dir, false, NULL, hand_on, &visit, err);
}

enum kiln_status kiln_store_trim(const char *dir, int64_t max_bytes, int64_t *out_removed,
                                 int64_t *out_bytes_left, struct kiln_error *err)
{
    int64_t removed;
    int64_t bytes_left;

    KI_TRY(check_dir(dir, err));
    if (max_bytes < 0) {
        return ki_fail(err, KILN_E_ARGUMENT, "max_bytes = %lld: expected 0 or more",
                       (long long)max_bytes);
    }
    KI_TRY(ki_store_trim(dir, false, max_bytes, NULL, &removed, &bytes_left, err));
    if (out_removed != NULL) {
        *out_removed = removed;
    }
    if (out_bytes_left != NULL) {
        *out_bytes_left = bytes_left;
    }
    return KILN_OK;
}

/* Is the request's cubin in one of the folders? */
static enum kiln_status look_up(struct ki_store *store,
                                const struct kiln_request *request, bool *out_found,
                                struct kiln_error *err)
{
    struct ki_ident ident;
    struct ki_key key;
    struct ki_cubin cubin = {0};

    ki_ident_init(&ident, request->op, &request->shape);
    if (request->target == NULL) {
        return ki_fail(err, KILN_E_TARGET,
                       "a request has no target: expected \"sm_90\", say");
    }
    KI_TRY(ki_target_parse(request->target, &ident.target, err));
    KI_TRY(ki_key_make(&ident, NULL, &key, err));
    *out_found = ki_store_get(store, &key, ident.target, &cubin);
    ki_cubin_finish(&cubin, NULL);
    return KILN_OK;
}

/* A folder that a server would leave out is a fault here. */
static enum kiln_status check_dirs(const struct kiln_store_query *query,
                                   struct kiln_error *err)
{
    for (size_t i = 0; i < query->n_dirs; i++) {
        struct ki_store_layer_options options = {.path = query->dirs[i]};
        struct ki_store_layer layer;

        KI_TRY(check_dir(query->dirs[i], err));
        KI_TRY(ki_store_layer_open(&layer, NULL, &options, NULL, err));
        ki_store_layer_close(&layer);
    }
    return KILN_OK;
}

static enum kiln_status check_query(const struct kiln_store_query *query,
                                    const size_t *out_missing, struct kiln_error *err)
{
    if (query == NULL || out_missing == NULL) {
        return ki_fail(err, KILN_E_ARGUMENT,
                       "query or out_missing is NULL: expected both");
    }
    if (query->dirs == NULL && query->n_dirs > 0) {
        return ki_fail(err, KILN_E_ARGUMENT, "dirs is NULL: expected %zu folders",
                       query->n_dirs);
    }
    if (query->requests == NULL && query->n_requests > 0) {
        return ki_fail(err, KILN_E_ARGUMENT, "requests is NULL: expected %zu",
                       query->n_requests);
    }
    return check_dirs(query, err);
}

enum kiln_status kiln_store_check(const struct kiln_store_query *query,
                                  size_t *out_missing, struct kiln_error *err)
{
    struct ki_store store;
    struct ki_store_options options = {0};
    size_t n_missing = 0;
    enum kiln_status status = KILN_OK;

    KI_TRY(check_query(query, out_missing, err));
    /* All layers read-only: a check deletes nothing. */
    options.read_only = query->dirs;
    options.n_read_only = query->n_dirs;
    KI_TRY(ki_store_open(&store, &options, NULL, NULL, err));
    for (size_t i = 0; i < query->n_requests && status == KILN_OK; i++) {
        bool found = false;

        status = look_up(&store, &query->requests[i], &found, err);
        if (status != KILN_OK || found) {
            continue;
        }
        n_missing++;
        if (query->missing != NULL) {
            query->missing(query->user, i);
        }
    }
    ki_store_close(&store);
    if (status == KILN_OK) {
        *out_missing = n_missing;
    }
    return status;
}
