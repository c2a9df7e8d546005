/* peer.c - one address: the shell of its association. Events in, effects done.
 *
 * Shape.   an event -> lock -> trpi_peer_step (pure machine; effects on members of the peer at
 *          once, others into a trpi_deferred) -> trpi_peer_pump (choose connections, send, dial)
 *          -> trpi_peer_unlock (write, tell the system, log)
 * Must hold.
 *   peer-P2  The end of an incarnation is told to the system exactly once by a step; what was
 *       queued for it becomes dead letters, frames for any incarnation stay.
 * Tests.   tests/unit/remote/remote_test.c; the machine itself: association_test.c
 */
#include "remote/association/peer.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "remote/association/conn.h"
#include "remote/association/hold.h"

static void
send_handshake(trpi_peer *peer, trpi_conn *conn, enum trpi_frame_kind kind)
{
    trpi_handshake handshake;
    memset(&handshake, 0, sizeof handshake);
    handshake.from.address = peer->remote->address;
    handshake.from.uid = peer->remote->uid;
    handshake.to = peer->address;
    handshake.to_uid = trpi_conn_uid(conn);
    handshake.frame_bytes_max = peer->remote->options.frame_bytes_max;
    handshake.features = trpi_features_own(peer->remote);
    handshake.minor = peer->remote->options.wire_minor;
    if (kind == TRPI_FRAME_HANDSHAKE_REFUSAL) {
        (void)snprintf(handshake.reason, sizeof handshake.reason,
                       trpi_assoc_is_rival(&peer->assoc, trpi_conn_uid(conn)) ? TRPI_RIVAL_REASON
                       : trpi_assoc_is_claimant(&peer->assoc, trpi_conn_uid(conn))
                           ? TRPI_CLAIMANT_REASON
                           : TRPI_BARRED_FORMAT,
                       trpi_conn_uid(conn));
        trpi_conn_close_when_sent(conn);
    }
    if (trpi_conn_handshake(conn, kind, &handshake) != TRP_OK) {
        trpi_conn_close(conn);
    }
}

void
trpi_peer_close(trpi_peer *peer, const trpi_conn *but)
{
    for (trpi_conn *conn = peer->conns; conn != NULL; conn = trpi_conn_next(conn)) {
        if (conn != but) {
            trpi_conn_close(conn);
        }
    }
}

/* Drop the frames that wait for an incarnation other than `uid`: they will never be sent. */
static void
drop_others(trpi_peer *peer, uint64_t uid, trpi_deferred *deferred)
{
    for (int lane = 0; lane < TRPI_LANE_COUNT; lane++) {
        if (trpi_lane_uid(&peer->lanes[lane]) != 0 && trpi_lane_uid(&peer->lanes[lane]) != uid) {
            trpi_lane_drop(peer, (enum trpi_lane)lane, uid, TRP_DEAD_STALE, deferred);
        }
    }
}

static void
incarnation_over(trpi_peer *peer, const trpi_assoc_effects *effects, trpi_deferred *deferred)
{
    deferred->over_uid = effects->over_uid; /* peer-P2 */
    deferred->over_quarantined = effects->over_quarantined;
    trp_dead_reason reason = effects->over_quarantined ? TRP_DEAD_QUARANTINED : TRP_DEAD_STALE;
    for (int lane = 0; lane < TRPI_LANE_COUNT; lane++) {
        trpi_lane_state *state = &peer->lanes[lane];
        if (trpi_lane_uid(state) == effects->over_uid) {
            trpi_lane_drop(peer, (enum trpi_lane)lane, 0, reason, deferred);
        }
        /* Its connections may stand a little longer (after a goodbye they do): frames for any
         * incarnation must wait for the next one, not be lost with this one. */
        if (trpi_lane_out(state) != NULL &&
            trpi_conn_uid(trpi_lane_out(state)) == effects->over_uid) {
            trpi_peer_lane_disconnect(peer, (enum trpi_lane)lane);
        }
    }
    trpi_holds_drop(peer, effects->over_uid, reason, deferred);
    if (peer->redelivery_uid == effects->over_uid) {
        trpi_peer_stream_begin(peer, 0); /* its watchers are told by over_uid */
    }
    trpi_waiting_drop(&peer->waiting, effects->over_uid);
    trpi_dials_forget(&peer->dials);
    trpi_watch_end(&peer->watch);
    if (atomic_load_explicit(&peer->proved_uid, memory_order_relaxed) == effects->over_uid) {
        atomic_store_explicit(&peer->proved_uid, 0, memory_order_release);
    }
    if (effects->over_quarantined) {
        trpi_count(&peer->remote->stats.quarantined, 1);
    }
}

void
trpi_peer_end_again(trpi_peer *peer, uint64_t uid)
{
    trpi_node_id id = { peer->address, uid };
    uint32_t node = trpi_node_find(peer->remote->system, &id);
    trpi_peer_make_active(peer);
    if (node == 0) { /* no actor here watches it or sends to it */
        return;
    }
    if (uid != 0) {
        trpi_node_mark_ended(peer->remote->system,
                             node); /* now: should it be met, it gets another */
    }
    for (uint32_t i = 0; i < peer->ends.count; i++) {
        if (peer->ends.nodes[i] == node) {
            return;
        }
    }
    if (trpi_array_reserve(&peer->ends.nodes, peer->ends.count, &peer->ends.room,
                           sizeof *peer->ends.nodes, 1, TRPI_ARRAY_NO_LIMIT) != TRP_OK) {
        peer->ends.lost++; /* the tick says so, without the lock */
        return;
    }
    peer->ends.nodes[peer->ends.count++] = node;
}

void
trpi_peer_overflowed(trpi_peer *peer, uint64_t uid)
{
    trpi_peer_make_active(peer);
    if (peer->ends.overflowed_uid == 0 || peer->ends.overflowed_uid == uid) {
        peer->ends.overflowed_uid = uid;
    } else {
        trpi_peer_end_again(peer, uid);
    }
}

trpi_ends
trpi_ends_take(trpi_ends *ends)
{
    trpi_ends taken = *ends;
    ends->nodes = NULL;
    ends->count = ends->room = ends->lost = 0;
    return taken;
}

uint64_t
trpi_ends_overflowed_take(trpi_ends *ends)
{
    uint64_t uid = ends->overflowed_uid;
    ends->overflowed_uid = 0;
    return uid;
}

static void
incarnation_activate(trpi_peer *peer, trpi_deferred *deferred)
{
    uint64_t uid = peer->assoc.uid;
    trpi_node_id id = { peer->address, uid };
    if (peer->redelivery_uid == uid) {
        trpi_redelivery_reconnected(&peer->redelivery);
    } else {
        if (peer->redelivery_uid != 0) {
            /* never met, and another incarnation lives there now */
            trpi_peer_end_again(peer, peer->redelivery_uid);
        }
        trpi_peer_stream_begin(peer, uid);
        if (trpi_waiting_move(&peer->waiting, uid, trpi_remote_now_ms(peer->remote),
                              &peer->redelivery) != TRP_OK) {
            trpi_peer_overflowed(peer, uid);
        }
    }
    if (peer->met_uid != uid) { /* also when signals were pushed for it before */
        peer->met_uid = uid;
        for (int lane = 0; lane < TRPI_LANE_COUNT; lane++) {
            trpi_lane_recv_epoch_put(&peer->lanes[lane], 0);
        }
    }
    drop_others(peer, uid, deferred);
    trpi_peer_spread(peer, deferred);
    uint32_t node = trpi_node_find(peer->remote->system, &id);
    if (node != 0) { /* it was only named before: the end of its association is its end now */
        node = trpi_node_meet(peer->remote->system, &id, &node) == TRP_OK ? node : 0;
    }
    trpi_peer_number(peer, node);
    atomic_store_explicit(&peer->active_uid, uid, memory_order_relaxed);
    /* after node: a reader that sees it sees both */
    atomic_store_explicit(&peer->proved_uid, uid, memory_order_release);
    trpi_activity_begin(&peer->activity, peer->remote, trpi_remote_now_ms(peer->remote));
    peer->goodbye_said = false;
    trpi_refusal_over(&peer->refusal);
    for (int lane = 0; lane < TRPI_LANE_COUNT; lane++) {
        trpi_lane_goodbye_ack(&peer->lanes[lane], false);
    }
}

/* A number costs memory, so one is not taken before it is needed: members come and go. */
uint32_t
trpi_peer_node(trpi_peer *peer)
{
    trpi_node_id id = { peer->address, peer->assoc.uid };
    uint32_t node = atomic_load_explicit(&peer->node, memory_order_relaxed);
    if (node == 0 && id.uid != 0 && trpi_node_meet(peer->remote->system, &id, &node) == TRP_OK) {
        trpi_peer_number(peer, node);
    }
    return node;
}

/* The line about a change of state. */
static void
note_change(trpi_peer *peer, enum trpi_assoc_state before, const trpi_assoc_effects *effects,
            trpi_link_event *note)
{
    const char *address = note->event.remote;
    const trpi_assoc *assoc = &peer->assoc;
    bool failed = assoc->state == TRPI_ASSOC_GATED;
    /* It went in good order: nothing is wrong, and nothing is to be done. */
    bool ended = (effects->bits & TRPI_ASSOC_DO_END) != 0 && !effects->over_quarantined;
    note->level = failed || (assoc->state == TRPI_ASSOC_QUARANTINED && !ended) ? TRP_LOG_WARNING
                                                                               : TRP_LOG_INFO;
    bool dialled = before == TRPI_ASSOC_HANDSHAKING && (effects->bits & TRPI_ASSOC_DO_END) == 0;
    if ((failed && (peer->failed_once ||
                    atomic_load_explicit(&peer->remote->stopping, memory_order_relaxed))) ||
        (assoc->state == TRPI_ASSOC_QUARANTINED && dialled)) {
        note->level = TRP_LOG_DEBUG; /* each change once, not each attempt; not our own end */
    }
    peer->failed_once = failed;
    if (assoc->state == TRPI_ASSOC_ACTIVE) {
        (void)snprintf(note->text, sizeof note->text,
                       "association active peer=%s uid=%016" PRIx64 " reason=\"%s\"", address,
                       assoc->uid, peer->reason);
    } else if (assoc->state == TRPI_ASSOC_QUARANTINED) {
        (void)snprintf(note->text, sizeof note->text,
                       "association %s peer=%s uid=%016" PRIx64
                       " reason=\"%s\" next=\"only another incarnation of it is talked to\"",
                       ended ? "ended" : "quarantined", address, assoc->uid, peer->reason);
    } else {
        (void)snprintf(note->text, sizeof note->text,
                       "association gated peer=%s uid=%016" PRIx64
                       " reason=\"%s\" next=\"may dial again in %u ms\"",
                       address, assoc->uid, peer->reason, assoc->backoff_ms);
    }
}

static trpi_link_event *
note_event(trpi_peer *peer, const trp_type *type, uint64_t uid, trpi_deferred *deferred)
{
    trpi_link_event *note = trpi_link_event_new(peer, type, deferred);
    if (note != NULL) {
        note->event.remote_uid = uid;
        note->event.inbound = peer->inbound;
        (void)snprintf(note->event.reason, sizeof note->event.reason, "%s", peer->reason);
    }
    return note;
}

/* Note the events of a step: the end of the state before, then the present one, with the line. */
static void
note_step(trpi_peer *peer, enum trpi_assoc_state before, uint64_t uid_before, bool inbound,
          const trpi_assoc_effects *effects, trpi_deferred *deferred)
{
    const trpi_assoc *assoc = &peer->assoc;
    bool active = assoc->state == TRPI_ASSOC_ACTIVE;
    bool good = (effects->bits & TRPI_ASSOC_DO_END) != 0 && !effects->over_quarantined;
    trpi_link_event *note = NULL;
    if (before == TRPI_ASSOC_ACTIVE && (!active || assoc->uid != uid_before)) {
        note = note_event(peer, &trp_disassociated_type, uid_before, deferred);
    }
    if ((effects->bits & TRPI_ASSOC_DO_END) != 0 && effects->over_quarantined) {
        note = note_event(peer, &trp_quarantined_type, effects->over_uid, deferred);
    } else if (!active && !good) {
        note = note_event(peer, &trp_association_error_type, assoc->uid, deferred);
        if (note != NULL) {
            note->event.next_ms = assoc->backoff_ms;
        }
    } else if (active) {
        peer->inbound = inbound;
        note = note_event(peer, &trp_associated_type, assoc->uid, deferred);
    }
    if (note != NULL) {
        note_change(peer, before, effects, note);
    }
}

/* An incarnation was quarantined that is not the present one. */
static void
note_quarantined_other(trpi_peer *peer, uint64_t uid, const char *reason, trpi_deferred *deferred)
{
    trpi_link_event *note = trpi_link_event_new(peer, &trp_quarantined_type, deferred);
    if (note != NULL) {
        note->event.remote_uid = uid;
        note->level = TRP_LOG_WARNING;
        (void)snprintf(note->event.reason, sizeof note->event.reason, "%s", reason);
        (void)snprintf(note->text, sizeof note->text,
                       "incarnation quarantined peer=%s uid=%016" PRIx64 " reason=\"%s\"",
                       note->event.remote, uid, reason);
    }
}

uint32_t
trpi_peer_step(trpi_peer *peer, trpi_conn *conn, const trpi_assoc_event *event, const char *reason,
               trpi_deferred *deferred)
{
    enum trpi_assoc_state before = peer->assoc.state;
    uint64_t uid_before = peer->assoc.uid;
    trpi_assoc_effects effects = trpi_assoc_step(&peer->assoc, &peer->remote->assoc_config,
                                                 trpi_remote_now_ms(peer->remote), event);
    uint32_t bits = effects.bits;
    bool is_other = effects.over_quarantined && effects.over_uid != peer->assoc.uid;
    if (reason[0] != '\0' && (bits & TRPI_ASSOC_DO_LOG) != 0 && !is_other) {
        (void)snprintf(peer->reason, sizeof peer->reason, "%s", reason);
    }
    if (peer->assoc.state != TRPI_ASSOC_ACTIVE) {
        atomic_store_explicit(&peer->active_uid, 0, memory_order_relaxed);
    }
    if ((bits & TRPI_ASSOC_DO_REFUSE) != 0) {
        send_handshake(peer, conn, TRPI_FRAME_HANDSHAKE_REFUSAL);
    }
    if ((bits & TRPI_ASSOC_DO_ASK) != 0) {
        trpi_peer_ping(peer, trpi_remote_now_ms(peer->remote));
    }
    if ((bits & TRPI_ASSOC_DO_CLOSE) != 0) {
        trpi_peer_close(peer, conn);
    }
    if ((bits & TRPI_ASSOC_DO_CLOSE_THIS) != 0 && conn != NULL) {
        trpi_conn_close(conn);
    }
    if ((bits & TRPI_ASSOC_DO_END) != 0) {
        incarnation_over(peer, &effects, deferred);
    }
    if ((bits & TRPI_ASSOC_DO_ACTIVATE) != 0) {
        incarnation_activate(peer, deferred);
    }
    if ((bits & TRPI_ASSOC_DO_RESPOND) != 0) {
        /* it may have lost the connection that we still send on: a PING finds that out */
        trpi_activity_use(&peer->activity);
        send_handshake(peer, conn, TRPI_FRAME_HANDSHAKE_RESPONSE);
    }
    if ((bits & TRPI_ASSOC_DO_REQUEST) != 0) {
        send_handshake(peer, conn, TRPI_FRAME_HANDSHAKE_REQUEST);
    }
    if ((bits & TRPI_ASSOC_DO_DIAL) != 0) {
        trpi_conn_dial(peer, TRPI_LANE_CONTROL);
    }
    if (is_other) {
        note_quarantined_other(peer, effects.over_uid, reason, deferred);
    } else if ((bits & TRPI_ASSOC_DO_LOG) != 0) {
        note_step(peer, before, uid_before, conn != NULL && !trpi_conn_is_dialled(conn), &effects,
                  deferred);
    }
    if (before == TRPI_ASSOC_HANDSHAKING && peer->assoc.state == TRPI_ASSOC_GATED) {
        /* No answer: gossip and heartbeats that wait would be outdated. */
        trpi_lane_state *control = &peer->lanes[TRPI_LANE_CONTROL];
        trpi_lane_queue_clear(&control->queue);
        trpi_redelivery_reconnected(&peer->redelivery);
    }
    return bits;
}
