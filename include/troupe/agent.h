/* troupe/agent.h - a value that any thread reads at once, and that functions change one at a time.
 *
 *     static trp_err
 *     add_one(void *arg, void *value)
 *     {
 *         (void)arg;
 *         ++*(int64_t *)value;
 *         return TRP_OK;
 *     }
 *     ...
 *     trp_agent_new(system, &(int64_t){ 5 }, sizeof(int64_t), NULL, &counter);
 *     trp_agent_send(counter, add_one, NULL, NULL); // some time later it is 6
 *     trp_agent_get(counter, &value);               // now
 *
 * Changes are queued, and done on a dispatcher outside of any actor. One agent does one at a time,
 * those of one thread in their order. A change works on a copy, which becomes the value when the
 * function has returned TRP_OK. A reader gets the value as the last change left it, whole, and
 * waits for none of them. An agent costs no actor and no thread.
 *
 * Functions with a callback take arg, on success only; release(arg) (NULL: nothing to do) is called
 * once, when the callback has returned or cannot be called any more. Agents are reference-counted;
 * one whose changes are queued lives until they are done. Changes that wait when their system ends
 * are done or dropped; the futures of those that are dropped fail.
 */
#ifndef TROUPE_AGENT_H
#define TROUPE_AGENT_H

#include <troupe/base.h>
#include <troupe/future.h>
#include <troupe/stm.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TRP_AGENT_QUEUE_DEFAULT 1000000u /* changes that may wait for one agent */

typedef struct trp_agent trp_agent;

/* Change *value, a copy that has the agent's size. Any error but TRP_OK leaves the value as it was,
 * and fails the future of trp_agent_alter(). */
typedef trp_err (*trp_agent_fn)(void *arg, void *value);

typedef struct trp_agent_options {
    size_t size;
    const char *dispatcher;     /* of sends; NULL: "default" */
    const char *off_dispatcher; /* of changes that take long or block; NULL: "blocking" */
    uint32_t queue_max;         /* 0: TRP_AGENT_QUEUE_DEFAULT */
    uint32_t zero;
} trp_agent_options;
#define TRP_AGENT_OPTIONS_INIT                                                                     \
    {                                                                                              \
        sizeof(trp_agent_options), NULL, NULL, 0, 0                                                \
    }

/* Make an agent with a value of so many bytes.
 *
 * Ownership: gives *ret_agent (trp_agent_unref); borrows value (copied) and options (NULL: all
 *            defaults).
 * Errors:    TRP_EINVAL   an argument is NULL, options is of a wrong size, or bytes is 0 or above
 *                         TRP_STM_CELL_BYTES_MAX
 *            TRP_ENOENT   there is no such dispatcher
 *            TRP_ENOMEM   out of memory
 * Thread:    any; takes a lock for a moment.
 * Source:    AGENT-1, -6.  Since: 0.2 */
TRP_API TRP_MUST_CHECK trp_err trp_agent_new(trp_system *system, const void *value, size_t bytes,
                                             const trp_agent_options *options,
                                             trp_agent **ret_agent);

/* Take one count more of an agent.
 *
 * Ownership: shares agent.
 * Errors:    none
 * Thread:    any; lock-free.
 * Source:    AGENT-1.  Since: 0.2 */
TRP_API trp_agent *trp_agent_ref(trp_agent *agent);

/* Give up one count. NULL is fine.
 *
 * Ownership: takes one count.
 * Errors:    none
 * Thread:    any; lock-free.
 * Source:    AGENT-1.  Since: 0.2 */
TRP_API void trp_agent_unref(trp_agent *agent);

/* Copy the present value.
 *
 * Errors:    none
 * Thread:    any; takes a lock for a moment (waits while a change copies its result).
 * Source:    AGENT-1.  Since: 0.2 */
TRP_API void trp_agent_get(const trp_agent *agent, void *ret_value);

/* Queue a change: fn(arg, value) on the agent's dispatcher.
 *
 * Ownership: takes arg until release(arg), on success only.
 * Errors:    TRP_EINVAL   agent or fn is NULL
 *            TRP_ELIMIT   queue_max changes wait
 *            TRP_ECLOSED  the system has ended
 *            TRP_ENOMEM   out of memory
 * Thread:    any; takes a lock for a moment.
 * Source:    AGENT-2.  Since: 0.2 */
TRP_API TRP_MUST_CHECK trp_err trp_agent_send(trp_agent *agent, trp_agent_fn fn, void *arg,
                                              trp_release_fn release);

/* Do as trp_agent_send, with a function that takes long or blocks: on a thread of off_dispatcher.
 * The order of sends and these is kept.
 *
 * Ownership: takes arg until release(arg), on success only.
 * Errors:    as trp_agent_send
 * Thread:    any; takes a lock for a moment.
 * Source:    AGENT-2, -6.  Since: 0.2 */
TRP_API TRP_MUST_CHECK trp_err trp_agent_send_off(trp_agent *agent, trp_agent_fn fn, void *arg,
                                                  trp_release_fn release);

/* Queue a new value.
 *
 * Ownership: borrows value (copied).
 * Errors:    as trp_agent_send
 * Thread:    any; takes a lock for a moment.
 * Source:    AGENT-2.  Since: 0.2 */
TRP_API TRP_MUST_CHECK trp_err trp_agent_set(trp_agent *agent, const void *value);

/* Do as trp_agent_send when the transaction commits; nothing is sent if it does not.
 *
 * Ownership: takes arg until release(arg), on success only.
 * Errors:    those of trp_txn_on_commit and trp_agent_send; if the queue is full at the commit, the
 *            change is dropped with a warning
 * Thread:    that of the transaction.
 * Source:    AGENT-4.  Since: 0.2 */
TRP_API TRP_MUST_CHECK trp_err trp_agent_send_in(trp_txn *txn, trp_agent *agent, trp_agent_fn fn,
                                                 void *arg, trp_release_fn release);

/* Do as trp_agent_send, or with `off` as trp_agent_send_off; the future is the value that the
 * change has made, a message of trp_bytes_type, or the failure of fn.
 *
 * Ownership: gives *ret_future; takes arg until release(arg), on success only.
 * Errors:    as trp_agent_send
 * Thread:    any; takes a lock for a moment.
 * Source:    AGENT-3.  Since: 0.2 */
TRP_API TRP_MUST_CHECK trp_err trp_agent_alter(trp_agent *agent, int off, trp_agent_fn fn,
                                               void *arg, trp_release_fn release,
                                               trp_future **ret_future);

/* Make the future of the value when all changes are done that are queued now.
 *
 * Ownership: gives *ret_future.
 * Errors:    as trp_agent_send
 * Thread:    any; takes a lock for a moment.
 * Source:    AGENT-3.  Since: 0.2 */
TRP_API TRP_MUST_CHECK trp_err trp_agent_future(trp_agent *agent, trp_future **ret_future);

/* Wait until all changes are done that are queued now, and copy the value.
 *
 * Errors:    as trp_agent_send and trp_future_await
 * Thread:    any; may block until the outcome or the timeout; never from a behaviour.
 * Source:    AGENT-3.  Since: 0.2 */
TRP_API TRP_MUST_CHECK trp_err trp_agent_await(trp_agent *agent, uint32_t timeout_ms,
                                               void *ret_value);

/* Make an agent whose first value, of `bytes`, fn makes of the present value of this one, with the
 * same dispatchers; this one stays as it is, and later changes of either do not reach the other.
 * fn runs in this call: *ret_value is zeroed before.
 *
 * Ownership: gives *ret_agent (trp_agent_unref); arg is passed through.
 * Errors:    as trp_agent_new; those of fn
 * Thread:    any; takes a lock for a moment.
 * Source:    AGENT-5.  Since: 0.2 */
TRP_API TRP_MUST_CHECK trp_err trp_agent_map(const trp_agent *agent,
                                             trp_err (*fn)(void *arg, const void *value,
                                                           void *ret_value),
                                             void *arg, size_t bytes, trp_agent **ret_agent);

/* Call fn with a copy of the present value, in this call. To combine several agents, call it in one
 * another, and trp_agent_new() in the innermost.
 *
 * Ownership: arg is passed through.
 * Errors:    TRP_EINVAL, TRP_ENOMEM; those of fn
 * Thread:    any; takes a lock for a moment.
 * Source:    AGENT-5.  Since: 0.2 */
TRP_API TRP_MUST_CHECK trp_err trp_agent_foreach(const trp_agent *agent,
                                                 trp_err (*fn)(void *arg, const void *value),
                                                 void *arg);

#ifdef __cplusplus
}
#endif
#endif /* TROUPE_AGENT_H */
