/* guard.h - the guard of a system: actors that must not live twice in a cluster handle nothing
 * while it is closed.
 *
 * A guarded actor asks the guard before each message. The guard is closed by an order (the node
 * may have been given up by the others), or by itself, when the system stood still for longer than
 * the others bear. Messages stay in the mailbox meanwhile; system messages are handled, so stop,
 * watch and supervision work. A system has one guard, which exists with it; without guarded actors
 * nobody asks it.
 */
#ifndef TRPI_ACTOR_KERNEL_GUARD_H
#define TRPI_ACTOR_KERNEL_GUARD_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <troupe/actor.h>

#include "base/world.h"

#define TRPI_GUARD_STALLS_MAX 32u   /* stalls that are remembered; more are joined */
#define TRPI_GUARD_FINE_NS 1000000u /* the last look is written at most once in so long a time */

/* Why it is closed: bits. */
enum { TRPI_GUARD_ORDERED = 1, TRPI_GUARD_STALLED = 2 };

typedef struct trpi_guard_stall {
    uint64_t at_ns, ns;
} trpi_guard_stall;

typedef struct trpi_guard {
    trp_system *system;
    trpi_world *world;
    /* bits; 0: open. Written under lock, seq_cst: guard-U2 */
    _Atomic uint32_t closed;
    /* quick clock of the last look of any thread; 0: stalls are not watched. release / acquire:
     * who reads it sees `closed` as that look left it (guard-U1) */
    _Atomic uint64_t looked_ns;
    _Atomic bool start_waits; /* a start was held back; seq_cst, as `closed` */
    pthread_mutex_t lock;     /* of all below; a leaf */
    uint64_t period_ns, limit_ns, window_ns;
    trpi_guard_stall stalls[TRPI_GUARD_STALLS_MAX]; /* within window_ns, oldest first */
    uint32_t stalls_count;
    uint64_t stalled_ns; /* sum of stalls at the last look that found one */
    uint64_t closings;   /* how often stalls have closed it, or would have */
} trpi_guard;

/* ---- the system's ---------------------------------------------------------------------------- */
/* system, world NULL: of the simulator, where the callers give the time. */
trp_err trpi_guard_new(trp_system *system, trpi_world *world, trpi_guard **ret_guard);
void trpi_guard_free(trpi_guard *guard); /* NULL is fine */
/* Return the guard of a system; borrowed until the system is freed. Thread: any. */
trpi_guard *trpi_guard_of(trp_system *system);

/* Spawn a guarded child of the running actor; its children are guarded, too, but not those on
 * other nodes. Errors: as trp_spawn. */
trp_err trpi_spawn_guarded(trp_ctx *ctx, const trp_behaviour *behaviour,
                           const trp_spawn_options *options, trp_ref *ret_ref);

/* ---- orders: any thread ---------------------------------------------------------------------- */
/* Close it, until trpi_guard_open(). A message that is being handled is finished. */
void trpi_guard_close(trpi_guard *guard);
/* Open it, and schedule the guarded actors that have messages. closings: trpi_guard_closings()
 * before the caller found out that it may. false: it stood still since then, and stays closed. */
bool trpi_guard_open(trpi_guard *guard, uint64_t closings);
uint64_t trpi_guard_closings(trpi_guard *guard);

/* ---- stalls ---------------------------------------------------------------------------------- */
typedef struct trpi_guard_limits {
    uint32_t period_ms; /* someone calls trpi_guard_look() at least so often */
    uint32_t limit_ms;  /* stalls of more than this together close it */
    uint32_t window_ms; /* stalls that are older do not count */
} trpi_guard_limits;
/* Watch for stalls from now on; again: with other limits. */
void trpi_guard_watch(trpi_guard *guard, const trpi_guard_limits *limits);
/* Each with the time of the quick clock; used by the simulator. */
void trpi_guard_watch_at(trpi_guard *guard, const trpi_guard_limits *limits, uint64_t now_ns);
/* The first part of trpi_guard_open(): *ret_closed: why it was closed. */
bool trpi_guard_open_at(trpi_guard *guard, uint64_t closings, uint64_t now_ns,
                        uint32_t *ret_closed);
/* Look at the clock. Returns TRPI_GUARD_* bits. */
uint32_t trpi_guard_look(trpi_guard *guard);
/* Return the stalls that count at present, in ms. */
uint64_t trpi_guard_stalled_ms(trpi_guard *guard);

/* ---- the kernel's ---------------------------------------------------------------------------- */
/* The look took longer than TRPI_GUARD_FINE_NS. Returns TRPI_GUARD_* bits. */
uint32_t trpi_guard_look_at(trpi_guard *guard, uint64_t now_ns);

static inline bool
trpi_guard_is_open(trpi_guard *guard)
{
    return atomic_load_explicit(&guard->closed, memory_order_seq_cst) == 0; /* guard-U2 */
}

/* May a guarded actor handle a message now? Reads the clock between the last look and the state:
 * guard-U1. */
static inline bool
trpi_guard_passes(trpi_guard *guard)
{
    uint64_t looked_ns = atomic_load_explicit(&guard->looked_ns, memory_order_acquire);
    uint64_t now_ns = trpi_world_quick_ns(guard->world);

    if (__builtin_expect((int64_t)(now_ns - looked_ns) > (int64_t)TRPI_GUARD_FINE_NS, 0)) {
        return trpi_guard_look_at(guard, now_ns) == 0;
    }
    return atomic_load_explicit(&guard->closed, memory_order_acquire) == 0;
}

/* May a guarded actor start now? false: it is scheduled again when the guard opens. */
static inline bool
trpi_guard_starts(trpi_guard *guard)
{
    if (trpi_guard_passes(guard)) {
        return true;
    }
    atomic_store_explicit(&guard->start_waits, true, memory_order_seq_cst); /* guard-U2 */
    return false;
}

#endif
