/* sessions.h - the clients that a receptionist has, and the contacts that it gives them: pure. */
#ifndef TRPI_CLUSTER_CLIENT_SESSIONS_H
#define TRPI_CLUSTER_CLIENT_SESSIONS_H

#include <stdbool.h>

#include "remote/client/client.h"

#define TRPI_CONTACT_POINTS_PER_NODE 10 /* on the ring */
#define TRPI_SESSIONS_PER_PROCESS 16    /* so that one process does not take all places */

typedef struct trpi_session {
    trpi_node_id node;
    uint32_t client; /* its number there */
    uint64_t heard_ms;
    void *own; /* the shell's */
    struct trpi_session *next;
} trpi_session;

typedef struct trpi_sessions {
    uint32_t max, count;
    uint64_t silence_ms;
    trpi_session *first;
} trpi_sessions;

/* Find the session of a client; NULL: there is none. */
trpi_session *trpi_session_find(const trpi_sessions *sessions, const trpi_node_id *node,
                                uint32_t client);
/* The client has said HELLO: find or make its session. Errors: TRP_ELIMIT (max, or
 * TRPI_SESSIONS_PER_PROCESS of its uid), TRP_ENOMEM. */
trp_err trpi_session_hello(trpi_sessions *sessions, const trpi_node_id *node, uint32_t client,
                           uint64_t now_ms, trpi_session **ret_session, bool *ret_is_new);
/* Take out the first one that has been silent for too long; NULL: none. The caller frees it. */
trpi_session *trpi_session_expired(trpi_sessions *sessions, uint64_t now_ms);
/* Take out any one; NULL: there is none. */
trpi_session *trpi_session_any(trpi_sessions *sessions);
/* Take out this one. */
void trpi_session_remove(trpi_sessions *sessions, trpi_session *session);
void trpi_session_free(trpi_session *session); /* NULL is fine */

/* Choose the contacts of the client with that uid among the nodes: the same on all nodes, and few
 * change when a node comes or goes. Gives indexes, the best first. Returns how many. */
uint32_t trpi_contacts_choose(const trpi_address *nodes, uint32_t nodes_count, uint64_t uid,
                              uint32_t max, uint32_t *ret_indexes);

#endif
