/* lane.c - the queue of a lane: whole frames, with a bound, sent or dropped.
 *
 * Why.    Frames wait as bytes, in one growing buffer a lane that is swapped with the connection's
 *         when a write ends: what gathers during a write leaves as one write, a lone frame leaves
 *         at once, and in the busy case no byte is copied between encoding and the kernel.
 * Must hold.
 *   lane-Q1  pending holds whole frames, in the order of appending.
 *   lane-Q2  All frames without ANYONE in pending are for one incarnation, pending_uid.
 *   lane-Q3  A user message that leaves a lane without being sent is a dead letter with its reason,
 *       and names the incarnation that it was for, not the present one: asks are found by it.
 * Limits. lane_bytes_max, large_lane_bytes_max, control_bytes_max: counted with what is in flight.
 * Tests.  tests/unit/remote/remote_test.c
 */
#include "remote/association/lane.h"

#include <string.h>

#include "base/assert.h"
#include "remote/association/peer.h"
#include "remote/wire/carried.h"

static bool
is_message(const trpi_frame *frame)
{
    return frame->kind == TRPI_FRAME_USER || frame->kind == TRPI_FRAME_SELECT ||
           frame->kind == TRPI_FRAME_MANY;
}

/* A fence stays behind the frames that stay; if none do it counts as sent. */
void
trpi_lane_drop(trpi_peer *peer, enum trpi_lane lane, uint64_t keep_uid, trp_dead_reason reason,
               trpi_deferred *deferred)
{
    trpi_lane_state *state = &peer->lanes[lane];
    trpi_dropped *dropped = &deferred->dropped[lane];
    bool keep_specific = keep_uid != 0 && state->queue.uid == keep_uid;
    trpi_buffer kept = { 0 };
    bool kept_any = false;
    size_t before = state->queue.frames.count;
    if (before == 0 || keep_specific) {
        return;
    }
    trpi_assert(dropped->frames.count == 0 || dropped->uid == 0);
    dropped->uid = state->queue.uid;
    dropped->reason = reason;
    for (size_t at = 0; at < before;) {
        trpi_frame frame;
        trpi_frame_header_decode(state->queue.frames.data + at, &frame);
        size_t bytes = TRPI_FRAME_HEADER_BYTES + frame.bytes;
        bool fence = frame.kind == TRPI_FRAME_FENCE;
        bool anyone = !fence && (frame.flags & TRPI_MESSAGE_ANYONE) != 0;
        trpi_buffer *to = anyone || fence ? &kept : is_message(&frame) ? &dropped->frames : NULL;
        kept_any = kept_any || anyone;
        if (to != NULL) {
            /* Out of memory: the frame is lost, as a dead letter is that finds no memory. */
            (void)trpi_buffer_append(to, state->queue.frames.data + at, bytes,
                                     TRPI_BUFFER_NO_LIMIT);
        }
        at += bytes;
    }
    if (!kept_any) {
        trpi_buffer_fini(&kept);
        trpi_fence_left(&state->fence);
    }
    trpi_buffer_fini(&state->queue.frames);
    state->queue.frames = kept;
    state->queue.uid = 0; /* lane-Q2 */
    trpi_lane_queue_sent(&state->queue, before - kept.count);
}

void
trpi_lane_clear(trpi_peer *peer, enum trpi_lane lane, trpi_deferred *deferred)
{
    trpi_lane_state *state = &peer->lanes[lane];
    trpi_dropped *dropped = &deferred->dropped[lane];
    trpi_assert(dropped->frames.count == 0);
    if (state->queue.frames.count == 0) {
        return;
    }
    *dropped = (trpi_dropped){ state->queue.frames, state->queue.uid, TRP_DEAD_NOT_CONNECTED };
    trpi_lane_queue_sent(&state->queue, state->queue.frames.count);
    memset(&state->queue.frames, 0, sizeof state->queue.frames);
    state->queue.uid = 0;
    trpi_fence_left(&state->fence);
}

/* lane-Q3 */
void
trpi_lane_dead_letters(trpi_peer *peer, uint32_t node, const trpi_buffer *frames,
                       trp_dead_reason reason)
{
    for (size_t at = 0; at < frames->count;) {
        trpi_frame frame;
        trpi_message message;
        trpi_frame_header_decode(frames->data + at, &frame);
        at += TRPI_FRAME_HEADER_BYTES + frame.bytes;
        if (!is_message(&frame) || !trpi_message_peek(&frame, &message)) {
            continue;
        }
        trp_ref sender = TRP_REF_NONE;
        if ((frame.flags & TRPI_MESSAGE_SENDER_MASK) == TRPI_CODE_SENDING) {
            sender = message.sender;
            sender.node = TRPI_NODE_SELF;
        }
        bool anyone = (frame.flags & TRPI_MESSAGE_ANYONE) != 0; /* any incarnation, if known */
        trp_ref recipient = { anyone ? trpi_peer_node_known(peer) : node, message.to_slot,
                              message.to_generation, 0 };
        const trp_type *type = trpi_type_find_wire(message.wire_id);
        if (frame.kind == TRPI_FRAME_SELECT && reason == TRP_DEAD_QUARANTINED) {
            trpi_selection_failed(trpi_peer_remote(peer)->system, sender, TRP_EQUARANTINED);
        }
        bool many = frame.kind == TRPI_FRAME_MANY;
        const uint8_t *payload;
        size_t bytes = message.payload_bytes;
        while (!many || trpi_many_next(&message, &payload, &bytes)) {
            trpi_traffic_dropped_add(&peer->traffic, 1);
            trpi_dead_letter(trpi_peer_remote(peer)->system, sender, recipient, reason,
                             trpi_carried_shown(type, many ? payload : message.payload, bytes),
                             bytes);
            if (!many) {
                break;
            }
        }
    }
}

/* They go over the control lane only, and are no use of an association. */
static bool
is_beat(const trpi_buffer *frames)
{
    trpi_frame frame;
    trpi_frame_header_decode(frames->data, &frame);
    return frame.kind == TRPI_FRAME_PING || frame.kind == TRPI_FRAME_PONG;
}

trp_err
trpi_peer_append(trpi_peer *peer, enum trpi_lane lane, uint64_t uid, trpi_buffer *frames,
                 bool checked)
{
    trpi_lane_state *state = &peer->lanes[lane];
    size_t max = trpi_lane_bytes_max(trpi_peer_remote(peer), lane);
    size_t queued = atomic_load_explicit(&state->queue.bytes, memory_order_relaxed);
    if (uid != 0) {
        if (trpi_assoc_is_barred(&peer->assoc, uid)) {
            return TRP_EQUARANTINED;
        }
        bool other_active = trpi_peer_is_active(peer) && trpi_peer_uid(peer) != uid;
        if (other_active || (state->queue.uid != 0 && state->queue.uid != uid)) {
            return TRP_ECLOSED; /* lane-Q2 */
        }
    }
    /* a large view may be longer than all that is allowed to wait: it asks for half of the room */
    bool is_long = lane == TRPI_LANE_CONTROL && frames->count > max / 2;
    if (!checked && queued + (is_long ? max / 2 : frames->count) > max) {
        return TRP_EAGAIN;
    }
    if (!trpi_activity_is_used(&peer->activity) &&
        (lane != TRPI_LANE_CONTROL || !is_beat(frames))) {
        trpi_activity_use(&peer->activity);
    }
    if (state->queue.frames.count == 0) {
        trpi_buffer empty = state->queue.frames;
        state->queue.frames = *frames;
        *frames = empty;
        queued += state->queue.frames.count;
        atomic_fetch_add_explicit(&state->queue.bytes, state->queue.frames.count,
                                  memory_order_relaxed);
        state->queue.since_ms = trpi_remote_now_ms(trpi_peer_remote(peer));
    } else {
        trp_err err = trpi_buffer_append(&state->queue.frames, frames->data, frames->count,
                                         TRPI_BUFFER_NO_LIMIT);
        if (err != TRP_OK) {
            return err;
        }
        queued += frames->count;
        atomic_fetch_add_explicit(&state->queue.bytes, frames->count, memory_order_relaxed);
        trpi_buffer_clear(frames);
    }
    if (uid != 0) {
        state->queue.uid = uid;
    }
    trpi_fence_need(&state->fence);
    if (state->conns.out == NULL) {
        trpi_lane_unsettle(&peer->lane_marks, lane);
    }
    /* no sender is slowed by the control lane */
    if (queued > max / 4 && lane != TRPI_LANE_CONTROL) { /* high-water mark */
        peer->lane_marks.over_high_water |= 1u << lane;
    }
    return TRP_OK;
}

void
trpi_lanes_room_notify(trpi_peer *peer, trpi_deferred *deferred)
{
    trpi_lane_marks *marks = &peer->lane_marks;
    size_t promised = trpi_peer_reserved(peer);
    for (uint32_t left = marks->over_high_water | marks->room_refused; left != 0;
         left &= left - 1) {
        enum trpi_lane lane = (enum trpi_lane)__builtin_ctz(left);
        uint32_t bit = 1u << lane;
        size_t queued = atomic_load_explicit(&peer->lanes[lane].queue.bytes, memory_order_relaxed);
        /* low-water mark; also when what waited was given up */
        if ((marks->over_high_water & bit) != 0 &&
            queued < trpi_lane_bytes_max(trpi_peer_remote(peer), lane) / 8) {
            marks->over_high_water &= ~bit;
            deferred->ready = true;
        }
        if ((marks->room_refused & bit) != 0 &&
            queued + promised <= trpi_lane_admit_max(trpi_peer_remote(peer), lane) / 2) {
            marks->room_refused &= ~bit;
            deferred->ready = true;
        }
    }
}

/* Append the system messages that are due to the control lane. The caller holds peer->lock; the
 * association is active. */
void
trpi_system_messages_send(trpi_peer *peer)
{
    trpi_lane_state *lane = &peer->lanes[TRPI_LANE_CONTROL];
    uint64_t now_ms = trpi_remote_now_ms(trpi_peer_remote(peer));
    /* the other half is for other frames */
    size_t room_kept = trpi_peer_remote(peer)->options.control_bytes_max / 2;
    uint64_t seq = 0;
    while (atomic_load_explicit(&lane->queue.bytes, memory_order_relaxed) < room_kept) {
        const uint8_t *body = trpi_redelivery_next(&peer->redelivery, now_ms, &seq);
        if (body == NULL) {
            return;
        }
        uint32_t tail_bytes = 0;
        const uint8_t *tail = trpi_redelivery_tail(&peer->redelivery, seq, &tail_bytes);
        size_t before = lane->queue.frames.count;
        if (trpi_system_frame_append(&lane->queue.frames, seq, body, tail, tail_bytes) != TRP_OK) {
            return; /* it is resent when no ack comes */
        }
        lane->queue.uid = trpi_peer_uid(peer);
        trpi_lane_unsettle(&peer->lane_marks, TRPI_LANE_CONTROL);
        trpi_activity_use(&peer->activity);
        atomic_fetch_add_explicit(&lane->queue.bytes, lane->queue.frames.count - before,
                                  memory_order_relaxed);
    }
}
