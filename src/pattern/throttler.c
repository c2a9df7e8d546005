/* throttler.c - passes messages on at a rate.
 *
 * States.  idle (no timer): no target, or no message passed for a whole interval. active (the timer
 *          runs): `left` vouchers until it rings again.
 * Must hold.
 *   throttler-V1  Between two rings of the timer at most `messages` pass, in their order.
 *   throttler-V2  The timer runs only while active (CONTRIB-39).
 *   throttler-V3  Messages that are kept when the instance ends become dead letters, each once.
 * Limits.  msgs_max kept messages; one more is a dead letter (mailbox-full).
 * Tests.   tests/unit/pattern/throttler_test.c
 * Sources. CONTRIB-37, -38, -39
 */
#include <troupe/throttler.h>

#include <stdbool.h>
#include <string.h>

#include <troupe/log.h>
#include <troupe/system.h>

#include "actor/actor.h"
#include "base/alloc.h"
#include "base/sized.h"

typedef struct kept {
    struct kept *next;
    trp_msg *msg;
    trp_ref sender;
} kept;

typedef struct throttler {
    trp_ref target; /* TRP_REF_NONE: every message is kept */
    uint32_t messages, interval_ms;
    uint32_t msgs_max; /* 0: any */
    uint32_t left;     /* vouchers until the next ring; counts while active */
    bool active;
    uint32_t count;
    kept *first, **last;
} throttler;

static const trp_field target_fields[] = { { "target", TRP_FIELD_ref,
                                             offsetof(trp_throttler_set_target, target) } };
static const trp_field rate_fields[] = {
    { "messages", TRP_FIELD_u32, offsetof(trp_throttler_set_rate, messages) },
    { "interval_ms", TRP_FIELD_u32, offsetof(trp_throttler_set_rate, interval_ms) }
};
enum { set_target_tag, set_rate_tag, ring_tag };
trp_type trp_throttler_set_target_type = { .name = "throttler.set-target",
                                           .bytes = sizeof(trp_throttler_set_target),
                                           .tag = set_target_tag,
                                           .fields = target_fields,
                                           .fields_count = 1 };
trp_type trp_throttler_set_rate_type = { .name = "throttler.set-rate",
                                         .bytes = sizeof(trp_throttler_set_rate),
                                         .tag = set_rate_tag,
                                         .fields = rate_fields,
                                         .fields_count = 2 };
static trp_type ring_type = { .name = "throttler.priv-ring",
                              .tag = ring_tag,
                              .flags = TRP_TYPE_VARIABLE | TRP_TYPE_LOCAL };
static trp_type *const types[] = { &trp_throttler_set_target_type, &trp_throttler_set_rate_type,
                                   &ring_type };
const trp_protocol trp_throttler_protocol = { "throttler", types, 3 };

#define TIMER_KEY 1u

static bool
is_rate(uint32_t messages, uint32_t interval_ms)
{
    return messages > 0 && interval_ms > 0 && interval_ms <= TRP_THROTTLER_INTERVAL_MS_MAX;
}

/* ---- kept messages --------------------------------------------------------------------------- */

static void
message_lose(trp_ctx *ctx, trp_ref sender, const trp_msg *msg, trp_dead_reason reason)
{
    trpi_dead_letter(trp_ctx_system(ctx), sender, trp_self(ctx), reason, trp_msg_type(msg),
                     trp_msg_bytes(msg));
}

static void
message_keep(trp_ctx *ctx, throttler *t, const trp_msg *msg)
{
    kept *k;

    if (t->msgs_max != 0 && t->count == t->msgs_max) {
        message_lose(ctx, trp_sender(ctx), msg, TRP_DEAD_MAILBOX_FULL);
        return;
    }
    k = trpi_alloc(sizeof *k);
    if (k == NULL || trp_msg_dup(msg, &k->msg) != TRP_OK) {
        trpi_free(k);
        message_lose(ctx, trp_sender(ctx), msg, TRP_DEAD_NO_MEMORY);
        return;
    }
    k->sender = trp_sender(ctx);
    *t->last = k;
    t->last = &k->next;
    t->count++;
}

static kept *
message_take(throttler *t)
{
    kept *k = t->first;

    t->first = k->next;
    if (t->first == NULL) {
        t->last = &t->first;
    }
    t->count--;
    return k;
}

/* Pass on as many messages as there are vouchers for (throttler-V1). */
static void
messages_give(trp_ctx *ctx, throttler *t)
{
    while (t->left > 0 && t->count > 0) {
        kept *k = message_take(t);

        t->left--;
        trpi_send_as(ctx, t->target, k->sender, k->msg);
        trpi_free(k);
    }
}

/* ---- states ---------------------------------------------------------------------------------- */

static trp_err
begin_interval(trp_ctx *ctx, throttler *t)
{
    t->active = true;
    t->left = t->messages;
    messages_give(ctx, t);
    return trp_timer_repeat(ctx, TIMER_KEY, t->interval_ms, t->interval_ms, &ring_type, NULL, 0);
}

static void
go_idle(trp_ctx *ctx, throttler *t)
{
    t->active = false; /* throttler-V2 */
    trp_timer_cancel(ctx, TIMER_KEY);
}

static void
timer_rang(trp_ctx *ctx, throttler *t)
{
    if (t->left == t->messages) {
        go_idle(ctx, t); /* no message passed since the last ring */
        return;
    }
    t->left = t->messages;
    messages_give(ctx, t);
}

static trp_err
set_target(trp_ctx *ctx, throttler *t, trp_ref target)
{
    t->target = target;
    if (trp_ref_is_none(target)) {
        if (t->active) {
            go_idle(ctx, t);
        }
        return TRP_OK;
    }
    return t->active || t->count == 0 ? TRP_OK : begin_interval(ctx, t);
}

static trp_err
set_rate(trp_ctx *ctx, throttler *t, const trp_throttler_set_rate *rate)
{
    if (!is_rate(rate->messages, rate->interval_ms)) {
        trp_log(ctx, TRP_LOG_WARNING,
                "invalid rate refused, the old one stays messages=%u interval_ms=%u",
                rate->messages, rate->interval_ms);
        return TRP_EUNHANDLED;
    }
    t->messages = rate->messages;
    t->interval_ms = rate->interval_ms;
    return t->active ? begin_interval(ctx, t) : TRP_OK;
}

static trp_err
throttler_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    throttler *t = state;

    if (trp_msg_is(msg, &ring_type)) {
        timer_rang(ctx, t);
        return TRP_OK;
    }
    if (trp_msg_is(msg, &trp_throttler_set_target_type)) {
        return set_target(ctx, t, ((const trp_throttler_set_target *)trp_msg_payload(msg))->target);
    }
    if (trp_msg_is(msg, &trp_throttler_set_rate_type)) {
        return set_rate(ctx, t, trp_msg_payload(msg));
    }
    if (t->active && t->left > 0) { /* no message is kept then */
        t->left--;
        trp_forward(ctx, t->target, msg);
        return TRP_OK;
    }
    message_keep(ctx, t, msg);
    return t->active || trp_ref_is_none(t->target) ? TRP_OK : begin_interval(ctx, t);
}

static trp_err
throttler_pre_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    throttler *t = state;
    trp_throttler_options options;

    (void)ctx;
    memcpy(&options, trp_msg_payload(args), sizeof options);
    t->target = options.target;
    t->messages = options.messages;
    t->interval_ms = options.interval_ms;
    t->msgs_max = options.msgs_max;
    t->last = &t->first;
    return TRP_OK;
}

/* throttler-V3; before a restart, too (pre_restart's default). */
static void
throttler_post_stop(trp_ctx *ctx, void *state)
{
    throttler *t = state;

    while (t->count > 0) {
        kept *k = message_take(t);

        message_lose(ctx, k->sender, k->msg, TRP_DEAD_STOPPED);
        trpi_msg_drop(k->msg);
        trpi_free(k);
    }
}

static const trp_behaviour throttler_behaviour = { .size = sizeof(trp_behaviour),
                                                   .name = "throttler",
                                                   .version = 1,
                                                   .state_bytes = sizeof(throttler),
                                                   .receive = throttler_receive,
                                                   .pre_start = throttler_pre_start,
                                                   .post_stop = throttler_post_stop };

/* ---- spawning -------------------------------------------------------------------------------- */

static trp_err
throttler_spawn(trp_ctx *ctx, trp_system *system, const trp_throttler_options *options,
                trp_ref *ret_ref)
{
    trp_spawn_options spawn = TRP_SPAWN_OPTIONS_INIT;
    trp_throttler_options own;
    trp_err err;

    if (options == NULL || !TRPI_SIZED_TAKE(options, &own, zero) ||
        !is_rate(options->messages, options->interval_ms)) {
        return TRP_EINVAL;
    }
    err = trp_protocol_register(&trp_throttler_protocol);
    if (err != TRP_OK) {
        return err;
    }
    spawn.name = options->name;
    spawn.dispatcher = options->dispatcher;
    spawn.args_type = &trp_bytes_type;
    spawn.args = options;
    spawn.args_bytes = sizeof *options;
    return ctx != NULL ? trp_spawn(ctx, &throttler_behaviour, &spawn, ret_ref)
                       : trp_system_spawn(system, &throttler_behaviour, &spawn, ret_ref);
}

trp_err
trp_throttler_spawn(trp_ctx *ctx, const trp_throttler_options *options, trp_ref *ret_ref)
{
    return ctx == NULL ? TRP_EINVAL : throttler_spawn(ctx, NULL, options, ret_ref);
}

trp_err
trp_system_throttler_spawn(trp_system *system, const trp_throttler_options *options,
                           trp_ref *ret_ref)
{
    return throttler_spawn(NULL, system, options, ret_ref);
}
