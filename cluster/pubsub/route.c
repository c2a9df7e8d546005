/* route.c - the nodes that get a message of publish and subscribe.
 *
 * Shape.   A plan has a target for each node; where one of a group is chosen there, the target has
 *          a pick. Choices weigh nodes by how many actors they have.
 * Must hold.
 *   pubsub-R1  No node is a target twice; one without anybody is none.
 *   pubsub-R2  Of each group exactly one is picked.
 * Limits.  None of its own: as many targets as nodes, as many picks as groups of the topic.
 * Tests.   tests/unit/cluster/pubsub_route_test.c, tests/sim/pubsub_test.c
 */
#include "cluster/pubsub/route.h"

#include <string.h>

#include "base/alloc.h"
#include "base/array.h"
#include "base/assert.h"
#include "cluster/pubsub/registry_inner.h"

static uint64_t
step_random(uint64_t *random)
{
    uint64_t z = *random += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* entry has a place. */
static trpi_route_pick
pick_one(trpi_pubreg_entry *entry, trpi_route_choice choice, uint64_t *random)
{
    uint64_t sum = 0, at;
    for (uint32_t i = 0; i < entry->places_count; i++) {
        sum += entry->places[i].count;
    }
    at = (choice == TRPI_ROUTE_ROUND_ROBIN ? entry->turn++ : step_random(random)) % sum;
    const trpi_pubreg_place *place = entry->places;
    while (at >= place->count) {
        at -= place->count;
        place++;
    }
    return (trpi_route_pick){ place->node, (uint32_t)at, entry };
}

void
trpi_route_fini(trpi_route *route)
{
    trpi_free(route->targets);
    trpi_free(route->picks);
    trpi_free(route->drawn);
    trpi_free(route->by_node);
    memset(route, 0, sizeof *route);
}

static trp_err
route_reserve(trpi_route *route, uint32_t nodes, uint32_t places, uint32_t groups)
{
    uint32_t targets = nodes < places + groups ? nodes : places + groups;
    route->targets_count = route->picks_count = route->drawn_count = route->by_node_count = 0;
    trp_err err = TRPI_ARRAY_RESERVE(route, targets, targets, TRPI_ARRAY_NO_LIMIT);
    err = err != TRP_OK ? err : TRPI_ARRAY_RESERVE(route, picks, groups, TRPI_ARRAY_NO_LIMIT);
    err = err != TRP_OK ? err : TRPI_ARRAY_RESERVE(route, drawn, groups, TRPI_ARRAY_NO_LIMIT);
    return err != TRP_OK ? err : TRPI_ARRAY_RESERVE(route, by_node, nodes, TRPI_ARRAY_NO_LIMIT);
}

/* One of each group, in the order of the targets. */
static void
route_groups(trpi_route *route, const trpi_pubreg_entry *topic, uint32_t nodes,
             trpi_route_choice choice, uint64_t *random)
{
    memset(route->by_node, 0xff, nodes * sizeof *route->by_node);
    for (uint32_t i = 0; i < route->targets_count; i++) {
        route->by_node[route->targets[i].node] = i;
    }
    for (uint32_t i = 0; i < topic->groups_count; i++) {
        trpi_route_pick pick = pick_one(topic->groups[i], choice, random);
        uint32_t *at = &route->by_node[pick.node];
        if (*at == UINT32_MAX) {
            *at = route->targets_count;
            route->targets[route->targets_count++] = (trpi_route_target){ .node = pick.node };
        }
        route->targets[*at].picks_count++;
        route->drawn[route->drawn_count++] = pick;
    }
    for (uint32_t i = 0; i < route->targets_count; i++) {
        route->targets[i].picks_first = route->picks_count;
        route->picks_count += route->targets[i].picks_count;
        route->targets[i].picks_count = 0;
    }
    for (uint32_t i = 0; i < route->drawn_count; i++) {
        trpi_route_target *target = &route->targets[route->by_node[route->drawn[i].node]];
        route->picks[target->picks_first + target->picks_count++] = route->drawn[i];
    }
}

trp_err
trpi_route_publish(trpi_pubreg *registry, const trpi_pubsub_key *topic, trpi_route_choice choice,
                   uint64_t *random, trpi_route *route)
{
    trpi_pubreg_entry *entry = trpi_pubreg_find(registry, topic);
    uint32_t nodes = registry->nodes_count;
    trp_err err = route_reserve(route, nodes, entry == NULL ? 0 : entry->places_count,
                                entry == NULL ? 0 : entry->groups_count);
    if (err != TRP_OK || entry == NULL) {
        return err;
    }
    if (entry->places_count > 0) {
        entry->number++;
        registry->index.published++;
    }
    for (uint32_t i = 0; i < entry->places_count; i++) {
        const trpi_pubreg_place *place = &entry->places[i];
        route->targets[route->targets_count++] = (trpi_route_target){
            .node = place->node,
            .all = true,
            .stamp = { registry->options.life, entry->number,
                       trpi_pubreg_subscription(registry->nodes[place->node].node.life,
                                                place->begun),
                       place->since }
        };
    }
    if (entry->groups_count > 0) {
        route_groups(route, entry, nodes, choice, random);
    }
    return TRP_OK;
}

trpi_route_pick
trpi_route_send(trpi_pubreg *registry, const trpi_pubsub_key *path, bool affinity,
                trpi_route_choice choice, uint64_t *random)
{
    trpi_pubreg_entry *entry = trpi_pubreg_find(registry, path);
    const trpi_pubreg_place *here =
        entry == NULL ? NULL : trpi_index_place(entry, TRPI_PUBREG_SELF);
    if (entry == NULL || entry->places_count == 0) {
        return (trpi_route_pick){ TRPI_PUBREG_NOWHERE, 0, NULL };
    }
    if (affinity && here != NULL) {
        uint64_t turn = choice == TRPI_ROUTE_ROUND_ROBIN ? entry->turn++ : step_random(random);
        return (trpi_route_pick){ TRPI_PUBREG_SELF, (uint32_t)(turn % here->count), entry };
    }
    return pick_one(entry, choice, random);
}

const trpi_pubreg_place *
trpi_route_all(const trpi_pubreg *registry, const trpi_pubsub_key *path, bool all_but_self,
               uint32_t *position)
{
    const trpi_pubreg_entry *entry = trpi_pubreg_find(registry, path);
    while (entry != NULL && *position < entry->places_count) {
        const trpi_pubreg_place *place = &entry->places[(*position)++];
        if (!all_but_self || place->node != TRPI_PUBREG_SELF) {
            return place;
        }
    }
    return NULL;
}
