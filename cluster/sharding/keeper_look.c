/* keeper_look.c - what a node knows of the shards of each type, for status and the command line.
 *
 * Threads. Any; the keeper's lock is held meanwhile, a call of the listener included.
 * Tests.   tests/sim/entities_test.c, tests/system/cli_fake.sh, tests/unit/node/doctor_hangs_test.c
 */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "cluster/sharding/keeper.h"

static void
address_write(const trpi_node_id *id, char text[TRP_ADDRESS_BYTES])
{
    (void)trpi_address_format(&id->address, text, TRP_ADDRESS_BYTES);
}

static uint64_t
age_ms(const trpi_keeper *keeper, uint64_t since_ms)
{
    uint64_t now_ms = trpi_keeper_now_ms(keeper);
    return now_ms > since_ms ? now_ms - since_ms : 0;
}

/* Write what the coordinator waits for as a sentence. */
static void
wait_write(const trpi_coordinator_wait *wait, uint64_t now_ms, char *text, size_t bytes)
{
    char node[TRP_ADDRESS_BYTES];
    uint64_t left_ms = wait->until_ms > now_ms ? wait->until_ms - now_ms : 0;
    address_write(&wait->node, node);
    switch (wait->kind) {
    case TRPI_COORDINATOR_WAIT_ANSWER:
        (void)snprintf(text, bytes, "%s has not said what it hosts", node);
        break;
    case TRPI_COORDINATOR_WAIT_TAKEOVER:
        (void)snprintf(text, bytes, "%s was removed: what it hosted may start elsewhere in %llu ms",
                       node, (unsigned long long)left_ms);
        break;
    case TRPI_COORDINATOR_WAIT_MEMBERS:
        (void)snprintf(text, bytes, "fewer nodes than members_min have started the type");
        break;
    case TRPI_COORDINATOR_WAIT_BEGIN:
        (void)snprintf(text, bytes, "shard %u moves: %s still sends to its old home", wait->shard,
                       node);
        break;
    case TRPI_COORDINATOR_WAIT_STOP:
        (void)snprintf(text, bytes, "shard %u moves: its entities on %s have not ended",
                       wait->shard, node);
        break;
    case TRPI_COORDINATOR_WAIT_START:
        (void)snprintf(text, bytes, "shard %u: %s has not taken it", wait->shard, node);
        break;
    case TRPI_COORDINATOR_WAIT_UNDRAIN:
        (void)snprintf(text, bytes,
                       "shard %u has no home: every node that hosts the type is drained; start "
                       "another, or: troupe undrain %s",
                       wait->shard, node);
        break;
    default:
        (void)snprintf(text, bytes, "%s still sends to a member that leaves", node);
        break;
    }
}

static void
waits_look(const trpi_keeper *keeper, const trpi_coordinator *coordinator,
           trpi_sharding_status *status)
{
    uint64_t now_ms = trpi_keeper_now_ms(keeper);
    trpi_coordinator_wait wait;
    uint32_t at = 0;
    while (trpi_coordinator_waits(coordinator, &at, &wait)) {
        uint64_t for_ms = age_ms(keeper, wait.since_ms);
        if (status->waits_count++ == 0 || for_ms > status->waits_ms) { /* the oldest one */
            status->waits_ms = for_ms;
            wait_write(&wait, now_ms, status->waits, sizeof status->waits);
        }
    }
}

static const char *
region_state(const trpi_coordinator_region_info *info)
{
    return info->refused     ? "refused"
           : !info->answered ? "no answer"
           : info->leaving   ? "leaving"
           : info->drained   ? "drained"
           : info->hosts     ? "hosts"
                             : "tells only";
}

/* The regions, as the coordinator of this node knows them. */
static uint32_t
homes_look(const trpi_coordinator *coordinator, trpi_sharding_home **ret_homes)
{
    trpi_coordinator_region_info info;
    uint32_t count = 0, filled = 0;
    while (trpi_coordinator_region(coordinator, count, &info)) {
        count++;
    }
    trpi_sharding_home *homes = trpi_alloc((count + 1) * sizeof *homes);
    while (homes != NULL && filled < count && trpi_coordinator_region(coordinator, filled, &info)) {
        address_write(&info.node, homes[filled].node);
        homes[filled].shards = info.shards;
        homes[filled++].state = region_state(&info);
    }
    *ret_homes = homes;
    return filled;
}

static void
type_look(const trpi_keeper *keeper, const trpi_keeper_type *type, trpi_sharding_each_fn fn,
          void *arg)
{
    trpi_sharding_status status = { .type = type->name, .role = type->role, .why = type->why };
    trpi_sharding_home *homes = NULL;
    trpi_node_id node;
    trpi_shard_term term;
    bool registered = false;
    const trpi_region *region = type->region;
    if (region != NULL) {
        status.started = true;
        status.hosts = region->options.behaviour != NULL;
        status.shards = region->options.shards;
        status.entities = atomic_load_explicit(&region->live, memory_order_relaxed);
        status.kept = atomic_load_explicit(&region->waiting_msgs, memory_order_relaxed);
    }
    status.here = trpi_region_core_hosted(type->core);
    if (trpi_region_core_coordinator(type->core, &node, &term, &registered)) {
        address_write(&node, status.coordinator);
    }
    status.registered = registered;
    uint64_t since_ms = 0;
    status.homeless_count = trpi_region_core_homeless(type->core, &since_ms);
    status.homeless_ms = status.homeless_count > 0 ? age_ms(keeper, since_ms) : 0;
    if (type->coordinator != NULL && trpi_coordinator_is_active(type->coordinator)) {
        status.coordinates = true;
        status.ready = trpi_coordinator_is_ready(type->coordinator);
        status.shards = trpi_coordinator_shards(type->coordinator);
        status.coordinator_ms = age_ms(keeper, trpi_coordinator_since_ms(type->coordinator));
        address_write(&keeper->self, status.coordinator);
        status.homes_count = homes_look(type->coordinator, &homes);
        status.homes = homes;
        waits_look(keeper, type->coordinator, &status);
    }
    fn(arg, &status);
    trpi_free(homes);
}

void
trpi_sharding_each(trp_system *system, trpi_sharding_each_fn fn, void *arg)
{
    trpi_keeper *keeper = trpi_keeper_of(system);
    if (keeper == NULL) {
        return;
    }
    pthread_mutex_lock(&keeper->lock);
    for (const trpi_keeper_type *type = keeper->types; type != NULL; type = type->next) {
        type_look(keeper, type, fn, arg);
    }
    pthread_mutex_unlock(&keeper->lock);
}

bool
trpi_sharding_problem(const trpi_sharding_status *status, uint64_t least_ms, char *text,
                      size_t bytes)
{
    if (status->why[0] != '\0') {
        (void)snprintf(text, bytes, "entities of %s are refused: %s", status->type, status->why);
    } else if (status->waits_count > 0 && status->waits_ms >= least_ms) {
        (void)snprintf(text, bytes, "shards of %s wait for %llu s: %s", status->type,
                       (unsigned long long)status->waits_ms / 1000, status->waits);
    } else if (status->homeless_count > 0 && status->homeless_ms >= least_ms) {
        bool known = status->coordinator[0] != '\0';
        (void)snprintf(
            text, bytes, "messages for %u shards of %s wait on this node for %llu s: %s%s",
            status->homeless_count, status->type, (unsigned long long)status->homeless_ms / 1000,
            known ? status->coordinator : "no member coordinates the type",
            known ? ", which coordinates the type, has given them no home" : "");
    } else {
        return false;
    }
    return true;
}

trp_err
trpi_sharding_rebalance(trp_system *system, const char *name)
{
    trpi_keeper *keeper = trpi_keeper_of(system);
    const trpi_region *region =
        keeper == NULL ? NULL : trpi_region_find(keeper->sharding, trp_entity_type(name));
    if (region == NULL) {
        return TRP_ENOENT;
    }
    trpi_keeper_event *event = trpi_keeper_event_new(keeper, TRPI_KEEPER_REBALANCE, NULL, 0);
    if (event == NULL) {
        return TRP_ENOMEM;
    }
    event->region = (trpi_region *)(uintptr_t)region;
    trpi_keeper_put(keeper, event);
    return TRP_OK;
}

/* With the lock of a run, so that what it finds stays: the entry, and whether it lives. */
static bool
is_alive(const trpi_region *region, uint32_t shard, uint64_t hash, const void *id, size_t id_bytes)
{
    const trpi_entry *entry = trpi_entry_find(&region->shards[shard].entries, hash, id, id_bytes);
    return entry != NULL && atomic_load(&entry->target) >= TRPI_TARGET_LEAST;
}

trp_err
trpi_sharding_find(trp_system *system, const char *name, const void *id, size_t id_bytes,
                   trpi_sharding_place *ret_place)
{
    const trpi_sharding *sharding = trpi_system_entities(system);
    const trpi_region *region =
        sharding == NULL ? NULL : trpi_region_find(sharding, trp_entity_type(name));
    trpi_keeper *keeper = trpi_keeper_of(system);
    trpi_region_shard_info info = { .place = TRPI_SHARD_PLACE_OWN };
    if (id_bytes == 0 || id_bytes > TRP_ENTITY_ID_BYTES_MAX) {
        return TRP_EINVAL;
    }
    if (region == NULL) {
        return TRP_ENOENT;
    }
    memset(ret_place, 0, sizeof *ret_place);
    uint64_t hash = trpi_hash(id, id_bytes, 0);
    ret_place->shard = trpi_region_shard_of(region, hash, id, id_bytes);
    if (keeper != NULL) {
        pthread_mutex_lock(&keeper->lock);
        const trpi_keeper_type *type = trpi_keeper_find(keeper, name);
        if (type != NULL) {
            (void)trpi_region_core_shard(type->core, ret_place->shard, &info);
        }
        pthread_mutex_unlock(&keeper->lock);
        address_write(info.place == TRPI_SHARD_PLACE_AWAY ? &info.node : &keeper->self,
                      ret_place->node);
    }
    ret_place->here = info.place >= TRPI_SHARD_PLACE_OPENING;
    ret_place->moves =
        info.place == TRPI_SHARD_PLACE_OPENING || info.place == TRPI_SHARD_PLACE_STOPPING;
    ret_place->known = info.place != TRPI_SHARD_PLACE_UNKNOWN;
    trp_ctx *ctx = trpi_enter(system);
    ret_place->alive = ret_place->here && is_alive(region, ret_place->shard, hash, id, id_bytes);
    trpi_leave(ctx);
    return TRP_OK;
}

/* ---- how many live --------------------------------------------------------------------------- */

/* Between trpi_enter() and trpi_leave(), so that no table goes away meanwhile. */
static uint32_t
live_count(const trpi_region *region, uint32_t shard)
{
    const trpi_entry_slots *slots =
        atomic_load_explicit(&region->shards[shard].entries.slots, memory_order_acquire);
    uint32_t count = 0;
    for (uint32_t i = 0; slots != NULL && i <= slots->mask; i++) {
        uint64_t value = atomic_load_explicit(&slots->slots[i], memory_order_acquire);
        if (value != 0 && value != TRPI_ENTRY_TOMBSTONE) {
            const trpi_entry *entry = (const trpi_entry *)(uintptr_t)(value & TRPI_ENTRY_POINTER);
            count += atomic_load(&entry->target) >= TRPI_TARGET_LEAST;
        }
    }
    return count;
}

/* Mark the shards that are here, one byte each. */
static void
own_mark(trpi_keeper *keeper, const char *name, uint8_t *is_here, uint32_t shards)
{
    pthread_mutex_lock(&keeper->lock);
    const trpi_keeper_type *type = trpi_keeper_find(keeper, name);
    for (uint32_t i = 0; type != NULL && i < shards; i++) {
        trpi_region_shard_info info = { .place = TRPI_SHARD_PLACE_UNKNOWN };
        (void)trpi_region_core_shard(type->core, i, &info);
        is_here[i] = info.place >= TRPI_SHARD_PLACE_OPENING;
    }
    pthread_mutex_unlock(&keeper->lock);
}

trp_err
trpi_sharding_counts(trp_system *system, const char *name, trpi_sharding_count_fn fn, void *arg)
{
    const trpi_sharding *sharding = trpi_system_entities(system);
    const trpi_region *region =
        sharding == NULL ? NULL : trpi_region_find(sharding, trp_entity_type(name));
    trpi_keeper *keeper = trpi_keeper_of(system);
    if (region == NULL) {
        return TRP_ENOENT;
    }
    uint32_t shards = region->options.shards;
    uint8_t *is_here = trpi_alloc(shards);
    if (is_here == NULL) {
        return TRP_ENOMEM;
    }
    if (keeper != NULL) {
        own_mark(keeper, name, is_here, shards);
    } else {
        memset(is_here, 1, shards); /* without a cluster all are here */
    }
    for (uint32_t i = 0; i < shards; i++) {
        if (is_here[i]) {
            trp_ctx *ctx = trpi_enter(system);
            uint32_t count = live_count(region, i);
            trpi_leave(ctx);
            fn(arg, i, count);
        }
    }
    trpi_free(is_here);
    return TRP_OK;
}
