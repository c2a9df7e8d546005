/* refusal.h - connections that are refused, here and by a peer. */
#ifndef TRPI_REMOTE_REFUSAL_H
#define TRPI_REMOTE_REFUSAL_H

#include "remote/association/context.h"
#include "remote/wire/codec.h"

/* Why a peer is refused that advertises a loopback address and calls from elsewhere. */
#define TRPI_LOOPBACK_REFUSAL                                                                      \
    "you advertise an address on loopback: remote.hostname is what others can dial"
/* Count a connection that was refused, and log it, rate limited. peer: its address, as text. */
void trpi_refused(trpi_remote *remote, const char *peer, trpi_refusal why, const char *detail);
/* Count a refusal by the peer, and keep the name of its system. By peer->lock. */
void trpi_handshake_refused(trpi_peer *peer, const trpi_handshake *refusal);
/* After that: if the peer has quarantined this node, drop what waits for it. By peer->lock. */
void trpi_barred(trpi_peer *peer, trpi_deferred *deferred);
/* Is this node quarantined there, and is no other incarnation expected yet? By peer->lock. */
bool trpi_is_barred_now(const trpi_peer *peer);
/* Why a peer on this connection cannot have this address; NULL: it can. */
const char *trpi_address_refusal(const trpi_conn *conn, const trpi_address *address);
/* The protocol of a stream that is not ours, by its first bytes; NONE: none that is known. */
trpi_refusal trpi_refusal_of_bytes(const uint8_t *bytes, size_t count, const char **ret_detail);

#endif
