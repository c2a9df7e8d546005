/* index.c - key -> places, for the look-ups of publish and subscribe.
 *
 * Shape.   hash table of entries; an entry has its places, a topic also its groups. An entry is
 *          there as long as somebody is: a topic, while it has places or groups.
 * Must hold.
 *   pubsub-I1  An entry has a place or a group; of one node it has one place, with a count.
 *   pubsub-I2  Each group stands in the list of its topic, once.
 *   pubsub-I3  A topic's number never goes back, also when nobody was there in between: a new
 *       entry begins with the sum of all numbers given.                          (entry_new)
 *   pubsub-I4  While `changed` of a topic is the same, so are its groups and their places: one that
 *       was gone in between has a later number.                               (entry_touch)
 * Limits.  The owners' (registry.h).
 * Tests.   tests/unit/cluster/pubsub_registry_test.c, tests/sim/pubsub_test.c
 */
#include "cluster/pubsub/index.h"

#include <string.h>

#include "base/alloc.h"
#include "base/array.h"
#include "base/assert.h"

/* ---- the table ------------------------------------------------------------------------------- */

static uint64_t
entry_hash(const void *arg, const void *element)
{
    (void)arg;
    return (*(trpi_pubreg_entry *const *)element)->hash;
}

static bool
entry_is_key(const void *arg, const void *element, const void *key)
{
    (void)arg;
    return trpi_pubsub_key_equal(&(*(trpi_pubreg_entry *const *)element)->key, key);
}

static const trpi_table_kind entries_kind = { sizeof(trpi_pubreg_entry *),
                                              trpi_table_pointer_is_empty, entry_hash,
                                              entry_is_key };

trpi_pubreg_entry *
trpi_index_find(const trpi_index *index, const trpi_pubsub_key *key, uint64_t hash)
{
    trpi_pubreg_entry *const *at = trpi_table_find(&entries_kind, &index->entries, NULL, hash, key);
    return at == NULL ? NULL : *at;
}

trpi_pubreg_entry *
trpi_index_next(const trpi_index *index, uint32_t *position)
{
    trpi_pubreg_entry *const *at = trpi_table_next(&entries_kind, &index->entries, position);
    return at == NULL ? NULL : *at;
}

static void
entry_free(trpi_pubreg_entry *entry)
{
    trpi_free(entry->places);
    trpi_free(entry->groups);
    trpi_free(entry);
}

void
trpi_index_fini(trpi_index *index)
{
    uint32_t position = 0;
    trpi_pubreg_entry *entry;
    while ((entry = trpi_index_next(index, &position)) != NULL) {
        entry_free(entry);
    }
    trpi_table_fini(&index->entries);
}

/* ---- entries --------------------------------------------------------------------------------- */

static trpi_pubsub_key
topic_of(const trpi_pubsub_key *group)
{
    return (trpi_pubsub_key){ .kind = TRPI_PUBSUB_TOPIC,
                              .name_bytes = group->name_bytes,
                              .name = group->name };
}

/* An empty entry: it gets a place or a group at once, or is released. NULL: no memory. */
static trpi_pubreg_entry *
entry_new(trpi_index *index, const trpi_pubsub_key *key, uint64_t hash)
{
    trpi_pubreg_entry *entry =
        trpi_alloc(sizeof *entry + (size_t)key->name_bytes + key->group_bytes);
    trpi_pubreg_entry **at =
        entry == NULL ? NULL : trpi_table_add(&entries_kind, &index->entries, NULL, hash, key);
    if (at == NULL) {
        trpi_free(entry);
        return NULL;
    }
    *at = entry;
    entry->key = *key;
    entry->hash = hash;
    entry->number = index->published; /* pubsub-I3 */
    entry->key.name = memcpy(entry->bytes, key->name, key->name_bytes);
    if (key->group_bytes > 0) {
        entry->key.group = memcpy(entry->bytes + key->name_bytes, key->group, key->group_bytes);
    }
    index->topics += key->kind == TRPI_PUBSUB_TOPIC;
    return entry;
}

/* pubsub-I4 */
static void
entry_touch(trpi_index *index, trpi_pubreg_entry *entry)
{
    entry->changed = ++index->changes;
    if (entry->topic != NULL && !index->broken) {
        entry->topic->changed = entry->changed;
    }
}

/* Forget an entry in which nobody is any more. */
static void
entry_release(trpi_index *index, trpi_pubreg_entry *entry)
{
    if (entry->places_count > 0 || entry->groups_count > 0) {
        return;
    }
    trpi_table_remove(
        &entries_kind, &index->entries, NULL,
        trpi_table_find(&entries_kind, &index->entries, NULL, entry->hash, &entry->key));
    index->topics -= entry->key.kind == TRPI_PUBSUB_TOPIC;
    if (entry->key.kind == TRPI_PUBSUB_GROUP) {
        trpi_pubreg_entry *topic = entry->topic;
        uint32_t at = 0;
        while (topic->groups[at] != entry) {
            at++;
        }
        topic->groups[at] = topic->groups[--topic->groups_count];
        entry_release(index, topic);
    }
    entry_free(entry);
}

/* Return the entry of a key, a new one if there is none; a group's topic has room for it, too. */
static trpi_pubreg_entry *
entry_have(trpi_index *index, const trpi_pubsub_key *key, uint64_t hash)
{
    trpi_pubreg_entry *entry = trpi_index_find(index, key, hash);
    if (entry != NULL || key->kind != TRPI_PUBSUB_GROUP) {
        return entry != NULL ? entry : entry_new(index, key, hash);
    }
    trpi_pubsub_key name = topic_of(key);
    trpi_pubreg_entry *topic = entry_have(index, &name, trpi_pubsub_key_hash(&name));
    if (topic == NULL) {
        return NULL;
    }
    if (TRPI_ARRAY_HAS_ROOM(topic, groups)) {
        entry = entry_new(index, key, hash);
    }
    if (entry == NULL) {
        entry_release(index, topic);
        return NULL;
    }
    topic->groups[topic->groups_count++] = entry;
    entry->topic = topic;
    return entry;
}

/* ---- places ---------------------------------------------------------------------------------- */

trpi_pubreg_place *
trpi_index_place(const trpi_pubreg_entry *entry, uint32_t node)
{
    for (uint32_t i = 0; i < entry->places_count; i++) {
        if (entry->places[i].node == node) {
            return &entry->places[i];
        }
    }
    return NULL;
}

static void
place_remove(trpi_index *index, trpi_pubreg_entry *entry, trpi_pubreg_place *place,
             uint32_t *entries)
{
    *place = entry->places[--entry->places_count];
    entry_touch(index, entry);
    (*entries)--;
    entry_release(index, entry);
}

trp_err
trpi_index_set(trpi_index *index, const trpi_pubsub_key *key, uint64_t hash, uint32_t node,
               uint32_t count, uint64_t begun, uint32_t *entries)
{
    trpi_pubreg_entry *entry =
        count == 0 ? trpi_index_find(index, key, hash) : entry_have(index, key, hash);
    trpi_pubreg_place *place = entry == NULL ? NULL : trpi_index_place(entry, node);
    if (count == 0) {
        if (place != NULL) {
            place_remove(index, entry, place, entries);
        }
        return TRP_OK;
    }
    if (entry == NULL) {
        return TRP_ENOMEM;
    }
    if (place == NULL) {
        if (!TRPI_ARRAY_HAS_ROOM(entry, places)) {
            entry_release(index, entry);
            return TRP_ENOMEM;
        }
        place = &entry->places[entry->places_count++];
        *place = (trpi_pubreg_place){ .node = node, .since = entry->number + 1 };
        (*entries)++;
    } else if (place->begun != begun) {
        place->since = entry->number + 1;
    }
    place->count = count;
    place->begun = begun;
    entry_touch(index, entry);
    return TRP_OK;
}

void
trpi_index_drop(trpi_index *index, uint32_t node, uint32_t *entries)
{
    while (*entries > 0) { /* a removal moves other elements, perhaps behind the position */
        uint32_t position = 0;
        trpi_pubreg_entry *entry;
        while (*entries > 0 && (entry = trpi_index_next(index, &position)) != NULL) {
            trpi_pubreg_place *place = trpi_index_place(entry, node);
            if (place != NULL) {
                uint32_t before = index->entries.count;
                place_remove(index, entry, place, entries);
                position -= index->entries.count < before ? 1 : 0; /* its place has another now */
            }
        }
    }
}

/* ---- checks ---------------------------------------------------------------------------------- */

static const char *
check_group(const trpi_index *index, const trpi_pubreg_entry *entry, trpi_check *check)
{
    trpi_pubsub_key key = topic_of(&entry->key);
    const trpi_pubreg_entry *topic = trpi_index_find(index, &key, trpi_pubsub_key_hash(&key));
    uint32_t found = 0;
    for (uint32_t i = 0; topic != NULL && i < topic->groups_count; i++) {
        found += topic->groups[i] == entry;
    }
    if (topic != entry->topic || (!index->broken && topic->changed < entry->changed)) {
        return trpi_check_broken(check, "pubsub-I4: a change of a group is none of its topic");
    }
    return found == 1 ? NULL : trpi_check_broken(check, "pubsub-I2: a group is not in its topic");
}

const char *
trpi_index_check(const trpi_index *index, trpi_check *check)
{
    uint32_t position = 0, topics = 0;
    const trpi_pubreg_entry *entry;
    const char *bad = NULL;
    while (bad == NULL && (entry = trpi_index_next(index, &position)) != NULL) {
        topics += entry->key.kind == TRPI_PUBSUB_TOPIC;
        if (entry->places_count + entry->groups_count == 0) {
            return trpi_check_broken(check, "pubsub-I1: nobody is in an entry");
        }
        for (uint32_t i = 0; i < entry->places_count; i++) {
            if (entry->places[i].count == 0 ||
                trpi_index_place(entry, entry->places[i].node) != &entry->places[i]) {
                return trpi_check_broken(check, "pubsub-I1: a place is empty or there twice");
            }
        }
        if (entry->number > index->published) {
            return trpi_check_broken(check, "pubsub-I3: a number is above the sum");
        }
        bad = entry->key.kind == TRPI_PUBSUB_GROUP ? check_group(index, entry, check) : NULL;
    }
    return bad != NULL               ? bad
           : topics != index->topics ? trpi_check_broken(check, "pubsub-I1: topics are miscounted")
                                     : NULL;
}
