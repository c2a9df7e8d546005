/* clients.c - what a receptionist asks of remoting, and what a client does: the room's interface.
 *
 * Tests.  tests/unit/remote/clients_test.c, tests/unit/client/client_test.c
 */
#include "remote/association/clients.h"

#include <stdio.h>

#include "remote/association/peer.h"
#include "remote/remote.h"

void
trpi_remote_clients_accept(trpi_remote *remote, uint32_t clients_max)
{
    trpi_clients_accept(remote, clients_max);
}

uint32_t
trpi_remote_clients_count(trpi_remote *remote)
{
    return trpi_clients_count(remote);
}

trp_err
trpi_remote_door_open(trpi_remote *remote, trp_ref ref, uint64_t uid)
{
    return trpi_door_open(remote, ref, uid);
}

void
trpi_remote_door_close(trpi_remote *remote, trp_ref ref)
{
    trpi_door_close(remote, ref);
}

bool
trpi_remote_certificate_name(trpi_remote *remote, const trpi_address *address, char *ret_name,
                             size_t bytes)
{
    trpi_peer *peer = NULL;
    if (trpi_peer_get(remote, address, false, &peer) != TRP_OK) {
        return false;
    }
    pthread_mutex_lock(&peer->lock);
    bool has = trpi_peer_certificate(peer)[0] != '\0';
    if (has) {
        (void)snprintf(ret_name, bytes, "%s", trpi_peer_certificate(peer));
    }
    pthread_mutex_unlock(&peer->lock);
    trpi_peer_unpin(peer);
    return has;
}

bool
trpi_remote_is_elsewhere(trpi_remote *remote, const trpi_address *address,
                         trpi_address *ret_address)
{
    trpi_peer *peer = NULL;
    if (trpi_peer_get(remote, address, false, &peer) != TRP_OK) {
        return false;
    }
    pthread_mutex_lock(&peer->lock);
    const trpi_address *place = trpi_refusal_place(&peer->refusal);
    bool is =
        place->host[0] != '\0' && !trpi_peer_is_active(peer) && !trpi_address_equal(place, address);
    if (is) {
        *ret_address = *place;
    }
    pthread_mutex_unlock(&peer->lock);
    trpi_peer_unpin(peer);
    return is;
}
