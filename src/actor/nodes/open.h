/* open.h - the interface of the room nodes for rooms above src/actor: part of actor/actor.h. */
#ifndef TRPI_ACTOR_NODES_OPEN_H
#define TRPI_ACTOR_NODES_OPEN_H

#include "actor/kernel/open.h"
#include "base/address.h"
#include "base/buffer.h"

/* ---- node numbers (see kernel/open.h) -------------------------------------------------------- */
/* Find or add the number of a node; it is valid until trpi_node_terminated(), and may have ended
 * already. Errors: TRP_ELIMIT (all numbers are in use), TRP_ENOMEM. Thread: any. */
trp_err trpi_node_intern(trp_system *system, const trpi_node_id *id, uint32_t *ret_node);
/* The same for a node that is known to be alive: never a number that has ended. */
trp_err trpi_node_meet(trp_system *system, const trpi_node_id *id, uint32_t *ret_node);
/* Mark a number as ended; the caller calls trpi_node_terminated() soon, without its locks. Thread:
 * any. */
void trpi_node_mark_ended(trp_system *system, uint32_t node);
/* Thread: any, in a run or entered. */
bool trpi_node_has_ended(trp_system *system, uint32_t node);
/* Find or add a node that a peer has named. Beyond share_max nodes named by peers with the key
 * `by`, the one that was named longest ago is terminated. Errors: as trpi_node_intern(). Thread:
 * any, without a lock that trpi_node_terminated() takes. */
trp_err trpi_node_introduce(trp_system *system, const trpi_node_id *id, uint64_t by,
                            uint32_t share_max, uint32_t *ret_node);
/* Treat a node from now on as one that a peer has only named; it may have ended already. */
void trpi_node_release(trp_system *system, uint32_t node, uint64_t by, uint32_t share_max);
/* Return the number of a node; 0: none, so no reference to it was ever seen here. */
uint32_t trpi_node_find(trp_system *system, const trpi_node_id *id);
/* Borrow the identity of a node, valid until the caller's run ends, or its trpi_leave(); NULL: no
 * such number (any more). Thread: any, in a run or entered. */
const trpi_node_id *trpi_node_id_get(trp_system *system, uint32_t node);
/* Return the identity of this system. Its uid is random; trpi_system_advertise() sets its remote
 * address, once, before the first remote message. Thread: owner. */
const trpi_node_id *trpi_system_self(trp_system *system);
void trpi_system_advertise(trp_system *system, const trpi_address *address);

/* ---- proxies: cells that carry messages to another node -------------------------------------- */
/* A proxy is a cell of kind "association": tells to refs of its node go to its mailbox, with
 * chains, deferral and order as for any actor, and are passed to deliver() one by one on a worker
 * of the default dispatcher. */
typedef struct trpi_proxy_ops {
    /* Encode one message. Borrows msg until return (out-of-line payloads may be kept with
     * trpi_msg_payload_take()). to_slot/to_generation are in msg's header. Must not block. */
    void (*deliver)(void *arg, trp_system *system, trp_msg *msg);
    /* The run ends: flush the batch that deliver() collected; more: another run follows, so a small
     * batch may wait for it. true: the lane is above its high-water mark: the proxy is overloaded
     * (senders are deferred) until trpi_proxy_ready() or the next flush(). */
    bool (*flush)(void *arg, trp_system *system, bool more);
    /* The node has ended and all messages were delivered, or the system is being freed; no op is
     * called after this one. Called without a lock. May be NULL. */
    void (*release)(void *arg);
    /* trp_try_tell(): reserve buffer space for a payload to that slot; false: there is no room. A
     * message with TRPI_MSG_RESERVED follows to deliver(), which uses the space. Thread: any; must
     * not block. NULL: there is always room. */
    bool (*reserve)(void *arg, uint32_t slot, size_t bytes);
    /* Release reserved space: its message found no memory. */
    void (*unreserve)(void *arg, size_t bytes);
    /* A sender was refused and waits: call trpi_proxy_ready() when there is room, at once if there
     * is already. Called without a lock. */
    void (*refused)(void *arg, uint32_t slot, size_t bytes);
    /* Is this recipient slow, so that its senders are to be throttled? Asked on senders' threads
     * after trpi_proxy_slow(). Thread: any; must not block. */
    bool (*slows)(void *arg, uint32_t slot);
    /* trp_try_tell(): is there room as for reserve()? A message without TRPI_MSG_RESERVED follows
     * to deliver() at once. By the runner, as deliver(). false: reserve() is asked. NULL: never. */
    bool (*admits)(void *arg, uint32_t slot, size_t bytes);
    /* Do all that deliver() does, if the message is like the one before: short for the usual one.
     * bounded: and if admits() would let it in. msg is a header only. false: nothing was done.
     * By the runner. NULL: never. */
    bool (*again)(void *arg, const trp_msg *msg, const void *payload, size_t bytes, bool bounded);
    /* After again() or gathered() was true, or deliver() had one that carries another: may the
     * teller gather further messages like it, as records, of which the next one has `need` bytes?
     * Return how many bytes of them there is room for, as for reserve(); they are reserved. 0:
     * none. By the runner. NULL: never. */
    size_t (*gather)(void *arg, size_t need);
    /* Deliver the gathered messages, and use what was granted for them. msg is a header only. By
     * the runner, who may have delivered others meanwhile. false: nothing was done. */
    bool (*gathered)(void *arg, const trp_msg *msg, const trpi_gathered *gathered);
    /* Or change what was granted into a reservation of each message, which follows to deliver()
     * with TRPI_MSG_RESERVED. count 0: release it. Thread: any. */
    void (*reserve_each)(void *arg, size_t granted, uint32_t count, size_t bytes);
    /* Append the wire form of a message that carries another one, as a record of gathered() has it.
     * false: nothing was appended; it follows to deliver(). Thread: any; before release(). NULL:
     * never. */
    bool (*carry)(void *arg, const trpi_carrier *what, trpi_buffer *out);
    /* Append the payload of the message that a record is the wire form of. Errors: TRP_ENOMEM. */
    trp_err (*restore)(void *arg, const trp_type *type, const uint8_t *record, size_t bytes,
                       trpi_buffer *out);
} trpi_proxy_ops;
/* Make node `node` reachable through a proxy. Thread: any. Errors: TRP_ENOMEM, TRP_EEXIST,
 * TRP_ECLOSED (it has ended). */
trp_err trpi_proxy_attach(trp_system *system, uint32_t node, const trpi_proxy_ops *ops, void *arg);
/* The lane drained below its low-water mark: senders are not deferred any more, and actors whose
 * trp_try_tell() was refused are notified. Thread: any, without locks. */
void trpi_proxy_ready(trp_system *system, uint32_t node);
/* Make senders ask ops->slows() from now on, or stop that. Thread: any; locks may be held. */
void trpi_proxy_slow(trp_system *system, uint32_t node, bool slow);
/* Have all messages told to this node before been delivered and flushed? Thread: any. */
bool trpi_proxy_is_idle(trp_system *system, uint32_t node);

/* ---- registration of remoting ------------------------------------------------------------------
 * */
/* Reliable system messages between nodes; numbers are wire numbers. */
enum trpi_remote_signal {
    TRPI_SIGNAL_WATCH = 1, /* from watches target */
    TRPI_SIGNAL_UNWATCH = 2,
    /* to target, a watcher here: from has ended; flag: existence_confirmed */
    TRPI_SIGNAL_TERMINATED = 3,
    TRPI_SIGNAL_STOP = 4,
    /* to the node that is to make a remote child, from the child's proxy */
    TRPI_SIGNAL_DEPLOY = 5, /* trpi_order.deploy */
    /* to the proxy, from the remote child */
    TRPI_SIGNAL_DEPLOYED = 6,
    TRPI_SIGNAL_REFUSED = 7, /* from: none; trpi_order.failure */
    TRPI_SIGNAL_FAILED = 8,  /* trpi_order.failure */
    /* to the remote child, from its proxy */
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
/* Data that some signals carry; a signal has one of the two, the other is NULL. */
typedef struct trpi_order {
    const trpi_deploy *deploy;
    const trp_failure *failure;
} trpi_order;
typedef struct trpi_remote_ops {
    /* Make a proxy (trpi_proxy_attach) for a node that was told and has none yet; on an error the
     * message is a dead letter (not-connected). Any thread; must not block. */
    trp_err (*connect)(void *arg, trp_system *system, uint32_t node);
    /* Send one system message, exactly once and in order per node. Any thread; must not block. */
    void (*signal)(void *arg, trp_system *system, uint32_t node, enum trpi_remote_signal signal,
                   trp_ref target, trp_ref from, uint32_t flag);
    /* Send a message to the actors that `path` ("/user/a", wildcards allowed) selects at `address`.
     * Borrows all. Any thread; must not block. */
    void (*select)(void *arg, trp_system *system, const trpi_address *address, const char *path,
                   trp_ref sender, const trp_msg *msg);
    /* Send a signal that has an order, as signal() does and in order with those. node 0: only check
     * whether that is possible. Borrows all. Errors: TRP_ENOTYPE (arguments that cannot be
     * encoded), TRP_EMSGSIZE, TRP_EUNSUPPORTED (the peer knows no deployment, or this node trusts
     * none), TRP_EAGAIN (too many deployments to that node are in flight), TRP_ECONN, TRP_ENOMEM.
     * Any thread; must not block. NULL: there is no deployment. */
    trp_err (*order)(void *arg, trp_system *system, uint32_t node, enum trpi_remote_signal signal,
                     trp_ref target, trp_ref from, const trpi_order *order);
    /* Is there an association with exactly that incarnation now? Any thread. NULL: never called. */
    bool (*is_connected)(void *arg, trp_system *system, uint32_t node);
} trpi_remote_ops;
/* Errors: TRP_EEXIST. ops NULL unregisters (at shutdown). Thread: owner. */
trp_err trpi_system_remote_set(trp_system *system, const trpi_remote_ops *ops, void *arg);

#endif
