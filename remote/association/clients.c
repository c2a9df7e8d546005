/* clients.c - what is taken of peers without a host.
 *
 * Why.     A client of a cluster listens nowhere: it makes all connections, and its address is made
 *          of its uid. It is no node of the cluster, so what it may do is the other way round from
 *          a peer in untrusted mode: nothing, but for frames of its own channel, and messages to
 *          doors, the actors that the receptionist has opened for it.
 * Shape.   handshake --name is made of the uid, there is room (doors.c)--> accepted
 *          message --door (slot, generation, uid) in the table?--> delivered, else dropped
 * Must hold.
 *   clients-C1  Without a receptionist (clients_max 0) a peer without a host is refused as one that
 *       advertises no host and port.
 *   clients-C2  A message of a client reaches a door of this client, or nothing. Neither system
 *       messages, selections and commands, nor possibly harmful messages, nor messages in the name
 *       of a third node are taken of it, whether this node is in untrusted mode or not.
 *   clients-C3  A client is never dialled (trpi_peer_may_dial(), lane_settle()).
 *   clients-C4  Its control lane stays off the thread for control lanes (control_begin()).
 * Tests.   tests/unit/remote/clients_test.c
 */
#include "remote/association/clients.h"

#include "remote/association/conn.h"
#include "remote/association/inbound.h"

/* Under TLS a certificate proves who calls, else its host does: another one cannot take the lanes
 * of a client that is connected. */
trp_err
trpi_client_claims(trpi_peer *peer, const trpi_conn *conn, bool lane)
{
    const trpi_transport_ops *ops = trpi_conn_remote(conn)->ops;
    uint64_t key = trpi_conn_share_key(conn);
    if (peer->client.key != key && (lane || trpi_peer_is_active(peer))) {
        return TRP_EPERM;
    }
    peer->client.key = key;
    if (!lane && ops->named != NULL) {
        ops->named(trpi_conn_link(conn), peer->client.certificate, sizeof peer->client.certificate);
    }
    return TRP_OK;
}

/* ---- what is taken of a client --------------------------------------------------------------- */

bool
trpi_client_refuses(trpi_conn *conn, uint8_t kind, const trp_type *type, bool third,
                    const trpi_message *message)
{
    if (!trpi_conn_is_client(conn)) {
        return false;
    }
    if (kind == TRPI_FRAME_SELECT) {
        return trpi_untrusted_drop(conn, "selection by a client", "");
    }
    if (third) {
        return trpi_untrusted_drop(conn, "message of a client in the name of a third node", "");
    }
    if (type != NULL && (type->flags & TRP_TYPE_POSSIBLY_HARMFUL) != 0) {
        return trpi_untrusted_drop(conn, "possibly harmful message of a client", type->name);
    }
    return !trpi_door_is(trpi_conn_remote(conn), message->to_slot, message->to_generation,
                         trpi_conn_uid(conn)) &&
           trpi_untrusted_drop(conn, "message of a client to an actor that is no service", "");
}

bool
trpi_client_refuses_channel(trpi_conn *conn, enum trpi_control_channel channel)
{
    return channel != TRPI_CHANNEL_CLIENT &&
           trpi_untrusted_drop(conn, "control message of a client", "");
}
