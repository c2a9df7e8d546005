/* local_ledger.h - what is known of a random program from outside of its system, and its laws.
 *
 * Laws, at rest:
 *   ledger-L1  jobs sent = jobs handled + dead letters of jobs + jobs in a stash
 *   ledger-L2  each watch of a dead actor by a living one was answered by exactly one Terminated;
 *       none came without a watch, none after an unwatch
 *   ledger-L3  jobs from one actor straight to another one arrive in the order of their sending
 *   ledger-L4  an instance that started was stopped once, before the next one started; at the end
 *       all were
 *   ledger-L5  what trp_defer() registered has run once; an ask was answered at most once, and
 *       exactly once when the instance that asked lives
 *   ledger-L6  a name is taken as long as its actor lives or is ending, and free afterwards
 */
#ifndef TESTS_SIM_LOCAL_LEDGER_H
#define TESTS_SIM_LOCAL_LEDGER_H

#include <pthread.h>
#include <stdatomic.h>

#include "tests/sim/local_program.h"

#define ACTORS_MAX 96
#define NAMES 4 /* few, so that they clash */

#define LOCAL_JOB(F, S)                                                                            \
    F(S, u64, number) F(S, u32, from) F(S, u32, to) F(S, u32, fuel) F(S, u32, wants_answer)
#define LOCAL_ARGS(F, S) F(S, u64, world) F(S, u32, id)
#define LOCAL_MESSAGES(M, P)                                                                       \
    M(P, job, LOCAL_JOB)                                                                           \
    M(P, args, LOCAL_ARGS) M(P, answer, TRP_NO_FIELDS) M(P, open, TRP_NO_FIELDS)
TRP_PROTOCOL_DECLARE(local, LOCAL_MESSAGES)

enum watch_state { WATCH_NONE = 0, WATCH_ON, WATCH_OVER };

/* The record of one actor, from its spawn to the end of the program. */
typedef struct entry {
    pthread_mutex_t lock; /* guards all below, where threads are real */
    trp_ref ref;
    uint32_t parent;
    int name;     /* -1: none */
    bool running; /* an instance has started and not stopped */
    uint32_t starts, stops;
    uint64_t sent[ACTORS_MAX]; /* to each; jobs from here are numbered */
    uint64_t seen[ACTORS_MAX]; /* from each: the highest number */
    uint8_t watch[ACTORS_MAX]; /* enum watch_state, of each */
    uint32_t handled, dead;    /* jobs to it alone */
    uint32_t stashed;
    uint32_t asks_open; /* of this instance */
    uint64_t random;    /* the running actor's alone: what it does is drawn from here */
} entry;

typedef struct world {
    trp_testkit *kit;
    trp_system *system;
    local_options options;
    trp_ref router;
    _Atomic uint32_t actors; /* entries in use; 0 is the outside */
    _Atomic uint64_t sent, received, dead, watches, terminated, restarts, asks, answered;
    _Atomic uint64_t defers, deferred, timers;
    _Atomic uint32_t broken;
    char words[256]; /* of the first law that was broken */
    entry entries[ACTORS_MAX];
} world;

/* Entries in use, the outside included. */
static inline uint32_t
actors_of(world *w)
{
    uint32_t count = atomic_load(&w->actors);

    return count < ACTORS_MAX ? count : ACTORS_MAX;
}

uint64_t stashed_now(world *w);
/* arg: a world. NULL: it is at rest, and all laws hold; else what does not. */
const char *laws_at_rest(void *arg);
/* The same when the system has stopped. */
const char *laws_at_the_end(world *w);

#endif
