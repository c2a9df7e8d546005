/* keeper.c - the actor /system/sharding. See keeper.h.
 *
 * Why.     Each node has one, also where no type is started: it answers what it hosts.
 * Threads. The transport's, the cluster's and regions put events into its mailbox; it alone steps
 *          the engines, with the lock; status looks at them with the lock.
 * Must hold.
 *   keeper-G1  Frames in the mailbox are bounded; what is dropped is sent again by the engines.
 * Tests.   tests/sim/entities_test.c, tests/multinode/once.sh
 */
#include "cluster/sharding/keeper.h"

#include <stdio.h>
#include <string.h>

#include <troupe/shutdown.h>

#include "base/alloc.h"
#include "base/mutex.h"
#include "cluster/shell/listen.h"
#include "pattern/pattern.h"

/* trp_sharding_start() waits so long for a coordinator's word. */
enum { START_WAIT_MS = 5000, START_LOOK_MS = 5, TIMER_MS_MAX = 3600000 };

trp_type trpi_keeper_event_type = { .name = "sharding-keeper.event",
                                    .tag = 0,
                                    .flags = TRP_TYPE_LOCAL };
trp_type trpi_keeper_tick_type = { .name = "sharding-keeper.tick",
                                   .tag = 1,
                                   .flags = TRP_TYPE_LOCAL };

uint64_t
trpi_keeper_now_ms(const trpi_keeper *keeper)
{
    return trpi_world_mono_ns(trpi_system_world(keeper->system)) / 1000000u;
}

/* ---- events ---------------------------------------------------------------------------------- */

trpi_keeper_event *
trpi_keeper_event_new(trpi_keeper *keeper, enum trpi_keeper_kind kind, const void *bytes,
                      size_t count)
{
    trpi_keeper_event *event = trpi_alloc(sizeof *event + count);
    if (event != NULL) {
        event->kind = kind;
        event->keeper = keeper;
        event->count = count;
        if (count > 0) {
            memcpy(event->bytes, bytes, count);
        }
    }
    return event;
}

static void
event_release(void *data, void *arg)
{
    trpi_keeper_event *event = data;
    (void)arg;
    trpi_free(event->question);
    trpi_free(event);
}

bool
trpi_keeper_put(trpi_keeper *keeper, trpi_keeper_event *event)
{
    trp_msg *msg;
    /* acquire: pairs with the release of the actor's end */
    if (atomic_load_explicit(&keeper->closed, memory_order_acquire) ||
        trpi_msg_new_owner(&trpi_keeper_event_type, event, event_release, &msg) != TRP_OK) {
        event_release(event, NULL);
        return false;
    }
    trp_ctx *ctx = trpi_enter(keeper->system);
    trpi_send(ctx, keeper->actor, msg);
    trpi_leave(ctx);
    return true;
}

void
trpi_keeper_own_append(trpi_keeper *keeper, trpi_keeper_event *event)
{
    event->next = NULL;
    if (keeper->own_last == NULL) {
        keeper->own_first = event;
    } else {
        keeper->own_last->next = event;
    }
    keeper->own_last = event;
}

static trpi_keeper_event *
own_take(trpi_keeper *keeper)
{
    trpi_keeper_event *event = keeper->own_first;
    if (event != NULL) {
        keeper->own_first = event->next;
        keeper->own_last = keeper->own_first == NULL ? NULL : keeper->own_last;
    }
    return event;
}

/* A transport thread. */
static void
frame_arrived(void *arg, const trpi_node_id *from, const uint8_t *bytes, size_t count,
              uint64_t arrived_ns)
{
    trpi_keeper *keeper = arg;
    (void)arrived_ns;
    /* relaxed: a bound (keeper-G1) */
    if (atomic_fetch_add_explicit(&keeper->frames_waiting, 1, memory_order_relaxed) >=
        TRPI_KEEPER_FRAMES_MAX) {
        atomic_fetch_sub_explicit(&keeper->frames_waiting, 1, memory_order_relaxed);
        return;
    }
    trpi_keeper_event *event = trpi_keeper_event_new(keeper, TRPI_KEEPER_FRAME, bytes, count);
    if (event != NULL) {
        event->from = *from;
        (void)trpi_keeper_put(keeper, event);
    }
}

/* The cluster's thread. */
static void
members_changed(void *arg, const trpi_cluster_event *event)
{
    trpi_keeper *keeper = arg;
    (void)event;
    /* One waits for all changes until it is taken. acq_rel: pairs with that of event_take(): what
     * has changed before is seen there */
    if (atomic_exchange_explicit(&keeper->members_wait, true, memory_order_acq_rel)) {
        return;
    }
    trpi_keeper_event *changed = trpi_keeper_event_new(keeper, TRPI_KEEPER_MEMBERS, NULL, 0);
    if (changed != NULL) {
        (void)trpi_keeper_put(keeper, changed);
    } else {
        atomic_store_explicit(&keeper->members_wait, false, memory_order_relaxed);
    }
}

/* ---- what regions say ------------------------------------------------------------------------ */

static bool
region_says(void *arg, enum trpi_keeper_kind kind, trpi_region *region, uint32_t shard,
            uint64_t epoch, trp_ref gate)
{
    trpi_keeper_event *event = trpi_keeper_event_new(arg, kind, NULL, 0);
    if (event == NULL) {
        return false;
    }
    event->region = region;
    event->shard = shard;
    event->epoch = epoch;
    event->gate = gate;
    return trpi_keeper_put(arg, event);
}

static const trp_ref nobody = TRP_REF_NONE;

static bool
region_wanted(void *arg, trp_ctx *ctx, trpi_region *region, uint32_t shard)
{
    (void)ctx;
    return region_says(arg, TRPI_KEEPER_WANTED, region, shard, 0, nobody);
}

static bool
region_stopped(void *arg, trp_ctx *ctx, trpi_region *region, uint32_t shard, uint64_t epoch)
{
    (void)ctx;
    return region_says(arg, TRPI_KEEPER_STOPPED, region, shard, epoch, nobody);
}

static bool
region_fenced(void *arg, trp_ctx *ctx, trpi_region *region, uint32_t shard, trp_ref gate)
{
    (void)ctx;
    return region_says(arg, TRPI_KEEPER_FENCED, region, shard, 0, gate);
}

static bool
region_returned(void *arg, trp_ctx *ctx, trpi_region *region, uint32_t shard, uint64_t epoch)
{
    (void)ctx;
    return region_says(arg, TRPI_KEEPER_RETURNED, region, shard, epoch, nobody);
}

static const trpi_region_ops region_ops = { region_wanted, region_stopped, region_fenced,
                                            region_returned };

/* ---- the actor ------------------------------------------------------------------------------- */

typedef struct keeper_state {
    trpi_keeper *keeper;
} keeper_state;

static void
region_event(trp_ctx *ctx, trpi_keeper *keeper, const trpi_keeper_event *e)
{
    trpi_keeper_type *type = trpi_keeper_find(keeper, e->region->name);
    trpi_region_event event = { .shard = e->shard, .epoch = e->epoch, .from = e->from };
    if (type == NULL || type->region == NULL) {
        return;
    }
    switch (e->kind) {
    case TRPI_KEEPER_WANTED:
        event.kind = TRPI_REGION_WANTED;
        break;
    case TRPI_KEEPER_STOPPED:
        event.kind = TRPI_REGION_STOPPED;
        break;
    case TRPI_KEEPER_RETURNED:
        event.kind = TRPI_REGION_RETURNED;
        break;
    default:
        event.kind = TRPI_REGION_FENCED;
        for (uint32_t i = 0; i < keeper->peers_count && event.from.uid == 0; i++) {
            if (trp_ref_equal(keeper->peers[i].gate, e->gate)) {
                event.from = keeper->peers[i].id;
            }
        }
        break;
    }
    trpi_keeper_region_step(ctx, keeper, type, &event);
}

static void
leave_begin(trp_ctx *ctx, trpi_keeper *keeper, uint64_t task)
{
    trpi_region_event event = { .kind = TRPI_REGION_LEAVE };
    keeper->leaving = true;
    keeper->leave_task = task;
    for (trpi_keeper_type *type = keeper->types; type != NULL; type = type->next) {
        trpi_keeper_region_step(ctx, keeper, type, &event);
    }
    trpi_keeper_leave_look(keeper);
}

static void
answer_take(trp_ctx *ctx, trpi_keeper *keeper, const trpi_keeper_event *event)
{
    trpi_keeper_type *type = trpi_keeper_find(keeper, event->region->name);
    trpi_coordinator_event answer = { .kind = TRPI_COORDINATOR_ANSWER,
                                      .question = event->question };
    if (type != NULL) {
        trpi_keeper_coordinator_step(ctx, keeper, type, &answer);
    }
}

static void
event_take(trp_ctx *ctx, trpi_keeper *keeper, const trpi_keeper_event *event)
{
    switch (event->kind) {
    case TRPI_KEEPER_FRAME:
        trpi_keeper_frame(ctx, keeper, &event->from, event->bytes, event->count);
        break;
    case TRPI_KEEPER_MEMBERS:
        (void)atomic_exchange_explicit(&keeper->members_wait, false, memory_order_acq_rel);
        trpi_keeper_members(ctx, keeper);
        break;
    case TRPI_KEEPER_START:
        trpi_keeper_type_start(ctx, keeper, event->region);
        break;
    case TRPI_KEEPER_LEAVE:
        leave_begin(ctx, keeper, event->task);
        break;
    case TRPI_KEEPER_REBALANCE:
        trpi_keeper_rebalance(ctx, keeper, event->region);
        break;
    case TRPI_KEEPER_ANSWER:
        answer_take(ctx, keeper, event);
        break;
    default:
        region_event(ctx, keeper, event);
        break;
    }
}

static void
timer_set(trp_ctx *ctx, trpi_keeper *keeper)
{
    uint64_t now_ms = trpi_keeper_now_ms(keeper), wake_ms = trpi_keeper_wake_ms(keeper);
    uint64_t delay_ms = wake_ms <= now_ms ? 1 : wake_ms - now_ms;
    if (wake_ms == TRPI_REGION_NEVER ||
        (keeper->timer_ms > now_ms && keeper->timer_ms <= wake_ms)) {
        return;
    }
    delay_ms = delay_ms < TIMER_MS_MAX ? delay_ms : TIMER_MS_MAX;
    /* without memory: the next event sets it */
    if (trp_timer_once(ctx, 1, (uint32_t)delay_ms, &trpi_keeper_tick_type, NULL, 0) == TRP_OK) {
        keeper->timer_ms = now_ms + delay_ms;
    }
}

static trp_err
keeper_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    trpi_keeper *keeper = ((keeper_state *)state)->keeper;
    pthread_mutex_lock(&keeper->lock);
    if (trp_msg_is(msg, &trpi_keeper_event_type)) {
        const trpi_keeper_event *event = trp_msg_payload(msg);
        if (event->kind == TRPI_KEEPER_FRAME) {
            atomic_fetch_sub_explicit(&keeper->frames_waiting, 1, memory_order_relaxed);
        }
        event_take(ctx, keeper, event);
    } else if (trp_msg_is(msg, &trpi_keeper_tick_type)) {
        keeper->timer_ms = 0;
        trpi_keeper_tick(ctx, keeper);
    }
    for (trpi_keeper_event *own = own_take(keeper); own != NULL; own = own_take(keeper)) {
        event_take(ctx, keeper, own);
        trpi_free(own);
    }
    pthread_mutex_unlock(&keeper->lock);
    timer_set(ctx, keeper);
    return TRP_OK;
}

static trp_err
keeper_begin(trp_ctx *ctx, void *state, const trp_msg *args)
{
    keeper_state *s = state;
    memcpy(&s->keeper, trp_msg_payload(args), sizeof s->keeper);
    pthread_mutex_lock(&s->keeper->lock);
    trpi_keeper_members(ctx, s->keeper);
    pthread_mutex_unlock(&s->keeper->lock);
    timer_set(ctx, s->keeper);
    return TRP_OK;
}

static void
keeper_end(trp_ctx *ctx, void *state)
{
    (void)ctx;
    /* release: pairs with the acquire in put() */
    atomic_store_explicit(&((keeper_state *)state)->keeper->closed, true, memory_order_release);
}

/* ---- start and end --------------------------------------------------------------------------- */

/* Nobody is left to hand over to when all nodes end, and a node that was downed is not obeyed. */
static bool
has_heirs(trp_system *system)
{
    trp_shutdown_reason reason = trp_shutdown_reason_get(system);
    return reason != TRP_SHUTDOWN_CLUSTER && reason != TRP_SHUTDOWN_DOWNED;
}

static void
leave_task(void *arg, uint64_t task)
{
    trpi_keeper *keeper = arg;
    trpi_keeper_event *event = has_heirs(keeper->system)
                                   ? trpi_keeper_event_new(keeper, TRPI_KEEPER_LEAVE, NULL, 0)
                                   : NULL;
    if (event != NULL) {
        event->task = task;
    }
    if (event == NULL || !trpi_keeper_put(keeper, event)) {
        trp_shutdown_done(keeper->system, task, TRP_OK);
    }
}

static bool
region_started(void *arg, trpi_region *region)
{
    trpi_keeper *keeper = arg;
    trpi_keeper_event *event = trpi_keeper_event_new(keeper, TRPI_KEEPER_START, NULL, 0);
    if (event == NULL) {
        return false;
    }
    event->region = region;
    return trpi_keeper_put(keeper, event);
}

/* Is there a coordinator that can answer, or is that not known yet? With the lock. */
static bool
has_boss(const trpi_keeper_type *type)
{
    trpi_shard_term term;
    trpi_node_id node;
    bool registered;
    return type == NULL || type->region == NULL ||
           trpi_region_core_coordinator(type->core, &node, &term, &registered);
}

/* false: there is nothing more to wait for. */
static bool
is_unsettled(trpi_keeper *keeper, const trpi_region *region, bool *ret_accepted, char *why,
             size_t why_bytes)
{
    bool waits = false;
    pthread_mutex_lock(&keeper->lock);
    const trpi_keeper_type *type = trpi_keeper_find(keeper, region->name);
    if (type != NULL && type->refused) {
        *ret_accepted = false;
        (void)snprintf(why, why_bytes, "%s", type->why);
    } else if (atomic_load_explicit(&region->closed, memory_order_relaxed)) {
        *ret_accepted = false;
        (void)snprintf(why, why_bytes, "no memory, or more than %u types are known",
                       TRPI_KEEPER_TYPES_MAX);
    } else if (type == NULL || !type->accepted) {
        waits = has_boss(type) && !atomic_load_explicit(&keeper->closed, memory_order_relaxed);
    }
    pthread_mutex_unlock(&keeper->lock);
    return waits;
}

static bool
region_await(void *arg, const trpi_region *region, char *why, size_t why_bytes)
{
    trpi_keeper *keeper = arg;
    uint64_t until_ms = trpi_keeper_now_ms(keeper) + START_WAIT_MS;
    bool is_accepted = true;
    if (trpi_system_in_behaviour(keeper->system)) {
        return true; /* it must not wait: a refusal ends the type later */
    }
    while (is_unsettled(keeper, region, &is_accepted, why, why_bytes) &&
           trpi_keeper_now_ms(keeper) < until_ms) {
        trpi_system_pass(keeper->system, START_LOOK_MS);
    }
    return is_accepted;
}

static trp_err
keeper_spawn(trpi_keeper *keeper)
{
    static const trp_behaviour behaviour = { .size = sizeof behaviour,
                                             .name = "sharding",
                                             .version = 1,
                                             .state_bytes = sizeof(keeper_state),
                                             .receive = keeper_receive,
                                             .pre_start = keeper_begin,
                                             .post_stop = keeper_end };
    trp_spawn_options spawn = TRP_SPAWN_OPTIONS_INIT;
    spawn.name = "sharding";
    spawn.mailbox = "unbounded";
    spawn.args_type = &trp_bytes_type;
    spawn.args = &keeper;
    spawn.args_bytes = sizeof keeper;
    return trpi_system_spawn_internal(keeper->system, &behaviour, &spawn, &keeper->actor);
}

static void
keeper_free(void *arg)
{
    trpi_keeper_free(arg);
}

trpi_keeper *
trpi_keeper_of(trp_system *system)
{
    trpi_sharding *sharding = trpi_system_entities(system);
    return sharding == NULL ? NULL : sharding->keeper.arg;
}

void
trpi_sharding_refused_set(trp_system *system, trpi_sharding_refused_fn fn, void *arg)
{
    trpi_keeper *keeper = trpi_keeper_of(system);
    if (keeper != NULL) {
        pthread_mutex_lock(&keeper->lock);
        keeper->refused = fn;
        keeper->refused_arg = arg;
        pthread_mutex_unlock(&keeper->lock);
    }
}

trp_err
trpi_keeper_start(trpi_cluster *cluster, trp_system *system, trpi_remote *remote)
{
    static trp_type *const types[] = { &trpi_keeper_event_type, &trpi_keeper_tick_type,
                                       &trpi_keeper_question_type };
    static const trp_protocol protocol = { .name = "sharding-keeper",
                                           .types = types,
                                           .types_count = sizeof types / sizeof types[0] };
    trpi_sharding *sharding;
    uint64_t listener;
    trp_err err = trp_protocol_register(&protocol);
    if (err == TRP_OK) {
        err = trpi_sharding_of(system, &sharding);
    }
    if (err != TRP_OK) {
        return err;
    }
    trpi_keeper *keeper = trpi_alloc(sizeof *keeper);
    if (keeper == NULL) {
        return TRP_ENOMEM;
    }
    keeper->system = system;
    keeper->cluster = cluster;
    keeper->remote = remote;
    keeper->sharding = sharding;
    keeper->self = *trpi_system_self(system);
    keeper->self.address = *trpi_remote_address(remote);
    pthread_mutex_init(&keeper->lock, NULL);
    err = keeper_spawn(keeper);
    if (err != TRP_OK) {
        trpi_keeper_free(keeper);
        return err;
    }
    sharding->keeper = (trpi_sharding_keeper){ keeper, region_started, region_await, keeper_free };
    atomic_store_explicit(&sharding->ops_arg, keeper, memory_order_relaxed);
    /* release: pairs with the acquire of regions */
    atomic_store_explicit(&sharding->ops, &region_ops, memory_order_release);
    err = trpi_cluster_listen(cluster, TRP_CLUSTER_MEMBER_EVENTS | TRPI_CLUSTER_DRAINED,
                              members_changed, keeper, &listener);
    keeper->listener = listener;
    if (err == TRP_OK) {
        err = trpi_shutdown_add_own(system, "cluster-sharding-shutdown-region", "sharding",
                                    leave_task, keeper);
    }
    trpi_remote_control_bind(remote, TRPI_CHANNEL_SHARDING, frame_arrived, keeper);
    return err;
}

void
trpi_keeper_stop(trp_system *system)
{
    trpi_keeper *keeper = trpi_keeper_of(system);
    if (keeper == NULL) {
        return;
    }
    trpi_remote_control_bind(keeper->remote, TRPI_CHANNEL_SHARDING, NULL, NULL);
    trpi_cluster_unlisten(keeper->cluster, keeper->listener);
    /* Ended before the cluster and remoting, which it uses. */
    if (trp_system_graceful_stop(system, keeper->actor, 5000) != TRP_OK) {
        trp_system_stop_actor(system, keeper->actor);
    }
}

void
trpi_keeper_free(trpi_keeper *keeper)
{
    if (keeper == NULL) {
        return;
    }
    while (keeper->types != NULL) {
        trpi_keeper_type *type = keeper->types;
        keeper->types = type->next;
        trpi_region_core_free(type->core);
        trpi_coordinator_free(type->coordinator);
        trpi_free(type);
    }
    while (keeper->late != NULL) {
        trpi_keeper_late *late = keeper->late;
        keeper->late = late->next;
        trpi_free(late);
    }
    for (trpi_keeper_event *own = own_take(keeper); own != NULL; own = own_take(keeper)) {
        trpi_free(own);
    }
    trpi_free(keeper->peers);
    trpi_mutex_destroy(&keeper->lock);
    trpi_free(keeper);
}
