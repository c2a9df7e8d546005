/* sched.h - the interface of the scheduler: runs tasks on threads, and knows nothing of actors.
 *
 * Why.     One thread per core runs ready tasks; a task that a run wakes runs next on its core.
 * Shape.   A task is a node of a linked list. The thread that submits a task owns it (the actor
 *          room calls that the token); the scheduler passes it to exactly one call of ops->run.
 *            pool worker: LIFO slot (what this run woke last) -> ring of 256 -> injection queue ->
 *            work stealing. parallelism.c limits how many of them run.
 *            private worker (pinned actor, "system" dispatcher): one FIFO, one thread
 * Must hold.
 *   sched-S1  A submitted task is run exactly once; a task is never in two queues.
 *   sched-S2  A ready task is run while any pool worker can run it: if its own worker makes no
 *       progress for 20 us, another worker steals it; a push that needs a worker wakes a sleeping
 *       one.
 *   sched-S3  When no task is ready and no timer is due, no thread wakes up.
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
#define TRPI_INJECT_RUNS 61u   /* the injection queue is polled every so many runs */
#define TRPI_HANDOFF_PAUSE 64u /* runs that retain no task, after one was retained for nothing */
/* A worker without progress for this long is stuck: its slot and last task may be stolen. */
#define TRPI_STUCK_NS 20000u
/* The same for a thief whose probe steal brought short runs. */
#define TRPI_STUCK_AFTER_PROBE_NS 200000u
#define TRPI_BACKLOG_NS 50000u    /* a backlog that takes longer may be stolen at once */
#define TRPI_SPIN_NS 50000u       /* a searching worker spins for this long before it sleeps */
#define TRPI_SPIN_PAUSE_NS 1000u  /* between two looks of it */
#define TRPI_GRID_NS 250000000u   /* trpi_timer_on_grid() */
#define TRPI_TRIM_NS 100000000u   /* when all workers slept for this long, caches are freed */
#define TRPI_SENTINEL_NS 1000000u /* the sentinel's period while any worker is awake */
/* trpi_worker_defer_to(): wait the full time; an idle worker would not help the receiver. */
#define TRPI_DEFER_HOLD UINT16_MAX
#define TRPI_DEFER_NS_MAX 1000000u /* a deferred task runs again after this at the latest */
#define TRPI_PRIVATE_MAX 1024u     /* private workers (pinned actors) of one scheduler */
#define TRPI_POOL_MAX 64u          /* pool workers of one scheduler (TRP_WORKERS_MAX) */

typedef struct trpi_sched trpi_sched;
typedef struct trpi_worker trpi_worker;

/* Where a task runs. POOL: the work-stealing workers. PRIVATE: worker task.home and no other.
 * GROUP: the threads of group task.number. HERE: ops->here, on the thread that submits it. */
enum {
    TRPI_DISPATCH_POOL = 0,
    TRPI_DISPATCH_PRIVATE = 1,
    TRPI_DISPATCH_GROUP = 2,
    TRPI_DISPATCH_HERE = 3
};

/* A task: 16 bytes within its owner's object. Only the owner of the task writes it. */
typedef struct trpi_task {
    struct trpi_task *run_next; /* link of the queue that holds the task */
    /* Pool: worker that ran the task last. Private: worker that must run it. Relaxed: to others a
     * hint which worker to wait at. */
    _Atomic uint16_t home;
    uint8_t dispatch; /* TRPI_DISPATCH_* */
    uint8_t number;   /* GROUP: number of the group; else free for the owner */
    uint32_t id;      /* free for the owner (a cell's slot) */
} trpi_task;

typedef enum trpi_run_result {
    TRPI_RUN_IDLE = 0,  /* the run gave the task up: do not touch it again */
    TRPI_RUN_AGAIN = 1, /* more to do: the task goes to the end of this worker's ring */
    TRPI_RUN_DEFER = 2, /* more to do, later: it waits at the worker of trpi_worker_defer_to() */
    /* More to do at once: a long turn reports progress between short runs (sched-S2). Same as AGAIN
     * outside the pool. */
    TRPI_RUN_CONTINUE = 3,
    /* Only where the handoff argument allows it: */
    TRPI_RUN_RETAINED = 4, /* nothing to do, token kept: the task is run again after the next run */
    TRPI_RUN_NO_WORK = 5   /* as IDLE, and this run found nothing to do */
} trpi_run_result;

/* A function as a task. Its task.id is 0, which no other task has: ops->run calls fn. task.number
 * is TRPI_CALL_ANYWHERE where the timer thread may run it, when all workers of the pool are stuck:
 * it does not block. */
#define TRPI_CALL_ANYWHERE 255u /* no dispatcher has it */
typedef struct trpi_call_task {
    trpi_task task;
    trpi_run_result (*fn)(struct trpi_call_task *call);
} trpi_call_task;

/* The handoff argument of ops->run, if it is not the id of the task that the worker retains. */
#define TRPI_HANDOFF_OFF 0u
#define TRPI_HANDOFF_NO_PEER UINT32_MAX

typedef struct trpi_sched_ops {
    /* Run one turn of task; of a trpi_call_task: call its function. data: trpi_worker_data() of the
     * worker that runs it. handoff: TRPI_HANDOFF_OFF: the task may not be retained. Else a task
     * that did something and has nothing more to do may return RETAINED, since its peer may answer
     * at once.
     * TRPI_HANDOFF_NO_PEER: no other task is retained now; else handoff is the id of the task that
     * this worker retains, until a thief steals it. (No retained task has one of these two ids.) */
    trpi_run_result (*run)(void *data, trpi_task *task, uint32_t handoff);
    /* The body of a worker's thread: sets up what it needs, calls trpi_worker_loop(worker), which
     * returns when the scheduler stops (or the private worker is released), and tears down. The
     * failure jump (one _setjmp per thread) lives in its frame: after a jump it gives the
     * interrupted task back with trpi_worker_settle() and calls trpi_worker_loop() again. */
    void (*thread)(void *arg, trpi_worker *worker);
    /* Before a worker sleeps: free caches. all: no worker had anything to do for TRPI_TRIM_NS. May
     * be NULL. */
    void (*sleep)(void *arg, trpi_worker *worker, bool all);
    /* Driven: each of the next runs handles at most this many messages; 0: a full turn. May be
     * NULL. */
    void (*batch)(void *data, uint32_t messages);
    /* Return the work that a worker has done so far, in units of about a message. Any thread; the
     * value may be slightly stale. NULL: runs are counted. */
    uint64_t (*work)(void *data);
    /* A task whose dispatch is HERE was submitted on this thread. NULL: there are none. */
    void (*here)(void *arg, trpi_task *task);
    /* Does this queued task have something urgent to do? For affine workers; any thread. NULL:
     * never. */
    bool (*urgent)(const trpi_task *task);
    /* A worker has started or woken up (trpi_worker_is_asleep): called on its thread before the
     * next run, possibly more than once. May be NULL. */
    void (*awake)(void *arg, trpi_worker *worker);
} trpi_sched_ops;

typedef struct trpi_sched_options {
    uint32_t workers;    /* 0: one per core */
    size_t worker_bytes; /* room for the user's per-worker data, see trpi_worker_data() */
    trpi_world *world;
    const char *name; /* prefix of thread names, cut at 8 bytes */
    const trpi_sched_ops *ops;
    void *arg;
    uint64_t tick_ns; /* of timers; 0: TRP_TICK_MS_DEFAULT */
    /* of each level of their wheel, a power of two; 0: TRP_WHEEL_TICKS_DEFAULT */
    uint32_t wheel_slots;
    uint32_t timers_max; /* at one time; 0: TRP_SCHEDULES_MAX, which is also the most */
} trpi_sched_options;

/* Make the workers' memory, start nothing. Errors: TRP_EINVAL, TRP_ENOMEM. */
trp_err trpi_sched_new(const trpi_sched_options *options, trpi_sched **ret_sched);
/* Start pool workers and the timer thread. Errors: TRP_EIO; then free it. Thread: owner. */
trp_err trpi_sched_start(trpi_sched *sched);
/* Let all threads end after their present run, and wait for that at most `deadline_ms`. Queued
 * tasks stay queued. true: all threads have ended. Idempotent. Not from a worker. */
bool trpi_sched_stop(trpi_sched *sched, uint32_t deadline_ms);
/* After a stop that timed out, when the scheduler is leaked: detach its threads, so that their
 * stacks are freed when they end. No function may be called on it afterwards. */
void trpi_sched_abandon(trpi_sched *sched);
/* After a stop that returned true, or without a start. Frees retired objects. NULL is fine. */
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
/* Return the number of runs that the worker has ended. Thread: any; a hint. */
uint64_t trpi_worker_progress(const trpi_worker *worker);
uint8_t trpi_worker_number(const trpi_worker *worker); /* the owner's number; pool: 0 */
uint32_t trpi_sched_pool_count(const trpi_sched *sched);
uint32_t trpi_sched_cores(const trpi_sched *sched); /* of the machine, at most TRPI_POOL_MAX */
/* Visit every worker that was ever made (statistics); private ones may have ended. Thread: any. */
void trpi_sched_workers_each(trpi_sched *sched, void (*fn)(void *arg, trpi_worker *worker),
                             void *arg);
/* Return the processor time of its thread; 0: no thread (driven), or it has ended. Thread: any. */
uint64_t trpi_worker_cpu_ns(trpi_worker *worker);
/* Return the kernel's id of its thread; 0: none of ours (driven, affine), or it has ended. Thread:
 * any. */
int trpi_worker_kernel_thread(const trpi_worker *worker);
/* The worker whose thread this is, NULL on foreign threads. */
trpi_worker *trpi_worker_current(void);
/* Run tasks until the scheduler stops. From ops->thread only. */
void trpi_worker_loop(trpi_worker *worker);
/* Queue a task as its run result says. From ops->thread, after a failure jump. */
void trpi_worker_settle(trpi_worker *worker, trpi_task *task, trpi_run_result result);
/* Set the worker (a task's home) at which the next TRPI_RUN_DEFER of this worker waits. */
void trpi_worker_defer_to(trpi_worker *worker, uint16_t home);
/* Affinity hand-off: the task that a worker retains (TRPI_RUN_RETAINED), and the guard that
 * excludes thieves from it, from the slot and from the ring's head (queue-Q1). */
typedef struct trpi_handoff {
    _Atomic(trpi_task *) task;  /* has nothing to do, as far as the worker knows */
    _Atomic uint32_t busy;      /* the owner uses task, slot or ring head */
    _Atomic uint32_t steal_req; /* a thief requests access to them */
    bool fenced; /* no membarrier: the owner issues a fence; written before the thread starts */
} trpi_handoff;
/* Borrow the worker's hand-off; valid as long as the worker. */
trpi_handoff *trpi_worker_handoff(trpi_worker *worker);
/* Does this thread's worker retain `task`? Then no thief steals it until trpi_handoff_leave(), and
 * the caller may write what the task's owner may write, for a few instructions. Now and then false
 * because of a thief. From a run of the worker. */
static inline bool
trpi_handoff_enter(trpi_handoff *handoff, const trpi_task *task)
{
    if (handoff->fenced) {
        return false;
    }
    atomic_store_explicit(&handoff->busy, 1, memory_order_relaxed);
    atomic_signal_fence(memory_order_seq_cst);
    /* acquire: pairs with the thief's release of steal_req; the thief's writes are visible */
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
/* From a run that takes as long as `runs` usual ones: poll the injection queue sooner. */
void trpi_worker_hurry(trpi_worker *worker, uint32_t runs);

/* ---- driven ------------------------------------------------------------------------------------
 * In a driven world (base/world.h) a scheduler has no threads: a thread that would wait runs it
 * instead, one task at a time, in the order that the world chooses. */
bool trpi_sched_is_driven(const trpi_sched *sched);
/* Run no task or timer of this scheduler before until_ns, as if its process were stopped; 0: go on,
 * the busy task included. */
void trpi_sched_stand_still(trpi_sched *sched, uint64_t until_ns);
/* Make the task that runs now busy: it does not run again before until_ns, as if its work took so
 * long. At most one task of a scheduler is busy: the last one. Thread: within a run. */
void trpi_sched_take_time(trpi_sched *sched, uint64_t until_ns);
typedef bool (*trpi_done_fn)(void *arg);
typedef enum trpi_pumped {
    TRPI_PUMPED_DONE = 0,    /* done(arg) */
    TRPI_PUMPED_TIME = 1,    /* the clock stands at the deadline */
    TRPI_PUMPED_NOTHING = 2, /* no task is ready, no timer is set (or the clock may not move) */
    TRPI_PUMPED_ENOUGH = 3   /* the world ended the run */
} trpi_pumped;
typedef enum trpi_move {
    TRPI_MOVE_OF_WORLD = 0, /* move the clock, unless the test does (world->manual) */
    TRPI_MOVE_NEVER = 1,    /* run ready tasks only */
    TRPI_MOVE_ALWAYS = 2    /* the test moves the clock by this call */
} trpi_move;
/* Run the ready tasks of all schedulers of the world, and move the clock to the next timer when
 * there are none, until done(arg) (NULL: never) or the deadline (UINT64_MAX: none).
 * Thread: the one that made the scheduler, outside of any run. */
trpi_pumped trpi_sched_pump(trpi_sched *sched, trpi_done_fn done, void *arg, uint64_t deadline_ns,
                            trpi_move move);

/* Does trpi_sched_pump() run for any scheduler of the world? Thread: as there, also in a run. */
bool trpi_sched_is_pumping(const trpi_sched *sched);

/* A condition variable with its mutex: a thread that is no actor waits here for actors. */
typedef struct trpi_cond {
    pthread_mutex_t lock; /* guards the state that done() reads; a leaf */
    pthread_cond_t changed;
} trpi_cond;
void trpi_cond_init(trpi_cond *cond);
void trpi_cond_fini(trpi_cond *cond);
void trpi_cond_broadcast(trpi_cond *cond); /* with the lock held: wake all waiting threads */
/* Wait until done(arg), which is called with the lock held; false: the world's clock passed
 * deadline_ns (UINT64_MAX: no limit). The caller holds the lock, which is released meanwhile.
 * Driven: the wait runs the world. Thread: any but a worker. */
bool trpi_cond_wait(trpi_cond *cond, trpi_sched *sched, trpi_done_fn done, void *arg,
                    uint64_t deadline_ns);

/* ---- submitting tasks -------------------------------------------------------------------------
 * */
/* From worker's own thread: the LIFO slot, or the private worker of the task. */
void trpi_sched_ready(trpi_worker *worker, trpi_task *task);
/* From any thread: the end of the injection queue, or the private worker or group of the task. */
void trpi_sched_inject(trpi_sched *sched, trpi_task *task);

/* A thread of its own: for a pinned actor, or the "system" dispatcher. Set task.dispatch = PRIVATE
 * and task.home = *ret_index, then submit the task. high_priority: raise it where the process may.
 * Errors: TRP_ELIMIT (TRPI_PRIVATE_MAX), TRP_ENOMEM, TRP_EIO, TRP_ECLOSED. Thread: any. */
trp_err trpi_sched_private_new(trpi_sched *sched, const char *name, bool high_priority,
                               uint16_t *ret_index);
/* The same with all options. */
typedef struct trpi_private_options {
    const char *name; /* NULL: made from the index */
    bool high_priority;
    bool affine; /* four queues (affine.c) instead of one; lives as long as the scheduler */
    uint32_t affine_runs; /* runs from one queue before the next queue's; >= 1 */
    uint8_t number;       /* free for the owner: trpi_worker_number() */
    bool helps;           /* trpi_sched_lend(); one of a scheduler, and never released */
} trpi_private_options;
trp_err trpi_sched_private_open(trpi_sched *sched, const trpi_private_options *options,
                                uint16_t *ret_index);
/* A task that the affine worker `home` may have in a queue has become urgent. A hint: a wrong home
 * is harmless. Thread: any. */
void trpi_sched_urgent(trpi_sched *sched, uint16_t home);
/* Give a task of the pool to the private worker that helps, if the whole pool and that worker
 * sleep: one wake-up instead of those of a worker, of its sentinel and of the next one on the seat.
 * false: the task is still the caller's. It does not block. Thread: any. */
bool trpi_sched_lend(trpi_sched *sched, trpi_task *task);
/* Let the private thread end when its queue is empty. Its tasks must have been moved to the pool or
 * be idle for good. Thread: any, also its own. */
void trpi_sched_private_release(trpi_sched *sched, uint16_t index);

/* ---- groups: threads that share one queue ---------------------------------------------------- */
/* A group starts a thread when a task waits and no thread is idle, up to threads_max; an idle
 * thread ends after keep_alive_ms, or after shutdown_ms when no owner is attached. */
#define TRPI_GROUPS_MAX 256u /* task.number is a byte */
typedef struct trpi_group_options {
    const char *name;
    uint32_t threads_max; /* 1 .. TRPI_PRIVATE_MAX */
    uint32_t keep_alive_ms, shutdown_ms;
} trpi_group_options;
/* Errors: TRP_ENOMEM. The number must be unused. Thread: any, one at a time. */
trp_err trpi_sched_group_new(trpi_sched *sched, uint8_t number, const trpi_group_options *options);
/* Count the owners of tasks of the group: a group without owners ends its threads sooner. */
void trpi_sched_group_attach(trpi_sched *sched, uint8_t number);
void trpi_sched_group_detach(trpi_sched *sched, uint8_t number);
uint32_t trpi_sched_group_threads(trpi_sched *sched, uint8_t number); /* alive now; 0: no group */

/* ---- timers -----------------------------------------------------------------------------------
 * */
/* Called on the timer's thread: short, must not block. */
typedef void (*trpi_timer_fn)(void *arg, uint64_t a, uint64_t b);
typedef struct trpi_timer {
    uint64_t due_ns;      /* on the world's clock; never early, up to a tick late */
    uint64_t interval_ns; /* of again; of trpi_timer_add() its delay */
    /* One of the two: fn once, or again at due_ns + n * interval_ns until it returns false. */
    trpi_timer_fn fn;
    bool (*again)(void *arg, uint64_t a, uint64_t b);
    trpi_timer_fn drop; /* called exactly once, after the last call of these; may be NULL */
    void *arg;
    uint64_t a, b;
} trpi_timer;
/* Errors: TRP_ENOMEM (also: timers_max), TRP_ECLOSED. O(1). *ret_id is never 0. Thread: any. */
trp_err trpi_timer_start(trpi_sched *sched, const trpi_timer *what, uint64_t *ret_id);
/* As trpi_timer_cancel; *cancelled becomes 1 before any concurrent cancel returns false. */
bool trpi_timer_cancel_note(trpi_sched *sched, uint64_t id, uint32_t *cancelled);
/* Cancel every timer with this drop function: each(user, arg) and drop are called for those that
 * wait; one that is running is not repeated. O(all timers). Thread: any. */
void trpi_timers_take(trpi_sched *sched, trpi_timer_fn of, void (*each)(void *user, void *arg),
                      void *user);
/* Run fn(arg, a, b) once, delay_ms from now or up to a tick later. O(1). *ret_id is never 0.
 * Errors: TRP_ENOMEM, TRP_ECLOSED. Thread: any. */
trp_err trpi_timer_add(trpi_sched *sched, uint64_t delay_ms, trpi_timer_fn fn, void *arg,
                       uint64_t a, uint64_t b, uint64_t *ret_id);
/* How long does a timer of trpi_timer_add() wait? false: it has fired or was cancelled. O(1).
 * Thread: any. */
bool trpi_timer_age(trpi_sched *sched, uint64_t id, uint64_t *ret_ns);
/* The scheduler's grid has a point each TRPI_GRID_NS, counted from its start: periodic duties that
 * come there share wake-ups of the timer thread. Systems of one machine have different grids.
 * Return a point of it; 0: a driven world has none. Thread: any. */
uint64_t trpi_sched_grid_ns(const trpi_sched *sched);
/* Return when a timer is to be due that may come up to TRPI_GRID_NS before ns: a tick after the
 * last point, as timers of actors that are set to it (they round up). Thread: any. */
uint64_t trpi_timer_on_grid(const trpi_sched *sched, uint64_t ns);
/* true: fn did not run and will not. false: it ran, runs, or was cancelled. O(1). Thread: any. */
bool trpi_timer_cancel(trpi_sched *sched, uint64_t id);

/* ---- threads of other rooms -------------------------------------------------------------------
 * */
/* pthread_create with all asynchronous signals blocked in the new thread. Errors: TRP_EIO. */
trp_err trpi_thread_start(pthread_t *thread, void *(*body)(void *), void *arg);

/* ---- polling ----------------------------------------------------------------------------------
 * Workers and the timer thread wait for the kernel's reports in place of the poller that sets these
 * functions (poll.c). */
#define TRPI_POLL_BUSY_NS 20000u /* a worker that runs tasks looks for reports at most so often */
#define TRPI_POLL_STUCK_NS 1000000u /* when no worker looked for so long, another thread does */
typedef struct trpi_poll_ops {
    /* Wait for reports at most timeout_ns (0: look; UINT64_MAX: until wake()), and give the calls
     * that they make ready in *ret_first, linked by task.run_next; NULL: none. The caller submits
     * them. One thread at a time; it may count as asleep, so this touches no memory that is
     * reclaimed by quiescent states. */
    void (*collect)(void *arg, uint64_t timeout_ns, trpi_task **ret_first);
    void (*wake)(void *arg);    /* end the present collect(), or the next one */
    bool (*watches)(void *arg); /* is any socket watched? a hint; any thread */
} trpi_poll_ops;
/* Poll from now on, until the threads have ended. Once. Thread: any; not of a driven world. */
void trpi_sched_poll(trpi_sched *sched, const trpi_poll_ops *ops, void *arg);
/* watches() has become true. Thread: any. */
void trpi_sched_poll_began(trpi_sched *sched);

/* ---- reclamation: quiescent states ------------------------------------------------------------
 * */
/* Free `object` with fn after a grace period, when no reader can hold it: each worker has ended the
 * run it was in, each foreign thread that was between enter and leave has left. The object must be
 * unreachable for new readers. Out of memory the object is leaked. fn runs on some thread of the
 * scheduler, or in trpi_sched_free(). Thread: any. */
void trpi_retire(trpi_sched *sched, void (*fn)(void *object), void *object);
/* Begin and end reads of shared tables on threads that are no workers. Pass the result to leave. */
uint32_t trpi_sched_enter(trpi_sched *sched);
void trpi_sched_leave(trpi_sched *sched, uint32_t phase);

#endif
