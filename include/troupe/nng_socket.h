/* troupe/nng_socket.h - sockets of nng's scalability protocols as actors: messages to and from
 * programs that know nothing of actors, without a broker.
 *
 *     trp_nng_options options = TRP_NNG_OPTIONS_INIT;
 *     options.kind = TRP_NNG_SUB;
 *     options.dial = "tcp://127.0.0.1:1235";
 *     options.subscribe = "health";
 *     trp_nng_open(ctx, &options, &socket);        -> trp_nng_event to the running actor
 *     ...
 *     const trp_nng_message *m = trp_nng_message_of(msg);       of each message that arrives
 *     trp_nng_send(ctx, socket, parts, 2, 0);                   on a socket that sends
 *     trp_nng_reply(ctx, socket, m->exchange, parts, 1);        to a request or a survey
 *
 * A socket is a child of the actor that opens it: that supervises it, and a restarted socket opens
 * again with the same options. It ends by trp_stop(), with its parent, when its listener ends, and
 * when it cannot be opened. It runs on the dispatcher "blocking"; nng has threads of its own, which
 * only tell it. Several addresses are separated by spaces.
 *
 *     PUB, SUB              each message to all subscribers of a prefix of its first bytes
 *     PUSH, PULL            each message to one of the pullers
 *     PAIR                  both ways, with one peer
 *     BUS                   to all direct peers, both ways
 *     REQ, REP              a request has one reply; many requests at once, by number
 *     SURVEYOR, RESPONDENT  a survey has the replies that come in its time
 *
 * Addresses: tcp://HOST:PORT (a name is resolved once, when the socket opens; "tcp://" and "*:PORT"
 * to listen on all of IPv4 and IPv6; port 0: any), ipc://PATH, abstract://NAME, inproc://NAME. Not
 * tls+tcp, ws and wss: those of nng have no TLS 1.3, and its WebSocket stands on its HTTP server.
 * In nng 1.5 a program that hangs up in the middle of the handshake ends an ipc or abstract
 * listener for good: offer those to programs that you trust, tcp to others. And a socket that is
 * closed while it receives may, rarely, never end: nng's known error. Closing takes 20 ms for that
 * reason, and 2 s at most: then the socket's actor ends, a warning is logged, and a thread goes on
 * waiting for nng. Beside 8 such threads no socket is opened (TRP_NNG_CLOSED, TRP_ELIMIT).
 *
 * Parts. nng has one body a message. Without `framed` the parts of a sent message stand one behind
 * the other, as a plain program writes a topic and a payload, and a message arrives as one part.
 * With `framed` (both ends) the lengths of the parts follow the bytes: part 1, ..., part n, n
 * lengths of 4 bytes, n as 4 bytes, big-endian. So prefixes of the first part are matched by any
 * subscriber, and a plain program sees the parts one behind the other and 4 * (n + 1) bytes more.
 *
 * Back-pressure. Messages that the listener has not freed yet count against receive_max and
 * receive_bytes_max; at the bound the socket reads no more, so that PUSH, PAIR and REQ of the
 * peer wait. A publisher never waits: nng drops what a subscriber does not read. Replies to surveys
 * count, too, until their asker has freed them. send_max messages wait in a socket; beyond,
 * trp_nng_failed (TRP_EAGAIN) goes back to the sender.
 */
#ifndef TROUPE_NNG_SOCKET_H
#define TROUPE_NNG_SOCKET_H

#include <troupe/actor.h>
#include <troupe/base.h>
#include <troupe/bytes.h>
#include <troupe/message.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    TRP_NNG_PUB = 1,
    TRP_NNG_SUB = 2,
    TRP_NNG_PUSH = 3,
    TRP_NNG_PULL = 4,
    TRP_NNG_PAIR = 5,
    TRP_NNG_BUS = 6,
    TRP_NNG_REQ = 7,
    TRP_NNG_REP = 8,
    TRP_NNG_SURVEYOR = 9,
    TRP_NNG_RESPONDENT = 10
};

#define TRP_NNG_PARTS_MAX 64                  /* of one message */
#define TRP_NNG_ADDRESSES_BYTES_MAX 1023      /* of `listen`, of `dial` */
#define TRP_NNG_PREFIX_BYTES_MAX 255          /* of a subscription */
#define TRP_NNG_SEND_DEFAULT 1000             /* send_max */
#define TRP_NNG_RECEIVE_DEFAULT 1000          /* receive_max */
#define TRP_NNG_RECEIVE_BYTES_DEFAULT 4194304 /* receive_bytes_max */
#define TRP_NNG_MESSAGE_BYTES_DEFAULT 1048576 /* message_bytes_max */
#define TRP_NNG_EXCHANGES_DEFAULT 16          /* exchanges_max */
#define TRP_NNG_EXCHANGES_MAX 1024
#define TRP_NNG_TIMEOUT_MS_DEFAULT 5000
#define TRP_NNG_REDIAL_MIN_MS_DEFAULT 100
#define TRP_NNG_REDIAL_MAX_MS_DEFAULT 5000

typedef struct trp_nng_options {
    size_t size;
    uint32_t kind;             /* TRP_NNG_* */
    uint32_t framed;           /* 1: messages have several parts */
    const char *listen, *dial; /* addresses, separated by spaces; one of the two at least */
    const char *subscribe;     /* SUB: a prefix, "" for all; NULL: none yet */
    trp_ref listener;          /* is told of events and messages; TRP_REF_NONE: the running actor */
    uint32_t send_max;         /* messages that wait; 0: TRP_NNG_SEND_DEFAULT */
    uint32_t receive_max;      /* messages that the listener has; 0: TRP_NNG_RECEIVE_DEFAULT */
    uint32_t receive_bytes_max; /* 0: TRP_NNG_RECEIVE_BYTES_DEFAULT */
    uint32_t message_bytes_max; /* a longer one ends its connection; 0: TRP_NNG_MESSAGE_... */
    /* REQ, SURVEYOR: requests on their way; REP, RESPONDENT: requests that the listener has */
    uint32_t exchanges_max;
    /* REQ: until the reply; SURVEYOR: of a survey; REP, RESPONDENT: until the listener replies */
    uint32_t timeout_ms;
    uint32_t redial_min_ms, redial_max_ms; /* pauses between attempts to connect: doubling */
    const char *dispatcher;                /* one that may block; NULL: "blocking" */
    uint32_t pad;                          /* 0 */
    uint32_t zero;
} trp_nng_options;
#define TRP_NNG_OPTIONS_INIT                                                                       \
    {                                                                                              \
        sizeof(trp_nng_options), 0, 0, NULL, NULL, NULL, TRP_REF_NONE, 0, 0, 0, 0, 0, 0, 0, 0,     \
            NULL, 0, 0                                                                             \
    }

/* Open a socket: a child of the running actor. Its first event is TRP_NNG_OPENED, or TRP_NNG_CLOSED
 * with the reason.
 *
 * Ownership: borrows options (copied).
 * Errors:    TRP_EINVAL  an option is out of range, or there is neither `listen` nor `dial`
 *            TRP_EUNSUPPORTED  an address of another transport
 *            and those of trp_spawn
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    ZMQ-01, -02, -03, -06.  Since: 0.2 */
TRP_API TRP_MUST_CHECK trp_err trp_nng_open(trp_ctx *ctx, const trp_nng_options *options,
                                            trp_ref *ret_socket);

/* Open a device: an actor that passes messages between two sockets of its own, each way as their
 * protocols allow, with all that routes replies back. Kinds, front and back: REP and REQ,
 * RESPONDENT and SURVEYOR, PULL and PUSH, SUB and PUB, PAIR and PAIR, BUS and BUS. Only addresses,
 * message_bytes_max and the pauses of the options count; a SUB gets all. The messages are never in
 * an actor; one at a time is on its way in each direction.
 *
 * Ownership: borrows the options (copied).
 * Errors:    TRP_EINVAL  the kinds do not fit, or an option is out of range
 *            and those of trp_nng_open
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    ZMQ-05.  Since: 0.2 */
TRP_API TRP_MUST_CHECK trp_err trp_nng_open_device(trp_ctx *ctx, const trp_nng_options *front,
                                                   const trp_nng_options *back,
                                                   trp_ref *ret_device);

/* Send a message of 1 to TRP_NNG_PARTS_MAX parts. ack: 0, or a number of the caller's own that
 * trp_nng_sent has when nng has taken the message, which is not yet the peer, and that stands in
 * trp_nng_failed and in each reply to a request or survey. A reply is told to the running actor.
 *
 * Ownership: borrows parts (shared).
 * Errors:    TRP_EINVAL   parts_count is out of range
 *            TRP_EMSGSIZE the parts are longer than TRP_BYTES_MAX together
 *            TRP_ENOMEM   out of memory
 *            All else comes as trp_nng_failed.
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    ZMQ-04, -06, -08.  Since: 0.2 */
TRP_API TRP_MUST_CHECK trp_err trp_nng_send(trp_ctx *ctx, trp_ref socket, const trp_bytes *parts,
                                            uint32_t parts_count, uint64_t ack);

/* Reply to the request or survey of this number, once. Any actor may. If it was answered, or its
 * time is over, trp_nng_failed comes with TRP_ESTATE.
 *
 * Ownership: borrows parts (shared).
 * Errors:    as trp_nng_send
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    ZMQ-06.  Since: 0.2 */
TRP_API TRP_MUST_CHECK trp_err trp_nng_reply(trp_ctx *ctx, trp_ref socket, uint64_t exchange,
                                             const trp_bytes *parts, uint32_t parts_count);

/* Subscribe a SUB to all messages that begin with these bytes (none: to all), or end such a
 * subscription. The filter is the subscriber's: publishers send everything to everyone. To the
 * running actor goes trp_nng_failed with TRP_EUNSUPPORTED if the socket is no SUB, and with
 * TRP_ENOENT if there is no such subscription.
 *
 * Ownership: borrows prefix (copied).
 * Errors:    TRP_EINVAL  prefix is longer than TRP_NNG_PREFIX_BYTES_MAX
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    ZMQ-03, -04.  Since: 0.2 */
TRP_API TRP_MUST_CHECK trp_err trp_nng_subscribe(trp_ctx *ctx, trp_ref socket, const void *prefix,
                                                 size_t bytes);

/* End a subscription.
 *
 * Ownership: borrows prefix (copied).
 * Errors:    as trp_nng_subscribe
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    ZMQ-03, -04.  Since: 0.2 */
TRP_API TRP_MUST_CHECK trp_err trp_nng_unsubscribe(trp_ctx *ctx, trp_ref socket, const void *prefix,
                                                   size_t bytes);

/* ---- what a socket tells --------------------------------------------------------------------- */

/* A message that has arrived, told to the listener; a reply, to the actor that asked. */
typedef struct trp_nng_message {
    uint64_t exchange; /* of a request or a survey, for trp_nng_reply(); else 0 */
    uint64_t ack;      /* of the request or survey that this replies to; else 0 */
    uint32_t pipe;     /* the connection: that of trp_nng_event */
    uint32_t parts_count;
    const trp_bytes *parts; /* borrowed as long as the message; trp_bytes_ref() keeps them */
} trp_nng_message;
TRP_API extern trp_type trp_nng_message_type;

/* Borrow what arrived; NULL: msg is something else. */
static inline const trp_nng_message *
trp_nng_message_of(const trp_msg *msg)
{
    return (const trp_nng_message *)trp_msg_held(msg, &trp_nng_message_type);
}

enum {
    TRP_NNG_OPENED = 1,       /* address: the first one that it listens on, with its port */
    TRP_NNG_CONNECTED = 2,    /* a peer; address: where it is */
    TRP_NNG_DISCONNECTED = 3, /* that peer; nng dials again */
    TRP_NNG_BAD_MESSAGE = 4,  /* framed: a message without lengths that fit; it is dropped */
    TRP_NNG_CLOSED = 5        /* the last one; err and reason, if it could not be opened */
};
/* Told to the listener, by the socket. */
typedef struct trp_nng_event {
    uint32_t event; /* TRP_NNG_OPENED, ... */
    uint32_t pipe;  /* of CONNECTED, DISCONNECTED and BAD_MESSAGE */
    int32_t err;    /* trp_err, of CLOSED */
    uint32_t zero;
    char address[160];
    char reason[160];
} trp_nng_event;
TRP_API extern trp_type trp_nng_event_type;

/* nng has taken a message whose ack is not 0. */
typedef struct trp_nng_sent {
    uint64_t ack;
} trp_nng_sent;
TRP_API extern trp_type trp_nng_sent_type;

/* A message, request or subscription has failed; told to its sender. Of a request that the listener
 * did not answer in time (exchange): to the listener. */
typedef struct trp_nng_failed {
    uint64_t ack, exchange;
    int32_t err; /* TRP_EAGAIN: send_max wait; TRP_ETIMEDOUT; TRP_ECLOSED; TRP_ESTATE; ... */
    uint32_t zero;
    char reason[112];
} trp_nng_failed;
TRP_API extern trp_type trp_nng_failed_type;

/* The time of a survey is over; told to the actor that made it. */
typedef struct trp_nng_survey_end {
    uint64_t ack;
    uint64_t replies;
} trp_nng_survey_end;
TRP_API extern trp_type trp_nng_survey_end_type;

/* All of the above, for an actor's list of what it accepts. */
TRP_API extern const trp_protocol trp_nng_protocol;

#ifdef __cplusplus
}
#endif
#endif /* TROUPE_NNG_SOCKET_H */
