/* troupe/io.h - sockets as actors: TCP, UDP and Unix-domain streams.
 *
 * Each open socket is an actor: a connection, a listener, a socket for datagrams. It is told
 * commands and tells events, can be watched, and closes its socket when it ends. The functions
 * below only tell: their answers are messages, with the socket's actor as the sender.
 *
 *     trp_tcp_bind(ctx, "127.0.0.1:4000", NULL)      -> trp_tcp_bound, then for each peer:
 *     trp_tcp_connect(ctx, "example.org:80", NULL)   -> trp_tcp_connected, from the connection
 *     trp_tcp_register(ctx, connection, handler, NULL)
 *                                                    -> the handler is told trp_tcp_received
 *     trp_tcp_write(ctx, connection, bytes, ack)     -> trp_tcp_ack, if ack is not 0
 *     trp_tell(ctx, connection, &trp_tcp_close_type, NULL, 0)
 *                                                    -> the handler is told trp_tcp_closed
 *
 * A command that fails is answered by trp_tcp_command_failed, with its errno.
 *
 * Addresses: "10.0.0.1:80", "[::1]:80", "name:80", "*:80" (all of IPv4, for bind), port 0 (any
 * free one, for bind), "unix:/run/a.sock" (a Unix-domain stream; the file is removed when its
 * listener ends).
 *
 * An actor that owns connections accepts trp_tcp_protocol, or has no list of what it accepts.
 */
#ifndef TROUPE_IO_H
#define TROUPE_IO_H

#include <troupe/actor.h>
#include <troupe/base.h>
#include <troupe/bytes.h>
#include <troupe/message.h>
#include <troupe/tls.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- addresses and options of sockets -------------------------------------------------------- */

#define TRP_IO_ADDRESS_BYTES_MAX 272 /* of an address as text, with the NUL */
#define TRP_IO_PATH_BYTES_MAX 107    /* of a Unix-domain socket */

enum { TRP_IO_NO_ADDRESS = 0, TRP_IO_IPV4 = 1, TRP_IO_IPV6 = 2, TRP_IO_LOCAL = 3 };
typedef struct trp_io_address {
    uint16_t kind; /* TRP_IO_* */
    uint16_t port;
    uint32_t scope; /* of a link-local IPv6 address */
    uint8_t ip[16]; /* network order; of IPv4 the first 4 */
    char path[112]; /* of a Unix-domain socket; "" of one without a name */
} trp_io_address;

/* Read a numeric address, or one of a Unix-domain socket.
 *
 * Ownership: borrows text.
 * Errors:    TRP_EINVAL  it is none; a name must be resolved, which connect and bind do
 * Thread:    any; lock-free.
 * Source:    TCP-01, TCP-05.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_io_address_parse(const char *text, trp_io_address *ret_address);

/* Write an address as text, NUL-terminated, cut at bytes - 1, and return text.
 *
 * Ownership: borrows address; text is the caller's.
 * Errors:    none
 * Thread:    any; lock-free.
 * Source:    TCP-01, TCP-05.  Since: 0.1 */
TRP_API char *trp_io_address_text(const trp_io_address *address, char *text, size_t bytes);

/* Options of a socket (SO); those that do not fit its kind are not looked at. */
typedef struct trp_socket_options {
    size_t size;
    uint32_t receive_buffer_bytes, send_buffer_bytes; /* 0: as the machine decides */
    uint32_t delay;      /* 1: Nagle's algorithm; 0: TCP_NODELAY, whatever the machine's default */
    uint32_t keep_alive; /* 1: SO_KEEPALIVE */
    uint32_t oob_inline; /* 1: SO_OOBINLINE */
    uint32_t traffic_class;    /* of IP, 0 to 255 */
    uint32_t no_reuse_address; /* 1: bind fails while old connections of the port linger */
    uint32_t broadcast;        /* 1: SO_BROADCAST, UDP */
    uint32_t v6_only;          /* 1: an IPv6 socket takes no IPv4 */
    uint32_t zero;
} trp_socket_options;
#define TRP_SOCKET_OPTIONS_INIT                                                                    \
    {                                                                                              \
        sizeof(trp_socket_options), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0                                   \
    }

/* ---- commands of TCP ------------------------------------------------------------------------- */

#define TRP_TCP_CONNECT_TIMEOUT_MS 10000
#define TRP_TCP_REGISTER_TIMEOUT_MS 5000 /* default of io.tcp.register-timeout */
#define TRP_TCP_BACKLOG_DEFAULT 100
#define TRP_TCP_LOW_BYTES_DEFAULT 65536
#define TRP_TCP_HIGH_BYTES_DEFAULT 262144
#define TRP_TCP_MAX_BYTES_DEFAULT 4194304
#define TRP_TCP_UNHANDLED_BYTES_DEFAULT 1048576
#define TRP_TCP_FLUSH_TIMEOUT_MS 10000
#define TRP_TCP_PARTS_MAX 65536 /* writes that wait in one connection, or stand in one batch */
#define TRP_TCP_NO_ACK 0        /* an ack that is not asked for */
/* Connections of one system, by default (io.tcp.max-channels): beyond, accepting pauses, and
 * connecting fails (EMFILE). */
#define TRP_TCP_CONNECTIONS_MAX 256000

/* Borrow the ref of the actor that all connections and listeners of the system are children of,
 * /system/io-tcp. It starts at the first use; the functions below find it by themselves.
 *
 * Errors:    TRP_ENOMEM, TRP_ECLOSED, TRP_ELIMIT  as trp_system_spawn
 *            TRP_EUNSUPPORTED  the system's world has no sockets
 * Thread:    any; takes a lock for a moment.
 * Source:    IO-02.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_tcp_manager(trp_system *system, trp_ref *ret_manager);

typedef struct trp_tcp_connect_options {
    size_t size;
    const char *local; /* the own address; NULL: any */
    const trp_socket_options *socket;
    uint32_t timeout_ms;           /* for all addresses of a name; 0: TRP_TCP_CONNECT_TIMEOUT_MS */
    uint32_t register_timeout_ms;  /* 0: io.tcp.register-timeout */
    uint64_t number;               /* of the caller's own: stands in the answer */
    trp_tls *tls;                  /* of a client; shared; NULL: no TLS */
    const char *server_name;       /* that the server's certificate must have, and that it is told;
                                     NULL: the host in remote */
    uint32_t handshake_timeout_ms; /* after TCP's own; 0: TRP_TLS_HANDSHAKE_TIMEOUT_MS */
    uint32_t zero;
} trp_tcp_connect_options;
#define TRP_TCP_CONNECT_OPTIONS_INIT                                                               \
    {                                                                                              \
        sizeof(trp_tcp_connect_options), NULL, NULL, 0, 0, 0, NULL, NULL, 0, 0                     \
    }

/* Connect. The answer is trp_tcp_connected or trp_tcp_command_failed, told to the running actor;
 * with TLS when the handshake is over. The connection's actor aborts it when no handler registers
 * within register_timeout_ms.
 *
 * Ownership: borrows remote and options.
 * Errors:    TRP_EINVAL  remote or local is no address, an option is out of range, tls is one of a
 *                        server, or remote has no host and there is no server_name
 *            and those of trp_tcp_manager
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    TCP-01, TCP-02, PIPE-13.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_tcp_connect(trp_ctx *ctx, const char *remote,
                                               const trp_tcp_connect_options *options);

typedef struct trp_tcp_bind_options {
    size_t size;
    trp_ref handler; /* is told trp_tcp_connected of each peer; TRP_REF_NONE: the running actor */
    const trp_socket_options *socket; /* of the connections, too */
    uint32_t backlog;                 /* 0: TRP_TCP_BACKLOG_DEFAULT */
    uint32_t register_timeout_ms;     /* 0: io.tcp.register-timeout */
    uint64_t number;                  /* of the caller's own: stands in the answer */
    trp_tls *tls;                     /* of a server; shared; NULL: no TLS */
    uint32_t handshake_timeout_ms;    /* 0: TRP_TLS_HANDSHAKE_TIMEOUT_MS */
    uint32_t zero;
} trp_tcp_bind_options;
#define TRP_TCP_BIND_OPTIONS_INIT                                                                  \
    {                                                                                              \
        sizeof(trp_tcp_bind_options), TRP_REF_NONE, NULL, 0, 0, 0, NULL, 0, 0                      \
    }

/* Listen. The answer is trp_tcp_bound, from the listener, or trp_tcp_command_failed. The listener
 * ends by trp_tcp_unbind_type, or when its handler has ended; its connections stay. With TLS the
 * handler is told of a connection when its handshake is over, and trp_tcp_refused if that fails.
 *
 * Ownership: borrows local and options.
 * Errors:    TRP_EINVAL  local is no address, an option is out of range, or tls is one of a client
 *            and those of trp_tcp_manager
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    TCP-05, TCP-06, PIPE-13.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_tcp_bind(trp_ctx *ctx, const char *local,
                                            const trp_tcp_bind_options *options);

/* How writes are taken. */
enum {
    /* They wait in a buffer. The handler is told trp_tcp_above_high and trp_tcp_below_low once each
     * time that a mark is passed; a write that would go above max_bytes ends the connection
     * (ENOBUFS), since a stream with a hole is of no use. */
    TRP_TCP_BUFFERED = 0,
    /* One write may wait. Another one fails (EAGAIN), and then all, until trp_tcp_resume_writing is
     * answered by trp_tcp_writing_resumed: so none overtakes one that failed (useResumeWriting). */
    TRP_TCP_SUSPENDING = 1,
    /* One write may wait. Others fail (EAGAIN) as long as it does. */
    TRP_TCP_REFUSING = 2
};

typedef struct trp_tcp_register_options {
    size_t size;
    uint32_t writer;                   /* TRP_TCP_BUFFERED, ... */
    uint32_t keep_open_on_peer_closed; /* 1: the peer's end leaves our direction open */
    uint32_t
        pull; /* 1: each trp_tcp_resume_reading is one trp_tcp_received; none before the first */
    uint32_t flush_timeout_ms; /* for what waits when the handler has ended; 0: default */
    uint64_t low_bytes, high_bytes, max_bytes; /* of TRP_TCP_BUFFERED; 0: the defaults */
    /* Received bytes that the handler has not handled yet; above, nothing is read. 0: default */
    uint64_t unhandled_bytes_max;
} trp_tcp_register_options;
#define TRP_TCP_REGISTER_OPTIONS_INIT                                                              \
    {                                                                                              \
        sizeof(trp_tcp_register_options), 0, 0, 0, 0, 0, 0, 0, 0                                   \
    }

/* Make an actor the handler of a connection: it is told the bytes that come, and the end. Nothing
 * is read before. When the handler ends, what waits is flushed and the connection closed.
 *
 * Ownership: borrows options.
 * Errors:    TRP_EINVAL  a ref is TRP_REF_NONE, or an option is out of range
 *            TRP_ENOMEM  out of memory
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    TCP-03, TCP-04, TCP-11, TCP-19, TCP-20, PIPE-13.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_tcp_register(trp_ctx *ctx, trp_ref connection, trp_ref handler,
                                                const trp_tcp_register_options *options);

/* Write bytes. ack 0: no answer unless it fails; else trp_tcp_ack with this number when the kernel
 * has taken all of them, which does not mean that the peer has them. No bytes: only the ack. Each
 * write is answered at most once, in order; one that the connection did not live to see is a dead
 * letter.
 *
 * Ownership: shares bytes.
 * Errors:    TRP_ENOMEM  out of memory
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    TCP-14, TCP-18, IO-04 to -06.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_tcp_write(trp_ctx *ctx, trp_ref connection, trp_bytes bytes,
                                             uint64_t ack);

/* Write a copy of memory, as trp_tcp_write.
 *
 * Ownership: borrows data.
 * Errors:    TRP_ENOMEM  out of memory; TRP_EMSGSIZE  above TRP_BYTES_MAX
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    TCP-14.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_tcp_write_copy(trp_ctx *ctx, trp_ref connection,
                                                  const void *data, size_t bytes, uint64_t ack);

/* Several writes as one command, in one piece: no other writer's bytes come between. */
typedef struct trp_tcp_batch trp_tcp_batch;

/* Begin a batch.
 *
 * Ownership: gives *ret_batch (to trp_tcp_write_batch, or trp_tcp_batch_free).
 * Errors:    TRP_ENOMEM  out of memory; TRP_ENOTYPE  the system has no trp_tcp_manager yet
 * Thread:    any; takes a lock for a moment.
 * Source:    TCP-16.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_tcp_batch_new(trp_tcp_batch **ret_batch);

/* Add bytes with an ack of their own, or only an ack.
 *
 * Ownership: shares bytes.
 * Errors:    TRP_ENOMEM  out of memory; TRP_ELIMIT  TRP_TCP_PARTS_MAX reached
 * Thread:    owner (the creator; no lock inside).
 * Source:    TCP-16.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_tcp_batch_add(trp_tcp_batch *batch, trp_bytes bytes,
                                                 uint64_t ack);

/* Add a piece of a file, which the kernel copies (sendfile), or with TLS is read and encrypted. It
 * is opened when the connection takes the batch: if it cannot be, the batch fails with that errno.
 * A file that is shorter ends the connection (EIO). A file on a slow disk takes its time from a
 * thread of the connection's dispatcher (io.tcp.worker-dispatcher).
 *
 * Ownership: borrows path.
 * Errors:    TRP_ENOMEM  out of memory; TRP_ELIMIT  TRP_TCP_PARTS_MAX reached
 *            TRP_EINVAL  path is empty, or position and count are more than INT64_MAX
 * Thread:    owner (the creator; no lock inside).
 * Source:    TCP-15, TCP-16.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_tcp_batch_add_file(trp_tcp_batch *batch, const char *path,
                                                      uint64_t position, uint64_t count,
                                                      uint64_t ack);

/* Write a batch. An empty one does nothing.
 *
 * Ownership: takes batch, always: a tell cannot fail.
 * Errors:    none
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    TCP-16.  Since: 0.1 */
TRP_API void trp_tcp_write_batch(trp_ctx *ctx, trp_ref connection, trp_tcp_batch *batch);

/* Free a batch that was not written; NULL is fine.
 *
 * Ownership: takes batch.
 * Errors:    none
 * Thread:    owner (the creator; no lock inside).
 * Source:    TCP-16.  Since: 0.1 */
TRP_API void trp_tcp_batch_free(trp_tcp_batch *batch);

/* Write a piece of a file: a batch of one.
 *
 * Ownership: borrows path.
 * Errors:    as trp_tcp_batch_new and trp_tcp_batch_add_file
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    TCP-15.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_tcp_write_file(trp_ctx *ctx, trp_ref connection,
                                                  const char *path, uint64_t position,
                                                  uint64_t count, uint64_t ack);

/* Commands without a payload, for trp_tell(ctx, connection, &trp_tcp_close_type, NULL, 0). */
TRP_API extern trp_type
    trp_tcp_resume_writing_type; /* -> trp_tcp_writing_resumed, once all that was
                                                        taken is written */
TRP_API extern trp_type trp_tcp_suspend_reading_type;
TRP_API extern trp_type trp_tcp_resume_reading_type;
TRP_API extern trp_type trp_tcp_close_type; /* flush, then close: TRP_TCP_CLOSED */
/* flush, close our direction, go on receiving until the peer closes: TRP_TCP_CONFIRMED_CLOSED */
TRP_API extern trp_type trp_tcp_confirmed_close_type;
TRP_API extern trp_type trp_tcp_abort_type;  /* reset, flush nothing: TRP_TCP_ABORTED */
TRP_API extern trp_type trp_tcp_unbind_type; /* of a listener -> trp_tcp_unbound */

/* ---- events of TCP --------------------------------------------------------------------------- */

/* To the actor that connected, or the handler of the listener; the sender is the connection. */
typedef struct trp_tcp_connected {
    trp_io_address remote, local;
    uint64_t number;  /* of the options */
    trp_tls_peer tls; /* who the peer is; its version is 0 without TLS */
} trp_tcp_connected;
TRP_API extern trp_type trp_tcp_connected_type;

/* To the handler of the listener: a connection that did not come to be, since its TLS handshake
 * failed. */
typedef struct trp_tcp_refused {
    trp_io_address remote;
    int32_t error; /* errno: as of trp_tcp_closed */
    uint32_t zero;
    char reason[128]; /* a sentence */
} trp_tcp_refused;
TRP_API extern trp_type trp_tcp_refused_type;

/* To the actor that bound; the sender is the listener. */
typedef struct trp_tcp_bound {
    trp_io_address local; /* with the real port */
    uint64_t number;
} trp_tcp_bound;
TRP_API extern trp_type trp_tcp_bound_type;
TRP_API extern trp_type trp_tcp_unbound_type; /* no payload: the port is free */

/* To the handler: bytes, in their order. Read it by trp_tcp_received_of(). */
typedef struct trp_tcp_received {
    trp_bytes bytes; /* the message's; trp_bytes_ref() keeps them */
} trp_tcp_received;
TRP_API extern trp_type trp_tcp_received_type;
/* Borrow the event, until the behaviour call returns; NULL: msg is another message. */
static inline const trp_tcp_received *
trp_tcp_received_of(const trp_msg *msg)
{
    return (const trp_tcp_received *)trp_msg_held(msg, &trp_tcp_received_type);
}

/* To the writer: the kernel has taken all bytes of the write with this ack. */
typedef struct trp_tcp_ack {
    uint64_t ack;
} trp_tcp_ack;
TRP_API extern trp_type trp_tcp_ack_type;
TRP_API extern trp_type trp_tcp_writing_resumed_type; /* no payload */

/* To the handler: the writer's buffer went above high_bytes, or back to low_bytes. */
typedef struct trp_tcp_mark {
    uint64_t waiting_bytes;
} trp_tcp_mark;
TRP_API extern trp_type trp_tcp_above_high_type; /* trp_tcp_mark: write no more for now */
TRP_API extern trp_type trp_tcp_below_low_type;  /* trp_tcp_mark: write on */

typedef enum trp_tcp_command {
    TRP_TCP_CONNECT = 1,
    TRP_TCP_BIND,
    TRP_TCP_REGISTER,
    TRP_TCP_WRITE,
    TRP_TCP_RESUME_WRITING,
    TRP_TCP_SUSPEND_READING,
    TRP_TCP_RESUME_READING
} trp_tcp_command;

/* To the actor that gave the command. Of a batch each part that was not written answers. */
typedef struct trp_tcp_command_failed {
    uint32_t command; /* trp_tcp_command */
    int32_t error;    /* errno: EAGAIN another write waits, ENOBUFS the buffer is full, ENOTCONN not
                         registered, EPIPE closing, ECONNABORTED, ECONNRESET, ETIMEDOUT, ... */
    uint64_t ack;     /* of a write */
    uint64_t write;   /* the how many-th write command that the connection got; from 1 */
    uint32_t part;    /* of its batch, from 0 */
    uint32_t zero;
    uint64_t number;  /* of connect and bind: of the options */
    char reason[128]; /* a sentence */
} trp_tcp_command_failed;
TRP_API extern trp_type trp_tcp_command_failed_type;

/* How a connection ended: one type, so that one case handles all five. */
enum {
    TRP_TCP_CLOSED = 1,           /* by trp_tcp_close */
    TRP_TCP_ABORTED = 2,          /* by trp_tcp_abort */
    TRP_TCP_CONFIRMED_CLOSED = 3, /* by trp_tcp_confirmed_close; both directions ended in order */
    TRP_TCP_PEER_CLOSED = 4,
    TRP_TCP_ERROR_CLOSED = 5
};
/* To the handler, once, after all bytes; besides to the actor that gave the order, if it is another
 * one. Of a connection that is kept open after the peer's end it comes twice: first with half_open
 * 1. The connection's actor ends after it. */
typedef struct trp_tcp_closed {
    uint32_t how;
    /* errno of TRP_TCP_ERROR_CLOSED. Of TLS: EKEYEXPIRED, EKEYREVOKED, EKEYREJECTED the peer's
     * certificate, ENOKEY it has none, EACCES the peer refuses us, ETIMEDOUT the handshake,
     * ECONNRESET the connection ended and the session did not: bytes may be missing, EPROTO all
     * else. */
    int32_t error;
    uint32_t half_open; /* 1: TRP_TCP_PEER_CLOSED, and our direction is open */
    uint32_t zero;
    uint64_t received_bytes, written_bytes;
    char reason[128]; /* a sentence, of TRP_TCP_ERROR_CLOSED */
} trp_tcp_closed;
TRP_API extern trp_type trp_tcp_closed_type;

TRP_API extern const trp_protocol trp_tcp_protocol;

/* ---- UDP ------------------------------------------------------------------------------------- */

#define TRP_UDP_BYTES_MAX 65507 /* of one datagram's payload, IPv4 */
#define TRP_UDP_UNHANDLED_BYTES_DEFAULT 1048576
#define TRP_UDP_SOCKETS_MAX 4096 /* of one system, by default (io.udp.max-channels) */

typedef struct trp_udp_options {
    size_t size;
    trp_ref handler; /* is told what comes; TRP_REF_NONE: the running actor */
    const trp_socket_options *socket;
    const char *local; /* of trp_udp_connect: the own address; NULL: any */
    uint64_t number;   /* of the caller's own: stands in the answer */
    /* Received bytes that the handler has not handled yet; above, nothing is read, and the kernel
     * drops what its buffer does not take. 0: default */
    uint64_t unhandled_bytes_max;
} trp_udp_options;
#define TRP_UDP_OPTIONS_INIT                                                                       \
    {                                                                                              \
        sizeof(trp_udp_options), TRP_REF_NONE, NULL, NULL, 0, 0                                    \
    }

/* Open a socket for datagrams at an address. The answer is trp_udp_bound, from the socket's actor,
 * or trp_udp_command_failed. Datagrams that come are told the handler. It ends by
 * trp_udp_unbind_type, and when its handler has ended.
 *
 * Ownership: borrows local and options.
 * Errors:    TRP_EINVAL  local is no numeric address, or an option is out of range
 *            TRP_ENOMEM, TRP_ECLOSED, TRP_ELIMIT  as trp_system_spawn
 *            TRP_EUNSUPPORTED  the system's world has no sockets
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    UDP-02.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_udp_bind(trp_ctx *ctx, const char *local,
                                            const trp_udp_options *options);

/* Open a socket that only sends, at any free port. The answer is trp_udp_bound. Nobody but
 * trp_udp_unbind_type, a poison pill or trp_stop() ends it.
 *
 * Ownership: borrows options.
 * Errors:    as trp_udp_bind
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    UDP-01.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_udp_simple_sender(trp_ctx *ctx, const trp_udp_options *options);

/* Open a socket that sends to one address, and receives from there only. The answer is
 * trp_udp_bound, or trp_udp_command_failed. That the peer cannot be reached is told later, as
 * trp_udp_command_failed of a send, or of TRP_UDP_RECEIVE to the handler.
 *
 * Ownership: borrows remote and options.
 * Errors:    as trp_udp_bind
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    UDP-03.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_udp_connect(trp_ctx *ctx, const char *remote,
                                               const trp_udp_options *options);

/* Send one datagram. to NULL: of a connected socket. ack 0: no answer unless it fails; else
 * trp_udp_ack when the kernel has it. While the kernel has no room one datagram waits, and others
 * fail (EAGAIN).
 *
 * Ownership: shares bytes; borrows to.
 * Errors:    TRP_EINVAL  to is no IP address
 *            TRP_ENOMEM  out of memory
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    UDP-01, UDP-02, UDP-03, UDP-05.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_udp_send(trp_ctx *ctx, trp_ref socket, trp_bytes bytes,
                                            const trp_io_address *to, uint64_t ack);

/* Commands without a payload. */
TRP_API extern trp_type trp_udp_unbind_type; /* -> trp_udp_unbound; also: disconnect */
TRP_API extern trp_type trp_udp_suspend_reading_type;
TRP_API extern trp_type trp_udp_resume_reading_type;

/* To the actor that opened the socket, which is the sender. */
typedef struct trp_udp_bound {
    trp_io_address local; /* with the real port */
    uint64_t number;
} trp_udp_bound;
TRP_API extern trp_type trp_udp_bound_type;
TRP_API extern trp_type trp_udp_unbound_type; /* no payload: the port is free */

/* To the handler: one datagram. Read it by trp_udp_received_of(). */
typedef struct trp_udp_received {
    trp_bytes bytes; /* the message's; trp_bytes_ref() keeps them */
    trp_io_address from;
} trp_udp_received;
TRP_API extern trp_type trp_udp_received_type;
/* Borrow the event, until the behaviour call returns; NULL: msg is another message. */
static inline const trp_udp_received *
trp_udp_received_of(const trp_msg *msg)
{
    return (const trp_udp_received *)trp_msg_held(msg, &trp_udp_received_type);
}

/* To the sender: the kernel has the datagram. */
typedef struct trp_udp_ack {
    uint64_t ack;
} trp_udp_ack;
TRP_API extern trp_type trp_udp_ack_type;

enum { TRP_UDP_BIND = 1, TRP_UDP_SEND = 2, TRP_UDP_RECEIVE = 3 };
typedef struct trp_udp_command_failed {
    uint32_t command; /* TRP_UDP_* */
    int32_t error;    /* errno: EMSGSIZE, ECONNREFUSED (nobody listens there), EAGAIN, ... */
    uint64_t ack;     /* of a send */
    uint64_t number;  /* of the options */
    char reason[128]; /* a sentence */
} trp_udp_command_failed;
TRP_API extern trp_type trp_udp_command_failed_type;

TRP_API extern const trp_protocol trp_udp_protocol;

#ifdef __cplusplus
}
#endif
#endif /* TROUPE_IO_H */
