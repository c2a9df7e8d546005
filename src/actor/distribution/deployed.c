/* deployed.c - /remote: actors that other nodes deployed here, and the behaviours that they may
 * name.
 *
 * Why.     An actor whose supervisor is on another node still needs a local parent that frees its
 *          slot, and an end when its supervisor's node is lost.
 * Shape.   /remote -- "sys@host:port/user/parent/child" -- ...
 *          A name below /remote is a whole logical path, as in Akka's daemon: one level, whatever
 *          the path's depth, so there are no intermediate actors. The actor sends its failures to
 *          its child proxy itself, from its own thread (life.c); /remote does not decide.
 * Must hold.
 *   remote-child-E1  Each actor has one record, found by its proxy's ref and by its own, as long
 *       as it lives.
 *   remote-child-E2  The proxy is watched: when the proxy's node is lost, the actor is stopped.
 *   remote-child-E3  Each order is answered, by DEPLOYED or REFUSED.
 *   remote-child-E4  A name that is taken belongs to an earlier incarnation, whose proxy has
 *       ended: that actor is stopped, and the order waits for its end.
 * Limits.  TRP_BEHAVIOURS_MAX, TRP_DEPLOY_PATH_BYTES_MAX, actors-max.
 * Tests.   tests/unit/remote/deployment_test.c
 * Sources. SYS-15, REMOTE-17, -18, -23, -24; RemoteDaemon of Akka 2.2.
 */
#include "actor/distribution/distribution.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "actor/kernel/bounded_mailbox.h"
#include "base/alloc.h"
#include "base/assert.h"
#include "base/mutex.h"

static const trp_ref nobody = TRP_REF_NONE;

/* ---- behaviours by name ---------------------------------------------------------------------- */

struct trpi_behaviours {
    pthread_mutex_t lock; /* a leaf */
    uint32_t count;
    const trp_behaviour *rows[TRP_BEHAVIOURS_MAX];
};

trp_err
trpi_behaviours_new(struct trpi_behaviours **ret_behaviours)
{
    struct trpi_behaviours *behaviours = trpi_alloc(sizeof *behaviours);

    if (behaviours == NULL) {
        return TRP_ENOMEM;
    }
    pthread_mutex_init(&behaviours->lock, NULL);
    *ret_behaviours = behaviours;
    return TRP_OK;
}

void
trpi_behaviours_free(struct trpi_behaviours *behaviours)
{
    if (behaviours != NULL) {
        trpi_mutex_destroy(&behaviours->lock);
        trpi_free(behaviours);
    }
}

/* Under the lock. NULL: none. */
static const trp_behaviour *
find_locked(const struct trpi_behaviours *behaviours, const char *name)
{
    for (uint32_t i = 0; i < behaviours->count; i++) {
        if (strcmp(behaviours->rows[i]->name, name) == 0) {
            return behaviours->rows[i];
        }
    }
    return NULL;
}

trp_err
trp_behaviour_register(trp_system *system, const trp_behaviour *behaviour)
{
    struct trpi_behaviours *behaviours;
    const trp_behaviour *found;
    trp_err err = TRP_OK;

    if (!trpi_system_is_valid(system) || !trpi_behaviour_is_valid(behaviour) ||
        behaviour->name[0] == 0 ||
        strnlen(behaviour->name, TRP_NAME_BYTES_MAX + 1) > TRP_NAME_BYTES_MAX) {
        return TRP_EINVAL;
    }
    behaviours = system->behaviours;
    if (system->options.fault_trap == TRP_FAULT_TRAP_ON) {
        trpi_fault_trust((const void *)(uintptr_t)behaviour->receive); /* code of the program */
    }
    pthread_mutex_lock(&behaviours->lock);
    found = find_locked(behaviours, behaviour->name);
    if (found != NULL) {
        err = found == behaviour ? TRP_OK : TRP_EEXIST;
    } else if (behaviours->count == TRP_BEHAVIOURS_MAX) {
        err = TRP_ELIMIT;
    } else {
        behaviours->rows[behaviours->count++] = behaviour;
    }
    pthread_mutex_unlock(&behaviours->lock);
    return err;
}

static const trp_behaviour *
behaviour_find(trp_system *system, const char *name)
{
    struct trpi_behaviours *behaviours = system->behaviours;
    const trp_behaviour *found;

    pthread_mutex_lock(&behaviours->lock);
    found = find_locked(behaviours, name);
    pthread_mutex_unlock(&behaviours->lock);
    return found;
}

/* ---- deployment orders ----------------------------------------------------------------------- */

typedef struct order { /* a copy of a trpi_deploy that outlives the received frame */
    struct order *next;
    trp_ref proxy, supervisor;
    uint32_t version, stash_msgs_max;
    char *behaviour, *path, *dispatcher, *mailbox; /* the last two: NULL, not set */
    trp_msg *args;
} order;

size_t
trpi_deployed_name(const trpi_address *address, const char *path, char *buffer, size_t bytes)
{
    char text[TRPI_ADDRESS_TEXT_BYTES];
    const char *behind = strstr(trpi_address_format(address, text, sizeof text), "://");
    int written = snprintf(buffer, bytes, "%s%s", behind == NULL ? text : behind + 3, path);

    return written < 0 ? 0 : (size_t)written;
}

void
trpi_deployed_drop(void *arg)
{
    order *o = arg;

    trpi_msg_drop(o->args);
    trpi_free(o->behaviour);
    trpi_free(o->path);
    trpi_free(o->dispatcher);
    trpi_free(o->mailbox);
    trpi_free(o);
}

static bool
keep_text(const char *text, char **ret_copy)
{
    *ret_copy = text == NULL ? NULL : trpi_strdup(text);
    return text == NULL || *ret_copy != NULL;
}

/* NULL: out of memory. */
static order *
order_new(trp_ctx *ctx, trp_ref proxy, const trpi_deploy *deploy)
{
    order *o = trpi_alloc(sizeof *o);

    if (o == NULL) {
        return NULL;
    }
    o->proxy = proxy;
    o->supervisor = deploy->supervisor;
    o->version = deploy->version;
    o->stash_msgs_max = deploy->stash_msgs_max;
    if (deploy->args_type != NULL) {
        o->args = trpi_msg_make(ctx->cache, nobody, nobody, deploy->args_type, deploy->args,
                                deploy->args_bytes);
    }
    if (!keep_text(deploy->behaviour, &o->behaviour) || !keep_text(deploy->path, &o->path) ||
        !keep_text(deploy->dispatcher, &o->dispatcher) ||
        !keep_text(deploy->mailbox, &o->mailbox) ||
        (deploy->args_type != NULL && o->args == NULL)) {
        trpi_deployed_drop(o);
        return NULL;
    }
    return o;
}

/* remote-child-E3 */
static void
order_refuse(trp_ctx *ctx, trp_ref proxy, const char *format, ...)
{
    trp_failure what = { .err = TRP_EINIT };
    trpi_order told = { NULL, &what };
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(what.reason, sizeof what.reason, format, arguments);
    va_end(arguments);
    (void)trpi_remote_order(ctx->system, proxy.node, TRPI_SIGNAL_REFUSED, proxy, nobody,
                            &told); /* an error: its node is lost */
}

void
trpi_deployed_order(trp_ctx *ctx, trp_ref proxy, const trpi_deploy *deploy)
{
    order *o = order_new(ctx, proxy, deploy);

    if (o == NULL) {
        order_refuse(ctx, proxy, "%s", trp_strerror(TRP_ENOMEM));
    } else {
        trpi_sys_to(ctx, ctx->system->life->remote, TRPI_SYS_DEPLOY, 0, proxy, 0, o);
    }
}

/* ---- the guardian ---------------------------------------------------------------------------- */

typedef struct record {
    trp_ref proxy, actor;
} record;

typedef struct remote_state {
    trpi_ref_map by_proxy, by_actor; /* record; the first owns it (remote-child-E1) */
    order *held, **held_end;         /* remote-child-E4; held_end NULL: nothing was ever held */
} remote_state;

bool
trpi_is_deployed(trp_ctx *ctx, trp_ref ref)
{
    const trpi_cell *cell = trpi_cell_peek(ctx, ref);

    return cell != NULL && trpi_cell_parent(cell) == ctx->system->life->remote.slot;
}

/* Make an actor of that name; it is not published yet. */
static trp_err
remote_child_make(trp_ctx *ctx, trpi_cell *guardian, const trp_behaviour *behaviour, const order *o,
                  const char *name, trpi_cell **ret_cell)
{
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    trpi_cell *cell;
    trp_err err;

    options.name = name;
    options.node = TRP_NODE_HERE;
    options.dispatcher = o->dispatcher;
    options.mailbox = o->mailbox;
    options.stash_msgs_max = o->stash_msgs_max;
    if (o->args != NULL) {
        options.args_type = trp_msg_type(o->args);
        options.args = trp_msg_payload(o->args);
        options.args_bytes = trp_msg_bytes(o->args);
    }
    err = trpi_spawn_check(behaviour, &options);
    if (err == TRP_OK) {
        err = trpi_slot_acquire(ctx, &cell);
    }
    if (err == TRP_OK) {
        err = trpi_spawn_conceive(ctx, guardian, cell, behaviour, &options);
    }
    if (err != TRP_OK) {
        return err;
    }
    if (trpi_extra_get(cell) != NULL) {
        cell->extra->deployed = trpi_alloc(sizeof *cell->extra->deployed);
    }
    if (cell->extra == NULL || cell->extra->deployed == NULL) {
        trpi_child_abandon(ctx, guardian, cell);
        return TRP_ENOMEM;
    }
    *cell->extra->deployed = (trpi_deployed){ o->proxy, o->supervisor };
    *ret_cell = cell;
    return TRP_OK;
}

/* remote-child-E1, remote-child-E2 */
static trp_err
record_enter(trp_ctx *ctx, remote_state *state, trp_ref proxy, trp_ref actor)
{
    record *r;
    trp_err err;

    if (trpi_ref_map_find(&state->by_proxy, proxy) != NULL) {
        return TRP_EINVAL; /* remote-child-E1: a correct proxy orders once */
    }
    r = trpi_alloc(sizeof *r);
    err = r == NULL ? TRP_ENOMEM : trpi_ref_map_put(&state->by_proxy, proxy, r);
    if (err != TRP_OK) {
        trpi_free(r);
        return err;
    }
    *r = (record){ proxy, actor };
    err = trpi_ref_map_put(&state->by_actor, actor, r);
    if (err == TRP_OK) {
        err = trp_watch(ctx, proxy);
        if (err != TRP_OK) {
            (void)trpi_ref_map_remove(&state->by_actor, actor, NULL);
        }
    }
    if (err != TRP_OK) {
        (void)trpi_ref_map_remove(&state->by_proxy, proxy, NULL);
        trpi_free(r);
    }
    return err;
}

/* Hold the order until the name is free (remote-child-E4). Takes o, unless the name is free: then
 * TRP_EEXIST had another cause. */
static bool
order_hold(trp_ctx *ctx, trpi_cell *guardian, remote_state *state, order *o, const char *name)
{
    trpi_cell *former = NULL;

    for (trpi_cell *c = trpi_child_first(ctx, guardian); c != NULL && former == NULL;
         c = trpi_child_after(ctx, c)) {
        char other[TRP_NAME_BYTES_MAX + 1];

        trpi_cell_name(ctx->system, c, other, sizeof other);
        former = strcmp(other, name) == 0 ? c : NULL;
    }
    if (former == NULL) {
        return false;
    }
    trpi_child_stop(ctx, guardian, former);
    if (state->held == NULL) {
        state->held_end = &state->held;
    }
    o->next = NULL;
    *state->held_end = o;
    state->held_end = &o->next;
    return true;
}

/* Remember the path of the supervisor: that of its child without the last name. */
static void
supervisor_remember(trp_ctx *ctx, const order *o)
{
    char path[TRP_DEPLOY_PATH_BYTES_MAX + 1];
    const char *last = strrchr(o->path, '/');

    (void)snprintf(path, sizeof path, "%.*s", last == NULL ? 0 : (int)(last - o->path), o->path);
    trpi_path_remember(ctx->system, o->supervisor, path);
}

void
trpi_deployed_make(trp_ctx *ctx, trpi_cell *guardian, trp_ref proxy, void *arg)
{
    remote_state *state = guardian->state;
    order *o = arg;
    const trp_behaviour *behaviour = behaviour_find(ctx->system, o->behaviour);
    const trpi_node_id *id = trpi_node_id_get(ctx->system, proxy.node);
    char name[TRP_DEPLOY_PATH_BYTES_MAX + 1];
    trpi_cell *cell;
    trp_err err = TRP_OK;

    if (id == NULL || trpi_deployed_name(&id->address, o->path, name, sizeof name) >= sizeof name) {
        order_refuse(ctx, proxy, "its path is too long for one below /remote");
    } else if (guardian->life != TRPI_LIFE_RUNNING) { /* REMOTE-24 */
        order_refuse(ctx, proxy, "its system is stopping");
    } else if (behaviour == NULL) {
        order_refuse(ctx, proxy, "no behaviour \"%.100s\" is registered there", o->behaviour);
    } else if (behaviour->version != o->version) {
        order_refuse(ctx, proxy, "behaviour \"%.100s\" is version %u there, not %u", o->behaviour,
                     behaviour->version, o->version);
    } else {
        err = remote_child_make(ctx, guardian, behaviour, o, name, &cell);
        if (err == TRP_EEXIST && order_hold(ctx, guardian, state, o, name)) {
            return;
        }
        if (err == TRP_OK) {
            trp_ref actor = trpi_slot_ref(cell);

            err = record_enter(ctx, state, proxy, actor);
            if (err == TRP_OK) {
                supervisor_remember(ctx, o);
                trpi_slot_publish(ctx, cell, trpi_mailbox_cell_kind(cell));
                (void)trpi_remote_signal(ctx->system, TRPI_SIGNAL_DEPLOYED, proxy, actor, 0);
            } else {
                trpi_child_abandon(ctx, guardian, cell);
            }
        }
        if (err != TRP_OK) {
            order_refuse(ctx, proxy, "%s", trp_strerror(err));
        }
    }
    trpi_deployed_drop(o);
}

void
trpi_deployed_ended(trp_ctx *ctx, trpi_cell *guardian, trp_ref child)
{
    remote_state *state = guardian->state;
    order *held = state->held, *next;
    void *found;

    if (trpi_ref_map_remove(&state->by_actor, child, &found)) {
        record *r = found;

        trp_unwatch(ctx, r->proxy);
        (void)trpi_ref_map_remove(&state->by_proxy, r->proxy, NULL);
        trpi_free(r);
    }
    state->held = NULL;
    for (; held != NULL; held = next) { /* an order whose name is still taken is held again */
        next = held->next;
        trpi_deployed_make(ctx, guardian, held->proxy, held);
    }
}

static trp_err
remote_guardian_receive(trp_ctx *ctx, void *arg, const trp_msg *msg)
{
    remote_state *state = arg;
    const trp_terminated *what = trp_msg_payload(msg);
    const trpi_ref_pair *pair;

    if (!trp_msg_is(msg, &trp_terminated_type)) {
        trp_unhandled_msg(ctx, msg);
        return TRP_OK;
    }
    pair = trpi_ref_map_find(&state->by_proxy, what->ref);
    if (pair != NULL) { /* remote-child-E2 */
        trp_stop(ctx, ((const record *)pair->value)->actor);
    }
    return TRP_OK;
}

static void
remote_guardian_post_stop(trp_ctx *ctx, void *arg)
{
    remote_state *state = arg;
    const trpi_ref_pair *pair;
    uint32_t position = 0;
    order *next;

    for (order *o = state->held; o != NULL; o = next) {
        next = o->next;
        order_refuse(ctx, o->proxy, "its system is stopping");
        trpi_deployed_drop(o);
    }
    while ((pair = trpi_ref_map_next(&state->by_proxy, &position)) != NULL) {
        trpi_free(pair->value);
    }
    trpi_ref_map_fini(&state->by_proxy);
    trpi_ref_map_fini(&state->by_actor);
}

/* Without a strategy: the actors here have their supervisors on other nodes. */
const trp_behaviour trpi_remote_guardian = {
    .size = sizeof(trp_behaviour),
    .name = "remote guardian",
    .version = 1,
    .state_bytes = sizeof(remote_state),
    .receive = remote_guardian_receive,
    .post_stop = remote_guardian_post_stop,
};
