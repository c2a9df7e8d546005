/* registry_check.c - what must hold of a registry after each event, as code.
 *
 * Tests.   tests/unit/cluster/pubsub_registry_test.c, tests/sim/pubsub_test.c
 */
#include "cluster/pubsub/registry_inner.h"

static const char *
check_order(const trpi_pubreg *registry, trpi_check *check)
{
    uint64_t before = 0;
    uint32_t here = 0, went = 0;
    for (const trpi_own *own = registry->first; own != NULL; own = own->later) {
        if (own->item.version <= before || own->item.version > registry->version) {
            return trpi_check_broken(check, "pubsub-O1: version %llu stands behind %llu",
                                     (unsigned long long)own->item.version,
                                     (unsigned long long)before);
        }
        before = own->item.version;
        here += own->item.count > 0;
        went += own->item.count == 0;
    }
    bool right = here == registry->own_count && went == registry->went_count &&
                 here + went == registry->own.count;
    return right ? NULL : trpi_check_broken(check, "pubsub-O1: entries are miscounted");
}

static const char *
check_own(const trpi_pubreg *registry, trpi_check *check)
{
    if (registry->nodes[TRPI_PUBREG_SELF].entries != registry->own_count) {
        return trpi_check_broken(check, "pubsub-O2: the index has %u own entries of %u",
                                 registry->nodes[TRPI_PUBREG_SELF].entries, registry->own_count);
    }
    for (const trpi_own *own = registry->first; own != NULL; own = own->later) {
        const trpi_pubreg_entry *entry =
            trpi_index_find(&registry->index, &own->item.key, own->hash);
        const trpi_pubreg_place *place =
            entry == NULL ? NULL : trpi_index_place(entry, TRPI_PUBREG_SELF);
        if ((place == NULL ? 0 : place->count) != own->item.count) {
            return trpi_check_broken(check, "pubsub-O2: the index has another count");
        }
    }
    const trpi_own *went = registry->went_first;
    if (went != NULL && went->item.version <= trpi_pubreg_floor(registry)) {
        return trpi_check_broken(check, "pubsub-O3: a removed entry is kept that all know to be");
    }
    return NULL;
}

static const char *
check_peers(const trpi_pubreg *registry, trpi_check *check)
{
    for (uint32_t i = 1; i < registry->nodes_count; i++) {
        const trpi_peer_state *peer = &registry->nodes[i];
        if (peer->acked > peer->sent || peer->sent > registry->version) {
            return trpi_check_broken(check, "pubsub-P1: acked %llu, sent %llu, version %llu",
                                     (unsigned long long)peer->acked,
                                     (unsigned long long)peer->sent,
                                     (unsigned long long)registry->version);
        }
        if ((!peer->used || !peer->counts) && peer->entries > 0) {
            return trpi_check_broken(check, "pubsub-P3: a node that does not count has entries");
        }
    }
    bool waits = registry->wake_ms != UINT64_MAX;
    if (registry->speaks && !waits && !trpi_pubreg_is_settled(registry) &&
        !(registry->options.broken & TRPI_PUBREG_BROKEN_RETRY)) {
        return trpi_check_broken(check, "pubsub-P4: not settled, and never wakes");
    }
    return NULL;
}

/* Each place is one of its node's entries. */
static const char *
check_places(const trpi_pubreg *registry, trpi_check *check)
{
    uint64_t places = 0, entries = 0;
    uint32_t position = 0;
    const trpi_pubreg_entry *entry;
    while ((entry = trpi_index_next(&registry->index, &position)) != NULL) {
        places += entry->places_count;
        for (uint32_t i = 0; i < entry->places_count; i++) {
            if (entry->places[i].node >= registry->nodes_count) {
                return trpi_check_broken(check, "pubsub-P3: a place is on no node");
            }
        }
    }
    for (uint32_t i = 0; i < registry->nodes_count; i++) {
        entries += registry->nodes[i].entries;
    }
    return places == entries ? NULL : trpi_check_broken(check, "pubsub-P3: places are miscounted");
}

const char *
trpi_pubreg_check(const trpi_pubreg *registry, trpi_check *check)
{
    const char *bad = trpi_index_check(&registry->index, check);
    bad = bad != NULL ? bad : check_order(registry, check);
    bad = bad != NULL ? bad : check_own(registry, check);
    bad = bad != NULL ? bad : check_peers(registry, check);
    return bad != NULL ? bad : check_places(registry, check);
}
