/* io.h - what the parts of the room share: the sockets of one system, and messages of their own. */
#ifndef TRPI_IO_IO_H
#define TRPI_IO_IO_H

#include <stdatomic.h>

#include <troupe/io.h>

#include "actor/actor.h"
#include "base/net.h"
#include "io/buffers.h"
#include "io/poller.h"
#include "io/settings.h"
#include "io/tls_program.h"

#define TRPI_IO_ADDRESSES_MAX 8 /* of a name */

typedef struct trpi_io {
    trp_system *system;
    trpi_world *world;
    const trpi_net_ops *net;
    trpi_poller *poller;
    trpi_io_settings settings;
    struct trpi_io_lookups *lookups;
    trpi_io_buffers *buffers;   /* of settings.tcp.read_bytes */
    trp_ref tcp, udp;           /* the managers; written before anyone else has this */
    _Atomic uint32_t connected; /* connections of TCP */
    _Atomic uint32_t udp_open, udp_connected_open;
} trpi_io;

/* Log what happens, when trace-logging of these limits is on. */
#define TRPI_IO_TRACE(ctx, limits, ...)                                                            \
    do {                                                                                           \
        if ((limits)->trace) {                                                                     \
            trp_log((ctx), TRP_LOG_DEBUG, __VA_ARGS__);                                            \
        }                                                                                          \
    } while (0)

/* The sockets of a system, made at the first use. Errors: TRP_EUNSUPPORTED (its world has none),
 * those of trp_extension_get. */
trp_err trpi_io_get(trp_system *system, trpi_io **ret_io);

extern const trp_behaviour trpi_tcp_manager_behaviour, trpi_tcp_listener_behaviour,
    trpi_tcp_actor_behaviour, trpi_udp_manager_behaviour;

/* ---- addresses, options ---------------------------------------------------------------------- */
void trpi_io_address_in(const trp_io_address *address, trpi_net_address *ret_address);
void trpi_io_address_out(const trpi_net_address *address, trp_io_address *ret_address);
/* Set what applies to the socket. Returns 0 or -errno. */
int trpi_io_options_set(const trpi_io *io, int number, int family, bool stream,
                        const trp_socket_options *options);
/* Fill options that a caller gave, NULL: the defaults. False: refused. */
bool trpi_io_options_take(const trp_socket_options *given, trp_socket_options *ret_options);
/* A sentence of an errno; static text. */
const char *trpi_io_reason(int error);

/* Where a command goes: an address as text, and what it was resolved to. */
typedef struct trpi_io_target {
    uint32_t count; /* of addresses; 0: not resolved yet */
    int error;      /* errno, if it cannot be */
    trp_io_address addresses[TRPI_IO_ADDRESSES_MAX];
    char text[TRP_IO_ADDRESS_BYTES_MAX];
} trpi_io_target;
/* Check the text of a target, and resolve it if it is numeric. passive: "*:80" is an address.
 * Errors: TRP_EINVAL. */
trp_err trpi_io_target_set(trpi_io_target *target, const char *text, bool passive);

/* Write the host of a target that is a name; ret_host has TRP_IO_ADDRESS_BYTES_MAX. */
void trpi_io_target_host(const trpi_io_target *target, char *ret_host);

/* ---- messages between the parts -------------------------------------------------------------- */
typedef struct trpi_tcp_connect {
    trpi_io_target remote;
    trp_io_address local; /* TRP_IO_NO_ADDRESS: any */
    trp_socket_options socket;
    uint32_t timeout_ms, register_ms, handshake_ms;
    uint64_t number;
    trp_tls *tls; /* counted; NULL: none */
    char server_name[TRPI_TLS_HOST_BYTES];
} trpi_tcp_connect;

typedef struct trpi_tcp_bind {
    trpi_io_target local;
    trp_socket_options socket;
    trp_ref handler;
    uint32_t backlog, register_ms, handshake_ms;
    uint64_t number;
    trp_tls *tls; /* counted; NULL: none */
} trpi_tcp_bind;

typedef struct trpi_tcp_accepted {
    trpi_world *world;
    const trpi_net_ops *net; /* NULL: not filled yet */
    _Atomic int number;      /* -1: taken */
    trp_ref handler;         /* of the listener */
    trp_socket_options socket;
    uint32_t register_ms, handshake_ms;
    trp_tls *tls; /* counted; NULL: none */
} trpi_tcp_accepted;

typedef struct trpi_tcp_register {
    trp_ref handler;
    trp_tcp_register_options options; /* complete */
} trpi_tcp_register;

typedef struct trpi_tcp_write_part {
    trp_bytes bytes;
    char *path; /* NULL: bytes */
    uint64_t position, count, ack;
} trpi_tcp_write_part;
typedef struct trpi_tcp_write {
    uint32_t count, room;
    trpi_tcp_write_part one;   /* of a command of one part */
    trpi_tcp_write_part *many; /* NULL: one */
} trpi_tcp_write;

void trpi_tcp_connect_drop(void *held); /* of the messages */
void trpi_tcp_bind_drop(void *held);
extern trp_type trpi_tcp_connect_type, trpi_tcp_bind_type, trpi_tcp_accepted_type,
    trpi_tcp_register_type, trpi_tcp_write_type;
extern trp_type trpi_udp_open_type, trpi_udp_send_type;
extern trp_type trpi_io_ready_type;   /* the socket has reports */
extern trp_type trpi_io_removed_type; /* the socket is closed */
extern trp_type trpi_io_go_on_type;   /* to oneself: a bound was reached */
extern trp_type trpi_io_alarm_type;

/* ---- sockets --------------------------------------------------------------------------------- */
/* A watched socket and its actor. Counted: by the watch, by the actor, by each trp_tcp_received
 * that is not handled. */
typedef struct trpi_io_socket {
    trp_system *system;
    trpi_world *world;
    const trpi_net_ops *net;
    trp_ref owner;
    trpi_watch *watch;
    int number;
    _Atomic uint32_t count;
    _Atomic uint32_t events;    /* reported, and not taken by the owner yet */
    _Atomic bool owned;         /* the actor wants to be told */
    bool tell_removed;          /* written before the watch is removed */
    _Atomic uint64_t unhandled; /* received bytes that the handler has not handled */
    _Atomic uint64_t resume_at; /* tell the owner when so few are unhandled; UINT64_MAX: no */
} trpi_io_socket;
#define TRPI_IO_ROOM 0x100u /* an event: unhandled bytes are few again */

/* Watch a socket for the running actor. Takes number, always. Returns NULL for want of memory or of
 * watches. */
trpi_io_socket *trpi_io_socket_new(trpi_io *io, trp_ctx *ctx, int number);
/* The reports since the last call. Thread: the actor. */
static inline uint32_t
trpi_io_socket_take(trpi_io_socket *socket)
{
    return atomic_exchange_explicit(&socket->events, 0, memory_order_acq_rel);
}
/* Close it: by a reset, and tell the actor trpi_io_removed afterwards, if wanted. The actor gives
 * up its count. NULL is fine. */
void trpi_io_socket_close(trpi_io_socket *socket, bool reset, bool tell);
/* True while less than unhandled_max received bytes wait at the handler. False: TRPI_IO_ROOM comes
 * when half of them have been handled. Thread: the actor. */
bool trpi_io_socket_has_room(trpi_io_socket *socket, uint64_t unhandled_max);
/* Make a trp_tcp_received, or a trp_udp_received, of bytes, which it takes on success only. Errors:
 * TRP_ENOMEM. */
trp_err trpi_io_received_new(trpi_io_socket *socket, trp_bytes bytes, trp_msg **ret_msg);
trp_err trpi_io_datagram_new(trpi_io_socket *socket, trp_bytes bytes, const trp_io_address *from,
                             trp_msg **ret_msg);

#endif
