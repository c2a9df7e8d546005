/* nodes.h - the node table: numbers for (address, uid), and the proxies of these nodes. */
#ifndef TRPI_ACTOR_NODES_NODES_H
#define TRPI_ACTOR_NODES_NODES_H

#include "actor/nodes/open.h"
#include "actor/kernel/run.h"

#define TRPI_NODES_LIMIT 65535u      /* nodes that one system may know at a time */
#define TRPI_NODES_ENDED 1024u       /* of these, nodes that have ended and are remembered */
#define TRPI_NODES_INTRODUCED 32768u /* of these, nodes that peers have only named */
#define TRPI_NODE_SHARES 1024u       /* shares, to which introducers are hashed */

struct trpi_nodes;

/* Entry TRPI_NODE_SELF is made with a random uid. Errors: TRP_ENOMEM. */
trp_err trpi_nodes_new(trp_system *system, struct trpi_nodes **ret_nodes);
void trpi_nodes_free(struct trpi_nodes *nodes); /* NULL is fine, as for the next */
/* No thread of the system runs any more: ended nodes are not retired one by one. */
void trpi_nodes_close(struct trpi_nodes *nodes);
/* Return the proxy cell of a node; remoting makes one if there is none. NULL: *ret_reason says why;
 * else *ret_slow: trpi_nodes_slows() is to be asked. */
trpi_cell *trpi_nodes_proxy(trp_system *system, uint32_t node, trp_dead_reason *ret_reason,
                            bool *ret_slow);
/* Is this recipient slow? Its node has a proxy. */
bool trpi_nodes_slows(trp_system *system, trp_ref to);
/* Reserve buffer space for trp_try_tell() through this proxy. TRP_EAGAIN: no room; the running
 * actor (if there is one) will be told trp_mailbox_ready. *ret_reserved: mark the message
 * TRPI_MSG_RESERVED. */
trp_err trpi_proxy_reserve(trp_ctx *ctx, trpi_cell *proxy, trp_ref to, size_t bytes,
                           bool *ret_reserved);
void trpi_proxy_unreserve(trpi_cell *proxy, size_t bytes);
/* With its token: deliver a message that is like the one before (trpi_proxy_ops). */
bool trpi_proxy_again(trpi_cell *proxy, const trp_msg *msg, const void *payload, size_t bytes,
                      bool bounded);
/* Messages that a teller gathers without the token may be gathered, are delivered, or have room one
 * by one (kernel_ops.h). */
size_t trpi_proxy_gather(trpi_cell *proxy, size_t need);
bool trpi_proxy_gathered(trpi_cell *proxy, const trp_msg *msg, const trpi_gathered *gathered);
bool trpi_proxy_carry(trpi_cell *proxy, const trpi_carrier *what, trpi_buffer *out);
trp_err trpi_proxy_restore(trpi_cell *proxy, const trp_type *type, const uint8_t *record,
                           size_t bytes, trpi_buffer *out);
void trpi_proxy_reserve_each(trpi_cell *proxy, size_t granted, uint32_t count, size_t bytes);
/* With its token: is there room for trp_try_tell(), without a reservation? false: reserve. */
bool trpi_proxy_admits(trpi_cell *proxy, trp_ref to, size_t bytes);
/* With its token: flush what is worth it, since more follows. true: it is overloaded. */
bool trpi_proxy_more(trp_ctx *ctx, trpi_cell *proxy);
/* Make the scheduler run the proxy, so that it flushes. */
void trpi_proxy_wake(trp_ctx *ctx, trpi_cell *proxy);
/* End a node: tells to it are dead letters with this reason from now on. Its proxy delivers what it
 * has and is freed; the number is freed when TRPI_NODES_ENDED others have ended. */
void trpi_nodes_end(trp_system *system, uint32_t node, trp_dead_reason reason);

/* trpi_node_introduce() and trpi_node_release() without the end of the evicted node: its number is
 * in *ret_over, or returned, and the caller is to terminate it; 0: none. */
trp_err trpi_node_number_introduce(trp_system *system, const trpi_node_id *id, uint64_t by,
                                   uint32_t share_max, uint32_t *ret_node, uint32_t *ret_over);
uint32_t trpi_node_number_release(trp_system *system, uint32_t number, uint64_t by,
                                  uint32_t share_max);

/* ---- remote_ops.c ---------------------------------------------------------------------------- */
/* Pass a signal to remoting; false: there is none. Thread: any. */
bool trpi_remote_signal(trp_system *system, enum trpi_remote_signal signal, trp_ref target,
                        trp_ref from, uint32_t flag);

/* Pass a signal with its order to remoting. Errors: as trpi_remote_ops.order; TRP_ESTATE: there is
 * no remoting. Thread: any. */
trp_err trpi_remote_order(trp_system *system, uint32_t node, enum trpi_remote_signal signal,
                          trp_ref target, trp_ref from, const trpi_order *order);
/* As trpi_remote_ops.is_connected; false without remoting. Thread: any. */
bool trpi_remote_is_connected(trp_system *system, uint32_t node);

#endif
