/* The check function of a peer accepts a valid state; when one field is broken, it names the
 * invariant's label. */
#include <stdlib.h>
#include <string.h>

#include "remote/association/conn.h"
#include "remote/association/peer.h"
#include "tests/unit/unit.h"

static trpi_check check;
static char found[TRPI_CHECK_BYTES];

static const char *
label_of(const char *broken)
{
    snprintf(found, sizeof found, "%s", broken == NULL ? "" : broken);
    found[strcspn(found, ":")] = '\0';
    return found;
}

/* Set `place` to `value`, expect `label`, restore it, expect no label. */
#define BREAK(place, value, label)                                                                 \
    do {                                                                                           \
        __typeof__(place) kept = (place);                                                          \
        (place) = (value);                                                                         \
        UNIT_TEXT(label_of(trpi_peer_check(peer, &check)), label);                                 \
        (place) = kept;                                                                            \
        UNIT_TEXT(label_of(trpi_peer_check(peer, &check)), "");                                    \
    } while (0)

static void
a_check_names_what_is_broken_in_a_peer(void)
{
    trpi_peer *peer = calloc(1, sizeof *peer);
    trpi_conn *conn = calloc(1, sizeof *conn);
    trpi_lane_state *lane = &peer->lanes[TRPI_LANE_ORDINARY];
    uint8_t body[TRPI_SYSTEM_BODY_BYTES] = { 0 };
    trpi_redelivery_init(&peer->redelivery, 4, 0, 0);
    UNIT_EQUAL(trpi_redelivery_push_tail(&peer->redelivery, 5, body, body, 8), TRP_OK);
    UNIT_EQUAL(trpi_redelivery_push(&peer->redelivery, 5, body), TRP_OK);
    UNIT_EQUAL(trpi_frame_append(&lane->queue.frames, TRPI_FRAME_USER, 0, 0, body, 16), TRP_OK);
    UNIT_EQUAL(trpi_frame_append(&lane->queue.frames, TRPI_FRAME_PING, 0, 0, body, 8), TRP_OK);
    atomic_store(&lane->queue.bytes, lane->queue.frames.count);
    lane->queue.uid = 7;
    lane->fence.acked = 1;
    lane->fence.sent = 2;
    lane->fence.last = 3;
    conn->peer = peer;
    conn->lane = TRPI_LANE_ORDINARY;
    lane->conns.out = peer->conns = conn;
    peer->conns_count = 1;
    UNIT_TEXT(label_of(trpi_peer_check(peer, &check)), "");

    BREAK(lane->queue.frames.count, lane->queue.frames.count - 1, "lane-Q1");
    BREAK(lane->queue.frames.count, lane->queue.frames.count - 8, "lane-Q1");
    BREAK(lane->queue.uid, 0, "lane-Q2");
    BREAK(lane->fence.acked, 3, "fence-E4");
    BREAK(lane->fence.sent, 4, "fence-E4");
    BREAK(conn->closing, true, "peer-P3");
    BREAK(conn->lane, TRPI_LANE_CONTROL, "peer-P3");
    BREAK(conn->peer, NULL, "peer-P3");
    BREAK(peer->conns_count, 2, "peer-P3");
    BREAK(lane->conns.out, NULL, "peer-P4");
    trpi_lane_unsettle(&peer->lane_marks, TRPI_LANE_ORDINARY);
    BREAK(peer->lane_marks.unsettled, peer->lane_marks.unsettled, "");
    BREAK(peer->redelivery.max, 1, "redelivery-R1");
    BREAK(peer->redelivery.tails_bytes, 9, "redelivery-R4");
    BREAK(peer->redelivery.acked, 1, "redelivery-R5");
    BREAK(peer->redelivery.sent, 3, "redelivery-R5");
    atomic_store(&lane->queue.bytes, 1);
    UNIT_TEXT(label_of(trpi_peer_check(peer, &check)), "lane-Q4");

    trpi_redelivery_fini(&peer->redelivery);
    trpi_buffer_fini(&lane->queue.frames);
    free(conn);
    free(peer);
}

UNIT_BEGIN("peer_check")
UNIT(a_check_names_what_is_broken_in_a_peer)
UNIT_END
