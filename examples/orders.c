/* orders.c - an order service that loses a host and no order: entities with state, reminders, a
 * projection, a singleton. One program, one node or many; the journal makes the difference.
 *
 *     cc orders.c $(pkg-config --cflags --libs troupe) -o orders
 *     troupe journal init --config orders.conf
 *     ./orders --config orders.conf --port 2552 --seed self &
 *     ./orders --config orders.conf --port 2553 --seed troupe.tcp://demo@127.0.0.1:2552 &
 *     ./orders --config orders.conf --port 2554 --seed troupe.tcp://demo@127.0.0.1:2552 &
 *     troupe ask /user/desk 'add 4711 3 999'        -> 3 things, 2997 cents, open
 *     troupe ask /user/desk 'pay 4711'              -> 3 things, 2997 cents, paid
 *     troupe ask /user/desk report                  -> 1 sold, 2997 cents
 *     kill -9 %1                                    and ask again, on another port
 *
 *     shell --text--> desk (one a node) --+--> order 4711: an entity, somewhere; its events
 *                                         |                   | projection, exactly once
 *                                         +--report--> books: a singleton that adds up the sales
 *
 * An order that is not paid in app.lapse-ms (15 minutes) is cancelled by its reminder.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <troupe/troupe.h>

/* Events of an order, and the message of its reminder. */
#define SHOP_ADDED(F, S) F(S, u32, things) F(S, u64, cents) F(S, u64, lapses_at_ms)
#define SHOP_CENTS(F, S) F(S, u64, cents)
#define SHOP_MESSAGES(M, P)                                                                        \
    M(P, added, SHOP_ADDED)                                                                        \
    M(P, paid, SHOP_CENTS) M(P, cancelled, SHOP_CENTS) M(P, lapse, SHOP_CENTS)
TRP_PROTOCOL(shop, SHOP_MESSAGES)
static const trp_protocol *const shop_events[] = { &shop_protocol, NULL };

static uint64_t lapse_ms = 15 * 60 * 1000;

/* ---- an order: told by its number, from any node --------------------------------------------- */

enum { NEW, OPEN, PAID, CANCELLED };
static const char *const status_names[] = { "new", "open", "paid", "cancelled" };

typedef struct order {
    trp_persistent_state persistent; /* the first member */
    uint32_t status;
    uint32_t things;
    uint64_t cents;
    uint64_t lapses_at_ms;
} order;

/* Set again, it is the same reminder: it has its name and its time. */
static trp_err
order_remind(trp_ctx *ctx, const order *o)
{
    trp_reminder reminder = TRP_REMINDER_INIT;
    trp_entity self;
    trp_err err = trp_entity_self(ctx, &self);

    reminder.name = "lapse";
    reminder.at_ms = o->lapses_at_ms;
    reminder.type = &shop_lapse_type;
    reminder.payload = &(shop_lapse){ o->cents };
    return err != TRP_OK ? err : trp_reminder_set(ctx, &self, &reminder, 5000, NULL, NULL);
}

/* Open orders live, wherever their shard goes; closed ones are forgotten until they are asked. */
static trp_err
order_answer(trp_ctx *ctx, const order *o)
{
    char text[96];

    if (!trp_ref_is_none(trp_sender(ctx))) { /* a reminder has none */
        snprintf(text, sizeof text, "%" PRIu32 " things, %" PRIu64 " cents, %s", o->things,
                 o->cents, status_names[o->status]);
        trp_reply_text(ctx, text);
    }
    return o->status == OPEN ? TRP_OK : trp_entity_passivate(ctx);
}

/* The event is stored and applied: the answer stays true, whatever fails next. */
static trp_err
order_stored(trp_ctx *ctx, void *state, const trp_msg *event, void *arg)
{
    const shop_added *added = shop_added_as(event);
    const order *o = state;
    trp_err err = TRP_OK;

    (void)arg;
    if (added != NULL && added->things == o->things) { /* the first */
        err = order_remind(ctx, o);
    }
    return err != TRP_OK ? err : order_answer(ctx, o);
}

/* Certainly not stored, the database is away for example: the sender may try again. */
static trp_err
order_rejected(trp_ctx *ctx, void *state, const trp_msg *event, trp_err err, const char *why)
{
    (void)state, (void)event;
    trp_reply_failure(ctx, err, why);
    return TRP_OK;
}

/* Decide. The state is changed by the event. */
static trp_err
order_command(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    const order *o = state;
    const shop_cancelled all = { o->cents };
    char text[160] = "";
    shop_added added = { 0, 0, o->lapses_at_ms };
    struct timespec now;

    if (trp_msg_is(msg, &shop_lapse_type)) {
        return o->status != OPEN
                   ? order_answer(ctx, o)
                   : trp_persist(ctx, &shop_cancelled_type, &all, 0, order_stored, NULL);
    }
    if (trp_msg_is(msg, &trp_string_type)) {
        snprintf(text, sizeof text, "%.*s", (int)trp_msg_bytes(msg),
                 (const char *)trp_msg_payload(msg));
    }
    if (sscanf(text, "add %*s %" SCNu32 " %" SCNu64, &added.things, &added.cents) == 2 &&
        added.things > 0 && added.things <= 1000 && added.cents <= 100000000 && o->status <= OPEN) {
        added.cents *= added.things;
        if (o->status == NEW) {
            clock_gettime(CLOCK_REALTIME, &now);
            added.lapses_at_ms = (uint64_t)now.tv_sec * 1000 + lapse_ms;
        }
        return trp_persist(ctx, &shop_added_type, &added, 0, order_stored, NULL);
    }
    if (strncmp(text, "pay ", 4) == 0 && (o->status == OPEN || o->status == PAID)) {
        return o->status == PAID /* asked twice, it is paid once */
                   ? order_answer(ctx, o)
                   : trp_persist(ctx, &shop_paid_type, &all, 0, order_stored, NULL);
    }
    if (strncmp(text, "look ", 5) == 0) {
        return order_answer(ctx, o);
    }
    trp_reply_failure(ctx, TRP_EINVAL, "add ORDER THINGS CENTS, pay ORDER, look ORDER, report");
    return o->status == OPEN ? TRP_OK : trp_entity_passivate(ctx);
}

/* Apply an event, new or recovered: change the state, and nothing else. */
static trp_err
order_event(trp_ctx *ctx, void *state, const trp_msg *event)
{
    const shop_added *added = shop_added_as(event);
    order *o = state;

    (void)ctx;
    if (added != NULL) {
        o->status = OPEN;
        o->things += added->things;
        o->cents += added->cents;
        o->lapses_at_ms = added->lapses_at_ms;
    } else {
        o->status = trp_msg_is(event, &shop_paid_type) ? PAID : CANCELLED;
    }
    return TRP_OK;
}

/* A crash between the first event and its reminder is made good here. */
static trp_err
order_recovered(trp_ctx *ctx, void *state)
{
    return ((order *)state)->status == OPEN ? order_remind(ctx, state) : TRP_OK;
}

static uint32_t
order_tags(trp_ctx *ctx, const void *state, const trp_msg *event,
           const char *ret_tags[TRP_JOURNAL_TAGS_MAX])
{
    (void)ctx, (void)state, (void)event;
    ret_tags[0] = "order";
    return 1;
}

static trp_persistent order_kind = TRP_PERSISTENT_INIT("order", order, order_command, order_event);

/* ---- the books: once in the cluster ---------------------------------------------------------- */

typedef struct books {
    uint64_t sold;
    uint64_t cents;
} books;

/* Called for each event of all orders, in the order in which they were stored. The sale is stored
 * together with the offset of the event, so that a crash neither loses nor repeats it. */
static trp_err
books_sale(trp_projection *projection, trp_ctx *ctx, void *arg, const trp_journal_event *event)
{
    const char *tags[] = { "sale", event->id }; /* of all; of "order|4711" */
    trp_journal_event sale = *event;

    (void)ctx, (void)arg;
    if (strcmp(event->type, "shop.paid") != 0) {
        return TRP_OK;
    }
    sale.tags = tags;
    sale.tags_count = 2;
    return trp_projection_emit(projection, &sale);
}

static trp_err
books_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    trp_projection_options projection = TRP_PROJECTION_OPTIONS_INIT;
    trp_journal_query_options query = TRP_JOURNAL_QUERY_OPTIONS_INIT;
    trp_ref ref;

    (void)state, (void)args;
    projection.name = "books";
    projection.tag = "order";
    projection.handler = books_sale;
    projection.exactly_once = 1;
    query.receiver = trp_self(ctx);
    query.tag = "sale"; /* from the first one on: the sums are made anew */
    query.live = 1;
    query.demand = 100;
    trp_err err = trp_projection_spawn(ctx, &projection, &ref);
    return err != TRP_OK ? err : trp_journal_query_spawn(ctx, &query, &ref);
}

static trp_err
books_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    static const trp_journal_query_request more = { 1 };
    const trp_journal_event *sale = trp_journal_query_event_of(msg);
    books *b = state;
    trp_msg *paid = NULL;
    char text[96];

    if (sale != NULL) { /* as it was persisted */
        trp_err err = trp_deserialize(trp_ctx_system(ctx), sale->data, sale->bytes, &paid);
        if (err != TRP_OK) {
            return err;
        }
        b->sold++;
        b->cents += shop_paid_as(paid)->cents;
        trp_msg_free(paid);
        trp_reply(ctx, &trp_journal_query_request_type, &more, 0);
    } else if (trp_msg_is(msg, &trp_string_type)) {
        snprintf(text, sizeof text, "%" PRIu64 " sold, %" PRIu64 " cents", b->sold, b->cents);
        trp_reply_text(ctx, text);
    }
    return TRP_OK;
}

static const trp_behaviour books_behaviour = {
    sizeof books_behaviour,   "books", .state_bytes = sizeof(books), .receive = books_receive,
    .pre_start = books_start,
};

/* ---- the desk: on each node ------------------------------------------------------------------ */

/* The reply goes to the sender directly, from wherever the order or the books are. */
static trp_err
desk_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    char text[160], number[TRP_ENTITY_ID_BYTES_MAX + 1] = "0";

    if (!trp_msg_is(msg, &trp_string_type)) {
        return TRP_EUNHANDLED;
    }
    snprintf(text, sizeof text, "%.*s", (int)trp_msg_bytes(msg),
             (const char *)trp_msg_payload(msg));
    if (strcmp(text, "report") == 0) {
        trp_forward(ctx, *(const trp_ref *)state, msg);
        return TRP_OK;
    }
    sscanf(text, "%*s %119s", number);
    trp_entity to = trp_entity_of(trp_entity_type("order"), number, strlen(number));
    trp_entity_forward(ctx, &to, msg);
    return TRP_OK;
}

static trp_err
desk_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    trp_singleton_proxy_options books_proxy = TRP_SINGLETON_PROXY_OPTIONS_INIT;

    (void)args;
    books_proxy.name = "books";
    return trp_singleton_proxy(trp_ctx_system(ctx), &books_proxy, state);
}

static const trp_behaviour desk = {
    sizeof desk,
    "desk",
    .state_bytes = sizeof(trp_ref),
    .receive = desk_receive,
    .pre_start = desk_start,
};

/* ---- a node ---------------------------------------------------------------------------------- */

static trp_err
start(trp_node *node, void *arg)
{
    trp_system *system = trp_node_system(node);
    trp_sharding_options orders = TRP_SHARDING_OPTIONS_INIT;
    trp_singleton_options single = TRP_SINGLETON_OPTIONS_INIT;
    trp_spawn_options named = TRP_SPAWN_OPTIONS_INIT;
    const char *lapse = trp_node_config_get(node, "app.lapse-ms", 0);
    char why[512] = "";
    trp_ref ref;

    (void)arg;
    if (lapse != NULL) {
        lapse_ms = strtoull(lapse, NULL, 10);
    }
    order_kind.recovered = order_recovered;
    order_kind.rejected = order_rejected;
    order_kind.tags = order_tags;
    order_kind.events = shop_events;
    orders.type = "order";
    orders.behaviour = &order_kind.behaviour;
    orders.shards = 100; /* for ten nodes; it cannot change while orders are remembered */
    orders.remember_entities = 1;
    orders.reminders = 1;
    single.name = "books";
    single.behaviour = &books_behaviour;
    single.persistent = 1; /* its figures come from the journal, which must be shared */
    named.name = "desk";
    trp_err err = trp_protocol_register(&shop_protocol);
    err = err != TRP_OK ? err : trp_sharding_start(system, &orders, why, sizeof why);
    err = err != TRP_OK ? err : trp_singleton_start(system, &single, &ref);
    err = err != TRP_OK ? err : trp_system_spawn(system, &desk, &named, &ref);
    if (err != TRP_OK) {
        fprintf(stderr, "orders: %s: %s\n", trp_strerror(err), why);
    }
    return err;
}

int
main(int argc, char **argv)
{
    return trp_node_run(argc, argv, NULL, start, NULL);
}
