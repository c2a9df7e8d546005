/* live.c - samples of what threads and actors are doing.
 *
 * Why.     To find a bottleneck one must see which actors run, how much mail waits and how fast it
 *          arrives; a program that takes no samples pays nothing.
 * Shape.   sample: workers --read--> run, actor, messages, processor time
 *                  actors  --trp_system_tree()--> handled, waiting
 *          rates = difference to the sample before / time between.
 * Must hold.
 *   live-V1  Fields read from another thread's ctx are hints; they are given out as a ref, which
 *       is checked when it is used.
 *   live-V2  accepted = handled + waiting, so nothing is counted when a message is sent.
 * Tests.   tests/unit/actor/live_test.c
 * Sources. UJ-26, -45, -46
 */
#include <troupe/live.h>

#include <stdlib.h>
#include <string.h>

#include "actor/kernel/dispatcher.h"
#include "actor/life/life.h"
#include "base/alloc.h"
#include "base/array.h"

typedef struct seen {
    trp_live_thread given;
    uint64_t run, cpu_ns;
} seen;

typedef struct actors {
    trp_live_actor *all;    /* in the order of the tree */
    trp_live_actor *sorted; /* by ref */
    uint32_t count, room;
} actors;

struct trp_live {
    trp_system *system;
    uint64_t at_ns;
    seen *threads;
    uint32_t threads_count;
    actors actors;
    /* of the sample that is being made */
    seen *fresh;
    uint32_t fresh_count;
    double seconds; /* since the one before; 0: it is the first */
    bool no_memory;
};

trp_err
trp_live_open(trp_system *system, trp_live **ret_live)
{
    trp_live *live;

    if (!trpi_system_is_valid(system) || ret_live == NULL) {
        return TRP_EINVAL;
    }
    live = trpi_alloc(sizeof *live);
    if (live == NULL) {
        return TRP_ENOMEM;
    }
    live->system = system;
    *ret_live = live;
    return TRP_OK;
}

static void
actors_free(actors *a)
{
    trpi_free(a->all);
    trpi_free(a->sorted);
    *a = (actors){ NULL, NULL, 0, 0 };
}

void
trp_live_close(trp_live *live)
{
    if (live != NULL) {
        actors_free(&live->actors);
        trpi_free(live->threads);
        trpi_free(live);
    }
}

static double
rate_of(const trp_live *live, uint64_t now, uint64_t before)
{
    return live->seconds > 0 && now > before ? (double)(now - before) / live->seconds : 0.0;
}

/* ---- threads --------------------------------------------------------------------------------- */

/* live-V1 */
__attribute__((no_sanitize("thread"), noinline)) static void
ctx_look(const trp_ctx *ctx, seen *now)
{
    const volatile trp_ctx *running = ctx;

    now->run = (uint64_t)running->run << 32 | (uint32_t)running->turn.left;
    if (running->cell != NULL) {
        now->given.actor =
            (trp_ref){ running->self.node, running->self.slot, running->self.generation, 0 };
    }
}

static void
worker_look(void *arg, trpi_worker *worker)
{
    trp_live *live = arg;
    trp_ctx *ctx = trpi_worker_data(worker);
    const trpi_dispatcher *entry = trpi_dispatcher_get(live->system, trpi_worker_number(worker));
    seen now = { .given.index = trpi_worker_index(worker) };
    const seen *before = NULL;

    if (live->fresh_count == TRPI_POOL_MAX + TRPI_PRIVATE_MAX) {
        return;
    }
    now.given.dispatcher = entry->id;
    now.given.completed = atomic_load_explicit(&ctx->own_stats.processed, memory_order_relaxed);
    now.cpu_ns = trpi_worker_cpu_ns(worker);
    ctx_look(ctx, &now);
    for (uint32_t i = 0; i < live->threads_count && before == NULL; i++) {
        before = live->threads[i].given.index == now.given.index ? &live->threads[i] : NULL;
    }
    if (before != NULL && live->seconds > 0) {
        bool held = !trp_ref_is_none(now.given.actor) && now.run == before->run &&
                    trp_ref_equal(now.given.actor, before->given.actor);

        now.given.completions_per_s = rate_of(live, now.given.completed, before->given.completed);
        now.given.busy = held ? 1.0 : rate_of(live, now.cpu_ns, before->cpu_ns) / 1e9;
        now.given.busy = now.given.busy > 1.0 ? 1.0 : now.given.busy;
    }
    live->fresh[live->fresh_count++] = now;
}

/* ---- actors ---------------------------------------------------------------------------------- */

static int
by_ref(const void *a, const void *b)
{
    return memcmp(&((const trp_live_actor *)a)->ref, &((const trp_live_actor *)b)->ref,
                  sizeof(trp_ref));
}

typedef struct visit {
    trp_live *live;
    actors found;
} visit;

static int
entry_add(void *arg, const trp_tree_entry *entry)
{
    visit *v = arg;
    trp_live_actor a = { .ref = entry->ref,
                         .thread = entry->thread,
                         .active = entry->active,
                         .suspended = entry->suspended,
                         .restarts = entry->restarts,
                         .children = entry->children,
                         .pending = entry->pending,
                         .completed = entry->processed,
                         .accepted = entry->processed + entry->pending }; /* live-V2 */
    const actors *old = &v->live->actors;
    const trp_live_actor *before =
        old->count == 0 ? NULL : bsearch(&a, old->sorted, old->count, sizeof a, by_ref);

    if (trpi_array_reserve(&v->found.all, v->found.count, &v->found.room, sizeof *v->found.all, 1,
                           TRPI_ARRAY_NO_LIMIT) != TRP_OK) {
        v->live->no_memory = true;
        return 1;
    }
    a.completions_per_s = rate_of(v->live, a.completed, before == NULL ? 0 : before->completed);
    a.accepts_per_s = rate_of(v->live, a.accepted, before == NULL ? 0 : before->accepted);
    v->found.all[v->found.count++] = a;
    for (uint32_t i = 0; i < v->live->fresh_count; i++) {
        if (v->live->fresh[i].given.index == a.thread) {
            v->live->fresh[i].given.accepts_per_s += a.accepts_per_s;
        }
    }
    return 0;
}

static trp_err
actors_look(trp_live *live, uint32_t timeout_ms)
{
    visit v = { live, { NULL, NULL, 0, 0 } };
    trp_err err =
        trp_system_tree(live->system, "/user", TRP_PATH_DEPTH_MAX, timeout_ms, entry_add, &v);

    if (err == TRP_OK && !live->no_memory) {
        v.found.sorted = trpi_alloc((v.found.count + 1u) * sizeof *v.found.sorted);
    }
    if (err != TRP_OK || v.found.sorted == NULL) {
        actors_free(&v.found);
        return err != TRP_OK ? err : TRP_ENOMEM;
    }
    memcpy(v.found.sorted, v.found.all, v.found.count * sizeof *v.found.all);
    qsort(v.found.sorted, v.found.count, sizeof *v.found.sorted, by_ref);
    actors_free(&live->actors);
    live->actors = v.found;
    return TRP_OK;
}

trp_err
trp_live_sample(trp_live *live, uint32_t timeout_ms)
{
    uint64_t now = trpi_world_mono_ns(live->system->world);
    trp_err err;

    live->fresh = trpi_alloc((TRPI_POOL_MAX + TRPI_PRIVATE_MAX) * sizeof *live->fresh);
    if (live->fresh == NULL) {
        return TRP_ENOMEM;
    }
    live->seconds = live->at_ns == 0 ? 0.0 : (double)(now - live->at_ns) / 1e9;
    live->no_memory = false;
    live->fresh_count = 0;
    trpi_sched_workers_each(live->system->sched, worker_look, live);
    err = actors_look(live, timeout_ms);
    trpi_free(live->threads);
    live->threads = live->fresh;
    live->threads_count = live->fresh_count;
    live->fresh = NULL;
    live->at_ns = now;
    return err;
}

uint32_t
trp_live_threads(const trp_live *live, trp_live_thread *threads, uint32_t threads_max)
{
    for (uint32_t i = 0; i < live->threads_count && i < threads_max; i++) {
        threads[i] = live->threads[i].given;
    }
    return live->threads_count;
}

uint32_t
trp_live_actors(const trp_live *live, trp_live_actor *given, uint32_t actors_max)
{
    uint32_t count = live->actors.count < actors_max ? live->actors.count : actors_max;

    if (count > 0) {
        memcpy(given, live->actors.all, count * sizeof *given);
    }
    return live->actors.count;
}
