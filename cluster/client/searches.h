/* searches.h - the services that a receptionist asks other members for: pure. */
#ifndef TRPI_CLUSTER_CLIENT_SEARCHES_H
#define TRPI_CLUSTER_CLIENT_SEARCHES_H

#include "remote/client/client.h"

#define TRPI_SEARCHES_MAX 1024

typedef struct trpi_search {
    struct trpi_search *next;
    uint64_t number; /* ours */
    trpi_node_id node;
    uint32_t client;        /* its number there */
    uint64_t client_number; /* of the service, at the client */
    uint64_t until_ms;
    uint32_t answers_left; /* the shell's */
    uint32_t kind;
    char name[];
} trpi_search;

typedef struct trpi_searches { /* begin: zeroes */
    trpi_search *first;
    uint32_t count;
    uint64_t made;
} trpi_searches;

/* Begin a search for what the client's frame names. Errors: TRP_ELIMIT (TRPI_SEARCHES_MAX),
 * TRP_ENOMEM. */
trp_err trpi_search_begin(trpi_searches *searches, const trpi_node_id *node, uint32_t client,
                          const trpi_client_frame *opens, uint64_t until_ms,
                          trpi_search **ret_search);
/* Find the one with our number; NULL: it has ended. */
trpi_search *trpi_search_find(const trpi_searches *searches, uint64_t number);
/* Find one whose time is over; NULL: there is none. */
trpi_search *trpi_search_expired(const trpi_searches *searches, uint64_t now_ms);
void trpi_search_end(trpi_searches *searches, trpi_search *search);

#endif
