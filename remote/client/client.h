/* client.h - the door of the room: what a receptionist shares with a client. */
#ifndef TRPI_REMOTE_CLIENT_CLIENT_H
#define TRPI_REMOTE_CLIENT_CLIENT_H

#include <troupe/client.h>

#include "remote/client/frame.h"

_Static_assert(TRPI_CLIENT_NAME_BYTES_MAX == TRP_TOPIC_BYTES_MAX, "one limit");
_Static_assert(TRP_CLIENT_SERVICE_NAME_BYTES_MAX < TRPI_CLIENT_NAME_BYTES_MAX, "it fits");

/* Register the types of troupe/client.h. Thread: any. */
trp_err trpi_client_types_register(void);

#endif
