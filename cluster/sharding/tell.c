/* tell.c - telling entities: on the teller's thread, without a lock.
 *
 * Why.     An entity that lives here is to cost hardly more than an actor: its id is hashed, one
 *          line of memory is read (entity_cache.h), and its cell is told. The region's actor sees
 *          the rest: ids that do not live, and shards that are on the move.
 * Shape.   trp_entity_tell -> cached target ------------------------> the cell
 *                          -> shard's route -> LOCAL: entry's target -> the cell
 *                                           -> a home: the gate of that node
 *                                           -> REGION, no target: a request of the region's actor
 * Must hold.
 *   region-O1  The order of a sender. A teller that misses counts itself in the shard's misses,
 *       and then looks again (seq_cst). The region sets target or route to OPENING, and then looks
 *       at misses (seq_cst): only when there are none does it set the new value, after it has
 *       pushed all that it had. So nobody finds the short way while an earlier message of its own
 *       is on the long one.
 *   region-O2  The other direction is closed by a grace period: target or route is set to NONE or
 *       REGION; when all runs that were under way have ended, all that was told directly is in
 *       the mailbox, or in the lane.
 * Cost.    No allocation beyond the message on the short way; one request more on the long one. To
 *          another node: none here, one there.
 * Tests.   tests/unit/cluster/entity_test.c, tests/bench (entity)
 */
#include <string.h>

#include "base/atomics.h"
#include "base/hash.h"
#include "cluster/sharding/region.h"

uint64_t
trp_entity_type(const char *name)
{
    return name == NULL ? 0 : trpi_hash_text(name);
}

uint32_t
trpi_region_shard_of(const trpi_region *region, uint64_t hash, const void *id, size_t id_bytes)
{
    uint32_t shards = region->options.shards;
    if (UNLIKELY(region->options.shard != NULL)) {
        uint32_t number = region->options.shard(id, id_bytes, shards);
        return number < shards ? number : number % shards;
    }
    return (uint32_t)(((hash >> 32) * shards) >> 32);
}

static inline bool
is_valid(const trp_entity *entity)
{
    return entity->id_bytes > 0 && entity->id_bytes <= TRP_ENTITY_ID_BYTES_MAX;
}

/* By one line of memory, without the shard; NONE: it is to be looked up. entity-cache-C2 */
static inline __attribute__((always_inline)) uint64_t
target_cached(const trpi_region *region, uint64_t hash, const void *id, size_t id_bytes)
{
    /* acquire: pairs with the release in cache_grow() */
    return trpi_entity_cache_find(atomic_load_explicit(&region->cache, memory_order_acquire), hash,
                                  id, id_bytes,
                                  atomic_load_explicit(&region->clock, memory_order_relaxed));
}

/* The target of a live entity of this node; else NONE or OPENING. */
static inline uint64_t
target_of(const trpi_region *region, const trpi_shard *shard, uint64_t hash, const void *id,
          size_t id_bytes)
{
    trpi_entry *entry = trpi_entry_find(&shard->entries, hash, id, id_bytes);
    if (entry == NULL) {
        return TRPI_TARGET_NONE;
    }
    uint32_t clock = atomic_load_explicit(&region->clock, memory_order_relaxed);
    if (atomic_load_explicit(&entry->used, memory_order_relaxed) != clock) {
        atomic_store_explicit(&entry->used, clock, memory_order_relaxed);
    }
    return atomic_load(&entry->target); /* seq_cst: region-O1 */
}

static void
region_ask(trpi_region *region, trp_ctx *ctx, trpi_shard *shard, uint64_t hash, const void *id,
           size_t id_bytes, const trpi_origin *origin, trp_msg *msg)
{
    trpi_request *request =
        trpi_request_new(region->system, TRPI_REQUEST_MISS, NULL, id, id_bytes, msg);
    if (request == NULL || atomic_load_explicit(&region->closed, memory_order_acquire)) {
        trp_ref nobody = TRP_REF_NONE;
        atomic_fetch_sub(&shard->misses, 1);
        trpi_dead_letter_msg(region->system, nobody, msg,
                             request == NULL ? TRP_DEAD_NO_MEMORY : TRP_DEAD_STOPPED);
        if (request == NULL) {
            trpi_msg_drop(msg);
        }
        trpi_request_free(request);
        return;
    }
    request->hash = hash;
    request->shard = (uint32_t)(shard - region->shards);
    if (origin != NULL) {
        request->origin = origin->gate;
        request->epoch = origin->epoch;
    }
    trpi_request_tell(ctx, region, request);
}

/* Is a message from there taken, if its entity lives? */
static inline bool
is_taken(const trpi_shard *shard, const trpi_origin *origin)
{
    /* acquire: an outdated route or epoch is closed by a grace period (region-O2) */
    return origin == NULL ||
           (atomic_load_explicit(&shard->route, memory_order_acquire) == TRPI_ROUTE_LOCAL &&
            atomic_load_explicit(&shard->epoch, memory_order_acquire) == origin->epoch);
}

void
trpi_entity_pass(trpi_region *region, trp_ctx *ctx, const void *id, size_t id_bytes,
                 const trpi_origin *origin, trp_msg *msg)
{
    uint64_t hash = trpi_hash(id, id_bytes, 0);
    trpi_shard *shard = &region->shards[trpi_region_shard_of(region, hash, id, id_bytes)];
    if (LIKELY(is_taken(shard, origin) && !trp_msg_is(msg, &trpi_reminder_order_type))) {
        uint64_t cached = target_cached(region, hash, id, id_bytes);
        if (LIKELY(cached >= TRPI_TARGET_LEAST &&
                   trpi_send_live(ctx, (uint32_t)cached, (uint32_t)(cached >> 32), msg))) {
            return;
        }
    }
    for (;;) {
        atomic_fetch_add(&shard->misses, 1); /* region-O1 */
        uintptr_t route = atomic_load(&shard->route);
        uint64_t target = route == TRPI_ROUTE_LOCAL && !trp_msg_is(msg, &trpi_reminder_order_type)
                              ? target_of(region, shard, hash, id, id_bytes)
                              : TRPI_TARGET_NONE; /* the region carries orders out */
        if (origin != NULL &&
            (route != TRPI_ROUTE_LOCAL || atomic_load(&shard->epoch) != origin->epoch)) {
            /* The region alone gives back: one order of what goes back. region-shard-S3 */
            region_ask(region, ctx, shard, hash, id, id_bytes, origin, msg);
            return;
        }
        if (route > TRPI_ROUTE_OPENING) {
            const trpi_home *home = (const trpi_home *)route;
            atomic_fetch_sub(&shard->misses, 1);
            trpi_gate_send(region, ctx, home->gate, home->epoch, id, id_bytes, msg);
            return;
        }
        if (route != TRPI_ROUTE_OPENING && target != TRPI_TARGET_OPENING) {
            if (target >= TRPI_TARGET_LEAST &&
                trpi_send_live(ctx, (uint32_t)target, (uint32_t)(target >> 32), msg)) {
                atomic_fetch_sub(&shard->misses, 1);
                return;
            }
            region_ask(region, ctx, shard, hash, id, id_bytes, origin,
                       msg); /* or it has just ended */
            return;
        }
        atomic_fetch_sub(&shard->misses, 1);
        trpi_cpu_relax(); /* for some instructions of the region */
    }
}

typedef struct arrival {
    const trpi_region *region;
    const trpi_shard *shard;
    uint64_t hash, target;
} arrival;

static const trpi_entity_envelope *
head_of(const trpi_carrier *what)
{
    return what->head;
}

/* Find the shards; returns how many, from the first on. The memory that the next step reads is
 * loaded meanwhile. */
static uint32_t
arrivals_find(const trpi_sharding *sharding, const trpi_carrier *what, uint32_t count,
              arrival *ret_arrivals)
{
    const trpi_region *region = NULL;
    for (uint32_t i = 0; i < count; i++) {
        const trpi_entity_envelope *head = head_of(&what[i]);
        arrival *a = &ret_arrivals[i];
        if (region == NULL || region->type != head->entity_type) {
            region = trpi_region_find(sharding, head->entity_type);
        }
        if (region == NULL || what[i].inner == &trpi_reminder_order_type) {
            return i;
        }
        a->region = region;
        a->hash = trpi_hash(what[i].name, head->id_bytes, 0);
        a->shard =
            &region->shards[trpi_region_shard_of(region, a->hash, what[i].name, head->id_bytes)];
        __builtin_prefetch(&a->shard->route);
        /* acquire: pairs with the release in cache_grow() */
        trpi_entity_cache_prefetch(atomic_load_explicit(&region->cache, memory_order_acquire),
                                   a->hash);
    }
    return count;
}

/* Find the live entities of this node, in the same way. */
static uint32_t
arrivals_look(trp_ctx *ctx, const trpi_carrier *what, uint32_t count, arrival *arrivals)
{
    for (uint32_t i = 0; i < count; i++) {
        const trpi_entity_envelope *head = head_of(&what[i]);
        arrival *a = &arrivals[i];
        trpi_origin origin = { head->gate, head->epoch };
        if (!is_taken(a->shard, &origin)) {
            return i;
        }
        a->target = target_cached(a->region, a->hash, what[i].name, head->id_bytes);
        if (a->target < TRPI_TARGET_LEAST) {
            a->target = target_of(a->region, a->shard, a->hash, what[i].name, head->id_bytes);
        }
        if (a->target < TRPI_TARGET_LEAST) {
            return i;
        }
        trpi_live_prefetch(ctx, (uint32_t)a->target);
    }
    return count;
}

/* Three times through all of them: each would wait for its lines of memory alone. A target that was
 * read stays good for this run (region-O2). The first one that has none ends it: a later one for
 * the same entity would overtake it. */
uint32_t
trpi_entities_arrived(const trpi_sharding *sharding, trp_ctx *ctx, trp_ref sender,
                      const trpi_carrier *what, uint32_t count)
{
    arrival arrivals[TRPI_ARRIVALS_MAX];
    uint32_t told = 0;
    count = arrivals_find(sharding, what, count, arrivals);
    count = arrivals_look(ctx, what, count, arrivals);
    while (told < count &&
           trpi_tell_live_as(ctx, (uint32_t)arrivals[told].target,
                             (uint32_t)(arrivals[told].target >> 32), sender, what[told].inner,
                             what[told].payload, what[told].bytes)) {
        told++;
    }
    return told;
}

static NOINLINE void
tell_long(trp_ctx *ctx, trp_ref sender, const trp_entity *entity, trpi_region *region,
          const trp_type *type, const void *payload, size_t bytes)
{
    if (region == NULL || !is_valid(entity)) {
        trp_ref nobody = TRP_REF_NONE;
        trpi_tell(ctx, nobody, sender, type, payload, bytes); /* a dead letter */
        return;
    }
    trp_msg *msg = trpi_tell_prepare(ctx, sender, type, payload, bytes);
    if (msg != NULL) {
        trpi_entity_pass(region, ctx, entity->id, entity->id_bytes, NULL, msg);
    }
}

void
trp_entity_tell(trp_ctx *ctx, const trp_entity *entity, const trp_type *type, const void *payload,
                size_t bytes)
{
    const trpi_sharding *sharding = trpi_ctx_entities(ctx);
    trpi_region *region = sharding == NULL ? NULL : trpi_region_find(sharding, entity->type);
    if (LIKELY(region != NULL && is_valid(entity))) {
        uint64_t hash = trpi_hash(entity->id, entity->id_bytes, 0);
        uint64_t cached = target_cached(region, hash, entity->id, entity->id_bytes);
        if (LIKELY(cached >= TRPI_TARGET_LEAST &&
                   trpi_tell_live(ctx, (uint32_t)cached, (uint32_t)(cached >> 32), type, payload,
                                  bytes))) {
            return;
        }
        const trpi_shard *shard =
            &region->shards[trpi_region_shard_of(region, hash, entity->id, entity->id_bytes)];
        /* acquire: an outdated route is closed by a grace period (region-O2) */
        uintptr_t route = atomic_load_explicit(&shard->route, memory_order_acquire);
        if (LIKELY(route == TRPI_ROUTE_LOCAL)) {
            uint64_t target = target_of(region, shard, hash, entity->id, entity->id_bytes);
            if (LIKELY(target >= TRPI_TARGET_LEAST &&
                       trpi_tell_live(ctx, (uint32_t)target, (uint32_t)(target >> 32), type,
                                      payload, bytes))) {
                return;
            }
        } else if (route > TRPI_ROUTE_OPENING) {
            const trpi_home *home = (const trpi_home *)route;
            trpi_gate_tell(region, ctx, home->gate, home->epoch, entity->id, entity->id_bytes, type,
                           payload, bytes);
            return;
        }
    }
    tell_long(ctx, trp_self(ctx), entity, region, type, payload, bytes);
}

/* A message to an entity from outside of actors. */
typedef struct outside {
    const trp_entity *entity;
    const trp_type *type;
    const void *payload;
    size_t bytes;
} outside;

static trp_err
outside_tell(trp_ctx *ctx, void *arg)
{
    const outside *o = arg;
    trp_ref nobody = TRP_REF_NONE;
    const trpi_sharding *sharding = trpi_ctx_entities(ctx);
    tell_long(ctx, nobody, o->entity,
              sharding == NULL ? NULL : trpi_region_find(sharding, o->entity->type), o->type,
              o->payload, o->bytes);
    return TRP_OK;
}

trp_err
trpi_system_entity_tell(trp_system *system, const trp_entity *entity, const trp_trace *trace,
                        const trp_type *type, const void *payload, size_t bytes)
{
    if (system == NULL || entity == NULL || !is_valid(entity) || type == NULL) {
        return TRP_EINVAL;
    }
    outside o = { entity, type, payload, bytes };
    trp_ctx *ctx = trpi_enter(system);
    trp_err err =
        trace != NULL ? trpi_in_trace(ctx, trace, outside_tell, &o) : outside_tell(ctx, &o);
    trpi_leave(ctx);
    return err;
}

trp_err
trp_system_entity_tell(trp_system *system, const trp_entity *entity, const trp_type *type,
                       const void *payload, size_t bytes)
{
    return trpi_system_entity_tell(system, entity, NULL, type, payload, bytes);
}

static void
send_as(trp_ctx *ctx, const trp_entity *entity, trp_msg *msg)
{
    const trpi_sharding *sharding = trpi_ctx_entities(ctx);
    trpi_region *region = sharding == NULL ? NULL : trpi_region_find(sharding, entity->type);
    if (region == NULL || !is_valid(entity)) {
        trp_ref nobody = TRP_REF_NONE;
        trpi_send(ctx, nobody, msg); /* a dead letter */
        return;
    }
    trpi_entity_pass(region, ctx, entity->id, entity->id_bytes, NULL, trpi_trail_put(ctx, msg));
}

void
trp_entity_send(trp_ctx *ctx, const trp_entity *entity, trp_msg *msg)
{
    trpi_msg_sign(msg, trp_self(ctx));
    send_as(ctx, entity, msg);
}

void
trp_entity_forward(trp_ctx *ctx, const trp_entity *entity, const trp_msg *msg)
{
    trp_msg *copy;
    if (trp_msg_dup(msg, &copy) != TRP_OK) {
        trp_ref nobody = TRP_REF_NONE;
        trpi_dead(ctx, nobody, msg, TRP_DEAD_NO_MEMORY);
        return;
    }
    send_as(ctx, entity, copy);
}
