/* guardian_lock.h - private to the room: a guardian's lock, which spawns from outside and its end
 * share.
 */
#ifndef TRPI_ACTOR_LIFE_GUARDIAN_LOCK_H
#define TRPI_ACTOR_LIFE_GUARDIAN_LOCK_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <troupe/actor.h>

#include "base/assert.h"

typedef struct trpi_guardian {
    pthread_mutex_t lock; /* guards closed and pending */
    bool closed;          /* no spawn from outside any more */
    uint32_t pending;     /* supervise messages on their way: the guardian waits for them */
    trp_ref ref;
} trpi_guardian;

/* A supervise message is about to be sent. Caller holds the lock. */
static inline void
trpi_guardian_expect(trpi_guardian *guardian)
{
    guardian->pending++;
}

/* A supervise message has arrived. Caller holds the lock. */
static inline void
trpi_guardian_arrived(trpi_guardian *guardian)
{
    trpi_assert(guardian->pending > 0);
    guardian->pending--;
}

/* Refuse spawns from outside from now on. Returns whether no supervise message is on its way. */
static inline bool
trpi_guardian_close(trpi_guardian *guardian)
{
    bool arrived;

    pthread_mutex_lock(&guardian->lock);
    guardian->closed = true;
    arrived = guardian->pending == 0;
    pthread_mutex_unlock(&guardian->lock);
    return arrived;
}

#endif
