/* troupe/system.h - an actor system: start it, talk to it from threads that are not actors, end it.
 *
 * A system is a value: several live in one process and share nothing but code. The library installs
 * no signal handler and never ends the process.
 */
#ifndef TROUPE_SYSTEM_H
#define TROUPE_SYSTEM_H

#include <troupe/actor.h>
#include <troupe/base.h>
#include <troupe/message.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TRP_SYSTEM_NAME_BYTES_MAX 63
#define TRP_WORKERS_MAX 64

/* One log line; borrowed for the call. fields is "key=value ..." or NULL. */
typedef struct trp_log_line {
    trp_log_level level;
    const char *source; /* actor path or room */
    const char *text;
    int64_t wall_ms; /* since 1970 */
} trp_log_line;
typedef void (*trp_log_fn)(void *arg, const trp_log_line *line);

typedef struct trp_system_options {
    size_t size;
    uint32_t workers;              /* threads of the default dispatcher; 0: one per core */
    uint32_t throughput;           /* 0: TRP_THROUGHPUT_DEFAULT */
    uint32_t actors_max;           /* 0: 100 million */
    uint32_t log_level;            /* trp_log_level; 0: info */
    trp_log_fn log;                /* any thread; must not block long; NULL: stderr */
    void *log_arg;
    uint32_t log_dead_letters;     /* number logged, at info; 0: 10; UINT32_MAX: none (LIFE-16) */
    uint32_t guardian_stops;       /* 1: /user uses the stopping strategy (SYS-6) */
} trp_system_options;
#define TRP_SYSTEM_OPTIONS_INIT { sizeof(trp_system_options), 0, 0, 0, 0, NULL, NULL, 0, 0 }

/* Start a system with its guardians and worker threads.
 *
 * Ownership: gives *ret_system (end it with trp_system_stop, free it with trp_system_free).
 * Errors:    TRP_EINVAL  name is empty, too long or has other characters than [a-zA-Z0-9_-]
 *            TRP_ENOMEM  out of memory; TRP_EIO  a thread cannot be made
 * Thread:    any.
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

/* Order the stop and return; safe from a behaviour (SYS-41). */
TRP_API void trp_system_shutdown(trp_system *system);
/* Wait until the system has ended by itself or by order. Errors: TRP_ETIMEDOUT (0: no limit). */
TRP_API TRP_MUST_CHECK trp_err trp_system_await(trp_system *system, uint32_t timeout_ms);
TRP_API int trp_system_is_terminated(const trp_system *system);

/* Free a stopped system; after a stop that timed out the stuck threads and what they use are leaked,
 * with a log line. NULL is fine. Takes system. */
TRP_API void trp_system_free(trp_system *system);

TRP_API const char *trp_system_name(const trp_system *system);

/* Start a child of /user. The name and the slot are taken at once; the actor starts in its own time.
 * Errors as trp_spawn. Thread: any. Source: SYS-19, -20.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_system_spawn(trp_system *system, const trp_behaviour *behaviour,
                                                const trp_spawn_options *options, trp_ref *ret_ref);

/* As trp_tell, without a sender (replies are dead letters). Thread: any; lock-free for a local to. */
TRP_API void trp_system_tell(trp_system *system, trp_ref to, const trp_type *type,
                             const void *payload, size_t bytes);
TRP_API void trp_system_tell_as(trp_system *system, trp_ref to, trp_ref sender, const trp_type *type,
                                const void *payload, size_t bytes);
TRP_API TRP_MUST_CHECK trp_err trp_system_select_tell(trp_system *system, const char *selection,
                                                      const trp_type *type, const void *payload,
                                                      size_t bytes);

/* Tell and wait for the first reply.
 *
 * Ownership: gives *ret_reply (free with trp_msg_free).
 * Errors:    TRP_ETIMEDOUT  no reply in time; TRP_ENOENT  to is dead
 *            TRP_ESTATE     called from a behaviour; TRP_ECLOSED  the system is stopping
 *            the error of a trp_status_failure reply
 * Thread:    any; may block until the reply or the timeout; never from a behaviour.
 * Source:    MSG-4.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_system_ask(trp_system *system, trp_ref to, const trp_type *type,
                                              const void *payload, size_t bytes, uint32_t timeout_ms,
                                              trp_msg **ret_reply);
/* As trp_system_ask, to a path or address string; TRP_ENOENT as soon as it is known that nobody lives
 * there. The message itself is told to the resolved ref. */
TRP_API TRP_MUST_CHECK trp_err trp_system_ask_path(trp_system *system, const char *path,
                                                   const trp_type *type, const void *payload,
                                                   size_t bytes, uint32_t timeout_ms,
                                                   trp_msg **ret_reply);
/* Find the ref behind a path, here or on another node.
 * Errors: TRP_ENOENT, TRP_ETIMEDOUT, TRP_EINVAL, TRP_ESTATE as above. Blocks as trp_system_ask. */
TRP_API TRP_MUST_CHECK trp_err trp_system_resolve(trp_system *system, const char *path,
                                                  uint32_t timeout_ms, trp_ref *ret_ref);

TRP_API void trp_system_stop_actor(trp_system *system, trp_ref ref);
/* Stop ref and wait until it has ended: its post_stop happened before the return (LIFE-14). */
TRP_API TRP_MUST_CHECK trp_err trp_system_graceful_stop(trp_system *system, trp_ref ref,
                                                        uint32_t timeout_ms);

TRP_API void trp_system_publish(trp_system *system, const trp_type *type, const void *payload,
                                size_t bytes);
/* Subscribe any actor to the event stream, until it ends. */
TRP_API TRP_MUST_CHECK trp_err trp_system_subscribe(trp_system *system, trp_ref subscriber,
                                                    const trp_type *type);

typedef struct trp_system_stats {
    size_t size;                                  /* sizeof(trp_system_stats), set by the caller */
    uint64_t actors;                              /* alive now */
    uint64_t messages_processed;                  /* user messages, all workers */
    uint64_t dead_letters[TRP_DEAD_REASON_COUNT]; /* by reason */
    uint64_t restarts;
    uint64_t spawned, stopped;
} trp_system_stats;
TRP_API void trp_system_stats_get(trp_system *system, trp_system_stats *ret_stats);

/* Visit the tree below path (depth 0: only it). fn returns non-zero to stop. Names and refs are valid
 * during the call. TRP_ENOENT when nobody lives there. Blocks until each actor on the way has
 * answered or timeout_ms has passed (TRP_ETIMEDOUT). */
typedef struct trp_tree_entry {
    trp_ref ref;
    uint32_t depth;
    const char *path;
    const char *behaviour;
    uint64_t processed; /* messages handled */
    uint32_t restarts;
    uint32_t children;
} trp_tree_entry;
typedef int (*trp_tree_fn)(void *arg, const trp_tree_entry *entry);
TRP_API TRP_MUST_CHECK trp_err trp_system_tree(trp_system *system, const char *path, uint32_t depth_max,
                                               uint32_t timeout_ms, trp_tree_fn fn, void *arg);

TRP_API void trp_system_log(trp_system *system, trp_log_level level, const char *source,
                            const char *format, ...) TRP_PRINTF(4, 5);

#ifdef __cplusplus
}
#endif
#endif /* TROUPE_SYSTEM_H */
