/* peer_check.c - the invariants of a peer, its lanes and its system stream, as code.
 *
 * Must hold. Besides lane-Q1, lane-Q2, peer-P4, redelivery-R1 and redelivery-R4:
 *   lane-Q4  queued counts what is pending at least; the rest is in flight.
 *   fence-E4  Of a lane's fences no more are acknowledged than sent, and no more sent than
 *       appended.
 *   redelivery-R5  acked <= sent <= pushed, and the ring has a place for each that waits.
 *   peer-P3  What a lane sends on is a connection of this peer and of this lane that is not
 *       closing; conns_count is the length of the list of connections.
 * Cost.    A walk over the frames that wait, the connections, and the messages of the stream.
 * Tests.   tests/unit/remote/check_test.c
 */
#include "remote/association/conn.h"
#include "remote/association/peer.h"

static const char *
check_frames(const trpi_lane_state *state, int lane, trpi_check *check)
{
    const trpi_buffer *pending = &state->queue.frames;
    for (size_t at = 0; at < pending->count;) {
        trpi_frame frame;
        if (pending->count - at < TRPI_FRAME_HEADER_BYTES) {
            return trpi_check_broken(check, "lane-Q1: lane %d ends within a header, at %zu of %zu",
                                     lane, at, pending->count);
        }
        trpi_frame_header_decode(pending->data + at, &frame);
        if (pending->count - at - TRPI_FRAME_HEADER_BYTES < frame.bytes) {
            return trpi_check_broken(check,
                                     "lane-Q1: lane %d ends within a frame of %zu bytes, at "
                                     "%zu of %zu",
                                     lane, (size_t)frame.bytes, at, pending->count);
        }
        bool specific = (frame.kind == TRPI_FRAME_USER || frame.kind == TRPI_FRAME_SELECT ||
                         frame.kind == TRPI_FRAME_MANY) &&
                        (frame.flags & TRPI_MESSAGE_ANYONE) == 0;
        if (specific && trpi_lane_uid(state) == 0) {
            return trpi_check_broken(check,
                                     "lane-Q2: lane %d has a message for one incarnation, and "
                                     "does not say for which",
                                     lane);
        }
        at += TRPI_FRAME_HEADER_BYTES + frame.bytes;
    }
    return NULL;
}

static const char *
check_lane(const trpi_peer *peer, int lane, trpi_check *check)
{
    const trpi_lane_state *state = &peer->lanes[lane];
    size_t queued = trpi_lane_bytes(state);
    const char *broken = check_frames(state, lane, check);
    if (broken != NULL) {
        return broken;
    }
    if (queued < state->queue.frames.count) {
        return trpi_check_broken(check, "lane-Q4: lane %d counts %zu bytes, and %zu are pending",
                                 lane, queued, state->queue.frames.count);
    }
    if (state->fence.acked > state->fence.sent || state->fence.sent > state->fence.last) {
        return trpi_check_broken(check,
                                 "fence-E4: of lane %d fence %llu is acknowledged, %llu sent, "
                                 "%llu appended",
                                 lane, (unsigned long long)state->fence.acked,
                                 (unsigned long long)state->fence.sent,
                                 (unsigned long long)state->fence.last);
    }
    if (trpi_lane_out(state) != NULL && (trpi_conn_peer(trpi_lane_out(state)) != peer ||
                                         (int)trpi_conn_lane(trpi_lane_out(state)) != lane ||
                                         trpi_conn_is_closing(trpi_lane_out(state)))) {
        return trpi_check_broken(check, "peer-P3: lane %d sends on %s", lane,
                                 trpi_conn_is_closing(trpi_lane_out(state))
                                     ? "a connection that is closing"
                                     : "another's connection");
    }
    return NULL;
}

const char *
trpi_redelivery_check(const trpi_redelivery *r, trpi_check *check)
{
    uint64_t tails = 0;
    if (r->acked > r->sent || r->sent > r->pushed || r->pushed - r->acked > r->capacity) {
        return trpi_check_broken(check,
                                 "redelivery-R5: %llu are acknowledged, %llu sent, %llu "
                                 "pushed, in a ring of %u",
                                 (unsigned long long)r->acked, (unsigned long long)r->sent,
                                 (unsigned long long)r->pushed, r->capacity);
    }
    if (r->pushed - r->acked > r->max) {
        return trpi_check_broken(check, "redelivery-R1: %llu wait, at most %u may",
                                 (unsigned long long)(r->pushed - r->acked), r->max);
    }
    for (uint64_t seq = r->acked + 1; seq <= r->pushed; seq++) {
        tails += r->ring[seq & (r->capacity - 1)].tail_bytes;
    }
    if (tails != r->tails_bytes || tails > TRPI_SYSTEM_TAILS_BYTES_MAX) {
        return trpi_check_broken(check, "redelivery-R4: tails of %llu bytes wait, %llu are counted",
                                 (unsigned long long)tails, (unsigned long long)r->tails_bytes);
    }
    return NULL;
}

/* peer-P4 */
static const char *
check_settled(const trpi_peer *peer, int lane, trpi_check *check)
{
    const trpi_lane_state *state = &peer->lanes[lane];
    bool any = false;
    if ((peer->lane_marks.unsettled & 1u << lane) != 0 || trpi_lane_out(state) != NULL) {
        return NULL;
    }
    for (const trpi_conn *conn = peer->conns; conn != NULL; conn = trpi_conn_next(conn)) {
        any = any || trpi_conn_lane(conn) == lane;
    }
    if (any || !trpi_lane_is_empty(state) || trpi_lane_has_open_fence(state) ||
        trpi_lane_closing(state) != NULL) {
        return trpi_check_broken(check, "peer-P4: lane %d has no connection, and is not looked at",
                                 lane);
    }
    return NULL;
}

const char *
trpi_peer_check(const trpi_peer *peer, trpi_check *check)
{
    uint32_t conns = 0;
    const char *broken = trpi_redelivery_check(&peer->redelivery, check);
    for (int lane = 0; lane < TRPI_LANE_COUNT && broken == NULL; lane++) {
        broken = check_lane(peer, lane, check);
    }
    for (const trpi_conn *conn = peer->conns; conn != NULL && broken == NULL;
         conn = trpi_conn_next(conn)) {
        conns++;
    }
    if (broken == NULL && conns != peer->conns_count) {
        broken = trpi_check_broken(check, "peer-P3: %u connections, %u are counted", conns,
                                   peer->conns_count);
    }
    for (int lane = 0; lane < TRPI_LANE_COUNT && broken == NULL; lane++) {
        broken = check_settled(peer, lane, check);
    }
    return broken;
}
