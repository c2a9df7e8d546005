/* timer.c - timers of a scheduler: the wheel, a lock, and one thread that sleeps until the next one
 * is due.
 *
 * Why.     A thread and not a worker: workers may be busy for long, and a receive timeout or a
 *          heartbeat must not wait for them. It sleeps without limit when no timer is set, so an
 *          idle system costs nothing (sched-S3).
 * Must hold.
 *   timer-T1  An id is index and generation of an entry; an entry that fired or was cancelled has
 *       another generation, so a late cancel finds nothing.
 *   timer-T2  fn is called without the lock; cancel returns true only for an entry whose fn was not
 *       called and will not be.
 *   timer-T3  The n-th time of a repeating timer is start + n * interval, whatever happened before.
 * Limits.  timers_max of the options at one time, at most TRPI_TIMERS_MAX.
 * Tests.   tests/unit/sched/timer_test.c, timer_wheel_test.c
 */
#include <errno.h>
#include <string.h>
#include <time.h>

#include <troupe/scheduler.h>

#include "base/alloc.h"
#include "base/array.h"
#include "base/assert.h"
#include "base/mutex.h"
#include "sched/worker.h"

#define TICK_NS_DEFAULT (TRP_TICK_MS_DEFAULT * 1000000u)
#define WHEEL_SLOTS_DEFAULT TRP_WHEEL_TICKS_DEFAULT
#define CHUNK_ENTRIES 256u
#define TRPI_TIMERS_MAX TRP_SCHEDULES_MAX

typedef struct timer_entry {
    trpi_wheel_node node; /* first: the wheel returns these */
    trpi_timer what;
    bool cancelled; /* cancelled while entries_fire() has it: do not call it any more */
    bool last;      /* the same: do not repeat it */
    uint32_t index;
    uint32_t generation;
    struct timer_entry *free_next;
} timer_entry;

struct trpi_timers {
    pthread_mutex_t lock;
    pthread_cond_t cond; /* on CLOCK_MONOTONIC */
    pthread_t thread;
    bool thread_made;
    bool stopping;         /* lock */
    uint64_t sleeps_until; /* lock; tick at which the thread wakes up, UINT64_MAX: when signalled */
    uint64_t tick_ns;
    trpi_timer_wheel wheel;
    void *wheel_memory;
    timer_entry **chunks;
    uint32_t chunks_count, chunks_room;
    timer_entry *free_first;
    uint32_t used, used_max; /* lock */
};

static uint64_t
now_tick(trpi_sched *sched)
{
    return trpi_sched_now(sched) / sched->timers->tick_ns;
}

/* Under the lock. */
static timer_entry *
entry_new(trpi_timers *timers)
{
    timer_entry *entry = timers->free_first;
    timer_entry *chunk;

    if (timers->used == timers->used_max) {
        return NULL;
    }
    if (entry != NULL) {
        timers->free_first = entry->free_next;
        timers->used++;
        return entry;
    }
    chunk = TRPI_ARRAY_HAS_ROOM(timers, chunks) ? trpi_alloc(CHUNK_ENTRIES * sizeof *chunk) : NULL;
    if (chunk == NULL) {
        return NULL;
    }
    for (uint32_t i = 0; i < CHUNK_ENTRIES; i++) {
        chunk[i].index = timers->chunks_count * CHUNK_ENTRIES + i;
        chunk[i].generation = 1;
        if (i > 0) {
            chunk[i].free_next = timers->free_first;
            timers->free_first = &chunk[i];
        }
    }
    timers->chunks[timers->chunks_count++] = chunk;
    timers->used++;
    return &chunk[0];
}

/* Under the lock. timer-T1. */
static void
entry_free(trpi_timers *timers, timer_entry *entry)
{
    entry->what.drop = NULL;
    entry->generation++;
    if (entry->generation == 0) {
        entry->generation = 1; /* so that no id is 0 */
    }
    entry->free_next = timers->free_first;
    timers->free_first = entry;
    timers->used--;
}

/* Return the first tick that does not begin before this time: a timer is never early. */
static uint64_t
tick_of(const trpi_timers *timers, uint64_t ns)
{
    return ns / timers->tick_ns + (ns % timers->tick_ns != 0);
}

trp_err
trpi_timer_start(trpi_sched *sched, const trpi_timer *what, uint64_t *ret_id)
{
    trpi_timers *timers = sched->timers;
    trp_err err = TRP_OK;
    timer_entry *entry;
    uint64_t due = tick_of(timers, what->due_ns);
    bool sooner = false;

    trpi_assert((what->fn != NULL) != (what->again != NULL));
    pthread_mutex_lock(&timers->lock);
    entry = timers->stopping ? NULL : entry_new(timers);
    if (entry == NULL) {
        err = timers->stopping ? TRP_ECLOSED : TRP_ENOMEM;
    } else {
        entry->what = *what;
        entry->cancelled = entry->last = false;
        trpi_wheel_add(&timers->wheel, &entry->node, due);
        *ret_id = (uint64_t)entry->generation << 32 | entry->index;
        if (due < timers->sleeps_until) {
            timers->sleeps_until = due;
            sooner = true;
        }
    }
    pthread_mutex_unlock(&timers->lock);
    if (sooner) {
        pthread_cond_signal(&timers->cond); /* private-P3 */
    }
    return err;
}

trp_err
trpi_timer_add(trpi_sched *sched, uint64_t delay_ms, trpi_timer_fn fn, void *arg, uint64_t a,
               uint64_t b, uint64_t *ret_id)
{
    const uint64_t delay_max = UINT64_MAX / 4 / 1000000u;
    trpi_timer what = { 0 };

    what.interval_ns = (delay_ms < delay_max ? delay_ms : delay_max) * 1000000u;
    what.due_ns = trpi_sched_now(sched) + what.interval_ns;
    what.fn = fn;
    what.arg = arg;
    what.a = a;
    what.b = b;
    return trpi_timer_start(sched, &what, ret_id);
}

bool
trpi_timer_age(trpi_sched *sched, uint64_t id, uint64_t *ret_ns)
{
    trpi_timers *timers = sched->timers;
    uint32_t index = (uint32_t)id;
    uint64_t now_ns = trpi_sched_now(sched);
    bool waits = false;

    pthread_mutex_lock(&timers->lock);
    if (index / CHUNK_ENTRIES < timers->chunks_count) {
        const timer_entry *entry = &timers->chunks[index / CHUNK_ENTRIES][index % CHUNK_ENTRIES];

        waits = entry->generation == (uint32_t)(id >> 32) && entry->what.again == NULL;
        if (waits) {
            uint64_t begun_ns = entry->what.due_ns - entry->what.interval_ns;

            *ret_ns = now_ns > begun_ns ? now_ns - begun_ns : 0;
        }
    }
    pthread_mutex_unlock(&timers->lock);
    return waits;
}

uint64_t
trpi_sched_grid_ns(const trpi_sched *sched)
{
    return sched->grid_ns;
}

uint64_t
trpi_timer_on_grid(const trpi_sched *sched, uint64_t ns)
{
    if (sched->grid_ns == 0 || ns < sched->grid_ns) {
        return ns;
    }
    return ns - (ns - sched->grid_ns) % TRPI_GRID_NS + sched->timers->tick_ns;
}

static void
timer_drop(const trpi_timer *what)
{
    if (what->drop != NULL) {
        what->drop(what->arg, what->a, what->b);
    }
}

bool
trpi_timer_cancel_note(trpi_sched *sched, uint64_t id, uint32_t *cancelled)
{
    trpi_timers *timers = sched->timers;
    uint32_t index = (uint32_t)id;
    trpi_timer dropped = { 0 };
    bool won = false;

    pthread_mutex_lock(&timers->lock);
    if (index / CHUNK_ENTRIES < timers->chunks_count) {
        timer_entry *entry = &timers->chunks[index / CHUNK_ENTRIES][index % CHUNK_ENTRIES];

        if (entry->generation == (uint32_t)(id >> 32)) {
            won = !entry->cancelled;
            if (trpi_wheel_remove(&timers->wheel, &entry->node)) {
                dropped = entry->what;
                entry_free(timers, entry);
            } else {
                entry->cancelled = true; /* entries_fire() skips or frees it */
            }
        }
    }
    if (won && cancelled != NULL) {
        __atomic_store_n(cancelled, 1, __ATOMIC_RELAXED); /* the lock orders it before a loser */
    }
    pthread_mutex_unlock(&timers->lock);
    timer_drop(&dropped);
    return won;
}

bool
trpi_timer_cancel(trpi_sched *sched, uint64_t id)
{
    return trpi_timer_cancel_note(sched, id, NULL);
}

/* Under the lock, which is released around fn and again (timer-T2). A repeating timer that missed
 * some of its times fires once a tick until it has caught up (timer-T3). */
static void
entry_fire(trpi_timers *timers, timer_entry *entry)
{
    trpi_timer what = entry->what;
    bool again = false, cancelled = entry->cancelled;

    if (what.again == NULL) {
        entry_free(timers, entry); /* from here on a cancel returns false */
    }
    pthread_mutex_unlock(&timers->lock);
    if (!cancelled && what.again != NULL) {
        again = what.again(what.arg, what.a, what.b);
    } else if (!cancelled) {
        what.fn(what.arg, what.a, what.b);
    }
    pthread_mutex_lock(&timers->lock);
    if (what.again != NULL && again && !entry->cancelled && !entry->last && !timers->stopping) {
        entry->what.due_ns += what.interval_ns;
        trpi_wheel_add(&timers->wheel, &entry->node, tick_of(timers, entry->what.due_ns));
        return;
    }
    if (what.again != NULL) {
        entry_free(timers, entry);
    }
    pthread_mutex_unlock(&timers->lock);
    timer_drop(&what);
    pthread_mutex_lock(&timers->lock);
}

static void
entries_fire(trpi_sched *sched, trpi_wheel_node *node)
{
    while (node != NULL) {
        timer_entry *entry = (timer_entry *)(void *)node;

        node = node->next;
        entry->node.next = NULL;
        entry_fire(sched->timers, entry);
    }
}

void
trpi_timers_take(trpi_sched *sched, void (*of)(void *arg, uint64_t a, uint64_t b),
                 void (*each)(void *user, void *arg), void *user)
{
    trpi_timers *timers = sched->timers;

    pthread_mutex_lock(&timers->lock);
    for (uint32_t i = 0; i < timers->chunks_count * CHUNK_ENTRIES; i++) {
        timer_entry *entry = &timers->chunks[i / CHUNK_ENTRIES][i % CHUNK_ENTRIES];

        if (entry->what.drop != of) {
            continue;
        }
        if (trpi_wheel_remove(&timers->wheel, &entry->node)) {
            trpi_timer what = entry->what;

            entry_free(timers, entry);
            pthread_mutex_unlock(&timers->lock);
            each(user, what.arg);
            timer_drop(&what);
            pthread_mutex_lock(&timers->lock);
        } else {
            entry->last = true; /* it runs, or is about to run */
        }
    }
    pthread_mutex_unlock(&timers->lock);
}

/* Under the lock. */
static void
thread_wait_until(trpi_sched *sched, uint64_t tick)
{
    trpi_timers *timers = sched->timers;
    struct timespec until;
    uint64_t now_ns = trpi_sched_now(sched);
    uint64_t wait_ns;

    timers->sleeps_until = tick;
    if (tick == UINT64_MAX) {
        pthread_cond_wait(&timers->cond, &timers->lock);
        return;
    }
    if (tick * timers->tick_ns <= now_ns) {
        return;
    }
    wait_ns = tick * timers->tick_ns - now_ns;
    if (wait_ns > 3600u * 1000000000ull) {
        wait_ns = 3600u * 1000000000ull;
    }
    (void)clock_gettime(CLOCK_MONOTONIC,
                        &until); /* the world's clock need not be the condition's */
    wait_ns += (uint64_t)until.tv_nsec;
    until.tv_sec += (time_t)(wait_ns / 1000000000u);
    until.tv_nsec = (long)(wait_ns % 1000000000u);
    pthread_cond_timedwait(&timers->cond, &timers->lock, &until);
}

static void *
timer_main(void *arg)
{
    trpi_sched *sched = arg;
    trpi_timers *timers = sched->timers;

    (void)pthread_setname_np(pthread_self(), "trp-timer");
    pthread_mutex_lock(&timers->lock);
    while (!timers->stopping) {
        uint64_t tick = UINT64_MAX;

        entries_fire(sched, trpi_wheel_advance(&timers->wheel, now_tick(sched)));
        if (timers->stopping) {
            break;
        }
        if (!trpi_wheel_next(&timers->wheel, &tick)) {
            tick = UINT64_MAX;
        }
        thread_wait_until(sched, tick);
    }
    pthread_mutex_unlock(&timers->lock);
    trpi_thread_ended(sched);
    return NULL;
}

void
trpi_timers_fire(trpi_sched *sched)
{
    trpi_timers *timers = sched->timers;

    pthread_mutex_lock(&timers->lock);
    entries_fire(sched, trpi_wheel_advance(&timers->wheel, now_tick(sched)));
    pthread_mutex_unlock(&timers->lock);
}

uint64_t
trpi_timers_next_ns(trpi_sched *sched)
{
    trpi_timers *timers = sched->timers;
    uint64_t tick;
    bool any;

    pthread_mutex_lock(&timers->lock);
    any = trpi_wheel_next(&timers->wheel, &tick);
    pthread_mutex_unlock(&timers->lock);
    return any ? tick * timers->tick_ns : UINT64_MAX;
}

trp_err
trpi_timers_new(trpi_sched *sched)
{
    uint32_t slots =
        sched->options.wheel_slots == 0 ? WHEEL_SLOTS_DEFAULT : sched->options.wheel_slots;
    uint64_t tick_ns = sched->options.tick_ns == 0 ? TICK_NS_DEFAULT : sched->options.tick_ns;
    trpi_timers *timers = trpi_alloc(sizeof *timers);
    void *memory = trpi_alloc(trpi_wheel_bytes(slots));
    pthread_condattr_t attributes;

    if (timers == NULL || memory == NULL) {
        trpi_free(timers);
        trpi_free(memory);
        return TRP_ENOMEM;
    }
    pthread_mutex_init(&timers->lock, NULL);
    (void)pthread_condattr_init(&attributes);
    (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&timers->cond, &attributes);
    (void)pthread_condattr_destroy(&attributes);
    sched->timers = timers;
    timers->tick_ns = tick_ns;
    timers->used_max = sched->options.timers_max == 0 ? TRPI_TIMERS_MAX : sched->options.timers_max;
    timers->wheel_memory = memory;
    trpi_wheel_init(&timers->wheel, slots, memory, now_tick(sched));
    timers->sleeps_until = UINT64_MAX;
    sched->grid_ns = sched->driven ? 0 : trpi_sched_now(sched) / 1000000u * 1000000u;
    return TRP_OK;
}

trp_err
trpi_timers_start(trpi_sched *sched)
{
    trp_err err;

    trpi_thread_began(sched);
    err = trpi_thread_start(&sched->timers->thread, timer_main, sched);
    if (err != TRP_OK) {
        trpi_thread_ended(sched);
        return err;
    }
    sched->timers->thread_made = true;
    return TRP_OK;
}

void
trpi_timers_stop(trpi_sched *sched)
{
    trpi_timers *timers = sched->timers;

    pthread_mutex_lock(&timers->lock);
    timers->stopping = true;
    pthread_cond_signal(&timers->cond);
    pthread_mutex_unlock(&timers->lock);
}

void
trpi_timers_join(trpi_sched *sched)
{
    if (sched->timers->thread_made) {
        (void)pthread_join(sched->timers->thread, NULL);
        sched->timers->thread_made = false;
    }
}

void
trpi_timers_abandon(trpi_sched *sched)
{
    if (sched->timers->thread_made) {
        (void)pthread_detach(sched->timers->thread);
        sched->timers->thread_made = false;
    }
}

void
trpi_timers_free(trpi_sched *sched)
{
    trpi_timers *timers = sched->timers;

    if (timers == NULL) {
        return;
    }
    for (uint32_t i = 0; i < timers->chunks_count * CHUNK_ENTRIES; i++) {
        timer_drop(&timers->chunks[i / CHUNK_ENTRIES][i % CHUNK_ENTRIES].what);
    }
    for (uint32_t i = 0; i < timers->chunks_count; i++) {
        trpi_free(timers->chunks[i]);
    }
    trpi_free(timers->chunks);
    trpi_free(timers->wheel_memory);
    trpi_mutex_destroy(&timers->lock);
    pthread_cond_destroy(&timers->cond);
    trpi_free(timers);
    sched->timers = NULL;
}
