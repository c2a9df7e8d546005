/* troupe/shutdown.h - coordinated shutdown: a node ends in phases, each with a deadline.
 *
 * Code that has something to finish before the end adds a task to a phase. The tasks of a phase run
 * at one time; the next phase begins when all have said that they are done, or when its deadline
 * has passed, which is logged with the names of those that it waited for. A shutdown begins once:
 * by trp_shutdown_run(), trp_node_leave(), SIGTERM of `troupe node`, `troupe leave`, `troupe
 * shutdown`, or because this node was downed.
 *
 *     static void
 *     requests_finish(void *arg, uint64_t task) // must not block
 *     {
 *         ... when the last one has its answer, now or later, on any thread:
 *         trp_shutdown_done(system, task, TRP_OK);
 *     }
 *     err = trp_shutdown_add(system, TRP_SHUTDOWN_SERVICE_REQUESTS_DONE, "requests",
 *                            requests_finish, arg, &task);
 *
 * Phases, in their order (Akka's names). More can be made, and all be changed, by the
 * configuration: coordinated-shutdown { phases "drain" { depends-on = { "service-stop" } } }.
 *
 *     before-service-unbind            the service still takes requests
 *     service-unbind                   stop to take new ones: close what listens
 *     service-requests-done            those that were begun get their answers
 *     service-stop                     end what served them
 *     before-cluster-shutdown          the last one in which this node is a full member
 *     cluster-sharding-shutdown-region hand over what lives on this node only
 *     cluster-leave                    the library asks to leave
 *     cluster-exiting                  this node is Exiting: singletons are handed over
 *     cluster-exiting-done             the library confirms it; the others remove this node
 *     cluster-shutdown                 the membership of this node has ended
 *     before-actor-system-terminate    the last one in which there are actors
 *     actor-system-terminate           tasks, if any; then the actor system stops, in its timeout
 */
#ifndef TROUPE_SHUTDOWN_H
#define TROUPE_SHUTDOWN_H

#include <troupe/base.h>
#include <troupe/system.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TRP_SHUTDOWN_BEFORE_SERVICE_UNBIND "before-service-unbind"
#define TRP_SHUTDOWN_SERVICE_UNBIND "service-unbind"
#define TRP_SHUTDOWN_SERVICE_REQUESTS_DONE "service-requests-done"
#define TRP_SHUTDOWN_SERVICE_STOP "service-stop"
#define TRP_SHUTDOWN_BEFORE_CLUSTER_SHUTDOWN "before-cluster-shutdown"
#define TRP_SHUTDOWN_CLUSTER_SHARDING_SHUTDOWN_REGION "cluster-sharding-shutdown-region"
#define TRP_SHUTDOWN_CLUSTER_LEAVE "cluster-leave"
#define TRP_SHUTDOWN_CLUSTER_EXITING "cluster-exiting"
#define TRP_SHUTDOWN_CLUSTER_EXITING_DONE "cluster-exiting-done"
#define TRP_SHUTDOWN_CLUSTER_SHUTDOWN "cluster-shutdown"
#define TRP_SHUTDOWN_BEFORE_ACTOR_SYSTEM_TERMINATE "before-actor-system-terminate"
#define TRP_SHUTDOWN_ACTOR_SYSTEM_TERMINATE "actor-system-terminate"

#define TRP_SHUTDOWN_PHASES_MAX 64 /* those above and those of the configuration */
#define TRP_SHUTDOWN_TASKS_MAX 1024
#define TRP_SHUTDOWN_NAME_BYTES_MAX 63 /* of a phase, of a task */

/* Why it has begun; the first reason stays. */
typedef enum trp_shutdown_reason {
    TRP_SHUTDOWN_NONE = 0,    /* it has not */
    TRP_SHUTDOWN_PROGRAM = 1, /* the program, or a signal to it */
    TRP_SHUTDOWN_LEAVING = 2, /* this member was asked to leave */
    TRP_SHUTDOWN_DOWNED = 3,  /* this member was downed */
    TRP_SHUTDOWN_CLUSTER = 4  /* the whole cluster ends: nothing need be handed over */
} trp_shutdown_reason;

/* Begin the task and return: the function runs on an actor of the library, on the default
 * dispatcher, one task after the other. Each call is followed by one of trp_shutdown_done(). While
 * one blocks, or all threads of that dispatcher do, no other begins; phases are over at their
 * deadlines all the same, and a task that has not begun by then does not run. */
typedef void (*trp_shutdown_fn)(void *arg, uint64_t task);

/* Add a task to a phase. It runs at most once.
 *
 * Ownership: copies phase and name; borrows arg until the task has run or was removed, or the
 *            system has stopped.
 * Errors:    TRP_EINVAL  fn or ret_task is NULL; name is NULL, empty or too long
 *            TRP_ENOENT  there is no such phase
 *            TRP_ESTATE  the phase has begun, or is over
 *            TRP_ELIMIT  TRP_SHUTDOWN_TASKS_MAX reached
 *            TRP_ECONFIG the phases of the configuration go in a circle, or name what is not there
 *            TRP_ECLOSED the system has stopped
 *            TRP_ENOMEM  out of memory
 * Thread:    any; takes a lock for a moment.
 * Source:    docs/adr, decision 120.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_shutdown_add(trp_system *system, const char *phase,
                                                const char *name, trp_shutdown_fn fn, void *arg,
                                                uint64_t *ret_task);

/* Add the end of an actor to a phase: it is told trp_poison_pill, so that it handles what it was
 * told before, and the task is done when it has stopped. An actor that has stopped already is done
 * at once.
 *
 * Ownership: copies phase and name.
 * Errors:    as trp_shutdown_add; TRP_EINVAL  also: actor is TRP_REF_NONE
 * Thread:    any; takes a lock for a moment.
 * Source:    docs/adr, decision 120.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_shutdown_add_stop(trp_system *system, const char *phase,
                                                     const char *name, trp_ref actor,
                                                     uint64_t *ret_task);

/* Take a task away, unless it has begun. Returns 1 when it will not run.
 *
 * Errors:    none
 * Thread:    any; takes a lock for a moment.
 * Source:    docs/adr, decision 120.  Since: 0.1 */
TRP_API int trp_shutdown_remove(trp_system *system, uint64_t task);

/* Say that a task that runs has ended; err: it did not succeed, which is logged. Once more, or
 * after its phase, changes nothing.
 *
 * Errors:    none
 * Thread:    any; takes a lock for a moment.
 * Source:    docs/adr, decision 120.  Since: 0.1 */
TRP_API void trp_shutdown_done(trp_system *system, uint64_t task, trp_err err);

/* Begin the shutdown and return; from NULL: with the first phase, else with that one. Once it has
 * begun, this changes nothing. At its end a node tells trp_node_await(), which the program answers
 * with trp_node_close(); a system that is no node is stopped as by trp_system_shutdown().
 *
 * Errors:    TRP_EINVAL  no such reason
 *            TRP_ENOENT  there is no phase `from`
 *            TRP_ECONFIG, TRP_ECLOSED, TRP_ENOMEM  as trp_shutdown_add
 * Thread:    any; never blocks.
 * Source:    docs/adr, decision 120.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_shutdown_run(trp_system *system, trp_shutdown_reason reason,
                                                const char *from);

/* Return why the shutdown has begun; TRP_SHUTDOWN_NONE: it has not.
 *
 * Errors:    none
 * Thread:    any; takes a lock for a moment.
 * Source:    docs/adr, decision 120.  Since: 0.1 */
TRP_API trp_shutdown_reason trp_shutdown_reason_get(trp_system *system);

#ifdef __cplusplus
}
#endif
#endif /* TROUPE_SHUTDOWN_H */
