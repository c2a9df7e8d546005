/* countdown.c - a storm of messages that quiets down (µJavaActors' message storm and count-down).
 *
 * 34 actors on 10 threads, 10 of them in the category "common". init(8) makes an actor send 1 to 8
 * times repeat(n) to an actor drawn by lot, at once, and to the category, some time later;
 * repeat(n) makes its receiver send repeat(n-1) to another one. Who is drawn need not exist. The
 * backlog builds up and shrinks; in the end nothing is pending and all threads are idle.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <troupe/troupe.h>

enum { ACTORS = 24, COMMON = 10, THREADS = 10, MISSING = 4, INIT = 8, DELAY_MS = 20 };

#define COUNT(F, S) F(S, u32, count)
#define STORM(M, P) M(P, init, COUNT) M(P, repeat, COUNT) M(P, later, COUNT)
TRP_PROTOCOL(storm, STORM)
static const trp_protocol *const accepted[] = { &storm_protocol, NULL };

static trp_ref actors[ACTORS + MISSING];                      /* the last ones are nobody */
static _Atomic int pending, peak, missing, handled[INIT + 1]; /* repeat(n), by n */

static void
sent(void)
{
    int now = atomic_fetch_add(&pending, 1) + 1, before = atomic_load(&peak);
    while (now > before && !atomic_compare_exchange_weak(&peak, &before, now)) {
    }
}

static void
repeat(trp_ctx *ctx, uint32_t dice, uint32_t count)
{
    trp_ref to = actors[dice % (ACTORS + MISSING)];
    storm_repeat next = { count };
    if (trp_ref_is_none(to)) {
        atomic_fetch_add(&missing, 1); /* the article: "repeat: to is null" */
        return;
    }
    sent();
    trp_tell(ctx, to, &storm_repeat_type, &next, sizeof next);
}

static trp_err
receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    uint32_t *dice = state, count = ((const storm_repeat *)trp_msg_payload(msg))->count;
    trp_err err = TRP_OK;
    *dice = (*dice + trp_self(ctx).slot) * 1664525u + 1013904223u;
    if (trp_msg_tag(msg) == storm_later_tag) { /* it was due, whatever waited before it */
        sent();
        err = trp_category_send(ctx, "common", &storm_repeat_type, trp_msg_payload(msg),
                                sizeof count, NULL);
    } else if (trp_msg_tag(msg) == storm_repeat_tag) {
        atomic_fetch_add(&handled[count], 1);
        if (count > 0) {
            repeat(ctx, *dice >> 8, count - 1);
        }
    } else {
        storm_later later = { 1 + (*dice >> 8) % count };
        for (uint32_t i = 0; i < later.count && err == TRP_OK; i++) {
            *dice = *dice * 1664525u + 1013904223u;
            repeat(ctx, *dice >> 8, later.count);
            sent();
            err = trp_timer_once(ctx, i, (1 + (*dice >> 20) % 5) * DELAY_MS, &storm_later_type,
                                 &later, sizeof later);
        }
    }
    atomic_fetch_sub(&pending, 1);
    return err;
}
static const trp_behaviour actor = { .size = sizeof(trp_behaviour),
                                     .name = "TestActor",
                                     .version = 1,
                                     .state_bytes = sizeof(uint32_t),
                                     .receive = receive,
                                     .accepts = accepted };

static int
start(trp_system *system)
{
    trp_dispatcher_options threads = TRP_DISPATCHER_OPTIONS_INIT;
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    storm_init init = { INIT };
    char name[16];
    trp_ref ref;
    threads.kind = TRP_DISPATCHER_POOL;
    threads.threads_min = threads.threads_max = THREADS;
    if (trp_dispatcher_register(system, "ten", &threads) != TRP_OK) {
        return 0;
    }
    options.dispatcher = "ten";
    options.name = name;
    for (int i = 0; i < COMMON + ACTORS; i++) {
        snprintf(name, sizeof name, i < COMMON ? "common%02d" : "actor%d",
                 i < COMMON ? i : i - COMMON);
        if (trp_system_spawn(system, &actor, &options, &ref) != TRP_OK ||
            (i < COMMON && trp_category_join(system, "common", ref) != TRP_OK)) {
            return 0;
        }
        if (i >= COMMON) {
            actors[i - COMMON] = ref;
        }
    }
    for (int i = 0; i < ACTORS; i++) { /* when all are known */
        sent();
        trp_system_tell(system, actors[i], &storm_init_type, &init, sizeof init);
    }
    return 1;
}

int
main(void)
{
    trp_dispatcher_info info = { .size = sizeof info };
    trp_inbox *inbox;
    trp_system *system;
    trp_msg *msg;
    trp_ref sender;
    int waits = 0, more = 0;
    if (trp_protocol_register(&storm_protocol) != TRP_OK ||
        trp_system_new("storm", NULL, &system) != TRP_OK ||
        trp_inbox_open(system, NULL, &inbox) != TRP_OK || !start(system)) {
        return 1;
    }
    while (atomic_load(&pending) > 0 && waits++ < 1000) { /* at most 20 s */
        if (waits % 4 == 0) {
            printf("main waiting: %d pending...\n", atomic_load(&pending));
        }
        (void)!trp_inbox_receive(inbox, DELAY_MS, &msg, &sender); /* nothing comes: a rest */
    }
    for (int n = INIT; n >= 0; n--) {
        printf("repeat(%d): %d\n", n, atomic_load(&handled[n]));
        /* a chain that ended early met somebody who is missing */
        more += n < INIT &&
                atomic_load(&handled[n]) + atomic_load(&missing) < atomic_load(&handled[n + 1]);
    }
    int wrong =
        trp_dispatcher_find(system, "ten", &info) != TRP_OK || info.threads > THREADS || more != 0;
    printf("%d actors, %u threads, at most %d pending, %d to nobody; now %d pending\n",
           COMMON + ACTORS, info.threads, atomic_load(&peak), atomic_load(&missing),
           atomic_load(&pending));
    wrong |=
        atomic_load(&pending) != 0 || atomic_load(&missing) == 0 || atomic_load(&handled[0]) == 0;
    trp_inbox_close(inbox);
    if (trp_system_stop(system, 5000) == TRP_OK) {
        trp_system_free(system);
    }
    return wrong;
}
