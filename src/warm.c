/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A bounded pool: each thread takes the next job until none is left. All threads are joined before
 * the call returns, so no compile outlives it.
 */
#include <pthread.h>
#include <unistd.h>

#include "base/status.h"
#include "prepare.h"
#include "warm.h"

enum { MAX_THREADS = 64, SATURATION = 4 /* more threads do not make NVRTC faster */ };

struct pool {
    struct kiln *kiln;
    struct ki_warm_job *jobs;
    size_t n_jobs;
    bool rebuild;
    struct ki_mutex mutex; /* guards what follows, and serialises `progress` */
    size_t next;
    kiln_warm_fn progress;
    void *user;
    struct kiln_warm_summary summary;
};

static void report(struct pool *pool, size_t i, const struct ki_built *built,
                   const struct kiln_error *error)
{
    enum kiln_warm_result result = KILN_WARM_FAILED;
    const char *message = NULL;

    ki_mutex_lock(&pool->mutex);
    if (error->status != KILN_OK) {
        message = error->message;
        pool->summary.n_failed++;
    } else if (built->from_cache) {
        result = KILN_WARM_CACHED;
        pool->summary.n_cached++;
    } else {
        result = KILN_WARM_COMPILED;
        pool->summary.n_compiled++;
    }
    if (pool->progress != NULL) {
        pool->progress(pool->user, i, result, built->build_ms, message);
    }
    ki_mutex_unlock(&pool->mutex);
}

static bool take(struct pool *pool, size_t *out)
{
    bool is_left;

    ki_mutex_lock(&pool->mutex);
    is_left = pool->next < pool->n_jobs;
    *out = pool->next;
    pool->next += is_left ? 1 : 0;
    ki_mutex_unlock(&pool->mutex);
    return is_left;
}

static void *work(void *argument)
{
    struct pool *pool = argument;
    size_t i;

    while (take(pool, &i)) {
        struct ki_warm_job *job = &pool->jobs[i];
        struct ki_built built = {0};

        /* What no folder took would be compiled again by whoever comes next. */
        if (job->error.status == KILN_OK &&
            ki_build(pool->kiln, &job->ident, pool->rebuild, &built, &job->error) ==
                KILN_OK) {
            job->error = built.unstored;
        }
        report(pool, i, &built, &job->error);
    }
    return NULL;
}

static int count_threads(int wanted, size_t n_jobs)
{
    long n_cores = sysconf(_SC_NPROCESSORS_ONLN);
    int n = wanted;

    if (n <= 0) {
        n = n_cores < 1 ? 1 : n_cores > SATURATION ? SATURATION : (int)n_cores;
    }
    if (n > MAX_THREADS) {
        n = MAX_THREADS;
    }
    return (size_t)n > n_jobs ? (int)n_jobs : n;
}

enum kiln_status ki_warm(struct kiln *kiln, struct ki_warm_job *jobs, size_t n,
                         const struct kiln_warm_options *options,
                         struct kiln_warm_summary *out, struct kiln_error *err)
{
    struct pool pool = {
        .kiln = kiln,
        .jobs = jobs,
        .n_jobs = n,
        .rebuild = options->rebuild,
        .progress = options->progress,
        .user = options->user,
    };
    pthread_t threads[MAX_THREADS];
    int n_threads = count_threads(options->n_jobs, n);
    int n_started = 0;
    int result = ki_mutex_init(&pool.mutex);

    if (result != 0) {
        return ki_fail_os(err, KILN_E_SYSTEM, result, "warm: a mutex");
    }
    /* The caller's thread is one of them, so a machine that refuses threads still warms. */
    while (n_started < n_threads - 1 &&
           pthread_create(&threads[n_started], NULL, work, &pool) == 0) {
        n_started++;
    }
    (void)work(&pool);
    for (int i = 0; i < n_started; i++) {
        pthread_join(threads[i], NULL);
    }
    ki_mutex_finish(&pool.mutex);
    *out = pool.summary;
    return KILN_OK;
}
