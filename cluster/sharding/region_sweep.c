/* region_sweep.c - passivation: by idle time, and by a limit on the entities of this node.
 *
 * Why.     Tellers note the region's clock beside the target that they read; no list is kept in
 *          order. Idle entities are found by a sweep in slices.
 * Shape.   The clock moves at each slice, and, with a limit, at each start. An entity is idle if it
 *          was used before the clock of eight sweeps ago; a sweep takes an eighth of the idle time.
 * Must hold.
 *   region-sweep-P1  With a limit, those that were told longest ago go first: exactly one of a
 *       limit below 32, else a sixteenth of all at once.
 * Tests.   tests/unit/cluster/entity_test.c
 */
#include <stdlib.h>

#include "base/alloc.h"
#include "cluster/sharding/region.h"

static void
clock_move(trpi_region *region)
{
    /* relaxed: a hint for tellers */
    atomic_fetch_add_explicit(&region->clock, 1, memory_order_relaxed);
}

static uint32_t
used_of(const trpi_entry *entry)
{
    return atomic_load_explicit(&entry->used, memory_order_relaxed);
}

/* Was it used at the clock `before`, or earlier? The clock wraps. */
static bool
is_older(const trpi_region *region, trpi_entry *entry, uint32_t before)
{
    if ((int32_t)(used_of(entry) - before) > 0) {
        return false;
    }
    trpi_entity_cache_look(region, entry);
    return (int32_t)(used_of(entry) - before) <= 0;
}

static void
shard_sweep(trp_ctx *ctx, trpi_region *region, const trpi_shard *shard, uint32_t before)
{
    for (uint32_t i = 0; i < trpi_entry_places(&shard->entries); i++) {
        trpi_entry *entry = trpi_entry_at(&shard->entries, i);
        if (entry != NULL && entry->state == TRPI_ENTRY_RUNNING &&
            is_older(region, entry, before)) {
            trpi_entry_passivate(ctx, region, entry);
        }
    }
}

void
trpi_region_sweep(trp_ctx *ctx, trpi_region *region)
{
    uint32_t slices = region->sweep_slices;
    uint32_t last =
        (uint32_t)((uint64_t)region->options.shards * (region->sweep_slice + 1) / slices);
    /* eight sweeps ago */
    uint32_t before = region->ring[(region->ring_at + 1) % TRPI_CLOCK_RING];
    clock_move(region);
    if (region->options.passivate_after_ms == TRP_OFF) {
        return;
    }
    for (; region->sweep_shard < last; region->sweep_shard++) {
        shard_sweep(ctx, region, &region->shards[region->sweep_shard], before);
    }
    if (++region->sweep_slice == slices) {
        region->sweep_slice = region->sweep_shard = 0;
        region->ring_at = (region->ring_at + 1) % TRPI_CLOCK_RING;
        region->ring[region->ring_at] = atomic_load_explicit(&region->clock, memory_order_relaxed);
    }
}

/* ---- the limit ------------------------------------------------------------------------------- */

static int
by_use(const void *a, const void *b)
{
    const trpi_entry *const *x = a, *const *y = b;
    int32_t distance = (int32_t)(used_of(*x) - used_of(*y));
    return distance < 0 ? -1 : distance > 0 ? 1 : 0;
}

static uint32_t
running_collect(const trpi_region *region, trpi_entry **entries, uint32_t max)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < region->options.shards; i++) {
        const trpi_entry_table *table = &region->shards[i].entries;
        for (uint32_t place = 0; place < trpi_entry_places(table) && count < max; place++) {
            trpi_entry *entry = trpi_entry_at(table, place);
            if (entry != NULL && entry->state == TRPI_ENTRY_RUNNING) {
                trpi_entity_cache_look(region, entry);
                entries[count++] = entry;
            }
        }
    }
    return count;
}

void
trpi_region_limit(trp_ctx *ctx, trpi_region *region)
{
    uint32_t most = region->options.entities_max;
    uint32_t live = atomic_load_explicit(&region->live, memory_order_relaxed);
    if (most == 0) {
        return;
    }
    clock_move(region);
    if (live < most || region->entities == 0) {
        return;
    }
    trpi_entry **entries = trpi_alloc(region->entities * sizeof entries[0]);
    if (entries == NULL) {
        return; /* the next start tries again */
    }
    uint32_t count = running_collect(region, entries, region->entities);
    uint32_t others = live - (count < live ? count : live); /* are ending already */
    uint32_t batch = most / 16 > 1 ? most / 16 : 1;
    uint32_t over = live - most + batch;
    qsort(entries, count, sizeof entries[0], by_use);
    for (uint32_t i = 0; others + i < over && i < count; i++) {
        trpi_entry_passivate(ctx, region, entries[i]);
    }
    trpi_free(entries);
}
