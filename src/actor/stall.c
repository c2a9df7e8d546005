/* stall.c - says which actor holds a worker for too long.
 *
 * Why.     A behaviour that blocks or computes for seconds holds up all that waits behind it, and
 *          nothing else in the system tells which one it was.
 * Shape.   A timer looks at each worker twice in stall_warning_ms: the same message in two looks or
 *          more, for so long, is reported once. Nothing is paid for a message.
 * Must hold.
 *   K1  The timer ends when all workers are asleep, so that an idle system does not wake up. A
 *       worker that is not asleep any more starts it again: it first says that it is awake, then
 *       looks whether the timer is armed; the timer first says that it is not, then looks whether
 *       one is awake. (That nothing runs is not enough: a message may wait for a worker that was
 *       woken.)
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
    bool any;                /* the timer's: a worker is awake */
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

static bool
is_watched(const trpi_stall *stall, const trpi_worker *worker)
{
    uint32_t kind = trpi_dispatcher_get(stall->system, trpi_worker_number(worker))->options.kind;

    return kind != TRP_DISPATCHER_PINNED && kind != TRP_DISPATCHER_BLOCKING;
}

static void
worker_look(void *arg, trpi_worker *worker)
{
    trpi_stall *stall = arg;
    const trp_ctx *ctx = trpi_worker_data(worker);
    look *before = &stall->looks[trpi_worker_index(worker)];
    uint64_t now = trpi_world_mono_ns(stall->system->world);
    look seen = { 0 };
    bool running;

    if (!is_watched(stall, worker)) {
        return;
    }
    ctx_look(ctx, &seen, &running);
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
awake_look(void *arg, trpi_worker *worker)
{
    trpi_stall *stall = arg;

    stall->any |= is_watched(stall, worker) && !trpi_worker_is_asleep(worker);
}

static void tick(void *arg, uint64_t a, uint64_t b);

/* Who changes `armed` to true, or has it so, calls this. */
static void
tick_later(trpi_stall *stall)
{
    uint64_t id;

    if (trpi_timer_add(stall->system->sched, stall->limit_ns / 2000000u + 1, tick, stall, 0, 0,
                       &id) != TRP_OK) {
        atomic_store_explicit(&stall->armed, false, memory_order_seq_cst); /* until the next */
    }
}

static void
arm(trpi_stall *stall)
{
    if (!atomic_exchange_explicit(&stall->armed, true, memory_order_seq_cst)) {
        tick_later(stall);
    }
}

static void
tick(void *arg, uint64_t a, uint64_t b)
{
    trpi_stall *stall = arg;
    trpi_sched *sched = stall->system->sched;

    (void)a;
    (void)b;
    stall->any = false;
    trpi_sched_workers_each(sched, worker_look, stall);
    trpi_sched_workers_each(sched, awake_look, stall);
    if (stall->any) {
        tick_later(stall);
        return;
    }
    atomic_store_explicit(&stall->armed, false, memory_order_seq_cst); /* K1 */
    trpi_sched_workers_each(sched, awake_look, stall);
    if (stall->any) {
        arm(stall);
    }
}

void
trpi_stall_awake(void *arg, trpi_worker *worker)
{
    trpi_stall *stall = ((trp_system *)arg)->stall;

    (void)worker;
    if (stall != NULL && !atomic_load_explicit(&stall->armed, memory_order_seq_cst)) {
        arm(stall);
    }
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
