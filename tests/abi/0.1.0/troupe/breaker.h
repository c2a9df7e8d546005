/* troupe/breaker.h - stop calling a failing service for a while.
 *
 * A breaker stands before something that may fail or hang: a database, another service.
 *
 *     closed     calls pass; failures_max failed or late calls in a row open it
 *     open       calls fail at once with TRP_EBREAKER; after reset_timeout_ms it is half-open
 *     half-open  one call passes: it closes the breaker, or opens it for another full
 *                reset_timeout_ms; others fail at once
 *
 * One breaker is shared by all callers of the same service, on any threads. A call that was let
 * through before the breaker opened, and ends later, changes nothing.
 */
#ifndef TROUPE_BREAKER_H
#define TROUPE_BREAKER_H

#include <troupe/base.h>
#include <troupe/future.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TRP_BREAKER_FAILURES_DEFAULT 5
#define TRP_BREAKER_CALL_DEFAULT_MS 10000
#define TRP_BREAKER_RESET_DEFAULT_MS 60000
#define TRP_BREAKER_LISTENERS_MAX 16

typedef struct trp_breaker trp_breaker;

typedef enum trp_breaker_state {
    TRP_BREAKER_CLOSED = 1,
    TRP_BREAKER_OPEN = 2,
    TRP_BREAKER_HALF_OPEN = 3
} trp_breaker_state;

typedef struct trp_breaker_options {
    size_t size;
    uint32_t failures_max;     /* in a row, then it opens; 0: default */
    uint32_t call_timeout_ms;  /* a call that takes longer has failed; 0: default */
    uint32_t reset_timeout_ms; /* how long it stays open; 0: default */
    uint32_t zero;
    const char *dispatcher; /* runs the listeners; NULL: the thread that changed the state */
} trp_breaker_options;
#define TRP_BREAKER_OPTIONS_INIT                                                                   \
    {                                                                                              \
        sizeof(trp_breaker_options), 0, 0, 0, 0, NULL                                              \
    }

/* A call that was let through; to be given back to trp_breaker_end(). */
typedef struct trp_breaker_call {
    uint64_t priv_began_ns;
    uint64_t priv_epoch;
} trp_breaker_call;

typedef void (*trp_breaker_fn)(void *arg, trp_breaker_state state);
typedef trp_err (*trp_breaker_body_fn)(void *arg);
/* Begin the guarded call, and give its future. */
typedef trp_err (*trp_breaker_begin_fn)(void *arg, trp_future **ret_future);

/* Make a breaker, closed.
 *
 * Ownership: gives *ret_breaker (trp_breaker_unref, the last one before the system is freed);
 *            borrows options.
 * Errors:    TRP_EINVAL, TRP_ENOMEM
 *            TRP_ENOENT  no dispatcher has this id
 * Thread:    any; takes a lock for a moment.
 * Source:    CB-01.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_breaker_new(trp_system *system,
                                               const trp_breaker_options *options,
                                               trp_breaker **ret_breaker);

/* Take one count more of a breaker.
 *
 * Ownership: shares breaker.
 * Errors:    none
 * Thread:    any; lock-free.
 * Source:    CB-01.  Since: 0.1 */
TRP_API trp_breaker *trp_breaker_ref(trp_breaker *breaker);

/* Give up one count. NULL is fine.
 *
 * Ownership: takes one count.
 * Errors:    none
 * Thread:    any; lock-free.
 * Source:    CB-01.  Since: 0.1 */
TRP_API void trp_breaker_unref(trp_breaker *breaker);

/* Call fn each time the breaker enters this state.
 *
 * Ownership: arg is passed through, for as long as the breaker lives.
 * Errors:    TRP_EINVAL
 *            TRP_ELIMIT  TRP_BREAKER_LISTENERS_MAX reached
 * Thread:    any; takes a lock for a moment.
 * Source:    CB-05.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_breaker_on(trp_breaker *breaker, trp_breaker_state state,
                                              trp_breaker_fn fn, void *arg);

/* Return the state, now.
 *
 * Errors:    none
 * Thread:    any; takes a lock for a moment; listeners may run in it.
 * Source:    CB-02.  Since: 0.1 */
TRP_API trp_breaker_state trp_breaker_state_get(trp_breaker *breaker);

/* Call body(arg) on this thread, and return what it returns. That a call was late is seen when it
 * returns: its result is given all the same, but counts as a failure.
 *
 * Ownership: arg is passed through.
 * Errors:    TRP_EBREAKER  it was not called; and those of body
 *            TRP_EINVAL
 * Thread:    any; takes a lock for a moment; as long as body takes.
 * Source:    CB-02 to -04, -06.  Since: 0.1 */
TRP_API trp_err trp_breaker_sync(trp_breaker *breaker, trp_breaker_body_fn body, void *arg);

/* Begin a call and give its future, which fails with TRP_ETIMEDOUT when the call is late. begin is
 * called only if the breaker lets the call through; else the future fails with TRP_EBREAKER.
 *
 * Ownership: gives *ret_future; arg is passed through.
 * Errors:    TRP_EINVAL, TRP_ENOMEM
 * Thread:    any; takes a lock for a moment; begin runs in it.
 * Source:    CB-02 to -04, -06, -08.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_breaker_async(trp_breaker *breaker, trp_breaker_begin_fn begin,
                                                 void *arg, trp_future **ret_future);

/* Ask whether a call may be made, for calls that are neither a function nor a future. Each one that
 * is let through must end with trp_breaker_end().
 *
 * Errors:    TRP_EBREAKER  not now
 *            TRP_EINVAL
 * Thread:    any; takes a lock for a moment; listeners may run in it.
 * Source:    CB-02 to -04.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_breaker_begin(trp_breaker *breaker, trp_breaker_call *ret_call);

/* Tell how a call ended: TRP_OK, or any error. One that took longer than call_timeout_ms has
 * failed.
 *
 * Errors:    none
 * Thread:    any; takes a lock for a moment; listeners may run in it.
 * Source:    CB-02.  Since: 0.1 */
TRP_API void trp_breaker_end(trp_breaker *breaker, trp_breaker_call call, trp_err err);

#ifdef __cplusplus
}
#endif
#endif /* TROUPE_BREAKER_H */
