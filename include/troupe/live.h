/* troupe/live.h - what a system is doing: actors, threads, waiting messages, rates.
 *
 *     trp_live *live;
 *     trp_live_open(system, &live);
 *     once a second: trp_live_sample(live, 1000); trp_live_threads(live, ...); ...
 *
 * No counters are kept for it: a sample reads numbers that are there anyway and asks each actor, by
 * a directive, how many messages wait for it. A system that is not sampled pays nothing. Rates are
 * those between the last two samples.
 */
#ifndef TROUPE_LIVE_H
#define TROUPE_LIVE_H

#include <troupe/base.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct trp_live trp_live;

typedef struct trp_live_thread {
    uint32_t index; /* of the thread in its system; what trp_live_actor.thread says */
    uint32_t zero;
    const char *dispatcher; /* its id */
    trp_ref actor;          /* that it runs now; none: it is idle */
    uint64_t completed;     /* messages that it has handled so far */
    double completions_per_s;
    double accepts_per_s; /* of the actors that it ran last */
    /* Share of the time between the samples in which it computed; 1 when one behaviour has held it
     * all the time, blocked perhaps. 0.0 to 1.0 */
    double busy;
} trp_live_thread;

typedef struct trp_live_actor {
    trp_ref ref;
    uint32_t thread;   /* that runs it, or ran it last */
    uint8_t active;    /* 0: trp_deactivate() */
    uint8_t suspended; /* 1: it waits for its supervisor's decision */
    uint16_t zero;
    uint32_t restarts;
    uint32_t children;
    uint64_t pending;   /* messages that wait */
    uint64_t completed; /* handled so far */
    uint64_t accepted;  /* handled or waiting */
    double completions_per_s;
    double accepts_per_s;
} trp_live_actor;

/* Open a view of a system.
 *
 * Ownership: gives *ret_live (trp_live_close, before the system is freed).
 * Errors:    TRP_EINVAL  an argument is NULL
 *            TRP_ENOMEM  out of memory
 * Thread:    any; lock-free.
 * Source:    UJ-26, -45, -46.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_live_open(trp_system *system, trp_live **ret_live);

/* Close it. NULL is fine.
 *
 * Ownership: takes live.
 * Errors:    none
 * Thread:    owner (the creator; no lock inside).
 * Source:    UJ-26.  Since: 0.1 */
TRP_API void trp_live_close(trp_live *live);

/* Look at all threads, and at the actors below /user that answer within timeout_ms: one that is
 * stuck in a behaviour delays the answer of the others, and shows as the actor that its thread
 * runs.
 *
 * Errors:    TRP_ETIMEDOUT  not all actors have answered: threads are new, actors as before
 *            TRP_ENOENT     the system has ended
 *            TRP_ENOMEM     out of memory
 * Thread:    owner (the creator; no lock inside); never from a behaviour.
 * Source:    UJ-45, -46.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_live_sample(trp_live *live, uint32_t timeout_ms);

/* Copy what the last sample saw of the threads; returns how many there are, at most threads_max are
 * copied.
 *
 * Ownership: borrows threads.
 * Errors:    none
 * Thread:    owner (the creator; no lock inside).
 * Source:    UJ-45, -46.  Since: 0.1 */
TRP_API uint32_t trp_live_threads(const trp_live *live, trp_live_thread *threads,
                                  uint32_t threads_max);

/* Copy what the last sample saw of the actors, in the order of the tree.
 *
 * Ownership: borrows actors.
 * Errors:    none
 * Thread:    owner (the creator; no lock inside).
 * Source:    UJ-26, -46.  Since: 0.1 */
TRP_API uint32_t trp_live_actors(const trp_live *live, trp_live_actor *actors, uint32_t actors_max);

/* The program `troupe demo`: the demonstrations of the articles, with a page for the browser that
 * shows threads, actors and messages. Its actors are its own, in a system of its own, and say on
 * the page what they do: a system has no hook for it. argv[0] is the name of the command. Returns
 * the exit code.
 *
 * Ownership: borrows argv.
 * Errors:    none; the exit code says.
 * Thread:    the main thread, before any other is made; it takes INT and TERM while it runs.
 * Source:    UJ-32, UJ-44 to -47.  Since: 0.2 */
TRP_API int trp_demo_main(int argc, char **argv);

#ifdef __cplusplus
}
#endif
#endif /* TROUPE_LIVE_H */
