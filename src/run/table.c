/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Open addressing over slots of pointers. A slot is filled once, with release, and never
 * emptied, so a probe that meets a free slot has proof that the ident is not there. Knows
 * neither how an entry is built nor how it is loaded.
 */
#include <assert.h>
#include <stdbool.h>
#include <string.h>

#include "run/table.h"

/* "For ever" in ms, small enough for any sum with the clock: a hundred years. */
static const int64_t forever_ms = INT64_C(100) * 365 * 24 * 3600 * 1000;

/* The ident has no padding holes, so its words are its value. */
static uint32_t hash_ident(const struct ki_ident *ident)
{
    uint64_t words[sizeof(*ident) / sizeof(uint64_t)];
    uint64_t hash = 0;

    _Static_assert(sizeof(*ident) % sizeof(uint64_t) == 0, "hashed in whole words");
    memcpy(words, ident, sizeof(words));
    for (size_t i = 0; i < KI_COUNT_OF(words); i++) {
        hash = (hash ^ words[i]) * UINT64_C(0x9E3779B97F4A7C15);
        hash ^= hash >> 32;
    }
    return (uint32_t)hash;
}

static uint32_t slots_for(uint32_t max_entries)
{
    uint32_t capacity = 2;

    while (capacity < 2 * (uint64_t)max_entries && capacity < UINT32_C(1) << 31) {
        capacity *= 2;
    }
    return capacity;
}

enum kiln_status ki_table_init(struct ki_table *table, uint32_t max_entries,
                               const struct ki_mem *mem, struct kiln_error *err)
{
    struct ki_table made = {.mem = mem, .max_entries = max_entries};
    int result;

    made.capacity = slots_for(max_entries);
    if (max_entries >= made.capacity) {
        made.max_entries = made.capacity - 1;
    }
    made.slots = ki_mem_array(mem, made.capacity, sizeof(*made.slots));
    if (made.slots == NULL) {
        return ki_fail_memory(err, "the table of kernels");
    }
    *table = made;
    result = ki_mutex_init(&table->mutex);
    if (result != 0) {
        goto out;
    }
    result = ki_cond_init(&table->changed);
    if (result != 0) {
        ki_mutex_finish(&table->mutex);
        goto out;
    }
    return KILN_OK;
out:
    ki_mem_free(mem, made.slots);
    table->slots = NULL;
    return ki_fail_os(err, KILN_E_SYSTEM, result, "no lock for the table of kernels");
}

void ki_table_finish_in_child(struct ki_table *table)
{
    for (uint32_t i = 0; i < table->capacity; i++) {
        struct ki_table_entry *entry = ki_table_at(table, i);
        if (entry != NULL) {
            ki_blob_finish(&entry->image, table->mem);
            ki_mem_free(table->mem, entry);
        }
    }
    ki_mem_free(table->mem, table->slots);
    table->slots = NULL;
    table->capacity = 0;
}

void ki_table_finish(struct ki_table *table)
{
    if (table->slots == NULL) {
        return;
    }
    ki_table_finish_in_child(table);
    ki_cond_finish(&table->changed);
    ki_mutex_finish(&table->mutex);
}

struct ki_table_entry *ki_table_at(const struct ki_table *table, uint32_t i)
{
    return atomic_load_explicit(&table->slots[i], memory_order_acquire);
}

/* The slot that holds the ident, or the free one where it belongs. One is always free. */
static uint32_t probe(const struct ki_table *table, const struct ki_ident *ident)
{
    uint32_t mask = table->capacity - 1;
    uint32_t i = hash_ident(ident) & mask;

    for (;; i = (i + 1) & mask) {
        const struct ki_table_entry *entry = ki_table_at(table, i);
        if (entry == NULL || ki_ident_equal(&entry->ident, ident)) {
            return i;
        }
    }
}

struct ki_table_entry *ki_table_find(const struct ki_table *table,
                                     const struct ki_ident *ident)
{
    struct ki_table_entry *entry = ki_table_at(table, probe(table, ident));

    if (entry == NULL ||
        atomic_load_explicit(&entry->state, memory_order_acquire) != KI_ENTRY_READY) {
        return NULL;
    }
    return entry;
}

static void set_state(struct ki_table *table, struct ki_table_entry *entry,
                      enum ki_entry_state state)
{
    atomic_store_explicit(&entry->state, (int)state, memory_order_release);
    ki_cond_broadcast(&table->changed);
}

/* With the mutex held. NULL: *out_status says why. */
static struct ki_table_entry *find_or_insert(struct ki_table *table,
                                             const struct ki_ident *ident,
                                             enum kiln_status *out_status,
                                             struct kiln_error *err)
{
    uint32_t i = probe(table, ident);
    struct ki_table_entry *entry = ki_table_at(table, i);

    if (entry != NULL) {
        return entry;
    }
    if (table->n_entries >= table->max_entries) {
        *out_status = ki_fail(err, KILN_E_LIMIT,
                              "%u kernels are in the table and that is its cap: raise "
                              "max_kernels of kiln_options, or find out why so many "
                              "shapes are asked for",
                              (unsigned int)table->n_entries);
        return NULL;
    }
    entry = ki_mem_alloc(table->mem, sizeof(*entry));
    if (entry == NULL) {
        *out_status = ki_fail_memory(err, "an entry of the table of kernels");
        return NULL;
    }
    atomic_init(&entry->state, KI_ENTRY_IDLE);
    entry->ident = *ident;
    atomic_store_explicit(&table->slots[i], entry, memory_order_release);
    table->n_entries++;
    return entry;
}

static enum kiln_status fail_remembered(const struct ki_table_entry *entry,
                                        struct kiln_error *err)
{
    if (err != NULL) {
        *err = entry->error;
    }
    return entry->error.status;
}

static enum kiln_status fail_timeout(const struct ki_table_entry *entry,
                                     int64_t timeout_ms, struct kiln_error *err)
{
    const struct ki_op *op = ki_op_get((enum kiln_op)entry->ident.op);
    char target[KI_TARGET_NAME];

    ki_target_name(entry->ident.target, target);
    return ki_fail(err, KILN_E_TIMEOUT,
                   "another thread still works on %s for %s after %lld ms: raise "
                   "build_timeout_ms of kiln_options, or try again",
                   op != NULL ? op->info.name : "a kernel", target,
                   (long long)timeout_ms);
}

/* What the entry's state means for a caller who wants `goal`. */
enum step { STEP_DONE, STEP_BUILD, STEP_LOAD, STEP_WAIT, STEP_REFUSE };

static enum step next_step(const struct ki_table_entry *entry, enum ki_entry_state goal)
{
    switch ((enum ki_entry_state)atomic_load(&entry->state)) {
    case KI_ENTRY_IDLE:
        return STEP_BUILD;
    case KI_ENTRY_BUILDING:
        return STEP_WAIT;
    case KI_ENTRY_BUILT:
        return goal == KI_ENTRY_BUILT ? STEP_DONE : STEP_LOAD;
    case KI_ENTRY_LOADING:
        return goal == KI_ENTRY_BUILT ? STEP_DONE : STEP_WAIT;
    case KI_ENTRY_FAILED:
        if (entry->load_failed && goal == KI_ENTRY_BUILT) {
            return STEP_DONE;
        }
        if (ki_now_ms() < entry->retry_ms) {
            return STEP_REFUSE;
        }
        return entry->load_failed ? STEP_LOAD : STEP_BUILD;
    case KI_ENTRY_READY:
        break;
    }
    return STEP_DONE;
}

/* With the mutex held, which it gives up while it waits; step is never STEP_WAIT after.
 */
static enum kiln_status wait_for_step(struct ki_table *table,
                                      struct ki_table_entry *entry,
                                      enum ki_entry_state goal, int64_t timeout_ms,
                                      enum step *out, struct kiln_error *err)
{
    bool bounded = timeout_ms >= 0 && timeout_ms < forever_ms;
    int64_t until_ms = ki_now_ms() + (bounded ? timeout_ms : forever_ms);

    for (;;) {
        enum step step = next_step(entry, goal);
        if (step == STEP_REFUSE) {
            return fail_remembered(entry, err);
        }
        if (step != STEP_WAIT) {
            *out = step;
            return KILN_OK;
        }
        if (ki_now_ms() >= until_ms) {
            return fail_timeout(entry, timeout_ms, err);
        }
        (void)ki_cond_wait_until(&table->changed, &table->mutex, until_ms);
    }
}

static enum ki_claim take(struct ki_table *table, struct ki_table_entry *entry,
                          enum step step)
{
    if (step == STEP_DONE) {
        return KI_CLAIM_DONE;
    }
    if (step == STEP_LOAD) {
        set_state(table, entry, KI_ENTRY_LOADING);
        return KI_CLAIM_LOAD;
    }
    set_state(table, entry, KI_ENTRY_BUILDING);
    return KI_CLAIM_BUILD;
}

static bool is_sealed(const struct ki_table *table)
{
    return atomic_load(&table->seal) == KI_SEALED;
}

/* With the mutex held. What fails remembered was not ready at the seal, and is not now. */
static bool is_refused(const struct ki_table *table, const struct ki_ident *ident,
                       enum ki_entry_state goal)
{
    const struct ki_table_entry *entry = ki_table_at(table, probe(table, ident));
    enum step step = entry != NULL ? next_step(entry, goal) : STEP_BUILD;

    return is_sealed(table) && step != STEP_DONE && step != STEP_WAIT;
}

enum kiln_status ki_table_claim(struct ki_table *table, const struct ki_ident *ident,
                                enum ki_entry_state goal, int64_t timeout_ms,
                                struct ki_table_entry **out_entry,
                                enum ki_claim *out_claim, struct kiln_error *err)
{
    struct ki_table_entry *entry;
    enum step step = STEP_DONE;
    enum kiln_status status = KILN_OK;

    assert(goal == KI_ENTRY_BUILT || goal == KI_ENTRY_READY);
    ki_mutex_lock(&table->mutex);
    if (is_refused(table, ident, goal)) {
        *out_claim = KI_CLAIM_SEALED;
        goto out;
    }
    entry = find_or_insert(table, ident, &status, err);
    if (entry == NULL) {
        goto out;
    }
    status = wait_for_step(table, entry, goal, timeout_ms, &step, err);
    if (status != KILN_OK) {
        goto out;
    }
    *out_entry = entry;
    /* The seal may have come while the mutex was given up. */
    *out_claim = is_sealed(table) && step != STEP_DONE ? KI_CLAIM_SEALED
                                                       : take(table, entry, step);
out:
    ki_mutex_unlock(&table->mutex);
    return status;
}

static bool is_at_work(const struct ki_table *table)
{
    if (table->n_here > 0) {
        return true;
    }
    for (uint32_t i = 0; i < table->capacity; i++) {
        const struct ki_table_entry *entry = ki_table_at(table, i);
        int state = entry != NULL ? atomic_load(&entry->state) : KI_ENTRY_IDLE;

        if (state == KI_ENTRY_BUILDING || state == KI_ENTRY_LOADING) {
            return true;
        }
    }
    return false;
}

enum kiln_status ki_table_seal(struct ki_table *table, int seal, int64_t timeout_ms,
                               struct kiln_error *err)
{
    const int64_t until_ms = ki_now_ms() + timeout_ms;
    enum kiln_status status = KILN_OK;
    int own = seal;
    int before;

    ki_mutex_lock(&table->mutex);
    before = atomic_exchange(&table->seal, own);
    while (seal == KI_SEALED && is_at_work(table)) {
        if (ki_now_ms() >= until_ms) {
            (void)atomic_compare_exchange_strong(&table->seal, &own, before);
            status = ki_fail(err, KILN_E_TIMEOUT,
                             "another thread still builds or loads after %lld ms: seal "
                             "once all is prepared",
                             (long long)timeout_ms);
            goto out;
        }
        (void)ki_cond_wait_until(&table->changed, &table->mutex, until_ms);
    }
    /* While it waited, another thread may have set its own, or given up. */
    atomic_store(&table->seal, own);
out:
    ki_mutex_unlock(&table->mutex);
    return status;
}

static bool is_loaded_in(const struct ki_table_entry *entry, CUcontext context)
{
    bool is_in = entry->kernel.device.context == context;

    for (uint32_t i = 0; i < KI_OTHER_CONTEXTS && i < entry->n_others; i++) {
        is_in = is_in || entry->others[i] == context;
    }
    return is_in;
}

enum ki_claim ki_table_claim_here(struct ki_table *table, struct ki_table_entry *entry,
                                  CUcontext context)
{
    enum ki_claim claim = KI_CLAIM_LOAD;

    ki_mutex_lock(&table->mutex);
    if (is_loaded_in(entry, context)) {
        claim = KI_CLAIM_DONE;
    } else if (is_sealed(table)) {
        claim = KI_CLAIM_SEALED;
    } else {
        table->n_here++;
    }
    ki_mutex_unlock(&table->mutex);
    return claim;
}

void ki_table_end_here(struct ki_table *table, struct ki_table_entry *entry,
                       CUcontext context, bool is_done)
{
    ki_mutex_lock(&table->mutex);
    table->n_here--;
    if (is_done && !is_loaded_in(entry, context)) {
        entry->others[entry->n_others++ % KI_OTHER_CONTEXTS] = context;
    }
    ki_cond_broadcast(&table->changed);
    ki_mutex_unlock(&table->mutex);
}

void ki_table_publish(struct ki_table *table, struct ki_table_entry *entry,
                      enum ki_entry_state state)
{
    assert(state == KI_ENTRY_BUILT || state == KI_ENTRY_READY);
    ki_mutex_lock(&table->mutex);
    if (state == KI_ENTRY_READY) {
        ki_blob_finish(&entry->image, table->mem);
    }
    set_state(table, entry, state);
    ki_mutex_unlock(&table->mutex);
}

void ki_table_fail(struct ki_table *table, struct ki_table_entry *entry,
                   const struct kiln_error *error, int64_t retry_after_ms)
{
    assert(error->status != KILN_OK);
    ki_mutex_lock(&table->mutex);
    entry->load_failed = atomic_load(&entry->state) == KI_ENTRY_LOADING;
    if (!entry->load_failed) {
        ki_blob_finish(&entry->image, table->mem);
    }
    entry->error = *error;
    entry->retry_ms = ki_now_ms() + retry_after_ms;
    set_state(table, entry, KI_ENTRY_FAILED);
    ki_mutex_unlock(&table->mutex);
}

void ki_table_abandon(struct ki_table *table, struct ki_table_entry *entry)
{
    ki_mutex_lock(&table->mutex);
    if (atomic_load(&entry->state) == KI_ENTRY_LOADING) {
        set_state(table, entry, KI_ENTRY_BUILT);
    } else {
        set_state(table, entry, KI_ENTRY_IDLE);
    }
    ki_mutex_unlock(&table->mutex);
}
