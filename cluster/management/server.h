/* server.h - the structs that the files of the server share; see server.c for their rules. */
#ifndef TRPI_MANAGEMENT_SERVER_H
#define TRPI_MANAGEMENT_SERVER_H

#include "cluster/management/management.h"

#ifdef HAVE_LIBWEBSOCKETS

#include <pthread.h>
#include <stdatomic.h>

#include "cluster/management/events.h"
#include "base/lws.h"
#include "cluster/management/routes.h"
#include "cluster/management/sessions.h"

/* A reply that waits for the server's thread. */
typedef struct trpi_management_waiting {
    struct trpi_management_waiting *next;
    uint64_t id;
    char text[];
} trpi_management_waiting;

#define TRPI_EXCHANGE_TEXT_BYTES 1024u /* of one header, with its NUL */
enum {
    TRPI_HEADER_HOST,
    TRPI_HEADER_ORIGIN,
    TRPI_HEADER_AUTHORIZATION,
    TRPI_HEADER_CONTENT_TYPE,
    TRPI_HEADER_ACCEPT,
    TRPI_HEADER_TRANSFER_ENCODING,
    TRPI_HEADERS
};

/* One request and its answer (exchange.c). */
typedef struct trpi_exchange {
    struct trpi_exchange *next;
    struct lws *wsi;
    uint64_t id;      /* of the question to the node; 0: none waits */
    uint64_t left_ms; /* exchange-X4: of its own time; 0: it has that of any request */
    trpi_management_plan plan;
    trpi_management_request request;
    char path[TRPI_MANAGEMENT_PATH_BYTES_MAX + 2], query[TRPI_MANAGEMENT_QUERY_BYTES_MAX + 2];
    char headers[TRPI_HEADERS][TRPI_EXCHANGE_TEXT_BYTES];
    char last_event_id[TRPI_MANAGEMENT_EVENT_ID_BYTES];
    char traceparent[TRPI_MANAGEMENT_TRACEPARENT_BYTES];
    char certificate[256];
    char session[TRPI_MANAGEMENT_SECRET_TEXT];
    char from[192]; /* address and credential, for the audit */
    uint8_t *body;
    size_t body_bytes, body_wanted;
    bool is_head;     /* HEAD: the answer's body stays here */
    uint8_t *out;     /* LWS_PRE bytes, then the answer; NULL: there is none yet */
    size_t out_bytes; /* without those */
    size_t out_sent;
    /* A stream of events (stream.c) */
    bool streams;
    bool is_silent;      /* nothing was written since the timer came last */
    uint64_t event_next; /* number of the next event for it; 0: the snapshot has not come */
    trpi_buffer text;    /* LWS_PRE bytes, then what is being written */
    size_t text_sent;    /* of it, those bytes included */
} trpi_exchange;

struct trpi_management {
    const trpi_lws *lws;
    struct lws_context *context; /* server-S1; NULL: it has ended. Changed with the lock */
    pthread_t thread;
    bool runs;
    uint16_t port;
    char *bind;
    char *cert, *key, *ca;          /* files; "" cert: no TLS */
    void *ssl_ctx;                  /* the library's; the opener's, then the server's thread */
    struct trpi_tls_context *tls;   /* read again, not lent yet; with the lock */
    struct trpi_tls_dialer *dialer; /* for the library, which dials none; NULL: no TLS */
    const char **hosts, **readers, **writers;
    trpi_management_policy policy; /* its tokens, sessions and time with the lock; the rest is
                                    * constant */
    trpi_management_tokens tokens;
    trpi_management_sessions sessions; /* with the lock */
    trpi_world *world;                 /* its clock; NULL: it stands still */
    uint32_t connections_max, request_ms;
    void (*ask)(void *arg, trpi_management *management, uint64_t id, const char *command,
                const char *from);
    void (*cancel)(void *arg, trpi_management *management, uint64_t id);
    void *arg;
    /* the server's thread only */
    uint32_t connections_count;
    uint32_t streams_max;
    uint64_t id_next;
    trpi_exchange *exchanges;

    atomic_bool stopping; /* released by trpi_management_stop(), acquired by the thread */
    pthread_mutex_t lock; /* innermost */
    trpi_management_waiting *replies; /* with the lock */
    trpi_management_feed feed;        /* with the lock, as the next two */
    bool feed_open;
    uint32_t streams_count; /* written by the server's thread alone */
    bool stopped; /* the thread has been joined: by the caller of trpi_management_stop() */
};

/* Thread: any. */
uint64_t trpi_management_now_ms(const trpi_management *m);
void trpi_management_replies_give(trpi_management *m);
void trpi_management_tls_take(trpi_management *m);

/* exchange.c: the server's thread only. */
int trpi_exchange_callback(struct lws *wsi, enum lws_callback_reasons reason, void *user, void *in,
                           size_t length);
void trpi_exchange_replied(trpi_management *m, uint64_t id, const char *reply);
/* Has the client closed the connection, or its sending side? */
bool trpi_exchange_hung_up(const trpi_management *m, const trpi_exchange *x);
/* Is there an order whose answer the node has not given, or the client does not have yet? */
bool trpi_exchange_orders_wait(const trpi_management *m);

/* stream.c: the server's thread only. */
/* The request for a stream was accepted: begin it, or answer that it cannot be. Returns what the
 * callback returns. */
int trpi_stream_begin(trpi_management *m, trpi_exchange *x);
/* The node has answered: final object, then an event a line. */
int trpi_stream_snapshot(trpi_management *m, trpi_exchange *x, const char *reply);
int trpi_stream_write(trpi_management *m, trpi_exchange *x);
int trpi_stream_timer(trpi_management *m, trpi_exchange *x);
void trpi_stream_end(trpi_management *m, trpi_exchange *x);
/* End the streams whose clients have gone: others want their places. */
void trpi_streams_sweep(trpi_management *m);
/* Events have come, perhaps: let the streams write. */
void trpi_streams_wake(trpi_management *m);
/* exchange.c: take answer, and begin to write it. */
int trpi_exchange_answer(trpi_management *m, trpi_exchange *x, trpi_management_answer *answer);

#endif
#endif
