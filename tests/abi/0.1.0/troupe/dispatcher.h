/* troupe/dispatcher.h - which threads run an actor, and for how long at a time.
 *
 * A dispatcher is registered with a system under an id; trp_spawn_options.dispatcher names it, and
 * an actor keeps its dispatcher for life. An id that is not registered is an error at spawn:
 * nothing falls back to another one. These are there from the start:
 *
 *     id                kind                     threads
 *     default           TRP_DISPATCHER_DEFAULT   one worker a core; ready actors are stolen
 *     pinned            TRP_DISPATCHER_PINNED    one for each actor, for its life
 *     blocking          TRP_DISPATCHER_BLOCKING  up to 64, made when needed, gone when idle
 *     affinity          TRP_DISPATCHER_AFFINITY  one a core; an actor stays on one of them
 *     calling-thread    TRP_DISPATCHER_CALLING   none: the thread that tells runs the actor
 *     system            TRP_DISPATCHER_SYSTEM    one, of raised priority: the library's own actors
 *     troupe.internal   TRP_DISPATCHER_SYSTEM    one: the guardians, so that a stop waits for no
 *                                                thread that the program's actors hold
 *     troupe.logging    TRP_DISPATCHER_PINNED    one for each logger
 *
 * The actors of one BALANCING dispatcher share one mailbox: a message told to any of them is
 * handled by the first one that is free, which is trp_self() then. All are of one behaviour (the
 * same trp_behaviour object); a spawn with another one is TRP_EINVAL while the dispatcher has
 * actors. Messages of one sender may be handled at the same time and in any order. Not shared are
 * the state and stash of each actor, trp_terminated, timers, answers to its asks, trp_poison_pill,
 * trp_kill and stopping. A failed actor takes no message until it is resumed or restarted. Messages
 * that were told to an actor which has stopped are left to the others; when the last one ends they
 * become dead letters. The shared mailbox is an unbounded one, whose senders are not slowed down,
 * or a bounded one with overflow = drop and push_timeout_ms = TRP_OFF.
 */
#ifndef TROUPE_DISPATCHER_H
#define TROUPE_DISPATCHER_H

#include <troupe/base.h>
#include <troupe/message.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TRP_DISPATCHER_ID_BYTES_MAX 127
#define TRP_DISPATCHERS_MAX 128         /* of one system, those that are built in included */
#define TRP_DISPATCHER_THREADS_MAX 1024 /* of all dispatchers but the default one together */
#define TRP_DISPATCHER_THREADS_MIN_DEFAULT 8
#define TRP_DISPATCHER_THREADS_FACTOR_DEFAULT 3.0
#define TRP_DISPATCHER_THREADS_FACTOR_MAX 1024
#define TRP_DISPATCHER_THREADS_CAP_DEFAULT 64
#define TRP_DISPATCHER_KEEP_ALIVE_DEFAULT_MS 60000
#define TRP_DISPATCHER_SHUTDOWN_DEFAULT_MS 1000
#define TRP_CALLING_DEPTH_MAX 64 /* actors of calling-thread nested on one stack; more wait */

typedef enum trp_dispatcher_kind {
    TRP_DISPATCHER_DEFAULT = 1,   /* the system's own workers; not to be registered again */
    TRP_DISPATCHER_POOL = 2,      /* own threads with one queue, for any actors: bulkheading */
    TRP_DISPATCHER_PINNED = 3,    /* the same thread for the whole life of the actor */
    TRP_DISPATCHER_BLOCKING = 4,  /* as POOL, for actors that block: it is no stall there */
    TRP_DISPATCHER_BALANCING = 5, /* as POOL, one mailbox for all of its actors: see above */
    TRP_DISPATCHER_AFFINITY = 6,  /* an actor is bound to one thread; four queues on the thread */
    TRP_DISPATCHER_CALLING = 7,   /* runs on the thread that tells; for tests */
    TRP_DISPATCHER_SYSTEM = 8,    /* the library's own; not to be registered */
    TRP_DISPATCHER_CUSTOM = 9     /* the program's own executor: execute */
} trp_dispatcher_kind;

/* One turn of an actor, or a function, that waits to be run; opaque. */
typedef struct trp_dispatcher_job trp_dispatcher_job;

/* Have job run once, soon, by trp_dispatcher_job_run() on whatever thread. Must not block and must
 * not run it itself. Called on any thread. */
typedef void (*trp_dispatcher_execute_fn)(void *arg, trp_dispatcher_job *job);

/* Options of a dispatcher. Zero is the default of every field but kind. */
typedef struct trp_dispatcher_options {
    size_t size;         /* sizeof(trp_dispatcher_options) */
    uint32_t kind;       /* trp_dispatcher_kind */
    uint32_t throughput; /* messages before an actor gives way; 0: the system's. 1: fairest */
    uint32_t throughput_deadline_ms; /* it gives way after this time, too; 0: no deadline */
    /* Threads of POOL, BLOCKING and AFFINITY: cores * factor, rounded up, within these
     * bounds; made when they are needed. 0: TRP_DISPATCHER_THREADS_MIN_, _FACTOR_ and _CAP_DEFAULT;
     * AFFINITY: 1, 1.0 and _CAP_DEFAULT. */
    uint32_t threads_min;
    double threads_factor;
    uint32_t threads_max;
    /* an idle thread ends after this; 0: TRP_DISPATCHER_KEEP_ALIVE_DEFAULT_MS. Not AFFINITY */
    uint32_t keep_alive_ms;
    /* the same when it has no actors; 0: TRP_DISPATCHER_SHUTDOWN_DEFAULT_MS */
    uint32_t shutdown_timeout_ms;
    uint32_t mailbox_requirement; /* TRP_MAILBOX_* that a mailbox must have */
    /* id of the mailbox of its actors (troupe/mailbox.h); copied; NULL: none */
    const char *mailbox;
    trp_dispatcher_execute_fn execute; /* CUSTOM */
    void *arg;                         /* CUSTOM: passed to execute */
    int no_teamwork; /* BALANCING: a message wakes only the idle actor that it was told to */
    uint32_t zero;
} trp_dispatcher_options;
#define TRP_DISPATCHER_OPTIONS_INIT                                                                \
    {                                                                                              \
        sizeof(trp_dispatcher_options), 0, 0, 0, 0, 0.0, 0, 0, 0, 0, NULL, NULL, NULL, 0, 0        \
    }

/* Register a dispatcher under an id. It lives as long as the system. The first one of an id stays.
 *
 * Ownership: borrows id and options; arg is passed through.
 * Errors:    TRP_EINVAL  an option is out of range, or id is empty or too long;
 *                        or BALANCING: its mailbox is not one that actors can share
 *            TRP_EEXIST  the id is taken
 *            TRP_ELIMIT  TRP_DISPATCHERS_MAX reached
 *            TRP_ENOENT  no mailbox has that id
 *            TRP_ENOMEM  out of memory
 * Thread:    any; takes a lock for a moment.
 * Source:    DISP-1, -3 to -10, MBOX-13.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_dispatcher_register(trp_system *system, const char *id,
                                                       const trp_dispatcher_options *options);

/* Facts about a registered dispatcher. */
typedef struct trp_dispatcher_info {
    size_t size;          /* sizeof(trp_dispatcher_info), set by the caller */
    uint32_t kind;        /* trp_dispatcher_kind */
    uint32_t throughput;  /* the default filled in */
    uint32_t threads_max; /* PINNED, CALLING, CUSTOM: 0 */
    uint32_t threads;     /* alive now */
    uint32_t actors;      /* that run on it now; DEFAULT: not counted, 0 */
    uint32_t zero;
} trp_dispatcher_info;

/* Look a dispatcher up by its id.
 *
 * Errors:    TRP_ENOENT  no dispatcher has this id
 *            TRP_EINVAL  ret_info is NULL or its size is not set
 * Thread:    any; takes a lock for a moment.
 * Source:    DISP-1.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_dispatcher_find(trp_system *system, const char *id,
                                                   trp_dispatcher_info *ret_info);

/* Run fn(arg) once on a thread of the dispatcher; at once on the calling thread where that is its
 * kind. fn must not block except on BLOCKING and PINNED; it may tell, and on those two also ask.
 * A function that has not begun when the system is freed does not run.
 *
 * Ownership: arg is passed through.
 * Errors:    TRP_EINVAL  fn is NULL
 *            TRP_ENOENT  no dispatcher has this id
 *            TRP_ENOMEM  out of memory
 *            TRP_ELIMIT  PINNED: no thread is left;  TRP_EIO  none can be made
 *            TRP_ECLOSED the system is stopping its threads
 * Thread:    any; takes a lock for a moment; with calling-thread fn runs in it.
 * Source:    DISP-1.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_dispatcher_execute(trp_system *system, const char *id,
                                                      void (*fn)(void *arg), void *arg);

/* Run the job that execute() was given, once: one turn of an actor. Further work is given to
 * execute() again before this returns.
 *
 * Ownership: takes job.
 * Errors:    none
 * Thread:    any that is not in a behaviour of this system; takes a lock for a moment; as long as
 *            the turn takes.
 * Source:    DISP-7.  Since: 0.1 */
TRP_API void trp_dispatcher_job_run(trp_system *system, trp_dispatcher_job *job);

/* Borrow the id of the dispatcher that runs the actor, until the system is freed.
 *
 * Errors:    none
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    DISP-1, -13.  Since: 0.1 */
TRP_API const char *trp_dispatcher_id(const trp_ctx *ctx);

#define TRP_STALL_WARNING_DEFAULT_MS 1000

/* Event on the event stream: one message holds the worker of an actor for too long
 * (trp_system_options.stall_warning_ms). Once for each such message. */
typedef struct trp_stalled {
    trp_ref ref;
    uint32_t held_ms; /* so far */
    uint32_t zero;
} trp_stalled;
TRP_API extern trp_type trp_stalled_type;
enum { trp_stalled_tag = 0xff29 };

#ifdef __cplusplus
}
#endif
#endif /* TROUPE_DISPATCHER_H */
