/* routing_spawn.c - the birth of a router: plan, deployment, first routees.
 *
 * Shape.   options -> plan -> deployment section of the path -> check -> trpi_spawn_routed, which
 *          calls router_make() before the router is reachable -> first table
 * Must hold.
 *   routing-spawn-B1  A router is reachable only once it has a table: the first tell is routed like
 *       any other.
 *   routing-spawn-B2  A failed spawn leaves nothing behind.
 * Tests.   tests/unit/pattern/router_test.c, plan_test.c
 * Sources. ROUTE-3, -4, -5, -21, -23.
 */
#include <stdio.h>
#include <string.h>

#include <troupe/dispatcher.h>

#include "base/alloc.h"
#include "base/payload.h"
#include "base/assert.h"
#include "base/sized.h"
#include "pattern/routing.h"

#define ERROR_BYTES 256

struct trp_routee_provider {
    trpi_router *router;
    trpi_embryo *embryo;
};

/* ---- routees at birth ------------------------------------------------------------------------ */

trp_err
trp_routee_spawn(trp_routee_provider *provider, const trp_behaviour *behaviour,
                 const trp_spawn_options *options, trp_ref *ret_ref)
{
    return trpi_embryo_spawn(provider->embryo, behaviour, options, ret_ref);
}

static trp_err
add_child(trp_routee_provider *provider, trp_ref ref, const char *node)
{
    char path[TRP_PATH_BYTES_MAX + 1];

    trpi_embryo_path(provider->embryo, ref, path, sizeof path);
    return trpi_router_add(provider->router, ref, true, path, node);
}

trp_err
trp_routees_create(trp_routee_provider *provider, uint32_t count)
{
    trpi_router *router = provider->router;
    trp_err err = router->routee == NULL ? TRP_EINVAL : TRP_OK;

    if (router->source.ops != NULL) {
        return TRP_OK; /* it makes them */
    }
    if (count == 0) {
        count = router->plan.instances;
    }
    while (err == TRP_OK && count-- > 0) {
        trp_spawn_options child = trpi_router_child(router);
        trp_ref ref;

        err = trpi_embryo_spawn(provider->embryo, router->routee, &child, &ref);
        if (err == TRP_OK) {
            err = add_child(provider, ref, child.node);
        }
    }
    return err;
}

/* Resolve the paths that name a local actor now; the head looks up the others. */
static trp_err
find_paths(trpi_router *router)
{
    trp_err err = TRP_OK;

    trpi_router_paths_expect(router);
    for (uint32_t i = 0; err == TRP_OK && i < router->plan.paths.texts_count; i++) {
        bool remote;
        trp_ref ref;

        err = trpi_path_find(router->system, router->plan.paths.texts[i], &ref, &remote);
        if (err == TRP_OK && !trp_ref_is_none(ref)) {
            err = trpi_router_add(router, ref, false, NULL, NULL);
            trpi_router_path_found(router, i);
        }
    }
    return err;
}

trp_err
trp_routees_register(trp_routee_provider *provider, const trp_ref *refs, uint32_t count)
{
    trpi_router *router = provider->router;
    bool of_options = refs == NULL && count == 0;
    const trp_ref *list = of_options ? router->plan.routees : refs;
    uint32_t left = of_options ? router->plan.routees_count : count;
    trp_err err = TRP_OK;

    if (router->source.ops != NULL) {
        return TRP_OK;
    }
    for (uint32_t i = 0; err == TRP_OK && i < left; i++) {
        err = trpi_router_add(router, list[i], false, NULL, NULL);
    }
    return err == TRP_OK && of_options ? find_paths(router) : err;
}

const char *
trp_routee_setting(const trp_routee_provider *provider, const char *key)
{
    return trpi_router_plan_setting(&provider->router->plan, key);
}

/* ---- birth ----------------------------------------------------------------------------------- */

trp_system *
trpi_routees_system(const trp_routee_provider *provider)
{
    return provider->router->system;
}

/* Make the routees of a router whose logic does not make them. */
trp_err
trpi_routees_of_options(trp_routee_provider *provider)
{
    trpi_router *router = provider->router;
    const trpi_router_plan *plan = &router->plan;
    bool given = plan->routees_count > 0 || plan->paths.texts_count > 0;
    uint32_t count = plan->instances;
    trp_err err = TRP_OK;

    if (given) {
        err = trp_routees_register(provider, NULL, 0);
        count = 0;
    }
    if (err == TRP_OK && router->resizes) { /* within its bounds from the start */
        int32_t more = plan->resizes_own
                           ? plan->own_resizer.capacity(plan->own_resizer.arg, NULL, 0)
                           : trp_resizer_capacity(&plan->resizer, router->pool.routees_count, 0);

        count = more > 0 ? (uint32_t)more : 0;
    }
    if (err != TRP_OK || count == 0) {
        return err;
    }
    return count > TRP_ROUTEES_MAX ? TRP_ELIMIT : trp_routees_create(provider, count);
}

/* routing-spawn-B1 */
static trp_err
router_make(void *arg, trpi_embryo *embryo)
{
    trpi_router *router = arg;
    const trp_routing_logic *logic = router->logic;
    trp_routee_provider provider = { router, embryo };
    trp_err err;

    router->self = trpi_embryo_ref(embryo);
    if (logic->create != NULL) {
        err = logic->create(logic->arg, &provider, &router->logic_state);
        if (err == TRP_OK && router->pool.routees_count == 0 && router->pool.paths_left == 0 &&
            router->source.ops == NULL) {
            err = TRP_EINIT; /* ROUTE-21 */
        }
    } else {
        router->logic_state = logic->arg;
        err = trpi_routees_of_options(&provider);
    }
    return err == TRP_OK ? trpi_router_swap(router) : err;
}

/* ---- deployment ------------------------------------------------------------------------------ */

/* Configuration beats code (ROUTE-3). */
static trp_err
router_deploy(trpi_router *router, const char *path, char *error)
{
    trpi_deployment deployment;

    if (!trpi_deployment_find(router->system, path, &deployment)) {
        return TRP_OK;
    }
    trp_err err = trpi_router_plan_deploy(&router->plan, &deployment, error, ERROR_BYTES);
    if (err == TRP_OK && deployment.dispatcher != NULL) { /* of the routees (ROUTE-23) */
        char *dispatcher = trpi_strdup(deployment.dispatcher);

        trpi_free((void *)(uintptr_t)router->child.dispatcher);
        router->child.dispatcher = dispatcher;
        err = dispatcher == NULL ? TRP_ENOMEM : TRP_OK;
    }
    if (err == TRP_OK && deployment.mailbox != NULL) {
        char *mailbox = trpi_strdup(deployment.mailbox);

        trpi_free((void *)(uintptr_t)router->child.mailbox);
        router->child.mailbox = mailbox;
        err = mailbox == NULL ? TRP_ENOMEM : TRP_OK;
    }
    return err;
}

/* ---- spawning -------------------------------------------------------------------------------- */

/* Copy all that the options of routees point to: routees may be made at any time. */
static trp_err
keep_child_options(trpi_router *router, const trp_spawn_options *options)
{
    static const trp_spawn_options none = TRP_SPAWN_OPTIONS_INIT;
    trp_spawn_options own;
    void *args = NULL;

    router->child = none;
    if (options == NULL) {
        return TRP_OK;
    }
    if (!TRPI_SIZED_TAKE(options, &own, node) || options->name != NULL ||
        (options->args == NULL && options->args_bytes > 0)) {
        return TRP_EINVAL;
    }
    router->child = *options;
    router->child.dispatcher = NULL;
    router->child.mailbox = NULL;
    router->child.args = NULL;
    if (options->node != NULL) { /* all routees there, unless target_nodes names others */
        bool here = options->node[0] == 0 || router->plan.nodes.texts_count > 0;

        router->child.node = here && options->node[0] == 0 ? TRP_NODE_HERE : NULL;
        if (!here && trpi_router_plan_node_add(&router->plan, options->node) != TRP_OK) {
            return TRP_ENOMEM;
        }
    }
    if (options->args_type != NULL) {
        size_t bytes = trpi_payload_bytes(options->args_type, options->args_bytes);

        if (bytes > 0 && options->args == NULL) {
            return TRP_EINVAL;
        }
        args = trpi_alloc(bytes + 1);
        if (args == NULL) {
            return TRP_ENOMEM;
        }
        if (bytes > 0) {
            memcpy(args, options->args, bytes);
        }
        router->child.args = args;
        router->child.args_bytes = bytes;
    }
    if (options->dispatcher != NULL) {
        router->child.dispatcher = trpi_strdup(options->dispatcher);
    }
    if (options->mailbox != NULL) {
        router->child.mailbox = trpi_strdup(options->mailbox);
    }
    return (options->dispatcher != NULL && router->child.dispatcher == NULL) ||
                   (options->mailbox != NULL && router->child.mailbox == NULL)
               ? TRP_ENOMEM
               : TRP_OK;
}

/* Fill in a router from its checked plan. */
static void
router_settle(trpi_router *router)
{
    const trpi_router_plan *plan = &router->plan;
    const trp_behaviour head = TRP_BEHAVIOUR_INIT("router", char[1], trpi_router_head_receive);

    router->logic = plan->custom;
    if (router->logic == NULL) {
        router->logic =
            trpi_logic_find(plan->logic != NULL ? plan->logic : "round-robin", &router->needs);
        trpi_assert(router->logic != NULL);
    }
    router->resizes = plan->resizes;
    if (router->resizes) {
        router->needs |= TRPI_LOGIC_SENT;
        atomic_init(&router->number, 1); /* 0 is the look at its birth */
    }
    router->seed = trpi_world_random(trpi_system_world(router->system));
    router->head = head;
    router->head.state_bytes = 0;
    router->head.pre_start = trpi_router_head_start;
    router->head.pre_restart = trpi_router_head_restart;
    router->head.post_stop = trpi_router_head_stop;
    router->head.strategy = plan->strategy != NULL ? plan->strategy
                            : plan->clustered      ? &trpi_router_escalate_later
                                                   : &trpi_router_escalate;
}

/* The head must not share its mailbox: only it can handle its messages (ROUTE-23). */
static trp_err
dispatcher_check(const trpi_router *router, char *error)
{
    const char *id = router->plan.dispatcher;
    trp_dispatcher_info info = { .size = sizeof info };

    if (id != NULL && trp_dispatcher_find(router->system, id, &info) == TRP_OK &&
        info.kind == TRP_DISPATCHER_BALANCING) {
        (void)snprintf(error, ERROR_BYTES, "its dispatcher \"%s\" is a balancing one", id);
        return TRP_EINVAL;
    }
    return TRP_OK; /* the spawn reports one that does not exist */
}

/* Let the routees share one mailbox: they must be children, on a dispatcher of their own if none is
 * named. */
static trp_err
share_mailbox(trpi_router *router, char *error)
{
    char id[TRP_DISPATCHER_ID_BYTES_MAX + 1], *copy;
    trp_dispatcher_info info = { .size = sizeof info };
    trp_err err;

    if (router->routee == NULL || router->plan.routees_count > 0 ||
        router->plan.paths.texts_count > 0) {
        (void)snprintf(error, ERROR_BYTES, "balancing is for routees that the router makes");
        return TRP_EINVAL;
    }
    if (router->plan.nodes.texts_count > 0) {
        (void)snprintf(error, ERROR_BYTES, "balancing routees share a mailbox, so they live here");
        return TRP_EINVAL;
    }
    if (router->child.dispatcher != NULL) {
        if (trp_dispatcher_find(router->system, router->child.dispatcher, &info) == TRP_OK &&
            info.kind != TRP_DISPATCHER_BALANCING) {
            (void)snprintf(error, ERROR_BYTES, "the dispatcher \"%.*s\" is no balancing one",
                           TRP_DISPATCHER_ID_BYTES_MAX, router->child.dispatcher);
            return TRP_EINVAL;
        }
        return TRP_OK;
    }
    err = trpi_balancing_borrow(router->system, id, sizeof id);
    if (err != TRP_OK) {
        return err;
    }
    copy = trpi_strdup(id);
    if (copy == NULL) {
        trpi_balancing_return(router->system, id);
        return TRP_ENOMEM;
    }
    router->child.dispatcher = copy;
    router->borrowed = true;
    return TRP_OK;
}

static void
path_of(trp_ctx *ctx, trp_system *system, const char *name, char *path, size_t bytes)
{
    char above[TRP_PATH_BYTES_MAX + 1] = "/user";

    if (ctx != NULL) {
        trp_path(system, trp_self(ctx), above, sizeof above);
    }
    (void)snprintf(path, bytes, "%s/%s", above, name == NULL ? "" : name);
}

/* Gives *ret_router. */
static trp_err
router_new(trp_system *system, const trp_behaviour *routee, const trp_spawn_options *routee_options,
           const char *path, const trp_router_options *options, char *error,
           trpi_router **ret_router)
{
    trpi_router *router = trpi_alloc_aligned(64, sizeof *router);
    trp_err err;

    if (router == NULL) {
        return TRP_ENOMEM;
    }
    router->system = system;
    router->routee = routee;
    err = trpi_router_plan_init(&router->plan, options);
    if (err == TRP_OK) {
        err = keep_child_options(router, routee_options);
    }
    if (err == TRP_OK) {
        err = router_deploy(router, path, error);
    }
    if (err == TRP_OK) {
        err = trpi_router_plan_check(&router->plan, error, ERROR_BYTES);
    }
    if (err == TRP_OK) {
        err = trpi_cluster_plan_check(&router->plan, routee != NULL, router->child.node != NULL,
                                      error, ERROR_BYTES);
    }
    if (err == TRP_OK) {
        err = dispatcher_check(router, error);
    }
    if (err == TRP_OK) {
        err = trpi_router_source_make(router, error, ERROR_BYTES);
    }
    if (err != TRP_OK) {
        trpi_router_free(router);
        return err;
    }
    router_settle(router);
    if ((router->needs & TRPI_LOGIC_BALANCING) != 0) {
        err = share_mailbox(router, error);
    }
    if (err != TRP_OK) {
        trpi_router_free(router);
        return err;
    }
    *ret_router = router;
    return TRP_OK;
}

static trp_err
router_spawn(trp_ctx *ctx, trp_system *system, const trp_behaviour *routee,
             const trp_spawn_options *routee_options, const char *name,
             const trp_router_options *options, trp_ref *ret_ref)
{
    trp_spawn_options spawn = TRP_SPAWN_OPTIONS_INIT;
    char path[TRP_PATH_BYTES_MAX + 1], error[ERROR_BYTES] = "";
    trpi_router *router = NULL;
    trp_err err;

    if (ret_ref == NULL || (name != NULL && strlen(name) > TRP_NAME_BYTES_MAX)) {
        return TRP_EINVAL;
    }
    path_of(ctx, system, name, path, sizeof path);
    err = router_new(system, routee, routee_options, path, options, error, &router);
    if (err == TRP_OK) {
        spawn.name = name;
        spawn.dispatcher = router->plan.dispatcher;
        err = trpi_spawn_routed(ctx, system, &router->head, &spawn, &trpi_router_ops, router,
                                router_make, ret_ref);
        if (err != TRP_OK) { /* routing-spawn-B2 */
            trpi_router_free(router);
        }
    }
    if (error[0] != 0) {
        trp_system_log(system, TRP_LOG_ERROR, path, "no router: %s", error);
    }
    return err;
}

trp_err
trp_router_spawn(trp_ctx *ctx, const trp_behaviour *routee, const trp_spawn_options *routee_options,
                 const char *name, const trp_router_options *options, trp_ref *ret_ref)
{
    if (ctx == NULL) {
        return TRP_EINVAL;
    }
    return router_spawn(ctx, trp_ctx_system(ctx), routee, routee_options, name, options, ret_ref);
}

trp_err
trp_system_router_spawn(trp_system *system, const trp_behaviour *routee,
                        const trp_spawn_options *routee_options, const char *name,
                        const trp_router_options *options, trp_ref *ret_ref)
{
    if (system == NULL) {
        return TRP_EINVAL;
    }
    return router_spawn(NULL, system, routee, routee_options, name, options, ret_ref);
}
