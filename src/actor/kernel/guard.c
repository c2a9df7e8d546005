/* guard.c - see the header.
 *
 * Why.     A node that others have given up does not know it at once; a node that stood still knows
 *          nothing at all. Its singletons and entities may live elsewhere by then, so they must
 *          handle nothing before the node has found out.
 * Shape.   worker: last look -> clock -> state, before each message of a guarded actor
 *          cluster actor: a look each period, so that an idle system is not taken for a stalled one
 *          gap > 2 periods: a stall; their sum within the window > limit: closed
 * Must hold.
 *   guard-U1  A look that finds a stall too many closes the guard before it publishes that it has
 *       looked: a thread that finds the last look fresh reads the state afterwards, and finds it
 *       closed. So after a stall no message is begun on any thread before the stall is counted.
 *       The message that a stopped thread had in hand is finished.
 *   guard-U2  An actor that found the guard closed is not forgotten: it gives its token back and
 *       then looks at `closed` once more; trpi_guard_open() writes `closed` and then looks for
 *       tokens (both seq_cst: one of them sees the other).
 *   guard-U3  The start of a guarded actor is held back as a message is. Until then it has no
 *       instance; it can be stopped and watched.
 *   guard-U4  Children of a guarded actor are guarded.
 * Limits.  TRPI_GUARD_STALLS_MAX stalls are remembered; further ones are joined with the next, so
 *          they count for longer, never for less.
 * Cost.    A message of a guarded actor: two loads, the quick clock, one load. Opening looks at
 *          every cell of the system once.
 * Tests.   tests/unit/actor/guard_test.c
 */
#include "actor/kernel/guard.h"

#include "actor/kernel/system.h"
#include "base/alloc.h"
#include "base/assert.h"
#include "base/mutex.h"

trp_err
trpi_guard_new(trp_system *system, trpi_world *world, trpi_guard **ret_guard)
{
    trpi_guard *guard = trpi_alloc(sizeof *guard);

    if (guard == NULL) {
        return TRP_ENOMEM;
    }
    guard->system = system;
    guard->world = world;
    pthread_mutex_init(&guard->lock, NULL);
    *ret_guard = guard;
    return TRP_OK;
}

void
trpi_guard_free(trpi_guard *guard)
{
    if (guard != NULL) {
        trpi_mutex_destroy(&guard->lock);
        trpi_free(guard);
    }
}

trpi_guard *
trpi_guard_of(trp_system *system)
{
    return system->guard;
}

/* ---- stalls ---------------------------------------------------------------------------------- */

void
trpi_guard_watch(trpi_guard *guard, const trpi_guard_limits *limits)
{
    trpi_world_quick_open(guard->world);
    trpi_guard_watch_at(guard, limits, trpi_world_quick_ns(guard->world));
}

void
trpi_guard_watch_at(trpi_guard *guard, const trpi_guard_limits *limits, uint64_t now_ns)
{
    trpi_assert(limits->period_ms > 0 && limits->limit_ms > 0 && limits->window_ms > 0);
    pthread_mutex_lock(&guard->lock);
    guard->period_ns = limits->period_ms * 1000000ull;
    guard->limit_ns = limits->limit_ms * 1000000ull;
    guard->window_ns = limits->window_ms * 1000000ull;
    if (atomic_load_explicit(&guard->looked_ns, memory_order_relaxed) == 0) {
        atomic_store_explicit(&guard->looked_ns, now_ns > 0 ? now_ns : 1, memory_order_release);
    }
    pthread_mutex_unlock(&guard->lock);
}

/* Remove the stalls that are too old; returns the sum of the others. With the lock. */
static uint64_t
stalls_sum(trpi_guard *guard, uint64_t now_ns)
{
    uint64_t sum_ns = 0;
    uint32_t kept = 0;

    for (uint32_t i = 0; i < guard->stalls_count; i++) {
        if ((int64_t)(now_ns - guard->stalls[i].at_ns) <= (int64_t)guard->window_ns) {
            guard->stalls[kept++] = guard->stalls[i];
            sum_ns += guard->stalls[kept - 1].ns;
        }
    }
    guard->stalls_count = kept;
    return sum_ns;
}

/* With the lock. */
static void
stall_add(trpi_guard *guard, uint64_t now_ns, uint64_t ns)
{
    uint64_t sum_ns = stalls_sum(guard, now_ns);

    if (guard->stalls_count == TRPI_GUARD_STALLS_MAX) { /* join the two oldest */
        guard->stalls[1].ns += guard->stalls[0].ns;
        for (uint32_t i = 1; i < guard->stalls_count; i++) {
            guard->stalls[i - 1] = guard->stalls[i];
        }
        guard->stalls_count--;
    }
    guard->stalls[guard->stalls_count++] = (trpi_guard_stall){ now_ns, ns };
    guard->stalled_ns = sum_ns + ns;
    if (guard->stalled_ns > guard->limit_ns) {
        guard->closings++;
        (void)atomic_fetch_or_explicit(&guard->closed, TRPI_GUARD_STALLED, memory_order_seq_cst);
    }
}

uint32_t
trpi_guard_look_at(trpi_guard *guard, uint64_t now_ns)
{
    uint64_t looked_ns;
    uint32_t closed;

    pthread_mutex_lock(&guard->lock);
    looked_ns = atomic_load_explicit(&guard->looked_ns, memory_order_relaxed);
    if (looked_ns != 0 && (int64_t)(now_ns - looked_ns) > 0) {
        if (now_ns - looked_ns > 2 * guard->period_ns) {
            stall_add(guard, now_ns, now_ns - looked_ns);
        }
        /* release: guard-U1 */
        atomic_store_explicit(&guard->looked_ns, now_ns, memory_order_release);
    }
    closed = atomic_load_explicit(&guard->closed, memory_order_relaxed);
    pthread_mutex_unlock(&guard->lock);
    return closed;
}

uint32_t
trpi_guard_look(trpi_guard *guard)
{
    return trpi_guard_look_at(guard, trpi_world_quick_ns(guard->world));
}

uint64_t
trpi_guard_stalled_ms(trpi_guard *guard)
{
    uint64_t now_ns = trpi_world_quick_ns(guard->world), sum_ns;

    pthread_mutex_lock(&guard->lock);
    sum_ns = stalls_sum(guard, now_ns);
    pthread_mutex_unlock(&guard->lock);
    return sum_ns / 1000000;
}

/* ---- orders ---------------------------------------------------------------------------------- */

void
trpi_guard_close(trpi_guard *guard)
{
    pthread_mutex_lock(&guard->lock);
    (void)atomic_fetch_or_explicit(&guard->closed, TRPI_GUARD_ORDERED, memory_order_seq_cst);
    pthread_mutex_unlock(&guard->lock);
}

bool
trpi_guard_open_at(trpi_guard *guard, uint64_t closings, uint64_t now_ns, uint32_t *ret_closed)
{
    bool opens;

    (void)trpi_guard_look_at(guard, now_ns); /* it may have stood still just now */
    pthread_mutex_lock(&guard->lock);
    opens = guard->closings == closings;
    if (opens) {
        guard->stalls_count = 0; /* the others have answered since */
        *ret_closed = atomic_exchange_explicit(&guard->closed, 0, memory_order_seq_cst);
    }
    pthread_mutex_unlock(&guard->lock);
    return opens;
}

uint64_t
trpi_guard_closings(trpi_guard *guard)
{
    uint64_t closings;

    pthread_mutex_lock(&guard->lock);
    closings = guard->closings;
    pthread_mutex_unlock(&guard->lock);
    return closings;
}
