/* inbox.c - a queue between actors, which tell it, and a thread, which takes from it.
 *
 * Shape.   an actor below /system whose state is the shared queue: receive --copy--> queue
 *          --take--> thread. Orders (watch) are messages to the actor.
 * Must hold.
 *   inbox-I1  The queue is freed by the last of thread and actor.
 * Limits.  msgs_max; one more is a dead letter (mailbox-full), and a warning once until there is
 *          room.
 * Threads. The lock of cond guards the queue; a leaf.
 * Tests.   tests/unit/pattern/inbox_test.c
 * Sources. SYS-36
 */
#include <troupe/inbox.h>

#include <stdbool.h>
#include <string.h>

#include <troupe/actor.h>
#include <troupe/system.h>

#include "actor/actor.h"
#include "base/alloc.h"
#include "base/sized.h"
#include "sched/sched.h"

typedef struct item {
    struct item *next;
    trp_msg *msg;
    trp_ref sender;
} item;

struct trp_inbox {
    trp_system *system;
    trp_ref ref;
    uint32_t msgs_max;
    uint32_t timeout_ms;
    trpi_cond cond; /* guards all below */
    uint32_t owners;
    bool closed;
    bool warned;
    uint32_t count;
    item *first, **last;
};

#define INBOX_ORDERS(F, S) F(S, ref, watched)
#define INBOX_MESSAGES(M, P) M(P, watch, INBOX_ORDERS)
TRP_PROTOCOL(trpi_inbox, INBOX_MESSAGES)

static void
inbox_unref(trp_inbox *inbox)
{
    bool last;

    pthread_mutex_lock(&inbox->cond.lock);
    last = --inbox->owners == 0;
    pthread_mutex_unlock(&inbox->cond.lock);
    if (!last) {
        return;
    }
    while (inbox->first != NULL) { /* inbox-I1 */
        item *it = inbox->first;

        inbox->first = it->next;
        trpi_msg_drop(it->msg);
        trpi_free(it);
    }
    trpi_cond_fini(&inbox->cond);
    trpi_free(inbox);
}

/* ---- the actor's side ------------------------------------------------------------------------ */

/* Append a copy of msg to the queue. */
static trp_err
message_put(trp_inbox *inbox, const trp_msg *msg, trp_ref sender, bool *ret_warn)
{
    item *it = trpi_alloc(sizeof *it);
    trp_err err = it == NULL ? TRP_ENOMEM : trp_msg_dup(msg, &it->msg);

    *ret_warn = false;
    if (err != TRP_OK) {
        trpi_free(it);
        return err;
    }
    it->sender = sender;
    pthread_mutex_lock(&inbox->cond.lock);
    if (inbox->closed) {
        err = TRP_ECLOSED;
    } else if (inbox->count == inbox->msgs_max) {
        err = TRP_ELIMIT;
        *ret_warn = !inbox->warned;
        inbox->warned = true;
    } else {
        *inbox->last = it;
        inbox->last = &it->next;
        inbox->count++;
        trpi_cond_broadcast(&inbox->cond);
    }
    pthread_mutex_unlock(&inbox->cond.lock);
    if (err != TRP_OK) {
        trpi_msg_drop(it->msg);
        trpi_free(it);
    }
    return err;
}

static trp_err
inbox_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    trp_inbox *inbox = *(trp_inbox **)state;
    bool warn;
    trp_err err;

    if (trp_msg_is(msg, &trpi_inbox_watch_type)) {
        const trpi_inbox_watch *order = trp_msg_payload(msg);

        return trp_watch(ctx, order->watched);
    }
    err = message_put(inbox, msg, trp_sender(ctx), &warn);
    if (err != TRP_OK) {
        trpi_dead_letter_msg(inbox->system, inbox->ref, msg,
                             err == TRP_ELIMIT ? TRP_DEAD_MAILBOX_FULL : TRP_DEAD_STOPPED);
    }
    if (warn) {
        trp_log(ctx, TRP_LOG_WARNING,
                "this inbox is full, further messages are dead letters msgs-max=%u",
                inbox->msgs_max);
    }
    return TRP_OK;
}

static trp_err
pre_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    (void)ctx;
    memcpy(state, trp_msg_payload(args), sizeof(trp_inbox *));
    return TRP_OK;
}

static void
post_stop(trp_ctx *ctx, void *state)
{
    trp_inbox *inbox = *(trp_inbox **)state;

    (void)ctx;
    if (inbox != NULL) {
        inbox_unref(inbox);
    }
}

/* A restart keeps the queue, and its count. */
static trp_err
pre_restart(trp_ctx *ctx, void *state, const trp_failure *why, const trp_msg *msg)
{
    (void)ctx;
    (void)state;
    (void)why;
    (void)msg;
    return TRP_OK;
}

static trp_err
post_restart(trp_ctx *ctx, void *state, const trp_failure *why, const trp_msg *args)
{
    (void)why;
    return pre_start(ctx, state, args);
}

static const trp_behaviour inbox_behaviour = { .size = sizeof(trp_behaviour),
                                               .name = "inbox",
                                               .version = 1,
                                               .state_bytes = sizeof(trp_inbox *),
                                               .receive = inbox_receive,
                                               .pre_start = pre_start,
                                               .post_stop = post_stop,
                                               .pre_restart = pre_restart,
                                               .post_restart = post_restart };

/* ---- the thread's side ----------------------------------------------------------------------- */

trp_err
trp_inbox_open(trp_system *system, const trp_inbox_options *options, trp_inbox **ret_inbox)
{
    trp_inbox_options given = TRP_INBOX_OPTIONS_INIT;
    trp_spawn_options spawn = TRP_SPAWN_OPTIONS_INIT;
    trp_inbox *inbox;
    trp_err err = trp_protocol_register(&trpi_inbox_protocol);

    if (err != TRP_OK || system == NULL || ret_inbox == NULL ||
        !TRPI_SIZED_COPY(options, &given, timeout_ms)) {
        return err != TRP_OK ? err : TRP_EINVAL;
    }
    inbox = trpi_alloc(sizeof *inbox);
    if (inbox == NULL) {
        return TRP_ENOMEM;
    }
    inbox->system = system;
    inbox->msgs_max = given.msgs_max != 0 ? given.msgs_max : TRP_INBOX_MSGS_DEFAULT;
    inbox->timeout_ms = given.timeout_ms != 0 ? given.timeout_ms : TRP_INBOX_TIMEOUT_DEFAULT_MS;
    trpi_cond_init(&inbox->cond);
    inbox->last = &inbox->first;
    inbox->owners = 2;
    spawn.args_type = &trp_bytes_type;
    spawn.args = &inbox;
    spawn.args_bytes = sizeof inbox;
    spawn.dispatcher = "default";
    err = trpi_system_spawn_internal(system, &inbox_behaviour, &spawn, &inbox->ref);
    if (err != TRP_OK) {
        inbox->owners = 1;
        inbox_unref(inbox);
        return err;
    }
    *ret_inbox = inbox;
    return TRP_OK;
}

void
trp_inbox_close(trp_inbox *inbox)
{
    if (inbox == NULL) {
        return;
    }
    pthread_mutex_lock(&inbox->cond.lock);
    inbox->closed = true;
    pthread_mutex_unlock(&inbox->cond.lock);
    trp_system_stop_actor(inbox->system, inbox->ref);
    inbox_unref(inbox);
}

trp_ref
trp_inbox_ref(const trp_inbox *inbox)
{
    return inbox->ref;
}

void
trp_inbox_tell(trp_inbox *inbox, trp_ref to, const trp_type *type, const void *payload,
               size_t bytes)
{
    trp_system_tell_as(inbox->system, to, inbox->ref, type, payload, bytes);
}

trp_err
trp_inbox_watch(trp_inbox *inbox, trp_ref ref)
{
    trpi_inbox_watch order = { ref };

    if (inbox == NULL || trp_ref_is_none(ref)) {
        return TRP_EINVAL;
    }
    trp_system_tell(inbox->system, inbox->ref, &trpi_inbox_watch_type, &order, sizeof order);
    return TRP_OK;
}

typedef struct wanted {
    trp_inbox *inbox;
    trp_inbox_test_fn test; /* NULL: any */
    void *arg;
    item *found;
} wanted;

/* Find and unlink the wanted message. Under the lock, perhaps more than once. */
static bool
is_there(void *arg)
{
    wanted *w = arg;

    for (item **link = &w->inbox->first; w->found == NULL && *link != NULL; link = &(*link)->next) {
        item *it = *link;

        if (w->test == NULL || w->test(w->arg, it->msg, it->sender)) {
            *link = it->next;
            if (w->inbox->last == &it->next) {
                w->inbox->last = link;
            }
            w->inbox->count--;
            w->inbox->warned = false;
            w->found = it;
            break;
        }
    }
    return w->found != NULL;
}

static trp_err
message_take(trp_inbox *inbox, uint32_t timeout_ms, trp_inbox_test_fn test, void *arg,
             trp_msg **ret_msg, trp_ref *ret_sender)
{
    wanted w = { inbox, test, arg, NULL };
    uint32_t ms = timeout_ms == TRP_INBOX_TIME ? inbox->timeout_ms : timeout_ms;
    uint64_t deadline_ns;

    if (trpi_system_in_behaviour(inbox->system)) {
        return TRP_ESTATE;
    }
    deadline_ns = trpi_world_mono_ns(trpi_system_world(inbox->system)) + (uint64_t)ms * 1000000u;
    pthread_mutex_lock(&inbox->cond.lock);
    (void)trpi_cond_wait(&inbox->cond, trpi_system_sched(inbox->system), is_there, &w, deadline_ns);
    pthread_mutex_unlock(&inbox->cond.lock);
    if (w.found == NULL) {
        return TRP_ETIMEDOUT;
    }
    if (ret_sender != NULL) {
        *ret_sender = w.found->sender;
    }
    *ret_msg = w.found->msg;
    trpi_free(w.found);
    return TRP_OK;
}

trp_err
trp_inbox_receive(trp_inbox *inbox, uint32_t timeout_ms, trp_msg **ret_msg, trp_ref *ret_sender)
{
    return inbox == NULL || ret_msg == NULL
               ? TRP_EINVAL
               : message_take(inbox, timeout_ms, NULL, NULL, ret_msg, ret_sender);
}

trp_err
trp_inbox_select(trp_inbox *inbox, uint32_t timeout_ms, trp_inbox_test_fn test, void *arg,
                 trp_msg **ret_msg, trp_ref *ret_sender)
{
    return inbox == NULL || ret_msg == NULL || test == NULL
               ? TRP_EINVAL
               : message_take(inbox, timeout_ms, test, arg, ret_msg, ret_sender);
}
