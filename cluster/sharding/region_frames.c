/* region_frames.c - what a region does with the frames of a coordinator.
 *
 * Tests. tests/unit/cluster/sharding_test.c
 */
#include <stdio.h>
#include <string.h>

#include <troupe/cluster.h>

#include "base/assert.h"
#include "cluster/sharding/region_inner.h"

void
trpi_region_avoided(trpi_region_core *core, uint32_t slot)
{
    trpi_region_node *peer = &core->peers[slot];
    trpi_shard_frame frame;
    if (!peer->avoid_asks || peer->fences > 0) {
        return;
    }
    peer->avoid_asks = false;
    memset(&frame, 0, sizeof frame);
    frame.kind = TRPI_SHARD_FRAME_AVOIDED;
    frame.node = core->nodes.slots[slot].member.id;
    trpi_region_send(core, &core->boss, &frame);
}

static void
take_avoid(trpi_region_core *core, const trpi_shard_frame *frame)
{
    uint32_t slot = trpi_shard_nodes_find(&core->nodes, &frame->node);
    trpi_shard_frame answer;
    if (slot == TRPI_SHARD_SLOT_NONE) { /* not known yet, or gone: nothing is sent there */
        memset(&answer, 0, sizeof answer);
        answer.kind = TRPI_SHARD_FRAME_AVOIDED;
        answer.node = frame->node;
        trpi_region_send(core, &core->boss, &answer);
        return;
    }
    core->peers[slot].avoided = true;
    for (uint32_t i = 0; i < core->settings.shards; i++) {
        trpi_region_shard *shard = &core->shards[i];
        if (shard->next == slot) {
            shard->next = TRPI_SHARD_SLOT_NONE;
        }
        if (shard->place == TRPI_SHARD_PLACE_AWAY && shard->node == slot) {
            trpi_region_unroute(core, i, true);
            if (shard->place == TRPI_SHARD_PLACE_AWAY) {
                return; /* no memory: AVOID comes again */
            }
        }
    }
    core->peers[slot].avoid_asks = true;
    trpi_region_avoided(core, slot);
}

static void
take_begin(trpi_region_core *core, const trpi_shard_item *item)
{
    trpi_region_shard *shard = &core->shards[item->shard];
    if (trpi_region_is_ordered(core) && shard->place == TRPI_SHARD_PLACE_AWAY &&
        shard->epoch <= item->epoch) {
        trpi_region_unroute(core, item->shard, false);
    }
    if (shard->fence != TRPI_SHARD_SLOT_NONE) {
        shard->begun_epoch = item->epoch;
    } else if (shard->place != TRPI_SHARD_PLACE_AWAY || shard->epoch > item->epoch ||
               !trpi_region_is_ordered(core)) {
        trpi_region_put(core, &core->begun, item->shard, item->epoch);
    }
}

static void
take_handoff(trpi_region_core *core, const trpi_shard_item *item)
{
    trpi_region_shard *shard = &core->shards[item->shard];
    bool is_here = shard->place >= TRPI_SHARD_PLACE_OPENING && shard->epoch == item->epoch;
    if (is_here && shard->place == TRPI_SHARD_PLACE_OWN) {
        if (trpi_region_room(core, 1)) {
            shard->place = TRPI_SHARD_PLACE_STOPPING;
            shard->since_ms = core->now_ms;
            trpi_region_act(core, TRPI_REGION_STOP, item->shard)->epoch = shard->epoch;
        }
    } else if (!is_here || shard->place == TRPI_SHARD_PLACE_OPENING) {
        trpi_region_end(core, item->shard, item->epoch);
    } /* else it is stopping, and the answer comes */
}

/* sharding-R1 */
static void
take_grant(trpi_region_core *core, const trpi_shard_item *item)
{
    trpi_region_shard *shard = &core->shards[item->shard];
    if (shard->place >= TRPI_SHARD_PLACE_OPENING) {
        if (shard->place == TRPI_SHARD_PLACE_OWN && shard->epoch == item->epoch) {
            trpi_region_put(core, &core->started, item->shard, item->epoch);
        } else if (item->epoch <= shard->ended) {
            trpi_region_put(core, &core->stopped, item->shard, item->epoch);
        }
        return;
    }
    if (item->epoch <= shard->ended || !core->hosts || core->leaving || core->refused) {
        trpi_region_end(core, item->shard, item->epoch);
        return;
    }
    if (shard->place == TRPI_SHARD_PLACE_AWAY) {
        trpi_region_unroute(core, item->shard, false);
        if (shard->place == TRPI_SHARD_PLACE_AWAY) {
            return; /* no memory: GRANT comes again */
        }
    }
    shard->place = TRPI_SHARD_PLACE_OPENING;
    shard->epoch = item->epoch;
    shard->heard = item->epoch > shard->heard ? item->epoch : shard->heard;
    shard->since_ms = core->now_ms;
    shard->next = TRPI_SHARD_SLOT_NONE;
    core->hosted++;
    trpi_region_settle(core, item->shard);
}

static void
take_home(trpi_region_core *core, uint32_t slot, const trpi_shard_item *item)
{
    trpi_region_shard *shard = &core->shards[item->shard];
    if (item->epoch < shard->heard) {
        return;
    }
    if (shard->place == TRPI_SHARD_PLACE_AWAY && item->epoch > shard->epoch) {
        trpi_region_unroute(core, item->shard, false);
    }
    if (shard->place != TRPI_SHARD_PLACE_UNKNOWN) {
        return;
    }
    shard->heard = item->epoch;
    shard->next = slot;
    shard->next_epoch = item->epoch;
    trpi_region_settle(core, item->shard);
}

/* Hold a home that may be used; NONE: not a member here (yet), or it leaves. */
static uint32_t
home_slot(const trpi_region_core *core, const trpi_node_id *node)
{
    uint32_t slot = trpi_shard_nodes_find(&core->nodes, node);
    if (slot == TRPI_SHARD_SLOT_NONE || !core->nodes.slots[slot].present ||
        core->peers[slot].avoided || core->nodes.slots[slot].member.status > TRP_MEMBER_LEAVING) {
        return TRPI_SHARD_SLOT_NONE; /* sharding-R4 */
    }
    return slot;
}

/* sharding-R11 */
static void
take_home_here(trpi_region_core *core, const trpi_shard_frame *frame)
{
    for (uint32_t i = 0; i < frame->items_count; i++) {
        const trpi_shard_item *item = &frame->items[i];
        if (item->shard < core->settings.shards &&
            core->shards[item->shard].place < TRPI_SHARD_PLACE_OPENING &&
            item->epoch <= core->shards[item->shard].ended) {
            trpi_region_put(core, &core->stopped, item->shard, item->epoch);
        }
    }
}

static void
take_items(trpi_region_core *core, const trpi_shard_frame *frame)
{
    uint32_t slot = TRPI_SHARD_SLOT_NONE;
    if (frame->kind == TRPI_SHARD_FRAME_HOME && trpi_node_id_equal(&frame->node, &core->self)) {
        take_home_here(core, frame);
        return;
    }
    if (frame->kind == TRPI_SHARD_FRAME_HOME) {
        slot = home_slot(core, &frame->node);
        if (slot == TRPI_SHARD_SLOT_NONE) {
            return; /* it is asked for again */
        }
    }
    for (uint32_t i = 0; i < frame->items_count; i++) {
        const trpi_shard_item *item = &frame->items[i];
        if (item->shard >= core->settings.shards) {
            if (frame->kind == TRPI_SHARD_FRAME_BEGIN) { /* not started here: never told */
                trpi_region_put(core, &core->begun, item->shard, item->epoch);
            } else if (frame->kind == TRPI_SHARD_FRAME_HANDOFF) {
                trpi_region_put(core, &core->stopped, item->shard, item->epoch);
            }
        } else if (frame->kind == TRPI_SHARD_FRAME_HOME) {
            take_home(core, slot, item);
        } else if (frame->kind == TRPI_SHARD_FRAME_BEGIN) {
            take_begin(core, item);
        } else if (frame->kind == TRPI_SHARD_FRAME_HANDOFF) {
            take_handoff(core, item);
        } else {
            take_grant(core, item);
        }
    }
}

static void
take_verdict(trpi_region_core *core, const trpi_shard_frame *frame)
{
    if (core->settings.shards == 0 || core->registered || core->refused) {
        return;
    }
    if (frame->kind == TRPI_SHARD_FRAME_WELCOME) {
        core->registered = true;
        for (uint32_t i = 0; i < core->settings.shards; i++) {
            core->shards[i].asked_ms = 0; /* this coordinator was not asked yet */
        }
        if (!core->accepted && trpi_region_room(core, 1)) {
            trpi_region_act(core, TRPI_REGION_ACCEPTED, 0);
            core->accepted = true;
        }
    } else if (!core->accepted && trpi_region_room(core, 1)) {
        core->refused = true;
        memcpy(core->text, frame->text, sizeof core->text);
        trpi_region_act(core, TRPI_REGION_REFUSED, 0)->text = core->text;
    }
}

/* A frame of a region is none for another: an answer to it could be answered for ever. */
static bool
is_order(trpi_shard_frame_kind kind)
{
    return kind == TRPI_SHARD_FRAME_ASK || kind == TRPI_SHARD_FRAME_WELCOME ||
           kind == TRPI_SHARD_FRAME_REFUSE || kind == TRPI_SHARD_FRAME_HOME ||
           kind == TRPI_SHARD_FRAME_BEGIN || kind == TRPI_SHARD_FRAME_HANDOFF ||
           kind == TRPI_SHARD_FRAME_GRANT || kind == TRPI_SHARD_FRAME_AVOID ||
           kind == TRPI_SHARD_FRAME_MAY_LEAVE;
}

/* sharding-R12. Another role is an error, which the coordinator names when it is answered. */
static bool
may_bind(const trpi_region_core *core, const trpi_node_id *from, const trpi_shard_frame *frame)
{
    uint32_t oldest = trpi_shard_nodes_oldest(&core->nodes);
    return (core->settings.shards != 0 && strcmp(frame->role, core->role) != 0) ||
           (oldest != TRPI_SHARD_SLOT_NONE &&
            trpi_node_id_equal(&core->nodes.slots[oldest].member.id, from));
}

void
trpi_region_frame(trpi_region_core *core, const trpi_node_id *from, const trpi_shard_frame *frame)
{
    int order = trpi_shard_term_compare(frame->term, core->bound);
    trpi_shard_frame answer;
    if (!is_order(frame->kind) || (frame->to_uid != 0 && frame->to_uid != core->self.uid) ||
        frame->term.uid != from->uid) {
        return; /* of an earlier incarnation here, or not from the coordinator */
    }
    if (order < 0 && (core->options.broken & TRPI_SHARD_BROKEN_BIND) == 0) {
        memset(&answer, 0, sizeof answer);
        answer.kind = TRPI_SHARD_FRAME_STALE;
        answer.term = frame->term;
        answer.bound = core->bound;
        trpi_region_send(core, from, &answer);
        return;
    }
    if (order > 0 && !may_bind(core, from, frame)) {
        return; /* it asks again, and a region whose view has changed answers by itself */
    }
    if (order > 0) {
        trpi_region_bind(core, frame->term, from);
    }
    switch (frame->kind) {
    case TRPI_SHARD_FRAME_ASK:
        trpi_region_send_hosts(core, from);
        break;
    case TRPI_SHARD_FRAME_WELCOME:
    case TRPI_SHARD_FRAME_REFUSE:
        take_verdict(core, frame);
        break;
    case TRPI_SHARD_FRAME_GRANT:
        if (order > 0) {
            break; /* it has not been answered, so it cannot know what is here */
        }
        /* fall through */
    case TRPI_SHARD_FRAME_HOME:
    case TRPI_SHARD_FRAME_BEGIN:
    case TRPI_SHARD_FRAME_HANDOFF:
        take_items(core, frame);
        break;
    case TRPI_SHARD_FRAME_AVOID:
        take_avoid(core, frame);
        break;
    case TRPI_SHARD_FRAME_MAY_LEAVE:
        core->may_leave = core->leaving;
        break;
    default: /* of a coordinator's, or of a later version */
        break;
    }
}
