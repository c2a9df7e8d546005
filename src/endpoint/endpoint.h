/* endpoint.h - what the files of endpoints by URI share. */
#ifndef TRPI_ENDPOINT_ENDPOINT_H
#define TRPI_ENDPOINT_ENDPOINT_H

#include <pthread.h>
#include <stdbool.h>

#include <troupe/endpoint.h>
#include <troupe/io.h>

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
    void *state;      /* the scheme's */
    bool starting;    /* trpi_endpoint_started() is still to come */
    trp_ref listener; /* of a consumer that has a socket */
    uint32_t binds;   /* how often that was tried */
    trp_err err;      /* of the start */
    char reason[TRP_ENDPOINT_REASON_BYTES];
} trpi_endpoint;

typedef struct trpi_endpoint_slot {
    uint32_t slot, turn;
} trpi_endpoint_slot;

/* One message of a producer, from its sender; or the reply to a consumed one. Counted by its
 * message. */
typedef struct trpi_endpoint_send {
    uint64_t ack; /* of a reply: the exchange */
    trp_bytes body;
    uint32_t headers_count;
    trp_endpoint_header *headers; /* one block with their texts; NULL: none */
    char *uri;                    /* of trp_endpoint_send_to(); NULL */
} trpi_endpoint_send;

/* A protocol, or one half of it: two entries of one name consume and produce, each in a file of
 * its own. A function that is NULL has nothing to do. */
typedef struct trpi_scheme {
    const char *name;
    bool awaits;       /* consumer: each message is answered, as with `acknowledges` */
    bool starts_later; /* it calls trpi_endpoint_started() */
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
    /* Consumer: the message of this token is done, with a reply or without (NULL), or has failed.
     * Errors, with e->reason. */
    trp_err (*settle)(trp_ctx *ctx, trpi_endpoint *e, uint64_t token, trp_err err,
                      const trpi_endpoint_send *reply);
    /* Producer: send this; finish by trpi_producer_finish(), now or later, once. */
    void (*send)(trp_ctx *ctx, trpi_endpoint *e, uint32_t slot, const trpi_endpoint_send *send);
    /* A message for the scheme; false: it is none. A consumer polls after it. */
    bool (*receive)(trp_ctx *ctx, trpi_endpoint *e, const trp_msg *msg);
    uint32_t (*parallel)(const trpi_endpoint *e); /* sends at one time; NULL: one */
} trpi_scheme;

extern const trpi_scheme trpi_scheme_timer, trpi_scheme_file, trpi_scheme_exec, trpi_scheme_tcp_in,
    trpi_scheme_tcp_out, trpi_scheme_udp_in, trpi_scheme_udp_out, trpi_scheme_http_client,
    trpi_scheme_https_client, trpi_scheme_actor;
extern const trpi_scheme trpi_scheme_http_server, trpi_scheme_https_server, trpi_scheme_ws_server,
    trpi_scheme_wss_server, trpi_scheme_ws_client, trpi_scheme_wss_client;
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
/* The listener, which is the sender, has its address: it is watched, poll() is called at each
 * interval (0: is not), and the endpoint has started. Or it has not: then poll() is called, while
 * e->starting, to try again: after a restart the former listener may still have the port. */
void trpi_consumer_bound(trp_ctx *ctx, trpi_endpoint *e, const trp_io_address *local,
                         uint32_t interval_ms);
void trpi_consumer_not_bound(trp_ctx *ctx, trpi_endpoint *e, int error);
/* The send of this slot is over: an error with a sentence, or TRP_OK, with a reply (headers) or
 * without. Borrows all. */
void trpi_producer_finish(trp_ctx *ctx, trpi_endpoint *e, uint32_t slot, trp_err err,
                          const char *reason, const trp_bytes *reply,
                          const trp_endpoint_header *headers, uint32_t headers_count);
/* Send what waits for the slots that were finished elsewhere than in send() and receive(). */
void trpi_producer_go_on(trp_ctx *ctx, trpi_endpoint *e);

/* Write a sentence to e->reason, which ends with the error's; the trp_err of an errno. */
trp_err trpi_endpoint_errno(trpi_endpoint *e, int error, const char *format, ...) TRP_PRINTF(3, 4);
/* Start a thread, which takes no signal: one for a broken pipe stays pending there. */
bool trpi_endpoint_thread(pthread_t *ret_thread, void *(*fn)(void *), void *arg);
/* A number for the work of a thread, so that a restarted endpoint does not take an earlier one's
 * word. */
uint32_t trpi_endpoint_turn(void);
/* Make what a thread tells its endpoint when the work of a slot has ended (trpi_endpoint_ran_type),
 * before the work begins: it is not lost for want of memory then. NULL: no memory. */
trp_msg *trpi_endpoint_ran_new(trpi_endpoint_slot at);
void trpi_endpoint_ran_tell(trp_system *system, trp_ref owner, trp_msg *ran); /* takes it, always */
/* The start of a scheme that starts_later is over: TRP_OK, with the address that it listens at in
 * e->reason (or ""), or an error with its reason, which ends the endpoint. */
void trpi_endpoint_started(trp_ctx *ctx, trpi_endpoint *e, trp_err err);

/* ---- between the files ----------------------------------------------------------------------- */

/* Tell an actor that its message was freed: what a delivered message knows of its consumer. */
typedef struct trpi_endpoint_back trpi_endpoint_back;
trpi_endpoint_back *trpi_endpoint_back_new(trp_ctx *ctx); /* NULL: no memory */
void trpi_endpoint_back_end(trpi_endpoint_back *back);    /* the actor has ended; NULL is fine */

/* Make a trp_endpoint_message; `incoming` changes the body, which is taken, always. back: NULL, or
 * told trpi_endpoint_freed_type with the slot when the message is freed. Errors: TRP_ENOMEM;
 * TRP_EINVAL (headers); those of `incoming`. */
trp_err trpi_endpoint_message_new(const trpi_endpoint *e, uint64_t exchange, uint64_t ack,
                                  trp_bytes body, const trp_endpoint_header *headers,
                                  uint32_t headers_count, trpi_endpoint_back *back,
                                  trpi_endpoint_slot slot, trp_msg **ret_msg);
/* Copy headers into one block. Errors: TRP_ENOMEM; TRP_EINVAL (too many, or too long). */
trp_err trpi_endpoint_headers_copy(const trp_endpoint_header *headers, uint32_t count,
                                   trp_endpoint_header **ret_headers);
/* Make one for a handler that is no consumer's. Borrows body and headers. Errors: as above. */
trp_err trpi_endpoint_message_bare(uint64_t exchange, trp_bytes body,
                                   const trp_endpoint_header *headers, uint32_t headers_count,
                                   trp_msg **ret_msg);
/* Make the message of a send, or of a reply. Borrows all. Errors: TRP_ENOMEM; TRP_EINVAL. */
trp_err trpi_endpoint_send_make(trp_type *type, const char *uri, trp_bytes body,
                                const trp_endpoint_header *headers, uint32_t headers_count,
                                uint64_t ack, trp_msg **ret_msg);
void trpi_endpoint_send_drop(void *held); /* of trpi_endpoint_send_type */
/* e: NULL, if it is of none. */
void trpi_endpoint_error_tell(trp_ctx *ctx, const trpi_endpoint *e, trp_ref to, uint64_t ack,
                              uint64_t exchange, trp_err err, const char *reason);
/* Read the arguments and find the scheme, in pre_start. Errors, with e->reason. */
trp_err trpi_endpoint_begin(trp_ctx *ctx, trpi_endpoint *e, const trp_msg *args, bool produces);
/* The end of pre_start, with e->err; of the actor. */
void trpi_endpoint_begun(trp_ctx *ctx, trpi_endpoint *e);
void trpi_endpoint_ended(trp_ctx *ctx, trpi_endpoint *e);
/* Reply when the endpoint has started, for trp_endpoint_await_type. */
void trpi_endpoint_await(trp_ctx *ctx, const trpi_endpoint *e, const trp_msg *msg);
/* Change a body by `outgoing`, if there is one. Gives *ret_body. Errors: those of `outgoing`. */
trp_err trpi_endpoint_outgoing(const trpi_endpoint *e, trp_bytes body, trp_bytes *ret_body);

typedef struct trpi_endpoint_verdict { /* of a handler */
    uint64_t exchange;
    uint32_t failed, zero;
    char reason[TRP_ENDPOINT_REASON_BYTES];
} trpi_endpoint_verdict;
extern trp_type trpi_endpoint_send_type, trpi_endpoint_reply_type, trpi_endpoint_verdict_type,
    trpi_endpoint_freed_type, trpi_endpoint_alarm_type, trpi_endpoint_poll_type,
    trpi_endpoint_ran_type;

#endif
