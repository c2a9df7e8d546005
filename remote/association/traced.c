/* traced.c - what of a trace goes with a message to another node, and what comes from there.
 *
 * Why.   Only a peer that has announced it gets a trace section. A frame that is encoded before the
 *        handshake has none: nobody knows yet what the peer takes.
 * Tests. tests/unit/remote/traced_test.c
 */
#include "remote/association/conn_state.h"
#include "remote/association/context.h"
#include "remote/association/inbound.h"
#include "remote/association/peer.h"
#include "remote/association/route.h"

/* Does this incarnation of the peer take traces, and is msg part of one? */
static bool
trace_get(trp_system *system, const trpi_peer *peer, uint64_t uid, const trp_msg *msg,
          trpi_wire_trace *ret_trace)
{
    trpi_traced traced;
    if (!trpi_traced_get(system, msg, &traced) ||
        (trpi_agreed_features(&peer->agreed) & TRPI_FEATURE_TRACE) == 0 || uid == 0 ||
        !trpi_peer_seems_active_as(peer, uid)) {
        return false;
    }
    *ret_trace = (trpi_wire_trace){ traced.trace, traced.parent,
                                    trpi_world_wall_ns(trpi_system_world(system)) - traced.age_ns };
    return true;
}

bool
trpi_route_trace(const trpi_route *route, const trp_msg *msg, trpi_wire_trace *ret_trace)
{
    return trace_get(route->remote->system, route->peer, route->uid, msg, ret_trace);
}

uint64_t
trpi_selection_trace(trp_system *system, const trpi_peer *peer, const trp_msg *msg,
                     trpi_wire_trace *ret_trace)
{
    uint64_t uid = trpi_peer_active_uid(peer);
    return trace_get(system, peer, uid, msg, ret_trace) ? uid : 0;
}

trpi_traced
trpi_inbound_traced(const trpi_conn *conn, const trpi_message *message)
{
    uint64_t now_ns = trpi_world_wall_ns(trpi_system_world(trpi_conn_remote(conn)->system));
    const trpi_wire_trace *trace = &message->trace;
    /* clocks of two hosts: it may seem to arrive before it was told */
    return (trpi_traced){ trace->trace, trace->parent,
                          now_ns > trace->sent_ns ? now_ns - trace->sent_ns : 1 };
}
