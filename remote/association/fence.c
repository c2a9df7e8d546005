/* fence.c - order across lanes: a recipient changes its lane and none of its messages is overtaken.
 *
 * Why.    Lanes are connections, and one may be far behind another. A recipient that moves from an
 *         ordinary lane to the large one leaves a FENCE behind; the large lane sends nothing until
 *         every fence has been answered, which says that all before it was delivered. The recipient
 *         goes back when the large lane was empty and its own fence was answered: then the era of
 *         that lane is over.
 * Shape.  ordinary  m1 m2 m3 FENCE(7) ...          the peer has handed m3 to its actor:
 *         large     [held: m4 m5 ................ ] <- FENCE_ACK(7) on the control lane
 * Must hold.
 *   fence-E1  A fence is answered after everything that its lane was given before it has been
 *       delivered, or can never be (it was on a connection that broke, and a later one has begun).
 *   fence-E2  Frames that leave the queue unsent, or were sent on a connection that broke, take
 *       their fence with them: fence.sent remembers it, and it is sent again: as the first frame of
 *       the next connection, and after a while on the same one (a network in tests loses frames).
 *   fence-E3  An era ends only when no route holds anything for the large lane (large.pins).
 * Limits. None of its own: fences are numbers, answered cumulatively.
 * Tests.  tests/unit/remote/lanes_test.c
 */
#include "remote/association/lane.h"

#include "base/assert.h"
#include "base/wire.h"
#include "remote/association/conn.h"
#include "remote/association/peer.h"

enum { LANE_BITS = 4, AGAIN_MS = 1000 };

_Static_assert(TRPI_LANE_COUNT <= 1 << LANE_BITS, "a fence's value holds its lane");

static void
value_put(uint8_t body[8], uint64_t number, enum trpi_lane lane)
{
    trpi_put_u64(body, number << LANE_BITS | (uint64_t)lane);
}

trp_err
trpi_fence_append(trpi_peer *peer, enum trpi_lane lane)
{
    trpi_lane_state *state = &peer->lanes[lane];
    uint8_t body[8];
    if (!state->fence.due) {
        return TRP_OK; /* the last one stands behind everything */
    }
    size_t before = state->queue.frames.count;
    value_put(body, state->fence.last + 1, lane);
    trp_err err =
        trpi_frame_append(&state->queue.frames, TRPI_FRAME_FENCE, 0, 0, body, sizeof body);
    if (err != TRP_OK) {
        return err;
    }
    trpi_lane_queue_grown(&state->queue, before, trpi_remote_now_ms(trpi_peer_remote(peer)));
    state->fence.last++;
    state->fence.due = false;
    trpi_lane_unsettle(&peer->lane_marks, lane);
    return TRP_OK;
}

/* fence-E2 */
static void
fence_resend(trpi_peer *peer, enum trpi_lane lane, trpi_conn *conn)
{
    trpi_lane_state *state = &peer->lanes[lane];
    uint8_t body[8];
    value_put(body, state->fence.sent, lane);
    /* without memory: the tick tries again */
    (void)trpi_conn_head(conn, TRPI_FRAME_FENCE, 0, body, sizeof body);
    state->fence.said_ms = trpi_remote_now_ms(trpi_peer_remote(peer));
}

void
trpi_fence_again(trpi_peer *peer, enum trpi_lane lane, trpi_conn *conn)
{
    if (peer->lanes[lane].fence.sent > peer->lanes[lane].fence.acked) {
        fence_resend(peer, lane, conn);
    }
}

void
trpi_fence_acked(trpi_peer *peer, uint64_t value)
{
    uint64_t lane = value & ((1u << LANE_BITS) - 1), number = value >> LANE_BITS;
    if (lane < TRPI_LANE_COUNT && number <= peer->lanes[lane].fence.sent &&
        number > peer->lanes[lane].fence.acked) {
        peer->lanes[lane].fence.acked = number;
    }
}

bool
trpi_large_is_held(const trpi_peer *peer)
{
    for (int i = TRPI_LANE_ORDINARY; i < TRPI_LANE_LARGE; i++) {
        if (peer->lanes[i].fence.acked < peer->lanes[i].fence.last) {
            return true;
        }
    }
    return false;
}

/* Back to the ordinary lanes, when the large one has nothing that could be overtaken. */
static void
era_end_if_quiet(trpi_peer *peer)
{
    trpi_lane_state *large = &peer->lanes[TRPI_LANE_LARGE];
    if (!peer->large.used || peer->large.pins > 0 || /* fence-E3 */
        trpi_lane_bytes(large) > 0) {
        return;
    }
    if (large->fence.due) {
        (void)trpi_fence_append(peer, TRPI_LANE_LARGE); /* without memory: the next tick */
    } else if (large->fence.acked == large->fence.last) {
        trpi_large_restart(&peer->large);
    }
}

void
trpi_fences_tick(trpi_peer *peer, uint64_t now_ms)
{
    for (int i = TRPI_LANE_ORDINARY; i < TRPI_LANE_COUNT; i++) {
        trpi_lane_state *lane = &peer->lanes[i];
        trpi_assert(lane->fence.acked <= lane->fence.sent && lane->fence.sent <= lane->fence.last);
        if (trpi_lane_out(lane) != NULL && lane->fence.sent > lane->fence.acked &&
            now_ms - lane->fence.said_ms >= AGAIN_MS) {
            fence_resend(peer, (enum trpi_lane)i, trpi_lane_out(lane));
        }
    }
    era_end_if_quiet(peer);
}
