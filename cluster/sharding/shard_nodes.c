/* shard_nodes.c - the members of the cluster in stable slots. See shard_nodes.h. */
#include "cluster/sharding/shard_nodes.h"

#include <string.h>

#include "base/alloc.h"
#include "base/array.h"
#include "base/assert.h"
#include "cluster/engine/age.h"

void
trpi_shard_nodes_fini(trpi_shard_nodes *nodes)
{
    trpi_free(nodes->slots);
    trpi_free(nodes->order);
    memset(nodes, 0, sizeof *nodes);
}

/* Return the place in the order where it is, or belongs. */
static uint32_t
place_of(const trpi_shard_nodes *nodes, const trpi_node_id *id)
{
    uint32_t low = 0, high = nodes->order_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (trpi_node_id_compare(&nodes->slots[nodes->order[middle]].member.id, id) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

uint32_t
trpi_shard_nodes_find(const trpi_shard_nodes *nodes, const trpi_node_id *id)
{
    uint32_t place = place_of(nodes, id);
    if (place < nodes->order_count &&
        trpi_node_id_equal(&nodes->slots[nodes->order[place]].member.id, id)) {
        return nodes->order[place];
    }
    return TRPI_SHARD_SLOT_NONE;
}

uint32_t
trpi_shard_nodes_add(trpi_shard_nodes *nodes, const trpi_node_id *id)
{
    uint32_t slot = trpi_shard_nodes_find(nodes, id), place;
    if (slot != TRPI_SHARD_SLOT_NONE) {
        return slot;
    }
    for (slot = 0; slot < nodes->slots_count && nodes->slots[slot].used; slot++) {
    }
    if (!TRPI_ARRAY_HAS_ROOM(nodes, order) ||
        (slot == nodes->slots_count && !TRPI_ARRAY_HAS_ROOM(nodes, slots))) {
        return TRPI_SHARD_SLOT_NONE;
    }
    if (slot == nodes->slots_count) {
        nodes->slots_count++;
    }
    memset(&nodes->slots[slot], 0, sizeof nodes->slots[slot]);
    nodes->slots[slot].used = true;
    nodes->slots[slot].member.id = *id;
    place = place_of(nodes, id);
    memmove(nodes->order + place + 1, nodes->order + place,
            (nodes->order_count - place) * sizeof *nodes->order);
    nodes->order[place] = slot;
    nodes->order_count++;
    return slot;
}

void
trpi_shard_nodes_remove(trpi_shard_nodes *nodes, uint32_t slot)
{
    uint32_t place = place_of(nodes, &nodes->slots[slot].member.id);
    trpi_assert(nodes->slots[slot].used && nodes->order[place] == slot);
    memmove(nodes->order + place, nodes->order + place + 1,
            (nodes->order_count - place - 1) * sizeof *nodes->order);
    nodes->order_count--;
    nodes->slots[slot].used = false;
    nodes->slots[slot].present = false;
}

trp_err
trpi_shard_nodes_update(trpi_shard_nodes *nodes, const trpi_shard_member *members, uint32_t count)
{
    trp_err err = TRP_OK;
    for (uint32_t i = 0; i < nodes->slots_count; i++) {
        nodes->slots[i].listed = false;
    }
    for (uint32_t i = 0; i < count; i++) {
        uint32_t slot = trpi_shard_nodes_add(nodes, &members[i].id);
        if (slot == TRPI_SHARD_SLOT_NONE) {
            err = TRP_ENOMEM;
            continue;
        }
        nodes->slots[slot].member = members[i];
        nodes->slots[slot].listed = true;
    }
    for (uint32_t i = 0; i < nodes->slots_count; i++) {
        nodes->slots[i].present = nodes->slots[i].used && nodes->slots[i].listed;
    }
    return err;
}

uint32_t
trpi_shard_nodes_oldest(const trpi_shard_nodes *nodes)
{
    uint32_t best = TRPI_SHARD_SLOT_NONE;
    trpi_aged oldest = { .up_number = 0 };
    for (uint32_t i = 0; i < nodes->order_count; i++) {
        const trpi_shard_node *node = &nodes->slots[nodes->order[i]];
        trpi_aged aged = { node->member.id, node->member.up_number, node->member.status };
        if (node->present && node->member.has_role && trpi_age_counts(&aged) &&
            (best == TRPI_SHARD_SLOT_NONE || trpi_age_compare(&aged, &oldest) < 0)) {
            best = nodes->order[i];
            oldest = aged;
        }
    }
    return best;
}

/* ---- sets of slots --------------------------------------------------------------------------- */

bool
trpi_slot_set_add(trpi_slot_set *set, uint32_t slot)
{
    uint32_t word = slot / 64;
    if (word >= set->words_count) {
        uint64_t *words = trpi_realloc(set->words, (word + 1u) * sizeof *words);
        if (words == NULL) {
            return false;
        }
        memset(words + set->words_count, 0, (word + 1u - set->words_count) * sizeof *words);
        set->words = words;
        set->words_count = word + 1;
    }
    if (!trpi_slot_set_has(set, slot)) {
        set->words[word] |= 1ull << slot % 64;
        set->count++;
    }
    return true;
}

void
trpi_slot_set_remove(trpi_slot_set *set, uint32_t slot)
{
    if (trpi_slot_set_has(set, slot)) {
        set->words[slot / 64] &= ~(1ull << slot % 64);
        set->count--;
    }
}

bool
trpi_slot_set_has(const trpi_slot_set *set, uint32_t slot)
{
    return slot / 64 < set->words_count && (set->words[slot / 64] >> slot % 64 & 1) != 0;
}

uint32_t
trpi_slot_set_next(const trpi_slot_set *set, uint32_t slot)
{
    for (; slot / 64 < set->words_count; slot = (slot / 64 + 1) * 64) {
        uint64_t rest = set->words[slot / 64] >> slot % 64;
        if (rest != 0) {
            return slot + (uint32_t)__builtin_ctzll(rest);
        }
    }
    return TRPI_SHARD_SLOT_NONE;
}

void
trpi_slot_set_fini(trpi_slot_set *set)
{
    trpi_free(set->words);
    memset(set, 0, sizeof *set);
}
