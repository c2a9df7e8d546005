/* link_nng.h - the tcp transport on nng byte streams. transport_arg is not used (NULL). */
#ifndef TRPI_REMOTE_LINK_NNG_H
#define TRPI_REMOTE_LINK_NNG_H

#include "base/transport.h"

extern const trpi_transport_ops trpi_link_nng_ops;

#endif
