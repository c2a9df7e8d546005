/* transport.h - opens the transport that the options of remoting ask for. */
#ifndef TRPI_REMOTE_TRANSPORT_H
#define TRPI_REMOTE_TRANSPORT_H

#include "remote/association/context.h"

/* Open the transport, with TLS, cookie and fault injection around it as configured. Errors: those
 * of the transport, TRP_ECONFIG. */
trp_err trpi_remote_transport_open(trpi_remote *remote);

/* Tell the secure transport the advertised address, for which cookie proofs are made. */
void trpi_remote_secure_self(trpi_remote *remote);

#endif
