/* server.h - the structs that the files of the server share; see server.c for their rules. */
#ifndef TRPI_MANAGEMENT_SERVER_H
#define TRPI_MANAGEMENT_SERVER_H

#include "cluster/management/management.h"

#ifdef HAVE_LIBWEBSOCKETS

#include <pthread.h>
#include <stdatomic.h>

#include "cluster/management/lws.h"
#include "cluster/management/routes.h"

/* A reply that waits for the server's thread. */
typedef struct trpi_management_waiting {
    struct trpi_management_waiting *next;
    uint64_t id;
    char text[];
} trpi_management_waiting;

typedef struct trpi_exchange trpi_exchange;

struct trpi_management {
    const trpi_lws *lws;
    struct lws_context *context; /* server-S1; NULL: it has ended. Changed with the lock */
    pthread_t thread;
    bool runs;
    uint16_t port;
    char *bind;
    const char **hosts, **readers, **writers;
    trpi_management_policy policy; /* its tokens with the lock; the rest is constant */
    trpi_management_tokens tokens;
    uint32_t connections_max, request_ms;
    void (*ask)(void *arg, trpi_management *management, uint64_t id, const char *command,
                const char *from);
    void *arg;
    /* the server's thread only */
    uint32_t connections_count;
    uint64_t id_next;
    trpi_exchange *exchanges;

    atomic_bool stopping; /* released by trpi_management_stop(), acquired by the thread */
    pthread_mutex_t lock; /* innermost */
    trpi_management_waiting *replies; /* with the lock */
    bool stopped; /* the thread has been joined: by the caller of trpi_management_stop() */
};

void trpi_management_replies_give(trpi_management *m);

/* exchange.c: the server's thread only. */
int trpi_exchange_callback(struct lws *wsi, enum lws_callback_reasons reason, void *user, void *in,
                           size_t length);
void trpi_exchange_replied(trpi_management *m, uint64_t id, const char *reply);
/* Is there an order whose answer the node has not given, or the client does not have yet? */
bool trpi_exchange_orders_wait(const trpi_management *m);

#endif
#endif
