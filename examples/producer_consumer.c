/* producer_consumer.c - producers order items, consumers build them (µJavaActors' example).
 *
 * Each producer starts 1 to 3 consumers in a category of its own and gives itself 1 to 10 orders of
 * 1 to 10 items of one of five types. An order is taken apart by messages to itself, one item at a
 * time; each item goes to the consumer that has the least to do. A type takes up to so many
 * hundredths of a second as its place in the list says. In the end nothing is expected any more.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <troupe/troupe.h>

enum { PRODUCERS = 4, TYPES = 5 };
static const char *const types[TYPES] = { "widget", "framit", "frizzle", "gothca", "splat" };

#define ORDER(F, S) F(S, u32, count) F(S, u32, item)
#define ITEM(F, S) F(S, u32, item)
#define TOTALS(F, S) F(S, u32, ordered) F(S, u32, built) F(S, u32, open)
#define SHOP(M, P)                                                                                 \
    M(P, produce_n, ORDER)                                                                         \
    M(P, produce_1, ORDER) M(P, construct, ITEM) M(P, construction_complete, ITEM)                 \
        M(P, report, TRP_NO_FIELDS) M(P, totals, TOTALS)
TRP_PROTOCOL(shop, SHOP)
static const trp_protocol *const accepted[] = { &shop_protocol, NULL };

typedef struct consumer {
    trp_ref customer; /* of the item that is being built; one at a time */
    uint32_t seed;
} consumer;

static trp_err
consumer_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    consumer *c = state;
    const shop_construct *what = trp_msg_payload(msg);
    if (trp_msg_tag(msg) == shop_construct_tag && !trp_ref_is_none(c->customer)) {
        return trp_stash(ctx, msg); /* busy */
    }
    if (trp_msg_tag(msg) == shop_construct_tag) {
        c->customer = trp_sender(ctx);
        c->seed = c->seed * 1103515245u + 12345u; /* it takes its time, and no thread */
        return trp_timer_once(ctx, 1, (c->seed >> 16) % (what->item + 1) * 10 + 1,
                              &shop_construction_complete_type, what, sizeof *what);
    }
    trp_tell(ctx, c->customer, &shop_construction_complete_type, what, sizeof *what);
    c->customer = (trp_ref)TRP_REF_NONE;
    trp_unstash_all(ctx);
    return TRP_OK;
}
static const trp_behaviour consumer_behaviour = { .size = sizeof(trp_behaviour),
                                                  .name = "consumer",
                                                  .version = 1,
                                                  .state_bytes = sizeof(consumer),
                                                  .receive = consumer_receive,
                                                  .accepts = accepted };

typedef struct producer {
    char category[64];
    uint32_t expected[TYPES], ordered, built;
} producer;

static trp_err
producer_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    producer *p = state;
    uint32_t dice = *(const uint32_t *)trp_msg_payload(args) * 2654435761u;
    char name[64];
    snprintf(p->category, sizeof p->category, "producer%u_consumer", dice % 97);
    for (uint32_t i = 0; i < 1 + dice / 7 % 3; i++) {
        trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
        trp_ref ref;
        snprintf(name, sizeof name, "%s%02u", p->category, i);
        options.name = name;
        if (trp_spawn(ctx, &consumer_behaviour, &options, &ref) != TRP_OK ||
            trp_category_join(trp_ctx_system(ctx), p->category, ref) != TRP_OK) {
            return TRP_EINIT;
        }
    }
    for (uint32_t i = 0; i < 1 + dice / 11 % 10; i++) {
        shop_produce_n order = { 1 + (dice >> i) % 10, (dice >> (i + 3)) % TYPES };
        trp_tell(ctx, trp_self(ctx), &shop_produce_n_type, &order, sizeof order);
    }
    return TRP_OK;
}

static trp_err
producer_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    producer *p = state;
    const shop_produce_n *order = trp_msg_payload(msg);
    shop_produce_1 rest;
    shop_totals totals = { p->ordered, p->built, 0 };
    shop_construct item;
    switch (trp_msg_tag(msg)) {
    case shop_produce_n_tag:
        p->expected[order->item] += order->count;
        p->ordered += order->count;
        rest = (shop_produce_1){ order->count, order->item };
        trp_tell(ctx, trp_self(ctx), &shop_produce_1_type, &rest, sizeof rest);
        break;
    case shop_produce_1_tag: /* a loop as messages: others have their turn in between */
        if (order->count > 0) {
            item.item = order->item;
            if (trp_category_send(ctx, p->category, &shop_construct_type, &item, sizeof item,
                                  NULL) != TRP_OK) {
                return TRP_EFAILED;
            }
            rest = (shop_produce_1){ order->count - 1, order->item };
            trp_tell(ctx, trp_self(ctx), &shop_produce_1_type, &rest, sizeof rest);
        }
        break;
    case shop_construction_complete_tag:
        p->expected[((const shop_construct *)(const void *)order)->item]--;
        p->built++;
        break;
    case shop_report_tag:
        for (int i = 0; i < TYPES; i++) {
            totals.open += p->expected[i];
        }
        trp_reply(ctx, &shop_totals_type, &totals, sizeof totals);
        break;
    default:
        return TRP_EUNHANDLED;
    }
    return TRP_OK;
}
static const trp_behaviour producer_behaviour = { .size = sizeof(trp_behaviour),
                                                  .name = "producer",
                                                  .version = 1,
                                                  .state_bytes = sizeof(producer),
                                                  .receive = producer_receive,
                                                  .pre_start = producer_start,
                                                  .accepts = accepted };

/* Ask until nothing is open. 1: all that was ordered was built. */
static int
settled(trp_system *system, trp_ref ref)
{
    shop_report none = { 0 };
    trp_msg *reply;
    for (int i = 0; i < 20000; i++) {
        if (trp_system_ask(system, ref, &shop_report_type, &none, sizeof none, 5000, &reply) !=
            TRP_OK) {
            return 0;
        }
        shop_totals totals = *(const shop_totals *)trp_msg_payload(reply);
        trp_msg_free(reply);
        if (totals.open == 0 && totals.ordered > 0 && totals.built == totals.ordered) {
            printf("ordered %2u, built %2u, expected: all 0\n", totals.ordered, totals.built);
            return 1;
        }
    }
    return 0;
}

int
main(void)
{
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    trp_ref producers[PRODUCERS];
    trp_system *system;
    int right = 0;
    if (trp_protocol_register(&shop_protocol) != TRP_OK ||
        trp_system_new("shop", NULL, &system) != TRP_OK) {
        return 1;
    }
    printf("items: %s (fastest) to %s (slowest)\n", types[0], types[TYPES - 1]);
    options.args_type = &trp_bytes_type;
    for (uint32_t i = 0; i < PRODUCERS; i++) {
        uint32_t seed = i + 1;
        options.args = &seed;
        options.args_bytes = sizeof seed;
        if (trp_system_spawn(system, &producer_behaviour, &options, &producers[i]) != TRP_OK) {
            return 1;
        }
    }
    for (int i = 0; i < PRODUCERS; i++) {
        right += settled(system, producers[i]);
    }
    if (trp_system_stop(system, 5000) == TRP_OK) {
        trp_system_free(system);
    }
    return right != PRODUCERS;
}
