/* registry_peers.c - what a registry says to those of the other members, and takes from them.
 *
 * Shape.   of each peer:  unheard --frame--> heard --no ack in time--> silent --frame--> heard
 *                            |  `--ABSENT--> absent --frame--> heard
 *                             `--HELLO again, at growing intervals, as while silent
 *          A peer that is heard gets DELTAs, one behind the other, up to the bytes of a tick; an
 *          answer moves acked. All is sent from acked again when no answer comes.
 *          It is unheard until it has said that it knows of this mediator's life, too.
 * Must hold.
 *   pubsub-P1  A bucket's changes are taken without a gap: seen never jumps.       (take_delta)
 *   pubsub-P2  A frame of an earlier life or era changes nothing.                  (peer_meet)
 *   pubsub-P3  A bucket counts while its node is Up or WeaklyUp, and no longer.    (members)
 *   pubsub-P4  When all is acknowledged nothing is sent: wake_ms is never.         (set_wake)
 * Limits.  peer_bytes_max and tick_bytes_max of each tick. Of each bucket twice entries_max: while
 *          the changes of a full one arrive, some that were removed there may still stand here
 *          beside those that took their room.
 * Not here. Unreachable members: they stay, and are asked at growing intervals.
 * Tests.   tests/unit/cluster/pubsub_registry_test.c, tests/sim/pubsub_test.c
 */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/array.h"
#include "base/assert.h"
#include "cluster/pubsub/registry_inner.h"

#define FRAME_BYTES 256u /* of a frame without its items, at most */

/* ---- actions --------------------------------------------------------------------------------- */

static void
actions_begin(trpi_pubreg *registry)
{
    for (uint32_t i = 0; i < registry->actions_count; i++) {
        trpi_buffer_fini(&registry->actions[i].bytes);
    }
    registry->actions_count = 0;
    registry->text[0] = '\0';
}

/* NULL: no memory. */
static trpi_pubreg_action *
action_add(trpi_pubreg *registry, trpi_pubreg_action_kind kind, uint32_t index)
{
    if (!TRPI_ARRAY_HAS_ROOM(registry, actions)) {
        return NULL;
    }
    trpi_pubreg_action *action = &registry->actions[registry->actions_count++];
    memset(action, 0, sizeof *action);
    action->kind = kind;
    action->index = index;
    action->node = registry->nodes[index].node.id;
    action->slot = registry->nodes[index].node.slot;
    action->generation = registry->nodes[index].node.generation;
    return action;
}

/* Send, or not for lack of memory: as a lost frame. */
static bool
send_frame(trpi_pubreg *registry, uint32_t index, trpi_pubsub_frame *frame)
{
    const trpi_peer_state *peer = &registry->nodes[index];
    trpi_buffer bytes = { 0 };
    frame->to_uid = peer->node.id.uid;
    frame->life = registry->options.life;
    frame->era = peer->era;
    frame->slot = registry->options.slot;
    frame->generation = registry->options.generation;
    memcpy(frame->name, registry->name, sizeof frame->name);
    if (trpi_pubsub_frame_encode(frame, &bytes) != TRP_OK) {
        return false;
    }
    trpi_pubreg_action *action = action_add(registry, TRPI_PUBREG_SEND, index);
    if (action == NULL) {
        trpi_buffer_fini(&bytes);
        return false;
    }
    action->bytes = bytes;
    return true;
}

/* ---- sending --------------------------------------------------------------------------------- */

uint64_t
trpi_pubreg_floor(const trpi_pubreg *registry)
{
    uint64_t floor = registry->version;
    for (uint32_t i = 1; i < registry->nodes_count; i++) {
        const trpi_peer_state *peer = &registry->nodes[i];
        if (peer->used && peer->told && peer->acked < floor) {
            floor = peer->acked;
        }
    }
    return registry->options.broken & TRPI_PUBREG_BROKEN_PRUNE ? registry->version : floor;
}

static bool
is_unheard(const trpi_peer_state *peer)
{
    return peer->node.life == 0 || peer->silent || !peer->knows;
}

static bool
wants_frames(const trpi_pubreg *registry, const trpi_peer_state *peer)
{
    return peer->used && peer->is_peer && !peer->absent &&
           (is_unheard(peer) || peer->acked < registry->version);
}

void
trpi_pubreg_set_wake(trpi_pubreg *registry, uint64_t now_ms)
{
    registry->wake_ms = UINT64_MAX;
    for (uint32_t i = 1; i < registry->nodes_count && registry->speaks; i++) {
        const trpi_peer_state *peer = &registry->nodes[i];
        uint64_t at_ms = peer->retry_at_ms;
        if (!wants_frames(registry, peer)) {
            continue;
        }
        if (!is_unheard(peer) && peer->sent < registry->version) {
            at_ms = now_ms;
        } else if (registry->options.broken & TRPI_PUBREG_BROKEN_RETRY) {
            continue;
        }
        at_ms = at_ms < registry->next_tick_ms ? registry->next_tick_ms : at_ms;
        registry->wake_ms = at_ms < registry->wake_ms ? at_ms : registry->wake_ms;
    }
}

/* The first own entry above a version, from the nearer end of the list. */
static const trpi_own *
first_above(const trpi_pubreg *registry, uint64_t version)
{
    const trpi_own *own = registry->first;
    if (own == NULL || registry->last->item.version <= version) {
        return NULL;
    }
    if (version > own->item.version &&
        version - own->item.version > registry->last->item.version - version) {
        for (own = registry->last; own->earlier != NULL && own->earlier->item.version > version;) {
            own = own->earlier;
        }
        return own;
    }
    while (own->item.version <= version) {
        own = own->later;
    }
    return own;
}

/* Send the next piece of the bucket; *bytes is what may still be sent. false: no memory. */
static bool
send_delta(trpi_pubreg *registry, uint32_t index, uint32_t *bytes)
{
    trpi_peer_state *peer = &registry->nodes[index];
    trpi_pubsub_frame frame = { .kind = TRPI_PUBSUB_DELTA,
                                .seen = { peer->node.life, peer->its_era, peer->seen },
                                .base = peer->sent,
                                .version = registry->version };
    const trpi_own *own = first_above(registry, peer->sent);
    uint32_t left = *bytes - FRAME_BYTES;
    registry->items_count = 0;
    for (; own != NULL && trpi_pubsub_item_bytes(&own->item) <= left &&
           registry->items_count < TRPI_PUBSUB_ITEMS_MAX;
         own = own->later) {
        if (!TRPI_ARRAY_HAS_ROOM(registry, items)) {
            return false;
        }
        left -= trpi_pubsub_item_bytes(&own->item);
        registry->items[registry->items_count++] = own->item;
    }
    if (own != NULL) { /* not all of it */
        if (registry->items_count == 0) {
            return false;
        }
        frame.version = registry->items[registry->items_count - 1].version;
    }
    frame.items = registry->items;
    frame.items_count = registry->items_count;
    if (!send_frame(registry, index, &frame)) {
        return false;
    }
    *bytes = left;
    peer->sent = frame.version;
    peer->told = true;
    return true;
}

/* Ask whether it is there; the next time later. */
static void
send_hello(trpi_pubreg *registry, uint32_t index, uint64_t now_ms)
{
    trpi_peer_state *peer = &registry->nodes[index];
    peer->question = ++registry->questions;
    trpi_pubsub_frame frame = { .kind = TRPI_PUBSUB_HELLO,
                                .seen = { peer->node.life, peer->its_era, peer->seen },
                                .question = peer->question };
    (void)send_frame(registry, index, &frame);
    peer->retry_ms = peer->retry_ms == 0 ? registry->options.retry_ms : peer->retry_ms;
    peer->retry_at_ms = now_ms + peer->retry_ms;
    peer->retry_ms = peer->retry_ms > registry->options.retry_ms_max / 2
                         ? registry->options.retry_ms_max
                         : peer->retry_ms * 2;
}

static void
serve_peer(trpi_pubreg *registry, uint32_t index, uint64_t now_ms, uint32_t *bytes)
{
    trpi_peer_state *peer = &registry->nodes[index];
    bool retries = !(registry->options.broken & TRPI_PUBREG_BROKEN_RETRY);
    if (!wants_frames(registry, peer)) {
        return;
    }
    if (!is_unheard(peer) && peer->sent > peer->acked && now_ms >= peer->retry_at_ms && retries) {
        peer->silent = true;
        peer->sent = peer->acked;
    }
    if (is_unheard(peer)) {
        if (now_ms >= peer->retry_at_ms && (retries || peer->question == 0)) {
            send_hello(registry, index, now_ms);
        }
        return;
    }
    uint32_t most = registry->options.peer_bytes_max;
    uint32_t left = *bytes < most ? *bytes : most, before = left;
    if (peer->sent == registry->version || left < TRPI_PUBREG_PEER_BYTES_MIN) {
        return;
    }
    if (peer->sent == peer->acked) {
        peer->retry_at_ms = now_ms + registry->options.retry_ms;
    }
    if (send_delta(registry, index, &left)) {
        *bytes -= before - left;
    }
}

void
trpi_pubreg_tick(trpi_pubreg *registry, uint64_t now_ms)
{
    actions_begin(registry);
    if (now_ms < registry->wake_ms) {
        return;
    }
    uint32_t bytes = registry->options.tick_bytes_max, peers = registry->nodes_count - 1;
    for (uint32_t i = 0; i < peers && registry->speaks; i++) {
        serve_peer(registry, 1 + (registry->turn + i) % peers, now_ms, &bytes);
    }
    registry->turn++;
    registry->next_tick_ms = now_ms + registry->options.tick_ms;
    trpi_pubreg_set_wake(registry, now_ms);
}

/* ---- members --------------------------------------------------------------------------------- */

/* Its bucket begins again, while its mediator is the same: it answers what was sent to it. */
static void
empty_bucket(trpi_pubreg *registry, uint32_t index)
{
    trpi_peer_state *peer = &registry->nodes[index];
    trpi_index_drop(&registry->index, index, &peer->entries);
    peer->seen = 0;
}

/* Its bucket counts no more, or its mediator is another one. */
static void
drop_bucket(trpi_pubreg *registry, uint32_t index)
{
    empty_bucket(registry, index);
    (void)action_add(registry, TRPI_PUBREG_LOST, index); /* there is room: members() and frame() */
}

static void
node_estrange(trpi_pubreg *registry, const trpi_node_id *id)
{
    uint32_t position = 0;
    trpi_own *own;
    while ((own = trpi_pubreg_own_next(registry, &position)) != NULL) {
        trpi_gaps_estrange(&own->gaps, id->uid);
    }
}

/* Return the node's index; a free one, and fresh, if it is not there. NOWHERE: no memory. */
static uint32_t
have_node(trpi_pubreg *registry, const trpi_node_id *id)
{
    uint32_t index = trpi_pubreg_node_of(registry, id);
    if (index != TRPI_PUBREG_NOWHERE) {
        return index;
    }
    for (index = 1; index < registry->nodes_count && registry->nodes[index].used; index++) {
    }
    if (index == registry->nodes_count) {
        if (!TRPI_ARRAY_HAS_ROOM(registry, nodes)) {
            return TRPI_PUBREG_NOWHERE;
        }
        registry->nodes_count++;
    }
    trpi_peer_state *peer = &registry->nodes[index];
    memset(peer, 0, sizeof *peer);
    peer->used = true;
    peer->node.id = *id;
    peer->era = ++registry->eras;
    return index;
}

static void
take_status(trpi_pubreg *registry, uint32_t index, trp_member_status status)
{
    trpi_peer_state *peer = &registry->nodes[index];
    bool up = status == TRP_MEMBER_UP || status == TRP_MEMBER_WEAKLY_UP;
    bool leaves = status == TRP_MEMBER_LEAVING || status == TRP_MEMBER_EXITING;
    peer->listed = true;
    if (index == TRPI_PUBREG_SELF) {
        registry->speaks = up;
        return;
    }
    peer->is_peer = up || status == TRP_MEMBER_LEAVING;
    up = up || (leaves && (registry->options.broken & TRPI_PUBREG_BROKEN_LEAVING));
    if (peer->counts && !up) {
        drop_bucket(registry, index);
    }
    peer->counts = up;
}

trp_err
trpi_pubreg_members(trpi_pubreg *registry, uint64_t now_ms, const trpi_pubreg_member *members,
                    uint32_t count)
{
    actions_begin(registry);
    if (TRPI_ARRAY_RESERVE(registry, actions, registry->nodes_count, TRPI_ARRAY_NO_LIMIT) !=
        TRP_OK) {
        return TRP_ENOMEM;
    }
    for (uint32_t i = 0; i < registry->nodes_count; i++) {
        registry->nodes[i].listed = false;
    }
    registry->speaks = false;
    trp_err err = TRP_OK;
    for (uint32_t i = 0; i < count; i++) {
        bool here = members[i].status != TRP_MEMBER_DOWN &&
                    members[i].status != TRP_MEMBER_REMOVED &&
                    members[i].status != TRP_MEMBER_JOINING;
        uint32_t index = here ? have_node(registry, &members[i].id)
                              : trpi_pubreg_node_of(registry, &members[i].id);
        if (index == TRPI_PUBREG_NOWHERE) {
            err = here ? TRP_ENOMEM : err;
        } else {
            take_status(registry, index, members[i].status);
        }
    }
    for (uint32_t i = 1; i < registry->nodes_count; i++) {
        trpi_peer_state *peer = &registry->nodes[i];
        if (peer->used && (!peer->listed || (!peer->counts && !peer->is_peer))) {
            if (peer->counts) {
                drop_bucket(registry, i);
            }
            node_estrange(registry, &peer->node.id);
            peer->used = peer->counts = peer->is_peer = peer->told = false;
        }
    }
    trpi_pubreg_prune(registry);
    trpi_pubreg_set_wake(registry, now_ms);
    return err;
}

/* ---- frames ---------------------------------------------------------------------------------- */

/* Its mediator has begun again: both buckets do. */
static void
begin_again(trpi_pubreg *registry, uint32_t index)
{
    trpi_peer_state *peer = &registry->nodes[index];
    if (registry->options.broken & TRPI_PUBREG_BROKEN_LIFE) {
        return;
    }
    if (peer->node.life != 0) {
        drop_bucket(registry, index);
    }
    peer->its_era = 0;
    peer->acked = peer->sent = 0;
    peer->told = peer->knows = false;
    peer->retry_at_ms = 0;
    peer->retry_ms = registry->options.retry_ms;
}

/* Take who it is; false: a frame of an earlier life or era. */
static bool
peer_meet(trpi_pubreg *registry, uint32_t index, const trpi_pubsub_frame *frame)
{
    trpi_peer_state *peer = &registry->nodes[index];
    if (frame->life < peer->node.life ||
        (frame->life == peer->node.life && frame->era < peer->its_era)) {
        return false;
    }
    bool met = peer->node.life != frame->life || peer->absent || peer->node.slot != frame->slot ||
               peer->node.generation != frame->generation;
    if (frame->life > peer->node.life) {
        begin_again(registry, index);
    } else if (frame->era > peer->its_era && peer->seen > 0) {
        (registry->options.broken & TRPI_PUBREG_BROKEN_ERA ? drop_bucket : empty_bucket)(registry,
                                                                                         index);
    }
    peer->node.life = frame->life;
    peer->node.slot = frame->slot;
    peer->node.generation = frame->generation;
    peer->its_era = frame->era;
    if (peer->silent || peer->absent || peer->question != 0) {
        peer->retry_ms = registry->options.retry_ms;
        peer->retry_at_ms = 0;
        peer->sent = peer->acked;
    }
    peer->silent = peer->absent = false;
    peer->question = 0;
    if (met) {
        (void)action_add(registry, TRPI_PUBREG_MET, index);
    }
    return true;
}

static void
take_seen(trpi_pubreg *registry, uint32_t index, const trpi_pubsub_frame *frame, uint64_t now_ms)
{
    trpi_peer_state *peer = &registry->nodes[index];
    if (frame->seen.life != registry->options.life) {
        return;
    }
    peer->knows = true;
    if (frame->seen.era != peer->era) {
        return;
    }
    uint64_t version = frame->seen.version;
    if (version > peer->acked && version <= registry->version) {
        peer->acked = version;
        peer->sent = peer->sent < version ? version : peer->sent;
        peer->retry_ms = registry->options.retry_ms;
        peer->retry_at_ms = now_ms + registry->options.retry_ms;
    }
    if (frame->gap) {
        peer->sent = peer->acked;
    }
}

static void
say_full(trpi_pubreg *registry, uint32_t index)
{
    trpi_peer_state *peer = &registry->nodes[index];
    char address[TRPI_ADDRESS_TEXT_BYTES];
    trpi_pubreg_action *action = peer->full ? NULL : action_add(registry, TRPI_PUBREG_LOG, index);
    if (action == NULL) {
        return;
    }
    peer->full = true;
    (void)snprintf(registry->text, sizeof registry->text,
                   "mediator %s: a node has more entries than are taken, the others are not seen "
                   "here: give all nodes the same limit. node=%s max=%u",
                   registry->name,
                   trpi_address_format(&peer->node.id.address, address, sizeof address),
                   registry->options.entries_max);
    action->level = TRP_LOG_ERROR;
    action->text = registry->text;
}

/* Errors: TRP_ENOMEM: what was taken before is seen, the rest is sent again. */
static trp_err
take_items(trpi_pubreg *registry, uint32_t index, const trpi_pubsub_frame *frame)
{
    trpi_peer_state *peer = &registry->nodes[index];
    for (uint32_t i = 0; i < frame->items_count; i++) {
        const trpi_pubsub_item *item = &frame->items[i];
        uint64_t hash = trpi_pubsub_key_hash(&item->key);
        if (item->version <= peer->seen) {
            continue;
        }
        if (item->count > 0 && peer->entries / 2 >= registry->options.entries_max) {
            const trpi_pubreg_entry *entry = trpi_index_find(&registry->index, &item->key, hash);
            if (entry == NULL || trpi_index_place(entry, index) == NULL) {
                say_full(registry, index);
                continue;
            }
        }
        trp_err err = trpi_index_set(&registry->index, &item->key, hash, index, item->count,
                                     item->begun, &peer->entries);
        if (err != TRP_OK) {
            return err;
        }
        peer->seen = item->version;
    }
    return TRP_OK;
}

static trp_err
take_delta(trpi_pubreg *registry, uint32_t index, const trpi_pubsub_frame *frame)
{
    trpi_peer_state *peer = &registry->nodes[index];
    if (!peer->counts || frame->seen.life != registry->options.life) {
        return TRP_OK; /* it leaves: nothing of it is wanted; or it was said to an earlier life */
    }
    bool gap = frame->base > peer->seen;
    if (gap && registry->options.broken & TRPI_PUBREG_BROKEN_GAP) {
        gap = false;
    }
    if (!gap && frame->version > peer->seen) {
        trp_err err = take_items(registry, index, frame);
        if (err != TRP_OK) {
            return err;
        }
        peer->seen = frame->version;
    }
    trpi_pubsub_frame ack = { .kind = TRPI_PUBSUB_ACK,
                              .gap = gap,
                              .seen = { peer->node.life, peer->its_era, peer->seen } };
    (void)send_frame(registry, index, &ack);
    return TRP_OK;
}

static void
take_absent(trpi_pubreg *registry, uint32_t index, const trpi_pubsub_frame *frame)
{
    trpi_peer_state *peer = &registry->nodes[index];
    if (peer->question == 0 || frame->question != peer->question) {
        return; /* a late one */
    }
    if (peer->node.life != 0 && peer->counts) {
        drop_bucket(registry, index);
    }
    peer->absent = true;
    peer->silent = peer->told = false;
    peer->question = 0;
}

trp_err
trpi_pubreg_frame(trpi_pubreg *registry, uint64_t now_ms, const trpi_node_id *from,
                  const trpi_pubsub_frame *frame)
{
    actions_begin(registry);
    uint32_t index = trpi_pubreg_node_of(registry, from);
    trp_err err = TRP_OK;
    if (index == TRPI_PUBREG_NOWHERE || index == TRPI_PUBREG_SELF ||
        frame->to_uid != registry->nodes[TRPI_PUBREG_SELF].node.id.uid ||
        !registry->nodes[index].is_peer) {
        return TRP_OK;
    }
    if (TRPI_ARRAY_RESERVE(registry, actions, 4, TRPI_ARRAY_NO_LIMIT) != TRP_OK) {
        return TRP_ENOMEM;
    }
    if (frame->kind == TRPI_PUBSUB_ABSENT) {
        take_absent(registry, index, frame);
    } else if (peer_meet(registry, index, frame)) {
        take_seen(registry, index, frame, now_ms);
        if (frame->kind == TRPI_PUBSUB_DELTA) {
            err = take_delta(registry, index, frame);
        } else if (frame->kind == TRPI_PUBSUB_HELLO) {
            const trpi_peer_state *peer = &registry->nodes[index];
            trpi_pubsub_frame ack = { .kind = TRPI_PUBSUB_ACK,
                                      .seen = { peer->node.life, peer->its_era, peer->seen } };
            (void)send_frame(registry, index, &ack);
        }
    }
    trpi_pubreg_prune(registry);
    trpi_pubreg_set_wake(registry, now_ms);
    return err;
}
