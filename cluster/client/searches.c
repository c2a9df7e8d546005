/* searches.c - the services that a receptionist asks other members for.
 *
 * Must hold.
 *   client-searches-Q1  A search ends once: found, refused by all, or at its time.
 * Limits.  TRPI_SEARCHES_MAX: a client asks again when one has ended.
 * Tests.   tests/unit/client/sessions_test.c
 */
#include "cluster/client/searches.h"

#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"

trp_err
trpi_search_begin(trpi_searches *searches, const trpi_node_id *node, uint32_t client,
                  const trpi_client_frame *opens, uint64_t until_ms, trpi_search **ret_search)
{
    size_t bytes = strlen(opens->name) + 1;
    if (searches->count >= TRPI_SEARCHES_MAX) {
        return TRP_ELIMIT;
    }
    trpi_search *new = trpi_alloc(sizeof *new + bytes);
    if (new == NULL) {
        return TRP_ENOMEM;
    }
    new->number = ++searches->made;
    new->node = *node;
    new->client = client;
    new->client_number = opens->number;
    new->until_ms = until_ms;
    new->kind = opens->kind;
    memcpy(new->name, opens->name, bytes);
    new->next = searches->first;
    searches->first = new;
    searches->count++;
    *ret_search = new;
    return TRP_OK;
}

trpi_search *
trpi_search_find(const trpi_searches *searches, uint64_t number)
{
    trpi_search *s = searches->first;
    while (s != NULL && s->number != number) {
        s = s->next;
    }
    return s;
}

trpi_search *
trpi_search_expired(const trpi_searches *searches, uint64_t now_ms)
{
    trpi_search *s = searches->first;
    while (s != NULL && now_ms < s->until_ms) {
        s = s->next;
    }
    return s;
}

void
trpi_search_end(trpi_searches *searches, trpi_search *search)
{
    trpi_search **at = &searches->first;
    while (*at != search) {
        trpi_assert(*at != NULL);
        at = &(*at)->next;
    }
    *at = search->next;
    searches->count--;
    trpi_free(search);
}
