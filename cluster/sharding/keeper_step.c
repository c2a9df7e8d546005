/* keeper_step.c - the engines of each type: fed with events, and what they decide carried out.
 *
 * Must hold.
 *   keeper-step-S1  A frame of this node to itself is taken after the step that sent it.
 *   keeper-step-S2  HOME of a node whose gate is not known waits until it is; BUFFER, OWN or
 *       another HOME of the shard ends the wait.
 *   keeper-step-S3  An order that could not be given, for want of memory, is given at the next
 *       tick: all orders of the type are, as its engine has the shards then (region-shard-S4).
 * Tests.   tests/sim/entities_test.c, tests/multinode/once.sh
 */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "cluster/shell/exclusive.h"
#include "cluster/sharding/keeper.h"
#include "pattern/pattern.h"

#define UNSAID_MS 200u
#define GONE_LOOK_MS 100u /* `troupe down --dead` may come */

/* ---- sending --------------------------------------------------------------------------------- */

static void
frame_send(trpi_keeper *keeper, const trpi_node_id *to, const trpi_buffer *bytes)
{
    if (to->uid == keeper->self.uid) { /* keeper-step-S1 */
        trpi_keeper_event *event =
            trpi_keeper_event_new(keeper, TRPI_KEEPER_FRAME, bytes->data, bytes->count);
        if (event != NULL) {
            event->from = keeper->self;
            event->region = NULL;
            event->task = 0;
            trpi_keeper_own_append(keeper, event);
        }
        return;
    }
    /* one that is lost is sent again by the engine */
    (void)trpi_remote_control_send(keeper->remote, to, TRPI_CHANNEL_SHARDING, bytes->data,
                                   bytes->count);
}

/* ---- what a region's engine decides ---------------------------------------------------------- */

static void
late_drop(trpi_keeper *keeper, const trpi_keeper_type *type, uint32_t shard)
{
    trpi_keeper_late **at = &keeper->late;
    while (*at != NULL) {
        trpi_keeper_late *late = *at;
        if (late->type == type && late->shard == shard) {
            *at = late->next;
            trpi_free(late);
        } else {
            at = &late->next;
        }
    }
}

static trpi_home *
home_new(trp_ref gate, uint64_t epoch)
{
    trpi_home *home = trpi_alloc(sizeof *home);
    if (home != NULL) {
        *home = (trpi_home){ gate, epoch };
    }
    return home;
}

/* keeper-step-S3 */
static void
order_give(trp_ctx *ctx, trpi_keeper_type *type, enum trpi_request_kind kind, uint32_t shard,
           uint64_t epoch, trpi_home *home)
{
    if (!trpi_region_order(ctx, type->region, kind, shard, epoch, home)) {
        type->unsaid = true;
    }
}

/* keeper-step-S2 */
static void
home_say(trp_ctx *ctx, trpi_keeper *keeper, trpi_keeper_type *type, uint32_t shard, uint64_t epoch,
         const trpi_node_id *node)
{
    const trpi_keeper_peer *peer = trpi_keeper_peer_find(keeper, node);
    late_drop(keeper, type, shard);
    if (peer != NULL && !trp_ref_is_none(peer->gate)) {
        trpi_home *home = home_new(peer->gate, epoch);
        type->unsaid = type->unsaid || home == NULL;
        if (home != NULL) {
            order_give(ctx, type, TRPI_REQUEST_HOME, shard, epoch, home);
        }
        return;
    }
    trpi_keeper_late *late = trpi_alloc(sizeof *late);
    if (late == NULL) {
        type->unsaid = true;
        return;
    }
    *late = (trpi_keeper_late){ keeper->late, type, *node, epoch, shard };
    keeper->late = late;
}

static void
late_retry(trp_ctx *ctx, trpi_keeper *keeper)
{
    trpi_keeper_late *late = keeper->late;
    keeper->late = NULL;
    while (late != NULL) {
        trpi_keeper_late *next = late->next;
        home_say(ctx, keeper, late->type, late->shard, late->epoch, &late->node);
        trpi_free(late);
        late = next;
    }
}

static void
fence_ask(trp_ctx *ctx, trpi_keeper *keeper, trpi_keeper_type *type, uint32_t shard,
          const trpi_node_id *node)
{
    const trpi_keeper_peer *peer = trpi_keeper_peer_find(keeper, node);
    if (peer != NULL && !trp_ref_is_none(peer->gate)) {
        trpi_home *home = home_new(peer->gate, 0);
        if (home != NULL) { /* else the engine asks again */
            (void)trpi_region_order(ctx, type->region, TRPI_REQUEST_FENCE, shard, 0, home);
        }
        return;
    }
    /* Nothing was ever sent there. */
    trpi_keeper_event *event = trpi_keeper_event_new(keeper, TRPI_KEEPER_FENCED, NULL, 0);
    if (event != NULL) {
        event->region = type->region;
        event->shard = shard;
        event->from = *node;
        (void)trpi_keeper_put(keeper, event);
    }
}

/* Its region ends: what is told to the type is a dead letter from now on. */
static void
type_refused(trp_ctx *ctx, trpi_keeper *keeper, trpi_keeper_type *type, const char *text)
{
    if (type->refused) {
        return;
    }
    type->refused = true;
    (void)snprintf(type->why, sizeof type->why, "%s", text == NULL ? "" : text);
    trpi_log(keeper->system, TRP_LOG_ERROR, "sharding",
             "type refused type=%s reason=\"%s\" next=\"%s\"", type->name, type->why,
             keeper->refused != NULL ? "this node ends" : "the type ends on this node");
    if (type->region != NULL) {
        trp_stop(ctx, type->region->actor);
    }
    if (keeper->refused != NULL) {
        keeper->refused(keeper->refused_arg, type->name, type->why);
    }
}

static void
region_action(trp_ctx *ctx, trpi_keeper *keeper, trpi_keeper_type *type,
              const trpi_region_action *a)
{
    switch (a->kind) {
    case TRPI_REGION_SEND:
        frame_send(keeper, &a->node, &a->bytes);
        return;
    case TRPI_REGION_LOG:
        trpi_log(keeper->system, a->level, "sharding", "%s", a->text);
        return;
    case TRPI_REGION_MAY_LEAVE:
        type->may_leave = true;
        return;
    case TRPI_REGION_ACCEPTED:
        type->accepted = true;
        return;
    case TRPI_REGION_REFUSED:
        type_refused(ctx, keeper, type, a->text);
        return;
    default:
        break;
    }
    if (type->region == NULL) {
        return; /* it hosts none and is told none */
    }
    switch (a->kind) {
    case TRPI_REGION_OWN:
        late_drop(keeper, type, a->shard);
        order_give(ctx, type, TRPI_REQUEST_OWN, a->shard, a->epoch, NULL);
        break;
    case TRPI_REGION_STOP:
        order_give(ctx, type, TRPI_REQUEST_STOP, a->shard, a->epoch, NULL);
        break;
    case TRPI_REGION_STOP_NOW:
        order_give(ctx, type, TRPI_REQUEST_STOP_NOW, a->shard, a->epoch, NULL);
        break;
    case TRPI_REGION_HOME:
        home_say(ctx, keeper, type, a->shard, a->epoch, &a->node);
        break;
    case TRPI_REGION_BUFFER:
        late_drop(keeper, type, a->shard);
        order_give(ctx, type, a->moves ? TRPI_REQUEST_MOVES : TRPI_REQUEST_BUFFER, a->shard,
                   a->epoch, NULL);
        break;
    case TRPI_REGION_FENCE:
        fence_ask(ctx, keeper, type, a->shard, &a->node);
        break;
    default:
        break;
    }
}

void
trpi_keeper_leave_look(trpi_keeper *keeper)
{
    bool over = keeper->leaving;
    for (const trpi_keeper_type *type = keeper->types; type != NULL; type = type->next) {
        over = over && (type->may_leave || type->region == NULL);
    }
    if (over && keeper->leave_task != 0) {
        trp_shutdown_done(keeper->system, keeper->leave_task, TRP_OK);
        keeper->leave_task = 0;
    }
}

void
trpi_keeper_region_step(trp_ctx *ctx, trpi_keeper *keeper, trpi_keeper_type *type,
                        const trpi_region_event *event)
{
    uint32_t count;
    /* without memory: what is missing is made up for at a later tick */
    (void)trpi_region_core_step(type->core, trpi_keeper_now_ms(keeper), event);
    const trpi_region_action *actions = trpi_region_core_actions(type->core, &count);
    for (uint32_t i = 0; i < count; i++) {
        region_action(ctx, keeper, type, &actions[i]);
    }
    trpi_keeper_leave_look(keeper);
}

void
trpi_keeper_coordinator_step(trp_ctx *ctx, trpi_keeper *keeper, trpi_keeper_type *type,
                             const trpi_coordinator_event *event)
{
    uint32_t count;
    if (type->coordinator == NULL) {
        return;
    }
    (void)trpi_coordinator_step(type->coordinator, trpi_keeper_now_ms(keeper), event);
    const trpi_coordinator_action *actions = trpi_coordinator_actions(type->coordinator, &count);
    for (uint32_t i = 0; i < count; i++) {
        if (actions[i].kind == TRPI_COORDINATOR_SEND) {
            frame_send(keeper, &actions[i].node, &actions[i].bytes);
        } else if (actions[i].kind == TRPI_COORDINATOR_ROUND) {
            trpi_keeper_program_ask(ctx, keeper, type,
                                    trpi_coordinator_take_question(type->coordinator, i));
        } else {
            trpi_log(keeper->system, actions[i].level, "sharding", "%s", actions[i].text);
        }
    }
}

/* ---- types ----------------------------------------------------------------------------------- */

static void
type_members(trp_ctx *ctx, trpi_keeper *keeper, trpi_keeper_type *type)
{
    trpi_region_event region = { .kind = TRPI_REGION_MEMBERS };
    trpi_coordinator_event coordinator = { .kind = TRPI_COORDINATOR_MEMBERS };
    trpi_shard_member *members;
    trpi_shard_gone *gone;
    if (trpi_keeper_view(keeper, type->role, &members, &region.members_count, &gone,
                         &coordinator.gone_count) != TRP_OK) {
        return;
    }
    if (type->coordinator != NULL && trpi_coordinator_weighs(type->coordinator)) {
        trpi_keeper_weigh(keeper, members, region.members_count);
    }
    region.members = coordinator.members = members;
    coordinator.members_count = region.members_count;
    coordinator.gone = gone;
    trpi_keeper_region_step(ctx, keeper, type, &region);
    trpi_keeper_coordinator_step(ctx, keeper, type, &coordinator);
    trpi_free(members);
    trpi_free(gone);
}

trpi_keeper_type *
trpi_keeper_find(const trpi_keeper *keeper, const char *name)
{
    trpi_keeper_type *type = keeper->types;
    while (type != NULL && strcmp(type->name, name) != 0) {
        type = type->next;
    }
    return type;
}

/* TRPI_SHARD_BROKEN_... */
static uint32_t
broken_shards(const trpi_keeper *keeper)
{
    return trpi_cluster_broken(keeper->cluster) >> 8 & 0xffu;
}

/* Find or make a type. NULL: no memory, or too many. */
static trpi_keeper_type *
type_get(trpi_keeper *keeper, const char *name)
{
    trpi_keeper_type *type = trpi_keeper_find(keeper, name);
    if (type != NULL || keeper->types_count == TRPI_KEEPER_TYPES_MAX) {
        return type;
    }
    type = trpi_alloc(sizeof *type);
    if (type == NULL) {
        return NULL;
    }
    (void)snprintf(type->name, sizeof type->name, "%s", name);
    trpi_region_core_options options = { .broken = broken_shards(keeper) };
    if (trpi_region_core_new(&keeper->self, name, &options, &type->core) != TRP_OK) {
        trpi_free(type);
        return NULL;
    }
    type->next = keeper->types;
    keeper->types = type;
    keeper->types_count++;
    return type;
}

static void
role_learn(trp_ctx *ctx, trpi_keeper *keeper, trpi_keeper_type *type, const char *role)
{
    if (type->role_known) {
        return;
    }
    (void)snprintf(type->role, sizeof type->role, "%s", role == NULL ? "" : role);
    trpi_coordinator_options options = { .broken = broken_shards(keeper) };
    type->role_known = trpi_coordinator_new(&keeper->self, type->name, type->role, &options,
                                            &type->coordinator) == TRP_OK;
    trpi_keeper_program_start(keeper, type);
    type_members(ctx, keeper, type);
}

void
trpi_keeper_type_start(trp_ctx *ctx, trpi_keeper *keeper, trpi_region *region)
{
    trpi_keeper_type *type = type_get(keeper, region->name);
    trpi_region_event start = { .kind = TRPI_REGION_START };
    if (type == NULL) {
        trpi_log(keeper->system, TRP_LOG_ERROR, "sharding",
                 "type not started type=%s reason=\"no memory, or more than %u types\" "
                 "next=\"what is told to it is a dead letter\"",
                 region->name, TRPI_KEEPER_TYPES_MAX);
        trp_stop(ctx, region->actor);
        return;
    }
    type->region = region;
    role_learn(ctx, keeper, type, region->options.role);
    trpi_keeper_program_start(keeper, type);
    start.settings = &region->settings;
    start.role = region->options.role;
    start.hosts = region->options.behaviour != NULL;
    trpi_keeper_region_step(ctx, keeper, type, &start);
    type_members(ctx, keeper, type); /* a started type knows its coordinator */
    if (keeper->leaving) {
        trpi_region_event leave = { .kind = TRPI_REGION_LEAVE };
        trpi_keeper_region_step(ctx, keeper, type, &leave);
    }
    trpi_coordinator_event known = { .kind = TRPI_COORDINATOR_START,
                                     .settings = &region->settings };
    trpi_keeper_coordinator_step(ctx, keeper, type, &known);
}

/* ---- events ---------------------------------------------------------------------------------- */

static bool
is_for_coordinator(trpi_shard_frame_kind kind)
{
    switch (kind) {
    case TRPI_SHARD_FRAME_HOSTS:
    case TRPI_SHARD_FRAME_GET:
    case TRPI_SHARD_FRAME_BEGUN:
    case TRPI_SHARD_FRAME_STOPPED:
    case TRPI_SHARD_FRAME_STARTED:
    case TRPI_SHARD_FRAME_LEAVING:
    case TRPI_SHARD_FRAME_AVOIDED:
    case TRPI_SHARD_FRAME_STALE:
    case TRPI_SHARD_FRAME_REBALANCE:
        return true;
    default:
        return false;
    }
}

void
trpi_keeper_frame(trp_ctx *ctx, trpi_keeper *keeper, const trpi_node_id *from, const uint8_t *bytes,
                  size_t count)
{
    trpi_shard_frame frame;
    memset(&frame, 0, sizeof frame);
    if (count > 0 && (bytes[0] == TRPI_HELLO_ASKS || bytes[0] == TRPI_HELLO_ANSWERS)) {
        if (trpi_keeper_hello(keeper, from, bytes, count)) {
            late_retry(ctx, keeper);
        }
        return;
    }
    if (trpi_shard_frame_decode(bytes, count, &frame) != TRP_OK) {
        return; /* of a later version, or not a frame */
    }
    trpi_keeper_type *type = type_get(keeper, frame.type);
    if (type != NULL) {
        role_learn(ctx, keeper, type, frame.role);
    }
    if (type != NULL && is_for_coordinator(frame.kind)) {
        trpi_coordinator_event event = { .kind = TRPI_COORDINATOR_FRAME,
                                         .from = *from,
                                         .frame = &frame };
        trpi_keeper_coordinator_step(ctx, keeper, type, &event);
    } else if (type != NULL) {
        trpi_region_event event = { .kind = TRPI_REGION_FRAME, .from = *from, .frame = &frame };
        trpi_keeper_region_step(ctx, keeper, type, &event);
    }
    trpi_shard_frame_fini(&frame);
}

void
trpi_keeper_members(trp_ctx *ctx, trpi_keeper *keeper)
{
    trpi_keeper_peers_update(keeper);
    for (trpi_keeper_type *type = keeper->types; type != NULL; type = type->next) {
        type_members(ctx, keeper, type);
    }
    trpi_keeper_peers_settle(keeper);
}

/* Ask the coordinator, here or elsewhere, to look now. */
void
trpi_keeper_rebalance(trp_ctx *ctx, trpi_keeper *keeper, const trpi_region *region)
{
    trpi_keeper_type *type = trpi_keeper_find(keeper, region->name);
    trpi_coordinator_event look = { .kind = TRPI_COORDINATOR_REBALANCE };
    trpi_shard_frame frame;
    trpi_node_id node;
    trpi_shard_term term;
    trpi_buffer bytes = { NULL, 0, 0 };
    bool registered;
    if (type == NULL || !trpi_region_core_coordinator(type->core, &node, &term, &registered)) {
        return;
    }
    if (type->coordinator != NULL && trpi_coordinator_is_active(type->coordinator)) {
        trpi_keeper_coordinator_step(ctx, keeper, type, &look);
        return;
    }
    memset(&frame, 0, sizeof frame);
    frame.kind = TRPI_SHARD_FRAME_REBALANCE;
    frame.to_uid = node.uid;
    frame.term = term;
    (void)snprintf(frame.type, sizeof frame.type, "%s", type->name);
    (void)snprintf(frame.role, sizeof frame.role, "%s", type->role);
    if (trpi_shard_frame_encode(&frame, &bytes) == TRP_OK) {
        frame_send(keeper, &node, &bytes);
    }
    trpi_buffer_fini(&bytes);
}

/* keeper-step-S3 */
static void
orders_again(trp_ctx *ctx, trpi_keeper *keeper, trpi_keeper_type *type)
{
    trpi_region_shard_info info;
    if (!type->unsaid || type->region == NULL) {
        return;
    }
    type->unsaid = false;
    for (uint32_t i = 0; trpi_region_core_shard(type->core, i, &info); i++) {
        if (info.place == TRPI_SHARD_PLACE_OWN) {
            order_give(ctx, type, TRPI_REQUEST_OWN, i, info.epoch, NULL);
        } else if (info.place == TRPI_SHARD_PLACE_STOPPING) {
            order_give(ctx, type, TRPI_REQUEST_STOP, i, info.epoch, NULL);
        } else if (info.place == TRPI_SHARD_PLACE_AWAY) {
            home_say(ctx, keeper, type, i, info.epoch, &info.node);
        } else {
            trpi_region_event wanted = { .kind = TRPI_REGION_WANTED, .shard = i };
            order_give(ctx, type, TRPI_REQUEST_BUFFER, i, 0, NULL);
            trpi_keeper_region_step(ctx, keeper, type, &wanted);
        }
    }
}

void
trpi_keeper_tick(trp_ctx *ctx, trpi_keeper *keeper)
{
    uint64_t now_ms = trpi_keeper_now_ms(keeper);
    trpi_region_event region = { .kind = TRPI_REGION_TICK };
    trpi_coordinator_event coordinator = { .kind = TRPI_COORDINATOR_TICK };
    trpi_keeper_peers_ask(keeper);
    for (trpi_keeper_type *type = keeper->types; type != NULL; type = type->next) {
        orders_again(ctx, keeper, type);
    }
    if (trpi_keeper_peers_gone(keeper)) {
        trpi_keeper_members(ctx, keeper);
    }
    for (trpi_keeper_type *type = keeper->types; type != NULL; type = type->next) {
        if (trpi_region_core_wake_ms(type->core) <= now_ms) {
            trpi_keeper_region_step(ctx, keeper, type, &region);
        }
        if (type->coordinator == NULL || trpi_coordinator_wake_ms(type->coordinator) > now_ms) {
            continue;
        }
        if (trpi_coordinator_weighs(type->coordinator)) { /* by the weights of now */
            type_members(ctx, keeper, type);
        } else {
            trpi_keeper_coordinator_step(ctx, keeper, type, &coordinator);
        }
    }
}

uint64_t
trpi_keeper_wake_ms(const trpi_keeper *keeper)
{
    uint64_t wake_ms =
        keeper->gone ? trpi_keeper_now_ms(keeper) + GONE_LOOK_MS : trpi_keeper_asks_ms(keeper);
    for (const trpi_keeper_type *type = keeper->types; type != NULL; type = type->next) {
        if (type->unsaid) {
            wake_ms = trpi_keeper_now_ms(keeper) + UNSAID_MS;
        }
        uint64_t region = trpi_region_core_wake_ms(type->core);
        uint64_t other = type->coordinator == NULL ? TRPI_REGION_NEVER
                                                   : trpi_coordinator_wake_ms(type->coordinator);
        wake_ms = region < wake_ms ? region : wake_ms;
        wake_ms = other < wake_ms ? other : wake_ms;
    }
    return wake_ms;
}
