/* region_shard.c - a shard of a region: here, on another node, or on the move.
 *
 * States.  UNKNOWN --own--> OWN --buffer, stop--> STOPPING --all entities ended--> UNKNOWN
 *          UNKNOWN --own--> OPENING --its store is open--> OWN, where a shard has a store
 *          UNKNOWN --home--> AWAY --buffer--> UNKNOWN
 * Must hold.
 *   region-shard-S1  What waits for a shard is passed on in the order of its arrival, and before
 *       the short way is opened (region-O1).
 *   region-shard-S2  buffering() and the stop messages come after a grace period: nothing that was
 *       told directly comes later (region-O2).
 *   region-shard-S3  Messages of other nodes are taken in OWN and OPENING, with the epoch that they
 *       name. When the shard leaves these states, those that still wait go back at once, before any
 *       that comes later: after the first that went back, none of that epoch is taken.
 *   region-shard-S4  Orders of the keeper may come twice: those of a state that the shard has
 *       change nothing, and STOP of one that is not here is answered, with its epoch.
 *   region-shard-S5  A type that drops (hand-off 2c, 4b) makes dead letters where region-shard-S3
 *       gives back, and tells the sender's node, which asks then where the shard is: none goes on
 *       telling a former home.
 *   region-shard-S6  With order, what an earlier home than the last one gives back is a dead
 *       letter: the last one may have handled later messages. It comes from a home that stood still
 *       until it was removed, or until its fence was given up.
 *   region-shard-S7  A message that waited for an entity when its shard was lost goes back to the
 *       node that told it, which knows whether it is too late (region-shard-S6). One that was in
 *       the mailbox of an entity that failed does not say who told it: with order it is kept if an
 *       actor of this node has sent it, and is a dead letter else, where other nodes may have told
 *       the next owner.
 * Tests.   tests/unit/cluster/entity_test.c, tests/sim/entities_test.c, tests/sim/state_test.c
 */
#include "base/alloc.h"
#include "base/assert.h"
#include "cluster/sharding/region.h"

enum { WANT_MAX = 256 }; /* shards asked for in a row */

static const trpi_region_ops *
ops_of(const trpi_region *region, void **ret_arg)
{
    /* acquire: pairs with the release of the keeper's start */
    const trpi_region_ops *ops = atomic_load_explicit(&region->sharding->ops, memory_order_acquire);
    *ret_arg = atomic_load_explicit(&region->sharding->ops_arg, memory_order_relaxed);
    return ops;
}

static void
home_ask(trp_ctx *ctx, trpi_region *region, uint32_t number)
{
    trpi_shard *shard = &region->shards[number];
    void *arg;
    const trpi_region_ops *ops = ops_of(region, &arg);
    if (shard->asked) {
        return;
    }
    shard->asked = true;
    if (ops != NULL) {
        shard->asked = ops->wanted(arg, ctx, region, number); /* false: the next one asks */
    } else if (region->options.behaviour != NULL) {
        trpi_shard_own(ctx, region, number, 0); /* there is no cluster */
    }
}

static void
pass_on(trp_ctx *ctx, trpi_region *region, trpi_shard *shard, trpi_request *request)
{
    trpi_entry *entry;
    if (shard->state == TRPI_SHARD_AWAY) {
        trpi_gate_send(region, ctx, shard->home->gate, shard->home->epoch, request->id,
                       request->id_bytes, request->msg);
        request->msg = NULL;
        trpi_request_free(request);
        return;
    }
    char name[TRPI_ENTITY_NAME_BYTES];
    if (trp_msg_is(request->msg, &trpi_reminder_order_type)) {
        trpi_remind_order(ctx, region, request);
        return;
    }
    if (region->keeps && trpi_entity_name(request->id, request->id_bytes, name) == 0) {
        trpi_request_dead(request, TRP_DEAD_TOO_LARGE); /* the journal cannot name it */
        return;
    }
    entry = trpi_entry_get(region, request);
    if (entry == NULL) {
        trpi_request_dead(request, TRP_DEAD_NO_MEMORY);
    } else {
        trpi_entry_message(ctx, region, entry, request);
    }
}

/* region-shard-S5 */
static bool
is_dropped(const trpi_region *region, const trpi_shard *shard, const trpi_request *request)
{
    bool moves =
        shard->state == TRPI_SHARD_STOPPING && atomic_load(&shard->epoch) == request->epoch;
    return moves ? shard->drops : region->settings.late_drops;
}

/* A message of another node is taken only while the shard is here, with the epoch that it knew. */
static bool
give_back(trp_ctx *ctx, trpi_region *region, const trpi_shard *shard, trpi_request *request)
{
    trpi_origin origin = { request->origin, request->epoch };
    if (trp_ref_is_none(request->origin) ||
        ((shard->state == TRPI_SHARD_OWN || shard->state == TRPI_SHARD_OPENING) &&
         atomic_load(&shard->epoch) == request->epoch)) {
        return false;
    }
    if (is_dropped(region, shard, request)) {
        trpi_gate_dropped(region, ctx, &origin, request->shard);
        trpi_request_dead(request, TRP_DEAD_SHARD_MOVES);
        return true;
    }
    trpi_gate_return(region, ctx, &origin, request->id, request->id_bytes, request->msg);
    request->msg = NULL;
    trpi_request_free(request);
    return true;
}

void
trpi_shard_message(trp_ctx *ctx, trpi_region *region, trpi_request *request)
{
    uint32_t number = request->shard;
    trpi_shard *shard = &region->shards[number];
    if (give_back(ctx, region, shard, request)) {
        return;
    }
    if (shard->state == TRPI_SHARD_OWN || shard->state == TRPI_SHARD_AWAY) {
        pass_on(ctx, region, shard, request);
        return;
    }
    if (shard->drops && shard->state != TRPI_SHARD_OPENING) {
        trpi_request_dead(request, TRP_DEAD_SHARD_MOVES);
        return;
    }
    trpi_region_keep(region, &shard->waiting, request);
    if (shard->state == TRPI_SHARD_UNKNOWN) {
        home_ask(ctx, region, number);
    }
}

void
trpi_shard_returned(trp_ctx *ctx, trpi_region *region, trpi_request *request)
{
    uint32_t number = request->shard;
    trpi_shard *shard = &region->shards[number];
    void *arg;
    const trpi_region_ops *ops = ops_of(region, &arg);
    uint64_t epoch = request->epoch;
    bool current = shard->state == TRPI_SHARD_AWAY && shard->home->epoch == epoch;
    request->origin = (trp_ref)TRP_REF_NONE;                         /* it is of this node */
    if (!region->settings.unordered && epoch != shard->told_epoch) { /* region-shard-S6 */
        trpi_request_dead(request, TRP_DEAD_SHARD_MOVES);
        return;
    }
    if (!current && (shard->state == TRPI_SHARD_OWN || shard->state == TRPI_SHARD_AWAY)) {
        pass_on(ctx, region, shard, request); /* too late for its place */
        return;
    }
    if (ops != NULL && !ops->returned(arg, ctx, region, number, epoch)) {
        trpi_request_dead(request, TRP_DEAD_NO_MEMORY); /* it would wait for nothing */
        return;
    }
    trpi_region_keep(region, &shard->returned, request);
}

void
trpi_shard_dropped(trp_ctx *ctx, trpi_region *region, uint32_t number, uint64_t epoch)
{
    const trpi_shard *shard = &region->shards[number];
    void *arg;
    const trpi_region_ops *ops = ops_of(region, &arg);
    if (ops != NULL && shard->state == TRPI_SHARD_AWAY && shard->home->epoch == epoch) {
        (void)ops->returned(arg, ctx, region, number, epoch); /* or the next one says it */
    }
}

static void
waiting_flush(trp_ctx *ctx, trpi_region *region, trpi_shard *shard)
{
    trpi_request *request;
    shard->told_epoch =
        shard->state == TRPI_SHARD_AWAY ? shard->home->epoch : atomic_load(&shard->epoch);
    while ((request = trpi_region_unkeep(region, &shard->returned)) != NULL ||
           (request = trpi_region_unkeep(region, &shard->waiting)) != NULL) {
        pass_on(ctx, region, shard, request);
    }
}

static void
closing_cancel(trpi_region *region, trpi_shard *shard)
{
    region->shards_closing -= shard->closing ? 1 : 0;
    shard->closing = shard->closing_now = false;
}

/* No new teller finds it; some may still use it. */
static void
home_forget(trpi_region *region, trpi_shard *shard)
{
    if (shard->home != NULL) {
        trpi_system_retire(region->system, trpi_free, shard->home);
        shard->home = NULL;
    }
}

void
trpi_shard_own(trp_ctx *ctx, trpi_region *region, uint32_t number, uint64_t epoch)
{
    trpi_shard *shard = &region->shards[number];
    if (shard->state == TRPI_SHARD_STOPPING) {
        return; /* a hand-off ends with stopped() */
    }
    bool was = shard->state == TRPI_SHARD_OWN || shard->state == TRPI_SHARD_OPENING;
    atomic_store(&shard->epoch, epoch);
    if (was) {
        return;
    }
    shard->asked = shard->stops = shard->wants_stop = shard->route_opening = false;
    shard->drops = false;
    closing_cancel(region, shard);
    shard->state = TRPI_SHARD_OPENING;
    if (!region->keeps) {
        trpi_shard_opened(ctx, region, number);
        return;
    }
    if (shard->home != NULL) { /* what is told from now on waits */
        atomic_store(&shard->route, TRPI_ROUTE_REGION);
        home_forget(region, shard);
    }
    trpi_keep_open(ctx, region, number);
}

void
trpi_shard_opened(trp_ctx *ctx, trpi_region *region, uint32_t number)
{
    trpi_shard *shard = &region->shards[number];
    trpi_assert(shard->state == TRPI_SHARD_OPENING);
    shard->state = TRPI_SHARD_OWN;
    waiting_flush(ctx, region, shard);
    /* Its entries have their own targets, so the route may change at once. */
    atomic_store(&shard->route, TRPI_ROUTE_LOCAL);
    home_forget(region, shard);
    trpi_shard_open(ctx, region, shard);
    trpi_remember_open(ctx, region, number);
    trpi_remind_wait(ctx, region, number);
}

/* Its entities end, and it is given back; without a cluster it is opened again. */
void
trpi_shard_lost(trp_ctx *ctx, trpi_region *region, uint32_t number)
{
    trpi_shard *shard = &region->shards[number];
    shard->lost = true;
    trpi_shard_stop(ctx, region, number, atomic_load(&shard->epoch));
}

/* region-shard-S7 */
void
trpi_shard_give_up(trp_ctx *ctx, trpi_region *region, trpi_shard *shard, trpi_request *request)
{
    void *arg;
    bool alone = ops_of(region, &arg) == NULL;
    trpi_origin origin = { request->origin, request->epoch };
    if (!trp_ref_is_none(origin.gate)) {
        trpi_gate_return(region, ctx, &origin, request->id, request->id_bytes, request->msg);
        request->msg = NULL;
        trpi_request_free(request);
    } else if (request->kind == TRPI_REQUEST_LEFT && !alone && !region->settings.unordered &&
               !trpi_gate_is_own(request->msg)) {
        trpi_request_dead(request, TRP_DEAD_SHARD_MOVES);
    } else {
        trpi_region_keep(region, &shard->returned, request);
    }
}

void
trpi_shards_want(trp_ctx *ctx, trpi_region *region, uint32_t number)
{
    for (uint32_t i = 0; i < WANT_MAX && number < region->options.shards; i++, number++) {
        if (region->shards[number].state == TRPI_SHARD_UNKNOWN) {
            home_ask(ctx, region, number);
        }
    }
    if (number < region->options.shards) { /* behind the messages that have come meanwhile */
        trpi_region_order(ctx, region, TRPI_REQUEST_OPEN, number, 0, NULL);
    }
}

void
trpi_shard_away(trp_ctx *ctx, trpi_region *region, uint32_t number, trpi_home *home)
{
    trpi_shard *shard = &region->shards[number];
    /* region-shard-S4 */
    bool same = shard->state == TRPI_SHARD_AWAY && shard->home->epoch == home->epoch;
    if (shard->state == TRPI_SHARD_STOPPING || shard->state == TRPI_SHARD_OWN ||
        shard->state == TRPI_SHARD_OPENING || same) {
        trpi_free(home);
        return;
    }
    /* Of another home without BUFFER before: what was told to that may be on its way still. */
    atomic_store(&shard->route, TRPI_ROUTE_REGION);
    home_forget(region, shard);
    shard->state = TRPI_SHARD_AWAY;
    shard->home = home;
    shard->asked = shard->drops = false;
    closing_cancel(region, shard);
    shard->route_opening = true;
    waiting_flush(ctx, region, shard); /* region-shard-S1 */
    trpi_shard_open(ctx, region, shard);
}

/* Open what may be opened: region-O1. */
void
trpi_shard_open(trp_ctx *ctx, trpi_region *region, trpi_shard *shard)
{
    if ((shard->opening == NULL && !shard->route_opening) || atomic_load(&shard->misses) != 0) {
        return;
    }
    trpi_tell_flush(ctx);
    if (shard->route_opening) {
        atomic_store(&shard->route, TRPI_ROUTE_OPENING);
        shard->route_opening = atomic_load(&shard->misses) != 0;
        atomic_store(&shard->route,
                     shard->route_opening ? TRPI_ROUTE_REGION : (uintptr_t)shard->home);
    }
    while (shard->opening != NULL) {
        trpi_entry_wait *wait = shard->opening;
        trpi_entry *entry = wait->entry;
        trpi_assert(entry->state == TRPI_ENTRY_RUNNING);
        if (wait->front.first != NULL || wait->back.first != NULL) {
            return; /* it has ended; the request that says so is on its way */
        }
        atomic_store(&entry->target, TRPI_TARGET_OPENING);
        if (atomic_load(&shard->misses) != 0) {
            atomic_store(&entry->target, TRPI_TARGET_NONE);
            return;
        }
        shard->opening = wait->next_opening;
        entry->wait = NULL;
        trpi_free(wait);
        atomic_store(&entry->target,
                     atomic_load_explicit(&entry->incarnation, memory_order_relaxed));
        if (atomic_load_explicit(&shard->route, memory_order_relaxed) == TRPI_ROUTE_LOCAL) {
            trpi_entity_cache_put(region, entry);
        }
    }
}

static void
route_close(trpi_region *region, trpi_shard *shard)
{
    for (uint32_t i = 0; i < trpi_entry_places(&shard->entries); i++) {
        trpi_entry *entry = trpi_entry_at(&shard->entries, i);
        if (entry != NULL) {
            trpi_entity_cache_drop(region, entry); /* entity-cache-C2 */
        }
    }
    atomic_store(&shard->route, TRPI_ROUTE_REGION); /* region-O2 */
    shard->route_opening = false;
    if (!shard->closing) {
        shard->closing = true;
        shard->closing_now = false;
        region->shards_closing++;
    }
    trpi_region_grace(region);
}

/* region-shard-S3 */
static void
waiting_give_back(trp_ctx *ctx, trpi_region *region, trpi_shard *shard)
{
    trpi_request_queue own = { 0 };
    trpi_request *request;
    while ((request = trpi_region_unkeep(region, &shard->waiting)) != NULL) {
        if (!give_back(ctx, region, shard, request)) {
            trpi_request_append(&own, request);
        }
    }
    while ((request = trpi_request_take(&own)) != NULL) {
        trpi_region_keep(region, &shard->waiting, request);
    }
}

static void
fence_send(trp_ctx *ctx, trpi_region *region, uint32_t number)
{
    trpi_shard *shard = &region->shards[number];
    trpi_home *home = shard->fence;
    shard->fence = NULL;
    if (home != NULL && home->gate.node == TRPI_NODE_SELF) {
        trpi_shard_fenced(ctx, region, number, home->gate);
    } else if (home != NULL) {
        trpi_gate_fence(region, ctx, home->gate, number, false);
    }
    trpi_free(home);
}

void
trpi_shard_buffer(trp_ctx *ctx, trpi_region *region, uint32_t number)
{
    trpi_shard *shard = &region->shards[number];
    if (shard->state == TRPI_SHARD_AWAY) {
        shard->state = TRPI_SHARD_UNKNOWN;
        shard->asked = true; /* the keeper will say where it is */
    } else if (shard->state == TRPI_SHARD_OWN || shard->state == TRPI_SHARD_OPENING) {
        shard->state = TRPI_SHARD_STOPPING;
        shard->stops = false;
        waiting_give_back(ctx, region, shard);
    } else {
        shard->asked = true;
    }
    route_close(region, shard);
    home_forget(region, shard);
}

void
trpi_shard_moves(trp_ctx *ctx, trpi_region *region, uint32_t number)
{
    trpi_shard *shard = &region->shards[number];
    if (shard->state == TRPI_SHARD_AWAY) {
        shard->drops = region->settings.drops;
    }
    trpi_shard_buffer(ctx, region, number);
}

/* Ask the gate that was told, when no teller can tell it any more. Takes home. */
void
trpi_shard_fence(trp_ctx *ctx, trpi_region *region, uint32_t number, trpi_home *home)
{
    trpi_shard *shard = &region->shards[number];
    trpi_free(shard->fence);
    shard->fence = home;
    if (!shard->closing) {
        fence_send(ctx, region, number);
    }
}

void
trpi_shard_fenced(trp_ctx *ctx, trpi_region *region, uint32_t number, trp_ref gate)
{
    void *arg;
    const trpi_region_ops *ops = ops_of(region, &arg);
    if (ops != NULL) {
        (void)ops->fenced(arg, ctx, region, number, gate); /* else the engine asks again */
    }
}

static void
entities_stop(trp_ctx *ctx, trpi_region *region, trpi_shard *shard)
{
    for (uint32_t i = 0; i < trpi_entry_places(&shard->entries); i++) {
        trpi_entry *entry = trpi_entry_at(&shard->entries, i);
        if (entry == NULL) {
            continue;
        }
        if (entry->state == TRPI_ENTRY_ABSENT ||
            (entry->state == TRPI_ENTRY_FORGETTING && entry->wait->is_later)) {
            trpi_entry_settle(ctx, region, entry);
        } else if (entry->state == TRPI_ENTRY_RUNNING) {
            trpi_entry_stop(ctx, region, entry);
        }
    }
    shard->stops = true;
}

/* The order names the epoch of a shard that may not have come here (region-shard-S4). */
void
trpi_shard_stop(trp_ctx *ctx, trpi_region *region, uint32_t number, uint64_t epoch)
{
    trpi_shard *shard = &region->shards[number];
    if (shard->state == TRPI_SHARD_UNKNOWN || shard->state == TRPI_SHARD_AWAY) {
        void *arg;
        const trpi_region_ops *ops = ops_of(region, &arg);
        if (ops != NULL) { /* region-shard-S4 */
            (void)ops->stopped(arg, ctx, region, number, epoch);
        }
        return;
    }
    if (shard->state == TRPI_SHARD_OWN || shard->state == TRPI_SHARD_OPENING) {
        shard->drops = region->settings.drops && !shard->lost;
        trpi_shard_buffer(ctx, region, number);
    }
    if (shard->state != TRPI_SHARD_STOPPING || shard->stops) {
        trpi_shard_look(ctx, region, number);
        return;
    }
    shard->wants_stop = true;
    if (!shard->closing) {
        entities_stop(ctx, region, shard);
        trpi_shard_look(ctx, region, number);
    }
}

void
trpi_shard_stop_now(trp_ctx *ctx, trpi_region *region, uint32_t number)
{
    trpi_shard *shard = &region->shards[number];
    for (uint32_t i = 0; i < trpi_entry_places(&shard->entries); i++) {
        const trpi_entry *entry = trpi_entry_at(&shard->entries, i);
        if (entry != NULL && trpi_entry_ref(entry).generation != 0) {
            trp_stop(ctx, trpi_entry_ref(entry));
        }
    }
    trpi_shard_look(ctx, region, number); /* what it said before may have been lost */
}

void
trpi_shard_graced(trp_ctx *ctx, trpi_region *region, uint32_t number)
{
    trpi_shard *shard = &region->shards[number];
    if (!shard->closing || !shard->closing_now) {
        return;
    }
    closing_cancel(region, shard);
    if (shard->state == TRPI_SHARD_STOPPING && shard->wants_stop) {
        entities_stop(ctx, region, shard); /* region-shard-S2 */
    }
    fence_send(ctx, region, number);
    trpi_shard_look(ctx, region, number);
}

void
trpi_shard_look(trp_ctx *ctx, trpi_region *region, uint32_t number)
{
    trpi_shard *shard = &region->shards[number];
    void *arg;
    const trpi_region_ops *ops = ops_of(region, &arg);
    if (shard->state != TRPI_SHARD_STOPPING || !shard->stops || shard->entries.count > 0 ||
        !trpi_keep_close(region, shard)) {
        return;
    }
    if (ops != NULL && !ops->stopped(arg, ctx, region, number, atomic_load(&shard->epoch))) {
        return; /* it is told to stop again: trpi_shard_stop_now() */
    }
    bool lost = shard->lost;
    shard->state = TRPI_SHARD_UNKNOWN;
    shard->stops = shard->wants_stop = shard->lost = false;
    shard->asked = ops != NULL; /* where it is next is said without being asked */
    if (ops != NULL) {
        return;
    }
    if (lost) {
        shard->state = TRPI_SHARD_OPENING;
        trpi_keep_open_later(region, number);
    } else if (shard->waiting.first != NULL || region->remembers) {
        home_ask(ctx, region, number);
    }
}
