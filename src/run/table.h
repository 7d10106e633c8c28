/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ident -> entry in memory. Fixed capacity; entries never move, so a kernel's address is
 * its handle for life. One thread works on an entry at a time, the others wait. Readers
 * take no lock.
 *
 *   IDLE -> BUILDING -> BUILT -> LOADING -> READY      BUILDING, LOADING -> FAILED
 *
 * FAILED keeps its error until its retry time, then it is as good as what it was before. A
 * load that fails says nothing about the cubin: whoever wants that alone still gets it.
 */
#ifndef KI_RUN_TABLE_H
#define KI_RUN_TABLE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/mem.h"
#include "base/sync.h"
#include "plan/key.h"
#include "run/launch.h"

enum ki_entry_state {
    KI_ENTRY_IDLE = 0, /* nothing is built and nobody works on it */
    KI_ENTRY_BUILDING,
    KI_ENTRY_BUILT, /* the cubin is known good: in the store, or held here */
    KI_ENTRY_LOADING,
    KI_ENTRY_READY,
    KI_ENTRY_FAILED,
};

enum { KI_OTHER_CONTEXTS = 4 };

struct ki_table_entry {
    _Atomic int state;         /* enum ki_entry_state; READY is stored with release */
    struct ki_ident ident;     /* written before the entry is first visible */
    struct kiln_kernel kernel; /* valid from READY on */
    struct ki_blob image;    /* BUILT, load_failed: the cubin, owned; freed once loaded */
    _Atomic int is_stored;   /* BUILT on: a cache folder holds the cubin */
    struct kiln_error error; /* FAILED */
    bool load_failed;        /* FAILED: the build did not, its load did */
    int64_t retry_ms;        /* FAILED: not before this time of ki_now_ms */
    CUcontext others[KI_OTHER_CONTEXTS]; /* READY: also loaded there; under mutex */
    uint32_t n_others;                   /* ever; the newest are kept */
    struct ki_launch_counts counts; /* of the kernel; last, as every launch writes here */
};

struct ki_table {
    const struct ki_mem *mem;
    struct ki_table_entry *_Atomic *slots; /* owned, as are the entries; NULL: free */
    uint32_t capacity;                     /* slots, a power of two, twice the cap */
    uint32_t max_entries;                  /* the cap: KILN_E_LIMIT beyond */
    uint32_t n_entries;                    /* under mutex */
    _Atomic int seal;                      /* as told, under mutex; read by any */
    uint32_t n_here;                       /* under mutex: claims of claim_here */
    struct ki_mutex mutex; /* guards every change of state, slots and n_entries */
    struct ki_cond changed;
};

enum kiln_status ki_table_init(struct ki_table *table, uint32_t max_entries,
                               const struct ki_mem *mem, struct kiln_error *err);
/* Frees images and entries; the caller has unloaded the kernels (see ki_table_at).
 * All-zero is fine. */
void ki_table_finish(struct ki_table *table);
/* The same in a child after fork, less the locks: to destroy a condition waits for its
 * waiters, and those are threads of the parent. */
void ki_table_finish_in_child(struct ki_table *table);

/* The READY entry, or NULL. No lock. */
struct ki_table_entry *ki_table_find(const struct ki_table *table,
                                     const struct ki_ident *ident);

enum ki_claim {
    KI_CLAIM_DONE,  /* the entry is at least `goal` */
    KI_CLAIM_BUILD, /* you build it: publish BUILT or fail */
    KI_CLAIM_LOAD,  /* you load it: publish READY or fail */
    KI_CLAIM_SEALED /* it is less than `goal`, and sealed: there is no entry for you */
};

/*
 * Brings the caller one stage towards goal (KI_ENTRY_BUILT or KI_ENTRY_READY), waiting
 * for another thread that works on the entry until timeout_ms have passed (negative: for
 * ever). KILN_E_TIMEOUT, KILN_E_LIMIT, KILN_E_MEMORY, or the remembered error of a failed
 * build before its retry time.
 */
enum kiln_status ki_table_claim(struct ki_table *table, const struct ki_ident *ident,
                                enum ki_entry_state goal, int64_t timeout_ms,
                                struct ki_table_entry **out_entry,
                                enum ki_claim *out_claim, struct kiln_error *err);

/* A seal is a value of enum kiln_seal_mode; this is the one that refuses. */
enum { KI_SEALED = 2 };

/* With KI_SEALED claims that would give work are refused from now on, with others no longer.
 * KI_SEALED waits for the work under way, timeout_ms at most: KILN_E_TIMEOUT, and all is as
 * before. Of several threads at once, the last that gets KILN_OK has its seal. */
enum kiln_status ki_table_seal(struct ki_table *table, int seal, int64_t timeout_ms,
                               struct kiln_error *err);

/*
 * A READY kernel in another context than that of its load: KI_CLAIM_DONE, its load was
 * finished there; KI_CLAIM_LOAD: you finish it and call ki_table_end_here, `is_done` or not,
 * and a seal waits for you; KI_CLAIM_SEALED.
 */
enum ki_claim ki_table_claim_here(struct ki_table *table, struct ki_table_entry *entry,
                                  CUcontext context);
void ki_table_end_here(struct ki_table *table, struct ki_table_entry *entry,
                       CUcontext context, bool is_done);

/* The claimant's word: the entry's fields are final, state becomes BUILT or READY. */
void ki_table_publish(struct ki_table *table, struct ki_table_entry *entry,
                      enum ki_entry_state state);
/* The claimant gives up: the error is remembered until retry_after_ms from now. A build's
 * image is freed, a load's is kept for the next one. */
void ki_table_fail(struct ki_table *table, struct ki_table_entry *entry,
                   const struct kiln_error *error, int64_t retry_after_ms);
/* The claimant gives the claim back unworked (a refused capture, say): BUILDING becomes
 * IDLE, LOADING becomes BUILT. */
void ki_table_abandon(struct ki_table *table, struct ki_table_entry *entry);

/* The entry in the i-th of `capacity` slots, in any state, or NULL: for destroy and
 * statistics. */
struct ki_table_entry *ki_table_at(const struct ki_table *table, uint32_t i);

#endif
