/* reach.c - can this node dial that one? Lanes that cannot be dialled, and why.
 *
 * Why.     An association may live on a connection that the peer made. Heartbeats and gossip then
 *          flow, and yet every ordinary message waits when this node cannot dial the address that
 *          the peer advertises.
 * Must hold.
 *   reach-R1  trpi_remote_reach() says yes only of a connection that this node has dialled and on
 *       which that very incarnation has answered.
 *   reach-R2  A lane has a problem while it has no connection and either its last dial failed and
 *       messages wait or PROBLEM_MS has not passed, or its dial has had no answer for LATE_MS.
 *   reach-R3  A dial that fails while the lane has a connection, as when one is made anew
 *       (graceful_close.c), is told in the log and is no problem of the lane; nor is one of an
 *       incarnation before.
 * Tests.   tests/unit/remote/reach_test.c
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "remote/association/internal.h"

enum { LATE_MS = 3000, PROBLEM_MS = 60000 };

/* ---- what failed ----------------------------------------------------------------------------- */

const char *
trpi_lane_name(int lane, char out[TRPI_LANE_NAME_BYTES])
{
    (void)snprintf(out, TRPI_LANE_NAME_BYTES,
                   lane == TRPI_LANE_CONTROL ? "control"
                   : lane == TRPI_LANE_LARGE ? "large"
                                             : "ordinary-%d",
                   lane);
    return out;
}

void
trpi_lane_undialled(trpi_peer *peer, const trpi_conn *conn, const char *reason)
{
    const trpi_lane_state *lane = &peer->lanes[conn->lane];
    peer->dials_failed++;
    if (lane->out != NULL || lane->parting != NULL || trpi_lane_is_renewing(peer, conn->lane) ||
        conn->uid != peer->assoc.uid) {
        return; /* the lane has a connection, or this one was for who is no more: reach-R3 */
    }
    peer->undialled |= 1u << conn->lane;
    peer->undialled_ms = trpi_remote_now_ms(peer->remote);
    (void)snprintf(peer->undialled_why, sizeof peer->undialled_why, "%s", reason);
}

void
trpi_lane_undialled_log(trpi_remote *remote, const trpi_conn *conn, const char *reason)
{
    char name[TRPI_LANE_NAME_BYTES];
    uint32_t suppressed = 0;
    if (!atomic_load_explicit(&remote->stopping, memory_order_relaxed) &&
        trpi_log_gate_open(remote, TRPI_GATE_LANE, &suppressed)) {
        trpi_log(remote->system, TRP_LOG_WARNING, "remote",
                 "lane cannot be dialled peer=%s lane=%s reason=\"%s\" next=\"tried again with "
                 "back-off; messages wait unless it has a connection\" suppressed=%u",
                 conn->peer_text, trpi_lane_name(conn->lane, name), reason, suppressed);
    }
}

bool
trpi_lane_problem(const trpi_peer *peer, uint64_t now_ms, char *ret_text, size_t bytes)
{
    uint32_t timeout_ms = peer->remote->options.handshake_timeout_ms;
    char name[TRPI_LANE_NAME_BYTES];
    ret_text[0] = '\0';
    for (int i = TRPI_LANE_ORDINARY; i < TRPI_LANE_COUNT; i++) {
        const trpi_lane_state *lane = &peer->lanes[i];
        bool failed = (peer->undialled & 1u << i) != 0 &&
                      (lane->pending.count > 0 || now_ms - peer->undialled_ms < PROBLEM_MS);
        uint64_t late_ms = lane->dialling != NULL && lane->dialling->deadline_ms < UINT64_MAX &&
                                   now_ms + timeout_ms > lane->dialling->deadline_ms
                               ? now_ms + timeout_ms - lane->dialling->deadline_ms
                               : 0;
        if (lane->out != NULL || lane->parting != NULL || trpi_lane_is_renewing(peer, i) ||
            (!failed && late_ms < LATE_MS)) {
            continue; /* reach-R2 */
        }
        if (failed) {
            (void)snprintf(ret_text, bytes, "lane %s cannot be dialled: %s",
                           trpi_lane_name(i, name), peer->undialled_why);
        } else {
            (void)snprintf(ret_text, bytes,
                           "lane %s cannot be dialled: no answer for %" PRIu64 " s",
                           trpi_lane_name(i, name), late_ms / 1000);
        }
        return true;
    }
    return false;
}

bool
trpi_remote_problem(trpi_remote *remote, const trpi_address *address, char *ret_text, size_t bytes)
{
    trpi_peer *peer = NULL;
    ret_text[0] = '\0';
    if (trpi_peer_get(remote, address, false, &peer) != TRP_OK) {
        return false;
    }
    pthread_mutex_lock(&peer->lock);
    bool active = peer->assoc.state == TRPI_ASSOC_ACTIVE;
    bool is = active ? trpi_lane_problem(peer, trpi_remote_now_ms(remote), ret_text, bytes)
                     : peer->assoc.state != TRPI_ASSOC_IDLE && peer->reason[0] != '\0' &&
                           peer->assoc.attempts > 0;
    if (is && !active) {
        (void)snprintf(ret_text, bytes, "no association with it: %s", peer->reason);
    }
    pthread_mutex_unlock(&peer->lock);
    trpi_peer_unpin(peer);
    return is;
}

/* ---- dial it --------------------------------------------------------------------------------- */

static bool
has_dialled(const trpi_peer *peer, uint64_t uid)
{
    for (const trpi_conn *conn = peer->conns; conn != NULL; conn = conn->peer_next) {
        if (conn->dialled && conn->ready && !conn->closing && conn->uid == uid) {
            return true; /* reach-R1 */
        }
    }
    return false;
}

/* The peer has called: one ordinary lane more, which the first message to it would have opened. */
static trp_err
dial_lane(trpi_peer *peer, trpi_reach *reach, char *ret_why, size_t why_bytes)
{
    const trpi_lane_state *lane = &peer->lanes[TRPI_LANE_ORDINARY];
    if (lane->dialling != NULL) {
        reach->failed = reach->begun ? reach->failed : peer->dials_failed;
        reach->begun = true;
        return TRP_EAGAIN;
    }
    if (!reach->begun) {
        reach->begun = true;
        reach->failed = peer->dials_failed;
        trpi_conn_dial(peer, TRPI_LANE_ORDINARY);
        if (lane->dialling != NULL) {
            return TRP_EAGAIN;
        }
        (void)snprintf(ret_why, why_bytes, "no connection can be made from here");
        return TRP_ECONN;
    }
    (void)snprintf(ret_why, why_bytes, "%s",
                   peer->dials_failed != reach->failed ? peer->undialled_why
                                                       : "the connection has ended");
    return TRP_ECONN;
}

static trp_err
dial_peer(trpi_peer *peer, trpi_reach *reach, trpi_later *later, char *ret_why, size_t why_bytes)
{
    if (!reach->begun) {
        trpi_assoc_event want = { .kind = TRPI_ASSOC_WANT };
        reach->begun = true;
        (void)trpi_peer_step(peer, NULL, &want, "", later);
    }
    if (peer->assoc.state == TRPI_ASSOC_HANDSHAKING) {
        return TRP_EAGAIN;
    }
    (void)snprintf(ret_why, why_bytes, "%s",
                   peer->reason[0] != '\0' ? peer->reason : "no association with it");
    return TRP_ECONN;
}

trp_err
trpi_remote_reach(trpi_remote *remote, const trpi_node_id *id, trpi_reach *reach, char *ret_why,
                  size_t why_bytes)
{
    trpi_peer *peer = NULL;
    trpi_later later = { 0 };
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
        (void)snprintf(ret_why, why_bytes, "this incarnation of it is quarantined");
    } else if (peer->assoc.state != TRPI_ASSOC_ACTIVE) {
        err = dial_peer(peer, reach, &later, ret_why, why_bytes);
    } else if (peer->assoc.uid != id->uid) {
        err = TRP_ECLOSED;
        (void)snprintf(ret_why, why_bytes, "another incarnation answers there");
    } else {
        err = dial_lane(peer, reach, ret_why, why_bytes);
    }
    trpi_peer_pump(peer, &later);
    trpi_peer_unlock(peer, &later);
    trpi_peer_unpin(peer);
    return err;
}
