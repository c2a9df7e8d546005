/* adopt.h - a stream that another room has opened becomes a connection: part of the room's door. */
#ifndef TRPI_IO_ADOPT_H
#define TRPI_IO_ADOPT_H

#include <troupe/actor.h>

/* Make a connection of a connected stream socket (nonblocking, close-on-exec), as if a listener of
 * `handler` had accepted it: handler is told trp_tcp_connected, and registers. Takes number,
 * always. Errors: those of trp_tcp_manager; TRP_ENOMEM. Thread: actor. */
trp_err trpi_io_adopt(trp_ctx *ctx, int number, trp_ref handler);

#endif
