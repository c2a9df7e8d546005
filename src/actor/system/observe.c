/* observe.c - figures of actors, made only while somebody looks.
 *
 * Why.     To operate a node one must know how deep mailboxes are, how long messages wait and
 *          run, and what threads do; a counter for each message would cost all programs, always.
 * Shape.   look --starts--> tick every 20 ms, until a minute after the last look:
 *            each tick   what do the workers run?                        (observe_rows.c)
 *            RESTING     a second after the last walk began: WALKING
 *            WALKING     one slice of the cells; those that have messages get a probe, which is a
 *                        mark behind their messages (observe_walk.c)     -> SETTLING
 *            SETTLING    a quarter of a second after the walk began: publish -> RESTING
 * Must hold.
 *   observe-O1  Without a look in the last minute there is no tick, and no probe is placed.
 *   observe-O2  A slice ends at the first look at the clock after TRPI_OBSERVED_SLICE_NS.
 *   observe-O3  A probe belongs to the timer or to its mark, which is reached exactly once
 *       (marks-K1): the object lives until no mailbox is left.
 * Cost.    0 while nobody looks. Else: a walk reads two cache lines an actor, once a second.
 * Tests.   tests/unit/actor/observe_test.c
 */
#include "actor/system/observe.h"

#include <stdio.h>
#include <string.h>

#include "actor/system/open.h"
#include "base/alloc.h"
#include "base/mutex.h"

#define TICK_MS 20u
#define WALK_EVERY_NS 1000000000u
#define SETTLED_NS 250000000u /* most marks are reached by then, and rates have a base */

const uint64_t trpi_observed_bounds_ns[TRPI_OBSERVED_BOUNDS] = {
    1000u,     5000u,      25000u,     100000u,     500000u,     2500000u,
    10000000u, 100000000u, 500000000u, 2500000000u, 10000000000u
};

/* ---- publishing ------------------------------------------------------------------------------ */

static void
busy_fill(trpi_observe *observe)
{
    for (uint32_t i = 0; i < TRP_DISPATCHERS_MAX; i++) {
        const trpi_dispatcher *entry = observe->dispatchers[i].samples == 0
                                           ? NULL
                                           : trpi_dispatcher_get(observe->system, (uint8_t)i);

        if (entry != NULL) {
            trpi_observed_name *name =
                trpi_observed_name_get(&observe->next.dispatchers, entry->id);

            name->busy =
                (double)observe->dispatchers[i].busy / (double)observe->dispatchers[i].samples;
            name->sampled = true;
        }
    }
    memset(observe->dispatchers, 0, sizeof observe->dispatchers);
}

static void
figures_publish(trpi_observe *observe, uint64_t now)
{
    busy_fill(observe);
    trpi_observe_rows(observe, now);
    observe->next.complete = true;
    observe->next.slice_ns_max = observe->slice_ns_max;
    pthread_mutex_lock(&observe->lock);
    observe->published = observe->next;
    observe->published_ns = observe->walk_ns;
    pthread_mutex_unlock(&observe->lock);
}

/* ---- ticks ----------------------------------------------------------------------------------- */

static void
phase_step(trpi_observe *observe, uint64_t now)
{
    if (observe->phase == TRPI_OBSERVE_RESTING &&
        (observe->walk_ns == 0 || now - observe->walk_ns >= WALK_EVERY_NS)) {
        trpi_observe_walk_begin(observe, now);
        observe->phase = TRPI_OBSERVE_WALKING;
    }
    if (observe->phase == TRPI_OBSERVE_WALKING && trpi_observe_walk(observe)) {
        observe->next.walk_ns = trpi_world_mono_ns(observe->system->world) - observe->walk_ns;
        observe->phase = TRPI_OBSERVE_SETTLING;
    }
    if (observe->phase == TRPI_OBSERVE_SETTLING && now - observe->walk_ns >= SETTLED_NS) {
        figures_publish(observe, now);
        observe->phase = TRPI_OBSERVE_RESTING;
    }
}

static bool
is_looked_at(const trpi_observe *observe, uint64_t now)
{
    uint64_t looked = atomic_load_explicit(&observe->looked_ns, memory_order_relaxed);

    return now < looked || now - looked < TRPI_OBSERVED_MS * UINT64_C(1000000);
}

static trp_err timer_arm(trpi_observe *observe);

static void
timer_tick(void *arg, uint64_t a, uint64_t b)
{
    trpi_observe *observe = arg;
    uint64_t now = trpi_world_mono_ns(observe->system->world), id;

    (void)a;
    (void)b;
    trpi_observe_workers(observe, now);
    phase_step(observe, now);
    if (is_looked_at(observe, now) &&
        trpi_timer_add(observe->system->sched, TICK_MS, timer_tick, observe, 0, 0, &id) == TRP_OK) {
        return;
    }
    /* observe-O1: figures of a later look begin anew */
    memset(observe->workers, 0, sizeof observe->workers);
    memset(observe->dispatchers, 0, sizeof observe->dispatchers);
    observe->phase = TRPI_OBSERVE_RESTING;
    atomic_store_explicit(&observe->armed, false, memory_order_seq_cst);
    if (is_looked_at(observe, trpi_world_mono_ns(observe->system->world))) {
        (void)!timer_arm(
            observe); /* a look came meanwhile; without memory the next one tries again */
    }
}

/* Start the ticks, unless they run. */
static trp_err
timer_arm(trpi_observe *observe)
{
    uint64_t id;
    trp_err err = TRP_OK;

    if (!atomic_exchange_explicit(&observe->armed, true, memory_order_seq_cst)) {
        err = trpi_timer_add(observe->system->sched, 1, timer_tick, observe, 0, 0, &id);
        if (err != TRP_OK) {
            atomic_store_explicit(&observe->armed, false, memory_order_seq_cst);
        }
    }
    return err;
}

/* ---- looks ----------------------------------------------------------------------------------- */

static trpi_observe *
observe_get(trp_system *system)
{
    trpi_observe *observe = atomic_load_explicit(&system->observe, memory_order_acquire);
    trpi_observe *expected = NULL;

    if (observe != NULL) {
        return observe;
    }
    observe = trpi_alloc(sizeof *observe);
    if (observe == NULL) {
        return NULL;
    }
    observe->system = system;
    pthread_mutex_init(&observe->lock, NULL);
    /* release: pairs with the acquire of other looks */
    if (!atomic_compare_exchange_strong_explicit(&system->observe, &expected, observe,
                                                 memory_order_acq_rel, memory_order_acquire)) {
        trpi_mutex_destroy(&observe->lock);
        trpi_free(observe);
        return expected;
    }
    return observe;
}

void
trpi_observe_free(trp_system *system)
{
    trpi_observe *observe = atomic_load_explicit(&system->observe, memory_order_acquire);

    if (observe != NULL) {
        trpi_mutex_destroy(&observe->lock);
        trpi_free(observe);
    }
}

static void
times_copy(const _Atomic uint64_t *sum_ns, const _Atomic uint64_t *buckets,
           trpi_observed_times *ret_times)
{
    ret_times->sum_ns = atomic_load_explicit(sum_ns, memory_order_relaxed);
    for (uint32_t i = 0; i <= TRPI_OBSERVED_BOUNDS; i++) {
        ret_times->buckets[i] = atomic_load_explicit(&buckets[i], memory_order_relaxed);
    }
}

trp_err
trpi_system_observe(trp_system *system, trpi_observed *ret_observed)
{
    trpi_observe *observe = observe_get(system);
    uint64_t now = trpi_world_mono_ns(system->world);
    trp_err err;

    if (observe == NULL) {
        return TRP_ENOMEM;
    }
    atomic_store_explicit(&observe->looked_ns, now, memory_order_relaxed);
    err = timer_arm(observe);
    if (err != TRP_OK) {
        return err;
    }
    pthread_mutex_lock(&observe->lock);
    *ret_observed = observe->published;
    ret_observed->age_ns = now > observe->published_ns ? now - observe->published_ns : 0;
    pthread_mutex_unlock(&observe->lock);
    times_copy(&observe->wait.sum_ns, observe->wait.buckets, &ret_observed->wait);
    times_copy(&observe->run.sum_ns, observe->run.buckets, &ret_observed->run);
    return TRP_OK;
}
