/* pump.c - the lanes of a peer: choose connections, dial, send; then the effects without the lock.
 *
 * Must hold.
 *   peer-P1  A lane sends on the first ready connection it has, dialled or accepted, and stays with
 *       it until that breaks; a LANE_OPEN with a higher epoch begins each one.
 *   peer-P4  A lane without its bit in lane_marks.unsettled needs no look: it has a connection, or
 *       has nothing to send, no fence that may be lost, and no connection that it could choose.
 * Tests.   tests/unit/remote/remote_test.c, lanes_test.c
 */
#include "remote/association/peer.h"

#include "base/wire.h"
#include "remote/association/conn.h"
#include "remote/association/hold.h"

/* false: the lane has no connection, not even one that may become ready. */
static bool
lane_connect(trpi_peer *peer, enum trpi_lane lane)
{
    trpi_lane_state *state = &peer->lanes[lane];
    trpi_conn *first = NULL;
    bool any = false;
    for (trpi_conn *conn = trpi_peer_conns(peer); conn != NULL; conn = trpi_conn_next(conn)) {
        any = any || trpi_conn_lane(conn) == lane;
        if (trpi_conn_carries(conn, (int)lane)) {
            first = conn; /* the list begins with the newest */
        }
    }
    if (first == NULL) {
        return any;
    }
    uint8_t body[4];
    /* peer-P1 */
    trpi_put_u32(body, trpi_lane_epoch_next(state));
    if (trpi_conn_head(first, TRPI_FRAME_LANE_OPEN, 0, body, sizeof body) == TRP_OK) {
        trpi_peer_lane_connect(peer, lane, first);
        trpi_fence_again(peer, lane, first);
    }
    return true;
}

bool
trpi_peer_wants(const trpi_peer *peer)
{
    for (int lane = 0; lane < TRPI_LANE_COUNT; lane++) {
        if (!trpi_lane_is_empty(&peer->lanes[lane])) {
            return true;
        }
    }
    return trpi_redelivery_unacked(&peer->redelivery) > 0 ||
           trpi_waiting_count(&peer->waiting) > 0 || trpi_holds_any(peer);
}

bool
trpi_peer_is_flushed_to(const trpi_peer *peer)
{
    enum trpi_assoc_state state = trpi_peer_state(peer);
    uint64_t until_ms = trpi_peer_remote(peer)->flush_until_ms;
    if (state == TRPI_ASSOC_ACTIVE || state == TRPI_ASSOC_QUARANTINED ||
        trpi_peer_has_failed_since_stop(peer) ||
        (state == TRPI_ASSOC_GATED && trpi_peer_next_ms(peer) >= until_ms) ||
        trpi_remote_now_ms(trpi_peer_remote(peer)) >= until_ms) {
        return false;
    }
    for (int i = TRPI_LANE_ORDINARY; i < TRPI_LANE_COUNT; i++) {
        if (!trpi_lane_is_empty(&peer->lanes[i])) {
            return true;
        }
    }
    return false;
}

bool
trpi_peer_may_dial(const trpi_peer *peer)
{
    if (trpi_peer_is_client(peer)) {
        return false; /* clients-C3 */
    }
    /* acquire: pairs with the stop's release, what it has set before is seen */
    return !atomic_load_explicit(&trpi_peer_remote(peer)->stopping, memory_order_acquire) ||
           trpi_peer_is_flushed_to(peer);
}

bool
trpi_lane_wants(const trpi_peer *peer, int lane)
{
    const trpi_lane_state *state = &peer->lanes[lane];
    /* a fence was lost with a connection, and the large lane waits for its answer */
    bool fence = trpi_lane_has_open_fence(state) && lane != TRPI_LANE_LARGE &&
                 !trpi_lane_is_empty(&peer->lanes[TRPI_LANE_LARGE]);
    /* a client opens the lane of the answers, too: no peer dials it */
    bool first = lane == TRPI_LANE_ORDINARY && trpi_peer_remote(peer)->options.nameless;
    return lane != TRPI_LANE_CONTROL &&
           (first || !trpi_lane_is_empty(state) || fence || trpi_lane_is_doubted(peer, lane));
}

/* Find or dial a connection for a lane that has none. The association is active. */
static void
lane_settle(trpi_peer *peer, enum trpi_lane lane)
{
    trpi_lane_state *state = &peer->lanes[lane];
    if (trpi_lane_closing(state) != NULL) {
        return; /* its answer comes first */
    }
    bool any = trpi_lane_out(state) != NULL || lane_connect(peer, lane);
    if (trpi_lane_out(state) == NULL && trpi_lane_dialling(state) == NULL &&
        trpi_lane_wants(peer, (int)lane) && !trpi_peer_is_client(peer) &&
        trpi_remote_now_ms(trpi_peer_remote(peer)) >= trpi_lane_dial_next_ms(state)) {
        trpi_conn_dial(peer, lane);
        any = true;
    }
    bool waits = any || !trpi_lane_is_empty(state) || trpi_lane_has_open_fence(state) ||
                 trpi_lane_is_doubted(peer, (int)lane) || trpi_lane_wants(peer, (int)lane);
    if (trpi_lane_out(state) != NULL || !waits) {
        trpi_lane_settled(&peer->lane_marks, lane); /* peer-P4 */
    }
}

void
trpi_peer_pump(trpi_peer *peer, trpi_deferred *deferred)
{
    if (!trpi_activity_is_active(&peer->activity)) {
        trpi_peer_make_active(peer);
    }
    if (!trpi_peer_is_active(peer) && trpi_peer_state(peer) != TRPI_ASSOC_HANDSHAKING &&
        trpi_peer_wants(peer) && trpi_peer_may_dial(peer)) {
        trpi_assoc_event event = { .kind = TRPI_ASSOC_WANT };
        (void)trpi_peer_step(peer, NULL, &event, "", deferred);
    }
    if (trpi_peer_is_active(peer)) {
        if (trpi_redelivery_has_unsent(&peer->redelivery)) {
            trpi_system_messages_send(peer);
        }
        if (trpi_holds_exist(peer)) {
            trpi_holds_release(peer, deferred);
        }
        for (uint32_t left = trpi_lanes_unsettled(&peer->lane_marks); left != 0; left &= left - 1) {
            lane_settle(peer, (enum trpi_lane)__builtin_ctz(left));
        }
    }
    if (trpi_lanes_are_waited_for(&peer->lane_marks)) {
        trpi_lanes_room_notify(peer, deferred);
    }
    for (trpi_conn *conn = trpi_peer_conns(peer);
         conn != NULL && deferred->writes_count < TRPI_DEFERRED_WRITES_MAX;
         conn = trpi_conn_next(conn)) {
        const trpi_lane_state *lane = &peer->lanes[trpi_conn_lane(conn)];
        bool waits = trpi_conn_has_own_frames(conn) ||
                     (trpi_lane_out(lane) == conn && !trpi_lane_is_empty(lane));
        if (waits && trpi_conn_take(conn)) {
            deferred->writes[deferred->writes_count++] = conn;
        }
    }
}

void
trpi_peer_tell_end(trpi_peer *peer, uint64_t uid, trp_dead_reason reason)
{
    trpi_node_id id = { *trpi_peer_address(peer), uid };
    uint32_t node = trpi_node_find(trpi_peer_remote(peer)->system, &id);
    if (node != 0) { /* else no actor here watches it or sends to it */
        trpi_node_terminated(trpi_peer_remote(peer)->system, node, reason);
    }
}

/* Tell the proxies that wait, without locks. Routes come and go meanwhile. */
static void
proxies_ready(trpi_peer *peer)
{
    enum { AT_ONCE = 16 };
    uint32_t nodes[AT_ONCE], count = AT_ONCE;
    uint64_t turn = 0;
    while (count == AT_ONCE) {
        pthread_mutex_lock(&peer->lock);
        turn = turn != 0 ? turn : ++peer->ready_turns;
        count = trpi_routes_not_told(peer, turn, nodes, AT_ONCE);
        pthread_mutex_unlock(&peer->lock);
        for (uint32_t i = 0; i < count; i++) {
            trpi_proxy_ready(trpi_peer_remote(peer)->system, nodes[i]);
        }
    }
}

/* Carry out the effects, without locks. Return how many writes are done already: over. */
static uint32_t
effects_carry_out(trpi_peer *peer, trpi_deferred *deferred, trpi_conn **over, uint32_t *writes_left)
{
    trpi_remote *remote = trpi_peer_remote(peer);
    uint32_t over_count = 0;
    for (uint32_t i = 0; i < deferred->writes_count; i++) {
        if (trpi_conn_write(deferred->writes[i], writes_left)) {
            over[over_count++] = deferred->writes[i];
        }
    }
    if (deferred->events != NULL) {
        trpi_link_events_publish(remote, deferred->events);
    }
    if (deferred->barred && remote->options.on_quarantined != NULL) {
        remote->options.on_quarantined(remote->options.on_quarantined_arg);
    }
    for (int lane = 0; lane < TRPI_LANE_COUNT; lane++) {
        trpi_dropped *dropped = &deferred->dropped[lane];
        if (dropped->frames.count > 0) { /* their senders had a ref, so there is a number */
            trpi_node_id id = { *trpi_peer_address(peer), dropped->uid };
            trpi_lane_dead_letters(peer, trpi_node_find(remote->system, &id), &dropped->frames,
                                   dropped->reason);
            trpi_buffer_fini(&dropped->frames);
        }
    }
    if (deferred->held != NULL) {
        trpi_held_dead_letters(peer, deferred);
    }
    if (deferred->over_uid != 0) {
        trpi_peer_tell_end(peer, deferred->over_uid,
                           deferred->over_quarantined ? TRP_DEAD_QUARANTINED : TRP_DEAD_STALE);
    }
    if (deferred->ready) {
        proxies_ready(peer);
    }
    return over_count;
}

/* End writes that are done, and carry out the effects of that: writes again, of what gathered
 * meanwhile. */
static void
writes_end(trpi_peer *peer, trpi_conn **over, uint32_t over_count, uint32_t *writes_left)
{
    while (over_count > 0) {
        trpi_deferred deferred = { 0 };
        pthread_mutex_lock(&peer->lock);
        for (uint32_t i = 0; i < over_count; i++) {
            trpi_conn_write_over(over[i]);
        }
        trpi_peer_pump(peer, &deferred);
        pthread_mutex_unlock(&peer->lock);
        for (uint32_t i = 0; i < over_count; i++) {
            trpi_conn_unref(over[i]);
        }
        over_count = effects_carry_out(peer, &deferred, over, writes_left);
    }
}

void
trpi_peer_unlock(trpi_peer *peer, trpi_deferred *deferred)
{
    trpi_conn *over[TRPI_DEFERRED_WRITES_MAX];
    uint32_t writes_left = TRPI_WRITES_AT_ONCE;
    pthread_mutex_unlock(&peer->lock);
    writes_end(peer, over, effects_carry_out(peer, deferred, over, &writes_left), &writes_left);
}

void
trpi_peer_written(trpi_peer *peer, trpi_conn *conn, uint32_t *writes_left)
{
    trpi_conn *over[TRPI_DEFERRED_WRITES_MAX] = { conn };
    writes_end(peer, over, 1, writes_left);
}

void
trpi_peer_quarantine(trpi_peer *peer, uint64_t uid, const char *reason)
{
    trpi_deferred deferred = { 0 };
    trpi_assoc_event event = { .kind = TRPI_ASSOC_QUARANTINE,
                               .uid = uid,
                               .random = trpi_world_random(trpi_peer_remote(peer)->world) };
    pthread_mutex_lock(&peer->lock);
    (void)trpi_peer_step(peer, NULL, &event, reason, &deferred);
    trpi_peer_pump(peer, &deferred);
    trpi_peer_unlock(peer, &deferred);
}
