/* reliable_proxy.c - the near end: keeps messages until the far end has passed them on.
 *
 * Shape.   first -> [5] -> [6] -> [7] -> [8]     kept, in the order of their numbers
 *                           ^ next to be sent; NULL: all were
 * States.  idle: no message is kept. active: some are; the retry timer runs. Independent of that:
 *          no target (it is looked up), no far end (it is requested when there is a message to
 *          send), blocked (the far end's node has no room; trp_mailbox_ready comes).
 * Must hold.
 *   reliable-proxy-N1  A message is kept until an acknowledgement of this instance is beyond its
 *       number.
 *   reliable-proxy-N2  Sent in order; sent again only from the first on.
 *   reliable-proxy-N4  Each time that a message of a trace is sent is an attempt in its trace.
 *   reliable-proxy-N3  Messages that are kept when the instance ends become dead letters, each
 *       once.
 * Limits.  msgs_max kept; TRP_RELIABLE_PROXY_SUBSCRIBERS_MAX.
 * Cost.    One copy of a message to keep it, one each time it is sent.
 * Tests.   tests/unit/pattern/reliable_proxy_test.c, tests/unit/remote/reliable_test.c
 * Sources. CONTRIB-31 to -36
 */
#include <troupe/reliable_proxy.h>

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <troupe/log.h>
#include <troupe/mailbox.h>
#include <troupe/system.h>

#include "actor/actor.h"
#include "base/alloc.h"
#include "base/sized.h"
#include "pattern/reliable.h"

typedef struct kept {
    struct kept *next;
    trp_trace trace; /* all 0: of none */
    uint32_t attempts;
    size_t bytes;     /* of payload */
    trpi_parcel head; /* the payload follows: both are sent together */
} kept;

typedef struct proxy_args {
    trp_ref target;
    uint32_t retry_after_ms, reconnect_after_ms, reconnects_max, msgs_max;
    char path[TRP_PATH_BYTES_MAX + 1]; /* "": target */
} proxy_args;

typedef struct proxy {
    proxy_args args; /* target: TRP_REF_NONE while unknown */
    trp_ref far_end; /* TRP_REF_NONE: not opened */
    trp_ref old_end; /* of the previous target, while the next one is looked up */
    uint64_t instance;
    uint64_t number;      /* of the last kept message */
    uint64_t answered_ms; /* when the last acknowledgement came, or the wait for one began */
    uint32_t count;
    uint32_t looks; /* lookups in a row without a result */
    bool blocked;
    kept *first, **last, *next;
    uint32_t subscribers_count;
    trp_ref subscribers[TRP_RELIABLE_PROXY_SUBSCRIBERS_MAX];
} proxy;

enum { RETRY_KEY = 1, LOOK_KEY = 2 };

/* ---- subscribers ----------------------------------------------------------------------------- */

static uint32_t
state_of(const proxy *p)
{
    return p->count == 0 ? TRP_RELIABLE_PROXY_IDLE : TRP_RELIABLE_PROXY_ACTIVE;
}

static void
subscribers_notify(trp_ctx *ctx, const proxy *p, uint32_t from)
{
    trp_reliable_proxy_transition transition = { trp_self(ctx), from, state_of(p) };

    for (uint32_t i = 0; i < p->subscribers_count; i++) {
        trp_tell(ctx, p->subscribers[i], &trp_reliable_proxy_transition_type, &transition,
                 sizeof transition);
    }
}

static void
subscriber_remove(proxy *p, trp_ref who)
{
    for (uint32_t i = 0; i < p->subscribers_count; i++) {
        if (trp_ref_equal(p->subscribers[i], who)) {
            p->subscribers[i] = p->subscribers[--p->subscribers_count];
        }
    }
}

static trp_err
subscriber_add(trp_ctx *ctx, proxy *p, trp_ref who)
{
    trp_reliable_proxy_current current = { trp_self(ctx), state_of(p) };

    subscriber_remove(p, who); /* twice is once */
    if (p->subscribers_count == TRP_RELIABLE_PROXY_SUBSCRIBERS_MAX) {
        trp_log(ctx, TRP_LOG_WARNING, "too many subscribers, one is refused max=%u",
                TRP_RELIABLE_PROXY_SUBSCRIBERS_MAX);
        return TRP_EUNHANDLED;
    }
    p->subscribers[p->subscribers_count++] = who;
    trp_tell(ctx, who, &trp_reliable_proxy_current_type, &current, sizeof current);
    return TRP_OK;
}

/* ---- sending --------------------------------------------------------------------------------- */

static trp_err
retry_in(trp_ctx *ctx, uint32_t ms)
{
    return trp_timer_once(ctx, RETRY_KEY, ms, &trpi_reliable_retry_type, NULL, 0);
}

/* Request a far end; its answer is an acknowledgement. */
static trp_err
ask_for_end(trp_ctx *ctx, const proxy *p)
{
    trp_system *system = trp_ctx_system(ctx);
    trpi_reliable_open open = { trp_self(ctx), p->args.target, p->instance,
                                p->number - p->count + 1 };
    char address[TRPI_ADDRESS_TEXT_BYTES] = "";
    char path[sizeof address + sizeof "/system/" TRPI_RELIABLE_RECEPTIONIST];

    if (p->args.target.node != TRPI_NODE_SELF) {
        const trpi_node_id *id = trpi_node_id_get(system, p->args.target.node);

        if (id != NULL) {
            (void)trpi_address_format(&id->address, address, sizeof address);
        }
    }
    (void)snprintf(path, sizeof path, "%s/system/" TRPI_RELIABLE_RECEPTIONIST, address);
    return trp_select_tell(ctx, path, &trpi_reliable_open_type, &open, sizeof open);
}

typedef struct sending {
    proxy *p;
    trp_err err;
} sending;

static trp_err
next_send(trp_ctx *ctx, void *arg)
{
    sending *s = arg;
    const kept *k = s->p->next;

    s->err =
        trp_try_tell(ctx, s->p->far_end, &trpi_parcel_type, &k->head, sizeof k->head + k->bytes);
    return TRP_OK;
}

/* Send the messages that were not sent yet, while there is room (reliable-proxy-N2). */
static void
send_on(trp_ctx *ctx, proxy *p)
{
    while (p->next != NULL && !p->blocked && !trp_ref_is_none(p->far_end)) {
        sending s = { p, TRP_OK };

        p->next->head.instance = p->instance;
        trpi_in_attempt(ctx, &p->next->trace, p->next->attempts + 1, next_send, &s);
        if (s.err == TRP_EAGAIN) {
            p->blocked = true;
        } else {
            p->next->attempts++;
            p->next = p->next->next;
        }
    }
}

static trp_err
retry_now(trp_ctx *ctx, proxy *p)
{
    uint64_t waited_ms = trp_now_ms(ctx) - p->answered_ms;

    if (p->count == 0 || trp_ref_is_none(p->args.target)) {
        return TRP_OK;
    }
    if (waited_ms < p->args.retry_after_ms) {
        return retry_in(ctx, (uint32_t)(p->args.retry_after_ms - waited_ms));
    }
    p->answered_ms = trp_now_ms(ctx);
    if (trp_ref_is_none(p->far_end)) {
        trp_err err = ask_for_end(ctx, p);

        if (err != TRP_OK) {
            return err;
        }
    } else {
        p->next = p->blocked ? p->next : p->first; /* blocked: it is still unsent */
        p->blocked = false;                        /* too long: the announcing actor may be gone */
        send_on(ctx, p);
    }
    return retry_in(ctx, p->args.retry_after_ms);
}

/* Begin to send: there is a message now, or a target. */
static trp_err
sending_begin(trp_ctx *ctx, proxy *p)
{
    trp_err err;

    if (p->count == 0 || trp_ref_is_none(p->args.target)) {
        return TRP_OK;
    }
    p->answered_ms = trp_now_ms(ctx);
    err = trp_ref_is_none(p->far_end) ? ask_for_end(ctx, p) : TRP_OK;
    return err != TRP_OK ? err : retry_in(ctx, p->args.retry_after_ms);
}

/* ---- kept messages --------------------------------------------------------------------------- */

static trp_err
message_keep(trp_ctx *ctx, proxy *p, const trp_msg *msg)
{
    size_t bytes = trp_msg_bytes(msg);
    const trp_type *type = trp_msg_type(msg);
    bool stays = (type->flags & TRP_TYPE_LOCAL) != 0 && p->args.target.node != TRPI_NODE_SELF;
    bool full = p->args.msgs_max != 0 && p->count == p->args.msgs_max;
    kept *k = stays || full ? NULL : trpi_alloc(sizeof *k + bytes);

    if (k == NULL) {
        trpi_dead_letter_msg(trp_ctx_system(ctx), trp_self(ctx), msg,
                             stays  ? TRP_DEAD_NOT_ENCODABLE
                             : full ? TRP_DEAD_MAILBOX_FULL
                                    : TRP_DEAD_NO_MEMORY);
        return TRP_OK;
    }
    k->bytes = bytes;
    trpi_trail_get(ctx, &k->trace); /* reliable-proxy-N4 */
    k->head.sender = trp_sender(ctx);
    k->head.number = ++p->number;
    k->head.type = type->number;
    if (bytes > 0) {
        memcpy(&k->head + 1, trp_msg_payload(msg), bytes);
    }
    *p->last = k;
    p->last = &k->next;
    p->next = p->next == NULL ? k : p->next;
    if (p->count++ == 0) {
        trp_err err = sending_begin(ctx, p);

        subscribers_notify(ctx, p, TRP_RELIABLE_PROXY_IDLE);
        if (err != TRP_OK) {
            return err;
        }
    }
    send_on(ctx, p);
    return TRP_OK;
}

static kept *
take_first(proxy *p)
{
    kept *k = p->first;

    p->first = k->next;
    p->last = p->first == NULL ? &p->first : p->last;
    p->next = p->next == k ? k->next : p->next;
    p->count--;
    return k;
}

static trp_err
ack_take(trp_ctx *ctx, proxy *p, const trpi_reliable_ack *ack)
{
    trp_err err = TRP_OK;
    bool some = p->count > 0;

    if (ack->instance != p->instance || ack->next > p->number + 1 ||
        trp_ref_is_none(p->args.target)) {
        return TRP_OK; /* of another instance or target, or of an unknown far end */
    }
    p->answered_ms = trp_now_ms(ctx);
    if (trp_ref_is_none(p->far_end)) {
        p->far_end = trp_sender(ctx);
        p->next = p->first;
        err = trp_watch(ctx, p->far_end);
    }
    while (p->first != NULL && p->first->head.number < ack->next) { /* reliable-proxy-N1 */
        trpi_free(take_first(p));
    }
    if (some && p->count == 0) {
        trp_timer_cancel(ctx, RETRY_KEY);
        subscribers_notify(ctx, p, TRP_RELIABLE_PROXY_ACTIVE);
    }
    send_on(ctx, p);
    return err;
}

/* ---- targets --------------------------------------------------------------------------------- */

static trp_err
target_is(trp_ctx *ctx, proxy *p, trp_ref target)
{
    uint64_t now_ns = trp_now_ns(ctx);
    trp_err err;

    p->args.target = target;
    p->instance = now_ns > p->instance ? now_ns : p->instance + 1;
    p->looks = 0;
    if (!trp_ref_is_none(p->old_end) && p->old_end.node != target.node) {
        trp_stop(ctx, p->old_end);
    }
    p->old_end = (trp_ref)TRP_REF_NONE; /* on the same node: the far end goes on, for this target */
    err = trp_watch(ctx, target);
    return err != TRP_OK ? err : sending_begin(ctx, p);
}

static trp_err
nobody_there(trp_ctx *ctx, proxy *p)
{
    p->looks++;
    if (p->args.reconnect_after_ms != 0 &&
        (p->args.reconnects_max == 0 || p->looks <= p->args.reconnects_max)) {
        return trp_timer_once(ctx, LOOK_KEY, p->args.reconnect_after_ms, &trpi_reliable_look_type,
                              NULL, 0);
    }
    trp_log(ctx, TRP_LOG_INFO, "the proxy ends, no target was found target=%s looks=%u kept=%u",
            p->args.path, p->looks, p->count);
    trp_stop(ctx, trp_self(ctx));
    return TRP_OK;
}

static trp_err
target_answered(trp_ctx *ctx, void *state, void *arg, trp_err err, const trp_msg *reply)
{
    (void)arg;
    if (err != TRP_OK) {
        return nobody_there(ctx, state);
    }
    return target_is(ctx, state, ((const trp_actor_identity *)trp_msg_payload(reply))->ref);
}

static trp_err
target_lookup(trp_ctx *ctx, proxy *p)
{
    return trp_resolve(ctx, p->args.path, TRP_RELIABLE_PROXY_RESOLVE_MS, target_answered, NULL);
}

static trp_err
actor_ended(trp_ctx *ctx, proxy *p, const trp_terminated *who)
{
    if (trp_ref_equal(who->ref, p->args.target)) {
        if (p->args.reconnect_after_ms == 0) {
            trp_stop(ctx, trp_self(ctx)); /* CONTRIB-33 */
            return TRP_OK;
        }
        if (!trp_ref_is_none(p->far_end)) {
            trp_unwatch(ctx, p->far_end);
            p->old_end = p->far_end; /* a stop could arrive when it serves the next target */
        }
        p->far_end = p->args.target = (trp_ref)TRP_REF_NONE;
        p->blocked = false;
        return target_lookup(ctx, p);
    }
    if (who->address_terminated) {
        return TRP_OK; /* the target's termination comes, too: from the same node */
    }
    trp_fail(ctx, 0, "the far end has ended before its target"); /* CONTRIB-36 */
}

/* ---- the actor ------------------------------------------------------------------------------- */

static trp_err
proxy_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    proxy *p = state;

    if (trp_msg_is(msg, &trpi_reliable_ack_type)) {
        return ack_take(ctx, p, trp_msg_payload(msg));
    }
    if (trp_msg_is(msg, &trp_mailbox_ready_type)) {
        p->blocked = false;
        send_on(ctx, p);
        return TRP_OK;
    }
    if (trp_msg_is(msg, &trpi_reliable_retry_type)) {
        return retry_now(ctx, p);
    }
    if (trp_msg_is(msg, &trpi_reliable_look_type)) {
        return target_lookup(ctx, p);
    }
    if (trp_msg_is(msg, &trp_terminated_type)) {
        return actor_ended(ctx, p, trp_msg_payload(msg));
    }
    if (trp_msg_is(msg, &trp_reliable_proxy_subscribe_type)) {
        return subscriber_add(
            ctx, p, ((const trp_reliable_proxy_subscribe *)trp_msg_payload(msg))->subscriber);
    }
    if (trp_msg_is(msg, &trp_reliable_proxy_unsubscribe_type)) {
        subscriber_remove(
            p, ((const trp_reliable_proxy_unsubscribe *)trp_msg_payload(msg))->subscriber);
        return TRP_OK;
    }
    return message_keep(ctx, p, msg);
}

static trp_err
proxy_pre_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    proxy *p = state;

    memcpy(&p->args, trp_msg_payload(args), sizeof p->args);
    p->last = &p->first;
    return p->args.path[0] != '\0' ? target_lookup(ctx, p) : target_is(ctx, p, p->args.target);
}

/* reliable-proxy-N3; before a restart, too (pre_restart's default). */
static void
proxy_post_stop(trp_ctx *ctx, void *state)
{
    proxy *p = state;

    while (p->count > 0) {
        kept *k = take_first(p);

        trpi_dead_letter_of(trp_ctx_system(ctx), k->head.sender, trp_self(ctx), TRP_DEAD_STOPPED,
                            trpi_type_get(k->head.type), &k->head + 1, k->bytes);
        trpi_free(k);
    }
}

static const trp_behaviour proxy_behaviour = { .size = sizeof(trp_behaviour),
                                               .name = "reliable-proxy",
                                               .version = 1,
                                               .state_bytes = sizeof(proxy),
                                               .receive = proxy_receive,
                                               .pre_start = proxy_pre_start,
                                               .post_stop = proxy_post_stop };

/* ---- spawning -------------------------------------------------------------------------------- */

static bool
options_fit(const trp_reliable_proxy_options *options)
{
    bool path = options->target_path != NULL;

    return trp_ref_is_none(options->target) == path &&
           (!path || (options->target_path[0] != '\0' &&
                      strlen(options->target_path) <= TRP_PATH_BYTES_MAX)) &&
           options->retry_after_ms > 0 &&
           options->retry_after_ms <= TRP_RELIABLE_PROXY_DELAY_MS_MAX &&
           options->reconnect_after_ms <= TRP_RELIABLE_PROXY_DELAY_MS_MAX &&
           (options->reconnect_after_ms == 0 || path) &&
           (options->reconnects_max == 0 || options->reconnect_after_ms != 0);
}

static trp_err
proxy_spawn(trp_ctx *ctx, trp_system *system, const trp_reliable_proxy_options *options,
            trp_ref *ret_ref)
{
    trp_spawn_options spawn = TRP_SPAWN_OPTIONS_INIT;
    trp_reliable_proxy_options own;
    proxy_args args;
    trp_err err;

    if (options == NULL || !TRPI_SIZED_TAKE(options, &own, msgs_max) || !options_fit(options)) {
        return TRP_EINVAL;
    }
    err = trpi_reliable_receive(system);
    if (err != TRP_OK) {
        return err;
    }
    memset(&args, 0, sizeof(args));
    args.target = options->target;
    args.retry_after_ms = options->retry_after_ms;
    args.reconnect_after_ms = options->reconnect_after_ms;
    args.reconnects_max = options->reconnects_max;
    args.msgs_max = options->msgs_max;
    (void)snprintf(args.path, sizeof args.path, "%s",
                   options->target_path != NULL ? options->target_path : "");
    spawn.name = options->name;
    spawn.dispatcher = options->dispatcher;
    spawn.args_type = &trp_bytes_type;
    spawn.args = &args;
    spawn.args_bytes = sizeof(args);
    return ctx != NULL ? trp_spawn(ctx, &proxy_behaviour, &spawn, ret_ref)
                       : trp_system_spawn(system, &proxy_behaviour, &spawn, ret_ref);
}

trp_err
trp_reliable_proxy_spawn(trp_ctx *ctx, const trp_reliable_proxy_options *options, trp_ref *ret_ref)
{
    return ctx == NULL ? TRP_EINVAL : proxy_spawn(ctx, trp_ctx_system(ctx), options, ret_ref);
}

trp_err
trp_system_reliable_proxy_spawn(trp_system *system, const trp_reliable_proxy_options *options,
                                trp_ref *ret_ref)
{
    return system == NULL ? TRP_EINVAL : proxy_spawn(NULL, system, options, ret_ref);
}
