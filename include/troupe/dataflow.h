/* troupe/dataflow.h - flows: functions written in sequence that wait for values without a thread.
 *
 * A value that is written once is a promise (troupe/future.h): a second write returns TRP_EEXIST,
 * whoever was first. A flow reads such values where it needs them, and waits in the middle of its
 * function until they are there. Meanwhile it is memory only: no thread stands still.
 *
 *     static trp_err
 *     sum(trp_flow *flow, void *arg, trp_promise *out)
 *     {
 *         struct pair *p = arg; // two futures
 *         int64_t x, y;
 *         trp_err err = trp_flow_read(flow, p->x, &trp_i64_type, &x); // waits
 *         err = err != TRP_OK ? err : trp_flow_read(flow, p->y, &trp_i64_type, &y);
 *         x += y;
 *         return err != TRP_OK ? err : trp_promise_succeed(out, &trp_i64_type, &x, sizeof x);
 *     }
 *     ...
 *     trp_flow_start(system, sum, &p, NULL, NULL, &total); // total is a future: flows compose
 *
 * A flow runs on a dispatcher, outside of any actor, on a stack of its own. Flows that only read
 * and write such values have the same outcome in whatever order they run. A time, a random number,
 * or a value written by two flows makes it depend on the order.
 *
 * An error that the function returns, trp_flow_fail() from any depth, and with fault-trap a fault
 * of its own code, an overflow of its stack too, fail the flow's future, and nothing else.
 *
 * A flow may go on on another thread after each wait: across one it keeps no address of a
 * thread-local variable (errno is one) and holds no lock. It waits with the functions below only;
 * those that block a thread refuse (TRP_ESTATE). When its system ends, waits return TRP_ECLOSED and
 * the function is expected to return.
 */
#ifndef TROUPE_DATAFLOW_H
#define TROUPE_DATAFLOW_H

#include <troupe/base.h>
#include <troupe/future.h>
#include <troupe/message.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TRP_FLOWS_MAX 1000000       /* of flows.max */
#define TRP_FLOWS_MAX_DEFAULT 10000 /* flows of a system that have not finished */
#define TRP_FLOW_STACK_BYTES_MIN 32768
#define TRP_FLOW_STACK_BYTES_MAX 67108864
#define TRP_FLOW_NAME_BYTES_MAX 63

typedef struct trp_flow trp_flow; /* a running flow; valid in its function only */

/* The body of a flow. It keeps `out` before it returns: that is the flow's future, a success
 * without a value where the function returns TRP_OK and has not kept it, a failure where it returns
 * an error. */
typedef trp_err (*trp_flow_fn)(trp_flow *flow, void *arg, trp_promise *out);

typedef struct trp_flow_options {
    size_t size;
    const char *dispatcher; /* NULL: "default" */
    const char *name;       /* for the log, copied; NULL: "flow"; TRP_FLOW_NAME_BYTES_MAX */
    uint32_t timeout_ms;    /* of the whole flow: waits return TRP_ETIMEDOUT then; 0: none */
    uint32_t zero;
} trp_flow_options;
#define TRP_FLOW_OPTIONS_INIT                                                                      \
    {                                                                                              \
        sizeof(trp_flow_options), NULL, NULL, 0, 0                                                 \
    }

typedef struct trp_flows_info {
    size_t size;      /* sizeof(trp_flows_info), set by the caller */
    uint64_t started; /* of all time */
    uint64_t failed;  /* whose function returned an error, or was left by a failure */
    uint32_t live;    /* started and not finished */
    uint32_t waiting; /* of them, those that wait for something */
    uint32_t idle_stacks;
    uint32_t live_max;    /* flows.max */
    uint64_t stack_bytes; /* flows.stack-size, in whole pages */
} trp_flows_info;

/* Start a flow: it runs fn(flow, arg, out) on a dispatcher, soon, and not in this call.
 *
 * Ownership: takes arg until release(arg), on success only; borrows options (NULL: all defaults);
 *            gives *ret_future (ret_future NULL: not wanted; then a failure is logged).
 * Errors:    TRP_EINVAL  an argument is NULL, options is of a wrong size, or the name is too long
 *            TRP_ENOENT  there is no such dispatcher
 *            TRP_ELIMIT  flows.max flows have not finished; raise it, or start fewer at a time
 *            TRP_ENOMEM  out of memory, or of address space for stacks
 *            TRP_ECLOSED the system ends
 * Thread:    any; takes a lock for a moment.
 * Source:    DATAFLOW-1, -3.  Since: 0.2 */
TRP_API TRP_MUST_CHECK trp_err trp_flow_start(trp_system *system, trp_flow_fn fn, void *arg,
                                              trp_release_fn release,
                                              const trp_flow_options *options,
                                              trp_future **ret_future);

/* Wait until a future has its outcome, whatever it is: trp_future_outcome() returns it then.
 * Returns at once where it has.
 *
 * Ownership: borrows future, also while it waits.
 * Errors:    TRP_EINVAL    an argument is NULL
 *            TRP_ESTATE    it is not this flow's function that calls
 *            TRP_ETIMEDOUT the flow's timeout_ms is over
 *            TRP_ECLOSED   the system ends
 *            TRP_ENOMEM    out of memory
 * Thread:    the flow's function only; it may go on on another thread.
 * Source:    DATAFLOW-1.  Since: 0.2 */
TRP_API TRP_MUST_CHECK trp_err trp_flow_wait(trp_flow *flow, trp_future *future);

/* Wait for the value of a future. A failure is returned as the error that it is;
 * trp_future_outcome(future)->reason tells why.
 *
 * Ownership: *ret_value is borrowed, until future is given up.
 * Errors:    those of trp_flow_wait(), and that of the failure
 *            TRP_ENOENT   it succeeded without a value
 * Thread:    the flow's function only; it may go on on another thread.
 * Source:    DATAFLOW-1.  Since: 0.2 */
TRP_API TRP_MUST_CHECK trp_err trp_flow_result(trp_flow *flow, trp_future *future,
                                               const trp_msg **ret_value);

/* Wait for a value of this type, and copy it: *ret_value has the type's size.
 *
 * Ownership: borrows future, and keeps it while it waits.
 * Errors:    those of trp_flow_result()
 *            TRP_EINVAL   the type has no fixed size: use trp_flow_result()
 *            TRP_EDATA    the value is of another type
 * Thread:    the flow's function only; it may go on on another thread.
 * Source:    DATAFLOW-1.  Since: 0.2 */
TRP_API TRP_MUST_CHECK trp_err trp_flow_read(trp_flow *flow, trp_future *future,
                                             const trp_type *type, void *ret_value);

/* Ask an actor, wait for its reply of this type, and copy it: trp_future_ask() and trp_flow_read()
 * in one.
 *
 * Ownership: borrows payload.
 * Errors:    those of trp_future_ask() and of trp_flow_read()
 * Thread:    the flow's function only; it may go on on another thread.
 * Source:    DATAFLOW-1, MSG-4.  Since: 0.2 */
TRP_API TRP_MUST_CHECK trp_err trp_flow_ask(trp_flow *flow, trp_ref to, const trp_type *type,
                                            const void *payload, size_t bytes, uint32_t timeout_ms,
                                            const trp_type *reply_type, void *ret_reply);

/* Wait for so many milliseconds (0: let others run).
 *
 * Errors:    those of trp_flow_wait()
 * Thread:    the flow's function only; it may go on on another thread.
 * Source:    DATAFLOW-1.  Since: 0.2 */
TRP_API TRP_MUST_CHECK trp_err trp_flow_sleep(trp_flow *flow, uint32_t ms);

/* Call release(arg) when the flow has finished, also when it was left by a failure: the last one
 * first, before the future has its outcome. It may not wait.
 *
 * Ownership: takes arg, on success only.
 * Errors:    TRP_EINVAL, TRP_ENOMEM
 *            TRP_ESTATE   it is not this flow's function that calls
 * Thread:    the flow's function only.
 * Source:    DATAFLOW-1.  Since: 0.2 */
TRP_API TRP_MUST_CHECK trp_err trp_flow_defer(trp_flow *flow, trp_release_fn release, void *arg);

/* Return the system of a flow.
 *
 * Errors:    none
 * Thread:    the flow's function only.
 * Source:    DATAFLOW-3.  Since: 0.2 */
TRP_API trp_system *trp_flow_system(const trp_flow *flow);

/* Fail: do not return, and let the flow's future fail with err and a reason; use it through
 * trp_flow_fail(flow, err, "why %s", ...). Only what trp_flow_defer() was given is
 * released. Not from a function that the library calls (a callback, a comparison). In C++ no
 * destructor between the flow's function and this call runs. TRP_OK as err is TRP_EFAILED.
 *
 * Errors:    none
 * Thread:    the flow's function only.
 * Source:    DATAFLOW-2.  Since: 0.2 */
#define trp_flow_fail(flow, err, ...)                                                              \
    trp_flow_fail_at((flow), (err), __FILE__, __LINE__, __VA_ARGS__)
TRP_API TRP_NORETURN void trp_flow_fail_at(trp_flow *flow, trp_err err, const char *file, int line,
                                           const char *format, ...) TRP_PRINTF(5, 6);

/* Write how many flows there are, and what they may use.
 *
 * Errors:    TRP_EINVAL  an argument is NULL, or *ret_info has a wrong size
 *            TRP_ENOMEM, TRP_ECLOSED
 * Thread:    any; takes a lock for a moment.
 * Source:    DATAFLOW-1.  Since: 0.2 */
TRP_API TRP_MUST_CHECK trp_err trp_flows_get_info(trp_system *system, trp_flows_info *ret_info);

#ifdef __cplusplus
}
#endif
#endif /* TROUPE_DATAFLOW_H */
