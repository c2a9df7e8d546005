/* idle.c - which peers the tick looks at: the lists of active, idle and gone ones, and the PING.
 *
 * The lists belong to peer->lock and remote->lock. Why there are three, and what must hold of them:
 * tick.c.
 * Tests.  tests/sim/idle_test.c, tests/unit/remote/events_test.c
 */
#include "remote/association/peer.h"

#include "base/wire.h"

static void
awake_push(trpi_peer *peer)
{
    peer->awake = true;
    peer->line = NULL;
    peer->line_next = peer->remote->awake;
    peer->remote->awake = peer;
}

void
trpi_peer_begin(trpi_peer *peer)
{
    awake_push(peer);
}

void
trpi_line_append(trpi_peer *peer, trpi_line *line)
{
    peer->line = line;
    peer->line_next = NULL;
    peer->line_before = line->last;
    *(line->last != NULL ? &line->last->line_next : &line->first) = peer;
    line->last = peer;
}

void
trpi_line_remove(trpi_peer *peer)
{
    trpi_peer *next = peer->line_next, *before = peer->line_before;
    *(next != NULL ? &next->line_before : &peer->line->last) = before;
    *(before != NULL ? &before->line_next : &peer->line->first) = next;
}

void
trpi_peer_wake(trpi_peer *peer)
{
    trpi_remote *remote = peer->remote;
    if (peer->awake) {
        return;
    }
    pthread_mutex_lock(&remote->lock);
    trpi_line_remove(peer);
    awake_push(peer);
    pthread_mutex_unlock(&remote->lock);
}

/* The tick has taken it out of the line of those that are awake, and puts it into one. */
void
trpi_peer_line_up(trpi_peer *peer, bool rests, uint64_t now_ms)
{
    trpi_remote *remote = peer->remote;
    pthread_mutex_lock(&remote->lock);
    if (!rests) {
        awake_push(peer);
    } else {
        peer->awake = false;
        peer->rests_since_ms = now_ms;
        trpi_line_append(peer,
                         peer->assoc.state == TRPI_ASSOC_ACTIVE ? &remote->resting : &remote->gone);
    }
    pthread_mutex_unlock(&remote->lock);
}

/* The first of a line that has stood there for so long, pinned; NULL: none. */
trpi_peer *
trpi_line_first(trpi_remote *remote, const trpi_line *line, uint64_t now_ms, uint32_t for_ms)
{
    pthread_mutex_lock(&remote->lock);
    trpi_peer *peer = line->first;
    if (peer != NULL && now_ms - peer->rests_since_ms >= for_ms) {
        peer->pins++;
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
    trpi_put_u64(body, trpi_world_mono_ns(peer->remote->world));
    if (trpi_frame_append(&frame, TRPI_FRAME_PING, 0, 0, body, sizeof body) == TRP_OK) {
        /* full: the next one */
        (void)trpi_peer_append(peer, TRPI_LANE_CONTROL, peer->assoc.uid, &frame, false);
    }
    trpi_buffer_fini(&frame);
    if (peer->rested) { /* tick-T3: nobody had asked it */
        trpi_detector_own_pause(&peer->link_detector, now_ms, now_ms - peer->heard_ms);
        peer->heard_ms = now_ms;
        peer->rested = false;
    }
    peer->pinged_ms = now_ms;
    peer->asked = true;
    peer->used = false;
    for (int lane = TRPI_LANE_ORDINARY; lane < TRPI_LANE_COUNT; lane++) { /* it is still going */
        peer->used =
            peer->used || atomic_load_explicit(&peer->lanes[lane].queued, memory_order_relaxed) > 0;
    }
}
