/* region_core.c - the region engine: events, and the life of a shard as one node sees it.
 *
 * States.  UNKNOWN --HOME--> AWAY --BEGIN, RETURNED, AVOID, removal--> UNKNOWN (fencing)
 *          UNKNOWN --GRANT--> OPENING --fence--> OWN --HANDOFF--> STOPPING --STOPPED--> UNKNOWN
 *          Fencing stands beside the place: while the fence of a former home is waited for, a new
 *          home is known (next) but not used, and a granted shard is OPENING.
 * Must hold. Besides those of region_check.c:
 *   sharding-R1  A grant is taken from the bound coordinator alone, and only with an epoch above
 *       all that have ended here: a doubled or late grant starts nothing.          (take_grant)
 *   sharding-R2  The bound coordinator only gets later.                            (bind)
 *   sharding-R3  With order, a shard is told at a new home only after the fence of the old one, or
 *       after that one was removed.                                        (settle, take_home)
 *   sharding-R4  What a leaving node has is told to nobody as a home.              (take_home)
 *   sharding-R11 A coordinator that names this node as the home of a shard that has ended here is
 *       told so again: an end that nobody had asked for is said once, and may be lost.
 *                                                                             (take_home_here)
 *   sharding-R12 A coordinator is obeyed only when its node is the oldest member of the role in
 *       the view of this node, too: one of a side that has removed older members, and is removed
 *       itself then, would bind this node to a term that nobody here can follow.    (may_bind)
 * Limits.  TRPI_SHARDS_MAX shards; one fence a shard. A fence without an answer ends after
 *          options.fence_ms, and that is logged: what comes back later is a dead letter.
 * Not here. Messages, entities and their buffers (the shell).
 * Tests.   tests/unit/cluster/sharding_test.c, tests/sim/sharding_test.c
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <troupe/cluster.h>

#include "base/alloc.h"
#include "base/array.h"
#include "base/assert.h"
#include "cluster/sharding/region_inner.h"

#define GET_RETRIES 5u /* GET is sent again after so many retry times: its answer comes by itself */

/* ---- actions --------------------------------------------------------------------------------- */

bool
trpi_region_room(trpi_region_core *core, uint32_t actions)
{
    if (TRPI_ARRAY_RESERVE(core, actions, actions, TRPI_ARRAY_NO_LIMIT) == TRP_OK) {
        return true;
    }
    core->err = TRP_ENOMEM;
    return false;
}

/* Add an action, for which there is room. */
trpi_region_action *
trpi_region_act(trpi_region_core *core, trpi_region_action_kind kind, uint32_t shard)
{
    trpi_assert(core->actions_count < core->actions_room);
    trpi_region_action *action = &core->actions[core->actions_count++];
    memset(action, 0, sizeof *action);
    action->kind = kind;
    action->shard = shard;
    return action;
}

static void say_text(trpi_region_core *core, trp_log_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Log; one text a step, which is enough: the first one is kept. */
static void
say_text(trpi_region_core *core, trp_log_level level, const char *format, ...)
{
    va_list list;
    if (core->text[0] != '\0' || !trpi_region_room(core, 1)) {
        return;
    }
    va_start(list, format);
    vsnprintf(core->text, sizeof core->text, format, list);
    va_end(list);
    trpi_region_action *action = trpi_region_act(core, TRPI_REGION_LOG, 0);
    action->level = level;
    action->text = core->text;
}

void
trpi_region_put(trpi_region_core *core, trpi_region_out *out, uint32_t shard, uint64_t epoch)
{
    if (!TRPI_ARRAY_HAS_ROOM(out, items)) {
        core->err = TRP_ENOMEM; /* what is not answered is asked again */
        return;
    }
    out->items[out->items_count++] = (trpi_shard_item){ .shard = shard, .epoch = epoch };
}

void
trpi_region_send(trpi_region_core *core, const trpi_node_id *to, trpi_shard_frame *frame)
{
    trpi_buffer bytes = { 0 };
    if (frame->term.uid == 0) {
        frame->term = core->bound;
    }
    frame->to_uid = to->uid;
    memcpy(frame->type, core->type, sizeof frame->type);
    memcpy(frame->role, core->role, sizeof frame->role);
    if (!trpi_region_room(core, 1)) {
        return;
    }
    trp_err err = trpi_shard_frame_encode(frame, &bytes);
    if (err != TRP_OK) {
        core->err = err;
        return;
    }
    trpi_region_action *action = trpi_region_act(core, TRPI_REGION_SEND, 0);
    action->node = *to;
    action->bytes = bytes;
}

/* Say everything that this node hosts: the answer to a coordinator, which binds. */
void
trpi_region_send_hosts(trpi_region_core *core, const trpi_node_id *to)
{
    trpi_shard_frame frame;
    trpi_shard_item *items = NULL;
    memset(&frame, 0, sizeof frame);
    if (core->hosted > 0) {
        items = trpi_alloc(core->hosted * sizeof *items);
        if (items == NULL) {
            core->err = TRP_ENOMEM;
            return;
        }
    }
    for (uint32_t i = 0; i < core->settings.shards; i++) {
        const trpi_region_shard *shard = &core->shards[i];
        if (shard->place >= TRPI_SHARD_PLACE_OPENING) {
            items[frame.items_count++] = (trpi_shard_item){
                .shard = i,
                .epoch = shard->epoch,
                .hold = shard->place == TRPI_SHARD_PLACE_OPENING ? TRPI_SHARD_HOLD_OPENING
                        : shard->place == TRPI_SHARD_PLACE_OWN   ? TRPI_SHARD_HOLD_OWN
                                                                 : TRPI_SHARD_HOLD_STOPPING
            };
        }
    }
    trpi_assert(frame.items_count == core->hosted);
    frame.kind = TRPI_SHARD_FRAME_HOSTS;
    frame.items = items;
    frame.settings = core->settings;
    frame.hosts = core->hosts;
    frame.accepted = core->accepted;
    frame.leaving = core->leaving;
    trpi_region_send(core, to, &frame);
    trpi_free(items);
    core->told_ms = core->now_ms;
}

/* Obey this coordinator from now on, and none that is earlier (sharding-R2). */
void
trpi_region_bind(trpi_region_core *core, trpi_shard_term term, const trpi_node_id *node)
{
    trpi_assert(trpi_shard_term_compare(term, core->bound) > 0);
    core->bound = term;
    core->boss = *node;
    core->registered = false;
    core->told_ms = 0;
    core->said_leaving_ms = 0;
    core->may_leave = false;
}

/* ---- a shard --------------------------------------------------------------------------------- */

bool
trpi_region_is_ordered(const trpi_region_core *core)
{
    return !core->settings.unordered;
}

static void
set_place(trpi_region_core *core, trpi_region_shard *shard, trpi_shard_place place, uint64_t epoch)
{
    bool was = shard->place >= TRPI_SHARD_PLACE_OPENING, is = place >= TRPI_SHARD_PLACE_OPENING;
    core->hosted += (uint32_t)is - (uint32_t)was;
    shard->place = (uint8_t)place;
    shard->epoch = epoch;
    shard->since_ms = core->now_ms;
    shard->node = TRPI_SHARD_SLOT_NONE;
    if (epoch > shard->heard) {
        shard->heard = epoch;
    }
}

static void
start_fence(trpi_region_core *core, uint32_t number, uint32_t slot)
{
    trpi_region_shard *shard = &core->shards[number];
    trpi_assert(shard->fence == TRPI_SHARD_SLOT_NONE);
    if ((core->options.broken & TRPI_SHARD_BROKEN_FENCE) != 0) {
        return;
    }
    shard->fence = slot;
    shard->fence_since_ms = core->now_ms;
    shard->fence_sent_ms = core->now_ms;
    core->peers[slot].fences++;
    core->fencing++;
    trpi_region_act(core, TRPI_REGION_FENCE, number)->node = core->nodes.slots[slot].member.id;
}

/* Send the shard's messages to its home no more. */
void
trpi_region_unroute(trpi_region_core *core, uint32_t number, bool always_fence)
{
    trpi_region_shard *shard = &core->shards[number];
    uint32_t slot = shard->node;
    trpi_assert(shard->place == TRPI_SHARD_PLACE_AWAY);
    if (!trpi_region_room(core, 2)) {
        return;
    }
    trpi_region_action *action = trpi_region_act(core, TRPI_REGION_BUFFER, number);
    action->epoch = shard->epoch;
    action->node = core->nodes.slots[slot].member.id;
    action->moves = core->nodes.slots[slot].present;
    set_place(core, shard, TRPI_SHARD_PLACE_UNKNOWN, 0);
    shard->curious = true;
    shard->asked_ms = 0;
    if (core->nodes.slots[slot].present && (always_fence || trpi_region_is_ordered(core))) {
        start_fence(core, number, slot);
    }
}

static void
route_shard(trpi_region_core *core, uint32_t number, uint32_t slot, uint64_t epoch)
{
    trpi_region_shard *shard = &core->shards[number];
    trpi_region_action *action = trpi_region_act(core, TRPI_REGION_HOME, number);
    action->epoch = epoch;
    action->node = core->nodes.slots[slot].member.id;
    set_place(core, shard, TRPI_SHARD_PLACE_AWAY, epoch);
    shard->node = slot;
    shard->next = TRPI_SHARD_SLOT_NONE;
    shard->wanted = false;
    shard->curious = false;
}

/* Go on with what waited for the fence: use the home that is known, open what was granted. */
void
trpi_region_settle(trpi_region_core *core, uint32_t number)
{
    trpi_region_shard *shard = &core->shards[number];
    bool waits = shard->fence != TRPI_SHARD_SLOT_NONE && trpi_region_is_ordered(core);
    if (waits || !trpi_region_room(core, 1)) {
        return; /* sharding-R3 */
    }
    if (shard->place == TRPI_SHARD_PLACE_OPENING) {
        uint64_t epoch = shard->epoch;
        set_place(core, shard, TRPI_SHARD_PLACE_OWN, epoch);
        shard->wanted = false;
        shard->curious = false;
        trpi_region_act(core, TRPI_REGION_OWN, number)->epoch = epoch;
        trpi_region_put(core, &core->started, number, epoch);
    } else if (shard->next != TRPI_SHARD_SLOT_NONE) {
        trpi_assert(shard->place == TRPI_SHARD_PLACE_UNKNOWN);
        route_shard(core, number, shard->next, shard->next_epoch);
    }
}

static void
end_fence(trpi_region_core *core, uint32_t number)
{
    trpi_region_shard *shard = &core->shards[number];
    uint32_t slot = shard->fence;
    trpi_assert(slot != TRPI_SHARD_SLOT_NONE && core->peers[slot].fences > 0);
    shard->fence = TRPI_SHARD_SLOT_NONE;
    core->peers[slot].fences--;
    core->fencing--;
    if (shard->begun_epoch != 0) {
        trpi_region_put(core, &core->begun, number, shard->begun_epoch);
        shard->begun_epoch = 0;
    }
    trpi_region_avoided(core, slot);
    trpi_region_settle(core, number);
}

/* Forget a shard that this node had; no grant up to its epoch is taken again. */
void
trpi_region_end(trpi_region_core *core, uint32_t number, uint64_t epoch)
{
    trpi_region_shard *shard = &core->shards[number];
    if (shard->place >= TRPI_SHARD_PLACE_OPENING && shard->epoch <= epoch) {
        set_place(core, shard, TRPI_SHARD_PLACE_UNKNOWN, 0);
        shard->curious = true;
        shard->asked_ms = 0;
    }
    if (epoch > shard->ended) {
        shard->ended = epoch;
    }
    trpi_region_put(core, &core->stopped, number, epoch);
}

/* ---- members --------------------------------------------------------------------------------- */

/* Give up what was at, or waited for, a node that is no member any more. */
static void
lose_node(trpi_region_core *core, uint32_t slot)
{
    for (uint32_t i = 0; i < core->settings.shards; i++) {
        trpi_region_shard *shard = &core->shards[i];
        if (shard->place == TRPI_SHARD_PLACE_AWAY && shard->node == slot) {
            trpi_region_unroute(core, i, false);
        }
        if (shard->next == slot) {
            shard->next = TRPI_SHARD_SLOT_NONE;
        }
        if (shard->fence == slot) {
            end_fence(core, i); /* the answer of a removed member counts as given */
        }
        if (shard->place == TRPI_SHARD_PLACE_AWAY && shard->node == slot) {
            return; /* no memory: its slot stays, and the tick tries again */
        }
    }
    if (core->peers[slot].fences == 0) {
        trpi_shard_nodes_remove(&core->nodes, slot);
        memset(&core->peers[slot], 0, sizeof core->peers[slot]);
    }
}

static void
lose_absent(trpi_region_core *core)
{
    for (uint32_t i = 0; i < core->nodes.slots_count; i++) {
        if (core->nodes.slots[i].used && !core->nodes.slots[i].present) {
            lose_node(core, i);
        }
    }
}

static void
take_members(trpi_region_core *core, const trpi_region_event *event)
{
    trp_err err = trpi_shard_nodes_update(&core->nodes, event->members, event->members_count);
    uint32_t more = core->nodes.slots_count - core->peers_count, self, oldest;
    if (more > 0 && TRPI_ARRAY_RESERVE(core, peers, more, TRPI_ARRAY_NO_LIMIT) == TRP_OK) {
        memset(core->peers + core->peers_count, 0, more * sizeof *core->peers);
        core->peers_count += more;
    } else if (more > 0) {
        /* Slots without a peer are of nodes that were just added: forget them again. */
        for (uint32_t i = core->peers_count; i < core->nodes.slots_count; i++) {
            if (core->nodes.slots[i].used) {
                trpi_shard_nodes_remove(&core->nodes, i);
            }
        }
        core->nodes.slots_count = core->peers_count;
        err = TRP_ENOMEM;
    }
    if (err != TRP_OK) {
        core->err = err;
    }
    lose_absent(core);
    if (core->settings.shards == 0) {
        return; /* without a role there is no oldest */
    }
    self = trpi_shard_nodes_find(&core->nodes, &core->self);
    if (self != TRPI_SHARD_SLOT_NONE &&
        trpi_shard_member_is_leaving(&core->nodes.slots[self].member)) {
        core->leaving = true;
    }
    oldest = trpi_shard_nodes_oldest(&core->nodes);
    if (oldest != TRPI_SHARD_SLOT_NONE) {
        trpi_shard_term term = trpi_shard_nodes_term(&core->nodes, oldest);
        if (trpi_shard_term_compare(term, core->bound) > 0) {
            trpi_region_bind(core, term, &core->nodes.slots[oldest].member.id);
        }
    }
}

/* ---- what is due ----------------------------------------------------------------------------- */

static bool
is_over(const trpi_region_core *core, uint64_t since_ms, uint64_t after_ms)
{
    return since_ms == 0 || core->now_ms - since_ms >= after_ms;
}

static void
look_at_shard(trpi_region_core *core, uint32_t number)
{
    trpi_region_shard *shard = &core->shards[number];
    if (shard->fence != TRPI_SHARD_SLOT_NONE) {
        if (core->now_ms - shard->fence_since_ms >= core->options.fence_ms) {
            say_text(
                core, TRP_LOG_WARNING,
                "shard %u of '%s': its former home did not answer within %u ms; messages are sent "
                "to the new one now; what the former one gives back later is a dead letter",
                number, core->type, core->options.fence_ms);
            end_fence(core, number);
        } else if (is_over(core, shard->fence_sent_ms, core->options.retry_ms) &&
                   trpi_region_room(core, 1)) {
            shard->fence_sent_ms = core->now_ms;
            trpi_region_act(core, TRPI_REGION_FENCE, number)->node =
                core->nodes.slots[shard->fence].member.id;
        }
    }
    if (shard->place == TRPI_SHARD_PLACE_OPENING || shard->next != TRPI_SHARD_SLOT_NONE) {
        trpi_region_settle(core, number);
    }
    if (shard->place == TRPI_SHARD_PLACE_STOPPING && trpi_region_room(core, 1) &&
        is_over(core, shard->since_ms, core->options.stop_ms)) {
        shard->since_ms = core->now_ms;
        trpi_region_act(core, TRPI_REGION_STOP_NOW, number)->epoch = shard->epoch;
    }
    if (shard->place == TRPI_SHARD_PLACE_UNKNOWN && (shard->wanted || shard->curious) &&
        core->registered && shard->next == TRPI_SHARD_SLOT_NONE &&
        is_over(core, shard->asked_ms, (uint64_t)core->options.retry_ms * GET_RETRIES)) {
        shard->asked_ms = core->now_ms;
        trpi_region_put(core, &core->get, number, 0);
    }
}

static void
send_out(trpi_region_core *core, trpi_region_out *out, trpi_shard_frame_kind kind)
{
    trpi_shard_frame frame;
    if (out->items_count == 0) {
        return;
    }
    memset(&frame, 0, sizeof frame);
    frame.kind = kind;
    frame.items = out->items;
    frame.items_count = out->items_count;
    if (core->bound.uid != 0) {
        trpi_region_send(core, &core->boss, &frame);
    }
    out->items_count = 0;
}

static bool
has_waiting(const trpi_region_core *core)
{
    for (uint32_t i = 0; i < core->settings.shards; i++) {
        if (core->shards[i].wanted || core->shards[i].fence != TRPI_SHARD_SLOT_NONE) {
            return true;
        }
    }
    return false;
}

static void
look_at_leaving(trpi_region_core *core)
{
    bool nothing = core->settings.shards == 0 || core->refused || !core->hosts ||
                   (core->bound.uid == 0 && core->hosted == 0);
    trpi_shard_frame frame;
    if (!core->leaving || core->left) {
        return;
    }
    if ((core->may_leave || nothing) && core->hosted == 0) {
        if (core->may_leave_ms == 0) {
            core->may_leave_ms = core->now_ms;
        }
        if ((!has_waiting(core) || is_over(core, core->may_leave_ms, core->options.flush_ms)) &&
            trpi_region_room(core, 1)) {
            core->left = true;
            trpi_region_act(core, TRPI_REGION_MAY_LEAVE, 0);
        }
    } else if (core->registered && is_over(core, core->said_leaving_ms, core->options.retry_ms)) {
        core->said_leaving_ms = core->now_ms;
        memset(&frame, 0, sizeof frame);
        frame.kind = TRPI_SHARD_FRAME_LEAVING;
        trpi_region_send(core, &core->boss, &frame);
    }
}

/* Send what is due, again where it was not answered, and compute the next wake. */
static void
look_at_all(trpi_region_core *core)
{
    bool busy = core->err != TRP_OK || core->fencing > 0;
    if (core->settings.shards != 0 && !core->registered && !core->refused && core->bound.uid != 0) {
        if (is_over(core, core->told_ms, core->options.retry_ms)) {
            trpi_region_send_hosts(core, &core->boss);
        }
        busy = true;
    }
    for (uint32_t i = 0; i < core->settings.shards; i++) {
        const trpi_region_shard *shard = &core->shards[i];
        if (shard->place == TRPI_SHARD_PLACE_UNKNOWN
                ? (shard->wanted || shard->curious)
                : shard->place != TRPI_SHARD_PLACE_AWAY && shard->place != TRPI_SHARD_PLACE_OWN) {
            busy = true;
        }
        if (busy) {
            look_at_shard(core, i);
        }
    }
    look_at_leaving(core);
    send_out(core, &core->get, TRPI_SHARD_FRAME_GET);
    send_out(core, &core->begun, TRPI_SHARD_FRAME_BEGUN);
    send_out(core, &core->stopped, TRPI_SHARD_FRAME_STOPPED);
    send_out(core, &core->started, TRPI_SHARD_FRAME_STARTED);
    busy = busy || core->fencing > 0 || (core->leaving && !core->left);
    core->wake_ms = busy ? core->now_ms + core->options.retry_ms : TRPI_REGION_NEVER;
}

/* ---- events ---------------------------------------------------------------------------------- */

static trp_err
start_type(trpi_region_core *core, const trpi_region_event *event)
{
    const trpi_sharding_settings *settings = event->settings;
    if (core->settings.shards != 0) {
        return TRP_ESTATE;
    }
    if (settings == NULL || settings->shards == 0 || settings->shards > TRPI_SHARDS_MAX ||
        (event->role != NULL && strlen(event->role) > TRPI_ROLE_BYTES_MAX)) {
        return TRP_EINVAL;
    }
    core->shards = trpi_alloc(settings->shards * sizeof *core->shards);
    if (core->shards == NULL) {
        return TRP_ENOMEM;
    }
    for (uint32_t i = 0; i < settings->shards; i++) {
        core->shards[i].node = core->shards[i].fence = core->shards[i].next = TRPI_SHARD_SLOT_NONE;
    }
    core->settings = *settings;
    core->hosts = event->hosts;
    snprintf(core->role, sizeof core->role, "%s", event->role == NULL ? "" : event->role);
    core->told_ms = 0;
    core->registered = false;
    return TRP_OK;
}

static void
shard_want(const trpi_region_core *core, trpi_region_shard *shard, bool wanted)
{
    if (wanted && !shard->wanted) {
        shard->wanted_ms = core->now_ms;
    }
    shard->wanted = wanted;
}

static void
take_returned(trpi_region_core *core, uint32_t number, uint64_t epoch)
{
    trpi_region_shard *shard = &core->shards[number];
    if (shard->place == TRPI_SHARD_PLACE_AWAY && shard->epoch == epoch) {
        trpi_region_unroute(core, number, false);
    } else if (shard->place == TRPI_SHARD_PLACE_UNKNOWN) {
        shard_want(core, shard, true);
    }
}

static void
take_shard_event(trpi_region_core *core, const trpi_region_event *event)
{
    trpi_region_shard *shard;
    if (event->shard >= core->settings.shards) {
        return;
    }
    shard = &core->shards[event->shard];
    switch (event->kind) {
    case TRPI_REGION_WANTED:
        shard_want(core, shard,
                   shard->place == TRPI_SHARD_PLACE_UNKNOWN ||
                       shard->place == TRPI_SHARD_PLACE_STOPPING ||
                       shard->place == TRPI_SHARD_PLACE_OPENING);
        break;
    case TRPI_REGION_IDLE:
        shard->wanted = false;
        break;
    case TRPI_REGION_STOPPED:
        /* also unasked: its permission to write was lost */
        if ((shard->place == TRPI_SHARD_PLACE_STOPPING || shard->place == TRPI_SHARD_PLACE_OWN) &&
            (event->epoch == 0 || event->epoch == shard->epoch)) {
            trpi_region_end(core, event->shard, shard->epoch);
        }
        break;
    case TRPI_REGION_FENCED:
        if (shard->fence != TRPI_SHARD_SLOT_NONE &&
            trpi_node_id_equal(&core->nodes.slots[shard->fence].member.id, &event->from)) {
            end_fence(core, event->shard);
        }
        break;
    case TRPI_REGION_RETURNED:
        take_returned(core, event->shard, event->epoch);
        break;
    default:
        break;
    }
}

trp_err
trpi_region_core_step(trpi_region_core *core, uint64_t now_ms, const trpi_region_event *event)
{
    trp_err err = TRP_OK;
    for (uint32_t i = 0; i < core->actions_count; i++) {
        trpi_buffer_fini(&core->actions[i].bytes);
    }
    core->actions_count = 0;
    core->text[0] = '\0';
    core->err = TRP_OK;
    core->now_ms = now_ms;
    switch (event->kind) {
    case TRPI_REGION_TICK:
        lose_absent(core);
        break;
    case TRPI_REGION_MEMBERS:
        take_members(core, event);
        break;
    case TRPI_REGION_FRAME:
        trpi_region_frame(core, &event->from, event->frame);
        break;
    case TRPI_REGION_START:
        err = start_type(core, event);
        break;
    case TRPI_REGION_LEAVE:
        core->leaving = true;
        break;
    default:
        take_shard_event(core, event);
        break;
    }
    look_at_all(core);
    return err != TRP_OK ? err : core->err;
}

/* ---- life ------------------------------------------------------------------------------------ */

trp_err
trpi_region_core_new(const trpi_node_id *self, const char *type,
                     const trpi_region_core_options *options, trpi_region_core **ret_core)
{
    trpi_region_core *core = trpi_alloc(sizeof *core);
    trpi_assert(type[0] != '\0' && strlen(type) <= TRPI_SHARD_TYPE_BYTES_MAX);
    if (core == NULL) {
        return TRP_ENOMEM;
    }
    if (options != NULL) {
        core->options = *options;
    }
    trpi_region_core_options *o = &core->options;
    o->retry_ms = o->retry_ms == 0 ? TRPI_SHARD_RETRY_MS_DEFAULT : o->retry_ms;
    o->fence_ms = o->fence_ms == 0 ? TRPI_SHARD_FENCE_MS_DEFAULT : o->fence_ms;
    o->stop_ms = o->stop_ms == 0 ? TRPI_SHARD_STOP_MS_DEFAULT : o->stop_ms;
    o->flush_ms = o->flush_ms == 0 ? TRPI_SHARD_FLUSH_MS_DEFAULT : o->flush_ms;
    core->self = *self;
    core->wake_ms = TRPI_REGION_NEVER;
    snprintf(core->type, sizeof core->type, "%s", type);
    *ret_core = core;
    return TRP_OK;
}

void
trpi_region_core_free(trpi_region_core *core)
{
    if (core == NULL) {
        return;
    }
    for (uint32_t i = 0; i < core->actions_count; i++) {
        trpi_buffer_fini(&core->actions[i].bytes);
    }
    trpi_shard_nodes_fini(&core->nodes);
    trpi_free(core->peers);
    trpi_free(core->shards);
    trpi_free(core->get.items);
    trpi_free(core->begun.items);
    trpi_free(core->stopped.items);
    trpi_free(core->started.items);
    trpi_free(core->actions);
    trpi_free(core);
}

const trpi_region_action *
trpi_region_core_actions(const trpi_region_core *core, uint32_t *ret_count)
{
    *ret_count = core->actions_count;
    return core->actions;
}

trpi_buffer
trpi_region_core_take_bytes(trpi_region_core *core, uint32_t action)
{
    trpi_buffer bytes;
    trpi_assert(action < core->actions_count && core->actions[action].kind == TRPI_REGION_SEND);
    bytes = core->actions[action].bytes;
    memset(&core->actions[action].bytes, 0, sizeof bytes);
    return bytes;
}

uint64_t
trpi_region_core_wake_ms(const trpi_region_core *core)
{
    return core->wake_ms;
}
