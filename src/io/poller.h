/* poller.h - calls back when a socket is ready: on the worker that waits for it, as a run of its
 * own.
 *
 * Why.   A byte should cost one wake-up until its actor runs: the thread that the kernel wakes
 *        reads, decodes and delivers, and then runs the receivers.
 * Shape. One poller a system. Workers and the timer thread wait for reports (src/sched/poll.c says
 *        which and when). A watch is a socket and its callback. Reports are bits; whoever adds the
 *        first bits to a watch that nobody has claimed claims it: it owns the watch's call, which
 *        is a task of the scheduler, and submits it. Its run calls ready(), and gives the claim up
 *        when no bits are left.
 *        In a driven world a timer of the scheduler collects the reports.
 * Must hold.
 *   poller-I1  ready() of one watch never overlaps with itself; removed() is the last callback,
 *       comes exactly once, and never from inside a call of this interface.
 *   poller-I2  No edge is lost: bits that are reported while the watch is claimed are delivered
 *       before the claim is given up.
 *   poller-I3  Each callback may read and write at most a bounded number of bytes: what is left is
 *       asked for by the result of ready(), and comes after the others' turn.
 *   poller-I4  A report that comes after the end of its watch finds another generation: its key is
 *       index and generation of an entry whose memory stays while the poller lives.
 * Thread. Callbacks come on pool workers (trpi_enter() gives the worker's context), or, when all of
 *         them are stuck, on the timer's thread; of a poller with a thread of its own, on that. No
 *         lock of the poller is held. They must not block.
 * Tests.  tests/unit/io/poller_test.c, tests/unit/io/poller_wake_test.c
 */
#ifndef TRPI_IO_POLLER_H
#define TRPI_IO_POLLER_H

#include "actor/actor.h"
#include "base/net.h"
#include "sched/sched.h"

#define TRPI_POLL_REPORTS 64        /* that are taken from the kernel at once */
#define TRPI_POLL_READ_BYTES 262144 /* what a user of a watch reads in one callback at most */
#define TRPI_WATCHES_MAX 1048576u   /* of one poller */

typedef struct trpi_poller trpi_poller;
typedef struct trpi_watch trpi_watch; /* 64 bytes of the poller; valid until removed() */

typedef struct trpi_watch_events {
    /* events: TRPI_NET_*. Return those that are to be delivered again soon, without a report of the
     * kernel, because a bound was reached; 0: read or write until -EAGAIN. */
    uint32_t (*ready)(void *user, uint32_t events);
    /* No other callback runs or will. Here the socket is closed, and user may be freed. */
    void (*removed)(void *user);
} trpi_watch_events;

/* One for each scheduler, which calls it from then on. Errors: TRP_EUNSUPPORTED (the world has no
 * sockets), TRP_ENOMEM, TRP_EIO (no descriptor is left). Thread: any, one at a time. */
trp_err trpi_poller_new(trpi_sched *sched, trpi_world *world, trpi_poller **ret_poller);
/* Make a poller with a thread of its own, which makes the callbacks, and takes no lock and
 * allocates nothing for them: for sockets that must not wait for actors. name: of the thread, at
 * most 15 bytes. Errors: as trpi_poller_new(); TRP_EUNSUPPORTED for a driven world too. Thread:
 * any. */
trp_err trpi_poller_thread_new(trpi_world *world, const char *name, trpi_poller **ret_poller);
/* After trpi_sched_stop(), or, with a thread of its own, at any time: it ends after its present
 * callback. Makes the removed() that are left. Not from a callback. NULL is fine. */
void trpi_poller_free(trpi_poller *poller);
/* Return the poller of a system, made at the first call; the system frees it when its threads have
 * ended. Errors: as trpi_poller_new(), and TRP_ECLOSED: the system has stopped. Thread: any. */
trp_err trpi_system_poller(trp_system *system, trpi_poller **ret_poller);

/* Watch a socket. Callbacks may come before this returns. *ret_watch is written before the first.
 * socket -1: none; trpi_watch_again() alone calls it, as if a socket were ready, without a wait for
 * a lock or an allocation: of a system's poller on a worker, for an idle pool on the one that helps
 * it (trpi_sched_lend()), or, when all are stuck, on the timer's thread.
 * Errors: TRP_ELIMIT (TRPI_WATCHES_MAX, or the machine's), TRP_ENOMEM, TRP_EIO. Thread: any. */
trp_err trpi_watch_new(trpi_poller *poller, int socket, const trpi_watch_events *events, void *user,
                       trpi_watch **ret_watch);
/* Deliver these events as if they had been reported: to go on after a pause. After
 * trpi_watch_remove() nothing is delivered, or to a newer watch of the same poller. Thread: any. */
void trpi_watch_again(trpi_watch *watch, uint32_t events);
/* Call ready() no more; removed() follows. Idempotent until removed(). Thread: any, also from
 * ready(). */
void trpi_watch_remove(trpi_watch *watch);
uint32_t trpi_poller_watches(const trpi_poller *poller); /* now; a hint */

#endif
