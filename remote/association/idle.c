/* idle.c - the lists of active, idle and gone peers, which the tick looks at, and the PING.
 *
 * The lists are guarded by peer->lock and remote->lock. Their rules are in tick.c.
 * Tests.  tests/sim/idle_test.c, tests/unit/remote/events_test.c
 */
#include "remote/association/activity.h"

#include "base/wire.h"
#include "remote/association/peer.h"

static void
active_push(trpi_peer *peer)
{
    peer->activity.active = true;
    trpi_beat_open(trpi_peer_beat_box(peer), true);
    peer->activity.list = NULL;
    peer->activity.next = trpi_peer_remote(peer)->list.active;
    trpi_peer_remote(peer)->list.active = peer;
}

void
trpi_peer_begin(trpi_peer *peer)
{
    active_push(peer);
}

void
trpi_peer_list_append(trpi_peer *peer, trpi_peer_list *list)
{
    peer->activity.list = list;
    peer->activity.next = NULL;
    peer->activity.before = list->last;
    *(list->last != NULL ? &list->last->activity.next : &list->first) = peer;
    list->last = peer;
}

void
trpi_peer_list_remove(trpi_peer *peer)
{
    trpi_peer *next = peer->activity.next, *before = peer->activity.before;
    *(next != NULL ? &next->activity.before : &peer->activity.list->last) = before;
    *(before != NULL ? &before->activity.next : &peer->activity.list->first) = next;
}

void
trpi_peer_make_active(trpi_peer *peer)
{
    trpi_remote *remote = trpi_peer_remote(peer);
    if (peer->activity.active) {
        return;
    }
    pthread_mutex_lock(&remote->lock);
    trpi_peer_list_remove(peer);
    active_push(peer);
    pthread_mutex_unlock(&remote->lock);
}

trpi_peer *
trpi_peers_active_take(trpi_remote *remote)
{
    pthread_mutex_lock(&remote->lock);
    trpi_peer *first = remote->list.active;
    remote->list.active = NULL;
    for (trpi_peer *p = first; p != NULL; p = p->activity.next) {
        trpi_peer_pin_more(
            p); /* a peer that is moved to the gone ones may have to give way at once */
    }
    pthread_mutex_unlock(&remote->lock);
    return first;
}

/* The tick has taken it out of the list of active peers; put it into one. */
void
trpi_peer_list_put(trpi_peer *peer, bool idle, uint64_t now_ms)
{
    trpi_assert_check(trpi_peer_check, peer);
    trpi_remote *remote = trpi_peer_remote(peer);
    pthread_mutex_lock(&remote->lock);
    if (!idle) {
        active_push(peer);
    } else {
        peer->activity.active = false;
        trpi_beat_open(trpi_peer_beat_box(peer), false); /* beat-box-B1 */
        peer->activity.idle_since_ms = now_ms;
        trpi_peer_list_append(peer,
                              trpi_peer_is_active(peer) ? &remote->list.idle : &remote->list.gone);
    }
    pthread_mutex_unlock(&remote->lock);
}

trpi_peer *
trpi_peer_list_first(trpi_remote *remote, const trpi_peer_list *list, uint64_t now_ms,
                     uint32_t for_ms)
{
    pthread_mutex_lock(&remote->lock);
    trpi_peer *peer = list->first;
    if (peer != NULL && now_ms - peer->activity.idle_since_ms >= for_ms) {
        trpi_peer_pin_more(peer);
    } else {
        peer = NULL;
    }
    pthread_mutex_unlock(&remote->lock);
    return peer;
}

void
trpi_peer_ping(trpi_peer *peer, uint64_t now_ms)
{
    trpi_buffer frame = { 0 };
    uint8_t body[8];
    trpi_put_u64(body, trpi_world_mono_ns(trpi_peer_remote(peer)->world));
    if (trpi_frame_append(&frame, TRPI_FRAME_PING, 0, 0, body, sizeof body) == TRP_OK) {
        /* full: the next one */
        (void)trpi_peer_append(peer, TRPI_LANE_CONTROL, trpi_peer_uid(peer), &frame, false);
    }
    trpi_buffer_fini(&frame);
    if (peer->activity.quiet) { /* tick-T3: no PING was sent */
        trpi_detector_own_pause(&peer->activity.detector, now_ms, now_ms - peer->activity.heard_ms);
        peer->activity.heard_ms = now_ms;
        peer->activity.quiet = false;
    }
    peer->activity.pinged_ms = now_ms;
    peer->activity.unanswered = true;
    peer->activity.used = false;
    for (int lane = TRPI_LANE_ORDINARY; lane < TRPI_LANE_COUNT; lane++) { /* it is still in use */
        peer->activity.used = peer->activity.used || trpi_lane_bytes(&peer->lanes[lane]) > 0;
    }
}

void
trpi_activity_begin(trpi_activity *activity, const trpi_remote *remote, uint64_t now_ms)
{
    const trpi_remote_options *o = &remote->options;
    trpi_phi_options phi = { o->link_threshold, o->link_samples_max, o->link_deviation_ms,
                             o->link_heartbeat_ms, o->link_pause_ms };
    activity->heard_ms = activity->pinged_ms = now_ms;
    activity->beat_ms = 0;
    activity->unanswered = activity->quiet = false;
    activity->used = true; /* the round trip of a new one is measured */
    trpi_detector_fini(&activity->detector);
    /* checked at the start: cannot be refused */
    (void)trpi_detector_init(&activity->detector, o->link_detector, &phi);
    trpi_detector_heartbeat(&activity->detector, now_ms);
}
