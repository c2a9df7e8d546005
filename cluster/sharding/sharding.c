/* sharding.c - types of entities: started on a system, and what an entity asks about itself.
 *
 * Life.    The first trp_sharding_start(), or the start of the cluster, makes the extension; its
 *          regions and their entries are freed when all threads have ended.
 * Tests.   tests/unit/cluster/entity_test.c
 */
#include <stdio.h>
#include <string.h>

#include <troupe/extension.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "base/mutex.h"
#include "base/sized.h"
#include "cluster/sharding/region.h"
#include "cluster/shell/exclusive.h"

enum { RESTART_COST = 1024 }; /* of an entity that starts, beside its state */

/* ---- the extension --------------------------------------------------------------------------- */

static trp_type *const types[] = { &trpi_request_type,         &trpi_region_tick_type,
                                   &trpi_entity_envelope_type, &trpi_keep_answer_type,
                                   &trpi_remind_tick_type,     &trpi_reminder_order_type,
                                   &trp_reminders_type };
static const trp_protocol protocol = { "sharding", types, sizeof types / sizeof types[0] };

static void
sharding_release(void *instance)
{
    trpi_sharding *sharding = instance;
    trpi_system_entities_clear(sharding->system);
    /* Entries and tables that were retired are freed by themselves, a little later. */
    for (uint32_t i = 0; i < TRP_SHARDING_TYPES_MAX * 2; i++) {
        trpi_region_free(atomic_load_explicit(&sharding->regions[i], memory_order_relaxed));
    }
    if (sharding->keeper.arg != NULL) {
        sharding->keeper.free(sharding->keeper.arg);
    }
    trpi_entry_index_fini(&sharding->index);
    trpi_drains_fini(&sharding->drains);
    trpi_mutex_destroy(&sharding->lock);
    trpi_free(sharding);
}

static trp_err
sharding_create(trp_system *system, void *arg, void **ret_instance)
{
    (void)arg;
    trpi_sharding *sharding = trpi_alloc(sizeof *sharding);
    if (sharding == NULL) {
        return TRP_ENOMEM;
    }
    trp_err err = trp_protocol_register(&protocol);
    sharding->system = system;
    pthread_mutex_init(&sharding->lock, NULL);
    trpi_drains_init(&sharding->drains);
    if (err == TRP_OK) {
        err = trpi_entry_index_init(&sharding->index);
    }
    if (err == TRP_OK) {
        err = trpi_gate_spawn(sharding);
    }
    if (err == TRP_OK) {
        err = trpi_system_entities_set(system, &trpi_sharding_entity_ops, sharding);
    }
    if (err != TRP_OK) {
        sharding_release(sharding);
        return err;
    }
    *ret_instance = sharding;
    return TRP_OK;
}

static const trp_extension extension = { sizeof extension, "sharding", sharding_create, NULL,
                                         sharding_release, NULL };

trp_err
trpi_sharding_of(trp_system *system, trpi_sharding **ret_sharding)
{
    void *instance;
    trp_err err = trp_extension_get(system, &extension, &instance);
    if (err == TRP_OK) {
        *ret_sharding = instance;
    }
    return err;
}

/* ---- start ----------------------------------------------------------------------------------- */

static bool
name_is_valid(const char *name)
{
    size_t bytes = name == NULL ? 0 : strnlen(name, TRP_ENTITY_TYPE_BYTES_MAX + 1);
    return bytes > 0 && bytes <= TRP_ENTITY_TYPE_BYTES_MAX &&
           strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") ==
               bytes;
}

static uint32_t
or_default(uint32_t value, uint32_t fallback)
{
    return value == 0 ? fallback : value;
}

static trp_err
options_check(const trp_sharding_options *o, char *why, size_t why_bytes)
{
    const char *what = NULL;
    if (!name_is_valid(o->type)) {
        what = "type is to be 1 to 63 letters, digits, '-', '_' or '.'";
    } else if (o->shards > TRP_SHARDING_SHARDS_MAX) {
        what = "shards is to be at most 100000";
    } else if ((o->args == NULL) != (o->args_type == NULL)) {
        what = "args and args_type go together";
    } else if (o->args_type != NULL && (o->args_type->flags & TRP_TYPE_VARIABLE) != 0) {
        what = "args_type is to be of fixed size";
    } else if (o->remember_entities != 0 &&
               ((o->passivate_after_ms != 0 && o->passivate_after_ms != TRP_OFF) ||
                o->entities_max != 0)) {
        what = "entities that are remembered are not passivated by time or number";
    } else if (o->stop != NULL && o->stop_type == NULL) {
        what = "stop has no stop_type";
    } else if (o->allocation > TRP_ALLOCATION_USER) {
        what = "allocation is to be one of trp_sharding_allocation";
    } else if ((o->allocation == TRP_ALLOCATION_USER) != (o->allocate != NULL)) {
        what = "allocate goes with an allocation by the program";
    } else if (o->rebalance_permille > 1000) {
        what = "rebalance_permille is to be at most 1000";
    } else if (o->hand_off >= TRP_HAND_OFF_DROPS_LATE * 2) {
        what = "hand_off is to be bits of trp_sharding_hand_off";
    } else if ((o->hand_off & TRP_HAND_OFF_KEEPS_ACTIVE) != 0 &&
               (o->hand_off & TRP_HAND_OFF_DROPS) != 0) {
        what = "hand_off cannot keep a shard active and drop what comes for it";
    } else if (o->backoff_max_ms != 0 &&
               o->backoff_max_ms <
                   or_default(o->backoff_min_ms, TRP_SHARDING_BACKOFF_MIN_MS_DEFAULT)) {
        what = "backoff_max_ms is below backoff_min_ms";
    }
    if (what != NULL) {
        (void)snprintf(why, why_bytes, "%s", what);
        return TRP_EINVAL;
    }
    if ((o->args_type != NULL && o->args_type->number == 0) ||
        (o->stop_type != NULL && o->stop_type->number == 0)) {
        (void)snprintf(why, why_bytes, "type %s is not registered",
                       o->args_type != NULL && o->args_type->number == 0 ? o->args_type->name
                                                                         : o->stop_type->name);
        return TRP_ENOTYPE;
    }
    return TRP_OK;
}

/* A sweep takes an eighth of the idle time, in at most 64 slices of at least 50 ms. */
static void
sweep_plan(trpi_region *region)
{
    uint32_t sweep_ms = region->options.passivate_after_ms == TRP_OFF
                            ? TRP_SHARDING_PASSIVATE_MS_DEFAULT / 8
                            : region->options.passivate_after_ms / 8;
    uint32_t slices = sweep_ms / 50;
    slices = slices < 1 ? 1 : slices > 64 ? 64 : slices;
    region->sweep_slices = slices < region->options.shards ? slices : region->options.shards;
    region->sweep_ms = sweep_ms / region->sweep_slices;
    region->sweep_ms = region->sweep_ms < 10 ? 10 : region->sweep_ms > 200 ? 200 : region->sweep_ms;
    region->sweep_slices = sweep_ms / region->sweep_ms < 1 ? 1 : sweep_ms / region->sweep_ms;
}

static trpi_region *
region_new(trpi_sharding *sharding, const trp_sharding_options *options)
{
    trpi_region *region = trpi_alloc(sizeof *region);
    if (region == NULL) {
        return NULL;
    }
    region->sharding = sharding;
    region->system = sharding->system;
    region->options = *options;
    (void)snprintf(region->name, sizeof region->name, "%s", options->type);
    region->type = trp_entity_type(options->type);
    trp_sharding_options *o = &region->options;
    o->type = region->name;
    o->shards = or_default(o->shards, TRP_SHARDING_SHARDS_DEFAULT);
    o->backoff_min_ms = or_default(o->backoff_min_ms, TRP_SHARDING_BACKOFF_MIN_MS_DEFAULT);
    o->backoff_max_ms =
        or_default(o->backoff_max_ms, o->backoff_min_ms > TRP_SHARDING_BACKOFF_MAX_MS_DEFAULT
                                          ? o->backoff_min_ms
                                          : TRP_SHARDING_BACKOFF_MAX_MS_DEFAULT);
    o->passivate_after_ms = or_default(o->passivate_after_ms, TRP_SHARDING_PASSIVATE_MS_DEFAULT);
    o->buffer_bytes_max = or_default(o->buffer_bytes_max, TRP_SHARDING_BUFFER_BYTES_DEFAULT);
    region->keeps = trpi_keep_is_wanted(o);
    region->remembers = region->keeps && (o->remember_entities != 0 || o->reminders != 0);
    region->remind_ms = UINT64_MAX;
    region->mover = &trpi_region_mover_own;
    region->restart_cost =
        RESTART_COST + (o->behaviour == NULL ? 0 : (uint64_t)o->behaviour->state_bytes);
    if (o->remember_entities != 0) {
        o->passivate_after_ms = TRP_OFF;
    }
    region->settings.shards = o->shards;
    region->settings.extractor_version = o->extractor_version;
    region->settings.allocation = o->allocation;
    region->settings.moves_max = o->rebalance_max;
    region->settings.moves_permille = o->rebalance_permille;
    region->settings.rebalance_ms = o->rebalance_ms;
    region->settings.members_min = o->members_min;
    region->settings.eager = region->remembers;
    region->settings.keeps_active = (o->hand_off & TRP_HAND_OFF_KEEPS_ACTIVE) != 0;
    region->settings.unordered = (o->hand_off & TRP_HAND_OFF_UNORDERED) != 0;
    region->settings.drops = (o->hand_off & TRP_HAND_OFF_DROPS) != 0;
    region->settings.late_drops = (o->hand_off & TRP_HAND_OFF_DROPS_LATE) != 0;
    atomic_init(&region->clock, 1);
    sweep_plan(region);
    return region;
}

/* With the lock. */
static trp_err
region_add(trpi_sharding *sharding, const trp_sharding_options *options, trpi_region **ret_region)
{
    uint64_t type = trp_entity_type(options->type);
    if (trpi_region_find(sharding, type) != NULL) {
        return TRP_EEXIST;
    }
    if (sharding->regions_count >= TRP_SHARDING_TYPES_MAX) {
        return TRP_ELIMIT;
    }
    trpi_region *region = region_new(sharding, options);
    if (region == NULL) {
        return TRP_ENOMEM;
    }
    trp_err err = trpi_region_spawn(region);
    if (err != TRP_OK) {
        trpi_region_free(region);
        return err;
    }
    uint32_t at = (uint32_t)(type % (TRP_SHARDING_TYPES_MAX * 2));
    while (atomic_load_explicit(&sharding->regions[at], memory_order_relaxed) != NULL) {
        at = (at + 1) % (TRP_SHARDING_TYPES_MAX * 2);
    }
    sharding->regions_count++;
    /* release: pairs with the acquire in trpi_region_find() */
    atomic_store_explicit(&sharding->regions[at], region, memory_order_release);
    *ret_region = region;
    return TRP_OK;
}

/* May entities that live once in the cluster live on this node? */
static trp_err
hosting_check(trp_system *system, const trp_sharding_options *o, char *why, size_t why_bytes)
{
    char what[TRP_ENTITY_TYPE_BYTES_MAX + sizeof "entities of ''"];
    trpi_guard *guard;
    (void)snprintf(what, sizeof what, "entities of '%s'", o->type);
    return trpi_exclusive_open(system, what, &guard, why, why_bytes);
}

static trp_err
in_cluster_start(const trpi_sharding *sharding, trpi_region *region, char *why, size_t why_bytes)
{
    if (!sharding->keeper.started(sharding->keeper.arg, region)) {
        trp_system_stop_actor(sharding->system, region->actor);
        return TRP_ENOMEM;
    }
    return sharding->keeper.await(sharding->keeper.arg, region, why, why_bytes) ? TRP_OK
                                                                                : TRP_ECONFIG;
}

trp_err
trp_sharding_start(trp_system *system, const trp_sharding_options *options, char *why,
                   size_t why_bytes)
{
    trp_sharding_options own;
    char none[1];
    trpi_sharding *sharding;
    trpi_region *region;
    if (why == NULL || why_bytes == 0) {
        why = none;
        why_bytes = sizeof none;
    }
    why[0] = '\0';
    if (system == NULL || options == NULL || !TRPI_SIZED_COPY(options, &own, persistent)) {
        (void)snprintf(why, why_bytes, "the options are of another version");
        return TRP_EINVAL;
    }
    trp_err err = options_check(&own, why, why_bytes);
    if (err == TRP_OK) {
        err = trpi_sharding_of(system, &sharding);
    }
    if (err != TRP_OK) {
        return err;
    }
    if (sharding->keeper.arg != NULL && own.behaviour != NULL) {
        err = hosting_check(system, &own, why, why_bytes);
        if (err != TRP_OK) {
            return err;
        }
    }
    err = trpi_keep_check(sharding, &own, why, why_bytes);
    if (err != TRP_OK) {
        return err;
    }
    pthread_mutex_lock(&sharding->lock);
    err = region_add(sharding, &own, &region);
    pthread_mutex_unlock(&sharding->lock);
    if (err == TRP_OK && sharding->keeper.arg != NULL) {
        err = in_cluster_start(sharding, region, why, why_bytes);
    } else if (err == TRP_OK && region->remembers) { /* there no coordinator gives all a home */
        trp_ctx *ctx = trpi_enter(system);
        trpi_region_order(ctx, region, TRPI_REQUEST_OPEN, 0, 0, NULL);
        trpi_leave(ctx);
    }
    if (err == TRP_EEXIST) {
        (void)snprintf(why, why_bytes, "the type %s is started already", own.type);
    }
    return err;
}

uint32_t
trpi_sharding_unopened(const trp_system *system)
{
    const trpi_sharding *sharding = trpi_system_entities(system);
    uint32_t count = 0;
    for (uint32_t i = 0; sharding != NULL && i < TRP_SHARDING_TYPES_MAX * 2; i++) {
        /* acquire: pairs with the release in region_add() */
        const trpi_region *region =
            atomic_load_explicit(&sharding->regions[i], memory_order_acquire);
        /* relaxed: for status */
        count +=
            region == NULL ? 0 : atomic_load_explicit(&region->keeps_failed, memory_order_relaxed);
    }
    return count;
}

/* ---- an entity about itself ------------------------------------------------------------------ */

trp_err
trp_entity_self(trp_ctx *ctx, trp_entity *ret_entity)
{
    const trpi_entry *entry = trpi_entry_of_self(ctx);
    if (entry == NULL) {
        return TRP_ENOENT;
    }
    *ret_entity = trp_entity_of(entry->region->type, entry->id, entry->id_bytes);
    return TRP_OK;
}

trp_err
trp_entity_passivate(trp_ctx *ctx)
{
    trpi_entry *entry = trpi_entry_of_self(ctx);
    if (entry == NULL) {
        return TRP_ENOENT;
    }
    trpi_request *request = trpi_request_new(entry->region->system, TRPI_REQUEST_PASSIVATE, NULL,
                                             entry->id, entry->id_bytes, NULL);
    if (request == NULL) {
        return TRP_ENOMEM;
    }
    request->hash = entry->hash;
    request->shard = entry->shard;
    trpi_request_tell(ctx, entry->region, request);
    return TRP_OK;
}
