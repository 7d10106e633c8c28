/* SPDX-License-Identifier: Apache-2.0 */
/* Threads' waiting, on the monotonic clock so that a changed wall clock stalls nobody. */
#include <errno.h>
#include <time.h>

#include "base/sync.h"

int ki_mutex_init(struct ki_mutex *mutex)
{
    return pthread_mutex_init(&mutex->native, NULL);
}

int ki_cond_init(struct ki_cond *cond)
{
    pthread_condattr_t attributes;
    int result = pthread_condattr_init(&attributes);

    if (result != 0) {
        return result;
    }
    result = pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    if (result == 0) {
        result = pthread_cond_init(&cond->native, &attributes);
    }
    pthread_condattr_destroy(&attributes);
    return result;
}

void ki_mutex_finish(struct ki_mutex *mutex)
{
    pthread_mutex_destroy(&mutex->native);
}

void ki_cond_finish(struct ki_cond *cond)
{
    pthread_cond_destroy(&cond->native);
}

void ki_mutex_lock(struct ki_mutex *mutex)
{
    pthread_mutex_lock(&mutex->native);
}

void ki_mutex_unlock(struct ki_mutex *mutex)
{
    pthread_mutex_unlock(&mutex->native);
}

void ki_cond_broadcast(struct ki_cond *cond)
{
    pthread_cond_broadcast(&cond->native);
}

int64_t ki_now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

bool ki_cond_wait_until(struct ki_cond *cond, struct ki_mutex *mutex, int64_t until_ms)
{
    struct timespec until = {
        .tv_sec = (time_t)(until_ms / 1000),
        .tv_nsec = (long)(until_ms % 1000) * 1000000,
    };

    return pthread_cond_timedwait(&cond->native, &mutex->native, &until) != ETIMEDOUT;
}
