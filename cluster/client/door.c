/* door.c - the actors that clients send to: doors, and the tunnels behind them.
 *
 * Why.     A service may run on a node that cannot reach the client, and may pass a message on to
 *          another one. So the sender that it sees is an actor of the contact's node, which passes
 *          answers on over the connection that the client has made.
 * Shape.   client's actor --> door --sender: tunnel--> service
 *             ^--------------------- tunnel <--answer--'
 *          asks: the door asks the service, and passes the one answer, or the failure, on.
 *          The door of a topic, or of all services of a name, publishes what it is told; what it is
 *          asked, too, and says to how many that was delivered.
 * Must hold.
 *   client-door-D1  A client's actor has one tunnel of a door. It ends with that actor, when the
 *       client says so, when no message has passed for tunnel_ms, and with the door.
 *   client-door-D2  What the client's actor tells the tunnel reaches the actor that answered last.
 *   client-door-D3  A tunnel is a door of its client (clients-C2) while it lives.
 *   client-door-D4  A door passes on what its client sends, and nothing else: a subscriber sees the
 *       door as the sender of a publication that was asked, and what it answers is not published.
 * Limits.  TRPI_CLIENT_TUNNELS_MAX; a message beyond is a dead letter (refused), an ask fails
 *          (TRP_ELIMIT).
 * Tests.   tests/unit/client/client_test.c, tests/unit/client/topic_test.c
 * Sources. CONTRIB-24, -25
 */
#include "cluster/client/door.h"

#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "base/table.h"

enum { PUBLISH_MS = 3000 }; /* nodes that have not answered until then are silent */

trp_type client_asker_type = {
    "troupe-receptionist.asker", sizeof(client_asker), 1, TRP_TYPE_LOCAL, NULL, 0, 0
};
/* To a door from its tunnel: this asker's tunnel ends. */
static trp_type tunnel_over_type = {
    "troupe-receptionist.tunnel-over", sizeof(client_asker), 2, TRP_TYPE_LOCAL, NULL, 0, 0
};
static trp_type *const door_types[] = { &client_asker_type, &tunnel_over_type };
const trp_protocol client_door_protocol = { "troupe-receptionist", door_types,
                                            sizeof door_types / sizeof door_types[0], 0 };

/* ---- tunnels --------------------------------------------------------------------------------- */

typedef struct tunnel_args {
    client_door_args door;
    trp_ref asker;
} tunnel_args;

struct tunnel_state {
    tunnel_args args;
    trp_ref answerer; /* none: nobody has answered yet */
    bool open;        /* in the table of doors */
};

static void
tunnel_end(const struct tunnel_state *t, trp_ctx *ctx)
{
    client_asker asker = { t->args.asker.slot, t->args.asker.generation };
    trp_tell(ctx, trp_parent(ctx), &tunnel_over_type, &asker, sizeof asker);
    trp_stop(ctx, trp_self(ctx));
}

static trp_err
tunnel_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    struct tunnel_state *t = state;
    trp_ref sender = trpi_msg_sender_get(msg);
    if (trp_msg_is(msg, &trp_receive_timeout_type)) {
        tunnel_end(t, ctx);
        return TRP_OK;
    }
    bool from_client = sender.node == t->args.asker.node;
    trp_ref to = from_client ? t->answerer : t->args.asker;
    if (!from_client) {
        t->answerer = sender;
    }
    trp_tell_as(ctx, to, trp_self(ctx), trp_msg_type(msg), trp_msg_payload(msg),
                trp_msg_bytes(msg)); /* client-door-D2 */
    return TRP_OK;
}

static trp_err
tunnel_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    struct tunnel_state *t = state;
    memcpy(&t->args, trp_msg_payload(args), sizeof t->args);
    trp_receive_timeout_set(ctx, t->args.door.tunnel_ms);
    /* client-door-D3; without room only talking back does not work */
    t->open = trpi_remote_door_open(t->args.door.remote, trp_self(ctx), t->args.door.uid) == TRP_OK;
    return TRP_OK;
}

static void
tunnel_stopped(trp_ctx *ctx, void *state)
{
    const struct tunnel_state *t = state;
    if (t->open) {
        trpi_remote_door_close(t->args.door.remote, trp_self(ctx));
    }
}

const trp_behaviour client_tunnel_behaviour = {
    .size = sizeof(trp_behaviour),
    .name = "client-tunnel",
    .version = 1,
    .state_bytes = sizeof(struct tunnel_state),
    .receive = tunnel_receive,
    .pre_start = tunnel_start,
    .post_stop = tunnel_stopped,
};

/* ---- doors ----------------------------------------------------------------------------------- */

typedef struct tunnel {
    client_asker asker;
    trp_ref ref; /* slot and generation are never both 0 */
} tunnel;

struct door_state {
    client_door_args args;
    char *topic; /* NULL: none */
    trpi_table tunnels;
    uint32_t asks; /* in flight */
};

static bool
tunnel_is_empty(const void *element)
{
    return trp_ref_is_none(((const tunnel *)element)->ref);
}

static uint64_t
asker_hash(const client_asker *asker)
{
    return trpi_hash_u64((uint64_t)asker->slot << 32 | asker->generation);
}

static uint64_t
tunnel_hash(const void *arg, const void *element)
{
    (void)arg;
    return asker_hash(&((const tunnel *)element)->asker);
}

static bool
tunnel_is(const void *arg, const void *element, const void *key)
{
    const client_asker *a = &((const tunnel *)element)->asker, *b = key;
    (void)arg;
    return a->slot == b->slot && a->generation == b->generation;
}

static const trpi_table_kind tunnels_kind = { sizeof(tunnel), tunnel_is_empty, tunnel_hash,
                                              tunnel_is };

/* Find or make the tunnel of a client's actor; none: there is no room. client-door-D1 */
static trp_ref
tunnel_get(struct door_state *d, trp_ctx *ctx, trp_ref asker)
{
    const client_asker key = { asker.slot, asker.generation };
    const tunnel_args args = { d->args, asker };
    trp_spawn_options spawn = TRP_SPAWN_OPTIONS_INIT;
    trp_ref ref = TRP_REF_NONE;
    tunnel *found = trpi_table_find(&tunnels_kind, &d->tunnels, NULL, asker_hash(&key), &key);
    if (found != NULL) {
        return found->ref;
    }
    spawn.args_type = &trp_bytes_type;
    spawn.args = &args;
    spawn.args_bytes = sizeof args;
    if (d->tunnels.count >= TRPI_CLIENT_TUNNELS_MAX ||
        trpi_table_reserve(&tunnels_kind, &d->tunnels, NULL, d->tunnels.count + 1) != TRP_OK ||
        trp_spawn(ctx, &client_tunnel_behaviour, &spawn, &ref) != TRP_OK) {
        return (trp_ref)TRP_REF_NONE;
    }
    found = trpi_table_add(&tunnels_kind, &d->tunnels, NULL, asker_hash(&key), &key);
    found->asker = key; /* there is room */
    found->ref = ref;
    return ref;
}

static void
tunnel_forget(struct door_state *d, trp_ctx *ctx, const client_asker *asker, bool stop)
{
    tunnel *found = trpi_table_find(&tunnels_kind, &d->tunnels, NULL, asker_hash(asker), asker);
    if (found != NULL) {
        if (stop) {
            trp_stop(ctx, found->ref);
        }
        trpi_table_remove(&tunnels_kind, &d->tunnels, NULL, found);
    }
}

/* ---- asks ------------------------------------------------------------------------------------ */

typedef struct asked {
    trp_ref asker;
} asked;

static void
asker_fail(trp_ctx *ctx, trp_ref asker, trp_err err)
{
    trp_status_failure failure;
    memset(&failure, 0, sizeof failure);
    failure.err = (int32_t)err;
    trp_tell(ctx, asker, &trp_status_failure_type, &failure, sizeof failure);
}

static trp_err
ask_answered(trp_ctx *ctx, void *state, void *arg, trp_err err, const trp_msg *reply)
{
    struct door_state *d = state;
    asked *a = arg;
    d->asks--;
    if (reply != NULL) { /* a failure, too */
        trp_tell(ctx, a->asker, trp_msg_type(reply), trp_msg_payload(reply), trp_msg_bytes(reply));
    } else {
        asker_fail(ctx, a->asker, err);
    }
    trp_alloc_free(ctx, a);
    return TRP_OK;
}

static trp_err
publish_answered(trp_ctx *ctx, void *state, void *arg, trp_err err, const trp_msg *reply)
{
    struct door_state *d = state;
    asked *a = arg;
    const trp_publish_report *report =
        err == TRP_OK ? trp_msg_as(reply, &trp_publish_report_type) : NULL;
    d->asks--;
    if (report != NULL) {
        const trp_client_delivery delivery = { report->delivered, report->nodes, report->silent };
        trp_tell(ctx, a->asker, &trp_client_delivery_type, &delivery, sizeof delivery);
    } else {
        asker_fail(ctx, a->asker, err == TRP_OK ? TRP_EDATA : err);
    }
    trp_alloc_free(ctx, a);
    return TRP_OK;
}

static trp_err
ask_begin(struct door_state *d, trp_ctx *ctx, const trp_msg *msg, asked *a)
{
    trp_publish_options how = TRP_PUBLISH_OPTIONS_INIT;
    how.timeout_ms = d->args.tunnel_ms < PUBLISH_MS ? d->args.tunnel_ms : PUBLISH_MS;
    return d->topic == NULL ? trp_ask(ctx, d->args.service, trp_msg_type(msg), trp_msg_payload(msg),
                                      trp_msg_bytes(msg), d->args.tunnel_ms, ask_answered, a)
                            : trp_mediator_publish_ask(ctx, d->args.mediator, d->topic, &how,
                                                       trp_msg_type(msg), trp_msg_payload(msg),
                                                       trp_msg_bytes(msg), publish_answered, a);
}

static void
service_ask(struct door_state *d, trp_ctx *ctx, const trp_msg *msg)
{
    asked *a = d->asks < TRPI_CLIENT_TUNNELS_MAX ? trp_alloc(ctx, sizeof *a) : NULL;
    trp_err err = TRP_ELIMIT;
    if (a != NULL) {
        a->asker = trpi_msg_sender_get(msg);
        err = ask_begin(d, ctx, msg, a);
    }
    if (err == TRP_OK) {
        d->asks++;
    } else {
        asker_fail(ctx, trpi_msg_sender_get(msg), err);
        trp_alloc_free(ctx, a);
    }
}

static void
pass_on(struct door_state *d, trp_ctx *ctx, const trp_msg *msg)
{
    trp_ref sender = trpi_msg_sender_get(msg);
    if (!trp_ref_is_none(sender) && sender.node != d->args.client_node) { /* client-door-D4 */
        trpi_dead_letter_msg(trp_ctx_system(ctx), trp_self(ctx), msg, TRP_DEAD_REFUSED);
        return;
    }
    if (d->args.asks != 0 && !trp_ref_is_none(sender)) {
        service_ask(d, ctx, msg);
        return;
    }
    trp_ref as = trp_ref_is_none(sender) ? sender : tunnel_get(d, ctx, sender);
    if (trp_ref_is_none(as) && !trp_ref_is_none(sender)) {
        trpi_dead_letter_msg(trp_ctx_system(ctx), trp_self(ctx), msg, TRP_DEAD_REFUSED);
        return;
    }
    if (d->topic == NULL) {
        trp_tell_as(ctx, d->args.service, as, trp_msg_type(msg), trp_msg_payload(msg),
                    trp_msg_bytes(msg));
    } else if (trp_mediator_publish(d->args.mediator, as, d->topic, trp_msg_type(msg),
                                    trp_msg_payload(msg), trp_msg_bytes(msg)) != TRP_OK) {
        trpi_dead_letter_msg(trp_ctx_system(ctx), trp_self(ctx), msg, TRP_DEAD_REFUSED);
    }
}

static trp_err
door_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    struct door_state *d = state;
    if (trp_msg_is(msg, &client_asker_type)) {
        tunnel_forget(d, ctx, trp_msg_payload(msg), true);
    } else if (trp_msg_is(msg, &tunnel_over_type)) {
        tunnel_forget(d, ctx, trp_msg_payload(msg), false);
    } else {
        pass_on(d, ctx, msg);
    }
    return TRP_OK;
}

static trp_err
door_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    struct door_state *d = state;
    const char *topic = (const char *)trp_msg_payload(args) + sizeof d->args;
    (void)ctx;
    memcpy(&d->args, trp_msg_payload(args), sizeof d->args);
    if (d->args.mediator == NULL) {
        return TRP_OK;
    }
    d->topic = trpi_alloc(d->args.topic_bytes + 1u);
    if (d->topic == NULL) {
        return TRP_ENOMEM;
    }
    memcpy(d->topic, topic, d->args.topic_bytes);
    d->topic[d->args.topic_bytes] = '\0';
    return TRP_OK;
}

static void
door_stopped(trp_ctx *ctx, void *state)
{
    struct door_state *d = state;
    (void)ctx;
    trpi_table_fini(&d->tunnels);
    trpi_free(d->topic);
    d->topic = NULL;
}

const trp_behaviour client_door_behaviour = {
    .size = sizeof(trp_behaviour),
    .name = "client-door",
    .version = 1,
    .state_bytes = sizeof(struct door_state),
    .receive = door_receive,
    .pre_start = door_start,
    .post_stop = door_stopped,
};
