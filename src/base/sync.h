/* SPDX-License-Identifier: Apache-2.0 */
/* A mutex and a condition that wait on the monotonic clock. */
#ifndef KI_BASE_SYNC_H
#define KI_BASE_SYNC_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct ki_mutex {
    pthread_mutex_t native;
};

struct ki_cond {
    pthread_cond_t native;
};

/* 0, or an errno value; then there is nothing to finish. */
int ki_mutex_init(struct ki_mutex *mutex);
int ki_cond_init(struct ki_cond *cond);
void ki_mutex_finish(struct ki_mutex *mutex);
void ki_cond_finish(struct ki_cond *cond);
void ki_mutex_lock(struct ki_mutex *mutex);
void ki_mutex_unlock(struct ki_mutex *mutex);
void ki_cond_broadcast(struct ki_cond *cond);

/* Milliseconds on the monotonic clock. */
int64_t ki_now_ms(void);

/* Waits with the mutex held until woken or the clock passes until_ms; false: it passed.
 */
bool ki_cond_wait_until(struct ki_cond *cond, struct ki_mutex *mutex, int64_t until_ms);

#endif
