/* life.h - the room life: the fields of a system that belong to it, and the functions that its
 * files share.
 *
 * Threads. "runner" means: on the cell's thread, with its token held. Lock order: spawn lock of a
 * guardian -> registry shard; all other locks are leaves.
 */
#ifndef TRPI_ACTOR_LIFE_LIFE_H
#define TRPI_ACTOR_LIFE_LIFE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <troupe/interaction.h>
#include <troupe/system.h>

#include "actor/kernel/cell.h"
#include "actor/kernel/extra.h"
#include "actor/log/event_stream.h"
#include "actor/log/log.h"
#include "actor/naming/name.h"
#include "actor/naming/path.h"
#include "actor/naming/registry.h"
#include "actor/kernel/run.h"
#include "actor/kernel/system.h"
#include "actor/kernel/trace.h"
#include "actor/life/guardian_lock.h"
#include "actor/life/life_ops.h"
#include "actor/settings/options.h"
#include "actor/life/open.h"
#include "actor/life/sys.h"
#include "actor/nodes/nodes.h"

struct trpi_remote_watches;

typedef struct trpi_life_system {
    struct trpi_remote_watches *watches;
    trp_ref dead_letters, remote;
    trpi_guardian user, system;   /* .ref: set once, before the system is given out */
    trp_behaviour user_behaviour; /* of the user guardian, with its strategy by option */
    trp_strategy user_strategy;   /* a copy of guardian_strategy */
    bool user_ended, remote_ended, system_ended; /* root's runner only */
    trpi_cond cond;                              /* guards terminated */
    _Atomic bool terminated;                     /* written under its lock; relaxed look without */
    _Atomic bool shutdown;                       /* ordered; first exchange wins */
    _Atomic bool scheduler_closed;               /* release / acquire */
    _Atomic uint32_t dead_logged;                /* dead letters logged so far, relaxed */
    void *dead_watch_arg;                        /* written before the next, once */
    _Atomic(trpi_dead_fn) dead_watch;            /* NULL: nobody; release / acquire */
    _Atomic(trpi_carried_fn) carried;            /* release / acquire; NULL: as they are */
    pthread_mutex_t restarts_lock;               /* a leaf: restarts */
    struct trpi_observed_names *restarts;        /* NULL: there were none */
} trpi_life;

/* ---- children.c: runner of the parent -------------------------------------------------------- */
void trpi_child_link(trp_ctx *ctx, trpi_cell *parent, trpi_cell *child);
/* Unlink a child that has ended; release its name and slot. */
void trpi_child_unlink(trp_ctx *ctx, trpi_cell *parent, trpi_cell *child);
/* Give up a child that is linked and not published. */
void trpi_child_abandon(trp_ctx *ctx, trpi_cell *parent, trpi_cell *child);
/* Give an acquired cell its name, arguments, parent and depth; it is not linked yet. On an error
 * nothing is left behind; else, until publication, unprepare undoes it. Thread: any that holds the
 * cell's token. Errors: as trp_spawn. */
trp_err trpi_child_prepare(trp_ctx *ctx, trpi_cell *parent, trpi_cell *cell,
                           const trp_spawn_options *options);
void trpi_child_unprepare(trp_ctx *ctx, trpi_cell *cell);
/* The live child of that ref; NULL: not a child of parent. */
trpi_cell *trpi_child_find(trp_ctx *ctx, const trpi_cell *parent, trp_ref ref);
/* The first child, and the next one; NULL at the end. */
trpi_cell *trpi_child_first(trp_ctx *ctx, const trpi_cell *parent);
trpi_cell *trpi_child_after(trp_ctx *ctx, const trpi_cell *child);
/* Send it a stop and count it among the dying children; once. */
void trpi_child_stop(trp_ctx *ctx, trpi_cell *parent, trpi_cell *child);
void trpi_children_stop(trp_ctx *ctx, trpi_cell *parent);
/* Is this the system guardian? */
bool trpi_children_are_loggers(trp_system *system, const trpi_cell *cell);
/* The system guardian is stopping: stop its children but the loggers, and the loggers when they are
 * the last. Thread: its runner. */
void trpi_children_spare_loggers(trp_ctx *ctx, trpi_cell *guardian);
void trpi_children_tell(trp_ctx *ctx, const trpi_cell *parent, enum trpi_sys kind, trp_ref except);
/* Spawn below a guardian from any thread. */
trp_err trpi_spawn_outside(trp_system *system, trpi_guardian *guardian, const char *dispatcher,
                           const trp_behaviour *behaviour, const trp_spawn_options *options,
                           trp_ref *ret_ref);

/* ---- life.c, restart.c, orders.c: runner ----------------------------------------------------- */
void trpi_life_stop(trp_ctx *ctx, trpi_cell *cell);
/* Send a stop to any actor, on this node or another; the parent's count of dying children is not
 * changed. Thread: any. */
void trpi_stop_send(trp_ctx *ctx, trp_ref ref);
/* A child has ended, or a spawn from outside arrived: go on with a stop or restart that waited for
 * it. */
void trpi_life_check(trp_ctx *ctx, trpi_cell *cell);
/* Free everything that belongs to the instance: deferred calls, memory, state, timers, asks,
 * watches, behaviours. */
void trpi_life_instance_end(trp_ctx *ctx, trpi_cell *cell);
/* Fail with a cause that came from `perpetrator` (none: from this actor). */
void trpi_life_fail(trp_ctx *ctx, trpi_cell *cell, const trp_failure *what, const trp_msg *msg,
                    trp_ref perpetrator, bool skip_survivors);
/* recovers: its children stay. Takes why. */
void trpi_life_restart(trp_ctx *ctx, trpi_cell *cell, bool recovers, trpi_failure *why);
void trpi_life_restart_finish(trp_ctx *ctx, trpi_cell *cell);
void trpi_life_resume(trp_ctx *ctx, trpi_cell *cell, bool answers_failure);
/* The failure was answered: forget its message and the child that caused it. */
void trpi_life_failure_clear(trpi_cell *cell);
/* Handle the system messages that waited for the end of a restart, or of the actor's own
 * failure. */
void trpi_life_unpark(trp_ctx *ctx, trpi_cell *cell);
/* Release the system messages that still wait when the actor ends. */
void trpi_parked_drop(trpi_extra *extra);
/* Run a hook of the behaviour; its failure is in ctx->failure (reason and err filled). msg: for
 * trp_sender. */
enum trpi_hook {
    TRPI_HOOK_PRE_START,
    TRPI_HOOK_POST_STOP,
    TRPI_HOOK_PRE_RESTART,
    TRPI_HOOK_POST_RESTART
};
trp_err trpi_life_hook(trp_ctx *ctx, trpi_cell *cell, enum trpi_hook hook, const trp_failure *why,
                       const trp_msg *msg);
/* State memory for a fresh instance. Errors: TRP_ENOMEM. */
trp_err trpi_life_state_new(trpi_cell *cell);

/* ---- supervise.c: runner of the supervisor --------------------------------------------------- */
void trpi_supervise_failed(trp_ctx *ctx, trpi_cell *cell, trp_ref child,
                           trpi_failure *why); /* takes why */
void trpi_supervise_forget(trp_ctx *ctx, trpi_cell *cell, trp_ref child);
void trpi_supervise_clear(trp_system *system, trpi_extra *extra);

/* ---- restart_later.c: runner of the supervisor ----------------------------------------------- */
/* A restart that waits for the end of a pause, and what decides how long it is. */
typedef struct trpi_pause {
    uint64_t timer;    /* 0: no restart waits */
    trpi_failure *why; /* counted; of the restart that waits */
    uint64_t due_ms;   /* when it came, or comes */
    uint16_t recover;
    uint32_t number; /* of the pauses in a row */
} trpi_pause;
/* Begin the next pause of a child, and return how long it is. */
uint32_t trpi_pause_next_ms(trp_ctx *ctx, trpi_pause *pause, uint32_t min_ms, uint32_t max_ms);
/* Restart it then; now, where there is no timer. */
void trpi_restart_later(trp_ctx *ctx, trpi_pause *pause, trp_ref child, uint32_t delay_ms,
                        uint16_t recover, trpi_failure *why);
/* The same now, if one waits. */
void trpi_pause_end(trp_ctx *ctx, trpi_pause *pause, trp_ref child);
void trpi_pause_fini(trp_system *system, trpi_pause *pause);

/* ---- watch.c --------------------------------------------------------------------------------- */
/* Make `watcher` (a local actor, or a promise) a watcher of ref. Errors: TRP_ENOMEM. */
trp_err trpi_watch_send(trp_ctx *ctx, trp_ref watcher, trp_ref ref);
void trpi_unwatch_send(trp_ctx *ctx, trp_ref watcher, trp_ref ref);
/* runner of the watched */
void trpi_watch_add(trp_ctx *ctx, trpi_cell *cell, trp_ref watcher, trp_msg *prepared);
void trpi_watcher_remove(trp_ctx *ctx, trpi_cell *cell, trp_ref watcher);
/* Remove all watchers on a node that is lost. */
void trpi_watch_remove_node(trp_ctx *ctx, trpi_cell *cell, uint32_t node);
/* Answer a watch whose target has ended. Takes prepared. */
void trpi_watch_answer(trp_ctx *ctx, trp_ref watcher, trp_msg *prepared, bool existence_confirmed);
/* Notify all watchers; empties the map. */
void trpi_watchers_notify(trp_ctx *ctx, trpi_ref_map *watchers);
/* runner of the watcher */
void trpi_watch_end_all(trp_ctx *ctx, trpi_cell *cell);
/* May this Terminated be seen? Ends the watch. */
bool trpi_watch_admit(trpi_cell *cell, const trp_msg *msg);
trp_err trpi_remote_watches_new(struct trpi_remote_watches **ret_watches);
void trpi_remote_watches_free(struct trpi_remote_watches *watches);
/* An actor of another node watches target: the record is removed with the node or the target. */
void trpi_remote_watch_inbound(trp_system *system, trp_ref watcher, trp_ref target);
void trpi_remote_unwatch_inbound(trp_system *system, trp_ref watcher, trp_ref target);
/* A node is lost: notify the local watchers of its actors, and remove its actors as watchers
 * here. */
void trpi_node_watchers_notify(trp_system *system, uint32_t node);
/* Only notify the local watchers: the node may still be there, so its own watches stay. left: it
 * stopped in good order and still handles what it has, so the parents of remote children there wait
 * for the end of each. */
void trpi_node_lost_notify(trp_system *system, uint32_t node, bool left);
/* A Terminated arrived from another node. */
void trpi_remote_watch_terminated(trp_ctx *ctx, trp_ref watcher, trp_ref ref,
                                  bool existence_confirmed);

/* ---- life_types.c: internal types, opaque and local ------------------------------------------ */
extern trp_type trpi_timer_type, trpi_continue_type, trpi_withdrawn_type, trpi_mark_type;
extern trp_type trpi_ask_unhandled_type; /* travels: the asked actor did not handle the question */

/* ---- ask.c ----------------------------------------------------------------------------------- */
/* runner; a TRPI_TYPE_CONTINUE. An error: the actor fails with ctx->failure, at *ret_reply. */
trp_err trpi_ask_continue(trp_ctx *ctx, trpi_cell *cell, trp_msg *msg, const trp_msg **ret_reply);
void trpi_asks_drop(trp_ctx *ctx, trpi_cell *cell); /* runner */
/* A CONTINUE reached no actor: its reply is late. */
void trpi_ask_late(trp_ctx *ctx, const trp_msg *msg);
/* A message of sender, perhaps a promise, did not reach `asked`: the ask ends with err. */
void trpi_ask_dead(trp_ctx *ctx, trp_ref sender, trp_ref asked, trp_err err);
/* The same; any: whichever actor was asked first. `asked` is the last one that had the message. */
void trpi_ask_dead_of(trp_ctx *ctx, trp_ref sender, trp_ref asked, trp_err err, bool any);

/* ---- scheduler.c ----------------------------------------------------------------------------- */
/* The tree has ended: run the scheduled functions that are left, drop the messages. */
void trpi_schedules_close(trp_system *system);

/* ---- timers.c: runner ------------------------------------------------------------------------ */
/* An error: a repeating timer cannot go on, and the actor fails. */
trp_err trpi_timer_tick(trp_ctx *ctx, trpi_cell *cell, const trp_msg *msg);
void trpi_timers_drop(trp_ctx *ctx, trpi_cell *cell);
void trpi_receive_timeout_check(trp_ctx *ctx, trpi_cell *cell, uint64_t number);
void trpi_receive_timeout_deliver(trp_ctx *ctx, trpi_cell *cell, trp_msg *msg);

/* ---- receive_filter.c ------------------------------------------------------------------------ */
/* The receive function that refuses msg; NULL: the behaviour gets it. runner */
trp_receive_fn trpi_filter_receive(const trpi_cell *cell, const trp_msg *msg);
/* Set or clear TRPI_MARK_BECOME, by behaviour and side block. runner */
void trpi_receive_mark(trpi_cell *cell);
void trpi_filter_active_set(trpi_cell *cell, bool active); /* runner */
void trpi_filter_active_send(trp_ctx *ctx, trp_ref ref, bool active);
/* The behaviour of a live actor, read from any thread; NULL: the cell is no actor, or has ended. */
const trp_behaviour *trpi_look_behaviour(const trpi_cell *cell, uint32_t generation);

/* observed_names.c: an actor was restarted; its runner. */
void trpi_restart_note(trp_ctx *ctx, const trpi_cell *cell);

/* ---- pending.c ------------------------------------------------------------------------------- */
void trpi_errand_run(trpi_cell *cell, void *errand); /* runner */
void trpi_errand_gone(void *errand);
uint32_t trpi_pending_count(trpi_cell *cell); /* runner */

/* ---- stash.c, memory.c: runner --------------------------------------------------------------- */
void trpi_stash_to_front(trpi_cell *cell);
/* Put msg before all that waits. Takes msg, on success only; false: no memory. */
bool trpi_front_put(trpi_cell *cell, trp_msg *msg);
void trpi_stash_drain(trp_ctx *ctx, trpi_cell *cell);
void trpi_levels_drop(trpi_cell *cell);
/* Take the stack of trp_become() out of an actor, and put one back that has none; NULL: empty. */
trpi_level *trpi_levels_take(trpi_cell *cell);
void trpi_levels_put(trpi_cell *cell, trpi_level *levels);
void trpi_levels_free(trpi_level *level);
void trpi_memory_drop(trp_ctx *ctx, trpi_cell *cell);

/* ---- select.c -------------------------------------------------------------------------------- */
/* Deliver to the actors that text selects; a relative path starts at anchor. Errors: as
 * trp_select_tell. */
trp_err trpi_select(trp_ctx *ctx, trp_ref anchor, const char *text, trp_ref sender,
                    const trp_msg *msg);
void trpi_select_step(trp_ctx *ctx, trpi_cell *cell, void *selecting,
                      uint64_t element); /* runner */
void trpi_select_lost(trp_ctx *ctx, void *selecting, uint64_t element);
void trpi_select_drop(void *selecting); /* the system is being freed */

/* Pass on a selection below an actor of another node: to base, its path there. Takes selecting.
 * runner */
void trpi_select_beyond(trp_ctx *ctx, const trpi_address *address, const char *base,
                        void *selecting, uint64_t element);

/* ---- service.c ------------------------------------------------------------------------------- */
/* Send a cell TRPI_SYS_ALARM after delay_ms. Errors: as trpi_timer_add. */
trp_err trpi_alarm_add(trp_system *system, trp_ref ref, uint32_t delay_ms, uint64_t *ret_id);

/* ---- marks.c --------------------------------------------------------------------------------- */
void trpi_mark_reached(const trp_msg *msg); /* a TRPI_TYPE_MARK; once */

/* ---- tree.c ---------------------------------------------------------------------------------- */
void trpi_inspect_answer(trp_ctx *ctx, trpi_cell *cell, void *inspection,
                         uint64_t place); /* runner */
void trpi_inspect_gone(trp_ctx *ctx, void *inspection, uint64_t place);
/* Call fn for each actor that does not answer within grace_ms (silent), and, where all answer, for
 * those without children, for which the others wait. Errors: TRP_ENOMEM. */
trp_err trpi_tree_unended_each(trp_system *system, uint32_t grace_ms,
                               void (*fn)(void *arg, trp_ref ref, bool silent), void *arg);

/* ---- guardian.c, shutdown.c ------------------------------------------------------------------ */
trp_err trpi_guardians_new(trp_system *system);
bool trpi_guardian_is_root(const trpi_cell *cell);
/* The guardian of a cell that takes children from outside; NULL for all others. */
trpi_guardian *trpi_guardian_of(trp_system *system, const trpi_cell *cell);
/* runner of the root: a guardian has ended. true: handled */
void trpi_root_child_ended(trp_ctx *ctx, trpi_cell *root, trp_ref child);
void trpi_root_stop(trp_ctx *ctx, trpi_cell *root);
void trpi_root_ended(trp_system *system);

/* ---- sample.c -------------------------------------------------------------------------------- */
/* Does the present message begin a trace at this sampled actor? runner */
bool trpi_sample_hits(const trp_ctx *ctx, trpi_cell *cell);
/* The receive function of such a message: the actor's own, inside a trace. */
trp_err trpi_sampled_receive(trp_ctx *ctx, void *state, const trp_msg *msg);
void trpi_sample_set(trpi_cell *cell, uint32_t one_in); /* runner */
void trpi_sample_look(trp_ctx *ctx, trpi_cell *cell);   /* by its path; runner */

/* ---- dead_letter.c --------------------------------------------------------------------------- */
/* The known facts about a message that reached no actor; all borrowed. */
typedef struct trpi_loss {
    trp_ref sender, recipient;
    trp_dead_reason reason;
    const trp_type *type; /* NULL: unknown */
    const void *payload;  /* NULL: the bytes, if any, are not available */
    size_t bytes;
    const trp_interaction *interaction; /* NULL: none */
    const trpi_trailer *traced;         /* NULL: it is in no trace */
    const char *path;                   /* the recipient's, where there is no ref; or NULL */
} trpi_loss;
/* The loss of msg. */
trpi_loss trpi_loss_of(trp_ref recipient, const trp_msg *msg, trp_dead_reason reason);
/* Log and publish a loss that is counted already. */
void trpi_dead_announce(trp_ctx *ctx, const trpi_loss *loss);

/* ---- hooks of turns and tells, for system/tables.c; contracts: kernel_ops.h ------------------ */
void trpi_life_start(trp_ctx *ctx, trpi_cell *cell);
void trpi_life_system(trp_ctx *ctx, trpi_cell *cell, trpi_sysmsg *sysmsg);
void trpi_life_system_stale(trp_ctx *ctx, trpi_cell *cell, uint32_t slot, trpi_sysmsg *sysmsg);
void trpi_life_system_drop(trp_system *system, trpi_sysmsg *sysmsg);
void trpi_life_auto(trp_ctx *ctx, trpi_cell *cell, trp_msg *msg);
void trpi_life_failed(trp_ctx *ctx, trpi_cell *cell, const trp_failure *failure, trp_msg *msg);
trp_msg *trpi_life_front(trp_ctx *ctx, trpi_cell *cell);
trp_receive_fn trpi_life_receive(trp_ctx *ctx, trpi_cell *cell);
void trpi_life_touched(trp_ctx *ctx, trpi_cell *cell);
void trpi_life_dead(trp_ctx *ctx, trp_ref to, const trp_msg *msg, trp_dead_reason reason);
void trpi_life_unhandled(trp_ctx *ctx, trpi_cell *cell, const trp_msg *msg);

/* ---- spawn.c, children.c --------------------------------------------------------------------- */
/* trp_spawn, after the slot was acquired and behaviour, dispatcher were set: check and reserve the
 * name, keep args, link cell into parent's children (caller is parent's runner). On error nothing
 * is left behind. */
trp_err trpi_life_prepare(trp_ctx *ctx, trpi_cell *parent, trpi_cell *cell,
                          const trp_spawn_options *options);
/* Check behaviour, find the dispatcher of options (NULL: default) and set cell->task by it. */
trp_err trpi_spawn_check(const trp_behaviour *behaviour, const trp_spawn_options *options);
/* A spawn was refused: log the details that the error lacks, such as the name of a type or
 * dispatcher. */
void trpi_spawn_refused(trp_system *system, const trp_behaviour *behaviour,
                        const trp_spawn_options *options, trp_err err);
/* Undo it for a cell that will not be published. */
void trpi_spawn_dispatcher_undo(trp_ctx *ctx, trpi_cell *cell);
/* Make a child of the running parent, up to its publication. On an error the slot is given back,
 * too. Errors: as trp_spawn. */
trp_err trpi_spawn_conceive(trp_ctx *ctx, trpi_cell *parent, trpi_cell *cell,
                            const trp_behaviour *behaviour, const trp_spawn_options *options);
trp_err trpi_spawn_dispatcher(trp_ctx *ctx, trpi_cell *cell, const trp_spawn_options *options,
                              const char *default_dispatcher);

/* ---- round_trip.c ---------------------------------------------------------------------------- */
/* Are there serializers? */
bool trpi_round_trip_can(void);
/* Replace a message that was not sent yet by the one that another node would get; a local type is
 * left alone. Errors: those of trpi_round_trip_ops, logged; *msg is as it was. */
trp_err trpi_round_trip(trp_ctx *ctx, trp_msg **msg);

/* ---- guardian.c; system/stop.c --------------------------------------------------------------- */
/* After tables and scheduler are made and started: make guardians and whatever life needs.
 * On failure everything that it made is gone again, but for cells. */
trp_err trpi_life_system_new(trp_system *system);
/* Before threads stop: nothing runs user code after it returned. Called by trp_system_free; the
 * tree has been stopped by trp_system_stop, or was never used. */
void trpi_life_system_stop(trp_system *system);
/* Threads have ended: free. */
void trpi_life_system_free(trp_system *system);

/* ---- ahead.c --------------------------------------------------------------------------------- */
void trpi_ahead_put(trp_ctx *ctx, trpi_cell *cell, trp_msg *msg);   /* takes msg */
void trpi_ahead_lost(trp_system *system, trp_ref to, trp_msg *msg); /* takes msg */

#endif
