/* stall.c - detect actors that block a worker for too long.
 *
 * Why.     A behaviour that blocks or computes for seconds delays every task behind it, and
 *          nothing else in the system names it.
 * Shape.   A timer samples each worker twice in stall_warning_ms: a message that is the same in
 *          all samples of that time is reported once. It costs nothing per message.
 * Must hold.
 *   stall-K1  The timer ends when all workers are asleep, so that an idle system does not wake up.
 *       A worker that wakes up starts it again: it first stores that it is awake, then reads
 *       whether the timer is armed; the timer first stores that it is not armed, then reads
 *       whether a worker is awake. (It is not enough that no task runs: a message may wait for a
 *       worker that was woken.)
 *   stall-K2  Fields read from another thread's ctx are hints: they count only if they are the
 *       same in both samples, and the ref is looked up like any other.
 *   stall-K3  A stop that timed out names an actor only if a thread handled one message of it for
 *       the whole grace time, or if it does not answer although no other actor holds its thread.
 *       Actors that only wait for such a thread are counted.
 * Not here. Warnings about actors of pinned and blocking dispatchers: they may block.
 * Tests.   tests/unit/actor/stall_test.c
 * Sources. docs/architecture.md#scheduling.
 */
#include "actor/system/stall.h"

#include <stdio.h>

#include "actor/kernel/dispatcher.h"
#include "actor/life/life.h"
#include "actor/system/open.h"
#include "base/alloc.h"
#include "base/built_in_types.h"

#define WORKERS_ALL (TRPI_POOL_MAX + TRPI_PRIVATE_MAX)

BUILT_IN(trp_stalled_type, "troupe.stalled", sizeof(trp_stalled), trp_stalled_tag, TRP_TYPE_LOCAL,
         TRPI_TYPE_STALLED);
static const trpi_built_in_type type_rows[] = { { &trp_stalled_type, 0 } };
const trpi_type_part trpi_system_types = TYPES_OF(type_rows);

typedef struct look { /* a sample of one worker */
    uint64_t run, left, ended;
    trp_ref self; /* none: a call */
    uint64_t since_ns;
    bool reported;
} look;

struct trpi_stall {
    trp_system *system;
    uint64_t limit_ns;
    _Atomic bool armed;      /* seq_cst: stall-K1 */
    bool any;                /* only the timer: a worker is awake */
    look looks[WORKERS_ALL]; /* only the timer */
};

/* Sample the ctx of another thread (stall-K2). */
__attribute__((no_sanitize("thread"), noinline)) static void
ctx_look(const trp_ctx *ctx, look *now, bool *ret_running)
{
    const volatile trp_ctx *seen = ctx;

    *ret_running = seen->cell != NULL || seen->in_job;
    now->run = (uint64_t)seen->run << 32 | seen->turn.rest;
    now->left = (uint64_t)(uint32_t)seen->turn.left;
    now->self.node = seen->self.node;
    now->self.slot = seen->self.slot;
    now->self.generation = seen->self.generation;
}

/* false: the worker runs nothing. */
static bool
worker_seen(const trpi_worker *worker, look *ret_look)
{
    bool running;

    ctx_look(trpi_worker_data((trpi_worker *)(uintptr_t)worker), ret_look, &running);
    ret_look->ended = trpi_worker_progress(worker);
    return running;
}

/* Do both samples show the same message? */
static bool
is_same(const look *before, const look *now)
{
    return now->run == before->run && now->left == before->left && now->ended == before->ended &&
           trp_ref_equal(now->self, before->self);
}

static void
stall_report(trpi_stall *stall, const look *seen, uint64_t now)
{
    trp_stalled what = { seen->self, (uint32_t)((now - seen->since_ns) / 1000000u), 0 };
    char path[TRP_PATH_BYTES_MAX + 1];
    trp_ctx *ctx = trpi_enter(stall->system);

    trpi_path_local(stall->system, seen->self, path, sizeof path);
    trp_system_log(stall->system, TRP_LOG_WARNING, path,
                   "one %s holds its worker for %u ms so far; blocking work belongs on the "
                   "dispatcher \"blocking\"",
                   trp_ref_is_none(seen->self)
                       ? "function of a socket or of trp_dispatcher_execute()"
                       : "message",
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
    look *before = &stall->looks[trpi_worker_index(worker)];
    uint64_t now = trpi_world_mono_ns(stall->system->world);
    look seen = { 0 };

    if (!is_watched(stall, worker)) {
        return;
    }
    if (!worker_seen(worker, &seen) || !is_same(before, &seen)) {
        *before = seen;
        before->since_ns = now;
        return;
    }
    if (!before->reported && now - before->since_ns >= stall->limit_ns) {
        before->reported = true;
        stall_report(stall, before, now);
    }
}

static void
awake_look(void *arg, trpi_worker *worker)
{
    trpi_stall *stall = arg;

    stall->any |= is_watched(stall, worker) && !trpi_worker_is_asleep(worker);
}

static void timer_tick(void *arg, uint64_t a, uint64_t b);

/* Schedule the next tick. The caller has set `armed`, or holds it set. */
static void
tick_later(trpi_stall *stall)
{
    trpi_sched *sched = stall->system->sched;
    trpi_timer what = { .fn = timer_tick, .arg = stall };
    uint64_t id;

    what.due_ns = trpi_world_mono_ns(stall->system->world) + stall->limit_ns / 2 + 1000000u;
    if (stall->limit_ns / 2 >= TRPI_GRID_NS) { /* shares wake-ups with others */
        what.due_ns = trpi_timer_on_grid(sched, what.due_ns);
    }
    if (trpi_timer_start(sched, &what, &id) != TRP_OK) {
        /* until a worker wakes up */
        atomic_store_explicit(&stall->armed, false, memory_order_seq_cst);
    }
}

static void
timer_arm(trpi_stall *stall)
{
    if (!atomic_exchange_explicit(&stall->armed, true, memory_order_seq_cst)) {
        tick_later(stall);
    }
}

static void
timer_tick(void *arg, uint64_t a, uint64_t b)
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
    atomic_store_explicit(&stall->armed, false, memory_order_seq_cst); /* stall-K1 */
    trpi_sched_workers_each(sched, awake_look, stall);
    if (stall->any) {
        timer_arm(stall);
    }
}

void
trpi_stall_awake(void *arg, trpi_worker *worker)
{
    trpi_stall *stall = ((trp_system *)arg)->stall;

    (void)worker;
    if (stall != NULL && !atomic_load_explicit(&stall->armed, memory_order_seq_cst)) {
        timer_arm(stall);
    }
}

trp_err
trpi_stall_new(trp_system *system)
{
    uint32_t ms = system->options.stall_warning_ms;

    if (ms == TRP_OFF || trpi_sched_is_driven(system->sched)) {
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

static void
turns_add(void *arg, trpi_worker *worker)
{
    if (trpi_worker_number(worker) == 0 && !trpi_worker_is_private(worker)) {
        *(uint64_t *)arg += trpi_worker_progress(worker);
    }
}

uint64_t
trpi_system_turns(trp_system *system)
{
    uint64_t turns = 0;

    trpi_sched_workers_each(system->sched, turns_add, &turns);
    return turns;
}

/* ---- a stop that timed out ------------------------------------------------------------------- */

#define NAMED_MAX 64u /* lines about actors; the others are counted */

typedef struct stuck {
    trp_system *system;
    uint64_t until_ns; /* the second sample */
    bool judged;
    uint32_t named, unnamed;
    bool running[WORKERS_ALL];
    look looks[WORKERS_ALL];
    uint32_t holders;
    trp_ref holding[WORKERS_ALL];
    uint32_t held[TRP_DISPATCHERS_MAX]; /* workers of each dispatcher */
    uint32_t waiting[TRP_DISPATCHERS_MAX];
} stuck;

static void
first_look(void *arg, trpi_worker *worker)
{
    stuck *s = arg;
    uint32_t at = trpi_worker_index(worker);

    s->running[at] = worker_seen(worker, &s->looks[at]);
}

static const char *
dispatcher_id(const stuck *s, uint8_t number)
{
    return trpi_dispatcher_get(s->system, number)->id;
}

/* Name the actor whose message a worker has handled since the first sample. */
static void
second_look(void *arg, trpi_worker *worker)
{
    stuck *s = arg;
    uint32_t at = trpi_worker_index(worker);
    uint8_t number = trpi_worker_number(worker);
    char path[TRP_PATH_BYTES_MAX + 1];
    look now = { 0 };

    if (!s->running[at] || !worker_seen(worker, &now) || !is_same(&s->looks[at], &now)) {
        return;
    }
    s->held[number]++;
    if (trp_ref_is_none(now.self)) {
        trpi_log_direct(s->system, TRP_LOG_ERROR, "system",
                        "a function that was given to trp_dispatcher_execute() holds a worker of "
                        "dispatcher %s; the system does not stop",
                        dispatcher_id(s, number));
        return;
    }
    s->holding[s->holders++] = now.self;
    trpi_path_local(s->system, now.self, path, sizeof path);
    trpi_log_direct(s->system, TRP_LOG_ERROR, "system",
                    "actor %s is stuck in its present message and holds a worker of dispatcher %s; "
                    "the system does not stop",
                    path, dispatcher_id(s, number));
}

static bool
is_holder(const stuck *s, trp_ref ref)
{
    for (uint32_t i = 0; i < s->holders; i++) {
        if (trp_ref_equal(s->holding[i], ref)) {
            return true;
        }
    }
    return false;
}

static void
name_actor(stuck *s, trp_ref ref, const char *what)
{
    char path[TRP_PATH_BYTES_MAX + 1];

    if (s->named++ == NAMED_MAX) {
        s->named--;
        s->unnamed++;
        return;
    }
    trpi_path_local(s->system, ref, path, sizeof path);
    trpi_log_direct(s->system, TRP_LOG_ERROR, "system", "actor %s %s; the system does not stop",
                    path, what);
}

static bool
never_true(void *arg)
{
    (void)arg;
    return false;
}

/* Take the second sample grace_ms after the first, however soon the tree has answered. */
static void
stuck_judge(stuck *s)
{
    trpi_sched *sched = s->system->sched;
    trpi_cond cond;

    s->judged = true;
    if (trpi_sched_is_driven(sched)) {
        return; /* a driven world: no actor runs now */
    }
    trpi_cond_init(&cond);
    pthread_mutex_lock(&cond.lock);
    (void)trpi_cond_wait(&cond, sched, never_true, NULL, s->until_ns);
    pthread_mutex_unlock(&cond.lock);
    trpi_cond_fini(&cond);
    trpi_sched_workers_each(sched, second_look, s);
}

static void
unended_note(void *arg, trp_ref ref, bool silent)
{
    stuck *s = arg;
    const trpi_cell *cell = trpi_cells_find(s->system->cells, ref.slot);
    uint8_t number = cell == NULL ? 0 : __atomic_load_n(&cell->task.number, __ATOMIC_RELAXED);

    if (!s->judged) {
        stuck_judge(s);
    }
    if (is_holder(s, ref)) {
        return; /* named already */
    }
    if (!silent) {
        name_actor(s, ref, "has not ended yet");
    } else if (s->held[number] > 0) {
        s->waiting[number]++; /* stall-K3 */
    } else if (cell != NULL &&
               __atomic_load_n(&cell->task.dispatch, __ATOMIC_RELAXED) == TRPI_DISPATCH_HERE) {
        name_actor(s, ref,
                   "is stuck in its present message, or no thread runs it, for its "
                   "dispatcher has none of its own");
    } else {
        name_actor(s, ref, "has not answered");
    }
}

static void
say_waiting(const stuck *s)
{
    for (uint32_t i = 0; i < TRP_DISPATCHERS_MAX; i++) {
        if (s->waiting[i] > 0) {
            trpi_log_direct(s->system, TRP_LOG_WARNING, "system",
                            "%u more actors wait for a worker of dispatcher %s",
                            (unsigned)s->waiting[i], dispatcher_id(s, (uint8_t)i));
        }
    }
    if (s->unnamed > 0) {
        trpi_log_direct(s->system, TRP_LOG_WARNING, "system",
                        "%u more actors have not ended yet or not answered", (unsigned)s->unnamed);
    }
}

void
trpi_stuck_log(trp_system *system, uint32_t grace_ms)
{
    stuck *s = trpi_alloc(sizeof *s);

    if (s == NULL) {
        trpi_log_direct(system, TRP_LOG_ERROR, "system",
                        "the system does not stop; out of memory to say why");
        return;
    }
    s->system = system;
    s->until_ns = trpi_world_mono_ns(system->world) + (uint64_t)grace_ms * 1000000u;
    trpi_sched_workers_each(system->sched, first_look, s);
    if (trpi_tree_unended_each(system, grace_ms, unended_note, s) != TRP_OK) {
        trpi_log_direct(system, TRP_LOG_ERROR, "system",
                        "out of memory to ask all actors why the system does not stop");
    }
    if (!s->judged && !trp_system_is_terminated(system)) {
        stuck_judge(s);
    }
    say_waiting(s);
    trpi_free(s);
}
