/* sessions_test.c - the clients of a receptionist, and the contacts that they are given. */
#include <stdio.h>
#include <string.h>

#include "cluster/client/searches.h"
#include "cluster/client/sessions.h"
#include "tests/unit/unit.h"

static trpi_node_id
client_of(uint64_t uid)
{
    trpi_node_id id;
    memset(&id, 0, sizeof id);
    UNIT_REQUIRE(trpi_address_parse("troupe.tcp://left@h:1", &id.address, NULL, NULL) == TRP_OK);
    trpi_address_nameless(uid, &id.address);
    id.uid = uid;
    return id;
}

/* client-sessions-S1 */
static void
a_client_has_one_session_and_there_are_so_many(void)
{
    trpi_sessions sessions = { .max = 2, .silence_ms = 1000 };
    trpi_session *first, *again, *second;
    trpi_node_id a = client_of(1), b = client_of(2);
    bool is_new;
    UNIT_EQUAL(trpi_session_hello(&sessions, &a, 1, 0, &first, &is_new), TRP_OK);
    UNIT_TRUE(is_new);
    UNIT_EQUAL(trpi_session_hello(&sessions, &a, 1, 5, &again, &is_new), TRP_OK);
    UNIT_TRUE(!is_new && again == first);
    UNIT_EQUAL(trpi_session_hello(&sessions, &a, 2, 900, &second, &is_new), TRP_OK);
    UNIT_EQUAL(trpi_session_hello(&sessions, &b, 1, 900, &again, &is_new), TRP_ELIMIT);
    UNIT_TRUE(trpi_session_expired(&sessions, 1004) == NULL);
    UNIT_TRUE(trpi_session_expired(&sessions, 1005) == first);
    trpi_session_free(first);
    UNIT_EQUAL(trpi_session_hello(&sessions, &b, 1, 1005, &again, &is_new), TRP_OK);
    UNIT_EQUAL(sessions.count, 2);
    while ((again = trpi_session_any(&sessions)) != NULL) {
        trpi_session_free(again);
    }
    UNIT_EQUAL(sessions.count, 0);
}

/* A process that says HELLO under ever new numbers leaves places to the others. */
static void
a_process_has_so_many_sessions(void)
{
    trpi_sessions sessions = { .max = 100, .silence_ms = 1000 };
    trpi_session *session;
    trpi_node_id a = client_of(1), b = client_of(2);
    bool is_new;
    for (uint32_t i = 1; i <= TRPI_SESSIONS_PER_PROCESS; i++) {
        UNIT_EQUAL(trpi_session_hello(&sessions, &a, i, 0, &session, &is_new), TRP_OK);
    }
    UNIT_EQUAL(
        trpi_session_hello(&sessions, &a, TRPI_SESSIONS_PER_PROCESS + 1, 0, &session, &is_new),
        TRP_ELIMIT);
    UNIT_EQUAL(trpi_session_hello(&sessions, &a, 1, 0, &session, &is_new), TRP_OK);
    UNIT_EQUAL(trpi_session_hello(&sessions, &b, 1, 0, &session, &is_new), TRP_OK);
    while ((session = trpi_session_any(&sessions)) != NULL) {
        trpi_session_free(session);
    }
}

enum { NODES = 10, CLIENTS = 10000 };

static void
nodes_fill(trpi_address *nodes)
{
    for (uint32_t i = 0; i < NODES; i++) {
        char text[64];
        (void)snprintf(text, sizeof text, "troupe.tcp://shop@10.0.0.%u:2552", i + 1);
        UNIT_REQUIRE(trpi_address_parse(text, &nodes[i], NULL, NULL) == TRP_OK);
    }
}

/* CONTRIB-29, client-sessions-S2 */
static void
all_nodes_give_a_client_the_same_contacts(void)
{
    trpi_address nodes[NODES], turned[NODES];
    nodes_fill(nodes);
    for (uint32_t i = 0; i < NODES; i++) {
        turned[i] = nodes[NODES - 1 - i];
    }
    for (uint64_t uid = 1; uid <= 1000; uid++) {
        uint32_t a[TRPI_CLIENT_CONTACTS_MAX], b[TRPI_CLIENT_CONTACTS_MAX];
        UNIT_EQUAL(trpi_contacts_choose(nodes, NODES, uid, 3, a), 3);
        UNIT_EQUAL(trpi_contacts_choose(turned, NODES, uid, 3, b), 3);
        for (int i = 0; i < 3; i++) {
            UNIT_TRUE(trpi_address_equal(&nodes[a[i]], &turned[b[i]]));
        }
        UNIT_TRUE(a[0] != a[1] && a[1] != a[2] && a[0] != a[2]);
    }
}

/* CONTRIB-29 */
static void
clients_are_spread_and_few_move_when_a_node_goes(void)
{
    trpi_address nodes[NODES];
    uint32_t of[NODES] = { 0 }, moved = 0, chosen[TRPI_CLIENT_CONTACTS_MAX];
    nodes_fill(nodes);
    for (uint64_t uid = 1; uid <= CLIENTS; uid++) {
        (void)trpi_contacts_choose(nodes, NODES, uid, 1, chosen);
        uint32_t before = chosen[0];
        of[before]++;
        (void)trpi_contacts_choose(nodes, NODES - 1, uid, 1, chosen);
        moved += before != NODES - 1 && chosen[0] != before;
    }
    UNIT_EQUAL(moved, 0); /* only those of the node that went */
    for (uint32_t i = 0; i < NODES; i++) {
        UNIT_TRUE(of[i] > CLIENTS / NODES / 4 && of[i] < CLIENTS / NODES * 3);
    }
}

static void
fewer_nodes_are_fewer_contacts(void)
{
    trpi_address nodes[NODES];
    uint32_t chosen[TRPI_CLIENT_CONTACTS_MAX];
    nodes_fill(nodes);
    UNIT_EQUAL(trpi_contacts_choose(nodes, 0, 1, 3, chosen), 0);
    UNIT_EQUAL(trpi_contacts_choose(nodes, 2, 1, 3, chosen), 2);
    UNIT_EQUAL(trpi_contacts_choose(nodes, NODES, 1, 100, chosen), TRPI_CLIENT_CONTACTS_MAX);
}

/* client-searches-Q1 */
static void
so_many_searches_go_on_and_one_more_is_refused(void)
{
    trpi_searches searches = { NULL, 0, 0 };
    trpi_client_frame opens = { .word = TRPI_CLIENT_OPEN,
                                .number = 7,
                                .kind = TRPI_CLIENT_SERVICE };
    trpi_node_id a = client_of(1);
    trpi_search *search = NULL;
    (void)snprintf(opens.name, sizeof opens.name, "echo");
    for (uint32_t i = 0; i < TRPI_SEARCHES_MAX; i++) {
        UNIT_REQUIRE(trpi_search_begin(&searches, &a, 3, &opens, 1000 + i, &search) == TRP_OK);
    }
    UNIT_EQUAL(trpi_search_begin(&searches, &a, 3, &opens, 9000, &search), TRP_ELIMIT);
    UNIT_EQUAL(searches.count, TRPI_SEARCHES_MAX);
    UNIT_TRUE(trpi_search_expired(&searches, 999) == NULL);
    search = trpi_search_expired(&searches, 1000);
    UNIT_REQUIRE(search != NULL && search->number == 1);
    UNIT_TRUE(trpi_node_id_equal(&search->node, &a) && search->client == 3);
    UNIT_EQUAL(search->client_number, 7);
    UNIT_TEXT(search->name, "echo");
    trpi_search_end(&searches, search);
    UNIT_TRUE(trpi_search_find(&searches, 1) == NULL);
    UNIT_EQUAL(trpi_search_begin(&searches, &a, 3, &opens, 9000, &search), TRP_OK);
    UNIT_TRUE(trpi_search_find(&searches, TRPI_SEARCHES_MAX + 1) == search);
    while (searches.first != NULL) {
        trpi_search_end(&searches, searches.first);
    }
    UNIT_EQUAL(searches.count, 0);
}

UNIT_BEGIN("sessions")
UNIT(so_many_searches_go_on_and_one_more_is_refused)
UNIT(a_client_has_one_session_and_there_are_so_many)
UNIT(a_process_has_so_many_sessions)
UNIT(all_nodes_give_a_client_the_same_contacts)
UNIT(clients_are_spread_and_few_move_when_a_node_goes)
UNIT(fewer_nodes_are_fewer_contacts)
UNIT_END
