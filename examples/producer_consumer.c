/* producer_consumer.c - producers order items, consumers build them (µJavaActors). Orders are taken
 * apart by messages to oneself; each item goes to the least loaded of one's consumers. */
#include "article.h"
#include "shop.h"

static trp_err
produce(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    producer *p = state;
    shop_produce_1 order = *(const shop_produce_1 *)trp_msg_payload(msg);
    switch (trp_msg_tag(msg)) {
    case shop_init_tag:
        p->client = trp_sender(ctx);
        p->seed = order.count;
        snprintf(p->category, sizeof p->category, "producer%u_consumer", order.count);
        orders_make(ctx, &p->seed);
        return consumers_start(ctx, p->category, &p->seed);
    case shop_produce_n_tag:
        p->expected[order.item] += order.count;
        p->totals.ordered += order.count;
        trp_tell(ctx, trp_self(ctx), &shop_produce_1_type, &order, 0);
        return TRP_OK;
    case shop_produce_1_tag: /* a loop of messages: others have their turn in between */
        if (--order.count > 0) {
            trp_tell(ctx, trp_self(ctx), &shop_produce_1_type, &order, 0);
        }
        return trp_category_send(ctx, p->category, &shop_construct_type, &order, 0, NULL);
    default:
        p->expected[order.item]--;
        if (++p->totals.built == p->totals.ordered) {
            for (int i = 0; i < TYPES; i++) {
                p->totals.expected |= p->expected[i]; /* each is 0 again */
            }
            trp_tell(ctx, p->client, &shop_totals_type, &p->totals, 0);
        }
        return TRP_OK;
    }
}

int
main(void)
{
    const trp_behaviour it = { sizeof it, "producer", .state_bytes = sizeof(producer),
                               .receive = produce, .accepts = shop_accepts };
    article a = article_begin("shop", NULL);
    int wrong = 0;
    for (uint32_t i = 1; i <= 4; i++) {
        trp_ref ref = TRP_REF_NONE;
        wrong += trp_system_spawn(a.system, &it, NULL, &ref) != TRP_OK;
        trp_inbox_tell(a.inbox, ref, &shop_init_type, &(shop_init){ 0, i }, 0);
    }
    for (int i = 0; i < 4; i++) {
        trp_msg *msg = article_next(&a);
        const shop_totals *t = trp_msg_payload(msg);
        printf("ordered %2u, built %2u, expected: %u\n", t->ordered, t->built, t->expected);
        wrong += t->expected != 0 || t->built != t->ordered;
        trp_msg_free(msg);
    }
    return article_end(&a, wrong + times_are_wrong());
}
