/* routes.c - the routes of a peer: their list, and questions that any file may ask of one. */
#include "remote/association/routes.h"

#include <string.h>

#include "base/alloc.h"
#include "remote/association/peer.h"

const trpi_node_id *
trpi_route_node_get(void *arg, uint32_t node)
{
    trpi_remote *remote = arg;
    return trpi_node_id_get(remote->system, node);
}

trp_err
trpi_route_address_check(const trpi_remote *remote, const trpi_address *address)
{
    bool has_port =
        address->port != 0 || trpi_address_is_nameless(address); /* a client that calls */
    if (!has_port || address->host[0] == '\0' ||
        strcmp(address->protocol, remote->address.protocol) != 0) {
        return TRP_EINVAL; /* a local-only address, or a transport that we do not have */
    }
    /* an earlier self */
    return trpi_address_equal(address, &remote->address) ? TRP_ESTATE : TRP_OK;
}

uint32_t
trpi_routes_not_told(trpi_peer *peer, uint64_t turn, uint32_t *nodes, uint32_t max)
{
    uint32_t count = 0;
    for (trpi_route *r = peer->routes; r != NULL && count < max; r = r->next) {
        if (r->ready_turn < turn) { /* else by this one, or by one that began later */
            r->ready_turn = turn;
            nodes[count++] = r->node;
        }
    }
    return count;
}

void
trpi_route_link(trpi_route *route)
{
    route->next = route->peer->routes;
    route->peer->routes = route;
}

void
trpi_route_unlink(trpi_route *route)
{
    trpi_route **at = &route->peer->routes;
    while (*at != route) {
        at = &(*at)->next;
    }
    *at = route->next;
}

void
trpi_route_free(trpi_route *route)
{
    for (int lane = 0; lane < TRPI_LANE_COUNT; lane++) {
        trpi_buffer_fini(&route->batches[lane].frames);
        trpi_free(route->batches[lane].announced);
    }
    trpi_buffer_fini(&route->scratch);
    trpi_buffer_fini(&route->held);
    trpi_free(atomic_load_explicit(&route->large, memory_order_relaxed));
    trpi_free(route);
}
