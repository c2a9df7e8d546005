/* transport.h - the transport that the options of remoting ask for. */
#ifndef TRPI_REMOTE_TRANSPORT_H
#define TRPI_REMOTE_TRANSPORT_H

#include "remote/association/context.h"

/* Open the transport, with what makes it secure, and bad, around it. Errors: its own,
 * TRP_ECONFIG. */
trp_err trpi_remote_transport_open(trpi_remote *remote);

/* Its address is known: what cookies are made for. */
void trpi_remote_secure_self(trpi_remote *remote);

#endif
