/* graceful_close.c - one lane's connection ends in good order, because it was idle, or because it
 * began with a certificate or cookie that was replaced and another one has taken its place.
 *
 * Why.    A connection that is closed while the peer has not read it yet loses messages, and a new
 *         one may overtake it. So each side says GOODBYE on the lane when it will send nothing more
 *         there, and waits for the answer, which says that all before it was handled. Messages
 *         wait meanwhile; then the lane is dialled anew. After a reload the new connection comes
 *         first: where none can be made, for the files do not fit, the old one goes on until its
 *         time.
 * Shape.  idle: GOODBYE ->            goodbye.said     (lane->conns.closing: no other one is used)
 *               <- GOODBYE_ACK        goodbye.acked
 *               <- GOODBYE            goodbye.heard    (the peer's own, in answer)
 *               GOODBYE_ACK ->        and close
 * Must hold.
 *   graceful-close-L1  After its GOODBYE a side sends no frame of the lane on that connection, and
 *       none on another one before the answer.
 *   graceful-close-L2  A side closes when it has both answers, and its own is sent.
 *   graceful-close-L3  A connection that began with files that were replaced ends so only when
 *       another one of the lane can carry its frames. The control lane does not end so: the frames
 *       that it loses are sent again.
 * Limits. lane_idle_ms; control_bytes_max for a peer that asks and does not read.
 *         A connection that breaks meanwhile is one that broke.
 * Tests.  tests/unit/remote/lanes_test.c, renew_test.c
 */
#include "remote/association/conn.h"

#include "base/assert.h"
#include "remote/association/peer.h"

enum { AGAIN_MS = 1000 };

static bool
is_outdated(const trpi_conn *conn)
{
    const trpi_transport_ops *ops = trpi_conn_remote(conn)->ops;
    return ops->outdated != NULL && ops->outdated(trpi_conn_link(conn));
}

/* Until it is closed: before the answer to its GOODBYE, frames may be on their way. */
bool
trpi_lane_is_renewing(const trpi_peer *peer, int lane)
{
    bool is = false;
    for (const trpi_conn *conn = trpi_peer_conns(peer); !is && conn != NULL;
         conn = trpi_conn_next(conn)) {
        is = lane != TRPI_LANE_CONTROL && trpi_conn_lane(conn) == lane && trpi_conn_is_open(conn) &&
             trpi_conn_uid(conn) == trpi_peer_uid(peer) && is_outdated(conn);
    }
    return is;
}

static bool
has_newer_conn(const trpi_peer *peer, int lane)
{
    bool has = false;
    for (const trpi_conn *conn = trpi_peer_conns(peer); !has && conn != NULL;
         conn = trpi_conn_next(conn)) {
        has = trpi_conn_carries(conn, lane) && !is_outdated(conn);
    }
    return has;
}

/* Begin, if it has not begun yet: the caller checks that. graceful-close-L1 */
static void
close_begin(trpi_conn *conn, uint64_t now_ms)
{
    trpi_lane_state *lane = &trpi_conn_peer(conn)->lanes[trpi_conn_lane(conn)];
    trpi_assert(!conn->goodbye.said && trpi_conn_lane(conn) != TRPI_LANE_CONTROL);
    if (trpi_conn_head(conn, TRPI_FRAME_GOODBYE, TRPI_GOODBYE_LANE, NULL, 0) != TRP_OK) {
        return; /* no memory or room: the next tick, or the peer's next GOODBYE */
    }
    conn->goodbye.said = true;
    conn->goodbye.said_ms = now_ms;
    /* a GOODBYE on a dead link has no answer: a PING finds that out */
    trpi_activity_use(&trpi_conn_peer(conn)->activity);
    if (trpi_lane_out(lane) == conn) {
        trpi_peer_lane_close(trpi_conn_peer(conn), trpi_conn_lane(conn));
    }
}

static bool
is_idle(trpi_conn *conn, uint64_t now_ms)
{
    const trpi_lane_state *lane = &trpi_conn_peer(conn)->lanes[trpi_conn_lane(conn)];
    unsigned uses = trpi_conn_uses(conn);
    if (uses != conn->goodbye.uses_seen || conn->goodbye.idle_since_ms == 0 ||
        trpi_conn_is_writing(conn) || (trpi_lane_out(lane) == conn && !trpi_lane_is_empty(lane))) {
        conn->goodbye.uses_seen = uses;
        conn->goodbye.idle_since_ms = now_ms;
    }
    return now_ms - conn->goodbye.idle_since_ms >= trpi_conn_remote(conn)->options.lane_idle_ms;
}

/* graceful-close-L3 */
static void
conn_renew(trpi_conn *conn, uint64_t now_ms)
{
    trpi_peer *peer = trpi_conn_peer(conn);
    const trpi_lane_state *lane = &peer->lanes[trpi_conn_lane(conn)];
    if (has_newer_conn(peer, trpi_conn_lane(conn))) {
        close_begin(conn, now_ms);
    } else if (trpi_lane_dialling(lane) == NULL && now_ms >= trpi_lane_dial_next_ms(lane) &&
               trpi_peer_may_dial(peer)) {
        trpi_conn_dial(peer, (enum trpi_lane)trpi_conn_lane(conn));
    }
}

void
trpi_graceful_close_tick(trpi_peer *peer, uint64_t now_ms)
{
    if (trpi_agreed_spread(&peer->agreed) == 0) {
        return; /* such a peer knows no GOODBYE of a lane */
    }
    for (trpi_conn *conn = trpi_peer_conns(peer); conn != NULL; conn = trpi_conn_next(conn)) {
        if (trpi_conn_lane(conn) == TRPI_LANE_CONTROL || !trpi_conn_is_open(conn)) {
            continue;
        }
        if (!conn->goodbye.said && is_idle(conn, now_ms)) {
            close_begin(conn, now_ms);
        } else if (!conn->goodbye.said && is_outdated(conn)) {
            conn_renew(conn, now_ms);
        } else if (conn->goodbye.said && !conn->goodbye.acked &&
                   now_ms - conn->goodbye.said_ms >= AGAIN_MS) {
            conn->goodbye.said_ms = now_ms; /* a network in tests loses frames */
            (void)trpi_conn_head(conn, TRPI_FRAME_GOODBYE, TRPI_GOODBYE_LANE, NULL, 0);
        }
    }
}

void
trpi_graceful_close_frame(trpi_conn *conn, enum trpi_frame_kind kind)
{
    trpi_lane_state *lane = &trpi_conn_peer(conn)->lanes[trpi_conn_lane(conn)];
    if (kind == TRPI_FRAME_GOODBYE) {
        /* lost: it asks again */
        (void)trpi_conn_head(conn, TRPI_FRAME_GOODBYE_ACK, TRPI_GOODBYE_LANE, NULL, 0);
        conn->goodbye.heard = true;
        if (!conn->goodbye.said) {
            close_begin(conn, trpi_remote_now_ms(trpi_conn_remote(conn)));
        }
    } else if (conn->goodbye.said) {
        conn->goodbye.acked = true;
        if (trpi_lane_closing(lane) == conn) {
            trpi_peer_lane_closed(trpi_conn_peer(conn), trpi_conn_lane(conn));
            trpi_fence_settled(&lane->fence); /* all before it has been handled */
        }
    }
    if (conn->goodbye.acked && conn->goodbye.heard) { /* graceful-close-L2 */
        trpi_conn_close_when_sent(conn);
        if (!trpi_conn_is_writing(conn) && !trpi_conn_has_own_frames(conn)) {
            trpi_conn_close(conn);
        }
    }
}
