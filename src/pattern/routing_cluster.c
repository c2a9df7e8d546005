/* routing_cluster.c - cluster-aware routers: their part of a plan, and the functions by which a
 * source acts on the router's actor.
 *
 * Why.     The cluster room knows the nodes, and this room does not know the cluster room: that one
 *          registers a function that makes a source (pattern.h), and the source calls back.
 * Must hold.
 *   routing-cluster-U1  Settings that contradict each other make no router; the log names both.
 *   routing-cluster-U2  A table has only routees that were put and not taken.
 * Tests.   tests/unit/pattern/plan_test.c, tests/unit/cluster/cluster_router_test.c
 * Sources. CROUTE-05 to -07, -11, -13, -15; Akka 2.2.5, ClusterRouterSettings; decision 124.
 */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <troupe/path.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/sized.h"
#include "base/units.h"
#include "pattern/routing_head.h"

/* ---- plan ------------------------------------------------------------------------------------ */

static trp_err
text_take(const char **text, const char *value)
{
    char *copy = value == NULL || value[0] == 0 ? NULL : trpi_strdup(value);

    if (copy == NULL && value != NULL && value[0] != 0) {
        return TRP_ENOMEM;
    }
    trpi_free((void *)(uintptr_t)*text);
    *text = copy;
    return TRP_OK;
}

trp_err
trpi_cluster_plan_init(trpi_router_plan *plan, const trp_cluster_routees *cluster)
{
    static const trp_cluster_routees defaults = TRP_CLUSTER_ROUTEES_INIT;
    trp_cluster_routees own;
    trp_err err;

    plan->cluster = defaults;
    if (cluster == NULL) {
        return TRP_OK;
    }
    if (!TRPI_SIZED_TAKE(cluster, &own, zero) || cluster->total == 0 || cluster->per_node == 0) {
        return TRP_EINVAL;
    }
    plan->clustered = true;
    plan->cluster.total = cluster->total;
    plan->cluster.per_node = cluster->per_node;
    plan->cluster.local = cluster->local;
    err = text_take(&plan->cluster.path, cluster->path);
    return err == TRP_OK ? text_take(&plan->cluster.role, cluster->role) : err;
}

void
trpi_cluster_plan_fini(trpi_router_plan *plan)
{
    trpi_free((void *)(uintptr_t)plan->cluster.path);
    trpi_free((void *)(uintptr_t)plan->cluster.role);
}

static bool
parse_switch(const char *value, bool *ret_on)
{
    *ret_on = strcasecmp(value, "on") == 0 || strcasecmp(value, "yes") == 0 ||
              strcasecmp(value, "true") == 0;
    return *ret_on || strcasecmp(value, "off") == 0 || strcasecmp(value, "no") == 0 ||
           strcasecmp(value, "false") == 0;
}

trp_err
trpi_cluster_plan_set(trpi_router_plan *plan, const char *key, const char *value, char *error,
                      size_t error_bytes)
{
    bool good, on;

    plan->cluster_key_said = true;
    if (strcmp(key, "routees-path") == 0) {
        return text_take(&plan->cluster.path, value);
    }
    if (strcmp(key, "use-role") == 0) {
        return text_take(&plan->cluster.role, value);
    }
    if (strcmp(key, "enabled") == 0) {
        good = parse_switch(value, &on);
        plan->clustered = good && on;
        plan->clustered_said = true;
    } else if (strcmp(key, "allow-local-routees") == 0) {
        good = parse_switch(value, &on);
        plan->cluster.local = good && on;
    } else if (strcmp(key, "max-total-nr-of-instances") == 0) {
        good = trpi_whole32_parse(value, 1, TRP_ROUTEES_MAX, &plan->total_said);
        plan->cluster.total = good ? plan->total_said : plan->cluster.total;
    } else if (strcmp(key, "max-nr-of-instances-per-node") == 0) {
        good = trpi_whole32_parse(value, 1, TRP_ROUTEES_MAX, &plan->cluster.per_node);
    } else {
        return trpi_router_plan_wrong(error, error_bytes, "cluster.%s: there is no such key", key);
    }
    return good ? TRP_OK
                : trpi_router_plan_wrong(error, error_bytes,
                                         "cluster.%s: \"%s\" is no value for it", key, value);
}

/* Return the setting that contradicts the cluster settings (routing-cluster-U1). NULL: none. */
static const char *
plan_contradiction(const trpi_router_plan *plan, bool placed)
{
    if (plan->routees_count > 0 || plan->paths.texts_count > 0) {
        return "routees.paths, or routees of the code: cluster.routees-path finds them on the "
               "nodes";
    }
    if (plan->nodes.texts_count > 0 || placed) {
        return "target.nodes, or a node of the code: the cluster says on which nodes they are made";
    }
    if (plan->resizes) {
        return "a resizer: cluster.max-nr-of-instances-per-node says how many there are";
    }
    if (plan->logic != NULL && strcmp(plan->logic, "balancing") == 0) {
        return "balancing, whose routees share a mailbox of one node";
    }
    return NULL;
}

static trp_err
check_numbers(trpi_router_plan *plan, char *error, size_t bytes)
{
    trp_cluster_routees *cluster = &plan->cluster;

    if (plan->instances_said != 0 && plan->total_said != 0 &&
        plan->instances_said != plan->total_said) {
        return trpi_router_plan_wrong(error, bytes,
                                      "nr-of-instances %u and cluster.max-total-nr-of-instances %u "
                                      "both say how many routees there are in all: keep one",
                                      plan->instances_said, plan->total_said);
    }
    if (plan->instances_said != 0) {
        cluster->total = plan->instances_said;
    }
    if (cluster->total > TRP_ROUTEES_MAX || cluster->per_node > TRP_ROUTEES_MAX) {
        (void)trpi_router_plan_wrong(error, bytes, "more than %d routees", TRP_ROUTEES_MAX);
        return TRP_ELIMIT;
    }
    if (cluster->path != NULL && cluster->per_node != 1) {
        return trpi_router_plan_wrong(error, bytes,
                                      "cluster.max-nr-of-instances-per-node %u with "
                                      "cluster.routees-path: one routee is found on each node",
                                      cluster->per_node);
    }
    return TRP_OK;
}

static trp_err
settings_check(trpi_router_plan *plan, bool has_routee, bool placed, char *error, size_t bytes)
{
    const trp_cluster_routees *cluster = &plan->cluster;
    const char *other;
    trp_err err;

    if (plan->cluster_key_said && !plan->clustered_said && !plan->clustered) {
        return trpi_router_plan_wrong(error, bytes,
                                      "a key of cluster is set, and cluster.enabled is not: say on "
                                      "or off");
    }
    if (!plan->clustered) {
        return TRP_OK;
    }
    other = plan_contradiction(plan, placed);
    if (other != NULL) {
        return trpi_router_plan_wrong(error, bytes, "a cluster-aware router cannot have %s", other);
    }
    err = check_numbers(plan, error, bytes);
    if (err == TRP_OK && cluster->path != NULL &&
        (cluster->path[0] != '/' || trp_path_check(cluster->path) != TRP_OK)) {
        err = trpi_router_plan_wrong(error, bytes,
                                     "cluster.routees-path: \"%s\" is no path on any node: write "
                                     "/user/worker",
                                     cluster->path);
    }
    if (err == TRP_OK && cluster->role != NULL && strlen(cluster->role) > 63) {
        err = trpi_router_plan_wrong(error, bytes, "cluster.use-role: longer than a role can be");
    }
    if (err == TRP_OK && cluster->path == NULL && !has_routee) {
        err = trpi_router_plan_wrong(error, bytes,
                                     "there is no behaviour to make routees of, and no "
                                     "cluster.routees-path to find them");
    }
    return err;
}

trp_err
trpi_cluster_plan_check(trpi_router_plan *plan, bool has_routee, bool placed, char *error,
                        size_t error_bytes)
{
    trp_err err = settings_check(plan, has_routee, placed, error, error_bytes);

    return err == TRP_ECONFIG && !plan->configured ? TRP_EINVAL : err;
}

/* ---- the source ------------------------------------------------------------------------------ */

/* release and acquire: the function's data is visible to a thread that reads it */
static _Atomic(trpi_routee_source_new_fn) source_new;

void
trpi_routee_source_register(trpi_routee_source_new_fn make)
{
    atomic_store_explicit(&source_new, make, memory_order_release);
}

trp_err
trpi_router_source_make(trpi_router *router, char *error, size_t bytes)
{
    trpi_routee_source_new_fn make = atomic_load_explicit(&source_new, memory_order_acquire);
    trp_err err = TRP_ESTATE;

    if (!router->plan.clustered) {
        return TRP_OK;
    }
    if (make != NULL) {
        err = make(router->system, &router->plan.cluster, &router->source);
    }
    if (err == TRP_ESTATE) {
        (void)trpi_router_plan_wrong(error, bytes,
                                     "it is to have routees on the nodes of a cluster, and this "
                                     "system is no cluster node");
    }
    return err;
}

trp_err
trpi_routees_poke_new(trp_msg **ret_msg)
{
    void *order;
    trp_err err = trp_msg_new(&trpi_resize_type, 1, ret_msg, &order);

    if (err == TRP_OK) {
        *(uint8_t *)order = TRPI_HEAD_SOURCE;
    }
    return err;
}

void
trpi_routees_poke(trp_system *system, trp_ref router, trp_msg *msg)
{
    trp_ctx *ctx = trpi_enter(system);

    trp_send(ctx, router, msg);
    trpi_leave(ctx);
}

void
trpi_routees_poke_in(trp_ctx *ctx, uint64_t delay_ms)
{
    trpi_head_timer(ctx, TRPI_HEAD_SOURCE, delay_ms);
}

void *
trpi_routees_source(trp_ctx *ctx)
{
    return trpi_router_self(ctx)->source.arg;
}

trp_err
trpi_routee_make(trp_ctx *ctx, const char *name, const char *node, trp_ref *ret_ref)
{
    const trpi_router *router = trpi_router_self(ctx);
    trp_spawn_options child = router->child;
    trp_err err;

    child.name = name;
    child.node = node;
    err = trp_spawn(ctx, router->routee, &child, ret_ref);
    if (err == TRP_OK && trp_watch(ctx, *ret_ref) != TRP_OK) {
        trp_stop(ctx, *ret_ref);
        err = TRP_ENOMEM;
    }
    return err;
}

trp_err
trpi_routee_put(trp_ctx *ctx, trp_ref ref, bool child, const char *path, const char *node)
{
    trpi_router *router = trpi_router_self(ctx);
    trp_err err = trpi_router_has(router, ref) ? TRP_OK : trp_watch(ctx, ref);

    return err == TRP_OK && !trpi_router_has(router, ref)
               ? trpi_router_add(router, ref, child, path, node)
               : err;
}

void
trpi_routee_take(trp_ctx *ctx, trp_ref ref)
{
    (void)trpi_router_withdraw(trpi_router_self(ctx), ref); /* it may be in no table */
}

trp_err
trpi_routees_publish(trp_ctx *ctx)
{
    return trpi_router_swap(trpi_router_self(ctx));
}

void
trpi_routee_dismiss(trp_ctx *ctx, trp_ref ref, bool child)
{
    trpi_router *router = trpi_router_self(ctx);

    trpi_assert(!trpi_router_has(router, ref)); /* routing-pool-O2 */
    trp_unwatch(ctx, ref);
    if (child) {
        trpi_router_abandon(ctx, router, ref, TRP_ROUTER_STOP_DELAY_MS);
    }
}
