/* region.c - the actor of one type of entities: parent of those that live here, and the place where
 * messages wait.
 *
 * Shape.   tellers that miss, ends of entities, grace periods, the keeper
 *              -> orders -> region_shard.c -> region_entry.c
 * Must hold.
 *   region-R1  A request is handled once: its message is passed on, kept, or a dead letter.
 * Tests.   tests/unit/cluster/entity_test.c
 */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "cluster/sharding/region.h"

uint64_t
trpi_region_now_ms(const trpi_region *region)
{
    return trpi_world_mono_ns(trpi_system_world(region->system)) / 1000000u;
}

bool
trpi_region_order(trp_ctx *ctx, trpi_region *region, enum trpi_request_kind kind, uint32_t shard,
                  uint64_t epoch, trpi_home *home)
{
    trpi_request *request = trpi_request_new(region->system, kind, NULL, NULL, 0, NULL);
    if (request != NULL) {
        request->shard = shard;
        request->epoch = epoch;
        request->home = home;
        trpi_request_tell(ctx, region, request);
        return true;
    }
    trpi_free(home);
    return false;
}

static void
grace_passed(trp_ctx *ctx, trpi_region *region)
{
    trpi_entry_wait *closing = region->closing_now;
    region->grace_runs = false;
    region->closing_now = NULL;
    while (closing != NULL) {
        trpi_entry_wait *wait = closing;
        closing = wait->next_closing;
        trpi_entry_graced(ctx, region, wait);
    }
    for (uint32_t i = 0; region->shards_closing > 0 && i < region->options.shards; i++) {
        trpi_shard_graced(ctx, region, i);
    }
    if (region->grace_wanted) {
        trpi_region_grace(region);
    }
}

static void
order_missed(trp_ctx *ctx, trpi_region *region, trpi_request *request)
{
    trpi_shard *shard = &region->shards[request->shard];
    trpi_shard_message(ctx, region, request);
    atomic_fetch_sub(&shard->misses, 1);
    trpi_shard_open(ctx, region, shard);
}

/* Of the keeper, or of another node's gate. */
static void
shard_order(trp_ctx *ctx, trpi_region *region, trpi_request *request)
{
    trpi_home *home = request->home;
    if (request->shard >= region->options.shards) {
        return; /* another node said so */
    }
    request->home = NULL;
    switch ((enum trpi_request_kind)request->kind) {
    case TRPI_REQUEST_OWN:
        trpi_shard_own(ctx, region, request->shard, request->epoch);
        break;
    case TRPI_REQUEST_BUFFER:
        trpi_shard_buffer(ctx, region, request->shard);
        break;
    case TRPI_REQUEST_MOVES:
        trpi_shard_moves(ctx, region, request->shard);
        break;
    case TRPI_REQUEST_DROPPED:
        trpi_shard_dropped(ctx, region, request->shard, request->epoch);
        break;
    case TRPI_REQUEST_STOP:
        trpi_shard_stop(ctx, region, request->shard, request->epoch);
        break;
    case TRPI_REQUEST_FIRED:
    case TRPI_REQUEST_UNFIRED:
        trpi_remind_fired(ctx, region, request);
        break;
    case TRPI_REQUEST_RESTART:
        trpi_remember_go_on(ctx, region);
        break;
    case TRPI_REQUEST_OPEN:
        trpi_shards_want(ctx, region, request->shard);
        break;
    case TRPI_REQUEST_STOP_NOW:
        trpi_shard_stop_now(ctx, region, request->shard);
        break;
    case TRPI_REQUEST_HOME:
        trpi_shard_away(ctx, region, request->shard, home);
        return;
    case TRPI_REQUEST_FENCE:
        trpi_shard_fence(ctx, region, request->shard, home);
        return;
    case TRPI_REQUEST_FENCE_ASKED:
        trpi_gate_fence(region, ctx, request->origin, request->shard, true); /* gate-G2 */
        break;
    case TRPI_REQUEST_FENCED:
        trpi_shard_fenced(ctx, region, request->shard, request->origin);
        break;
    default:
        break;
    }
    trpi_free(home);
}

static void
order_take(trp_ctx *ctx, trpi_region *region, trpi_request *request)
{
    trpi_entry *entry = request->entry;
    switch ((enum trpi_request_kind)request->kind) {
    case TRPI_REQUEST_MISS:
        order_missed(ctx, region, request);
        return;
    case TRPI_REQUEST_LEFT:
        trpi_entry_left(region, entry, request);
        return;
    case TRPI_REQUEST_ENDED:
        trpi_entry_ended(ctx, region, entry);
        break;
    case TRPI_REQUEST_GRACE:
        grace_passed(ctx, region);
        break;
    case TRPI_REQUEST_DRAINED: {
        trpi_shard *shard = &region->shards[entry->shard];
        trpi_entry_drained(ctx, region, entry);
        trpi_shard_open(ctx, region, shard);
        break;
    }
    case TRPI_REQUEST_PASSIVATE:
        entry = trpi_entry_find(&region->shards[request->shard].entries, request->hash, request->id,
                                request->id_bytes);
        if (entry != NULL) {
            trpi_entry_passivate(ctx, region, entry);
        }
        break;
    case TRPI_REQUEST_RETURNED:
        trpi_shard_returned(ctx, region, request);
        return;
    default:
        shard_order(ctx, region, request);
        break;
    }
    trpi_request_free(request);
}

typedef struct region_state {
    trpi_region *region;
} region_state;

static trp_err
region_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    trpi_region *region = ((region_state *)state)->region;
    if (trp_msg_is(msg, &trpi_request_type) && trp_msg_payload(msg) != NULL) {
        trpi_request *request = (trpi_request *)(uintptr_t)trp_msg_payload(msg);
        /* relaxed: the message is freed behind this turn. region-R1 */
        atomic_fetch_or_explicit(&request->marks, TRPI_REQUEST_KEPT, memory_order_relaxed);
        order_take(ctx, region, request);
        return TRP_OK;
    }
    if (trp_msg_is(msg, &trpi_region_tick_type)) {
        trpi_entry_start_due(ctx, region);
        trpi_keep_tick(ctx, region);
        trpi_remember_go_on(ctx, region);
        region->mover->tick(ctx, region);
        trpi_region_sweep(ctx, region);
        return TRP_OK;
    }
    if (trp_msg_is(msg, &trpi_remind_tick_type)) {
        trpi_remind_tick(ctx, region);
        return TRP_OK;
    }
    if (trp_msg_is(msg, &trpi_keep_answer_type) && trp_msg_payload(msg) != NULL) {
        trpi_keep_answered(ctx, region, msg);
        return TRP_OK;
    }
    return TRP_EUNHANDLED;
}

static trp_err
region_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    region_state *s = state;
    memcpy(&s->region, trp_msg_payload(args), sizeof s->region);
    return trp_timer_repeat(ctx, 1, s->region->sweep_ms, s->region->sweep_ms,
                            &trpi_region_tick_type, NULL, 0);
}

static void
queue_dead(trpi_request_queue *queue)
{
    trpi_request *request;
    while ((request = trpi_request_take(queue)) != NULL) {
        trpi_request_dead(request, TRP_DEAD_STOPPED);
    }
}

static void
region_stopped(trp_ctx *ctx, void *state)
{
    trpi_region *region = ((region_state *)state)->region;
    (void)ctx;
    /* release: pairs with the acquire of tellers and of ends */
    atomic_store_explicit(&region->closed, true, memory_order_release);
    trpi_entity_cache_clear(region);
    queue_dead(&region->unrecorded);
    for (uint32_t i = 0; i < region->options.shards; i++) {
        trpi_shard *shard = &region->shards[i];
        queue_dead(&shard->returned);
        queue_dead(&shard->waiting);
        trpi_keep_abandon(region, shard);
        for (uint32_t place = 0; place < trpi_entry_places(&shard->entries); place++) {
            trpi_entry *entry = trpi_entry_at(&shard->entries, place);
            if (entry != NULL) {
                atomic_store(&entry->target, TRPI_TARGET_NONE);
            }
            if (entry != NULL && entry->wait != NULL) {
                queue_dead(&entry->wait->front);
                queue_dead(&entry->wait->back);
            }
        }
    }
}

/* A failed entity stops: region_entry.c starts it again, after a back-off. */
static trp_directive
stop_failed(trp_ctx *ctx, void *state, const trp_failure *failure)
{
    (void)ctx;
    (void)state;
    (void)failure;
    return TRP_STOP;
}

trp_err
trpi_region_spawn(trpi_region *region)
{
    static const trp_strategy stopping = { sizeof stopping, 0, 0, stop_failed, 0, 0, NULL };
    char name[TRP_ENTITY_TYPE_BYTES_MAX + sizeof "sharding-"];
    trp_spawn_options spawn = TRP_SPAWN_OPTIONS_INIT;
    region->shards = trpi_alloc_aligned(64, region->options.shards * sizeof *region->shards);
    if (region->shards == NULL) {
        return TRP_ENOMEM;
    }
    region->behaviour =
        (trp_behaviour)TRP_BEHAVIOUR_INIT("sharding-region", region_state, region_receive);
    region->behaviour.pre_start = region_start;
    region->behaviour.post_stop = region_stopped;
    region->behaviour.strategy =
        region->options.strategy != NULL ? region->options.strategy : &stopping;
    (void)snprintf(name, sizeof name, "sharding-%s", region->name);
    spawn.name = name;
    spawn.dispatcher = "default";
    spawn.mailbox = "unbounded";
    spawn.args_type = &trp_bytes_type;
    spawn.args = &region;
    spawn.args_bytes = sizeof region;
    return trpi_system_spawn_internal(region->system, &region->behaviour, &spawn, &region->actor);
}

void
trpi_region_free(void *arg)
{
    trpi_region *region = arg;
    if (region == NULL) {
        return;
    }
    if (region->grace_runs && !region->free_after_grace && !atomic_load(&region->grace_called) &&
        atomic_load_explicit(&region->closed, memory_order_relaxed)) {
        region->free_after_grace = true;
        return;
    }
    for (uint32_t i = 0; region->shards != NULL && i < region->options.shards; i++) {
        trpi_shard *shard = &region->shards[i];
        for (uint32_t place = 0; place < trpi_entry_places(&shard->entries); place++) {
            const trpi_entry *entry = trpi_entry_at(&shard->entries, place);
            if (entry != NULL) {
                trpi_free(entry->wait);
            }
        }
        trpi_entry_table_fini(&shard->entries);
        trpi_free(shard->home);
        trpi_free(shard->fence);
    }
    region->mover->free(region);
    trpi_entity_cache_free(atomic_load_explicit(&region->cache, memory_order_relaxed));
    trpi_free(region->shards);
    trpi_free(region);
}
