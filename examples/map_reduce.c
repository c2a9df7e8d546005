/* map_reduce.c - the sums of the squares of 1000 numbers, by map and reduce, two sets at once
 * (µJavaActors). The first reduce is ordered when all is mapped: the article promises this, but
 * its code reduces each partition as soon as that one is mapped. */
#include <string.h>
#include "article.h"
#include "map_reduce.h"

typedef struct set {
    trp_ref client;
    int64_t values[VALUES], targets[PARTS];
    int mapped, reduced;
} set;

static trp_err
master(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    work w = *(const work *)trp_msg_payload(msg);
    set *s = (set *)state + w.set;
    switch (w.step) {
    case INIT:
        s->client = trp_sender(ctx);
        for (int i = 0; i < VALUES; i++) {
            s->values[i] = (i * 7919 + w.set) % 1000;
        }
        return order(ctx, s->values, w, MAP);
    case MAP:
        memcpy(s->values + w.part * PART, w.values, sizeof w.values);
        return ++s->mapped == PARTS ? order(ctx, s->values, w, REDUCE) : TRP_OK;
    default:
        s->targets[w.part] = w.values[0];
        if (++s->reduced == PARTS) {
            sum_of_squares.reduce(s->targets, 0, PARTS - 1, w.values, 0);
            trp_tell(ctx, s->client, &trp_bytes_type, &w, sizeof w);
        }
        return s->mapped == PARTS ? TRP_OK : TRP_EFAILED;
    }
}

int
main(void)
{
    const trp_behaviour it = { sizeof it, "it", .state_bytes = 2 * sizeof(set), .receive = master };
    article a = article_begin("mapReduce", &it);
    int wrong = 0;
    for (int k = 0; k < 2; k++) {
        const work init = { INIT, k, 0, { 0 } };
        trp_inbox_tell(a.inbox, a.first, &trp_bytes_type, &init, sizeof init);
    }
    for (int k = 0; k < 2; k++) {
        trp_msg *msg = article_next(&a);
        const work *w = trp_msg_payload(msg);
        printf("**** mapReduce done with result %lld (set mrSet_%d)\n", (long long)w->values[0],
               w->set);
        wrong += w->values[0] != 332833500; /* 0 + 1 + 4 + ... + 999 * 999, in another order */
        trp_msg_free(msg);
    }
    printf("workers: %u\n", (unsigned)trp_category_size(a.system, "mapReduce"));
    return article_end(&a, wrong + (trp_category_size(a.system, "mapReduce") != WORKERS_MAX));
}
