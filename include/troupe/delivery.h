/* troupe/delivery.h - reliable delivery: from a producer to a consumer, or to whichever worker is
 * free.
 *
 * A producer controller keeps messages until they are confirmed; a consumer controller gives them
 * to its consumer and takes the confirmations. They repair what the wire loses, and back-pressure
 * reaches from the consumer to the producer.
 *
 *     producer --message--> producer controller ==wire==> consumer controller --message--> consumer
 *              <--request next, confirmed--                                   <--confirm--
 *
 * The producer is told trp_delivery_request_next: so many messages more may be told to the producer
 * controller. A message beyond that is a dead letter (mailbox-full). The consumer is told each
 * message as it was, by its controller; when it has done with it, it replies
 * trp_delivery_confirm_type and gets the next one.
 *
 * Messages are delivered in order, each once, and again when the consumer has ended before it
 * confirmed: then the next consumer that registers gets what was not confirmed. With workers = 1
 * any number of consumers register, and each message goes to one that has room; what a worker has
 * not confirmed when it ends goes to another one. Confirmed, each message is reported once.
 *
 * Large messages travel in parts of part_bytes. Messages travel in their serialized form
 * (troupe/serialization.h), on one node too; one of a local type is a dead letter. The original
 * sender is not kept. Messages are kept in the producer controller's memory, and end with it:
 * those that are not confirmed are dead letters then. With a journal_id they are stored before they
 * are sent, and the next producer controller of that id sends what is not confirmed, with its
 * number: a consumer may get a message again whose confirmation was not stored. In untrusted mode
 * a node serves no controllers of other nodes.
 */
#ifndef TROUPE_DELIVERY_H
#define TROUPE_DELIVERY_H

#include <troupe/actor.h>
#include <troupe/base.h>
#include <troupe/message.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TRP_DELIVERY_MESSAGES_DEFAULT 1000u /* not confirmed yet, at the producer */
#define TRP_DELIVERY_MESSAGES_MAX 1000000u
#define TRP_DELIVERY_BYTES_DEFAULT 67108864u /* of these */
#define TRP_DELIVERY_PART_BYTES_DEFAULT 32768u
#define TRP_DELIVERY_PART_BYTES_MAX 1048576u
#define TRP_DELIVERY_WINDOW_DEFAULT 64u /* messages, at a consumer */
#define TRP_DELIVERY_WINDOW_MAX 10000u
#define TRP_DELIVERY_AHEAD_MAX 10000u
#define TRP_DELIVERY_WORKERS_MAX 1000u
#define TRP_DELIVERY_RESEND_MS_DEFAULT 500u
#define TRP_DELIVERY_RESEND_MS_MAX 3600000u
#define TRP_DELIVERY_MESSAGE_BYTES_MAX 16777216u /* serialized */

/* Told to the producer by its controller: so many messages more may be told. Grants add up. */
typedef struct trp_delivery_request_next {
    uint32_t messages;
} trp_delivery_request_next;
TRP_API extern trp_type trp_delivery_request_next_type;

/* Told to the producer, with confirms = 1: the message of this number is confirmed. Messages are
 * numbered from 1, in the order in which the controller took them. */
typedef struct trp_delivery_confirmed {
    uint64_t number;
} trp_delivery_confirmed;
TRP_API extern trp_type trp_delivery_confirmed_type;

/* Replied by the consumer: it has done with the oldest message that it has not confirmed. */
TRP_API extern trp_type trp_delivery_confirm_type; /* no payload */

/* The three types. The first spawn registers them. */
TRP_API extern const trp_protocol trp_delivery_protocol;

typedef struct trp_delivery_producer_options {
    size_t size;            /* sizeof(trp_delivery_producer_options) */
    const char *name;       /* as trp_spawn_options.name */
    const char *dispatcher; /* as trp_spawn_options.dispatcher */
    trp_ref producer;       /* told of grants and confirmations; TRP_REF_NONE: no actor is */
    uint32_t workers;       /* 1: messages go to any of several consumers; 0: to one, in order */
    uint32_t confirms;      /* 1: each confirmation is told */
    uint32_t messages_max;  /* not confirmed yet; 0: TRP_DELIVERY_MESSAGES_DEFAULT */
    uint32_t bytes_max;     /* of these, serialized; above half of it grants are given singly, and
                               none at it. 0: TRP_DELIVERY_BYTES_DEFAULT */
    uint32_t part_bytes;    /* 0: TRP_DELIVERY_PART_BYTES_DEFAULT */
    uint32_t resend_ms;     /* silence before a consumer is probed; 0: ..._RESEND_MS_DEFAULT */
    const char *journal_id; /* messages are kept in the system's journal, under this persistence id,
                               until they are confirmed; NULL: in memory */
} trp_delivery_producer_options;
#define TRP_DELIVERY_PRODUCER_OPTIONS_INIT                                                         \
    {                                                                                              \
        sizeof(trp_delivery_producer_options), NULL, NULL, TRP_REF_NONE, 0, 0, 0, 0, 0, 0, NULL    \
    }

typedef struct trp_delivery_consumer_options {
    size_t size;               /* sizeof(trp_delivery_consumer_options) */
    const char *name;          /* as trp_spawn_options.name */
    const char *dispatcher;    /* as trp_spawn_options.dispatcher */
    trp_ref consumer;          /* an actor of this system; the controller ends with it */
    trp_ref producer;          /* the producer controller; TRP_REF_NONE: at producer_path */
    const char *producer_path; /* is looked for again when it has ended; NULL: producer */
    uint32_t window;           /* messages here at once; 0: TRP_DELIVERY_WINDOW_DEFAULT */
    uint32_t ahead;     /* messages that the consumer may have and not have confirmed; 0: 1 */
    uint32_t resend_ms; /* before it registers again; 0: TRP_DELIVERY_RESEND_MS_DEFAULT */
    uint32_t zero;
} trp_delivery_consumer_options;
#define TRP_DELIVERY_CONSUMER_OPTIONS_INIT                                                         \
    {                                                                                              \
        sizeof(trp_delivery_consumer_options), NULL, NULL, TRP_REF_NONE, TRP_REF_NONE, NULL, 0, 0, \
            0, 0                                                                                   \
    }

/* Start a producer controller as a child of the running actor. Tell messages to *ret_ref.
 *
 * Ownership: borrows options.
 * Errors:    TRP_EINVAL    options is NULL, or a number is above its limit
 *            TRP_EMSGSIZE  journal_id is too long, or empty
 *            TRP_ESTATE    journal_id is given, and the system has no journal
 *            and those of trp_spawn
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    docs/adr, decision 300.  Since: 0.2 */
TRP_API TRP_MUST_CHECK trp_err trp_delivery_producer_spawn(
    trp_ctx *ctx, const trp_delivery_producer_options *options, trp_ref *ret_ref);

/* Start a producer controller as a child of /user.
 *
 * Ownership: borrows options.
 * Errors:    as trp_delivery_producer_spawn
 * Thread:    any; takes a lock for a moment.
 * Source:    docs/adr, decision 300.  Since: 0.2 */
TRP_API TRP_MUST_CHECK trp_err trp_system_delivery_producer_spawn(
    trp_system *system, const trp_delivery_producer_options *options, trp_ref *ret_ref);

/* Start a consumer controller as a child of the running actor.
 *
 * Ownership: borrows options.
 * Errors:    TRP_EINVAL    options is NULL; no consumer, or one on another node; none or both of
 *                          producer and producer_path; a number is above its limit
 *            and those of trp_spawn
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    docs/adr, decision 300.  Since: 0.2 */
TRP_API TRP_MUST_CHECK trp_err trp_delivery_consumer_spawn(
    trp_ctx *ctx, const trp_delivery_consumer_options *options, trp_ref *ret_ref);

/* Start a consumer controller as a child of /user.
 *
 * Ownership: borrows options.
 * Errors:    as trp_delivery_consumer_spawn
 * Thread:    any; takes a lock for a moment.
 * Source:    docs/adr, decision 300.  Since: 0.2 */
TRP_API TRP_MUST_CHECK trp_err trp_system_delivery_consumer_spawn(
    trp_system *system, const trp_delivery_consumer_options *options, trp_ref *ret_ref);

#ifdef __cplusplus
}
#endif
#endif /* TROUPE_DELIVERY_H */
