/* driven.c - schedulers without threads: a thread that would wait runs them, one task at a time.
 *
 * Why.     A race of actors shows itself in one order of a thousand, and never again. In a driven
 *          world every decision (which task runs next, for how long, when time passes) is taken by
 *          the world, from a seed or from a list, so that a run can be repeated.
 * Shape.   One trpi_drive a world, with all its schedulers. pump() chooses the next task, which is
 *          run in the frame of its scheduler's ops->thread, where the failure jump lives:
 *            pump -> ops->thread -> trpi_worker_loop -> driven_loop -> run, run, ... -> back
 *          Tasks that a run woke move from ring and slot to the one list of ready tasks, in the
 *          order of waking. Private and pool tasks are the same here: worker 0 runs all.
 * Must hold.
 *   driven-D1  Between runs no worker is current: timers and done() run as on a foreign thread, as
 *       they do with threads.
 *   driven-D2  Time moves between runs only: to the next timer when no task is ready, or because
 *       the world says so.
 *   driven-D3  One thread drives a world, and submits all its tasks.
 *   driven-D4  A busy task does not run until its time has come, and is not lost then.
 *       (keep_busy)
 *   driven-D5  Turns and timers run on their scheduler's host (world->host), all else on the host
 *       of the thread that pumps.
 * Limits.  A choice is among the TRPI_DRIVEN_WINDOW tasks that wait longest: a step costs the same
 *          however many are ready. A pump ends after TRPI_DRIVEN_TURNS_MAX turns: with a clock that
 *          the test moves, two actors that talk for ever would never let it end.
 * Tests.   tests/unit/sched/driven_test.c
 */
#include <errno.h>
#include <time.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/mutex.h"
#include "sched/worker.h"

#define TRPI_DRIVEN_WINDOW 64u
#define TRPI_DRIVEN_TURNS_MAX 20000000u
#define BATCH_CHOICES 8u     /* messages of the next turn; 0: a full turn */
#define STALL_MS_CHOICES 32u /* milliseconds that pass before the next turn */

typedef struct trpi_drive {
    trpi_world *world;
    pthread_t thread; /* driven-D3 */
    trpi_sched *first;
    bool pumping;
    /* of the present pump */
    trpi_done_fn done;
    void *done_arg;
    uint64_t deadline_ns;
    uint32_t host; /* whose code runs outside of turns and timers */
    bool move;
    bool enough;
    uint64_t turns;
    trpi_pumped result;
    /* what runs next */
    trpi_sched *next_sched;
    trpi_task *next_task;
    uint32_t next_batch;
    trpi_task *running; /* after a failure jump ops->thread settles it */
} trpi_drive;

/* ---- the world's schedulers ------------------------------------------------------------------ */

trp_err
trpi_driven_join(trpi_sched *sched)
{
    trpi_world *world = sched->options.world;
    trpi_sched **link;

    if (world->drive == NULL) {
        world->drive = trpi_alloc(sizeof *world->drive);
        if (world->drive == NULL) {
            return TRP_ENOMEM;
        }
        world->drive->world = world;
        world->drive->thread = pthread_self();
    }
    sched->host = world->host;
    /* at the end: schedulers are chosen in the order in which they were made */
    for (link = &world->drive->first; *link != NULL; link = &(*link)->driven_next) {
    }
    *link = sched;
    return TRP_OK;
}

void
trpi_driven_leave(trpi_sched *sched)
{
    trpi_drive *drive = sched->options.world->drive;
    trpi_sched **link;

    trpi_assert(drive != NULL && !drive->pumping);
    for (link = &drive->first; *link != NULL && *link != sched; link = &(*link)->driven_next) {
    }
    if (*link == sched) {
        *link = sched->driven_next;
    }
    if (drive->first == NULL) {
        sched->options.world->drive = NULL;
        trpi_free(drive);
    }
}

bool
trpi_sched_is_driven(const trpi_sched *sched)
{
    return sched->driven;
}

/* ---- what is next ---------------------------------------------------------------------------- */

/* Move the tasks that a run woke to the list of ready tasks, in the order of waking: ring, slot,
 * deferred ones. The latter wait for nothing here: their receiver runs when it is chosen. */
static void
ready_collect(trpi_sched *sched)
{
    trpi_worker *worker = trpi_sched_worker(sched, 0);
    trpi_task *task;

    while ((task = trpi_ring_pop(worker)) != NULL || (task = trpi_local_take(worker)) != NULL ||
           (task = trpi_defer_pop(worker)) != NULL) {
        trpi_inject_push(sched, task);
    }
}

/* Are its tasks and timers stopped now? */
static bool
is_standing_still(trpi_sched *sched)
{
    return trpi_sched_is_stopping(sched) ||
           trpi_world_mono_ns(sched->options.world) < sched->still_until_ns;
}

void
trpi_sched_stand_still(trpi_sched *sched, uint64_t until_ns)
{
    trpi_assert(sched->driven);
    sched->still_until_ns = until_ns;
    sched->busy_until_ns = until_ns == 0 ? 0 : sched->busy_until_ns;
}

static trpi_task *
ready_take(trpi_sched *sched, uint32_t place)
{
    trpi_task **link = &sched->inject.first;
    trpi_task *before = NULL;
    trpi_task *task;

    for (; place > 0; place--) {
        before = *link;
        link = &(*link)->run_next;
    }
    task = *link;
    *link = task->run_next;
    if (task == sched->inject.last) {
        sched->inject.last = before;
    }
    (void)atomic_fetch_sub_explicit(&sched->inject_count, 1, memory_order_relaxed);
    return task;
}

static void
busy_end(trpi_sched *sched)
{
    trpi_task *task = sched->busy;

    sched->busy = NULL;
    if (sched->busy_is_due) {
        sched->busy_is_due = false;
        trpi_inject_push(sched, task);
    }
}

void
trpi_sched_take_time(trpi_sched *sched, uint64_t until_ns)
{
    trpi_assert(sched->driven && sched->options.world->drive->running != NULL);
    if (sched->busy != NULL) {
        busy_end(sched);
    }
    sched->busy = sched->options.world->drive->running;
    sched->busy_until_ns = until_ns;
}

/* driven-D4 */
static void
keep_busy(trpi_sched *sched)
{
    uint32_t place = 0;
    trpi_task *task = sched->inject.first;

    if (trpi_world_mono_ns(sched->options.world) >= sched->busy_until_ns) {
        busy_end(sched);
        return;
    }
    for (; task != NULL && task != sched->busy; task = task->run_next) {
        place++;
    }
    if (task != NULL) {
        (void)ready_take(sched, place);
        sched->busy_is_due = true;
    }
}

static uint32_t
ready_count(trpi_sched *sched)
{
    if (sched->busy != NULL) {
        keep_busy(sched);
    }
    return is_standing_still(sched)
               ? 0
               : atomic_load_explicit(&sched->inject_count, memory_order_relaxed);
}

static void
timers_fire_all(trpi_drive *drive)
{
    for (trpi_sched *s = drive->first; s != NULL; s = s->driven_next) {
        if (!is_standing_still(s)) {
            drive->world->host = s->host; /* driven-D5 */
            trpi_timers_fire(s);
        }
    }
    drive->world->host = drive->host;
}

static uint64_t
timer_next_ns(trpi_drive *drive)
{
    uint64_t next = UINT64_MAX;

    for (trpi_sched *s = drive->first; s != NULL; s = s->driven_next) {
        uint64_t due = trpi_sched_is_stopping(s) ? UINT64_MAX
                       : is_standing_still(s)    ? s->still_until_ns
                                                 : trpi_timers_next_ns(s);

        if (s->busy_is_due && !is_standing_still(s) && s->busy_until_ns < due) {
            due = s->busy_until_ns;
        }
        next = due < next ? due : next;
    }
    return next;
}

static bool
pump_finish(trpi_drive *drive, trpi_pumped result)
{
    drive->result = result;
    return false;
}

/* No task is ready: move the clock to the next timer. false: the pump ends. */
static bool
time_advance(trpi_drive *drive)
{
    trpi_world *world = drive->world;
    uint64_t next = timer_next_ns(drive);

    if (!drive->move) {
        return pump_finish(drive, TRPI_PUMPED_NOTHING);
    }
    if (next >= drive->deadline_ns) {
        if (drive->deadline_ns == UINT64_MAX) {
            return pump_finish(drive, TRPI_PUMPED_NOTHING);
        }
        world->ops->advance(world, drive->deadline_ns);
        return pump_finish(drive, TRPI_PUMPED_TIME);
    }
    world->ops->advance(world, next);
    return true;
}

/* Time may pass although a task is ready: a machine is slow, a thread is preempted. */
static void
time_may_pass(trpi_drive *drive)
{
    trpi_world *world = drive->world;
    uint64_t now = trpi_world_mono_ns(world);
    uint32_t ms;

    if (world->manual || timer_next_ns(drive) == UINT64_MAX) {
        return;
    }
    ms = world->ops->choose(world, TRPI_CHOICE_STALL, STALL_MS_CHOICES);
    if (ms != 0) {
        world->ops->advance(world, now + ms * 1000000ull);
        timers_fire_all(drive);
    }
}

static void
next_choose(trpi_drive *drive, uint32_t count)
{
    trpi_world *world = drive->world;
    uint32_t window = count < TRPI_DRIVEN_WINDOW ? count : TRPI_DRIVEN_WINDOW;
    uint32_t place = window == 1 ? 0 : world->ops->choose(world, TRPI_CHOICE_TASK, window);
    trpi_sched *s = drive->first;

    trpi_assert(place < window);
    for (; place >= ready_count(s); s = s->driven_next) {
        place -= ready_count(s);
    }
    drive->next_sched = s;
    drive->next_task = ready_take(s, place);
    drive->next_batch = world->ops->choose(world, TRPI_CHOICE_BATCH, BATCH_CHOICES);
}

static uint32_t
ready_all(const trpi_drive *drive)
{
    uint32_t count = 0;

    for (trpi_sched *s = drive->first; s != NULL; s = s->driven_next) {
        count += ready_count(s);
    }
    return count;
}

/* Set next_*; false: the pump ends. */
static bool
next_find(trpi_drive *drive)
{
    for (;;) {
        uint32_t count;

        if (drive->done != NULL && drive->done(drive->done_arg)) {
            return pump_finish(drive, TRPI_PUMPED_DONE);
        }
        if (drive->enough || drive->turns >= TRPI_DRIVEN_TURNS_MAX) {
            return pump_finish(drive, TRPI_PUMPED_ENOUGH);
        }
        if (trpi_world_mono_ns(drive->world) >= drive->deadline_ns &&
            (drive->turns > 0 || ready_all(drive) == 0)) {
            return pump_finish(drive, TRPI_PUMPED_TIME);
        }
        for (trpi_sched *s = drive->first; s != NULL; s = s->driven_next) {
            trpi_retire_between_runs(s);
        }
        timers_fire_all(drive);
        count = ready_all(drive);
        if (count > 0) {
            time_may_pass(drive);
            next_choose(drive, ready_all(drive));
            return true;
        }
        if (!time_advance(drive)) {
            return false;
        }
    }
}

/* ---- running --------------------------------------------------------------------------------- */

static void
after_run(trpi_drive *drive, trpi_sched *sched, uint32_t task, uint32_t result)
{
    trpi_world *world = drive->world;

    trpi_worker_current_set(NULL); /* driven-D1 */
    world->host = drive->host;
    trpi_world_virtual_leave();
    ready_collect(sched);
    if (!world->ops->ran(world, task, result)) {
        drive->enough = true;
    }
    drive->next_task = NULL;
    drive->turns++;
}

/* Run tasks in the frame of ops->thread of this scheduler, until another one's task is next. */
void
trpi_driven_loop(trpi_worker *worker)
{
    trpi_sched *sched = worker->sched;
    trpi_drive *drive = sched->options.world->drive;
    const trpi_sched_ops *ops = sched->options.ops;

    if (drive->running != NULL) { /* a failure jump: its turn was ended and settled meanwhile */
        uint32_t id = drive->running->id;

        drive->running = NULL;
        after_run(drive, sched, id, UINT32_MAX);
        if (!next_find(drive)) {
            return;
        }
    }
    while (drive->next_task != NULL && drive->next_sched == sched) {
        trpi_task *task = drive->next_task;
        uint32_t id = task->id;
        trpi_run_result result;

        trpi_worker_current_set(worker);
        trpi_world_virtual_enter();
        drive->running = task;
        drive->world->host = sched->host;
        if (ops->batch != NULL) {
            ops->batch(worker->data, drive->next_batch);
        }
        result = ops->run(worker->data, task, TRPI_HANDOFF_OFF);
        drive->running = NULL;
        trpi_worker_settle(worker, task, result);
        after_run(drive, sched, id, result);
        if (!next_find(drive)) {
            return;
        }
    }
}

trpi_pumped
trpi_sched_pump(trpi_sched *sched, trpi_done_fn done, void *arg, uint64_t deadline_ns,
                trpi_move move)
{
    trpi_drive *drive = sched->options.world->drive;

    trpi_assert(sched->driven && !drive->pumping);
    trpi_assert(pthread_equal(drive->thread, pthread_self())); /* driven-D3 */
    drive->pumping = true;
    drive->done = done;
    drive->done_arg = arg;
    drive->deadline_ns = deadline_ns;
    drive->move = move == TRPI_MOVE_ALWAYS || (move == TRPI_MOVE_OF_WORLD && !drive->world->manual);
    drive->enough = false;
    drive->turns = 0;
    drive->host = drive->world->host;
    for (trpi_sched *s = drive->first; s != NULL; s = s->driven_next) {
        ready_collect(s);
    }
    if (next_find(drive)) {
        while (drive->next_task != NULL) {
            trpi_sched *s = drive->next_sched;

            s->options.ops->thread(s->options.arg, trpi_sched_worker(s, 0));
        }
    }
    drive->pumping = false;
    return drive->result;
}

bool
trpi_sched_is_pumping(const trpi_sched *sched)
{
    return sched->driven && sched->options.world->drive->pumping;
}

/* ---- condition variables --------------------------------------------------------------------- */

void
trpi_cond_init(trpi_cond *cond)
{
    pthread_condattr_t monotonic;

    pthread_mutex_init(&cond->lock, NULL);
    (void)pthread_condattr_init(&monotonic);
    (void)pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&cond->changed, &monotonic);
    (void)pthread_condattr_destroy(&monotonic);
}

void
trpi_cond_fini(trpi_cond *cond)
{
    pthread_cond_destroy(&cond->changed);
    trpi_mutex_destroy(&cond->lock);
}

void
trpi_cond_broadcast(trpi_cond *cond)
{
    pthread_cond_broadcast(&cond->changed);
}

typedef struct cond_wait_state {
    trpi_cond *cond;
    trpi_done_fn done;
    void *arg;
} cond_wait_state;

static bool
cond_is_done(void *arg)
{
    cond_wait_state *wait = arg;
    bool done;

    pthread_mutex_lock(&wait->cond->lock);
    done = wait->done(wait->arg);
    pthread_mutex_unlock(&wait->cond->lock);
    return done;
}

bool
trpi_cond_wait(trpi_cond *cond, trpi_sched *sched, trpi_done_fn done, void *arg,
               uint64_t deadline_ns)
{
    struct timespec until = { (time_t)(deadline_ns / 1000000000u),
                              (long)(deadline_ns % 1000000000u) };
    int rc = 0;

    if (sched->driven) {
        cond_wait_state wait = { cond, done, arg };
        trpi_pumped pumped;

        pthread_mutex_unlock(&cond->lock);
        pumped = trpi_sched_pump(sched, cond_is_done, &wait, deadline_ns, TRPI_MOVE_OF_WORLD);
        pthread_mutex_lock(&cond->lock);
        return pumped == TRPI_PUMPED_DONE;
    }
    while (!done(arg) && rc != ETIMEDOUT) {
        rc = deadline_ns == UINT64_MAX
                 ? pthread_cond_wait(&cond->changed, &cond->lock)
                 : pthread_cond_timedwait(&cond->changed, &cond->lock, &until);
    }
    return done(arg);
}
