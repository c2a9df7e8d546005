/* peer.h - one address: its association, lanes, connections and routes, and the functions on it. */
#ifndef TRPI_REMOTE_PEER_H
#define TRPI_REMOTE_PEER_H

#include "base/check.h"
#include "remote/association/effects.h"
#include "remote/association/lane.h"
#include "remote/association/peer_state.h"

/* One user more, or less. The caller holds remote->lock. */
static inline void
trpi_peer_pin_more(trpi_peer *peer)
{
    peer->pins++;
}
static inline void
trpi_peer_pin_less(trpi_peer *peer)
{
    peer->pins--;
}
/* The peer ends its remoting; it has answered our GOODBYE on a lane. The caller holds peer->lock,
 * as for the rest. */
static inline void
trpi_peer_goodbye_heard(trpi_peer *peer)
{
    peer->goodbye_said = true;
}
static inline void
trpi_peer_goodbye_acked(trpi_peer *peer, enum trpi_lane lane)
{
    trpi_lane_goodbye_ack(&peer->lanes[lane], true);
}
/* From now on the numbered stream is for this incarnation. */
static inline void
trpi_peer_stream_begin(trpi_peer *peer, uint64_t uid)
{
    (void)trpi_redelivery_reset(&peer->redelivery);
    peer->redelivery_uid = uid;
}
/* Our number of the proved incarnation, or of the one that will be. */
static inline void
trpi_peer_number(trpi_peer *peer, uint32_t node)
{
    atomic_store_explicit(&peer->node, node,
                          memory_order_release); /* pairs with readers' acquire */
}
/* The connections of a lane; peer-P4. */
static inline void
trpi_peer_lane_connect(trpi_peer *peer, enum trpi_lane lane, trpi_conn *conn)
{
    peer->lanes[lane].conns.out = conn;
}
static inline void
trpi_peer_lane_disconnect(trpi_peer *peer, enum trpi_lane lane)
{
    peer->lanes[lane].conns.out = NULL;
    trpi_lane_unsettle(&peer->lane_marks, lane);
}
/* The graceful close of its connection begins, and is over. */
static inline void
trpi_peer_lane_close(trpi_peer *peer, enum trpi_lane lane)
{
    peer->lanes[lane].conns.closing = peer->lanes[lane].conns.out;
    trpi_peer_lane_disconnect(peer, lane);
}
static inline void
trpi_peer_lane_closed(trpi_peer *peer, enum trpi_lane lane)
{
    peer->lanes[lane].conns.closing = NULL;
    trpi_lane_unsettle(&peer->lane_marks, lane);
}

/* ---- peers.c ---- */
/* Drop a reference; the last one frees the peers, and remote. */
void trpi_remote_unref(trpi_remote *remote);
/* As trpi_peer_get(), but without making room. share: of the peer that calls; TRPI_SHARES: this
 * node calls. */
trp_err trpi_peer_pin(trpi_remote *remote, const trpi_address *address, bool make, uint32_t share,
                      trpi_peer **ret_peer);
void trpi_peer_unpin(trpi_peer *peer); /* NULL is fine. Not with remote->lock */
/* Iterate over all peers: return the one behind `before`, pinned, and unpin `before`. NULL: begin;
 * the end. */
trpi_peer *trpi_peer_next(trpi_remote *remote, trpi_peer *before);
/* The same, of those whose active incarnation has this uid. Uids are no secret: several peers may
 * claim one. */
trpi_peer *trpi_peer_of_uid(trpi_remote *remote, uint64_t uid, trpi_peer *before);
/* Count a peer for no host any more, for it is a member. By peer->lock. */
void trpi_peer_unshare(trpi_peer *peer);
/* Take a peer out of the table, which keeps what later peers need. The caller holds its lock and
 * remote->lock. */
void trpi_peer_remove(trpi_peer *peer);
void trpi_peer_free(trpi_peer *peer);

/* ---- peer.c. The caller holds peer->lock ---- */
/* Step the association; conn: of the event, or NULL. Returns the bits of trpi_assoc_effects. */
uint32_t trpi_peer_step(trpi_peer *peer, trpi_conn *conn, const trpi_assoc_event *event,
                        const char *reason, trpi_deferred *deferred);
/* Let the next tick tell the watchers of this incarnation that it is over. */
void trpi_peer_end_again(trpi_peer *peer, uint64_t uid);
/* Too many system messages for uid: let the next tick quarantine it. If that is to quarantine
 * another one, end this one for its watchers. */
void trpi_peer_overflowed(trpi_peer *peer, uint64_t uid);
/* Close all connections but one (NULL: all). */
void trpi_peer_close(trpi_peer *peer, const trpi_conn *but);
/* Return our number of the present incarnation; 0: there is none, or no memory or number for it. */
uint32_t trpi_peer_node(trpi_peer *peer);
/* Move out what the tick is to tell; the memory is the caller's. */
trpi_ends trpi_ends_take(trpi_ends *ends);
uint64_t trpi_ends_overflowed_take(trpi_ends *ends); /* 0: none */

/* ---- pump.c ---- */
/* Choose connections, send what waits, dial what is missing. The caller holds peer->lock. */
void trpi_peer_pump(trpi_peer *peer, trpi_deferred *deferred);
/* Release peer->lock and carry out the deferred effects. */
void trpi_peer_unlock(trpi_peer *peer, trpi_deferred *deferred);
/* All that a connection of the peer wrote is written: end that, and write what gathered meanwhile,
 * at most *writes_left times. Takes the writer's reference. Without locks. */
void trpi_peer_written(trpi_peer *peer, trpi_conn *conn, uint32_t *writes_left);
/* Quarantine an incarnation. Without locks, as the next. */
void trpi_peer_quarantine(trpi_peer *peer, uint64_t uid, const char *reason);
/* Tell the watchers of that incarnation that it is over. */
void trpi_peer_tell_end(trpi_peer *peer, uint64_t uid, trp_dead_reason reason);
/* Does anything wait for a connection, on any lane, or on this one (never the control lane, which
 * is always needed)? The caller holds peer->lock, as for the rest. */
bool trpi_peer_wants(const trpi_peer *peer);
bool trpi_lane_wants(const trpi_peer *peer, int lane);
bool trpi_peer_may_dial(const trpi_peer *peer);
/* While remoting stops: may messages that wait for this peer, which is not connected, still be
 * sent? */
bool trpi_peer_is_flushed_to(const trpi_peer *peer);

/* ---- strangers.c: finding a peer, limits, and which one gives way ---- */
/* Find or make a peer, and pin it: it is not forgotten (tick.c) before trpi_peer_unpin().
 * Connections and routes pin theirs, too. Errors: TRP_ENOENT, TRP_ELIMIT, TRP_ENOMEM. */
trp_err trpi_peer_get(trpi_remote *remote, const trpi_address *address, bool make,
                      trpi_peer **ret_peer);
/* The same for an accepted connection: the peer counts for its host. */
trp_err trpi_peer_get_caller(trpi_remote *remote, const trpi_address *address, uint64_t share_key,
                             trpi_peer **ret_peer);
/* Free a peer that is over and has no other pin; else move it to the end of the gone ones. The
 * caller holds its lock and a pin; both are released. */
void trpi_peer_forget(trpi_peer *peer, bool over);
/* Forget one of the gone peers, of this share or (TRPI_SHARES) of any. Without locks. false: none
 * could be forgotten now. */
bool trpi_peers_give_way(trpi_remote *remote, uint32_t share);
/* Bar an incarnation that had to give way. By peer->lock. */
void trpi_evicted_bar(trpi_peer *peer, uint64_t uid);
/* Intern of the trpi_node_map of a connection's frames. */
trp_err trpi_third_number(void *conn, const trpi_node_id *id, uint32_t *ret_node);

/* ---- peer_check.c ---- */
/* Return NULL, or the invariant that is broken of the peer, its lanes and its stream. By
 * peer->lock. */
const char *trpi_peer_check(const trpi_peer *peer, trpi_check *check);

#endif
