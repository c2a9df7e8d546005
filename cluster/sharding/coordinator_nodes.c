/* coordinator_nodes.c - which nodes the coordinator asks, may grant shards to, and lets leave.
 *
 * Must hold. sharding-C1 and sharding-C2 of coordinator.c.
 * Tests.     tests/unit/cluster/sharding_test.c
 */
#include <stdio.h>
#include <string.h>

#include <troupe/cluster.h>

#include "base/alloc.h"
#include "base/array.h"
#include "base/assert.h"
#include "cluster/sharding/coordinator_inner.h"

#define ASK_RETRIES_MAX 25u /* a member without sharding is asked more and more seldom */

static void
wake_at(trpi_coordinator *core, uint64_t at_ms)
{
    core->wake_ms = at_ms < core->wake_ms ? at_ms : core->wake_ms;
}

/* ---- answers --------------------------------------------------------------------------------- */

bool
trpi_coord_has_answers(const trpi_coordinator *core)
{
    for (uint32_t i = 0; i < core->states_count; i++) {
        const trpi_coord_node *state = &core->states[i];
        if (core->nodes.slots[i].used && state->waits && !state->answered &&
            (!state->gone || state->until_ms > core->now_ms)) {
            return false;
        }
    }
    return true;
}

static bool
are_equal(const trpi_sharding_settings *a, const trpi_sharding_settings *b)
{
    return a->shards == b->shards && a->extractor_version == b->extractor_version;
}

static void
refuse_node(trpi_coordinator *core, uint32_t slot)
{
    trpi_coord_node *state = &core->states[slot];
    char own[TRPI_ADDRESS_TEXT_BYTES], other[TRPI_ADDRESS_TEXT_BYTES] = "the other members";
    trpi_shard_frame frame;
    memset(&frame, 0, sizeof frame);
    frame.kind = TRPI_SHARD_FRAME_REFUSE;
    trpi_address_format(&core->nodes.slots[slot].member.id.address, own, sizeof own);
    if (core->judge != TRPI_SHARD_SLOT_NONE) {
        trpi_address_format(&core->nodes.slots[core->judge].member.id.address, other, sizeof other);
    }
    snprintf(frame.text, sizeof frame.text,
             "type '%s': %.128s has %u shards and extractor version %u, but %.128s has %u shards "
             "and extractor version %u; start it with the same on all nodes",
             core->type, own, state->settings.shards, state->settings.extractor_version, other,
             core->settings.shards, core->settings.extractor_version);
    if (!state->refused) {
        trpi_coord_say(core, TRP_LOG_ERROR, "%s", frame.text);
    }
    state->refused = true;
    trpi_coord_send(core, slot, &frame);
}

static void
judge_node(trpi_coordinator *core, uint32_t slot)
{
    trpi_coord_node *state = &core->states[slot];
    trpi_shard_frame frame;
    if (core->settings.shards == 0 || state->settings.shards == 0) {
        return;
    }
    state->judged = true;
    if (!are_equal(&state->settings, &core->settings)) {
        refuse_node(core, slot);
        return;
    }
    memset(&frame, 0, sizeof frame);
    frame.kind = TRPI_SHARD_FRAME_WELCOME;
    frame.settings = core->settings;
    trpi_coord_send(core, slot, &frame);
}

/* Take these settings as those of the type: the table can be made. */
static void
set_settings(trpi_coordinator *core, uint32_t slot)
{
    const trpi_sharding_settings *settings = &core->states[slot].settings;
    trpi_assert(core->shards == NULL && settings->shards > 0);
    core->shards = trpi_alloc(settings->shards * sizeof *core->shards);
    if (core->shards == NULL) {
        core->err = TRP_ENOMEM;
        return;
    }
    core->settings = *settings;
    if (are_equal(&core->own, settings)) {
        core->settings = core->own; /* how to spread them is this node's choice */
    }
    core->judge = slot;
    for (uint32_t i = 0; i < settings->shards; i++) {
        core->shards[i].node = core->shards[i].blocker = TRPI_SHARD_SLOT_NONE;
        if (core->settings.eager) {
            trpi_coord_want(core, i);
        }
    }
}

static void
take_item(trpi_coordinator *core, uint32_t slot, const trpi_shard_item *item)
{
    trpi_coord_shard *shard = &core->shards[item->shard];
    uint32_t loser = slot;
    uint64_t epoch = item->epoch;
    if (shard->node != TRPI_SHARD_SLOT_NONE && shard->epoch < item->epoch) {
        loser = shard->node; /* the later grant is the right one */
        epoch = shard->epoch;
    }
    if (shard->node != TRPI_SHARD_SLOT_NONE) {
        if (TRPI_ARRAY_HAS_ROOM(core, orphans)) {
            core->orphans[core->orphans_count++] =
                (trpi_coord_orphan){ loser, item->shard, epoch, core->now_ms };
        } else {
            core->err = TRP_ENOMEM;
        }
        trpi_coord_say(core, TRP_LOG_ERROR,
                       "shard %u of '%s' is hosted twice; the earlier host is told to stop it",
                       item->shard, core->type);
        if (loser == slot) {
            return;
        }
    }
    trpi_coord_set(core, item->shard,
                   item->hold == TRPI_SHARD_HOLD_OWN       ? TRPI_SHARD_PHASE_HOSTED
                   : item->hold == TRPI_SHARD_HOLD_OPENING ? TRPI_SHARD_PHASE_GRANTING
                                                           : TRPI_SHARD_PHASE_STOPPING,
                   slot, item->epoch);
}

/* sharding-C2 */
void
trpi_coord_hosts(trpi_coordinator *core, uint32_t slot, const trpi_shard_frame *frame)
{
    trpi_coord_node *state = &core->states[slot];
    bool is_new = !state->answered, started_since = state->settings.shards == 0;
    if (frame->settings.shards != 0 && strcmp(frame->role, core->role) != 0) {
        state->settings = frame->settings;
        trpi_coord_say(core, TRP_LOG_ERROR, "type '%s' is bound to role '%s', and to '%s' there",
                       core->type, core->role, frame->role);
        return;
    }
    if (is_new || started_since) {
        state->settings = frame->settings;
        state->hosts = frame->hosts && core->nodes.slots[slot].member.has_role;
        state->accepted = frame->accepted;
    }
    if (core->settings.shards == 0 && frame->accepted && frame->settings.shards != 0) {
        set_settings(core, slot);
    }
    if (is_new && frame->items_count > 0 && core->settings.shards == 0) {
        return; /* no memory for the table: it says it again */
    }
    state->answered = true;
    state->leaving = state->leaving || frame->leaving;
    for (uint32_t i = 0; is_new && i < frame->items_count; i++) {
        if (frame->items[i].shard < core->settings.shards) {
            take_item(core, slot, &frame->items[i]);
        }
    }
    judge_node(core, slot);
}

/* Choose the settings of the oldest that has the type, when no earlier coordinator has. */
static void
choose_settings(trpi_coordinator *core)
{
    uint32_t best = TRPI_SHARD_SLOT_NONE;
    for (uint32_t i = 0; i < core->states_count; i++) {
        const trpi_coord_node *state = &core->states[i];
        const trpi_shard_node *node = &core->nodes.slots[i];
        if (node->present && state->answered && state->hosts && node->member.up_number != 0 &&
            (best == TRPI_SHARD_SLOT_NONE ||
             node->member.up_number < core->nodes.slots[best].member.up_number)) {
            best = i;
        }
    }
    if (best != TRPI_SHARD_SLOT_NONE) {
        set_settings(core, best);
    }
}

/* ---- who may be granted ---------------------------------------------------------------------- */

/* Does it host shards of the type, in the settings in force, and stay? */
static bool
is_region(const trpi_coordinator *core, uint32_t slot)
{
    const trpi_coord_node *state = &core->states[slot];
    const trpi_shard_node *node = &core->nodes.slots[slot];
    return node->present && state->answered && state->judged && state->hosts && !state->refused &&
           !state->leaving && node->member.status == TRP_MEMBER_UP;
}

uint32_t
trpi_coord_regions(const trpi_coordinator *core)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < core->states_count; i++) {
        count += is_region(core, i);
    }
    return count;
}

/* sharding-C11 */
static bool
is_open(const trpi_coordinator *core, uint32_t slot)
{
    return is_region(core, slot) && !core->nodes.slots[slot].member.drained;
}

bool
trpi_coord_has_taker(const trpi_coordinator *core)
{
    for (uint32_t i = 0; i < core->states_count; i++) {
        if (is_open(core, i)) {
            return true;
        }
    }
    return false;
}

/* Of several versions of the application only the newest is given shards. */
bool
trpi_coord_may_get(const trpi_coordinator *core, uint32_t slot)
{
    if (!is_open(core, slot)) {
        return false;
    }
    for (uint32_t i = 0; i < core->states_count; i++) {
        if (i != slot && is_open(core, i) &&
            trpi_app_version_compare(core->nodes.slots[i].member.app_version,
                                     core->nodes.slots[slot].member.app_version) > 0) {
            return false;
        }
    }
    return true;
}

/* ---- members --------------------------------------------------------------------------------- */

static bool
is_gone(const trpi_coordinator_event *event, const trpi_node_id *id, uint64_t *ret_ms)
{
    for (uint32_t i = 0; i < event->gone_count; i++) {
        if (trpi_node_id_equal(&event->gone[i].id, id)) {
            *ret_ms = event->gone[i].takeover_ms;
            return true;
        }
    }
    return false;
}

static uint64_t
time_after(uint64_t now_ms, uint64_t after_ms)
{
    return after_ms > UINT64_MAX - now_ms - 1 ? UINT64_MAX - 1 : now_ms + after_ms;
}

/* Take the word for how long a removed node may go on, which may have become shorter. */
static void
take_gone(trpi_coordinator *core, uint32_t slot, const trpi_coordinator_event *event)
{
    trpi_coord_node *state = &core->states[slot];
    uint64_t takeover_ms = core->options.takeover_ms;
    bool said = is_gone(event, &core->nodes.slots[slot].member.id, &takeover_ms);
    if (!state->gone) {
        state->gone = true;
        state->since_ms = core->now_ms;
        state->until_ms = time_after(core->now_ms, takeover_ms);
        trpi_coord_forget_node(core, slot);
    } else if (said) {
        state->until_ms = time_after(core->now_ms, takeover_ms);
    }
    for (uint32_t i = 0; i < core->settings.shards; i++) {
        if (core->shards[i].blocker == slot) {
            core->shards[i].blocked_ms = state->until_ms;
        }
    }
}

static bool
make_states(trpi_coordinator *core)
{
    uint32_t more = core->nodes.slots_count - core->states_count;
    if (more > 0 && TRPI_ARRAY_RESERVE(core, states, more, TRPI_ARRAY_NO_LIMIT) != TRP_OK) {
        for (uint32_t i = core->states_count; i < core->nodes.slots_count; i++) {
            if (core->nodes.slots[i].used) {
                trpi_shard_nodes_remove(&core->nodes, i);
            }
        }
        core->nodes.slots_count = core->states_count;
        core->err = TRP_ENOMEM;
        return false;
    }
    if (more > 0) {
        memset(core->states + core->states_count, 0, more * sizeof *core->states);
        core->states_count += more;
    }
    return true;
}

static void
begin_term(trpi_coordinator *core, uint32_t self, const trpi_coordinator_event *event)
{
    trpi_coord_reset(core);
    core->active = true;
    core->term = trpi_shard_nodes_term(&core->nodes, self);
    core->since_ms = core->now_ms;
    core->rebalance_ms = core->now_ms;
    for (uint32_t i = 0; i < core->states_count; i++) {
        core->states[i].since_ms = core->now_ms;
        core->states[i].waits = core->nodes.slots[i].present &&
                                core->nodes.slots[i].member.has_role &&
                                (core->options.broken & TRPI_SHARD_BROKEN_ANSWERS) == 0;
    }
    /* A node that was removed before may still run what an earlier term granted it. */
    for (uint32_t i = 0; i < event->gone_count; i++) {
        const trpi_shard_gone *gone = &event->gone[i];
        uint32_t slot = gone->has_role && gone->takeover_ms > 0
                            ? trpi_shard_nodes_add(&core->nodes, &gone->id)
                            : TRPI_SHARD_SLOT_NONE;
        if (slot == TRPI_SHARD_SLOT_NONE || !make_states(core) || core->nodes.slots[slot].present) {
            continue;
        }
        core->nodes.slots[slot].member.has_role = true;
        core->states[slot].waits = (core->options.broken & TRPI_SHARD_BROKEN_ANSWERS) == 0;
        core->states[slot].gone = true;
        core->states[slot].since_ms = core->now_ms;
        core->states[slot].until_ms = time_after(core->now_ms, gone->takeover_ms);
    }
}

/* Forget removed nodes that nothing waits for any more. */
static void
sweep_gone(trpi_coordinator *core)
{
    for (uint32_t i = 0; i < core->states_count; i++) {
        trpi_coord_node *state = &core->states[i];
        if (core->nodes.slots[i].used && !core->nodes.slots[i].present &&
            (!core->active || (state->gone && state->until_ms <= core->now_ms))) {
            for (uint32_t j = 0; j < core->settings.shards; j++) {
                if (core->shards[j].blocker == i) {
                    core->shards[j].blocker = TRPI_SHARD_SLOT_NONE;
                }
            }
            trpi_slot_set_fini(&state->avoid);
            memset(state, 0, sizeof *state);
            trpi_shard_nodes_remove(&core->nodes, i);
            core->judge = core->judge == i ? TRPI_SHARD_SLOT_NONE : core->judge;
            core->last = core->last == i ? TRPI_SHARD_SLOT_NONE : core->last;
        }
    }
}

void
trpi_coord_members(trpi_coordinator *core, const trpi_coordinator_event *event)
{
    trp_err err = trpi_shard_nodes_update(&core->nodes, event->members, event->members_count);
    uint32_t self, oldest;
    if (err != TRP_OK || !make_states(core)) {
        core->err = TRP_ENOMEM;
    }
    self = trpi_shard_nodes_find(&core->nodes, &core->self);
    oldest = trpi_shard_nodes_oldest(&core->nodes);
    if (self == TRPI_SHARD_SLOT_NONE || self != oldest || core->retired) {
        if (core->active) {
            trpi_coord_reset(core);
            core->active = false;
        }
    } else if (!core->active) {
        begin_term(core, self, event);
    }
    if (core->active) {
        for (uint32_t i = 0; i < core->states_count; i++) {
            const trpi_shard_node *node = &core->nodes.slots[i];
            if (node->used && !node->present) {
                take_gone(core, i, event);
            } else if (node->present && trpi_shard_member_is_leaving(&node->member)) {
                core->states[i].leaving = true;
            }
            if (node->present && core->states[i].since_ms == 0) {
                core->states[i].since_ms = core->now_ms;
            }
        }
    }
    sweep_gone(core);
}

/* ---- leaving --------------------------------------------------------------------------------- */

void
trpi_coord_leaving(trpi_coordinator *core, uint32_t slot)
{
    core->states[slot].leaving = true;
    core->states[slot].asked_out = true;
}

void
trpi_coord_avoided(trpi_coordinator *core, uint32_t slot, const trpi_shard_frame *frame)
{
    uint32_t leaver = trpi_shard_nodes_find(&core->nodes, &frame->node);
    if (leaver != TRPI_SHARD_SLOT_NONE) {
        trpi_slot_set_remove(&core->states[leaver].avoid, slot);
    }
}

static void
send_avoid(trpi_coordinator *core, uint32_t leaver)
{
    trpi_coord_node *state = &core->states[leaver];
    trpi_shard_frame frame;
    memset(&frame, 0, sizeof frame);
    frame.kind = TRPI_SHARD_FRAME_AVOID;
    frame.node = core->nodes.slots[leaver].member.id;
    for (uint32_t i = trpi_slot_set_next(&state->avoid, 0); i != TRPI_SHARD_SLOT_NONE;
         i = trpi_slot_set_next(&state->avoid, i + 1)) {
        trpi_coord_send(core, i, &frame);
    }
    state->avoid_sent_ms = core->now_ms;
}

/* A leaving node without shards: all are told to send it nothing more, then it may go. */
static void
look_at_leaver(trpi_coordinator *core, uint32_t slot)
{
    trpi_coord_node *state = &core->states[slot];
    trpi_shard_frame frame;
    bool fresh = state->avoid_since_ms == 0;
    if (fresh) {
        for (uint32_t i = 0; i < core->states_count; i++) {
            if (i != slot && core->nodes.slots[i].present && !trpi_slot_set_add(&state->avoid, i)) {
                core->err = TRP_ENOMEM;
                return;
            }
        }
        state->avoid_since_ms = core->now_ms;
    }
    if (state->avoid.count > 0 && core->now_ms - state->avoid_since_ms >= core->options.avoid_ms) {
        trpi_coord_say(core, TRP_LOG_WARNING,
                       "coordinator of '%s': %u nodes did not answer within %u ms; the leaving "
                       "node may go, and what they still send there is lost",
                       core->type, state->avoid.count, core->options.avoid_ms);
        trpi_slot_set_fini(&state->avoid);
    }
    if (state->avoid.count > 0) {
        if (fresh || core->now_ms - state->avoid_sent_ms >= core->options.retry_ms) {
            send_avoid(core, slot);
        }
        wake_at(core, core->now_ms + core->options.retry_ms);
    } else if (state->asked_out) {
        state->asked_out = false; /* it asks again if this is lost */
        memset(&frame, 0, sizeof frame);
        frame.kind = TRPI_SHARD_FRAME_MAY_LEAVE;
        trpi_coord_send(core, slot, &frame);
    }
}

/* ---- what is due ----------------------------------------------------------------------------- */

static void
ask_node(trpi_coordinator *core, uint32_t slot)
{
    trpi_coord_node *state = &core->states[slot];
    uint32_t pause = state->asks < ASK_RETRIES_MAX ? 1 : 25;
    trpi_shard_frame frame;
    uint64_t due_ms = state->asked_ms + (uint64_t)core->options.retry_ms * pause;
    if (state->asks == 0 || due_ms <= core->now_ms) {
        memset(&frame, 0, sizeof frame);
        frame.kind = TRPI_SHARD_FRAME_ASK;
        trpi_coord_send(core, slot, &frame);
        state->asks++;
        state->asked_ms = core->now_ms;
        due_ms = core->now_ms + core->options.retry_ms;
    }
    wake_at(core, due_ms);
}

void
trpi_coord_look_at_nodes(trpi_coordinator *core)
{
    for (uint32_t i = 0; i < core->states_count; i++) {
        trpi_coord_node *state = &core->states[i];
        const trpi_shard_node *node = &core->nodes.slots[i];
        if (node->present && node->member.has_role && !state->answered) {
            ask_node(core, i);
        }
        if (node->used && state->gone) {
            wake_at(core, state->until_ms > core->now_ms ? state->until_ms : core->now_ms + 1);
        }
    }
    sweep_gone(core);
    if (!core->ready && trpi_coord_has_answers(core)) {
        if (core->settings.shards == 0) {
            choose_settings(core);
        }
        core->ready = core->settings.shards != 0;
    }
    for (uint32_t i = 0; i < core->states_count; i++) {
        const trpi_coord_node *state = &core->states[i];
        if (!core->nodes.slots[i].present || !state->answered) {
            continue;
        }
        if (core->settings.shards != 0 && !state->judged) {
            judge_node(core, i);
        }
        if (state->leaving && state->asked_out && state->shards == 0) {
            look_at_leaver(core, i);
        }
    }
}
