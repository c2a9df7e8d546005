/* troupe/system.h - an actor system: start it, talk to it from threads that are not actors, end it.
 *
 * A system is a value: several live in one process and share nothing but code. The library installs
 * no signal handler and never ends the process.
 */
#ifndef TROUPE_SYSTEM_H
#define TROUPE_SYSTEM_H

#include <troupe/actor.h>
#include <troupe/base.h>
#include <troupe/config.h>
#include <troupe/message.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TRP_SYSTEM_NAME_BYTES_MAX 63
#define TRP_WORKERS_MAX 64

/* One log line; borrowed for the call. No string is NULL. */
typedef struct trp_log_line {
    trp_log_level level;
    trp_err cause;      /* TRP_OK: none was given */
    const char *source; /* actor path or room */
    const char *text;
    int64_t wall_ms;    /* when it was logged, since 1970 */
    const char *kind;   /* name of the source's behaviour; "" when the source is no actor */
    const char *thread; /* name of the thread that logged */
    const char *mdc;    /* what trp_log_mdc_next() reads: the context of the line */
    uint64_t mono_ns;   /* when it was logged, on the world's monotonic clock */
    trp_ref actor;      /* the one that logged; TRP_REF_NONE: none */
} trp_log_line;
typedef void (*trp_log_fn)(void *arg, const trp_log_line *line);

/* The effect of SIGSEGV, SIGBUS and SIGFPE in the code of an actor.
 * Handlers are the process's: they serve all systems that ask, pass on to those that were there
 * before, and are taken out with the last such system.
 *
 * REPORT: the process dies as it would, with one more line on stderr: which actor it was. SIGILL
 * and SIGABRT are reported too.
 * ON: the actor fails with TRP_EFAULT (code: the signal's number), and its supervisor decides, as
 * with trp_fail(). A stack overflow is such a fault. Only faults in the actors' own code count:
 * that of the program, of plugins and loaded extensions, and of shared objects with a behaviour
 * that was given to trp_behaviour_register(). Not those in any other library, which may hold a
 * lock, and not signals that were sent; those are reported. Anything that a behaviour holds beyond
 * trp_alloc() and trp_defer(), such as a lock, stays held. Needs the shared library, on x86-64 or
 * arm64: else trp_system_new() answers TRP_EUNSUPPORTED. */
typedef enum trp_fault_trap {
    TRP_FAULT_TRAP_OFF = 0,
    TRP_FAULT_TRAP_REPORT = 1,
    TRP_FAULT_TRAP_ON = 2
} trp_fault_trap;

typedef struct trp_system_options {
    size_t size;
    uint32_t workers;    /* threads of the default dispatcher; 0: one per core */
    uint32_t throughput; /* 0: TRP_THROUGHPUT_DEFAULT */
    uint32_t actors_max; /* 0: as actor.actors-max */
    uint32_t log_level;  /* trp_log_level; 0: info */
    trp_log_fn log;      /* any thread; must not block long; NULL: stderr */
    void *log_arg;
    /* number logged, at info; 0: as log.dead-letters; TRP_FOREVER; TRP_OFF */
    uint32_t log_dead_letters;
    uint32_t guardian_stops; /* 1: /user uses the stopping strategy (SYS-6) */
    /* /user uses this one, whatever guardian_stops says; its deciders get a NULL state. Copied;
     * NULL: one-for-one with the default decider */
    const trp_strategy *guardian_strategy;
    /* Shared until the system is freed; its keys override the other fields. NULL: they alone, and
     * the reference configuration (SYS-2, -32) */
    const trp_config *config;
    uint32_t fault_trap; /* trp_fault_trap; 0: the library installs no signal handler */
    /* An actor that holds its worker so long with one message is logged (warning) and published as
     * trp_stalled; 0: 1 s; TRP_OFF. Not on blocking and pinned dispatchers */
    uint32_t stall_warning_ms;
    const struct trp_log_options *logging;         /* troupe/log.h; NULL: all defaults; copied */
    const struct trp_scheduler_options *scheduler; /* troupe/scheduler.h; the same */
    /* Made before trp_system_new() returns; NULL-terminated, borrowed until the system is freed.
     * NULL: none. One that fails fails the start (troupe/extension.h). */
    const struct trp_extension *const *extensions;
    /* For tests: 1: a message to an actor of this system goes through its type's serializer and
     * back, as if it came from another node; one that cannot is logged (error), and is a dead
     * letter with reason not-encodable. Types that are local stay as they are. Needs the shared
     * library, or a program that uses remoting: else trp_system_new() answers TRP_EUNSUPPORTED. */
    uint32_t serialize_messages;
    uint32_t serialize_creators; /* 1: the same for arguments of new actors, at their spawn */
} trp_system_options;
#define TRP_SYSTEM_OPTIONS_INIT                                                                    \
    {                                                                                              \
        sizeof(trp_system_options), 0, 0, 0, 0, NULL, NULL, 0, 0, NULL, NULL, 0, 0, NULL, NULL,    \
            NULL, 0, 0                                                                             \
    }

/* Start a system with its guardians and worker threads.
 *
 * Ownership: gives *ret_system (end it with trp_system_stop, free it with trp_system_free).
 * Errors:    TRP_EINVAL  name is empty, too long or has other characters than [a-zA-Z0-9_-]
 *            TRP_ENOMEM  out of memory; TRP_EIO  a thread cannot be made
 *            TRP_ECONFIG  a dispatcher of the configuration is refused; the log says which
 *            TRP_EUNSUPPORTED  fault_trap cannot be TRP_FAULT_TRAP_ON here, or there are no
 *                              serializers for serialize_messages or serialize_creators
 * Thread:    any; may block until its threads are made.
 * Source:    SYS-1, -2, -5.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_system_new(const char *name, const trp_system_options *options,
                                              trp_system **ret_system);

/* Stop all actors, children first, and wait until the tree has ended or timeout_ms has passed; then
 * the paths of the actors that are stuck are logged at error level. Idempotent.
 *
 * Errors:    TRP_ETIMEDOUT  an actor is stuck (its path is logged)
 *            TRP_ESTATE     called from a behaviour
 * Thread:    any; may block until the tree has ended; never from a behaviour.
 * Source:    SYS-41, LIFE-9.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_system_stop(trp_system *system, uint32_t timeout_ms);

/* Order the stop and return at once; trp_system_await() waits for the end.
 *
 * Errors:    none
 * Thread:    any; safe from a behaviour; never blocks.
 * Source:    SYS-41.  Since: 0.1 */
TRP_API void trp_system_shutdown(trp_system *system);

/* Wait until the system has ended, by itself or by order. timeout_ms 0: no limit.
 *
 * Errors:    TRP_ETIMEDOUT  it has not ended in time
 *            TRP_ESTATE     called from a behaviour
 * Thread:    any; may block until the tree has ended; never from a behaviour.
 * Source:    SYS-41.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_system_await(trp_system *system, uint32_t timeout_ms);

/* Return non-zero once the tree has ended.
 *
 * Errors:    none
 * Thread:    any; lock-free.
 * Source:    SYS-41.  Since: 0.1 */
TRP_API int trp_system_is_terminated(const trp_system *system);

/* Free a stopped system. After a stop that timed out, the stuck threads and what they use are
 * leaked, with a log line. NULL is fine.
 *
 * Ownership: takes system.
 * Errors:    none
 * Thread:    owner (the creator; no lock inside).
 * Source:    SYS-41.  Since: 0.1 */
TRP_API void trp_system_free(trp_system *system);

/* Borrow the name of the system, until it is freed.
 *
 * Errors:    none
 * Thread:    any; lock-free.
 * Source:    SYS-1.  Since: 0.1 */
TRP_API const char *trp_system_name(const trp_system *system);

/* Share the configuration that the system was started with; NULL when it had none. The
 * application's own settings stand in it below "app".
 *
 * Ownership: shares the result (trp_config_unref).
 * Errors:    none
 * Thread:    any; lock-free.
 * Source:    SYS-2, CONF-25.  Since: 0.1 */
TRP_API trp_config *trp_system_config(const trp_system *system);

/* Start a child of /user. The name and the slot are taken at once; the actor starts in its own
 * time.
 *
 * Ownership: borrows behaviour until the system ends; borrows options.
 * Errors:    as trp_spawn
 * Thread:    any; takes a lock for a moment.
 * Source:    SYS-19, -20.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_system_spawn(trp_system *system, const trp_behaviour *behaviour,
                                                const trp_spawn_options *options, trp_ref *ret_ref);

#define TRP_BEHAVIOURS_MAX 1024 /* registered by name, of one system */

/* Make a behaviour known by its name, so that other nodes can have actors of it made here.
 * remote.deployment-allowed says which of them. The same one again is no error.
 *
 * Ownership: borrows behaviour until the system ends.
 * Errors:    TRP_EINVAL  as trp_spawn; or its name is empty, or longer than TRP_NAME_BYTES_MAX
 *            TRP_EEXIST  another behaviour has the name
 *            TRP_ELIMIT  TRP_BEHAVIOURS_MAX reached; TRP_ENOMEM  out of memory
 * Thread:    any; takes a lock for a moment.
 * Source:    REMOTE-18.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_behaviour_register(trp_system *system,
                                                      const trp_behaviour *behaviour);

/* Return the ref of /deadLetters: messages to it are dead letters with reason no-sender.
 *
 * Errors:    none; TRP_REF_NONE for no system
 * Thread:    any; lock-free.
 * Source:    SYS-2, SYS-11, LIFE-15.  Since: 0.1 */
TRP_API trp_ref trp_system_dead_letters(const trp_system *system);

/* Do as trp_tell, without a sender: replies are dead letters.
 *
 * Ownership: borrows payload.
 * Errors:    none
 * Thread:    any; mostly lock-free, else takes a lock for a moment; outside of actors may
 *            block until a full mailbox has room.
 * Source:    MSG-1.  Since: 0.1 */
TRP_API void trp_system_tell(trp_system *system, trp_ref to, const trp_type *type,
                             const void *payload, size_t bytes);

/* Do as trp_system_tell, in the name of a sender that gets the replies.
 *
 * Ownership: borrows payload.
 * Errors:    none
 * Thread:    any; mostly lock-free, else takes a lock for a moment; outside of actors may
 *            block until a full mailbox has room.
 * Source:    MSG-2.  Since: 0.1 */
TRP_API void trp_system_tell_as(trp_system *system, trp_ref to, trp_ref sender,
                                const trp_type *type, const void *payload, size_t bytes);

/* Tell every actor that `selection` matches at the moment of delivery, as trp_select_tell; a
 * relative one starts at the root.
 *
 * Ownership: borrows selection and payload.
 * Errors:    TRP_EINVAL   the selection does not parse; the log says where
 *            TRP_ESTATE   a remote address, and this system has no remoting
 * Thread:    any; takes a lock for a moment; outside of actors may block until a full mailbox has
 *            room.
 * Source:    SYS-24.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_system_select_tell(trp_system *system, const char *selection,
                                                      const trp_type *type, const void *payload,
                                                      size_t bytes);

/* Tell and wait for the first reply.
 *
 * Ownership: gives *ret_reply (free with trp_msg_free).
 * Errors:    TRP_ETIMEDOUT  no reply in time; TRP_ENOENT  to is dead
 *            TRP_EUNHANDLED the actor did not handle the message
 *            TRP_ESTATE     called from a behaviour; TRP_ECLOSED  the system is stopping
 *            the error of a trp_status_failure reply
 * Thread:    any; may block until the reply or the timeout; never from a behaviour.
 * Source:    MSG-4.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_system_ask(trp_system *system, trp_ref to, const trp_type *type,
                                              const void *payload, size_t bytes,
                                              uint32_t timeout_ms, trp_msg **ret_reply);

/* Do as trp_system_ask, to a path or address string. The message itself is told to the resolved
 * ref.
 *
 * Ownership: gives *ret_reply (free with trp_msg_free).
 * Errors:    TRP_ENOENT   no actor lives there, as soon as this is known
 *            TRP_EINVAL   the path does not parse; and those of trp_system_ask
 * Thread:    any; may block until the reply or the timeout; never from a behaviour.
 * Source:    MSG-4, SYS-26.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_system_ask_path(trp_system *system, const char *path,
                                                   const trp_type *type, const void *payload,
                                                   size_t bytes, uint32_t timeout_ms,
                                                   trp_msg **ret_reply);

/* Find the ref behind a path, here or on another node.
 *
 * Ownership: borrows path.
 * Errors:    TRP_ENOENT     no actor lives there
 *            TRP_ETIMEDOUT  no answer in time
 *            TRP_EINVAL     the path does not parse
 *            TRP_ESTATE     a remote address without remoting, or called from a behaviour
 * Thread:    any; may block until the answer or the timeout; never from a behaviour.
 * Source:    SYS-25, -26.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_system_resolve(trp_system *system, const char *path,
                                                  uint32_t timeout_ms, trp_ref *ret_ref);

/* Stop an actor, as trp_stop. Asynchronous.
 *
 * Errors:    none
 * Thread:    any; takes a lock for a moment.
 * Source:    LIFE-8.  Since: 0.1 */
TRP_API void trp_system_stop_actor(trp_system *system, trp_ref ref);

/* Deactivate an actor, as trp_deactivate. Asynchronous.
 *
 * Errors:    as trp_deactivate
 * Thread:    any; takes a lock for a moment.
 * Source:    A4J-16.  Since: 0.1 */
TRP_API trp_err trp_system_deactivate(trp_system *system, trp_ref ref);

/* Activate an actor, as trp_activate. Asynchronous.
 *
 * Errors:    as trp_deactivate
 * Thread:    any; takes a lock for a moment.
 * Source:    A4J-16.  Since: 0.1 */
TRP_API trp_err trp_system_activate(trp_system *system, trp_ref ref);

/* Stop ref and wait until it has ended: its post_stop happened before the return. Its name is its
 * parent's to free, which the parent does a moment later, between two of its own messages: until
 * then a spawn under it is TRP_EEXIST.
 *
 * Errors:    TRP_ETIMEDOUT  it has not ended in time
 *            TRP_ESTATE     called from a behaviour
 *            TRP_ENOMEM     out of memory
 * Thread:    any; may block until the actor has ended; never from a behaviour.
 * Source:    LIFE-14.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_system_graceful_stop(trp_system *system, trp_ref ref,
                                                        uint32_t timeout_ms);

/* Tell all subscribers of this type.
 *
 * Ownership: borrows payload.
 * Errors:    none
 * Thread:    any; takes a lock for a moment; outside of actors may block until a full mailbox has
 *            room.
 * Source:    ES-1.  Since: 0.1 */
TRP_API void trp_system_publish(trp_system *system, const trp_type *type, const void *payload,
                                size_t bytes);

/* Subscribe any actor to the event stream, until it ends; type NULL: all events.
 *
 * Errors:    TRP_ENOMEM   out of memory
 *            TRP_ENOENT   subscriber is dead
 *            TRP_ENOTYPE  type is not registered
 * Thread:    any; takes a lock for a moment.
 * Source:    ES-1.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_system_subscribe(trp_system *system, trp_ref subscriber,
                                                    const trp_type *type);

/* End a subscription of any actor; type NULL: all of them.
 *
 * Errors:    TRP_ENOENT   there was none
 * Thread:    any; takes a lock for a moment.
 * Source:    EB-01.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_system_unsubscribe(trp_system *system, trp_ref subscriber,
                                                      const trp_type *type);

typedef struct trp_system_stats {
    size_t size;                                 /* sizeof(trp_system_stats), set by the caller */
    uint64_t actors;                             /* alive now */
    uint64_t messages_processed;                 /* user messages, all workers */
    uint64_t dead_letters[TRP_DEAD_REASONS_MAX]; /* by reason */
    uint64_t restarts;
    uint64_t spawned, stopped;
} trp_system_stats;

/* Copy the counters into *ret_stats, whose size the caller has set.
 *
 * Errors:    none
 * Thread:    any; lock-free.
 * Source:    docs/architecture.md#references-and-cells.  Since: 0.1 */
TRP_API void trp_system_stats_get(trp_system *system, trp_system_stats *ret_stats);

/* One actor of the tree. */
typedef struct trp_tree_entry {
    trp_ref ref;
    uint32_t depth;
    uint32_t restarts;
    const char *path;
    const char *behaviour;
    uint64_t processed; /* messages handled */
    uint32_t children;
    uint32_t thread;   /* index of the one that runs it, or ran it last */
    uint32_t pending;  /* ordinary messages that wait */
    uint8_t active;    /* 0: trp_deactivate() */
    uint8_t suspended; /* 1: it waits for its supervisor's decision */
    uint8_t zero[2];
} trp_tree_entry;
typedef int (*trp_tree_fn)(void *arg, const trp_tree_entry *entry);

/* Visit the tree below path (depth_max 0: only it). fn returns non-zero to stop; what its entry
 * points to is valid during the call.
 *
 * Ownership: borrows path; arg is passed through.
 * Errors:    TRP_ENOENT     no actor lives there
 *            TRP_ETIMEDOUT  an actor on the way has not answered in time
 *            TRP_EINVAL     the path does not parse
 * Thread:    any; may block until the actors on the way have answered; never from a behaviour.
 * Source:    SYS-24.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_system_tree(trp_system *system, const char *path,
                                               uint32_t depth_max, uint32_t timeout_ms,
                                               trp_tree_fn fn, void *arg);

/* Log a line; source is an actor path or a name of the caller's.
 *
 * Ownership: borrows source, format and its arguments.
 * Errors:    none
 * Thread:    any; takes a lock for a moment.
 * Source:    MSG-22.  Since: 0.1 */
TRP_API void trp_system_log(trp_system *system, trp_log_level level, const char *source,
                            const char *format, ...) TRP_PRINTF(4, 5);

#ifdef __cplusplus
}
#endif
#endif /* TROUPE_SYSTEM_H */
