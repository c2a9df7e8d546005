/* observe_walk.c - one walk over the cells, in slices, and the probes that it places. See
 * observe.c.
 *
 * Must hold.
 *   observe-W1  No actor is asked and none is waited for: fields of cells are hints, and a probe
 *       comes back when it does.
 *   observe-W2  A walk places at most TRPI_PROBES probes; an actor has one at a time.
 * Tests.   tests/unit/actor/observe_test.c
 */
#include <string.h>

#include "actor/kernel/cells.h"
#include "actor/kernel/dispatcher.h"
#include "actor/kernel/timed.h"
#include "actor/life/life.h"
#include "actor/system/observe.h"
#include "actor/system/open.h"

#define CELLS_A_LOOK 64u     /* at the clock */
#define CELLS_A_SLICE 65536u /* where a clock stands still */
#define NUMBER_BITS 8u       /* of a probe, in the number of its mark */

_Static_assert(TRPI_PROBES == 1u << NUMBER_BITS, "a probe has a number");

/* ---- probes ---------------------------------------------------------------------------------- */

static uint32_t
bucket_of(uint64_t ns)
{
    uint32_t i = 0;

    while (i < TRPI_OBSERVED_BOUNDS && ns > trpi_observed_bounds_ns[i]) {
        i++;
    }
    return i;
}

static void
times_add(_Atomic uint64_t *sum_ns, _Atomic uint64_t *buckets, uint64_t ns)
{
    (void)atomic_fetch_add_explicit(sum_ns, ns, memory_order_relaxed);
    (void)atomic_fetch_add_explicit(&buckets[bucket_of(ns)], 1, memory_order_relaxed);
}

/* The message behind a mark has run for ns. Thread: the actor's. */
static void
run_sampled(void *arg, uint64_t number, uint64_t ns)
{
    trpi_observe *observe = arg;
    trpi_probe *probe = &observe->probes[number & (TRPI_PROBES - 1u)];

    times_add(&observe->run.sum_ns, observe->run.buckets, ns);
    if (atomic_load_explicit(&probe->sequence, memory_order_relaxed) == number >> NUMBER_BITS) {
        atomic_store_explicit(&probe->run_ns, ns, memory_order_relaxed);
    }
}

/* Read a count that another thread may write meanwhile: a hint, as in look.c. */
__attribute__((no_sanitize("thread"))) static uint64_t
handled_of(const trpi_cell *cell)
{
    return *(const volatile uint64_t *)&cell->processed;
}

/* Thread: any, once for each probe (observe-O3). */
static void
probe_reached(void *arg, uint64_t number)
{
    trpi_observe *observe = arg;
    trpi_probe *probe = &observe->probes[number & (TRPI_PROBES - 1u)];
    trp_ctx *ctx = trpi_enter(observe->system);
    const trpi_cell *cell = trpi_cell_peek(ctx, probe->ref);
    uint64_t now = trpi_world_mono_ns(observe->system->world);

    if (cell != NULL) {
        uint64_t handled = handled_of(cell);

        probe->depth = handled > probe->handled ? handled - probe->handled : 0;
        probe->wait_ns = now > probe->placed_ns ? now - probe->placed_ns : 0;
        times_add(&observe->wait.sum_ns, observe->wait.buckets, probe->wait_ns);
        if (ctx->cell == cell) {
            trpi_timed_next(ctx, run_sampled, observe, number);
        }
    }
    trpi_leave(ctx);
    /* release: pairs with the timer's acquire */
    atomic_store_explicit(&probe->state, TRPI_PROBE_DONE, memory_order_release);
}

/* Return a probe that may be used, NULL: the actor has one, or all are in mailboxes. */
static trpi_probe *
probe_find(trpi_observe *observe, trp_ref ref)
{
    trpi_probe *found = NULL;

    for (uint32_t i = 0; i < TRPI_PROBES; i++) {
        trpi_probe *probe = &observe->probes[i];
        uint32_t state = atomic_load_explicit(&probe->state, memory_order_acquire);

        if (state != TRPI_PROBE_FREE && trp_ref_equal(probe->ref, ref)) {
            return NULL;
        }
        found = found == NULL && state == TRPI_PROBE_FREE ? probe : found;
    }
    return found;
}

static void
probe_place(trpi_observe *observe, trp_ctx *ctx, const trpi_cell *cell, trp_ref ref,
            const trpi_look *look)
{
    trpi_probe *probe = probe_find(observe, ref);
    uint64_t number;

    if (probe == NULL) {
        return;
    }
    number = (uint64_t)(probe - observe->probes);
    number |= (uint64_t)(atomic_fetch_add_explicit(&probe->sequence, 1, memory_order_relaxed) + 1u)
              << NUMBER_BITS;
    probe->ref = ref;
    probe->behaviour = trpi_look_behaviour(cell, ref.generation);
    probe->dispatcher = __atomic_load_n(&cell->task.number, __ATOMIC_RELAXED);
    probe->suspended = look->suspended;
    probe->handled = look->handled;
    probe->placed_ns = trpi_world_mono_ns(observe->system->world);
    probe->wait_ns = probe->depth = 0;
    probe->shown = false;
    atomic_store_explicit(&probe->run_ns, 0, memory_order_relaxed);
    atomic_store_explicit(&probe->state, TRPI_PROBE_PENDING, memory_order_release);
    trpi_inbound_mark(ctx, ref.slot, ref.generation, probe_reached, observe, number);
}

/* ---- the walk -------------------------------------------------------------------------------- */

/* Zero the counts and keep the names. */
static void
names_begin(trpi_observed_names *names)
{
    for (uint32_t i = 0; i <= names->count; i++) {
        trpi_observed_name *entry = i < names->count ? &names->entries[i] : &names->others;

        entry->actors = entry->active = 0;
        entry->busy = 0;
        entry->sampled = false;
    }
}

void
trpi_observe_walk_begin(trpi_observe *observe, uint64_t now)
{
    trpi_observed *next = &observe->next;
    uint32_t used = atomic_load_explicit(&observe->system->cells->used, memory_order_relaxed);

    names_begin(&next->behaviours);
    names_begin(&next->dispatchers);
    memset(observe->by_behaviour, 0, sizeof observe->by_behaviour);
    memset(observe->by_dispatcher, 0, sizeof observe->by_dispatcher);
    next->actors = next->active = next->suspended = next->overloaded = 0;
    next->depth_max = next->age_ns_max = 0;
    next->rows_count = 0;
    for (uint32_t i = 0; i < TRPI_PROBES; i++) {
        trpi_probe *probe = &observe->probes[i];

        if (atomic_load_explicit(&probe->state, memory_order_acquire) == TRPI_PROBE_DONE &&
            probe->shown) {
            atomic_store_explicit(&probe->state, TRPI_PROBE_FREE, memory_order_relaxed);
        }
    }
    observe->walk_ns = now;
    observe->slice_ns_max = 0;
    observe->left = observe->all = used;
    /* another start each time, so that each actor has its chance of a probe */
    observe->first = used == 0 ? 0 : (uint32_t)(trpi_world_random(observe->system->world) % used);
    observe->overloaded_left = TRPI_PROBES_OVERLOADED;
    observe->others_left = TRPI_PROBES - TRPI_PROBES_OVERLOADED;
}

static trpi_observed_name *
behaviour_entry(trpi_observe *observe, const trp_behaviour *behaviour)
{
    uint32_t at = (uint32_t)((uintptr_t)behaviour / sizeof *behaviour % TRPI_OBSERVE_CACHE);

    if (observe->by_behaviour[at].behaviour != behaviour) {
        observe->by_behaviour[at].behaviour = behaviour;
        observe->by_behaviour[at].entry = trpi_observed_name_get(
            &observe->next.behaviours, behaviour->name != NULL ? behaviour->name : "unnamed");
    }
    return observe->by_behaviour[at].entry;
}

static trpi_observed_name *
dispatcher_entry(trpi_observe *observe, const trpi_cell *cell)
{
    uint8_t number = __atomic_load_n(&cell->task.number, __ATOMIC_RELAXED);

    if (observe->by_dispatcher[number] == NULL) {
        observe->by_dispatcher[number] = trpi_observed_name_get(
            &observe->next.dispatchers, trpi_dispatcher_get(observe->system, number)->id);
    }
    return observe->by_dispatcher[number];
}

/* true: a probe was placed, which takes as long as many cells. */
static bool
cell_visit(trpi_observe *observe, trp_ctx *ctx, uint32_t slot)
{
    const trpi_cell *cell = trpi_cells_at(ctx->cells, slot);
    trp_ref ref = { TRPI_NODE_SELF, slot, 0, 0 };
    const trp_behaviour *behaviour;
    trpi_observed_name *by_behaviour, *by_dispatcher;
    uint32_t *budget = &observe->others_left;
    trpi_look look;
    bool active;

    if (cell == NULL) {
        return false;
    }
    ref.generation = atomic_load_explicit(&cell->generation, memory_order_acquire);
    behaviour = (ref.generation & 1u) == 0 ? NULL : trpi_look_behaviour(cell, ref.generation);
    if (behaviour == NULL) {
        return false;
    }
    trpi_actor_look(ctx, ref, &look);
    if (!look.local || !look.alive) {
        return false;
    }
    active = !look.empty || look.pending > 0;
    by_behaviour = behaviour_entry(observe, behaviour);
    by_dispatcher = dispatcher_entry(observe, cell);
    observe->next.actors++;
    by_behaviour->actors++;
    by_dispatcher->actors++;
    observe->next.suspended += look.suspended ? 1 : 0;
    if (!active) {
        return false;
    }
    observe->next.active++;
    by_behaviour->active++;
    by_dispatcher->active++;
    if (look.counted && look.pending > observe->next.depth_max) {
        observe->next.depth_max = look.pending;
    }
    if (atomic_load_explicit(&cell->overloaded, memory_order_relaxed) != 0) {
        observe->next.overloaded++;
        budget = &observe->overloaded_left;
    }
    if (*budget == 0 || trpi_inbound_mail(ctx, slot, ref.generation) != TRPI_MAIL_WAITS) {
        return false;
    }
    --*budget; /* observe-W2 */
    probe_place(observe, ctx, cell, ref, &look);
    return true;
}

bool
trpi_observe_walk(trpi_observe *observe)
{
    trp_system *system = observe->system;
    uint64_t begun = trpi_world_mono_ns(system->world), took = 0;
    trp_ctx *ctx = trpi_enter(system);

    for (uint32_t i = 1; observe->left > 0 && i <= CELLS_A_SLICE; i++) {
        uint32_t slot = 1u + (observe->first + observe->left) % observe->all;

        observe->left--;
        if (cell_visit(observe, ctx, slot) || i % CELLS_A_LOOK == 0) {
            took = trpi_world_mono_ns(system->world) - begun;
            if (took >= TRPI_OBSERVED_SLICE_NS) { /* observe-O2 */
                break;
            }
        }
    }
    trpi_leave(ctx);
    took = trpi_world_mono_ns(system->world) - begun;
    observe->slice_ns_max = took > observe->slice_ns_max ? took : observe->slice_ns_max;
    return observe->left == 0;
}
