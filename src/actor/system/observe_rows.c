/* observe_rows.c - what the workers run, and the actors that want attention. See observe.c.
 *
 * Must hold.
 *   observe-A1  Fields read from another thread's ctx are hints (stall-K2): an actor holds its
 *       thread only as long as all samples show the same message.
 *   observe-A2  Rows are in the order of urgency: held threads, then the age of a message, then
 *       the depth of the mailbox, then the rate; equal ones by ref.
 * Tests.   tests/unit/actor/observe_test.c
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "actor/kernel/dispatcher.h"
#include "actor/life/life.h"
#include "actor/system/observe.h"
#include "actor/system/open.h"
#include "base/alloc.h"

#define HELD_LEAST_NS 100000000u /* what a row shows as held */
#define AGE_STEP_NS 10000000u    /* ages that differ by less are the same */

/* ---- workers --------------------------------------------------------------------------------- */

typedef struct tick {
    trpi_observe *observe;
    uint64_t now;
} tick;

/* observe-A1 */
__attribute__((no_sanitize("thread"), noinline)) static bool
ctx_look(const trp_ctx *ctx, trpi_observe_worker *now)
{
    const volatile trp_ctx *seen = ctx;
    bool runs = seen->cell != NULL || seen->in_job;

    now->run = (uint64_t)seen->run << 32 | (uint32_t)seen->turn.left;
    if (seen->cell != NULL) {
        now->self = (trp_ref){ seen->self.node, seen->self.slot, seen->self.generation, 0 };
    }
    return runs;
}

static void
worker_look(void *arg, trpi_worker *worker)
{
    const tick *t = arg;
    trpi_observe_worker now = { 0 };
    trpi_observe_worker *before = &t->observe->workers[trpi_worker_index(worker)];
    bool runs = ctx_look(trpi_worker_data(worker), &now);

    now.dispatcher = trpi_worker_number(worker);
    now.since_ns = now.at_ns = t->now;
    t->observe->dispatchers[now.dispatcher].samples++;
    t->observe->dispatchers[now.dispatcher].busy += runs ? 1 : 0;
    if (before->since_ns != 0 && before->run == now.run && !trp_ref_is_none(now.self) &&
        trp_ref_equal(before->self, now.self)) {
        now.since_ns = before->since_ns;
    }
    *before = now;
}

void
trpi_observe_workers(trpi_observe *observe, uint64_t now)
{
    tick t = { observe, now };

    trpi_sched_workers_each(observe->system->sched, worker_look, &t);
}

/* ---- rows ------------------------------------------------------------------------------------ */

static int
by_urgency(const void *a_, const void *b_)
{
    const trpi_observed_actor *a = a_, *b = b_;
    const uint64_t keys[][2] = { { a->held_ns, b->held_ns },
                                 { a->age_ns / AGE_STEP_NS, b->age_ns / AGE_STEP_NS },
                                 { a->depth, b->depth },
                                 { (uint64_t)a->per_s, (uint64_t)b->per_s } };

    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        if (keys[i][0] != keys[i][1]) {
            return keys[i][0] > keys[i][1] ? -1 : 1;
        }
    }
    return a->ref.slot < b->ref.slot ? -1 : a->ref.slot > b->ref.slot ? 1 : 0;
}

static void
name_copy(char to[TRPI_OBSERVED_NAME_BYTES], const char *from)
{
    (void)snprintf(to, TRPI_OBSERVED_NAME_BYTES, "%s", from != NULL ? from : "unnamed");
}

/* false: the actor has ended. */
static bool
row_fill(const trpi_observe *observe, trp_ctx *ctx, trpi_probe *probe, uint64_t now,
         trpi_observed_actor *ret_row)
{
    bool waits = atomic_load_explicit(&probe->state, memory_order_acquire) == TRPI_PROBE_PENDING;
    uint64_t since = now > probe->placed_ns ? now - probe->placed_ns : 0;
    trpi_look look;

    probe->shown = !waits;
    trpi_actor_look(ctx, probe->ref, &look);
    if (!look.alive || probe->behaviour == NULL) {
        return false;
    }
    memset(ret_row, 0, sizeof *ret_row);
    ret_row->ref = probe->ref;
    name_copy(ret_row->behaviour, probe->behaviour->name);
    name_copy(ret_row->dispatcher, trpi_dispatcher_get(observe->system, probe->dispatcher)->id);
    ret_row->depth_known = look.counted || !waits;
    ret_row->depth = look.counted ? look.pending : waits ? 0 : probe->depth;
    ret_row->age_ns = waits ? since : 0;
    ret_row->wait_ns = waits ? 0 : probe->wait_ns;
    ret_row->run_ns = atomic_load_explicit(&probe->run_ns, memory_order_relaxed);
    ret_row->handled = look.handled;
    ret_row->suspended = look.suspended;
    ret_row->per_s = since > 0 && look.handled > probe->handled
                         ? (double)(look.handled - probe->handled) * 1e9 / (double)since
                         : 0;
    return true;
}

/* Find, or make, the row of an actor that holds its thread. */
static void
held_add(trpi_observe *observe, trp_ctx *ctx, const trpi_observe_worker *worker, uint64_t now,
         trpi_observed_actor *rows, uint32_t *count, uint32_t max)
{
    const trpi_cell *cell = trpi_cell_peek(ctx, worker->self);
    const trp_behaviour *behaviour = trpi_look_behaviour(cell, worker->self.generation);
    uint64_t held = now - worker->since_ns;

    if (held < HELD_LEAST_NS || behaviour == NULL) {
        return;
    }
    for (uint32_t i = 0; i < *count; i++) {
        if (trp_ref_equal(rows[i].ref, worker->self)) {
            rows[i].held_ns = held;
            return;
        }
    }
    if (*count < max) {
        trpi_observed_actor *row = &rows[(*count)++];

        memset(row, 0, sizeof *row);
        row->ref = worker->self;
        name_copy(row->behaviour, behaviour->name);
        name_copy(row->dispatcher, trpi_dispatcher_get(observe->system, worker->dispatcher)->id);
        row->held_ns = held;
    }
}

void
trpi_observe_rows(trpi_observe *observe, uint64_t now)
{
    enum { ALL = TRPI_PROBES + TRPI_OBSERVED_ROWS_MAX };
    trpi_observed_actor *rows = trpi_alloc(ALL * sizeof *rows);
    trpi_observed *next = &observe->next;
    trp_ctx *ctx = trpi_enter(observe->system);
    uint32_t count = 0;

    for (uint32_t i = 0; rows != NULL && i < TRPI_PROBES; i++) {
        if (atomic_load_explicit(&observe->probes[i].state, memory_order_acquire) !=
                TRPI_PROBE_FREE &&
            row_fill(observe, ctx, &observe->probes[i], now, &rows[count])) {
            const trpi_observed_actor *row = &rows[count++];

            next->depth_max = row->depth > next->depth_max ? row->depth : next->depth_max;
            next->age_ns_max = row->age_ns > next->age_ns_max ? row->age_ns : next->age_ns_max;
        }
    }
    for (uint32_t i = 0; rows != NULL && i < TRPI_POOL_MAX + TRPI_PRIVATE_MAX; i++) {
        /* one that was not seen at this tick has ended */
        if (observe->workers[i].at_ns == now && !trp_ref_is_none(observe->workers[i].self)) {
            held_add(observe, ctx, &observe->workers[i], now, rows, &count, ALL);
        }
    }
    trpi_leave(ctx);
    if (rows != NULL) {
        qsort(rows, count, sizeof *rows, by_urgency);
        next->rows_count = count < TRPI_OBSERVED_ROWS_MAX ? count : TRPI_OBSERVED_ROWS_MAX;
        memcpy(next->rows, rows, next->rows_count * sizeof *rows);
    }
    trpi_free(rows);
}
