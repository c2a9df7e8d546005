/* routing_pool.c - the routees of one router: adding, removing, and the swap of the table.
 *
 * Must hold.
 *   routing-pool-O1  `routees` is the head's own list; tellers see it through the table that was
 *       made of it last. A routee that is removed is retired after the swap, so a table never leads
 *       to freed memory.
 *   routing-pool-O2  An abandoned routee is in no table when its poison pill is sent.
 * Tests.   tests/unit/pattern/pool_test.c
 * Sources. ROUTE-5, -18, -19; Akka 2.2.5, RouteeProvider.
 */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/array.h"
#include "base/assert.h"
#include "base/hash.h"
#include "pattern/routing.h"
#include "pattern/routing_head.h"

static uint32_t
routee_index(const trpi_router *router, trp_ref ref)
{
    uint32_t i = 0;

    while (i < router->pool.routees_count && !trp_ref_equal(router->pool.routees[i]->ref, ref)) {
        i++;
    }
    return i;
}

bool
trpi_router_has(const trpi_router *router, trp_ref ref)
{
    return routee_index(router, ref) < router->pool.routees_count;
}

/* Hash address and path: equal on every node that knows the routee by its path, which is of this
 * node or has its address; NULL: looked up. */
static uint64_t
routee_identity(trp_system *system, trp_ref ref, const char *path)
{
    char text[TRPI_ADDRESS_TEXT_BYTES + TRP_PATH_BYTES_MAX + 1];
    size_t used = 0;

    if (path != NULL && path[0] != '/') {
        return trpi_hash_text(path);
    }
    if (ref.node == TRPI_NODE_SELF) {
        trpi_address_format(&trpi_system_self(system)->address, text, TRPI_ADDRESS_TEXT_BYTES);
        used = strlen(text);
    }
    if (path != NULL && ref.node == TRPI_NODE_SELF) {
        (void)snprintf(text + used, sizeof text - used, "%s", path);
    } else {
        trp_path(system, ref, text + used, sizeof text - used);
    }
    return trpi_hash_text(text);
}

static uint64_t
routee_handled(trp_system *system, trp_ref ref)
{
    trp_ctx *ctx = trpi_enter(system);
    trpi_look look;

    trpi_actor_look(ctx, ref, &look);
    trpi_leave(ctx);
    return look.handled;
}

/* Return the node of a routee: that of the address, if one is given; else that of its ref. */
static uint32_t
node_of(const trpi_router *router, trp_ref ref, const char *node)
{
    trpi_node_id id;
    uint32_t number;

    memset(&id, 0, sizeof id);
    return node != NULL && trpi_address_parse(node, &id.address, NULL, NULL) == TRP_OK &&
                   trpi_node_intern(router->system, &id, &number) == TRP_OK
               ? number
               : ref.node;
}

trp_err
trpi_router_add(trpi_router *router, trp_ref ref, bool child, const char *path, const char *node)
{
    trpi_routee *routee;
    trp_err err;

    if (trp_ref_is_none(ref) || trp_ref_equal(ref, router->self)) {
        return TRP_EINVAL;
    }
    err = TRPI_ARRAY_RESERVE(&router->pool, routees, 1, TRP_ROUTEES_MAX);
    if (err != TRP_OK) {
        return err;
    }
    routee = trpi_alloc(sizeof *routee);
    if (routee == NULL) {
        return TRP_ENOMEM;
    }
    routee->ref = ref;
    routee->child = child;
    routee->node = node_of(router, ref, node);
    routee->identity = routee_identity(router->system, ref, path);
    atomic_init(&routee->base, child ? 0 : routee_handled(router->system, ref));
    router->pool.routees[router->pool.routees_count++] = routee;
    return TRP_OK;
}

bool
trpi_router_withdraw(trpi_router *router, trp_ref ref)
{
    uint32_t i = routee_index(router, ref);
    trpi_routee *routee;

    if (i == router->pool.routees_count) {
        return false;
    }
    routee = router->pool.routees[i];
    router->pool.routees_count--;
    memmove(&router->pool.routees[i], &router->pool.routees[i + 1],
            (router->pool.routees_count - i) * sizeof router->pool.routees[0]);
    routee->next = router->pool.leaving;
    router->pool.leaving = routee; /* routing-pool-O1 */
    return true;
}

bool
trpi_router_remove(trpi_router *router, trp_ref ref)
{
    bool found = trpi_router_withdraw(router, ref);

    if (found) {
        /* Without memory for a smaller table tellers go on with the old one, and some messages
         * become dead letters. */
        (void)trpi_router_swap(router);
    }
    return found;
}

/* Retire routees that only the last table referred to. */
static void
leaving_retire(trpi_router *router)
{
    while (router->pool.leaving != NULL) {
        trpi_routee *routee = router->pool.leaving;

        router->pool.leaving = routee->next;
        trpi_system_retire(router->system, trpi_free, routee);
    }
}

trp_err
trpi_router_swap(trpi_router *router)
{
    uint32_t virtual_nodes =
        (router->needs & TRPI_LOGIC_RING) != 0 ? router->plan.virtual_nodes : 0;
    trpi_routee_table *table, *before;
    trp_err err = trpi_routee_table_new(router->pool.routees, router->pool.routees_count,
                                        virtual_nodes, &table);

    if (err != TRP_OK) {
        return err;
    }
    table->serial = ++router->pool.tables_count;
    /* acq_rel: release pairs with the acquire of trpi_router_table() */
    before = atomic_exchange_explicit(&router->table, table, memory_order_acq_rel);
    if (before != NULL) {
        trpi_system_retire(router->system, trpi_routee_table_free, before);
        leaving_retire(router);
    }
    return TRP_OK;
}

void
trpi_router_paths_expect(trpi_router *router)
{
    router->pool.paths_left = router->plan.paths.texts_count;
}

void
trpi_router_path_found(trpi_router *router, uint32_t index)
{
    trpi_assert(router->pool.paths_left > 0);
    trpi_router_plan_path_drop(&router->plan, index);
    router->pool.paths_left--;
}

/* ---- head ------------------------------------------------------------------------------------ */

trp_spawn_options
trpi_router_child(trpi_router *router)
{
    trp_spawn_options child = router->child;

    if (router->plan.nodes.texts_count > 0) {
        child.node =
            router->plan.nodes.texts[router->pool.placed++ % router->plan.nodes.texts_count];
    }
    return child;
}

static trp_err
grow_one(trp_ctx *ctx, trpi_router *router)
{
    trp_spawn_options child;
    trp_ref ref;
    trp_err err;

    if (router->pool.routees_count == TRP_ROUTEES_MAX) {
        return TRP_ELIMIT;
    }
    child = trpi_router_child(router);
    err = router->routee == NULL ? TRP_EINVAL : trp_spawn(ctx, router->routee, &child, &ref);
    if (err != TRP_OK) {
        return err;
    }
    err = trpi_router_add(router, ref, true, NULL, child.node);
    if (err != TRP_OK || trp_watch(ctx, ref) != TRP_OK) {
        (void)trpi_router_remove(router, ref);
        trp_stop(ctx, ref);
        return err != TRP_OK ? err : TRP_ENOMEM;
    }
    return TRP_OK;
}

trp_err
trpi_router_grow(trp_ctx *ctx, trpi_router *router, uint32_t count)
{
    trp_err err = TRP_OK;

    while (count-- > 0 && err == TRP_OK) {
        err = grow_one(ctx, router);
    }
    if (err != TRP_OK) {
        trp_log(ctx, TRP_LOG_WARNING, "no more routees than %u can be made: %s",
                router->pool.routees_count, trp_strerror(err));
    }
    return trpi_router_swap(router) != TRP_OK ? TRP_ENOMEM : err;
}

void
trpi_router_shrink(trp_ctx *ctx, trpi_router *router, uint32_t count, uint32_t delay_ms,
                   bool children_only)
{
    while (count-- > 0 && router->pool.routees_count > 0) {
        const trpi_routee *last = router->pool.routees[router->pool.routees_count - 1];
        trp_ref ref = last->ref;
        bool child = last->child;

        trp_unwatch(ctx, ref);
        (void)trpi_router_remove(router, ref);
        if (child || !children_only) {
            trpi_router_abandon(ctx, router, ref, delay_ms);
        }
    }
}

/* routing-pool-O2 */
void
trpi_router_abandon(trp_ctx *ctx, trpi_router *router, trp_ref ref, uint32_t delay_ms)
{
    trpi_abandoned *entry = delay_ms == 0 ? NULL : trpi_alloc(sizeof *entry);

    if (entry == NULL) { /* no memory to wait */
        trp_tell(ctx, ref, &trp_poison_pill_type, NULL, 0);
        return;
    }
    entry->ref = ref;
    entry->due_ms = trp_now_ms(ctx) + delay_ms;
    entry->next = router->pool.abandoned;
    router->pool.abandoned = entry;
    trpi_router_abandoned_check(ctx, router);
}

void
trpi_router_abandoned_check(trp_ctx *ctx, trpi_router *router)
{
    uint64_t now_ms = trp_now_ms(ctx), due_ms = UINT64_MAX;

    for (trpi_abandoned **link = &router->pool.abandoned; *link != NULL;) {
        trpi_abandoned *entry = *link;

        if (entry->due_ms <= now_ms) {
            trp_tell(ctx, entry->ref, &trp_poison_pill_type, NULL, 0);
            *link = entry->next;
            trpi_free(entry);
        } else {
            due_ms = entry->due_ms < due_ms ? entry->due_ms : due_ms;
            link = &entry->next;
        }
    }
    if (due_ms != UINT64_MAX) {
        trpi_head_timer(ctx, TRPI_HEAD_ABANDONED, due_ms - now_ms);
    }
}

/* ---- end ------------------------------------------------------------------------------------- */

void
trpi_router_free(void *object)
{
    trpi_router *router = object;

    if (router == NULL) {
        return;
    }
    if (router->logic != NULL && router->logic->destroy != NULL) {
        router->logic->destroy(router->logic_state);
    }
    if (router->source.ops != NULL) {
        router->source.ops->free(router->source.arg);
    }
    for (uint32_t i = 0; i < router->pool.routees_count; i++) {
        trpi_free(router->pool.routees[i]);
    }
    while (router->pool.leaving != NULL) {
        trpi_routee *routee = router->pool.leaving;

        router->pool.leaving = routee->next;
        trpi_free(routee);
    }
    while (router->pool.abandoned != NULL) {
        trpi_abandoned *entry = router->pool.abandoned;

        router->pool.abandoned = entry->next;
        trpi_free(entry);
    }
    trpi_free(router->pool.routees);
    trpi_routee_table_free(atomic_load_explicit(&router->table, memory_order_relaxed));
    trpi_router_plan_fini(&router->plan);
    if (router->borrowed) {
        trpi_balancing_return(router->system, router->child.dispatcher);
    }
    trpi_free((void *)(uintptr_t)router->child.dispatcher);
    trpi_free((void *)(uintptr_t)router->child.mailbox);
    trpi_free((void *)(uintptr_t)router->child.args);
    trpi_free(router);
}
