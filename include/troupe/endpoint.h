/* troupe/endpoint.h - actors that consume from and produce to other systems, named by a URI.
 *
 *     trp_consumer_open(ctx, "file:/var/spool/in?match=*.csv", NULL, &in);
 *     ...
 *     const trp_endpoint_message *m = trp_endpoint_message_of(msg);  // of each file
 *
 *     trp_producer_open(ctx, "exec:/usr/bin/sort?arg=-r", NULL, &sort);
 *     trp_endpoint_send(ctx, sort, body, NULL, 0, 7);  // -> trp_endpoint_message, with ack 7
 *
 * Another URI is another protocol; the actors stay as they are.
 *
 *     timer:NAME?period=MS&delay=MS&count=N     consumer: a message each period, N at most
 *     file:DIR?match=GLOB&delay=MS&done=NAME&failed=NAME&delete=1
 *                                               consumer: each file that appears in DIR
 *     file:DIR                                  producer: writes a file, whole or not at all
 *     exec:PATH?arg=TEXT&arg=TEXT&parallel=N    producer: runs a program: body in, output back
 *     tcp:HOST:PORT?frame=F&field=N&connections=N&idle=MS&frame-timeout=MS
 *                                               consumer: messages from the peers of a port
 *     tcp:HOST:PORT?frame=F&field=N&reply=1&parallel=N&retry=MS
 *                                               producer: messages to a peer
 *     udp:ADDRESS:PORT                          consumer: each datagram
 *     udp:ADDRESS:PORT?reply=1                  producer: a datagram
 *     actor:/user/NAME?reply=1&parallel=N       producer: an actor of this system
 *     http://HOST/PATH?method=M&parallel=N&redirects=N&connect-timeout=MS
 *     https://HOST/PATH?ca=FILE&cert=FILE&key=FILE&...
 *                                               producer: a request; the answer is the reply
 *     http://HOST:PORT/PATH?prefix=1&connections=N&headers=BYTES&idle=MS&header=NAME
 *     https://HOST:PORT/PATH?cert=FILE&key=FILE&ca=FILE&...
 *                                               consumer: each request; the reply is the response
 *     ws://HOST:PORT/PATH?prefix=1&connections=N&headers=BYTES&idle=MS&origin=URL
 *     wss://HOST:PORT/PATH?cert=FILE&key=FILE&ca=FILE&...
 *                                               consumer: each message of each WebSocket
 *     ws://HOST:PORT/PATH?query=TEXT&text=1&idle=MS
 *     wss://HOST:PORT/PATH?ca=FILE&cert=FILE&key=FILE&...
 *                                               producer: a message; the next one is the reply
 *
 * %20 and the like stand for other characters. An endpoint is a child of the actor that opens it:
 * that supervises it, a restarted one opens again, and it ends by trp_stop(), with its parent or
 * with its handler. It runs on the dispatcher "blocking", so that no other actor waits for files
 * or programs. Its first event is TRP_ENDPOINT_STARTED, or TRP_ENDPOINT_STOPPED with the reason;
 * an ask of trp_endpoint_await_type is replied to when it has started, and fails if it cannot.
 *
 * Acknowledgement. A consumed message is done when it is in the handler's mailbox. With
 * `acknowledges` the handler says when: trp_endpoint_ack(), or trp_endpoint_fail(), or it lets
 * timeout_ms pass, which is a failure. A file goes to the folder `done` (".done") in DIR or is
 * deleted, a failed one to `failed` (".failed"); there it replaces one of the same name. A process
 * that dies before consumes the file again. A peer of tcp: and udp: gets the reply of
 * trp_endpoint_reply(); over TCP it sees its connection reset when its message has failed.
 *
 * Frames of tcp: `line` (the default: a line that ends with LF or CR LF), `length` (big-endian, of
 * `field` bytes, 4 by default, in front), `none` (pieces, as they come). A peer whose frame is
 * longer than message_bytes_max, or keeps half a frame for frame-timeout (60000), loses its
 * connection, as does one that is silent for `idle` (600000); beyond `connections` (256) peers
 * are turned away. A producer makes its connection again when it is lost, after 50 ms to `retry`
 * (5000); with reply=1 the next frame, or datagram, from the peer is the reply, and `parallel`
 * requests (1, else 64) are on their way at one time.
 *
 * A request of http: and https: goes to the URI's path (%3F begins a query there). Its method is
 * http.method, or `method`, or POST with a body and GET without one; http.path is put behind the
 * path, http.query behind a '?'; headers without a dot in their name are fields, except those of
 * one connection, as Host. The reply has http.status, whatever it is, and the answer's fields by
 * their names in small letters. Certificates are verified, with the machine's authorities or `ca`;
 * no proxy is used; `redirects` (0) of GET, HEAD and POST are followed, `parallel` (8) requests are
 * on their way. It needs libcurl: without it the endpoint stops with TRP_EUNSUPPORTED and says so.
 *
 * actor: is for those who know endpoints only: the actor of this path is told the message as a
 * handler is (exchange is 0 without reply=1), and replies, acknowledges or fails to its sender.
 *
 * A message to a URI that nobody has opened goes by trp_endpoint_send_to() or trp_endpoint_ask():
 * the system opens the producer, and closes it when it is not used any more.
 *
 * Options that are 0 come from the configuration, `endpoint` in docs/reference.conf.
 *
 * Back-pressure. At most pending_max messages of a consumer are not acknowledged, or without
 * `acknowledges` not freed, at one time; then it takes no more. So many requests wait in a
 * producer; beyond, TRP_EAGAIN. A WebSocket whose peer reads slowly is not read while pending_max
 * replies to it, or more than TRP_ENDPOINT_UNSENT_BYTES_MAX of them, are not written.
 */
#ifndef TROUPE_ENDPOINT_H
#define TROUPE_ENDPOINT_H

#include <troupe/actor.h>
#include <troupe/base.h>
#include <troupe/bytes.h>
#include <troupe/message.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TRP_ENDPOINT_URI_BYTES_MAX 1023
#define TRP_ENDPOINT_HEADERS_MAX 32
#define TRP_ENDPOINT_HEADER_BYTES_MAX 1023 /* of a name, of a value */
#define TRP_ENDPOINT_PENDING_DEFAULT 64
#define TRP_ENDPOINT_PENDING_MAX 4096
#define TRP_ENDPOINT_TIMEOUT_MS_DEFAULT 60000
#define TRP_ENDPOINT_MESSAGE_BYTES_DEFAULT 1048576
#define TRP_ENDPOINT_UNSENT_BYTES_MAX 1048576 /* of replies to one WebSocket: see Back-pressure */
#define TRP_ENDPOINT_REASON_BYTES 192

/* Make another body of one. Runs in the endpoint; any error but TRP_OK fails the message.
 * Ownership: borrows in; gives *ret_out (trp_bytes_unref). */
typedef trp_err (*trp_endpoint_transform)(void *arg, trp_bytes in, trp_bytes *ret_out);

typedef struct trp_endpoint_options {
    size_t size;
    trp_ref handler; /* of a consumer: gets the messages; of a producer: the replies. TRP_REF_NONE:
                        the running actor; of a producer: the one that sends */
    trp_ref errors;  /* is told each trp_endpoint_error, besides; TRP_REF_NONE: none */
    trp_endpoint_transform outgoing; /* before it is sent, or replied; NULL: as it is */
    trp_endpoint_transform incoming; /* of what arrives; NULL: as it is */
    void *transform_arg;
    const char *dispatcher;     /* one that may block; NULL: endpoint.dispatcher */
    uint32_t acknowledges;      /* consumer, 1: the handler says when a message is done */
    uint32_t oneway;            /* producer, 1: senders are told errors only */
    uint32_t pending_max;       /* 0: endpoint.pending-max */
    uint32_t timeout_ms;        /* of an acknowledgement, of a reply; 0: endpoint.timeout */
    uint32_t message_bytes_max; /* of a body, in and out; 0: endpoint.message-bytes-max */
    uint32_t zero;
} trp_endpoint_options;
#define TRP_ENDPOINT_OPTIONS_INIT                                                                  \
    {                                                                                              \
        sizeof(trp_endpoint_options), TRP_REF_NONE, TRP_REF_NONE, NULL, NULL, NULL, NULL, 0, 0, 0, \
            0, 0, 0                                                                                \
    }

/* Check a URI; a sentence says what is wrong with it.
 *
 * Ownership: borrows uri.
 * Errors:    TRP_EINVAL       it is none, or has an option that its scheme does not know
 *            TRP_EUNSUPPORTED no such scheme, or not in this direction
 * Thread:    any; lock-free.
 * Source:    CAM-01.  Since: 0.2 */
TRP_API TRP_MUST_CHECK trp_err trp_endpoint_check(const char *uri, int produces,
                                                  char ret_reason[TRP_ENDPOINT_REASON_BYTES]);

/* Consume from an endpoint: a child of the running actor.
 *
 * Ownership: borrows uri and options (copied; NULL: all defaults).
 * Errors:    those of trp_endpoint_check; TRP_EINVAL  an option is out of range
 *            and those of trp_spawn
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    CAM-01, -02, -03, -06.  Since: 0.2 */
TRP_API TRP_MUST_CHECK trp_err trp_consumer_open(trp_ctx *ctx, const char *uri,
                                                 const trp_endpoint_options *options,
                                                 trp_ref *ret_consumer);

/* Produce to an endpoint: a child of the running actor.
 *
 * Ownership: borrows uri and options (copied; NULL: all defaults).
 * Errors:    as trp_consumer_open
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    CAM-01, -05, -08.  Since: 0.2 */
TRP_API TRP_MUST_CHECK trp_err trp_producer_open(trp_ctx *ctx, const char *uri,
                                                 const trp_endpoint_options *options,
                                                 trp_ref *ret_producer);

/* NUL-terminated texts. timer: timer.name, timer.count. file: file.name (a producer makes one up if
 * there is none). exec: exec.status, the exit status, or -1 after a signal. tcp: tcp.peer,
 * the address; of a consumer tcp.connection, a number. udp: udp.peer. http:
 * http.method, http.path, http.query (of a request), http.status (of a reply). */
typedef struct trp_endpoint_header {
    const char *name, *value;
} trp_endpoint_header;

/* Produce a message. ack: 0, or a number of the caller's own, which stands in what is told back:
 * trp_endpoint_message (a reply), trp_endpoint_done (there is none), trp_endpoint_error.
 *
 * Ownership: borrows body (shared) and headers (copied).
 * Errors:    TRP_EINVAL   too many headers, or one is too long; no producer
 *            TRP_ENOENT   it has ended, as one that could not start
 *            TRP_ENOMEM   out of memory; all else comes as trp_endpoint_error, but for what reaches
 *                         it in its last moment, which is a dead letter
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    CAM-05.  Since: 0.2 */
TRP_API TRP_MUST_CHECK trp_err trp_endpoint_send(trp_ctx *ctx, trp_ref producer, trp_bytes body,
                                                 const trp_endpoint_header *headers,
                                                 uint32_t headers_count, uint64_t ack);

/* Produce a message to an endpoint by its URI: to the producer that the system has of it, or opens
 * now, with all defaults. Messages to one URI are in order. Told back as by trp_endpoint_send().
 *
 * Ownership: borrows uri, body (shared) and headers (copied).
 * Errors:    those of trp_endpoint_check and trp_endpoint_send; told by trp_endpoint_error:
 *            TRP_ELIMIT   endpoint.template.producers-max are open
 *            TRP_ECLOSED  it could not be opened
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    CAM-07.  Since: 0.2 */
TRP_API TRP_MUST_CHECK trp_err trp_endpoint_send_to(trp_ctx *ctx, const char *uri, trp_bytes body,
                                                    const trp_endpoint_header *headers,
                                                    uint32_t headers_count, uint64_t ack);

/* Ask an endpoint by its URI: fn gets what is told back, as of trp_ask(): a trp_endpoint_message,
 * trp_endpoint_done, or trp_endpoint_error, all of them with TRP_OK.
 *
 * Ownership: as trp_endpoint_send_to; arg is passed through
 * Errors:    those of trp_endpoint_send_to and trp_ask
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    CAM-07.  Since: 0.2 */
TRP_API TRP_MUST_CHECK trp_err trp_endpoint_ask(trp_ctx *ctx, const char *uri, trp_bytes body,
                                                const trp_endpoint_header *headers,
                                                uint32_t headers_count, uint32_t timeout_ms,
                                                trp_reply_fn fn, void *arg);

/* Say that a consumed message is done. Any actor may; without `acknowledges` it means nothing. If
 * it was said already, or its time is over, trp_endpoint_error comes with TRP_ESTATE.
 *
 * Errors:    none
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    CAM-03.  Since: 0.2 */
TRP_API void trp_endpoint_ack(trp_ctx *ctx, trp_ref consumer, uint64_t exchange);

/* Say that a consumed message has failed. A longer reason is cut.
 *
 * Ownership: borrows reason.
 * Errors:    none; as trp_endpoint_ack
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    CAM-03.  Since: 0.2 */
TRP_API void trp_endpoint_fail(trp_ctx *ctx, trp_ref consumer, uint64_t exchange,
                               const char *reason);

/* Reply to a consumed message, which is done by that: the reply goes to the peer that sent it. An
 * endpoint whose messages have nobody to reply to (timer, file) takes it as trp_endpoint_ack().
 * Replies are changed by `outgoing`; one above message_bytes_max fails the message.
 *
 * Ownership: borrows body (shared) and headers (copied).
 * Errors:    as trp_endpoint_send; told by trp_endpoint_error:
 *            TRP_ESTATE   it was settled already, its time is over, or the consumer was opened
 *                         without `acknowledges`
 *            TRP_ECLOSED  the peer has gone
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    CAM-02, CAM-03.  Since: 0.2 */
TRP_API TRP_MUST_CHECK trp_err trp_endpoint_reply(trp_ctx *ctx, trp_ref consumer, uint64_t exchange,
                                                  trp_bytes body,
                                                  const trp_endpoint_header *headers,
                                                  uint32_t headers_count);

/* ---- what endpoints tell --------------------------------------------------------------------- */

typedef struct trp_endpoint_message {
    uint64_t exchange; /* of a consumer that acknowledges: for trp_endpoint_ack(); else 0 */
    uint64_t ack;      /* of a reply: the sender's number */
    trp_bytes body;    /* borrowed as long as the message; trp_bytes_ref() keeps it */
    uint32_t headers_count;
    uint32_t zero;
    const trp_endpoint_header *headers; /* borrowed as long as the message */
} trp_endpoint_message;
TRP_API extern trp_type trp_endpoint_message_type;

/* Borrow what arrived; NULL: msg is something else. */
static inline const trp_endpoint_message *
trp_endpoint_message_of(const trp_msg *msg)
{
    return (const trp_endpoint_message *)trp_msg_held(msg, &trp_endpoint_message_type);
}

/* Borrow the value of a header as long as the message; NULL: it has none of that name.
 *
 * Errors:    none
 * Thread:    any; lock-free.
 * Source:    CAM-02.  Since: 0.2 */
TRP_API const char *trp_endpoint_header_get(const trp_endpoint_message *message, const char *name);

enum {
    TRP_ENDPOINT_STARTED = 1, /* reason: the address that it listens at, if it does */
    TRP_ENDPOINT_STOPPED = 2  /* the last one; err and reason, if it could not start */
};
/* Told to the handler of a consumer, and to the actor that opened a producer; the reply to
 * trp_endpoint_await_type. */
typedef struct trp_endpoint_event {
    uint32_t event;
    int32_t err;
    char reason[TRP_ENDPOINT_REASON_BYTES];
} trp_endpoint_event;
TRP_API extern trp_type trp_endpoint_event_type;
TRP_API extern trp_type trp_endpoint_await_type; /* no payload; to be asked (trp_ask) */

/* A message without a reply was produced. */
typedef struct trp_endpoint_done {
    uint64_t ack;
} trp_endpoint_done;
TRP_API extern trp_type trp_endpoint_done_type;

/* A message has failed. Told to the sender (ack), of a consumer to its handler (exchange), and to
 * `errors`. */
typedef struct trp_endpoint_error {
    uint64_t ack, exchange;
    int32_t err; /* TRP_EAGAIN: pending_max wait; TRP_ETIMEDOUT; TRP_EMSGSIZE; TRP_EIO; ... */
    uint32_t zero;
    char reason[TRP_ENDPOINT_REASON_BYTES];
} trp_endpoint_error;
TRP_API extern trp_type trp_endpoint_error_type;

/* All of the above, for an actor's list of what it accepts. */
TRP_API extern const trp_protocol trp_endpoint_protocol;

#ifdef __cplusplus
}
#endif
#endif /* TROUPE_ENDPOINT_H */
