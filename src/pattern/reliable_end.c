/* reliable_end.c - the far end of a reliable proxy, and the receptionist that makes it.
 *
 * Shape.   proxy --open--> /system/reliable-proxy --open--> far end --ack--> proxy
 *          proxy --parcels--------------------------------> far end --message--> target
 * Must hold.
 *   reliable-end-F1  Messages of one instance are passed on in the order of their numbers, each
 *       once.
 *   reliable-end-F2  An acknowledgement covers only messages that were passed on.
 *   reliable-end-F3  A far end ends with its proxy.
 * Limits.  TRP_RELIABLE_PROXY_ENDS_MAX far ends on a node.
 * Cost.    One acknowledgement for the messages of one turn.
 * Tests.   tests/unit/pattern/reliable_proxy_test.c, tests/unit/remote/reliable_test.c
 * Sources. CONTRIB-31, -32, -34
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "actor/actor.h"
#include "base/payload.h"
#include "pattern/reliable.h"

static const trp_field subscribe_fields[] = {
    { "subscriber", TRP_FIELD_ref, offsetof(trp_reliable_proxy_subscribe, subscriber) }
};
static const trp_field unsubscribe_fields[] = {
    { "subscriber", TRP_FIELD_ref, offsetof(trp_reliable_proxy_unsubscribe, subscriber) }
};
static const trp_field current_fields[] = {
    { "proxy", TRP_FIELD_ref, offsetof(trp_reliable_proxy_current, proxy) },
    { "state", TRP_FIELD_u32, offsetof(trp_reliable_proxy_current, state) }
};
static const trp_field transition_fields[] = {
    { "proxy", TRP_FIELD_ref, offsetof(trp_reliable_proxy_transition, proxy) },
    { "from", TRP_FIELD_u32, offsetof(trp_reliable_proxy_transition, from) },
    { "to", TRP_FIELD_u32, offsetof(trp_reliable_proxy_transition, to) }
};
static const trp_field open_fields[] = {
    { "proxy", TRP_FIELD_ref, offsetof(trpi_reliable_open, proxy) },
    { "target", TRP_FIELD_ref, offsetof(trpi_reliable_open, target) },
    { "instance", TRP_FIELD_u64, offsetof(trpi_reliable_open, instance) },
    { "next", TRP_FIELD_u64, offsetof(trpi_reliable_open, next) }
};
static const trp_field ack_fields[] = {
    { "instance", TRP_FIELD_u64, offsetof(trpi_reliable_ack, instance) },
    { "next", TRP_FIELD_u64, offsetof(trpi_reliable_ack, next) }
};
enum { subscribe_tag, unsubscribe_tag, current_tag, transition_tag, private_tag };
#define STRUCT(symbol, text, of, type_tag, type_flags, table)                                      \
    trp_type symbol = { .name = "reliable-proxy." text,                                            \
                        .bytes = sizeof(of),                                                       \
                        .tag = (type_tag),                                                         \
                        .flags = (type_flags),                                                     \
                        .fields = (table),                                                         \
                        .fields_count = sizeof(table) / sizeof((table)[0]) }
#define PRIVATE(symbol, text, n, type_flags)                                                       \
    trp_type symbol = { .name = "reliable-proxy." text,                                            \
                        .tag = private_tag + (n),                                                  \
                        .flags = TRP_TYPE_VARIABLE | (type_flags) }
STRUCT(trp_reliable_proxy_subscribe_type, "subscribe", trp_reliable_proxy_subscribe, subscribe_tag,
       0, subscribe_fields);
STRUCT(trp_reliable_proxy_unsubscribe_type, "unsubscribe", trp_reliable_proxy_unsubscribe,
       unsubscribe_tag, 0, unsubscribe_fields);
STRUCT(trp_reliable_proxy_current_type, "current", trp_reliable_proxy_current, current_tag, 0,
       current_fields);
STRUCT(trp_reliable_proxy_transition_type, "transition", trp_reliable_proxy_transition,
       transition_tag, 0, transition_fields);
/* A far end tells any message that it gets: in untrusted mode no peer may make one. */
STRUCT(trpi_reliable_open_type, "priv-open", trpi_reliable_open, private_tag,
       TRP_TYPE_POSSIBLY_HARMFUL, open_fields);
STRUCT(trpi_reliable_ack_type, "priv-ack", trpi_reliable_ack, private_tag + 1, 0, ack_fields);
PRIVATE(trpi_parcel_type, "priv-parcel", 2, TRP_TYPE_POSSIBLY_HARMFUL);
PRIVATE(trpi_reliable_later_type, "priv-later", 3, TRP_TYPE_LOCAL);
PRIVATE(trpi_reliable_retry_type, "priv-retry", 4, TRP_TYPE_LOCAL);
PRIVATE(trpi_reliable_look_type, "priv-look", 5, TRP_TYPE_LOCAL);
static trp_type *const types[] = { &trp_reliable_proxy_subscribe_type,
                                   &trp_reliable_proxy_unsubscribe_type,
                                   &trp_reliable_proxy_current_type,
                                   &trp_reliable_proxy_transition_type,
                                   &trpi_reliable_open_type,
                                   &trpi_reliable_ack_type,
                                   &trpi_parcel_type,
                                   &trpi_reliable_later_type,
                                   &trpi_reliable_retry_type,
                                   &trpi_reliable_look_type };
const trp_protocol trp_reliable_proxy_protocol = { "reliable-proxy", types,
                                                   sizeof types / sizeof types[0] };

/* ---- the far end ----------------------------------------------------------------------------- */

typedef struct end {
    trpi_reliable_open open; /* next: the number that is taken */
    bool later;              /* an acknowledgement is due */
} end;

static void
parcels_acknowledge(trp_ctx *ctx, end *e)
{
    trpi_reliable_ack ack = { e->open.instance, e->open.next };

    e->later = false;
    trp_tell(ctx, e->open.proxy, &trpi_reliable_ack_type, &ack, sizeof ack);
}

/* Return the type of the message in the parcel; NULL: it may not be told here. */
static const trp_type *
parcel_type(const end *e, const trpi_parcel *parcel, size_t bytes)
{
    const trp_type *type = trpi_type_get(parcel->type);
    bool fits = type != NULL && trpi_payload_fits(type, bytes) &&
                ((type->flags & TRP_TYPE_LOCAL) == 0 || e->open.proxy.node == TRPI_NODE_SELF);

    return fits ? type : NULL;
}

typedef struct passing {
    const end *e;
    const trp_type *type;
    const trp_msg *parcel;
} passing;

static trp_err
message_pass(trp_ctx *ctx, void *arg)
{
    const passing *p = arg;
    const trpi_parcel *parcel = trp_msg_payload(p->parcel);

    trp_tell_as(ctx, p->e->open.target, parcel->sender, p->type, parcel + 1,
                trp_msg_bytes(p->parcel) - sizeof *parcel);
    return TRP_OK;
}

static void
parcel_take(trp_ctx *ctx, end *e, const trp_msg *msg)
{
    const trpi_parcel *parcel = trp_msg_payload(msg);
    size_t bytes = trp_msg_bytes(msg);

    if (bytes < sizeof *parcel || parcel->instance != e->open.instance ||
        parcel->number > e->open.next) {
        return; /* of another instance; or one before it was lost, and both will come again */
    }
    if (parcel->number == e->open.next) { /* reliable-end-F1 */
        const trp_type *type = parcel_type(e, parcel, bytes - sizeof *parcel);

        e->open.next++;
        if (type != NULL) {
            passing p = { e, type, msg };
            trp_trace trace;

            trpi_trail_get(ctx, &trace);
            trpi_in_attempt(ctx, &trace, trace.attempt, message_pass, &p);
        } else {
            trpi_dead_letter(trp_ctx_system(ctx), parcel->sender, e->open.target,
                             TRP_DEAD_NOT_ENCODABLE, NULL, bytes - sizeof *parcel);
        }
    }
    if (!e->later) { /* reliable-end-F2: behind the messages in the mailbox */
        e->later = true;
        trp_tell(ctx, trp_self(ctx), &trpi_reliable_later_type, NULL, 0);
    }
}

static trp_err
end_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    end *e = state;

    if (trp_msg_is(msg, &trpi_parcel_type)) {
        parcel_take(ctx, e, msg);
    } else if (trp_msg_is(msg, &trpi_reliable_later_type)) {
        parcels_acknowledge(ctx, e);
    } else if (trp_msg_is(msg, &trpi_reliable_open_type)) {
        const trpi_reliable_open *open = trp_msg_payload(msg);

        if (open->instance > e->open.instance) {
            e->open = *open;
        }
        parcels_acknowledge(ctx, e);
    } else if (trp_msg_is(msg, &trp_terminated_type)) {
        trp_stop(ctx, trp_self(ctx)); /* reliable-end-F3 */
    } else {
        return TRP_EUNHANDLED;
    }
    return TRP_OK;
}

static trp_err
end_pre_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    end *e = state;

    memcpy(&e->open, trp_msg_payload(args), sizeof e->open);
    return trp_watch(ctx, e->open.proxy);
}

static const trp_behaviour end_behaviour = { .size = sizeof(trp_behaviour),
                                             .name = "reliable-proxy-end",
                                             .version = 1,
                                             .state_bytes = sizeof(end),
                                             .receive = end_receive,
                                             .pre_start = end_pre_start };

/* ---- the receptionist ------------------------------------------------------------------------ */

typedef struct receptionist {
    bool full; /* and that was logged */
} receptionist;

/* A failure here is tried again: the proxy repeats its request until it is answered. */
static trp_err
receptionist_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    receptionist *r = state;
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    const trpi_reliable_open *open = trp_msg_payload(msg);
    char name[3 * 9 + 1];
    trp_ref there;

    if (!trp_msg_is(msg, &trpi_reliable_open_type)) {
        return TRP_EUNHANDLED;
    }
    (void)snprintf(name, sizeof name, "%" PRIx32 "-%" PRIx32 "-%" PRIx32, open->proxy.node,
                   open->proxy.slot, open->proxy.generation);
    there = trp_child(ctx, name);
    if (trp_ref_is_none(there) && trp_children_count(ctx) < TRP_RELIABLE_PROXY_ENDS_MAX) {
        r->full = false;
        options.name = name;
        options.dispatcher = "default"; /* it carries the program's messages, not the system's */
        options.args_type = &trpi_reliable_open_type;
        options.args = open;
        options.args_bytes = sizeof *open;
        if (trp_spawn(ctx, &end_behaviour, &options, &there) != TRP_OK) {
            return TRP_OK;
        }
    }
    if (!trp_ref_is_none(there)) {
        trp_forward(ctx, there, msg);
    } else if (!r->full) {
        r->full = true;
        trp_log(ctx, TRP_LOG_WARNING,
                "no more far ends of reliable proxies, new proxies wait until one ends max=%u",
                TRP_RELIABLE_PROXY_ENDS_MAX);
    }
    return TRP_OK;
}

/* A far end that has failed ends; its proxy fails then (CONTRIB-36). */
static const trp_strategy stopping = { .size = sizeof(trp_strategy),
                                       .decider = trp_stopping_decider,
                                       .retries_max = TRP_FOREVER };
static const trp_behaviour receptionist_behaviour = { .size = sizeof(trp_behaviour),
                                                      .name = "reliable-proxy-receptionist",
                                                      .version = 1,
                                                      .state_bytes = sizeof(receptionist),
                                                      .receive = receptionist_receive,
                                                      .strategy = &stopping };

trp_err
trpi_reliable_receive(trp_system *system)
{
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    trp_ref ref;
    trp_err err = trp_protocol_register(&trp_reliable_proxy_protocol);

    if (err == TRP_OK) {
        options.name = TRPI_RELIABLE_RECEPTIONIST;
        err = trpi_system_spawn_internal(system, &receptionist_behaviour, &options, &ref);
    }
    return err == TRP_EEXIST ? TRP_OK : err;
}
