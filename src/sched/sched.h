/* sched.h - the door of the scheduler: runs tasks on threads, and has never heard of actors.
 *
 * Why.     One thread per core runs whatever is ready; what a run wakes runs next on the same core.
 * Shape.   A task is a node of a list. Whoever hands a task to the scheduler owns it (the actor
 *          room calls that the token); the scheduler gives it to exactly one call of ops->run.
 *            pool worker: LIFO slot (what this run woke last) -> ring of 256 -> injection queue ->
 *            theft. As many of them run as make it faster (parallelism.c).
 *            private worker (pinned actor, "system" dispatcher): one FIFO, one thread
 * Must hold.
 *   sched-S1  A task that was handed in is run exactly once; a task is never in two places.
 *   sched-S2  While a task waits and a pool worker can run, it is run: after 20 us without progress
 *       of the worker it waits behind, by a thief; asleep workers are woken by a push that needs
 *       them.
 *   sched-S3  When nothing is ready and no timer is due, no thread wakes up.
 * Threads. Each function says who may call it. Lock order: none of the locks is held while
 *          another one is taken.
 */
#ifndef TRPI_SCHED_SCHED_H
#define TRPI_SCHED_SCHED_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <troupe/base.h>

#include "base/world.h"

#define TRPI_RING_TASKS 256u   /* of a pool worker */
#define TRPI_SLOT_WINS_MAX 64u /* runs from the LIFO slot before the ring has its turn */
#define TRPI_INJECT_RUNS 61u   /* the injection queue is looked at every so many runs */
#define TRPI_HANDOFF_PAUSE 64u /* runs without an offer, after a task was kept in vain */
#define TRPI_STUCK_NS                                                                              \
    20000u /* no progress for so long: the slot and the last task may be taken   \
                              */
#define TRPI_STUCK_AFTER_PROBE_NS 200000u /* the same, for who found that what he took was short */
#define TRPI_BACKLOG_NS 50000u    /* tasks that would wait for so long may be taken at once */
#define TRPI_SPIN_NS 50000u       /* before a worker sleeps */
#define TRPI_TRIM_NS 100000000u   /* when all sleep for so long, caches are given back */
#define TRPI_SENTINEL_NS 1000000u /* the sentinel's tick, while any worker is awake */
#define TRPI_DEFER_HOLD                                                                            \
    UINT16_MAX /* defer_to: wait the time out; an idle worker would not help the receiver */
#define TRPI_DEFER_NS_MAX 1000000u /* a deferred task runs again after this at the latest */
#define TRPI_PRIVATE_MAX 1024u     /* private workers (pinned actors) of one scheduler */
#define TRPI_POOL_MAX 64u          /* pool workers of one scheduler (TRP_WORKERS_MAX) */

typedef struct trpi_sched trpi_sched;
typedef struct trpi_worker trpi_worker;

/* Where a task runs. POOL: the work-stealing workers. PRIVATE: worker task.home and no other.
 * GROUP: the threads of group task.number. HERE: ops->here, on the thread that hands it in. */
enum {
    TRPI_DISPATCH_POOL = 0,
    TRPI_DISPATCH_PRIVATE = 1,
    TRPI_DISPATCH_GROUP = 2,
    TRPI_DISPATCH_HERE = 3
};

/* What can be run. 16 bytes, part of the owner's object. Only the owner of the task writes it. */
typedef struct trpi_task {
    struct trpi_task *run_next; /* the queue's, while the task is in one */
    _Atomic uint16_t home;      /* worker that ran it last (pool), or that must run it (private).
                                   Relaxed:      others read it as a hint where to wait */
    uint8_t dispatch;           /* TRPI_DISPATCH_* */
    uint8_t number;             /* GROUP: which one; else the owner's */
    uint32_t id;                /* the owner's (a cell's slot) */
} trpi_task;

typedef enum trpi_run_result {
    TRPI_RUN_IDLE = 0,  /* the task was given up during the run: do not touch it again */
    TRPI_RUN_AGAIN = 1, /* more to do: it goes to the end of this worker's ring */
    TRPI_RUN_DEFER = 2, /* more to do, but later: it waits at worker trpi_worker_defer_to() */
    TRPI_RUN_CONTINUE =
        3, /* more to do, and at once: a long turn in short runs, so that others see it
                           move (sched-S2); as AGAIN where nobody watches */
    /* Only to an offer: */
    TRPI_RUN_RETAINED = 4, /* nothing to do, and not given up: it is run again after the next run */
    TRPI_RUN_NO_WORK = 5   /* as IDLE, and there was nothing to do in this run */
} trpi_run_result;

#define TRPI_HANDOFF_OFF 0u
#define TRPI_HANDOFF_NO_PEER UINT32_MAX

typedef struct trpi_sched_ops {
    /* Run one turn of task. data: trpi_worker_data() of the worker that runs it. handoff:
     * TRPI_HANDOFF_OFF: the task may not be retained. Else a task that did something and has
     * nothing more to do may return RETAINED, since its peer may answer at once.
     * TRPI_HANDOFF_NO_PEER: no other task is retained now; else handoff is the id of the task that
     * this worker retains, until a thief steals it. (No retained task has one of these two ids.) */
    trpi_run_result (*run)(void *data, trpi_task *task, uint32_t handoff);
    /* The body of a worker's thread: sets up what it needs, calls trpi_worker_loop(worker), which
     * returns when the scheduler stops (or the private worker is released), and tears down. The
     * failure jump (one _setjmp per thread) lives in its frame: after a jump it gives the
     * interrupted task back with trpi_worker_settle() and calls trpi_worker_loop() again. */
    void (*thread)(void *arg, trpi_worker *worker);
    /* Before a worker sleeps: give back what is cached. all: no worker has had anything to do for
     * TRPI_TRIM_NS. May be NULL. */
    void (*sleep)(void *arg, trpi_worker *worker, bool all);
    /* Driven: the next runs handle at most so many messages each; 0: as many as they are due. May
     * be NULL. */
    void (*batch)(void *data, uint32_t messages);
    /* What a worker has done so far, in units of about a message. Any thread; it may be a little
     * old. NULL: runs are counted. */
    uint64_t (*work)(void *data);
    /* A task whose dispatch is HERE was handed in, on this thread. NULL: there are none. */
    void (*here)(void *arg, trpi_task *task);
    /* Has this task, which waits in a queue, something to do that goes before all others? For
     * affine workers; any thread. NULL: never. */
    bool (*urgent)(const trpi_task *task);
    /* On the thread of a worker that is not asleep any more (trpi_worker_is_asleep), or begins,
     * before its next run; called too often rather than too seldom. May be NULL. */
    void (*awake)(void *arg, trpi_worker *worker);
} trpi_sched_ops;

typedef struct trpi_sched_options {
    uint32_t workers;    /* 0: one per core */
    size_t worker_bytes; /* room for the user's per-worker data, see trpi_worker_data() */
    trpi_world *world;
    const char *name; /* of threads, cut at 8 bytes */
    const trpi_sched_ops *ops;
    void *arg;
    uint64_t tick_ns;     /* of timers; 0: 1 ms */
    uint32_t wheel_slots; /* of each level of their wheel, a power of two; 0: 64 */
    uint32_t timers_max;  /* at one time; 0: 16 million, which is also the most */
} trpi_sched_options;

/* Make the workers' memory, start nothing. Errors: TRP_EINVAL, TRP_ENOMEM. */
trp_err trpi_sched_new(const trpi_sched_options *options, trpi_sched **ret_sched);
/* Start pool workers and the timer thread. Errors: TRP_EIO; then free it. Thread: owner. */
trp_err trpi_sched_start(trpi_sched *sched);
/* Let all threads end after their present run, wait until `deadline_ms` have passed. What is still
 * queued stays queued. true: all threads have ended. Idempotent. Not from a worker. */
bool trpi_sched_stop(trpi_sched *sched, uint32_t deadline_ms);
/* After a stop that gave up, when the scheduler is leaked: threads that end later give their stacks
 * back by themselves. Nothing may be called on it any more. */
void trpi_sched_abandon(trpi_sched *sched);
/* After a stop that returned true, or without a start. Runs what was retired. NULL is fine. */
void trpi_sched_free(trpi_sched *sched);

/* ---- workers ----------------------------------------------------------------------------------
 * */
/* The user's per-worker data: 64-aligned, zeroed, worker_bytes long. */
void *trpi_worker_data(trpi_worker *worker);
/* The data of the pool worker with this index, NULL: there is none. Thread: any. */
void *trpi_sched_pool_data(trpi_sched *sched, uint32_t index);
trpi_sched *trpi_worker_sched(trpi_worker *worker);
uint32_t trpi_worker_index(const trpi_worker *worker); /* what trpi_task.home holds */
bool trpi_worker_is_private(const trpi_worker *worker);
/* Thread: any; seq_cst. A worker runs nothing while it is asleep. */
bool trpi_worker_is_asleep(const trpi_worker *worker);
/* Runs that it has ended; any thread: a look. */
uint64_t trpi_worker_progress(const trpi_worker *worker);
uint8_t trpi_worker_number(const trpi_worker *worker); /* as given at its making; pool: 0 */
uint32_t trpi_sched_pool_count(const trpi_sched *sched);
uint32_t trpi_sched_cores(const trpi_sched *sched); /* of the machine, at most TRPI_POOL_MAX */
/* Visit every worker that was ever made (statistics); private ones may have ended. Thread: any. */
void trpi_sched_workers_each(trpi_sched *sched, void (*fn)(void *arg, trpi_worker *worker),
                             void *arg);
/* Processor time that its thread has used; 0: it has none (driven), or has ended. Thread: any. */
uint64_t trpi_worker_cpu_ns(trpi_worker *worker);
/* The worker whose thread this is, NULL on foreign threads. */
trpi_worker *trpi_worker_current(void);
/* Run tasks until the scheduler stops. From ops->thread only. */
void trpi_worker_loop(trpi_worker *worker);
/* Do with a task what its run result says. From ops->thread, after a failure jump. */
void trpi_worker_settle(trpi_worker *worker, trpi_task *task, trpi_run_result result);
/* Where the next TRPI_RUN_DEFER of this worker shall wait (a task's home). */
void trpi_worker_defer_to(trpi_worker *worker, uint16_t home);
/* The place of the task that a worker keeps (TRPI_RUN_RETAINED): queue-Q1. */
typedef struct trpi_handoff {
    _Atomic(trpi_task *) task;  /* has nothing to do, as far as the worker knows */
    _Atomic uint32_t busy;      /* the owner is at it, or at the slot or the ring's head */
    _Atomic uint32_t steal_req; /* a thief wants one of them */
    bool fenced; /* no membarrier: the owner pays for a fence; written before the thread starts */
} trpi_handoff;
/* The worker's, as long as it lives. */
trpi_handoff *trpi_worker_handoff(trpi_worker *worker);
/* Does this thread's worker keep `task`? Then, until trpi_handoff_leave(), no thief takes it, and
 * what its owner may write is the caller's. A few instructions at most. From a run of the worker.
 * Now and then it says no, because a thief is there. */
static inline bool
trpi_handoff_enter(trpi_handoff *handoff, const trpi_task *task)
{
    if (handoff->fenced) {
        return false;
    }
    atomic_store_explicit(&handoff->busy, 1, memory_order_relaxed);
    atomic_signal_fence(memory_order_seq_cst);
    /* acquire: pairs with the thief's release of steal_req, after which all is as it left it */
    if (__builtin_expect(atomic_load_explicit(&handoff->steal_req, memory_order_acquire) != 0 ||
                             atomic_load_explicit(&handoff->task, memory_order_relaxed) != task,
                         0)) {
        atomic_store_explicit(&handoff->busy, 0, memory_order_release);
        return false;
    }
    return true;
}
static inline void
trpi_handoff_leave(trpi_handoff *handoff)
{
    /* release: pairs with the thief's acquire of busy == 0 */
    atomic_store_explicit(&handoff->busy, 0, memory_order_release);
}
/* From a run: it is as long as so many more, and what is looked at every so many runs is due
 * sooner. */
void trpi_worker_hurry(trpi_worker *worker, uint32_t runs);

/* ---- driven ------------------------------------------------------------------------------------
 * In a driven world (base/world.h) a scheduler has no threads: who would wait runs it instead, one
 * task at a time, in the order that the world chooses. */
bool trpi_sched_is_driven(const trpi_sched *sched);
/* Run nothing of this one before until_ns, as if its process were stopped; 0: go on, a busy task
 * too. */
void trpi_sched_stand_still(trpi_sched *sched, uint64_t until_ns);
/* Make the task that runs now busy: it does not run again before until_ns, as if its work took so
 * long. At most one task of a scheduler is busy: the last one. Thread: within a run. */
void trpi_sched_take_time(trpi_sched *sched, uint64_t until_ns);
typedef bool (*trpi_done_fn)(void *arg);
typedef enum trpi_pumped {
    TRPI_PUMPED_DONE = 0,    /* done(arg) */
    TRPI_PUMPED_TIME = 1,    /* the clock stands at the deadline */
    TRPI_PUMPED_NOTHING = 2, /* no task is ready, no timer is set (or the clock may not move) */
    TRPI_PUMPED_ENOUGH = 3   /* the world wants no more to run */
} trpi_pumped;
typedef enum trpi_move {
    TRPI_MOVE_OF_WORLD = 0, /* unless the clock is the test's (world->manual) */
    TRPI_MOVE_NEVER = 1,    /* run what is ready */
    TRPI_MOVE_ALWAYS = 2    /* it is the test that moves it */
} trpi_move;
/* Run what is ready in all schedulers of the world, and move the clock to the next timer when
 * nothing is, until done(arg) (NULL: never) or the deadline (UINT64_MAX: none).
 * Thread: the one that made the scheduler, outside of any run. */
trpi_pumped trpi_sched_pump(trpi_sched *sched, trpi_done_fn done, void *arg, uint64_t deadline_ns,
                            trpi_move move);

/* Does trpi_sched_pump run, of any scheduler of the world? Thread: as there, also within a run. */
bool trpi_sched_is_pumping(const trpi_sched *sched);

/* A place where a thread that is no actor waits for what actors do. */
typedef struct trpi_cond {
    pthread_mutex_t lock; /* guards what done looks at; a leaf */
    pthread_cond_t changed;
} trpi_cond;
void trpi_cond_init(trpi_cond *cond);
void trpi_cond_fini(trpi_cond *cond);
void trpi_cond_broadcast(trpi_cond *cond); /* with the lock held: wakes all who wait */
/* Wait until done(arg), which is called with the lock held; false: the world's clock passed
 * deadline_ns (UINT64_MAX: no limit). The caller holds the lock, which is given up meanwhile.
 * Driven: the wait runs the world. Thread: any but a worker. */
bool trpi_cond_wait(trpi_cond *cond, trpi_sched *sched, trpi_done_fn done, void *arg,
                    uint64_t deadline_ns);

/* ---- handing tasks in -------------------------------------------------------------------------
 * */
/* From worker's own thread: the LIFO slot, or the private worker of the task. */
void trpi_sched_ready(trpi_worker *worker, trpi_task *task);
/* From any other thread. Also good on a worker: to the end of the injection queue. */
void trpi_sched_inject(trpi_sched *sched, trpi_task *task);

/* A thread of its own: for a pinned actor, or the "system" dispatcher. Set task.dispatch = PRIVATE
 * and task.home = *ret_index, then hand the task in. high_priority: raise it where the process may.
 * Errors: TRP_ELIMIT (TRPI_PRIVATE_MAX), TRP_ENOMEM, TRP_EIO, TRP_ECLOSED. Thread: any. */
trp_err trpi_sched_private_new(trpi_sched *sched, const char *name, bool high_priority,
                               uint16_t *ret_index);
/* The same with more to say. */
typedef struct trpi_private_options {
    const char *name; /* NULL: made from the index */
    bool high_priority;
    bool affine; /* four queues (affine.c) instead of one; lives as long as the scheduler */
    uint32_t affine_runs; /* from one of the queues before the next has its turn; >= 1 */
    uint8_t number;       /* the owner's, trpi_worker_number() */
} trpi_private_options;
trp_err trpi_sched_private_open(trpi_sched *sched, const trpi_private_options *options,
                                uint16_t *ret_index);
/* task, which an affine worker may have in a queue, has become urgent. A hint: a wrong home is
 * harmless. Thread: any. */
void trpi_sched_urgent(trpi_sched *sched, uint16_t home);
/* Let the private thread end when its queue is empty. Its tasks must have been moved to the pool or
 * be idle for good. Thread: any, also its own. */
void trpi_sched_private_release(trpi_sched *sched, uint16_t index);

/* ---- groups: threads that share one queue ---------------------------------------------------- */
/* A group makes a thread when a task waits and none of its threads does, up to threads_max; a
 * thread that has waited for keep_alive_ms ends, and when nobody is attached, after shutdown_ms. */
#define TRPI_GROUPS_MAX 256u /* task.number is a byte */
typedef struct trpi_group_options {
    const char *name;
    uint32_t threads_max; /* 1 .. TRPI_PRIVATE_MAX */
    uint32_t keep_alive_ms, shutdown_ms;
} trpi_group_options;
/* Errors: TRP_ENOMEM. The number must be unused. Thread: any, one at a time. */
trp_err trpi_sched_group_new(trpi_sched *sched, uint8_t number, const trpi_group_options *options);
/* Count those whose tasks run in the group, so that a group without any lets its threads go. */
void trpi_sched_group_attach(trpi_sched *sched, uint8_t number);
void trpi_sched_group_detach(trpi_sched *sched, uint8_t number);
uint32_t trpi_sched_group_threads(trpi_sched *sched, uint8_t number); /* alive now; 0: no group */

/* ---- timers -----------------------------------------------------------------------------------
 * */
/* Called on the timer's thread: short, must not block. */
typedef void (*trpi_timer_fn)(void *arg, uint64_t a, uint64_t b);
typedef struct trpi_timer {
    uint64_t due_ns;      /* on the world's clock; never early, up to a tick late */
    uint64_t interval_ns; /* of again */
    /* One of the two: once, or at due_ns + n * interval_ns until it returns false. */
    trpi_timer_fn fn;
    bool (*again)(void *arg, uint64_t a, uint64_t b);
    trpi_timer_fn drop; /* exactly once, when neither will be called any more; may be NULL */
    void *arg;
    uint64_t a, b;
} trpi_timer;
/* Errors: TRP_ENOMEM (also: too many), TRP_ECLOSED. O(1). *ret_id is never 0. Thread: any. */
trp_err trpi_timer_start(trpi_sched *sched, const trpi_timer *what, uint64_t *ret_id);
/* As trpi_timer_cancel; *cancelled becomes 1 before any other cancel can find out that it lost. */
bool trpi_timer_cancel_note(trpi_sched *sched, uint64_t id, uint32_t *cancelled);
/* End every timer with this drop, calling each(user, arg) and drop for those that wait; one that
 * runs just now is not repeated. O(all timers). Thread: any. */
void trpi_timers_take(trpi_sched *sched, trpi_timer_fn of, void (*each)(void *user, void *arg),
                      void *user);
/* Run fn(arg, a, b) once, delay_ms from now or up to a tick later. O(1). *ret_id is never 0.
 * Errors: TRP_ENOMEM, TRP_ECLOSED. Thread: any. */
trp_err trpi_timer_add(trpi_sched *sched, uint64_t delay_ms, trpi_timer_fn fn, void *arg,
                       uint64_t a, uint64_t b, uint64_t *ret_id);
/* true: fn did not run and will not. false: it ran, runs, or was cancelled. O(1). Thread: any. */
bool trpi_timer_cancel(trpi_sched *sched, uint64_t id);

/* ---- reclamation: quiescent states ------------------------------------------------------------
 * */
/* Free `object` with fn when no reader can hold it any more: each worker has ended the run it was
 * in, each foreign thread that was between enter and leave has left. The object must be unreachable
 * for new readers. Without memory for the note it waits for the grace period itself (foreign
 * thread) or leaks the object (worker). fn runs on some thread of the scheduler, or in
 * trpi_sched_free(). Thread: any. */
void trpi_retire(trpi_sched *sched, void (*fn)(void *object), void *object);
/* Bracket reads of shared tables on threads that are no workers. Pass the result to leave. */
uint32_t trpi_sched_enter(trpi_sched *sched);
void trpi_sched_leave(trpi_sched *sched, uint32_t phase);

#endif
