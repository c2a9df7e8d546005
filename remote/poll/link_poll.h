/* link_poll.h - the tcp transport on the world's sockets and the system's poller. */
#ifndef TRPI_REMOTE_LINK_POLL_H
#define TRPI_REMOTE_LINK_POLL_H

#include "base/transport.h"
#include "io/poller.h"

/* transport_arg of trpi_link_poll_ops.open(); copied there. */
typedef struct trpi_link_poll_arg {
    trpi_sched *sched; /* of the timers; its threads run until the transport is freed */
    trpi_poller *poller;
} trpi_link_poll_arg;

extern const trpi_transport_ops trpi_link_poll_ops;

#endif
