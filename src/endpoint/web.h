/* web.h - what the schemes over libwebsockets share: a server or a client with a thread of its own,
 * and what passes between that thread and the endpoint's actor. See web_loop.c for the rules. */
#ifndef TRPI_ENDPOINT_WEB_H
#define TRPI_ENDPOINT_WEB_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/buffer.h"
#include "base/lws.h"
#include "endpoint/endpoint.h"
#include "endpoint/web_text.h"

typedef struct trpi_web trpi_web;

/* The headers of a message, and their texts. */
typedef struct trpi_web_fields {
    uint32_t count;
    trp_endpoint_header list[TRP_ENDPOINT_HEADERS_MAX];
    size_t used, bytes;
    char text[];
} trpi_web_fields;

typedef enum trpi_web_kind { TRPI_WEB_MESSAGE, TRPI_WEB_WRITTEN, TRPI_WEB_FAILED } trpi_web_kind;

/* From the thread to the actor. */
typedef struct trpi_web_event {
    struct trpi_web_event *next;
    trpi_web_kind kind;
    uint64_t token; /* of the exchange, or the connection; of a client: the send, 0: none */
    trp_bytes body;
    trpi_web_fields *fields; /* NULL: none */
    trp_err err;             /* FAILED */
    char reason[TRP_ENDPOINT_REASON_BYTES];
} trpi_web_event;

typedef enum trpi_web_frame { TRPI_WEB_BINARY, TRPI_WEB_TEXT } trpi_web_frame;
#define TRPI_WEB_TOKEN_TEXT (1ull << 63) /* of a WebSocket's message, beside its token */

/* From the actor to the thread: a response, a message, or (settled alone) that one is done. */
typedef struct trpi_web_job {
    struct trpi_web_job *next;
    uint64_t token;
    bool answers;         /* there is something to write */
    trpi_web_frame frame; /* WebSocket */
    bool bodiless;        /* HTTP: by its status */
    bool awaits;          /* client: a reply */
    trpi_buffer head;     /* HTTP: all but the end of it */
    trp_bytes body;
    trpi_web_event *end; /* client: told at the end of the send, so made before; NULL: it was */
} trpi_web_job;

typedef enum trpi_web_role { TRPI_WEB_HTTP, TRPI_WEB_SOCKET, TRPI_WEB_CLIENT } trpi_web_role;

/* Check the files of TLS and make the thread. Errors, with e->reason: TRP_EUNSUPPORTED (built
 * without libwebsockets), TRP_ECONFIG (it is missing, or a file is wrong), TRP_EADDRINUSE,
 * TRP_ENOMEM. Thread: the actor. */
trp_err trpi_web_open(trp_ctx *ctx, trpi_endpoint *e, trpi_web_role role, trpi_web **ret_web);
void trpi_web_close(trpi_web *web); /* waits for the thread, which waits for nobody; NULL is fine */
/* Write the address that it listens at. */
void trpi_web_where(const trpi_web *web, char ret_text[TRP_ENDPOINT_REASON_BYTES]);

/* ---- the actor ------------------------------------------------------------------------------- */
void trpi_web_check(trp_ctx *ctx, trpi_web *web); /* fail the actor if the thread has failed */
/* answers_only: the first event that is about a send, past those that are not. NULL: nothing (of
 * these) has come; then told again. */
trpi_web_event *trpi_web_take(trpi_web *web, bool answers_only);
trpi_web_event *trpi_web_event_new(uint64_t token); /* NULL: no memory */
void trpi_web_event_free(trpi_web_event *event);
trpi_web_job *trpi_web_job_new(uint64_t token);       /* NULL: no memory */
void trpi_web_job_free(trpi_web_job *job);            /* NULL is fine */
void trpi_web_post(trpi_web *web, trpi_web_job *job); /* takes it */
/* Is the peer of this token still there? It may go right after. */
bool trpi_web_is_live(const trpi_web *web, uint64_t token);
/* Deliver to the handler what has come: the poll() of a server. */
bool trpi_web_poll(trp_ctx *ctx, trpi_endpoint *e, trpi_web *web);

/* ---- the thread ------------------------------------------------------------------------------ */
#ifdef HAVE_LIBWEBSOCKETS

/* One connection. */
typedef struct trpi_web_connection {
    struct lws *wsi;
    uint32_t index;
    bool is_socket; /* WebSocket, open */
    bool paused;    /* nothing is read from it (web-loop-L4) */
    bool keeps;     /* HTTP: another request may follow */
    bool is_head;
    bool timed;     /* LWS_CALLBACK_TIMER ends it */
    bool asked;     /* HTTP: the actor has the request */
    bool answered;  /* HTTP: out is being written */
    uint64_t token; /* of the exchange, or of the WebSocket; 0: none */
    trp_bytes body; /* HTTP: of the request */
    uint8_t *body_data;
    size_t body_bytes, body_wanted;
    trpi_web_fields *fields;           /* of the request; of a WebSocket: of each message */
    bool text;                         /* WebSocket: the message that is coming */
    trpi_buffer in;                    /* so much of it */
    trpi_web_job *queue, **queue_last; /* to be written; HTTP: one */
    uint32_t queue_count;
    size_t queue_bytes; /* of bodies */
    size_t written;     /* of the first one */
    char peer[64];
} trpi_web_connection;

struct trpi_web {
    const trpi_lws *lws;
    struct lws_context *context; /* NULL: it has ended. Changed with the lock */
    struct lws_vhost *vhost;
    void *ssl_ctx;                  /* the library's */
    struct trpi_tls_dialer *dialer; /* NULL: no TLS */
    pthread_t thread;
    bool runs;
    trpi_web_role role;
    trpi_web_settings settings;
    trp_system *system;
    trp_ref owner;
    lws_retry_bo_t idle;
    uint16_t port;
    uint32_t pending_max, message_bytes_max, timeout_ms;
    /* the thread only */
    trpi_web_connection **connections; /* settings.connections places; a client's: one */
    _Atomic uint64_t *live;            /* of each place: its token; written by the thread */
    uint32_t connections_count;
    uint32_t asked; /* requests that the actor has not settled */
    uint32_t paused;
    uint64_t tokens;
    uint8_t *chunk;       /* LWS_PRE bytes, then what is written */
    trpi_web_job *unsent; /* client: waits for the connection */
    uint64_t awaited;     /* client: the send that a reply is awaited for; 0: none */
    trpi_web_event *end;  /* client: of the send that is on its way; NULL: it was told */
    char failure[128];    /* client: why there is no connection */
    bool refused;         /* client: it is that the peer's certificate does not hold */

    atomic_bool stopping; /* released by trpi_web_close(), acquired by the thread */
    pthread_mutex_t lock; /* innermost */
    trpi_web_event *arrived, **arrived_last; /* with the lock, as what follows */
    uint32_t arrived_count;
    bool told;          /* the actor has been told of them, and has not found none since */
    bool untold;        /* it was not, for want of memory */
    bool failed;        /* the library serves no more */
    bool resume_wanted; /* connections are paused */
    trpi_web_job *jobs, **jobs_last;
};

#define TRPI_WEB_CHUNK_BYTES 65536u

trpi_web_fields *trpi_web_fields_new(const trpi_web *web); /* NULL: no memory */
/* Add a header; false: there are too many, or it is too long. */
bool trpi_web_field_add(trpi_web_fields *fields, const char *name, const char *value);
/* Copy, with one more, unless name is NULL. NULL: no memory, or no room. */
trpi_web_fields *trpi_web_fields_dup(const trpi_web_fields *fields, const char *name,
                                     const char *value);
/* Add a header of the request by the library's token; absent is fine. False: as above. */
bool trpi_web_token_add(const trpi_web *web, trpi_web_fields *fields, struct lws *wsi,
                        const char *name, enum lws_token_indexes token);
/* Add the peer, the certificate that it has shown, and the query. */
bool trpi_web_origin_add(const trpi_web *web, trpi_web_fields *fields, struct lws *wsi,
                         const char *query_name);
void trpi_web_tell(trpi_web *web, trpi_web_event *event);
/* Return whether as many wait for the actor as may. (web-loop-L4) */
bool trpi_web_is_full(trpi_web *web);
/* Let the connection end after so many ms; or not. The library's timer is left to come: some
 * versions let one that is cancelled come at once. */
void trpi_web_timer_set(const trpi_web *web, trpi_web_connection *c, uint32_t ms);
void trpi_web_timer_end(trpi_web_connection *c);
void trpi_web_token_new(trpi_web *web, trpi_web_connection *c);
void trpi_web_token_end(trpi_web *web, trpi_web_connection *c);
void trpi_web_job_add(trpi_web_connection *c, trpi_web_job *job);
void trpi_web_job_drop(trpi_web_connection *c); /* the first one */

/* web_http.c. Callbacks return what the library wants: 0, or -1 to close the connection. */
int trpi_web_http_callback(trpi_web *web, trpi_web_connection *c, enum lws_callback_reasons reason,
                           const void *in, size_t length);
void trpi_web_http_job(trpi_web *web, trpi_web_connection *c, trpi_web_job *job);
/* The exchange of this connection is over, or its connection is. */
void trpi_web_exchange_end(trpi_web *web, trpi_web_connection *c);
/* Answer this status, and close. */
int trpi_web_refuse(trpi_web *web, trpi_web_connection *c, const char *status);

/* web_socket.c */
/* A part of a message has come; *ret_whole: all of it is in c->in. -1: close. */
int trpi_web_message_take(trpi_web *web, trpi_web_connection *c, const void *in, size_t length,
                          bool *ret_whole);
/* Tell the actor the message in c->in. -1: close. */
int trpi_web_message_tell(trpi_web *web, trpi_web_connection *c, uint64_t token);
/* Write the first message of the queue, which stays there. -1: close. */
int trpi_web_message_write(trpi_web *web, trpi_web_connection *c);
int trpi_web_socket_callback(trpi_web *web, trpi_web_connection *c,
                             enum lws_callback_reasons reason, void *in, size_t length);
void trpi_web_socket_job(trpi_web *web, trpi_web_connection *c, trpi_web_job *job);
void trpi_web_sockets_resume(trpi_web *web);
/* web_client.c */
int trpi_web_client_callback(trpi_web *web, struct lws *wsi, enum lws_callback_reasons reason,
                             void *in, size_t length);
void trpi_web_client_job(trpi_web *web, trpi_web_job *job);

#endif
#endif
