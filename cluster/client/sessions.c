/* sessions.c - the clients that a receptionist has, and the contacts that it gives them.
 *
 * Shape.   Each node stands at TRPI_CONTACT_POINTS_PER_NODE points of a ring of 64 bits, a client
 *          at the hash of its uid. Its contacts are the first different nodes from there on.
 * Must hold.
 *   client-sessions-S1  A client, an incarnation and its number there, has one session.
 *   client-sessions-S2  The contacts depend on the set of nodes and the uid alone, not on the order
 *       of the nodes or on the node that is asked. (CONTRIB-29)
 * Limits.  max sessions, TRPI_SESSIONS_PER_PROCESS of one process; TRPI_CLIENT_CONTACTS_MAX
 *          contacts.
 * Cost.    A choice looks at each point of each node, without memory: it is made once a minute and
 *          client.
 * Tests.   tests/unit/client/sessions_test.c
 */
#include "cluster/client/sessions.h"

#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/hash.h"

trpi_session *
trpi_session_find(const trpi_sessions *sessions, const trpi_node_id *node, uint32_t client)
{
    trpi_session *s = sessions->first;
    while (s != NULL && (s->node.uid != node->uid || s->client != client ||
                         !trpi_node_id_equal(&s->node, node))) {
        s = s->next;
    }
    return s;
}

/* How many sessions the process with that uid has. */
static uint32_t
sessions_of_process(const trpi_sessions *sessions, uint64_t uid)
{
    uint32_t count = 0;
    for (const trpi_session *s = sessions->first; s != NULL; s = s->next) {
        count += s->node.uid == uid;
    }
    return count;
}

trp_err
trpi_session_hello(trpi_sessions *sessions, const trpi_node_id *node, uint32_t client,
                   uint64_t now_ms, trpi_session **ret_session, bool *ret_is_new)
{
    trpi_session *s = trpi_session_find(sessions, node, client);
    *ret_is_new = s == NULL;
    if (s == NULL && (sessions->count >= sessions->max ||
                      sessions_of_process(sessions, node->uid) >= TRPI_SESSIONS_PER_PROCESS)) {
        return TRP_ELIMIT;
    }
    if (s == NULL) {
        s = trpi_alloc(sizeof *s);
        if (s == NULL) {
            return TRP_ENOMEM;
        }
        s->node = *node;
        s->client = client;
        s->next = sessions->first;
        sessions->first = s;
        sessions->count++;
    }
    s->heard_ms = now_ms;
    *ret_session = s;
    return TRP_OK;
}

void
trpi_session_remove(trpi_sessions *sessions, trpi_session *session)
{
    trpi_session **at = &sessions->first;
    while (*at != session) {
        trpi_assert(*at != NULL);
        at = &(*at)->next;
    }
    *at = session->next;
    sessions->count--;
}

trpi_session *
trpi_session_expired(trpi_sessions *sessions, uint64_t now_ms)
{
    trpi_session *s = sessions->first;
    while (s != NULL && now_ms - s->heard_ms < sessions->silence_ms) {
        s = s->next;
    }
    if (s != NULL) {
        trpi_session_remove(sessions, s);
    }
    return s;
}

trpi_session *
trpi_session_any(trpi_sessions *sessions)
{
    trpi_session *s = sessions->first;
    if (s != NULL) {
        trpi_session_remove(sessions, s);
    }
    return s;
}

void
trpi_session_free(trpi_session *session)
{
    trpi_free(session);
}

/* ---- contacts -------------------------------------------------------------------------------- */

/* How far behind `place` the node's nearest point is. */
static uint64_t
node_distance(const trpi_address *node, uint64_t place)
{
    uint64_t best = UINT64_MAX;
    for (uint64_t i = 0; i < TRPI_CONTACT_POINTS_PER_NODE; i++) {
        uint64_t point = trpi_hash_u64(trpi_address_hash(node) + i * 0x9e3779b97f4a7c15u);
        best = point - place < best ? point - place : best;
    }
    return best;
}

uint32_t
trpi_contacts_choose(const trpi_address *nodes, uint32_t nodes_count, uint64_t uid, uint32_t max,
                     uint32_t *ret_indexes)
{
    uint64_t place = trpi_hash_u64(uid), distances[TRPI_CLIENT_CONTACTS_MAX];
    uint32_t count = 0;
    max = max < TRPI_CLIENT_CONTACTS_MAX ? max : TRPI_CLIENT_CONTACTS_MAX;
    for (uint32_t i = 0; i < nodes_count; i++) {
        uint64_t d = node_distance(&nodes[i], place);
        uint32_t at = count;
        while (at > 0 && (d < distances[at - 1] ||
                          (d == distances[at - 1] &&
                           trpi_address_compare(&nodes[i], &nodes[ret_indexes[at - 1]]) < 0))) {
            at--;
        }
        if (at == max) {
            continue;
        }
        uint32_t moved = (count < max ? count : max - 1) - at;
        memmove(&distances[at + 1], &distances[at], moved * sizeof *distances);
        memmove(&ret_indexes[at + 1], &ret_indexes[at], moved * sizeof *ret_indexes);
        distances[at] = d;
        ret_indexes[at] = i;
        count += count < max;
    }
    return count;
}
