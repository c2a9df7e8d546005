/* worker.h - private to the room: what a worker and a scheduler are. */
#ifndef TRPI_SCHED_WORKER_H
#define TRPI_SCHED_WORKER_H

#include <pthread.h>

#include "base/atomics.h"
#include "base/check.h"
#include "sched/sched.h"
#include "sched/timer_wheel.h"

/* A FIFO of tasks, linked by run_next; its owner brings the lock. */
typedef struct trpi_task_list {
    trpi_task *first, *last;
} trpi_task_list;

enum { TRPI_TRIMS_OWN = 1, TRPI_TRIMS_ALL = 2 };

/* Deferred tasks wait until their worker is idle or 1 ms has passed. They age: tasks that are in
 * `old` when the next age begins are due. The lock is held for a few instructions. */
typedef struct trpi_deferred_tasks {
    pthread_mutex_t lock;
    _Atomic uint32_t count; /* relaxed hint for the test "empty"; exact under the lock */
    trpi_task_list young, old, due;
    uint64_t age_ns;    /* worker's thread only: when the present age began */
    uint32_t due_place; /* worker's thread only: ring place of the last due task put there */
    bool any_due;       /* worker's thread only: hint */
    _Atomic uint64_t stolen_ns; /* when a thief stole one last; relaxed */
} trpi_deferred_tasks;

struct trpi_worker {
    /* used by the worker's own thread (the owner) */
    _Alignas(TRPI_CACHE_LINE_PAIR) trpi_sched *sched;
    uint16_t index;
    uint16_t defer_to;
    bool is_private;
    uint32_t slot_wins;
    uint32_t handoff_pause;            /* runs until a task may be retained again */
    _Atomic uint32_t inject_countdown; /* written by the owner; others may set 0, relaxed: a hint */
    /* polls of the injection queue until the next trpi_parallelism_adjust() */
    uint32_t parallelism_countdown, parallelism_stride;
    uint64_t parallelism_checked_ns;
    /* another worker whose retained task may have to be rescued (parallelism.c) */
    uint64_t watched_since_ns; /* when its present run was first seen */
    uint64_t watched_progress;
    uint32_t watched_index;
    uint32_t victim;   /* worker that the next search begins with */
    uint64_t steal_ns; /* when this worker stole last; 0: the runs that followed were measured */
    uint64_t steal_progress; /* its progress at that time */
    uint64_t probe_run_ns; /* mean run after the last steal; 0: unknown, so steal one as a probe */
    pthread_t thread;
    bool thread_made;
    _Atomic int cpu_clock;     /* of the thread, which writes it; 0: none yet; relaxed: a hint */
    _Atomic int kernel_thread; /* its id, which it writes; 0: no thread of ours; relaxed: a hint */
    uint32_t trims;            /* TRPI_TRIMS_*: how ops->sleep was called since the last run */
    uint32_t poll_runs; /* between two polls of the injection queue and of the kernel (poll.c) */
    uint64_t poll_ns;   /* when it looked for reports last */
    bool poll_alone;    /* at its last look nobody had looked for TRPI_POLL_STUCK_NS */

    /* written by the owner in each run, read by thieves */
    _Alignas(TRPI_CACHE_LINE) _Atomic uint32_t ring_head; /* queue-Q1 */
    _Atomic uint32_t ring_tail; /* owner, release; pairs with acquire of thieves */
    _Atomic(trpi_task *) slot;  /* the LIFO slot: see trpi_slot_enter() */
    _Atomic uint64_t progress;  /* +1 after each run, release: quiescent state; shows progress */
    trpi_handoff handoff;
    _Alignas(TRPI_CACHE_LINE) _Atomic(trpi_task *) ring[TRPI_RING_TASKS];

    /* written by others */
    _Alignas(TRPI_CACHE_LINE) _Atomic uint32_t woken; /* futex word: WOKEN_* (sleep.c) */
    _Atomic bool asleep;     /* seq_cst; pair: trpi_wake_worker(), sleep_once() */
    _Atomic uint32_t parked; /* futex word: 1 while it is parked (parallelism.c) */
    bool in_sleepers;        /* sleep_lock */
    bool seated;             /* sleep_lock, and its own thread while it sleeps: sleep-L6 */
    trpi_worker *sleep_next; /* sleep_lock */
    trpi_deferred_tasks deferred;

    /* private workers: their queue */
    _Alignas(TRPI_CACHE_LINE) pthread_mutex_t queue_lock;
    pthread_cond_t queue_cond;
    trpi_task_list queue; /* queue_lock; of an affine worker: tasks that other workers submitted */
    bool released;        /* queue_lock */
    bool high_priority;
    _Atomic uint8_t number;     /* relaxed: to others a hint */
    struct trpi_group *group;   /* a thread of this group; NULL: a worker of its own */
    struct trpi_affine *affine; /* affine.c; NULL: not affine */
    char name[16];

    _Alignas(TRPI_CACHE_LINE) unsigned char data[];
};

#define TRPI_PARALLELISM_PAIRS 3u /* of measures: with the limit as it is, and with another one */
/* The limit of running workers, and the trials that find it (parallelism.c). */
typedef struct trpi_parallelism {
    _Atomic uint32_t locked; /* 1: a worker uses the fields below; acquire, release */
    uint32_t state;
    uint32_t limits[2]; /* compared by this trial: the present limit, another one */
    uint64_t rates[2][TRPI_PARALLELISM_PAIRS]; /* work per second with each */
    uint32_t measures;                         /* taken so far */
    bool up;                                   /* direction of the next trial */
    bool first;                                /* no trial took place yet */
    bool requested;                            /* the next watch was requested before due_ns */
    uint64_t due_ns;
    uint64_t until_ns;    /* end of the present state */
    uint64_t since_ns;    /* start of the present state */
    uint64_t work;        /* work done before since_ns */
    uint64_t interval_ns; /* between trials */
} trpi_parallelism;

typedef struct trpi_timers trpi_timers; /* timer.c */

struct trpi_retired; /* retire.c */

struct trpi_sched {
    trpi_sched_options options;
    char name[16];
    uint32_t pool_count;
    size_t worker_bytes;     /* of a whole struct trpi_worker */
    bool membarrier;         /* private expedited membarrier works; else owners issue fences */
    bool started;            /* owner */
    bool driven;             /* no threads: driven.c */
    trpi_sched *driven_next; /* of the same world */
    uint64_t still_until_ns; /* driven: no task or timer runs before */
    trpi_task *busy;         /* driven: it does not run before busy_until_ns; NULL: none */
    uint64_t busy_until_ns;
    uint32_t host;    /* driven-D5 */
    bool busy_is_due; /* driven: busy is ready, and stays out of inject until then */

    /* Workers with an index below it run; 0: the scheduler stops. Read before each run. */
    _Alignas(TRPI_CACHE_LINE) _Atomic uint32_t limit;
    _Atomic bool stopping;
    _Atomic bool wake_suppressed;        /* relaxed hint: sleep-L5 */
    _Atomic(const trpi_poll_ops *) poll; /* set once, release; NULL: nothing is polled */
    void *poll_arg;                      /* written before poll */
    _Atomic(trpi_worker *)
        workers[TRPI_POOL_MAX + TRPI_PRIVATE_MAX]; /* set once, release; never unset */

    _Alignas(TRPI_CACHE_LINE) pthread_mutex_t inject_lock;
    trpi_task_list inject;
    _Atomic uint32_t inject_count; /* relaxed hint, ordered by the fences of sleep-L1 */

    _Alignas(TRPI_CACHE_LINE) _Atomic uint32_t sleepers; /* seq_cst, see sleep.c */
    _Atomic uint32_t searching;                          /* seq_cst, see sleep.c */
    pthread_mutex_t sleep_lock;
    trpi_worker *sleepers_first;     /* sleep_lock */
    _Atomic(trpi_worker *) sentinel; /* written under sleep_lock; relaxed reads are hints */
    _Atomic uint32_t fence_word;     /* see trpi_fence() */

    _Alignas(TRPI_CACHE_LINE) _Atomic uint32_t seat; /* seq_cst; 1: a thread is in collect() */
    _Atomic bool poll_ticking;                       /* seq_cst: poll-O3 */
    _Atomic uint64_t polled_ns;                      /* relaxed: when a thread looked last */
    uint64_t poll_progress; /* timer thread: of the pool, at its last tick */
    uint32_t poll_ticks;    /* timer thread: in a row without progress */

    _Atomic(trpi_worker *) helper; /* set once, release; NULL: none (private-P2) */
    pthread_mutex_t private_lock;
    uint32_t private_count; /* private_lock: highest index used so far */
    _Atomic(struct trpi_group *) groups[TRPI_GROUPS_MAX]; /* release; never unset */
    uint16_t private_free[TRPI_PRIVATE_MAX]; /* private_lock: indices whose thread has ended */
    uint32_t private_free_count;

    pthread_mutex_t threads_lock; /* guards threads_alive; threads_cond: it changed */
    pthread_cond_t threads_cond;
    uint32_t threads_alive;

    trpi_timers *timers;
    uint64_t grid_ns; /* a point of the grid, in whole milliseconds; 0: none */

    pthread_mutex_t retire_lock;
    struct trpi_retired *retired; /* retire_lock: waiting for the next grace period */
    struct trpi_retired *grace;   /* timer thread: objects of the present grace period */
    uint64_t *grace_progress;     /* timer thread: progress of each worker at its start */
    int grace_step;               /* timer thread */
    bool retire_armed;            /* retire_lock: a timer will call grace_step() */
    _Alignas(TRPI_CACHE_LINE) trpi_parallelism parallelism;
    _Alignas(TRPI_CACHE_LINE) _Atomic uint32_t foreign_phase;
    _Alignas(TRPI_CACHE_LINE) _Atomic uint32_t foreign_count[2];
};

/* A sequentially consistent fence. The thread sanitizer does not model fences: there it is a locked
 * instruction. */
static inline void
trpi_fence(trpi_sched *sched)
{
#if defined(__SANITIZE_THREAD__)
    (void)atomic_fetch_add_explicit(&sched->fence_word, 1, memory_order_seq_cst);
#else
    (void)sched;
    atomic_thread_fence(memory_order_seq_cst);

#endif
}

static inline uint64_t
trpi_sched_now(const trpi_sched *sched)
{
    return trpi_world_mono_ns(sched->options.world);
}
static inline bool
trpi_sched_is_stopping(trpi_sched *sched)
{
    return atomic_load_explicit(&sched->stopping, memory_order_relaxed);
}
static inline trpi_worker *
trpi_sched_worker(trpi_sched *sched, uint32_t index)
{
    return atomic_load_explicit(&sched->workers[index], memory_order_acquire);
}

static inline void
trpi_task_list_push(trpi_task_list *list, trpi_task *task)
{
    task->run_next = NULL;
    if (list->last != NULL) {
        list->last->run_next = task;
    } else {
        list->first = task;
    }
    list->last = task;
}
static inline trpi_task *
trpi_task_list_pop(trpi_task_list *list)
{
    trpi_task *task = list->first;

    if (task != NULL) {
        list->first = task->run_next;
        if (list->first == NULL) {
            list->last = NULL;
        }
    }
    return task;
}

static inline void
trpi_task_list_append(trpi_task_list *list, trpi_task_list *more)
{
    if (more->first != NULL) {
        if (list->last != NULL) {
            list->last->run_next = more->first;
        } else {
            list->first = more->first;
        }
        list->last = more->last;
    }
    *more = (trpi_task_list){ NULL, NULL };
}

/* queue.c */
void trpi_slot_enter_slow(trpi_worker *worker);
trpi_task *trpi_slot_steal(trpi_worker *victim); /* with an empty slot, the retained task */
trpi_task *trpi_retained_steal(trpi_worker *victim);
void trpi_ring_push(trpi_worker *worker, trpi_task *task);
trpi_task *trpi_ring_pop(trpi_worker *worker);
/* Return NULL, or the invariant that is broken: queue-Q1, queue-Q2, sched-S1. By the owner, between
 * trpi_slot_enter() and trpi_slot_leave(). */
const char *trpi_run_queue_check(trpi_worker *worker, trpi_check *check);
trpi_task *trpi_ring_steal(trpi_worker *thief, trpi_worker *victim, uint32_t at_least,
                           uint32_t at_most);
void trpi_inject_push(trpi_sched *sched, trpi_task *task);
#define TRPI_INJECT_SHARE 12u /* tasks that an idle worker takes at once at most */
trpi_task *trpi_inject_pop(trpi_worker *worker, uint32_t most);
/* Take the calls that may run anywhere, linked; NULL: there are none. */
trpi_task *trpi_inject_take_calls(trpi_sched *sched);
/* Move the tasks that wait in the slot and the ring of a worker to the injection queue. */
void trpi_run_queue_drain(trpi_worker *victim);
/* Move all tasks of list to the injection queue; first: in front of those that wait there. */
void trpi_inject_list(trpi_sched *sched, trpi_task_list *list, uint32_t count, bool first);
void trpi_defer_push(trpi_worker *at, trpi_task *task);
trpi_task *trpi_defer_pop(trpi_worker *at);
trpi_task *trpi_defer_steal(trpi_worker *victim);
void trpi_defer_age(trpi_worker *worker);
void trpi_defer_drain(trpi_worker *at);

/* sleep.c */
void trpi_wake_for_push(trpi_sched *sched); /* after a push: wake a worker if none searches */
void trpi_wake_worker(trpi_worker *worker); /* if it sleeps */
/* Call ops->awake, if there is one. No lock is held. */
void trpi_worker_awake(trpi_worker *worker);
void trpi_wake_all(trpi_sched *sched);
/* Find a task; spin, then sleep until there is one. NULL: the scheduler stops, or the worker is to
 * be parked. */
trpi_task *trpi_search(trpi_worker *worker);
void trpi_trim(trpi_worker *worker, uint32_t trims);
bool trpi_has_tasks(trpi_worker *victim); /* a hint */
/* Steal from a stuck worker; NULL: it has no task. */
trpi_task *trpi_stuck_steal(trpi_worker *thief, trpi_worker *victim, uint32_t at_most);
bool trpi_futex_wait(_Atomic uint32_t *word, uint32_t value, uint64_t timeout_ns);
void trpi_futex_wake(_Atomic uint32_t *word);

/* Do all workers sleep, but for parked ones? With seq_cst for sleep-L6. */
bool trpi_all_asleep(trpi_sched *sched);
/* Wake a worker, if one sleeps, that looks around and sleeps again. */
void trpi_wake_to_watch(trpi_sched *sched);

/* poll.c */
/* The right to collect(): one thread at a time. */
bool trpi_seat_take(trpi_sched *sched);
void trpi_seat_give(trpi_sched *sched);
/* Wait on the seat, which this worker has, at most timeout_ns (0: no limit); the calls that became
 * ready, linked; NULL: none. */
trpi_task *trpi_seat_wait(trpi_sched *sched, uint64_t timeout_ns);
/* Submit calls that were collected: the first is returned, the others go to the ring. */
trpi_task *trpi_poll_submit(trpi_worker *worker, trpi_task *first);
/* Look for reports; NULL: there are none, or another thread looks. */
trpi_task *trpi_poll_look(trpi_worker *worker);
/* The same between runs, if it is time. Sets when the injection queue is polled next. */
trpi_task *trpi_poll_busy(trpi_worker *worker);
/* This worker leaves its search, and no other one searches or sleeps: poll-O3. */
void trpi_poll_last_awake(trpi_sched *sched);

/* parallelism.c */
void trpi_parallelism_init(trpi_sched *sched);
void trpi_parallelism_adjust(trpi_worker *worker); /* by each running worker, now and then */
void trpi_parallelism_park(trpi_worker *worker);   /* its index is not below the limit */
void trpi_parallelism_stop(trpi_sched *sched);

/* private.c */
void trpi_private_push(trpi_sched *sched, trpi_task *task);
void trpi_private_loop(trpi_worker *worker);
void trpi_private_wake_all(trpi_sched *sched);

/* driven.c */
trp_err trpi_driven_join(trpi_sched *sched); /* the world's schedulers */
void trpi_driven_leave(trpi_sched *sched);
void trpi_driven_loop(trpi_worker *worker);
void trpi_private_index_free(trpi_sched *sched, uint16_t index);
/* Make a private worker and start its thread; group: the group that it belongs to, or NULL. */
trp_err trpi_private_start(trpi_sched *sched, const trpi_private_options *options,
                           struct trpi_group *group, uint16_t *ret_index);

/* group.c */
void trpi_group_push(trpi_sched *sched, trpi_task *task);
void trpi_group_loop(trpi_worker *worker);
void trpi_groups_wake_all(trpi_sched *sched);
void trpi_groups_free(trpi_sched *sched);

/* affine.c */
trp_err trpi_affine_new(trpi_worker *worker, uint32_t runs);
void trpi_affine_push(trpi_worker *worker, trpi_task *task);
void trpi_affine_loop(trpi_worker *worker);
void trpi_affine_free(trpi_worker *worker);

/* worker.c */
void trpi_worker_current_set(trpi_worker *worker); /* driven: one thread runs several workers */
trp_err trpi_worker_new(trpi_sched *sched, uint16_t index, bool is_private,
                        trpi_worker **ret_worker);
void trpi_worker_free(trpi_worker *worker);
trp_err trpi_worker_start(trpi_worker *worker);
void trpi_thread_began(trpi_sched *sched);
void trpi_thread_ended(trpi_sched *sched);

/* timer.c */
trp_err trpi_timers_new(trpi_sched *sched);
trp_err trpi_timers_start(trpi_sched *sched);
void trpi_timers_stop(trpi_sched *sched); /* tell the thread to end */
void trpi_timers_join(trpi_sched *sched);
void trpi_timers_abandon(trpi_sched *sched); /* detach the thread that was not joined */
void trpi_timers_free(trpi_sched *sched);
/* Driven: run due timers; return the time of the next one, UINT64_MAX: none is set. */
void trpi_timers_fire(trpi_sched *sched);
uint64_t trpi_timers_next_ns(trpi_sched *sched);

/* retire.c */
void trpi_retire_between_runs(trpi_sched *sched); /* driven: no run is under way */
void trpi_retire_all(trpi_sched *sched);          /* every thread has ended */

/* ---- slot and ring, owner's side (queue-Q1); inline, since each wake-up passes here ----- */
static inline void
trpi_slot_enter(trpi_worker *worker)
{
    atomic_store_explicit(&worker->handoff.busy, 1, memory_order_relaxed);
    atomic_signal_fence(memory_order_seq_cst);
    /* acquire: pairs with the thief's release of steal_req; the thief's writes are visible */
    if (UNLIKELY(atomic_load_explicit(&worker->handoff.steal_req, memory_order_acquire) != 0 ||
                 worker->handoff.fenced)) {
        trpi_slot_enter_slow(worker);
    }
}

static inline void
trpi_slot_leave(trpi_worker *worker)
{
    /* release: pairs with the thief's acquire of busy == 0 */
    atomic_store_explicit(&worker->handoff.busy, 0, memory_order_release);
}

static inline uint32_t
trpi_ring_length(trpi_worker *worker)
{
    return atomic_load_explicit(&worker->ring_tail, memory_order_relaxed) -
           atomic_load_explicit(&worker->ring_head, memory_order_relaxed);
}

#define TRPI_RING_AHEAD 2u /* prefetch the task this far behind the one that is taken */

/* Take the oldest task; NULL: empty. Between enter and leave. */
static inline trpi_task *
trpi_ring_take(trpi_worker *worker)
{
    uint32_t head = atomic_load_explicit(&worker->ring_head, memory_order_relaxed);
    uint32_t length = atomic_load_explicit(&worker->ring_tail, memory_order_relaxed) - head;

    if (length == 0) {
        return NULL;
    }
    atomic_store_explicit(&worker->ring_head, head + 1, memory_order_relaxed);
    if (length > TRPI_RING_AHEAD) {
        const char *ahead = (const char *)atomic_load_explicit(
            &worker->ring[(head + TRPI_RING_AHEAD) % TRPI_RING_TASKS], memory_order_relaxed);

        __builtin_prefetch(ahead, 1);
        __builtin_prefetch(ahead + 64, 1);
    }
    return atomic_load_explicit(&worker->ring[head % TRPI_RING_TASKS], memory_order_relaxed);
}

/* Take this worker's next task: from the slot (TRPI_SLOT_WINS_MAX times in a row), then ring. */
static inline trpi_task *
trpi_local_take(trpi_worker *worker)
{
    trpi_task *task, *other;

    trpi_slot_enter(worker);
    task = atomic_load_explicit(&worker->slot, memory_order_relaxed);
    if (LIKELY(task != NULL && worker->slot_wins < TRPI_SLOT_WINS_MAX)) {
        worker->slot_wins++;
        atomic_store_explicit(&worker->slot, NULL, memory_order_relaxed);
    } else {
        worker->slot_wins = 0;
        other = trpi_ring_take(worker);
        if (other != NULL) {
            task = other;
        } else if (task != NULL) {
            atomic_store_explicit(&worker->slot, NULL, memory_order_relaxed);
        }
    }
    trpi_slot_leave(worker);
    return task;
}

/* Retain task (NULL: none). Return the task that was retained before. */
static inline trpi_task *
trpi_handoff_exchange(trpi_worker *worker, trpi_task *task)
{
    trpi_task *before;

    trpi_slot_enter(worker);
    before = atomic_load_explicit(&worker->handoff.task, memory_order_relaxed);
    atomic_store_explicit(&worker->handoff.task, task, memory_order_relaxed);
    trpi_slot_leave(worker);
    return before;
}

static inline void
trpi_slot_put(trpi_worker *worker, trpi_task *task)
{
    trpi_task *old;

    trpi_slot_enter(worker);
    old = atomic_load_explicit(&worker->slot, memory_order_relaxed);
    atomic_store_explicit(&worker->slot, task, memory_order_relaxed);
    trpi_slot_leave(worker);
    if (old != NULL) {
        trpi_ring_push(worker, old);
    }
}

#endif
