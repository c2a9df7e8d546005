/* open.h - what the rooms above src/actor may use of the room nodes: part of actor/actor.h. */
#ifndef TRPI_ACTOR_NODES_OPEN_H
#define TRPI_ACTOR_NODES_OPEN_H

#include "actor/kernel/open.h"
#include "base/address.h"

/* ---- numbers; what they are: kernel/open.h --------------------------------------------------- */
/* Find or add; it stands until trpi_node_terminated(), and may have ended already. Errors:
 * TRP_ELIMIT (all numbers are in use), TRP_ENOMEM. Thread: any. */
trp_err trpi_node_intern(trp_system *system, const trpi_node_id *id, uint32_t *ret_node);
/* The same of a node that has shown that it lives: it never has a number that has ended. */
trp_err trpi_node_meet(trp_system *system, const trpi_node_id *id, uint32_t *ret_node);
/* It has ended as soon as this returns; the caller says trpi_node_terminated() soon, without its
 * locks. Thread: any. */
void trpi_node_mark_ended(trp_system *system, uint32_t node);
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
     * message with TRPI_MSG_RESERVED is on its way to deliver(), which keeps it. Thread: any; must
     * not block. NULL: there always is. */
    bool (*reserve)(void *arg, uint32_t slot, size_t bytes);
    /* A promise is given back: its message found no memory. */
    void (*unreserve)(void *arg, size_t bytes);
    /* Somebody was refused and waits: trpi_proxy_ready() is due when there is room, at once when
     * there is already. Not called with any lock held. */
    void (*refused)(void *arg, uint32_t slot, size_t bytes);
    /* Is this recipient behind, so that who tells it is to be slowed? Asked by tellers after
     * trpi_proxy_slow(). Thread: any; must not block. */
    bool (*slows)(void *arg, uint32_t slot);
} trpi_proxy_ops;
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
/* Reliable system messages between nodes; numbers are wire numbers. */
enum trpi_remote_signal {
    TRPI_SIGNAL_WATCH = 1, /* from watches target */
    TRPI_SIGNAL_UNWATCH = 2,
    TRPI_SIGNAL_TERMINATED = 3, /* target (a watcher here) is told that from
                                                         has ended; flag: existence_confirmed */
    TRPI_SIGNAL_STOP = 4,
    /* deployment.c, child_proxy.c: to the node that is to make an actor */
    TRPI_SIGNAL_DEPLOY = 5, /* from: the proxy; trpi_order.deploy */
    /* to the proxy, from the actor */
    TRPI_SIGNAL_DEPLOYED = 6,
    TRPI_SIGNAL_REFUSED = 7, /* from nobody; trpi_order.failure */
    TRPI_SIGNAL_FAILED = 8,  /* trpi_order.failure */
    /* to the actor, from the proxy */
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
    const char *path;                 /* the logical one: "/user/parent/child" */
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

#endif
