/* troupe/base.h - what all public headers include: errors, version, export marks.
 *
 * Every fallible function returns trp_err. Outputs are named ret_*, come last and are written only
 * on success. Strings are UTF-8 and NUL-terminated; durations are milliseconds unless the name says
 * otherwise; sizes are bytes.
 *
 * A struct that begins with its size grows at its end: set the size by the initializer, or to the
 * struct's sizeof, and set nothing that this version does not have. A newer program may run with an
 * older library as long as it leaves newer members zero; with another value, and with a size that
 * no release has had, the call returns TRP_EINVAL. Other structs never change. Members called zero
 * are not used.
 *
 * "Thread" says for each function which threads may call it, and whether it waits:
 *
 *     any                        each thread, and each behaviour
 *     lock-free                  takes no lock and does not wait; malloc() is not counted
 *     takes a lock for a moment  for some steps in memory
 *     may block until ...        waits for that event; never call it from a behaviour, which
 *                                would take a thread from the system
 *     actor                      the actor itself, inside its behaviour; never blocks
 *     owner                      the code that made the object, one thread at a time; never
 *                                blocks, unless it says until when
 *
 * The program's own parts are not counted: the file of a durable mailbox, a mailbox, logger or
 * dispatcher of its own, and an actor on calling-thread take their time in the call that meets
 * them.
 */
#ifndef TROUPE_BASE_H
#define TROUPE_BASE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TRP_VERSION_MAJOR 0
#define TRP_VERSION_MINOR 1
#define TRP_VERSION_PATCH 0
#define TRP_VERSION "0.1.0"

#if defined(__GNUC__)
#define TRP_API __attribute__((visibility("default")))
#define TRP_MUST_CHECK __attribute__((warn_unused_result))
#define TRP_NORETURN __attribute__((noreturn))
#define TRP_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#else
#define TRP_API
#define TRP_MUST_CHECK
#define TRP_NORETURN
#define TRP_PRINTF(fmt, args)
#endif

/* All errors: number, name, text, 1 if a retry may succeed. Numbers cross the wire and are never
 * reused. */
#define TRP_ERRORS(E)                                                                              \
    E(0, OK, "success", 0)                                                                         \
    E(1, EINVAL, "invalid argument", 0)                                                            \
    E(2, ENOMEM, "out of memory", 1)                                                               \
    E(3, EEXIST, "name is taken", 0)                                                               \
    E(4, ENOENT, "no such actor, member or name", 0)                                               \
    E(5, ECLOSED, "closed or stopping", 0)                                                         \
    E(6, ETIMEDOUT, "timed out", 1)                                                                \
    E(7, EAGAIN, "full at the moment, try again", 1)                                               \
    E(8, ELIMIT, "a named limit was reached", 0)                                                   \
    E(9, EMSGSIZE, "message too large", 0)                                                         \
    E(10, ESTATE, "not possible in this state", 0)                                                 \
    E(11, EPERM, "not permitted", 0)                                                               \
    E(12, EPROTO, "peer broke the protocol", 0)                                                    \
    E(13, ECONN, "no connection to the peer", 1)                                                   \
    E(14, ECONFIG, "configuration error", 0)                                                       \
    E(15, EDATA, "data cannot be decoded", 0)                                                      \
    E(16, EIO, "input or output failed", 1)                                                        \
    E(17, EUNSUPPORTED, "not supported by this build", 0)                                          \
    E(18, EINTERNAL, "internal error, please report", 0)                                           \
    E(19, EFAILED, "actor failed", 0)                                                              \
    E(20, EKILLED, "actor was killed", 0)                                                          \
    E(21, EINIT, "actor failed while starting", 0)                                                 \
    E(22, EDEATHPACT, "a watched actor terminated and nobody handled it", 0)                       \
    E(23, ENOTYPE, "message type is not registered", 0)                                            \
    E(24, EADDRINUSE, "address is in use", 0)                                                      \
    E(25, EQUARANTINED, "peer is quarantined", 0)                                                  \
    E(26, EVERSION, "incompatible version", 0)                                                     \
    E(27, ECANCELED, "cancelled", 0)                                                               \
    E(28, ECOLLISION, "two names have the same id", 0)                                             \
    E(29, EFAULT, "fault in the code of an actor", 0)                                              \
    E(30, EUNHANDLED, "message is not handled", 0)                                                 \
    E(31, EBREAKER, "circuit breaker is open", 1)                                                  \
    E(32, EROLE, "this node does not have the role", 0)                                            \
    E(33, EFENCED, "another writer has taken over", 0)                                             \
    E(34, EJOURNAL, "the journal has failed", 0)

typedef enum trp_err {
#define TRP_ERR_ENUM(number, name, text, retryable) TRP_##name = number,
    TRP_ERRORS(TRP_ERR_ENUM)
#undef TRP_ERR_ENUM
} trp_err;

/* Return the sentence for err; a static string for any value, known or not.
 *
 * Errors:    none
 * Thread:    any; async-signal-safe.
 * Source:    CONTRIBUTING.md, Style.  Since: 0.1 */
TRP_API const char *trp_strerror(trp_err err);

/* Return the symbolic name ("TRP_ENOMEM") of err; a static string for any value.
 *
 * Errors:    none
 * Thread:    any; async-signal-safe.
 * Source:    CONTRIBUTING.md, Style.  Since: 0.1 */
TRP_API const char *trp_err_name(trp_err err);

/* Return non-zero when doing the same again later may succeed.
 *
 * Errors:    none
 * Thread:    any; async-signal-safe.
 * Source:    CONTRIBUTING.md, Style.  Since: 0.1 */
TRP_API int trp_err_retryable(trp_err err);

/* Return the version of the library that is running, as "major.minor.patch".
 *
 * Errors:    none
 * Thread:    any; async-signal-safe.
 * Source:    CONTRIBUTING.md, Style.  Since: 0.1 */
TRP_API const char *trp_version(void);

typedef enum trp_log_level {
    TRP_LOG_ERROR = 1,
    TRP_LOG_WARNING = 2,
    TRP_LOG_INFO = 3,
    TRP_LOG_DEBUG = 4,
    TRP_LOG_OFF = 255 /* as a threshold: nothing; 0 is the default of an option */
} trp_log_level;

/* Zero is the default of each member of options. A member that can be off, or without a limit, says
 * so, and takes these. */
#define TRP_OFF 0xfffffffdu     /* not at all */
#define TRP_FOREVER 0xfffffffeu /* without a limit */

/* an actor system; a heavy value, several may live in one process */
typedef struct trp_system trp_system;
typedef struct trp_ctx trp_ctx; /* the running actor's view; valid for one behaviour call */
typedef struct trp_msg trp_msg; /* one message, immutable once sent */

/* The name of one incarnation of one actor on one node. Copy it, store it, compare it, send it; it
 * is never freed and never dangles: a message to a stale one is a dead letter. All-zero
 * (TRP_REF_NONE) names no actor. */
typedef struct trp_ref {
    uint32_t node;       /* index in the world's node table; private */
    uint32_t slot;       /* private */
    uint32_t generation; /* private */
    uint32_t zero;       /* always 0 */
} trp_ref;
/* Names no actor; to initialize and to assign. */
#ifdef __cplusplus
#define TRP_REF_NONE (trp_ref())
#else
#define TRP_REF_NONE ((trp_ref){ 0, 0, 0, 0 })
#endif

/* Refs are equal when they name the same incarnation (SYS-17). */
static inline int
trp_ref_equal(trp_ref a, trp_ref b)
{
    return a.slot == b.slot && a.generation == b.generation && a.node == b.node;
}
static inline int
trp_ref_is_none(trp_ref ref)
{
    return ref.generation == 0 && ref.slot == 0 && ref.node == 0;
}

#ifdef __cplusplus
}
#endif
#endif /* TROUPE_BASE_H */
