/* region_remember.c - entities that are to live: noted before their first message, started again
 * where their shard is, and forgotten when they are passivated.
 *
 * Why.     An entity with timers or work of its own must not wait for a message after a crash.
 * Shape.   first message -> NOTING --the journal has it--> start
 *          passivated by hand, ended, nothing waits -> FORGETTING --done--> gone
 *          ended otherwise -> started again after the back-off
 *          shard opened -> entries that restart -> started, RESTARTING_BYTES_MAX at once
 * Must hold.
 *   region-remember-M1  An entity that handles a message is in the journal.
 *   region-remember-M2  Only what was passivated is taken out of it, and only while its shard is
 *       not being handed off: a hand-off, a failure or a crash forgets nothing.
 *   region-remember-M3  Those that recover at once, each counted with its state, take at most
 *       RESTARTING_BYTES_MAX; the next ones start as they are done, as fast as the journal reads.
 * Limits.  RESTARTING_BYTES_MAX, TURN_BYTES_MAX. A shard remembers TRPI_SHARD_STORE_BYTES_MAX.
 * Tests.   tests/unit/cluster/entity_remember_test.c
 */
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/hash.h"
#include "cluster/sharding/region.h"
#include "persistence/persistence.h"

enum {
    RESTARTING_BYTES_MAX = 4 << 20,
    TURN_BYTES_MAX = 256 << 10 /* then others have the thread */
};

static trpi_shard_store *
store_of(const trpi_region *region, uint32_t number)
{
    const trpi_shard_keep *keep = region->shards[number].keep;
    return keep == NULL ? NULL : keep->store;
}

static bool
is_on(const trpi_region *region)
{
    return region->options.remember_entities != 0;
}

bool
trpi_entry_is_remembered(const trpi_region *region, const trpi_entry *entry)
{
    const trpi_shard_store *store = is_on(region) ? store_of(region, entry->shard) : NULL;
    char name[TRPI_ENTITY_NAME_BYTES];
    return store != NULL && trpi_entity_name(entry->id, entry->id_bytes, name) > 0 &&
           trpi_shard_store_remembers(store, name);
}

/* ---- noting and forgetting ------------------------------------------------------------------- */

static trp_err
change_begin(trp_ctx *ctx, trpi_region *region, const trpi_entry *entry, bool add)
{
    trpi_shard_keep *keep = region->shards[entry->shard].keep;
    char name[TRPI_ENTITY_NAME_BYTES];
    if (keep == NULL || keep->store == NULL ||
        trpi_entity_name(entry->id, entry->id_bytes, name) == 0) {
        return TRP_ESTATE;
    }
    trp_err err = add ? trpi_shard_store_add(keep->store, name, 0)
                      : trpi_shard_store_remove(keep->store, name, 0);
    if (err == TRP_OK) {
        trpi_keep_go_on(ctx, keep);
    }
    return err;
}

/* The shard is lost: what waits for the entry waits for the shard. */
static void
entry_give_up(trpi_region *region, trpi_entry *entry)
{
    trpi_shard *shard = &region->shards[entry->shard];
    trpi_request *request;
    while ((request = trpi_request_take(&entry->wait->front)) != NULL ||
           (request = trpi_request_take(&entry->wait->back)) != NULL) {
        request->origin = (trp_ref)TRP_REF_NONE; /* it was taken here */
        trpi_request_append(&shard->returned, request);
    }
    entry->state = TRPI_ENTRY_ABSENT;
    trpi_entry_forget(region, entry);
}

static void
change_failed(trpi_region *region, trpi_entry *entry, trp_err err, const char *why)
{
    const trpi_shard_store *store = store_of(region, entry->shard);
    if (store == NULL || trpi_shard_store_state_get(store) != TRPI_SHARD_STORE_READY) {
        entry_give_up(region, entry);
        return;
    }
    trpi_log(region->system, TRP_LOG_WARNING, "sharding",
             "entity not %s type=%s shard=%u reason=\"%s\" next=\"it is tried again\"",
             entry->state == TRPI_ENTRY_NOTING ? "noted" : "forgotten", region->name, entry->shard,
             why[0] != '\0' ? why : trp_strerror(err));
    entry->failures = (uint8_t)(entry->failures < UINT8_MAX ? entry->failures + 1 : UINT8_MAX);
    if (entry->state == TRPI_ENTRY_NOTING) {
        entry->state = TRPI_ENTRY_ABSENT;
    }
    trpi_entry_start_later(region, entry);
}

void
trpi_entry_begin(trp_ctx *ctx, trpi_region *region, trpi_entry *entry)
{
    trpi_assert(entry->state == TRPI_ENTRY_ABSENT && !entry->wait->is_later);
    if (!is_on(region) || trpi_entry_is_remembered(region, entry)) {
        trpi_entry_start(ctx, region, entry);
        return;
    }
    entry->state = TRPI_ENTRY_NOTING; /* region-remember-M1 */
    trp_err err = change_begin(ctx, region, entry, true);
    if (err != TRP_OK) {
        change_failed(region, entry, err, "");
    }
}

void
trpi_entry_let_go(trp_ctx *ctx, trpi_region *region, trpi_entry *entry)
{
    if (trpi_entry_has_waiting(entry)) {
        trpi_entry_begin(ctx, region, entry);
        return;
    }
    if (!trpi_entry_is_remembered(region, entry)) {
        trpi_entry_forget(region, entry);
        return;
    }
    entry->state = TRPI_ENTRY_FORGETTING;
    trp_err err = change_begin(ctx, region, entry, false);
    if (err != TRP_OK) {
        change_failed(region, entry, err, "");
    }
}

void
trpi_entry_noted(trp_ctx *ctx, trpi_region *region, uint32_t number,
                 const trpi_shard_effect *effect)
{
    const trpi_shard *shard = &region->shards[number];
    char id[TRP_ENTITY_ID_BYTES_MAX];
    size_t id_bytes = trpi_entity_unname(effect->id, id);
    trpi_entry *entry = trpi_entry_find(&shard->entries, trpi_hash(id, id_bytes, 0), id, id_bytes);
    bool add = effect->kind == TRPI_SHARD_ADD;
    if (entry == NULL || entry->state != (add ? TRPI_ENTRY_NOTING : TRPI_ENTRY_FORGETTING)) {
        return;
    }
    if (effect->err != TRP_OK) {
        change_failed(region, entry, effect->err, effect->why);
        return;
    }
    entry->state = TRPI_ENTRY_ABSENT;
    if (!add) {
        trpi_entry_let_go(ctx, region, entry);
        return;
    }
    trpi_entry_start(ctx, region, entry);
    if (shard->state == TRPI_SHARD_STOPPING && entry->state == TRPI_ENTRY_RUNNING) {
        trpi_entry_stop(ctx, region, entry); /* it was told here, and is handled here */
    }
}

/* ---- starting again -------------------------------------------------------------------------- */

void
trpi_entry_restarts_clear(trpi_region *region, trpi_entry *entry)
{
    if (entry->restarts) {
        entry->restarts = false;
        region->shards[entry->shard].restarts--;
        region->restarts--;
    }
}

void
trpi_remember_open(trp_ctx *ctx, trpi_region *region, uint32_t number)
{
    trpi_shard *shard = &region->shards[number];
    const trpi_shard_store *store = is_on(region) ? store_of(region, number) : NULL;
    uint32_t position = 0, others = 0;
    const char *name;
    while (store != NULL && (name = trpi_shard_store_entity(store, &position)) != NULL) {
        char id[TRP_ENTITY_ID_BYTES_MAX];
        size_t id_bytes = trpi_entity_unname(name, id);
        uint64_t hash = trpi_hash(id, id_bytes, 0);
        if (id_bytes == 0 || trpi_region_shard(region, hash, id, id_bytes) != number) {
            others++;
            continue;
        }
        trpi_entry *entry = trpi_entry_make(region, number, hash, id, id_bytes);
        if (entry == NULL) {
            region->keeps_stuck = shard->remember_again = true;
            break;
        }
        if (entry->state == TRPI_ENTRY_ABSENT && !entry->wait->is_later && !entry->restarts) {
            entry->restarts = true;
            shard->restarts++;
            region->restarts++;
        }
    }
    if (others > 0) {
        trpi_log(region->system, TRP_LOG_ERROR, "sharding",
                 "%u entities are remembered in another shard than theirs type=%s shard=%u "
                 "next=\"they are not started: run with the number of shards and the extractor "
                 "that remembered them\"",
                 others, region->name, number);
    }
    trpi_remember_go_on(ctx, region);
}

/* An entity has recovered, or has ended before. Any thread. */
static void
restart_over(void *arg)
{
    trpi_region *region = arg;
    uint64_t left = atomic_fetch_sub(&region->restarting_bytes, region->restart_cost);
    if (left - region->restart_cost > RESTARTING_BYTES_MAX / 2 ||
        !atomic_exchange(&region->restart_waits, false) ||
        atomic_load_explicit(&region->closed, memory_order_acquire)) {
        return;
    }
    trp_ctx *ctx = trpi_enter(region->system);
    trpi_region_order(ctx, region, TRPI_REQUEST_RESTART, 0, 0, NULL);
    trpi_leave(ctx);
}

static void
restart_reached(trp_ctx *ctx, void *arg)
{
    (void)ctx;
    restart_over(arg);
}

/* Start it, and learn when it has recovered. */
static void
entry_restart(trp_ctx *ctx, trpi_region *region, trpi_entry *entry)
{
    trp_msg *behind;
    trpi_entry_begin(ctx, region, entry);
    if (entry->state == TRPI_ENTRY_RUNNING &&
        trpi_behaviour_is_persistent(region->options.behaviour) &&
        trpi_behind_new(restart_reached, restart_over, region, &behind) == TRP_OK) {
        trp_ref ref = { TRPI_NODE_SELF, entry->slot, entry->generation, 0 };
        atomic_fetch_add(&region->restarting_bytes, region->restart_cost);
        trpi_send(ctx, ref, behind);
    }
}

/* Return the next entry that restarts; NULL: the shard has none. */
static trpi_entry *
restart_next(trpi_shard *shard)
{
    uint32_t places = trpi_entry_places(&shard->entries);
    if (places != shard->restart_places) { /* another table */
        shard->restart_places = places;
        shard->restart_place = 0;
    }
    for (uint32_t i = 0; shard->restarts > 0 && i < places; i++) {
        shard->restart_place = shard->restart_place < places ? shard->restart_place : 0;
        trpi_entry *entry = trpi_entry_at(&shard->entries, shard->restart_place++);
        if (entry != NULL && entry->restarts) {
            return entry;
        }
    }
    return NULL;
}

void
trpi_remember_go_on(trp_ctx *ctx, trpi_region *region)
{
    uint64_t turn_bytes = 0;
    uint32_t without = 0; /* shards in a row that are not here, or have none */
    while (region->restarts > 0 && turn_bytes < TURN_BYTES_MAX &&
           without < region->options.shards) {
        trpi_shard *shard = &region->shards[region->restart_shard];
        trpi_entry *entry = shard->state == TRPI_SHARD_OWN ? restart_next(shard) : NULL;
        if (entry == NULL) {
            without++;
            region->restart_shard = (region->restart_shard + 1) % region->options.shards;
            continue;
        }
        atomic_store(&region->restart_waits, true); /* before the look */
        if (atomic_load(&region->restarting_bytes) >= RESTARTING_BYTES_MAX) {
            shard->restart_place--; /* region-remember-M3 */
            trpi_shard_open(ctx, region, shard);
            return;
        }
        without = 0;
        trpi_entry_restarts_clear(region, entry);
        entry_restart(ctx, region, entry);
        turn_bytes += region->restart_cost;
        trpi_shard_open(ctx, region, shard);
    }
    if (turn_bytes >= TURN_BYTES_MAX) {
        trpi_region_order(ctx, region, TRPI_REQUEST_RESTART, 0, 0, NULL);
    }
}
