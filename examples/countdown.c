/* countdown.c - a storm of messages that quiets down (µJavaActors): 34 actors on 10 threads, 10 of
 * them in a category. init(8) makes an actor tell repeat(n) up to 8 times to a random actor,
 * which may be missing, and later to the category; repeat(n) leads to repeat(n - 1) elsewhere. */
#include <unistd.h>
#include "article.h"
#include "storm.h"

static trp_err
receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    uint32_t *seed = state, n = ((const storm_repeat *)trp_msg_payload(msg))->count;
    trp_err err = TRP_OK;
    *seed += trp_self(ctx).slot;
    if (trp_msg_tag(msg) == storm_init_tag) {
        const storm_later later = { article_dice(seed, n) + 1 };
        for (uint32_t i = 0; i < later.count && err == TRP_OK; i++) {
            repeat(ctx, seed, later.count);
            sent();
            err = trp_timer_once(ctx, i, (1 + article_dice(seed, 5)) * 20, &storm_later_type,
                                 &later, 0);
        }
    } else if (trp_msg_tag(msg) == storm_later_tag) { /* it is due, whatever waited before it */
        sent();
        err = trp_category_send(ctx, "common", &storm_repeat_type, &n, sizeof n, NULL);
    } else if (atomic_fetch_add(&handled[n], 1), n > 0) {
        repeat(ctx, seed, n - 1);
    }
    atomic_fetch_sub(&pending, 1);
    return err;
}

int
main(void)
{
    static const trp_protocol *const accepts[] = { &storm_protocol, NULL };
    static const trp_behaviour it = { sizeof it, "it", .state_bytes = sizeof(uint32_t),
                                      .receive = receive, .accepts = accepts };
    trp_dispatcher_info info = { .size = sizeof info };
    article a = article_begin("storm", NULL);
    int wrong = storm_start(a.system, &it) != TRP_OK;
    for (int i = 0; i < ACTORS; i++) {
        sent();
        trp_system_tell(a.system, actors[i], &storm_init_type, &(storm_init){ FIRST }, 0);
    }
    for (int waits = 0; atomic_load(&pending) > 0 && waits < 3000; waits++) { /* at most 60 s */
        usleep(20000);
    }
    for (int n = FIRST; n >= 0; n--) { /* a chain that ended early met a missing actor */
        printf("repeat(%d): %d\n", n, handled[n]);
        wrong |= n < FIRST && handled[n] + missing < handled[n + 1];
    }
    wrong |= trp_dispatcher_find(a.system, "ten", &info) != TRP_OK || info.threads != THREADS;
    wrong |= trp_category_size(a.system, "common") != COMMON;
    printf("%u threads, at most %d pending, %d to nobody; now %d pending\n", info.threads, peak,
           missing, pending);
    return article_end(&a, wrong || pending != 0 || missing == 0 || handled[0] == 0);
}
