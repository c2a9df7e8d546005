/* child_proxy.c - the child proxy: the cell that stands in the tree for a child on another node.
 *
 * Why.     A parent treats such a child as any other: it finds it by name, sends to it, watches
 *          it, decides about its failures, stops it and waits for its end. With a local cell in
 *          the child's place none of that code needs to know about networks.
 * Shape.        parent <--failures-- proxy  ====signals====>  /remote of the other node
 *               others --messages-->   |     ----messages--->  the actor (deployed.c)
 *          An Identify to /remote finds the incarnation at an address; from then on the node has a
 *          number, orders and failures are system messages (exactly once, in order), and the proxy
 *          is notified of the loss of the node as any watcher of one of its actors.
 * Must hold.
 *   remote-child-proxy-Y1  A proxy ends when its actor has ended, or when there can be no actor.
 *       (trpi_child_proxy_step)
 *   remote-child-proxy-Y2  Messages that arrive before the actor exists are held, and passed on in
 *       order.
 *   remote-child-proxy-Y3  A signal in the name of another actor, or from another node, changes
 *       nothing.
 * Limits.  TRP_DEPLOY_PATH_BYTES_MAX, TRP_DEPLOY_ARGS_BYTES_MAX; held messages are unbounded, as
 *          its mailbox is.
 * Not here. The decisions (child_proxy_step.c), the other end (deployed.c), bytes
 *          (remote/wire/deployment.c).
 * Tests.   tests/unit/actor/child_proxy_test.c, tests/unit/remote/deployment_test.c
 * Sources. SYS-15, REMOTE-16 to -24; Akka 2.2.5, "The Interplay with Remote Deployment".
 */
#include "actor/distribution/child_proxy.h"

#include <stdio.h>
#include <string.h>

#include "actor/distribution/distribution.h"
#include "base/alloc.h"
#include "base/payload.h"
#include "base/assert.h"

static const trp_ref nobody = TRP_REF_NONE;

typedef struct trpi_child_proxy {
    trpi_child_proxy_core core;
    const trp_behaviour *behaviour; /* of the actor */
    char *dispatcher, *mailbox;
    uint32_t stash_msgs_max;
    trp_msg *args;
    trpi_address address;
    uint64_t question;       /* the id that the answer to Identify must carry */
    uint64_t alarm;          /* 0: none */
    trp_ref remote_guardian; /* /remote of the node; none: not known yet */
    trp_ref actor;           /* none: not known yet */
    trpi_msg_list held;
} trpi_child_proxy;

static trpi_child_proxy *
proxy_of(const trpi_cell *cell)
{
    trpi_assert(trpi_cell_is_child_proxy(cell));
    return cell->extra->proxy;
}

/* ---- start ----------------------------------------------------------------------------------- */

void
trpi_child_proxy_free(trpi_child_proxy *d)
{
    trp_msg *msg;

    if (d == NULL) {
        return;
    }
    while ((msg = trpi_msg_list_take(&d->held)) != NULL) {
        trpi_msg_drop(msg);
    }
    trpi_msg_drop(d->args);
    trpi_free(d->dispatcher);
    trpi_free(d->mailbox);
    trpi_free(d);
}

/* Copy text; NULL stays NULL. */
static trp_err
keep_text(const char *text, char **ret_copy)
{
    *ret_copy = text == NULL ? NULL : trpi_strdup(text);
    return text != NULL && *ret_copy == NULL ? TRP_ENOMEM : TRP_OK;
}

static trp_err
proxy_new(trp_ctx *ctx, const trp_behaviour *behaviour, const trp_spawn_options *options,
          const trpi_address *address, trpi_child_proxy **ret_proxy)
{
    trpi_child_proxy *d = trpi_alloc(sizeof *d);
    trp_err err = d == NULL ? TRP_ENOMEM : keep_text(options->dispatcher, &d->dispatcher);

    if (err == TRP_OK) {
        err = keep_text(options->mailbox, &d->mailbox);
    }
    if (err == TRP_OK && options->args_type != NULL) {
        d->args = trpi_msg_make(ctx->cache, nobody, nobody, options->args_type, options->args,
                                trpi_payload_bytes(options->args_type, options->args_bytes));
        err = d->args == NULL ? TRP_ENOMEM : TRP_OK;
    }
    if (err != TRP_OK) {
        trpi_child_proxy_free(d);
        return err;
    }
    d->behaviour = behaviour;
    d->stash_msgs_max = options->stash_msgs_max;
    d->address = *address;
    *ret_proxy = d;
    return TRP_OK;
}

static void
deploy_fill(const trpi_child_proxy *d, const char *path, trp_ref supervisor,
            trpi_deploy *ret_deploy)
{
    *ret_deploy = (trpi_deploy){ .behaviour = d->behaviour->name,
                                 .version = d->behaviour->version,
                                 .path = path,
                                 .dispatcher = d->dispatcher,
                                 .mailbox = d->mailbox,
                                 .stash_msgs_max = d->stash_msgs_max,
                                 .supervisor = supervisor };
    if (d->args != NULL) {
        ret_deploy->args_type = trp_msg_type(d->args);
        ret_deploy->args = trp_msg_payload(d->args);
        ret_deploy->args_bytes = trp_msg_bytes(d->args);
    }
}

/* Refuse a child that the other node would certainly refuse. */
static trp_err
proxy_check(trp_ctx *ctx, const trpi_cell *cell, const trpi_child_proxy *d)
{
    char path[TRP_PATH_BYTES_MAX + 1];
    trpi_deploy deploy;
    trpi_order order = { &deploy, NULL };

    if (trpi_path_unborn_auto(ctx->system, trpi_slot_ref(cell), path, sizeof path) == 0 ||
        trpi_deployed_name(&trpi_system_self(ctx->system)->address, path, NULL, 0) >
            TRP_DEPLOY_PATH_BYTES_MAX) {
        return TRP_ELIMIT;
    }
    deploy_fill(d, path, nobody, &deploy);
    return trpi_remote_order(ctx->system, 0, TRPI_SIGNAL_DEPLOY, nobody, nobody, &order);
}

static trp_err proxy_receive(trp_ctx *ctx, void *state, const trp_msg *msg);
static const trp_behaviour proxy_behaviour = {
    .size = sizeof(trp_behaviour), .name = "remote-child", .version = 1, .receive = proxy_receive
};

trp_err
trpi_child_proxy_make(trp_ctx *ctx, trpi_cell *cell, const trp_spawn_options *options,
                      bool *ret_is_proxy)
{
    trpi_address address;
    trpi_extra *extra;
    const char *rest;
    trp_err err;

    *ret_is_proxy = false;
    if (options == NULL || options->node == NULL || options->node[0] == 0) {
        return TRP_OK;
    }
    if (options->node == trpi_node_conflict) {
        trpi_log(ctx->system, TRP_LOG_ERROR, "deployment",
                 "the configuration moves \"%s\" to another node, but its code binds it to "
                 "this node: remove the key remote of its section",
                 options->name == NULL ? "*" : options->name);
        return TRP_ECONFIG;
    }
    if (trpi_address_parse(options->node, &address, &rest, NULL) != TRP_OK || rest[0] != 0) {
        return TRP_EINVAL;
    }
    if (trpi_address_is_own(ctx->system, &address)) {
        return TRP_OK; /* REMOTE-23: a local child */
    }
    extra = trpi_extra_get(cell);
    if (extra == NULL) {
        return TRP_ENOMEM;
    }
    err = proxy_new(ctx, cell->behaviour, options, &address, &extra->proxy);
    if (err == TRP_OK) {
        cell->behaviour = &proxy_behaviour;
        *ret_is_proxy = true;
    }
    return err;
}

trp_err
trpi_child_proxy_check(trp_ctx *ctx, const trpi_cell *cell)
{
    return trpi_cell_is_child_proxy(cell) ? proxy_check(ctx, cell, proxy_of(cell)) : TRP_OK;
}

/* ---- actions --------------------------------------------------------------------------------- */

static void
alarm_set(trp_ctx *ctx, trpi_cell *cell, trpi_child_proxy *d)
{
    if (d->alarm == 0) {
        /* refused only when the system is being freed */
        (void)trpi_alarm_add(ctx->system, trpi_cell_ref(cell), TRPI_CHILD_PROXY_LOOK_MS, &d->alarm);
    }
}

static void
identify_send(trp_ctx *ctx, trpi_cell *cell, trpi_child_proxy *d)
{
    char address[TRPI_ADDRESS_TEXT_BYTES], path[TRPI_ADDRESS_TEXT_BYTES + 8];
    trp_identify question = { 0 };
    trp_msg *msg;

    if (d->question == 0) {
        d->question = trpi_world_random(ctx->system->world) | 1;
    }
    question.id = d->question;
    trpi_address_format(&d->address, address, sizeof address);
    (void)snprintf(path, sizeof path, "%s/remote", address);
    msg = trpi_msg_make(ctx->cache, nobody, ctx->self, &trp_identify_type, &question,
                        sizeof question);
    if (msg != NULL) { /* out of memory: the next tick tries again */
        (void)trpi_select(ctx, ctx->system->top.root, path, ctx->self, msg);
        trpi_msg_free(ctx->cache, msg);
    }
    alarm_set(ctx, cell, d);
}

static void proxy_step(trp_ctx *ctx, trpi_cell *cell, enum trpi_child_proxy_event event,
                       bool answers, trpi_failure *why);

/* The order cannot be sent: act as if the other node had refused it. */
static void
order_failed(trp_ctx *ctx, trpi_cell *cell, trp_err err)
{
    trp_failure what;
    trpi_failure *why;

    trpi_failure_fill(&what, ctx->self, TRP_EINIT, NULL);
    (void)snprintf(what.reason, sizeof what.reason, "it cannot be deployed to another node: %s",
                   trp_strerror(err));
    why = trpi_failure_new(&what);
    proxy_step(ctx, cell, TRPI_CHILD_PROXY_REFUSAL, false, why);
    trpi_failure_unref(why);
}

static void
send_order(trp_ctx *ctx, trpi_cell *cell, trpi_child_proxy *d)
{
    const trpi_cell *parent = trpi_cells_find(ctx->cells, cell->parent);
    char path[TRP_PATH_BYTES_MAX + 1];
    trpi_deploy deploy;
    trpi_order order = { &deploy, NULL };
    trp_err err = trp_watch(ctx, d->remote_guardian);

    trpi_path_local(ctx->system, ctx->self, path, sizeof path);
    deploy_fill(d, path, trpi_cell_ref(parent), &deploy);
    if (err == TRP_OK) {
        err = trpi_remote_order(ctx->system, d->remote_guardian.node, TRPI_SIGNAL_DEPLOY,
                                d->remote_guardian, ctx->self, &order);
    }
    if (err == TRP_EAGAIN) {
        proxy_step(ctx, cell, TRPI_CHILD_PROXY_BUSY, false, NULL);
    } else if (err != TRP_OK) {
        trp_unwatch(ctx, d->remote_guardian);
        d->remote_guardian = nobody;
        order_failed(ctx, cell, err);
    }
}

static void
pass_on(trp_ctx *ctx, const trpi_child_proxy *d, const trp_msg *msg)
{
    trpi_trailer room;
    const trpi_trailer *before = trpi_carry_along(ctx, msg, &room);

    trpi_tell(ctx, d->actor, trpi_msg_sender(msg), trp_msg_type(msg), trp_msg_payload(msg),
              trp_msg_bytes(msg));
    (void)trpi_carry(ctx, before);
}

/* Write the path of the actor on its own node. */
static void
physical_path(trp_ctx *ctx, char *path, size_t bytes)
{
    char logical[TRP_PATH_BYTES_MAX + 1], name[TRP_DEPLOY_PATH_BYTES_MAX + 1];

    trpi_path_local(ctx->system, ctx->self, logical, sizeof logical);
    (void)trpi_deployed_name(&trpi_system_self(ctx->system)->address, logical, name, sizeof name);
    (void)snprintf(path, bytes, "/remote/%s", name);
}

static void
actor_welcome(trp_ctx *ctx, trpi_child_proxy *d)
{
    char path[TRP_PATH_BYTES_MAX + 1];
    trp_msg *msg;

    physical_path(ctx, path, sizeof path);
    trpi_path_remember(ctx->system, d->actor, path);
    if (trp_watch(ctx, d->actor) == TRP_OK) { /* on an error the watch of its node must suffice */
        trp_unwatch(ctx, d->remote_guardian);
    }
    for (; d->core.suspended > 0; d->core.suspended--) {
        (void)trpi_remote_signal(ctx->system, TRPI_SIGNAL_SUSPEND, d->actor, ctx->self, 0);
    }
    while ((msg = trpi_msg_list_take(&d->held)) != NULL) { /* remote-child-proxy-Y2 */
        pass_on(ctx, d, msg);
        trpi_msg_free(ctx->cache, msg);
    }
}

static void
failure_report(trp_ctx *ctx, trpi_cell *cell, trpi_failure *why)
{
    const trpi_cell *parent = trpi_cells_find(ctx->cells, cell->parent);

    trpi_sys_to(ctx, trpi_cell_ref(parent), TRPI_SYS_FAILED, 0, ctx->self, 0,
                trpi_failure_ref(why));
}

static void
proxy_end(trp_ctx *ctx, trpi_cell *cell, trpi_child_proxy *d)
{
    trp_msg *msg;

    if (d->alarm != 0) {
        /* a late alarm meets a stale generation */
        (void)trpi_timer_cancel(ctx->system->sched, d->alarm);
        d->alarm = 0;
    }
    while ((msg = trpi_msg_list_take(&d->held)) != NULL) {
        trpi_dead(ctx, ctx->self, msg, TRP_DEAD_STOPPED);
        trpi_msg_free(ctx->cache, msg);
    }
    cell->life = TRPI_LIFE_STOPPING;
    trpi_life_check(ctx, cell); /* d was freed */
}

static void
restart_send(trp_ctx *ctx, const trpi_child_proxy *d, trpi_failure *why)
{
    trpi_order order = { NULL, &why->what };

    /* out of memory, the node is given up, and its watchers are notified */
    (void)trpi_remote_order(ctx->system, d->actor.node, TRPI_SIGNAL_RESTART, d->actor, ctx->self,
                            &order);
}

static void
proxy_step(trp_ctx *ctx, trpi_cell *cell, enum trpi_child_proxy_event event, bool answers,
           trpi_failure *why)
{
    trpi_child_proxy *d = proxy_of(cell);
    uint32_t patience_ms =
        trpi_setting_pick(trpi_system_config(ctx->system), "remote.deployment-timeout", 0);
    uint32_t bits = trpi_child_proxy_step(&d->core, event, answers, trp_now_ms(ctx), patience_ms);
    static const struct {
        uint32_t bit;
        enum trpi_remote_signal signal;
    } plain[] = { { TRPI_CHILD_PROXY_DO_STOP, TRPI_SIGNAL_STOP },
                  { TRPI_CHILD_PROXY_DO_SUSPEND, TRPI_SIGNAL_SUSPEND },
                  { TRPI_CHILD_PROXY_DO_RESUME, TRPI_SIGNAL_RESUME } };

    if ((bits & TRPI_CHILD_PROXY_DO_LOOK) != 0) {
        identify_send(ctx, cell, d);
    }
    if ((bits & TRPI_CHILD_PROXY_DO_ORDER) != 0) {
        send_order(ctx, cell, d);
    }
    if ((bits & TRPI_CHILD_PROXY_DO_WELCOME) != 0) {
        actor_welcome(ctx, d);
    }
    for (size_t i = 0; i < sizeof plain / sizeof plain[0]; i++) {
        if ((bits & plain[i].bit) != 0) {
            (void)trpi_remote_signal(ctx->system, plain[i].signal, d->actor, ctx->self, answers);
        }
    }
    if ((bits & TRPI_CHILD_PROXY_DO_RESTART) != 0) {
        restart_send(ctx, d, why);
    }
    if ((bits & TRPI_CHILD_PROXY_DO_REPORT) != 0) {
        failure_report(ctx, cell, why);
    }
    if ((bits & TRPI_CHILD_PROXY_DO_GIVE_UP) != 0) {
        trpi_log_about(ctx, ctx->self, TRP_LOG_WARNING, TRP_ECONN,
                       "its node %s has not answered for %u ms; it ends",
                       trpi_address_format(&d->address, (char[TRPI_ADDRESS_TEXT_BYTES]){ 0 },
                                           TRPI_ADDRESS_TEXT_BYTES),
                       patience_ms);
    }
    if ((bits & TRPI_CHILD_PROXY_DO_WAIT) != 0) {
        alarm_set(ctx, cell, d); /* cell->life stays: the end of the actor arrives as a message */
    }
    if ((bits & TRPI_CHILD_PROXY_DO_END) != 0) {
        proxy_end(ctx, cell, d);
    }
}

/* ---- events ---------------------------------------------------------------------------------- */

void
trpi_child_proxy_start(trp_ctx *ctx, trpi_cell *cell)
{
    proxy_of(cell)->core.suspended = cell->suspended; /* remote-child-step-D3 */
    cell->suspended = 0;
    cell->life = TRPI_LIFE_RUNNING;
    proxy_step(ctx, cell, TRPI_CHILD_PROXY_START, false, NULL);
}

/* Hold a message, or pass it on (remote-child-proxy-Y2). */
static void
message_take(trp_ctx *ctx, trpi_cell *cell, const trp_msg *msg)
{
    trpi_child_proxy *d = proxy_of(cell);
    trp_msg *copy;

    if (d->core.state == TRPI_CHILD_PROXY_LIVE) {
        pass_on(ctx, d, msg);
    } else if (trp_msg_dup(msg, &copy) == TRP_OK) {
        trpi_msg_list_append(&d->held, copy);
    } else {
        trpi_dead(ctx, ctx->self, msg, TRP_DEAD_NO_MEMORY);
    }
}

/* Is it the answer to the latest Identify? */
static bool
is_answer(const trpi_child_proxy *d, const trp_msg *msg)
{
    const trp_actor_identity *answer = trp_msg_payload(msg);

    return trp_msg_is(msg, &trp_actor_identity_type) && d->question != 0 &&
           answer->id == d->question;
}

static void
remote_guardian_found(trp_ctx *ctx, trpi_cell *cell, trp_ref guardian)
{
    trpi_child_proxy *d = proxy_of(cell);
    const trpi_node_id *id =
        guardian.node == TRPI_NODE_SELF ? NULL : trpi_node_id_get(ctx->system, guardian.node);

    /* remote-child-proxy-Y3; if not, the next tick asks again */
    if (id != NULL && trpi_address_equal(&id->address, &d->address)) {
        if (!trp_ref_is_none(d->remote_guardian) && !trp_ref_equal(d->remote_guardian, guardian)) {
            /* of an earlier answer that was followed by BUSY */
            trp_unwatch(ctx, d->remote_guardian);
        }
        d->remote_guardian = guardian;
        proxy_step(ctx, cell, TRPI_CHILD_PROXY_FOUND, false, NULL);
    }
}

static trp_err
proxy_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    const trpi_child_proxy *d = proxy_of(ctx->cell);

    (void)state;
    if (!is_answer(d, msg)) {
        message_take(ctx, ctx->cell, msg);
        /* else: the answer to an earlier Identify */
    } else if (d->core.state == TRPI_CHILD_PROXY_LOOKING) {
        const trp_actor_identity *answer = trp_msg_payload(msg);

        remote_guardian_found(ctx, ctx->cell, answer->ref);
    }
    return TRP_OK;
}

bool
trpi_child_proxy_automatic(trp_ctx *ctx, trpi_cell *cell, const trp_msg *msg)
{
    switch (msg->priv_type) {
    case TRPI_TYPE_TERMINATED:
        if (trpi_watch_admit(cell, msg)) {
            proxy_step(ctx, cell, TRPI_CHILD_PROXY_LOST, false, NULL);
        }
        return true;
    case TRPI_TYPE_POISON_PILL:
    case TRPI_TYPE_KILL:
    case TRPI_TYPE_IDENTIFY:
        message_take(ctx, cell, msg);
        return true;
    default:
        return false;
    }
}

static void
alarm_rings(trp_ctx *ctx, trpi_cell *cell, trpi_child_proxy *d)
{
    /* Without remoting no news of the actor's end can arrive. A system that stops does not wait for
     * the failure detector's verdict about a node without a connection: the actor there is stopped
     * when its node notices the loss of this one. */
    bool alone = d->core.stopping &&
                 (atomic_load_explicit(&ctx->system->remote_ops, memory_order_acquire) == NULL ||
                  (atomic_load_explicit(&ctx->system->life->shutdown, memory_order_relaxed) &&
                   d->remote_guardian.node != 0 &&
                   !trpi_remote_is_connected(ctx->system, d->remote_guardian.node)));

    d->alarm = 0;
    proxy_step(ctx, cell, alone ? TRPI_CHILD_PROXY_LOST : TRPI_CHILD_PROXY_TICK, false, NULL);
}

/* Handle a signal of the other node (remote-child-proxy-Y3). */
static void
far_event(trp_ctx *ctx, trpi_cell *cell, const trpi_sysmsg *sysmsg)
{
    trpi_child_proxy *d = proxy_of(cell);
    trpi_failure *why = sysmsg->kind == TRPI_SYS_DEPLOYED ? NULL : sysmsg->pointer;

    if (sysmsg->from.node == d->remote_guardian.node && d->remote_guardian.node != 0) {
        bool creating = d->core.state == TRPI_CHILD_PROXY_CREATING;

        if (creating && sysmsg->kind == TRPI_SYS_REFUSED) {
            /* the next Identify finds the incarnation that is there then */
            trp_unwatch(ctx, d->remote_guardian);
            d->remote_guardian = nobody;
            proxy_step(ctx, cell, TRPI_CHILD_PROXY_REFUSAL, false, why);
        } else if (creating) { /* the failure of its start may arrive before DEPLOYED */
            d->actor = sysmsg->from;
            proxy_step(ctx, cell, TRPI_CHILD_PROXY_CREATED, false, NULL);
        }
        if (sysmsg->kind == TRPI_SYS_FAR_FAILED && trp_ref_equal(sysmsg->from, d->actor)) {
            proxy_step(ctx, cell, TRPI_CHILD_PROXY_FAILURE, false, why);
        }
    }
    trpi_failure_unref(why);
}

static void
select_beyond(trp_ctx *ctx, const trpi_child_proxy *d, void *selecting, uint64_t element)
{
    char path[TRP_PATH_BYTES_MAX + 1];

    physical_path(ctx, path, sizeof path);
    trpi_select_beyond(ctx, &d->address, path, selecting, element);
}

bool
trpi_child_proxy_order(trp_ctx *ctx, trpi_cell *cell, trpi_sysmsg *sysmsg)
{
    trpi_child_proxy *d = proxy_of(cell);

    switch (sysmsg->kind) {
    case TRPI_SYS_STOP:
        proxy_step(ctx, cell, TRPI_CHILD_PROXY_STOP, false, NULL);
        return true;
    case TRPI_SYS_SUSPEND:
        proxy_step(ctx, cell, TRPI_CHILD_PROXY_SUSPEND, false, NULL);
        return true;
    case TRPI_SYS_RESUME:
        proxy_step(ctx, cell, TRPI_CHILD_PROXY_RESUME, sysmsg->flag != 0, NULL);
        return true;
    case TRPI_SYS_RESTART:
        proxy_step(ctx, cell, TRPI_CHILD_PROXY_RESTART, false, sysmsg->pointer);
        trpi_failure_unref(sysmsg->pointer);
        return true;
    case TRPI_SYS_ACTIVE:
        if (d->core.state == TRPI_CHILD_PROXY_LIVE) {
            (void)trpi_remote_signal(ctx->system, TRPI_SIGNAL_ACTIVE, d->actor, ctx->self,
                                     sysmsg->flag);
        }
        return true;
    case TRPI_SYS_SELECT:
        select_beyond(ctx, d, sysmsg->pointer, sysmsg->number);
        return true;
    case TRPI_SYS_DEPLOYED:
    case TRPI_SYS_REFUSED:
    case TRPI_SYS_FAR_FAILED:
        far_event(ctx, cell, sysmsg);
        return true;
    case TRPI_SYS_ALARM:
        alarm_rings(ctx, cell, d);
        return true;
    default:
        return false; /* watches, inspections and so on: as for any cell */
    }
}
