/* troupe/future.h - promises and futures: values that are not there yet, and how to combine them.
 *
 * A future has one outcome, for ever: values (messages), or a failure. The holder of the promise
 * sets it; all others look at the future. Nothing waits: code that needs the outcome is registered
 * as a callback and runs on a dispatcher, in any order and perhaps in parallel with other
 * callbacks, also when the outcome was there before. Callbacks do not run inside an actor: they may
 * keep refs (self, a sender), never an actor's state; trp_future_pipe() brings an outcome into one.
 *
 *     trp_future *price, *total;
 *     trp_future_ask(system, shop, &price_type, &item, sizeof item, 1000, &price);
 *     trp_future_map(price, add_tax, NULL, NULL, &total);
 *     trp_future_pipe(total, customer, shop);
 *     trp_future_unref(price);
 *     trp_future_unref(total);
 *
 * Futures are reference-counted: a caller that gets one owns one count, and a chain goes on without
 * any. A promise whose last count is given up before it was kept fails its future with
 * TRP_ECANCELED, so no caller waits for ever. Callbacks that a system could not run before it was
 * freed run during trp_system_free(), on its thread, and may use the system as one that has
 * stopped: a tell is a dead letter, an ask or a spawn is refused with TRP_ECLOSED.
 *
 * A function with a callback takes arg, on success only. release(arg) (NULL: nothing to do) is
 * called when the callback cannot be called any more: after it returned, or when it does not apply
 * to the outcome.
 */
#ifndef TROUPE_FUTURE_H
#define TROUPE_FUTURE_H

#include <troupe/base.h>
#include <troupe/message.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TRP_FUTURE_LIST_MAX 1000000u /* futures in one sequence, traverse, fold, reduce or race */

typedef struct trp_promise trp_promise;
typedef struct trp_future trp_future;

/* The outcome of a future. Borrowed while the future is held, and during a callback. */
typedef struct trp_outcome {
    trp_err err; /* TRP_OK, or why it failed */
    uint32_t zero;
    const char *reason;           /* of a failure, a sentence; "" with TRP_OK */
    const trp_msg *value;         /* the first value; NULL: none */
    const trp_msg *const *values; /* all: a zip has two and more, a sequence any number */
    size_t count;
} trp_outcome;

typedef void (*trp_release_fn)(void *arg);
typedef void (*trp_outcome_fn)(void *arg, const trp_outcome *outcome);
/* Make the outcome of the next future: keep `out` (now, or later from a trp_promise_ref()), or
 * return an error, which fails it. Failing in one does not reach an actor or its supervisor. */
typedef trp_err (*trp_outcome_map_fn)(void *arg, const trp_outcome *in, trp_promise *out);
/* Give a future whose outcome shall be the next future's (takes the count that is given). */
typedef trp_err (*trp_outcome_flat_fn)(void *arg, const trp_outcome *in, trp_future **ret_next);
typedef int (*trp_outcome_test_fn)(void *arg, const trp_outcome *in);
/* Make the next sum (trp_msg_new()) of a fold. */
typedef trp_err (*trp_fold_fn)(void *arg, const trp_msg *sum, const trp_msg *value,
                               trp_msg **ret_sum);
/* Give the future of the index-th element. */
typedef trp_err (*trp_traverse_fn)(void *arg, size_t index, trp_future **ret_future);

/* ---- promises -------------------------------------------------------------------------------- */

/* Make a promise, and with it its future. Callbacks run on the dispatcher of this id.
 *
 * Ownership: gives *ret_promise (trp_promise_unref); borrows dispatcher (NULL: "default").
 * Errors:    TRP_EINVAL, TRP_ENOMEM
 *            TRP_ENOENT   no dispatcher has this id
 *            TRP_ECLOSED  the system has stopped
 * Thread:    any; takes a lock for a moment.
 * Source:    FUT-1, -2.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_promise_new(trp_system *system, const char *dispatcher,
                                               trp_promise **ret_promise);

/* Return the future of a promise.
 *
 * Ownership: borrows; trp_future_ref() keeps it.
 * Errors:    none
 * Thread:    any; lock-free.
 * Source:    FUT-2.  Since: 0.1 */
TRP_API trp_future *trp_promise_future(trp_promise *promise);

/* Take one count more of a promise.
 *
 * Ownership: shares promise.
 * Errors:    none
 * Thread:    any; lock-free.
 * Source:    FUT-2.  Since: 0.1 */
TRP_API trp_promise *trp_promise_ref(trp_promise *promise);

/* Give up one count; the last one of a promise that was not kept fails its future with
 * TRP_ECANCELED. NULL is fine.
 *
 * Ownership: takes one count.
 * Errors:    none
 * Thread:    any; takes a lock for a moment; callbacks may run in it.
 * Source:    FUT-2.  Since: 0.1 */
TRP_API void trp_promise_unref(trp_promise *promise);

/* Keep a promise with a value. bytes is ignored for fixed-size types.
 *
 * Ownership: borrows payload.
 * Errors:    TRP_EEXIST   it was kept, or failed, before
 *            TRP_EINVAL   bytes does not fit type; TRP_ENOTYPE, TRP_ENOMEM
 * Thread:    any; takes a lock for a moment; callbacks may run in it.
 * Source:    FUT-2.  Since: 0.1 */
TRP_API trp_err trp_promise_succeed(trp_promise *promise, const trp_type *type, const void *payload,
                                    size_t bytes);

/* Keep a promise with a message.
 *
 * Ownership: takes msg (of trp_msg_new() or trp_msg_dup()), on success only.
 * Errors:    TRP_EEXIST   it was kept, or failed, before
 *            TRP_EINVAL, TRP_ENOMEM
 * Thread:    any; takes a lock for a moment; callbacks may run in it.
 * Source:    FUT-2.  Since: 0.1 */
TRP_API trp_err trp_promise_succeed_msg(trp_promise *promise, trp_msg *msg);

/* Fail a promise. err must not be TRP_OK.
 *
 * Ownership: borrows reason (copied, cut at TRP_FAILURE_REASON_BYTES); NULL: the text of err.
 * Errors:    TRP_EEXIST   it was kept, or failed, before
 *            TRP_EINVAL, TRP_ENOMEM
 * Thread:    any; takes a lock for a moment; callbacks may run in it.
 * Source:    FUT-2, -6.  Since: 0.1 */
TRP_API trp_err trp_promise_fail(trp_promise *promise, trp_err err, const char *reason);

/* Let the outcome of another future be the promise's, when it is there.
 *
 * Ownership: shares both until then.
 * Errors:    TRP_EINVAL, TRP_ENOMEM
 * Thread:    any; takes a lock for a moment; callbacks may run in it.
 * Source:    FUT-2.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_promise_follow(trp_promise *promise, trp_future *future);

/* ---- futures --------------------------------------------------------------------------------- */

/* Take one count more of a future.
 *
 * Ownership: shares future.
 * Errors:    none
 * Thread:    any; lock-free.
 * Source:    FUT-2.  Since: 0.1 */
TRP_API trp_future *trp_future_ref(trp_future *future);

/* Give up one count. NULL is fine.
 *
 * Ownership: takes one count.
 * Errors:    none
 * Thread:    any; takes a lock for a moment.
 * Source:    FUT-2.  Since: 0.1 */
TRP_API void trp_future_unref(trp_future *future);

/* Make a future that has its value already.
 *
 * Ownership: gives *ret_future; borrows payload.
 * Errors:    those of trp_promise_new() and trp_promise_succeed()
 * Thread:    any; takes a lock for a moment.
 * Source:    FUT-2.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_future_succeeded(trp_system *system, const trp_type *type,
                                                    const void *payload, size_t bytes,
                                                    trp_future **ret_future);

/* Make a future that has failed already.
 *
 * Ownership: gives *ret_future; borrows reason.
 * Errors:    those of trp_promise_new() and trp_promise_fail()
 * Thread:    any; takes a lock for a moment.
 * Source:    FUT-2.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_future_failed(trp_system *system, trp_err err,
                                                 const char *reason, trp_future **ret_future);

/* Run fn on a dispatcher and give the future of its outcome; in has no value.
 *
 * Ownership: gives *ret_future; borrows dispatcher (NULL: "default"); takes arg until release(arg).
 * Errors:    those of trp_promise_new()
 * Thread:    any; takes a lock for a moment; callbacks may run in it.
 * Source:    FUT-2, -6.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_future_run(trp_system *system, const char *dispatcher,
                                              trp_outcome_map_fn fn, void *arg,
                                              trp_release_fn release, trp_future **ret_future);

/* Do as trp_future_run(), delay_ms from now.
 *
 * Ownership: gives *ret_future; takes arg until release(arg).
 * Errors:    those of trp_promise_new()
 * Thread:    any; takes a lock for a moment.
 * Source:    FUT-7.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_future_after(trp_system *system, uint64_t delay_ms,
                                                trp_outcome_map_fn fn, void *arg,
                                                trp_release_fn release, trp_future **ret_future);

/* Tell `to`; the future is the reply. It fails with TRP_ETIMEDOUT, with TRP_ENOENT where `to` is
 * dead, or as a trp_status_failure reply says.
 *
 * Ownership: gives *ret_future; borrows payload.
 * Errors:    TRP_EINVAL   type is NULL or timeout_ms is 0
 *            TRP_ELIMIT   no slot is left for the promise; and those of trp_promise_new()
 * Thread:    any; takes a lock for a moment; outside of actors may block until a full mailbox has
 *            room.
 * Source:    MSG-4, FUT-6.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_future_ask(trp_system *system, trp_ref to, const trp_type *type,
                                              const void *payload, size_t bytes,
                                              uint32_t timeout_ms, trp_future **ret_future);

/* Return the outcome; NULL while there is none.
 *
 * Ownership: borrows, until future is given up.
 * Errors:    none
 * Thread:    any; lock-free.
 * Source:    FUT-3.  Since: 0.1 */
TRP_API const trp_outcome *trp_future_outcome(const trp_future *future);

/* Wait until the outcome is there, whatever it is.
 *
 * Errors:    TRP_ETIMEDOUT  it is not, after timeout_ms (0: looks once)
 *            TRP_ESTATE     called on a thread of the system, which must not block
 *            TRP_ECLOSED    the system was freed, and there will be no outcome
 *            TRP_ENOMEM
 * Thread:    any; may block until the outcome or the timeout; never from a behaviour.
 * Source:    FUT-3.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_future_await(trp_future *future, uint32_t timeout_ms);

/* Wait for the value: as trp_future_await(), but a failure is returned as the error that it is.
 *
 * Ownership: *ret_value is borrowed, until future is given up.
 * Errors:    those of trp_future_await(); that of the failure
 *            TRP_ENOENT   it succeeded without a value
 * Thread:    any; may block until the outcome or the timeout; never from a behaviour.
 * Source:    FUT-3.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_future_result(trp_future *future, uint32_t timeout_ms,
                                                 const trp_msg **ret_value);

/* Run fn with the outcome, whatever it is.
 *
 * Ownership: takes arg until release(arg).
 * Errors:    TRP_EINVAL, TRP_ENOMEM
 * Thread:    any; takes a lock for a moment; callbacks may run in it.
 * Source:    FUT-5.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_future_on_complete(trp_future *future, trp_outcome_fn fn,
                                                      void *arg, trp_release_fn release);

/* Run fn with the outcome if it is a success.
 *
 * Ownership: takes arg until release(arg).
 * Errors:    TRP_EINVAL, TRP_ENOMEM
 * Thread:    any; takes a lock for a moment; callbacks may run in it.
 * Source:    FUT-5.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_future_on_success(trp_future *future, trp_outcome_fn fn,
                                                     void *arg, trp_release_fn release);

/* Run fn with the outcome if it is a failure.
 *
 * Ownership: takes arg until release(arg).
 * Errors:    TRP_EINVAL, TRP_ENOMEM
 * Thread:    any; takes a lock for a moment; callbacks may run in it.
 * Source:    FUT-5.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_future_on_failure(trp_future *future, trp_outcome_fn fn,
                                                     void *arg, trp_release_fn release);

/* Tell the outcome to an actor, in the name of sender: each value in its order, a failure as
 * trp_status_failure; a success without a value as a failure with TRP_ENOENT.
 *
 * Errors:    TRP_EINVAL, TRP_ENOMEM
 * Thread:    any; takes a lock for a moment; callbacks may run in it.
 * Source:    MSG-5.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_future_pipe(trp_future *future, trp_ref to, trp_ref sender);

/* ---- one future made of another -------------------------------------------------------------- */
/* The new future's callbacks run where the old one's do. */

/* Make a success into something else by fn; a failure stays.
 *
 * Ownership: gives *ret_future; takes arg until release(arg).
 * Errors:    TRP_EINVAL, TRP_ENOMEM
 * Thread:    any; takes a lock for a moment; callbacks may run in it.
 * Source:    FUT-4.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_future_map(trp_future *future, trp_outcome_map_fn fn, void *arg,
                                              trp_release_fn release, trp_future **ret_future);

/* Follow the future that fn gives for a success; a failure stays.
 *
 * Ownership: gives *ret_future; takes arg until release(arg).
 * Errors:    TRP_EINVAL, TRP_ENOMEM
 * Thread:    any; takes a lock for a moment; callbacks may run in it.
 * Source:    FUT-4, -8.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_future_flat_map(trp_future *future, trp_outcome_flat_fn fn,
                                                   void *arg, trp_release_fn release,
                                                   trp_future **ret_future);

/* Let a success pass for which test returns non-zero; another one fails with TRP_ENOENT.
 *
 * Ownership: gives *ret_future; takes arg until release(arg).
 * Errors:    TRP_EINVAL, TRP_ENOMEM
 * Thread:    any; takes a lock for a moment; callbacks may run in it.
 * Source:    FUT-4.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_future_filter(trp_future *future, trp_outcome_test_fn test,
                                                 void *arg, trp_release_fn release,
                                                 trp_future **ret_future);

/* Let a success pass whose value has this type; another one fails with TRP_EDATA.
 *
 * Ownership: gives *ret_future.
 * Errors:    TRP_EINVAL, TRP_ENOMEM
 * Thread:    any; takes a lock for a moment; callbacks may run in it.
 * Source:    FUT-4.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_future_map_to(trp_future *future, const trp_type *type,
                                                 trp_future **ret_future);

/* Make a failure into something else by fn; a success stays.
 *
 * Ownership: gives *ret_future; takes arg until release(arg).
 * Errors:    TRP_EINVAL, TRP_ENOMEM
 * Thread:    any; takes a lock for a moment; callbacks may run in it.
 * Source:    FUT-4.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_future_recover(trp_future *future, trp_outcome_map_fn fn,
                                                  void *arg, trp_release_fn release,
                                                  trp_future **ret_future);

/* Follow the future that fn gives for a failure; a success stays.
 *
 * Ownership: gives *ret_future; takes arg until release(arg).
 * Errors:    TRP_EINVAL, TRP_ENOMEM
 * Thread:    any; takes a lock for a moment; callbacks may run in it.
 * Source:    FUT-4.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_future_recover_with(trp_future *future, trp_outcome_flat_fn fn,
                                                       void *arg, trp_release_fn release,
                                                       trp_future **ret_future);

/* Follow another future where this one fails; where both fail, the failure is this one's.
 *
 * Ownership: gives *ret_future; shares other until then.
 * Errors:    TRP_EINVAL, TRP_ENOMEM
 * Thread:    any; takes a lock for a moment; callbacks may run in it.
 * Source:    FUT-4.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_future_fallback_to(trp_future *future, trp_future *other,
                                                      trp_future **ret_future);

/* Run fn with the outcome, and have the same outcome when it has returned: a chain of these runs in
 * order.
 *
 * Ownership: gives *ret_future; takes arg until release(arg).
 * Errors:    TRP_EINVAL, TRP_ENOMEM
 * Thread:    any; takes a lock for a moment; callbacks may run in it.
 * Source:    FUT-4.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_future_and_then(trp_future *future, trp_outcome_fn fn, void *arg,
                                                   trp_release_fn release, trp_future **ret_future);

/* ---- one future made of many ----------------------------------------------------------------- */

/* Have the values of both, first's first; the first failure fails it at once.
 *
 * Ownership: gives *ret_future; shares both until then.
 * Errors:    TRP_EINVAL, TRP_ENOMEM
 * Thread:    any; takes a lock for a moment; callbacks may run in it.
 * Source:    FUT-4.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_future_zip(trp_future *first, trp_future *second,
                                              trp_future **ret_future);

/* Have the values of all, in the order of the list; the first failure fails it at once. An empty
 * list is a success without values.
 *
 * Ownership: gives *ret_future; shares the futures until then.
 * Errors:    TRP_EINVAL, TRP_ENOMEM
 *            TRP_ELIMIT  more than TRP_FUTURE_LIST_MAX
 * Thread:    any; takes a lock for a moment; callbacks may run in it.
 * Source:    FUT-4.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_future_sequence(trp_system *system, trp_future *const *futures,
                                                   size_t count, trp_future **ret_future);

/* Make count futures by fn, in the caller's thread, and do as trp_future_sequence() with them.
 *
 * Ownership: gives *ret_future; takes what fn gives; arg is passed through.
 * Errors:    that of fn; and those of trp_future_sequence()
 * Thread:    any; takes a lock for a moment; callbacks may run in it.
 * Source:    FUT-4.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_future_traverse(trp_system *system, size_t count,
                                                   trp_traverse_fn fn, void *arg,
                                                   trp_future **ret_future);

/* Sum up the values of all, in the order of the list, from a first sum; fn runs when the last value
 * is there. An empty list gives the first sum.
 *
 * Ownership: gives *ret_future; borrows zero; shares the futures until then; takes arg until
 *            release(arg).
 * Errors:    those of trp_future_sequence() and trp_promise_succeed()
 * Thread:    any; takes a lock for a moment; callbacks may run in it.
 * Source:    FUT-4.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_future_fold(trp_system *system, trp_future *const *futures,
                                               size_t count, const trp_type *zero_type,
                                               const void *zero, size_t zero_bytes, trp_fold_fn fn,
                                               void *arg, trp_release_fn release,
                                               trp_future **ret_future);

/* Do as trp_future_fold(), with the value that came first as the first sum and the others in the
 * order in which they came. An empty list fails with TRP_ENOENT.
 *
 * Ownership: gives *ret_future; shares the futures until then; takes arg until release(arg).
 * Errors:    those of trp_future_sequence()
 * Thread:    any; takes a lock for a moment; callbacks may run in it.
 * Source:    FUT-4.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_future_reduce(trp_system *system, trp_future *const *futures,
                                                 size_t count, trp_fold_fn fn, void *arg,
                                                 trp_release_fn release, trp_future **ret_future);

/* Have the outcome that came first, a failure too.
 *
 * Ownership: gives *ret_future; shares the futures until each has its outcome.
 * Errors:    TRP_EINVAL  the list is empty; TRP_ENOMEM
 *            TRP_ELIMIT  more than TRP_FUTURE_LIST_MAX
 * Thread:    any; takes a lock for a moment; callbacks may run in it.
 * Source:    FUT-4, -7.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_future_first_completed(trp_system *system,
                                                          trp_future *const *futures, size_t count,
                                                          trp_future **ret_future);

#ifdef __cplusplus
}
#endif
#endif /* TROUPE_FUTURE_H */
