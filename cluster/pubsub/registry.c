/* registry.c - the own bucket of a registry, look-ups, and publications that arrive.
 *
 * Shape.   put() changes an entry, gives it the next version, and puts it at the end of the list
 *          that is ordered by version: a delta is a piece of that list (registry_peers.c).
 * Must hold. Besides those of index.c, gaps.c and registry_peers.c:
 *   pubsub-O1  The own entries stand in the order of their versions, none twice, none above the
 *       bucket's.
 *   pubsub-O2  What is registered here is a place of this node in the index, with the same count.
 *   pubsub-O3  A removed entry is kept while a peer that was told of the bucket has not
 *       acknowledged a later version, and no longer.                           (prune)
 * Limits.  entries_max, removed_max. Above removed_max those that lag most are told all again.
 * Tests.   tests/unit/cluster/pubsub_registry_test.c, tests/sim/pubsub_test.c
 */
#include <string.h>

#include "base/alloc.h"
#include "base/array.h"
#include "base/assert.h"
#include "cluster/pubsub/registry_inner.h"

#define GATHER_MS 10u /* what is registered within this time goes together */

/* ---- life ------------------------------------------------------------------------------------ */

static void
default_to(uint32_t *value, uint32_t standard)
{
    *value = *value == 0 ? standard : *value;
}

static void
fill_options(trpi_pubreg_options *options)
{
    default_to(&options->tick_ms, TRPI_PUBREG_TICK_MS);
    default_to(&options->retry_ms, TRPI_PUBREG_RETRY_MS);
    default_to(&options->retry_ms_max, TRPI_PUBREG_RETRY_MS_MAX);
    default_to(&options->peer_bytes_max, TRPI_PUBREG_PEER_BYTES_MAX);
    default_to(&options->tick_bytes_max, TRPI_PUBREG_TICK_BYTES_MAX);
    default_to(&options->entries_max, TRPI_PUBREG_ENTRIES_MAX);
    default_to(&options->removed_max, TRPI_PUBREG_REMOVED_MAX);
    options->life = options->life == 0 ? 1 : options->life;
}

trp_err
trpi_pubreg_new(const trpi_node_id *self, const char *name, const trpi_pubreg_options *options,
                trpi_pubreg **ret_registry)
{
    size_t bytes = strlen(name);
    if (bytes == 0 || bytes > TRPI_MEDIATOR_NAME_BYTES_MAX ||
        (options != NULL && options->peer_bytes_max != 0 &&
         options->peer_bytes_max < TRPI_PUBREG_PEER_BYTES_MIN)) {
        return TRP_EINVAL;
    }
    trpi_pubreg *registry = trpi_alloc(sizeof *registry);
    if (registry == NULL || !TRPI_ARRAY_HAS_ROOM(registry, nodes)) {
        trpi_free(registry);
        return TRP_ENOMEM;
    }
    if (options != NULL) {
        registry->options = *options;
    }
    fill_options(&registry->options);
    memcpy(registry->name, name, bytes + 1);
    trpi_peer_state *here = &registry->nodes[registry->nodes_count++];
    memset(here, 0, sizeof *here);
    here->used = true;
    here->node = (trpi_pubreg_node){ .id = *self,
                                     .life = registry->options.life,
                                     .slot = registry->options.slot,
                                     .generation = registry->options.generation };
    registry->index.broken = (registry->options.broken & TRPI_PUBREG_BROKEN_STAMP) != 0;
    registry->wake_ms = UINT64_MAX;
    *ret_registry = registry;
    return TRP_OK;
}

static void
own_free(trpi_own *own)
{
    trpi_gaps_fini(&own->gaps);
    trpi_free(own);
}

void
trpi_pubreg_free(trpi_pubreg *registry)
{
    if (registry == NULL) {
        return;
    }
    while (registry->first != NULL) {
        trpi_own *own = registry->first;
        registry->first = own->later;
        own_free(own);
    }
    for (uint32_t i = 0; i < registry->actions_count; i++) {
        trpi_buffer_fini(&registry->actions[i].bytes);
    }
    trpi_table_fini(&registry->own);
    trpi_index_fini(&registry->index);
    trpi_free(registry->nodes);
    trpi_free(registry->items);
    trpi_free(registry->actions);
    trpi_free(registry);
}

/* ---- the own bucket -------------------------------------------------------------------------- */

static uint64_t
own_hash(const void *arg, const void *element)
{
    (void)arg;
    return (*(trpi_own *const *)element)->hash;
}

static bool
own_is_key(const void *arg, const void *element, const void *key)
{
    (void)arg;
    return trpi_pubsub_key_equal(&(*(trpi_own *const *)element)->item.key, key);
}

static const trpi_table_kind own_kind = { sizeof(trpi_own *), trpi_table_pointer_is_empty, own_hash,
                                          own_is_key };

trpi_own *
trpi_pubreg_own_find(const trpi_pubreg *registry, const trpi_pubsub_key *key, uint64_t hash)
{
    trpi_own *const *at = trpi_table_find(&own_kind, &registry->own, NULL, hash, key);
    return at == NULL ? NULL : *at;
}

trpi_own *
trpi_pubreg_own_next(const trpi_pubreg *registry, uint32_t *position)
{
    trpi_own *const *at = trpi_table_next(&own_kind, &registry->own, position);
    return at == NULL ? NULL : *at;
}

static trpi_own *
own_new(trpi_pubreg *registry, const trpi_pubsub_key *key, uint64_t hash)
{
    trpi_own *own = trpi_alloc(sizeof *own + (size_t)key->name_bytes + key->group_bytes);
    trpi_own **at = own == NULL ? NULL : trpi_table_add(&own_kind, &registry->own, NULL, hash, key);
    if (at == NULL) {
        trpi_free(own);
        return NULL;
    }
    *at = own;
    own->hash = hash;
    own->item.key = *key;
    own->item.key.name = memcpy(own->bytes, key->name, key->name_bytes);
    if (key->group_bytes > 0) {
        own->item.key.group = memcpy(own->bytes + key->name_bytes, key->group, key->group_bytes);
    }
    return own;
}

static void
own_forget(trpi_pubreg *registry, trpi_own *own)
{
    trpi_table_remove(&own_kind, &registry->own, NULL,
                      trpi_table_find(&own_kind, &registry->own, NULL, own->hash, &own->item.key));
    own_free(own);
}

static void
order_unlink(trpi_pubreg *registry, trpi_own *own)
{
    *(own->earlier != NULL ? &own->earlier->later : &registry->first) = own->later;
    *(own->later != NULL ? &own->later->earlier : &registry->last) = own->earlier;
    own->earlier = own->later = NULL;
}

static void
order_append(trpi_pubreg *registry, trpi_own *own)
{
    own->earlier = registry->last;
    *(registry->last != NULL ? &registry->last->later : &registry->first) = own;
    registry->last = own;
}

static void
went_unlink(trpi_pubreg *registry, trpi_own *own)
{
    *(own->went_earlier != NULL ? &own->went_earlier->went : &registry->went_first) = own->went;
    *(own->went != NULL ? &own->went->went_earlier : &registry->went_last) = own->went_earlier;
    own->went_earlier = own->went = NULL;
    registry->went_count--;
}

static void
went_append(trpi_pubreg *registry, trpi_own *own)
{
    own->went_earlier = registry->went_last;
    *(registry->went_last != NULL ? &registry->went_last->went : &registry->went_first) = own;
    registry->went_last = own;
    registry->went_count++;
}

void
trpi_pubreg_prune(trpi_pubreg *registry)
{
    uint64_t floor = trpi_pubreg_floor(registry);
    while (registry->went_first != NULL && registry->went_first->item.version <= floor) {
        trpi_own *own = registry->went_first;
        went_unlink(registry, own);
        order_unlink(registry, own);
        own_forget(registry, own);
    }
}

/* Those that lag most get a new era: they begin again with an empty bucket, and need nothing that
 * was removed. */
static void
limit_removed(trpi_pubreg *registry)
{
    while (registry->went_count > registry->options.removed_max) {
        uint64_t floor = trpi_pubreg_floor(registry);
        for (uint32_t i = 1; i < registry->nodes_count; i++) {
            trpi_peer_state *peer = &registry->nodes[i];
            if (peer->told && peer->acked == floor) {
                peer->told = false;
                peer->era = ++registry->eras;
                peer->acked = peer->sent = 0;
            }
        }
        trpi_pubreg_prune(registry);
    }
}

static void
wake_at(trpi_pubreg *registry, uint64_t now_ms)
{
    uint64_t at_ms = now_ms + GATHER_MS;
    at_ms = at_ms < registry->next_tick_ms ? registry->next_tick_ms : at_ms;
    if (registry->speaks && registry->nodes_count > 1 && at_ms < registry->wake_ms) {
        registry->wake_ms = at_ms;
    }
}

trp_err
trpi_pubreg_put(trpi_pubreg *registry, uint64_t now_ms, const trpi_pubsub_key *key, uint32_t count)
{
    if (!trpi_pubsub_key_is_valid(key)) {
        return TRP_EINVAL;
    }
    uint64_t hash = trpi_pubsub_key_hash(key), version = registry->version + 1;
    trpi_own *own = trpi_pubreg_own_find(registry, key, hash);
    bool was_there = own != NULL && own->item.count > 0, is_new = own == NULL;
    if ((own == NULL && count == 0) || (own != NULL && own->item.count == count)) {
        return TRP_OK;
    }
    if (!was_there && registry->own_count >= registry->options.entries_max) {
        return TRP_ELIMIT;
    }
    own = is_new ? own_new(registry, key, hash) : own;
    if (own == NULL) {
        return TRP_ENOMEM;
    }
    bool again = is_new || (!was_there && !(registry->options.broken & TRPI_PUBREG_BROKEN_BEGUN));
    uint64_t begun = again ? version : own->item.begun;
    trp_err err = trpi_index_set(&registry->index, key, hash, TRPI_PUBREG_SELF, count, begun,
                                 &registry->nodes[TRPI_PUBREG_SELF].entries);
    if (err != TRP_OK) {
        if (is_new) {
            own_forget(registry, own);
        }
        return err;
    }
    if (!is_new) {
        order_unlink(registry, own);
        if (!was_there) {
            went_unlink(registry, own);
        }
    }
    own->item.count = count;
    own->item.begun = begun;
    own->item.version = registry->version = version;
    order_append(registry, own);
    registry->own_count = registry->own_count + (count > 0) - was_there;
    if (count == 0) {
        trpi_gaps_fini(&own->gaps);
        went_append(registry, own);
        trpi_pubreg_prune(registry);
        limit_removed(registry);
    }
    wake_at(registry, now_ms);
    return TRP_OK;
}

/* ---- looking --------------------------------------------------------------------------------- */

trpi_pubreg_entry *
trpi_pubreg_find(const trpi_pubreg *registry, const trpi_pubsub_key *key)
{
    return trpi_index_find(&registry->index, key, trpi_pubsub_key_hash(key));
}

trpi_pubreg_entry *
trpi_pubreg_next(const trpi_pubreg *registry, uint32_t *position)
{
    return trpi_index_next(&registry->index, position);
}

uint64_t
trpi_pubreg_count(const trpi_pubreg_entry *entry)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < entry->places_count; i++) {
        sum += entry->places[i].count;
    }
    for (uint32_t i = 0; i < entry->groups_count; i++) {
        sum += trpi_pubreg_count(entry->groups[i]);
    }
    return sum;
}

uint32_t
trpi_pubreg_topics(const trpi_pubreg *registry)
{
    return registry->index.topics;
}

uint32_t
trpi_pubreg_own(const trpi_pubreg *registry, const trpi_pubsub_key *key)
{
    const trpi_own *own = trpi_pubreg_own_find(registry, key, trpi_pubsub_key_hash(key));
    return own == NULL ? 0 : own->item.count;
}

uint64_t
trpi_pubreg_changes(const trpi_pubreg *registry)
{
    return registry->index.changes;
}

uint64_t
trpi_pubreg_version(const trpi_pubreg *registry)
{
    return registry->version;
}

uint64_t
trpi_pubreg_known_version(const trpi_pubreg *registry)
{
    uint64_t least = registry->speaks ? registry->version : 0;
    for (uint32_t i = 1; i < registry->nodes_count; i++) {
        const trpi_peer_state *peer = &registry->nodes[i];
        if (peer->used && peer->is_peer && !peer->absent && peer->acked < least) {
            least = peer->acked;
        }
    }
    return least;
}

bool
trpi_pubreg_is_settled(const trpi_pubreg *registry)
{
    return trpi_pubreg_known_version(registry) == registry->version;
}

uint64_t
trpi_pubreg_wake_ms(const trpi_pubreg *registry)
{
    return registry->wake_ms;
}

const trpi_pubreg_action *
trpi_pubreg_actions(const trpi_pubreg *registry, uint32_t *ret_count)
{
    *ret_count = registry->actions_count;
    return registry->actions;
}

const trpi_pubreg_node *
trpi_pubreg_node_at(const trpi_pubreg *registry, uint32_t index)
{
    trpi_assert(index < registry->nodes_count && registry->nodes[index].used);
    return &registry->nodes[index].node;
}

uint32_t
trpi_pubreg_node_of(const trpi_pubreg *registry, const trpi_node_id *id)
{
    for (uint32_t i = 0; i < registry->nodes_count; i++) {
        if (registry->nodes[i].used && trpi_node_id_equal(&registry->nodes[i].node.id, id)) {
            return i;
        }
    }
    return TRPI_PUBREG_NOWHERE;
}

/* ---- publications that arrive ---------------------------------------------------------------- */

trp_err
trpi_pubreg_arrived(trpi_pubreg *registry, const trpi_pubsub_key *topic, const trpi_node_id *from,
                    const trpi_pubsub_stamp *stamp, trpi_pubsub_arrival *ret_arrival)
{
    trpi_own *own = trpi_pubreg_own_find(registry, topic, trpi_pubsub_key_hash(topic));
    if (own == NULL || own->item.count == 0) {
        return TRP_ENOENT;
    }
    bool stranger = trpi_pubreg_node_of(registry, from) == TRPI_PUBREG_NOWHERE;
    uint64_t begun = trpi_pubreg_subscription(registry->options.life, own->item.begun);
    return trpi_gaps_arrived(&own->gaps, from->uid, stranger, stamp, begun, ret_arrival);
}
