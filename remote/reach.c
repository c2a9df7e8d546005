/* reach.c - checks whether this node can dial another one.
 *
 * Must hold.
 *   reach-R1  trpi_remote_reach() succeeds only for a connection that this node has dialled and on
 *       which that incarnation has answered.
 * Not here. Lanes that cannot be dialled (association/lane_dial.c).
 * Tests.   tests/unit/remote/reach_test.c
 */
#include "remote/remote.h"

#include <stdio.h>

#include "remote/association/conn.h"
#include "remote/association/peer.h"

static bool
has_dialled(const trpi_peer *peer, uint64_t uid)
{
    for (const trpi_conn *conn = trpi_peer_conns(peer); conn != NULL; conn = trpi_conn_next(conn)) {
        if (trpi_conn_is_dialled(conn) && trpi_conn_is_open(conn) && trpi_conn_uid(conn) == uid) {
            return true; /* reach-R1 */
        }
    }
    return false;
}

/* The peer has dialled this node. Dial an ordinary lane, which the first message to it would open.
 */
static trp_err
dial_lane(trpi_peer *peer, trpi_reach *reach, char *ret_why, size_t why_bytes)
{
    const trpi_lane_state *lane = &peer->lanes[TRPI_LANE_ORDINARY];
    if (trpi_lane_dialling(lane) != NULL) {
        reach->failed = reach->begun ? reach->failed : trpi_dials_failed(&peer->dials);
        reach->begun = true;
        return TRP_EAGAIN;
    }
    if (!reach->begun) {
        reach->begun = true;
        reach->failed = trpi_dials_failed(&peer->dials);
        trpi_conn_dial(peer, TRPI_LANE_ORDINARY);
        if (trpi_lane_dialling(lane) != NULL) {
            return TRP_EAGAIN;
        }
        (void)snprintf(ret_why, why_bytes, "no connection can be dialled");
        return TRP_ECONN;
    }
    (void)snprintf(ret_why, why_bytes, "%s",
                   trpi_dials_failed(&peer->dials) != reach->failed ? trpi_dials_why(&peer->dials)
                                                                    : "the connection has ended");
    return TRP_ECONN;
}

static trp_err
dial_peer(trpi_peer *peer, trpi_reach *reach, trpi_deferred *deferred, char *ret_why,
          size_t why_bytes)
{
    if (!reach->begun) {
        trpi_assoc_event want = { .kind = TRPI_ASSOC_WANT };
        reach->begun = true;
        (void)trpi_peer_step(peer, NULL, &want, "", deferred);
    }
    if (trpi_peer_state(peer) == TRPI_ASSOC_HANDSHAKING) {
        return TRP_EAGAIN;
    }
    (void)snprintf(ret_why, why_bytes, "%s",
                   trpi_peer_reason(peer)[0] != '\0' ? trpi_peer_reason(peer)
                                                     : "no association with it");
    return TRP_ECONN;
}

trp_err
trpi_remote_reach(trpi_remote *remote, const trpi_node_id *id, trpi_reach *reach, char *ret_why,
                  size_t why_bytes)
{
    trpi_peer *peer = NULL;
    trpi_deferred deferred = { 0 };
    ret_why[0] = '\0';
    if (trpi_address_equal(&id->address, &remote->address)) {
        return TRP_EINVAL;
    }
    trp_err err = atomic_load_explicit(&remote->stopping, memory_order_relaxed)
                      ? TRP_ECLOSED
                      : trpi_peer_get(remote, &id->address, true, &peer);
    if (err != TRP_OK) {
        (void)snprintf(ret_why, why_bytes, "%s", trp_strerror(err));
        return err;
    }
    pthread_mutex_lock(&peer->lock);
    if (has_dialled(peer, id->uid)) {
        err = TRP_OK;
    } else if (trpi_assoc_is_barred(&peer->assoc, id->uid)) {
        err = TRP_EQUARANTINED;
        (void)snprintf(ret_why, why_bytes, "its incarnation is quarantined here");
    } else if (!trpi_peer_is_active(peer)) {
        err = dial_peer(peer, reach, &deferred, ret_why, why_bytes);
    } else if (trpi_peer_uid(peer) != id->uid) {
        err = TRP_ECLOSED;
        (void)snprintf(ret_why, why_bytes, "another incarnation answers there");
    } else {
        err = dial_lane(peer, reach, ret_why, why_bytes);
    }
    trpi_peer_pump(peer, &deferred);
    trpi_peer_unlock(peer, &deferred);
    trpi_peer_unpin(peer);
    return err;
}

void
trpi_remote_hurry(trpi_remote *remote, const trpi_address *address)
{
    trpi_peer *peer = NULL;
    if (trpi_peer_get(remote, address, false, &peer) == TRP_OK) {
        trpi_deferred deferred = { 0 };
        const trpi_assoc_event event = { .kind = TRPI_ASSOC_HURRY };
        pthread_mutex_lock(&peer->lock);
        (void)trpi_peer_step(peer, NULL, &event, "", &deferred);
        trpi_peer_pump(peer, &deferred); /* wakes it, so that the tick dials */
        trpi_peer_unlock(peer, &deferred);
        trpi_peer_unpin(peer);
    }
}
