/* storm.h - for countdown.c: the messages, the actors, and the counters. */
#include <stdatomic.h>

enum { ACTORS = 24, COMMON = 10, THREADS = 10, MISSING = 4, FIRST = 8 };
#define COUNT(F, S) F(S, u32, count)
#define STORM(M, P) M(P, init, COUNT) M(P, repeat, COUNT) M(P, later, COUNT)
TRP_PROTOCOL(storm, STORM)

static trp_ref actors[ACTORS + MISSING]; /* the last ones are TRP_REF_NONE */
static _Atomic int pending, peak, missing, handled[FIRST + 1]; /* repeat(n), by n */

/* A message is on its way. */
static void
sent(void)
{
    int now = atomic_fetch_add(&pending, 1) + 1, before = atomic_load(&peak);
    while (now > before && !atomic_compare_exchange_weak(&peak, &before, now)) {
    }
}

/* Tell a random actor repeat(count). */
static void
repeat(trp_ctx *ctx, uint32_t *seed, uint32_t count)
{
    trp_ref to = actors[article_dice(seed, ACTORS + MISSING)];
    if (trp_ref_is_none(to)) {
        atomic_fetch_add(&missing, 1); /* the article: "repeat: to is null" */
        return;
    }
    sent();
    trp_tell(ctx, to, &storm_repeat_type, &(storm_repeat){ count }, 0);
}

/* Start the actors on threads of their own, and those of "common" in their category. */
static trp_err
storm_start(trp_system *system, const trp_behaviour *behaviour)
{
    trp_dispatcher_options ten = TRP_DISPATCHER_OPTIONS_INIT;
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    ten.kind = TRP_DISPATCHER_POOL;
    ten.threads_min = ten.threads_max = THREADS;
    options.dispatcher = "ten";
    trp_err err = trp_dispatcher_register(system, "ten", &ten);
    for (int i = 0; i < COMMON + ACTORS && err == TRP_OK; i++) {
        trp_ref ref;
        err = trp_system_spawn(system, behaviour, &options, &ref);
        if (i >= COMMON) {
            actors[i - COMMON] = ref;
        } else if (err == TRP_OK) {
            err = trp_category_join(system, "common", ref);
        }
    }
    return err;
}
