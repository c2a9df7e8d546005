/* routing_hash.c - consistent hashing: equal keys lead to one routee, and few keys move when
 * routees come and go.
 *
 * Shape.   The key comes from, in this order: the router's hash_mapping; the envelope; the function
 *          of the message's type. Its hash is looked up on the ring of the table.
 * Limits.  A message without a key is a dead letter; that is logged once for each router.
 * Tests.   tests/unit/pattern/ring_test.c
 * Sources. ROUTE-12; Karger et al., "Consistent hashing and random trees" (1997).
 */
#include <pthread.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "pattern/routing.h"

typedef struct type_key {
    trp_hash_key_fn fn;
    void *arg;
    struct type_key *replaced; /* readers may be in it; it stays */
} type_key;

/* By number of the type; process-wide, like types. release; pairs with acquire of key_of(). */
static _Atomic(type_key *) type_keys[TRP_TYPES_MAX + 1u];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* writing type_keys */

trp_err
trp_type_hash_key_set(const trp_type *type, trp_hash_key_fn key, void *arg)
{
    type_key *mine;

    if (type == NULL || type->number == 0) {
        return TRP_ENOTYPE;
    }
    mine = trpi_alloc(sizeof *mine);
    if (mine == NULL) {
        return TRP_ENOMEM;
    }
    mine->fn = key;
    mine->arg = arg;
    pthread_mutex_lock(&lock);
    mine->replaced = atomic_load_explicit(&type_keys[type->number], memory_order_relaxed);
    atomic_store_explicit(&type_keys[type->number], mine, memory_order_release);
    pthread_mutex_unlock(&lock);
    return TRP_OK;
}

static bool
key_of(const trp_route *route, const trp_msg *msg, uint64_t *ret_hash)
{
    const trpi_router_plan *plan = &route->router->plan;
    trp_hash_key key = { NULL, 0 };
    const type_key *of_type;
    bool found = false;

    if (route->keyed) { /* hash_mapping maps messages; an envelope says for itself */
        *ret_hash = route->key_hash;
        return true;
    }
    if (plan->hash_mapping != NULL) {
        found = plan->hash_mapping(plan->hash_arg, msg, &key) != 0;
    }
    of_type = atomic_load_explicit(&type_keys[msg->priv_type], memory_order_acquire);
    if (!found && of_type != NULL && of_type->fn != NULL) {
        found = of_type->fn(of_type->arg, msg, &key) != 0;
    }
    if (found) {
        *ret_hash = trpi_hash(key.bytes, key.count, 0);
    }
    return found;
}

static void
log_keyless(const trp_route *route, const trp_msg *msg)
{
    char path[TRP_PATH_BYTES_MAX + 1];
    trpi_router *router = route->router;

    if (!atomic_exchange_explicit(&router->keyless, true, memory_order_relaxed)) {
        trp_system_log(
            router->system, TRP_LOG_WARNING,
            trp_path(router->system, router->self, path, sizeof path),
            "a message of type %s has no hash key: it needs a hash mapping, a key of its "
            "type or an envelope; such messages are dead letters",
            trp_msg_type(msg)->name);
    }
}

void
trpi_route_hash(void *state, trp_route *route, trp_ref sender, const trp_msg *msg)
{
    uint64_t hash;

    (void)state;
    (void)sender;
    if (route->table->count == 0) {
        trpi_route_nobody(route);
    } else if (key_of(route, msg, &hash)) {
        trpi_route_to_index(route, trpi_routee_table_lookup(route->table, hash));
    } else {
        log_keyless(route, msg);
        trpi_route_nobody(route);
    }
}
