/* endpoint.h - what the files of endpoints by URI share. */
#ifndef TRPI_ENDPOINT_ENDPOINT_H
#define TRPI_ENDPOINT_ENDPOINT_H

#include <stdbool.h>

#include <troupe/endpoint.h>

#include "actor/actor.h"
#include "endpoint/uri.h"

/* Complete options, kept for a restart. */
typedef struct trpi_endpoint_args {
    trp_endpoint_options options; /* dispatcher: NULL */
    trp_ref opener;
    char uri[TRP_ENDPOINT_URI_BYTES_MAX + 1];
} trpi_endpoint_args;

/* The common part of each endpoint, first in its state. */
typedef struct trpi_endpoint {
    trpi_endpoint_args args;
    trpi_uri uri;
    const struct trpi_scheme *scheme;
    void *state; /* the scheme's */
    trp_err err; /* of the start */
    char reason[TRP_ENDPOINT_REASON_BYTES];
} trpi_endpoint;

/* One message of a producer, from its sender. Counted by its message. */
typedef struct trpi_endpoint_send {
    uint64_t ack;
    trp_bytes body;
    uint32_t headers_count;
    trp_endpoint_header *headers; /* one block with their texts; NULL: none */
} trpi_endpoint_send;

/* A protocol. A function that is NULL has nothing to do. */
typedef struct trpi_scheme {
    const char *name;
    const char *const *consumer_options; /* NULL-terminated; NULL: it does not consume */
    const char *const *producer_options;
    /* Check the path and the options' values. Errors, with a sentence. */
    trp_err (*check)(const trpi_uri *uri, char ret_reason[TRP_ENDPOINT_REASON_BYTES]);
    /* Begin: sets endpoint->state. Errors, with endpoint->reason. */
    trp_err (*consume)(trp_ctx *ctx, trpi_endpoint *e);
    trp_err (*produce)(trp_ctx *ctx, trpi_endpoint *e);
    void (*stop)(trp_ctx *ctx, trpi_endpoint *e); /* frees state, which may be NULL */
    /* Consumer: its timer has come, or there is room again: deliver while there is room. True:
     * there is more, and no room. */
    bool (*poll)(trp_ctx *ctx, trpi_endpoint *e);
    /* Consumer: the message of this token is done, or has failed. Errors, with e->reason. */
    trp_err (*settle)(trp_ctx *ctx, trpi_endpoint *e, uint64_t token, trp_err err);
    /* Producer: send this; finish by trpi_producer_finish(), now or later, once. */
    void (*send)(trp_ctx *ctx, trpi_endpoint *e, uint32_t slot, const trpi_endpoint_send *send);
    /* Producer: a message for the scheme. */
    bool (*receive)(trp_ctx *ctx, trpi_endpoint *e, const trp_msg *msg);
    uint32_t (*parallel)(const trpi_endpoint *e); /* sends at one time; NULL: one */
} trpi_scheme;

extern const trpi_scheme trpi_scheme_timer, trpi_scheme_file, trpi_scheme_exec;
/* Find the scheme of a URI and check its options. Errors, with a sentence. */
trp_err trpi_scheme_find(const trpi_uri *uri, bool produces, const trpi_scheme **ret_scheme,
                         char ret_reason[TRP_ENDPOINT_REASON_BYTES]);

extern const trp_behaviour trpi_consumer_behaviour, trpi_producer_behaviour;

/* ---- for schemes ----------------------------------------------------------------------------- */

/* Messages that a consumer may deliver now. */
uint32_t trpi_consumer_room(const trpi_endpoint *e);
/* Tell the handler a message; settle() gets the token. Takes body, always. False: it was not told,
 * and settle() was called with the error. */
bool trpi_consumer_deliver(trp_ctx *ctx, trpi_endpoint *e, uint64_t token, trp_bytes body,
                           const trp_endpoint_header *headers, uint32_t headers_count);
/* Call poll() after so many ms, and then each interval (0: once). */
void trpi_consumer_timer(trp_ctx *ctx, trpi_endpoint *e, uint32_t delay_ms, uint32_t interval_ms);
/* The send of this slot is over: an error with a sentence, or TRP_OK, with a reply (headers) or
 * without. Borrows all. */
void trpi_producer_finish(trp_ctx *ctx, trpi_endpoint *e, uint32_t slot, trp_err err,
                          const char *reason, const trp_bytes *reply,
                          const trp_endpoint_header *headers, uint32_t headers_count);

/* ---- between the files ----------------------------------------------------------------------- */

/* Tell an actor that its message was freed: what a delivered message knows of its consumer. */
typedef struct trpi_endpoint_back trpi_endpoint_back;
trpi_endpoint_back *trpi_endpoint_back_new(trp_ctx *ctx); /* NULL: no memory */
void trpi_endpoint_back_end(trpi_endpoint_back *back);    /* the actor has ended; NULL is fine */

typedef struct trpi_endpoint_slot {
    uint32_t slot, turn;
} trpi_endpoint_slot;
/* Make a trp_endpoint_message; back: NULL, or told trpi_endpoint_freed_type with the slot when the
 * message is freed. Errors: TRP_ENOMEM; TRP_EINVAL (headers). */
trp_err trpi_endpoint_message_new(uint64_t exchange, uint64_t ack, trp_bytes body,
                                  const trp_endpoint_header *headers, uint32_t headers_count,
                                  trpi_endpoint_back *back, trpi_endpoint_slot slot,
                                  trp_msg **ret_msg);
/* Copy headers into one block. Errors: TRP_ENOMEM; TRP_EINVAL (too many, or too long). */
trp_err trpi_endpoint_headers_copy(const trp_endpoint_header *headers, uint32_t count,
                                   trp_endpoint_header **ret_headers);
void trpi_endpoint_send_drop(void *held); /* of trpi_endpoint_send_type */
void trpi_endpoint_error_tell(trp_ctx *ctx, const trpi_endpoint *e, trp_ref to, uint64_t ack,
                              uint64_t exchange, trp_err err, const char *reason);
void trpi_endpoint_event_tell(trp_ctx *ctx, trp_ref to, uint32_t event, trp_err err,
                              const char *reason);
/* Read the arguments and find the scheme, in pre_start. Errors, with e->reason. */
trp_err trpi_endpoint_begin(trp_ctx *ctx, trpi_endpoint *e, const trp_msg *args, bool produces);

typedef struct trpi_endpoint_verdict { /* of a handler */
    uint64_t exchange;
    uint32_t failed, zero;
    char reason[TRP_ENDPOINT_REASON_BYTES];
} trpi_endpoint_verdict;
extern trp_type trpi_endpoint_send_type, trpi_endpoint_verdict_type, trpi_endpoint_freed_type,
    trpi_endpoint_alarm_type, trpi_endpoint_poll_type, trpi_exec_ran_type;

#endif
