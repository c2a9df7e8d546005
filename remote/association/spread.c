/* spread.c - the number of ordinary lanes, and the frames that wait when it changes.
 *
 * Why.    A recipient's messages must stay in order, so its lane is chosen by the recipient alone:
 *         one of the ordinary lanes by a hash, until a payload above the threshold moves it to the
 *         large one (route_lane.c). The lanes that a peer takes are known after the handshake;
 *         frames that were encoded before, or for the incarnation before, are then sorted again,
 *         lane by lane.
 * Must hold.
 *   spread-S1  Frames of one recipient are always in one lane's queue, and sorting keeps their
 *       order: the ordinary lanes first, then the large one, which a recipient enters and never
 *       leaves while it has something there.
 *   spread-S2  A peer that does not take more lanes sees the first two only.
 * Limits. TRPI_ORDINARY_LANES_MAX.
 * Tests.  tests/unit/remote/lanes_test.c
 */
#include "remote/association/lane.h"

#include <string.h>

#include "base/assert.h"
#include "base/hash.h"
#include "base/wire.h"
#include "remote/association/conn.h"
#include "remote/association/peer.h"
#include "remote/wire/compress.h"

_Static_assert((int)TRPI_REMOTE_LANES == (int)TRPI_LANE_COUNT, "the door tells of all lanes");

uint32_t
trpi_features_own(const trpi_remote *remote)
{
    uint32_t features = TRPI_FEATURES_OWN & ~remote->options.features_off;
    static const uint32_t of_minor[TRPI_WIRE_MINOR] = { 0, TRPI_FEATURES_MINOR_1,
                                                        TRPI_FEATURES_MINOR_2,
                                                        TRPI_FEATURES_MINOR_3,
                                                        TRPI_FEATURES_MINOR_4 };
    if (remote->options.wire_minor < TRPI_WIRE_MINOR) {
        features &= of_minor[remote->options.wire_minor];
    }
    return trpi_compress_is_built() ? features : features & ~(uint32_t)TRPI_FEATURE_LZ4;
}

void
trpi_peer_agree(trpi_peer *peer, const trpi_handshake *handshake, int64_t cert_until_ms)
{
    uint32_t own = trpi_peer_remote(peer)->options.frame_bytes_max;
    uint32_t theirs =
        handshake->frame_bytes_max >= TRPI_FRAME_BYTES_LEAST ? handshake->frame_bytes_max : own;
    uint32_t minor = handshake->minor != 0 ? handshake->minor : 1;
    atomic_store_explicit(&peer->agreed.frame_bytes_max, own < theirs ? own : theirs,
                          memory_order_relaxed);
    atomic_store_explicit(&peer->agreed.features,
                          handshake->features & trpi_features_own(trpi_peer_remote(peer)),
                          memory_order_relaxed);
    peer->agreed.cert_until_ms = cert_until_ms;
    peer->agreed.minor = minor < trpi_peer_remote(peer)->options.wire_minor
                             ? minor
                             : trpi_peer_remote(peer)->options.wire_minor;
}

uint32_t
trpi_control_frame_max(uint32_t features, uint32_t frame_bytes_max)
{
    bool is_wide = (features & TRPI_FEATURE_WIDE_CONTROL) != 0;
    return is_wide && frame_bytes_max < TRPI_CONTROL_FRAME_BYTES_MAX ? TRPI_CONTROL_FRAME_BYTES_MAX
                                                                     : frame_bytes_max;
}

void
trpi_conn_takes_large(trpi_conn *conn)
{
    uint32_t max = trpi_conn_remote(conn)->options.frame_bytes_max;
    trpi_frame_decoder_limit(
        &conn->decoder, max,
        trpi_conn_lane(conn) == TRPI_LANE_CONTROL
            ? trpi_control_frame_max(trpi_features_own(trpi_conn_remote(conn)), max)
            : max);
}

static enum trpi_lane
lane_of_frame(uint32_t spread, const trpi_frame *frame)
{
    bool has_slot = (frame->kind == TRPI_FRAME_USER || frame->kind == TRPI_FRAME_MANY) &&
                    frame->bytes >= TRPI_USER_FIXED_BYTES;
    return has_slot ? trpi_lane_of(spread, trpi_get_u32(frame->body)) : TRPI_LANE_ORDINARY;
}

/* Is this manifest the first of its type? Each lane has its own, and all lanes get each. */
static bool
is_news(const trpi_frame *frame, uint8_t announced[TRPI_ANNOUNCED_BYTES])
{
    const trp_type *type = trpi_type_find_wire(trpi_get_u64(frame->body));
    uint32_t number = type != NULL ? type->number : 0;
    uint8_t bit = (uint8_t)(1u << (number & 7u));
    bool known = (announced[number >> 3] & bit) != 0;
    announced[number >> 3] |= bit;
    return !known;
}

void
trpi_frames_sort(uint32_t spread, const trpi_buffer *frames, trpi_buffer sorted[TRPI_LANE_COUNT],
                 uint8_t announced[TRPI_ANNOUNCED_BYTES], trpi_buffer *ret_lost)
{
    for (size_t at = 0; at < frames->count;) {
        trpi_frame frame;
        trpi_frame_header_decode(frames->data + at, &frame);
        size_t bytes = TRPI_FRAME_HEADER_BYTES + frame.bytes;
        enum trpi_lane first = lane_of_frame(spread, &frame), last = first;
        if (frame.kind == TRPI_FRAME_FENCE || /* its lane's place is not what it was */
            (frame.kind == TRPI_FRAME_MANIFEST && !is_news(&frame, announced))) {
            at += bytes;
            continue;
        }
        if (frame.kind == TRPI_FRAME_MANIFEST && spread > 1) { /* each connection is told names */
            last = (enum trpi_lane)(TRPI_LANE_ORDINARY + spread - 1);
        }
        for (enum trpi_lane lane = first; lane <= last; lane++) {
            if (trpi_buffer_append(&sorted[lane], frames->data + at, bytes, TRPI_BUFFER_NO_LIMIT) !=
                TRP_OK) {
                /* and when that fails too: lost, as a dead letter is that finds no memory */
                (void)trpi_buffer_append(ret_lost, frames->data + at, bytes, TRPI_BUFFER_NO_LIMIT);
            }
        }
        at += bytes;
    }
}

/* spread-S1 */
static void
pending_sort(trpi_peer *peer, uint32_t spread, trpi_deferred *deferred)
{
    trpi_buffer sorted[TRPI_LANE_COUNT];
    memset(sorted, 0, sizeof sorted);
    uint8_t announced[TRPI_ANNOUNCED_BYTES] = { 0 };
    uint64_t uid = 0, since_ms = UINT64_MAX;
    for (int i = TRPI_LANE_ORDINARY; i < TRPI_LANE_COUNT; i++) {
        trpi_lane_state *lane = &peer->lanes[i];
        if (!trpi_lane_is_empty(lane)) {
            uid = trpi_lane_uid(lane) != 0 ? trpi_lane_uid(lane) : uid;
            since_ms = trpi_lane_since_ms(lane) < since_ms ? trpi_lane_since_ms(lane) : since_ms;
            trpi_dropped *lost = &deferred->dropped[i];
            if (lost->frames.count == 0) {
                lost->uid = trpi_lane_uid(lane);
                lost->reason = TRP_DEAD_NO_MEMORY;
            }
            trpi_frames_sort(spread, trpi_lane_frames(lane), sorted, announced, &lost->frames);
            trpi_lane_queue_clear(&lane->queue);
        }
    }
    for (int i = TRPI_LANE_ORDINARY; i < TRPI_LANE_COUNT; i++) {
        trpi_lane_state *lane = &peer->lanes[i];
        trpi_lane_queue_put(&lane->queue, &sorted[i], sorted[i].count > 0 ? uid : 0, since_ms);
        trpi_lane_unsettle(&peer->lane_marks, (enum trpi_lane)i);
        if (!trpi_lane_is_empty(lane)) {
            trpi_fence_need(&lane->fence);
        }
        /* frames on their way were for an incarnation that is over, and so were their fences */
        trpi_fence_left(&lane->fence);
        trpi_fence_settled(&lane->fence);
    }
}

void
trpi_peer_spread(trpi_peer *peer, trpi_deferred *deferred)
{
    bool more = (atomic_load_explicit(&peer->agreed.features, memory_order_relaxed) &
                 TRPI_FEATURE_LANES) != 0;
    uint32_t spread = more ? trpi_peer_remote(peer)->options.ordinary_lanes : 0;
    if (spread == atomic_load_explicit(&peer->agreed.spread, memory_order_relaxed)) {
        return;
    }
    trpi_assert(spread <= TRPI_ORDINARY_LANES_MAX);
    pending_sort(peer, spread, deferred);
    trpi_large_restart(&peer->large);
    atomic_store_explicit(&peer->agreed.spread, spread,
                          memory_order_relaxed); /* routes look under lock */
}
