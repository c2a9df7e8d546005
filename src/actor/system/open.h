/* open.h - what the rooms above src/actor may use of the room system: part of actor/actor.h. */
#ifndef TRPI_ACTOR_SYSTEM_OPEN_H
#define TRPI_ACTOR_SYSTEM_OPEN_H

#include "actor/kernel/open.h"
#include "actor/system/held_turn.h"

/* ---- time, and a place for the cluster ------------------------------------------------------- */
/* Run fn(arg) once at or after `delay_ms`, on the timer's thread: short, must not block. *ret_id
 * may be cancelled; a cancel that returns true guarantees that fn does not and will not run. */
trp_err trpi_system_after(trp_system *system, uint64_t delay_ms, void (*fn)(void *arg), void *arg,
                          uint64_t *ret_id);
bool trpi_system_after_cancel(trp_system *system, uint64_t id);
/* Run again(arg) every interval_ms, on the timer's thread, until it returns false or *ret_id is
 * cancelled. Then over(arg), exactly once, on that thread or in the cancel, unless it is NULL;
 * after it arg is not touched. All memory is allocated now: a later step cannot fail.
 * Errors: TRP_ENOMEM, TRP_ECLOSED (no over). Thread: any. */
trp_err trpi_system_every(trp_system *system, uint64_t interval_ms, bool (*again)(void *arg),
                          void (*over)(void *arg), void *arg, uint64_t *ret_id);
/* Wait ms: sleep, or, in a driven world, run the timers and tasks that are due meanwhile. Thread:
 * any but a worker, outside of any run. */
void trpi_system_pass(trp_system *system, uint32_t ms);
/* Return how many turns the workers of the default dispatcher have ended so far, or more: a hint
 * that they are not stuck. Costs them nothing. Thread: any. */
uint64_t trpi_system_turns(trp_system *system);
/* One pointer per system for the cluster room, so that the public API finds the cluster of a system
 * without a global table. Set by the owner; NULL: none. Thread: any. */
void trpi_system_cluster_set(trp_system *system, void *cluster);
void *trpi_system_cluster_get(trp_system *system);

/* ---- for the test kit ------------------------------------------------------------------------ */
/* As trp_system_new, in the given world (shared; must outlive the system). NULL: a real world of
 * its own. */
trp_err trpi_system_new_in(trpi_world *world, const char *name, const trp_system_options *options,
                           trp_system **ret_system);
trpi_sched *trpi_system_sched(trp_system *system);
/* Is the caller inside a behaviour or hook of this system (then it must not block)? */
bool trpi_system_in_behaviour(const trp_system *system);
/* The state of an actor that runs on its senders' threads, or in a driven world; NULL: it is no
 * such actor, or has no instance. Thread: one at a time, while no other thread sends to the
 * actor. */
void *trpi_actor_state(trp_system *system, trp_ref ref);
/* Call the current behaviour of such an actor with a message; its failure is the caller's
 * (*ret_failure filled, may be NULL). Errors: TRP_ENOENT, TRP_EINVAL (a message that the runtime
 * handles), TRP_ESTATE (it runs, or takes no messages), TRP_ENOMEM, or the result of receive. */
trp_err trpi_actor_receive(trp_system *system, trp_ref ref, trp_ref sender, const trp_type *type,
                           const void *payload, size_t bytes, trp_failure *ret_failure);
/* Return the sender of a message that is held outside of a behaviour. */
trp_ref trpi_msg_sender_get(const trp_msg *msg);

/* Built-in types (stall.c). */
extern const struct trpi_type_part trpi_system_types;

#endif
