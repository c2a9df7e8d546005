/* stall.c - says which actor holds a worker for too long.
 *
 * Why.     A behaviour that blocks or computes for seconds holds up all that waits behind it, and
 *          nothing else in the system tells which one it was.
 * Shape.   A timer looks at each worker twice in stall_warning_ms: the same message in two looks or
 *          more, for so long, is reported once. Nothing is paid for a message.
 * Must hold.
 *   K1  The timer ends when nothing runs, so that an idle system does not wake up; who comes from
 *       outside (trpi_enter) starts it again.
 *   K2  What is read of a running ctx is a hint: it is believed only when it was the same in both
 *       looks, and the ref is looked up like any other.
 * Not here. Actors of pinned and blocking dispatchers: they may block.
 * Tests.   tests/unit/actor/stall_test.c
 * Sources. issue 3, Dispatchers.
 */
#include "actor/stall.h"

#include <stdio.h>

#include "actor/dispatcher.h"
#include "actor/life.h"
#include "base/alloc.h"

#define RELAXED memory_order_relaxed
#define WORKERS_ALL (TRPI_POOL_MAX + TRPI_PRIVATE_MAX)

typedef struct look { /* at one worker */
    uint64_t run, left;
    trp_ref self;
    uint64_t since_ns;
    bool reported;
} look;

struct trpi_stall {
    trp_system *system;
    uint64_t limit_ns;
    _Atomic bool armed;      /* seq_cst: K1 */
    bool any;                /* the timer's: something runs, or ran since the last look */
    uint64_t work[WORKERS_ALL];
    look looks[WORKERS_ALL]; /* the timer's */
};

/* K2. Of another thread's running view. */
__attribute__((no_sanitize("thread"), noinline)) static void
ctx_look(const trp_ctx *ctx, look *now, bool *ret_running)
{
    const volatile trp_ctx *seen = ctx;

    *ret_running = seen->cell != NULL;
    now->run = (uint64_t)seen->run << 32 | seen->turn_rest;
    now->left = (uint64_t)(uint32_t)seen->turn_left;
    now->self.node = seen->self.node;
    now->self.slot = seen->self.slot;
    now->self.generation = seen->self.generation;
}

static void
report(trpi_stall *stall, const look *seen, uint64_t now)
{
    trp_stalled what = { seen->self, (uint32_t)((now - seen->since_ns) / 1000000u), 0 };
    char path[TRP_PATH_BYTES_MAX + 1];
    trp_ctx *ctx = trpi_enter(stall->system);

    trpi_path_local(stall->system, seen->self, path, sizeof path);
    trp_system_log(stall->system, TRP_LOG_WARNING, path,
                   "one message holds its worker for %u ms so far; blocking work belongs on the "
                   "dispatcher \"blocking\"",
                   what.held_ms);
    trpi_event_publish(ctx, &trp_stalled_type, &what, sizeof what);
    trpi_leave(ctx);
}

static void
worker_look(void *arg, trpi_worker *worker)
{
    trpi_stall *stall = arg;
    const trp_ctx *ctx = trpi_worker_data(worker);
    look *before = &stall->looks[trpi_worker_index(worker)];
    uint64_t now = trpi_world_mono_ns(stall->system->world);
    uint32_t kind = trpi_dispatcher_get(stall->system, trpi_worker_number(worker))->options.kind;
    look seen = { 0 };
    bool running;

    if (kind == TRP_DISPATCHER_PINNED || kind == TRP_DISPATCHER_BLOCKING) {
        return;
    }
    ctx_look(ctx, &seen, &running);
    stall->any |= running || seen.run != before->run;
    if (!running || seen.run != before->run || seen.left != before->left ||
        !trp_ref_equal(seen.self, before->self)) {
        *before = seen;
        before->since_ns = now;
        return;
    }
    if (!before->reported && now - before->since_ns >= stall->limit_ns) {
        before->reported = true;
        report(stall, before, now);
    }
}

static void
tick(void *arg, uint64_t a, uint64_t b)
{
    trpi_stall *stall = arg;
    uint64_t id;

    (void)a;
    (void)b;
    stall->any = false;
    trpi_sched_workers_each(stall->system->sched, worker_look, stall);
    if (!stall->any ||
        trpi_timer_add(stall->system->sched, stall->limit_ns / 2000000u + 1, tick, stall, 0, 0,
                       &id) != TRP_OK) {
        atomic_store_explicit(&stall->armed, false, memory_order_seq_cst); /* K1 */
    }
}

void
trpi_stall_arm(trp_system *system)
{
    trpi_stall *stall = system->stall;
    uint64_t id;

    if (!atomic_exchange_explicit(&stall->armed, true, memory_order_seq_cst) &&
        trpi_timer_add(system->sched, stall->limit_ns / 2000000u + 1, tick, stall, 0, 0, &id) !=
            TRP_OK) {
        atomic_store_explicit(&stall->armed, false, memory_order_seq_cst);
    }
}

bool
trpi_stall_is_armed(const trp_system *system)
{
    /* relaxed: a miss is made good by the next one who comes from outside */
    return atomic_load_explicit(&system->stall->armed, RELAXED);
}

trp_err
trpi_stall_new(trp_system *system)
{
    uint32_t ms = system->options.stall_warning_ms;

    if (ms == UINT32_MAX || trpi_sched_is_driven(system->sched)) {
        return TRP_OK;
    }
    system->stall = trpi_alloc(sizeof *system->stall);
    if (system->stall == NULL) {
        return TRP_ENOMEM;
    }
    system->stall->system = system;
    system->stall->limit_ns = (uint64_t)(ms != 0 ? ms : TRP_STALL_WARNING_DEFAULT_MS) * 1000000u;
    return TRP_OK;
}

void
trpi_stall_free(trp_system *system)
{
    trpi_free(system->stall);
    system->stall = NULL;
}
