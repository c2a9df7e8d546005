/* lane_dial.c - lanes that cannot be dialled, and why.
 *
 * Why.     An association may live on a connection that the peer made. Heartbeats and gossip then
 *          flow, and yet every ordinary message waits when this node cannot dial the address that
 *          the peer advertises.
 * Must hold.
 *   lane-dial-D1  A lane has a problem while it has no connection and either its last dial failed
 *       and messages wait or PROBLEM_MS has not passed since messages waited, or its dial has had
 *       no answer for LATE_MS.
 *   lane-dial-D2  A dial that fails while the lane has a connection, as when one is made anew
 *       (graceful_close.c), is logged and is no problem of the lane; nor is one of an
 *       incarnation before.
 *   lane-dial-D3  A lane that has a problem because its last dial failed is dialled again, with
 *       back-off, though no message waits: the problem ends when the peer can be dialled again.
 * Tests.   tests/unit/remote/reach_test.c
 */
#include "remote/association/lane.h"

#include <inttypes.h>
#include <stdio.h>

#include "remote/association/conn.h"
#include "remote/association/peer.h"

enum { LATE_MS = 3000, PROBLEM_MS = 60000 };

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

bool
trpi_lane_is_doubted(const trpi_peer *peer, int lane)
{
    trpi_remote *remote = trpi_peer_remote(peer);
    return (peer->dials.failing & 1u << lane) != 0 &&
           !atomic_load_explicit(&remote->stopping, memory_order_relaxed) &&
           trpi_remote_now_ms(remote) - peer->dials.failed_ms < PROBLEM_MS;
}

void
trpi_lane_undialled(trpi_peer *peer, const trpi_conn *conn, const char *reason)
{
    const trpi_lane_state *lane = &peer->lanes[trpi_conn_lane(conn)];
    peer->dials.failed++;
    if (trpi_lane_out(lane) != NULL || trpi_lane_closing(lane) != NULL ||
        trpi_lane_is_renewing(peer, trpi_conn_lane(conn)) ||
        trpi_conn_uid(conn) != trpi_peer_uid(peer)) {
        return; /* lane-dial-D2: it has a connection, or this was for a past incarnation */
    }
    if (!trpi_lane_is_empty(lane) || !trpi_lane_is_doubted(peer, trpi_conn_lane(conn))) {
        peer->dials.failed_ms = trpi_remote_now_ms(trpi_peer_remote(peer));
    }
    peer->dials.failing |= 1u << trpi_conn_lane(conn);
    (void)snprintf(peer->dials.why, sizeof peer->dials.why, "%s", reason);
}

void
trpi_lane_undialled_log(trpi_remote *remote, const trpi_conn *conn, const char *reason)
{
    char name[TRPI_LANE_NAME_BYTES];
    uint32_t suppressed = 0;
    if (!atomic_load_explicit(&remote->stopping, memory_order_relaxed) &&
        trpi_log_limit_allows(remote, TRPI_LOG_LIMIT_LANE, &suppressed)) {
        trpi_log(remote->system, TRP_LOG_WARNING, "remote",
                 "lane cannot be dialled peer=%s lane=%s reason=\"%s\" next=\"tried again with "
                 "back-off; messages wait unless it has a connection\" suppressed=%u",
                 trpi_conn_peer_text(conn), trpi_lane_name(trpi_conn_lane(conn), name), reason,
                 suppressed);
    }
}

bool
trpi_lane_problem(const trpi_peer *peer, uint64_t now_ms, char *ret_text, size_t bytes)
{
    uint32_t timeout_ms = trpi_peer_remote(peer)->options.handshake_timeout_ms;
    char name[TRPI_LANE_NAME_BYTES];
    ret_text[0] = '\0';
    for (int i = TRPI_LANE_ORDINARY; i < TRPI_LANE_COUNT; i++) {
        const trpi_lane_state *lane = &peer->lanes[i];
        bool failed = (peer->dials.failing & 1u << i) != 0 &&
                      (!trpi_lane_is_empty(lane) || trpi_lane_is_doubted(peer, i));
        uint64_t late_ms =
            trpi_lane_dialling(lane) != NULL &&
                    trpi_conn_deadline_ms(trpi_lane_dialling(lane)) < UINT64_MAX &&
                    now_ms + timeout_ms > trpi_conn_deadline_ms(trpi_lane_dialling(lane))
                ? now_ms + timeout_ms - trpi_conn_deadline_ms(trpi_lane_dialling(lane))
                : 0;
        if (trpi_lane_out(lane) != NULL || trpi_lane_closing(lane) != NULL ||
            trpi_lane_is_renewing(peer, i) || (!failed && late_ms < LATE_MS)) {
            continue; /* lane-dial-D1 */
        }
        if (failed) {
            (void)snprintf(ret_text, bytes, "lane %s cannot be dialled: %s",
                           trpi_lane_name(i, name), peer->dials.why);
        } else {
            (void)snprintf(ret_text, bytes,
                           "lane %s cannot be dialled: no answer for %" PRIu64 " s",
                           trpi_lane_name(i, name), late_ms / 1000);
        }
        return true;
    }
    return false;
}
