/* entity_cache_test.c - the short way from an id to a live entity. */
#include <stdatomic.h>
#include <stdlib.h>

#include <troupe/system.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "cluster/sharding/region.h"
#include "tests/unit/unit.h"

static trpi_region region;
static trpi_shard shard;

static void
begin(void)
{
    trp_system_options o = TRP_SYSTEM_OPTIONS_INIT;
    memset(&region, 0, sizeof region);
    UNIT_REQUIRE(trp_system_new("cache", &o, &region.system) == TRP_OK);
    atomic_store(&region.clock, 100);
    memset(&shard, 0, sizeof shard);
    atomic_store(&shard.route, TRPI_ROUTE_LOCAL);
    region.shards = &shard;
    region.options.shards = 1;
}

static void
end(void)
{
    UNIT_EQUAL(trp_system_stop(region.system, 10000), TRP_OK);
    trp_system_free(region.system);
    trpi_entity_cache_free(atomic_load(&region.cache));
}

static trpi_entry *
entry_new(const void *id, size_t id_bytes, uint64_t hash, uint32_t target)
{
    trpi_entry *entry = trpi_alloc(sizeof *entry + id_bytes);
    UNIT_REQUIRE(entry != NULL);
    entry->hash = hash;
    entry->id_bytes = (uint8_t)id_bytes;
    memcpy(entry->id, id, id_bytes);
    atomic_store(&entry->target, TRPI_TARGET_LEAST + target);
    atomic_store(&entry->used, atomic_load(&region.clock));
    return entry;
}

static trpi_entry *
entry_of(const void *id, size_t id_bytes, uint32_t target)
{
    return entry_new(id, id_bytes, trpi_hash(id, id_bytes, 0), target);
}

static uint64_t
found(const trpi_entry *entry)
{
    return trpi_entity_cache_find(atomic_load(&region.cache), entry->hash, entry->id,
                                  entry->id_bytes, atomic_load(&region.clock));
}

/* All ids have the same hash, so that only their bytes tell them apart. */
static void
an_id_of_any_length_up_to_the_limit_leads_to_its_own_target(void)
{
    static const char same[] = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
    static const char zeros[32];
    trpi_entry *entries[2 * (TRPI_CACHED_ID_BYTES_MAX + 1)];
    uint32_t count = 0;
    begin();
    for (uint32_t i = 1; i <= TRPI_CACHED_ID_BYTES_MAX + 1; i++) {
        entries[count] = entry_new(same, i, 0, count);
        count++;
        entries[count] = entry_new(zeros, i, 0, count);
        count++;
    }
    for (uint32_t i = 0; i < count; i++) {
        trpi_entity_cache_put(&region, entries[i]);
        for (uint32_t other = 0; other < count; other++) {
            uint64_t want = i == other && entries[i]->id_bytes <= TRPI_CACHED_ID_BYTES_MAX
                                ? atomic_load(&entries[i]->target)
                                : TRPI_TARGET_NONE;
            UNIT_EQUAL(found(entries[other]), want);
        }
        trpi_entity_cache_drop(&region, entries[i]);
        UNIT_EQUAL(found(entries[i]), TRPI_TARGET_NONE);
    }
    for (uint32_t i = 0; i < count; i++) {
        trpi_free(entries[i]);
    }
    end();
}

static void
each_byte_of_an_id_counts(void)
{
    char id[TRPI_CACHED_ID_BYTES_MAX];
    begin();
    for (uint32_t bytes = 1; bytes <= sizeof id; bytes++) {
        memset(id, 'x', sizeof id);
        trpi_entry *entry = entry_new(id, bytes, 0, bytes);
        trpi_entity_cache_put(&region, entry);
        for (uint32_t i = 0; i < bytes; i++) {
            id[i] = 'y';
            UNIT_EQUAL(trpi_entity_cache_find(atomic_load(&region.cache), 0, id, bytes, 100),
                       TRPI_TARGET_NONE);
            id[i] = 'x';
        }
        UNIT_EQUAL(found(entry), atomic_load(&entry->target));
        trpi_entity_cache_drop(&region, entry);
        trpi_free(entry);
    }
    end();
}

static void
the_time_of_use_comes_back_to_the_entry(void)
{
    begin();
    trpi_entry *entry = entry_of("one", 3, 1);
    trpi_entity_cache_put(&region, entry);
    atomic_store(&region.clock, 200);
    (void)found(entry);
    trpi_entity_cache_look(&region, entry);
    UNIT_EQUAL(atomic_load(&entry->used), 200);
    atomic_store(&region.clock, 300);
    (void)found(entry);
    trpi_entity_cache_drop(&region, entry);
    UNIT_EQUAL(atomic_load(&entry->used), 300);
    trpi_free(entry);
    end();
}

static void
in_a_full_bucket_the_one_told_longest_ago_makes_room(void)
{
    trpi_entry *entries[4];
    begin();
    for (uint32_t i = 0; i < 4; i++) {
        char id = (char)('a' + i);
        entries[i] = entry_new(&id, 1, 0, i);
    }
    trpi_entity_cache_put(&region, entries[0]);
    trpi_entity_cache_put(&region, entries[1]);
    trpi_entity_cache_put(&region, entries[2]); /* the others were told just now */
    UNIT_EQUAL(found(entries[2]), TRPI_TARGET_NONE);
    atomic_store(&region.clock, 101);
    (void)found(entries[0]);
    trpi_entity_cache_put(&region, entries[3]);
    UNIT_EQUAL(found(entries[0]), atomic_load(&entries[0]->target));
    UNIT_EQUAL(found(entries[1]), TRPI_TARGET_NONE);
    UNIT_EQUAL(found(entries[3]), atomic_load(&entries[3]->target));
    for (uint32_t i = 0; i < 4; i++) {
        trpi_entity_cache_drop(&region, entries[i]);
        UNIT_EQUAL(found(entries[i]), TRPI_TARGET_NONE);
        trpi_free(entries[i]);
    }
    end();
}

static void
it_grows_with_its_entities_up_to_a_limit(void)
{
    enum { ENTRIES = TRPI_CACHE_PLACES_MOST };
    trpi_entry **entries = trpi_alloc(ENTRIES * sizeof entries[0]);
    begin();
    UNIT_REQUIRE(entries != NULL);
    for (uint32_t i = 0; i < ENTRIES; i++) {
        entries[i] = entry_of(&i, sizeof i, i);
        UNIT_EQUAL(trpi_entry_insert(region.system, &shard.entries, entries[i]), TRP_OK);
        trpi_entity_cache_put(&region, entries[i]);
        if (i + 1 == 10000) {
            uint32_t here = 0;
            for (uint32_t at = 0; at <= i; at++) {
                uint64_t target = found(entries[at]);
                here += target == atomic_load(&entries[at]->target);
                UNIT_TRUE(target == TRPI_TARGET_NONE ||
                          target == atomic_load(&entries[at]->target));
            }
            UNIT_TRUE(here > 9200); /* two of a bucket stay */
        }
    }
    UNIT_EQUAL(atomic_load(&region.cache)->mask + 1, TRPI_CACHE_PLACES_MOST);
    trpi_entity_cache_clear(&region);
    UNIT_EQUAL(atomic_load(&region.cache)->count, 0);
    for (uint32_t i = 0; i < ENTRIES; i++) {
        UNIT_EQUAL(found(entries[i]), TRPI_TARGET_NONE);
    }
    trpi_free(entries);
    end();
    trpi_entry_table_fini(&shard.entries);
}

static void
without_memory_nothing_is_cached(void)
{
    begin();
    trpi_entry *entry = entry_of("one", 3, 1);
    for (long n = 0; n < 2; n++) {
        trpi_alloc_fail_here_after(n);
        trpi_entity_cache_put(&region, entry);
        trpi_alloc_fail_here_after(-1);
        UNIT_EQUAL(found(entry), TRPI_TARGET_NONE);
    }
    trpi_entity_cache_put(&region, entry);
    UNIT_EQUAL(found(entry), atomic_load(&entry->target));
    trpi_free(entry);
    end();
}

/* ---- a place that changes under its readers -------------------------------------------------- */

enum { TAKERS = 3, TURNS = 100000 };
static trpi_entry *takers[TAKERS];
static _Atomic bool changes;

static void *
read_all(void *wrong)
{
    while (atomic_load(&changes)) {
        for (uint32_t i = 0; i < TAKERS; i++) {
            uint64_t target = found(takers[i]);
            /* the lower half of a target says whose it is */
            if (target != TRPI_TARGET_NONE && (uint32_t)target % TAKERS != i) {
                atomic_store((_Atomic bool *)wrong, true);
            }
        }
    }
    return NULL;
}

/* entity-cache-C1 */
static void
a_reader_never_gets_the_target_of_another_id(void)
{
    static const char *const names[TAKERS] = { "aaaaaaaaaaaaaaaaaaa", "aaaaaaaabbbbbbbbaaa",
                                               "bbbbbbbbaaaaaaaaaaa" };
    _Atomic bool wrong = false;
    pthread_t reader;
    begin();
    for (uint32_t i = 0; i < TAKERS; i++) {
        takers[i] = entry_new(names[i], TRPI_CACHED_ID_BYTES_MAX, 0, i);
    }
    atomic_store(&changes, true);
    UNIT_REQUIRE(pthread_create(&reader, NULL, read_all, &wrong) == 0);
    for (uint32_t turn = 1; turn <= TURNS; turn++) {
        trpi_entry *entry = takers[turn % TAKERS];
        /* as an incarnation that follows */
        atomic_store(&entry->target, TRPI_TARGET_LEAST + turn);
        trpi_entity_cache_put(&region, entry);
        if (turn % 2 == 0) {
            trpi_entity_cache_drop(&region, entry);
            trpi_entity_cache_drop(&region, takers[(turn + 1) % TAKERS]);
        }
    }
    atomic_store(&changes, false);
    (void)pthread_join(reader, NULL);
    UNIT_FALSE(atomic_load(&wrong));
    for (uint32_t i = 0; i < TAKERS; i++) {
        trpi_entity_cache_drop(&region, takers[i]);
        trpi_free(takers[i]);
    }
    end();
}

static void *
read_mixed(void *arg)
{
    static const trp_ref mixed[] = { { TRPI_NODE_SELF, 7, 9, 0 }, { TRPI_NODE_SELF, 9, 7, 0 } };
    _Atomic bool *wrong = arg;
    while (atomic_load(&changes)) {
        if (trpi_entry_is(takers[0], mixed[0]) || trpi_entry_is(takers[0], mixed[1])) {
            atomic_store(wrong, true);
        }
    }
    return NULL;
}

/* The actor that has an earlier incarnation's slot by now ends while the next one is published: it
 * is not taken for that. */
static void
an_entry_is_not_taken_for_half_of_another_incarnation(void)
{
    _Atomic bool wrong = false;
    pthread_t reader;
    begin();
    takers[0] = entry_new("a", 1, 0, 0);
    atomic_store(&changes, true);
    UNIT_REQUIRE(pthread_create(&reader, NULL, read_mixed, &wrong) == 0);
    for (uint64_t turn = 0; turn < TURNS; turn++) {
        uint64_t number = turn % 2 == 0 ? 7 : 9; /* slot and generation */
        atomic_store_explicit(&takers[0]->incarnation, number << 32 | number, memory_order_relaxed);
        UNIT_TRUE(trpi_entry_is(takers[0], trpi_entry_ref(takers[0])));
        UNIT_EQUAL(trpi_entry_ref(takers[0]).slot, number);
        UNIT_EQUAL(trpi_entry_ref(takers[0]).generation, number);
    }
    atomic_store(&changes, false);
    (void)pthread_join(reader, NULL);
    UNIT_FALSE(atomic_load(&wrong));
    trpi_free(takers[0]);
    end();
}

UNIT_BEGIN("entity_cache")
UNIT(an_id_of_any_length_up_to_the_limit_leads_to_its_own_target)
UNIT(each_byte_of_an_id_counts)
UNIT(the_time_of_use_comes_back_to_the_entry)
UNIT(in_a_full_bucket_the_one_told_longest_ago_makes_room)
UNIT(it_grows_with_its_entities_up_to_a_limit)
UNIT(without_memory_nothing_is_cached)
UNIT(a_reader_never_gets_the_target_of_another_id)
UNIT(an_entry_is_not_taken_for_half_of_another_incarnation)
UNIT_END
