/* clients.h - peers without a host (clients of a cluster): how many are accepted, and which of
 * their messages are taken. */
#ifndef TRPI_REMOTE_CLIENTS_H
#define TRPI_REMOTE_CLIENTS_H

#include "remote/association/context.h"
#include "remote/wire/codec.h"

/* ---- doors.c ---- */
void trpi_clients_begin(trpi_remote *remote);
void trpi_clients_end(trpi_remote *remote);
/* Those of remote.h. */
void trpi_clients_accept(trpi_remote *remote, uint32_t clients_max);
uint32_t trpi_clients_count(trpi_remote *remote);
trp_err trpi_door_open(trpi_remote *remote, trp_ref ref, uint64_t uid);
void trpi_door_close(trpi_remote *remote, trp_ref ref);
bool trpi_door_is(trpi_remote *remote, uint32_t slot, uint32_t generation, uint64_t uid);
/* Why the caller with that address cannot be accepted as a client; NULL: it can be. */
const char *trpi_clients_refusal(trpi_remote *remote, const trpi_address *address, uint64_t uid);
/* A control connection of a client is bound to its peer, and has ended. */
void trpi_clients_came(trpi_remote *remote);
void trpi_clients_went(trpi_remote *remote);

/* ---- clients.c ---- */
/* May this connection be one of the client's? It is noted for a control lane. By peer->lock.
 * Errors: TRP_EPERM. */
trp_err trpi_client_claims(trpi_peer *peer, const trpi_conn *conn, bool lane);
/* Of a client: drop a message that none may send, or to an actor that is no door of this one;
 * counted, and logged at DEBUG. */
bool trpi_client_refuses(trpi_conn *conn, uint8_t kind, const trp_type *type, bool third,
                         const trpi_message *message);
bool trpi_client_refuses_channel(trpi_conn *conn, enum trpi_control_channel channel);

#endif
