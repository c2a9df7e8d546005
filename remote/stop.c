/* stop.c - remoting stops: queued messages are still sent, then each peer gets GOODBYE.
 *
 * Shape.  stopping: no new peers -> flush -> closed: nothing is appended any more -> flush what
 * came in between -> drop the rest -> GOODBYE on the lanes of messages, then on control lanes
 *         -> stopped
 * Must hold.
 *   stop-X1  A message that was told before the stop is sent before GOODBYE, or is a dead letter,
 *       also if it is still in a proxy's mailbox or waits for a peer without association; such a
 *       peer is dialled until one attempt has failed. The last bytes that were passed to the
 *       network, TRPI_WRITE_BYTES_MAX a lane, may be neither.
 *   stop-X2  Nothing is appended behind GOODBYE.
 * Limits. flush_on_shutdown_ms for the flush; after it MAIL_MS until the proxies have made dead
 *         letters of the rest, and BYE_MS for the GOODBYEs.
 * Tests.  tests/unit/remote/flush_test.c
 */
#include "remote/remote.h"

#include <inttypes.h>
#include <string.h>

#include "remote/association/conn.h"
#include "remote/association/hold.h"

enum { STOP_POLL_MS = 5, MAIL_MS = 250, BYE_MS = 250 };

/* ---- waiting for peers ----------------------------------------------------------------------- */

/* Return whether every proxy has passed on its messages. A full lane may hold one back. */
static bool
proxies_are_idle(trpi_peer *peer)
{
    bool out = true;
    pthread_mutex_lock(&peer->lock);
    for (const trpi_route *route = trpi_peer_routes(peer); route != NULL && out;
         route = route->next) {
        out = trpi_proxy_is_idle(trpi_peer_remote(peer)->system, route->node);
    }
    pthread_mutex_unlock(&peer->lock);
    return out;
}

/* Return whether a peer is done with a step; 0: flush, 1: GOODBYE on the lanes of messages, 2: on
 * the control lane. */
static bool
peer_settled(trpi_peer *peer, int step)
{
    bool settled = step > 0 || proxies_are_idle(peer); /* first: its messages are counted below */
    pthread_mutex_lock(&peer->lock);
    if (trpi_peer_is_active(peer) && !trpi_peer_has_said_goodbye(peer)) {
        if (step == 0) {
            settled = settled && trpi_redelivery_unacked(&peer->redelivery) == 0;
        }
        for (int i = 0; i < TRPI_LANE_COUNT; i++) {
            const trpi_lane_state *lane = &peer->lanes[i];
            if (step == 0) {
                settled = settled && trpi_lane_bytes(lane) == 0;
            } else if ((step == 2) == (i == TRPI_LANE_CONTROL)) {
                settled =
                    settled && (trpi_lane_out(lane) == NULL || trpi_lane_goodbye_is_acked(lane));
            }
        }
    }
    if (step == 0) {
        settled = settled && !trpi_peer_is_flushed_to(peer) && !trpi_holds_any(peer);
    }
    pthread_mutex_unlock(&peer->lock);
    return settled;
}

static void
goodbye_append(trpi_peer *peer, enum trpi_lane first, enum trpi_lane last)
{
    trpi_deferred deferred = { 0 };
    pthread_mutex_lock(&peer->lock);
    for (enum trpi_lane lane = first; lane <= last; lane++) {
        if (trpi_peer_is_active(peer) && !trpi_peer_has_said_goodbye(peer) &&
            trpi_lane_out(&peer->lanes[lane]) != NULL) {
            /* without memory: a plain close */
            (void)trpi_conn_head(trpi_lane_out(&peer->lanes[lane]), TRPI_FRAME_GOODBYE, 0, NULL, 0);
        }
    }
    trpi_peer_pump(peer, &deferred);
    trpi_peer_unlock(peer, &deferred);
}

static void
peers_settle(trpi_remote *remote, int step, uint64_t deadline_ms)
{
    for (trpi_peer *peer = NULL; step > 0 && (peer = trpi_peer_next(remote, peer)) != NULL;) {
        goodbye_append(peer, step == 1 ? TRPI_LANE_ORDINARY : TRPI_LANE_CONTROL,
                       step == 1 ? TRPI_LANE_LARGE : TRPI_LANE_CONTROL);
    }
    for (trpi_peer *peer = NULL; (peer = trpi_peer_next(remote, peer)) != NULL;) {
        while (!peer_settled(peer, step) && trpi_remote_now_ms(remote) < deadline_ms) {
            trpi_system_pass(remote->system, STOP_POLL_MS);
        }
    }
}

/* Cancel the regular timer, and wait for the quick one, which sees `stopped`. */
static void
timers_end(trpi_remote *remote)
{
    (void)trpi_system_after_cancel(remote->system, remote->timers.beat_id);
    pthread_mutex_lock(&remote->lock);
    while (remote->timers.running > 0) {
        if (trpi_world_is_driven(remote->world)) {
            pthread_mutex_unlock(&remote->lock);
            trpi_system_pass(remote->system, TRPI_TICK_MS);
            pthread_mutex_lock(&remote->lock);
        } else {
            pthread_cond_wait(&remote->over, &remote->lock);
        }
    }
    pthread_mutex_unlock(&remote->lock);
}

/* Wait until no worker is in a write() of a closed connection. */
static void
writers_await(trpi_remote *remote)
{
    pthread_mutex_lock(&remote->lock);
    while (remote->conns_alive > 0) {
        pthread_cond_wait(&remote->over, &remote->lock);
    }
    pthread_mutex_unlock(&remote->lock);
}

static void
remote_unref(void *remote)
{
    trpi_remote_unref(remote);
}

/* Note each peer's number of attempts so far; returns how many messages were lost before the stop.
 */
static uint64_t
lost_before(trpi_remote *remote)
{
    uint64_t lost = 0;
    for (trpi_peer *peer = NULL; (peer = trpi_peer_next(remote, peer)) != NULL;) {
        pthread_mutex_lock(&peer->lock);
        trpi_peer_stop_begin(peer);
        pthread_mutex_unlock(&peer->lock);
        lost += trpi_traffic_dropped(&peer->traffic);
    }
    return lost;
}

/* Make dead letters of messages that wait for slow or absent peers, and of those that their proxies
 * still have (stop-X1). */
static void
rest_drop(trpi_remote *remote)
{
    uint64_t until_ms = trpi_remote_now_ms(remote) + MAIL_MS;
    for (trpi_peer *peer = NULL; (peer = trpi_peer_next(remote, peer)) != NULL;) {
        trpi_deferred deferred = { 0 };
        pthread_mutex_lock(&peer->lock);
        for (int lane = TRPI_LANE_ORDINARY; lane < TRPI_LANE_COUNT; lane++) {
            trpi_lane_clear(peer, (enum trpi_lane)lane, &deferred);
        }
        trpi_holds_drop(peer, 0, TRP_DEAD_NOT_CONNECTED, &deferred);
        trpi_lanes_room_notify(peer, &deferred);
        trpi_peer_unlock(peer, &deferred);
        while (!proxies_are_idle(peer) && trpi_remote_now_ms(remote) < until_ms) {
            trpi_system_pass(remote->system, STOP_POLL_MS);
        }
    }
}

static void
lost_log(trpi_remote *remote, uint64_t before)
{
    uint64_t lost = 0;
    for (trpi_peer *peer = NULL; (peer = trpi_peer_next(remote, peer)) != NULL;) {
        lost += trpi_traffic_dropped(&peer->traffic);
    }
    if (lost > before) {
        trpi_log(remote->system, TRP_LOG_WARNING, "remote",
                 "messages were not sent before remoting stopped messages=%" PRIu64
                 " next=\"they became dead letters; remote.flush-wait-on-shutdown sets the wait\"",
                 lost - before);
    }
}

void
trpi_remote_stop(trpi_remote *remote)
{
    if (remote == NULL) {
        return;
    }
    uint64_t deadline_ms = trpi_remote_now_ms(remote) + remote->options.flush_on_shutdown_ms;
    uint64_t lost = lost_before(remote);
    remote->flush_until_ms = deadline_ms;
    /* no new peers; dials only for waiting messages. release: pairs with trpi_peer_may_dial() */
    atomic_store_explicit(&remote->stopping, true, memory_order_release);
    peers_settle(remote, 0, deadline_ms);
    /* stop-X2. relaxed: it is read under peer->lock, which the next step takes for each peer */
    atomic_store_explicit(&remote->closed, true, memory_order_relaxed);
    peers_settle(remote, 0, deadline_ms);
    rest_drop(remote);
    /* an absent peer does not use up the time of others */
    uint64_t bye_ms = trpi_remote_now_ms(remote) + BYE_MS;
    bye_ms = bye_ms > deadline_ms ? bye_ms : deadline_ms;
    peers_settle(remote, 1, bye_ms);
    peers_settle(remote, 2, bye_ms);
    (void)trpi_system_remote_set(remote->system, NULL, NULL);
    atomic_store_explicit(&remote->stopped, true, memory_order_release);
    timers_end(remote);
    remote->ops->stop(remote->transport);
    writers_await(remote);
    remote->ops->free(remote->transport);
    remote->transport = NULL;
    lost_log(remote, lost);
    trp_remoting_event event;
    memset(&event, 0, sizeof(event));
    trpi_lifecycle_log(remote, TRP_LOG_INFO, "remoting stopped");
    trpi_remoting_publish(remote, &trp_remoting_shutdown_type, &event);
    trpi_system_retire(remote->system, remote_unref,
                       remote); /* a worker may be in one of our ops */
}
