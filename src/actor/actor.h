/* actor.h - the door of the actor room: what remote/, cluster/ and pattern/ may use beyond the
 * public API. Everything here is a value, a function or an ops struct that the upper room
 * registers.
 */
#ifndef TRPI_ACTOR_ACTOR_H
#define TRPI_ACTOR_ACTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <troupe/system.h>

#include "actor/settings/settings.h"
#include "actor/kernel/type.h"
#include "base/address.h"
#include "base/buffer.h"
#include "base/world.h"
#include "sched/sched.h"

/* ---- nodes ----------------------------------------------------------------------------------- */
/* Node numbers are what trp_ref.node holds: an index into the system's node table, with a
 * generation: one (address, uid) until that has ended, and then nobody. Number 0 is nobody;
 * TRPI_NODE_SELF is the system itself. An entry with uid 0 names whoever lives at the address. */
#define TRPI_NODE_SELF 1u
#define TRPI_NODES_MAX 0xffffffu /* 24 bits in a message */

/* Find or add; it stands until trpi_node_terminated(), and may have ended already. Errors:
 * TRP_ELIMIT (all numbers are in use), TRP_ENOMEM. Thread: any. */
trp_err trpi_node_intern(trp_system *system, const trpi_node_id *id, uint32_t *ret_node);
/* The same of a node that has shown that it lives: it never has a number that has ended. */
trp_err trpi_node_meet(trp_system *system, const trpi_node_id *id, uint32_t *ret_node);
/* It has ended as soon as this returns; the caller says trpi_node_terminated() soon, without its
 * locks. Thread: any. */
void trpi_node_doom(trp_system *system, uint32_t node);
/* Thread: any, in a run or entered. */
bool trpi_node_has_ended(trp_system *system, uint32_t node);
/* Find or add a node that a peer has named: beyond share_max of those that were named by whoever
 * has this key, the one that was named longest ago is terminated. Errors: as trpi_node_intern().
 * Thread: any, without a lock that trpi_node_terminated() takes. */
trp_err trpi_node_introduce(trp_system *system, const trpi_node_id *id, uint64_t by,
                            uint32_t share_max, uint32_t *ret_node);
/* From now on it is as if this one had only been named so; it may be ended already. */
void trpi_node_release(trp_system *system, uint32_t node, uint64_t by, uint32_t share_max);
/* The number that it has; 0: none, so no reference of it was ever seen here. */
uint32_t trpi_node_find(trp_system *system, const trpi_node_id *id);
/* Borrow the identity of a node, valid until the caller's run ends, or its trpi_leave(); NULL: no
 * such number (any more). Thread: any, in a run or entered. */
const trpi_node_id *trpi_node_id_get(trp_system *system, uint32_t node);
/* Own identity. The uid is random from birth; the address becomes remote by
 * trpi_system_advertise(), to be called once, before the first remote message. Thread: owner. */
const trpi_node_id *trpi_system_self(trp_system *system);
void trpi_system_advertise(trp_system *system, const trpi_address *address);
trpi_world *trpi_system_world(trp_system *system);

/* ---- telling from any thread ----------------------------------------------------------------- */
/* The calling thread's ctx for this system: the worker's own one inside a run, else the thread's
 * foreign ctx, bracketed (reclamation, chains pushed at leave). Nests. Never NULL: without memory
 * it waits for some. */
trp_ctx *trpi_enter(trp_system *system);
void trpi_leave(trp_ctx *ctx);
/* Tell with any sender; to may be remote, stale or none. */
void trpi_tell(trp_ctx *ctx, trp_ref to, trp_ref sender, const trp_type *type, const void *payload,
               size_t bytes);
/* Tell a message whose sender and type are set. Takes msg. */
void trpi_send(trp_ctx *ctx, trp_ref to, trp_msg *msg);
/* The same in the name of another sender. */
void trpi_send_as(trp_ctx *ctx, trp_ref to, trp_ref sender, trp_msg *msg);
/* Count msg as lost for `to` and publish it as a dead letter, unless it is stored; borrows msg. */
void trpi_dead(trp_ctx *ctx, trp_ref to, const trp_msg *msg, trp_dead_reason reason);
const char *trpi_dead_reason_text(trp_dead_reason reason); /* "stopped" */

/* ---- serialize-messages: what is told here goes through its serializer and back ----------------
 * The upper room that has the serializers registers once, for the process, before main(). */
typedef struct trpi_round_trip_ops {
    /* Append what a receiver on another node would get for this payload. Inside a run, or entered.
     * Errors: TRP_ENOTYPE (does not travel), TRP_EDATA (cannot be read again), TRP_ELIMIT,
     * TRP_ENOMEM. */
    trp_err (*payload)(trp_system *system, const trp_type *type, const void *payload, size_t bytes,
                       trpi_buffer *out);
} trpi_round_trip_ops;
void trpi_round_trip_register(const trpi_round_trip_ops *ops);

/* ---- messages that were kept elsewhere ------------------------------------------------------- */
/* A message as if `sender` had told it to `to`; copies payload. Gives *ret_msg. Errors: TRP_ENOMEM,
 * TRP_EINVAL (bytes are not those of the type). Thread: any. */
trp_err trpi_msg_restore(trp_ref to, trp_ref sender, const trp_type *type, const void *payload,
                         size_t bytes, trp_msg **ret_msg);
/* Is it one of those that the library itself tells, and no mailbox is asked about? */
bool trpi_msg_is_own(const trp_msg *msg);

/* A durable mailbox has stored what it was asked to admit: from now on msg is a token, and when it
 * reaches nobody it is no dead letter, for what it stands for is handled by the next owner. Thread:
 * admit's; msg is not told yet, so that nobody else has it. */
#define TRPI_MSG_MANY 0x08000000u /* flag of a header: a router gave it to several */
#define TRPI_MSG_STORED 0x20000000u /* flag of a header; until the mailbox takes the token */
static inline void
trpi_msg_stored(const trp_msg *msg)
{
    ((trp_msg *)(uintptr_t)msg)->priv_from_node_flags |= TRPI_MSG_STORED;
}

/* ---- routed actors: who tells them is asked first where to --------------------------------------
 * An actor of kind router is an actor like any other (mailbox, life, supervision, watch, path), but
 * what it is told goes through `route`, on the teller's thread, and to its mailbox only when route
 * says so. Its first children are made before anybody knows it, so it can route from the first
 * tell on. */
typedef struct trpi_routed_ops {
    /* Any thread, several at once; inside a run, or between trpi_enter() and trpi_leave(): what is
     * retired with trpi_system_retire() stays until route has returned. true: it took msg. false:
     * msg goes to the actor's own mailbox. */
    bool (*route)(void *arg, trp_ctx *ctx, trp_ref self, trp_msg *msg);
    /* The actor has ended: no call of route begins any more, some may be under way. Its thread. */
    void (*ended)(void *arg, trp_system *system);
} trpi_routed_ops;
typedef struct trpi_embryo trpi_embryo;
/* Spawn a routed child of the running actor; ctx NULL: of /user, from any thread of `system`.
 * make(arg, embryo) is called before the actor is known; on its error, and on any other, nothing is
 * left behind and ended() is not called. Errors: as trp_spawn; those of make. */
trp_err trpi_spawn_routed(trp_ctx *ctx, trp_system *system, const trp_behaviour *behaviour,
                          const trp_spawn_options *options, const trpi_routed_ops *ops, void *arg,
                          trp_err (*make)(void *arg, trpi_embryo *embryo), trp_ref *ret_ref);
/* During make: a child of the actor that is being made. It runs when the actor is known. Errors: as
 * trp_spawn. */
trp_err trpi_embryo_spawn(trpi_embryo *embryo, const trp_behaviour *behaviour,
                          const trp_spawn_options *options, trp_ref *ret_ref);
/* What the actor's ref will be, and the path that it, or a child made here, will have. */
trp_ref trpi_embryo_ref(const trpi_embryo *embryo);
size_t trpi_embryo_path(const trpi_embryo *embryo, trp_ref ref, char *buffer, size_t bytes);
/* What a teller can see of an actor without asking it. A hint: it changes meanwhile. */
typedef struct trpi_look {
    bool local;     /* false: on another node, all else is unknown */
    bool alive;
    bool suspended; /* it, or one above it, has failed */
    bool busy;      /* it runs, or waits for a thread to run on */
    bool empty;     /* it is not busy and has no mail */
    uint64_t handled; /* messages so far, with the one that it is at */
    bool counted;     /* its mailbox knows how many wait: */
    uint32_t pending;
} trpi_look;
void trpi_actor_look(trp_ctx *ctx, trp_ref ref, trpi_look *ret_look);
/* Write the refs of actors of this system that run or have mail, but for the running one; `max` at
 * most. Those that are suspended, and those that stand for others elsewhere, do not count. Returns
 * how many. */
uint32_t trpi_actors_busy(trp_ctx *ctx, trp_ref *ret_refs, uint32_t max);
/* The actor at a path of this system without wildcards ("/user/a", or with the own address), now;
 * TRP_REF_NONE: nobody. *ret_remote: it is another node's. Errors: TRP_EINVAL. Thread: any. */
trp_err trpi_path_find(trp_system *system, const char *path, trp_ref *ret_ref, bool *ret_remote);
/* A ref as text: its node's address, a path for people ("/": not known), the uid of the actor, "@",
 * that of the node. buffer: TRP_REF_TEXT_BYTES. Errors: TRP_EMSGSIZE. Any thread. */
trp_err trpi_ref_text_format(const trpi_node_id *id, const char *path, trp_ref ref, char *buffer,
                             size_t bytes);
/* Take such a text apart, or a path: uids that are not there are 0. *ret_path: where the path
 * begins in text; the address before it is zeros when text begins with it. Errors: TRP_EINVAL. */
trp_err trpi_ref_text_parse(const char *text, trpi_node_id *ret_id, const char **ret_path,
                            trp_ref *ret_ref);
/* The path that an actor will have whose mailbox is being made (trp_mailbox_ops.create). Returns
 * its length; 0: it has no name of its own, or the path does not fit. */
size_t trpi_path_unborn(trp_system *system, trp_ref ref, char *buffer, size_t bytes);
/* The same, with automatic names: 0: it does not fit. */
size_t trpi_path_unborn_auto(trp_system *system, trp_ref ref, char *buffer, size_t bytes);
/* The arg of a live actor routed by these ops; NULL: ref is none. It stays until trpi_leave() of
 * the caller's bracket, or the end of its run. */
void *trpi_routed_find(trp_ctx *ctx, trp_ref ref, const trpi_routed_ops *ops);

/* ---- names besides paths: aliases, categories ------------------------------------------------ */
enum trpi_directory_kind {
    TRPI_DIRECTORY_ALIAS = 0, /* one member */
    TRPI_DIRECTORY_CATEGORY = 1,
    TRPI_DIRECTORY_KINDS = 2
};
typedef struct trpi_member {
    trp_ref ref;
    uint64_t sent, base; /* of who visits; under the directory's lock */
} trpi_member;
/* In a run or a bracket, all three. Errors: as trp_alias_set, trp_category_join. */
trp_err trpi_directory_add(trp_ctx *ctx, enum trpi_directory_kind kind, const char *name,
                           trp_ref ref);
/* name NULL: all; ref none: all members. TRP_ENOENT: there was nothing to remove. */
trp_err trpi_directory_remove(trp_ctx *ctx, enum trpi_directory_kind kind, const char *name,
                              trp_ref ref);
/* Visit the members that live, in the order in which they came; name NULL: of all names. fn is
 * called under a lock: short, telling nobody; NULL: they are only counted. */
uint32_t trpi_directory_each(trp_ctx *ctx, enum trpi_directory_kind kind, const char *name,
                             void (*fn)(void *arg, const char *name, trpi_member *member),
                             void *arg);
/* Tell, and say what came of it. Errors: TRP_ENOENT (it has ended: no dead letter), TRP_EUNHANDLED
 * (its will_receive refuses), TRP_EAGAIN (its mailbox is full), TRP_ENOTYPE, TRP_ENOMEM. */
trp_err trpi_offer(trp_ctx *ctx, trp_ref to, trp_ref sender, const trp_type *type,
                   const void *payload, size_t bytes);

/* Have receive handle a message that nobody queued, now, as part of the running actor. Borrows
 * payload. Returns what receive returns. */
trp_err trpi_receive_inside(trp_ctx *ctx, trp_receive_fn receive, void *state, trp_ref sender,
                            const trp_type *type, const void *payload, size_t bytes);

/* ---- services: cells that are no actors --------------------------------------------------------
 * What is told to the ref of a service is handed to its ops, one at a time, on a worker of the
 * default dispatcher. It has no children, no supervisor, and ends when an op says so. */
typedef struct trpi_service_ops {
    const char *name;
    /* One message; borrows msg. false: the service has ended. */
    bool (*deliver)(void *arg, trp_ctx *ctx, trp_ref self, const trp_msg *msg);
    /* The alarm went off. *ret_again_ms: when to call again, 0: never. false: ended. */
    bool (*alarm)(void *arg, trp_ctx *ctx, trp_ref self, uint32_t *ret_again_ms);
    /* It has ended, or the system has: free arg. Once. */
    void (*release)(void *arg);
    /* What was told in this service's name met `asked`, which is dead or cannot be reached (err).
     * false: ended. NULL: the service waits for its alarm. */
    bool (*dead)(void *arg, trp_ctx *ctx, trp_ref asked, trp_err err);
} trpi_service_ops;
/* Takes arg on success. alarm_ms 0: none. Thread: any, between enter and leave or in a run.
 * Errors: TRP_ENOMEM, TRP_ELIMIT (actors-max), TRP_ECLOSED (the timers have stopped). */
trp_err trpi_service_new(trp_ctx *ctx, const trpi_service_ops *ops, void *arg, uint32_t alarm_ms,
                         trp_ref *ret_ref);
/* The same for a caller without a ctx. Thread: any. */
trp_err trpi_system_service_new(trp_system *system, const trpi_service_ops *ops, void *arg,
                                uint32_t alarm_ms, trp_ref *ret_ref);

/* ---- proxies: cells that carry messages to another node -------------------------------------- */
/* A proxy is a cell of kind "association": tells to refs of its node land in its mailbox, with
 * chains, deferral and order as for any actor, and are handed out one by one on a worker of the
 * default dispatcher. */
typedef struct trpi_proxy_ops {
    /* Encode one message. Borrows msg until return (out-of-line payloads may be kept with
     * trpi_msg_payload_take()). to_slot/to_generation are in msg's header. Must not block. */
    void (*deliver)(void *arg, trp_system *system, trp_msg *msg);
    /* The run ends: flush what deliver gathered; more: another run follows for sure, so little may
     * wait for it. true: the lane is above its high-water mark, treat the proxy as overloaded
     * (senders are deferred) until trpi_proxy_ready() or the next run says otherwise. */
    bool (*flush)(void *arg, trp_system *system, bool more);
    /* The node has ended and all was handed out, or the system is being freed; no op is called
     * after this one. Without any lock. May be NULL. */
    void (*release)(void *arg);
    /* trp_try_tell(): is there room for so many bytes of payload to that slot? true is a promise: a
     * message with TRPI_MSG_PROMISED is on its way to deliver(), which keeps it. Thread: any; must
     * not block. NULL: there always is. */
    bool (*admit)(void *arg, uint32_t slot, size_t bytes);
    /* A promise is given back: its message found no memory. */
    void (*forgo)(void *arg, size_t bytes);
    /* Somebody was refused and waits: trpi_proxy_ready() is due when there is room, at once when
     * there is already. Not called with any lock held. */
    void (*refused)(void *arg, uint32_t slot, size_t bytes);
    /* Is this recipient behind, so that who tells it is to be slowed? Asked by tellers after
     * trpi_proxy_slow(). Thread: any; must not block. */
    bool (*slows)(void *arg, uint32_t slot);
} trpi_proxy_ops;
#define TRPI_MSG_PROMISED 0x40000000u /* flag of a header; only on its way to a proxy */
/* Make node `node` reachable through a proxy. Thread: any. Errors: TRP_ENOMEM, TRP_EEXIST,
 * TRP_ECLOSED (it has ended). */
trp_err trpi_proxy_attach(trp_system *system, uint32_t node, const trpi_proxy_ops *ops, void *arg);
/* The lane drained below its low-water mark: tellers are not deferred any more, and actors whose
 * trp_try_tell() was refused are told. Thread: any, without locks. */
void trpi_proxy_ready(trp_system *system, uint32_t node);
/* Tellers are to ask ops->slows() from now on, or need not. Thread: any; locks may be held. */
void trpi_proxy_slow(trp_system *system, uint32_t node, bool slow);
/* Has all that was told to this node before been delivered and flushed? Thread: any. */
bool trpi_proxy_is_idle(trp_system *system, uint32_t node);

/* ---- what remoting registers -------------------------------------------------------------------
 * */
enum trpi_remote_signal { /* reliable system messages between nodes; numbers are wire numbers */
                          TRPI_SIGNAL_WATCH = 1, /* from watches target */
                          TRPI_SIGNAL_UNWATCH = 2,
                          TRPI_SIGNAL_TERMINATED = 3, /* target (a watcher here) is told that from
                                                         has ended; flag: existence_confirmed */
                          TRPI_SIGNAL_STOP = 4,
                          /* deployment.c, deputy.c: to the node that is to make an actor */
                          TRPI_SIGNAL_DEPLOY = 5, /* from: the deputy; trpi_order.deploy */
                          /* to the deputy, from the actor */
                          TRPI_SIGNAL_DEPLOYED = 6,
                          TRPI_SIGNAL_REFUSED = 7, /* from nobody; trpi_order.failure */
                          TRPI_SIGNAL_FAILED = 8,  /* trpi_order.failure */
                          /* to the actor, from the deputy */
                          TRPI_SIGNAL_SUSPEND = 9,
                          TRPI_SIGNAL_RESUME = 10,  /* flag: answers the actor's own failure */
                          TRPI_SIGNAL_RESTART = 11, /* trpi_order.failure */
                          TRPI_SIGNAL_ACTIVE = 12,  /* flag 1: activate, 0: deactivate */
                          TRPI_SIGNAL_LAST = TRPI_SIGNAL_ACTIVE
};
/* An actor to be made on another node. Everything is borrowed. */
typedef struct trpi_deploy {
    const char *behaviour; /* its name */
    uint32_t version;
    const char *path; /* the logical one: "/user/parent/child" */
    const char *dispatcher, *mailbox; /* NULL: not said */
    uint32_t stash_msgs_max;
    const trp_type *args_type; /* NULL: no arguments */
    const void *args;
    size_t args_bytes;
    trp_ref supervisor;
} trpi_deploy;
/* What some signals carry besides; the one that the signal has, the other NULL. */
typedef struct trpi_order {
    const trpi_deploy *deploy;
    const trp_failure *failure;
} trpi_order;
typedef struct trpi_remote_ops {
    /* A tell met a node that has no proxy yet: make one (trpi_proxy_attach) or return an error,
     * which makes the message a dead letter (not-connected). Any thread; must not block. */
    trp_err (*connect)(void *arg, trp_system *system, uint32_t node);
    /* Carry one system message, exactly once and in order per node. Any thread; must not block. */
    void (*signal)(void *arg, trp_system *system, uint32_t node, enum trpi_remote_signal signal,
                   trp_ref target, trp_ref from, uint32_t flag);
    /* Carry a message to whatever `path` ("/user/a", wildcards allowed) selects at `address`.
     * Borrows all. Any thread; must not block. */
    void (*select)(void *arg, trp_system *system, const trpi_address *address, const char *path,
                   trp_ref sender, const trp_msg *msg);
    /* Carry a signal that has an order, as signal() does and in order with those. node 0: only say
     * whether it could be. Borrows all. Errors: TRP_ENOTYPE (arguments that cannot be encoded),
     * TRP_EMSGSIZE, TRP_EUNSUPPORTED (the peer knows no deployment, or this node trusts none),
     * TRP_EAGAIN (too much is on its way there already for one more actor), TRP_ECONN, TRP_ENOMEM.
     * Any thread; must not block. NULL: there is no deployment. */
    trp_err (*order)(void *arg, trp_system *system, uint32_t node, enum trpi_remote_signal signal,
                     trp_ref target, trp_ref from, const trpi_order *order);
    /* Is there an association with that very incarnation now? Any thread. NULL: never asked. */
    bool (*is_connected)(void *arg, trp_system *system, uint32_t node);
} trpi_remote_ops;
/* Errors: TRP_EEXIST. ops NULL unregisters (at shutdown). Thread: owner. */
trp_err trpi_system_remote_set(trp_system *system, const trpi_remote_ops *ops, void *arg);

/* Types by number and by wire id: actor/kernel/type.h. */

/* Run fn(object) when no thread can be inside a registered op or a run that began before this call;
 * at the latest when the system is freed. For what an op's arg points to, after it was
 * unregistered. Thread: any. */
void trpi_system_retire(trp_system *system, void (*fn)(void *object), void *object);

/* ---- what remoting calls (any thread that is not a worker; bracketed inside) ----------------- */
/* Deliver one message that came over the wire. Copies payload. A stale target is a dead letter.
 * sender: node may be any interned node. type NULL: dead letter not-encodable. Never blocks. */
void trpi_inbound_tell(trp_system *system, uint32_t slot, uint32_t generation, trp_ref sender,
                       const trp_type *type, const void *payload, size_t bytes);
/* The same for many messages: tells between begin and end are chained per receiver and pushed at
 * end. */
void trpi_inbound_begin(trp_system *system);
void trpi_inbound_end(trp_system *system);
/* Does this actor live, now? */
bool trpi_inbound_is_there(trp_system *system, uint32_t slot, uint32_t generation);
/* An actor's mail. A hint: it changes meanwhile. */
enum trpi_mail {
    TRPI_MAIL_NONE,     /* nothing waits there, or nobody is there */
    TRPI_MAIL_WAITS,    /* something does; how much, a mark tells */
    TRPI_MAIL_OF_OTHERS /* its mailbox has a bound, or an order of the program's own: that decides
                           what may wait; or it is a router, which hands its mail on */
};
enum trpi_mail trpi_inbound_mail(trp_system *system, uint32_t slot, uint32_t generation);
/* Put a mark behind what this thread has told that actor: fn(arg, number) is called once, when the
 * actor has handled all of that or never will. Thread of fn: any, also the caller's before this
 * returns; it must not block. */
typedef void (*trpi_mark_fn)(void *arg, uint64_t number);
void trpi_inbound_mark(trp_system *system, uint32_t slot, uint32_t generation, trpi_mark_fn fn,
                       void *arg, uint64_t number);
/* A message to a selection elsewhere is told to nobody; its sender is told err at once.
 * Thread: any. */
void trpi_selection_failed(trp_system *system, trp_ref sender, trp_err err);
/* Deliver to what path selects. For Identify a concrete path that names nobody is answered with
 * TRP_REF_NONE (SYS-25). */
void trpi_inbound_select(trp_system *system, const char *path, trp_ref sender, const trp_type *type,
                         const void *payload, size_t bytes);
void trpi_inbound_signal(trp_system *system, enum trpi_remote_signal signal, trp_ref target,
                         trp_ref from, uint32_t flag);
/* The same of a signal with an order; what it means is checked, how it is written was before. */
void trpi_inbound_order(trp_system *system, enum trpi_remote_signal signal, trp_ref target,
                        trp_ref from, const trpi_order *order);
/* Node is gone for good (quarantined, removed): every local watcher of one of its actors is told
 * trp_terminated with address_terminated. Later tells to it are dead letters with `reason`. */
void trpi_node_terminated(trp_system *system, uint32_t node, trp_dead_reason reason);
/* The same for watchers only: what it still says is heard, and what it is told goes its way, until
 * it is terminated. left: in good order, so its actors still handle what they have; the parents of
 * remote children there are told by the end of each, or when the node is terminated. */
void trpi_node_lost(trp_system *system, uint32_t node, bool left);
/* Count a message that was lost in an upper room, and publish it as a dead letter: one whose
 * payload is not at hand, one that is known in parts, or one as it was told. Borrow everything. */
void trpi_dead_letter(trp_system *system, trp_ref sender, trp_ref recipient, trp_dead_reason reason,
                      const trp_type *type, size_t bytes);
void trpi_dead_letter_of(trp_system *system, trp_ref sender, trp_ref recipient,
                         trp_dead_reason reason, const trp_type *type, const void *payload,
                         size_t bytes);
void trpi_dead_letter_msg(trp_system *system, trp_ref recipient, const trp_msg *msg,
                          trp_dead_reason reason);
/* Remember the path of a remote ref that arrived with it (bounded cache). */
void trpi_path_remember(trp_system *system, trp_ref ref, const char *path);

/* Does this system watch an actor of `node`, now? For remote watch heartbeats. */
bool trpi_node_is_watched(trp_system *system, uint32_t node);
/* How many watches of actors here does `node` have? */
uint32_t trpi_node_watches(trp_system *system, uint32_t node);

/* ---- what cluster and node use ------------------------------------------------------------------
 * */
/* trp_msg_free(), for the library's own. NULL is fine. Thread: any. */
void trpi_msg_drop(trp_msg *msg);

/* The shared object that holds this address is a plugin, or another part of the program: what an
 * actor does wrong in its code may become the actor's failure (fault-trap). Thread: any. */
void trpi_fault_trust(const void *inside);

/* Spawn below /system, on the "system" dispatcher unless options say otherwise. Thread: any. */
trp_err trpi_system_spawn_internal(trp_system *system, const trp_behaviour *behaviour,
                                   const trp_spawn_options *options, trp_ref *ret_ref);
/* Run fn(arg) once at or after `delay_ms`, on the timer's thread: short, must not block. *ret_id
 * may be cancelled; a cancel that returns true guarantees that fn does not and will not run. */
trp_err trpi_system_after(trp_system *system, uint64_t delay_ms, void (*fn)(void *arg), void *arg,
                          uint64_t *ret_id);
bool trpi_system_after_cancel(trp_system *system, uint64_t id);
/* Run again(arg) every interval_ms, on the timer's thread, until it returns false or *ret_id is
 * cancelled. Then over(arg), exactly once, on that thread or in the cancel, unless it is NULL;
 * after it arg is not touched. What it needs is taken now: later it cannot fail for want of memory.
 * Errors: TRP_ENOMEM, TRP_ECLOSED (no over). Thread: any. */
trp_err trpi_system_every(trp_system *system, uint64_t interval_ms, bool (*again)(void *arg),
                          void (*over)(void *arg), void *arg, uint64_t *ret_id);
/* Let ms pass: sleep, or, in a driven world, run what is due meanwhile. Thread: one that is no
 * worker, outside of any run. */
void trpi_system_pass(trp_system *system, uint32_t ms);
/* One pointer per system for the cluster room, so that the public API finds the cluster of a system
 * without a global table. Set by the owner; NULL: none. Thread: any. */
void trpi_system_cluster_set(trp_system *system, void *cluster);
void *trpi_system_cluster_get(trp_system *system);
/* Has its end been ordered, or begun? Thread: any. */
bool trpi_system_is_ending(const trp_system *system);
/* Log line of a room: level, room, event text with key=value pairs. */
void trpi_log(trp_system *system, trp_log_level level, const char *room, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* As trp_system_ask, but a reply that means failure (trp_status_failure) is given, too: with an
 * error, *ret_reply is that message, or NULL. */
trp_err trpi_system_ask_whole(trp_system *system, trp_ref to, const trp_type *type,
                              const void *payload, size_t bytes, uint32_t timeout_ms,
                              trp_msg **ret_reply);

/* ---- what routers use ---------------------------------------------------------------------------
 * */
/* A balancing dispatcher for the routees of one router, until it is given back, which must be after
 * the last of them. id: TRP_DISPATCHER_ID_BYTES_MAX + 1 bytes. Errors: TRP_ELIMIT, TRP_EEXIST,
 * TRP_ENOMEM. */
trp_err trpi_balancing_borrow(trp_system *system, char *id, size_t bytes);
void trpi_balancing_return(trp_system *system, const char *id);

/* ---- what the test kit uses ---------------------------------------------------------------------
 * */
/* As trp_system_new, in a world that is given (shared; must outlive the system). NULL: own real
 * world. */
trp_err trpi_system_new_in(trpi_world *world, const char *name, const trp_system_options *options,
                           trp_system **ret_system);
bool trpi_options_are_valid(const trp_system_options *options); /* NULL is */
/* Copy options that are valid; NULL: the defaults. */
void trpi_options_copy(const trp_system_options *given, trp_system_options *ret_options);
trpi_sched *trpi_system_sched(trp_system *system);
/* Is the caller inside a behaviour or hook of this system (then it must not block)? */
bool trpi_system_in_behaviour(const trp_system *system);
/* The state of an actor that runs on the threads that tell it, or in a driven world; NULL: it is
 * none of these, or has no instance. Thread: one at a time, while nobody tells the actor. */
void *trpi_actor_state(trp_system *system, trp_ref ref);
/* Hand a message to the present behaviour of such an actor; its failure is the caller's
 * (*ret_failure filled, may be NULL). Errors: TRP_ENOENT, TRP_EINVAL (a message that the runtime
 * handles), TRP_ESTATE (it runs, or takes no messages), TRP_ENOMEM, or what receive said. */
trp_err trpi_actor_receive(trp_system *system, trp_ref ref, trp_ref sender, const trp_type *type,
                           const void *payload, size_t bytes, trp_failure *ret_failure);
/* Who sent a message that is held outside of a behaviour. */
trp_ref trpi_msg_sender_get(const trp_msg *msg);

#endif
