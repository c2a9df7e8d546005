/* coordinator.c - the coordinator of the shards of one type: its life, its events, its frames.
 *
 * States.  idle --its node is the oldest--> collecting --all have answered--> ready
 *          any --its node is not the oldest, or a region obeys a later one--> retired
 * Must hold. Besides those of coordinator_check.c:
 *   sharding-C1  A shard that no region has is granted only when every member of the role that was
 *       there when the term began has answered, or was removed and its take-over time is over. One
 *       that a region has said it has is no other's: it moves before that, so that a leaving node
 *       need not wait for a removed one.                       (coordinator_grants.c: may_grant)
 *   sharding-C2  What a region hosts is taken from its first answer to this term and from its
 *       answers to orders after that; a doubled or late first answer changes nothing.    (hosts)
 *   sharding-C3  An epoch is the up-number of the coordinator's node above a counter, so that those
 *       of a later coordinator are higher.                                              (grant)
 *   sharding-C4  A shard has a new home only after its old one said that it has stopped, or was
 *       removed and its take-over time is over.
 *   sharding-C11  A drained node is granted nothing, and its shards move as soon as another region
 *       may take them; until one may, they stay, and so does what is free.    (coordinator_nodes.c)
 * Limits.  TRPI_SHARDS_MAX shards; members as the cluster's. The frames of one step are bounded by
 *          shards times nodes.
 * Tests.   tests/unit/cluster/sharding_test.c, tests/sim/sharding_test.c
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/array.h"
#include "base/assert.h"
#include "cluster/sharding/coordinator_inner.h"

/* ---- actions --------------------------------------------------------------------------------- */

trpi_coordinator_action *
trpi_coord_act(trpi_coordinator *core, trpi_coordinator_action_kind kind)
{
    if (!TRPI_ARRAY_HAS_ROOM(core, actions)) {
        core->err = TRP_ENOMEM;
        return NULL;
    }
    trpi_coordinator_action *action = &core->actions[core->actions_count++];
    memset(action, 0, sizeof *action);
    action->kind = kind;
    return action;
}

/* Log; one text a step: the first one is kept. */
void
trpi_coord_say(trpi_coordinator *core, trp_log_level level, const char *format, ...)
{
    trpi_coordinator_action *action;
    va_list list;
    if (core->text[0] != '\0') {
        return;
    }
    action = trpi_coord_act(core, TRPI_COORDINATOR_LOG);
    if (action == NULL) {
        return;
    }
    va_start(list, format);
    vsnprintf(core->text, sizeof core->text, format, list);
    va_end(list);
    action->level = level;
    action->text = core->text;
}

void
trpi_coord_send(trpi_coordinator *core, uint32_t slot, trpi_shard_frame *frame)
{
    const trpi_node_id *to = &core->nodes.slots[slot].member.id;
    trpi_buffer bytes = { 0 };
    frame->term = core->term;
    frame->to_uid = to->uid;
    memcpy(frame->type, core->type, sizeof frame->type);
    memcpy(frame->role, core->role, sizeof frame->role);
    trp_err err = trpi_shard_frame_encode(frame, &bytes);
    trpi_coordinator_action *action =
        err == TRP_OK ? trpi_coord_act(core, TRPI_COORDINATOR_SEND) : NULL;
    if (action == NULL) {
        core->err = err == TRP_OK ? TRP_ENOMEM : err;
        trpi_buffer_fini(&bytes);
        return;
    }
    action->node = *to;
    action->bytes = bytes;
}

/* Add an item to the frames that leave at the end of the step. */
void
trpi_coord_put(trpi_coordinator *core, uint32_t to, trpi_shard_frame_kind kind, uint32_t home,
               uint32_t shard, uint64_t epoch)
{
    if (!TRPI_ARRAY_HAS_ROOM(core, outs)) {
        core->err = TRP_ENOMEM; /* each is sent again until it is answered */
        return;
    }
    core->outs[core->outs_count++] =
        (trpi_coord_out){ to, (uint32_t)kind, home, { shard, 0, epoch } };
}

static int
compare_outs(const void *left, const void *right)
{
    const trpi_coord_out *a = left, *b = right;
    if (a->to != b->to) {
        return a->to < b->to ? -1 : 1;
    }
    if (a->kind != b->kind) {
        return a->kind < b->kind ? -1 : 1;
    }
    if (a->home != b->home) {
        return a->home < b->home ? -1 : 1;
    }
    return a->item.shard < b->item.shard ? -1 : a->item.shard > b->item.shard;
}

static void
send_run(trpi_coordinator *core, const trpi_coord_out *outs, trpi_shard_item *items, uint32_t count)
{
    trpi_shard_frame frame;
    memset(&frame, 0, sizeof frame);
    frame.kind = (trpi_shard_frame_kind)outs[0].kind;
    frame.items = items;
    for (uint32_t i = 0; i < count; i++) {
        if (i == 0 || outs[i].item.shard != outs[i - 1].item.shard) { /* asked twice, told once */
            items[frame.items_count++] = outs[i].item;
        }
    }
    if (outs[0].home != TRPI_SHARD_SLOT_NONE) {
        frame.node = core->nodes.slots[outs[0].home].member.id;
    }
    if (outs[0].to != TRPI_SHARD_SLOT_NONE) {
        trpi_coord_send(core, outs[0].to, &frame);
        return;
    }
    for (uint32_t i = 0; i < core->nodes.slots_count; i++) {
        if (core->nodes.slots[i].present) {
            trpi_coord_send(core, i, &frame);
        }
    }
}

static void
send_outs(trpi_coordinator *core)
{
    trpi_shard_item *items;
    uint32_t from = 0;
    if (core->outs_count == 0) {
        return;
    }
    items = trpi_alloc(core->outs_count * sizeof *items);
    if (items == NULL) {
        core->err = TRP_ENOMEM;
        core->outs_count = 0;
        return;
    }
    qsort(core->outs, core->outs_count, sizeof *core->outs, compare_outs);
    for (uint32_t i = 1; i <= core->outs_count; i++) {
        const trpi_coord_out *a = &core->outs[from], *b = &core->outs[i];
        if (i == core->outs_count || a->to != b->to || a->kind != b->kind || a->home != b->home) {
            send_run(core, a, items, i - from);
            from = i;
        }
    }
    core->outs_count = 0;
    trpi_free(items);
}

/* ---- frames ---------------------------------------------------------------------------------- */

static void
take_stale(trpi_coordinator *core, const trpi_node_id *from, const trpi_shard_frame *frame)
{
    char text[TRPI_ADDRESS_TEXT_BYTES];
    if (trpi_shard_term_compare(frame->bound, core->term) <= 0) {
        return;
    }
    trpi_coord_say(core, TRP_LOG_INFO, "coordinator of '%s': %s obeys a later one; this one ends",
                   core->type, trpi_address_format(&from->address, text, sizeof text));
    core->retired = true;
    core->active = false;
    trpi_coord_reset(core);
}

static void
take_frame(trpi_coordinator *core, const trpi_node_id *from, const trpi_shard_frame *frame)
{
    uint32_t slot = trpi_shard_nodes_find(&core->nodes, from);
    bool mine = trpi_shard_term_compare(frame->term, core->term) == 0;
    if (!core->active || !mine || slot == TRPI_SHARD_SLOT_NONE ||
        !core->nodes.slots[slot].present ||
        (frame->to_uid != 0 && frame->to_uid != core->self.uid)) {
        return;
    }
    switch (frame->kind) {
    case TRPI_SHARD_FRAME_HOSTS:
        trpi_coord_hosts(core, slot, frame);
        break;
    case TRPI_SHARD_FRAME_LEAVING:
        trpi_coord_leaving(core, slot);
        break;
    case TRPI_SHARD_FRAME_AVOIDED:
        trpi_coord_avoided(core, slot, frame);
        break;
    case TRPI_SHARD_FRAME_REBALANCE:
        core->rebalance_now = true;
        break;
    case TRPI_SHARD_FRAME_STALE:
        take_stale(core, from, frame);
        break;
    case TRPI_SHARD_FRAME_GET:
        trpi_coord_get(core, slot, frame);
        break;
    case TRPI_SHARD_FRAME_BEGUN:
    case TRPI_SHARD_FRAME_STOPPED:
    case TRPI_SHARD_FRAME_STARTED:
        for (uint32_t i = 0; i < frame->items_count; i++) {
            const trpi_shard_item *item = &frame->items[i];
            if (item->shard >= core->settings.shards) {
                continue;
            }
            if (frame->kind == TRPI_SHARD_FRAME_BEGUN) {
                trpi_coord_begun(core, slot, item);
            } else if (frame->kind == TRPI_SHARD_FRAME_STOPPED) {
                trpi_coord_stopped(core, slot, item);
            } else {
                trpi_coord_started(core, slot, item);
            }
        }
        break;
    default: /* a coordinator's own, or of a later version */
        break;
    }
}

/* ---- steps ----------------------------------------------------------------------------------- */

/* Forget the term: table, answers, orders. The members stay. */
void
trpi_coord_reset(trpi_coordinator *core)
{
    for (uint32_t i = 0; i < core->states_count; i++) {
        trpi_slot_set_fini(&core->states[i].avoid);
        memset(&core->states[i], 0, sizeof core->states[i]);
    }
    for (uint32_t i = 0; core->shards != NULL && i < core->settings.shards; i++) {
        trpi_slot_set_fini(&core->shards[i].askers);
        trpi_slot_set_fini(&core->shards[i].begins);
    }
    trpi_free(core->shards);
    core->shards = NULL;
    memset(&core->settings, 0, sizeof core->settings);
    core->judge = core->last = TRPI_SHARD_SLOT_NONE;
    core->ready = false;
    core->counter = core->moving = core->wanting = 0;
    core->orphans_count = core->outs_count = 0;
    core->rebalance_now = false;
    core->round = 0;
}

static void
actions_clear(trpi_coordinator *core)
{
    for (uint32_t i = 0; i < core->actions_count; i++) {
        trpi_buffer_fini(&core->actions[i].bytes);
        trpi_free(core->actions[i].question);
    }
    core->actions_count = 0;
}

trp_err
trpi_coordinator_step(trpi_coordinator *core, uint64_t now_ms, const trpi_coordinator_event *event)
{
    actions_clear(core);
    core->text[0] = '\0';
    core->err = TRP_OK;
    core->now_ms = now_ms;
    switch (event->kind) {
    case TRPI_COORDINATOR_MEMBERS:
        trpi_coord_members(core, event);
        break;
    case TRPI_COORDINATOR_FRAME:
        take_frame(core, &event->from, event->frame);
        break;
    case TRPI_COORDINATOR_START:
        core->own = *event->settings;
        break;
    case TRPI_COORDINATOR_REBALANCE:
        core->rebalance_now = true;
        break;
    default:
        break;
    }
    core->wake_ms = TRPI_REGION_NEVER;
    if (event->kind == TRPI_COORDINATOR_ANSWER) {
        trpi_coord_answer(core, event->question);
    }
    if (core->active) {
        core->wake_ms = now_ms + 60000u; /* brought forward by what is looked at */
        trpi_coord_look_at_nodes(core);
        trpi_coord_look_at_shards(core);
        send_outs(core);
        if (core->err != TRP_OK) {
            core->wake_ms = now_ms + core->options.retry_ms;
        }
    }
    return core->err;
}

/* ---- life ------------------------------------------------------------------------------------ */

trp_err
trpi_coordinator_new(const trpi_node_id *self, const char *type, const char *role,
                     const trpi_coordinator_options *options, trpi_coordinator **ret_core)
{
    trpi_coordinator *core = trpi_alloc(sizeof *core);
    trpi_assert(type[0] != '\0' && strlen(type) <= TRPI_SHARD_TYPE_BYTES_MAX);
    trpi_assert(strlen(role) <= TRPI_ROLE_BYTES_MAX);
    if (core == NULL) {
        return TRP_ENOMEM;
    }
    if (options != NULL) {
        core->options = *options;
    }
    trpi_coordinator_options *o = &core->options;
    o->retry_ms = o->retry_ms == 0 ? TRPI_SHARD_RETRY_MS_DEFAULT : o->retry_ms;
    o->begin_ms = o->begin_ms == 0 ? TRPI_SHARD_BEGIN_MS_DEFAULT : o->begin_ms;
    o->avoid_ms = o->avoid_ms == 0 ? TRPI_SHARD_AVOID_MS_DEFAULT : o->avoid_ms;
    o->answer_ms = o->answer_ms == 0 ? TRPI_SHARD_ANSWER_MS_DEFAULT : o->answer_ms;
    o->takeover_ms = o->takeover_ms == 0 ? TRPI_SHARD_TAKEOVER_MS_DEFAULT : o->takeover_ms;
    core->self = *self;
    core->wake_ms = TRPI_REGION_NEVER;
    core->judge = core->last = TRPI_SHARD_SLOT_NONE;
    snprintf(core->type, sizeof core->type, "%s", type);
    snprintf(core->role, sizeof core->role, "%s", role);
    *ret_core = core;
    return TRP_OK;
}

void
trpi_coordinator_free(trpi_coordinator *core)
{
    if (core == NULL) {
        return;
    }
    actions_clear(core);
    trpi_coord_reset(core);
    trpi_shard_nodes_fini(&core->nodes);
    trpi_free(core->states);
    trpi_free(core->orphans);
    trpi_free(core->outs);
    trpi_free(core->actions);
    trpi_free(core);
}

void
trpi_coordinator_asks_set(trpi_coordinator *core, bool asks)
{
    core->asks = asks;
}

bool
trpi_coordinator_weighs(const trpi_coordinator *core)
{
    return core->active && (core->settings.allocation == TRPI_ALLOCATION_METRICS ||
                            core->settings.allocation == TRPI_ALLOCATION_USER);
}

const trpi_coordinator_action *
trpi_coordinator_actions(const trpi_coordinator *core, uint32_t *ret_count)
{
    *ret_count = core->actions_count;
    return core->actions;
}

trpi_buffer
trpi_coordinator_take_bytes(trpi_coordinator *core, uint32_t action)
{
    trpi_buffer bytes;
    trpi_assert(action < core->actions_count &&
                core->actions[action].kind == TRPI_COORDINATOR_SEND);
    bytes = core->actions[action].bytes;
    memset(&core->actions[action].bytes, 0, sizeof bytes);
    return bytes;
}

trpi_allocation_question *
trpi_coordinator_take_question(trpi_coordinator *core, uint32_t action)
{
    trpi_assert(action < core->actions_count);
    trpi_allocation_question *round = core->actions[action].question;
    core->actions[action].question = NULL;
    return round;
}

uint64_t
trpi_coordinator_wake_ms(const trpi_coordinator *core)
{
    return core->wake_ms;
}
