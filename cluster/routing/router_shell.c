/* router_shell.c - the source of a cluster-aware router's routees.
 *
 * Why.     router_core.c decides; here the router's own actor carries it out.
 * Shape.   cluster's thread --listener--> poke (one at a time) --> the router's actor: view -> step
 *          -> put, take, make, find -> one new table -> dismiss
 *          answers to find, ends of routees, the time of a retry: one more poke
 *          The message of a poke is made by the update before it, so a poke cannot fail.
 * Must hold.
 *   router-shell-S1  A poke that comes while the view is read leads to one more update: no change
 *       is missed.
 *   router-shell-S2  A leaving routee is out of the table before it is told to end, and gets that
 *       message after all that were sent before. Without memory for the table this waits, and with
 *       it the next step.
 *   router-shell-S3  A child that is not used is ended.
 * Not here. The check of settings that contradict each other (src/pattern/routing_cluster.c).
 * Tests.   tests/unit/cluster/cluster_router_test.c, tests/multinode/routers.sh
 * Sources. CROUTE-01 to -20; decision 124.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/array.h"
#include "cluster/routing/router.h"
#include "cluster/routing/router_shell.h"
#include "cluster/shell/listen.h"
#include "cluster/shell/snapshot.h"
#include "pattern/pattern.h"

#define FIND_MS 5000u  /* for the answer of a node */
#define AGAIN_MS 1000u /* without memory */

typedef struct router_source {
    trp_system *system;
    char *path, *role; /* NULL: none */
    trpi_router_core *core;
    uint64_t listener; /* 0: none */
    trp_ref router;    /* written before there is a listener */
    /* The next poke. Taken by any thread, put back by the actor; NULL: one is on its way, or there
     * was no memory for it and a timer runs instead. */
    _Atomic(trp_msg *) poke;
    uint64_t names;      /* of children */
    trp_member *members; /* room for the view */
    uint32_t members_room;
    const trpi_router_action *actions; /* of the last step, those that are not settled yet */
    uint32_t actions_count;
} router_source;

/* ---- life ------------------------------------------------------------------------------------ */

static void
source_stop(void *arg)
{
    router_source *source = arg;

    if (source->listener != 0) {
        trpi_cluster_unlisten(trpi_cluster_of(source->system), source->listener);
        source->listener = 0;
    }
}

static void
source_free(void *arg)
{
    router_source *source = arg;

    if (source == NULL) {
        return;
    }
    source_stop(source); /* its actor may have failed at its start */
    /* pairs with routees_update() */
    trp_msg_free(atomic_load_explicit(&source->poke, memory_order_acquire));
    trpi_router_core_free(source->core);
    trpi_free(source->path);
    trpi_free(source->role);
    trpi_free(source->members);
    trpi_free(source);
}

static trp_err
text_copy(const char *text, char **ret_copy)
{
    *ret_copy = text == NULL ? NULL : trpi_strdup(text);
    return text != NULL && *ret_copy == NULL ? TRP_ENOMEM : TRP_OK;
}

/* ---- pokes ----------------------------------------------------------------------------------- */

static void
source_poke(router_source *source)
{
    /* acq_rel, pair: routees_update(). The change that led to this poke is visible to the update
     * that it leads to. router-shell-S1 */
    trp_msg *msg = atomic_exchange_explicit(&source->poke, NULL, memory_order_acq_rel);

    if (msg != NULL) {
        trpi_routees_poke(source->system, source->router, msg);
    }
}

/* The cluster's thread. */
static void
cluster_changed(void *arg, const trpi_cluster_event *event)
{
    (void)event;
    source_poke(arg);
}

/* ---- what is to be done ---------------------------------------------------------------------- */

static trp_err
view_read(router_source *source, size_t *ret_count)
{
    trp_err err;

    for (;;) {
        err = trp_cluster_members(source->system, source->members, source->members_room, ret_count);
        if (err != TRP_OK || *ret_count <= source->members_room) {
            return err;
        }
        err =
            trpi_array_reserve(&source->members, 0, &source->members_room, sizeof *source->members,
                               (uint32_t)*ret_count, TRPI_ARRAY_NO_LIMIT);
        if (err != TRP_OK) {
            return err;
        }
    }
}

static void
path_write(const router_source *source, const trp_member *member, char *path, size_t bytes)
{
    (void)snprintf(path, bytes, "%s%s", member->self != 0 ? "" : member->address, source->path);
}

static trp_err
find_answered(trp_ctx *ctx, void *state, void *arg, trp_err err, const trp_msg *reply)
{
    router_source *source = trpi_routees_source(ctx);
    uint32_t number = (uint32_t)(uintptr_t)arg;
    trp_actor_identity identity;

    (void)state;
    if (err == TRP_OK) {
        memcpy(&identity, trp_msg_payload(reply), sizeof identity);
        (void)trpi_router_found(source->core, number, identity.ref); /* false: its node has gone */
    } else {
        trpi_router_missing(source->core, trp_now_ms(ctx), number);
    }
    source_poke(source);
    return TRP_OK;
}

static void
routee_find(router_source *source, trp_ctx *ctx, const trpi_router_action *action)
{
    const trp_member *member = &source->members[action->member];
    char path[TRP_ADDRESS_BYTES + TRP_PATH_BYTES_MAX];
    trp_err err;

    path_write(source, member, path, sizeof path);
    err = trp_resolve(ctx, path, FIND_MS, find_answered, (void *)(uintptr_t)action->number);
    if (err != TRP_OK) {
        trp_log(ctx, TRP_LOG_WARNING, "routee %s is not looked up: %s", path, trp_strerror(err));
        trpi_router_missing(source->core, trp_now_ms(ctx), action->number);
    }
}

static void
routee_make(router_source *source, trp_ctx *ctx, const trpi_router_action *action)
{
    const trp_member *member = &source->members[action->member];
    char name[32];
    trp_ref ref;
    trp_err err;

    (void)snprintf(name, sizeof name, "c%llu", (unsigned long long)++source->names);
    err = trpi_routee_make(ctx, name, member->address, &ref);
    if (err == TRP_OK) {
        err = trpi_routee_put(ctx, ref, true, NULL, member->address);
        if (err != TRP_OK) {
            trp_stop(ctx, ref);
        }
    }
    if (err == TRP_OK) {
        trpi_router_made(source->core, action->uid, ref);
    } else {
        trp_log(ctx, TRP_LOG_WARNING, "no routee is made on %s: %s", member->address,
                trp_strerror(err));
        trpi_router_failed(source->core, trp_now_ms(ctx), action->uid);
    }
}

/* Put a routee into the table: with its path, which is its place on the hash ring of every node. */
static void
routee_put(router_source *source, trp_ctx *ctx, const trpi_router_action *action)
{
    char path[TRP_ADDRESS_BYTES + TRP_PATH_BYTES_MAX];
    bool child = source->path == NULL;
    trp_err err;

    if (!child) {
        path_write(source, &source->members[action->member], path, sizeof path);
    }
    err = trpi_routee_put(ctx, action->ref, child, child ? NULL : path,
                          source->members[action->member].address);
    if (err != TRP_OK) {
        trp_log(ctx, TRP_LOG_WARNING, "a new routee cannot be used: %s", trp_strerror(err));
        (void)trpi_router_ended(source->core, trp_now_ms(ctx), action->ref);
        trp_unwatch(ctx, action->ref);
        /* router-shell-S3; no message went to it since it was taken out of the table */
        if (child) {
            trp_stop(ctx, action->ref);
        }
    }
}

static void
carry_out(router_source *source, trp_ctx *ctx, const trpi_router_action *actions, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        switch (actions[i].kind) {
        case TRPI_ROUTER_PUT:
            routee_put(source, ctx, &actions[i]);
            break;
        case TRPI_ROUTER_TAKE:
        case TRPI_ROUTER_DISMISS:
            trpi_routee_take(ctx, actions[i].ref);
            break;
        case TRPI_ROUTER_MAKE:
            routee_make(source, ctx, &actions[i]);
            break;
        case TRPI_ROUTER_FIND:
            routee_find(source, ctx, &actions[i]);
            break;
        }
    }
}

/* Finish the last step: publish its table, then stop the routees that are no longer in it.
 * router-shell-S2 */
static trp_err
step_settle(router_source *source, trp_ctx *ctx)
{
    trp_err err = source->actions_count == 0 ? TRP_OK : trpi_routees_publish(ctx);

    while (err == TRP_OK && source->actions_count > 0) {
        const trpi_router_action *action = source->actions++;

        source->actions_count--; /* first: the call below may fail this actor */
        if (action->kind == TRPI_ROUTER_DISMISS) {
            trpi_routee_dismiss(ctx, action->ref, source->path == NULL);
        }
    }
    return err;
}

/* Make the message of the next poke. true: it is there, or on its way. */
static bool
poke_renew(router_source *source)
{
    trp_msg *msg;

    /* acquire, pair: source_poke() */
    if (atomic_load_explicit(&source->poke, memory_order_acquire) != NULL) {
        return true;
    }
    if (trpi_routees_poke_new(&msg) != TRP_OK) {
        return false;
    }
    /* acq_rel, pair: source_poke(). Only here it becomes other than NULL. router-shell-S1 */
    (void)atomic_exchange_explicit(&source->poke, msg, memory_order_acq_rel);
    return true;
}

static void
routees_update(void *arg, trp_ctx *ctx)
{
    router_source *source = arg;
    uint64_t now_ms = trp_now_ms(ctx), wake_ms = now_ms + AGAIN_MS;
    size_t members;
    bool renewed = poke_renew(source);
    trp_err err = step_settle(source, ctx); /* the step before, if it had no memory */

    if (err == TRP_OK) {
        err = view_read(source, &members);
    }
    if (err == TRP_OK) {
        trpi_router_hold(source->core, trpi_cluster_is_waking(trpi_cluster_of(source->system)));
        err = trpi_router_step(source->core, now_ms, source->members, members, &source->actions,
                               &source->actions_count);
    }
    if (err == TRP_OK) {
        carry_out(source, ctx, source->actions, source->actions_count);
        err = step_settle(source, ctx);
    }
    if (err != TRP_OK) {
        trp_log(ctx, TRP_LOG_WARNING,
                "the routees could not be updated, and stay as they are for one second: %s",
                trp_strerror(err));
    } else if (renewed) {
        wake_ms = trpi_router_wake_ms(source->core);
    }
    if (wake_ms != UINT64_MAX) {
        trpi_routees_poke_in(ctx, wake_ms > now_ms ? wake_ms - now_ms : 1);
    }
}

/* ---- ops ------------------------------------------------------------------------------------- */

static void
source_start(void *arg, trp_ctx *ctx)
{
    router_source *source = arg;
    uint32_t count;
    const trpi_router_routee *routees = trpi_router_routees(source->core, &count);

    for (uint32_t i = 0; i < count; i++) { /* also those that wait for their node */
        if (trp_watch(ctx, routees[i].ref) != TRP_OK) {
            trp_fail(ctx, 0, "no memory to watch a routee");
        }
    }
    trpi_router_forget_finds(source->core);
    if (source->listener == 0) { /* not restarted */
        source->router = trp_self(ctx);
        if (trpi_cluster_listen(trpi_cluster_of(source->system),
                                TRP_CLUSTER_MEMBER_EVENTS | TRP_CLUSTER_REACHABILITY_EVENTS |
                                    TRPI_CLUSTER_WAKING | TRPI_CLUSTER_DRAINED,
                                cluster_changed, source, &source->listener) != TRP_OK) {
            trp_fail(ctx, 0, "no memory to subscribe to the cluster's events");
        }
    }
    routees_update(source, ctx);
}

static void
source_routee_ended(void *arg, trp_ctx *ctx, trp_ref routee)
{
    router_source *source = arg;

    if (trpi_router_ended(source->core, trp_now_ms(ctx), routee)) {
        source_poke(source);
    }
}

static trp_err
source_new(trp_system *system, const trp_cluster_routees *settings, trpi_routee_source *ret_source)
{
    static const trpi_routee_source_ops ops = {
        .start = source_start,
        .poked = routees_update,
        .routee_ended = source_routee_ended,
        .stop = source_stop,
        .free = source_free,
    };
    router_source *source;
    trp_err err;

    if (trpi_cluster_of(system) == NULL) {
        return TRP_ESTATE;
    }
    source = trpi_alloc(sizeof *source);
    if (source == NULL) {
        return TRP_ENOMEM;
    }
    source->system = system;
    err = text_copy(settings->path, &source->path);
    if (err == TRP_OK) {
        err = text_copy(settings->role, &source->role);
    }
    if (err == TRP_OK) {
        const trpi_router_rules rules = { .total = settings->total,
                                          .per_node = settings->per_node,
                                          .finds = settings->path != NULL,
                                          .local = settings->local != 0,
                                          .role = source->role };

        err = trpi_router_core_new(&rules, &source->core);
    }
    if (err != TRP_OK) {
        source_free(source);
        return err;
    }
    *ret_source = (trpi_routee_source){ &ops, source };
    return TRP_OK;
}

void
trpi_cluster_routers_register(void)
{
    trpi_routee_source_register(source_new);
}
