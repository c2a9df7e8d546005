/* routing_logic.c - the built-in routing schemes, and those that programs register by name.
 *
 * Must hold.
 *   routing-logic-G1  Each scheme is a function of the table and of the message's number: nothing
 *       is locked, and any number of threads may be in it.
 *   routing-logic-G2  A scheme without routees names none: the message is a dead letter.
 * Tests.   tests/unit/pattern/router_test.c
 * Sources. ROUTE-4, -7 to -10.
 */
#include <pthread.h>
#include <string.h>

#include "base/sized.h"
#include "pattern/routing.h"

/* routing-logic-G2 */
static bool
is_empty(trp_route *route)
{
    if (route->table->count == 0) {
        trpi_route_nobody(route);
        return true;
    }
    return false;
}

/* ROUTE-7 */
static void
route_round_robin(void *state, trp_route *route, trp_ref sender, const trp_msg *msg)
{
    (void)state;
    (void)sender;
    (void)msg;
    if (!is_empty(route)) {
        trpi_route_to_index(route, (uint32_t)(trp_route_number(route) % route->table->count));
    }
}

/* ROUTE-8 */
static void
route_random(void *state, trp_route *route, trp_ref sender, const trp_msg *msg)
{
    (void)state;
    (void)sender;
    (void)msg;
    if (!is_empty(route)) {
        trpi_route_to_index(route, (uint32_t)(trpi_route_random(route) % route->table->count));
    }
}

/* Score a routee, the lower the better (ROUTE-9): idle and empty; empty; by waiting messages;
 * remote; suspended. */
static uint64_t
routee_score(trp_ctx *ctx, trpi_routee *routee)
{
    trp_routee_load load;

    trpi_routee_load(ctx, routee, &load);
    if (load.suspended) {
        return UINT64_MAX - 1;
    }
    if (load.remote) {
        return UINT64_MAX - 2;
    }
    return 2 * (uint64_t)load.pending + (load.busy ? 1 : 0);
}

static void
route_smallest_mailbox(void *state, trp_route *route, trp_ref sender, const trp_msg *msg)
{
    uint64_t best = UINT64_MAX, best_sent = 0;
    uint32_t index = 0;

    (void)state;
    (void)sender;
    (void)msg;
    if (is_empty(route)) {
        return;
    }
    /* Of equals take the one that was sent the fewest: a routee that starts looks as busy as one in
     * a long message. */
    for (uint32_t i = 0; i < route->table->count && best > 0; i++) {
        trpi_routee *routee = route->table->routees[i];
        uint64_t mine = routee_score(route->ctx, routee);
        uint64_t sent = atomic_load_explicit(&routee->sent, memory_order_relaxed); /* a hint */

        if (mine < best || (mine == best && sent < best_sent)) {
            best = mine;
            best_sent = sent;
            index = i;
        }
    }
    trpi_route_to_index(route, index);
}

/* ROUTE-10 */
static void
route_broadcast(void *state, trp_route *route, trp_ref sender, const trp_msg *msg)
{
    (void)state;
    (void)msg;
    if (!is_empty(route)) {
        trp_route_to_all(route, sender);
    }
}

static const trpi_logic built_in[] = {
    { TRP_ROUTING_LOGIC_INIT("round-robin", route_round_robin), 0 },
    { TRP_ROUTING_LOGIC_INIT("random", route_random), 0 },
    { TRP_ROUTING_LOGIC_INIT("smallest-mailbox", route_smallest_mailbox), TRPI_LOGIC_SENT },
    { TRP_ROUTING_LOGIC_INIT("broadcast", route_broadcast), 0 },
    { TRP_ROUTING_LOGIC_INIT("scatter-gather", trpi_route_scatter), 0 },
    { TRP_ROUTING_LOGIC_INIT("tail-chopping", trpi_route_chop), 0 },
    { TRP_ROUTING_LOGIC_INIT("balancing", route_round_robin), TRPI_LOGIC_BALANCING },
    { TRP_ROUTING_LOGIC_INIT("consistent-hashing", trpi_route_hash), TRPI_LOGIC_RING },
};

/* ---- those of programs: process-wide, like the types that they route ------------------------- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* all below */
static const trp_routing_logic *registered[TRPI_ROUTING_LOGICS_MAX];
static uint32_t registered_count;

/* Under the lock. */
static const trp_routing_logic *
registered_find(const char *name)
{
    for (uint32_t i = 0; i < registered_count; i++) {
        if (strcmp(registered[i]->name, name) == 0) {
            return registered[i];
        }
    }
    return NULL;
}

const trp_routing_logic *
trpi_logic_find(const char *name, uint32_t *ret_needs)
{
    const trp_routing_logic *found;

    *ret_needs = 0;
    for (size_t i = 0; i < sizeof built_in / sizeof built_in[0]; i++) {
        if (strcmp(built_in[i].logic.name, name) == 0) {
            *ret_needs = built_in[i].needs;
            return &built_in[i].logic;
        }
    }
    pthread_mutex_lock(&lock);
    found = registered_find(name);
    pthread_mutex_unlock(&lock);
    return found;
}

trp_err
trp_routing_logic_register(const trp_routing_logic *logic)
{
    const trp_routing_logic *same;
    uint32_t needs;
    trp_err err = TRP_OK;

    if (logic == NULL || !TRPI_SIZED_FITS(logic, arg) || logic->name == NULL ||
        logic->name[0] == 0 || strcmp(logic->name, "from-code") == 0 || logic->route == NULL) {
        return TRP_EINVAL;
    }
    same = trpi_logic_find(logic->name, &needs);
    if (same != NULL) {
        return same == logic ? TRP_OK : TRP_EEXIST;
    }
    pthread_mutex_lock(&lock);
    same = registered_find(logic->name); /* another thread may have been first */
    if (same != NULL) {
        err = same == logic ? TRP_OK : TRP_EEXIST;
    } else if (registered_count == TRPI_ROUTING_LOGICS_MAX) {
        err = TRP_ELIMIT;
    } else {
        registered[registered_count++] = logic;
    }
    pthread_mutex_unlock(&lock);
    return err;
}
