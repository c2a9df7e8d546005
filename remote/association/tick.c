/* tick.c - periodic work on peers: liveness, timeouts, idle peers.
 *
 * Why.    A node of a cluster has a connection to nearly every other node, because gossip goes to
 *         each in turn, and most of these associations carry nothing else. So an idle peer is
 *         neither sent a PING nor looked at by the tick, and the cost of an idle node does not grow
 *         with the number of its associations.
 * Shape.  active  the tick looks at the peer, and sends a PING while it is used
 *           |  ^
 *           |  '-- any event (trpi_peer_pump), or a probe
 *           v
 *         two lists, in order of entry: idle associations, and gone peers (no association), which
 *         are forgotten in the end
 * Must hold.
 *   tick-T1  A frame to a peer is followed by a PING within a heartbeat and a tick, and a PING
 *       without an answer by further ones: a user of a dead link learns of it as if the peer were
 *       sent a PING all the time. A heartbeat of the failure detector that was answered is as good
 *       as a PING and its PONG (trpi_activity_bears_beats): then the PING comes a heartbeat and two
 *       ticks after it, if the next one was not answered.
 *   tick-T2  A peer is idle only while nothing about it depends on time. (may_be_idle)
 *   tick-T3  Silence is judged only while an answer is due.
 *   tick-T4  A peer is forgotten when it has no pin, and when the reasons to keep it are over:
 *       numbers of a stream whose incarnation may come back, incarnations that are barred. Where
 *       places are short it is forgotten earlier (strangers.c).
 *   tick-T5  The peer may remember this node: epochs of its lanes continue. (peers.c)
 * Limits. Every PROBE_GAP_MS the peer that has been idle longest is sent a PING, if it has been
 *         idle for PROBE_MS; a quiet peer that may not be idle is sent one as often. So a host that
 *         vanished is noticed although nobody uses it, and address translation in between sees
 *         traffic.
 *         FORGET_MS, after a goodbye or without a handshake; FORGET_BARRED_MS.
 * Tests.  tests/unit/remote/activity_test.c, events_test.c, tests/sim/idle_test.c, beats_test.c
 */
#include "remote/association/activity.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/alloc.h"
#include "remote/association/conn.h"
#include "remote/association/hold.h"
#include "remote/association/peer.h"

#define TRPI_SILENT_RIVAL "no answer while another incarnation calls with its address"

enum {
    OWN_PAUSE_MS = 1000,
    PROBE_MS = 30000,
    PROBE_GAP_MS = 1000,
    FORGET_MS = 600000,
    FORGET_BARRED_MS = 24 * 3600 * 1000
};

/* Free the buffers that the last gossip left: with many associations most of their memory. */
static void
buffers_trim(trpi_peer *peer)
{
    for (int lane = 0; lane < TRPI_LANE_COUNT; lane++) {
        trpi_lane_trim(&peer->lanes[lane]);
    }
    for (trpi_conn *conn = trpi_peer_conns(peer); conn != NULL; conn = trpi_conn_next(conn)) {
        trpi_conn_write_trim(conn);
    }
}

/* lane-dial-D3: it is to be dialled again. */
static bool
has_doubted_lane(const trpi_peer *peer)
{
    for (int lane = TRPI_LANE_ORDINARY; lane < TRPI_LANE_COUNT; lane++) {
        if (trpi_lane_is_doubted(peer, lane) && trpi_lane_out(&peer->lanes[lane]) == NULL) {
            return true;
        }
    }
    return false;
}

/* tick-T2 */
static bool
may_be_idle(const trpi_peer *peer, bool watched)
{
    bool active = trpi_peer_is_active(peer);
    bool quiet =
        active ? trpi_activity_is_quiet(&peer->activity) : trpi_assoc_is_at_rest(&peer->assoc);
    if (!quiet || trpi_peer_wants(peer) || trpi_lanes_have_refused(&peer->lane_marks) ||
        trpi_large_is_used(&peer->large) || trpi_ends_are_due(&peer->ends) ||
        has_doubted_lane(peer) || (watched && !(active && peer->watch.delegated))) {
        return false;
    }
    for (const trpi_conn *conn = trpi_peer_conns(peer); conn != NULL; conn = trpi_conn_next(conn)) {
        if (!trpi_conn_may_rest(conn)) {
            return false;
        }
    }
    return true;
}

/* ---- is it there? ---------------------------------------------------------------------------- */

/* Is a PONG waited for, which says more than an answered heartbeat? */
static bool
is_pong_wanted(const trpi_peer *peer, bool watched)
{
    return (watched && !peer->watch.delegated) || trpi_waiting_count(&peer->waiting) > 0;
}

/* Is it to be known whether the peer is there? */
static bool
is_to_be_asked(const trpi_peer *peer, bool watched)
{
    return trpi_activity_is_in_question(&peer->activity) || is_pong_wanted(peer, watched) ||
           trpi_redelivery_unacked(&peer->redelivery) > 0;
}

static void
tick_active(trpi_peer *peer, uint64_t now_ms, bool watched, trpi_deferred *deferred)
{
    const trpi_remote_options *o = &trpi_peer_remote(peer)->options;
    uint32_t beat_ms =
        o->watch_heartbeat_ms < o->link_heartbeat_ms ? o->watch_heartbeat_ms : o->link_heartbeat_ms;
    if (trpi_beat_used_take(trpi_peer_beat_box(peer))) {
        trpi_activity_use(&peer->activity);
    }
    if (trpi_activity_ping_is_due(&peer->activity, now_ms, beat_ms,
                                  is_pong_wanted(peer, watched))) {
        if (is_to_be_asked(peer, watched)) {
            trpi_peer_ping(peer, now_ms); /* tick-T1 */
        } else {
            trpi_activity_rest(&peer->activity);
        }
    }
    if (trpi_activity_is_quiet(&peer->activity) &&
        now_ms - trpi_activity_pinged_ms(&peer->activity) >= PROBE_MS &&
        !may_be_idle(peer, watched)) {
        trpi_peer_ping(peer, now_ms); /* idle_peer_probe() does not see it */
    }
    trp_err given_up = trpi_redelivery_tick(&peer->redelivery, now_ms);
    const char *lost = given_up != TRP_OK ? "a system message was not acknowledged in time" : NULL;
    trpi_assoc_event event = { .kind = TRPI_ASSOC_QUARANTINE };
    char reason[80];
    if (lost == NULL && trpi_activity_is_silent(&peer->activity, now_ms)) {
        event.kind = TRPI_ASSOC_LOST;
        (void)snprintf(reason, sizeof reason, "silent for %" PRIu64 " ms",
                       now_ms - trpi_activity_heard_ms(&peer->activity));
        lost = reason;
        trpi_peer_close(peer, NULL);
    }
    if (lost != NULL) {
        event.random = trpi_world_random(trpi_peer_remote(peer)->world);
        (void)trpi_peer_step(peer, NULL, &event, lost, deferred);
    }
}

/* Judge the node of actors that are watched from here, unless the cluster judges it. */
static void
tick_watch(trpi_peer *peer, uint64_t now_ms, bool watched, trpi_deferred *deferred)
{
    const trpi_remote_options *options = &trpi_peer_remote(peer)->options;
    if (!watched || peer->watch.delegated) {
        trpi_watch_end(&peer->watch);
        return;
    }
    if (!peer->watch.judged) {
        trpi_phi_options phi = { options->watch_threshold, options->watch_samples_max,
                                 options->watch_deviation_ms, options->watch_heartbeat_ms,
                                 options->watch_pause_ms };
        trpi_detector_fini(&peer->watch.detector);
        peer->watch.judged =
            trpi_detector_init(&peer->watch.detector, options->watch_detector, &phi) == TRP_OK;
        /* FD-16: also a node that never answers is judged */
        trpi_detector_assume(&peer->watch.detector, now_ms + options->watch_expected_ms);
    } else if (!trpi_detector_is_available(&peer->watch.detector, now_ms)) {
        trpi_assoc_event event = { .kind = TRPI_ASSOC_QUARANTINE,
                                   .uid = trpi_peer_stream_uid(peer),
                                   .random = trpi_world_random(trpi_peer_remote(peer)->world) };
        (void)trpi_peer_step(peer, NULL, &event, "watched node does not answer", deferred);
    }
}

/* The incarnation for which signals have waited since before_ms without being met; 0: none. */
static uint64_t
unmet_since(const trpi_peer *peer, uint64_t before_ms)
{
    uint64_t pushed_ms = 0;
    if (trpi_peer_stream_uid(peer) != trpi_peer_met_uid(peer) &&
        trpi_redelivery_oldest(&peer->redelivery, &pushed_ms) && pushed_ms < before_ms) {
        return trpi_peer_stream_uid(peer);
    }
    const trpi_waiting_entry *entry = trpi_waiting_oldest(&peer->waiting, before_ms, 0);
    return entry != NULL ? entry->uid : 0;
}

/* Give up an incarnation that was never met and that signals wait for, and tell its watchers,
 * unless the cluster judges it. */
static void
tick_unmet(trpi_peer *peer, uint64_t now_ms, trpi_deferred *deferred)
{
    uint32_t wait_ms = trpi_peer_remote(peer)->options.handshake_timeout_ms;
    bool judged = !trpi_peer_is_active(peer) && !peer->watch.delegated;
    uint64_t uid = judged && now_ms > wait_ms ? unmet_since(peer, now_ms - wait_ms) : 0;
    if (uid != 0) {
        trpi_assoc_event event = { .kind = TRPI_ASSOC_QUARANTINE,
                                   .uid = uid,
                                   .random = trpi_world_random(trpi_peer_remote(peer)->world) };
        (void)trpi_peer_step(peer, NULL, &event, "it did not show itself in time", deferred);
    }
}

/* Drop messages that have waited for a connection longer than a handshake may take. */
static void
tick_waiting(trpi_peer *peer, uint64_t now_ms, trpi_deferred *deferred)
{
    if (trpi_peer_is_active(peer)) {
        return;
    }
    for (int i = TRPI_LANE_ORDINARY; i < TRPI_LANE_COUNT; i++) {
        trpi_lane_state *lane = &peer->lanes[i];
        if (trpi_lane_is_empty(lane) || deferred->dropped[i].frames.count > 0 ||
            now_ms - trpi_lane_since_ms(lane) <
                trpi_peer_remote(peer)->options.handshake_timeout_ms) {
            continue; /* frames for any incarnation: at the next tick */
        }
        trpi_lane_clear(peer, (enum trpi_lane)i, deferred);
    }
}

/* Close those that have waited too long; returns how many of them for the end of a frame. */
static uint32_t
tick_conns(trpi_peer *peer, uint64_t now_ms)
{
    uint32_t late = 0;
    for (trpi_conn *conn = trpi_peer_conns(peer); conn != NULL; conn = trpi_conn_next(conn)) {
        bool unfinished = trpi_unfinished_is_late(conn, now_ms) && !trpi_conn_is_closing(conn);
        if (trpi_conn_is_overdue(conn, now_ms) || unfinished) {
            trpi_conn_close(conn);
        }
        late += unfinished;
    }
    return late;
}

static void
tick_peer(trpi_peer *peer, bool *ret_busy)
{
    trpi_deferred deferred = { 0 };
    trp_system *system = trpi_peer_remote(peer)->system;
    uint32_t node = trpi_peer_node_known(peer);
    bool watched = node != 0 && trpi_node_is_watched(system, node);
    pthread_mutex_lock(&peer->lock);
    /* Under the lock, as the times that it is compared with: none of them is later. */
    uint64_t now_ms = trpi_remote_now_ms(trpi_peer_remote(peer));
    trpi_assoc_event event = { .kind = TRPI_ASSOC_TICK,
                               .want =
                                   (trpi_peer_wants(peer) || watched) && trpi_peer_may_dial(peer) };
    if (!trpi_peer_is_active(peer) || trpi_peer_asked_ms(peer) != 0) { /* it may be gated */
        event.random = trpi_world_random(trpi_peer_remote(peer)->world);
    }
    bool handshaking = trpi_peer_state(peer) == TRPI_ASSOC_HANDSHAKING;
    const char *why = trpi_peer_asked_ms(peer) != 0 ? TRPI_SILENT_RIVAL : "no handshake in time";
    uint32_t bits = trpi_peer_step(peer, NULL, &event, why, &deferred);
    if (handshaking && (bits & TRPI_ASSOC_DO_CLOSE) != 0) {
        trpi_count(&trpi_peer_remote(peer)->stats.handshake_timeouts, 1);
    }
    uint32_t late = tick_conns(peer, now_ms);
    if (trpi_peer_is_active(peer)) {
        tick_active(peer, now_ms, watched, &deferred);
        trpi_fences_tick(peer, now_ms);
        trpi_graceful_close_tick(peer, now_ms);
    }
    if (trpi_ends_have_overflowed(&peer->ends) && deferred.over_uid == 0) {
        trpi_assoc_event over = { .kind = TRPI_ASSOC_QUARANTINE,
                                  .uid = trpi_ends_overflowed_take(&peer->ends),
                                  .random = trpi_world_random(trpi_peer_remote(peer)->world) };
        (void)trpi_peer_step(peer, NULL, &over, "too many unacknowledged system messages",
                             &deferred);
    }
    if (deferred.over_uid == 0) {
        tick_watch(peer, now_ms, watched, &deferred);
    }
    if (deferred.over_uid == 0) {
        tick_unmet(peer, now_ms, &deferred);
    }
    tick_waiting(peer, now_ms, &deferred);
    trpi_holds_tick(peer, now_ms, &deferred);
    trpi_ends ends = trpi_ends_take(&peer->ends);
    trpi_peer_pump(peer, &deferred);
    bool idle_or_active = trpi_peer_state(peer) == TRPI_ASSOC_IDLE || trpi_peer_is_active(peer);
    bool redial = false;
    for (int lane = TRPI_LANE_ORDINARY; lane < TRPI_LANE_COUNT; lane++) {
        redial =
            redial || (trpi_lane_wants(peer, lane) && trpi_lane_out(&peer->lanes[lane]) == NULL);
    }
    *ret_busy = *ret_busy || (!idle_or_active && event.want) || redial;
    bool idle = may_be_idle(peer, watched);
    if (idle) {
        buffers_trim(peer);
    }
    trpi_peer_list_put(peer, idle, now_ms);
    trpi_peer_unlock(peer, &deferred);
    if (late > 0) {
        trpi_unfinished_log_late(peer, late);
    }
    for (uint32_t i = 0; i < ends.count; i++) {
        trpi_node_terminated(system, ends.nodes[i], TRP_DEAD_STALE);
    }
    trpi_free(ends.nodes);
    if (ends.lost > 0) {
        char address[TRPI_ADDRESS_TEXT_BYTES];
        trpi_log(system, TRP_LOG_ERROR, "remote",
                 "out of memory: watchers of a previous incarnation were not notified of its "
                 "termination peer=%s times=%u",
                 trpi_address_format(trpi_peer_address(peer), address, sizeof address), ends.lost);
    }
}

/* ---- all of them ----------------------------------------------------------------------------- */

static void
own_pause(trpi_peer *peer, uint64_t now_ms, uint64_t pause_ms)
{
    pthread_mutex_lock(&peer->lock);
    if (trpi_peer_is_active(peer)) {
        trpi_activity_paused(&peer->activity, now_ms, pause_ms);
    }
    if (peer->watch.judged) {
        trpi_detector_own_pause(&peer->watch.detector, now_ms, pause_ms);
    }
    const trpi_assoc_event paused = { .kind = TRPI_ASSOC_PAUSED };
    trpi_deferred nothing = { 0 };
    (void)trpi_peer_step(peer, NULL, &paused, "", &nothing);
    pthread_mutex_unlock(&peer->lock);
}

/* Look at the peer that has been idle longest: it is sent a PING. */
static void
idle_peer_probe(trpi_remote *remote, uint64_t now_ms)
{
    trpi_peer *peer = trpi_peer_list_first(remote, &remote->list.idle, now_ms, PROBE_MS);
    if (peer == NULL) {
        return;
    }
    pthread_mutex_lock(&peer->lock);
    if (!trpi_activity_is_active(&peer->activity)) {
        trpi_activity_use(&peer->activity);
        trpi_peer_make_active(peer);
    }
    pthread_mutex_unlock(&peer->lock);
    trpi_peer_unpin(peer);
}

/* tick-T4, but for pins. The caller holds peer->lock. */
static bool
is_over(const trpi_peer *peer, uint64_t now_ms)
{
    uint64_t uid = trpi_peer_uid(peer);
    bool barred = uid != 0 && trpi_assoc_is_barred(&peer->assoc, uid);
    bool numbered = trpi_redelivery_is_numbered(&peer->redelivery);
    bool waits =
        trpi_assoc_barred_count(&peer->assoc) > (trpi_peer_has_said_goodbye(peer) ? 1u : 0u);
    return !trpi_activity_is_active(&peer->activity) && !peer->watch.delegated &&
           (barred || !numbered) &&
           now_ms - trpi_activity_idle_since_ms(&peer->activity) >=
               (waits ? FORGET_BARRED_MS : FORGET_MS);
}

/* Forget the peer that has been gone longest, or move it to the end of its list. */
static void
gone_peer_forget(trpi_remote *remote, uint64_t now_ms)
{
    trpi_peer *peer = trpi_peer_list_first(remote, &remote->list.gone, now_ms, FORGET_MS);
    if (peer != NULL) {
        pthread_mutex_lock(&peer->lock);
        trpi_peer_forget(peer, is_over(peer, now_ms));
    }
}

void
trpi_remote_tick_begin(trpi_remote *remote)
{
    remote->ticks.last_ms = trpi_remote_now_ms(remote);
}

bool
trpi_remote_tick(trpi_remote *remote)
{
    uint64_t now_ms = trpi_remote_now_ms(remote);
    uint64_t pause_ms = now_ms - remote->ticks.last_ms;
    bool busy = false;
    if (now_ms >= remote->ticks.probe_next_ms) {
        remote->ticks.probe_next_ms = now_ms + PROBE_GAP_MS;
        idle_peer_probe(remote, now_ms);
        gone_peer_forget(remote, now_ms);
    }
    trpi_peer *peer = trpi_peers_active_take(remote);
    while (peer != NULL) {
        /* only the tick changes a list that it has taken */
        trpi_peer *next = trpi_activity_next(&peer->activity);
        if (pause_ms > OWN_PAUSE_MS) { /* this process stood still: no silence of a peer */
            own_pause(peer, now_ms, pause_ms);
        }
        tick_peer(peer, &busy);
        trpi_peer_unpin(peer);
        peer = next;
    }
    remote->ticks.last_ms = now_ms;
    trpi_conns_expire(remote, now_ms);
    return busy;
}
