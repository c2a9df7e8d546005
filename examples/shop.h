/* shop.h - for producer_consumer.c: messages, the state of a producer, and the consumers. */
#include <unistd.h>

enum { TYPES = 5 }; /* widget, framit, frizzle, gothca, splat: each takes longer than the last */
#define ORDER(F, S) F(S, u32, item) F(S, u32, count)
#define TOTALS(F, S) F(S, u32, ordered) F(S, u32, built) F(S, u32, expected)
#define SHOP_MESSAGES(M, P)                                                                        \
    M(P, init, ORDER) M(P, produce_n, ORDER) M(P, produce_1, ORDER) M(P, construct, ORDER)         \
    M(P, construction_complete, ORDER) M(P, totals, TOTALS)
TRP_PROTOCOL(shop, SHOP_MESSAGES)
#include "shop_times.h"
static const trp_protocol *const shop_accepts[] = { &shop_protocol, NULL };

typedef struct producer {
    char category[32];
    uint32_t seed, expected[TYPES];
    shop_totals totals;
    trp_ref client;
} producer;

static trp_err
build(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    const shop_construct *what = trp_msg_payload(msg);
    uint32_t *seed = state;
    usleep(1000 * build_ms(seed, what->item)); /* it has a thread */
    trp_reply(ctx, &shop_construction_complete_type, what, sizeof *what);
    return TRP_OK;
}
static const trp_behaviour consumer = { sizeof consumer, "consumer", .receive = build,
    .state_bytes = sizeof(uint32_t), .accepts = shop_accepts };

/* Start 1 to 3 consumers in a category. */
static trp_err
consumers_start(trp_ctx *ctx, const char *category, uint32_t *seed)
{
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    trp_err err = TRP_OK;
    char name[64];
    trp_ref ref;
    options.name = name;
    options.dispatcher = "blocking"; /* they wait, as builders do */
    for (uint32_t i = article_dice(seed, 3) + 1; i > 0 && err == TRP_OK; i--) {
        snprintf(name, sizeof name, "%s%02u", category, i);
        err = trp_spawn(ctx, &consumer, &options, &ref);
        err = err ? err : trp_category_join(trp_ctx_system(ctx), category, ref);
    }
    return err;
}

/* Give oneself 1 to 10 orders of 1 to 10 items of a type. */
static void
orders_make(trp_ctx *ctx, uint32_t *seed)
{
    for (uint32_t i = article_dice(seed, 10) + 1; i > 0; i--) {
        uint32_t item = article_dice(seed, TYPES);
        const shop_produce_n order = { item, article_dice(seed, 10) + 1 };
        trp_tell(ctx, trp_self(ctx), &shop_produce_n_type, &order, 0);
    }
}
